//! What order tells: which occurrence of a word is meant, and what stands in the place of another.
//!
//! Works on what was seen of a sentence in a stretch, by token. Every function is linear in the hits it is given, but
//! for factors bounded by the constants.

use std::ops::Range;

use super::checks::{Hit, Sight, Stretch};
use super::claim::{Sentence, Unit};
use super::text::Kind;

/// As many neighbours on each side of a unit tell which of its occurrences is meant.
const NEIGHBOURS: usize = 3;

/// Neighbours tell something within this many tokens.
const NEIGHBOURHOOD: usize = 8;

/// What a token of distance takes off a neighbour's word.
const FADING: f32 = 0.25;

/// As many occurrences in one stretch are compared; a text that repeats a word more often is not read for its order.
const OCCURRENCES: usize = 16;

/// In a sentence of more words of weight than this, roles are not told.
const LONGEST_WITH_ROLES: usize = 24;

/// Something else stands in the place of some words when it and they are at most this many words long.
const REPLACED_WORDS: usize = 3;

/// The same in pairs of characters.
const REPLACED_PAIRS: usize = 4;

/// Of the hits of this unit that are `wanted`, the one that has most of the unit's neighbours in the sentence near it,
/// and how much that is; the first of equals.
pub(super) fn aligned(stretch: &Stretch<'_>, unit: usize, wanted: impl Fn(Sight) -> bool) -> Option<(Hit, f32)> {
    let candidates = stretch.hits.iter().filter(|hit| hit.unit == unit && wanted(hit.sight)).take(OCCURRENCES);
    let mut best: Option<(Hit, f32)> = None;
    for hit in candidates {
        let support = support(stretch, unit, hit.token);
        if best.is_none_or(|(_, held)| support > held) {
            best = Some((*hit, support));
        }
    }
    best
}

/// How much of the neighbours of this unit stands around `token`.
fn support(stretch: &Stretch<'_>, unit: usize, token: usize) -> f32 {
    let heavy = &stretch.sentence.heavy;
    let here = heavy.partition_point(|other| *other < unit);
    let after = here + usize::from(heavy.get(here) == Some(&unit));
    let left = heavy[..here].iter().rev().zip(1_u8..).take(NEIGHBOURS);
    let right = heavy[after..].iter().zip(1_u8..).take(NEIGHBOURS);
    let from = stretch.hits.partition_point(|hit| hit.token + NEIGHBOURHOOD < token);
    let around = stretch.hits[from..].iter().take_while(|hit| hit.token <= token + NEIGHBOURHOOD);
    let near = |neighbour: usize| {
        let hits = around.clone().filter(|hit| hit.unit == neighbour && hit.sight.covers());
        hits.map(|hit| u8::try_from(hit.token.abs_diff(token)).unwrap_or(u8::MAX)).min()
    };
    let told = left.chain(right).filter_map(|(neighbour, steps)| Some((near(*neighbour)?, steps)));
    told.map(|(tokens, steps)| 1.0 / f32::from(steps + 1) / (1.0 + FADING * f32::from(tokens))).sum()
}

/// The one thing of the sentence, as a range of its tokens, in whose place the stretch says something else while it
/// says all the rest. Words of little weight may be missing besides.
pub(super) fn replaced(stretch: &Stretch<'_>) -> Option<Range<usize>> {
    let Stretch { sentence, seen, .. } = *stretch;
    let dense = sentence.units.first()?.kind == Kind::Pair;
    let longest = if dense { REPLACED_PAIRS } else { REPLACED_WORDS };
    let gap = only_gap(sentence, seen).filter(|gap| gap.len() <= longest)?;
    let middle =
        || middle(sentence.order.get(gap.clone()).unwrap_or_default().iter().map(|unit| &sentence.units[*unit]));
    if dense && middle().all(is_hiragana) {
        return None;
    }
    let left = *sentence.order.get(gap.start.checked_sub(1)?)?;
    let right = sentence.order.get(gap.end);
    let end = stretch.index.end(&stretch.range());
    let mut covering = stretch.hits.iter().filter(|hit| hit.sight.covers()).peekable();
    while let Some(hit) = covering.next() {
        // Several units may be seen at one token.
        let mut next = covering.clone().skip_while(|other| other.token == hit.token).peekable();
        if hit.unit != left {
            continue;
        }
        let before = next.peek().map_or(end, |next| next.token);
        let between = before - hit.token - 1;
        let in_place = match right {
            Some(right) => {
                let mut there = next.take_while(|other| other.token == before);
                (1..=longest).contains(&between) && there.any(|other| other.unit == *right)
            }
            None => ends_in_words(dense, middle()) && between > 0 && stretch.index.is_heavy(hit.token + 1),
        };
        if in_place {
            return Some(gap);
        }
    }
    None
}

