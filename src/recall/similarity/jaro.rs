//! Jaro similarity: how many code points two texts share within a window, and in what order.
//!
//! ```text
//! window = max(length a, length b) / 2 - 1, rounded down, at least 0
//! m = pairs of equal code points at most `window` positions apart, each used once, earliest first
//! t = half the pairs whose order differs, rounded down
//! J = (m / length a + m / length b + (m - t) / m) / 3, and 0 when m = 0
//! similarity = 1 - (1 - J)
//! ```
//!
//! 1.0 for two empty texts, 0.0 when one is empty. The last line is no tautology in binary: a similarity is defined
//! here as one less a distance, and subtracting twice rounds.
//!
//! Source: M. A. Jaro, "Advances in record-linkage methodology as applied to matching the 1985 census of Tampa,
//! Florida", 1989; rounding of `t` and the window as in RapidFuzz. Made for names: long texts in one language share
//! most letters somewhere in the window and seldom fall below 0.6.
//!
//! ```
//! use context_recall::recall::similarity::DistanceMeasure;
//!
//! // All six letters are shared, T and H in the other order: (1 + 1 + 5/6) / 3.
//! let similarity = DistanceMeasure::Jaro.similarity("MARTHA", "MARHTA");
//! assert!((similarity - 17.0 / 18.0).abs() < 1e-15);
//! ```
//!
//! # Cost
//!
//! Linear in the two lengths, where the usual search of the window is quadratic. The pairs that the search picks can
//! be had for each symbol alone: its places in either text are two rising lists, and the window moves forward only.
//! So a place that fell behind the window is never used again, every other earlier place is taken, and one pointer
//! for each symbol finds the next candidate. Walked so, the two texts play the same part: the measure is symmetric.

use super::Compare;
use super::symbols::{STRIDE, Symbol};
use crate::recall::{Stop, Stopped};

/// Ends the chain of a symbol's places.
const NONE: u32 = u32::MAX;
/// Stands in a place's link once the place is taken.
const TAKEN: u32 = u32::MAX - 1;

/// Jaro's working memory, kept over all pairs of a request.
///
/// Places are 32-bit to halve the memory: of two texts that both have more than four thousand million code points,
/// the places beyond would count as different.
#[derive(Debug)]
pub(super) struct Jaro<S> {
    /// For each symbol the first place in the shorter text that is neither taken nor behind the window.
    first: Vec<u32>,
    /// For each place of the shorter text the next one with its symbol, or [`NONE`], or [`TAKEN`].
    link: Vec<u32>,
    /// The longer text's symbols that found a partner, in order.
    partners: Vec<S>,
}

impl<S: Symbol> Jaro<S> {
    /// For texts over an alphabet of `symbols`.
    pub(super) fn new(symbols: usize) -> Self {
        Self { first: vec![NONE; symbols], link: Vec::new(), partners: Vec::new() }
    }

    /// J of the formula above.
    pub(super) fn jaro(&mut self, a: &[S], b: &[S], stop: &Stop) -> Result<f64, Stopped> {
        let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
        if long.is_empty() {
            return Ok(1.0);
        }
        let found = self.pair_up(short, long, stop);
        // The cheaper of two ways, so that neither short pairs over a large alphabet nor a stopped long pair wait.
        if short.len() < self.first.len() {
            for &symbol in short {
                self.first[symbol.index()] = NONE;
            }
        } else {
            self.first.fill(NONE);
        }
        let (common, out_of_order) = found?;
        if common == 0 {
            return Ok(0.0);
        }
        let transpositions = out_of_order / 2;
        let m = common as f64;
        let sum = m / short.len() as f64 + m / long.len() as f64 + (common - transpositions) as f64 / m;
        Ok(sum / 3.0)
    }

