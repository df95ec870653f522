//! Chat completions: OpenAI, and the many servers that speak its format.
//!
//! Servers differ in which fields they take. What one refuses is changed and sent again at once, and remembered for
//! its base URL and model in [`OpenAi`] (see `dialect`).

mod completion;
mod dialect;
#[cfg(test)]
mod tests;

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use futures_util::future::BoxFuture;
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderMap};
use serde::Serialize;
use serde_json::value::RawValue;

use self::completion::Completion;
use self::dialect::{Dialect, LimitField, SeedField, Shape};
use super::refusal::{Refusal, Reply};
use super::secret::Secret;
use super::transport::{CallPolicy, Post, Transport, without_credentials};
use super::{
    AnswerSchema, ChatModel, ChatReply, ChatRequest, Ending, ProviderError, ProviderFault, SetupError, Tokens, Turn,
};

/// Where and how an OpenAI-compatible backend is asked.
#[derive(Debug, Clone)]
pub struct OpenAiConfig {
    /// `https://api.openai.com/v1` or another server's: with or without `/v1`, a trailing slash, a prefix of its own, a
    /// query, `user:password@`, or the whole address of its chat completions.
    pub base_url: String,
    /// Sent as `Authorization: Bearer`; a local server needs none.
    pub api_key: Option<Secret>,
    /// The model's name.
    pub model: String,
    /// How long and how often it is tried.
    pub calls: CallPolicy,
}

/// A model behind a server that speaks the OpenAI format.
#[derive(Debug)]
pub struct OpenAi {
    endpoint: Url,
    headers: HeaderMap,
    model: String,
    transport: Transport,
    dialect: Mutex<Dialect>,
}

/// More changes of one request than its fields have steps would be a loop.
const MOST_CHANGES: usize = 8;

impl OpenAi {
    /// Prepares the backend; sends nothing.
    ///
    /// # Errors
    ///
    /// [`SetupError`] when the base URL is none for HTTP, when it holds a password and there is a key as well, or when
    /// no HTTP client can be built.
    pub fn new(config: OpenAiConfig) -> Result<Self, SetupError> {
        let base = parse_base(&config.base_url)?;
        let password = base.password().map(Secret::new).transpose();
        let (base, basic) = without_credentials(base)?;
        let mut secrets: Vec<Secret> = password.ok().flatten().into_iter().collect();
        let mut headers = HeaderMap::new();
        match (basic, config.api_key) {
            (Some(_), Some(_)) => {
                return Err(SetupError::BaseUrl(
                    "holds a user name or password although there is an API key; only one of them can be sent"
                        .to_owned(),
                ));
            }
            (Some(basic), None) => {
                let token = basic.to_str().ok().and_then(|text| text.split(' ').nth(1));
                secrets.extend(token.and_then(|token| Secret::new(token).ok()));
                headers.insert(AUTHORIZATION, basic);
            }
            (None, Some(key)) => {
                headers.insert(AUTHORIZATION, key.header("Bearer ")?);
                secrets.push(key);
            }
            (None, None) => {}
        }
        Ok(Self {
            endpoint: endpoint(base),
            headers,
            model: config.model,
            transport: Transport::new(config.calls, secrets)?,
            dialect: Mutex::default(),
        })
    }

    async fn complete(&self, request: &ChatRequest, deadline: Instant) -> Result<ChatReply, ProviderError> {
        let mut dialect = *self.dialect.lock().unwrap_or_else(PoisonError::into_inner);
        let mut effort = self.transport.effort(deadline);
        let mut changes_left = MOST_CHANGES;
        // What this question leaves of the model's window, where the backend counts our limit against it. Unlike the
        // dialect it is true for this question alone.
        let mut room = None;
        loop {
            let limit = dialect.output_limit(request.output_limit.min(room.unwrap_or(u32::MAX)));
            let body = body(request, &self.model, dialect, limit)?.into();
            let post = Post { url: &self.endpoint, headers: &self.headers, body };
            let may_change = changes_left > 0;
            let heard = effort.send(&post, |reply| hear(reply, limit, dialect, may_change)).await?;
            match heard {
                Heard::Change(next) => {
                    tracing::debug!(from = ?dialect, to = ?next, "the backend refused a field and is asked without it");
                    dialect = next;
                    changes_left -= 1;
                }
                Heard::Room(tokens) => {
                    tracing::debug!(tokens, "the answer's limit is lowered to what the window leaves");
                    room = Some(tokens);
                    changes_left -= 1;
                }
                Heard::Completion(completion) => {
                    self.remember(dialect);
                    return Ok(ChatReply {
                        text: completion.text,
                        reasoning: completion.reasoning,
                        ending: match completion.ending {
                            Ending::Refused(words) => Ending::Refused(self.transport.clean(&words)),
                            Ending::Filtered(words) => Ending::Filtered(self.transport.clean(&words)),
                            ending @ (Ending::Whole | Ending::Truncated) => ending,
                        },
                        model: completion.model.map(|name| self.transport.clean(&name)),
                        tokens: if effort.is_uncounted() { Tokens::default() } else { completion.tokens },
                        calls: effort.calls(),
                        output_limit: limit,
                        downgraded: dialect.downgraded(),
                    });
                }
            }
        }
    }

