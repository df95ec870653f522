//! The JSON of a body, for bodies that are not quite JSON.
//!
//! Gateways put blank lines before it, `data: [DONE]` after it, wrap it as one server-sent event, or cut an emoji's
//! escape in half. Nothing here knows what the JSON means.

use std::borrow::Cow;

use serde_json::Value;

/// The JSON value that `body` holds, or `None` when it holds none or something else after it.
pub(super) fn json(body: &str) -> Option<Value> {
    let body = body.trim_start_matches('\u{feff}').trim();
    if body.starts_with(['{', '[', '"']) {
        return value(body);
    }
    // Of several events none is the answer: a second one makes the first doubtful, and may be an error.
    let mut events = event_data(body);
    events.next().filter(|_| events.next().is_none()).and_then(value)
}

/// Is `body` the beginning of a JSON object? A reply without a length ends where the connection does, whole or not.
pub(super) fn breaks_off(body: &str) -> bool {
    let body = body.trim_start_matches('\u{feff}').trim();
    body.starts_with('{') && serde_json::from_str::<serde::de::IgnoredAny>(body).is_err_and(|error| error.is_eof())
}

/// The limit was used up and the text does not end as JSON (or a Markdown fence around it) does, whatever the finish
/// reason says: a proxy was seen to call a cut answer finished.
pub(super) fn is_cut(text: &str, output: Option<u64>, sent_limit: Option<u32>) -> bool {
    let (Some(output), Some(limit)) = (output, sent_limit) else {
        return false;
    };
    output >= u64::from(limit) && !text.trim_end().ends_with(['}', ']', '`'])
}

/// The payloads of a server-sent event stream, comments and other fields left out. Empty for other text.
fn event_data(body: &str) -> impl Iterator<Item = &str> {
    body.lines()
        .filter_map(|line| line.trim().strip_prefix("data:"))
        .map(str::trim)
        .filter(|data| data.starts_with('{'))
}

fn value(text: &str) -> Option<Value> {
    match leading_value(text) {
        Some((value, end)) => stands_alone(&text[end..]).then_some(value),
        None => {
            let Cow::Owned(mended) = mend_surrogates(text) else {
                return None;
            };
            let (value, end) = leading_value(&mended)?;
            stands_alone(&mended[end..]).then_some(value)
        }
    }
}

fn leading_value(text: &str) -> Option<(Value, usize)> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let value = values.next()?.ok()?;
    Some((value, values.byte_offset()))
}

/// Only the end mark of an event stream may follow; a second document makes the first one doubtful.
fn stands_alone(rest: &str) -> bool {
    rest.split_ascii_whitespace().all(|word| word == "data:" || word == "[DONE]" || word == "data:[DONE]")
}

/// Replaces every `\uD800`–`\uDFFF` escape without its other half by `\ufffd`: JSON's grammar allows a lone one,
/// serde_json (rightly: it is no character) refuses the whole document for it. Borrowed when nothing had to change.
fn mend_surrogates(text: &str) -> Cow<'_, str> {
    let mut mended = String::new();
    let mut copied = 0;
    let mut at = 0;
    let bytes = text.as_bytes();
    while let Some(step) = bytes.get(at..).and_then(|rest| rest.iter().position(|&byte| byte == b'\\')) {
        at += step;
        let Some(unit) = escaped_unit(bytes, at) else {
            // Both bytes of the escape, so that the second backslash of `\\ud83d` starts nothing.
            at += 2;
            continue;
        };
        let paired = (0xD800..0xDC00).contains(&unit)
            && escaped_unit(bytes, at + 6).is_some_and(|next| (0xDC00..0xE000).contains(&next));
        if paired {
            at += 12;
        } else {
            if (0xD800..0xE000).contains(&unit) {
                mended.push_str(&text[copied..at]);
                mended.push_str("\\ufffd");
                copied = at + 6;
            }
            at += 6;
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    mended.push_str(&text[copied..]);
    Cow::Owned(mended)
}

/// The code unit of a `\uXXXX` escape that begins at byte `at`.
fn escaped_unit(bytes: &[u8], at: usize) -> Option<u16> {
    let escape = bytes.get(at..at + 6)?;
    let digits = escape.strip_prefix(b"\\u")?;
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_is_found_in_the_wrappings_that_gateways_use() {
        for body in [
            "{\"a\":1}",
            "\u{feff}\n\n\n {\"a\":1}\n",
            "{\"a\":1}\n\ndata: [DONE]\n\n",
            "data: {\"a\":1}\n\ndata: [DONE]\n\n",
            ": PROCESSING\n\nevent: message\ndata:{\"a\":1}\n\n",
        ] {
            assert_eq!(json(body), Some(json!({"a": 1})), "{body}");
        }
        assert_eq!(json("data: {\"a\":1}\n\ndata: {\"error\":{}}\n\n"), None);
        for body in
            ["", " \n", "<html></html>", "{\"a\":1", "{\"a\":1}{\"a\":2}", "{\"a\":1} sorry", "data: [DONE]", "data"]
        {
            assert_eq!(json(body), None, "{body}");
        }
    }

    #[test]
    fn half_an_emoji_becomes_the_replacement_character() {
        for (body, text) in [
            (r#""ok \ud83d""#, "ok \u{fffd}"),
            (r#""\udE00 \ud83d\ud83d\ude00""#, "\u{fffd} \u{fffd}😀"),
            (r#""\ud83dx\u0041""#, "\u{fffd}xA"),
            (r#""\\ud83d \ud83d""#, "\\ud83d \u{fffd}"),
            (r#""ü\ud83dü""#, "ü\u{fffd}ü"),
        ] {
            assert_eq!(json(body), Some(json!(text)), "{body}");
        }
        assert_eq!(json(r#""\ud83d"#), None);
        assert_eq!(json(r#"{"\u"#), None);
        assert_eq!(json("{\"a\":\"\\"), None);
    }

    #[test]
    fn deep_nesting_is_refused_and_does_not_overflow() {
        assert_eq!(json(&"[".repeat(1_000_000)), None);
    }
}
