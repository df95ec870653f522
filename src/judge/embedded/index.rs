//! The contexts, read once for all claims of a question: where the keys stand that are looked for.

use std::ops::Range;

use super::claim::{self, Key, Vocabulary};
use super::segments;
use super::text::{self, Kind, Reading};
use crate::recall::judge::Question;
use crate::recall::{Stop, Stopped};

/// A key stands there out of reach of any negator.
pub(super) const PLAIN: u8 = 1;
/// A key stands there near a negator.
pub(super) const NEGATED: u8 = 1 << 1;
/// A key stands there close to a negator or a word such as `failed`, or is what it denies.
pub(super) const DENIED: u8 = 1 << 2;

/// As many words of a segment are kept as possible names.
const NAMES: usize = 16;

/// One segment of one context.
#[derive(Debug)]
pub(super) struct Segment {
    /// The context's position in the list as sent.
    pub(super) context: usize,
    /// Where in it, in bytes.
    pub(super) range: Range<usize>,
    /// The number of its first token.
    pub(super) start: usize,
    /// The first of its words that may be names, by their number in the index.
    pub(super) names: Range<usize>,
    /// Does it negate anything?
    pub(super) negates: bool,
    /// Is it a question?
    pub(super) asks: bool,
    /// Does it say by whom something was done?
    pub(super) passive: bool,
}

/// A word of a segment that may be a name. A key is `None` where no claim looks for it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Name {
    /// Does nothing of weight stand before it?
    pub(super) first: bool,
    /// The word: itself, and words that begin as it does.
    pub(super) keys: (Option<Key>, Option<Key>),
    /// The same of what follows it.
    pub(super) next: (Option<Key>, Option<Key>),
}

/// Where a key stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// The segment's number.
    pub(super) segment: usize,
    /// The token's number, counted through all segments; negators are not counted.
    pub(super) token: usize,
    /// [`PLAIN`] or [`NEGATED`], and perhaps [`DENIED`].
    pub(super) flags: u8,
}

/// Where each key of a vocabulary stands. Its size is bounded by the tokens of the contexts.
#[derive(Debug)]
pub(super) struct Index {
    /// All segments, by context and place.
    pub(super) segments: Vec<Segment>,
    /// All possible names, by segment.
    names: Vec<Name>,
    /// By token: does it say enough for something to depend on it?
    heavy: Vec<bool>,
    /// By key: where it stands, ascending.
    places: Vec<Vec<Place>>,
}

impl Index {
    /// Reads the contexts of `question`, in time linear in their length.
    pub(super) fn read(question: &Question, vocabulary: &Vocabulary, stop: &Stop) -> Result<Self, Stopped> {
        let places = vec![Vec::new(); vocabulary.len()];
        let mut index = Self { segments: Vec::new(), names: Vec::new(), heavy: Vec::new(), places };
        let mut reading = Reading::default();
        for (context, text) in question.passages() {
            stop.check()?;
            for range in segments::segments(text) {
                stop.check()?;
                text::read(&text[range.clone()], &mut reading);
                index.enter(context, range, &reading, vocabulary);
            }
        }
        Ok(index)
    }

    fn enter(&mut self, context: usize, range: Range<usize>, reading: &Reading, vocabulary: &Vocabulary) {
        let (segment, start, names) = (self.segments.len(), self.heavy.len(), self.names.len());
        let (mut first, mut named) = (true, false);
        let mut negates = false;
        for token in &reading.tokens {
            let (exact, near) = if token.kind == Kind::Negator {
                negates = true;
                (None, None)
            } else {
                let polarity = if token.negated { NEGATED } else { PLAIN };
                let flags = if token.denied { polarity | DENIED } else { polarity };
                let keys = vocabulary.find(reading, token);
                let place = Place { segment, token: self.heavy.len(), flags };
                for key in [keys.0, keys.1].into_iter().flatten() {
                    self.places[key].push(place);
                }
                self.heavy.push(!token.light);
                keys
            };
            if let Some(before) = self.names.last_mut().filter(|_| named) {
                before.next = (exact, near);
            }
            named = self.names.len() < names + NAMES && claim::may_be_name(reading, token);
            if named {
                self.names.push(Name { first, keys: (exact, near), next: (None, None) });
            }
            first = first && (token.light || token.kind == Kind::Negator);
        }
        let (asks, passive) = (reading.asks(), reading.is_passive());
        self.segments.push(Segment { context, range, start, names: names..self.names.len(), negates, asks, passive });
    }

    /// Where `key` stands, ascending.
    pub(super) fn places(&self, key: Key) -> &[Place] {
        self.places.get(key).map_or(&[], Vec::as_slice)
    }

    /// The possible names of these segments.
    pub(super) fn names(&self, segments: &[Segment]) -> &[Name] {
        let (Some(first), Some(last)) = (segments.first(), segments.last()) else { return &[] };
        self.names.get(first.names.start..last.names.end).unwrap_or_default()
    }

    /// Does this token say enough for something to depend on it?
    pub(super) fn is_heavy(&self, token: usize) -> bool {
        self.heavy.get(token).copied().unwrap_or_default()
    }

    /// The number of the first token after these segments.
    pub(super) fn end(&self, segments: &Range<usize>) -> usize {
        self.segments.get(segments.end).map_or(self.heavy.len(), |next| next.start)
    }
}
