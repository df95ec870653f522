//! Finds the answer in a reply: behind the reasoning, among prose, fences and echoes of the question.
//!
//! Knows what an answer looks like from outside; what the verdicts say is read next door. One rule keeps planted text
//! out: a string is opaque. An answer quoted inside a JSON string is never looked at, and where a broken answer leaves
//! it open what is a string and what is not, nothing after it is believed.

use std::ops::Range;

use super::Unreadable;
use super::json::{self, Value, Why, is_key, is_space};

/// Keys by which a broken value is known for a broken answer.
const ANSWER_KEYS: [&str; 5] = ["verdicts", "n", "attributed", "evidence", "quote"];

/// How often, on average, each byte may be read. A reply in earnest needs three; text made to be slow would need as
/// many as it is long.
const PASSES: usize = 8;

/// What a reply says just before the form that the question showed it, when it repeats the question. The form of a
/// prompt without evidence cannot be told from an answer by its looks.
const FORM_LEAD: &str = "json only:";

/// One answer: the entries of its verdict list, as they stand.
pub(super) type Answer<'a> = Vec<Value<'a>>;

/// Is there nothing to read?
pub(super) fn is_blank(text: &str) -> bool {
    text.chars().all(is_space)
}

/// The text behind the last reasoning block.
///
/// Tags inside the strings of a complete JSON value are part of what it says and end or begin nothing.
pub(super) fn after_reasoning(text: &str) -> Result<&str, Unreadable> {
    let tags = tags(text);
    if tags.is_empty() {
        return Ok(text);
    }
    let found = scan(text);
    let mut spans = found.values.iter().map(|(span, _)| span).peekable();
    let (mut body, mut open) = (0, false);
    for tag in tags {
        while spans.next_if(|span| span.end <= tag.span.start).is_some() {}
        if spans.peek().is_some_and(|span| span.contains(&tag.span.start)) {
            continue;
        }
        open = !tag.closes;
        if tag.closes {
            body = tag.span.end;
        }
    }
    if open {
        return Err(Unreadable::Truncated);
    }
    Ok(text.get(body..).unwrap_or_default())
}

struct Tag {
    span: Range<usize>,
    closes: bool,
}

fn tags(text: &str) -> Vec<Tag> {
    let tag_at = |start: usize| {
        // The longest tag has 12 characters; so many bytes are enough, and a cut inside a character is no tag.
        let bytes = text.as_bytes().get(start..)?;
        let inner = bytes.get(1..bytes.len().min(16))?;
        let end = inner.iter().position(|byte| *byte == b'>')?;
        let name = inner.get(..end)?.trim_ascii();
        let (closes, name) = match name.strip_prefix(b"/") {
            Some(name) => (true, name),
            None => (false, name),
        };
        ["think", "thinking", "thought", "reasoning"]
            .iter()
            .any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
            .then_some(Tag { span: start..start + end + 2, closes })
    };
    text.match_indices('<').filter_map(|(start, _)| tag_at(start)).collect()
}

/// All complete JSON lists and objects in a text, and what stood in the way of others.
#[derive(Default)]
struct Scan<'a> {
    /// In order, none inside another.
    values: Vec<(Range<usize>, Value<'a>)>,
    /// A broken answer left it open where its strings end.
    strings_unsure: bool,
    /// The text ends inside an answer.
    answer_cut: bool,
    /// The text ends inside something that may have become an answer.
    value_cut: bool,
    /// Where the first broken answer starts.
    broken_at: Option<usize>,
    /// The text is too tangled to be read in bounded time.
    tangled: bool,
}

fn scan(text: &str) -> Scan<'_> {
    let mut found = Scan::default();
    let mut work = text.len().saturating_mul(PASSES).saturating_add(4096);
    let mut from = 0;
    while let Some(start) = text.get(from..).and_then(|rest| rest.find(['{', '['])).map(|offset| from + offset) {
        match json::read(text, start, &ANSWER_KEYS) {
            Ok((value, end)) => {
                found.values.push((start..end, value));
                work = work.saturating_sub(end - start);
                from = end;
            }
            Err(failure) => {
                match failure.why {
                    Why::EndOfText => {
                        found.value_cut = true;
                        found.answer_cut |= failure.watched;
                    }
                    Why::AfterString => found.strings_unsure |= failure.watched,
                    Why::TooDeep | Why::Syntax => {}
                }
                if failure.watched {
                    found.broken_at.get_or_insert(start);
                }
                work = work.saturating_sub(failure.at.saturating_sub(start));
                from = match failure.why {
                    // Each start on the way would come to the same end one level later.
                    Why::TooDeep => failure.at,
                    // Prose may hold a bracket or quote mark before the answer: only that start is given up.
                    Why::EndOfText | Why::AfterString | Why::Syntax => start + 1,
                };
            }
        }
        if work == 0 {
            found.tangled = true;
            break;
        }
    }
    found
}

