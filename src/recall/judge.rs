//! The port to whoever decides: what a judge is asked, what it must give back, and how it may fail.
//!
//! A judge answers by claim *number*. It can neither add a claim nor leave one out: its answer is collected in a
//! [`Ballot`], and only a ballot with exactly one verdict for every claim becomes [`Verdicts`].

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;

use super::Units;
use super::memory::Settings;
use crate::deadline::Deadline;

/// What a judge is asked.
#[derive(Debug, Clone)]
pub struct Question {
    /// The question that the retriever worked for. May be empty only for callers inside the process.
    pub user_input: String,
    /// The retrieved contexts as sent, in rank order, blank ones included so that positions stay true.
    pub contexts: Vec<String>,
    /// The claims of the reference, in order. A judge names them by their number, counted from 1.
    pub claims: Units<String>,
}

impl Question {
    /// The contexts that hold any text, each with its position in the list as sent, counted from 0.
    pub fn passages(&self) -> impl Iterator<Item = (usize, &str)> {
        self.contexts
            .iter()
            .enumerate()
            .filter(|(_, text)| !text.trim().is_empty())
            .map(|(position, text)| (position, text.as_str()))
    }
}

/// A passage that a judge says it relied on. Nothing here is trusted before [`super::evidence`] has looked it up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Citation {
    /// Position of the context in the list as sent, counted from 0; `None` when the judge named none that exists.
    pub context: Option<usize>,
    /// The words that are said to stand there.
    pub quote: String,
}

/// The decision on one claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Can the claim be attributed to the contexts?
    pub attributed: bool,
    /// Why, in a sentence. May be empty.
    pub reason: String,
    /// What the judge relied on.
    pub evidence: Vec<Citation>,
}

/// How often one question is judged: from 1 to [`Votes::MOST`] times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Votes(u8);

impl Default for Votes {
    fn default() -> Self {
        Self::ONE
    }
}

impl Votes {
    /// Judged once.
    pub const ONE: Self = Self(1);

    /// More votes than this cost more than they settle.
    pub const MOST: u8 = 9;

    /// So many votes; `None` outside of 1 to [`Self::MOST`].
    #[must_use]
    pub fn new(votes: u8) -> Option<Self> {
        (1..=Self::MOST).contains(&votes).then_some(Self(votes))
    }

    /// How many, at least 1.
    #[must_use]
    pub fn count(self) -> u8 {
        self.0
    }
}

/// How many of the votes on a claim say what was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Agreement {
    agreeing: u8,
    votes: u8,
}

impl Agreement {
    /// One vote, which agrees with itself.
    pub const SOLE: Self = Self { agreeing: 1, votes: 1 };

    /// `agreeing` of `votes`; never more than all, never of none.
    #[must_use]
    pub fn of(agreeing: u8, votes: u8) -> Self {
        let votes = votes.max(1);
        Self { agreeing: agreeing.min(votes), votes }
    }

    /// How many agree, and of how many.
    #[must_use]
    pub fn counts(self) -> (u8, u8) {
        (self.agreeing, self.votes)
    }

    /// The share of the votes that agree, from 0 to 1.
    #[must_use]
    pub fn share(self) -> f64 {
        f64::from(self.agreeing) / f64::from(self.votes)
    }
}

/// What was decided on one claim, and on what grounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The verdict that counts.
    pub verdict: Verdict,
    /// Verdicts that say the same on grounds of their own, best first: where no quote of [`Self::verdict`] stands in a
    /// context, one of theirs may.
    pub further: Vec<Verdict>,
    /// How far the votes agree.
    pub agreement: Agreement,
}

impl From<Verdict> for Decision {
    fn from(verdict: Verdict) -> Self {
        Self { verdict, further: Vec::new(), agreement: Agreement::SOLE }
    }
}

impl Decision {
    /// The verdict that counts and those that say the same, best first.
    pub fn grounds(&self) -> impl Iterator<Item = &Verdict> {
        std::iter::once(&self.verdict).chain(&self.further)
    }
}

/// Exactly one decision on every claim, in the order of the claims.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdicts(Units<Decision>);

impl Verdicts {
    /// The decisions, in the order of the claims.
    pub fn iter(&self) -> std::slice::Iter<'_, Decision> {
        self.0.iter()
    }

    /// The decisions, in the order of the claims.
    #[must_use]
    pub fn into_units(self) -> Units<Decision> {
        self.0
    }
}

/// A verdict list in the making: one place for every claim of a question.
#[derive(Debug, Clone)]
pub struct Ballot(Units<Option<Decision>>);

