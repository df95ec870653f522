//! The error contract: one table of codes, and one map from each room's errors to it.
//!
//! Handlers return a [`Problem`]; [`render`] turns it into the body as the outermost step, where the request id is
//! known, so that no handler can forget it.

use std::fmt::Display;
use std::time::Duration;

use axum::Json;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use tower_http::request_id::RequestId;
use utoipa::ToSchema;

use super::answer::UsageBody;
use crate::compute::Uncomputed;
use crate::recall::judge::{JudgeError, JudgeFault, Usage};

/// Defines [`Code`] and its table in one place.
macro_rules! codes {
    ($($(#[doc = $doc:literal])* $variant:ident: $code:literal, $status:ident, $retryable:literal, $hint:literal;)+) => {
        /// Why a request failed. A closed list: clients may match on it, and a code is never renamed.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, ToSchema)]
        #[serde(rename_all = "snake_case")]
        #[schema(as = ProblemCode)]
        pub enum Code {
            $($(#[doc = $doc])* $variant,)+
        }

        impl Code {
            /// Every code, in the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The code as it stands on the wire.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $code,)+ }
            }

            /// The status it is answered with.
            #[must_use]
            pub fn status(self) -> StatusCode {
                match self { $(Self::$variant => StatusCode::$status,)+ }
            }

            /// Can sending the same again help, as a rule?
            #[must_use]
            pub fn is_retryable(self) -> bool {
                match self { $(Self::$variant => $retryable,)+ }
            }

            /// What to do about it, unless the place that failed knows better.
            #[must_use]
            pub fn hint(self) -> &'static str {
                match self { $(Self::$variant => $hint,)+ }
            }
        }
    };
}

codes! {
    /// The body is not JSON.
    InvalidJson: "invalid_json", BAD_REQUEST, false,
        "Send one JSON object, UTF-8 encoded.";
    /// No such path.
    NotFound: "not_found", NOT_FOUND, false,
        "The routes are listed at /docs and in /openapi.json.";
    /// The path exists, but not for this method.
    MethodNotAllowed: "method_not_allowed", METHOD_NOT_ALLOWED, false,
        "The Allow header names the methods that this path takes.";
    /// The body is over a limit.
    PayloadTooLarge: "payload_too_large", PAYLOAD_TOO_LARGE, false,
        "Send fewer or shorter contexts, or raise the limit with --body-limit (RECALL_BODY_LIMIT).";
    /// The body is in a form that this path does not read.
    UnsupportedMediaType: "unsupported_media_type", UNSUPPORTED_MEDIA_TYPE, false,
        "Send the sample as JSON with the header Content-Type: application/json.";
    /// The sample cannot be scored as it is.
    InvalidInput: "invalid_input", UNPROCESSABLE_ENTITY, false,
        "errors lists every fault with its place in the body.";
    /// The question does not fit the judge's window.
    ContextLengthExceeded: "context_length_exceeded", UNPROCESSABLE_ENTITY, false,
        "Nothing was cut. Use a judge with a larger window, send shorter contexts, check --judge-context-window where it is set, or lower --judge-max-output-tokens where the room kept for the answer is what does not fit.";
    /// Our own queue is full, or the wait would outlast the deadline.
    Overloaded: "overloaded", SERVICE_UNAVAILABLE, true,
        "Wait as long as Retry-After says. --judge-concurrency and --queue set how much is taken in at once.";
    /// Our own deadline for one request passed.
    DeadlineExceeded: "deadline_exceeded", GATEWAY_TIMEOUT, true,
        "Send less in one request, or raise --request-timeout (RECALL_REQUEST_TIMEOUT).";
    /// A bug of ours.
    Internal: "internal", INTERNAL_SERVER_ERROR, false,
        "This is a bug. Please report it with the request id; the service's log holds what happened under it.";
    /// The judge gave no complete, unambiguous verdict list.
    JudgeOutputInvalid: "judge_output_invalid", BAD_GATEWAY, false,
        "The model does not answer in the shape asked for. Use a stronger model, or more repairs (--judge-repairs).";
    /// The judge's reply was cut.
    JudgeTruncated: "judge_truncated", BAD_GATEWAY, false,
        "Raise --judge-max-output-tokens (RECALL_JUDGE_MAX_OUTPUT_TOKENS) if it is set, turn the model's reasoning down, or use a model that does not run on.";
    /// The judge's reply holds no text.
    JudgeEmpty: "judge_empty", BAD_GATEWAY, false,
        "The model answers with nothing. Check with a call of your own that it can answer at all.";
    /// The model declined.
    JudgeRefused: "judge_refused", BAD_GATEWAY, false,
        "The model declines to judge this text. Another model may not.";
    /// The provider's filter declined.
    ContentFiltered: "content_filtered", BAD_GATEWAY, false,
        "The provider's content filter declines this text. Change the filter's settings there, or use another provider.";
    /// The backend cut our question.
    PromptTruncated: "prompt_truncated", BAD_GATEWAY, false,
        "No verdict was taken from an answer to half a question. Give the judge's backend a larger window (OLLAMA_CONTEXT_LENGTH where Ollama runs), name its true window with --judge-context-window, or send fewer or shorter contexts.";
    /// The backend refused our key.
    UpstreamAuth: "upstream_auth", BAD_GATEWAY, false,
        "Check the judge's API key in this service's environment (OPENAI_API_KEY, AZURE_OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY, OLLAMA_API_KEY) and that it may use this model.";
    /// Any other failure of the backend.
    UpstreamError: "upstream_error", BAD_GATEWAY, false,
        "The judge's backend failed; detail says how. Check the model's name (--judge) and the backend's address (OPENAI_BASE_URL, AZURE_OPENAI_ENDPOINT, ANTHROPIC_BASE_URL, GEMINI_BASE_URL, OLLAMA_HOST).";
    /// The backend cannot be reached.
    UpstreamUnreachable: "upstream_unreachable", BAD_GATEWAY, true,
        "Check that the judge's backend runs and that its address (OPENAI_BASE_URL, AZURE_OPENAI_ENDPOINT, ANTHROPIC_BASE_URL, GEMINI_BASE_URL, OLLAMA_HOST) is right as seen from this service.";
    /// The backend limits our rate.
    UpstreamRateLimited: "upstream_rate_limited", SERVICE_UNAVAILABLE, true,
        "The judge's backend limits the rate. Wait as long as Retry-After says, or lower --judge-concurrency.";
    /// The backend is overloaded.
    UpstreamOverloaded: "upstream_overloaded", SERVICE_UNAVAILABLE, true,
        "The judge's backend is overloaded. Wait as long as Retry-After says, or lower --judge-concurrency.";
    /// The backend gave no whole reply in time.
    UpstreamTimeout: "upstream_timeout", GATEWAY_TIMEOUT, true,
        "The judge's backend is too slow. Raise --judge-timeout (RECALL_JUDGE_TIMEOUT), or lower --judge-concurrency.";
}

/// One fault of a body: where, and what is expected there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = ProblemFault)]
pub struct Fault {
    /// Where in the body: a JSON pointer (RFC 6901); empty for the body as a whole.
    #[schema(example = "/retrieved_contexts/1")]
    pub pointer: String,
    /// What is wrong there and what is expected.
    #[schema(example = "expected a string, found null")]
    pub detail: String,
}

/// The faults of one body: all of them counted, the first ones listed, so that a broken file of a million faults neither
/// fills the memory nor comes back larger than it was.
#[derive(Debug, Default)]
pub struct Faults {
    /// The first of them.
    listed: Vec<Fault>,
    /// How many there are.
    pub count: usize,
}

impl Faults {
    const LISTED: usize = 100;

    /// A single fault.
    #[must_use]
    pub fn one(pointer: impl Display, detail: impl Display) -> Self {
        let mut faults = Self::default();
        faults.note(pointer, detail);
        faults
    }

    /// The same faults with their places and words changed.
    #[must_use]
    pub fn retold(mut self, retell: impl Fn(Fault) -> Fault) -> Self {
        self.listed = self.listed.into_iter().map(retell).collect();
        self
    }

    /// Adds a fault; its words are written only while there is room in the list.
    pub fn note(&mut self, pointer: impl Display, detail: impl Display) {
        self.count += 1;
        if self.listed.len() < Self::LISTED {
            self.listed.push(Fault { pointer: pointer.to_string(), detail: detail.to_string() });
        }
    }
}

/// A failed request, before it is put on the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Which row of the table.
    pub code: Code,
    /// What happened this time.
    pub detail: String,
    /// What to do, where this place knows better than the table.
    pub hint: Option<&'static str>,
    /// Every fault of the body.
    pub errors: Vec<Fault>,
    /// When another try makes sense.
    pub retry_after: Option<Duration>,
    /// Can sending the same again help?
    pub retryable: bool,
    /// What the judge's backend was paid before it failed; `None` when it was not asked. Boxed: most problems have none.
    pub usage: Option<Box<Usage>>,
}

impl Problem {
    /// A problem with the table's hint and no list of faults.
    #[must_use]
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self {
            code,
            detail: detail.into(),
            hint: None,
            errors: Vec::new(),
            retry_after: None,
            retryable: code.is_retryable(),
            usage: None,
        }
    }

    /// The same problem with another hint.
    #[must_use]
    pub fn with_hint(self, hint: &'static str) -> Self {
        Self { hint: Some(hint), ..self }
    }

    /// A bug. Its text is for the log; the caller gets no internals.
    #[must_use]
    pub fn internal() -> Self {
        Self::new(Code::Internal, "The service failed on this request.")
    }

    /// The problem as it is written, for the request with this id.
    #[must_use]
    pub fn body(self, request_id: &str) -> ProblemBody {
        let Self { code, detail, hint, errors, retry_after: _, retryable, usage } = self;
        ProblemBody {
            kind: "about:blank",
            title: code.status().canonical_reason().unwrap_or_default(),
            status: code.status().as_u16(),
            code,
            detail,
            hint: hint.unwrap_or_else(|| code.hint()),
            errors,
            retryable,
            request_id: request_id.to_owned(),
            usage: usage.map(|usage| UsageBody::from(*usage)),
        }
    }

    /// The same problem with what the judge's backend was paid for it.
    #[must_use]
    pub fn having_spent(self, usage: Usage) -> Self {
        Self { usage: (usage.judge_calls > 0).then(|| Box::new(usage)), ..self }
    }

    /// A body that is understood but cannot be scored.
    #[must_use]
    pub fn invalid_input(faults: Faults) -> Self {
        let Faults { listed, count } = faults;
        let detail = match (count, listed.as_slice()) {
            (1, [only]) if only.pointer.is_empty() => only.detail.clone(),
            (1, [only]) => format!("{}: {}", only.pointer, only.detail),
            (count, listed) if count > listed.len() => {
                format!("The body has {count} faults; the first {} are listed.", listed.len())
            }
            (count, _) => format!("The body has {count} faults."),
        };
        Self { errors: listed, ..Self::new(Code::InvalidInput, detail) }
    }
}

