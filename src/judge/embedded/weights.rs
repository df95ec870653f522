//! What the facts about a stretch are worth: the only numbers that were chosen on labelled claims.
//!
//! One cost for every objection. Weights of their own for each, fitted by logistic regression to human-labelled English
//! claims, did no better on those claims, worse on sources that the fit had not seen (67.8 against 69.1 % balanced
//! accuracy), and worse in scripts without capitals and gaps between words. `refit` chooses the numbers anew.

use super::checks::Facts;
use super::claim::Sentence;

/// What decides, in terms of coverage, which goes from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Weights {
    /// What an objection costs. It must be more than what full coverage is above [`Self::enough`].
    pub(super) objection: f32,
    /// Which of [`CHECKS`] count.
    pub(super) heeded: [bool; CHECKS.len()],
    /// The score from which one stretch carries a sentence.
    pub(super) enough: f32,
    /// The same for stretches of several contexts together: the more places, the more chance.
    pub(super) enough_together: f32,
}

/// The weights in force.
pub(super) const WEIGHTS: Weights =
    Weights { objection: 0.6, heeded: [true; CHECKS.len()], enough: 0.55, enough_together: 0.65 };

/// What is checked beside coverage. All but the last are objections; the last makes up for one.
pub(super) const CHECKS: [&str; 9] =
    ["number", "name", "contradiction", "rival", "replaced", "undenied", "sweeping", "talk", "upheld"];

/// The margin of a claim that a context repeats letter by letter.
pub(super) const REPEATED: f32 = 1.0;

/// The margin of a claim that holds nothing to look for.
pub(super) const NOTHING: f32 = -1.0;

/// How steeply confidence grows with the margin of a claim that passed.
const STEEPNESS: f32 = 3.2;

/// The same for one that failed: two objections make a refusal little surer than one.
const STEEPNESS_BELOW: f32 = 1.4;

/// How likely a decision with this margin is right: the logistic function of the margin's size, which puts 0.5 where
/// the decision turns.
///
/// The steepness is the likeliest for labelled claims of which half are attributed; where nearly all are, a refusal is
/// less sure than this says, and an attribution surer.
pub(super) fn confidence(margin: f32) -> f32 {
    logistic(margin.abs() * if margin < 0.0 { STEEPNESS_BELOW } else { STEEPNESS })
}

/// From any number to a share from 0 to 1.
pub(super) fn logistic(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

impl Weights {
    /// By how much the score of a stretch beside `sentence` can be above its coverage.
    pub(super) fn most(&self, sentence: &Sentence) -> f32 {
        if sentence.units.iter().any(|unit| unit.denied) { self.objection } else { 0.0 }
    }

    /// What `facts` come to: the coverage less what the objections cost, and more where both deny the same.
    pub(super) fn score(&self, facts: &Facts) -> f32 {
        let Facts { number, name, rival, replaced, undenied, sweeping, talk, .. } = *facts;
        let contradicted = facts.opposite || facts.turned || facts.swapped || facts.exchanged;
        // What is missing and what stands in its place are one objection.
        let replaced = replaced && !(number || name || rival || contradicted);
        let [against @ .., upheld] = self.heeded;
        let objections = [number, name, contradicted, rival, replaced, undenied, sweeping, talk];
        let heeded = objections.iter().zip(against).filter(|(holds, heeded)| **holds && *heeded);
        let made_up = if facts.upheld && upheld { self.objection } else { 0.0 };
        heeded.fold(facts.coverage + made_up, |score, _| score - self.objection)
    }
}
