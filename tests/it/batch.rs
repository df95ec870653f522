//! Batches: every sample accounted for, in either form, whatever goes wrong with some.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request, header};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use wiremock::ResponseTemplate;

use crate::support::backend::{Backend, said, slow, verdicts};
use crate::support::process::Process;
use crate::support::{Answer, Service};

const LINES: &str = "application/x-ndjson";

async fn post(service: &Service, path: &str, kind: &str, accept: Option<&str>, body: impl Into<Body>) -> Answer {
    let mut request = Request::builder().method(Method::POST).uri(path).header(header::CONTENT_TYPE, kind);
    if let Some(accept) = accept {
        request = request.header(header::ACCEPT, accept);
    }
    service.send(request.body(body.into()).unwrap()).await
}

/// The items of an answer in lines, by index, and its summary.
#[track_caller]
fn lines(answer: &Answer) -> (BTreeMap<u64, Value>, Value) {
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.headers[header::CONTENT_TYPE], LINES);
    let mut lines: Vec<Value> = answer.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let summary = lines.pop().unwrap()["summary"].take();
    let items: BTreeMap<u64, Value> = lines.into_iter().map(|item| (item["index"].as_u64().unwrap(), item)).collect();
    assert_eq!(summary["total"], items.len());
    (items, summary)
}

fn ids(reference: &Value, retrieved: &Value) -> Value {
    json!({ "reference_context_ids": reference, "retrieved_context_ids": retrieved })
}

