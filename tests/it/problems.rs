//! What a stranger is told when something is wrong with a request.

use axum::body::Body;
use axum::http::{Request, header};
use context_recall::http::problem::Code;
use serde_json::{Value, json};

use crate::support::{Answer, Service, project};

/// A whole problem, but for the request id, which is new each time.
fn whole(mut problem: Value) -> Value {
    problem["request_id"] = json!("…");
    problem
}

async fn faults(path: &str, body: &str) -> Vec<(String, String)> {
    let answer = Service::embedded().post_text(path, body.to_owned()).await;
    let problem = answer.problem(422, "invalid_input");
    let errors = problem["errors"].as_array().unwrap().iter();
    errors.map(|e| (e["pointer"].as_str().unwrap().to_owned(), e["detail"].as_str().unwrap().to_owned())).collect()
}

#[tokio::test]
async fn every_fault_of_a_body_is_listed_at_once_with_its_place() {
    let body = r#"{"id": 1.5, "user_input": " ", "retrieved_context": ["x"], "reference": ["b"], "retrieved_contexts": [{"text": "x"}, null, 3],
        "threshold": 3, "k": [0, "a", 1.5, 2], "evidence": "flg", "surprise": 1}"#;
    let answer = Service::embedded().post_text("/recall/llm", body).await;
    insta::assert_json_snapshot!(whole(answer.problem(422, "invalid_input")));
}

#[tokio::test]
async fn what_is_missing_is_named_with_what_is_expected() {
    let service = Service::embedded();
    for (path, fields) in [
        ("/recall/llm", vec!["/user_input", "/reference", "/retrieved_contexts"]),
        ("/recall/nonllm", vec!["/retrieved_contexts", "/reference_contexts"]),
        ("/recall/id", vec!["/retrieved_context_ids", "/reference_context_ids"]),
    ] {
        for body in [json!({}), json!({ "user_input": null, "reference": null, "retrieved_contexts": null })] {
            let problem = service.post(path, &body).await.problem(422, "invalid_input");
            let errors = problem["errors"].as_array().unwrap();
            let pointers: Vec<_> = errors.iter().map(|error| error["pointer"].as_str().unwrap()).collect();
            assert_eq!(pointers, fields, "{path}");
            assert!(errors.iter().all(|error| error["detail"].as_str().unwrap().starts_with("required: ")));
        }
    }
}