    /// How many pairs there are, and how many of them stand in another order. Leaves `first` to be cleaned.
    fn pair_up(&mut self, short: &[S], long: &[S], stop: &Stop) -> Result<(usize, usize), Stopped> {
        let window = (long.len() / 2).saturating_sub(1);
        if self.link.len() < short.len() {
            // Fresh and zeroed, which is free until touched; what stands in it is overwritten before it is read.
            self.link = vec![0; short.len()];
        }
        self.partners.clear();
        for (place, &symbol) in short.iter().enumerate().take(TAKEN as usize).rev() {
            if place % STRIDE == 0 {
                stop.check()?;
            }
            self.link[place] = std::mem::replace(&mut self.first[symbol.index()], place as u32);
        }
        for (place, &symbol) in long.iter().enumerate() {
            if place % STRIDE == 0 {
                stop.check()?;
            }
            let first = &mut self.first[symbol.index()];
            while *first != NONE && (*first as usize).saturating_add(window) < place {
                *first = self.link[*first as usize];
            }
            if *first != NONE && *first as usize <= place.saturating_add(window) {
                *first = std::mem::replace(&mut self.link[*first as usize], TAKEN);
                self.partners.push(symbol);
            }
        }
        let mut out_of_order = 0;
        let mut partners = self.partners.iter();
        for (part, links) in short.chunks(STRIDE).zip(self.link.chunks(STRIDE)) {
            stop.check()?;
            let taken = part.iter().zip(links).filter(|(_, link)| **link == TAKEN);
            // `partners` comes second, or the last look of each round would swallow one of them.
            out_of_order += taken.zip(partners.by_ref()).filter(|((symbol, _), partner)| symbol != partner).count();
        }
        Ok((self.partners.len(), out_of_order))
    }
}

impl<S: Symbol> Compare<S> for Jaro<S> {
    fn similarities(
        &mut self,
        reference: &[S],
        retrieved: &[&[S]],
        into: &mut Vec<f64>,
        stop: &Stop,
    ) -> Result<(), Stopped> {
        for text in retrieved {
            into.push(1.0 - (1.0 - self.jaro(reference, text, stop)?));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The quadratic search of the window, as the definition reads.
    fn plain(a: &[u8], b: &[u8]) -> f64 {
        if a.is_empty() && b.is_empty() {
            return 1.0;
        }
        let window = (a.len().max(b.len()) / 2).saturating_sub(1);
        let mut taken = vec![false; a.len()];
        let mut partners = Vec::new();
        for (j, symbol) in b.iter().enumerate() {
            let (from, to) = (j.saturating_sub(window), (j + window + 1).min(a.len()));
            let free = (from..to).find(|&i| !taken[i] && a[i] == *symbol);
            if let Some(i) = free {
                taken[i] = true;
                partners.push(*symbol);
            }
        }
        if partners.is_empty() {
            return 0.0;
        }
        let own = a.iter().zip(&taken).filter(|(_, taken)| **taken);
        let t = own.zip(&partners).filter(|((x, _), y)| x != y).count() / 2;
        let m = partners.len();
        let sum = m as f64 / a.len() as f64 + m as f64 / b.len() as f64 + (m - t) as f64 / m as f64;
        sum / 3.0
    }

    proptest! {
        #[test]
        fn the_linear_walk_finds_what_the_window_search_finds(
            a in prop::collection::vec(0u8..6, 0..90),
            b in prop::collection::vec(0u8..6, 0..90),
            c in prop::collection::vec(0u8..60, 0..200),
            d in prop::collection::vec(0u8..60, 0..200),
        ) {
            let mut jaro = Jaro::new(60);
            let stop = Stop::default();
            for (x, y) in [(&a, &b), (&b, &a), (&c, &d), (&a, &c), (&a, &a)] {
                let fast = jaro.jaro(x, y, &stop).unwrap();
                prop_assert_eq!(fast.to_bits(), plain(x, y).to_bits());
            }
        }
    }

    #[test]
    fn a_walk_longer_than_one_stride_keeps_its_place() {
        // Blocks of one symbol keep the plain search affordable; the swapped pairs straddle the strides.
        let a: Vec<u8> = (0..STRIDE * 2 + 77).map(|i| (i % 3) as u8).collect();
        let mut b = a.clone();
        for at in (0..b.len() - 1).step_by(1021).chain([STRIDE - 1, 2 * STRIDE - 1]) {
            b.swap(at, at + 1);
        }
        let fast = Jaro::new(3).jaro(&a, &b, &Stop::default()).unwrap();
        let swapped = a.iter().zip(&b).filter(|(x, y)| x != y).count();
        // Every symbol finds a partner, and the k-th of either text pair up for each symbol.
        let m = a.len() as f64;
        assert_eq!(fast, (1.0 + 1.0 + (a.len() - swapped / 2) as f64 / m) / 3.0);
    }

    #[test]
    fn stopping_leaves_no_trace() {
        let (mut jaro, stop) = (Jaro::new(3), Stop::default());
        stop.raise();
        assert!(jaro.jaro(&[0u8, 1], &[1, 2], &stop).is_err());
        assert_eq!(jaro.first, [NONE; 3]);
    }
}
