//! A judge that asks a language model: one question, an answer by number, and one more question for what is missing.

use std::sync::Arc;
use std::time::Instant;

use futures_util::future::BoxFuture;

use super::prompt;
use super::reply::{self, Unreadable};
use crate::providers::{ChatModel, ChatReply, ChatRequest, Ending, ProviderError, ProviderFault, Tokens, Turn};
use crate::recall::judge::{Ballot, Judge, JudgeError, JudgeFault, JudgeInfo, Judgement, Question, Usage, Warning};
use crate::slots::{Full, Slots};

/// How a model is asked.
#[derive(Debug, Clone, Copy)]
pub struct Asking {
    /// Questions put again after an unusable answer.
    pub repairs: u32,
    /// Ceiling of one reply in tokens; `None` for no ceiling but the backend's.
    pub output_ceiling: Option<u32>,
    /// The sampling seed.
    pub seed: i64,
}

/// A judge behind a [`ChatModel`].
pub struct ChatJudge {
    info: JudgeInfo,
    model: Arc<dyn ChatModel>,
    slots: Slots,
    asking: Asking,
}

impl ChatJudge {
    /// A judge that asks `model`, one judgement per place in `slots`.
    ///
    /// A place is held for a whole judgement, retries and repairs included: what was begun and paid for is never sent
    /// back to the end of the queue.
    #[must_use]
    pub fn new(model: Arc<dyn ChatModel>, slots: Slots, asking: Asking) -> Self {
        let info = JudgeInfo {
            provider: model.provider(),
            model: model.model().to_owned(),
            prompt: Some(prompt::VERSION),
            prompt_sha256: Some(prompt::sha256()),
        };
        Self { info, model, slots, asking }
    }

    async fn decide(&self, question: &Question, deadline: Instant) -> Result<Judgement, JudgeError> {
        let _slot = self.slots.enter(deadline).await.map_err(overloaded)?;
        let mut round = Round::first(question, self.asking.output_ceiling);
        let mut repairs_left = self.asking.repairs;
        let mut cut = None;
        loop {
            let reply = match self.model.ask(&round.request(question, self.asking.seed), deadline).await {
                Ok(reply) => reply,
                // The first reply was cut and a longer one does not fit: what is true is that it was cut.
                Err(error) if error.fault == ProviderFault::ContextLength => return Err(cut.unwrap_or(failed(error))),
                Err(error) => return Err(failed(error)),
            };
            let fault = match round.take(&reply) {
                Ok(()) if round.asked.is_empty() => return round.close(reply.model),
                Ok(()) => round.fault(),
                Err(Useless::Final(error)) => return Err(error),
                Err(Useless::Cut(error)) => {
                    if round.grow(reply.output_limit, self.asking.output_ceiling) {
                        cut = Some(error);
                        continue;
                    }
                    return Err(error);
                }
                Err(Useless::AskAgain(error, note)) => {
                    round.note = Some(note);
                    error
                }
            };
            if repairs_left == 0 {
                return Err(fault);
            }
            repairs_left -= 1;
        }
    }
}

impl Judge for ChatJudge {
    fn info(&self) -> &JudgeInfo {
        &self.info
    }

    fn look_up(&self, deadline: Instant) -> BoxFuture<'_, Result<(), JudgeError>> {
        Box::pin(async move { self.model.look_up(deadline).await.map_err(failed) })
    }

    fn judge(&self, question: Arc<Question>, deadline: Instant) -> BoxFuture<'_, Result<Judgement, JudgeError>> {
        Box::pin(async move { self.decide(&question, deadline).await })
    }
}

/// What is known so far of one question's answer, and what the next request asks for.
struct Round {
    ballot: Ballot,
    /// Numbers of the claims that are still open, ascending.
    asked: Vec<usize>,
    /// What was wrong with the answer before.
    note: Option<String>,
    output_limit: u32,
    has_grown: bool,
    usage: Usage,
    warnings: Vec<Warning>,
}

/// A reply that brought no verdict.
enum Useless {
    /// Asking again cannot help.
    Final(JudgeError),
    /// It was cut; more room may help.
    Cut(JudgeError),
    /// Asking again may help; what the model should be told.
    AskAgain(JudgeError, String),
}

