//! Google's Gemini, by its own `generateContent`.

mod content;
mod schema;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::backend::{Access, Backend, Completion, Facts, LookUp, Wire};
use super::base_url::{BaseUrl, step_below, strip_tail};
use super::dialect::{Form, Shape, Vocabulary};
use super::refusal::{Refusal, Reply};
use super::secret::Secret;
use super::transport::CallPolicy;
use super::{AnswerSchema, ChatModel, ChatRequest, ProviderFault, SetupError, Turn};

/// Where Google itself is asked.
pub const PUBLIC_URL: &str = "https://generativelanguage.googleapis.com";

/// Where and how Gemini is asked.
#[derive(Debug, Clone)]
pub struct GeminiConfig {
    /// [`PUBLIC_URL`] or another server's: with or without `/v1beta`, a trailing slash, a prefix, a query,
    /// `user:password@`, or the whole address of a model's `generateContent`. `/v1` counts as `/v1beta`: it knows neither
    /// system instructions nor schemas.
    pub base_url: String,
    /// Sent as `x-goog-api-key`; a gateway may need none.
    pub api_key: Option<Secret>,
    /// The model's name, with or without `models/` before it; or `tunedModels/NAME`.
    pub model: String,
}

impl GeminiConfig {
    /// Prepares the backend; sends nothing.
    ///
    /// # Errors
    ///
    /// [`SetupError`] when the base URL is none for HTTP or holds a key, or when no HTTP client can be built.
    pub fn connect(self, calls: CallPolicy) -> Result<Arc<dyn ChatModel>, SetupError> {
        Ok(Arc::new(self.backend(calls)?))
    }

    fn backend(self, calls: CallPolicy) -> Result<Backend<GenerateContent>, SetupError> {
        let base = parse_base(&self.base_url)?;
        let (about, endpoint) = (below(&base, &self.model, ""), below(&base, &self.model, ":generateContent"));
        let mut secrets = base.secrets;
        let mut headers = HeaderMap::new();
        // The key has a header of its own, so a password for a gateway on the way can go beside it.
        headers.extend(base.basic.map(|basic| (AUTHORIZATION, basic)));
        if let Some(key) = self.api_key {
            headers.insert(HeaderName::from_static("x-goog-api-key"), key.header("")?);
            secrets.push(key);
        }
        let wire = GenerateContent { model: self.model.clone(), about };
        Backend::new(wire, Access { endpoint, headers, secrets, model: self.model, calls })
    }
}

/// Says whether a base URL can be used, before anything is built with it.
///
/// # Errors
///
/// [`SetupError::BaseUrl`] in words that do not quote it: it may hold a key or a password.
pub fn check_base_url(text: &str) -> Result<(), SetupError> {
    parse_base(text).map(drop)
}

fn parse_base(text: &str) -> Result<BaseUrl, SetupError> {
    let base = BaseUrl::parse(text, "https://host")?;
    if base.has_in_query("key") {
        // Google takes a key there too, and so it gets into the logs of everything on the way.
        return Err(SetupError::BaseUrl("holds a key in its query; give the key as GEMINI_API_KEY instead".to_owned()));
    }
    Ok(base)
}

/// The address of a model below a base URL.
fn below(base: &BaseUrl, model: &str, method: &str) -> Url {
    let model = model.trim_matches('/');
    let (kind, name) = match model.split_once('/') {
        Some(("models", name)) => ("models", name),
        Some(("tunedModels", name)) => ("tunedModels", name),
        _ => ("models", model),
    };
    let models = base.with_path(|steps| {
        if let Some(at) = steps.iter().rposition(|step| matches!(*step, "models" | "tunedModels"))
            && at + 2 >= steps.len()
        {
            steps.truncate(at);
        }
        // Pasted from where Google explains its imitation of OpenAI's format.
        if steps.ends_with(&["v1beta", "openai"]) {
            steps.pop();
        }
        strip_tail(steps, &["v1"]);
        if !matches!(steps.last(), Some(&("v1beta" | "v1alpha"))) {
            steps.push("v1beta");
        }
        steps.push(kind);
    });
    step_below(models, &format!("{name}{method}"))
}

/// Gemini's wire format.
#[derive(Debug)]
struct GenerateContent {
    model: String,
    /// Where the backend tells of this model.
    about: Url,
}

