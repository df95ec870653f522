//! One sheet of questions to a model: asked, asked again for what is missing, and once with more room when the reply was
//! cut.
//!
//! A sheet has numbered places. What belongs on it (verdicts, claims), in which words it is asked for and how an answer
//! is read is the sheet's own affair; here is what all of them have in common.

use super::reply::{Reading, Unreadable};
use super::session::Session;
use crate::providers::{AnswerSchema, ChatReply, ChatRequest, Ending, ProviderError, ProviderFault, Turn};
use crate::recall::judge::{JudgeError, JudgeFault, Warning};

/// Numbered places that a model is asked to fill.
pub(super) trait Sheet {
    /// What stands in one place.
    type Entry;

    /// What is asked for in a place, as in "no usable *verdict on* claim 2".
    const WANTED: &'static str;
    /// What a place is about.
    const ITEM: &'static str;
    /// The plural of [`Self::ITEM`].
    const ITEMS: &'static str;

    /// The fixed part of the question.
    const SYSTEM: &'static str;
    /// The shape of the answer.
    const ANSWER: AnswerSchema;

    /// The numbers of the places that are open, ascending.
    fn open(&self) -> Vec<usize>;

    /// Tokens that an answer for every place needs, with room to spare.
    fn room(&self) -> u32;

    /// The data part of the question for the places `asked`; `note` tells what was wrong with the answer before.
    fn data(&self, asked: &[usize], note: Option<&str>) -> String;

    /// Reads what a reply says of the places `asked`.
    fn read(&self, text: &str, asked: &[usize]) -> Result<Reading<Self::Entry>, Unreadable>;

    /// Fills the places that were read. Gives the numbers that stay open, with what is wrong, in words for the model.
    fn take(&mut self, reading: Reading<Self::Entry>) -> Vec<(usize, String)>;

    /// Fills what it can without the model, once that has been asked often enough.
    fn make_do(&mut self) {}
}

/// How the model is asked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Manner {
    /// Questions put again after an unusable answer.
    pub(super) repairs: u32,
    /// Ceiling of one reply in tokens.
    pub(super) ceiling: u32,
    /// The sampling temperature.
    pub(super) temperature: f32,
    /// The sampling seed.
    pub(super) seed: i64,
}

/// A sheet without an open place.
pub(super) struct Filled<S> {
    pub(super) sheet: S,
    /// The model's name as the last reply gives it.
    pub(super) model: Option<String>,
    pub(super) warnings: Vec<Warning>,
}

/// Why a sheet was not filled.
#[derive(Debug)]
pub(super) enum Failure {
    /// The question does not fit the model's window, which the backend may have told.
    TooLong {
        window: Option<u32>,
        error: JudgeError,
    },
    Failed(JudgeError),
}

impl From<Failure> for JudgeError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::TooLong { error, .. } | Failure::Failed(error) => error,
        }
    }
}

/// Has the model fill `sheet`.
///
/// # Errors
///
/// Whatever kept a place open: nothing is filled by guessing.
pub(super) async fn fill<S: Sheet>(sheet: S, session: &Session<'_>, manner: Manner) -> Result<Filled<S>, Failure> {
    let mut round = Round::first(sheet, manner);
    let mut repairs_left = manner.repairs;
    let mut cut = None;
    loop {
        let reply = match session.ask(|| round.request(manner)).await {
            Ok(reply) => reply,
            Err(refusal) if refusal.fault == ProviderFault::ContextLength => {
                let window = refusal.window;
                return Err(match cut {
                    // The first reply was cut and a longer one does not fit: what is true is that it was cut.
                    Some(error) => Failure::Failed(error),
                    None => Failure::TooLong { window, error: failed(refusal) },
                });
            }
            Err(error) => return Err(Failure::Failed(failed(error))),
        };
        let fault = match round.take(&reply) {
            Ok(()) if round.asked.is_empty() => return Ok(round.done(reply.model)),
            Ok(()) => round.fault(),
            Err(Useless::Final(error)) => return Err(Failure::Failed(error)),
            Err(Useless::Cut(error)) => {
                if round.grow(reply.output_limit, manner.ceiling) {
                    cut = Some(error);
                    continue;
                }
                return Err(Failure::Failed(error));
            }
            Err(Useless::AskAgain(error, note)) => {
                round.note = Some(note);
                *error
            }
        };
        if repairs_left == 0 {
            round.sheet.make_do();
            return if round.sheet.open().is_empty() {
                Ok(round.done(reply.model))
            } else {
                Err(Failure::Failed(fault))
            };
        }
        repairs_left -= 1;
    }
}

/// What is known so far, and what the next request asks for.
struct Round<S> {
    sheet: S,
    /// Numbers of the places that are still open, ascending.
    asked: Vec<usize>,
    /// What was wrong with the answer before.
    note: Option<String>,
    output_limit: u32,
    has_grown: bool,
    warnings: Vec<Warning>,
}

