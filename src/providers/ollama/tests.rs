//! Over real HTTP: what Ollama is sent, and what becomes of its replies.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use wiremock::ResponseTemplate;

use super::*;
use crate::providers::testing::{KEY, LIMIT, ask, backend, plain, question, replay, sent};
use crate::providers::{ProviderError, ProviderFault as Fault};

const WITHIN: Duration = Duration::from_secs(5);

fn windowed(host: &str, window: Option<u32>) -> Backend<Chat> {
    let config = OllamaConfig { host: host.to_owned(), api_key: None, model: "llama3.1:8b".to_owned(), window };
    config.backend(CallPolicy { timeout: Duration::from_secs(10), attempts: 2 }).unwrap()
}

fn model_at(host: &str) -> Backend<Chat> {
    windowed(host, None)
}

fn said(content: &str, counts: &Value) -> ResponseTemplate {
    let mut body = json!({
        "model": "llama3.1:8b", "message": {"role": "assistant", "content": content}, "done": true, "done_reason": "stop",
    });
    body.as_object_mut().unwrap().extend(counts.as_object().unwrap().clone());
    plain(200, &body.to_string())
}

fn good() -> ResponseTemplate {
    said("{\"ok\":1}", &json!({"prompt_eval_count": 50, "eval_count": 20}))
}

fn refused(status: u16, words: &str) -> ResponseTemplate {
    plain(status, &json!({ "error": words }).to_string())
}

/// A question whose prompt has at least `words` tokens.
fn long(words: usize) -> ChatRequest {
    ChatRequest { turns: vec![Turn::User("word ".repeat(words))], ..question() }
}

async fn fault_of(reply: ResponseTemplate) -> ProviderError {
    let server = backend(vec![reply]).await;
    ask(&model_at(&server.uri()), WITHIN).await.unwrap_err()
}

#[tokio::test]
async fn every_recorded_reply_means_what_its_file_says() {
    replay("ollama", 2, good, model_at).await;
}

#[tokio::test]
async fn the_request_is_sent_in_ollamas_own_form() {
    let server = backend(vec![good()]).await;
    let model = model_at(&server.uri());
    assert_eq!((model.provider(), model.model(), model.window()), ("ollama", "llama3.1:8b", None));
    let reply = ask(&model, WITHIN).await.unwrap();
    assert_eq!((reply.text.as_str(), reply.output_limit, reply.downgraded), ("{\"ok\":1}", Some(LIMIT), None));
    let request = &server.received_requests().await.unwrap()[0];
    assert_eq!((request.method.as_str(), request.url.path()), ("POST", "/api/chat"));
    assert!(!request.headers.contains_key("authorization"));
    assert_eq!(
        sent(&server).await[0],
        json!({
            "model": "llama3.1:8b",
            "messages": [
                {"role": "system", "content": "Answer in JSON."},
                {"role": "user", "content": "Is it so?"},
                {"role": "assistant", "content": "{}"},
                {"role": "user", "content": "Once more, with \"quotes\"."},
            ],
            "stream": false, "think": false, "truncate": false, "shift": false,
            "format": {"type": "object", "additionalProperties": false},
            "options": {"temperature": 0.0, "seed": 7, "num_predict": LIMIT, "num_ctx": 8192},
        })
    );
}

#[tokio::test]
async fn what_is_refused_is_left_out_from_then_on() {
    let server = backend(vec![
        refused(400, "\"llama3.1:8b\" does not support thinking"),
        refused(400, "json: cannot unmarshal object into Go struct field ChatRequest.format of type string"),
        refused(400, "invalid format: \"json\""),
        refused(400, "unknown field \"truncate\""),
        refused(400, "unknown field \"shift\""),
        good(),
    ])
    .await;
    let model = model_at(&server.uri());
    let reply = ask(&model, WITHIN).await.unwrap();
    assert_eq!((reply.calls, reply.downgraded), (6, Some("the prompt alone")));
    ask(&model, WITHIN).await.unwrap();
    let bodies = sent(&server).await;
    assert_eq!((&bodies[1]["think"], &bodies[1]["truncate"]), (&Value::Null, &json!(false)));
    assert_eq!(bodies[2]["format"], "json");
    let fields: Vec<&String> = bodies[5].as_object().unwrap().keys().collect();
    assert_eq!(fields, ["model", "messages", "stream", "options"]);
    assert_eq!(bodies[6], bodies[5]);
}

#[tokio::test]
async fn the_window_grows_with_the_prompt_and_stays() {
    let whole = said("{}", &json!({"eval_count": 20}));
    let server = backend(vec![whole]).await;
    let model = model_at(&server.uri());
    for words in [10, 9000, 10] {
        model.ask(&long(words), (Instant::now() + WITHIN).into()).await.unwrap();
    }
    let sizes: Vec<Value> = sent(&server).await.iter().map(|body| body["options"]["num_ctx"].clone()).collect();
    assert_eq!(sizes, [8192, 32768, 32768]);
}

#[tokio::test]
async fn a_prompt_over_the_window_is_refused_before_it_is_sent() {
    let show =
        plain(200, &json!({"model_info": {"llama.context_length": 8192}, "capabilities": ["completion"]}).to_string());
    let server = backend(vec![show, good()]).await;
    let told = model_at(&server.uri());
    told.look_up(Instant::now() + WITHIN).await.unwrap();
    assert_eq!(told.window(), Some(8192));
    for (model, words, window) in [(&told, 9000, 8192), (&windowed(&server.uri(), Some(4096)), 4090, 4096)] {
        let error = model.ask(&long(words), (Instant::now() + WITHIN).into()).await.unwrap_err();
        assert_eq!((error.fault, error.calls, error.window), (Fault::ContextLength, 0, Some(window)), "{error}");
        let numbers = [format!("at least {} tokens", words + 3), format!("window of {window},")];
        assert!(numbers.iter().all(|number| error.detail.contains(number)), "{error}");
        ask(model, WITHIN).await.unwrap();
    }
    let bodies = sent(&server).await;
    assert_eq!(bodies[0], json!({"model": "llama3.1:8b"}));
    let sizes: Vec<Value> = bodies[1..].iter().map(|body| body["options"]["num_ctx"].clone()).collect();
    assert_eq!(sizes, [8192, 4096], "bounded, and only what fits was sent");
}