/// The body of every answer that is not a success (RFC 9457).
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Problem)]
pub struct ProblemBody {
    /// Always `about:blank`: `code` says what kind of problem it is.
    #[serde(rename = "type")]
    #[schema(example = "about:blank")]
    pub kind: &'static str,
    /// The status in words.
    #[schema(example = "Unprocessable Entity")]
    pub title: &'static str,
    /// The status.
    #[schema(example = 422)]
    pub status: u16,
    /// Which problem: a closed list to match on.
    pub code: Code,
    /// What happened this time.
    pub detail: String,
    /// What to do about it.
    pub hint: &'static str,
    /// Every fault of the body, each with its place. Empty when the body is not at fault.
    pub errors: Vec<Fault>,
    /// Can sending the same again help? Also in the header `x-should-retry`.
    pub retryable: bool,
    /// The request's id, as in the header `x-request-id` and in the log.
    pub request_id: String,
    /// What the judge's backend was asked and paid before it failed. Absent when it was not asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub usage: Option<UsageBody>,
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.code.status().into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// Writes the body of every problem, with the id of the request it belongs to.
pub async fn render(request: Request, next: Next) -> Response {
    let request_id = request.extensions().get::<RequestId>().cloned();
    let mut response = next.run(request).await;
    let problem = response.extensions_mut().remove::<Problem>();
    let Some(problem) = problem.or_else(|| of_status(response.status())) else {
        return response;
    };
    let request_id = request_id.as_ref().and_then(|id| id.header_value().to_str().ok()).unwrap_or_default();
    let (mut parts, _) = response.into_parts();
    let (code, retry_after, retryable) = (problem.code, problem.retry_after, problem.retryable);
    let body = problem.body(request_id);
    let written = Json(body).into_response().into_body();
    parts.headers.remove(header::CONTENT_LENGTH);
    write_headers(&mut parts.headers, code, retry_after, retryable);
    parts.extensions.insert(code);
    Response::from_parts(parts, written)
}

/// The problem behind a bare status that a layer or the documentation page gave.
fn of_status(status: StatusCode) -> Option<Problem> {
    match status {
        StatusCode::NOT_FOUND => Some(Problem::new(Code::NotFound, "There is nothing at this path.")),
        StatusCode::METHOD_NOT_ALLOWED => {
            Some(Problem::new(Code::MethodNotAllowed, "This path does not take this method."))
        }
        StatusCode::UNSUPPORTED_MEDIA_TYPE => {
            Some(Problem::new(Code::UnsupportedMediaType, "The body is in a form that is not read here."))
        }
        _ => None,
    }
}

fn write_headers(headers: &mut HeaderMap, code: Code, retry_after: Option<Duration>, retryable: bool) {
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    let should_retry = if retryable { "true" } else { "false" };
    headers.insert("x-should-retry", HeaderValue::from_static(should_retry));
    if code.status() == StatusCode::SERVICE_UNAVAILABLE {
        // Whole seconds, rounded up: earlier would be too early.
        let wait = retry_after.unwrap_or(Duration::from_secs(1));
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds.max(1)));
    }
}

