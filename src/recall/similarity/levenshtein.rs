//! Levenshtein similarity: how few insertions, deletions and substitutions turn one text into the other.
//!
//! ```text
//! d = the least number of code points inserted, deleted or substituted
//! similarity = 1 - d / max(length a, length b)
//! ```
//!
//! 1.0 for two empty texts. Source: V. I. Levenshtein, "Binary codes capable of correcting deletions, insertions, and
//! reversals", 1966; divided by the longer length as in RapidFuzz. Two unrelated texts of one language and like
//! length come to some 0.2 to 0.3, since common letters meet by chance.
//!
//! ```
//! use context_recall::recall::similarity::DistanceMeasure;
//!
//! // Two substitutions and one insertion.
//! assert_eq!(DistanceMeasure::Levenshtein.similarity("kitten", "sitting"), 1.0 - 3.0 / 7.0);
//! ```
//!
//! # Cost
//!
//! The table of the textbook, 64 cells at a time: H. Hyyrö, "A bit-vector algorithm for computing Levenshtein and
//! Damerau edit distances", 2003, after G. Myers, 1999. A column of the table is kept as differences between
//! neighbouring cells, which are -1, 0 or 1, in two bits each.
//!
//! The reference stands upright and is cut into strips of at most 512 symbols. A strip runs over *all* retrieved
//! texts before the next one begins: its table of matches is built once and stays in the nearest cache, its state in
//! registers, and between strips each column leaves two bits. So memory is a quarter of a byte for each retrieved
//! symbol however long the reference is.

use super::symbols::Symbol;
use super::{Compare, normalized};
use crate::recall::{Stop, Stopped};

/// Bits in a word.
const WORD: usize = u64::BITS as usize;
/// Words in the tallest strip. Eight rows of bits are one cache line and just about the state a core keeps at hand.
const WORDS: usize = 8;

/// For one symbol, where it stands in the strip.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Matches([u64; WORDS]);

/// The steps along the lower edge of a strip, one bit for each of 64 columns.
#[derive(Debug, Clone, Copy)]
struct Edge {
    up: u64,
    down: u64,
}

/// The edge above the first strip: turning nothing into a text costs one more for each symbol.
const TOP: Edge = Edge { up: !0, down: 0 };

/// Levenshtein's working memory, kept over all pairs of a request.
#[derive(Debug)]
pub(super) struct Levenshtein {
    /// For each symbol its row in `rows`. Row 0 is of the symbols that do not occur in the strip.
    row_of: Vec<u16>,
    rows: Vec<Matches>,
    /// The lower edges of all retrieved texts, each beginning at an entry of its own.
    edges: Vec<Edge>,
    distances: Vec<usize>,
}

impl Levenshtein {
    /// For texts over an alphabet of `symbols`.
    pub(super) fn new(symbols: usize) -> Self {
        Self { row_of: vec![0; symbols], rows: vec![Matches([0; WORDS])], edges: Vec::new(), distances: Vec::new() }
    }

    /// Takes one strip of the reference down all `retrieved` texts.
    fn run<S: Symbol, const W: usize>(&mut self, strip: &[S], retrieved: &[&[S]], stop: &Stop) -> Result<(), Stopped> {
        for (place, symbol) in strip.iter().enumerate() {
            let row = &mut self.row_of[symbol.index()];
            if *row == 0 {
                *row = self.rows.len() as u16;
                self.rows.push(Matches([0; WORDS]));
            }
            self.rows[usize::from(*row)].0[place / WORD] |= 1 << (place % WORD);
        }
        let mut edges = self.edges.as_mut_slice();
        let mut outcome = Ok(());
        for (text, distance) in retrieved.iter().zip(&mut self.distances) {
            let (own, rest) = edges.split_at_mut(text.len().div_ceil(WORD));
            edges = rest;
            match columns::<S, W>(&self.row_of, &self.rows, text, own, stop) {
                Ok(state) => *distance = state.below(*distance, strip.len()),
                Err(stopped) => {
                    outcome = Err(stopped);
                    break;
                }
            }
        }
        for symbol in strip {
            self.row_of[symbol.index()] = 0;
        }
        self.rows.truncate(1);
        outcome
    }
}

