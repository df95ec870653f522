//! The string measures: how alike two texts are, from 0.0 to 1.0.
//!
//! Every measure is `1 - normalized distance` on Unicode code points, computed in IEEE doubles by the very operations
//! that Ragas and RapidFuzz use, so that a similarity is equal to theirs to the last bit and falls on the same side
//! of a threshold. Nothing is normalised, trimmed or folded in case. All four are symmetric, 1.0 for equal texts and
//! 0.0 when only one text is empty.
//!
//! A new measure is one file with its formula and its source, a variant of [`DistanceMeasure`] and an arm in
//! `compare_with`. This room knows neither thresholds nor recall: which of two equally similar
//! contexts is reported, and what counts as recalled, is decided in `recall/nonllm.rs`.

pub mod hamming;
pub mod jaro;
pub mod jaro_winkler;
pub mod levenshtein;
mod nearest;
mod symbols;

pub use nearest::nearest;

use self::symbols::{Alphabet, Symbol, Texts};
use super::{Stop, Stopped};

/// Which string measure decides how alike two texts are.
///
/// ```
/// use context_recall::recall::similarity::DistanceMeasure;
///
/// assert_eq!(DistanceMeasure::from_name("jaro_winkler"), Some(DistanceMeasure::JaroWinkler));
/// assert_eq!(DistanceMeasure::default().name(), "levenshtein");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum DistanceMeasure {
    /// The least number of edits: [`levenshtein`].
    #[default]
    Levenshtein,
    /// Position by position: [`hamming`].
    Hamming,
    /// Common code points within a window: [`jaro`].
    Jaro,
    /// Jaro, raised for a common prefix: [`jaro_winkler`].
    JaroWinkler,
}

impl DistanceMeasure {
    /// All measures, in the order in which they are listed to users.
    pub const ALL: [Self; 4] = [Self::Levenshtein, Self::Hamming, Self::Jaro, Self::JaroWinkler];

    /// The name on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Levenshtein => "levenshtein",
            Self::Hamming => "hamming",
            Self::Jaro => "jaro",
            Self::JaroWinkler => "jaro_winkler",
        }
    }

    /// The measure of that name, spelled exactly so.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|measure| measure.name() == name)
    }

    /// How alike two texts are, from 0.0 to 1.0.
    ///
    /// For many texts [`super::nonllm::recall`] is much faster, and it can be stopped.
    ///
    /// ```
    /// use context_recall::recall::similarity::DistanceMeasure;
    ///
    /// // Seven of ten differ. In binary this is a little above 0.3, and so it is here.
    /// let similarity = DistanceMeasure::Levenshtein.similarity("abcdefghij", "abc1234567");
    /// assert_eq!(similarity, 0.30000000000000004);
    /// ```
    #[must_use]
    pub fn similarity(self, a: &str, b: &str) -> f64 {
        let mut similarity = 0.0;
        let visit = |similarities: &[f64]| similarity = similarities.first().copied().unwrap_or(0.0);
        match compare(self, &[a], &[b], &Stop::default(), visit) {
            Ok(()) | Err(Stopped) => similarity,
        }
    }
}

/// A measure with its working memory, which is kept over all texts of a request.
trait Compare<S: Symbol> {
    /// Appends the similarity of `reference` with each of `retrieved`, in order.
    fn similarities(
        &mut self,
        reference: &[S],
        retrieved: &[&[S]],
        into: &mut Vec<f64>,
        stop: &Stop,
    ) -> Result<(), Stopped>;
}

