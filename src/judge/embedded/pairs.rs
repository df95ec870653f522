//! Pairs of claims that differ in one thing, of which the passage says one: a language, what differs, the passage, the
//! claim that it says, and the one that it does not, a pair a line.

use std::collections::BTreeSet;

use super::tests::verdict;

const PAIRS: &str = include_str!("minimal_pairs.tsv");

/// Of these pairs, at most so many may have a wrong verdict on either claim.
const MISSES: usize = 8;

#[test]
fn one_thing_changes_the_verdict() {
    let mut misses = Vec::new();
    let mut languages = BTreeSet::new();
    for line in PAIRS.lines() {
        let &[language, what, passage, said, unsaid] = line.split('\t').collect::<Vec<_>>().as_slice() else {
            panic!("not five fields: {line}")
        };
        languages.insert(language);
        let (yes, no) = (verdict(said, &[passage]), verdict(unsaid, &[passage]));
        if !yes.attributed {
            misses.push(format!("{language} {what}: refused \"{said}\" ({}) by \"{passage}\"", yes.reason));
        }
        if no.attributed {
            misses.push(format!("{language} {what}: attributed \"{unsaid}\" to \"{passage}\""));
        }
    }
    let pairs = PAIRS.lines().count();
    println!("{} of {pairs} pairs missed:\n{}", misses.len(), misses.join("\n"));
    assert!(pairs >= 60 && languages.len() >= 8, "{pairs} pairs in {} languages", languages.len());
    assert!(misses.len() <= MISSES, "{} of {pairs} pairs missed:\n{}", misses.len(), misses.join("\n"));
}