/// The differences down one column of a strip: a cell is one more or one less than the cell above it, or the same.
struct Column<const W: usize> {
    more: [u64; W],
    less: [u64; W],
}

impl<const W: usize> Column<W> {
    /// The cell `height` rows below a cell that holds `above`.
    fn below(&self, above: usize, height: usize) -> usize {
        let mut cell = above;
        for (word, (more, less)) in self.more.iter().zip(&self.less).enumerate() {
            let mask = match height.saturating_sub(word * WORD) {
                0 => 0,
                part @ 1..WORD => (1 << part) - 1,
                _ => !0,
            };
            let (more, less) = ((more & mask).count_ones(), (less & mask).count_ones());
            // In this order, since a cell is never negative but the difference of the two may be.
            cell = cell + more as usize - less as usize;
        }
        cell
    }
}

/// Walks a strip of `W` words along `text`. `edges` comes in as the upper edge and leaves as the lower one.
fn columns<S: Symbol, const W: usize>(
    row_of: &[u16],
    rows: &[Matches],
    text: &[S],
    edges: &mut [Edge],
    stop: &Stop,
) -> Result<Column<W>, Stopped> {
    let (mut more, mut less) = ([!0u64; W], [0u64; W]);
    stop.check()?;
    for (part, edge) in text.chunks(WORD).zip(edges) {
        stop.check()?;
        let (mut above, mut lower) = (*edge, Edge { up: 0, down: 0 });
        for symbol in part {
            let Matches(matches) = &rows[usize::from(row_of[symbol.index()])];
            let (mut up, mut down) = (above.up & 1, above.down & 1);
            above = Edge { up: above.up >> 1, down: above.down >> 1 };
            for word in 0..W {
                let (p, n) = (more[word], less[word]);
                let x = matches[word] | n | down;
                // A set bit: the cell equals its upper left neighbour. The sum carries runs of it downward.
                let same = ((x & p).wrapping_add(p) ^ p) | x;
                let right_up = n | !(same | p);
                let right_down = same & p;
                let (up_in, down_in) = ((right_up << 1) | up, (right_down << 1) | down);
                (up, down) = (right_up >> 63, right_down >> 63);
                more[word] = down_in | !(same | up_in);
                less[word] = up_in & same;
            }
            // Shifted in from the top by a fixed distance, which costs less than shifting by the column's number.
            lower = Edge { up: (lower.up >> 1) | (up << 63), down: (lower.down >> 1) | (down << 63) };
        }
        // A full part has pushed its first column down to bit 0 already.
        let short = WORD - part.len();
        *edge = Edge { up: lower.up >> short, down: lower.down >> short };
    }
    Ok(Column { more, less })
}

