//! What the tests work with: the service behind its real router, and backends that speak HTTP.

pub mod backend;
pub mod help;
pub mod peer;
pub mod process;
pub mod redis;

use std::path::PathBuf;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Method, Request, StatusCode, header};
use context_recall::app::App;
use context_recall::config::Config;
use context_recall::http::router;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;

/// The service, built from settings as a user would give them.
pub struct Service {
    router: axum::Router,
    pub app: App,
}

/// An answer, read whole.
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Service {
    /// A service with these flags and variables.
    pub fn with(arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let variables: Vec<_> =
            variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let (_, config) = Config::from_parts(arguments, &variables).unwrap();
        let app = App::new(&config).unwrap();
        Self { router: router(app.clone()), app }
    }

    /// A service as it starts without any setting.
    pub fn embedded() -> Self {
        Self::with(&[], &[])
    }

    /// A service that asks `openai/m` at `base_url`, with a key and no more patience than a test has.
    pub fn asking(base_url: &str, arguments: &[&str]) -> Self {
        Self::asking_provider("openai", base_url, arguments)
    }

    /// A service that asks a judge of this provider at `url`, otherwise as [`Self::asking`].
    pub fn asking_provider(provider: &str, url: &str, arguments: &[&str]) -> Self {
        let variables: &[(&str, &str)] = match provider {
            "openai" => &[("OPENAI_BASE_URL", url), ("OPENAI_API_KEY", KEY)],
            "anthropic" => &[("ANTHROPIC_BASE_URL", url), ("ANTHROPIC_API_KEY", KEY)],
            "gemini" => &[("GEMINI_BASE_URL", url), ("GEMINI_API_KEY", KEY)],
            "azure" => &[("AZURE_OPENAI_ENDPOINT", url), ("AZURE_OPENAI_API_KEY", KEY)],
            "ollama" => &[("OLLAMA_HOST", url)],
            other => panic!("no provider {other}"),
        };
        let judge = format!("{provider}/m");
        let arguments: Vec<&str> = ["--judge", &judge].iter().chain(arguments).copied().collect();
        Self::with(&arguments, variables)
    }

    /// Sends any request through the whole router.
    pub async fn send(&self, request: Request<Body>) -> Answer {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        Answer { status: parts.status, headers: parts.headers, body: body.collect().await.unwrap().to_bytes() }
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(Request::get(path).body(Body::empty()).unwrap()).await
    }

    /// Posts a body as JSON, whatever it holds.
    pub async fn post_text(&self, path: &str, body: impl Into<Body>) -> Answer {
        let request =
            Request::builder().method(Method::POST).uri(path).header(header::CONTENT_TYPE, "application/json");
        self.send(request.body(body.into()).unwrap()).await
    }

    /// Posts a sample that is asked anew, whatever was remembered of it.
    pub async fn post_anew(&self, path: &str, body: &Value) -> Answer {
        self.post_with(path, "no-store", body).await
    }

    /// Posts JSON with a `Cache-Control`.
    pub async fn post_with(&self, path: &str, cache_control: &str, body: &Value) -> Answer {
        let request = Request::builder().method(Method::POST).uri(path);
        let request =
            request.header(header::CONTENT_TYPE, "application/json").header(header::CACHE_CONTROL, cache_control);
        self.send(request.body(body.to_string().into()).unwrap()).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.post_text(path, body.to_string()).await
    }
}

impl Answer {
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in {:?}", self.text()))
    }

    /// The body of a 200.
    #[track_caller]
    pub fn ok(&self) -> Value {
        assert_eq!(self.status, StatusCode::OK, "{}", self.text());
        self.json()
    }

    /// The body of a problem, after the checks that hold for every problem.
    #[track_caller]
    pub fn problem(&self, status: u16, code: &str) -> Value {
        let body = self.json();
        assert_eq!((self.status.as_u16(), body["code"].as_str()), (status, Some(code)), "{body:#}");
        assert_eq!(self.headers[header::CONTENT_TYPE], "application/problem+json");
        assert_eq!(body["status"], status);
        assert_eq!(body["title"], self.status.canonical_reason().unwrap());
        assert_eq!(self.headers["x-should-retry"], body["retryable"].to_string().as_str());
        assert_eq!(self.headers["x-request-id"], body["request_id"].as_str().unwrap());
        assert_eq!(self.headers.contains_key(header::RETRY_AFTER), status == 503);
        assert!(body.get("score").is_none());
        assert!(!body["detail"].as_str().unwrap().is_empty() && !body["hint"].as_str().unwrap().is_empty());
        body
    }
}

/// The key that test services send to their backends; it must turn up nowhere else.
pub const KEY: &str = "sk-test-0123456789abcdef";

/// A sample of two claims, of which the contexts bear out the first.
pub fn eiffel() -> Value {
    json!({
        "user_input": "Where is the Eiffel Tower and when did it open?",
        "reference": "The Eiffel Tower is in Paris. It opened in 1889.",
        "retrieved_contexts": ["The Eiffel Tower stands in Paris, France.", "Lyon is a city."]
    })
}

/// A file inside the project.
pub fn project(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// A text file inside the project.
#[track_caller]
pub fn read(path: &str) -> String {
    std::fs::read_to_string(project(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The lines of a file of JSON lines. Ended by LF alone: some strings hold other line breaks.
pub fn json_lines(path: &str) -> Vec<Value> {
    let text = read(path);
    text.split('\n').filter(|line| !line.is_empty()).map(|line| serde_json::from_str(line).unwrap()).collect()
}
