//! What can be said of a stretch of context beside a sentence of a claim: how much it covers, and what speaks against
//! it.
//!
//! Facts only; what they are worth is told in `weights`.

use std::ops::Range;

use super::claim::{Sentence, Unit};
use super::index::{DENIED, Index, NEGATED, Name, PLAIN, Segment};
use super::order;
use super::text::Kind;

/// What a word with the same beginning counts, beside 1 for the same stem.
const NEAR_CREDIT: f32 = 0.9;

/// Polarity differs when more than this share of what is covered, by weight, is negated on one side only.
const TURNED: f32 = 0.5;

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
    /// Another of its kind.
    pub(super) rival: bool,
    /// A word that leads where it does.
    pub(super) along: bool,
    /// A word that leads the other way.
    pub(super) against: bool,
}

impl Sight {
    /// What was seen in either of two places.
    pub(super) fn join(&mut self, other: Self) {
        self.exact |= other.exact;
        self.near |= other.near;
        self.opposite |= other.opposite;
        self.rival |= other.rival;
        self.along |= other.along;
        self.against |= other.against;
    }

    /// How much of its unit this covers, from 0 to 1.
    pub(super) fn credit(self) -> f32 {
        match self {
            Self { exact: 1.., .. } => 1.0,
            Self { near: 1.., .. } => NEAR_CREDIT,
            _ => 0.0,
        }
    }

    /// Is the unit, or a form of it, there?
    pub(super) fn covers(self) -> bool {
        self.exact | self.near != 0
    }
}

/// Something of a unit seen at one token.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hit {
    /// The segment's number.
    pub(super) segment: usize,
    /// The token's number.
    pub(super) token: usize,
    /// The unit's number.
    pub(super) unit: usize,
    /// What was seen.
    pub(super) sight: Sight,
}

/// A stretch of one context, beside a sentence.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stretch<'a> {
    /// Where its segments, tokens and names are looked up.
    pub(super) index: &'a Index,
    /// The sentence.
    pub(super) sentence: &'a Sentence,
    /// Its first segment.
    pub(super) first: usize,
    /// Its last segment.
    pub(super) last: usize,
    /// What was seen in it, by token.
    pub(super) hits: &'a [Hit],
    /// The same by unit.
    pub(super) seen: &'a [Sight],
    /// What was seen of each unit in the whole context around it.
    pub(super) whole: &'a [Sight],
}

/// What holds of a stretch beside a sentence.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Facts {
    /// The share of the sentence's weight that is covered, from 0 to 1.
    pub(super) coverage: f32,
    /// A number of the sentence is not there.
    pub(super) number: bool,
    /// A name of the sentence is not in the whole context; a pronoun may stand for it in the stretch.
    pub(super) name: bool,
    /// The opposite of a word is there, or the other direction, while the word is not.
    pub(super) opposite: bool,
    /// One side negates what the other states.
    pub(super) turned: bool,
    /// It says the same, but of another: it has another name where the sentence opens with one.
    pub(super) swapped: bool,
    /// It says the same with its names in each other's places.
    pub(super) exchanged: bool,
    /// Another of its kind is there, while a word is not.
    pub(super) rival: bool,
    /// It says all but one thing, and in that place something else.
    pub(super) replaced: bool,
    /// The sentence negates something, and nothing there is negated.
    pub(super) undenied: bool,
    /// Both deny the same.
    pub(super) upheld: bool,
    /// The sentence leaves no exception, and nothing there says so.
    pub(super) sweeping: bool,
    /// The sentence asks, or speaks of its speaker, and nothing there does.
    pub(super) talk: bool,
}

impl Facts {
    /// What holds of `stretch`.
    pub(super) fn of(stretch: &Stretch<'_>) -> Self {
        let Stretch { sentence, seen, whole, .. } = *stretch;
        let segments = stretch.segments();
        Self {
            opposite: stretch.units().any(|number| stretch.is_opposed(number)),
            turned: is_turned(sentence, seen),
            swapped: is_swapped(sentence, seen, whole, stretch.index.names(segments)),
            exchanged: order::exchanged(stretch),
            rival: stretch.units().any(|number| stretch.is_rivalled(number)),
            replaced: order::replaced(stretch).is_some(),
            undenied: sentence.negates && !segments.iter().any(|segment| segment.negates),
            upheld: stretch.units().any(|number| stretch.is_upheld(number)),
            talk: is_talk(sentence, seen) || (sentence.asks && !segments.iter().any(|segment| segment.asks)),
            ..Self::of_covered(sentence, seen, whole)
        }
    }

    /// What holds of stretches of several contexts that each contradict nothing, and have `seen` this together.
    ///
    /// They are not held against each other: their number must never hurt. `others` holds what holds of any of them.
    pub(super) fn of_agreeing(sentence: &Sentence, seen: &[Sight], others: Shared) -> Self {
        Self {
            undenied: sentence.negates && !others.negates,
            upheld: others.upheld,
            talk: is_talk(sentence, seen) || (sentence.asks && !others.asks),
            ..Self::of_covered(sentence, seen, seen)
        }
    }

