//! The three ways of asking for an answer's shape, each before the real llama.cpp server: behind a gateway that refuses the
//! stricter ones in the words of real servers, and passes everything else on as it is.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::llama::{self, MODEL, QUICK, ask, check, is_downgraded};
use crate::support::peer::skip;
use crate::support::process::Process;
use crate::support::read;

/// Refuses some shapes and passes on the rest.
struct Gateway {
    backend: &'static str,
    /// A `response_format.type` and the recorded refusal of it.
    refused: Vec<(&'static str, Value)>,
    client: reqwest::Client,
    /// The shape of every request, in order; `None` where none was asked for.
    asked: Mutex<Vec<Option<String>>>,
}

async fn pass(
    State(gateway): State<Arc<Gateway>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let url = format!("{}{}", gateway.backend, uri.path());
    if method == Method::GET {
        return hand_on(gateway.client.get(url)).await;
    }
    let sent: Value = serde_json::from_slice(&body).unwrap();
    let shape = sent["response_format"]["type"].as_str().map(str::to_owned);
    gateway.asked.lock().unwrap().push(shape.clone());
    if let Some((_, recorded)) = gateway.refused.iter().find(|(name, _)| shape.as_deref() == Some(name)) {
        let status = StatusCode::from_u16(u16::try_from(recorded["status"].as_u64().unwrap()).unwrap()).unwrap();
        return (status, [(header::CONTENT_TYPE, "application/json")], recorded["body"].to_string()).into_response();
    }
    hand_on(gateway.client.post(url).header(header::CONTENT_TYPE, &headers[header::CONTENT_TYPE]).body(body)).await
}

async fn hand_on(request: reqwest::RequestBuilder) -> Response {
    let reply = request.send().await.unwrap();
    let status = reply.status();
    (status, [(header::CONTENT_TYPE, "application/json")], reply.bytes().await.unwrap()).into_response()
}

impl Gateway {
    async fn start(backend: &'static str, refused: &[(&'static str, &str)]) -> (Arc<Self>, String) {
        let recorded = |file: &str| serde_json::from_str(&read(&format!("tests/wire/{file}.json"))).unwrap();
        let gateway = Arc::new(Self {
            backend,
            refused: refused.iter().map(|(shape, file)| (*shape, recorded(file))).collect(),
            client: reqwest::Client::builder().no_proxy().build().unwrap(),
            asked: Mutex::default(),
        });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = axum::Router::new().fallback(pass).with_state(Arc::clone(&gateway));
        tokio::spawn(async move { axum::serve(listener, router).await });
        (gateway, url)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_shape_is_asked_for_in_turn_and_no_answer_becomes_a_wrong_number() {
    let Some((backend, _turn)) = llama::server().await else {
        return skip("every_shape_is_asked_for_in_turn_and_no_answer_becomes_a_wrong_number", llama::NEEDED);
    };
    let no_schema = ("json_schema", "openai-400-json-schema-unsupported");
    let no_object = ("json_object", "lmstudio-400-json-object");
    for (shapes, refused, samples) in [
        (&[Some("json_schema")][..], &[][..], QUICK),
        (&[Some("json_schema"), Some("json_object")], &[no_schema], &QUICK[..2]),
        (&[Some("json_schema"), Some("json_object"), None], &[no_schema, no_object], &QUICK[..2]),
    ] {
        let (gateway, url) = Gateway::start(backend, refused).await;
        let judge = format!("openai/{MODEL}");
        let arguments = [
            ["--judge", &judge],
            ["--judge-max-output-tokens", "80"],
            ["--judge-timeout", "120s"],
            ["--request-timeout", "300s"],
            ["--judge-repairs", "0"],
        ];
        let service = Process::start(arguments.as_flattened(), &[("OPENAI_BASE_URL", &url)]);
        let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(300)).build().unwrap();
        let route = format!("{}/recall/llm", service.url);
        let mut scored = 0;
        for sample in samples {
            let (status, answer) = ask(&client, &route, sample).await;
            if status == 200 {
                check(&answer, "openai", sample[1], sample[2]);
                assert_eq!(is_downgraded(&answer), !refused.is_empty(), "{answer:#}");
                scored += 1;
            } else {
                let code = answer["code"].as_str().unwrap_or_default();
                let is_named = ["judge_truncated", "judge_output_invalid", "judge_empty"].contains(&code);
                assert!(status == 502 && is_named && answer.get("score").is_none(), "{status} {answer:#}");
            }
        }
        // One step down for each refusal, at the first sample; then every sample once, in the shape that was taken.
        let asked = gateway.asked.lock().unwrap().clone();
        let last = shapes.last().unwrap();
        let expected: Vec<Option<String>> = shapes[..refused.len()]
            .iter()
            .chain(std::iter::repeat_n(last, samples.len()))
            .map(|shape| shape.map(str::to_owned))
            .collect();
        assert_eq!(asked, expected);
        println!("{} of {} were scored when asked for {}", scored, samples.len(), json!(last));
        assert!(scored > 0 || !refused.is_empty(), "a strict schema gets no score out of {} samples", samples.len());
    }
}
