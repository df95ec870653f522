//! Anthropic's Messages, and the servers and gateways that speak its format.

mod message;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use serde::Serialize;
use serde_json::value::RawValue;

use super::backend::{Access, Backend, Completion, Facts, LookUp, Wire};
use super::base_url::{BaseUrl, step_below, strip_tail};
use super::dialect::{Form, Shape, Vocabulary};
use super::refusal::{Refusal, Reply};
use super::secret::Secret;
use super::transport::CallPolicy;
use super::{AnswerSchema, ChatModel, ChatRequest, ProviderFault, SetupError, Turn};

/// Where Anthropic itself is asked.
pub const PUBLIC_URL: &str = "https://api.anthropic.com";

/// Where and how Anthropic, or a server that speaks its format, is asked.
#[derive(Debug, Clone)]
pub struct AnthropicConfig {
    /// [`PUBLIC_URL`] or another server's. By the vendor's custom without `/v1`; with it, a trailing slash, a prefix, a
    /// query, `user:password@`, or the whole address of its messages as well.
    pub base_url: String,
    /// Sent as `x-api-key`; a local server needs none.
    pub api_key: Option<Secret>,
    /// The model's name.
    pub model: String,
}

impl AnthropicConfig {
    /// Prepares the backend; sends nothing.
    ///
    /// # Errors
    ///
    /// [`SetupError`] when the base URL is none for HTTP, or when no HTTP client can be built.
    pub fn connect(self, calls: CallPolicy) -> Result<Arc<dyn ChatModel>, SetupError> {
        Ok(Arc::new(self.backend(calls)?))
    }

    fn backend(self, calls: CallPolicy) -> Result<Backend<Messages>, SetupError> {
        let base = parse_base(&self.base_url)?;
        let endpoint = below(&base, "messages");
        let about = step_below(below(&base, "models"), &self.model);
        let mut headers = HeaderMap::new();
        headers.insert(HeaderName::from_static("anthropic-version"), HeaderValue::from_static(VERSION));
        let mut secrets = base.secrets;
        // The key has a header of its own, so a password for a gateway on the way can go beside it.
        headers.extend(base.basic.map(|basic| (AUTHORIZATION, basic)));
        if let Some(key) = self.api_key {
            headers.insert(HeaderName::from_static("x-api-key"), key.header("")?);
            secrets.push(key);
        }
        let wire = Messages { model: self.model.clone(), about };
        Backend::new(wire, Access { endpoint, headers, secrets, model: self.model, calls })
    }
}

/// The version of the format that is spoken here; Anthropic refuses requests without one.
const VERSION: &str = "2023-06-01";

/// Says whether a base URL can be used, before anything is built with it.
///
/// # Errors
///
/// [`SetupError::BaseUrl`] in words that do not quote it: it may hold a password.
pub fn check_base_url(text: &str) -> Result<(), SetupError> {
    parse_base(text).map(drop)
}

fn parse_base(text: &str) -> Result<BaseUrl, SetupError> {
    BaseUrl::parse(text, "https://host")
}

/// An address below a base URL, which ends before the `/v1` or after it.
fn below(base: &BaseUrl, what: &'static str) -> Url {
    base.with_path(|steps| {
        strip_tail(steps, &["messages"]);
        strip_tail(steps, &["v1"]);
        steps.extend(["v1", what]);
    })
}

/// Anthropic's wire format.
#[derive(Debug)]
struct Messages {
    model: String,
    /// Where the backend tells of this model.
    about: Url,
}

impl Wire for Messages {
    const VOCABULARY: Vocabulary = Vocabulary {
        // Older models know no schema for the answer but take one for a tool; models that always think refuse to be
        // forced to a tool.
        shapes: &[Shape::Schema, Shape::Tool, Shape::Plain],
        shape_words: &[
            "output_config",
            "output_format",
            "output format",
            "json_schema",
            "structured output",
            "input_schema",
            "tool_choice",
            "tool use",
            "tools",
        ],
        limits: &["max_tokens"],
        needs_limit: true,
        seeds: &[],
        temperatures: &["temperature"],
        extras: &[],
    };

    fn provider(&self) -> &'static str {
        "anthropic"
    }

    fn body(&self, request: &ChatRequest, form: &Form) -> Result<String, Refusal> {
        let ChatRequest { system, turns, schema, output_limit: _, temperature, seed: _ } = request;
        let AnswerSchema { name, json } = schema;
        let schema: &RawValue = serde_json::from_str(json).map_err(Refusal::unwritable)?;
        let by_tool = form.shape == Shape::Tool;
        let body = Body {
            model: &self.model,
            max_tokens: form.limit(),
            // Not marked for caching: what is shorter than 1024 tokens the vendor never caches, and the mark would
            // have to stand here, since everything after it changes from call to call.
            system,
            messages: turns
                .iter()
                .map(|turn| match turn {
                    Turn::User(content) => Message { role: "user", content },
                    Turn::Assistant(content) => Message { role: "assistant", content },
                })
                .collect(),
            temperature: form.temperature(*temperature),
            output_config: (form.shape == Shape::Schema)
                .then_some(OutputConfig { format: OutputFormat { kind: "json_schema", schema } }),
            tools: by_tool.then_some([Tool { name, description: TOOL, input_schema: schema }]),
            tool_choice: by_tool.then_some(ToolChoice { kind: "tool", name, disable_parallel_tool_use: true }),
        };
        serde_json::to_string(&body).map_err(Refusal::unwritable)
    }

    fn read(&self, reply: &Reply, _: &ChatRequest, form: &Form) -> Result<Completion, Refusal> {
        message::read(reply, form.limit())
    }

    fn look_up(&self) -> LookUp {
        LookUp { url: self.about.clone(), body: None }
    }

    fn facts(&self, reply: &Reply) -> Result<Facts, Refusal> {
        let Some(model) = reply.described_model()? else {
            return Ok(Facts::default());
        };
        if model["lifecycle"].as_str() == Some("retired") {
            let detail = format!("the backend says that the model `{}` is retired", self.model);
            return Err(Refusal::without_reply(ProviderFault::Other, detail, false));
        }
        Ok(Facts { window: model["max_input_tokens"].as_u64().and_then(|tokens| u32::try_from(tokens).ok()) })
    }
}

/// What the model is told of the tool that stands for an answer.
const TOOL: &str = "Takes the answer.";

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    system: &'a str,
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<[Tool<'a>; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<ToolChoice<'a>>,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: &'a str,
}

#[derive(Serialize)]
struct OutputConfig<'a> {
    format: OutputFormat<'a>,
}

#[derive(Serialize)]
struct OutputFormat<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    schema: &'a RawValue,
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'static str,
    input_schema: &'a RawValue,
}

#[derive(Serialize)]
struct ToolChoice<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'a str,
    disable_parallel_tool_use: bool,
}