/// Room for an answer: what it takes around the verdicts, and some 190 words of evidence and reason for each. A model
/// that thinks aloud needs more and gets it on the second try.
const TOKENS_AROUND: u32 = 512;
const TOKENS_PER_CLAIM: u32 = 256;
/// How much more room a reply gets after it was cut.
const GROWTH: u32 = 4;

impl Round {
    fn first(question: &Question, ceiling: Option<u32>) -> Self {
        let ballot = Ballot::of(question);
        let asked = ballot.open();
        let claims = u32::try_from(asked.len()).unwrap_or(u32::MAX);
        let wanted = TOKENS_PER_CLAIM.saturating_mul(claims).saturating_add(TOKENS_AROUND);
        Self {
            ballot,
            asked,
            note: None,
            output_limit: wanted.min(ceiling.unwrap_or(u32::MAX)),
            has_grown: false,
            usage: Usage::NOTHING,
            warnings: Vec::new(),
        }
    }

    fn request(&self, question: &Question, seed: i64) -> ChatRequest {
        ChatRequest {
            system: prompt::SYSTEM,
            turns: vec![Turn::User(prompt::data(question, &self.asked, self.note.as_deref()))],
            schema: prompt::ANSWER,
            output_limit: self.output_limit,
            temperature: 0.0,
            seed,
        }
    }

    /// Takes the verdicts out of a reply; afterwards `asked` holds what is still open.
    fn take(&mut self, reply: &ChatReply) -> Result<(), Useless> {
        self.usage = self.usage.plus(cost(reply.calls, reply.tokens));
        if let Some(used) = reply.downgraded {
            self.warn(Warning::StructuredOutputDowngraded { used });
        }
        match &reply.ending {
            Ending::Refused(words) => return Err(declined(JudgeFault::Refused, "the model declined to answer", words)),
            Ending::Filtered(words) => {
                return Err(declined(
                    JudgeFault::ContentFiltered,
                    "the provider's content filter withheld the answer",
                    words,
                ));
            }
            Ending::Truncated => return Err(Useless::Cut(truncated(reply))),
            Ending::Whole => {}
        }
        let reading = if reply.text.trim().is_empty() {
            self.answer_in_reasoning(reply).ok_or_else(|| self.empty())?
        } else {
            reply::read(&reply.text, &self.asked).map_err(|unreadable| self.unreadable(unreadable))?
        };
        for (number, verdict) in reading.verdicts {
            self.ballot.cast(number, verdict);
        }
        self.asked = self.ballot.open();
        self.note =
            (!reading.open.is_empty()).then(|| format!("Not usable in the last answer: {}.", wrongs(&reading.open)));
        Ok(())
    }

    /// Some servers put schema-bound output where reasoning belongs. Only a whole answer and nothing else is taken from there.
    fn answer_in_reasoning(&mut self, reply: &ChatReply) -> Option<reply::Reading> {
        let reasoning = reply.reasoning.as_deref()?.trim();
        let is_one_object =
            serde_json::from_str::<serde::de::IgnoredAny>(reasoning).is_ok() && reasoning.starts_with('{');
        let reading = is_one_object.then(|| reply::read(reasoning, &self.asked).ok())??;
        reading.open.is_empty().then(|| {
            self.warn(Warning::AnswerInReasoning);
            reading
        })
    }

    /// Makes more room for the next reply, once; says whether there is more. A backend that was sent less than was wanted
    /// takes no more, and one that was sent no limit has a limit of its own: the same request would be cut at the same place.
    fn grow(&mut self, sent: Option<u32>, ceiling: Option<u32>) -> bool {
        let larger = self.output_limit.saturating_mul(GROWTH).min(ceiling.unwrap_or(u32::MAX));
        let grows = !self.has_grown && sent == Some(self.output_limit) && larger > self.output_limit;
        self.output_limit = larger;
        self.has_grown = true;
        grows
    }

