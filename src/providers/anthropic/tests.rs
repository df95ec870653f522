//! Over real HTTP: what is sent, and what becomes of every recorded reply.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use wiremock::ResponseTemplate;

use super::*;
use crate::providers::dialect::Dialect;
use crate::providers::testing::{KEY, LIMIT, ask, backend, plain, replay, sent};
use crate::providers::{Ending, ProviderFault as Fault};

const MODEL: &str = "claude/sonnet 1";

fn model_at(base_url: &str, attempts: u32) -> Backend<Messages> {
    let config = AnthropicConfig {
        base_url: base_url.to_owned(),
        api_key: Some(Secret::new(KEY).unwrap()),
        model: MODEL.to_owned(),
    };
    config.backend(CallPolicy { timeout: Duration::from_secs(10), attempts }).unwrap()
}

fn good() -> ResponseTemplate {
    let body = json!({
        "type": "message", "role": "assistant", "model": "claude-1-2026", "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "{\"ok\":1}"}], "usage": {"input_tokens": 50, "output_tokens": 20},
    });
    plain(200, &body.to_string())
}

fn refusal(message: &str) -> ResponseTemplate {
    let error = json!({"type": "error", "error": {"type": "invalid_request_error", "message": message}});
    plain(400, &error.to_string())
}

#[tokio::test]
async fn every_recorded_reply_means_what_its_file_says() {
    replay("anthropic", 2, good, |url| model_at(url, 2)).await;
}

#[tokio::test]
async fn the_request_is_sent_as_anthropic_takes_it() {
    let server = backend(vec![good()]).await;
    let reply = ask(&model_at(&server.uri(), 1), Duration::from_secs(5)).await.unwrap();
    assert_eq!((reply.text.as_str(), reply.ending, reply.downgraded), ("{\"ok\":1}", Ending::Whole, None));
    assert_eq!((reply.model.as_deref(), reply.output_limit), (Some("claude-1-2026"), Some(LIMIT)));
    let request = &server.received_requests().await.unwrap()[0];
    assert_eq!((request.method.as_str(), request.url.path()), ("POST", "/v1/messages"));
    assert_eq!(request.headers["x-api-key"], KEY);
    assert_eq!(request.headers["anthropic-version"], "2023-06-01");
    assert_eq!(request.headers["content-type"], "application/json");
    assert!(!request.headers.contains_key("authorization"));
    let schema = json!({"type": "object", "additionalProperties": false});
    assert_eq!(
        sent(&server).await[0],
        json!({
            "model": MODEL, "max_tokens": LIMIT, "system": "Answer in JSON.",
            "messages": [
                {"role": "user", "content": "Is it so?"},
                {"role": "assistant", "content": "{}"},
                {"role": "user", "content": "Once more, with \"quotes\"."},
            ],
            "temperature": 0.0, "output_config": {"format": {"type": "json_schema", "schema": schema}},
        })
    );
}

#[tokio::test]
async fn what_a_model_refuses_is_left_out_one_by_one_and_remembered() {
    let call = json!({
        "model": "m", "stop_reason": "tool_use",
        "content": [{"type": "tool_use", "id": "t", "name": "verdicts", "input": {"ok": 2}}],
    });
    let server = backend(vec![
        refusal("`temperature` is deprecated for this model."),
        refusal("output_config.format: Extra inputs are not permitted"),
        plain(200, &call.to_string()),
        refusal("Thinking may not be enabled when tool_choice forces tool use."),
        good(),
    ])
    .await;
    let model = model_at(&server.uri(), 1);
    let reply = ask(&model, Duration::from_secs(5)).await.unwrap();
    assert_eq!((reply.text.as_str(), reply.calls), ("{\"ok\":2}", 3));
    assert_eq!(reply.downgraded, Some("a forced tool call"));
    let reply = ask(&model, Duration::from_secs(5)).await.unwrap();
    assert_eq!((reply.calls, reply.downgraded), (2, Some("the prompt alone")));
    let bodies = sent(&server).await;
    assert_eq!(bodies[1].get("temperature"), None);
    assert!(bodies[1].get("output_config").is_some());
    let schema = json!({"type": "object", "additionalProperties": false});
    for body in &bodies[2..4] {
        assert_eq!(body.get("output_config"), None);
        assert_eq!(body["tools"], json!([{"name": "verdicts", "description": TOOL, "input_schema": schema}]));
        let choice = json!({"type": "tool", "name": "verdicts", "disable_parallel_tool_use": true});
        assert_eq!(body["tool_choice"], choice);
    }
    let last: Vec<&String> = bodies[4].as_object().unwrap().keys().collect();
    assert_eq!(last, ["model", "max_tokens", "system", "messages"]);
}

