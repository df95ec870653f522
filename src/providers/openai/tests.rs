//! Over real HTTP: what is sent, and what becomes of every recorded reply.

use std::io::Write as _;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use wiremock::ResponseTemplate;

use super::*;
use crate::providers::dialect::Dialect;
use crate::providers::testing::{KEY, LIMIT, ask, backend, plain, replay, sent};
use crate::providers::{ProviderFault as Fault, Tokens};

type OpenAi = Backend<ChatCompletions>;

fn model_at(base_url: &str, attempts: u32) -> OpenAi {
    hasty_model_at(base_url, attempts, Duration::from_secs(10))
}

/// A model that gives up a call after `timeout`.
fn hasty_model_at(base_url: &str, attempts: u32, timeout: Duration) -> OpenAi {
    let config =
        OpenAiConfig { base_url: base_url.to_owned(), api_key: Some(Secret::new(KEY).unwrap()), model: "m".to_owned() };
    config.backend(CallPolicy { timeout, attempts }).unwrap()
}

fn good() -> ResponseTemplate {
    let body = json!({
        "model": "m-2026", "choices": [{"message": {"content": "{\"ok\":1}"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 50, "completion_tokens": 20},
    });
    plain(200, &body.to_string())
}

#[tokio::test]
async fn every_recorded_reply_means_what_its_file_says() {
    replay("openai", 18, good, |url| model_at(url, 2)).await;
}

#[tokio::test]
async fn the_request_is_sent_in_the_form_that_most_servers_take() {
    let server = backend(vec![good()]).await;
    let model = model_at(&format!("{}/", server.uri()), 1);
    let reply = ask(&model, Duration::from_secs(5)).await.unwrap();
    assert_eq!(reply.model.as_deref(), Some("m-2026"));
    assert_eq!(reply.downgraded, None);
    let requests = server.received_requests().await.unwrap();
    let request = &requests[0];
    assert_eq!((request.method.as_str(), request.url.path()), ("POST", "/v1/chat/completions"));
    assert_eq!(request.headers["authorization"], format!("Bearer {KEY}"));
    assert_eq!(request.headers["content-type"], "application/json");
    assert_eq!(
        sent(&server).await[0],
        json!({
            "model": "m",
            "messages": [
                {"role": "system", "content": "Answer in JSON."},
                {"role": "user", "content": "Is it so?"},
                {"role": "assistant", "content": "{}"},
                {"role": "user", "content": "Once more, with \"quotes\"."},
            ],
            "stream": false, "max_tokens": LIMIT, "temperature": 0.0, "seed": 7,
            "response_format": {"type": "json_schema", "json_schema": {
                "name": "verdicts", "strict": true, "schema": {"type": "object", "additionalProperties": false},
            }},
        })
    );
}

#[tokio::test]
async fn a_backend_that_refuses_every_field_is_asked_without_them() {
    let refusal = |message: &str| plain(400, &json!({"error": message}).to_string());
    let server = backend(vec![
        refusal("response_format: json_schema is not supported"),
        refusal("response_format: json_object is not supported"),
        refusal("unknown field max_tokens"),
        refusal("unknown field max_completion_tokens"),
        refusal("unsupported temperature"),
        refusal("unknown field seed"),
        refusal("unknown field random_seed"),
        good(),
    ])
    .await;
    let reply = ask(&model_at(&server.uri(), 1), Duration::from_secs(5)).await.unwrap();
    assert_eq!((reply.calls, reply.downgraded), (8, Some("the prompt alone")));
    assert_eq!(reply.tokens.input, Some(50));
    let bodies = sent(&server).await;
    let last = bodies[7].as_object().unwrap();
    assert_eq!(last.keys().collect::<Vec<_>>(), ["model", "messages", "stream"]);
    assert_eq!(bodies[1]["response_format"], json!({"type": "json_object"}));
    assert_eq!(bodies[3]["max_completion_tokens"], LIMIT);
    assert_eq!(bodies[6]["random_seed"], 7);
}

#[tokio::test]
async fn adapting_ends_and_what_did_not_help_is_not_remembered() {
    let body = json!({"error": "max_tokens, max_completion_tokens, temperature, seed, response_format"});
    let server = backend(vec![plain(400, &body.to_string())]).await;
    let model = model_at(&server.uri(), 4);
    let error = ask(&model, Duration::from_secs(5)).await.unwrap_err();
    assert_eq!(error.fault, Fault::Other);
    assert!(error.calls <= 9, "{}", error.calls);
    assert_eq!(model.learnt(), Dialect::default());

    let server = backend(vec![plain(400, r#"{"error":"no"}"#)]).await;
    let error = ask(&model_at(&server.uri(), 4), Duration::from_secs(5)).await.unwrap_err();
    assert_eq!((error.calls, error.detail.as_str()), (1, "the backend answered 400: no"));
}

#[tokio::test]
async fn concurrent_first_calls_learn_together() {
    let refusal = r#"{"error":{"message":"'response_format' of type 'json_schema' is not supported"}}"#;
    let replies: Vec<_> = (0..8).map(|_| plain(400, refusal)).chain([good()]).collect();
    let server = backend(replies).await;
    let model = model_at(&server.uri(), 1);
    let asks = (0..8).map(|_| ask(&model, Duration::from_secs(5)));
    for reply in futures_util::future::join_all(asks).await {
        assert!(reply.unwrap().downgraded.is_some());
    }
    let requests = sent(&server).await.len();
    ask(&model, Duration::from_secs(5)).await.unwrap();
    let bodies = sent(&server).await;
    assert_eq!(bodies.len(), requests + 1);
    assert_ne!(bodies[requests]["response_format"]["type"], "json_schema");
}

#[tokio::test]
async fn a_named_wait_is_obeyed_and_spends_no_try() {
    let busy = || plain(429, r#"{"error":{"message":"rate limited"}}"#).insert_header("retry-after-ms", "150");
    let server = backend(vec![busy(), busy(), busy(), good()]).await;
    let start = Instant::now();
    let reply = ask(&model_at(&server.uri(), 1), Duration::from_secs(5)).await.unwrap();
    assert_eq!(reply.calls, 4);
    assert_eq!(reply.tokens.input, Some(50));
    assert!(start.elapsed() >= Duration::from_millis(450), "{:?}", start.elapsed());
}

#[tokio::test]
async fn a_wait_longer_than_the_deadline_is_an_answer() {
    let hour = plain(429, r#"{"error":{"message":"quota"}}"#).insert_header("retry-after", "3600");
    let server = backend(vec![hour, good()]).await;
    let model = model_at(&server.uri(), 4);
    let start = Instant::now();
    let error = ask(&model, Duration::from_secs(60)).await.unwrap_err();
    assert!(start.elapsed() < Duration::from_secs(5));
    assert_eq!((error.fault, error.calls), (Fault::RateLimited, 1));
    assert_eq!(error.retry_after, Some(Duration::from_secs(3600)));
    ask(&model, Duration::from_secs(5)).await.unwrap();
}

#[tokio::test]
async fn an_endless_wait_of_zero_is_bounded_by_the_deadline() {
    let now = plain(503, "").insert_header("retry-after", "0");
    let server = backend(vec![now]).await;
    let model = model_at(&server.uri(), 1);
    let start = Instant::now();
    let error = ask(&model, Duration::from_millis(700)).await.unwrap_err();
    assert!(start.elapsed() < Duration::from_secs(2));
    assert_eq!(error.fault, Fault::Overloaded);
    assert!((3..=7).contains(&error.calls), "{} calls", error.calls);
}

#[tokio::test]
async fn one_refusal_closes_the_gate_for_all() {
    let busy = plain(429, "").insert_header("retry-after-ms", "300");
    let server = backend(vec![busy, good()]).await;
    let model = model_at(&server.uri(), 1);
    let first = ask(&model, Duration::from_secs(5));
    let others = async {
        tokio::time::sleep(Duration::from_millis(150)).await;
        let hasty = ask(&model, Duration::from_millis(50)).await.unwrap_err();
        assert_eq!((hasty.fault, hasty.calls), (Fault::RateLimited, 0));
        assert!(hasty.retry_after.unwrap() <= Duration::from_millis(300));
        let patient = (0..20).map(|_| ask(&model, Duration::from_secs(5)));
        futures_util::future::join_all(patient).await
    };
    let (first, others) = futures_util::future::join(first, others).await;
    assert_eq!(first.unwrap().calls, 2);
    assert!(others.into_iter().all(|reply| reply.unwrap().calls == 1));
}

#[tokio::test]
async fn failures_without_a_named_wait_spend_tries() {
    let page = "<html><title>Welcome</title></html>";
    let missing = r#"{"error":{"message":"The model m does not exist"}}"#;
    let elsewhere = ResponseTemplate::new(307).insert_header("location", "/elsewhere");
    let with_advice = |status, advice: &str| plain(status, "").insert_header("x-should-retry", advice);
    let mut plays = Vec::new();
    for (reply, fault, calls) in [
        (plain(500, ""), Fault::Failing, 2),
        (plain(200, ""), Fault::Failing, 2),
        (plain(200, "{\"choices\":[{\"mess"), Fault::Failing, 2),
        (plain(429, ""), Fault::RateLimited, 2),
        (with_advice(400, "true"), Fault::Failing, 2),
        (with_advice(500, "false"), Fault::Other, 1),
        (plain(402, ""), Fault::Other, 1),
        (plain(404, missing), Fault::Other, 1),
        (elsewhere, Fault::Other, 1),
        (plain(200, page), Fault::Other, 1),
    ] {
        let server = backend(vec![reply]).await;
        let model = model_at(&server.uri(), 2);
        plays.push(async move {
            let error = ask(&model, Duration::from_secs(5)).await.unwrap_err();
            let outcome = (error.fault, error.calls, error.retry_after);
            assert_eq!(outcome, (fault, calls, None), "{error}");
            assert_eq!(sent(&server).await.len() as u64, calls, "{error}");
        });
    }
    futures_util::future::join_all(plays).await;
}

#[tokio::test]
async fn the_key_is_taken_out_of_what_the_backend_says() {
    let words = format!("key {KEY} is wrong, Bearer {KEY}, see https://h/?key={KEY} {}", "x".repeat(9000));
    let server = backend(vec![plain(401, &json!({"error": words}).to_string())]).await;
    let error = ask(&model_at(&server.uri(), 4), Duration::from_secs(5)).await.unwrap_err();
    assert_eq!((error.fault, error.calls), (Fault::Auth, 1));
    assert!(!format!("{error:?}").contains("swordfish"), "{error}");
    assert!(error.detail.starts_with("the backend answered 401: key *** is wrong"), "{error}");
    assert!(error.detail.chars().count() <= 301);
    let model = model_at("http://h", 1);
    assert!(!format!("{model:?}").contains("swordfish"));
}

#[tokio::test]
async fn a_packed_reply_is_unpacked_though_nobody_asked_for_it() {
    let body = json!({"choices": [{"message": {"content": "{}"}, "finish_reason": "stop"}]}).to_string();
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packer.write_all(body.as_bytes()).unwrap();
    let packed = packer.finish().unwrap();
    let reply = |bytes: Vec<u8>| {
        ResponseTemplate::new(200).set_body_raw(bytes, "application/json").insert_header("content-encoding", "gzip")
    };
    let server = backend(vec![reply(packed)]).await;
    let answer = ask(&model_at(&server.uri(), 1), Duration::from_secs(5)).await.unwrap();
    assert_eq!((answer.text.as_str(), answer.tokens), ("{}", Tokens::default()));

    let server = backend(vec![reply(body.into_bytes())]).await;
    let error = ask(&model_at(&server.uri(), 1), Duration::from_secs(5)).await.unwrap_err();
    assert_eq!(error.fault, Fault::Failing, "{error}");
}

#[tokio::test]
async fn a_reply_without_end_is_not_read_to_its_end() {
    let server = backend(vec![plain(200, &" ".repeat(9 * 1024 * 1024))]).await;
    let error = ask(&model_at(&server.uri(), 4), Duration::from_secs(20)).await.unwrap_err();
    assert_eq!((error.fault, error.calls), (Fault::Other, 1), "{error}");
}

/// A server that does with each connection what `serve` says, after it has read the request's head.
async fn raw_backend<F>(serve: impl Fn(TcpStream) -> F + Send + 'static) -> String
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 1024]).await;
            tokio::spawn(serve(stream));
        }
    });
    format!("http://{address}")
}

#[tokio::test]
async fn the_time_for_one_call_bounds_the_whole_reply() {
    // A byte every 50 ms, for ever: never silent for long.
    let url = raw_backend(|mut stream| async move {
        let head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        let _ = stream.write_all(head).await;
        while stream.write_all(b"1\r\n\n\r\n").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    let hasty = hasty_model_at(&url, 1, Duration::from_millis(300));
    let start = Instant::now();
    let error = ask(&hasty, Duration::from_secs(5)).await.unwrap_err();
    assert_eq!((error.fault, error.calls), (Fault::Timeout, 1));
    assert!(start.elapsed() < Duration::from_secs(2));

    let model = model_at(&url, 4);
    let start = Instant::now();
    let error = ask(&model, Duration::from_millis(200)).await.unwrap_err();
    assert_eq!((error.fault, error.calls), (Fault::Deadline, 1));
    assert!(start.elapsed() < Duration::from_secs(2));

    let error = ask(&model, Duration::ZERO).await.unwrap_err();
    assert_eq!((error.fault, error.calls), (Fault::Deadline, 0));
}

#[tokio::test]
async fn leaving_closes_the_connection() {
    let (closed, mut when_closed) = tokio::sync::mpsc::channel(1);
    let url = raw_backend(move |mut stream| {
        let closed = closed.clone();
        async move {
            // Whatever is left of the request, then nothing until the other side goes.
            while stream.read(&mut [0; 1024]).await.is_ok_and(|read| read > 0) {}
            let _ = closed.send(Instant::now()).await;
        }
    })
    .await;
    let model = model_at(&url, 4);
    let left = tokio::time::timeout(Duration::from_millis(150), ask(&model, Duration::from_secs(30)));
    assert!(left.await.is_err());
    let gone = tokio::time::timeout(Duration::from_secs(1), when_closed.recv()).await;
    assert!(gone.unwrap().is_some());
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(when_closed.try_recv().is_err(), "asked again after leaving");
}

#[tokio::test]
async fn a_broken_connection_is_unreachable() {
    let cut = raw_backend(|mut stream| async move {
        let head = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"choices\":";
        let _ = stream.write_all(head).await;
    })
    .await;
    let error = ask(&model_at(&cut, 2), Duration::from_secs(5)).await.unwrap_err();
    assert_eq!((error.fault, error.calls), (Fault::Unreachable, 2), "{error}");

    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let url = format!("http://{nobody}/v1?key=swordfish-2");
    let error = ask(&model_at(&url, 1), Duration::from_secs(5)).await.unwrap_err();
    assert_eq!((error.fault, error.calls), (Fault::Unreachable, 1), "{error}");
    assert!(error.detail.starts_with("no connection to the backend"), "{error}");
    assert!(!error.detail.contains("swordfish"), "{error}");
}

#[tokio::test]
async fn a_call_that_was_cut_makes_the_cost_unknown() {
    let server = backend(vec![good().set_delay(Duration::from_secs(3)), good()]).await;
    let hasty = hasty_model_at(&server.uri(), 2, Duration::from_millis(500));
    let reply = ask(&hasty, Duration::from_secs(5)).await.unwrap();
    assert_eq!((reply.calls, reply.tokens), (2, Tokens::default()));
}

#[tokio::test]
async fn a_password_in_the_base_url_travels_as_a_header() {
    let server = backend(vec![plain(401, r#"{"error":"swordfish-3 c29tZTpzd29yZGZpc2gtMw=="}"#)]).await;
    let config = |api_key: Option<&str>| OpenAiConfig {
        base_url: server.uri().replace("http://", "http://some:swordfish-3@"),
        api_key: api_key.map(|key| Secret::new(key).unwrap()),
        model: "m".to_owned(),
    };
    let calls = CallPolicy { timeout: Duration::from_secs(5), attempts: 1 };
    let model = config(None).backend(calls).unwrap();
    let error = ask(&model, Duration::from_secs(5)).await.unwrap_err();
    assert_eq!(error.detail, "the backend answered 401: *** ***");
    let requests = server.received_requests().await.unwrap();
    assert_eq!(requests[0].headers["authorization"], "Basic c29tZTpzd29yZGZpc2gtMw==");
    let both = config(Some(KEY)).backend(calls).unwrap_err();
    assert!(matches!(both, SetupError::BaseUrl(_)));
    assert!(!both.to_string().contains("swordfish"));
}

#[test]
fn base_urls_lead_to_the_chat_completions() {
    for (base, expected) in [
        ("http://h:1", "http://h:1/v1/chat/completions"),
        ("http://h:1/", "http://h:1/v1/chat/completions"),
        ("http://h:1/v1", "http://h:1/v1/chat/completions"),
        (" http://h:1/v1/\n", "http://h:1/v1/chat/completions"),
        ("http://h:1//v1//", "http://h:1/v1/chat/completions"),
        ("https://h/api/paas/v4", "https://h/api/paas/v4/chat/completions"),
        ("https://h/v1beta/openai/", "https://h/v1beta/openai/chat/completions"),
        ("https://h/inference", "https://h/inference/chat/completions"),
        ("http://h:1/v1/chat/completions", "http://h:1/v1/chat/completions"),
        ("http://h:1/chat/completions/", "http://h:1/v1/chat/completions"),
        ("http://h/v1?api-version=1#top", "http://h/v1/chat/completions?api-version=1"),
        ("HTTP://[::1]:8080", "http://[::1]:8080/v1/chat/completions"),
    ] {
        assert_eq!(below(&parse_base(base).unwrap(), &COMPLETIONS).as_str(), expected, "{base}");
    }
}