    /// Only what led to an answer is kept: a change that did not help was no lesson.
    fn remember(&self, learnt: Dialect) {
        let mut dialect = self.dialect.lock().unwrap_or_else(PoisonError::into_inner);
        *dialect = dialect.merged(learnt);
    }
}

impl ChatModel for OpenAi {
    fn provider(&self) -> &'static str {
        "openai"
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn ask<'a>(
        &'a self,
        request: &'a ChatRequest,
        deadline: Instant,
    ) -> BoxFuture<'a, Result<ChatReply, ProviderError>> {
        Box::pin(self.complete(request, deadline))
    }
}

enum Heard {
    Completion(Completion),
    Change(Dialect),
    /// The prompt fits, and this many tokens are left for the answer.
    Room(u32),
}

fn hear(reply: &Reply, sent_limit: Option<u32>, dialect: Dialect, may_change: bool) -> Result<Heard, Refusal> {
    let refusal = match completion::read(reply, sent_limit) {
        Ok(completion) => return Ok(Heard::Completion(completion)),
        Err(refusal) => refusal,
    };
    if may_change
        && refusal.fault == ProviderFault::ContextLength
        && let Some(room) = sent_limit.and_then(|sent| dialect::room_for_answer(&refusal.said, sent))
    {
        return Ok(Heard::Room(room));
    }
    let about_the_request = matches!(refusal.status, Some(400 | 422)) && refusal.fault == ProviderFault::Other;
    let next = (may_change && about_the_request).then(|| dialect.after(&refusal.said, sent_limit)).flatten();
    next.map(Heard::Change).ok_or(refusal)
}

/// Says whether a base URL can be used, before anything is built with it.
///
/// # Errors
///
/// [`SetupError::BaseUrl`] in words that do not quote it: it may hold a password.
pub fn check_base_url(text: &str) -> Result<(), SetupError> {
    parse_base(text).map(drop)
}

fn parse_base(text: &str) -> Result<Url, SetupError> {
    // Never quoted in an error: it may hold a password.
    let fault = |what: &str| SetupError::BaseUrl(what.to_owned());
    let url = Url::parse(text.trim())
        .map_err(|error| fault(&format!("is no URL ({error}); it looks like https://host/v1")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(fault("begins neither with http:// nor with https://; it looks like https://host/v1"));
    }
    Ok(url)
}

/// The address of the chat completions below a base URL. Vendors print bases with a version in them (`/v1`,
/// `/api/paas/v4`), so a path is taken as it is and only a bare host gets `/v1`.
fn endpoint(mut url: Url) -> Url {
    const TAIL: [&str; 2] = ["chat", "completions"];
    let path = url.path().to_owned();
    let mut segments: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    if segments.ends_with(&TAIL) {
        segments.truncate(segments.len() - TAIL.len());
    }
    if segments.is_empty() {
        segments.push("v1");
    }
    segments.extend(TAIL);
    url.set_path(&segments.join("/"));
    url.set_fragment(None);
    url
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
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

fn body(request: &ChatRequest, model: &str, dialect: Dialect, limit: Option<u32>) -> Result<String, ProviderError> {
    let ChatRequest { system, turns, schema, output_limit: _, temperature, seed } = request;
    let system = Message { role: "system", content: system };
    let turns = turns.iter().map(|turn| match turn {
        Turn::User(content) => Message { role: "user", content },
        Turn::Assistant(content) => Message { role: "assistant", content },
    });
    let body = Body {
        model,
        messages: std::iter::once(system).chain(turns).collect(),
        stream: false,
        max_tokens: limit.filter(|_| dialect.limit == LimitField::MaxTokens),
        max_completion_tokens: limit.filter(|_| dialect.limit == LimitField::MaxCompletionTokens),
        temperature: (!dialect.without_temperature).then_some(*temperature),
        seed: (dialect.seed == SeedField::Seed).then_some(*seed),
        random_seed: (dialect.seed == SeedField::RandomSeed).then_some(*seed),
        response_format: response_format(schema, dialect.shape).map_err(unwritable)?,
    };
    serde_json::to_string(&body).map_err(unwritable)
}

fn response_format(schema: &AnswerSchema, shape: Shape) -> Result<Option<ResponseFormat<'_>>, serde_json::Error> {
    Ok(match shape {
        Shape::Schema => Some(ResponseFormat::JsonSchema {
            json_schema: NamedSchema { name: schema.name, strict: true, schema: serde_json::from_str(schema.json)? },
        }),
        Shape::Object => Some(ResponseFormat::JsonObject),
        Shape::Plain => None,
    })
}

fn unwritable(error: serde_json::Error) -> ProviderError {
    ProviderError {
        fault: ProviderFault::Other,
        detail: format!("our own request cannot be written as JSON: {error}"),
        retry_after: None,
        calls: 0,
    }
}