impl Ballot {
    /// An empty ballot with a place for every claim of `question`.
    #[must_use]
    pub fn of(question: &Question) -> Self {
        Self(Units(question.claims.iter().map(|_| None).collect()))
    }

    /// Fills the place of claim `number` (counted from 1). A number that is no claim's is dropped, never counted.
    pub fn cast(&mut self, number: usize, decision: impl Into<Decision>) {
        let place = number.checked_sub(1).and_then(|index| self.0.0.get_mut(index));
        if let Some(place) = place {
            *place = Some(decision.into());
        }
    }

    /// The numbers of the claims that still have no verdict, counted from 1.
    #[must_use]
    pub fn open(&self) -> Vec<usize> {
        let empty = |(index, place): (usize, &Option<Decision>)| place.is_none().then_some(index + 1);
        self.0.iter().enumerate().filter_map(empty).collect()
    }

    /// The complete list, or the ballot back while any claim is open.
    ///
    /// # Errors
    ///
    /// Gives the ballot back unchanged when [`Self::open`] is not empty.
    pub fn close(self) -> Result<Verdicts, Self> {
        if self.0.iter().any(Option::is_none) {
            return Err(self);
        }
        let decisions: Vec<Decision> = self.0.into_vec().into_iter().flatten().collect();
        // As many decisions as places, and there was at least one place.
        Ok(Verdicts(Units(decisions)))
    }
}

/// What was decided, by whom, and what it cost.
#[derive(Debug, Clone)]
pub struct Judgement {
    /// One verdict for every claim.
    pub verdicts: Verdicts,
    /// The model's name as the backend reported it.
    pub model_reported: Option<String>,
    /// In how many windows the contexts were read; 1 when they were read as a whole.
    pub windows: usize,
    /// What this judgement cost.
    pub usage: Usage,
    /// What the reader of the score should know about how the answer was had.
    pub warnings: Vec<Warning>,
}

/// What cut a reference into claims, as it stands in every receipt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SplitterInfo {
    /// Name and version.
    pub name: &'static str,
    /// SHA-256 of its prompt's fixed part in lower-case hex; `None` for rules that ask nobody.
    pub sha256: Option<String>,
}

/// The claims that sentences were cut into, and what that cost.
#[derive(Debug, Clone)]
pub struct Cut {
    /// The claims of all sentences, in order; at least one of each.
    pub claims: Units<String>,
    /// What the cut cost.
    pub usage: Usage,
    /// What the reader of the score should know about how the answer was had.
    pub warnings: Vec<Warning>,
}

/// Who decides: the part of an answer's receipt that does not change from call to call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgeInfo {
    /// `embedded`, or the provider's name.
    pub provider: &'static str,
    /// The model asked for, or the version of the embedded judge.
    pub model: String,
    /// Name and version of the prompt; `None` for a judge that has none.
    pub prompt: Option<&'static str>,
    /// SHA-256 of the prompt's fixed part in lower-case hex; `None` for a judge that has none.
    pub prompt_sha256: Option<String>,
    /// The sampling seed asked for; `None` for a judge that draws no lots.
    pub seed: Option<i64>,
}

/// What an answer cost. A count that a backend did not report is `None`, never 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Calls sent to the backend, retries and repairs included.
    pub judge_calls: u64,
    /// Tokens of the prompts, cached ones included.
    pub input_tokens: Option<u64>,
    /// The part of `input_tokens` that the backend had cached.
    pub cached_input_tokens: Option<u64>,
    /// Tokens of the replies, reasoning included.
    pub output_tokens: Option<u64>,
    /// The part of `output_tokens` that was reasoning.
    pub reasoning_tokens: Option<u64>,
}

impl Usage {
    /// Nothing was asked, so nothing was spent.
    pub const NOTHING: Self = Self {
        judge_calls: 0,
        input_tokens: Some(0),
        cached_input_tokens: Some(0),
        output_tokens: Some(0),
        reasoning_tokens: Some(0),
    };

    /// The sum of two costs; unknown where either is unknown, since a partial sum would claim to be whole.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let add = |a: Option<u64>, b: Option<u64>| a?.checked_add(b?);
        Self {
            judge_calls: self.judge_calls.saturating_add(other.judge_calls),
            input_tokens: add(self.input_tokens, other.input_tokens),
            cached_input_tokens: add(self.cached_input_tokens, other.cached_input_tokens),
            output_tokens: add(self.output_tokens, other.output_tokens),
            reasoning_tokens: add(self.reasoning_tokens, other.reasoning_tokens),
        }
    }
}

