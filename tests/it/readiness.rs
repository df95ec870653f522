//! `/readyz`: what is known of the judge, from calls that cost nothing.

use serde_json::{Value, json};
use wiremock::ResponseTemplate;

use crate::support::backend::{Backend, said, verdicts};
use crate::support::{Answer, KEY, Service};

fn models(ids: &[&str]) -> ResponseTemplate {
    let data: Vec<Value> = ids.iter().map(|id| json!({ "id": id, "object": "model", "owned_by": "someone" })).collect();
    ResponseTemplate::new(200).set_body_json(json!({ "object": "list", "data": data }))
}

fn refused(status: u16, message: &str) -> ResponseTemplate {
    ResponseTemplate::new(status).set_body_json(json!({ "error": { "message": message } }))
}

async fn backend(listing: Vec<ResponseTemplate>) -> Backend {
    Backend::saying(&verdicts(&[true])).await.listing(listing).await
}

fn told(answer: &Answer) -> (u16, String, Value, Value) {
    let body = answer.json();
    let status = body["status"].as_str().unwrap().to_owned();
    (answer.status.as_u16(), status, body["judge"]["usable"].clone(), body["judge"]["code"].clone())
}

#[tokio::test]
async fn a_backend_that_can_be_used_is_looked_up_once_and_for_free() {
    let backend = backend(vec![models(&["other", "m"])]).await;
    let service = Service::asking(&backend.url(), &[]);
    let probes = (0..20).map(|_| service.get("/readyz"));
    for answer in futures_util::future::join_all(probes).await {
        assert_eq!(told(&answer), (200, "ready".to_owned(), json!(true), Value::Null));
    }
    let look_ups = backend.look_ups().await;
    assert_eq!((look_ups.len(), backend.calls().await), (1, 0));
    assert_eq!(look_ups[0].url.path(), "/v1/models");
    assert_eq!(look_ups[0].headers["authorization"], format!("Bearer {KEY}").as_str());
}

#[tokio::test]
async fn what_cannot_be_used_is_not_ready_and_says_why() {
    for (listing, code, words) in [
        (refused(401, &format!("Incorrect API key provided: {KEY}")), "upstream_auth", "401"),
        (refused(403, "no"), "upstream_auth", "403"),
        (models(&["gpt-x", "gpt-y"]), "upstream_error", "lists no model `m`, but gpt-x, gpt-y"),
        (refused(503, "Loading model"), "upstream_overloaded", "Loading model"),
        (refused(500, "oh"), "upstream_error", "500"),
    ] {
        let backend = backend(vec![listing]).await;
        let answer = Service::asking(&backend.url(), &[]).get("/readyz").await;
        assert_eq!(told(&answer), (503, "starting".to_owned(), json!(false), json!(code)));
        let detail = answer.json()["judge"]["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains(words), "{detail}");
        assert!(!answer.text().contains(KEY), "{detail}");
        assert_eq!(backend.calls().await, 0);
    }
    let nobody = Service::asking("http://127.0.0.1:9", &[]).get("/readyz").await;
    assert_eq!(told(&nobody), (503, "starting".to_owned(), json!(false), json!("upstream_unreachable")));
}

#[tokio::test]
async fn a_list_that_says_nothing_of_the_model_has_nothing_against_it() {
    let alias = json!({ "data": [{ "id": "alias", "owned_by": "llamacpp", "meta": { "n_ctx": 4096 } }] });
    for listing in [
        refused(404, "File Not Found"),
        refused(405, "no"),
        ResponseTemplate::new(200).set_body_string("<html>welcome</html>"),
        ResponseTemplate::new(200).set_body_json(json!({ "data": [] })),
        ResponseTemplate::new(200).set_body_json(alias),
        models(&["openai/*"]),
    ] {
        let backend = backend(vec![listing]).await;
        let answer = Service::asking(&backend.url(), &[]).get("/readyz").await;
        assert_eq!(told(&answer), (200, "ready".to_owned(), json!(true), Value::Null));
    }
}

#[tokio::test]
async fn readiness_comes_once_the_judge_can_be_used() {
    let backend = Backend::replying(vec![said("x")]).await.listing(vec![refused(401, "no"), models(&["m"])]).await;
    let service = Service::asking(&backend.url(), &[]);
    assert_eq!(service.get("/readyz").await.status, 503);
    // A bad answer is believed for a while, so that probes do not hammer the backend.
    assert_eq!(service.get("/readyz").await.status, 503);
    assert_eq!(backend.look_ups().await.len(), 1);
    tokio::time::sleep(std::time::Duration::from_millis(5100)).await;
    assert_eq!(service.get("/readyz").await.status, 200);
}