/// A reply that filled no place.
enum Useless {
    /// Asking again cannot help.
    Final(JudgeError),
    /// It was cut; more room may help.
    Cut(JudgeError),
    /// Asking again may help; what the model should be told.
    AskAgain(Box<JudgeError>, String),
}

/// How much more room a reply gets after it was cut.
const GROWTH: u32 = 4;

impl<S: Sheet> Round<S> {
    fn first(sheet: S, manner: Manner) -> Self {
        let asked = sheet.open();
        let output_limit = sheet.room().min(manner.ceiling);
        Self { sheet, asked, note: None, output_limit, has_grown: false, warnings: Vec::new() }
    }

    fn request(&self, manner: Manner) -> ChatRequest {
        ChatRequest {
            system: S::SYSTEM,
            turns: vec![Turn::User(self.sheet.data(&self.asked, self.note.as_deref()))],
            schema: S::ANSWER,
            output_limit: self.output_limit,
            temperature: manner.temperature,
            seed: manner.seed,
        }
    }

    /// Takes the entries out of a reply; afterwards `asked` holds what is still open.
    fn take(&mut self, reply: &ChatReply) -> Result<(), Useless> {
        if let Some(used) = reply.downgraded {
            self.warn(Warning::StructuredOutputDowngraded { used: used.into() });
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
            self.answer_in_reasoning(reply).ok_or_else(empty)?
        } else {
            self.sheet.read(&reply.text, &self.asked).map_err(unreadable)?
        };
        let wrongs = self.sheet.take(reading);
        self.asked = self.sheet.open();
        self.note =
            (!wrongs.is_empty()).then(|| format!("Not usable in the last answer: {}.", spelt_out::<S>(&wrongs)));
        Ok(())
    }

    /// Some servers put schema-bound output where reasoning belongs. Only a whole answer and nothing else is taken from there.
    fn answer_in_reasoning(&mut self, reply: &ChatReply) -> Option<Reading<S::Entry>> {
        let reasoning = reply.reasoning.as_deref()?.trim();
        let is_one_object =
            serde_json::from_str::<serde::de::IgnoredAny>(reasoning).is_ok() && reasoning.starts_with('{');
        let reading = is_one_object.then(|| self.sheet.read(reasoning, &self.asked).ok())??;
        reading.open.is_empty().then(|| {
            self.warn(Warning::AnswerInReasoning);
            reading
        })
    }

    /// Makes more room for the next reply, once; says whether there is more. A backend that was sent less than was wanted
    /// takes no more, and one that was sent no limit has a limit of its own: the same request would be cut at the same place.
    fn grow(&mut self, sent: Option<u32>, ceiling: u32) -> bool {
        let larger = self.output_limit.saturating_mul(GROWTH).min(ceiling);
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

    fn done(self, model: Option<String>) -> Filled<S> {
        Filled { sheet: self.sheet, model, warnings: self.warnings }
    }

    fn fault(&self) -> JudgeError {
        let note = self.note.as_deref().unwrap_or_default();
        let (item, items, wanted) = (S::ITEM, S::ITEMS, S::WANTED);
        let detail = match self.asked.as_slice() {
            [only] => format!("No usable {wanted} {item} {only}. {note}"),
            open => format!("No usable {wanted} {} {items}. {note}", open.len()),
        };
        JudgeError::new(JudgeFault::OutputInvalid, detail)
    }
}

/// Complaints that are spelt out; more would only be more of the same.
const SPELT_OUT: usize = 8;

/// What was wrong with which place, in words for the model and for people.
fn spelt_out<S: Sheet>(wrongs: &[(usize, String)]) -> String {
    let (item, items) = (S::ITEM, S::ITEMS);
    let mut words: Vec<String> =
        wrongs.iter().take(SPELT_OUT).map(|(number, wrong)| format!("{item} {number}: {wrong}")).collect();
    if wrongs.len() > SPELT_OUT {
        words.push(format!("and {} more {items}", wrongs.len() - SPELT_OUT));
    }
    words.join("; ")
}

fn empty() -> Useless {
    let error = JudgeError::new(JudgeFault::Empty, "the model's reply holds no text");
    Useless::AskAgain(Box::new(error), "The last answer was empty. Answer with the JSON object.".to_owned())
}

fn unreadable(unreadable: Unreadable) -> Useless {
    match unreadable {
        Unreadable::Truncated => {
            let detail = "the reply breaks off, although the backend calls it whole";
            Useless::Cut(JudgeError::new(JudgeFault::Truncated, detail))
        }
        Unreadable::Empty => empty(),
        Unreadable::Invalid(what) => {
            let note = format!("The last answer could not be used: {what}. Answer with the JSON object alone.");
            Useless::AskAgain(Box::new(JudgeError::new(JudgeFault::OutputInvalid, what)), note)
        }
    }
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

fn declined(fault: JudgeFault, what: &str, words: &str) -> Useless {
    let words: String = words.trim().chars().take(300).collect();
    let detail = if words.is_empty() { what.to_owned() } else { format!("{what}: {words}") };
    Useless::Final(JudgeError::new(fault, detail))
}

pub(super) fn failed(error: ProviderError) -> JudgeError {
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
