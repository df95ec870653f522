//! Recall of reference contexts by string similarity: does a retrieved context read nearly the same?
//!
//! Equal to Ragas' `NonLLMContextRecall` to the last bit, where that gives a number. How texts are compared is the
//! business of [`super::similarity`].

use std::num::NonZeroUsize;

use super::similarity::{self, DistanceMeasure};
use super::{Recall, RecallAt, Stop, Stopped, Unit, Units, rank};

/// The similarity, from 0.0 to 1.0, that a reference context's best match must *exceed*.
///
/// ```
/// use context_recall::recall::nonllm::Threshold;
///
/// assert_eq!(Threshold::default().get(), 0.5);
/// assert!(Threshold::new(0.0).is_some());
/// assert!(Threshold::new(1.1).or(Threshold::new(f64::NAN)).is_none());
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Threshold(f64);

impl Threshold {
    /// `None` for what is not a number from 0.0 to 1.0.
    #[must_use]
    pub fn new(threshold: f64) -> Option<Self> {
        (0.0..=1.0).contains(&threshold).then_some(Self(threshold))
    }

    /// The number, from 0.0 to 1.0.
    #[must_use]
    pub fn get(self) -> f64 {
        self.0
    }
}

impl Default for Threshold {
    /// 0.5, as in Ragas.
    fn default() -> Self {
        Self(0.5)
    }
}

/// How reference contexts are looked for.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NonLlmOptions {
    /// How alike two contexts are.
    pub distance_measure: DistanceMeasure,
    /// What the best similarity must exceed.
    pub threshold: Threshold,
    /// After how many retrieved contexts to cut for [`NonLlmRecall::recall_at`].
    pub cut_offs: Vec<NonZeroUsize>,
}

/// What became of one reference context.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NonLlmVerdict {
    /// Is the best similarity above the threshold?
    pub recalled: bool,
    /// The retrieved context that reads most alike; `None` when nothing was retrieved.
    pub best: Option<BestMatch>,
}

impl Unit for NonLlmVerdict {
    fn is_recalled(&self) -> bool {
        self.recalled
    }
}

/// The retrieved context that is most like a reference context.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BestMatch {
    /// How alike they are, from 0.0 to 1.0.
    pub similarity: f64,
    /// Position of the retrieved context in the list as sent, counted from 0; the lowest on a tie.
    pub context: usize,
}

/// The recall of reference contexts.
#[derive(Debug, Clone, PartialEq)]
pub struct NonLlmRecall {
    /// One for each reference context, in order; repeated ones are not joined.
    pub verdicts: Units<NonLlmVerdict>,
    /// The share of the reference contexts that were recalled.
    pub recall: Recall,
    /// The same when only the first `k` retrieved contexts are looked at, for each cut-off in the order asked.
    pub recall_at: Vec<RecallAt>,
}

/// Compares every reference context with every retrieved one, blank ones included.
///
/// A reference context is recalled when its best similarity is strictly greater than the threshold. Nothing retrieved
/// is a recall of 0, where Ragas raises an error.
///
/// Source: `NonLLMContextRecall` of Ragas 0.4.
///
/// # Errors
///
/// [`Stopped`] soon after `stop` was raised.
///
/// ```
/// use context_recall::recall::{Stop, Units, nonllm::{self, NonLlmOptions}};
///
/// let retrieved = ["Paris is the capital of France.".to_owned()];
/// let reference = Units::new(vec![
///     "Paris is the capital of France.".to_owned(),
///     "The Eiffel Tower is one of the most famous landmarks in Paris.".to_owned(),
/// ])
/// .ok_or("a reference context is needed")?;
/// let found = nonllm::recall(&retrieved, &reference, &NonLlmOptions::default(), &Stop::default())?;
/// assert_eq!(found.recall.score(), 0.5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn recall(
    retrieved: &[String],
    reference: &Units<String>,
    options: &NonLlmOptions,
    stop: &Stop,
) -> Result<NonLlmRecall, Stopped> {
    let &NonLlmOptions { distance_measure, threshold, ref cut_offs } = options;
    let mut found = Vec::with_capacity(reference.len().get());
    let visit = |similarities: &[f64]| found.push(Found::among(similarities, threshold));
    similarity::compare(distance_measure, reference.as_slice(), retrieved, stop, visit)?;
    // As many as there are reference contexts, which is at least one.
    let found = Units(found);

    let recall_at = found.recall_at(|found| found.rank, cut_offs);
    let verdicts = found.map(|Found { best, rank }| NonLlmVerdict { recalled: rank.is_some(), best });
    Ok(NonLlmRecall { recall: verdicts.recall(), recall_at, verdicts })
}

