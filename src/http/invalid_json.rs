//! Why a body is not JSON, where, and what probably happened.

use super::problem::{Code, Problem};

/// Line and column (both from 1) of a byte offset.
pub(super) fn place(body: &str, offset: usize) -> (usize, usize) {
    let before = body.as_bytes().get(..offset).unwrap_or(body.as_bytes());
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let column = before.iter().rev().take_while(|byte| **byte != b'\n').count();
    (line, column.max(1))
}

/// A body whose bytes are no UTF-8 after the first `offset`.
pub(super) fn not_utf8(body: &[u8], offset: usize) -> Problem {
    let valid = body.get(..offset).and_then(|valid| std::str::from_utf8(valid).ok()).unwrap_or_default();
    let (line, column) = place(valid, offset);
    Problem::new(Code::InvalidJson, format!("The body is not UTF-8: a bad byte follows line {line} column {column}."))
        .with_hint("Encode the body as UTF-8.")
}

/// A problem with the place where the parser gave up, and a hint where the cause is a known one.
pub(super) fn invalid_json(body: &str, line: usize, column: usize, error: &serde_json::Error) -> Problem {
    let text = error.to_string();
    let what = text.split(" at line ").next().unwrap_or_default();
    let problem =
        Problem::new(Code::InvalidJson, format!("The body is not JSON: {what} at line {line} column {column}."));
    let offset = offset(body, line, column);
    if what.contains("surrogate") || what.contains("unexpected end of hex escape") {
        problem.with_hint("A \\u escape is half of a surrogate pair: an emoji or other character was cut in two. Cut text between whole characters, or drop the stray half.")
    } else if ["NaN", "Infinity", "-Infinity"].iter().any(|word| starts_near(body, offset, word)) {
        problem.with_hint("NaN and Infinity are not JSON. Leave the field out or send null.")
    } else if starts_near(body, offset, "'") {
        problem.with_hint("JSON strings stand in double quotes.")
    } else {
        problem
    }
}

fn offset(body: &str, line: usize, column: usize) -> usize {
    let before: usize = body.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    before + column.saturating_sub(1)
}

/// Does `word` stand at `offset` or begin up to one byte before it? The parser reports where it gave up, which is the
/// first or the second character of what it could not read.
fn starts_near(body: &str, offset: usize, word: &str) -> bool {
    let bytes = body.as_bytes();
    (offset.saturating_sub(1)..=offset)
        .any(|start| bytes.get(start..).is_some_and(|rest| rest.starts_with(word.as_bytes())))
}
