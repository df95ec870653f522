//! Who is asked, and that nobody is asked twice: a question is answered from memory, together with an equal one that is
//! being asked, or anew.
//!
//! Knows the ports alone, neither models nor stores.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use super::Units;
use super::judge::{Cut, Judge, JudgeError, JudgeFault, Judgement, Question, Splitter, Usage, Votes};
use super::memory::entry::{Remembered, Unreadable};
use super::memory::{Key, Memory, Reuse};
use crate::deadline::Deadline;
use crate::flights::{Flights, Overtaken};

/// The judge, who cuts for it, and what is remembered of both.
pub struct Panel {
    judge: Arc<dyn Judge>,
    splitter: Option<Arc<dyn Splitter>>,
    memory: Arc<Remembrance>,
    verdicts: Flights<Key, Arc<Settled<Judgement>>>,
    cuts: Flights<Key, Arc<Settled<Cut>>>,
}

/// An answer, and where it came from.
#[derive(Debug, Clone)]
pub struct Told<T> {
    /// The answer. Its usage is what this caller has to account for: what several wait for is on one bill only.
    pub answer: T,
    /// Was it remembered?
    pub cached: bool,
}

type Asking<T> = BoxFuture<'static, Result<T, JudgeError>>;

impl Panel {
    /// A panel that remembers in `memory`. `splitter` is `None` where there is no model to cut with.
    #[must_use]
    pub fn new(judge: Arc<dyn Judge>, splitter: Option<Arc<dyn Splitter>>, memory: Arc<dyn Memory>) -> Self {
        let memory = Arc::new(Remembrance { memory, has_warned: AtomicBool::new(false) });
        Self { judge, splitter, memory, verdicts: Flights::default(), cuts: Flights::default() }
    }

    /// Who decides.
    #[must_use]
    pub fn judge(&self) -> &dyn Judge {
        self.judge.as_ref()
    }

    /// Who cuts references into atomic claims, where anybody can.
    #[must_use]
    pub fn splitter(&self) -> Option<&Arc<dyn Splitter>> {
        self.splitter.as_ref()
    }

    /// Where it is remembered.
    #[must_use]
    pub fn memory(&self) -> &dyn Memory {
        self.memory.memory.as_ref()
    }

    /// Has every claim of `question` decided. A judge without settings to remember it by is asked every time.
    ///
    /// # Errors
    ///
    /// The judge's, which are never remembered; this caller's own `deadline`.
    pub async fn decide(
        &self,
        question: &Arc<Question>,
        votes: Votes,
        reuse: Reuse,
        deadline: Instant,
    ) -> Result<Told<Judgement>, JudgeError> {
        let Some(settings) = self.judge.settings() else {
            let answer = self.judge.judge(Arc::clone(question), votes, deadline.into()).await?;
            return Ok(Told { answer, cached: false });
        };
        let key = Key::of_verdicts(question, votes, self.judge.info(), settings).await;
        let (judge, asked) = (Arc::clone(&self.judge), Arc::clone(question));
        let ask = move |deadline| async move { judge.judge(asked, votes, deadline).await }.boxed();
        let once = Once { flights: &self.verdicts, memory: &self.memory, key, question };
        once.ask(reuse, deadline, ask).await
    }

    /// Has `sentences` cut into atomic claims by `splitter`.
    ///
    /// # Errors
    ///
    /// The splitter's, which are never remembered; this caller's own `deadline`.
    pub async fn cut(
        &self,
        splitter: &Arc<dyn Splitter>,
        sentences: &Arc<Units<String>>,
        reuse: Reuse,
        deadline: Instant,
    ) -> Result<Told<Cut>, JudgeError> {
        let key = Key::of_cut(sentences, splitter.info(), splitter.settings()).await;
        let (splitter, asked) = (Arc::clone(splitter), Arc::clone(sentences));
        let ask = move |deadline| async move { splitter.split(asked, deadline).await }.boxed();
        let once = Once { flights: &self.cuts, memory: &self.memory, key, question: sentences };
        once.ask(reuse, deadline, ask).await
    }
}

