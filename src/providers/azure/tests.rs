//! Over real HTTP: where Azure is asked, and what becomes of its refusals.

use std::time::Duration;

use serde_json::{Value, json};
use wiremock::ResponseTemplate;

use super::*;
use crate::providers::testing::{KEY, LIMIT, ask, backend, plain, replay, sent};
use crate::providers::{Ending, ProviderFault as Fault};

const DATED: Option<&str> = Some("2024-10-21");

fn config(endpoint: &str, version: Option<&str>) -> AzureConfig {
    AzureConfig {
        endpoint: endpoint.to_owned(),
        api_key: Secret::new(KEY).unwrap(),
        deployment: "my-gpt".to_owned(),
        api_version: version.map(str::to_owned),
    }
}

fn model_at(endpoint: &str, version: Option<&str>) -> Backend<ChatCompletions> {
    config(endpoint, version).backend(CallPolicy { timeout: Duration::from_secs(10), attempts: 2 }).unwrap()
}

fn addresses(endpoint: &str, version: Option<&str>) -> Addresses {
    Addresses::of(endpoint, "my-gpt", version.map(str::to_owned)).unwrap()
}

fn good() -> ResponseTemplate {
    let body = json!({
        "model": "gpt-4o-2024-08-06", "choices": [{"message": {"content": "{\"ok\":1}"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 50, "completion_tokens": 20}, "prompt_filter_results": [],
    });
    plain(200, &body.to_string())
}

fn refused(status: u16, code: &str, message: &str) -> ResponseTemplate {
    plain(status, &json!({"error": {"code": code, "message": message}}).to_string())
}

fn path_and_query(request: &wiremock::Request) -> String {
    let query = request.url.query().map(|query| format!("?{query}")).unwrap_or_default();
    format!("{}{query}", request.url.path())
}

const WITHIN: Duration = Duration::from_secs(5);

#[tokio::test]
async fn every_recorded_reply_means_what_its_file_says() {
    replay("azure", 1, good, |url| model_at(url, DATED)).await;
}

#[test]
fn endpoints_lead_to_the_deployment_in_every_spelling() {
    let dated = "https://n.openai.azure.com/openai/deployments/my-gpt/chat/completions?api-version=2024-10-21";
    let newer = "https://n.openai.azure.com/openai/v1/chat/completions";
    for tail in [
        "",
        "/",
        "/openai",
        "/openai/",
        "/openai/v1",
        "/openai/v1/",
        "/openai/v1/chat/completions",
        "/openai/models",
        "/openai/responses",
        "/openai/deployments/my-gpt",
        "/openai/deployments/my-gpt/chat/completions?api-version=2025-01-01-preview",
    ] {
        let endpoint = format!(" https://n.openai.azure.com{tail}\n");
        assert_eq!(addresses(&endpoint, DATED).completions.as_str(), dated, "{tail}");
        let expected =
            if tail.contains('?') { dated.replace("2024-10-21", "2025-01-01-preview") } else { newer.into() };
        assert_eq!(addresses(&endpoint, None).completions.as_str(), expected, "{tail}");
    }
    for (endpoint, version, completions, listing) in [
        (
            "https://gate/team/openai",
            DATED,
            "https://gate/team/openai/deployments/my-gpt/chat/completions?api-version=2024-10-21",
            "https://gate/team/openai/models?api-version=2024-10-21",
        ),
        (
            "https://gate/openai/team?sub=1&api-version=2023-05-15",
            DATED,
            "https://gate/openai/team/openai/deployments/my-gpt/chat/completions?sub=1&api-version=2024-10-21",
            "https://gate/openai/team/openai/models?sub=1&api-version=2024-10-21",
        ),
        (
            "https://n/openai/v1/?api-version=preview",
            None,
            "https://n/openai/v1/chat/completions?api-version=preview",
            "https://n/openai/v1/models?api-version=preview",
        ),
        (
            "http://localhost:9/?api-version=",
            None,
            "http://localhost:9/openai/v1/chat/completions",
            "http://localhost:9/openai/v1/models",
        ),
    ] {
        let addresses = addresses(endpoint, version);
        assert_eq!((addresses.completions.as_str(), addresses.listing.as_str()), (completions, listing), "{endpoint}");
    }
}

#[test]
fn an_endpoint_that_cannot_be_meant_is_refused_without_quoting_a_password() {
    for (endpoint, words) in [
        ("n.openai.azure.com", "is no URL"),
        ("user:swordfish@h", "neither with http"),
        ("https://user:swordfish@h/openai/deployments/other/chat/completions", "names the deployment `other`"),
    ] {
        let error = check_endpoint(endpoint, "my-gpt").unwrap_err().to_string();
        assert!(error.contains(words) && !error.contains("swordfish"), "{error}");
    }
}

#[tokio::test]
async fn both_forms_send_the_key_in_its_own_header_and_the_newer_one_a_model() {
    for (version, path, model) in [
        (DATED, "/openai/deployments/my-gpt/chat/completions?api-version=2024-10-21", Value::Null),
        (None, "/openai/v1/chat/completions", json!("my-gpt")),
    ] {
        let server = backend(vec![good()]).await;
        let deployment = model_at(&server.uri(), version);
        assert_eq!((deployment.provider(), deployment.model()), ("azure", "my-gpt"));
        let reply = ask(&deployment, WITHIN).await.unwrap();
        assert_eq!((reply.model.as_deref(), reply.text.as_str()), (Some("gpt-4o-2024-08-06"), "{\"ok\":1}"));
        let request = &server.received_requests().await.unwrap()[0];
        assert_eq!(path_and_query(request), path);
        assert_eq!(request.headers["api-key"], KEY);
        assert!(!request.headers.contains_key("authorization"));
        let body = &sent(&server).await[0];
        assert_eq!((&body["model"], &body["max_tokens"]), (&model, &json!(LIMIT)));
        assert_eq!(body["response_format"]["type"], "json_schema");
    }
}

#[tokio::test]
async fn an_old_version_without_schemas_is_asked_for_any_object() {
    let words = "response_format value as json_schema is enabled only for api versions 2024-08-01-preview and later";
    let server = backend(vec![refused(400, "BadRequest", words), good()]).await;
    let model = model_at(&server.uri(), Some("2024-02-01"));
    let reply = ask(&model, WITHIN).await.unwrap();
    assert_eq!((reply.calls, reply.downgraded), (2, Some("any JSON object")));
    ask(&model, WITHIN).await.unwrap();
    let shapes: Vec<Value> = sent(&server).await.iter().map(|body| body["response_format"]["type"].clone()).collect();
    assert_eq!(shapes, ["json_schema", "json_object", "json_object"]);
}

#[tokio::test]
async fn refusals_are_told_apart_and_none_is_paid_for_twice() {
    let key = format!("Access denied due to invalid subscription key {KEY} or wrong API endpoint.");
    let day = "Requests have exceeded the token rate limit. Please retry after 86400 seconds.";
    let gone = "The API deployment for this resource does not exist. If you created the deployment within the last 5 minutes, please wait a moment and try again.";
    let long = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.";
    for (reply, fault, wait) in [
        (refused(401, "401", &key), Fault::Auth, None),
        (refused(404, "DeploymentNotFound", gone), Fault::Other, None),
        (refused(429, "429", day), Fault::RateLimited, Some(86400)),
        (refused(400, "content_filter", "The response was filtered"), Fault::Filtered, None),
        (refused(400, "context_length_exceeded", long), Fault::ContextLength, None),
    ] {
        let server = backend(vec![reply]).await;
        let error = ask(&model_at(&server.uri(), DATED), WITHIN).await.unwrap_err();
        assert_eq!((error.fault, error.calls), (fault, 1), "{error}");
        assert_eq!(error.retry_after, wait.map(Duration::from_secs), "{error}");
        assert!(!error.detail.contains("swordfish"), "{error}");
    }
}

#[tokio::test]
async fn an_answer_that_the_filter_withheld_is_no_empty_one() {
    let body = json!({"choices": [{"finish_reason": "content_filter", "message": {"role": "assistant"},
        "content_filter_results": {"violence": {"filtered": true, "severity": "medium"}}}]});
    let server = backend(vec![plain(200, &body.to_string())]).await;
    let reply = ask(&model_at(&server.uri(), DATED), WITHIN).await.unwrap();
    assert_eq!((reply.ending, reply.text.as_str()), (Ending::Filtered(String::new()), ""));
}

#[tokio::test]
async fn looking_up_proves_the_key_and_not_the_deployment() {
    let models = plain(200, r#"{"object":"list","data":[{"id":"gpt-4o","object":"model"},{"id":"o3-mini"}]}"#);
    let server = backend(vec![models, refused(401, "401", "invalid subscription key")]).await;
    let model = model_at(&server.uri(), DATED);
    let deadline = std::time::Instant::now() + WITHIN;
    model.look_up(deadline).await.unwrap();
    assert_eq!(model.window(), None);
    assert_eq!(model.look_up(deadline).await.unwrap_err().fault, Fault::Auth);
    let requests = server.received_requests().await.unwrap();
    assert_eq!(path_and_query(&requests[0]), "/openai/models?api-version=2024-10-21");
    assert_eq!((requests[0].method.as_str(), &requests[0].headers["api-key"]), ("GET", &KEY.parse().unwrap()));
}