impl<S: Symbol> Compare<S> for Levenshtein {
    fn similarities(
        &mut self,
        reference: &[S],
        retrieved: &[&[S]],
        into: &mut Vec<f64>,
        stop: &Stop,
    ) -> Result<(), Stopped> {
        let parts = retrieved.iter().map(|text| text.len().div_ceil(WORD)).sum();
        self.edges.clear();
        self.edges.resize(parts, TOP);
        self.distances.clear();
        self.distances.extend(retrieved.iter().map(|text| text.len()));

        let mut rest = reference;
        while !rest.is_empty() {
            // The height is a constant of the compiled loop, so the last strips are put together from a few heights.
            let words = rest.len().div_ceil(WORD);
            let height = match words {
                1 => 1,
                2 => 2,
                3..=6 => 4,
                _ => WORDS,
            };
            let (strip, below) = rest.split_at(rest.len().min(height * WORD));
            rest = below;
            match height {
                1 => self.run::<S, 1>(strip, retrieved, stop)?,
                2 => self.run::<S, 2>(strip, retrieved, stop)?,
                4 => self.run::<S, 4>(strip, retrieved, stop)?,
                _ => self.run::<S, WORDS>(strip, retrieved, stop)?,
            }
        }
        let longest = |text: &&[S]| reference.len().max(text.len());
        let pairs = self.distances.iter().zip(retrieved);
        into.extend(pairs.map(|(&distance, text)| normalized(distance, longest(text))));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The table of the textbook, row by row.
    fn plain<S: PartialEq>(a: &[S], b: &[S]) -> usize {
        let mut row: Vec<usize> = (0..=b.len()).collect();
        for (i, x) in a.iter().enumerate() {
            let mut diagonal = std::mem::replace(&mut row[0], i + 1);
            for (j, y) in b.iter().enumerate() {
                let best = (diagonal + usize::from(x != y)).min(row[j].min(row[j + 1]) + 1);
                diagonal = std::mem::replace(&mut row[j + 1], best);
            }
        }
        row[b.len()]
    }

    fn assert_exact<S: Symbol + std::fmt::Debug>(reference: &[S], retrieved: &[&[S]], symbols: usize) {
        let mut kernel = Levenshtein::new(symbols);
        let stop = Stop::default();
        // Twice: the second round shows whatever the first one left behind.
        for _ in 0..2 {
            let mut similarities = Vec::new();
            kernel.similarities(reference, retrieved, &mut similarities, &stop).unwrap();
            let expected: Vec<usize> = retrieved.iter().map(|text| plain(reference, text)).collect();
            assert_eq!(kernel.distances, expected, "{reference:?} {retrieved:?}");
            assert_eq!(similarities.len(), retrieved.len());
        }
    }

    #[test]
    fn equals_the_plain_table_at_every_length_around_a_word_and_a_strip() {
        let mut random = fastrand::Rng::with_seed(7);
        let around =
            [1, 2, 3, 4, 6, 7, 8, 9, 15].into_iter().flat_map(|words| [words * 64 - 1, words * 64, words * 64 + 1]);
        for length in (0..4).chain(around) {
            for symbols in [2, 20] {
                let reference: Vec<u8> = (0..length).map(|_| random.u8(0..symbols)).collect();
                let mut near = reference.clone();
                for _ in 0..length / 10 {
                    let at = random.usize(0..near.len());
                    match random.u8(0..3) {
                        0 => near[at] = random.u8(0..symbols),
                        1 => drop(near.remove(at)),
                        _ => near.insert(at, random.u8(0..symbols)),
                    }
                }
                let far: Vec<u8> = (0..random.usize(0..200)).map(|_| random.u8(0..symbols)).collect();
                let even: Vec<u8> = (0..128).map(|_| random.u8(0..symbols)).collect();
                assert_exact(&reference, &[&near, &[], &far, &even, &reference], 20);
            }
        }
    }

    #[test]
    fn an_alphabet_as_large_as_the_strips_is_no_trouble() {
        let reference: Vec<u32> = (0..1500).collect();
        let other: Vec<u32> = (700..2000).rev().step_by(2).chain(0..90).collect();
        assert_exact(&reference, &[&other, &reference[3..]], 2000);
    }

    proptest! {
        #[test]
        fn equals_the_plain_table(
            reference in prop::collection::vec(0u16..5, 0..300),
            retrieved in prop::collection::vec(prop::collection::vec(0u16..5, 0..100), 0..3),
        ) {
            let retrieved: Vec<&[u16]> = retrieved.iter().map(Vec::as_slice).collect();
            assert_exact(&reference, &retrieved, 5);
        }
    }

    #[test]
    fn a_huge_pair_can_be_stopped_midway() {
        let text = vec![0u8; 4 << 20];
        let stop = Stop::default();
        std::thread::scope(|scope| {
            let run = scope.spawn(|| Levenshtein::new(1).similarities(&text, &[&text], &mut Vec::new(), &stop));
            std::thread::sleep(std::time::Duration::from_millis(20));
            stop.raise();
            // Without looking at `stop` this would take minutes.
            assert_eq!(run.join().unwrap(), Err(Stopped));
        });
    }
}
