//! One sample at the model: its places to call from, and what it has cost so far.
//!
//! A sample waits in the queue once. From then on one place is its own, and it takes further ones only where nobody
//! waits for them, so that every call in flight has a place, none waits for a place while it holds another, and what
//! was begun and paid for is never sent back to the end of the queue.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::deadline::Deadline;
use crate::providers::{ChatModel, ChatReply, ChatRequest, ProviderError, ProviderFault, Tokens};
use crate::recall::judge::{JudgeError, JudgeFault, Usage};
use crate::slots::{Full, Slot, Slots};

/// A model, and the places from which it is called.
#[derive(Clone)]
pub(super) struct Desk {
    pub(super) model: Arc<dyn ChatModel>,
    pub(super) slots: Slots,
}

/// What all calls for one sample share.
pub(super) struct Session<'a> {
    model: &'a dyn ChatModel,
    slots: &'a Slots,
    deadline: Deadline,
    _own: Slot,
    own_is_free: Semaphore,
    spent: Mutex<Usage>,
}

impl Desk {
    /// Waits for a place.
    pub(super) async fn session(&self, deadline: Deadline) -> Result<Session<'_>, JudgeError> {
        let own = self.slots.enter(&deadline).await.map_err(overloaded)?;
        Ok(Session {
            model: self.model.as_ref(),
            slots: &self.slots,
            deadline,
            _own: own,
            own_is_free: Semaphore::new(1),
            spent: Mutex::new(Usage::NOTHING),
        })
    }
}

impl Session<'_> {
    /// Asks the model once a place is there; only then is the request written, since many may be waiting. What it cost is
    /// noted, also when nobody waits for the reply any longer.
    pub(super) async fn ask(&self, request: impl FnOnce() -> ChatRequest) -> Result<ChatReply, ProviderError> {
        let _place = self.place().await;
        let request = request();
        let bill = Bill { session: self, amount: ABANDONED };
        let outcome = self.model.ask(&request, self.deadline.clone()).await;
        bill.settle(match &outcome {
            Ok(reply) => cost(reply.calls, reply.tokens),
            Err(error) => cost_of_failure(error),
        });
        outcome
    }

    /// The model's window in tokens, where the backend has reported one.
    pub(super) fn window(&self) -> Option<u32> {
        self.model.window()
    }

    /// What all calls so far have cost.
    pub(super) fn spent(&self) -> Usage {
        *self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn place(&self) -> Place<'_> {
        if let Ok(own) = self.own_is_free.try_acquire() {
            return Place::Own(Some(own));
        }
        if let Some(slot) = self.slots.try_enter() {
            return Place::Further(slot);
        }
        // Never closed, and given back by calls that end by the deadline.
        Place::Own(self.own_is_free.acquire().await.ok())
    }
}

/// A place for one call, given back when dropped.
enum Place<'a> {
    Own(#[expect(dead_code, reason = "held, not read")] Option<SemaphorePermit<'a>>),
    Further(#[expect(dead_code, reason = "held, not read")] Slot),
}

/// A call whose reply nobody waited for: it may have been sent and billed, and nobody knows for how much.
const ABANDONED: Usage = Usage {
    judge_calls: 1,
    input_tokens: None,
    cached_input_tokens: None,
    output_tokens: None,
    reasoning_tokens: None,
};

/// Adds to the session's cost when it is dropped.
struct Bill<'a> {
    session: &'a Session<'a>,
    amount: Usage,
}

impl Bill<'_> {
    fn settle(mut self, amount: Usage) {
        self.amount = amount;
    }
}

impl Drop for Bill<'_> {
    fn drop(&mut self) {
        let mut spent = self.session.spent.lock().unwrap_or_else(PoisonError::into_inner);
        *spent = spent.plus(self.amount);
    }
}

fn cost(calls: u64, tokens: Tokens) -> Usage {
    Usage {
        judge_calls: calls,
        input_tokens: tokens.input,
        cached_input_tokens: tokens.cached_input,
        output_tokens: tokens.output,
        reasoning_tokens: tokens.reasoning,
    }
}

/// A call that was refused at the door cost no tokens. What others cost, and the tries before it, nobody reported.
fn cost_of_failure(error: &ProviderError) -> Usage {
    use ProviderFault::{Auth, ContextLength, Overloaded, RateLimited};
    let refused = matches!(error.fault, Auth | ContextLength | Overloaded | RateLimited);
    match error.calls {
        0 => Usage::NOTHING,
        1 if refused => Usage { judge_calls: 1, ..Usage::NOTHING },
        calls => Usage { judge_calls: calls, ..ABANDONED },
    }
}

fn overloaded(full: Full) -> JudgeError {
    JudgeError { retry_after: Some(full.retry_after), ..JudgeError::new(JudgeFault::Overloaded, full.detail) }
}