/// What the similarities with one reference context say.
struct Found {
    best: Option<BestMatch>,
    /// The rank of the first similarity above the threshold: any shorter list would not have recalled this context.
    rank: Option<NonZeroUsize>,
}

impl Found {
    fn among(similarities: &[f64], threshold: Threshold) -> Self {
        let mut best: Option<BestMatch> = None;
        for (context, &similarity) in similarities.iter().enumerate() {
            if best.is_none_or(|best| similarity > best.similarity) {
                best = Some(BestMatch { similarity, context });
            }
        }
        let above = |&similarity: &f64| similarity > threshold.get();
        Self { best, rank: similarities.iter().position(above).map(rank) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(serde::Deserialize)]
    struct Line {
        id: String,
        request: Request,
        expect: Expect,
    }

    #[derive(serde::Deserialize)]
    struct Request {
        retrieved_contexts: Vec<String>,
        reference_contexts: Vec<String>,
        measure: String,
        threshold: f64,
    }

    #[derive(serde::Deserialize)]
    struct Expect {
        value: Option<f64>,
        per_reference: Vec<PerReference>,
    }

    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct PerReference {
        best_index: usize,
        similarity: f64,
        relevant: bool,
    }

    #[test]
    fn every_golden_line_to_the_last_bit() {
        let golden = include_str!("../../tests/golden/nonllm.jsonl");
        let (mut scored, mut without_reference) = (0, 0);
        for line in golden.split('\n').filter(|line| !line.is_empty()) {
            let Line { id, request, expect } = serde_json::from_str(line).unwrap();
            let Some(reference) = Units::new(request.reference_contexts) else {
                assert_eq!(expect.value, None, "{id}");
                without_reference += 1;
                continue;
            };
            let options = NonLlmOptions {
                distance_measure: DistanceMeasure::from_name(&request.measure).expect(&id),
                threshold: Threshold::new(request.threshold).expect(&id),
                cut_offs: vec![],
            };
            let ours = recall(&request.retrieved_contexts, &reference, &options, &Stop::default()).unwrap();
            assert_eq!(Some(ours.recall.score()), expect.value, "{id}");
            assert_eq!(ours.verdicts.len().get(), expect.per_reference.len(), "{id}");
            for (verdict, theirs) in ours.verdicts.iter().zip(expect.per_reference) {
                let best = verdict.best.expect(&id);
                let ours =
                    PerReference { best_index: best.context, similarity: best.similarity, relevant: verdict.recalled };
                assert_eq!(ours, theirs, "{id}");
                assert_eq!(best.similarity.to_bits(), theirs.similarity.to_bits(), "{id}");
            }
            scored += 1;
        }
        assert_eq!((scored, without_reference), (587, 13));
    }

    fn texts(list: &[&str]) -> Vec<String> {
        list.iter().map(|&text| text.to_owned()).collect()
    }

    #[test]
    fn nothing_retrieved_recalls_nothing() {
        for distance_measure in DistanceMeasure::ALL {
            let options = NonLlmOptions {
                distance_measure,
                threshold: Threshold::new(0.0).unwrap(),
                cut_offs: vec![NonZeroUsize::MIN],
            };
            let reference = Units::new(texts(&["a", ""])).unwrap();
            let found = recall(&[], &reference, &options, &Stop::default()).unwrap();
            assert_eq!(found.recall.score(), 0.0);
            assert_eq!(found.recall_at[0].recall.score(), 0.0);
            let nothing = NonLlmVerdict { recalled: false, best: None };
            assert_eq!(found.verdicts.as_slice(), [nothing, nothing]);
        }
    }

    #[test]
    fn a_better_match_later_counts_only_from_its_rank_on() {
        let options = NonLlmOptions {
            cut_offs: [3, 1, 2, 9].map(|k| NonZeroUsize::new(k).unwrap()).to_vec(),
            ..NonLlmOptions::default()
        };
        let reference = Units::new(texts(&["abcdef", "xy"])).unwrap();
        let retrieved = texts(&["abc", "abcd", "abcdef", "abcdef", "xz"]);
        let found = recall(&retrieved, &reference, &options, &Stop::default()).unwrap();
        // "abc" is half alike, which is not above one half; "abcd" is. "xz" is half like "xy".
        let at: Vec<usize> = found.recall_at.iter().map(|at| at.recall.recalled()).collect();
        assert_eq!(at, [1, 0, 1, 1]);
        let best: Vec<_> = found.verdicts.iter().map(|v| v.best.map(|best| (best.context, best.similarity))).collect();
        assert_eq!(best, [Some((2, 1.0)), Some((4, 0.5))]);
    }

    #[test]
    fn a_raised_stop_ends_it() {
        let stop = Stop::default();
        stop.raise();
        let reference = Units::new(texts(&["a"])).unwrap();
        let found = recall(&texts(&["b"]), &reference, &NonLlmOptions::default(), &stop);
        assert_eq!(found, Err(Stopped));
    }

    prop_compose! {
        fn sample()(
            retrieved in prop::collection::vec("[ab🗼]{0,6}", 0..6),
            reference in prop::collection::vec("[ab🗼]{0,6}", 1..6),
            measure in prop::sample::select(&DistanceMeasure::ALL[..]),
            threshold in 0.0..=1.0,
        ) -> (Vec<String>, Units<String>, NonLlmOptions) {
            let options = NonLlmOptions {
                distance_measure: measure,
                threshold: Threshold::new(threshold).unwrap(),
                cut_offs: (0..8).map(rank).collect(),
            };
            (retrieved, Units::new(reference).unwrap(), options)
        }
    }

    proptest! {
        #[test]
        fn a_further_context_never_lowers_recall(
            (retrieved, reference, options) in sample(),
            further in "[ab🗼]{0,6}",
            at in any::<prop::sample::Index>(),
        ) {
            let stop = Stop::default();
            let before = recall(&retrieved, &reference, &options, &stop).unwrap();
            let mut more = retrieved;
            more.insert(at.index(more.len() + 1), further);
            let after = recall(&more, &reference, &options, &stop).unwrap();
            for (before, after) in before.verdicts.iter().zip(after.verdicts.iter()) {
                prop_assert!(before.recalled <= after.recalled);
                let best = |verdict: &NonLlmVerdict| verdict.best.map(|best| best.similarity);
                prop_assert!(best(before) <= best(after));
            }
        }

        #[test]
        fn recall_at_k_is_the_recall_of_the_cut_list((retrieved, reference, options) in sample()) {
            let stop = Stop::default();
            let found = recall(&retrieved, &reference, &options, &stop).unwrap();
            prop_assert_eq!(found.recall_at.len(), options.cut_offs.len());
            prop_assert!(found.recall_at.is_sorted_by_key(|at| at.recall.recalled()));
            prop_assert_eq!(found.recall_at[7].recall, found.recall);
            for at in &found.recall_at {
                let cut = &retrieved[..at.k.get().min(retrieved.len())];
                prop_assert_eq!(at.recall, recall(cut, &reference, &options, &stop).unwrap().recall);
            }
        }

        #[test]
        fn the_best_match_is_the_first_of_the_greatest((retrieved, reference, options) in sample()) {
            let found = recall(&retrieved, &reference, &options, &Stop::default()).unwrap();
            for (reference, verdict) in reference.iter().zip(found.verdicts.iter()) {
                let all: Vec<f64> = retrieved
                    .iter()
                    .map(|text| options.distance_measure.similarity(reference, text))
                    .collect();
                let greatest = all.iter().copied().fold(-1.0, f64::max);
                let first = all.iter().position(|&similarity| similarity == greatest);
                prop_assert_eq!(verdict.best.map(|best| best.context), first);
                prop_assert_eq!(verdict.recalled, greatest > options.threshold.get());
            }
        }
    }
}
