//! The contexts, read once for all claims of a question: which segment holds which of the keys looked for.

use std::ops::Range;

use super::claim::{self, Key, Vocabulary};
use super::{segments, text};
use crate::recall::judge::Question;
use crate::recall::{Stop, Stopped};

/// A key stands in the segment, out of reach of any negator.
pub(super) const PLAIN: u8 = 1;
/// A key stands in the segment, near a negator.
pub(super) const NEGATED: u8 = 2;

/// As many words of a segment are kept as possible names.
const NAMES: usize = 16;

/// One segment of one context.
#[derive(Debug)]
pub(super) struct Segment {
    /// The context's position in the list as sent.
    pub(super) context: usize,
    /// Where in it, in bytes.
    pub(super) range: Range<usize>,
    /// The first of its words that may be names.
    pub(super) names: Vec<Name>,
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

/// Where each key of a vocabulary stands. Its size is bounded by the tokens of the contexts.
#[derive(Debug)]
pub(super) struct Index {
    /// All segments, by context and place.
    pub(super) segments: Vec<Segment>,
    /// By key: the segments that hold it, ascending, each with [`PLAIN`], [`NEGATED`] or both.
    postings: Vec<Vec<(usize, u8)>>,
}

impl Index {
    /// Reads the contexts of `question`, in time linear in their length.
    pub(super) fn read(question: &Question, vocabulary: &Vocabulary, stop: &Stop) -> Result<Self, Stopped> {
        let mut cut = Vec::new();
        let mut postings = vec![Vec::new(); vocabulary.len()];
        for (context, text) in question.passages() {
            stop.check()?;
            for range in segments::segments(text) {
                stop.check()?;
                let reading = text::read(&text[range.clone()]);
                let mut names: Vec<Name> = Vec::new();
                let mut first = true;
                let mut named = false;
                for token in &reading.tokens {
                    let flag = if token.negated { NEGATED } else { PLAIN };
                    let near = claim::beginning(token).and_then(|key| vocabulary.find(&key));
                    let exact = vocabulary.find(&token.key);
                    for key in exact.into_iter().chain(near) {
                        post(&mut postings[key], cut.len(), flag);
                    }
                    if let Some(before) = names.last_mut().filter(|_| named) {
                        before.next = (exact, near);
                    }
                    named = names.len() < NAMES && claim::may_be_name(&reading, token);
                    if named {
                        names.push(Name { first, keys: (exact, near), next: (None, None) });
                    }
                    first = first && claim::is_slight(&reading, token);
                }
                cut.push(Segment { context, range, names });
            }
        }
        Ok(Self { segments: cut, postings })
    }

    /// The segments that hold `key`, ascending.
    pub(super) fn places(&self, key: Key) -> &[(usize, u8)] {
        self.postings.get(key).map_or(&[], Vec::as_slice)
    }
}

fn post(places: &mut Vec<(usize, u8)>, segment: usize, flag: u8) {
    match places.last_mut() {
        Some((last, flags)) if *last == segment => *flags |= flag,
        _ => places.push((segment, flag)),
    }
}
