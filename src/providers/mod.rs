//! The outside: language-model backends, as one small port.
//!
//! A leaf room: it knows HTTP and vendors' wire formats, and nothing of recall, claims or verdicts.
//!
//! # To add a provider
//!
//! 1. Write `providers/NAME.rs`; [`anthropic`] is the one to look at, and [`azure`] shows a format used again under other
//!    addresses. A configuration with `connect` and a check of its base URL (`base_url.rs` reads it), and a type that
//!    implements `backend::Wire`: what the vendor calls the fields that it may refuse, the body, a function that reads a
//!    reply as an answer or as a `Refusal`, and the free call that tells of the model. `Backend` makes a [`ChatModel`] of
//!    it: retries, waits, the gate, time-outs, redaction, the usual error classes and learning from refusals are had. What a vendor's errors say in words of their own goes into `refusal.rs`,
//!    `wait.rs` and `window.rs`, since gateways pass them on. Declare the file below.
//! 2. Test it in `providers/NAME/tests.rs` with what `testing.rs` has. Its `replay` plays each `tests/wire/*.json` whose
//!    `wire` is NAME.
//! 3. Give it a name in `config/judge.rs`: `JudgeSetting` (`has_key` too: `main.rs` warns of an open door to a paid key),
//!    `JudgeName`, `EXPECTED`, and a `Vendor` for its variables. In `config.rs` the help of `--judge` and the list of
//!    variables below it.
//! 4. Give it an arm in `app.rs`.
//! 5. Name its variables in the hints of `http/problem.rs`, in `docker-compose.yml` and in README's table of judges;
//!    `UPDATE_README=1 cargo test readme` rewrites README's list of settings.
//! 6. Through the front door: `Service::asking_provider` in `tests/it/support`, the judges in `tests/it/settings.rs`, and
//!    whatever `tests/cases/field.jsonl` holds of it.
//!
//! A vendor that speaks the OpenAI format needs none of this: it is a base URL.

pub mod anthropic;
pub mod azure;
mod backend;
mod base_url;
mod dialect;
mod envelope;
pub mod estimate;
mod gate;
pub mod gemini;
pub mod ollama;
pub mod openai;
mod refusal;
mod said;
pub mod secret;
#[cfg(test)]
mod testing;
pub mod transport;
mod wait;
mod window;

use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;

use crate::deadline::Deadline;

/// One question to a model: a fixed system text, the conversation so far, and the shape wanted back.
#[derive(Debug, Clone)]
pub struct ChatRequest {
    /// The system text: byte-identical from call to call, so that providers cache it.
    pub system: &'static str,
    /// The turns after it, the first and the last from the user.
    pub turns: Vec<Turn>,
    /// The shape of the answer.
    pub schema: AnswerSchema,
    /// The most tokens the reply may have, reasoning included.
    pub output_limit: u32,
    /// The sampling temperature asked for; a backend may refuse or ignore it.
    pub temperature: f32,
    /// The sampling seed asked for; a backend may refuse or ignore it.
    pub seed: i64,
}

/// Who said a turn of a conversation, and what.
#[derive(Debug, Clone)]
pub enum Turn {
    /// Our words.
    User(String),
    /// The model's words, given back to it.
    Assistant(String),
}

/// A JSON schema, in the subset that every backend with structured output takes.
#[derive(Debug, Clone)]
pub struct AnswerSchema {
    /// A name of letters, digits, `_` and `-`.
    pub name: &'static str,
    /// The schema as JSON text.
    pub json: &'static str,
}

/// What a model answered, in the same words for every vendor.
#[derive(Debug, Clone)]
pub struct ChatReply {
    /// The answer's text, thinking left out. Empty when there was none.
    pub text: String,
    /// The model's reasoning, where the backend gives it apart from the answer.
    pub reasoning: Option<String>,
    /// How the reply ended.
    pub ending: Ending,
    /// The model's name as reported.
    pub model: Option<String>,
    /// What it cost, this call and the failed tries before it.
    pub tokens: Tokens,
    /// Requests sent for this reply, failed tries included; at least 1.
    pub calls: u64,
    /// The output limit that was really sent: smaller than asked for where the backend takes no more, `None` where it takes
    /// none.
    pub output_limit: Option<u32>,
    /// The answer's shape could not be asked for as wanted; what was asked instead, in words.
    pub downgraded: Option<&'static str>,
}

