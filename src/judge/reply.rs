//! The model's answer: finding it in the reply, reading it with tolerance, insisting on completeness.

use crate::recall::judge::Verdict;

/// What could be read from one reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// A verdict for each claim number that was read without doubt, ascending; only numbers that were asked for.
    pub verdicts: Vec<(usize, Verdict)>,
    /// The numbers that were asked for and have no usable verdict, with what was wrong, in words for the model.
    pub open: Vec<(usize, String)>,
}

/// Why nothing could be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unreadable {
    /// The answer breaks off: an open reasoning block, or JSON that does not close.
    Truncated,
    /// No text at all.
    Empty,
    /// There is text but no answer in it, or two that disagree; in words for the model and for people.
    Invalid(String),
}

/// Reads the verdicts on the claims `asked` for (numbers, ascending) from a model's reply.
///
/// # Errors
///
/// [`Unreadable`] when the reply as a whole holds no usable answer.
pub fn read(text: &str, asked: &[usize]) -> Result<Reading, Unreadable> {
    let _ = (text, asked);
    Err(Unreadable::Empty)
}
