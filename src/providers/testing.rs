//! What the tests of several vendors share: a backend that speaks HTTP from a script, a question, and the recorded
//! replies with what must come of them.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::{Value, json};
use wiremock::matchers::any;
use wiremock::{Mock, MockServer, Request, Respond, ResponseTemplate};

use super::{
    AnswerSchema, ChatModel, ChatReply, ChatRequest, Ending, ProviderError, ProviderFault as Fault, Tokens, Turn,
};

/// The output limit of [`question`].
pub(super) const LIMIT: u32 = 4096;

/// A short question of three turns.
pub(super) fn question() -> ChatRequest {
    ChatRequest {
        system: "Answer in JSON.",
        turns: vec![
            Turn::User("Is it so?".to_owned()),
            Turn::Assistant("{}".to_owned()),
            Turn::User("Once more, with \"quotes\".".to_owned()),
        ],
        schema: AnswerSchema { name: "verdicts", json: r#"{"type": "object", "additionalProperties": false}"# },
        output_limit: LIMIT,
        temperature: 0.0,
        seed: 7,
    }
}

/// The key that test backends are asked with; it must turn up nowhere else.
pub(super) const KEY: &str = "key-swordfish-1";

/// Asks [`question`].
pub(super) async fn ask(model: &dyn ChatModel, within: Duration) -> Result<ChatReply, ProviderError> {
    model.ask(&question(), (Instant::now() + within).into()).await
}

/// Gives its replies in turn, the last one for ever.
struct Script(Vec<ResponseTemplate>, AtomicUsize);

impl Respond for Script {
    fn respond(&self, _: &Request) -> ResponseTemplate {
        let turn = self.1.fetch_add(1, Ordering::Relaxed);
        self.0[turn.min(self.0.len() - 1)].clone()
    }
}

/// A backend that gives `replies` in turn, the last one for ever.
pub(super) async fn backend(replies: Vec<ResponseTemplate>) -> MockServer {
    let server = MockServer::start().await;
    let script = Script(replies, AtomicUsize::new(0));
    Mock::given(any()).respond_with(script).mount(&server).await;
    server
}

/// The bodies that were sent.
pub(super) async fn sent(server: &MockServer) -> Vec<Value> {
    let requests = server.received_requests().await.unwrap();
    let body = |request: &Request| serde_json::from_slice(&request.body).unwrap();
    requests.iter().map(body).collect()
}

/// A reply with this body, as JSON.
pub(super) fn plain(status: u16, body: &str) -> ResponseTemplate {
    ResponseTemplate::new(status).set_body_raw(body.as_bytes().to_vec(), "application/json")
}

/// A reply as a file of `tests/wire` holds it.
fn recorded(file: &Value) -> ResponseTemplate {
    let status = u16::try_from(file["status"].as_u64().unwrap()).unwrap();
    let body = match &file["body"] {
        Value::String(text) => text.clone(),
        object => object.to_string(),
    };
    let headers = file["headers"].as_object().unwrap();
    let mut template = plain(status, &body);
    for (name, value) in headers {
        template = template.insert_header(name.as_str(), value.as_str().unwrap());
    }
    template
}

fn fault_of(code: &str) -> Fault {
    match code {
        "upstream_auth" => Fault::Auth,
        "upstream_error" => Fault::Other,
        "upstream_timeout" => Fault::Timeout,
        "upstream_rate_limited" => Fault::RateLimited,
        "upstream_overloaded" => Fault::Overloaded,
        "context_length_exceeded" => Fault::ContextLength,
        "content_filtered" => Fault::Filtered,
        "prompt_truncated" => Fault::PromptTruncated,
        other => panic!("no fault for {other}"),
    }
}

/// Does a file expect that the request is changed and sent again?
fn adapts(file: &Value) -> bool {
    let expect = file["expect"].as_str().unwrap();
    expect.starts_with("downgrade") || expect.starts_with("change parameter")
}

/// Checks what `expect` says of this room, for a model of two tries that gets the recorded reply.
async fn play(name: &str, file: &Value, server: &MockServer, model: &dyn ChatModel) {
    let expect = file["expect"].as_str().unwrap();
    let code = file["code"].as_str().unwrap_or_default();
    let within = if expect.starts_with("retry after") { Duration::from_millis(900) } else { Duration::from_secs(20) };
    let question = sized(file);
    let outcome = model.ask(&question, (Instant::now() + within).into()).await;
    let bodies = sent(server).await;

    if adapts(file) {
        let reply = outcome.unwrap();
        assert_eq!((reply.calls, bodies.len()), (2, 2), "{name}");
        assert_ne!(bodies[0], bodies[1], "{name}");
        assert_eq!(reply.downgraded.is_some(), expect.starts_with("downgrade"), "{name}");
        model.ask(&question, (Instant::now() + within).into()).await.unwrap();
        assert_eq!(sent(server).await[2], bodies[1], "{name}: not remembered");
        return;
    }
    if let Some(seconds) = file["retry_after_s"].as_f64() {
        let error = outcome.unwrap_err();
        let wait = error.retry_after.expect(&error.detail).as_secs_f64();
        assert!((wait - seconds).abs() < 1e-9, "{name}: {wait}");
        assert_eq!((error.fault, error.calls), (fault_of(code), 1), "{name}");
        return;
    }
    let is_no_answer = |code: &str| {
        let is_refused = code == "content_filtered" && file["status"] != 200;
        is_refused || code == "prompt_truncated" || code.starts_with("upstream") || code.starts_with("context_length")
    };
    if expect.starts_with("retry with back-off") || is_no_answer(code) {
        let error = outcome.unwrap_err();
        let calls = if expect.starts_with("retry") { 2 } else { 1 };
        // An outage and a wrong name share a code and differ in whether asking again can help.
        let fault =
            if expect.starts_with("retry") && code == "upstream_error" { Fault::Failing } else { fault_of(code) };
        assert_eq!((error.fault, error.calls), (fault, calls), "{name}: {error}");
        assert_eq!(bodies.len() as u64, calls, "{name}");
        let status = file["status"].as_u64().unwrap().to_string();
        assert!(error.detail.contains(&status), "{name}: {error}");
        assert!(!error.detail.contains(['<', '\n']), "{name}: {error}");
        for limit in file["limits"].as_object().into_iter().flat_map(|limits| limits.values()) {
            assert!(error.detail.contains(&limit.to_string()), "{name}: {error}");
        }
        return;
    }
    let reply = outcome.unwrap();
    assert_eq!((reply.calls, bodies.len()), (1, 1), "{name}");
    match code {
        "judge_truncated" => assert_eq!(reply.ending, Ending::Truncated, "{name}"),
        "judge_refused" => {
            assert!(matches!(&reply.ending, Ending::Refused(words) if words.contains("sorry")), "{name}")
        }
        "judge_empty" => assert_eq!((reply.text.as_str(), &reply.ending), ("", &Ending::Whole), "{name}"),
        _ => assert_eq!(reply.ending, Ending::Whole, "{name}"),
    }
    match &file["text"] {
        Value::String(text) => {
            // Thoughts inside the text are taken off by whoever reads the text: only there is known what an answer is.
            let answer = reply.text.rsplit("</think>").next().unwrap().trim_start();
            assert_eq!(answer, text, "{name}");
        }
        Value::Null => {}
        object => assert_eq!(&serde_json::from_str::<Value>(&reply.text).unwrap(), object, "{name}"),
    }
    if let Some(usage) = file["usage"].as_object() {
        let tokens = Tokens {
            input: usage["input_tokens"].as_u64(),
            cached_input: usage["cached_input_tokens"].as_u64(),
            output: usage["output_tokens"].as_u64(),
            reasoning: usage["reasoning_tokens"].as_u64(),
        };
        assert_eq!(reply.tokens, tokens, "{name}");
    }
    let reported = file["model_reported"].as_str().or(file["body"]["model"].as_str());
    assert_eq!(reply.model.as_deref(), reported.or(reply.model.as_deref()), "{name}");
}

/// [`question`], as long as the file says that the prompt was.
fn sized(file: &Value) -> ChatRequest {
    let mut question = question();
    if let Some(tokens) = file["request"]["our_prompt_estimate"].as_u64() {
        question.turns.push(Turn::User("word ".repeat(usize::try_from(tokens).unwrap())));
    }
    question
}

/// Replays every recorded reply of this wire format, of which there are at least `least`. `model_at` makes a model of
/// two tries; `good` is a reply that it takes.
pub(super) async fn replay<M: ChatModel>(
    wire: &str,
    least: usize,
    good: impl Fn() -> ResponseTemplate,
    model_at: impl Fn(&str) -> M,
) {
    let mut plays = Vec::new();
    for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wire")).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        // An object where the vendor has one; the other marks stand inside strings, and any text will do for those.
        let text = text.replace("\"@VERDICTS_OBJECT@\"", &json!({"verdicts": [{"n": 1}]}).to_string());
        let file: Value = serde_json::from_str(&text).unwrap();
        if file["wire"] != wire {
            continue;
        }
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let mut replies = vec![recorded(&file)];
        if adapts(&file) {
            replies.push(good());
        }
        let server = backend(replies).await;
        // Made before any clock starts: a client takes its time to read the machine's certificates.
        let model = model_at(&server.uri());
        plays.push(async move { play(&name, &file, &server, &model).await });
    }
    assert!(plays.len() >= least, "only {} files", plays.len());
    join_all(plays).await;
}
