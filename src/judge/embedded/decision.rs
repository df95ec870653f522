//! From windows to verdicts: when is a claim attributed, on what evidence, and in which words it is said why not.

use std::ops::Range;

use super::checks::{Sight, Weighing};
use super::claim::{Sentence, Unit};
use super::index::Index;
use super::repeats::Repeats;
use super::text::Kind;
use super::window::{Best, Search, WORTH, Window};
use crate::recall::judge::{Citation, Question, Verdict};
use crate::recall::{Stop, Stopped};

/// The score from which one window carries a sentence.
const ENOUGH: f32 = 0.55;

/// The score from which the best windows of several contexts carry it together: the more places, the more chance.
const ENOUGH_TOGETHER: f32 = 0.65;

/// The words of a reason at most.
const NAMED: usize = 5;

const COVERED: &str = "covered by the contexts";
const COVERED_TOGETHER: &str = "covered by several contexts together";
const NOTHING_TO_FIND: &str = "the claim holds no word or number to look for";

/// A verdict and how near it was.
#[derive(Debug, Clone, PartialEq)]
pub struct Assessment {
    /// The decision.
    pub verdict: Verdict,
    /// How well the contexts carry the claim, from about -1 to 1; for ranking, not a probability.
    pub score: f32,
}

/// Decides on one claim, taken apart into `sentences`: it is attributed when each of them is.
pub(super) fn assess(
    question: &Question,
    claim: &str,
    sentences: &[Sentence],
    index: &Index,
    repeats: &mut Repeats<'_>,
    stop: &Stop,
) -> Result<Assessment, Stopped> {
    let mut weakest: Option<Finding> = None;
    let mut evidence: Vec<Citation> = Vec::new();
    for sentence in sentences {
        let finding = find(sentence, index, stop)?;
        for citation in finding.windows.iter().filter_map(|window| cite(question, index, window)) {
            if !evidence.contains(&citation) {
                evidence.push(citation);
            }
        }
        if weakest.as_ref().is_none_or(|held| finding.score < held.score) {
            weakest = Some(finding);
        }
    }
    if let Some(Finding { score, reason, .. }) = weakest.as_ref().filter(|finding| finding.carried()) {
        let verdict = Verdict { attributed: true, reason: reason.clone(), evidence };
        return Ok(Assessment { verdict, score: *score });
    }
    if let Some(quote) = repeats.of(claim, stop)? {
        let verdict = Verdict { attributed: true, reason: COVERED.to_owned(), evidence: vec![quote] };
        return Ok(Assessment { verdict, score: 1.0 });
    }
    let (score, reason) = weakest.map_or((0.0, NOTHING_TO_FIND.to_owned()), |finding| (finding.score, finding.reason));
    let verdict = Verdict { attributed: false, reason, evidence: Vec::new() };
    Ok(Assessment { verdict, score })
}

/// What was found for one sentence.
struct Finding {
    score: f32,
    reason: String,
    /// What carries the sentence; empty when nothing does.
    windows: Vec<Range<usize>>,
}

impl Finding {
    fn carried(&self) -> bool {
        !self.windows.is_empty()
    }
}

