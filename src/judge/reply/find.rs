//! Finds the answer in a reply: behind the reasoning, among prose, fences and echoes of the question.
//!
//! Knows what an answer looks like from outside; what its entries say is read next door. Three rules keep planted text
//! out. A string is opaque: an answer quoted inside a JSON string is never looked at. Where an answer that is broken, or
//! whose rubble follows it, leaves it open what is a string and what is not, nothing of the reply is believed. And a
//! decision that stands in what the model was given is not the model's.

use std::ops::Range;

use super::Unreadable;
use super::given::Given;
use super::json::{self, Found, Noted, Value, Why, is_key, is_mark, is_space};

/// What an answer looks like from outside.
pub(super) struct Form {
    /// The key of the list that holds the entries.
    pub(super) list: &'static str,
    /// The keys that make an object an entry.
    pub(super) entry: [&'static str; 2],
    /// Keys by which a broken value is known for a broken answer.
    pub(super) keys: &'static [&'static str],
    /// The key whose value decides, where others may have had a hand in it.
    pub(super) decision: Option<&'static str>,
    /// Is this our own question, sent back?
    pub(super) is_question: fn(&Value<'_>) -> bool,
    /// Is this entry the example in the question, with dots where words belong?
    pub(super) is_example: fn(&Value<'_>) -> bool,
}

impl Form {
    /// Does this object look like an entry?
    pub(super) fn is_entry(&self, fields: &[(String, Value<'_>)]) -> bool {
        self.entry.iter().all(|key| field(fields, key).is_some())
    }
}

/// How often, on average, each byte may be read. A reply in earnest needs three; text made to be slow would need as
/// many as it is long.
const PASSES: usize = 8;

/// What a reply says just before the form that the question showed it, when it repeats the question. The form of a
/// prompt without evidence cannot be told from an answer by its looks.
const FORM_LEAD: &str = "json only:";

/// One answer: the entries of its list, as they stand.
pub(super) type Answer<'a> = Vec<Value<'a>>;

/// Is there nothing to read?
pub(super) fn is_blank(text: &str) -> bool {
    text.chars().all(is_space)
}

/// The text behind the last reasoning block.
///
/// Tags inside the strings of a complete JSON value are part of what it says and end or begin nothing.
pub(super) fn after_reasoning<'a>(text: &'a str, form: &Form) -> Result<&'a str, Unreadable> {
    let tags = tags(text);
    if tags.is_empty() {
        return Ok(text);
    }
    let found = scan(text, form);
    let mut spans = found.values.iter().map(|piece| &piece.span).peekable();
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

/// A complete JSON list or object in a text.
struct Piece<'a> {
    span: Range<usize>,
    value: Value<'a>,
    decisions: Vec<Noted>,
}

/// All complete JSON lists and objects in a text, and what stood in the way of others.
#[derive(Default)]
struct Scan<'a> {
    /// In order, none inside another.
    values: Vec<Piece<'a>>,
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

fn scan<'a>(text: &'a str, form: &Form) -> Scan<'a> {
    let mut found = Scan::default();
    let mut work = text.len().saturating_mul(PASSES).saturating_add(4096);
    let mut from = 0;
    while let Some(start) = text.get(from..).and_then(|rest| rest.find(['{', '['])).map(|offset| from + offset) {
        match json::read(text, start, form.keys, form.decision) {
            Ok(Found { value, end, noted: decisions }) => {
                found.values.push(Piece { span: start..end, value, decisions });
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

/// All answers in a text without reasoning; at least one. `given` is what the model was given to read.
///
/// An answer is an object with the form's list, a list that holds entries, or entries that stand alone or one after the
/// other (together one answer); also inside other objects and lists. The last two shapes do not
/// count inside or after an answer that is broken, where they are its rubble. What stands before an echo of the
/// question is part of that echo.
pub(super) fn answers<'a>(text: &'a str, form: &Form, given: &Given) -> Result<Vec<Answer<'a>>, Unreadable> {
    let found = scan(text, form);
    if found.tangled {
        return invalid("the reply is too tangled to be read; answer with the JSON object alone");
    }
    if found.answer_cut {
        return Err(Unreadable::Truncated);
    }
    if found.strings_unsure {
        return invalid(UNSURE);
    }
    given.bear(found.values.iter().map(|piece| piece.decisions.len()).sum())?;
    let mut gathered = Gathered::of(form);
    let mut copies = false;
    let mut went_on = false;
    for Piece { span, value, decisions } in found.values {
        if (form.is_question)(&value) {
            // After an answer it may be a next question of the model's own making, as well as an echo.
            went_on |= gathered.is_answer();
            gathered = Gathered::of(form);
        } else if !follows_form_lead(text, span.start) {
            match origin(text, &decisions, given) {
                Origin::Model => {
                    gathered.bare_counts = found.broken_at.is_none_or(|broken| span.start < broken);
                    gathered.take(value, span);
                }
                Origin::Given => {
                    copies = true;
                    // Accounted for, so no rubble.
                    gathered.spans.extend((!gathered.spans.is_empty()).then_some(span));
                }
                Origin::Both => return invalid(COPIED),
            }
        }
    }
    if went_on && gathered.is_answer() {
        return invalid(WENT_ON);
    }
    let Gathered { mut answers, loose, key_twice, spans, .. } = gathered;
    if key_twice {
        return invalid(&format!("a key stands twice in the object that holds \"{}\"", form.list));
    }
    if !loose.is_empty() {
        answers.push(loose);
    }
    answers.retain(|answer| !answer.iter().any(form.is_example));
    if !answers.is_empty() {
        if form.decision.is_some_and(|key| has_rubble(text, key, &spans)) { invalid(UNSURE) } else { Ok(answers) }
    } else if found.value_cut {
        Err(Unreadable::Truncated)
    } else if found.broken_at.is_some() {
        invalid("the JSON of the answer is broken")
    } else if copies {
        invalid(COPIED)
    } else {
        invalid(&format!("the reply holds no JSON object with a list \"{}\"", form.list))
    }
}

const UNSURE: &str = "the JSON is broken: a quote mark inside a string must be escaped with a backslash";
const WENT_ON: &str = "the reply goes on after its answer, with a further question and answer; give one answer only";
const COPIED: &str = "verdicts were copied from the contexts; give your own, each with a reason of your own before it";

/// Whose words the decisions in a value are.
enum Origin {
    Model,
    Given,
    /// Some were given: copied text has broken out of its string, and which numbers the others belong to is open.
    Both,
}

fn origin(text: &str, decisions: &[Noted], given: &Given) -> Origin {
    match decisions.iter().filter(|decision| given.has(text, decision)).count() {
        0 => Origin::Model,
        copied if copied == decisions.len() => Origin::Given,
        _ => Origin::Both,
    }
}

/// Does a decision stand behind the first answer and outside of what is accounted for, as it does when text copied into a string ended
/// that string and closed the answer itself?
fn has_rubble(text: &str, key: &str, accounted: &[Range<usize>]) -> bool {
    let ends = accounted.iter().map(|span| span.end);
    let starts = accounted.iter().skip(1).map(|span| span.start).chain([text.len()]);
    ends.zip(starts).filter_map(|(end, start)| text.get(end..start)).any(|between| {
        between.match_indices(':').any(|(at, _)| {
            let before = between.get(..at).unwrap_or_default().trim_end_matches(is_space);
            let name = before.strip_suffix(is_mark).map(|name| name.trim_end_matches(is_space)).unwrap_or_default();
            let start = name.len().saturating_sub(key.len());
            name.get(start..).is_some_and(|name| name.eq_ignore_ascii_case(key))
        })
    })
}

fn invalid<T>(words: &str) -> Result<T, Unreadable> {
    Err(Unreadable::Invalid(words.to_owned()))
}

struct Gathered<'a, 'f> {
    form: &'f Form,
    answers: Vec<Answer<'a>>,
    /// Entries without a list around them.
    loose: Answer<'a>,
    /// Where the answers stand, and the copies behind the first.
    spans: Vec<Range<usize>>,
    key_twice: bool,
    bare_counts: bool,
}

impl<'a, 'f> Gathered<'a, 'f> {
    fn of(form: &'f Form) -> Self {
        Self { form, answers: Vec::new(), loose: Vec::new(), spans: Vec::new(), key_twice: false, bare_counts: false }
    }

    /// Is there more than the example of the question?
    fn is_answer(&self) -> bool {
        let is_own = |answer: &Answer<'_>| !answer.iter().any(self.form.is_example);
        self.answers.iter().any(is_own) || !self.loose.is_empty() && is_own(&self.loose)
    }

    /// Takes the answers out of a value that stands at `span`.
    fn take(&mut self, value: Value<'a>, span: Range<usize>) {
        let before = self.answers.len() + self.loose.len();
        self.gather(value);
        if self.answers.len() + self.loose.len() > before {
            self.spans.push(span);
        }
    }

    fn gather(&mut self, value: Value<'a>) {
        match value {
            Value::Object(fields) if self.form.is_entry(&fields) => {
                if self.bare_counts {
                    self.loose.push(Value::Object(fields));
                }
            }
            Value::Object(mut fields) => {
                let list = fields.iter().position(|(key, value)| {
                    is_key(key, self.form.list) && matches!(value, Value::List(_) | Value::Object(_))
                });
                match list {
                    Some(place) => {
                        self.key_twice |= has_key_twice(&fields);
                        let entries = match fields.swap_remove(place).1 {
                            Value::List(entries) => entries,
                            single => vec![single],
                        };
                        self.answers.push(entries);
                        // Second thoughts beside the list are a second answer.
                        fields.into_iter().for_each(|(_, inner)| self.gather(inner));
                    }
                    None => fields.into_iter().for_each(|(_, inner)| self.gather(inner)),
                }
            }
            Value::List(items)
                if items.iter().any(|item| object(item).is_some_and(|fields| self.form.is_entry(fields))) =>
            {
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

fn follows_form_lead(text: &str, start: usize) -> bool {
    let before = text.get(..start).unwrap_or_default().trim_end();
    before
        .len()
        .checked_sub(FORM_LEAD.len())
        .and_then(|cut| before.get(cut..))
        .is_some_and(|lead| lead.eq_ignore_ascii_case(FORM_LEAD))
}

/// Is this text dots, where words belong?
pub(super) fn is_dots(value: &Value<'_>) -> bool {
    match value {
        Value::Text(text) => {
            let text = text.trim();
            !text.is_empty() && text.chars().all(|c| matches!(c, '.' | '…'))
        }
        _ => false,
    }
}