/// Something that the reader of a score should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Warning {
    /// An attributed claim has no quote that stands in a context.
    EvidenceMissing {
        /// The claim's number, counted from 1.
        claim: usize,
        /// Does it count as attributed all the same?
        counts: bool,
    },
    /// The answer stood in the model's reasoning, its content was empty.
    AnswerInReasoning,
    /// The backend refused the strict answer schema and was asked with a weaker one.
    StructuredOutputDowngraded {
        /// What was used in its place, in words.
        used: Cow<'static, str>,
    },
    /// The reference is one claim, so the score can only be 0 or 1.
    SingleClaim,
}

/// Why a judge gave no verdicts. Each kind is one row of the error contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JudgeFault {
    /// Too many questions wait already, or the wait would outlast the deadline.
    Overloaded,
    /// The request's own deadline passed.
    DeadlineExceeded,
    /// No complete, unambiguous verdict list, repairs included.
    OutputInvalid,
    /// The reply was cut.
    Truncated,
    /// A well-formed reply without text, repairs included.
    Empty,
    /// The model declined.
    Refused,
    /// The provider's filter declined.
    ContentFiltered,
    /// The question does not fit the judge's window.
    ContextLengthExceeded,
    /// The backend cut the question, so that no verdict on it can be trusted.
    PromptTruncated,
    /// The backend refused our key.
    UpstreamAuth,
    /// A failure of the backend's own that may pass, after all tries.
    UpstreamFailing,
    /// Any other failure of the backend.
    UpstreamError,
    /// The backend could not be reached or the connection broke.
    UpstreamUnreachable,
    /// The backend limits our rate, and waiting longer would outlast the deadline or the tries.
    UpstreamRateLimited,
    /// The backend is overloaded, after all tries.
    UpstreamOverloaded,
    /// The backend gave no whole reply in time, after all tries.
    UpstreamTimeout,
    /// A bug of ours.
    Internal,
}

/// A judge's failure: it costs one sample and never becomes a number.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{fault:?}: {detail}")]
pub struct JudgeError {
    /// Which row of the error contract.
    pub fault: JudgeFault,
    /// What happened, for a person; holds no secret. A model's own words in it may quote the sample, so it goes to the caller
    /// and into no log.
    pub detail: String,
    /// How long to wait before another try, when that is known to help.
    pub retry_after: Option<Duration>,
    /// What was spent before it failed.
    pub usage: Usage,
}

impl JudgeError {
    /// A failure without a known wait, before anything was spent.
    #[must_use]
    pub fn new(fault: JudgeFault, detail: impl Into<String>) -> Self {
        Self { fault, detail: detail.into(), retry_after: None, usage: Usage::NOTHING }
    }

    /// The same failure, with what was spent beside it added to its cost.
    #[must_use]
    pub fn having_spent(self, usage: Usage) -> Self {
        Self { usage: self.usage.plus(usage), ..self }
    }

    /// A bug of ours.
    #[must_use]
    pub fn internal(detail: impl Into<String>) -> Self {
        Self::new(JudgeFault::Internal, detail)
    }
}

/// Who decides whether claims can be attributed to contexts.
///
/// Called only with at least one passage: an empty retrieval is decided without a judge. Dropping the future stops
/// the work, backend calls included.
pub trait Judge: Send + Sync {
    /// Who this is.
    fn info(&self) -> &JudgeInfo;

    /// Looks up, at no cost, whether it can be used at all: is the key taken, is the model there?
    ///
    /// # Errors
    ///
    /// Why not.
    fn look_up(&self, deadline: Instant) -> BoxFuture<'_, Result<(), JudgeError>>;

    /// What its verdicts depend on beside [`Self::info`], so that they can be remembered; `None` for a judge whose verdicts
    /// cost nothing, which are not.
    fn settings(&self) -> Option<&Settings>;

    /// Decides on every claim of `question` before `deadline`, by the majority of `votes`.
    fn judge(
        &self,
        question: Arc<Question>,
        votes: Votes,
        deadline: Deadline,
    ) -> BoxFuture<'_, Result<Judgement, JudgeError>>;
}

/// Who cuts the sentences of a reference further, into atomic claims.
///
/// Sees the sentences and nothing else, neither question nor contexts, so two retrievers are held to the same claims.
pub trait Splitter: Send + Sync {
    /// Who this is.
    fn info(&self) -> &SplitterInfo;

    /// What its claims depend on beside [`Self::info`], so that they can be remembered.
    fn settings(&self) -> &Settings;

    /// Cuts every one of `sentences` before `deadline`.
    fn split(&self, sentences: Arc<Units<String>>, deadline: Deadline) -> BoxFuture<'_, Result<Cut, JudgeError>>;
}
