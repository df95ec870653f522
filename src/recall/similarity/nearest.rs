//! "Did you mean": the known word that is most like a misspelt one.

use super::DistanceMeasure;

/// Below this, two names have too little in common for a guess to help. `retreived_contexts` is 0.89 like
/// `retrieved_contexts`, `retrieved_context_id` is 0.95 like `retrieved_context_ids`; unrelated names stay below 0.5.
const NEAR: f64 = 0.6;

/// The word of `known` that `word` was most likely meant to be, or `None` when none is near. Case does not matter; on a
/// tie the first one wins.
///
/// ```
/// use context_recall::recall::similarity::nearest;
///
/// let known = ["retrieved_contexts", "reference_contexts"];
/// assert_eq!(nearest("retrieved_context", known.into_iter()), Some("retrieved_contexts"));
/// assert_eq!(nearest("colour", known.into_iter()), None);
/// ```
#[must_use]
pub fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // A name of absurd length is like none of ours, and comparing it would be work for nothing.
    if word.len() > 100 {
        return None;
    }
    let word = word.to_lowercase();
    let similarity = |name: &str| DistanceMeasure::Levenshtein.similarity(&word, &name.to_lowercase());
    let mut best: Option<(f64, &str)> = None;
    for name in known {
        let similarity = similarity(name);
        if similarity >= NEAR && best.is_none_or(|(so_far, _)| similarity > so_far) {
            best = Some((similarity, name));
        }
    }
    best.map(|(_, name)| name)
}
