//! Chat completions: OpenAI, and the many servers that speak its format.
//!
//! Servers differ in which fields they take; what one refuses is learnt (see `dialect`).

mod completion;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use reqwest::Url;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::backend::{Access, Backend, Completion, Facts, LookUp, Wire};
use super::base_url::{BaseUrl, strip_tail};
use super::dialect::{Form, Shape, Vocabulary};
use super::envelope;
use super::refusal::{Refusal, Reply};
use super::secret::Secret;
use super::transport::CallPolicy;
use super::{AnswerSchema, ChatModel, ChatRequest, ProviderFault, SetupError, Turn};

/// Where OpenAI itself is asked.
pub const PUBLIC_URL: &str = "https://api.openai.com/v1";

/// Where and how an OpenAI-compatible backend is asked.
#[derive(Debug, Clone)]
pub struct OpenAiConfig {
    /// [`PUBLIC_URL`] or another server's: with or without `/v1`, a trailing slash, a prefix of its own, a query,
    /// `user:password@`, or the whole address of its chat completions.
    pub base_url: String,
    /// Sent as `Authorization: Bearer`; a local server needs none.
    pub api_key: Option<Secret>,
    /// The model's name.
    pub model: String,
}

impl OpenAiConfig {
    /// Prepares the backend; sends nothing.
    ///
    /// # Errors
    ///
    /// [`SetupError`] when the base URL is none for HTTP, when it holds a password and there is a key as well, or when no
    /// HTTP client can be built.
    pub fn connect(self, calls: CallPolicy) -> Result<Arc<dyn ChatModel>, SetupError> {
        Ok(Arc::new(self.backend(calls)?))
    }

    fn backend(self, calls: CallPolicy) -> Result<Backend<ChatCompletions>, SetupError> {
        let base = parse_base(&self.base_url)?;
        let (endpoint, listing) = (below(&base, &COMPLETIONS), below(&base, &["models"]));
        let (headers, secrets) = base.authorize(self.api_key)?;
        let wire = ChatCompletions { provider: "openai", model: Some(self.model.clone()), listing, lists_it: true };
        Backend::new(wire, Access { endpoint, headers, secrets, model: self.model, calls })
    }
}

/// Says whether a base URL can be used, before anything is built with it.
///
/// # Errors
///
/// [`SetupError::BaseUrl`] in words that do not quote it: it may hold a password.
pub fn check_base_url(text: &str) -> Result<(), SetupError> {
    parse_base(text).map(drop)
}

fn parse_base(text: &str) -> Result<BaseUrl, SetupError> {
    BaseUrl::parse(text, "https://host/v1")
}

const COMPLETIONS: [&str; 2] = ["chat", "completions"];

