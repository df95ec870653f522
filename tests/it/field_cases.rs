//! Faults that users of other evaluators and of LLM backends reported in public, each with its right outcome here.
//!
//! `tests/cases/field.jsonl` holds the inputs and the backends' replies; [`right`] says what must come of them.

use std::time::Duration;

use serde_json::{Value, json};
use wiremock::ResponseTemplate;

use crate::support::backend::{Backend, data};
use crate::support::process::Process;
use crate::support::{Answer, KEY, Service, json_lines, read};

/// What must come of a case.
enum Right {
    /// 200 with this score, and this many backend calls.
    Score(f64, usize),
    /// A problem with this status, code and first pointer, and this many backend calls.
    Problem(u16, &'static str, &'static str, usize),
    /// Tested elsewhere, or not there to be tested yet.
    Elsewhere,
}

use Right::{Elsewhere, Problem, Score};

fn right(case: &str) -> Right {
    match case {
        "P05" => Score(0.0, 0),
        "P07" => Problem(422, "invalid_input", "/reference", 0),
        "P09" => Problem(422, "invalid_input", "/reference_context_ids", 0),
        "P10" | "P119" | "P106" | "P108" | "P37" | "P40" | "P93" => Score(1.0, 1),
        "P12" | "P17" | "P36" | "P38" | "P44" | "P92" | "P111" | "P113" | "P115" | "P122" | "P53" => Score(0.5, 1),
        "P72" | "P74" | "P75" | "P76" | "P77" => Score(0.5, 1),
        "P52" | "P60" | "P63" | "P69" | "P79" | "P81" => Score(0.5, 2),
        "P15" | "P110" | "P121" => Score(0.0, 1),
        "P01" | "P13" | "P19" | "P42" | "P83" => Problem(502, "judge_output_invalid", "", 2),
        "P21" | "P23" | "P25" | "P26" => Problem(502, "judge_truncated", "", 2),
        "P46" => Problem(502, "judge_refused", "", 1),
        "P48" | "P50" => Problem(502, "content_filtered", "", 1),
        "P55" => Problem(422, "context_length_exceeded", "", 1),
        "P62" => Problem(503, "upstream_rate_limited", "", 1),
        "P65" => Problem(502, "upstream_auth", "", 1),
        "P66" | "P117" => Problem(502, "upstream_error", "", 1),
        "P67" | "P70" => Problem(502, "upstream_error", "", 2),
        "P27" | "P31" | "P84" | "P35" => Score(1.0, 0),
        "P29" | "P33" | "P86" | "P88" | "P90" | "P91" | "P97" => Score(0.0, 0),
        "P101" => Problem(422, "invalid_input", "/reference", 0),
        "P103" => Problem(422, "invalid_input", "/retrieved_contexts/0", 0),
        "P105" => Problem(422, "invalid_input", "/reference_context_ids/0", 0),
        "P99" | "P100" => Elsewhere, // llm.rs: it is about time, not about an answer
        "P59" => Elsewhere,          // below: two requests
        "P57" => Elsewhere,          // remembering.rs: three services and one memory
        "P03" | "P95" => Elsewhere,  // batch.rs
        _ => panic!("{case} has no right outcome here"),
    }
}

#[tokio::test]
async fn every_case_from_the_field_comes_out_right() {
    let cases = json_lines("tests/cases/field.jsonl");
    assert_eq!(cases.len(), 74);
    let mut run = 0;
    for case in &cases {
        let id = case["id"].as_str().unwrap();
        let expected = match right(id) {
            Elsewhere => continue,
            expected => expected,
        };
        let (answer, backend) = play(case).await;
        let calls = backend.calls().await;
        match expected {
            Score(score, expected_calls) => {
                assert_eq!(answer.status, 200, "{id}: {}", answer.text());
                let body = answer.ok();
                assert_eq!(body["score"], score, "{id}: {body:#}");
                let verdicts = body["verdicts"].as_array().unwrap();
                assert_eq!(body["total"], verdicts.len(), "{id}");
                assert_eq!(calls, expected_calls, "{id}");
            }
            Problem(status, code, pointer, expected_calls) => {
                assert_eq!(
                    (answer.status.as_u16(), answer.json()["code"].as_str()),
                    (status, Some(code)),
                    "{id}: {}",
                    answer.text()
                );
                let body = answer.problem(status, code);
                let first = body["errors"][0]["pointer"].as_str().unwrap_or_default();
                assert_eq!(first, pointer, "{id}: {body:#}");
                assert_eq!(calls, expected_calls, "{id}: {body:#}");
            }
            Elsewhere => {}
        }
        run += 1;
    }
    assert_eq!(run, 68);
}

