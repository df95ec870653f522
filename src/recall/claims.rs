//! Cutting a reference into numbered claims.
//!
//! A claim is a sentence, a list item or a table row. The stops are those of Unicode Standard Annex #29, for every
//! script. Where they end a sentence is decided here rather than taken from that annex, which leaves most of it to
//! tailoring: abbreviations, initials, ordinals, dates, sentences that begin with a figure, ellipses, asides in
//! brackets, footnote marks. Where the signs contradict each other the rules rather leave two sentences together than
//! break one apart: a judge can still answer a claim that says two things, it cannot answer half a sentence.
//!
//! `layout` knows lines, list marks, tables and code fences; `stops` the characters; `sentence` decides whether a
//! stop within a line ends a sentence, with the word before it read in `word`, the tables of words in `lexicon` and the
//! brackets in `asides`. None of
//! them knows what a claim is judged by. Time and memory grow linearly with the text.

mod asides;
mod layout;
mod lexicon;
mod sentence;
mod stops;
#[cfg(test)]
mod tests;
mod word;

use std::ops::Range;

/// Name and version of the rules below, as it stands in every receipt.
///
/// Any change that cuts some reference differently is a new version.
pub const SPLITTER: &str = "sentence/1";

/// Cuts `reference` into claims: slices of it in their order, trimmed of white space, empty only when it is blank.
///
/// - A stop of any script ends a sentence (`.`, `?`, `。`, `।`, `؟`, …), together with the closing quotes, brackets
///   and footnote marks behind it. Colons and semicolons do not, but for the Greek question mark. Thai, Lao and Tibetan, which write no such stop, are
///   never cut at spaces.
/// - A line break always ends a claim, also in prose wrapped at a fixed width: a list of short facts and a wrapped
///   sentence cannot be told apart with certainty.
/// - A list item begins a claim and keeps its mark (`-`, `1.`, `a)`); a table row is one claim, whatever its cells hold;
///   a closed code fence is one claim.
/// - A piece without a letter or digit (a rule, a lone emoji) belongs to the claim before it, or after it when it
///   is the first.
///
/// Nothing is lost: the claims put together are the reference, white space apart.
///
/// ```
/// use context_recall::recall::claims::cut;
///
/// assert_eq!(
///     cut("Dr. Ada K. Lee follows WCAG 2.1. She lives in the U.S. with her dog."),
///     ["Dr. Ada K. Lee follows WCAG 2.1.", "She lives in the U.S. with her dog."]
/// );
/// assert_eq!(cut("埃菲尔铁塔位于巴黎。它于1889年开放。"), ["埃菲尔铁塔位于巴黎。", "它于1889年开放。"]);
/// assert_eq!(cut("Norway"), ["Norway"]);
/// assert!(cut(" \n").is_empty());
/// ```
#[must_use]
pub fn cut(reference: &str) -> Vec<&str> {
    let mut claims: Vec<Range<usize>> = Vec::new();
    let mut ahead = None;
    let mut start = 0;
    for end in layout::ends(reference) {
        let piece = start..end;
        start = end;
        let text = &reference[piece.clone()];
        if text.contains(char::is_alphanumeric) {
            claims.push(ahead.take().unwrap_or(piece.start)..piece.end);
        } else if text.trim().is_empty() {
            // White space between claims is nobody's; inside a claim it is kept by the next extension.
        } else if let Some(last) = claims.last_mut() {
            last.end = piece.end;
        } else {
            ahead.get_or_insert(piece.start);
        }
    }
    if let (true, Some(first)) = (claims.is_empty(), ahead) {
        claims.push(first..reference.len());
    }
    claims.into_iter().map(|range| reference[range].trim()).collect()
}
