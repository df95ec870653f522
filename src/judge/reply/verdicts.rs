//! Reads verdicts from the entries of answers: tolerant of how a value is written, strict about what it says.

use super::find::{Form, field, has_key_twice, is_dots, object};
use super::json::Value;
use super::tally::{Kind, number, whole_number};
use crate::recall::judge::{Citation, Verdict};

/// Most citations kept for one claim.
const MOST_CITATIONS: usize = 32;

/// Longest reason kept, in characters.
const LONGEST_REASON: usize = 2_000;

/// Longest piece of the reply that is repeated in a complaint about it, in characters.
const LONGEST_REPEAT: usize = 40;

/// Answers of verdicts.
pub(super) const VERDICTS: Kind<Verdict> = Kind {
    form: &Form {
        list: "verdicts",
        entry: ["n", "attributed"],
        keys: &["verdicts", "n", "attributed", "evidence", "quote"],
        is_question,
        is_example,
    },
    item: "claim",
    read: entry,
    is_same: |first, second| first.attributed == second.attributed,
};

fn is_question(value: &Value<'_>) -> bool {
    object(value).is_some_and(|fields| {
        ["contexts", "claims"].iter().all(|name| matches!(field(fields, name), Some(Value::List(_))))
    })
}

/// Dots for the reason *and* for a quote: dots for one of them alone are a lazy answer, not an echo.
fn is_example(entry: &Value<'_>) -> bool {
    let Some(fields) = object(entry) else {
        return false;
    };
    let quotes_dots =
        |item: &Value<'_>| is_dots(item) || object(item).and_then(|fields| field(fields, "quote")).is_some_and(is_dots);
    field(fields, "reason").is_some_and(is_dots)
        && match field(fields, "evidence") {
            Some(Value::List(items)) => items.iter().any(quotes_dots),
            Some(single) => quotes_dots(single),
            None => false,
        }
}

fn entry(fields: &[(String, Value<'_>)]) -> Result<Verdict, String> {
    if has_key_twice(fields) || cited(fields).any(has_key_twice) {
        return Err("a key stands twice in its entry".to_owned());
    }
    let attributed = field(fields, "attributed").ok_or("attributed is missing")?;
    Ok(Verdict {
        attributed: decision(attributed)
            .ok_or_else(|| format!("attributed was {}, must be true or false", shown(attributed)))?,
        reason: match field(fields, "reason") {
            Some(Value::Text(text)) => text.trim().chars().take(LONGEST_REASON).collect(),
            _ => String::new(),
        },
        evidence: field(fields, "evidence").map(citations).unwrap_or_default(),
    })
}

/// The objects that an entry cites as evidence.
fn cited<'a, 'v>(fields: &'a [(String, Value<'v>)]) -> impl Iterator<Item = &'a [(String, Value<'v>)]> {
    let evidence = field(fields, "evidence");
    let listed = match evidence {
        Some(Value::List(items)) => items.as_slice(),
        _ => evidence.map_or(&[][..], std::slice::from_ref),
    };
    listed.iter().filter_map(object)
}

/// Yes or no, if the value says exactly one of them.
fn decision(value: &Value<'_>) -> Option<bool> {
    match value {
        Value::Bool(attributed) => Some(*attributed),
        Value::Number(written) => one_or_zero(written),
        Value::Text(text) => {
            let text = text
                .trim_matches(|c: char| c.is_whitespace() || c == '\0')
                .trim_end_matches(|c: char| c.is_whitespace() || matches!(c, '.' | '!' | ',' | ';' | ':' | '。'));
            // Twice the longest entry of the list; a longer text is not worth folding.
            if text.len() > 32 {
                return None;
            }
            let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
            match words.join(" ").as_str() {
                "true" | "yes" | "attributed" | "supported" => Some(true),
                "false" | "no" | "not attributed" | "not_attributed" | "not-attributed" | "unattributed"
                | "not supported" | "not_supported" | "not-supported" | "unsupported" => Some(false),
                _ => one_or_zero(text),
            }
        }
        Value::Null | Value::List(_) | Value::Object(_) => None,
    }
}

fn one_or_zero(written: &str) -> Option<bool> {
    match number(written)? {
        1.0 => Some(true),
        0.0 => Some(false),
        _ => None,
    }
}

/// What a verdict cites, as far as it can be read: what cannot be read is left out.
fn citations(value: &Value<'_>) -> Vec<Citation> {
    match value {
        Value::List(items) => items.iter().filter_map(citation).take(MOST_CITATIONS).collect(),
        single => citation(single).into_iter().collect(),
    }
}

fn citation(value: &Value<'_>) -> Option<Citation> {
    let (context, quote) = match value {
        Value::Text(quote) => (None, quote),
        Value::Object(fields) => match field(fields, "quote")? {
            Value::Text(quote) => (field(fields, "context").and_then(context_number), quote),
            _ => return None,
        },
        _ => return None,
    };
    (!quote.trim().is_empty()).then(|| Citation {
        // The question counts contexts from 1, a citation counts from 0.
        context: context.and_then(|number| number.checked_sub(1)),
        quote: quote.clone(),
    })
}

/// A context's number as the reply counts, also as `"context 1"`.
fn context_number(value: &Value<'_>) -> Option<usize> {
    let Value::Text(text) = value else {
        return whole_number(value);
    };
    let text = text.trim();
    let word = "context";
    let digits = match text.get(..word.len()) {
        Some(start) if start.eq_ignore_ascii_case(word) => text.get(word.len()..)?,
        _ => text,
    };
    whole_number(&Value::Text(digits.to_owned()))
}

/// A value as it may be repeated to the model.
fn shown(value: &Value<'_>) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(bit) => bit.to_string(),
        Value::Number(written) => cut(written),
        Value::Text(text) => format!("\"{}\"", cut(text)),
        Value::List(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

fn cut(text: &str) -> String {
    let mut piece: String = text.chars().take(LONGEST_REPEAT).collect();
    if piece.len() < text.len() {
        piece.push('…');
    }
    piece
}