/// One question on its way to an answer.
struct Once<'a, T: Remembered> {
    flights: &'a Flights<Key, Arc<Settled<T>>>,
    memory: &'a Arc<Remembrance>,
    key: Key,
    question: &'a Arc<T::Question>,
}

impl<T: Remembered> Once<'_, T> {
    async fn ask(
        self,
        reuse: Reuse,
        deadline: Instant,
        ask: impl FnOnce(Deadline) -> Asking<T> + Send + 'static,
    ) -> Result<Told<T>, JudgeError> {
        let Self { flights, memory, key, question } = self;
        let (memory, question) = (Arc::clone(memory), Arc::clone(question));
        // Looking up is part of what is shared: else somebody could miss an entry that is about to be written, and find
        // that the one who wrote it is gone.
        let settle = move |deadline| {
            async move {
                if reuse == Reuse::Allowed
                    && let Some(answer) = memory.get::<T>(key, &question).await
                {
                    return Arc::new(Settled::of(Ok(answer), true));
                }
                let outcome = ask(deadline).await;
                // Before anybody hears of it: what has left the service is never asked again.
                if reuse != Reuse::Never
                    && let Ok(answer) = &outcome
                {
                    memory.memory.put(key, answer.write(key)).await;
                }
                Arc::new(Settled::of(outcome, false))
            }
            .boxed()
        };
        let settled = match reuse {
            Reuse::Allowed => flights.join(key, deadline, settle).await.map_err(overtaken)?,
            // What is being asked already was asked before this caller wanted it asked anew.
            Reuse::Renewed | Reuse::Never => settle(Deadline::from(deadline)).await,
        };
        settled.told()
    }
}

fn overtaken(_: Overtaken) -> JudgeError {
    JudgeError::new(JudgeFault::DeadlineExceeded, "the request's deadline passed while the judge was at work")
}

/// What came of a question, for all who waited for it.
struct Settled<T> {
    /// Without what it cost.
    outcome: Result<T, JudgeError>,
    cached: bool,
    /// What it cost, until somebody has taken it upon himself. So a sum over answers is what was spent, whoever of those
    /// who waited has left meanwhile.
    bill: Mutex<Option<Usage>>,
}

impl<T: Remembered> Settled<T> {
    fn of(mut outcome: Result<T, JudgeError>, cached: bool) -> Self {
        let usage = match &mut outcome {
            Ok(answer) => answer.usage(),
            Err(error) => &mut error.usage,
        };
        let bill = Mutex::new(Some(std::mem::replace(usage, Usage::NOTHING)));
        Self { outcome, cached, bill }
    }

    fn told(&self) -> Result<Told<T>, JudgeError> {
        let bill = self.bill.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or(Usage::NOTHING);
        match &self.outcome {
            Ok(answer) => {
                let mut answer = answer.clone();
                *answer.usage() = bill;
                Ok(Told { answer, cached: self.cached })
            }
            Err(error) => Err(JudgeError { usage: bill, ..error.clone() }),
        }
    }
}

/// A memory, read with suspicion.
struct Remembrance {
    memory: Arc<dyn Memory>,
    has_warned: AtomicBool,
}

impl Remembrance {
    /// The answer under this key, if it can be read and fits the question.
    async fn get<T: Remembered>(&self, key: Key, question: &T::Question) -> Option<T> {
        let entry = self.memory.get(key).await?;
        match T::read(key, question, &entry) {
            Ok(answer) => Some(answer),
            Err(Unreadable::OtherVersion) => None,
            Err(error @ (Unreadable::Damaged | Unreadable::Unfitting)) => {
                // Where one is damaged, thousands may be.
                if self.has_warned.swap(true, Ordering::Relaxed) {
                    tracing::debug!(%error, "an entry of the memory is passed over");
                } else {
                    tracing::warn!(%error, "an entry of the memory is passed over; further ones are told at debug level");
                }
                None
            }
        }
    }
}
