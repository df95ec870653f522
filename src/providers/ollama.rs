//! Ollama, by its own API: the only one of its APIs that takes the size of the window.
//!
//! Ollama's window is small unless asked for more, and a prompt that is longer is cut without a word. So a window is
//! asked for that holds the question (see `room`), cutting is forbidden where the server knows that word, and what
//! it says that it has read is compared with what it was sent (see `reply`).

mod host;
mod reply;
mod room;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use reqwest::Url;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

pub use self::host::{DEFAULT_HOST, check_host, needs_key};
use self::reply::Sent;
use self::room::Room;
use super::backend::{Access, Backend, Completion, Facts, LookUp, Wire};
use super::dialect::{Form, Shape, Vocabulary};
use super::estimate::Estimate;
use super::refusal::{Refusal, Reply};
use super::secret::Secret;
use super::transport::CallPolicy;
use super::{AnswerSchema, ChatModel, ChatRequest, ProviderFault, SetupError, Turn, envelope};

/// Where and how a model in Ollama is asked.
#[derive(Debug, Clone)]
pub struct OllamaConfig {
    /// [`DEFAULT_HOST`] or another one, as Ollama reads `OLLAMA_HOST`; `user:password@`, a prefix and the whole address of
    /// a call are taken too.
    pub host: String,
    /// Sent as `Authorization: Bearer`; only the hosted Ollama and gateways want one.
    pub api_key: Option<Secret>,
    /// The model's name, with or without a tag.
    pub model: String,
    /// The largest window in tokens that may be asked for; `None` for the model's own.
    pub window: Option<u32>,
}

impl OllamaConfig {
    /// Prepares the backend; sends nothing.
    ///
    /// # Errors
    ///
    /// [`SetupError`] when the host is none, when it holds a password and there is a key as well, or when no HTTP client
    /// can be built.
    pub fn connect(self, calls: CallPolicy) -> Result<Arc<dyn ChatModel>, SetupError> {
        Ok(Arc::new(self.backend(calls)?))
    }

    fn backend(self, calls: CallPolicy) -> Result<Backend<Chat>, SetupError> {
        let Self { host, api_key, model, window } = self;
        let base = host::base(&host)?;
        let endpoint = host::below(&base, "chat");
        let description = host::below(&base, "show");
        let (headers, secrets) = base.authorize(api_key)?;
        let wire = Chat { model: model.clone(), description, room: Room::new(window, calls.timeout) };
        Backend::new(wire, Access { endpoint, headers, secrets, model, calls })
    }
}

/// Ollama's own wire format.
#[derive(Debug)]
struct Chat {
    model: String,
    /// Where the model is described.
    description: Url,
    room: Room,
}

const THINK: &str = "think";
const TRUNCATE: &str = "truncate";
const SHIFT: &str = "shift";

/// What a chat template puts around one message, at most.
const TOKENS_AROUND_A_MESSAGE: u32 = 16;

impl Chat {
    fn sent(&self, request: &ChatRequest) -> Sent {
        let turns = request.turns.iter().map(|turn| match turn {
            Turn::User(text) | Turn::Assistant(text) => text.as_str(),
        });
        let around = Estimate { least: 0, most: TOKENS_AROUND_A_MESSAGE };
        let texts = std::iter::once(request.system).chain(turns);
        let prompt = texts.map(|text| Estimate::of(text) + around).fold(Estimate::default(), |sum, part| sum + part);
        Sent { prompt, window: self.room.bound() }
    }
}

/// Tokens that the answer may take: those that were asked for where no limit is sent.
fn answer_tokens(request: &ChatRequest, form: &Form) -> u32 {
    form.limit().unwrap_or(request.output_limit)
}

impl Wire for Chat {
    const VOCABULARY: Vocabulary = Vocabulary {
        shapes: &[Shape::Schema, Shape::Object, Shape::Plain],
        // Versions before 0.5 know `"json"` alone and name the field of their own request.
        shape_words: &["chatrequest.format", "invalid format", "`format`", "\"format\"", "structured output"],
        limits: &["num_predict"],
        needs_limit: false,
        seeds: &["seed"],
        temperatures: &["temperature"],
        extras: &[THINK, TRUNCATE, SHIFT],
    };

