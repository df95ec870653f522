//! A herd of samples before a backend that takes fewer calls than there are: nobody is lost, and the backend is obeyed.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::support::backend::verdicts;
use crate::support::{Answer, Service};

/// What the backend saw of one call.
struct Call {
    came: Instant,
    /// When its answer left.
    left: Instant,
    status: StatusCode,
}

/// What the backend takes.
#[derive(Clone, Copy)]
enum Allowance {
    /// This many calls in any one second; `retry-after: 1` to all others, or no hint.
    Rate { calls: usize, hint: bool },
    /// This many at once, each at work for 50 ms; 503 to all others.
    Places(usize),
}

struct Backend {
    url: String,
    log: Arc<Mutex<Vec<Call>>>,
    /// Dropped, it ends the server.
    _stop: tokio::sync::oneshot::Sender<()>,
}

impl Backend {
    fn with(allowance: Allowance) -> Self {
        let log: Arc<Mutex<Vec<Call>>> = Arc::default();
        let at_work = Arc::new(AtomicUsize::new(0));
        let shared = (Arc::clone(&log), at_work);
        let serve = move || {
            let (log, at_work) = shared.clone();
            async move {
                let came = Instant::now();
                let is_taken = match allowance {
                    Allowance::Rate { calls, .. } => {
                        let mut log = log.lock().unwrap();
                        let is_lately = |call: &&Call| {
                            call.status == StatusCode::OK && came.duration_since(call.came) < Duration::from_secs(1)
                        };
                        let is_taken = log.iter().filter(is_lately).count() < calls;
                        let status = if is_taken { StatusCode::OK } else { StatusCode::TOO_MANY_REQUESTS };
                        log.push(Call { came, left: came, status });
                        is_taken
                    }
                    Allowance::Places(places) => {
                        let is_taken = at_work.fetch_add(1, Ordering::SeqCst) < places;
                        if is_taken {
                            tokio::time::sleep(Duration::from_millis(50)).await;
                        }
                        at_work.fetch_sub(1, Ordering::SeqCst);
                        let status = if is_taken { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
                        log.lock().unwrap().push(Call { came, left: Instant::now(), status });
                        is_taken
                    }
                };
                if is_taken { completion() } else { allowance.refusal() }
            }
        };
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(serve);
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        // A thread of its own: its clock must not wait for the herd.
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                tokio::select! {
                    served = async { axum::serve(listener, router).await } => served.unwrap(),
                    _ = stopped => {}
                }
            });
        });
        Self { url, log, _stop: stop }
    }
}

impl Allowance {
    fn refusal(self) -> Response {
        let error = |words: &str, code: &str| json!({ "error": { "message": words, "code": code } }).to_string();
        match self {
            Self::Rate { hint: true, .. } => {
                (StatusCode::TOO_MANY_REQUESTS, [("retry-after", "1")], error("Rate limit reached", "429"))
                    .into_response()
            }
            // As a LiteLLM proxy says it.
            Self::Rate { hint: false, .. } => {
                let words = "litellm.RateLimitError: this is a mock rate limit error";
                (StatusCode::TOO_MANY_REQUESTS, error(words, "429")).into_response()
            }
            Self::Places(_) => (StatusCode::SERVICE_UNAVAILABLE, error("overloaded", "503")).into_response(),
        }
    }
}

fn completion() -> Response {
    let body = json!({
        "id": "c1", "object": "chat.completion", "created": 0, "model": "m-2026-01-01",
        "choices": [{
            "index": 0, "message": { "role": "assistant", "content": verdicts(&[true, false]) }, "finish_reason": "stop"
        }],
        "usage": { "prompt_tokens": 50, "completion_tokens": 20, "total_tokens": 70 }
    });
    ([("content-type", "application/json")], body.to_string()).into_response()
}

/// What became of a herd.
struct Outcome {
    answers: Vec<Answer>,
    calls: Vec<Call>,
    time: Duration,
}

impl Outcome {
    fn scored(&self) -> usize {
        self.answers.iter().filter(|answer| answer.status == StatusCode::OK).count()
    }

    fn refused_calls(&self) -> usize {
        self.calls.iter().filter(|call| call.status != StatusCode::OK).count()
    }

