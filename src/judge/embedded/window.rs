//! The search for the stretch of a context that carries a sentence best.

use std::cmp::Ordering;
use std::ops::Range;

use super::checks::{Sight, Weighing};
use super::claim::Sentence;
use super::index::Index;
use crate::recall::{Stop, Stopped};

/// A window is at most this many neighbouring segments of one context.
const WIDEST: usize = 4;

/// Windows that cover less are weighed only while nothing better is known, to say what is missing.
pub(super) const WORTH: f32 = 0.3;

/// A unit of the sentence seen in a segment.
#[derive(Debug, Clone, Copy)]
struct Hit {
    segment: usize,
    unit: usize,
    sight: Sight,
}

/// A window and what it says.
#[derive(Debug, Clone)]
pub(super) struct Window {
    /// Its segments, by their number in the index.
    pub(super) segments: Range<usize>,
    /// What was seen of each unit.
    pub(super) seen: Vec<Sight>,
    /// How well it carries the sentence.
    pub(super) weighing: Weighing,
}

/// The places where a sentence's units stand, by segment.
#[derive(Debug)]
pub(super) struct Search<'a> {
    index: &'a Index,
    sentence: &'a Sentence,
    hits: Vec<Hit>,
}

impl<'a> Search<'a> {
    /// Collects the places.
    pub(super) fn new(index: &'a Index, sentence: &'a Sentence) -> Self {
        let mut hits = Vec::new();
        for (number, unit) in sentence.units.iter().enumerate() {
            let mut add = |key, sight: &dyn Fn(u8) -> Sight| {
                let places = index.places(key).iter();
                hits.extend(places.map(|&(segment, flags)| Hit { segment, unit: number, sight: sight(flags) }));
            };
            add(unit.exact, &|exact| Sight { exact, ..Sight::default() });
            if let Some(near) = unit.near {
                add(near, &|near| Sight { near, ..Sight::default() });
            }
            for opposite in &unit.opposites {
                add(*opposite, &|_| Sight { opposite: true, ..Sight::default() });
            }
        }
        hits.sort_unstable_by_key(|hit| hit.segment);
        Self { index, sentence, hits }
    }

    /// The best window of each context that holds any unit, in the order of the contexts.
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
            let within = starts.partition_point(|hit| hit.segment < first + WIDEST);
            for group in starts[..within].chunk_by(|a, b| a.segment == b.segment) {
                for hit in group {
                    let unit = &self.sentence.units[hit.unit];
                    let before = seen[hit.unit].credit();
                    seen[hit.unit].join(hit.sight);
                    covered += unit.weight * (seen[hit.unit].credit() - before);
                }
                if covered > most || covered >= WORTH * self.sentence.weight {
                    most = covered.max(most);
                    let last = group.first().map_or(first, |hit| hit.segment);
                    let weighing = Weighing::of(
                        self.sentence,
                        &seen,
                        &whole,
                        self.index.segments.get(first..=last).unwrap_or_default(),
                    );
                    best.offer(Window { segments: first..last + 1, seen: seen.clone(), weighing });
                }
            }
            for hit in &starts[..within] {
                seen[hit.unit] = Sight::default();
            }
            starts = &starts[starts.partition_point(|hit| hit.segment == first)..];
        }
        Ok(best)
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

impl Best {
    fn offer(&mut self, window: Window) {
        let beaten = |held: &Option<Window>, value: &dyn Fn(&Weighing) -> f32| {
            held.as_ref().is_none_or(|held| {
                let narrower = window.segments.len() < held.segments.len();
                match value(&window.weighing).total_cmp(&value(&held.weighing)) {
                    Ordering::Greater => true,
                    Ordering::Equal => narrower,
                    Ordering::Less => false,
                }
            })
        };
        if window.weighing.agrees() && beaten(&self.agreeing, &|weighing| weighing.coverage) {
            self.agreeing = Some(window.clone());
        }
        if beaten(&self.scored, &Weighing::score) {
            self.scored = Some(window);
        }
    }
}