#[tokio::test]
async fn both_forms_in_and_out_say_the_same() {
    let service = Service::embedded();
    let samples = [ids(&json!([1, 2]), &json!([1])), ids(&json!([]), &json!([])), ids(&json!(["a"]), &json!(["a"]))];
    let envelope = json!({ "samples": samples, "k": [1] }).to_string();
    let stream = samples.map(|sample| sample.to_string()).join("\n");
    let path = "/recall/id/batch";
    let mut answers = Vec::new();
    for accept in ["application/json", LINES] {
        answers.push((accept, post(&service, path, "application/json", Some(accept), envelope.clone()).await));
        let path = format!("{path}?k=1&ordered=true");
        answers.push((accept, post(&service, &path, LINES, Some(accept), stream.clone()).await));
    }
    for (accept, answer) in answers {
        let (items, mut summary) = if accept == LINES {
            lines(&answer)
        } else {
            let mut body = answer.ok();
            let items = body["results"].as_array().unwrap().iter().cloned().enumerate();
            (items.map(|(index, item)| (index as u64, item)).collect(), body["summary"].take())
        };
        assert_eq!(items[&0]["result"]["score"], 0.5);
        assert_eq!(items[&0]["result"]["recall_at"], json!([{ "k": 1, "score": 0.5, "recalled": 1 }]));
        assert_eq!((&items[&1]["status"], &items[&1]["error"]["code"]), (&json!("failed"), &json!("invalid_input")));
        assert_eq!(items[&1]["error"]["request_id"], answer.headers["x-request-id"].to_str().unwrap());
        assert!(items[&1].get("result").is_none() && items[&0].get("error").is_none());
        assert_eq!(items[&2]["result"]["score"], 1.0);
        summary["duration_ms"].take();
        insta::allow_duplicates! {
            insta::assert_snapshot!(summary, @r#"{"total":3,"scored":2,"failed":1,"mean":0.75,"pooled":0.6666666666666666,"bounds":[0.5,0.8333333333333334],"ci95":[0.5,1.0],"min":0.5,"p10":0.55,"p50":0.75,"p90":0.95,"max":1.0,"failures":{"invalid_input":1},"usage":{"judge_calls":0,"input_tokens":0,"cached_input_tokens":0,"output_tokens":0,"reasoning_tokens":0},"duration_ms":null}"#);
        }
    }
}

#[tokio::test]
async fn without_a_preference_the_answer_has_the_requests_form() {
    let service = Service::embedded();
    let sample = ids(&json!([1]), &json!([1]));
    let envelope = json!({ "samples": [sample] }).to_string();
    let answer = post(&service, "/recall/id/batch", "application/json", Some("*/*"), envelope).await;
    assert_eq!(answer.ok()["results"][0]["index"], 0);
    for kind in [LINES, "application/jsonl", "application/x-ndjson; charset=utf-8"] {
        lines(&post(&service, "/recall/id/batch", kind, None, sample.to_string()).await);
    }
}

#[tokio::test]
async fn a_broken_line_costs_itself_alone() {
    let service = Service::with(&["--body-limit", "1KiB"], &[]);
    let good = ids(&json!([1]), &json!([1]));
    let long = ids(&json!(["x".repeat(2000)]), &json!([1]));
    let stream = format!("\u{feff}{good}\n\n{{\"id\": \"broken\",\n{long}\r\n   \n{good}\n[1]\n\"\\ud800\"\n{good}");
    let (items, summary) = lines(&post(&service, "/recall/id/batch", LINES, None, stream).await);
    let codes: Vec<&str> = items.values().map(|item| item["error"]["code"].as_str().unwrap_or("scored")).collect();
    let expected = ["scored", "invalid_json", "payload_too_large", "scored", "invalid_input", "invalid_json", "scored"];
    assert_eq!(codes, expected);
    let detail = |index: u64| items[&index]["error"]["detail"].as_str().unwrap();
    assert!(detail(1).starts_with("Line 3 of the stream: "), "{}", detail(1));
    assert!(detail(2).starts_with("Line 4 of the stream: Larger than 1 KiB"), "{}", detail(2));
    assert_eq!(summary["failures"], json!({ "invalid_input": 1, "invalid_json": 2, "payload_too_large": 1 }));
    assert_eq!((&summary["mean"], &summary["bounds"]), (&json!(1.0), &json!([3.0 / 7.0, 1.0])));
}

#[tokio::test]
async fn an_empty_stream_is_an_empty_batch() {
    let service = Service::embedded();
    let (items, summary) = lines(&post(&service, "/recall/id/batch", LINES, None, "\n \n").await);
    assert!(items.is_empty());
    assert_eq!((&summary["total"], &summary["mean"], &summary["bounds"]), (&json!(0), &Value::Null, &Value::Null));
}

#[tokio::test]
async fn a_sample_may_have_options_of_its_own() {
    let service = Service::embedded();
    let near = json!({ "reference_contexts": ["abcd"], "retrieved_contexts": ["abcx"] });
    let mut strict = near.clone();
    strict["threshold"] = json!(0.9);
    let mut other = near.clone();
    other["distance_measure"] = json!("hamming");
    let stream = format!("{near}\n{strict}\n{other}");
    let path = "/recall/nonllm/batch?threshold=0.5&distance_measure=jaro&ordered=true";
    let (items, _) = lines(&post(&service, path, LINES, None, stream).await);
    let used = |index: u64| (&items[&index]["result"]["distance_measure"], &items[&index]["result"]["threshold"]);
    assert_eq!(used(0), (&json!("jaro"), &json!(0.5)));
    assert_eq!(used(1), (&json!("jaro"), &json!(0.9)));
    assert_eq!(used(2), (&json!("hamming"), &json!(0.5)));
}

#[tokio::test]
async fn faults_of_the_envelope_are_faults_of_the_whole() {
    let service = Service::embedded();
    let path = "/recall/id/batch";
    for (body, pointer, words) in [
        (json!({}), "/samples", "required: an array of samples"),
        (json!({ "samples": [] }), "/samples", "must not be empty"),
        (json!({ "samples": {} }), "/samples", "expected an array of samples, found an object"),
        (json!({ "samples": [{}], "k": [0] }), "/k/0", "expected an integer of at least 1"),
        (json!({ "samples": [{}], "sampels": [] }), "/sampels", "did you mean `samples`?"),
        (json!({ "samples": [{}], "ordered": 1 }), "/ordered", "expected true or false, found `1`"),
        (json!({ "samples": [{}], "retrieved_ids": [] }), "/retrieved_ids", "put it into `samples`"),
        (json!({ "samples": [{}], "threshold": 0.5 }), "/threshold", "is an option of /recall/nonllm"),
        (json!([]), "", "expected a JSON object with a list `samples`, found an array"),
    ] {
        let answer = post(&service, path, "application/json", None, body.to_string()).await;
        let problem = answer.problem(422, "invalid_input");
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{body}");
        assert!(problem["errors"][0]["detail"].as_str().unwrap().contains(words), "{problem:#}");
    }
    post(&service, path, "application/json", None, "{").await.problem(400, "invalid_json");
    post(&service, path, "text/csv", None, "").await.problem(415, "unsupported_media_type");
    for (query, words) in [
        ("k=0", "query parameter `k`: expected an integer of at least 1, found `0`"),
        ("k=1,x", "query parameter `k`: expected an integer of at least 1, found `\"x\"`"),
        ("ordered=yes", "query parameter `ordered`: expected true or false"),
        ("oredred=true", "did you mean `ordered`?"),
        ("id=7", "put it into a line of the body"),
        ("k=1&k=2", "is given twice"),
    ] {
        let answer = post(&service, &format!("{path}?{query}"), LINES, None, "").await;
        let problem = answer.problem(422, "invalid_input");
        assert_eq!(problem["errors"][0]["pointer"], "");
        assert!(problem["errors"][0]["detail"].as_str().unwrap().contains(words), "{problem:#}");
    }
    // An option of the whole batch has no meaning beside a sample.
    let (items, _) = lines(&post(&service, path, LINES, None, r#"{"ordered": true}"#).await);
    let detail = items[&0]["error"]["errors"][0]["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("option of a whole batch"), "{detail}");
}

/// A judge that answers by what it is asked: for `ROW-n` the n-th reply, again and again.
async fn rows(replies: Vec<(&'static str, ResponseTemplate)>) -> Backend {
    Backend::by_question(replies).await
}

fn row(name: &str) -> Value {
    json!({ "user_input": name, "reference": "The Eiffel Tower is in Paris.", "retrieved_contexts": ["In Paris."] })
}

#[tokio::test]
async fn failures_of_every_kind_are_counted_by_code() {
    let backend = rows(vec![
        ("good", said(&verdicts(&[true]))),
        ("bad", said(&verdicts(&[false]))),
        ("prose", said("I cannot say.")),
        ("down", ResponseTemplate::new(500)),
        ("key", ResponseTemplate::new(401)),
        ("full", ResponseTemplate::new(402)),
    ])
    .await;
    let service = Service::asking(&backend.url(), &["--judge-attempts", "1", "--judge-repairs", "0"]);
    let kinds = ["good", "bad", "prose", "down", "key", "full", "good", "good"];
    let mut samples: Vec<Value> = kinds.iter().map(|kind| row(kind)).collect();
    samples.push(json!({ "user_input": "good" }));
    let body = json!({ "samples": samples }).to_string();
    let answer = post(&service, "/recall/llm/batch", "application/json", None, body).await.ok();
    let summary = &answer["summary"];
    assert_eq!((&summary["total"], &summary["scored"], &summary["failed"]), (&json!(9), &json!(4), &json!(5)));
    assert_eq!((&summary["mean"], &summary["bounds"]), (&json!(0.75), &json!([3.0 / 9.0, 8.0 / 9.0])));
    let failures = json!({ "invalid_input": 1, "judge_output_invalid": 1, "upstream_auth": 1, "upstream_error": 2 });
    assert_eq!(summary["failures"], failures);
    // Every call that was made, those of failed samples included.
    assert_eq!(summary["usage"]["judge_calls"], backend.calls().await);
    for (index, item) in answer["results"].as_array().unwrap().iter().enumerate() {
        assert_eq!(item["index"], index);
        assert_eq!(item["status"] == "scored", item.get("result").is_some());
        assert!(item["status"] == "scored" || item["error"].get("score").is_none());
    }
}

#[tokio::test]
async fn a_batch_waits_where_a_single_request_is_turned_away() {
    let backend = rows(vec![("row", slow(said(&verdicts(&[true])), Duration::from_millis(40)))]).await;
    let service = Service::asking(&backend.url(), &["--judge-concurrency", "2", "--queue", "0"]);
    let stream = (0..24).map(|_| row("row").to_string()).collect::<Vec<_>>().join("\n");
    let (items, summary) = lines(&post(&service, "/recall/llm/batch", LINES, None, stream).await);
    assert_eq!((items.len(), &summary["scored"]), (24, &json!(24)), "{summary:#}");
}

#[tokio::test]
async fn lines_leave_as_they_are_done_and_in_order_when_asked() {
    let backend = rows(vec![
        ("slow", slow(said(&verdicts(&[true])), Duration::from_millis(400))),
        ("fast", said(&verdicts(&[false]))),
    ])
    .await;
    let service = Service::asking(&backend.url(), &[]);
    let stream = ["slow", "fast", "fast", "slow", "fast"].map(|kind| row(kind).to_string()).join("\n");
    let order = |answer: &Answer| -> Vec<u64> {
        let items = answer.text().lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        items.filter_map(|item| item["index"].as_u64()).collect()
    };
    let loose = post(&service, "/recall/llm/batch", LINES, None, stream.clone()).await;
    let strict = post(&service, "/recall/llm/batch?ordered=true", LINES, None, stream).await;
    assert_eq!(order(&strict), [0, 1, 2, 3, 4]);
    assert_ne!(order(&loose), [0, 1, 2, 3, 4]);
    lines(&loose);
}

#[tokio::test]
async fn p03_failed_rows_stay_in_sight() {
    let backend = rows(vec![
        ("Where is", said(&verdicts(&[true]))),
        ("ROW-2", ResponseTemplate::new(500)),
        ("ROW-3", said(&verdicts(&[false]))),
    ])
    .await;
    let service = Service::asking(&backend.url(), &["--judge-attempts", "2"]);
    let case =
        crate::support::json_lines("tests/cases/field.jsonl").into_iter().find(|case| case["id"] == "P03").unwrap();
    let answer = post(&service, "/recall/llm/batch", "application/json", None, case["input"].to_string()).await.ok();
    let statuses: Vec<&str> =
        answer["results"].as_array().unwrap().iter().map(|item| item["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["scored", "failed", "scored"]);
    let summary = &answer["summary"];
    let told = [&summary["mean"], &summary["total"], &summary["scored"], &summary["failed"]];
    assert_eq!(told, [&json!(0.5), &json!(3), &json!(2), &json!(1)]);
    assert!(answer["results"][1].get("result").is_none() && answer["results"][1]["error"]["code"] == "upstream_error");
}

#[tokio::test]
async fn p95_one_bad_row_costs_itself() {
    let case =
        crate::support::json_lines("tests/cases/field.jsonl").into_iter().find(|case| case["id"] == "P95").unwrap();
    let backend = Backend::saying(&verdicts(&[true])).await;
    let service = Service::asking(&backend.url(), &[]);
    let path = "/recall/llm/batch";
    let answer = post(&service, path, "application/json", None, case["input"].to_string()).await.ok();
    let told: Vec<(&Value, &Value, &Value)> = answer["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| (&item["index"], &item["result"]["score"], &item["error"]["status"]))
        .collect();
    let (score, none) = (json!(1.0), Value::Null);
    assert_eq!(told, [(&json!(0), &score, &none), (&json!(1), &none, &json!(422)), (&json!(2), &score, &none)]);
    assert_eq!(answer["results"][1]["error"]["errors"][0]["pointer"], "/reference");

    let stream: Vec<String> = case["input"]["samples"].as_array().unwrap().iter().map(Value::to_string).collect();
    let (items, _) = lines(&post(&service, path, LINES, None, stream.join("\n")).await);
    assert_eq!((&items[&0]["result"]["score"], &items[&1]["error"]["code"]), (&score, &json!("invalid_input")));
}

// ---- over a real connection

/// The head of a streamed request; its body follows in chunks.
const HEAD: &str = "POST /recall/id/batch HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-ndjson\r\ntransfer-encoding: chunked\r\n\r\n";

fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

#[tokio::test]
async fn a_line_is_answered_while_the_next_is_not_yet_sent() {
    let service = Process::start(&[], &[]);
    let mut client = TcpStream::connect(service.url.trim_start_matches("http://")).await.unwrap();
    let line = format!("{}\n", ids(&json!([1]), &json!([1])));
    client.write_all(format!("{HEAD}{}", chunk(&line)).as_bytes()).await.unwrap();
    let mut read = String::new();
    for index in 0..3 {
        let wanted = format!("{{\"index\":{index},");
        while !read.contains(&wanted) {
            let mut piece = [0; 4096];
            let length = tokio::time::timeout(Duration::from_secs(20), client.read(&mut piece)).await.unwrap().unwrap();
            assert_ne!(length, 0, "{read}");
            read.push_str(std::str::from_utf8(&piece[..length]).unwrap());
        }
        assert!(!read.contains("summary"));
        client.write_all(chunk(&line).as_bytes()).await.unwrap();
    }
    client.write_all(b"0\r\n\r\n").await.unwrap();
    while !read.contains("\"summary\":{\"total\":4") {
        let mut piece = [0; 4096];
        let length = client.read(&mut piece).await.unwrap();
        assert_ne!(length, 0, "{read}");
        read.push_str(std::str::from_utf8(&piece[..length]).unwrap());
    }
}

#[tokio::test]
async fn who_asks_first_is_told_to_go_on() {
    let service = Process::start(&[], &[]);
    let mut client = TcpStream::connect(service.url.trim_start_matches("http://")).await.unwrap();
    let head = HEAD.replace("host: x\r\n", "host: x\r\nexpect: 100-continue\r\n");
    client.write_all(head.as_bytes()).await.unwrap();
    let mut piece = [0; 4096];
    let length = tokio::time::timeout(Duration::from_secs(20), client.read(&mut piece)).await.unwrap().unwrap();
    assert!(piece[..length].starts_with(b"HTTP/1.1 100 "), "{}", String::from_utf8_lossy(&piece[..length]));
    let line = format!("{}\n", ids(&json!([1]), &json!([1])));
    client.write_all(format!("{}0\r\n\r\n", chunk(&line)).as_bytes()).await.unwrap();
    let mut read = String::new();
    while !read.contains("\"summary\":{\"total\":1,\"scored\":1") {
        let length = tokio::time::timeout(Duration::from_secs(20), client.read(&mut piece)).await.unwrap().unwrap();
        assert_ne!(length, 0, "{read}");
        read.push_str(std::str::from_utf8(&piece[..length]).unwrap());
    }
}

#[tokio::test]
async fn who_reads_only_after_sending_everything_is_answered_in_full() {
    const LINES_SENT: usize = 30_000;
    let service = Process::start(&[], &[]);
    let client = TcpStream::connect(service.url.trim_start_matches("http://")).await.unwrap();
    let (mut reading, mut writing) = client.into_split();
    writing.write_all(HEAD.as_bytes()).await.unwrap();
    for block in 0..LINES_SENT / 1000 {
        let text: String = (0..1000)
            .map(|line| format!("{{\"id\":{},\"expected_ids\":[1,2],\"retrieved_ids\":[1]}}\n", block * 1000 + line))
            .collect();
        writing.write_all(chunk(&text).as_bytes()).await.unwrap();
    }
    writing.write_all(b"0\r\n\r\n").await.unwrap();
    // Far more than the buffers of both sides hold is waiting by now.
    let mut read = Vec::new();
    let all = async {
        while !read.ends_with(b"0\r\n\r\n") {
            assert_ne!(reading.read_buf(&mut read).await.unwrap(), 0);
        }
    };
    tokio::time::timeout(Duration::from_secs(120), all).await.unwrap();
    let text = String::from_utf8(read).unwrap();
    assert_eq!(text.matches("\"status\":\"scored\"").count(), LINES_SENT);
    assert!(
        text.contains(&format!(
            "\"summary\":{{\"total\":{LINES_SENT},\"scored\":{LINES_SENT},\"failed\":0,\"mean\":0.5"
        ))
    );
}

#[tokio::test]
async fn a_client_that_leaves_a_batch_stops_its_work() {
    let backend = rows(vec![("row", slow(said(&verdicts(&[true])), Duration::from_millis(100)))]).await;
    let variables = [("OPENAI_BASE_URL", backend.url()), ("OPENAI_API_KEY", "sk-test-batch-1234".to_owned())];
    let variables = variables.each_ref().map(|(name, value)| (*name, value.as_str()));
    let service = Process::start(&["--judge", "openai/m", "--judge-concurrency", "2"], &variables);
    let mut client = TcpStream::connect(service.url.trim_start_matches("http://")).await.unwrap();
    // Equal samples would be one call.
    let text: String = (0..200).map(|number| format!("{}\n", row(&format!("row {number}")))).collect();
    let request = format!("{}{}0\r\n\r\n", HEAD.replace("/id/", "/llm/"), chunk(&text));
    client.write_all(request.as_bytes()).await.unwrap();
    while backend.calls().await < 4 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    drop(client);
    tokio::time::sleep(Duration::from_millis(500)).await;
    let calls = backend.calls().await;
    assert!(calls < 30, "{calls}");
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert_eq!(backend.calls().await, calls, "work went on for nobody");
}

#[tokio::test]
async fn single_requests_are_answered_while_a_batch_runs() {
    let backend = rows(vec![
        ("row", slow(said(&verdicts(&[true])), Duration::from_millis(50))),
        ("single", said(&verdicts(&[true]))),
    ])
    .await;
    let service = Service::asking(&backend.url(), &["--judge-concurrency", "4"]);
    let stream: String = (0..400)
        .map(|number| {
            let mut row = row("row");
            row["user_input"] = json!(format!("row {number}"));
            format!("{row}\n")
        })
        .collect();
    let batch = post(&service, "/recall/llm/batch", LINES, None, stream);
    let singles = async {
        for number in 0..20 {
            let mut sample = row("single");
            sample["user_input"] = json!(format!("single {number}"));
            service.post("/recall/llm", &sample).await.ok();
            service.get("/healthz").await.ok();
        }
        std::time::Instant::now()
    };
    let (batch, singles_done) =
        futures_util::future::join(async { (batch.await, std::time::Instant::now()) }, singles).await;
    assert!(singles_done < batch.1, "the batch held up the single requests");
    assert_eq!(lines(&batch.0).1["scored"], 400);
}