/// An address below a base URL. Vendors print bases with a version in them (`/v1`, `/api/paas/v4`), so a path is taken as
/// it is and only a bare host gets `/v1`.
fn below(base: &BaseUrl, tail: &[&'static str]) -> Url {
    base.with_path(|steps| {
        strip_tail(steps, &COMPLETIONS);
        if steps.is_empty() {
            steps.push("v1");
        }
        steps.extend(tail);
    })
}

/// OpenAI's wire format. Azure speaks it too, under addresses of its own.
#[derive(Debug)]
pub(super) struct ChatCompletions {
    pub(super) provider: &'static str,
    /// The model's name for the body; `None` where the address names it.
    pub(super) model: Option<String>,
    /// Where the backend's models are listed.
    pub(super) listing: Url,
    /// Would that list hold our model's name?
    pub(super) lists_it: bool,
}

impl Wire for ChatCompletions {
    const VOCABULARY: Vocabulary = Vocabulary {
        shapes: &[Shape::Schema, Shape::Object, Shape::Plain],
        shape_words: &["response_format", "json_schema", "json_object", "structured output"],
        // Only the newest models of OpenAI refuse the old name of the limit; some servers know no other.
        limits: &["max_tokens", "max_completion_tokens"],
        needs_limit: false,
        // Mistral has a name of its own.
        seeds: &["seed", "random_seed"],
        temperatures: &["temperature"],
        extras: &[],
    };

    fn provider(&self) -> &'static str {
        self.provider
    }

    fn body(&self, request: &ChatRequest, form: &Form) -> Result<String, Refusal> {
        let ChatRequest { system, turns, schema, output_limit: _, temperature, seed } = request;
        let system = Message { role: "system", content: system };
        let turns = turns.iter().map(|turn| match turn {
            Turn::User(content) => Message { role: "user", content },
            Turn::Assistant(content) => Message { role: "assistant", content },
        });
        let body = Body {
            model: self.model.as_deref(),
            messages: std::iter::once(system).chain(turns).collect(),
            stream: false,
            max_tokens: form.limit_as("max_tokens"),
            max_completion_tokens: form.limit_as("max_completion_tokens"),
            temperature: form.temperature(*temperature),
            seed: form.seed_as("seed", *seed),
            random_seed: form.seed_as("random_seed", *seed),
            response_format: response_format(schema, form.shape).map_err(Refusal::unwritable)?,
        };
        serde_json::to_string(&body).map_err(Refusal::unwritable)
    }

    fn read(&self, reply: &Reply, _: &ChatRequest, form: &Form) -> Result<Completion, Refusal> {
        completion::read(reply, form.limit())
    }

    fn look_up(&self) -> LookUp {
        LookUp { url: self.listing.clone(), body: None }
    }

    fn facts(&self, reply: &Reply) -> Result<Facts, Refusal> {
        // Not every server that speaks this format has a list.
        if matches!(reply.status, 404 | 405 | 501) {
            return Ok(Facts::default());
        }
        if !reply.is_success() {
            return Err(Refusal::of(reply));
        }
        let Some(list) = envelope::json(&reply.body) else {
            return Ok(Facts::default());
        };
        let models = list["data"].as_array().map(Vec::as_slice).unwrap_or_default();
        match models.iter().find(|model| model["id"].as_str() == self.model.as_deref()) {
            Some(model) => Ok(Facts { window: window_of(model) }),
            None if self.lists_it && is_closed(models) => Err(self.unknown_among(models)),
            // A server with one model answers for it under any name.
            None => Ok(Facts { window: if let [only] = models { window_of(only) } else { None } }),
        }
    }
}

impl ChatCompletions {
    fn unknown_among(&self, models: &[Value]) -> Refusal {
        const NAMED: usize = 5;
        let names: Vec<&str> = models.iter().filter_map(|model| model["id"].as_str()).collect();
        let more = if names.len() > NAMED { ", …" } else { "" };
        let detail = format!(
            "the backend lists no model `{}`, but {}{more}",
            self.model.as_deref().unwrap_or_default(),
            names.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ")
        );
        Refusal::without_reply(ProviderFault::Other, detail, false)
    }
}

/// The window of a listed model, by the names that llama.cpp, vLLM, OpenRouter, Groq and Mistral have for it.
fn window_of(model: &Value) -> Option<u32> {
    let told = ["max_model_len", "context_length", "context_window", "max_context_length"];
    let tokens = told.iter().find_map(|field| model[*field].as_u64()).or_else(|| model["meta"]["n_ctx"].as_u64());
    tokens.and_then(|tokens| u32::try_from(tokens).ok())
}

/// Does a list name all that its server answers for? llama.cpp takes any name, and a proxy's `openai/*` takes many.
fn is_closed(models: &[Value]) -> bool {
    let is_open = |model: &Value| {
        model["owned_by"].as_str() == Some("llamacpp") || model["id"].as_str().is_none_or(|id| id.contains('*'))
    };
    !models.is_empty() && !models.iter().any(is_open)
}

#[derive(Serialize)]
struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    messages: Vec<Message<'a>>,
    /// Sent although it is the default: some servers stream unless told not to.
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    random_seed: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<ResponseFormat<'a>>,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: &'a str,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ResponseFormat<'a> {
    JsonSchema { json_schema: NamedSchema<'a> },
    JsonObject,
}

#[derive(Serialize)]
struct NamedSchema<'a> {
    name: &'a str,
    strict: bool,
    schema: &'a RawValue,
}

fn response_format(schema: &AnswerSchema, shape: Shape) -> Result<Option<ResponseFormat<'_>>, serde_json::Error> {
    Ok(match shape {
        Shape::Schema => Some(ResponseFormat::JsonSchema {
            json_schema: NamedSchema { name: schema.name, strict: true, schema: serde_json::from_str(schema.json)? },
        }),
        Shape::Object => Some(ResponseFormat::JsonObject),
        Shape::OldSchema | Shape::Tool | Shape::Plain => None,
    })
}