impl From<JudgeError> for Problem {
    fn from(error: JudgeError) -> Self {
        let code = match error.fault {
            JudgeFault::Overloaded => Code::Overloaded,
            JudgeFault::DeadlineExceeded => Code::DeadlineExceeded,
            JudgeFault::OutputInvalid => Code::JudgeOutputInvalid,
            JudgeFault::Truncated => Code::JudgeTruncated,
            JudgeFault::Empty => Code::JudgeEmpty,
            JudgeFault::Refused => Code::JudgeRefused,
            JudgeFault::ContentFiltered => Code::ContentFiltered,
            JudgeFault::ContextLengthExceeded => Code::ContextLengthExceeded,
            JudgeFault::PromptTruncated => Code::PromptTruncated,
            JudgeFault::UpstreamAuth => Code::UpstreamAuth,
            JudgeFault::UpstreamFailing | JudgeFault::UpstreamError => Code::UpstreamError,
            JudgeFault::UpstreamUnreachable => Code::UpstreamUnreachable,
            JudgeFault::UpstreamRateLimited => Code::UpstreamRateLimited,
            JudgeFault::UpstreamOverloaded => Code::UpstreamOverloaded,
            JudgeFault::UpstreamTimeout => Code::UpstreamTimeout,
            JudgeFault::Internal => Code::Internal,
        };
        if code == Code::Internal {
            tracing::error!(detail = error.detail, "a judge broke its contract");
            return Self::internal().having_spent(error.usage);
        }
        let may_pass = error.fault == JudgeFault::UpstreamFailing;
        Self {
            retry_after: error.retry_after,
            retryable: may_pass || code.is_retryable(),
            ..Self::new(code, error.detail).having_spent(error.usage)
        }
    }
}

impl From<Uncomputed> for Problem {
    fn from(error: Uncomputed) -> Self {
        match error {
            Uncomputed::Full(full) => {
                Self { retry_after: Some(full.retry_after), ..Self::new(Code::Overloaded, full.detail) }
            }
            Uncomputed::Deadline => {
                Self::new(Code::DeadlineExceeded, "The computation was not done before the request's deadline.")
            }
        }
    }
}
