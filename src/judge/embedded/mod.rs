//! The embedded judge: in process, deterministic, offline.
//!
//! It reads no meaning, it compares words. A sentence of a claim is attributed when some window of neighbouring
//! sentences of one context covers enough of its words, and nothing there speaks against it: no number that is missing,
//! no name that the context never gives, no other name in the place of the first word, no negation on one side only, no
//! opposite. Several contexts may cover a
//! sentence together, at a higher price.
//!
//! A request passes through the rooms in this order: `claim` takes the claims apart, `index` reads the contexts
//! once for all of them, `window` searches, `checks` weighs a window, `decision` says yes or no and why, and `repeats`
//! finds what a context says letter by letter. Below them
//! `segments` cuts text and `text` reads it, with `numbers`, `stem` and the tables in `words`. `port` puts all of it
//! behind the `Judge` port, off the async threads.
//!
//! Two things hold by construction: a claim is attributed to a context that repeats it, and one more context never
//! turns a yes into a no. Nothing here is trained; the few constants were chosen on human-labelled claims, where their
//! neighbours score alike (`benches/judge.rs` measures).

mod checks;
mod claim;
mod decision;
mod index;
mod numbers;
mod port;
mod repeats;
mod segments;
mod stem;
pub(super) mod text;
mod window;
pub(super) mod words;

#[cfg(test)]
mod tests;

pub use decision::Assessment;
pub use port::EmbeddedJudge;

use self::claim::Vocabulary;
use self::index::Index;
use self::repeats::Repeats;
use crate::recall::judge::{Question, Verdict};
use crate::recall::{Stop, Stopped};

/// Name and version of these rules, as it stands in every receipt.
pub const VERSION: &str = "lexical/1";

/// Decides on every claim of `question`, in order.
///
/// Takes time in proportion to the contexts' length, and for each claim to the number of times its words occur there.
///
/// # Errors
///
/// [`Stopped`] when `stop` was raised before all were decided.
///
/// ```
/// use context_recall::judge::embedded::decide;
/// use context_recall::recall::{Stop, Stopped, Units, judge::Question};
///
/// let claims = ["It opened in 1889.", "It opened in 1887."].map(str::to_owned);
/// let question = Question {
///     user_input: "When did the Eiffel Tower open?".to_owned(),
///     contexts: vec!["The tower opened to the public on 31 March 1889.".to_owned()],
///     claims: Units::new(claims.to_vec()).expect("two claims"),
/// };
/// let verdicts = decide(&question, &Stop::default())?;
/// assert!(verdicts[0].attributed);
/// assert!(!verdicts[1].attributed);
/// assert_eq!(verdicts[1].reason, "1887 does not occur in the passage");
/// # Ok::<(), Stopped>(())
/// ```
pub fn decide(question: &Question, stop: &Stop) -> Result<Vec<Verdict>, Stopped> {
    let assessments = assess(question, stop)?;
    Ok(assessments.into_iter().map(|assessment| assessment.verdict).collect())
}

/// The same with the scores behind the decisions, for measuring.
///
/// # Errors
///
/// As [`decide`].
pub fn assess(question: &Question, stop: &Stop) -> Result<Vec<Assessment>, Stopped> {
    let mut vocabulary = Vocabulary::default();
    let mut claims = Vec::new();
    for claim in question.claims.iter() {
        stop.check()?;
        claims.push((claim.as_str(), claim::sentences(claim, &mut vocabulary)));
    }
    let index = Index::read(question, &vocabulary, stop)?;
    let mut repeats = Repeats::new(question, &index, &claims);
    let decided = claims
        .iter()
        .map(|(claim, sentences)| decision::assess(question, claim, sentences, &index, &mut repeats, stop));
    decided.collect()
}