#[tokio::test]
async fn a_prompt_that_was_cut_in_silence_is_no_answer() {
    let cut = said("{\"ok\":1}", &json!({"prompt_eval_count": 2050, "eval_count": 20}));
    let server = backend(vec![cut, good()]).await;
    let model = model_at(&server.uri());
    let error = model.ask(&long(7900), (Instant::now() + WITHIN).into()).await.unwrap_err();
    assert_eq!((error.fault, error.calls, error.retry_after), (Fault::PromptTruncated, 1, None));
    assert!(error.detail.contains("it read 2050 tokens of a prompt of at least 7903"), "{error}");
}

#[tokio::test]
async fn a_prompt_that_the_server_finds_too_long_is_told_with_its_window() {
    let inner = json!({"error": {
        "code": 400, "type": "exceed_context_size_error", "n_prompt_tokens": 8889, "n_ctx": 4096,
        "message": "request (8889 tokens) exceeds the available context size (4096 tokens), try increasing it",
    }});
    for (words, window) in [
        ("the input length exceeds the context length", None),
        ("the prompt is longer than the context length currently available to the model; shorten the prompt", None),
        (inner.to_string().as_str(), Some(4096)),
    ] {
        let error = fault_of(refused(400, words)).await;
        assert_eq!((error.fault, error.calls, error.window), (Fault::ContextLength, 1, window), "{error}");
        assert!(!error.detail.contains('{'), "{error}");
    }
}

#[tokio::test]
async fn refusals_are_told_apart() {
    let busy = "server busy, please try again.  maximum pending requests exceeded";
    let mut plays = Vec::new();
    for (reply, fault, calls) in [
        (refused(404, "model 'llama3.1:8b' not found"), Fault::Other, 1),
        (refused(401, "unauthorized"), Fault::Auth, 1),
        (refused(400, "\"llama3.1:8b\" does not support chat"), Fault::Other, 1),
        (refused(429, "you have reached your hourly usage limit"), Fault::RateLimited, 2),
        (refused(499, "request canceled"), Fault::Failing, 2),
        (refused(500, "model requires more system memory (20.0 GiB) than is available (9.0 GiB)"), Fault::Failing, 2),
        (refused(502, "upstream model provider error"), Fault::Failing, 2),
        (refused(503, busy), Fault::Overloaded, 2),
    ] {
        plays.push(async move {
            let error = fault_of(reply).await;
            assert_eq!((error.fault, error.calls), (fault, calls), "{error}");
        });
    }
    futures_util::future::join_all(plays).await;
}

#[tokio::test]
async fn looking_up_asks_what_the_model_is() {
    let described =
        |info: Value, abilities: Value| plain(200, &json!({"model_info": info, "capabilities": abilities}).to_string());
    for (reply, outcome) in [
        (
            described(
                json!({"clip.vision.context_length": 77, "general.architecture": "qwen2", "qwen2.context_length": 32768}),
                json!(["completion", "tools"]),
            ),
            Ok(Some(32768)),
        ),
        (described(json!({"llama.context_length": 8192}), json!([])), Ok(Some(8192))),
        (described(json!({"llama.context_length": "long"}), Value::Null), Ok(None)),
        (described(json!({"bert.context_length": 512}), json!(["embedding"])), Err(Fault::Other)),
        (refused(404, "model 'llama3.1:8b' not found"), Err(Fault::Other)),
        (refused(401, "unauthorized"), Err(Fault::Auth)),
        (plain(404, "404 page not found"), Ok(None)),
        (plain(200, "Ollama is running"), Ok(None)),
    ] {
        let server = backend(vec![reply]).await;
        let model = model_at(&server.uri());
        let looked = model.look_up(Instant::now() + WITHIN).await;
        assert_eq!(looked.map(|()| model.window()).map_err(|error| error.fault), outcome);
        let request = &server.received_requests().await.unwrap()[0];
        assert_eq!((request.method.as_str(), request.url.path()), ("POST", "/api/show"));
    }
}

#[tokio::test]
async fn a_hosted_one_gets_its_key_and_a_password_travels_in_its_place() {
    let server = backend(vec![good()]).await;
    let config = |host: String, key: Option<&str>| OllamaConfig {
        host,
        api_key: key.map(|key| Secret::new(key).unwrap()),
        model: "m".to_owned(),
        window: None,
    };
    let calls = CallPolicy { timeout: WITHIN, attempts: 1 };
    ask(&config(server.uri(), Some(KEY)).backend(calls).unwrap(), WITHIN).await.unwrap();
    let with_password = server.uri().replace("http://", "http://some:swordfish-3@");
    ask(&config(with_password.clone(), None).backend(calls).unwrap(), WITHIN).await.unwrap();
    let requests = server.received_requests().await.unwrap();
    assert_eq!(requests[0].headers["authorization"], format!("Bearer {KEY}"));
    assert_eq!(requests[1].headers["authorization"], "Basic c29tZTpzd29yZGZpc2gtMw==");
    let both = config(with_password, Some(KEY)).backend(calls).unwrap_err();
    assert!(matches!(&both, SetupError::BaseUrl(words) if !words.contains("swordfish")), "{both}");
}