/// Sends a case's input to a service whose backend gives the case's replies.
async fn play(case: &Value) -> (Answer, Backend) {
    let replies = case["replies"].as_array().unwrap().iter().map(reply).collect::<Vec<_>>();
    let backend = Backend::replying(if replies.is_empty() { vec![ResponseTemplate::new(500)] } else { replies }).await;
    let provider = case["provider"].as_str().unwrap_or("openai");
    let arguments = ["--judge-attempts", "2", "--request-timeout", "20s"];
    let service = Service::asking_provider(provider, &backend.url(), &arguments);
    let body = raw_input(case);
    let answer = service.post_text(case["route"].as_str().unwrap(), body).await;
    (answer, backend)
}

fn reply(reply: &Value) -> ResponseTemplate {
    let mut template = ResponseTemplate::new(u16::try_from(reply["status"].as_u64().unwrap()).unwrap());
    let body = reply["body"].as_str().unwrap();
    let headers = reply["headers"].as_object().unwrap();
    let mut kind = "application/json";
    for (name, value) in headers {
        let value = value.as_str().unwrap();
        if name == "content-type" {
            kind = value;
        } else {
            template = template.insert_header(name.as_str(), value);
        }
    }
    if headers.contains_key("content-encoding") {
        return template.set_body_raw(gzip(body.as_bytes()), kind);
    }
    template.set_body_raw(body.to_owned(), kind)
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// The input as text, `$repeat` spelt out.
fn raw_input(case: &Value) -> String {
    fn spell_out(value: &Value) -> Value {
        match value {
            Value::Object(fields) => match fields.get("$repeat") {
                Some(repeat) => {
                    let times = usize::try_from(repeat["times"].as_u64().unwrap()).unwrap();
                    Value::String(repeat["text"].as_str().unwrap().repeat(times))
                }
                None => Value::Object(fields.iter().map(|(name, value)| (name.clone(), spell_out(value))).collect()),
            },
            Value::Array(items) => items.iter().map(spell_out).collect(),
            other => other.clone(),
        }
    }
    spell_out(&case["input"]).to_string()
}

fn case(id: &str) -> Value {
    json_lines("tests/cases/field.jsonl").into_iter().find(|case| case["id"] == id).unwrap()
}

async fn played(id: &str) -> (Answer, Backend) {
    play(&case(id)).await
}

#[tokio::test]
async fn p23_the_second_try_has_more_room() {
    let (answer, backend) = played("P23").await;
    let body = answer.problem(502, "judge_truncated");
    assert!(body["detail"].as_str().unwrap().contains("at the limit of 4096 tokens"), "{body:#}");
    let limits: Vec<Value> = backend.bodies().await.iter().map(|body| body["max_tokens"].clone()).collect();
    assert_eq!(limits, [512 + 2 * 256, 4 * (512 + 2 * 256)]);
}

#[tokio::test]
async fn p63_the_question_and_the_answer_are_anthropics() {
    let (answer, backend) = played("P63").await;
    let answer = answer.ok();
    let attributed: Vec<&Value> =
        answer["verdicts"].as_array().unwrap().iter().map(|verdict| &verdict["attributed"]).collect();
    assert_eq!(attributed, [true, false]);
    let judge = &answer["judge"];
    assert_eq!(
        (&judge["provider"], &judge["model"], &judge["model_reported"]),
        (&json!("anthropic"), &json!("m"), &json!("m"))
    );
    assert_eq!((&answer["usage"]["judge_calls"], &answer["usage"]["input_tokens"]), (&json!(2), &json!(50)));
    let body = &backend.bodies().await[1];
    assert_eq!(body["output_config"]["format"]["schema"]["required"], json!(["verdicts"]));
    assert!(body["system"].as_str().unwrap().len() > 1000);
    assert_eq!(data(body)["claims"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn p25_ollama_is_asked_in_its_own_form_and_once_more_with_more_room() {
    let (_, backend) = played("P25").await;
    let requests = backend.requests().await;
    assert!(requests.iter().all(|request| request.url.path() == "/api/chat"));
    let bodies = backend.bodies().await;
    let limits: Vec<_> = bodies.iter().map(|body| body["options"]["num_predict"].clone()).collect();
    assert_eq!(limits, [1024, 4096]);
    assert_eq!((&bodies[0]["stream"], &bodies[0]["truncate"]), (&json!(false), &json!(false)));
    assert_eq!(bodies[0]["format"]["required"], json!(["verdicts"]));
}

#[tokio::test]
async fn p26_says_that_the_budget_went_to_reasoning_and_which_setting_raises_it() {
    let (answer, _) = played("P26").await;
    let body = answer.problem(502, "judge_truncated");
    assert!(body["detail"].as_str().unwrap().contains("199 of its 200 tokens went to reasoning"), "{body:#}");
    assert!(body["hint"].as_str().unwrap().contains("--judge-max-output-tokens"), "{body:#}");
    // Two calls were paid for.
    let usage = json!({
        "judge_calls": 2, "input_tokens": 100, "cached_input_tokens": 0, "output_tokens": 400, "reasoning_tokens": 398
    });
    assert_eq!(body["usage"], usage);
}

#[tokio::test]
async fn what_a_failure_cost_is_told_when_anybody_was_asked() {
    for (id, calls, input) in
        [("P01", 2, json!(100)), ("P46", 1, json!(50)), ("P55", 1, json!(0)), ("P65", 1, json!(0))]
    {
        let (answer, _) = played(id).await;
        let usage = &answer.json()["usage"];
        assert_eq!((&usage["judge_calls"], &usage["input_tokens"]), (&json!(calls), &input), "{id}: {}", answer.text());
    }
    // An outage may have been billed, and nobody said for how much.
    let (answer, _) = played("P67").await;
    assert_eq!(answer.json()["usage"]["judge_calls"], 2);
    assert_eq!(answer.json()["usage"]["input_tokens"], Value::Null);
    for id in ["P07", "P105"] {
        let (answer, _) = played(id).await;
        assert_eq!(answer.json().get("usage"), None, "{id}");
    }
}

#[tokio::test]
async fn p37_the_claim_keeps_its_fence_marks() {
    let (answer, _) = played("P37").await;
    assert_eq!(answer.ok()["verdicts"][0]["claim"], "Wrap the snippet in ```json fences.");
}

#[tokio::test]
async fn p46_the_refusal_is_passed_on_and_no_secret_with_it() {
    let (answer, _) = played("P46").await;
    assert!(answer.text().contains("I can't help with that."), "{}", answer.text());

    let body = json!({ "model": KEY, "choices": [{ "message": { "content": null, "refusal": format!("no {KEY}") }, "finish_reason": "stop" }] });
    let backend = Backend::replying(vec![ResponseTemplate::new(200).set_body_json(body)]).await;
    let sample = json!({ "user_input": "?", "reference": "A.", "retrieved_contexts": ["a"] });
    let answer = Service::asking(&backend.url(), &[]).post("/recall/llm", &sample).await;
    assert!(answer.problem(502, "judge_refused")["detail"].as_str().unwrap().ends_with(": no ***"));
}

#[tokio::test]
async fn p52_an_empty_reply_is_asked_about_and_one_that_stays_empty_is_an_error() {
    let (answer, backend) = played("P52").await;
    let answer = answer.ok();
    let attributed: Vec<&Value> =
        answer["verdicts"].as_array().unwrap().iter().map(|verdict| &verdict["attributed"]).collect();
    assert_eq!(attributed, [true, false]);
    assert_eq!((&answer["judge"]["provider"], &answer["usage"]["judge_calls"]), (&json!("gemini"), &json!(2)));
    // Gemini said how long the prompts were and not how long its answers.
    assert_eq!((&answer["usage"]["input_tokens"], &answer["usage"]["output_tokens"]), (&json!(100), &Value::Null));
    for body in backend.bodies().await {
        assert_eq!(body["generationConfig"]["responseJsonSchema"]["required"], json!(["verdicts"]));
        assert_eq!(body["generationConfig"]["maxOutputTokens"], 512 + 2 * 256);
        assert!(body["systemInstruction"]["parts"][0]["text"].as_str().unwrap().len() > 1000);
        let sent: Value = serde_json::from_str(body["contents"][0]["parts"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(sent["claims"].as_array().unwrap().len(), 2);
    }

    let mut case = case("P52");
    case["replies"].as_array_mut().unwrap().truncate(1);
    let (answer, backend) = play(&case).await;
    answer.problem(502, "judge_empty");
    assert_eq!(backend.calls().await, 2);
}

#[tokio::test]
async fn p48_azure_is_asked_at_its_own_address_with_its_own_header() {
    let (answer, backend) = played("P48").await;
    assert!(answer.text().contains("the backend answered 400: filtered"), "{}", answer.text());
    let request = &backend.requests().await[0];
    assert_eq!((request.url.path(), request.url.query()), ("/openai/v1/chat/completions", None));
    assert_eq!(request.headers["api-key"], KEY);
    assert!(!request.headers.contains_key("authorization"));
}

#[tokio::test]
async fn p53_the_answer_from_the_reasoning_comes_with_a_warning() {
    let (answer, _) = played("P53").await;
    assert_eq!(answer.ok()["warnings"][0]["code"], "answer_in_reasoning");
}

#[tokio::test]
async fn p55_the_limits_are_passed_on() {
    let (answer, _) = played("P55").await;
    assert!(answer.text().contains("limit 4097 tokens, prompt has 6402"), "{}", answer.text());
}

#[tokio::test]
async fn p59_an_outage_is_not_remembered() {
    let case = json_lines("tests/cases/field.jsonl").into_iter().find(|case| case["id"] == "P59").unwrap();
    let replies: Vec<_> = case["replies"].as_array().unwrap().iter().map(reply).collect();
    // Both tries of the first request fail.
    let backend = Backend::replying(vec![replies[0].clone(), replies[0].clone(), replies[1].clone()]).await;
    let service = Service::asking(&backend.url(), &["--judge-attempts", "2"]);
    service.post("/recall/llm", &case["input"]).await.problem(502, "upstream_error");
    assert_eq!(service.post("/recall/llm", &case["input"]).await.ok()["score"], 0.5);
}

#[tokio::test]
async fn p60_a_wait_that_the_backend_names_is_kept() {
    let began = std::time::Instant::now();
    let (answer, _) = played("P60").await;
    answer.ok();
    assert!(began.elapsed() >= Duration::from_secs(1));
}

#[tokio::test]
async fn p62_a_wait_of_an_hour_is_answered_and_not_slept() {
    let (answer, _) = played("P62").await;
    answer.problem(503, "upstream_rate_limited");
    assert_eq!(answer.headers["retry-after"], "3600");
}

#[tokio::test]
async fn p66_and_p67_tell_a_wrong_model_from_an_outage() {
    for (id, retryable) in [("P66", false), ("P67", true)] {
        let (answer, _) = played(id).await;
        assert_eq!(answer.problem(502, "upstream_error")["retryable"], retryable, "{id}");
    }
}

#[tokio::test]
async fn p67_no_html_is_passed_on() {
    let (answer, _) = played("P67").await;
    let detail = answer.problem(502, "upstream_error")["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("502") && !detail.contains('<'), "{detail}");
}

#[tokio::test]
async fn p75_usage_that_is_not_reported_is_null() {
    let (answer, _) = played("P75").await;
    let expected = json!({
        "judge_calls": 1, "input_tokens": null, "cached_input_tokens": null, "output_tokens": null, "reasoning_tokens": null
    });
    assert_eq!(answer.ok()["usage"], expected);
}

#[tokio::test]
async fn p86_neighbours_above_two_to_the_53_differ() {
    let service = Service::embedded();
    let body = r#"{"reference_context_ids":[9007199254740993],"retrieved_context_ids":[9007199254740992]}"#;
    let answer = service.post_text("/recall/id", body).await.ok();
    assert_eq!(answer["verdicts"][0]["reference_context_id"], "9007199254740993");
    assert_eq!(answer["score"], 0.0);
}

#[tokio::test]
async fn p90_the_threshold_in_force_is_told() {
    let (answer, _) = played("P90").await;
    let answer = answer.ok();
    assert_eq!((&answer["threshold"], &answer["distance_measure"]), (&json!(0.5), &json!("levenshtein")));
}

#[tokio::test]
async fn p92_and_its_siblings_lose_no_text() {
    let service = Service::embedded();
    for (reference, claims) in [
        ("埃菲尔铁塔位于巴黎。它于1889年开放。", 2),
        ("真的吗？是的！很好。", 3),
        ("दिल्ली भारत की राजधानी है। यह बड़ा शहर है।", 2),
        ("هل باريس عاصمة؟ نعم هي العاصمة.", 2),
        ("یہ لاہور ہے۔ یہ بڑا شہر ہے۔", 2),
    ] {
        let body = json!({ "user_input": "?", "reference": reference, "retrieved_contexts": [] });
        let answer = service.post("/recall/llm", &body).await.ok();
        assert_eq!(answer["total"], claims, "{reference}: {answer:#}");
        let joined: String =
            answer["verdicts"].as_array().unwrap().iter().map(|v| v["claim"].as_str().unwrap()).collect();
        let bare = |text: &str| text.split_whitespace().collect::<String>();
        assert_eq!(bare(&joined), bare(reference));
    }
}

#[tokio::test]
async fn p105_every_bad_id_is_named() {
    let (answer, _) = played("P105").await;
    insta::assert_json_snapshot!(answer.problem(422, "invalid_input")["errors"], @r#"
    [
      {
        "pointer": "/reference_context_ids/0",
        "detail": "expected a string or an integer, found `1.0`"
      },
      {
        "pointer": "/reference_context_ids/1",
        "detail": "expected a string or an integer, found `true`"
      },
      {
        "pointer": "/reference_context_ids/2",
        "detail": "expected a string or an integer, found `null`"
      }
    ]
    "#);
}

#[tokio::test]
async fn p106_the_prompt_holds_real_characters() {
    let (_, backend) = played("P106").await;
    let body = &backend.bodies().await[0];
    let prompt = body["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap();
    assert!(prompt.contains("東京は日本の首都です。") && !prompt.contains("\\u"), "{prompt}");
}

#[tokio::test]
async fn p108_and_p110_contexts_reach_the_backend_unchanged_and_as_data() {
    for id in ["P108", "P110"] {
        let (_, backend) = played(id).await;
        let case = json_lines("tests/cases/field.jsonl").into_iter().find(|case| case["id"] == id).unwrap();
        let sent = data(&backend.bodies().await[0]);
        assert_eq!(sent["contexts"][0]["text"], case["input"]["retrieved_contexts"][0], "{id}");
        assert_eq!(sent["contexts"].as_array().unwrap().len(), 1);
    }
}

#[tokio::test]
async fn p113_half_a_character_becomes_a_replacement_character() {
    let (answer, _) = played("P113").await;
    assert_eq!(answer.ok()["verdicts"][0]["reason"], "ok \u{fffd}");
}

#[tokio::test(flavor = "multi_thread")]
async fn p117_the_key_is_in_no_answer_and_in_no_line_of_the_log() {
    let case = case("P117");
    let backend = Backend::replying(vec![reply(&case["replies"][0])]).await;
    // All there is to log, the HTTP client's own lines included.
    let variables =
        [("GEMINI_BASE_URL", backend.url()), ("GEMINI_API_KEY", KEY.to_owned()), ("RUST_LOG", "trace".to_owned())];
    let variables = variables.each_ref().map(|(name, value)| (*name, value.as_str()));
    let service = Process::start(&["--judge", "gemini/m"], &variables);
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let request = client.post(format!("{}/recall/llm", service.url)).header("content-type", "application/json");
    let response = request.body(raw_input(&case)).send().await.unwrap();
    assert_eq!(response.status(), 502);
    let told = format!("{:?} {}", response.headers().clone(), response.text().await.unwrap());
    service.signal("TERM");
    let (_, log) = service.end(Duration::from_secs(10));
    assert!(log.contains("upstream_error"), "{log}");
    assert_eq!(backend.requests().await[0].headers["x-goog-api-key"], KEY);
    for text in [told, log] {
        assert!(!text.contains(KEY), "{text}");
    }
}

#[tokio::test]
async fn p119_one_claim_is_said_to_be_one_claim() {
    let (answer, _) = played("P119").await;
    let answer = answer.ok();
    assert_eq!((&answer["verdicts"][0]["claim"], &answer["total"]), (&json!("Norway"), &json!(1)));
    assert!(
        answer["warnings"].as_array().unwrap().iter().any(|warning| warning["code"] == "single_claim"),
        "{answer:#}"
    );
}

#[tokio::test]
async fn p122_every_spelling_of_the_base_url_ends_at_the_same_path() {
    let case = json_lines("tests/cases/field.jsonl").into_iter().find(|case| case["id"] == "P122").unwrap();
    for (suffix, path) in [
        ("", "/v1/chat/completions"),
        ("/", "/v1/chat/completions"),
        ("/v1", "/v1/chat/completions"),
        ("/v1/", "/v1/chat/completions"),
        ("/api/paas/v4", "/api/paas/v4/chat/completions"),
        ("/openai/v1", "/openai/v1/chat/completions"),
    ] {
        let backend = Backend::replying(vec![reply(&case["replies"][0])]).await;
        let service = Service::asking(&format!("{}{suffix}", backend.url()), &[]);
        assert_eq!(service.post("/recall/llm", &case["input"]).await.ok()["score"], 0.5);
        assert_eq!(backend.requests().await[0].url.path(), path, "{suffix}");
    }
}

#[tokio::test]
async fn the_key_travels_in_one_header_and_comes_back_nowhere() {
    for (id, path, header, value) in [
        ("P65", "/v1/chat/completions", "authorization", format!("Bearer {KEY}")),
        ("P66", "/v1/chat/completions", "authorization", format!("Bearer {KEY}")),
        ("P67", "/v1/chat/completions", "authorization", format!("Bearer {KEY}")),
        ("P23", "/v1/messages", "x-api-key", KEY.to_owned()),
        ("P63", "/v1/messages", "x-api-key", KEY.to_owned()),
        ("P50", "/v1beta/models/m:generateContent", "x-goog-api-key", KEY.to_owned()),
        ("P52", "/v1beta/models/m:generateContent", "x-goog-api-key", KEY.to_owned()),
        ("P117", "/v1beta/models/m:generateContent", "x-goog-api-key", KEY.to_owned()),
    ] {
        let (answer, backend) = played(id).await;
        assert!(!answer.text().contains(KEY), "{id}");
        for request in backend.requests().await {
            assert_eq!((request.url.path(), request.headers[header].as_bytes()), (path, value.as_bytes()), "{id}");
            let others = request.headers.iter().filter(|(name, _)| *name != header);
            assert!(!others.into_iter().any(|(_, value)| value.to_str().unwrap().contains(KEY)), "{id}");
            assert!(!request.url.as_str().contains(KEY) && !String::from_utf8_lossy(&request.body).contains(KEY));
        }
    }
}

#[test]
fn every_case_is_spoken_for() {
    let text = read("tests/cases/field.jsonl");
    let elsewhere = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let deferred: Vec<String> = elsewhere
        .filter(|case| matches!(right(case["id"].as_str().unwrap()), Elsewhere))
        .map(|case| case["id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(deferred, ["P03", "P57", "P59", "P95", "P99", "P100"]);
}
