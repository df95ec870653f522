//! The model's answer: finding it in the reply, reading it with tolerance, insisting on completeness.
//!
//! Three steps: `find` drops reasoning and prose and finds the answers, with `json` forgiving slips of syntax; `tally`
//! brings them together number by number; `verdicts` and `cuts` read what one entry says. Nothing here guesses: an answer that was cut is never
//! mended, a word that is neither yes nor no is no verdict, and of two answers that disagree none is taken.
//!
//! Pure and total: any text gives a result, in time and memory linear in its length. Must not know prompts, backends
//! or contexts.

mod cuts;
mod find;
mod json;
mod tally;
mod verdicts;

#[cfg(test)]
mod tests;

use self::tally::Kind;
use crate::recall::judge::Verdict;

/// What could be read from one reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading<T> {
    /// An entry for each number that was read without doubt, ascending; only numbers that were asked for.
    pub entries: Vec<(usize, T)>,
    /// The numbers that were asked for and have no usable entry, with what was wrong, in words for the model.
    pub open: Vec<(usize, String)>,
}

/// Why nothing could be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unreadable {
    /// The answer breaks off: an open reasoning block, or JSON that does not close.
    Truncated,
    /// No text at all, or none behind the reasoning.
    Empty,
    /// There is text but no answer in it, or two that disagree; in words for the model and for people.
    Invalid(String),
}

/// Reads the verdicts on the claims `asked` for (numbers, ascending) from a model's reply.
///
/// Every number asked for comes back exactly once, in `entries` or in `open`. Reasons are cut to 2,000 characters and
/// evidence to 32 citations a claim.
///
/// ```
/// use context_recall::judge::reply;
///
/// let text = r#"<think>Claim 1 is clear.</think> {"verdicts": [{"n": 1, "attributed": "Yes."}]}"#;
/// let reading = reply::read(text, &[1, 2]).unwrap();
///
/// assert!(reading.entries[0].1.attributed);
/// assert_eq!(reading.open, [(2, "no entry".to_owned())]);
/// ```
///
/// # Errors
///
/// [`Unreadable`] when the reply as a whole holds no usable answer. An answer that breaks off is
/// [`Unreadable::Truncated`] even behind a complete one: what it would have said is not known.
pub fn read(text: &str, asked: &[usize]) -> Result<Reading<Verdict>, Unreadable> {
    read_as(&verdicts::VERDICTS, text, asked)
}

/// Reads the claims that the sentences `asked` for (numbers, ascending) were cut into, in the same way.
///
/// A sentence has 1 to 20 claims, none blank, none twice.
///
/// ```
/// use context_recall::judge::reply;
///
/// let text = r#"{"cuts": [{"n": 1, "claims": ["It is tall.", "It is old."]}, {"n": 2, "claims": []}]}"#;
/// let reading = reply::read_cuts(text, &[1, 2]).unwrap();
///
/// assert_eq!(reading.entries, [(1, vec!["It is tall.".to_owned(), "It is old.".to_owned()])]);
/// assert_eq!(reading.open, [(2, "no claims".to_owned())]);
/// ```
///
/// # Errors
///
/// As [`read`].
pub fn read_cuts(text: &str, asked: &[usize]) -> Result<Reading<Vec<String>>, Unreadable> {
    read_as(&cuts::CUTS, text, asked)
}

fn read_as<T>(kind: &Kind<T>, text: &str, asked: &[usize]) -> Result<Reading<T>, Unreadable> {
    let body = find::after_reasoning(text, kind.form)?;
    if find::is_blank(body) {
        return Err(Unreadable::Empty);
    }
    kind.tally(&find::answers(body, kind.form)?, asked)
}
