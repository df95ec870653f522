//! How well a stretch of context carries a sentence of a claim: what it covers, and what speaks against it.

use super::claim::{Sentence, Unit};
use super::index::{NEGATED, PLAIN, Segment};
use super::text::Kind;

/// What a word with the same beginning counts, beside 1 for the same stem.
const NEAR_CREDIT: f32 = 0.9;

/// Polarity differs when more than this share of what is covered, by weight, is negated on one side only.
const TURNED: f32 = 0.5;

/// What one objection costs in [`Weighing::score`]. Enough that full coverage with an objection falls below every
/// threshold in `decision`.
const OBJECTION: f32 = 0.5;

/// A name that opens a sentence is at most this many words long.
const OPENING_WORDS: usize = 2;

/// The same in pairs of characters.
const OPENING_PAIRS: usize = 6;

/// With fewer words of weight after the opening, too little is alike to say that the rest is.
const LEAST_REST: usize = 2;

/// What was seen of one unit in some stretch of context.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sight {
    /// The unit itself: flags of `index`.
    pub(super) exact: u8,
    /// A word with its beginning: flags of `index`.
    pub(super) near: u8,
    /// A word that says the opposite.
    pub(super) opposite: bool,
}

impl Sight {
    /// What was seen in either of two places.
    pub(super) fn join(&mut self, other: Self) {
        self.exact |= other.exact;
        self.near |= other.near;
        self.opposite |= other.opposite;
    }

    /// How much of its unit this covers, from 0 to 1.
    pub(super) fn credit(self) -> f32 {
        match self {
            Self { exact: 1.., .. } => 1.0,
            Self { near: 1.., .. } => NEAR_CREDIT,
            _ => 0.0,
        }
    }
}

/// The result: plain facts, by unit numbers.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Weighing {
    /// The share of the sentence's weight that is covered, from 0 to 1.
    pub(super) coverage: f32,
    /// Units that are not covered.
    pub(super) missing: Vec<usize>,
    /// Numbers that the stretch does not give.
    pub(super) numbers: Vec<usize>,
    /// Names that the whole context does not give; a pronoun may stand for them in the stretch.
    pub(super) names: Vec<usize>,
    /// Units whose opposite is there while they are not.
    pub(super) opposites: Vec<usize>,
    /// One side negates what the other states.
    pub(super) turned: bool,
    /// The stretch says the same, but of another: it has another name where the sentence opens with one.
    pub(super) swapped: bool,
}

impl Weighing {
    /// Weighs what was `seen` in a stretch, and in the `whole` context around it, against `sentence`.
    ///
    /// `stretch` are the segments, for names that stand in the place of the sentence's.
    pub(super) fn of(sentence: &Sentence, seen: &[Sight], whole: &[Sight], stretch: &[Segment]) -> Self {
        let sights = || sentence.units.iter().zip(seen).enumerate();
        let pick = |wanted: &dyn Fn(&Unit, Sight) -> bool| -> Vec<usize> {
            sights().filter(|(_, (unit, sight))| wanted(unit, **sight)).map(|(number, _)| number).collect()
        };
        let covered: f32 = sights().map(|(_, (unit, sight))| unit.weight * sight.credit()).sum();
        let named = |number: &usize| whole.get(*number).is_some_and(|sight| sight.credit() > 0.0);
        let mut names = pick(&|unit, sight| unit.name && sight.credit() == 0.0);
        names.retain(|number| !named(number));
        Self {
            coverage: covered / sentence.weight,
            missing: pick(&|_, sight| sight.credit() == 0.0),
            numbers: pick(&|unit, sight| unit.kind == Kind::Number && sight.exact == 0),
            names,
            opposites: pick(&|_, sight| sight.opposite && sight.exact == 0),
            turned: is_turned(sentence, seen),
            swapped: is_swapped(sentence, seen, whole, stretch),
        }
    }

    /// The same for what windows of several contexts have `seen` that each contradict nothing.
    ///
    /// Such windows are not held against each other: their number must never hurt.
    pub(super) fn of_agreeing(sentence: &Sentence, seen: &[Sight]) -> Self {
        Self { opposites: Vec::new(), turned: false, ..Self::of(sentence, seen, seen, &[]) }
    }

    /// Coverage less what the objections cost: from -1 to 1, and the higher the better carried.
    pub(super) fn score(&self) -> f32 {
        let objections = [!self.numbers.is_empty(), !self.names.is_empty(), !self.agrees()];
        let count = objections.into_iter().filter(|objection| *objection).count();
        (0..count).fold(self.coverage, |score, _| score - OBJECTION)
    }

    /// Nothing in the stretch contradicts what it covers. More context can supply what is missing, but not this.
    pub(super) fn agrees(&self) -> bool {
        self.opposites.is_empty() && !self.turned && !self.swapped
    }
}

fn is_turned(sentence: &Sentence, seen: &[Sight]) -> bool {
    let (mut met, mut turned) = (0.0, 0.0);
    for (unit, sight) in sentence.units.iter().zip(seen).filter(|(unit, _)| unit.is_heavy()) {
        let polarity = sight.exact | sight.near;
        let own = if unit.negated { NEGATED } else { PLAIN };
        if polarity != 0 {
            met += unit.weight;
            turned += if polarity & own == 0 { unit.weight } else { 0.0 };
        }
    }
    turned > met * TURNED
}

/// Does the stretch say what the sentence says, but of something else?
///
/// The first word's capital says nothing, and most first words that a context lacks are no names. So it takes all three:
/// the context lacks the opening, the stretch has all the rest, and a word there that the sentence lacks stands where
/// the opening would, at the start or just before what follows it.
fn is_swapped(sentence: &Sentence, seen: &[Sight], whole: &[Sight], stretch: &[Segment]) -> bool {
    let Some(opener) = sentence.units.first().filter(|_| sentence.opens_with_name) else { return false };
    let longest = if opener.kind == Kind::Pair { OPENING_PAIRS } else { OPENING_WORDS };
    let absent = whole.iter().take_while(|sight| sight.credit() == 0.0).count();
    if absent == 0 || absent > longest {
        return false;
    }
    let mut rest = sentence.units.iter().zip(seen).skip(absent);
    let heavy = rest.clone().filter(|(unit, _)| unit.is_heavy()).count();
    if heavy < LEAST_REST || rest.any(|(unit, sight)| unit.is_heavy() && sight.credit() == 0.0) {
        return false;
    }
    let next = sentence.units.get(absent);
    stretch.iter().flat_map(|segment| &segment.names).any(|name| {
        let in_place = name.first || next.is_some_and(|next| next.matches(name.next));
        in_place && !sentence.units.iter().any(|unit| unit.matches(name.keys))
    })
}
