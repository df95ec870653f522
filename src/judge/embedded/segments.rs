//! Cutting text into sentences, lines and pieces of bounded length.
//!
//! Claims and contexts are cut alike. Knows nothing of words, but for the shortenings that keep their dot.

use std::ops::Range;

use super::words;

/// A segment without any stop is cut after this many characters at the next gap between words.
const LONG_SEGMENT: usize = 300;

/// Text without gaps is cut here in any case, so that one window of evidence stays readable.
const LONGEST_SEGMENT: usize = 400;

/// Cuts `text` into sentences, lines and, where neither ends, stretches of bounded length; as byte ranges.
///
/// Nothing but white space lies between two ranges, and none is empty.
pub(super) fn segments(text: &str) -> Vec<Range<usize>> {
    let mut cuts = Vec::new();
    let mut start = 0;
    let mut length = 0;
    let mut chars = text.char_indices().peekable();
    let mut previous = ' ';
    while let Some((at, c)) = chars.next() {
        let end = at + c.len_utf8();
        length += 1;
        // Most characters, told apart at the least cost.
        if c.is_ascii_alphanumeric() && length < LONGEST_SEGMENT {
            previous = c;
            continue;
        }
        let next = chars.peek().map_or(' ', |&(_, next)| next);
        let ends = match c {
            '\n' | '\r' | '\u{2028}' | '\u{2029}' | '\u{85}' => true,
            '。' | '！' | '？' | '｡' | '।' | '॥' | '؟' | '۔' | '።' | '။' | '។' => !is_closing(next),
            '.' => next.is_whitespace() && !is_abbreviated(text[start..at].trim_start()),
            '!' | '?' | '…' => next.is_whitespace(),
            // A stop before a closing quotation mark or bracket.
            _ if is_closing(c) => {
                matches!(previous, '。' | '！' | '？' | '।')
                    || (matches!(previous, '.' | '!' | '?') && next.is_whitespace())
            }
            _ if c.is_whitespace() => length >= LONG_SEGMENT,
            _ => length >= LONGEST_SEGMENT,
        };
        if ends {
            push_trimmed(text, start..end, &mut cuts);
            start = end;
            length = 0;
        }
        previous = c;
    }
    push_trimmed(text, start..text.len(), &mut cuts);
    cuts
}

/// Appends `range` without the white space around it, if anything is left.
fn push_trimmed(text: &str, range: Range<usize>, cuts: &mut Vec<Range<usize>>) {
    let piece = &text[range.clone()];
    let inner = piece.trim();
    if !inner.is_empty() {
        let start = range.start + (piece.len() - piece.trim_start().len());
        cuts.push(start..start + inner.len());
    }
}

fn is_closing(c: char) -> bool {
    matches!(c, '"' | '\'' | '”' | '’' | '»' | ')' | ']' | '」' | '』' | '）' | '】')
}

/// Does a dot after `before` belong to an initial or a title rather than end a sentence?
fn is_abbreviated(before: &str) -> bool {
    // Only the last few characters matter; looking no further back keeps the cut linear.
    let mut last: Vec<char> = before.chars().rev().take(6).take_while(|c| c.is_alphanumeric() || *c == '.').collect();
    last.reverse();
    let last: String = last.into_iter().collect();
    let name = last.rsplit('.').next().unwrap_or_default();
    let mut letters = name.chars();
    let initial = matches!((letters.next(), letters.next()), (Some(c), None) if c.is_uppercase());
    // `3. Bread`: the mark of a list item.
    let mark = before.len() <= 3 && before.chars().all(|c| c.is_ascii_digit());
    initial || mark || words::is_title(&name.to_lowercase())
}

/// `segment` without a list item's mark, such as `3.` or `-`.
pub(super) fn without_mark(segment: &str) -> &str {
    let rest = segment.trim_start_matches(|c: char| matches!(c, '-' | '*' | '•') || c.is_whitespace());
    let after = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    let marked = (1..=3).contains(&(rest.len() - after.len()));
    after.strip_prefix(['.', ')']).filter(|item| marked && item.starts_with(char::is_whitespace)).unwrap_or(rest)
}

#[cfg(test)]
mod tests {
    use super::{LONGEST_SEGMENT, segments, without_mark};

    fn cut(text: &str) -> Vec<&str> {
        segments(text).into_iter().map(|range| &text[range]).collect()
    }

    #[test]
    fn sentences_end_where_their_script_ends_them() {
        assert_eq!(cut("One. Two! Three?"), ["One.", "Two!", "Three?"]);
        assert_eq!(cut("巴黎在法国。柏林在德国。"), ["巴黎在法国。", "柏林在德国。"]);
        assert_eq!(cut("यह एक है। वह दो है।"), ["यह एक है।", "वह दो है।"]);
        assert_eq!(cut("هل هذا؟ نعم"), ["هل هذا؟", "نعم"]);
        assert_eq!(cut("a line\n\nanother"), ["a line", "another"]);
        assert_eq!(cut("He said \"no.\" Then left."), ["He said \"no.\"", "Then left."]);
    }

    #[test]
    fn dots_inside_do_not_cut() {
        for whole in ["Dr. Ada K. Lee of WCAG 2.1", "3. Bread", "The U.S. Army"] {
            assert_eq!(cut(whole), [whole]);
        }
    }

    #[test]
    fn endless_text_is_cut() {
        let unbroken = "字".repeat(3 * LONGEST_SEGMENT);
        assert_eq!(cut(&unbroken).len(), 3);
        assert!(cut(&"word ".repeat(1000)).iter().all(|piece| piece.chars().count() <= LONGEST_SEGMENT));
        assert!(cut(" \n ").is_empty());
    }

    #[test]
    fn marks_of_lists_go() {
        assert_eq!(without_mark("3. Bread").trim(), "Bread");
        assert_eq!(without_mark("- Bread"), "Bread");
        for kept in ["1889", "3.5 million", "2 eggs"] {
            assert_eq!(without_mark(kept), kept);
        }
    }
}