/// Compares every reference with the retrieved texts and shows `visit` the similarities of one reference at a time.
///
/// `similarities[i]` belongs to `retrieved[i]`. The list ends with the first text that equals the reference, if there
/// is one: nothing is more alike than that, so what follows can change neither the best match nor its position.
///
/// # Errors
///
/// [`Stopped`] soon after `stop` was raised, also in the middle of one pair.
pub(super) fn compare(
    measure: DistanceMeasure,
    references: &[impl AsRef<str>],
    retrieved: &[impl AsRef<str>],
    stop: &Stop,
    visit: impl FnMut(&[f64]),
) -> Result<(), Stopped> {
    let references = || references.iter().map(AsRef::as_ref);
    let retrieved = || retrieved.iter().map(AsRef::as_ref);
    let alphabet = Alphabet::of(references().chain(retrieved()), stop)?;
    let symbols = alphabet.len();

    // One numbering for all texts of a request; the width of a number is chosen once, here.
    macro_rules! in_symbols_of {
        ($width:ty) => {{
            let references: Texts<$width> = alphabet.encode(references(), stop)?;
            let retrieved = alphabet.encode(retrieved(), stop)?;
            compare_with(measure, symbols, &references, &retrieved, stop, visit)
        }};
    }
    if symbols <= 1 << u8::BITS {
        in_symbols_of!(u8)
    } else if symbols <= 1 << u16::BITS {
        in_symbols_of!(u16)
    } else {
        in_symbols_of!(u32)
    }
}

fn compare_with<S: Symbol>(
    measure: DistanceMeasure,
    symbols: usize,
    references: &Texts<S>,
    retrieved: &Texts<S>,
    stop: &Stop,
    visit: impl FnMut(&[f64]),
) -> Result<(), Stopped> {
    match measure {
        DistanceMeasure::Levenshtein => {
            let kernel = levenshtein::Levenshtein::new(symbols);
            compare_by(kernel, references, retrieved, stop, visit)
        }
        DistanceMeasure::Hamming => compare_by(hamming::Hamming, references, retrieved, stop, visit),
        DistanceMeasure::Jaro => {
            let kernel = jaro::Jaro::new(symbols);
            compare_by(kernel, references, retrieved, stop, visit)
        }
        DistanceMeasure::JaroWinkler => {
            let kernel = jaro_winkler::JaroWinkler::new(symbols);
            compare_by(kernel, references, retrieved, stop, visit)
        }
    }
}

fn compare_by<S: Symbol>(
    mut kernel: impl Compare<S>,
    references: &Texts<S>,
    retrieved: &Texts<S>,
    stop: &Stop,
    mut visit: impl FnMut(&[f64]),
) -> Result<(), Stopped> {
    let retrieved: Vec<&[S]> = retrieved.iter().collect();
    let mut similarities = Vec::with_capacity(retrieved.len());
    for reference in references.iter() {
        similarities.clear();
        let (before, equal) = up_to_equal(reference, &retrieved, stop)?;
        kernel.similarities(reference, before, &mut similarities, stop)?;
        if equal {
            similarities.push(1.0);
        }
        visit(&similarities);
    }
    Ok(())
}

/// The texts before the first that equals `reference`, and whether there is one.
fn up_to_equal<'a, 'b, S: Symbol>(
    reference: &[S],
    retrieved: &'a [&'b [S]],
    stop: &Stop,
) -> Result<(&'a [&'b [S]], bool), Stopped> {
    for (position, text) in retrieved.iter().enumerate() {
        stop.check()?;
        if *text == reference {
            return Ok((&retrieved[..position], true));
        }
    }
    Ok((retrieved, false))
}

