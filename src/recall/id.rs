//! Recall of ids: which of the wanted documents are on the retrieved list, and at what rank.
//!
//! Ids are compared as text and counted as a set, as Ragas' `IDBasedContextRecall` does, so `1` equals `"1"` and a
//! repeated id counts once. How ids are written in a request is not known here, but for the text of a number.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::num::NonZeroUsize;

use super::{Recall, RecallAt, Unit, Units, rank};

/// An id as it is compared: its text, letter by letter.
///
/// ```
/// use context_recall::recall::id::Id;
///
/// assert_eq!(Id::integer("1"), Some(Id::text("1".into())));
/// assert_ne!(Id::integer("1"), Some(Id::text("01".into())));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Id<'a>(Cow<'a, str>);

impl<'a> Id<'a> {
    /// An id that was written as a string; every string is one, the empty string too.
    #[must_use]
    pub fn text(text: Cow<'a, str>) -> Self {
        Self(text)
    }

    /// An id that was written as a JSON number, from the number's own characters. Integers of any size keep all
    /// their digits, and `-0` is `0`. `None` for what is no integer as it is written, such as `1.0`, `1e3` or `01`.
    ///
    /// ```
    /// use context_recall::recall::id::Id;
    ///
    /// let huge = "1000000000000000000000000000001";
    /// assert_eq!(Id::integer(huge).map(|id| id.as_str().to_owned()), Some(huge.to_owned()));
    /// assert_eq!(Id::integer("-0"), Id::integer("0"));
    /// assert_eq!(Id::integer("1e3"), None);
    /// ```
    #[must_use]
    pub fn integer(token: &'a str) -> Option<Self> {
        let digits = token.strip_prefix('-').unwrap_or(token);
        let well_formed = match digits.as_bytes() {
            [b'0'] => return Some(Self(Cow::Borrowed(digits))),
            [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
            _ => false,
        };
        well_formed.then_some(Self(Cow::Borrowed(token)))
    }

    /// The text that is compared.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What became of one reference id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdVerdict {
    /// The id's text.
    pub id: String,
    /// Where it first stands in the retrieved list as sent, counted from 1; `None` when it is not there.
    pub rank: Option<NonZeroUsize>,
}

impl Unit for IdVerdict {
    fn is_recalled(&self) -> bool {
        self.rank.is_some()
    }
}

/// The recall of reference ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdRecall {
    /// One for each different reference id, in order of first appearance.
    pub verdicts: Units<IdVerdict>,
    /// The share of the different reference ids that were retrieved.
    pub recall: Recall,
    /// The same within the first `k` retrieved ids, for each cut-off in the order asked.
    pub recall_at: Vec<RecallAt>,
}