/// How a reply ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// Whole, as far as the backend says.
    Whole,
    /// Cut by a limit.
    Truncated,
    /// The model declined; its words, if any.
    Refused(String),
    /// The provider's filter withheld the answer; its words, if any.
    Filtered(String),
}

/// Token counts of one exchange. `None` where the backend did not report one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tokens {
    /// Tokens of the prompt, cached ones included.
    pub input: Option<u64>,
    /// The part of `input` that was cached.
    pub cached_input: Option<u64>,
    /// Tokens of the reply, reasoning included.
    pub output: Option<u64>,
    /// The part of `output` that was reasoning.
    pub reasoning: Option<u64>,
}

/// Why a backend gave no reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProviderFault {
    /// The key was refused.
    Auth,
    /// The prompt (with the room kept for the answer) does not fit the model's window or its token allowance.
    ContextLength,
    /// The backend read less of the prompt than it was sent, so that its answer is about something else.
    PromptTruncated,
    /// A filter refused the prompt.
    Filtered,
    /// Name resolution, connecting, TLS, or a broken connection.
    Unreachable,
    /// No whole reply within the time for one call, or the backend's own time-out.
    Timeout,
    /// Too many requests or tokens for our allowance.
    RateLimited,
    /// The backend says that it is overloaded.
    Overloaded,
    /// The deadline passed while waiting or calling.
    Deadline,
    /// A failure of the backend's own that may pass, such as a 500.
    Failing,
    /// Anything else; asking the same again cannot help.
    Other,
}

/// A failure of a backend, after the tries that it was worth.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{fault:?}: {detail}")]
pub struct ProviderError {
    /// What kind of failure.
    pub fault: ProviderFault,
    /// What the backend said or what broke, short, with secrets removed.
    pub detail: String,
    /// How long the backend asked to be left alone.
    pub retry_after: Option<Duration>,
    /// The model's window in tokens, where a refusal told it: what prompt and answer have to fit into together.
    pub window: Option<u32>,
    /// Requests sent, failed tries included.
    pub calls: u64,
}

/// Settings from which no backend can be made. Holds no secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// The base URL cannot be used.
    #[error("the base URL {0}")]
    BaseUrl(String),
    /// The API key cannot be sent.
    #[error("the API key {0}")]
    Key(#[from] secret::BadSecret),
    /// The HTTP client cannot be built, for want of TLS roots or of a usable proxy setting.
    #[error("no HTTP client: {0}")]
    Client(String),
}

/// A language model behind some backend.
pub trait ChatModel: Send + Sync {
    /// The provider's name, as in `--judge NAME/MODEL`.
    fn provider(&self) -> &'static str;

    /// The model's name, as asked for.
    fn model(&self) -> &str;

    /// The address that is asked, without any secret.
    fn address(&self) -> &str;

    /// The model's window in tokens, prompt and answer together, where the backend has reported one.
    fn window(&self) -> Option<u32>;

    /// Looks up, at no cost, whether the backend takes our key and has the model; learns [`Self::window`] where it is told.
    /// A backend that cannot be asked so has nothing against us.
    fn look_up(&self, deadline: Instant) -> BoxFuture<'_, Result<(), ProviderError>>;

    /// Asks once (with the retries that help) and gives the reply before `deadline`. Dropping the future closes the
    /// connection of a call in flight.
    fn ask<'a>(
        &'a self,
        request: &'a ChatRequest,
        deadline: Deadline,
    ) -> BoxFuture<'a, Result<ChatReply, ProviderError>>;
}