#[tokio::test]
async fn a_misspelt_field_never_counts_as_empty() {
    for (path, misspelt, meant) in [
        ("/recall/llm", "retrieved_context", "retrieved_contexts"),
        ("/recall/llm", "retrieved_Contexts", "retrieved_contexts"),
        ("/recall/llm", "refrence", "reference"),
        ("/recall/nonllm", "treshold", "threshold"),
        ("/recall/id", "reference_context_id", "reference_context_ids"),
    ] {
        let listed = faults(path, &format!("{{\"{misspelt}\": 1}}")).await;
        let expected = (format!("/{misspelt}"), format!("unknown field; did you mean `{meant}`?"));
        assert!(listed.contains(&expected), "{listed:?}");
    }
    let listed = faults("/recall/id", r#"{"a/b~c": 1}"#).await;
    assert_eq!(listed[0].0, "/a~1b~0c");
    assert!(listed[0].1.starts_with("unknown field"), "{listed:?}");
}

#[tokio::test]
async fn the_same_row_may_be_posted_to_every_route() {
    let service = Service::embedded();
    let row = json!({
        "id": "row", "user_input": "?", "reference": "Paris is big.", "retrieved_contexts": ["Paris is big."],
        "reference_contexts": ["Paris is big."], "retrieved_context_ids": [1], "reference_context_ids": ["1"],
        "response": 1, "answer": null, "actual_output": [], "multi_responses": [], "rubrics": {}, "persona_name": "x",
        "query_style": "x", "query_length": "x", "synthesizer_name": "x", "metadata": { "deep": [1] }
    });
    for path in ["/recall/llm", "/recall/nonllm", "/recall/id"] {
        let answer = service.post(path, &row).await.ok();
        assert_eq!((&answer["score"], &answer["id"]), (&json!(1.0), &json!("row")), "{path}");
    }
}

#[tokio::test]
async fn other_evaluators_names_are_known_but_not_beside_the_own_one() {
    let service = Service::embedded();
    let samples = [
        ("/recall/llm", json!({ "question": "?", "ground_truth": "Oslo.", "contexts": ["Oslo."] })),
        ("/recall/llm", json!({ "input": "?", "expected_output": "Oslo.", "retrieval_context": ["Oslo."] })),
        ("/recall/llm", json!({ "query": "?", "expected": "Oslo.", "contexts": ["Oslo."] })),
        ("/recall/nonllm", json!({ "contexts": ["a"], "expected_contexts": ["a"] })),
        ("/recall/id", json!({ "retrieved_ids": ["a"], "expected_ids": ["a"] })),
    ];
    for (path, sample) in samples {
        assert_eq!(service.post(path, &sample).await.ok()["score"], 1.0, "{sample}");
    }
    let listed =
        faults("/recall/id", r#"{"retrieved_ids": [1], "retrieved_context_ids": [1], "expected_ids": [1]}"#).await;
    let detail = "`retrieved_context_ids` and `retrieved_ids` are two names of one field; give one of them";
    assert_eq!(listed, [("/retrieved_context_ids".to_owned(), detail.to_owned())]);
    let listed = faults("/recall/id", r#"{"expected_ids": [1], "retrieved_ids": [1], "expected_ids": [2]}"#).await;
    assert_eq!(listed, [("/expected_ids".to_owned(), "`expected_ids` is given twice".to_owned())]);
    // A fault under another name is shown under that name.
    let listed = faults("/recall/id", r#"{"expected_ids": [], "retrieved_ids": [true]}"#).await;
    assert_eq!(listed.iter().map(|fault| fault.0.as_str()).collect::<Vec<_>>(), ["/retrieved_ids/0", "/expected_ids"]);
    // Merged data sets have both columns, one of them empty.
    let body = r#"{"retrieved_ids": ["a"], "retrieved_context_ids": null, "expected_ids": ["a"]}"#;
    assert_eq!(Service::embedded().post_text("/recall/id", body).await.ok()["score"], 1.0);
}

#[tokio::test]
async fn an_option_of_another_route_is_refused_by_name() {
    let listed = faults("/recall/id", r#"{"threshold": 0.5, "retrieved_ids": [1], "expected_ids": [1]}"#).await;
    assert_eq!(
        listed,
        [("/threshold".to_owned(), "`threshold` is an option of /recall/nonllm, not of /recall/id".to_owned())]
    );
}

#[tokio::test]
async fn options_out_of_range_are_refused_and_the_ends_are_in() {
    let service = Service::embedded();
    let sample = |fields: &str| format!(r#"{{"retrieved_contexts": ["a"], "reference_contexts": ["a"], {fields}}}"#);
    for fields in [
        r#""threshold": -0.1"#,
        r#""threshold": 1.1"#,
        r#""threshold": "0.5""#,
        r#""threshold": true"#,
        r#""threshold": 1e999"#,
        r#""distance_measure": "cosine""#,
        r#""distance_measure": 1"#,
        r#""k": 3"#,
        r#""k": [0]"#,
        r#""k": [-1]"#,
        r#""k": [1.0]"#,
        r#""k": ["1"]"#,
    ] {
        let answer = service.post_text("/recall/nonllm", sample(fields)).await;
        assert!(matches!(answer.status.as_u16(), 422 | 400), "{fields}: {}", answer.text());
        if !fields.contains("1e999") {
            let pointer = answer.problem(422, "invalid_input")["errors"][0]["pointer"].as_str().unwrap().to_owned();
            assert!(fields[1..].starts_with(pointer[1..].split('/').next().unwrap()), "{fields}: {pointer}");
        }
    }
    for (fields, score) in [
        (r#""threshold": 0"#, 1.0),
        (r#""threshold": 1"#, 0.0),
        (r#""threshold": -0.0"#, 1.0),
        (r#""threshold": null"#, 1.0),
        (r#""k": []"#, 1.0),
    ] {
        assert_eq!(service.post_text("/recall/nonllm", sample(fields)).await.ok()["score"], score, "{fields}");
    }
}

#[tokio::test]
async fn claims_of_the_caller_are_checked() {
    let sample =
        |claims: &str| format!(r#"{{"user_input": "?", "retrieved_contexts": ["x"], "reference_claims": {claims}}}"#);
    for (claims, pointer) in [
        ("[]", "/reference_claims"),
        (r#"["a", " "]"#, "/reference_claims/1"),
        (r#""a""#, "/reference_claims"),
        ("[1]", "/reference_claims/0"),
    ] {
        assert_eq!(faults("/recall/llm", &sample(claims)).await[0].0, pointer, "{claims}");
    }
}

#[tokio::test]
async fn contexts_in_one_string_or_as_objects_are_told_what_is_expected() {
    let listed = faults(
        "/recall/nonllm",
        r#"{"retrieved_contexts": "one string", "reference_contexts": [{"page_content": "x"}]}"#,
    )
    .await;
    assert_eq!(
        listed,
        [
            (
                "/retrieved_contexts".to_owned(),
                "expected an array of strings, found a string; put the string into an array".to_owned()
            ),
            (
                "/reference_contexts/0".to_owned(),
                "expected a string, found an object; send the text alone, as a plain string".to_owned()
            ),
        ]
    );
}

#[tokio::test]
async fn a_body_that_is_no_json_is_told_where_and_why() {
    let service = Service::embedded();
    for (body, detail, hint) in [
        (&b"{\"id\": 1,\n \"k\": [1,]}"[..], "line 2 column 10", "UTF-8"),
        (b"", "empty", "JSON object"),
        (b"  \n", "empty", "JSON object"),
        (b"{\"id\": \"a\"", "line 1 column 10", ""),
        (b"{'id': 1}", "line 1 column 2", "double quotes"),
        (b"{\"id\": NaN}", "line 1 column 8", "NaN"),
        (b"{\"threshold\": -Infinity}", "line 1", "NaN"),
        (b"{\"id\": \"a\"} extra", "line 1 column 13", ""),
        (b"{\"id\": \"\xff\"}", "line 1 column 8", "UTF-8"),
        (
            b"{\"reference_context_ids\": [\"a\"],\n\"retrieved_context_ids\": [\"b\", \"cut \\ud83d\"]}",
            "line 2 column 43",
            "cut in two",
        ),
        (
            b"{\"reference_context_ids\": [\"\\udc00 x\"],\n\"retrieved_context_ids\": []}",
            "line 1 column",
            "cut in two",
        ),
        (b"{\"cut \\ud83d\": 1}", "line 1", "cut in two"),
    ] {
        let answer = service.post_text("/recall/id", body.to_vec()).await;
        let problem = answer.problem(400, "invalid_json");
        let (told, advice) = (problem["detail"].as_str().unwrap(), problem["hint"].as_str().unwrap());
        assert!(told.contains(detail), "{}: {told}", String::from_utf8_lossy(body));
        assert!(advice.contains(hint), "{}: {advice}", String::from_utf8_lossy(body));
    }
    // Windows tools write a byte-order mark.
    let answer = service.post_text("/recall/id", "\u{feff}{\"retrieved_ids\": [1], \"expected_ids\": [1]}").await;
    assert_eq!(answer.ok()["score"], 1.0);
    // A whole pair of halves is a character.
    let answer =
        service.post_text("/recall/id", r#"{"retrieved_ids": ["\ud83d\ude00"], "expected_ids": ["😀"]}"#).await;
    assert_eq!(answer.ok()["score"], 1.0);
}

#[tokio::test]
async fn a_body_that_is_no_object_is_told_so() {
    for (body, found) in
        [("[]", "an array"), ("\"x\"", "a string"), ("3", "a number"), ("null", "null"), ("true", "a boolean")]
    {
        assert_eq!(
            faults("/recall/id", body).await,
            [(String::new(), format!("expected one sample, a JSON object, found {found}"))]
        );
    }
}

#[tokio::test]
async fn a_thousand_faults_are_counted_and_a_hundred_listed() {
    let body = format!(r#"{{"retrieved_ids": [{}], "expected_ids": [1]}}"#, vec!["null"; 1000].join(","));
    let problem = Service::embedded().post_text("/recall/id", body).await.problem(422, "invalid_input");
    assert_eq!(problem["errors"].as_array().unwrap().len(), 100);
    assert!(problem["detail"].as_str().unwrap().contains("1000 faults"), "{problem:#}");
}

/// What a broken file costs is bounded by its size, not by its faults: no guess and no text for those that are not listed.
#[tokio::test]
async fn a_million_faults_cost_no_more_than_they_weigh() {
    let service = Service::embedded();
    let elements =
        format!(r#"{{"retrieved_contexts": [{}], "reference_contexts": ["a"]}}"#, vec!["1"; 1_000_000].join(","));
    let problem = service.post_text("/recall/nonllm", elements).await.problem(422, "invalid_input");
    assert!(problem["detail"].as_str().unwrap().contains("1000000 faults; the first 100"), "{problem:#}");
    let fields: Vec<String> = (0..100_000).map(|n| format!("\"retrieved_context{n}\":1")).collect();
    let problem =
        service.post_text("/recall/id", format!("{{{}}}", fields.join(","))).await.problem(422, "invalid_input");
    assert!(problem["detail"].as_str().unwrap().contains("100002 faults"), "{problem:#}");
}

#[tokio::test]
async fn deep_nesting_is_no_danger() {
    let body = format!(
        r#"{{"metadata": {}{}, "retrieved_ids": [1], "expected_ids": [1]}}"#,
        "[".repeat(200_000),
        "]".repeat(200_000)
    );
    assert_eq!(Service::embedded().post_text("/recall/id", body).await.ok()["score"], 1.0);
    let body = format!(r#"{{"retrieved_ids": {}"#, "[".repeat(1_000_000));
    Service::embedded().post_text("/recall/id", body).await.problem(400, "invalid_json");
}

async fn sent(content_type: Option<&str>, path: &str, body: impl Into<Body>, headers: &[(&str, &str)]) -> Answer {
    let mut request = Request::post(path);
    for (name, value) in headers.iter().copied().chain(content_type.map(|kind| ("content-type", kind))) {
        request = request.header(name, value);
    }
    Service::embedded().send(request.body(body.into()).unwrap()).await
}

const GOOD: &str = r#"{"retrieved_ids": [1], "expected_ids": [1]}"#;

#[tokio::test]
async fn only_json_is_read() {
    for kind in ["application/json", "Application/JSON; charset=utf-8", "application/vnd.api+json"] {
        sent(Some(kind), "/recall/id", GOOD, &[]).await.ok();
    }
    for kind in [
        None,
        Some("text/plain"),
        Some("application/x-www-form-urlencoded"),
        Some("application/x-ndjson"),
        Some("application/jsonp"),
    ] {
        let problem = sent(kind, "/recall/id", GOOD, &[]).await.problem(415, "unsupported_media_type");
        assert!(problem["detail"].as_str().unwrap().contains(kind.unwrap_or("no Content-Type")), "{problem:#}");
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn a_gzipped_body_is_unpacked_and_the_limit_counts_what_comes_out() {
    let json = Some("application/json");
    sent(json, "/recall/id", gzip(GOOD.as_bytes()), &[("content-encoding", "gzip")]).await.ok();
    let bomb = gzip(&vec![b' '; 33 * 1024 * 1024]);
    assert!(bomb.len() < 64 * 1024);
    sent(json, "/recall/id", bomb, &[("content-encoding", "gzip")]).await.problem(413, "payload_too_large");
    for (name, value) in [("Content-Encoding", "GZIP"), ("content-encoding", "identity, gzip")] {
        sent(json, "/recall/id", gzip(GOOD.as_bytes()), &[(name, value)]).await.ok();
    }
    sent(json, "/recall/id", GOOD, &[("content-encoding", "identity")]).await.ok();
    sent(json, "/recall/id", gzip(GOOD.as_bytes()), &[("content-encoding", "gzip, gzip")])
        .await
        .problem(415, "unsupported_media_type");
    sent(json, "/recall/id", GOOD, &[("content-encoding", "br")]).await.problem(415, "unsupported_media_type");
    sent(json, "/recall/id", GOOD, &[("content-encoding", "gzip")]).await.problem(400, "invalid_json");
}

#[tokio::test]
async fn a_body_over_the_limit_names_limit_and_setting() {
    let service = Service::with(&["--body-limit", "1KiB"], &[]);
    let problem = service.post_text("/recall/id", "x".repeat(1025)).await.problem(413, "payload_too_large");
    let text = format!("{} {}", problem["detail"], problem["hint"]);
    assert!(text.contains("1 KiB") && text.contains("--body-limit") && text.contains("RECALL_BODY_LIMIT"), "{text}");
    let padded = format!("{GOOD}{}", " ".repeat(1024 - GOOD.len()));
    service.post_text("/recall/id", padded).await.ok();
}

#[tokio::test]
async fn query_parameters_are_refused_where_none_is_read() {
    let problem = sent(Some("application/json"), "/recall/id?k=1&x", GOOD, &[]).await.problem(422, "invalid_input");
    assert_eq!(problem["errors"].as_array().unwrap().len(), 2);
    let told = "unknown query parameter `k`; send `k` as a field of the body";
    assert_eq!(problem["errors"][0]["detail"], told);
}

#[tokio::test]
async fn paths_and_methods_that_do_not_exist_are_problems_too() {
    let service = Service::embedded();
    let missing = service.get("/recall/ids").await;
    insta::assert_json_snapshot!(whole(missing.problem(404, "not_found")));
    service.get("/docs/nothing.js").await.problem(404, "not_found");
    let wrong = service.get("/recall/id").await;
    insta::assert_json_snapshot!(whole(wrong.problem(405, "method_not_allowed")));
    assert_eq!(wrong.headers[header::ALLOW], "POST");
}

#[tokio::test]
async fn a_request_id_is_taken_over_when_it_is_fit_and_made_otherwise() {
    let fit = sent(Some("application/json"), "/recall/id", "x", &[("x-request-id", "mine-1")]).await;
    assert_eq!(fit.problem(400, "invalid_json")["request_id"], "mine-1");
    let long = "x".repeat(129);
    for unfit in ["", "with space", long.as_str()] {
        let answer = sent(Some("application/json"), "/recall/id", GOOD, &[("x-request-id", unfit)]).await;
        let id = answer.headers["x-request-id"].to_str().unwrap();
        assert!(id.len() == 16 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");
    }
}

#[tokio::test]
async fn ids_of_samples_come_back_as_they_were_sent() {
    let service = Service::embedded();
    for id in [r#""q-7""#, "12345678901234567890123", "-0", "\"\"", "null"] {
        let body = format!(r#"{{"id": {id}, "retrieved_ids": [1], "expected_ids": [1]}}"#);
        let answer = service.post_text("/recall/id", body).await;
        assert!(answer.text().contains(&format!("\"id\":{id},")), "{}", answer.text());
    }
}

#[test]
fn the_table_of_codes_is_the_documented_one() {
    let table: String = Code::ALL
        .iter()
        .map(|code| {
            format!(
                "{} {} {}\n",
                code.name(),
                code.status().as_u16(),
                if code.is_retryable() { "retryable" } else { "-" }
            )
        })
        .collect();
    insta::assert_snapshot!(table, @r"
    invalid_json 400 -
    not_found 404 -
    method_not_allowed 405 -
    payload_too_large 413 -
    unsupported_media_type 415 -
    invalid_input 422 -
    context_length_exceeded 422 -
    overloaded 503 retryable
    deadline_exceeded 504 retryable
    internal 500 -
    judge_output_invalid 502 -
    judge_truncated 502 -
    judge_empty 502 -
    judge_refused 502 -
    content_filtered 502 -
    prompt_truncated 502 -
    upstream_auth 502 -
    upstream_error 502 -
    upstream_unreachable 502 retryable
    upstream_rate_limited 503 retryable
    upstream_overloaded 503 retryable
    upstream_timeout 504 retryable
    ");
    for code in Code::ALL {
        assert_eq!(serde_json::to_value(code).unwrap(), code.name(), "the wire agrees with the table");
    }
    let spec: Value = serde_json::from_str(&std::fs::read_to_string(project("openapi/openapi.json")).unwrap()).unwrap();
    let listed = spec["components"]["schemas"]["ProblemCode"]["enum"].as_array().unwrap();
    let names: Vec<_> = Code::ALL.iter().map(|code| json!(code.name())).collect();
    assert_eq!(listed, &names, "the spec agrees with the table");
}