#[tokio::test]
async fn a_limit_over_the_models_own_is_lowered_and_never_left_out() {
    let server = backend(vec![
        refusal(
            "max_tokens: 4096 > 1024, which is the maximum allowed number of output tokens for claude-3-haiku-20240307",
        ),
        good(),
    ])
    .await;
    let model = model_at(&server.uri(), 1);
    let reply = ask(&model, Duration::from_secs(5)).await.unwrap();
    assert_eq!((reply.calls, reply.output_limit), (2, Some(1024)));
    assert_eq!(sent(&server).await[1]["max_tokens"], 1024);

    let server = backend(vec![refusal("max_tokens: Field required")]).await;
    let model = model_at(&server.uri(), 1);
    let error = ask(&model, Duration::from_secs(5)).await.unwrap_err();
    assert_eq!((error.fault, error.calls), (Fault::Other, 1));
    assert_eq!(model.learnt(), Dialect::default());
}

#[tokio::test]
async fn the_window_lowers_the_limit_where_the_prompt_fits_and_is_an_answer_where_it_does_not() {
    let sum = "input length and `max_tokens` exceed context limit: 900 + 4096 > 4500, decrease input length or `max_tokens` and try again";
    let server = backend(vec![refusal(sum), good()]).await;
    let model = model_at(&server.uri(), 1);
    let reply = ask(&model, Duration::from_secs(5)).await.unwrap();
    assert_eq!((reply.calls, reply.output_limit), (2, Some(4500 - 900 - 16)));
    assert_eq!(model.learnt(), Dialect::default(), "it is true for this question alone");

    let server = backend(vec![refusal("prompt is too long: 210000 tokens > 200000 maximum")]).await;
    let error = ask(&model_at(&server.uri(), 4), Duration::from_secs(5)).await.unwrap_err();
    assert_eq!((error.fault, error.calls, error.window), (Fault::ContextLength, 1, Some(200_000)));
    assert!(error.detail.contains("210000") && error.detail.contains("200000"), "{error}");
}

#[tokio::test]
async fn the_key_is_refused_once_and_never_repeated() {
    let body = json!({"type": "error", "error": {"type": "authentication_error", "message": format!("invalid x-api-key {KEY}")}});
    let server = backend(vec![plain(401, &body.to_string())]).await;
    let model = model_at(&server.uri(), 4);
    let error = ask(&model, Duration::from_secs(5)).await.unwrap_err();
    assert_eq!((error.fault, error.calls), (Fault::Auth, 1));
    assert_eq!(error.detail, "the backend answered 401: invalid x-api-key ***");
    assert!(!format!("{model:?}").contains("swordfish"));
}

#[tokio::test]
async fn a_password_in_the_base_url_goes_beside_the_key() {
    let server = backend(vec![good()]).await;
    let url = server.uri().replace("http://", "http://some:swordfish-3@");
    ask(&model_at(&url, 1), Duration::from_secs(5)).await.unwrap();
    let request = &server.received_requests().await.unwrap()[0];
    assert_eq!(request.headers["authorization"], "Basic c29tZTpzd29yZGZpc2gtMw==");
    assert_eq!(request.headers["x-api-key"], KEY);
    assert!(!request.url.as_str().contains("swordfish"));
}