/// Looks through the contexts in rank order and stops at the first that, alone or with those before it, carries the
/// sentence: the evidence is as early as can be.
///
/// Whether anything carries it depends on the *set* of contexts only: every context offers the same windows whatever
/// stands beside it, any one of them may decide, and what they cover together only grows. So one more context never
/// turns a yes into a no.
fn find(sentence: &Sentence, index: &Index, stop: &Stop) -> Result<Finding, Stopped> {
    let search = Search::new(index, sentence);
    let mut closest: Option<Window> = None;
    let mut together = vec![Sight::default(); sentence.units.len()];
    let mut gathered = Vec::new();
    for best in search.contexts(stop) {
        let Best { scored, agreeing } = best?;
        if let Some(window) = scored {
            let score = window.weighing.score();
            if score >= ENOUGH {
                return Ok(Finding { score, reason: COVERED.to_owned(), windows: vec![window.segments] });
            }
            if closest.as_ref().is_none_or(|held| score > held.weighing.score()) {
                closest = Some(window);
            }
        }
        if let Some(window) = agreeing.filter(|window| window.weighing.coverage >= WORTH) {
            if gather(&mut together, &window.seen) {
                gathered.push(window.segments);
            }
            let weighing = Weighing::of_agreeing(sentence, &together);
            let score = weighing.score();
            if score >= ENOUGH_TOGETHER {
                return Ok(Finding { score, reason: COVERED_TOGETHER.to_owned(), windows: gathered });
            }
        }
    }
    let none = vec![Sight::default(); sentence.units.len()];
    let weighing = closest.map_or_else(|| Weighing::of(sentence, &none, &none, &[]), |window| window.weighing);
    Ok(Finding { score: weighing.score(), reason: objection(sentence, &weighing, index), windows: Vec::new() })
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

fn cite(question: &Question, index: &Index, segments: &Range<usize>) -> Option<Citation> {
    let inside = index.segments.get(segments.clone())?;
    let (first, last) = (inside.first()?, inside.last()?);
    let quote = question.contexts.get(first.context)?.get(first.range.start..last.range.end)?;
    Some(Citation { context: Some(first.context), quote: quote.to_owned() })
}

/// Says in words what kept the closest window from carrying the sentence.
fn objection(sentence: &Sentence, weighing: &Weighing, index: &Index) -> String {
    let unheard = |number: &usize| {
        let unit = &sentence.units[*number];
        let keys = [Some(unit.exact), unit.near];
        unit.is_heavy() && keys.into_iter().flatten().all(|key| index.places(key).is_empty())
    };
    let missing =
        || -> Vec<usize> { weighing.missing.iter().copied().filter(|n| sentence.units[*n].is_heavy()).collect() };
    let nowhere: Vec<usize> = weighing.missing.iter().copied().filter(unheard).collect();
    if weighing.coverage < ENOUGH && nowhere.iter().any(|number| !weighing.numbers.contains(number)) {
        format!("the contexts say nothing of: {}", name(sentence, &nowhere))
    } else if !weighing.numbers.is_empty() {
        let verb = if weighing.numbers.len() == 1 { "does" } else { "do" };
        format!("{} {verb} not occur in the passage", name(sentence, &weighing.numbers))
    } else if !weighing.names.is_empty() {
        format!("the passage does not name: {}", name(sentence, &weighing.names))
    } else if weighing.swapped {
        format!("the passage says it of another than: {}", name(sentence, &missing()))
    } else if !weighing.opposites.is_empty() {
        format!("the passage says the opposite of: {}", name(sentence, &weighing.opposites))
    } else if weighing.turned {
        let denies = sentence.units.iter().any(|unit| unit.negated);
        let reason = if denies { "the claim negates what the passage says" } else { "the passage negates it" };
        reason.to_owned()
    } else {
        format!("no passage says all of it; missing: {}", name(sentence, &missing()))
    }
}

/// The units of these numbers as the claim writes them; neighbours stay together.
fn name(sentence: &Sentence, numbers: &[usize]) -> String {
    let mut names: Vec<String> = Vec::new();
    let mut before: Option<&Unit> = None;
    for unit in numbers.iter().filter_map(|number| sentence.units.get(*number)) {
        let neighbour = before.is_some_and(|before| before.place + 1 == unit.place);
        match names.last_mut().filter(|_| neighbour) {
            // Pairs overlap by a character.
            Some(last) if unit.kind == Kind::Pair => last.extend(unit.written.chars().skip(1)),
            Some(last) => {
                last.push(' ');
                last.push_str(&unit.written);
            }
            None => names.push(unit.written.clone()),
        }
        before = Some(unit);
    }
    names.truncate(NAMED);
    names.join(", ")
}
