//! A model behind any wire format: asked, adapted to, and looked up.
//!
//! A vendor's file gives a [`Wire`]: what it calls the fields of a request and how its replies read. What is the same
//! for all stands here once: sending by way of the transport, changing a request that the backend refuses for one of
//! its fields, and remembering what it took.

use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Instant;

use futures_util::future::BoxFuture;
use reqwest::Url;
use reqwest::header::HeaderMap;

use super::dialect::{Dialect, Form, Vocabulary};
use super::refusal::{Refusal, Reply};
use super::secret::Secret;
use super::transport::{CallPolicy, Post, Transport};
use super::{ChatModel, ChatReply, ChatRequest, Ending, ProviderError, ProviderFault, SetupError, Tokens, window};
use crate::deadline::Deadline;

/// One vendor's wire format.
pub(super) trait Wire: Send + Sync + 'static {
    /// What this vendor calls the fields of a request that it may refuse.
    const VOCABULARY: Vocabulary;

    /// The provider's name, as in `--judge NAME/MODEL`.
    fn provider(&self) -> &'static str;

    /// The request's body, in this form.
    ///
    /// # Errors
    ///
    /// A refusal of our own, for a question that the backend is known not to take.
    fn body(&self, request: &ChatRequest, form: &Form) -> Result<String, Refusal>;

    /// Reads the reply to a request that was sent in this form.
    fn read(&self, reply: &Reply, request: &ChatRequest, form: &Form) -> Result<Completion, Refusal>;

    /// The call that tells for free what the backend knows of its model.
    fn look_up(&self) -> LookUp;

    /// Reads the reply to that call. A refusal means that the model cannot be used; a backend that has no such call, or
    /// says nothing of the model, has not said that.
    fn facts(&self, reply: &Reply) -> Result<Facts, Refusal>;
}

/// What a reply says; [`ChatReply`] adds what it took to get it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Completion {
    pub(super) text: String,
    pub(super) reasoning: Option<String>,
    pub(super) ending: Ending,
    pub(super) model: Option<String>,
    pub(super) tokens: Tokens,
}

/// A call that costs nothing.
#[derive(Debug, Clone)]
pub(super) struct LookUp {
    pub(super) url: Url,
    /// JSON to post; without it the call is a GET.
    pub(super) body: Option<String>,
}

/// What a backend says of its model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Facts {
    /// Its window in tokens, prompt and answer together.
    pub(super) window: Option<u32>,
}

/// Where a backend is, and what is sent with every call.
#[derive(Debug)]
pub(super) struct Access {
    pub(super) endpoint: Url,
    pub(super) headers: HeaderMap,
    /// Taken out of everything that is said of this backend.
    pub(super) secrets: Vec<Secret>,
    /// The model's name.
    pub(super) model: String,
    /// How long and how often it is tried.
    pub(super) calls: CallPolicy,
}

/// A model behind a backend that speaks the format `W`.
#[derive(Debug)]
pub(super) struct Backend<W> {
    wire: W,
    endpoint: Url,
    headers: HeaderMap,
    model: String,
    transport: Transport,
    dialect: Mutex<Dialect>,
    window: OnceLock<u32>,
}

/// More changes of one request than its fields have steps would be a loop.
const MOST_CHANGES: usize = 8;

impl<W: Wire> Backend<W> {
    /// Prepares the backend; sends nothing.
    ///
    /// # Errors
    ///
    /// [`SetupError::Client`] when no HTTP client can be built.
    pub(super) fn new(wire: W, access: Access) -> Result<Self, SetupError> {
        let Access { endpoint, headers, secrets, model, calls } = access;
        let transport = Transport::new(calls, secrets)?;
        Ok(Self { wire, endpoint, headers, model, transport, dialect: Mutex::default(), window: OnceLock::new() })
    }

    async fn complete(&self, request: &ChatRequest, deadline: Deadline) -> Result<ChatReply, ProviderError> {
        let mut dialect = *self.dialect.lock().unwrap_or_else(PoisonError::into_inner);
        let mut effort = self.transport.effort(deadline);
        let mut changes_left = MOST_CHANGES;
        // What this question leaves of the model's window, where the backend counts our limit against it. Unlike the
        // dialect it is true for this question alone.
        let mut room = None;
        loop {
            let form = dialect.form(&W::VOCABULARY, request.output_limit.min(room.unwrap_or(u32::MAX)));
            let body = self.wire.body(request, &form).map_err(|refusal| effort.refuse(refusal))?.into();
            let post = Post { url: &self.endpoint, headers: &self.headers, body };
            let may_change = changes_left > 0;
            let hear = |reply: &Reply| self.hear(reply, request, &form, dialect, may_change);
            match effort.send(&post, hear).await? {
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
                        output_limit: form.limit(),
                        downgraded: form.shape.downgraded(),
                    });
                }
            }
        }
    }

    fn hear(
        &self,
        reply: &Reply,
        request: &ChatRequest,
        form: &Form,
        dialect: Dialect,
        may_change: bool,
    ) -> Result<Heard, Refusal> {
        let refusal = match self.wire.read(reply, request, form) {
            Ok(completion) => return Ok(Heard::Completion(completion)),
            Err(refusal) => refusal,
        };
        if may_change
            && refusal.fault == ProviderFault::ContextLength
            && let Some(room) = form.limit().and_then(|sent| window::room_for_answer(&refusal.said, sent))
        {
            return Ok(Heard::Room(room));
        }
        let about_the_request = matches!(refusal.status, Some(400 | 422)) && refusal.fault == ProviderFault::Other;
        let next = (may_change && about_the_request).then(|| dialect.after(&W::VOCABULARY, &refusal.said, form));
        next.flatten().map(Heard::Change).ok_or(refusal)
    }

    /// Only what led to an answer is kept: a change that did not help was no lesson.
    fn remember(&self, learnt: Dialect) {
        let mut dialect = self.dialect.lock().unwrap_or_else(PoisonError::into_inner);
        *dialect = dialect.merged(learnt);
    }

    async fn facts(&self, deadline: Instant) -> Result<(), ProviderError> {
        let LookUp { url, body } = self.wire.look_up();
        let read = |reply: &Reply| self.wire.facts(reply);
        let facts = self.transport.look_up(&url, &self.headers, body, deadline.into(), read).await?;
        if let Some(window) = facts.window {
            // A backend that changes its window under the same name is restarted, and so is what is learnt of it.
            let _ = self.window.set(window);
        }
        Ok(())
    }

    #[cfg(test)]
    pub(super) fn learnt(&self) -> Dialect {
        *self.dialect.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<W: Wire> ChatModel for Backend<W> {
    fn provider(&self) -> &'static str {
        self.wire.provider()
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn address(&self) -> &str {
        self.endpoint.as_str()
    }

    fn window(&self) -> Option<u32> {
        self.window.get().copied()
    }

    fn look_up(&self, deadline: Instant) -> BoxFuture<'_, Result<(), ProviderError>> {
        Box::pin(self.facts(deadline))
    }

    fn ask<'a>(
        &'a self,
        request: &'a ChatRequest,
        deadline: Deadline,
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
