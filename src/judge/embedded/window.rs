//! The search for the stretch of a context that carries a sentence best.

use std::ops::Range;

use super::checks::{Facts, Hit, Shared, Sight, Stretch};
use super::claim::{Key, Sentence, Unit, Vocabulary};
use super::index::{Index, Place};
use super::weights::Weights;
use crate::recall::{Stop, Stopped};

/// A window is at most this many neighbouring segments of one context.
const WIDEST: usize = 8;

/// Windows that cover less are weighed only while nothing better is known, to say what is missing.
pub(super) const WORTH: f32 = 0.3;

/// A window and what it says.
#[derive(Debug, Clone)]
pub(super) struct Window {
    /// Its segments, by their number in the index.
    pub(super) segments: Range<usize>,
    /// What was seen of each unit.
    pub(super) seen: Vec<Sight>,
    /// What holds of it.
    pub(super) facts: Facts,
    /// What that is worth.
    pub(super) score: f32,
    /// What it shares with windows of other contexts.
    pub(super) shared: Shared,
}

/// The places where a sentence's units stand, by token.
#[derive(Debug)]
pub(super) struct Search<'a> {
    index: &'a Index,
    sentence: &'a Sentence,
    weights: &'a Weights,
    hits: Vec<Hit>,
}

impl<'a> Search<'a> {
    /// Collects the places.
    pub(super) fn new(index: &'a Index, vocabulary: &Vocabulary, sentence: &'a Sentence, weights: &'a Weights) -> Self {
        let mut hits = Vec::new();
        for (unit, looked_for) in sentence.units.iter().enumerate() {
            let mut add = |key: Key, sight: &dyn Fn(u8) -> Sight| {
                let hit =
                    |place: &Place| Hit { segment: place.segment, token: place.token, unit, sight: sight(place.flags) };
                hits.extend(index.places(key).iter().map(hit));
            };
            add(looked_for.exact, &|exact| Sight { exact, ..Sight::default() });
            if let Some(near) = looked_for.near {
                add(near, &|near| Sight { near, ..Sight::default() });
            }
            for opposite in &looked_for.opposites {
                add(*opposite, &|_| Sight { opposite: true, ..Sight::default() });
            }
            for rival in &looked_for.rivals {
                add(*rival, &|_| Sight { rival: true, ..Sight::default() });
            }
            if let Some(direction) = looked_for.direction {
                for along in vocabulary.leading(direction) {
                    add(*along, &|_| Sight { along: true, ..Sight::default() });
                }
                for against in vocabulary.leading(direction.turned()) {
                    add(*against, &|_| Sight { against: true, ..Sight::default() });
                }
            }
        }
        hits.sort_unstable_by_key(|hit| hit.token);
        Self { index, sentence, weights, hits }
    }

