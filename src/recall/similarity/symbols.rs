//! Texts as arrays of small numbers: what the measures compare in place of characters.
//!
//! Every measure works on Unicode code points and asks only whether two are equal, so the code points of one request
//! are numbered, in no particular order. Numbers below 256 fit a byte, which holds for most requests in one
//! alphabet: a request then takes no more memory than its own text, and tables per symbol stay tiny.

use crate::recall::{Stop, Stopped};

/// How many code points may pass between two looks at the [`Stop`]: well under a millisecond of work.
pub(super) const STRIDE: usize = 1 << 16;

/// The number of a code point, in the narrowest integer that holds all numbers of a request.
pub(super) trait Symbol: Copy + Eq {
    /// From a number that is known to fit.
    fn of(number: u32) -> Self;
    /// The number, for indexing a table of one entry a symbol.
    fn index(self) -> usize;
}

macro_rules! symbol {
    ($($width:ty),*) => {$(
        impl Symbol for $width {
            #[inline]
            fn of(number: u32) -> Self {
                number as $width
            }
            #[inline]
            fn index(self) -> usize {
                self as usize
            }
        }
    )*};
}
symbol!(u8, u16, u32);

/// Code points in one page of the table.
const PAGE: usize = 256;

/// The numbers given to the code points of one request.
///
/// A table of two levels in place of a hash map: the same few nanoseconds for every text, hostile ones included, and
/// room only for the pages of Unicode that occur.
#[derive(Debug)]
pub(super) struct Alphabet {
    /// For each page of Unicode its place in `pages`; 0 is the place of the first page and "none yet" for the others.
    page_of: Vec<u16>,
    /// One more than the number of each code point; 0 is "none yet".
    pages: Vec<[u32; PAGE]>,
    len: u32,
}

impl Alphabet {
    /// Numbers all code points of `texts`.
    pub(super) fn of<'a>(texts: impl Iterator<Item = &'a str>, stop: &Stop) -> Result<Self, Stopped> {
        let mut alphabet = Self { page_of: vec![0; (char::MAX as usize + 1) / PAGE], pages: vec![[0; PAGE]], len: 0 };
        // Which ASCII characters occur is told by a store for each byte, without a branch.
        let mut ascii = [false; 128];
        for text in texts {
            if text.is_ascii() {
                for part in text.as_bytes().chunks(STRIDE) {
                    stop.check()?;
                    part.iter().for_each(|&byte| ascii[usize::from(byte & 127)] = true);
                }
            } else {
                each_char(text, stop, |char| alphabet.add(char.into()))?;
            }
        }
        for byte in (0u8..).zip(ascii).filter_map(|(byte, occurs)| occurs.then_some(byte)) {
            alphabet.add(byte.into());
        }
        Ok(alphabet)
    }

    /// How many different code points there are.
    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    fn add(&mut self, code_point: u32) {
        let (page, place) = (code_point as usize / PAGE, code_point as usize % PAGE);
        if page > 0 && self.page_of[page] == 0 {
            self.page_of[page] = self.pages.len() as u16;
            self.pages.push([0; PAGE]);
        }
        let number = &mut self.pages[usize::from(self.page_of[page])][place];
        if *number == 0 {
            self.len += 1;
            *number = self.len;
        }
    }

    #[inline]
    fn number(&self, code_point: u32) -> u32 {
        let (page, place) = (code_point as usize / PAGE, code_point as usize % PAGE);
        self.pages[usize::from(self.page_of[page])][place].wrapping_sub(1)
    }

    /// Writes `texts`, all of whose code points are numbered, in symbols that are wide enough for [`Self::len`].
    pub(super) fn encode<'a, S: Symbol>(
        &self,
        texts: impl Iterator<Item = &'a str>,
        stop: &Stop,
    ) -> Result<Texts<S>, Stopped> {
        let mut encoded = Texts { symbols: Vec::new(), ends: Vec::new() };
        for text in texts {
            if text.is_ascii() {
                for part in text.as_bytes().chunks(STRIDE) {
                    stop.check()?;
                    let numbers = part.iter().map(|&byte| S::of(self.number(byte.into())));
                    encoded.symbols.extend(numbers);
                }
            } else {
                let symbols = &mut encoded.symbols;
                each_char(text, stop, |char| symbols.push(S::of(self.number(char.into()))))?;
            }
            encoded.ends.push(encoded.symbols.len());
        }
        Ok(encoded)
    }
}

/// Several texts in one buffer: a request may hold millions of short ones.
#[derive(Debug)]
pub(super) struct Texts<S> {
    symbols: Vec<S>,
    ends: Vec<usize>,
}

impl<S> Texts<S> {
    pub(super) fn iter(&self) -> impl Iterator<Item = &[S]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| &self.symbols[std::mem::replace(&mut start, end)..end])
    }
}

fn each_char(text: &str, stop: &Stop, mut visit: impl FnMut(char)) -> Result<(), Stopped> {
    for (position, char) in text.chars().enumerate() {
        if position % STRIDE == 0 {
            stop.check()?;
        }
        visit(char);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_code_points_and_only_they_get_equal_symbols() {
        let texts = ["", "aéa", "\u{0}日\u{10FFFF}", "ba", "é\u{ff}\u{100}日", ""];
        let stop = Stop::default();
        let alphabet = Alphabet::of(texts.into_iter(), &stop).unwrap();
        assert_eq!(alphabet.len(), 8);
        let encoded: Texts<u8> = alphabet.encode(texts.into_iter(), &stop).unwrap();
        let mut char_of = std::collections::HashMap::new();
        assert_eq!(encoded.iter().count(), texts.len());
        for (text, symbols) in texts.iter().zip(encoded.iter()) {
            assert_eq!(symbols.len(), text.chars().count());
            for (&symbol, char) in symbols.iter().zip(text.chars()) {
                assert!(symbol.index() < alphabet.len());
                assert_eq!(*char_of.entry(symbol).or_insert(char), char);
            }
        }
        assert_eq!(char_of.len(), alphabet.len());
    }

    #[test]
    fn every_code_point_has_a_place() {
        let all: String = ('\0'..=char::MAX).collect();
        let stop = Stop::default();
        let alphabet = Alphabet::of(std::iter::once(all.as_str()), &stop).unwrap();
        let encoded: Texts<u32> = alphabet.encode(std::iter::once(all.as_str()), &stop).unwrap();
        assert_eq!(alphabet.len(), all.chars().count());
        let mut numbers = encoded.symbols;
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(0..alphabet.len));
    }

    #[test]
    fn long_texts_can_be_stopped() {
        let stop = Stop::default();
        stop.raise();
        for text in ["a", "é"] {
            assert!(Alphabet::of(std::iter::once(text), &stop).is_err());
        }
    }
}