    fn warn(&mut self, warning: Warning) {
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    fn close(self, model_reported: Option<String>) -> Result<Judgement, JudgeError> {
        let fault = self.fault();
        Ok(Judgement {
            verdicts: self.ballot.close().map_err(|_| fault)?,
            model_reported,
            usage: self.usage,
            warnings: self.warnings,
        })
    }

    fn fault(&self) -> JudgeError {
        let note = self.note.as_deref().unwrap_or("Nothing usable was said of them.");
        let detail = match self.asked.as_slice() {
            [only] => format!("Claim {only} has no usable verdict. {note}"),
            open => format!("{} claims have no usable verdict. {note}", open.len()),
        };
        JudgeError::new(JudgeFault::OutputInvalid, detail)
    }

    fn empty(&self) -> Useless {
        let error = JudgeError::new(JudgeFault::Empty, "the model's reply holds no text");
        Useless::AskAgain(error, "The last answer was empty. Answer with the JSON object.".to_owned())
    }

    fn unreadable(&self, unreadable: Unreadable) -> Useless {
        match unreadable {
            Unreadable::Truncated => {
                let detail = "the reply breaks off, although the backend calls it whole";
                Useless::Cut(JudgeError::new(JudgeFault::Truncated, detail))
            }
            Unreadable::Empty => self.empty(),
            Unreadable::Invalid(what) => {
                let note = format!("The last answer could not be used: {what}. Answer with the JSON object alone.");
                Useless::AskAgain(JudgeError::new(JudgeFault::OutputInvalid, what), note)
            }
        }
    }
}

/// Complaints that are spelt out; more would only be more of the same.
const SPELT_OUT: usize = 8;

/// What was wrong with which claim, in words for the model and for people.
fn wrongs(open: &[(usize, String)]) -> String {
    let mut words: Vec<String> =
        open.iter().take(SPELT_OUT).map(|(number, wrong)| format!("claim {number}: {wrong}")).collect();
    if open.len() > SPELT_OUT {
        words.push(format!("and {} more claims", open.len() - SPELT_OUT));
    }
    words.join("; ")
}

fn truncated(reply: &ChatReply) -> JudgeError {
    let limit = match reply.output_limit {
        Some(tokens) => format!("at the limit of {tokens} tokens"),
        None => "at a limit of the backend's own".to_owned(),
    };
    let thought = match (reply.tokens.reasoning, reply.tokens.output) {
        (Some(reasoning), Some(output)) if reasoning > 0 && reasoning.saturating_mul(2) >= output => {
            format!(", and {reasoning} of its {output} tokens went to reasoning")
        }
        _ => String::new(),
    };
    JudgeError::new(JudgeFault::Truncated, format!("the reply was cut {limit}{thought}"))
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

fn declined(fault: JudgeFault, what: &str, words: &str) -> Useless {
    let words: String = words.trim().chars().take(300).collect();
    let detail = if words.is_empty() { what.to_owned() } else { format!("{what}: {words}") };
    Useless::Final(JudgeError::new(fault, detail))
}

fn overloaded(full: Full) -> JudgeError {
    JudgeError { retry_after: Some(full.retry_after), ..JudgeError::new(JudgeFault::Overloaded, full.detail) }
}

fn failed(error: ProviderError) -> JudgeError {
    let fault = match error.fault {
        ProviderFault::Auth => JudgeFault::UpstreamAuth,
        ProviderFault::ContextLength => JudgeFault::ContextLengthExceeded,
        ProviderFault::PromptTruncated => JudgeFault::PromptTruncated,
        ProviderFault::Filtered => JudgeFault::ContentFiltered,
        ProviderFault::Unreachable => JudgeFault::UpstreamUnreachable,
        ProviderFault::Timeout => JudgeFault::UpstreamTimeout,
        ProviderFault::RateLimited => JudgeFault::UpstreamRateLimited,
        ProviderFault::Overloaded => JudgeFault::UpstreamOverloaded,
        ProviderFault::Deadline => JudgeFault::DeadlineExceeded,
        ProviderFault::Failing => JudgeFault::UpstreamFailing,
        ProviderFault::Other => JudgeFault::UpstreamError,
    };
    JudgeError { retry_after: error.retry_after, ..JudgeError::new(fault, error.detail) }
}