    #[expect(clippy::print_stdout, reason = "figures for whoever asks with --nocapture")]
    fn report(&self, name: &str) {
        println!(
            "{name}: {} of {} samples scored in {:.1?} with {} calls, {} of them refused",
            self.scored(),
            self.answers.len(),
            self.time,
            self.calls.len(),
            self.refused_calls(),
        );
    }

    /// Calls that came after the backend had said `retry-after: 1` and before that second was over, by how long after.
    fn disobedient(&self) -> Vec<Duration> {
        let refusals: Vec<Instant> =
            self.calls.iter().filter(|call| call.status != StatusCode::OK).map(|call| call.left).collect();
        let early = |call: &Call| {
            let since = refusals.iter().filter_map(|said| call.came.checked_duration_since(*said));
            since.filter(|since| (ON_THE_WAY..Duration::from_secs(1)).contains(since)).max()
        };
        self.calls.iter().filter_map(early).collect()
    }
}

/// A call that comes so soon after a refusal was sent before that was read. Long, since a busy machine has all samples to
/// parse before it comes to read the first reply: a tenth of it is what an idle one needs.
const ON_THE_WAY: Duration = Duration::from_millis(500);

/// `samples` different samples at once.
async fn herd(samples: usize, allowance: Allowance, arguments: &[&str]) -> Outcome {
    let backend = Backend::with(allowance);
    let service = Arc::new(Service::asking(&backend.url, arguments));
    let start = Instant::now();
    let posts = (0..samples).map(|number| {
        let service = Arc::clone(&service);
        tokio::spawn(async move { service.post("/recall/llm", &sample(number)).await })
    });
    // Collected first: all of them run at once, whoever is awaited.
    let posts: Vec<_> = posts.collect();
    let answers = futures_util::future::join_all(posts).await.into_iter().map(Result::unwrap).collect();
    let time = start.elapsed();
    let calls = std::mem::take(&mut *backend.log.lock().unwrap());
    Outcome { answers, calls, time }
}

fn sample(number: usize) -> Value {
    json!({
        "user_input": format!("Where is tower {number} and when did it open?"),
        "reference": format!("Tower {number} is in Paris. It opened in 1889."),
        "retrieved_contexts": [format!("Tower {number} stands in Paris, France."), "Lyon is a city."]
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn five_hundred_samples_at_a_backend_that_takes_twenty_a_second() {
    let outcome = herd(500, Allowance::Rate { calls: 20, hint: true }, &[]).await;
    outcome.report("20/s, retry-after: 1");
    for answer in &outcome.answers {
        assert_eq!(answer.ok()["score"], 0.5);
    }
    assert!(outcome.calls.len() <= 650, "{} calls", outcome.calls.len());
    let disobedient = outcome.disobedient();
    assert!(disobedient.is_empty(), "calls at a closed gate: {disobedient:?}");
    assert!(outcome.time < Duration::from_secs(60), "{:?}", outcome.time);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_that_takes_four_at_once_gets_about_four_at_once() {
    let outcome = herd(200, Allowance::Places(4), &[]).await;
    outcome.report("4 at once, 503");
    for answer in &outcome.answers {
        answer.ok();
    }
    assert!(outcome.calls.len() <= 400, "{} calls", outcome.calls.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rate_that_is_kept_without_a_hint_is_found_too() {
    let outcome = herd(100, Allowance::Rate { calls: 20, hint: false }, &[]).await;
    outcome.report("20/s, no hint");
    for answer in &outcome.answers {
        match answer.status {
            StatusCode::OK => {}
            _ => drop(answer.problem(503, "upstream_rate_limited")),
        }
    }
    assert!(outcome.scored() >= 80, "{} scored", outcome.scored());
    assert!(outcome.calls.len() <= 200, "{} calls", outcome.calls.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_that_refuses_everything_without_a_hint_is_not_asked_by_everybody() {
    let outcome = herd(128, Allowance::Rate { calls: 0, hint: false }, &[]).await;
    outcome.report("nothing, no hint");
    for answer in &outcome.answers {
        let problem = answer.problem(503, "upstream_rate_limited");
        assert!(problem["detail"].as_str().unwrap().contains("mock rate limit"), "{problem:#}");
    }
    assert!(outcome.calls.len() <= 128, "{} calls where each for itself would make 512", outcome.calls.len());
    assert!(outcome.time < Duration::from_secs(60), "{:?}", outcome.time);
}
