//! From windows to verdicts: when is a claim attributed, and on what evidence.

use std::ops::Range;

use super::checks::{Facts, Shared, Sight};
use super::claim::{Sentence, Vocabulary};
use super::index::Index;
use super::repeats::Repeats;
use super::weights::Weights;
use super::window::{Best, Search, WORTH, Window};
use super::{reasons, weights};
use crate::recall::judge::{Citation, Question, Verdict};
use crate::recall::{Stop, Stopped};

const COVERED: &str = "covered by the contexts";
const COVERED_TOGETHER: &str = "covered by several contexts together";
const NOTHING_TO_FIND: &str = "the claim holds no word or number to look for";

/// A verdict and how near it was.
#[derive(Debug, Clone, PartialEq)]
pub struct Assessment {
    /// The decision.
    pub verdict: Verdict,
    /// By how much the claim passed (from 0 up) or failed (below 0); about -2 to 1. For ranking, not a probability.
    pub margin: f32,
}

impl Assessment {
    /// How likely the decision is right, from 0.5 to 1.
    #[must_use]
    pub fn confidence(&self) -> f32 {
        weights::confidence(self.margin)
    }
}

/// What is the same for all claims of a question.
#[derive(Debug, Clone, Copy)]
pub(super) struct Court<'a> {
    /// The question.
    pub(super) question: &'a Question,
    /// What its claims look for.
    pub(super) vocabulary: &'a Vocabulary,
    /// Where that stands.
    pub(super) index: &'a Index,
    /// What facts are worth.
    pub(super) weights: &'a Weights,
    /// Raised when nobody waits any more.
    pub(super) stop: &'a Stop,
}

/// Decides on one claim, taken apart into `sentences`: it is attributed when each of them is.
pub(super) fn assess(
    court: Court<'_>,
    claim: &str,
    sentences: &[Sentence],
    repeats: &mut Repeats<'_>,
) -> Result<Assessment, Stopped> {
    let mut weakest: Option<Finding> = None;
    let mut evidence: Vec<Citation> = Vec::new();
    for sentence in sentences {
        let finding = find(court, sentence)?;
        for citation in finding.windows.iter().filter_map(|window| cite(court, window)) {
            if !evidence.contains(&citation) {
                evidence.push(citation);
            }
        }
        if weakest.as_ref().is_none_or(|held| finding.margin < held.margin) {
            weakest = Some(finding);
        }
    }
    let carried = weakest.as_ref().is_some_and(Finding::carried);
    let weakest = weakest.unwrap_or_else(Finding::of_nothing);
    let Finding { mut margin, mut reason, .. } = weakest;
    if !carried {
        evidence.clear();
        if let Some(quote) = repeats.of(claim, court.stop)? {
            evidence.push(quote);
            (margin, reason) = (weights::REPEATED, COVERED.to_owned());
        }
    }
    let verdict = Verdict { attributed: !evidence.is_empty(), reason, evidence };
    Ok(Assessment { verdict, margin })
}

/// What was found for one sentence.
struct Finding {
    /// By how much it is carried, or not.
    margin: f32,
    reason: String,
    /// What carries the sentence, as early as can be; empty when nothing does.
    windows: Vec<Range<usize>>,
}

impl Finding {
    fn of_nothing() -> Self {
        let reason = NOTHING_TO_FIND.to_owned();
        Self { margin: weights::NOTHING, reason, windows: Vec::new() }
    }

    fn carried(&self) -> bool {
        !self.windows.is_empty()
    }
}

/// Looks through the contexts in rank order. The evidence is the first window that carries the sentence, alone or with
/// those before it, so it is as early as can be; the margin is the widest that any gives.
///
/// Whether anything carries it depends on the *set* of contexts only: every context offers the same windows whatever
/// stands beside it, any one of them may decide, and what they cover together only grows. So one more context never
/// turns a yes into a no.
fn find(court: Court<'_>, sentence: &Sentence) -> Result<Finding, Stopped> {
    let weights = court.weights;
    let search = Search::new(court.index, court.vocabulary, sentence, weights);
    let none = vec![Sight::default(); sentence.units.len()];
    let nothing = Facts::of_agreeing(sentence, &none, Shared::default());
    let mut margin = weights.score(&nothing) - weights.enough;
    let mut carried: Option<(&str, Vec<Range<usize>>)> = None;
    let mut closest: Option<Window> = None;
    let mut together = none;
    let mut shared = Shared::default();
    let mut gathered = Vec::new();
    for best in search.contexts(court.stop) {
        let Best { scored, agreeing } = best?;
        if let Some(window) = scored {
            margin = margin.max(window.score - weights.enough);
            if window.score >= weights.enough {
                carried = carried.or_else(|| Some((COVERED, vec![window.segments.clone()])));
            }
            if closest.as_ref().is_none_or(|held| window.score > held.score) {
                closest = Some(window);
            }
        }
        if let Some(window) = agreeing.filter(|window| window.facts.coverage >= WORTH) {
            if gather(&mut together, &window.seen) {
                gathered.push(window.segments);
            }
            shared.join(window.shared);
            let score = weights.score(&Facts::of_agreeing(sentence, &together, shared));
            margin = margin.max(score - weights.enough_together);
            if score >= weights.enough_together {
                carried = carried.or_else(|| Some((COVERED_TOGETHER, gathered.clone())));
            }
        }
    }
    let (reason, windows) = match carried {
        Some((reason, windows)) => (reason.to_owned(), windows),
        None => (reasons::objection(&search, closest.as_ref()), Vec::new()),
    };
    Ok(Finding { margin, reason, windows })
}

/// Adds what a window saw; says whether that covers anything new.
fn gather(together: &mut [Sight], seen: &[Sight]) -> bool {
    let mut news = false;
    for (all, sight) in together.iter_mut().zip(seen) {
        let before = all.credit();
        all.join(*sight);
        news |= all.credit() > before;
    }
    news
}

fn cite(court: Court<'_>, segments: &Range<usize>) -> Option<Citation> {
    let inside = court.index.segments.get(segments.clone())?;
    let (first, last) = (inside.first()?, inside.last()?);
    let quote = court.question.contexts.get(first.context)?.get(first.range.start..last.range.end)?;
    Some(Citation { context: Some(first.context), quote: quote.to_owned() })
}