    fn provider(&self) -> &'static str {
        "ollama"
    }

    fn body(&self, request: &ChatRequest, form: &Form) -> Result<String, Refusal> {
        let num_ctx = self.room.size(self.sent(request).prompt, answer_tokens(request, form))?;
        let ChatRequest { system, turns, schema, output_limit: _, temperature, seed } = request;
        let system = Message { role: "system", content: system };
        let turns = turns.iter().map(|turn| match turn {
            Turn::User(content) => Message { role: "user", content },
            Turn::Assistant(content) => Message { role: "assistant", content },
        });
        let no = |field: &str| form.has(field).then_some(false);
        let body = Body {
            model: &self.model,
            messages: std::iter::once(system).chain(turns).collect(),
            stream: false,
            format: format(schema, form.shape).map_err(Refusal::unwritable)?,
            think: no(THINK),
            truncate: no(TRUNCATE),
            shift: no(SHIFT),
            options: Options {
                temperature: form.temperature(*temperature),
                seed: form.seed_as("seed", *seed),
                num_predict: form.limit_as("num_predict"),
                num_ctx,
            },
        };
        serde_json::to_string(&body).map_err(Refusal::unwritable)
    }

    fn read(&self, reply: &Reply, request: &ChatRequest, form: &Form) -> Result<Completion, Refusal> {
        let sent = self.sent(request);
        let completion = reply::read(reply, &sent, form.limit())?;
        self.room.answered(sent.prompt, answer_tokens(request, form));
        Ok(completion)
    }

    fn look_up(&self) -> LookUp {
        let body = serde_json::json!({ "model": self.model }).to_string();
        LookUp { url: self.description.clone(), body: Some(body) }
    }

    fn facts(&self, reply: &Reply) -> Result<Facts, Refusal> {
        let description = envelope::json(&reply.body).unwrap_or_default();
        if !reply.is_success() {
            let has_no_such_call = matches!(reply.status, 404 | 405 | 501) && description["error"].is_null();
            return if has_no_such_call { Ok(Facts::default()) } else { Err(Refusal::of(reply)) };
        }
        if let Some(abilities) = description["capabilities"].as_array()
            && !abilities.is_empty()
            && !abilities.iter().any(|ability| ability == "completion")
        {
            let abilities: Vec<&str> = abilities.iter().filter_map(Value::as_str).collect();
            let detail = format!("the model `{}` cannot chat; what it can: {}", self.model, abilities.join(", "));
            return Err(Refusal::without_reply(ProviderFault::Other, detail, false));
        }
        if let Some(tokens) = window_of(&description["model_info"]) {
            self.room.learn(tokens);
        }
        Ok(Facts { window: self.room.bound() })
    }
}

/// The window that the model was made for: a field that begins with the name of its architecture.
fn window_of(model_info: &Value) -> Option<u32> {
    const FIELD: &str = "context_length";
    let architecture = model_info["general.architecture"].as_str().unwrap_or_default();
    let tokens = model_info[format!("{architecture}.{FIELD}")].as_u64().or_else(|| {
        let is_it = |name: &str| name.rsplit('.').next() == Some(FIELD);
        model_info.as_object()?.iter().find(|(name, _)| is_it(name))?.1.as_u64()
    });
    tokens.and_then(|tokens| u32::try_from(tokens).ok()).filter(|tokens| *tokens > 0)
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<Message<'a>>,
    /// Its default is a stream.
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<Format<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    think: Option<bool>,
    /// May the prompt be cut to fit the window? Unknown to versions before 0.12, which pass over it and cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    truncate: Option<bool>,
    /// May the prompt's beginning be forgotten while the answer is written?
    #[serde(skip_serializing_if = "Option::is_none")]
    shift: Option<bool>,
    options: Options,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: &'a str,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Format<'a> {
    Schema(&'a RawValue),
    Any(&'static str),
}

#[derive(Serialize)]
struct Options {
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    num_predict: Option<u32>,
    num_ctx: u32,
}

fn format(schema: &AnswerSchema, shape: Shape) -> Result<Option<Format<'_>>, serde_json::Error> {
    Ok(match shape {
        Shape::Schema => Some(Format::Schema(serde_json::from_str(schema.json)?)),
        Shape::Object => Some(Format::Any("json")),
        Shape::OldSchema | Shape::Tool | Shape::Plain => None,
    })
}
