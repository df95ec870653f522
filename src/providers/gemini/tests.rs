//! Over real HTTP: what is sent, and what becomes of every recorded reply.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use wiremock::ResponseTemplate;

use super::*;
use crate::providers::testing::{KEY, LIMIT, ask, backend, plain, replay, sent};
use crate::providers::{Ending, ProviderError, ProviderFault as Fault};

fn model_named(model: &str, base_url: &str, attempts: u32) -> Backend<GenerateContent> {
    let config = GeminiConfig {
        base_url: base_url.to_owned(),
        api_key: Some(Secret::new(KEY).unwrap()),
        model: model.to_owned(),
    };
    config.backend(CallPolicy { timeout: Duration::from_secs(10), attempts }).unwrap()
}

fn model_at(base_url: &str, attempts: u32) -> Backend<GenerateContent> {
    model_named("gemini-m", base_url, attempts)
}

fn good() -> ResponseTemplate {
    let body = json!({
        "candidates": [{"content": {"role": "model", "parts": [{"text": "{\"ok\":1}"}]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 50, "candidatesTokenCount": 20}, "modelVersion": "gemini-m-001",
    });
    plain(200, &body.to_string())
}

fn refused(status: u16, message: &str, details: &Value) -> ResponseTemplate {
    let error =
        json!({"error": {"code": status, "message": message, "status": "INVALID_ARGUMENT", "details": details}});
    plain(status, &error.to_string())
}

fn refusal(message: &str) -> ResponseTemplate {
    refused(400, message, &json!([]))
}

#[tokio::test]
async fn every_recorded_reply_means_what_its_file_says() {
    replay("gemini", 2, good, |url| model_at(url, 2)).await;
}

#[tokio::test]
async fn the_request_is_sent_as_gemini_takes_it() {
    let server = backend(vec![good()]).await;
    let reply = ask(&model_at(&server.uri(), 1), Duration::from_secs(5)).await.unwrap();
    assert_eq!((reply.text.as_str(), reply.ending, reply.downgraded), ("{\"ok\":1}", Ending::Whole, None));
    assert_eq!((reply.model.as_deref(), reply.output_limit), (Some("gemini-m-001"), Some(LIMIT)));
    let request = &server.received_requests().await.unwrap()[0];
    assert_eq!((request.method.as_str(), request.url.path()), ("POST", "/v1beta/models/gemini-m:generateContent"));
    assert_eq!((request.url.query(), &request.headers["x-goog-api-key"]), (None, &KEY.parse().unwrap()));
    assert_eq!(request.headers["content-type"], "application/json");
    assert!(!request.headers.contains_key("authorization"));
    assert_eq!(
        sent(&server).await[0],
        json!({
            "systemInstruction": {"parts": [{"text": "Answer in JSON."}]},
            "contents": [
                {"role": "user", "parts": [{"text": "Is it so?"}]},
                {"role": "model", "parts": [{"text": "{}"}]},
                {"role": "user", "parts": [{"text": "Once more, with \"quotes\"."}]},
            ],
            "generationConfig": {
                "temperature": 0.0, "maxOutputTokens": LIMIT, "seed": 7, "responseMimeType": "application/json",
                "responseJsonSchema": {"type": "object", "additionalProperties": false},
            },
        })
    );
}

#[tokio::test]
async fn what_a_model_refuses_is_left_out_one_by_one_and_remembered() {
    let unknown = |field: &str| {
        refusal(&format!(
            "Invalid JSON payload received. Unknown name \"{field}\" at 'generation_config': Cannot find field."
        ))
    };
    let violation = json!([{"fieldViolations": [{"field": "generation_config.seed", "description": "Invalid value"}]}]);
    let server = backend(vec![
        unknown("responseJsonSchema"),
        refusal("* GenerateContentRequest.generation_config.response_schema: should be non-empty for OBJECT type"),
        refusal("JSON mode is not enabled for models/gemma-3-27b-it"),
        refusal("Developer instruction is not enabled for models/gemma-3-27b-it"),
        unknown("seed"),
        refusal("The temperature is not supported by this model."),
        good(),
        good(),
    ])
    .await;
    let model = model_at(&server.uri(), 1);
    let reply = ask(&model, Duration::from_secs(5)).await.unwrap();
    assert_eq!((reply.calls, reply.downgraded), (7, Some("the prompt alone")));
    assert_eq!(ask(&model, Duration::from_secs(5)).await.unwrap().calls, 1);
    let bodies = sent(&server).await;
    let config = |at: usize| &bodies[at]["generationConfig"];
    assert_eq!(config(1).get("responseJsonSchema"), None);
    assert_eq!(
        (&config(1)["responseSchema"], &config(1)["responseMimeType"]),
        (&json!({"type": "OBJECT"}), &json!("application/json"))
    );
    assert_eq!((config(2).get("responseSchema"), &config(2)["responseMimeType"]), (None, &json!("application/json")));
    assert_eq!(config(3).get("responseMimeType"), None);
    assert!(bodies[3].get("systemInstruction").is_some());
    assert_eq!(bodies[4].get("systemInstruction"), None);
    assert_eq!(
        bodies[4]["contents"][0],
        json!({"role": "user", "parts": [{"text": "Answer in JSON."}, {"text": "Is it so?"}]})
    );
    assert_eq!(config(6), &json!({"maxOutputTokens": LIMIT}));
    assert_eq!(bodies[7], bodies[6]);

    // The culprit may be named in the details alone.
    let server = backend(vec![refused(400, "Request contains an invalid argument.", &violation), good()]).await;
    ask(&model_at(&server.uri(), 1), Duration::from_secs(5)).await.unwrap();
    assert_eq!(sent(&server).await[1]["generationConfig"].get("seed"), None);
}

#[tokio::test]
async fn a_limit_over_the_models_own_is_lowered() {
    let server = backend(vec![
        refusal("Unable to submit request because it has a maxOutputTokens value of 4096 but the supported range is from 1 (inclusive) to 2049 (exclusive). Update the value and try again."),
        good(),
    ])
    .await;
    let reply = ask(&model_at(&server.uri(), 1), Duration::from_secs(5)).await.unwrap();
    assert_eq!((reply.calls, reply.output_limit), (2, Some(2048)));
    assert_eq!(sent(&server).await[1]["generationConfig"]["maxOutputTokens"], 2048);
}

#[tokio::test]
async fn a_quota_of_the_minute_is_waited_for_and_one_of_the_day_is_not() {
    let quota = |id: &str, wait: &str| {
        let details = json!([
            {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": id}]},
            {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": wait},
        ]);
        refused(429, "You exceeded your current quota, please check your plan and billing details.", &details)
    };
    let server = backend(vec![quota("GenerateRequestsPerMinutePerProjectPerModel-FreeTier", "0.2s"), good()]).await;
    let start = Instant::now();
    let reply = ask(&model_at(&server.uri(), 1), Duration::from_secs(5)).await.unwrap();
    assert!(reply.calls == 2 && start.elapsed() >= Duration::from_millis(200));

    let server = backend(vec![quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier", "0.2s"), good()]).await;
    let error = ask(&model_at(&server.uri(), 4), Duration::from_secs(5)).await.unwrap_err();
    assert_eq!((error.fault, error.calls, error.retry_after), (Fault::Other, 1, None));
    assert!(error.detail.contains("GenerateRequestsPerDayPerProjectPerModel-FreeTier is used up"), "{error}");
}

#[tokio::test]
async fn the_key_is_refused_once_and_never_repeated() {
    let details = json!([{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]);
    let server = backend(vec![refused(400, &format!("API key not valid: {KEY}"), &details)]).await;
    let model = model_at(&server.uri(), 4);
    let error = ask(&model, Duration::from_secs(5)).await.unwrap_err();
    assert_eq!((error.fault, error.calls), (Fault::Auth, 1));
    assert_eq!(error.detail, "the backend answered 400: API key not valid: ***");
    assert!(!format!("{model:?}").contains("swordfish"));
}

#[tokio::test]
async fn a_password_in_the_base_url_goes_beside_the_key_and_a_key_there_is_refused() {
    let server = backend(vec![good()]).await;
    let url = server.uri().replace("http://", "http://some:swordfish-3@");
    ask(&model_at(&url, 1), Duration::from_secs(5)).await.unwrap();
    let request = &server.received_requests().await.unwrap()[0];
    assert_eq!(request.headers["authorization"], "Basic c29tZTpzd29yZGZpc2gtMw==");
    assert_eq!(request.headers["x-goog-api-key"], KEY);
    let error = check_base_url("https://h/v1beta?alt=json&key=swordfish-4").unwrap_err().to_string();
    assert!(error.contains("GEMINI_API_KEY") && !error.contains("swordfish"), "{error}");
}

async fn looked_up(reply: ResponseTemplate) -> (Backend<GenerateContent>, Result<(), ProviderError>) {
    let server = backend(vec![reply]).await;
    let model = model_named("models/gemini 1", &server.uri(), 4);
    let outcome = model.look_up(Instant::now() + Duration::from_secs(5)).await;
    let requests = server.received_requests().await.unwrap();
    assert_eq!(requests.len(), 1);
    assert_eq!((requests[0].method.as_str(), requests[0].url.path()), ("GET", "/v1beta/models/gemini%201"));
    assert_eq!(requests[0].headers["x-goog-api-key"], KEY);
    (model, outcome)
}

#[tokio::test]
async fn the_model_is_looked_up_and_its_window_learnt() {
    let about = |fields: Value| plain(200, &fields.to_string());
    let methods = json!(["generateContent", "countTokens"]);
    for (reply, window) in [
        (about(json!({"name": "models/m", "inputTokenLimit": 1_048_576, "outputTokenLimit": 8192})), Some(1_048_576)),
        (about(json!({"inputTokenLimit": 9000, "supportedGenerationMethods": methods})), Some(9000)),
        (about(json!({"name": "models/m"})), None),
        (plain(200, "<html>"), None),
        (plain(404, "<html><title>Error 404 (Not Found)!!1</title>"), None),
        (plain(404, "Cannot GET /v1beta/models/m"), None),
    ] {
        let (model, outcome) = looked_up(reply).await;
        outcome.unwrap();
        assert_eq!(model.window(), window);
    }
    let missing = json!({"error": {"code": 404, "status": "NOT_FOUND", "message": "models/m is not found for API version v1beta, or is not supported for generateContent."}});
    let key = json!([{"reason": "API_KEY_INVALID"}]);
    for (reply, fault, words) in [
        (plain(404, &missing.to_string()), Fault::Other, "models/m is not found"),
        (refused(400, "API key not valid.", &key), Fault::Auth, "API key not valid"),
        (about(json!({"supportedGenerationMethods": ["embedContent"]})), Fault::Other, "does not generate text"),
    ] {
        let (model, outcome) = looked_up(reply).await;
        let error = outcome.unwrap_err();
        assert_eq!((error.fault, error.calls, model.window()), (fault, 1, None), "{error}");
        assert!(error.detail.contains(words), "{error}");
    }
}

#[test]
fn base_urls_and_names_lead_to_the_model() {
    let address = |base: &str, model: &str| below(&parse_base(base).unwrap(), model, ":generateContent").to_string();
    for (base, expected) in [
        ("http://h:1", "http://h:1/v1beta/models/m:generateContent"),
        (" http://h:1/\n", "http://h:1/v1beta/models/m:generateContent"),
        ("http://h:1/v1beta/", "http://h:1/v1beta/models/m:generateContent"),
        ("http://h:1/v1", "http://h:1/v1beta/models/m:generateContent"),
        ("http://h:1/v1alpha", "http://h:1/v1alpha/models/m:generateContent"),
        ("http://h:1/v1beta/openai/", "http://h:1/v1beta/models/m:generateContent"),
        ("http://h:1//v1beta//models/", "http://h:1/v1beta/models/m:generateContent"),
        ("http://h:1/v1/models/x:generateContent", "http://h:1/v1beta/models/m:generateContent"),
        ("https://h/gemini", "https://h/gemini/v1beta/models/m:generateContent"),
        ("https://h/models/of/mine?x=1#top", "https://h/models/of/mine/v1beta/models/m:generateContent?x=1"),
    ] {
        assert_eq!(address(base, "m"), expected, "{base}");
    }
    for (model, expected) in [
        ("models/m", "http://h/v1beta/models/m:generateContent"),
        ("/models/m/", "http://h/v1beta/models/m:generateContent"),
        ("tunedModels/t-1", "http://h/v1beta/tunedModels/t-1:generateContent"),
        ("google/m?#%ü", "http://h/v1beta/models/google%2Fm%3F%23%25%C3%BC:generateContent"),
    ] {
        assert_eq!(address("http://h", model), expected, "{model}");
    }
    assert!(check_base_url("localhost:8080").is_err() && check_base_url(PUBLIC_URL).is_ok());
}