/// `1 - distance / longest`, the two operations in this order; 1.0 for two empty texts.
///
/// Not `(longest - distance) / longest`, which rounds once and comes out one bit apart for one pair in three.
fn normalized(distance: usize, longest: usize) -> f64 {
    if longest == 0 {
        return 1.0;
    }
    1.0 - distance as f64 / longest as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_lead_back_to_their_measure() {
        for measure in DistanceMeasure::ALL {
            assert_eq!(DistanceMeasure::from_name(measure.name()), Some(measure));
        }
        for unknown in ["", "Levenshtein", "jaro-winkler", " jaro"] {
            assert_eq!(DistanceMeasure::from_name(unknown), None);
        }
    }

    #[test]
    fn every_golden_pair_to_the_last_bit() {
        #[derive(serde::Deserialize)]
        struct Line {
            id: String,
            reference: String,
            response: String,
            expect: std::collections::HashMap<String, f64>,
        }
        let golden = include_str!("../../../tests/golden/string_measures.jsonl");
        let mut compared = 0;
        for line in golden.split('\n').filter(|line| !line.is_empty()) {
            let Line { id, reference, response, expect } = serde_json::from_str(line).unwrap();
            for measure in DistanceMeasure::ALL {
                let (ours, theirs) = (measure.similarity(&reference, &response), expect[measure.name()]);
                assert_eq!(ours.to_bits(), theirs.to_bits(), "{id} {measure:?}: {ours} {theirs}");
                compared += 1;
            }
        }
        assert_eq!(compared, 400 * 4);
    }

    /// Texts that share much, of few letters or of all planes of Unicode.
    fn text() -> impl Strategy<Value = String> {
        prop_oneof!["[ab]{0,12}", "[a-e ]{60,68}", "[a-zé日🗼\u{10FFFF} ]{0,140}", ".{0,20}",]
    }

    proptest! {
        #[test]
        fn symmetric_within_bounds_and_one_for_equal_texts(a in text(), b in text()) {
            for measure in DistanceMeasure::ALL {
                let similarity = measure.similarity(&a, &b);
                prop_assert_eq!(similarity.to_bits(), measure.similarity(&b, &a).to_bits());
                prop_assert!((0.0..=1.0).contains(&similarity));
                prop_assert_eq!(measure.similarity(&a, &a), 1.0);
                prop_assert_eq!(similarity == 1.0, a == b);
            }
        }

        #[test]
        fn a_text_compares_the_same_alone_and_in_company(
            references in prop::collection::vec(text(), 1..4),
            retrieved in prop::collection::vec(text(), 0..5),
        ) {
            for measure in DistanceMeasure::ALL {
                let mut rows = Vec::new();
                let stop = Stop::default();
                compare(measure, &references, &retrieved, &stop, |row| rows.push(row.to_vec())).unwrap();
                prop_assert_eq!(rows.len(), references.len());
                for (reference, row) in references.iter().zip(rows) {
                    let equal = retrieved.iter().position(|text| text == reference);
                    prop_assert_eq!(row.len(), equal.map_or(retrieved.len(), |at| at + 1));
                    for (text, similarity) in retrieved.iter().zip(row) {
                        prop_assert_eq!(similarity, measure.similarity(reference, text));
                    }
                }
            }
        }
    }

    #[test]
    fn how_wide_the_symbols_are_does_not_matter() {
        // A third text that brings more than 256, and more than 65536, code points into the request.
        let wide: String = ('\u{3400}'..='\u{3600}').collect();
        let widest: String = ('\u{20000}'..='\u{30100}').collect();
        let (a, b) = ("naïve 日本 🗼 text", "native 日本語 text 🗼");
        for measure in DistanceMeasure::ALL {
            for company in [wide.as_str(), widest.as_str()] {
                let mut row = Vec::new();
                let visit = |all: &[f64]| row.extend_from_slice(all);
                compare(measure, &[a], &[b, company], &Stop::default(), visit).unwrap();
                assert_eq!(row[0], measure.similarity(a, b));
            }
        }
    }

    #[test]
    fn every_measure_looks_at_the_stop_within_one_pair() {
        let (a, b) = (vec![0u8; 100], vec![1u8; 90]);
        let stop = Stop::default();
        stop.raise();
        let kernels: [&mut dyn Compare<u8>; 4] = [
            &mut levenshtein::Levenshtein::new(2),
            &mut hamming::Hamming,
            &mut jaro::Jaro::new(2),
            &mut jaro_winkler::JaroWinkler::new(2),
        ];
        for kernel in kernels {
            assert_eq!(kernel.similarities(&a, &[&b], &mut Vec::new(), &stop), Err(Stopped));
        }
    }
}
