//! Hamming similarity: how many positions hold the same code point.
//!
//! ```text
//! d = positions that differ + difference of the lengths
//! similarity = 1 - d / max(length a, length b)
//! ```
//!
//! 1.0 for two empty texts. The shorter text is padded with something that equals nothing, as RapidFuzz does by
//! default; the classic definition (R. W. Hamming, "Error detecting and error correcting codes", 1950) knows only
//! texts of one length. One letter inserted at the front shifts all others, so this measure suits texts that are
//! either copies or not.
//!
//! ```
//! use context_recall::recall::similarity::DistanceMeasure;
//!
//! // One of seven differs; then one of seven differs and one is missing.
//! assert_eq!(DistanceMeasure::Hamming.similarity("karolin", "karolim"), 1.0 - 1.0 / 7.0);
//! assert_eq!(DistanceMeasure::Hamming.similarity("karolin", "kerolin "), 1.0 - 2.0 / 8.0);
//! ```

use super::symbols::{STRIDE, Symbol};
use super::{Compare, normalized};
use crate::recall::{Stop, Stopped};

/// Compares in one pass; needs no memory of its own.
#[derive(Debug)]
pub(super) struct Hamming;

impl<S: Symbol> Compare<S> for Hamming {
    fn similarities(
        &mut self,
        reference: &[S],
        retrieved: &[&[S]],
        into: &mut Vec<f64>,
        stop: &Stop,
    ) -> Result<(), Stopped> {
        for text in retrieved {
            let mut distance = reference.len().abs_diff(text.len());
            for (a, b) in reference.chunks(STRIDE).zip(text.chunks(STRIDE)) {
                stop.check()?;
                distance += a.iter().zip(b).filter(|(a, b)| a != b).count();
            }
            into.push(normalized(distance, reference.len().max(text.len())));
        }
        Ok(())
    }
}