/// Does the stretch say all of the sentence, but only with the names before some word of it and those after it in each
/// other's places?
///
/// Only a segment tells that says all by itself, in the same voice, and each of the words once.
pub(super) fn exchanged(stretch: &Stretch<'_>) -> bool {
    let Stretch { index, sentence, seen, .. } = *stretch;
    let names = sentence.heavy.iter().filter(|unit| sentence.is_named(**unit)).count();
    if names < 2 || sentence.heavy.len() > LONGEST_WITH_ROLES || sentence.heavy.iter().any(|unit| !seen[*unit].covers())
    {
        return false;
    }
    let mut exchanged = false;
    for hits in stretch.hits.chunk_by(|a, b| a.segment == b.segment) {
        let segment = hits.first().and_then(|hit| index.segments.get(hit.segment));
        if segment.is_none_or(|segment| segment.passive != sentence.passive) {
            continue;
        }
        match has_names_crossed(sentence, hits) {
            Some(true) => exchanged = true,
            Some(false) => return false,
            None => {}
        }
    }
    exchanged
}

/// Of the hits of one segment; `None` when it does not say all of the sentence, each word once.
fn has_names_crossed(sentence: &Sentence, hits: &[Hit]) -> Option<bool> {
    let place = |unit: usize| {
        let mut tokens = hits.iter().filter(|hit| hit.unit == unit && hit.sight.covers()).map(|hit| hit.token);
        let first = tokens.next()?;
        tokens.all(|token| token == first).then_some(first)
    };
    let places: Vec<(usize, usize)> =
        sentence.heavy.iter().map(|unit| Some((*unit, place(*unit)?))).collect::<Option<_>>()?;
    let (names, others): (Vec<_>, Vec<_>) = places.into_iter().partition(|(unit, _)| sentence.is_named(*unit));
    Some(others.iter().any(|(middle, there)| {
        let before = names.iter().filter(|(name, _)| name < middle).count();
        (1..names.len()).contains(&before) && names.iter().all(|(name, own)| (own < there) != (name < middle))
    }))
}

/// The characters in the middle of these neighbouring pairs: the first and the last character of all were seen in other
/// pairs. None is in the middle of a single pair, which is missing where something was only put in between.
fn middle<'a>(pairs: impl Iterator<Item = &'a Unit>) -> impl Iterator<Item = char> {
    pairs.skip(1).filter_map(|pair| pair.written.chars().next())
}

fn is_hiragana(c: char) -> bool {
    matches!(c, '\u{3041}'..='\u{309F}')
}

/// Does the sentence end in a word rather than in an ending of one? Hangul and kana do not tell.
fn ends_in_words(dense: bool, middle: impl Iterator<Item = char>) -> bool {
    !dense || middle.filter(|c| matches!(c, '\u{4E00}'..='\u{9FFF}')).count() > 1
}

/// The tokens of the sentence that were not seen, from the first of weight on, if all of them stand together.
fn only_gap(sentence: &Sentence, seen: &[Sight]) -> Option<Range<usize>> {
    let order = &sentence.order;
    let missing = |at: &usize| order.get(*at).is_some_and(|unit| !seen[*unit].covers());
    let opens = |at: &usize| missing(at) && sentence.units[order[*at]].is_weighty();
    let start = (0..order.len()).find(opens)?;
    let end = (start..order.len()).find(|at| !missing(at)).unwrap_or(order.len());
    (end..order.len()).all(|at| !opens(&at)).then_some(start..end)
}
