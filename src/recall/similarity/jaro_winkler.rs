//! Jaro-Winkler similarity: [Jaro's](super::jaro), raised for texts that begin alike.
//!
//! ```text
//! k = length of the common prefix, at most 4 code points
//! W = J + k * 0.1 * (1 - J) when J > 0.7, else J
//! similarity = 1 - (1 - W)
//! ```
//!
//! Source: W. E. Winkler, "String comparator metrics and enhanced decision rules in the Fellegi-Sunter model of
//! record linkage", 1990; prefix weight and the bound of 0.7 as in RapidFuzz.
//!
//! ```
//! use context_recall::recall::similarity::DistanceMeasure;
//!
//! // J is 17/18 and three letters lead both names.
//! let similarity = DistanceMeasure::JaroWinkler.similarity("MARTHA", "MARHTA");
//! assert!((similarity - (17.0 / 18.0 + 0.3 / 18.0)).abs() < 1e-15);
//! ```

use super::Compare;
use super::jaro::Jaro;
use super::symbols::Symbol;
use crate::recall::{Stop, Stopped};

/// A longer common prefix earns no more.
const LONGEST_PREFIX: usize = 4;
/// What each common leading code point earns.
const PREFIX_WEIGHT: f64 = 0.1;
/// Only a Jaro similarity above this is raised.
const BONUS_ABOVE: f64 = 0.7;

/// Jaro-Winkler's working memory is Jaro's.
#[derive(Debug)]
pub(super) struct JaroWinkler<S>(Jaro<S>);

impl<S: Symbol> JaroWinkler<S> {
    /// For texts over an alphabet of `symbols`.
    pub(super) fn new(symbols: usize) -> Self {
        Self(Jaro::new(symbols))
    }
}

impl<S: Symbol> Compare<S> for JaroWinkler<S> {
    fn similarities(
        &mut self,
        reference: &[S],
        retrieved: &[&[S]],
        into: &mut Vec<f64>,
        stop: &Stop,
    ) -> Result<(), Stopped> {
        for text in retrieved {
            let mut raised = self.0.jaro(reference, text, stop)?;
            if raised > BONUS_ABOVE {
                let leading = reference.iter().zip(*text).take(LONGEST_PREFIX);
                let prefix = leading.take_while(|(a, b)| a == b).count();
                raised += prefix as f64 * PREFIX_WEIGHT * (1.0 - raised);
            }
            into.push(1.0 - (1.0 - raised));
        }
        Ok(())
    }
}