/// Looks every reference id up in the retrieved list.
///
/// The recall is `|reference ∩ retrieved| / |reference|`, both taken as sets. Nothing retrieved is a recall of 0.
/// A repeated id in the retrieved list keeps its place when ranks are counted: a cut-off looks at the list as sent.
///
/// Source: `IDBasedContextRecall` of Ragas 0.4. The cost is linear, but for sorting ranks when cut-offs are asked.
///
/// ```
/// use std::num::NonZeroUsize;
/// use context_recall::recall::{Units, id::{self, Id}};
///
/// let ids = |texts: &[&'static str]| texts.iter().map(|&text| Id::text(text.into())).collect::<Vec<_>>();
/// let reference = Units::new(ids(&["doc_2", "doc_4"])).ok_or("a reference id is needed")?;
/// let found = id::recall(&ids(&["doc_1", "doc_2"]), &reference, &[NonZeroUsize::MIN]);
/// assert_eq!(found.recall.score(), 0.5);
/// assert_eq!(found.recall_at[0].recall.score(), 0.0);
/// # Ok::<(), &str>(())
/// ```
#[must_use]
pub fn recall(retrieved: &[Id<'_>], reference: &Units<Id<'_>>, cut_offs: &[NonZeroUsize]) -> IdRecall {
    let mut ranks: HashMap<&str, NonZeroUsize> = HashMap::with_capacity(retrieved.len());
    for (position, id) in retrieved.iter().enumerate() {
        ranks.entry(id.as_str()).or_insert_with(|| rank(position));
    }
    let mut seen = HashSet::with_capacity(reference.len().get());
    let different = reference.iter().filter(|id| seen.insert(id.as_str()));
    let verdicts = different.map(|id| IdVerdict { id: id.as_str().to_owned(), rank: ranks.get(id.as_str()).copied() });
    // The first of at least one reference id is always new.
    let verdicts = Units(verdicts.collect::<Vec<_>>());
    IdRecall { recall: verdicts.recall(), recall_at: verdicts.recall_at(|verdict| verdict.rank, cut_offs), verdicts }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::value::RawValue;

    use super::*;

    #[derive(serde::Deserialize)]
    struct Line<'a> {
        id: String,
        #[serde(borrow)]
        request: Request<'a>,
        expect: Expect,
    }

    #[derive(serde::Deserialize)]
    struct Request<'a> {
        #[serde(borrow)]
        retrieved_context_ids: Vec<&'a RawValue>,
        #[serde(borrow)]
        reference_context_ids: Vec<&'a RawValue>,
    }

    #[derive(serde::Deserialize)]
    struct Expect {
        value: Option<f64>,
        found: Vec<String>,
        missing: Vec<String>,
    }

    fn read<'a>(tokens: &[&'a RawValue]) -> Option<Vec<Id<'a>>> {
        let read = |token: &&'a RawValue| match token.get() {
            string if string.starts_with('"') => Some(Id::text(serde_json::from_str::<String>(string).unwrap().into())),
            other => Id::integer(other),
        };
        tokens.iter().map(read).collect()
    }

    /// Ragas' schema turns booleans and whole floats into integers; here they are refused.
    fn is_coerced(token: &RawValue) -> bool {
        match token.get() {
            "true" | "false" => true,
            string if string.starts_with('"') => false,
            number => number.contains(['.', 'e', 'E']),
        }
    }

    #[test]
    fn every_golden_line() {
        let golden = include_str!("../../tests/golden/id.jsonl");
        let (mut scored, mut refused, mut without_reference) = (0, 0, 0);
        for line in golden.split('\n').filter(|line| !line.is_empty()) {
            let Line { id, request, expect } = serde_json::from_str(line).unwrap();
            let mut tokens = (request.retrieved_context_ids.iter()).chain(&request.reference_context_ids);
            if tokens.any(|token| is_coerced(token)) {
                let both = (read(&request.retrieved_context_ids)).zip(read(&request.reference_context_ids));
                assert_eq!(both, None, "{id}");
                refused += 1;
                continue;
            }
            let retrieved = read(&request.retrieved_context_ids).expect(&id);
            let reference = read(&request.reference_context_ids).expect(&id);
            let Some(reference) = Units::new(reference) else {
                assert_eq!(expect.value, None, "{id}");
                without_reference += 1;
                continue;
            };
            let ours = recall(&retrieved, &reference, &[]);
            assert_eq!(Some(ours.recall.score()), expect.value, "{id}");
            let verdicts = ours.verdicts.into_vec();
            let (found, missing): (Vec<_>, Vec<_>) = verdicts.into_iter().partition(Unit::is_recalled);
            for verdict in &found {
                let first = retrieved.iter().position(|id| id.as_str() == verdict.id);
                assert_eq!(verdict.rank.map(NonZeroUsize::get), first.map(|at| at + 1), "{id}");
            }
            let ids =
                |verdicts: Vec<IdVerdict>| -> Vec<String> { verdicts.into_iter().map(|verdict| verdict.id).collect() };
            assert_eq!((ids(found), ids(missing)), (expect.found, expect.missing), "{id}");
            scored += 1;
        }
        assert_eq!((scored, refused, without_reference), (173, 15, 12));
    }

    #[test]
    fn only_integers_are_ids() {
        for (token, id) in [("0", "0"), ("-0", "0"), ("-7", "-7"), ("120", "120")] {
            assert_eq!(Id::integer(token).unwrap().as_str(), id);
        }
        let others =
            ["", "-", "+1", "00", "-01", "1.0", "-0.0", "1e3", "0x1", "1 ", "--1", "true", "null", "١", "\"1\""];
        for token in others {
            assert_eq!(Id::integer(token), None, "{token}");
        }
    }

    #[test]
    fn a_repeated_id_keeps_its_place_in_the_ranks() {
        let ids = |list: &'static str| -> Vec<Id<'static>> { list.split(' ').map(|id| Id::text(id.into())).collect() };
        let cut_offs = [9, 1, 3, 2, 1].map(|k| NonZeroUsize::new(k).unwrap());
        let found = recall(&ids("a a b"), &Units::new(ids("b c b a")).unwrap(), &cut_offs);
        let ranks: Vec<_> =
            found.verdicts.iter().map(|v| (v.id.as_str(), v.rank.map_or(0, NonZeroUsize::get))).collect();
        assert_eq!(ranks, [("b", 3), ("c", 0), ("a", 1)]);
        let at: Vec<_> =
            found.recall_at.iter().map(|at| (at.k.get(), at.recall.recalled(), at.recall.total())).collect();
        assert_eq!(at, [(9, 2, 3), (1, 1, 3), (3, 2, 3), (2, 1, 3), (1, 1, 3)]);
    }

    fn ids(numbers: &[u8]) -> Vec<Id<'static>> {
        numbers.iter().map(|number| Id::text(number.to_string().into())).collect()
    }

    proptest! {
        #[test]
        fn only_the_set_of_ids_counts_and_every_further_one_helps(
            retrieved in prop::collection::vec(0u8..12, 0..12),
            reference in prop::collection::vec(0u8..12, 1..12),
            further in 0u8..12,
        ) {
            let score = |retrieved: &[u8], reference: &[u8]| {
                recall(&ids(retrieved), &Units::new(ids(reference)).unwrap(), &[]).recall
            };
            let plain = score(&retrieved, &reference);
            let turn = |list: &[u8]| list.iter().rev().chain(list).copied().collect::<Vec<u8>>();
            prop_assert_eq!(score(&turn(&retrieved), &turn(&reference)), plain);
            let more: Vec<u8> = std::iter::once(further).chain(retrieved).collect();
            prop_assert!(score(&more, &reference).recalled() >= plain.recalled());
        }

        #[test]
        fn recall_at_k_is_the_recall_of_the_cut_list(
            retrieved in prop::collection::vec(0u8..9, 0..12),
            reference in prop::collection::vec(0u8..9, 1..12),
        ) {
            let reference = Units::new(ids(&reference)).unwrap();
            let cut_offs: Vec<NonZeroUsize> = (0..15).map(rank).collect();
            let found = recall(&ids(&retrieved), &reference, &cut_offs);
            prop_assert_eq!(found.recall_at.len(), cut_offs.len());
            prop_assert_eq!(found.recall_at[14].recall, found.recall);
            prop_assert!(found.recall_at.is_sorted_by_key(|at| at.recall.recalled()));
            for at in found.recall_at {
                let cut = &retrieved[..at.k.get().min(retrieved.len())];
                prop_assert_eq!(at.recall, recall(&ids(cut), &reference, &[]).recall);
            }
        }
    }
}