/// All answers in a text without reasoning; at least one.
///
/// An answer is an object with a key `verdicts`, a list that holds verdict objects, or verdict objects that stand
/// alone or one after the other (together one answer); also inside other objects and lists. The last two shapes do not
/// count inside or after an answer that is broken, where they are its rubble. What stands before an echo of the
/// question is part of that echo.
pub(super) fn answers(text: &str) -> Result<Vec<Answer<'_>>, Unreadable> {
    let found = scan(text);
    if found.tangled {
        return invalid("the reply is too tangled to be read; answer with the JSON object alone");
    }
    if found.answer_cut {
        return Err(Unreadable::Truncated);
    }
    if found.strings_unsure {
        return invalid("the JSON is broken: a quote mark inside a string must be escaped with a backslash");
    }
    let mut gathered = Gathered::default();
    for (span, value) in found.values {
        if is_question(&value) {
            gathered = Gathered::default();
        } else if !follows_form_lead(text, span.start) {
            gathered.bare_counts = found.broken_at.is_none_or(|broken| span.start < broken);
            gathered.gather(value);
        }
    }
    let Gathered { mut answers, loose, key_twice, .. } = gathered;
    if key_twice {
        return invalid("a key stands twice in the object that holds \"verdicts\"");
    }
    if !loose.is_empty() {
        answers.push(loose);
    }
    answers.retain(|answer| !answer.iter().any(is_form));
    if !answers.is_empty() {
        Ok(answers)
    } else if found.value_cut {
        Err(Unreadable::Truncated)
    } else if found.broken_at.is_some() {
        invalid("the JSON of the answer is broken")
    } else {
        invalid("the reply holds no JSON object with a list \"verdicts\"")
    }
}

fn invalid<T>(words: &str) -> Result<T, Unreadable> {
    Err(Unreadable::Invalid(words.to_owned()))
}

#[derive(Default)]
struct Gathered<'a> {
    answers: Vec<Answer<'a>>,
    /// Verdict objects without a list around them.
    loose: Answer<'a>,
    key_twice: bool,
    bare_counts: bool,
}

impl<'a> Gathered<'a> {
    fn gather(&mut self, value: Value<'a>) {
        match value {
            Value::Object(fields) if is_verdict(&fields) => {
                if self.bare_counts {
                    self.loose.push(Value::Object(fields));
                }
            }
            Value::Object(mut fields) => {
                let list = fields.iter().position(|(key, value)| {
                    is_key(key, "verdicts") && matches!(value, Value::List(_) | Value::Object(_))
                });
                match list {
                    Some(place) => {
                        self.key_twice |= has_key_twice(&fields);
                        self.answers.push(match fields.swap_remove(place).1 {
                            Value::List(entries) => entries,
                            single => vec![single],
                        });
                    }
                    None => fields.into_iter().for_each(|(_, inner)| self.gather(inner)),
                }
            }
            Value::List(items) if items.iter().any(|item| object(item).is_some_and(is_verdict)) => {
                if self.bare_counts {
                    self.answers.push(items);
                }
            }
            Value::List(items) => items.into_iter().for_each(|item| self.gather(item)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text(_) => {}
        }
    }
}

/// The fields of an object.
pub(super) fn object<'v, 'a>(value: &'v Value<'a>) -> Option<&'v [(String, Value<'a>)]> {
    match value {
        Value::Object(fields) => Some(fields),
        _ => None,
    }
}

/// The first value under `name`, whatever the letter case.
pub(super) fn field<'v, 'a>(fields: &'v [(String, Value<'a>)], name: &str) -> Option<&'v Value<'a>> {
    fields.iter().find(|(key, _)| is_key(key, name)).map(|(_, value)| value)
}

/// Does any key stand twice, letter case apart?
pub(super) fn has_key_twice(fields: &[(String, Value<'_>)]) -> bool {
    let mut keys: Vec<String> = fields.iter().map(|(key, _)| key.trim().to_ascii_lowercase()).collect();
    keys.sort_unstable();
    keys.windows(2).any(|pair| pair.first() == pair.last())
}

fn is_verdict(fields: &[(String, Value<'_>)]) -> bool {
    field(fields, "n").is_some() && field(fields, "attributed").is_some()
}

/// Our own question, sent back.
fn is_question(value: &Value<'_>) -> bool {
    object(value).is_some_and(|fields| {
        ["contexts", "claims"].iter().all(|name| matches!(field(fields, name), Some(Value::List(_))))
    })
}

fn follows_form_lead(text: &str, start: usize) -> bool {
    let before = text.get(..start).unwrap_or_default().trim_end();
    before
        .len()
        .checked_sub(FORM_LEAD.len())
        .and_then(|cut| before.get(cut..))
        .is_some_and(|lead| lead.eq_ignore_ascii_case(FORM_LEAD))
}

/// The example in the question, with dots where words belong: dots for the reason *and* for a quote.
///
/// Dots for one of them alone are a lazy answer, not an echo.
fn is_form(entry: &Value<'_>) -> bool {
    let dots = |value: &Value<'_>| match value {
        Value::Text(text) => {
            let text = text.trim();
            !text.is_empty() && text.chars().all(|c| matches!(c, '.' | '…'))
        }
        _ => false,
    };
    let Some(fields) = object(entry) else {
        return false;
    };
    let quotes_dots =
        |item: &Value<'_>| dots(item) || object(item).and_then(|fields| field(fields, "quote")).is_some_and(dots);
    field(fields, "reason").is_some_and(dots)
        && match field(fields, "evidence") {
            Some(Value::List(items)) => items.iter().any(quotes_dots),
            Some(single) => quotes_dots(single),
            None => false,
        }
}
