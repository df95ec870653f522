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

/// One segment of one context.
#[derive(Debug)]
pub(super) struct Segment {
    /// The context's position in the list as sent.
    pub(super) context: usize,
    /// Where in it, in bytes.
    pub(super) range: Range<usize>,
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
                for token in text::read(&text[range.clone()]).tokens {
                    let flag = if token.negated { NEGATED } else { PLAIN };
                    let near = claim::beginning(&token).and_then(|key| vocabulary.find(&key));
                    for key in vocabulary.find(&token.key).into_iter().chain(near) {
                        post(&mut postings[key], cut.len(), flag);
                    }
                }
                cut.push(Segment { context, range });
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