/// The field for the system text, as it is sent and as refusals call it. Some models take none (Gemma is one); they are
/// told the same at the head of the first turn.
const APART: [&str; 2] = ["systemInstruction", "Developer instruction"];

impl Wire for GenerateContent {
    const VOCABULARY: Vocabulary = Vocabulary {
        // Models before 2.0 know a schema by its older name and in OpenAPI's words, the oldest know none.
        shapes: &[Shape::Schema, Shape::OldSchema, Shape::Object, Shape::Plain],
        shape_words: &[
            "responsejsonschema",
            "response_json_schema",
            "responseschema",
            "response_schema",
            "responsemimetype",
            "response_mime_type",
            "response mime type",
            "json mode",
            "structured output",
        ],
        limits: &["maxOutputTokens"],
        needs_limit: false,
        seeds: &["seed"],
        temperatures: &["temperature"],
        extras: &APART,
    };

    fn provider(&self) -> &'static str {
        "gemini"
    }

    fn body(&self, request: &ChatRequest, form: &Form) -> Result<String, Refusal> {
        let ChatRequest { system, turns, schema, output_limit: _, temperature, seed } = request;
        let AnswerSchema { name: _, json } = schema;
        let apart = APART.iter().all(|name| form.has(name));
        let mut contents: Vec<Content<'_>> = turns
            .iter()
            .map(|turn| match turn {
                Turn::User(text) => Content { role: Some("user"), parts: vec![Part { text }] },
                Turn::Assistant(text) => Content { role: Some("model"), parts: vec![Part { text }] },
            })
            .collect();
        if let (false, Some(first)) = (apart, contents.first_mut()) {
            first.parts.insert(0, Part { text: system });
        }
        let (json_schema, old_schema): (Option<&RawValue>, Option<Value>) = match form.shape {
            Shape::Schema => (Some(serde_json::from_str(json).map_err(Refusal::unwritable)?), None),
            Shape::OldSchema => {
                let schema = serde_json::from_str(json).map_err(Refusal::unwritable)?;
                (None, Some(schema::in_openapi_words(&schema)))
            }
            Shape::Tool | Shape::Object | Shape::Plain => (None, None),
        };
        let is_json = matches!(form.shape, Shape::Schema | Shape::OldSchema | Shape::Object);
        let body = Body {
            system_instruction: apart.then(|| Content { role: None, parts: vec![Part { text: system }] }),
            contents,
            generation_config: GenerationConfig {
                temperature: form.temperature(*temperature),
                max_output_tokens: form.limit_as("maxOutputTokens"),
                seed: form.seed_as("seed", *seed),
                response_mime_type: is_json.then_some("application/json"),
                response_json_schema: json_schema,
                response_schema: old_schema,
            },
        };
        serde_json::to_string(&body).map_err(Refusal::unwritable)
    }

    fn read(&self, reply: &Reply, _: &ChatRequest, form: &Form) -> Result<Completion, Refusal> {
        content::read(reply, form.limit())
    }

    fn look_up(&self) -> LookUp {
        LookUp { url: self.about.clone(), body: None }
    }

    fn facts(&self, reply: &Reply) -> Result<Facts, Refusal> {
        let Some(model) = reply.described_model()? else {
            return Ok(Facts::default());
        };
        let methods = model["supportedGenerationMethods"].as_array().map(Vec::as_slice).unwrap_or_default();
        if !methods.is_empty() && !methods.iter().any(|method| method == "generateContent") {
            let detail = format!("the backend's model `{}` does not generate text", self.model);
            return Err(Refusal::without_reply(ProviderFault::Other, detail, false));
        }
        // Prompt and answer have a limit each here. The prompt's is the one that a question can be too long for.
        Ok(Facts { window: model["inputTokenLimit"].as_u64().and_then(|tokens| u32::try_from(tokens).ok()) })
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<Content<'a>>,
    contents: Vec<Content<'a>>,
    generation_config: GenerationConfig<'a>,
}

#[derive(Serialize)]
struct Content<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    parts: Vec<Part<'a>>,
}

#[derive(Serialize)]
struct Part<'a> {
    text: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GenerationConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_mime_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_json_schema: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_schema: Option<Value>,
}
