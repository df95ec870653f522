//! A backend that speaks HTTP, answers from a script and remembers what it was sent.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use wiremock::matchers::method;
use wiremock::{Mock, MockServer, Request, Respond, ResponseTemplate};

pub struct Backend {
    server: MockServer,
}

/// Gives the replies in turn; the last one again and again.
struct Script {
    replies: Vec<ResponseTemplate>,
    given: AtomicUsize,
}

impl Script {
    fn of(replies: Vec<ResponseTemplate>) -> Self {
        Self { replies, given: AtomicUsize::new(0) }
    }
}

impl Respond for Script {
    fn respond(&self, _: &Request) -> ResponseTemplate {
        let turn = self.given.fetch_add(1, Ordering::SeqCst);
        self.replies[turn.min(self.replies.len() - 1)].clone()
    }
}

impl Backend {
    /// A backend that gives `replies` in turn to what is posted, and knows nothing else.
    pub async fn replying(replies: Vec<ResponseTemplate>) -> Self {
        let server = MockServer::start().await;
        Mock::given(method("POST")).respond_with(Script::of(replies)).mount(&server).await;
        Self { server }
    }

    /// The same backend with these replies, in turn, to every GET: what it says of its models.
    pub async fn listing(self, replies: Vec<ResponseTemplate>) -> Self {
        Mock::given(method("GET")).respond_with(Script::of(replies)).mount(&self.server).await;
        self
    }

    /// A backend that replies by what a question holds: each reply stands behind a word of the question.
    pub async fn by_question(replies: Vec<(&'static str, ResponseTemplate)>) -> Self {
        let server = MockServer::start().await;
        for (word, reply) in replies {
            let asks = move |request: &Request| {
                let body: Value = serde_json::from_slice(&request.body).unwrap();
                data(&body)["question"].as_str().unwrap().contains(word)
            };
            Mock::given(method("POST")).and(asks).respond_with(reply).mount(&server).await;
        }
        Self { server }
    }

    /// A backend that answers what it is sent: the request's body goes in, the reply comes out.
    pub async fn answering(answer: impl Fn(&Value) -> ResponseTemplate + Send + Sync + 'static) -> Self {
        let server = MockServer::start().await;
        let respond = move |request: &Request| answer(&serde_json::from_slice(&request.body).unwrap());
        Mock::given(method("POST")).respond_with(respond).mount(&server).await;
        Self { server }
    }

    /// A backend whose model says `content`.
    pub async fn saying(content: &str) -> Self {
        Self::replying(vec![said(content)]).await
    }

    pub fn url(&self) -> String {
        self.server.uri()
    }

    /// What was posted: calls that may cost something.
    pub async fn requests(&self) -> Vec<Request> {
        self.received("POST").await
    }

    /// What was asked for with GET.
    pub async fn look_ups(&self) -> Vec<Request> {
        self.received("GET").await
    }

    async fn received(&self, method: &str) -> Vec<Request> {
        let all = self.server.received_requests().await.unwrap();
        all.into_iter().filter(|request| request.method.as_str() == method).collect()
    }

    pub async fn calls(&self) -> usize {
        self.requests().await.len()
    }

    /// The bodies that were sent.
    pub async fn bodies(&self) -> Vec<Value> {
        self.requests().await.iter().map(|request| serde_json::from_slice(&request.body).unwrap()).collect()
    }
}

/// A chat completion whose message is `content`.
pub fn said(content: &str) -> ResponseTemplate {
    ended(content, "stop")
}

/// A chat completion with its finish reason.
pub fn ended(content: &str, finish_reason: &str) -> ResponseTemplate {
    let body = json!({
        "id": "c1", "object": "chat.completion", "created": 0, "model": "m-2026-01-01",
        "choices": [{ "index": 0, "message": { "role": "assistant", "content": content }, "finish_reason": finish_reason }],
        "usage": { "prompt_tokens": 50, "completion_tokens": 20, "total_tokens": 70 }
    });
    ResponseTemplate::new(200).set_body_json(body)
}

/// An answer in our shape: one verdict after another, from claim 1 on.
pub fn verdicts(attributed: &[bool]) -> String {
    let entries: Vec<Value> = (1..)
        .zip(attributed)
        .map(|(n, attributed)| json!({ "n": n, "evidence": [], "reason": "r", "attributed": attributed }))
        .collect();
    json!({ "verdicts": entries }).to_string()
}

/// The data part of a question that was sent: the question, the contexts and the claims.
pub fn data(body: &Value) -> Value {
    let messages = body["messages"].as_array().unwrap();
    serde_json::from_str(messages.last().unwrap()["content"].as_str().unwrap()).unwrap()
}

/// A reply that takes its time.
pub fn slow(reply: ResponseTemplate, delay: Duration) -> ResponseTemplate {
    reply.set_delay(delay)
}
