//! The embedded judge: in process, deterministic, offline.
//!
//! It reads no meaning, it compares words. A sentence of a claim is attributed when some window of neighbouring
//! sentences of one context covers enough of its words, and nothing there speaks against it. What may: a number that is
//! missing, a name that the context never gives, another thing in the place of one, another of its kind (a song for a
//! film), names that changed places, an opposite or the other direction, a negation on one side only, an `only` or
//! `always` that nothing supports, and a claim that asks or tells an opinion where the window does not. Several contexts
//! may cover a sentence together, at a higher price.
//!
//! A request passes through the rooms in this order: `claim` takes the claims apart, `index` reads the contexts
//! once for all of them, `window` searches, `checks` tells what holds of a window and `order` what the order of its
//! words tells, `weights` what that is worth, `decision` says yes or no, `reasons` why not, and `repeats` finds what a
//! context says letter by letter. Below them `segments` cuts text and `text` reads it, with `numbers`, `stem` and the
//! tables in `words` and `relations`. `port` puts all of it behind the `Judge` port, off the async threads.
//!
//! Two things hold by construction: a claim is attributed to a context that repeats it, and one more context never
//! turns a yes into a no. Nothing here is trained; the few constants were chosen on human-labelled claims, where their
//! neighbours score alike (`benches/judge.rs` measures, `refit` chooses anew).

mod checks;
mod claim;
mod decision;
mod index;
mod numbers;
mod order;
mod port;
mod reasons;
mod relations;
mod repeats;
mod segments;
mod stem;
pub(super) mod text;
mod weights;
mod window;
pub(super) mod words;

#[cfg(test)]
mod pairs;
#[cfg(test)]
mod refit;
#[cfg(test)]
mod tests;

pub use decision::Assessment;
pub use port::EmbeddedJudge;

use self::claim::Vocabulary;
use self::decision::Court;
use self::index::Index;
use self::repeats::Repeats;
use self::weights::Weights;
use crate::recall::judge::{Question, Verdict};
use crate::recall::{Stop, Stopped};

/// Name and version of these rules, as it stands in every receipt.
pub const VERSION: &str = "lexical/2";

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

/// The same with the margins of the decisions, for measuring.
///
/// # Errors
///
/// As [`decide`].
pub fn assess(question: &Question, stop: &Stop) -> Result<Vec<Assessment>, Stopped> {
    assess_by(&weights::WEIGHTS, question, stop)
}

fn assess_by(weights: &Weights, question: &Question, stop: &Stop) -> Result<Vec<Assessment>, Stopped> {
    let mut vocabulary = Vocabulary::default();
    let mut claims = Vec::new();
    for claim in question.claims.iter() {
        stop.check()?;
        claims.push((claim.as_str(), claim::sentences(claim, &mut vocabulary)));
    }
    let index = Index::read(question, &vocabulary, stop)?;
    let mut repeats = Repeats::new(question, &index, &claims);
    let court = Court { question, vocabulary: &vocabulary, index: &index, weights, stop };
    let decided = claims.iter().map(|(claim, sentences)| decision::assess(court, claim, sentences, &mut repeats));
    decided.collect()
}
