//! Lines, list marks, table rows and code fences: what ends a claim before any sentence is looked at.

use super::sentence;

/// Where the pieces of `text` end, ascending; the last one is `text.len()`.
pub(super) fn ends(text: &str) -> Vec<usize> {
    let lower_case = text.contains(char::is_lowercase) && !text.contains(char::is_uppercase);
    let mut ends = Vec::new();
    let mut bare_mark = false;
    let mut may_close = [true; FENCES.len()];
    let mut start = 0;
    while start < text.len() {
        let end = line_end(text, start);
        let line = &text[start..end];
        if line.trim().is_empty() {
            start = end;
            continue;
        }
        let fence = fence(line);
        if let Some(fence) = fence {
            // Looking for the closing fence is given up for good after one failure, so that a text of many opening
            // fences stays linear.
            match may_close[fence].then(|| fence_end(text, end, fence)).flatten() {
                Some(close) => {
                    ends.push(close);
                    bare_mark = false;
                    start = close;
                    continue;
                }
                None => may_close[fence] = false,
            }
        }
        let body = mark(line);
        bare_mark = line[body..].trim().is_empty() && line.contains(char::is_alphanumeric) || fence.is_some();
        if !bare_mark {
            if !is_table_row(line) {
                ends.extend(sentence::ends(line, lower_case).into_iter().map(|at| start + at));
            }
            ends.push(end);
        }
        start = end;
    }
    if bare_mark {
        // A mark with nothing behind it goes with the claim before it.
        ends.pop();
    }
    if ends.last() != Some(&text.len()) {
        ends.push(text.len());
    }
    ends
}

const FENCES: [&str; 2] = ["```", "~~~"];

/// Which of [`FENCES`] opens at the head of `line`. A row of more tildes underlines a heading.
fn fence(line: &str) -> Option<usize> {
    let line = line.trim_start();
    FENCES.iter().position(|fence| line.starts_with(fence)).filter(|_| !line.starts_with("~~~~"))
}

/// The characters after which Unicode demands a new line (UAX #14: LF, VT, FF, CR, NEL, LS, PS).
fn is_line_break(c: char) -> bool {
    matches!(c, '\n'..='\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// The end of the line that begins at `start`, its break included.
fn line_end(text: &str, start: usize) -> usize {
    text[start..]
        .char_indices()
        .find(|&(_, c)| is_line_break(c))
        .map_or(text.len(), |(at, c)| start + at + c.len_utf8())
}

/// The end of the first line from `start` on that closes a code fence.
fn fence_end(text: &str, mut start: usize, kind: usize) -> Option<usize> {
    while start < text.len() {
        let end = line_end(text, start);
        let line = text[start..end].trim();
        if fence(line) == Some(kind) && line.chars().all(|c| FENCES[kind].contains(c)) {
            return Some(end);
        }
        start = end;
    }
    None
}

/// `| a | b |`
fn is_table_row(line: &str) -> bool {
    let line = line.trim();
    line.len() > 1 && line.starts_with('|') && line.ends_with('|')
}

/// The length of everything at the head of `text` that marks a list item, heading or quotation: `- `, `1. `, `> a) `.
///
/// A stop in there ends nothing.
pub(super) fn mark(text: &str) -> usize {
    let mut at = 0;
    loop {
        let rest = text[at..].trim_start();
        let skipped = text.len() - rest.len();
        let found = bullet(rest).or_else(|| {
            let plain = rest.trim_start_matches(['*', '_']);
            numbering(plain).map(|length| rest.len() - plain.len() + length)
        });
        match found {
            Some(length) => at = skipped + length,
            None => return if at == 0 { 0 } else { skipped },
        }
    }
}

fn bullet(text: &str) -> Option<usize> {
    let first = text.chars().next()?;
    let length = match first {
        '>' => return Some(1),
        '#' => text.len() - text.trim_start_matches('#').len(),
        '-' | '*' | '+' | '•' | '‣' | '◦' | '▪' | '·' | '∙' | '●' | '○' | '■' | '□' | '–' | '—' => {
            first.len_utf8()
        }
        _ => return None,
    };
    text[length..].chars().next().is_none_or(char::is_whitespace).then_some(length)
}

/// The length of `1.`, `2.3.`, `a)`, `iv.`, `(2)` or `[7]` at the head of `text`.
///
/// Numbers of four digits are years, not list marks.
pub(super) fn numbering(text: &str) -> Option<usize> {
    const LONGEST: usize = 12;
    let opened = text.starts_with(['(', '[', '（']);
    let inner = if opened { text.char_indices().nth(1)?.0 } else { 0 };
    let label = text[inner..]
        .char_indices()
        .take(LONGEST)
        .find(|&(_, c)| !(c.is_alphanumeric() || c == '.'))
        .map_or_else(|| text[inner..].chars().take(LONGEST).map(char::len_utf8).sum(), |(at, _)| at);
    let mut close = inner + label;
    let dotted = text[inner..close].ends_with('.');
    let label = text[inner..close].trim_end_matches('.');
    if close - inner - label.len() > 1 {
        return None;
    }
    let numbers =
        label.split('.').all(|part| (1..=3).contains(&part.chars().count()) && part.chars().all(char::is_numeric));
    let letter = label.chars().count() == 1;
    let roman = label.len() <= 5
        && !label.is_empty()
        && (label.chars().all(|c| "ivx".contains(c)) || label.chars().all(|c| "IVX".contains(c)));
    if !(numbers || letter || roman) {
        return None;
    }
    if opened || !dotted {
        let next = text[close..].chars().next()?;
        let fits = if opened { matches!(next, ')' | ']' | '）') } else { matches!(next, ')' | '）' | '．') };
        if dotted || !fits {
            return None;
        }
        close += next.len_utf8();
    }
    let free = text[close..].chars().next().is_none_or(|c| c.is_whitespace() || matches!(c, '*' | '_'));
    (free || text[..close].ends_with('．')).then_some(close)
}