    /// The sentence that is looked for.
    pub(super) fn sentence(&self) -> &'a Sentence {
        self.sentence
    }

    /// Does any context have this unit, or a form of it?
    pub(super) fn is_heard(&self, unit: &Unit) -> bool {
        [Some(unit.exact), unit.near].into_iter().flatten().any(|key| !self.index.places(key).is_empty())
    }

    /// Looks at a window once more.
    pub(super) fn revisit<T>(&self, window: &Window, look: impl FnOnce(&Stretch<'_>) -> T) -> Option<T> {
        let (index, sentence) = (self.index, self.sentence);
        let context = index.segments.get(window.segments.start)?.context;
        let mut whole = vec![Sight::default(); sentence.units.len()];
        for hit in &self.hits {
            if index.segments.get(hit.segment).is_some_and(|segment| segment.context == context) {
                whole[hit.unit].join(hit.sight);
            }
        }
        let (first, last) = (window.segments.start, window.segments.end.checked_sub(1)?);
        let from = self.hits.partition_point(|hit| hit.segment < first);
        let to = self.hits.partition_point(|hit| hit.segment <= last);
        let hits = self.hits.get(from..to)?;
        Some(look(&Stretch { index, sentence, first, last, hits, seen: &window.seen, whole: &whole }))
    }

    /// The best windows of each context that holds any unit, in the order of the contexts.
    pub(super) fn contexts<'s>(&'s self, stop: &'s Stop) -> impl Iterator<Item = Result<Best, Stopped>> + 's {
        let context = |hit: &Hit| self.index.segments.get(hit.segment).map(|segment| segment.context);
        self.hits.chunk_by(move |a, b| context(a) == context(b)).map(|hits| self.best(hits, stop))
    }

    /// The best windows of one context, whose hits these are.
    ///
    /// Each segment starts at most [`WIDEST`] windows, and a window is weighed in full only when its hits cover enough
    /// of the sentence to pay for it: the time is linear in the hits, whatever the text.
    fn best(&self, hits: &[Hit], stop: &Stop) -> Result<Best, Stopped> {
        stop.check()?;
        let mut whole = vec![Sight::default(); self.sentence.units.len()];
        for hit in hits {
            whole[hit.unit].join(hit.sight);
        }
        let mut best = Best::default();
        let mut most = 0.0;
        let mut seen = vec![Sight::default(); self.sentence.units.len()];
        let mut starts = hits;
        while let Some(first) = starts.first().map(|hit| hit.segment) {
            stop.check()?;
            let mut covered = 0.0;
            let mut length = 0;
            let within = starts.partition_point(|hit| hit.segment < first + WIDEST);
            for group in starts[..within].chunk_by(|a, b| a.segment == b.segment) {
                length += group.len();
                for hit in group {
                    let unit = &self.sentence.units[hit.unit];
                    let before = seen[hit.unit].credit();
                    seen[hit.unit].join(hit.sight);
                    covered += unit.weight * (seen[hit.unit].credit() - before);
                }
                let worth = covered > most || covered >= WORTH * self.sentence.weight;
                if worth && !best.is_beyond(covered / self.sentence.weight, self.weights.most(self.sentence)) {
                    most = covered.max(most);
                    let last = group.first().map_or(first, |hit| hit.segment);
                    let (index, sentence) = (self.index, self.sentence);
                    let hits = &starts[..length];
                    self.weigh(&Stretch { index, sentence, first, last, hits, seen: &seen, whole: &whole }, &mut best);
                }
            }
            for hit in &starts[..within] {
                seen[hit.unit] = Sight::default();
            }
            starts = &starts[starts.partition_point(|hit| hit.segment == first)..];
        }
        Ok(best)
    }

    fn weigh(&self, stretch: &Stretch<'_>, best: &mut Best) {
        let facts = Facts::of(stretch);
        let score = self.weights.score(&facts);
        let width = stretch.range().len();
        // Of equals the narrowest, of those the first.
        let beats = |held: &Option<Window>, value: f32, held_value: fn(&Window) -> f32| {
            held.as_ref().is_none_or(|held| {
                let held_value = held_value(held);
                value > held_value || (value == held_value && width < held.segments.len())
            })
        };
        let agrees = facts.agrees() && beats(&best.agreeing, facts.coverage, |held| held.facts.coverage);
        let scores = beats(&best.scored, score, |held| held.score);
        if !agrees && !scores {
            return;
        }
        let segments = stretch.segments();
        let window = Window {
            segments: stretch.range(),
            seen: stretch.seen.to_vec(),
            facts,
            score,
            shared: Shared {
                negates: segments.iter().any(|segment| segment.negates),
                asks: segments.iter().any(|segment| segment.asks),
                upheld: facts.upheld,
            },
        };
        if agrees {
            best.agreeing = Some(window.clone());
        }
        if scores {
            best.scored = Some(window);
        }
    }
}

impl Best {
    /// Can no window of this coverage, and at most this much above it, be among the best?
    fn is_beyond(&self, coverage: f32, above: f32) -> bool {
        // More than the error of adding the coverage up in another order.
        let coverage = coverage + 1e-3;
        self.scored.as_ref().is_some_and(|held| coverage + above < held.score)
            && self.agreeing.as_ref().is_some_and(|held| coverage < held.facts.coverage)
    }
}

/// The best windows of one context.
#[derive(Debug, Clone, Default)]
pub(super) struct Best {
    /// The one with the highest score: of equals the narrowest, of those the first.
    pub(super) scored: Option<Window>,
    /// The one with the widest coverage among those that contradict nothing.
    pub(super) agreeing: Option<Window>,
}
