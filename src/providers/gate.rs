//! One gate before a backend for all questions to it: closed while the backend wants to be left alone, and a line, first
//! come first served, while it takes less than it is asked.
//!
//! How much it takes is the business of [`law`]; here is the waiting. Only the first in line watches the clock; it wakes the
//! next when it leaves, whether to call or for good, and every call that ends wakes the first in line. So there is
//! always somebody who looks, and never a crowd. A healthy backend has no line: a call costs it two short locks.
//!
//! Knows nothing of HTTP, of tries or of what is asked.

mod law;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::{Duration, Instant, timeout_at};

use self::law::{Call, End, Law, Look, Refused, Wait};
use super::ProviderFault;
use crate::deadline::Deadline;

/// The gate. Its state is plain data, so a panic elsewhere while it was locked leaves nothing half done.
#[derive(Debug)]
pub(super) struct Gate(Mutex<State>);

#[derive(Debug)]
struct State {
    law: Law,
    /// By ticket, so by age of the question.
    line: BTreeMap<u64, Arc<Notify>>,
    tickets: u64,
}

/// A question's place in the order of all questions, kept from try to try: whoever was refused stands before those who
/// came later.
#[derive(Debug, Default)]
pub(super) struct Ticket(Option<u64>);

/// Leave to send one call. Dropped without a word it counts as a call whose end nobody saw.
#[derive(Debug)]
pub(super) struct Pass<'g> {
    gate: &'g Gate,
    call: Option<Call>,
}

/// Why a caller is not let through.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TurnedAway {
    /// The fault of the backend's last refusal; [`ProviderFault::Deadline`] when it refused nothing.
    pub(super) fault: ProviderFault,
    /// Secrets may be in it.
    pub(super) detail: String,
    /// For how long the gate stays closed.
    pub(super) retry_after: Option<Duration>,
}

impl Gate {
    pub(super) fn new() -> Self {
        Self(Mutex::new(State { law: Law::new(Instant::now()), line: BTreeMap::new(), tickets: 0 }))
    }

    /// Waits until a call may be sent.
    ///
    /// Turned away is who would wait for a closed gate beyond `deadline` (at once), whose `deadline` passes in line, and
    /// who sees `patience` probes refused in a row, all without a named wait: its own would fare no better.
    pub(super) async fn enter(
        &self,
        ticket: &mut Ticket,
        deadline: &Deadline,
        patience: u32,
    ) -> Result<Pass<'_>, TurnedAway> {
        let mut waiting: Option<Waiting<'_>> = None;
        let mut lost_probes = None;
        loop {
            let wake_at = {
                let mut state = self.lock();
                let now = Instant::now();
                // It may have moved while this one waited.
                let deadline = Instant::from_std(deadline.at());
                let ticket = *ticket.0.get_or_insert_with(|| {
                    state.tickets += 1;
                    state.tickets
                });
                let lost = state.law.lost_probes();
                let first_seen: &mut u32 = lost_probes.get_or_insert(lost);
                *first_seen = lost.min(*first_seen);
                let has_seen_enough = lost - *first_seen >= patience.max(1);
                if let Some(away) = state.turned_away(now, deadline, waiting.is_some(), has_seen_enough) {
                    return Err(away);
                }
                let is_first = state.line.first_key_value().is_none_or(|(first, _)| ticket <= *first);
                let look = if is_first { state.law.look(now) } else { Look::AfterACall };
                if look == Look::Go {
                    let call = Some(state.law.send(now));
                    return Ok(Pass { gate: self, call });
                }
                if waiting.is_none() {
                    let bell = Arc::new(Notify::new());
                    state.line.insert(ticket, Arc::clone(&bell));
                    waiting = Some(Waiting { gate: self, ticket, bell });
                }
                match look {
                    Look::At(then) => then.min(deadline),
                    Look::Go | Look::AfterACall => deadline,
                }
            };
            if let Some(Waiting { bell, .. }) = &waiting {
                // Both outcomes mean the same: look again.
                let _ = timeout_at(wake_at, bell.notified()).await;
            }
        }
    }

    /// Is the backend to be left alone at this moment?
    pub(super) fn is_closed(&self) -> bool {
        self.lock().law.closed_until(Instant::now()).is_some()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn turned_away(
        &self,
        now: Instant,
        deadline: Instant,
        has_waited: bool,
        has_seen_enough: bool,
    ) -> Option<TurnedAway> {
        let closed_for = self.law.closed_until(now).map(|until| until - now);
        let Some(last) = self.law.last_refusal().filter(|_| has_waited || now < deadline) else {
            let detail = "the request's deadline passed before the backend could be asked".to_owned();
            return (now >= deadline).then_some(TurnedAway {
                fault: ProviderFault::Deadline,
                detail,
                retry_after: None,
            });
        };
        let why = match closed_for {
            _ if now >= deadline => "the request's deadline passed in the line before the backend".to_owned(),
            Some(wait) if wait >= deadline - now => format!("the backend is left alone for another {wait:.1?}"),
            _ if has_seen_enough => "the requests before this one were refused in a row".to_owned(),
            _ => return None,
        };
        let detail = format!("{why}; its last words: {}", last.detail);
        Some(TurnedAway { fault: last.fault, detail, retry_after: closed_for })
    }

    fn wake_first(&self) {
        if let Some((_, bell)) = self.line.first_key_value() {
            bell.notify_one();
        }
    }
}

impl Pass<'_> {
    /// The gate closed before the call was sent.
    pub(super) fn unsent(mut self) {
        self.end(End::Unsent);
    }

    /// The call brought an answer.
    pub(super) fn done(mut self) {
        self.end(End::Done);
    }

    /// The call failed in a way that says nothing of the backend's willingness.
    pub(super) fn failed(mut self) {
        self.end(End::Failed);
    }

    /// The backend has too much to do, and is not asked again within `wait`, if one is given. `is_named`: by the backend.
    pub(super) fn refused(mut self, fault: ProviderFault, detail: String, wait: Option<Duration>, is_named: bool) {
        let wait = wait.map(|length| {
            // Spread over a tenth, at most a second: other instances wait for the same instant.
            let spread = length.min(Duration::from_secs(10)).mul_f64(0.1 * fastrand::f64());
            Wait { length, spread, is_named }
        });
        self.end(End::Refused(Refused { fault, detail, wait }));
    }

    fn end(&mut self, end: End) {
        let Some(call) = self.call.take() else {
            return;
        };
        let mut state = self.gate.lock();
        let now = Instant::now();
        let is_refused = matches!(end, End::Refused(_));
        if state.law.end(call, end, now) {
            // All of them: for some the wait may have become too long.
            state.line.values().for_each(|bell| bell.notify_one());
        } else {
            state.wake_first();
        }
        if is_refused {
            tracing::debug!(
                places = state.law.places(),
                calls_per_s = state.law.pace(now),
                waiting = state.line.len(),
                "the backend is asked less"
            );
        }
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        self.end(End::Abandoned);
    }
}

/// A place in line, given up when dropped.
#[derive(Debug)]
struct Waiting<'g> {
    gate: &'g Gate,
    ticket: u64,
    bell: Arc<Notify>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut state = self.gate.lock();
        state.line.remove(&self.ticket);
        state.wake_first();
    }
}