async fn looked_up(reply: ResponseTemplate) -> (Backend<Messages>, Result<(), super::super::ProviderError>) {
    let server = backend(vec![reply]).await;
    let model = model_at(&server.uri(), 4);
    let outcome = model.look_up(Instant::now() + Duration::from_secs(5)).await;
    let requests = server.received_requests().await.unwrap();
    assert_eq!(requests.len(), 1);
    assert_eq!((requests[0].method.as_str(), requests[0].url.path()), ("GET", "/v1/models/claude%2Fsonnet%201"));
    assert_eq!(requests[0].headers["x-api-key"], KEY);
    assert_eq!(requests[0].headers["anthropic-version"], "2023-06-01");
    (model, outcome)
}

#[tokio::test]
async fn the_model_is_looked_up_and_its_window_learnt() {
    let about = |fields: Value| plain(200, &fields.to_string());
    for (reply, window) in [
        (about(json!({"type": "model", "id": "m", "max_input_tokens": 200_000, "lifecycle": "active"})), Some(200_000)),
        (about(json!({"type": "model", "id": "m", "max_input_tokens": null})), None),
        (about(json!({"object": "list", "data": []})), None),
        (plain(200, "<html>"), None),
        (plain(404, r#"{"error":{"code":404,"message":"File Not Found","type":"not_found_error"}}"#), None),
        (plain(404, r#"{"detail":"Not Found"}"#), None),
        (plain(404, "Cannot GET /v1/models/m"), None),
        (plain(405, ""), None),
    ] {
        let (model, outcome) = looked_up(reply).await;
        outcome.unwrap();
        assert_eq!(model.window(), window);
    }
    let error =
        |kind: &str, message: &str| json!({"type": "error", "error": {"type": kind, "message": message}}).to_string();
    for (reply, fault, words) in [
        (plain(404, &error("not_found_error", "model: claude")), Fault::Other, "model: claude"),
        (plain(401, &error("authentication_error", "invalid x-api-key")), Fault::Auth, "invalid x-api-key"),
        (plain(529, &error("overloaded_error", "Overloaded")), Fault::Overloaded, "Overloaded"),
        (about(json!({"id": "m", "lifecycle": "retired"})), Fault::Other, "retired"),
    ] {
        let (model, outcome) = looked_up(reply).await;
        let error = outcome.unwrap_err();
        assert_eq!((error.fault, error.calls, model.window()), (fault, 1, None), "{error}");
        assert!(error.detail.contains(words), "{error}");
    }
}

#[test]
fn base_urls_lead_to_the_messages() {
    for (base, expected) in [
        ("http://h:1", "http://h:1/v1/messages"),
        (" http://h:1/\n", "http://h:1/v1/messages"),
        ("http://h:1/v1", "http://h:1/v1/messages"),
        ("http://h:1//v1//", "http://h:1/v1/messages"),
        ("https://h/anthropic", "https://h/anthropic/v1/messages"),
        ("https://h/anthropic/v1/", "https://h/anthropic/v1/messages"),
        ("https://h/anthropic/v1/messages", "https://h/anthropic/v1/messages"),
        ("https://h/v1/messages/", "https://h/v1/messages"),
        ("https://h/apps/anthropic?x=1#top", "https://h/apps/anthropic/v1/messages?x=1"),
    ] {
        assert_eq!(below(&parse_base(base).unwrap(), "messages").as_str(), expected, "{base}");
    }
    assert_eq!(below(&parse_base("https://h/v1/messages").unwrap(), "models").as_str(), "https://h/v1/models");
    assert!(check_base_url("localhost:8080").is_err() && check_base_url(PUBLIC_URL).is_ok());
}