    fn of_covered(sentence: &Sentence, seen: &[Sight], whole: &[Sight]) -> Self {
        let sights = || sentence.units.iter().zip(seen);
        let covered: f32 = sights().map(|(unit, sight)| unit.weight * sight.credit()).sum();
        Self {
            coverage: covered / sentence.weight,
            number: sights().any(|(unit, sight)| is_number_missing(unit, *sight)),
            name: sentence.units.iter().zip(whole).any(|(unit, sight)| is_name_missing(unit, *sight)),
            sweeping: sights().any(|(unit, sight)| unit.sweeping && !sight.covers()),
            ..Self::default()
        }
    }

    /// Nothing in the stretch contradicts what it covers. More context can supply what is missing, but not this.
    pub(super) fn agrees(&self) -> bool {
        !(self.opposite || self.turned || self.swapped || self.exchanged || self.rival || self.replaced)
    }
}

/// What holds of any of several stretches.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Shared {
    /// Something is negated.
    pub(super) negates: bool,
    /// Something is asked.
    pub(super) asks: bool,
    /// The sentence and the stretch deny the same.
    pub(super) upheld: bool,
}

impl Shared {
    /// What holds of any of both.
    pub(super) fn join(&mut self, other: Self) {
        self.negates |= other.negates;
        self.asks |= other.asks;
        self.upheld |= other.upheld;
    }
}

impl<'a> Stretch<'a> {
    /// Its segments.
    pub(super) fn segments(&self) -> &'a [Segment] {
        self.index.segments.get(self.range()).unwrap_or_default()
    }

    /// The numbers of its segments.
    pub(super) fn range(&self) -> Range<usize> {
        self.first..self.last + 1
    }

    /// The numbers of the sentence's units.
    pub(super) fn units(&self) -> Range<usize> {
        0..self.sentence.units.len()
    }

    /// Does it say the opposite of this unit, or lead the other way?
    pub(super) fn is_opposed(&self, number: usize) -> bool {
        let sight = self.seen[number];
        (sight.opposite && sight.exact == 0) || (sight.against && !sight.covers() && self.leads_away(number))
    }

    /// Of the words there that lead somewhere, does the one in the place of this unit lead the other way?
    fn leads_away(&self, number: usize) -> bool {
        let along = order::aligned(self, number, |sight| sight.along).map(|(_, support)| support);
        let against = order::aligned(self, number, |sight| sight.against).map(|(_, support)| support);
        against > along
    }

    /// Does it have another of the kind of this unit, but not this?
    pub(super) fn is_rivalled(&self, number: usize) -> bool {
        let sight = self.seen[number];
        sight.rival && !sight.covers()
    }

    /// Is this unit denied both by the sentence and where the stretch has it?
    fn is_upheld(&self, number: usize) -> bool {
        let there = |(hit, _): (Hit, f32)| (hit.sight.exact | hit.sight.near) & DENIED != 0;
        self.sentence.units[number].denied && order::aligned(self, number, Sight::covers).is_some_and(there)
    }
}

/// Is this a number that is not there?
pub(super) fn is_number_missing(unit: &Unit, sight: Sight) -> bool {
    unit.kind == Kind::Number && sight.exact == 0
}

/// Is this a name that is not there?
pub(super) fn is_name_missing(unit: &Unit, sight: Sight) -> bool {
    unit.name && !sight.covers()
}

fn is_talk(sentence: &Sentence, seen: &[Sight]) -> bool {
    sentence.units.iter().zip(seen).any(|(unit, sight)| unit.speaker && !sight.covers())
}

fn is_turned(sentence: &Sentence, seen: &[Sight]) -> bool {
    let (mut met, mut turned) = (0.0, 0.0);
    for (unit, sight) in sentence.units.iter().zip(seen).filter(|(unit, _)| unit.is_heavy()) {
        let polarity = (sight.exact | sight.near) & (PLAIN | NEGATED);
        let own = if unit.negated { NEGATED } else { PLAIN };
        if polarity != 0 {
            met += unit.weight;
            turned += if polarity & own == 0 { unit.weight } else { 0.0 };
        }
    }
    turned > met * TURNED
}

/// Does the stretch, which has these names, say what the sentence says, but of something else?
///
/// The first word's capital says nothing, and most first words that a context lacks are no names. So it takes all three:
/// the context lacks the opening, the stretch has all the rest, and a word there that the sentence lacks stands where
/// the opening would, at the start or just before what follows it.
fn is_swapped(sentence: &Sentence, seen: &[Sight], whole: &[Sight], names: &[Name]) -> bool {
    let Some(opener) = sentence.units.first().filter(|_| sentence.opens_with_name) else { return false };
    let longest = if opener.kind == Kind::Pair { OPENING_PAIRS } else { OPENING_WORDS };
    let absent = whole.iter().take_while(|sight| !sight.covers()).count();
    if absent == 0 || absent > longest {
        return false;
    }
    let mut rest = sentence.units.iter().zip(seen).skip(absent);
    let heavy = rest.clone().filter(|(unit, _)| unit.is_heavy()).count();
    if heavy < LEAST_REST || rest.any(|(unit, sight)| unit.is_heavy() && !sight.covers()) {
        return false;
    }
    let next = sentence.units.get(absent);
    names.iter().any(|name| {
        let in_place = name.first || next.is_some_and(|next| next.matches(name.next));
        in_place && !sentence.units.iter().any(|unit| unit.matches(name.keys))
    })
}
