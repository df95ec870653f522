//! From a body to typed fields, with every fault at once.
//!
//! A body is read in two steps. First its fields are found and kept as raw JSON, which costs no copy and keeps the
//! digits of numbers. Then each route takes the fields that it needs; whatever is wrong with one is noted under its
//! JSON pointer, and [`Fields::finish`] answers with all of it.

use std::borrow::Cow;
use std::num::NonZeroUsize;

use serde::Deserialize;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use super::invalid_json::{invalid_json, not_utf8, place};
use super::problem::{Code, Fault, Problem};
use crate::recall::Units;
use crate::recall::id::Id;
use crate::recall::similarity::nearest;

/// A field of a sample, with the other names it is known by.
pub struct Column {
    /// The name that Ragas uses.
    pub name: &'static str,
    /// Names that other evaluators use.
    pub aliases: &'static [&'static str],
}

/// Every field that a sample may have on some route. On the routes that do not need it, it is accepted and ignored.
pub const COLUMNS: &[Column] = &[
    Column { name: "id", aliases: &[] },
    Column { name: "user_input", aliases: &["question", "input", "query"] },
    Column { name: "reference", aliases: &["ground_truth", "expected_output", "expected"] },
    Column { name: "reference_claims", aliases: &[] },
    Column { name: "retrieved_contexts", aliases: &["contexts", "retrieval_context"] },
    Column { name: "reference_contexts", aliases: &["expected_contexts"] },
    Column { name: "retrieved_context_ids", aliases: &["retrieved_ids"] },
    Column { name: "reference_context_ids", aliases: &["expected_ids"] },
];

/// Columns of Ragas and its kin that no route needs: accepted and ignored, so that a row can be sent as it is.
pub const IGNORED_COLUMNS: &[&str] = &[
    "response",
    "answer",
    "actual_output",
    "multi_responses",
    "rubrics",
    "persona_name",
    "query_style",
    "query_length",
    "synthesizer_name",
    "metadata",
];

/// What a route takes beside the sample's fields.
pub struct Route {
    /// Its path.
    pub path: &'static str,
    /// Its options.
    pub options: &'static [&'static str],
}

/// Every route that reads a sample.
pub const ROUTES: &[&Route] = &[&super::recall_llm::ROUTE, &super::recall_nonllm::ROUTE, &super::recall_id::ROUTE];

/// The fields of one sample and the faults found so far.
pub struct Fields<'a> {
    body: &'a str,
    fields: Vec<(Cow<'a, str>, &'a RawValue)>,
    faults: Vec<Fault>,
    /// A fault of the JSON itself that only showed when a value was read.
    broken: Option<Problem>,
}

impl<'a> Fields<'a> {
    /// Finds the fields of a body.
    ///
    /// # Errors
    ///
    /// `invalid_json` when the body is not JSON, `invalid_input` when it is not an object.
    pub fn parse(body: &'a [u8], route: &Route) -> Result<Self, Problem> {
        let body = std::str::from_utf8(body).map_err(|error| not_utf8(body, error.valid_up_to()))?;
        // A byte-order mark is not JSON, but Windows tools write one in front of it.
        let body = body.strip_prefix('\u{feff}').unwrap_or(body);
        if body.trim().is_empty() {
            return Err(
                Problem::new(Code::InvalidJson, "The body is empty.").with_hint("Send the sample as a JSON object.")
            );
        }
        let Raw(fields) = serde_json::from_str(body).map_err(|error| {
            if error.is_data() {
                let found = kind(body.trim_start());
                Problem::invalid_input(vec![fault("", format!("expected one sample, a JSON object, found {found}"))])
            } else {
                invalid_json(body, error.line(), error.column(), &error)
            }
        })?;
        let mut parsed = Self { body, fields, faults: Vec::new(), broken: None };
        parsed.refuse_unknown(route);
        Ok(parsed)
    }

    /// Notes a fault.
    pub fn fault(&mut self, pointer: impl Into<String>, detail: impl Into<String>) {
        self.faults.push(fault(pointer, detail));
    }

    /// The text of a required field that must not be blank.
    pub fn required_text(&mut self, name: &'static str) -> Option<String> {
        let (pointer, raw) = self.required(name, "a string")?;
        let text = self.text(&pointer, raw, "")?;
        self.not_blank(pointer, text)
    }

    /// Was this field sent, and not as `null`?
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.fields.iter().any(|(field, raw)| field == name && raw.get() != "null")
    }

    /// A required list of strings, possibly empty.
    pub fn required_texts(&mut self, name: &'static str) -> Option<Vec<String>> {
        let (pointer, raw) = self.required(name, "an array of strings")?;
        self.texts(&pointer, raw)
    }

    /// The same list as one that holds something, or a fault.
    pub fn not_empty<T>(&mut self, name: &'static str, list: Vec<T>) -> Option<Units<T>> {
        let units = Units::new(list);
        if units.is_none() {
            self.fault(format!("/{name}"), "must not be empty: without a reference there is nothing to recall");
        }
        units
    }

    /// A required list of ids, possibly empty.
    pub fn required_ids(&mut self, name: &'static str) -> Option<Vec<Id<'a>>> {
        let (pointer, raw) = self.required(name, "an array of strings or integers")?;
        self.list(&pointer, raw, "an array of strings or integers", Self::id)
    }

    /// The sample's own id, given back as it was.
    pub fn sample_id(&mut self) -> Option<SampleId> {
        let (pointer, raw) = self.find("id")?;
        match self.id(&pointer, raw)? {
            id if raw.get().starts_with('"') => Some(SampleId::Text(id.as_str().to_owned())),
            _ => Some(SampleId::Integer(raw.to_owned())),
        }
    }

    /// The cut-offs of option `k`; empty when it is left out.
    pub fn cut_offs(&mut self) -> Vec<NonZeroUsize> {
        const EXPECTED: &str = "an array of integers of at least 1, such as [1, 3, 5]";
        let Some((pointer, raw)) = self.find("k") else {
            return Vec::new();
        };
        let one = |fields: &mut Self, pointer: &str, raw: &'a RawValue| {
            let cut_off = raw.get().parse::<NonZeroUsize>().ok();
            if cut_off.is_none() {
                fields.fault(pointer, format!("expected an integer of at least 1, found {}", shown(raw)));
            }
            cut_off
        };
        self.list(&pointer, raw, EXPECTED, one).unwrap_or_default()
    }

    /// A number option.
    pub fn number(&mut self, name: &'static str, expected: &str) -> Option<f64> {
        let (pointer, raw) = self.find(name)?;
        let number = serde_json::from_str::<f64>(raw.get()).ok();
        if number.is_none() {
            self.fault(pointer, format!("expected {expected}, found {}", shown(raw)));
        }
        number
    }

    /// An option that is one word out of a list.
    pub fn choice<T: Copy>(&mut self, name: &'static str, choices: &[(&'static str, T)]) -> Option<T> {
        let (pointer, raw) = self.find(name)?;
        let word = self.text(&pointer, raw, "")?;
        if let Some((_, choice)) = choices.iter().find(|(known, _)| *known == word) {
            return Some(*choice);
        }
        let known: Vec<&str> = choices.iter().map(|(known, _)| *known).collect();
        let guess = nearest(&word, known.iter().copied()).map(|known| format!("; did you mean `{known}`?"));
        let detail = format!("expected one of {}, found {}{}", known.join(", "), shown(raw), guess.unwrap_or_default());
        self.fault(pointer, detail);
        None
    }

    /// Answers with every fault that was found, or gives what `value` holds.
    ///
    /// # Errors
    ///
    /// `invalid_json` or `invalid_input`.
    pub fn finish<T>(self, value: Option<T>) -> Result<T, Problem> {
        match (self.broken, self.faults.is_empty(), value) {
            (Some(broken), ..) => Err(broken),
            (None, true, Some(value)) => Ok(value),
            (None, ..) => Err(Problem::invalid_input(self.faults)),
        }
    }

    /// The raw value of a field under its own name or an alias; `null` counts as left out.
    fn find(&mut self, name: &'static str) -> Option<(String, &'a RawValue)> {
        let aliases = COLUMNS.iter().find(|column| column.name == name).map_or(&[][..], |column| column.aliases);
        let is_it = |field: &str| field == name || aliases.contains(&field);
        let mut given = self.fields.iter().filter(|(field, _)| is_it(field));
        let first = given.next().map(|(field, raw)| (format!("/{field}"), *raw));
        let again = given.next().map(|(field, _)| field.clone());
        let (pointer, raw) = first?;
        if let Some(again) = again {
            let other = pointer.trim_start_matches('/');
            let detail = if other == again {
                format!("`{again}` is given twice")
            } else {
                format!("`{again}` and `{other}` are two names of one field; give one of them")
            };
            self.fault(format!("/{again}"), detail);
            return None;
        }
        (raw.get() != "null").then_some((pointer, raw))
    }

    fn required(&mut self, name: &'static str, expected: &str) -> Option<(String, &'a RawValue)> {
        let faults = self.faults.len();
        let found = self.find(name);
        if found.is_none() && self.faults.len() == faults {
            self.fault(format!("/{name}"), format!("required: {expected}"));
        }
        found
    }

    fn not_blank(&mut self, pointer: String, text: String) -> Option<String> {
        if text.trim().is_empty() {
            self.fault(pointer, "must not be blank");
            return None;
        }
        Some(text)
    }

    fn texts(&mut self, pointer: &str, raw: &'a RawValue) -> Option<Vec<String>> {
        let text = |fields: &mut Self, pointer: &str, raw| {
            fields.text(pointer, raw, "; send the text alone, as a plain string")
        };
        self.list(pointer, raw, "an array of strings", text)
    }

    fn list<T>(
        &mut self,
        pointer: &str,
        raw: &'a RawValue,
        expected: &str,
        mut read: impl FnMut(&mut Self, &str, &'a RawValue) -> Option<T>,
    ) -> Option<Vec<T>> {
        if !raw.get().starts_with('[') {
            let advice = if raw.get().starts_with('"') { "; put the string into an array" } else { "" };
            self.fault(pointer, format!("expected {expected}, found {}{advice}", kind(raw.get())));
            return None;
        }
        // The array was checked when the body was parsed, so this cannot fail.
        let elements: Vec<&RawValue> = serde_json::from_str(raw.get()).unwrap_or_default();
        let mut values = Vec::with_capacity(elements.len());
        for (index, element) in elements.iter().enumerate() {
            values.extend(read(self, &format!("{pointer}/{index}"), element));
        }
        (values.len() == elements.len()).then_some(values)
    }

    fn text(&mut self, pointer: &str, raw: &'a RawValue, advice: &str) -> Option<String> {
        if !raw.get().starts_with('"') {
            let list =
                if raw.get().starts_with('[') && advice.is_empty() { "; join the list into one string" } else { "" };
            self.fault(pointer, format!("expected a string, found {}{advice}{list}", kind(raw.get())));
            return None;
        }
        self.string(raw).map(Cow::into_owned)
    }

    fn id(&mut self, pointer: &str, raw: &'a RawValue) -> Option<Id<'a>> {
        let token = raw.get();
        if token.starts_with('"') {
            return self.string(raw).map(Id::text);
        }
        let id = Id::integer(token);
        if id.is_none() {
            self.fault(pointer, format!("expected a string or an integer, found {}", shown(raw)));
        }
        id
    }

    /// Decodes a JSON string. What can still be wrong with it is half of a surrogate pair.
    fn string(&mut self, raw: &'a RawValue) -> Option<Cow<'a, str>> {
        let token = raw.get();
        if !token.contains('\\') {
            return token.get(1..token.len() - 1).map(Cow::Borrowed);
        }
        match serde_json::from_str::<String>(token) {
            Ok(text) => Some(Cow::Owned(text)),
            Err(error) => {
                let start = (token.as_ptr() as usize).saturating_sub(self.body.as_ptr() as usize);
                // A JSON string holds no line break, so the column inside it is a distance in bytes.
                let (line, column) = place(self.body, start + error.column());
                self.broken.get_or_insert_with(|| invalid_json(self.body, line, column, &error));
                None
            }
        }
    }

    fn refuse_unknown(&mut self, route: &Route) {
        let columns =
            || COLUMNS.iter().flat_map(|column| std::iter::once(column.name).chain(column.aliases.iter().copied()));
        let known = || columns().chain(IGNORED_COLUMNS.iter().copied()).chain(route.options.iter().copied());
        let mut faults = Vec::new();
        for (field, _) in &self.fields {
            if known().any(|name| name == field) {
                continue;
            }
            let elsewhere = ROUTES.iter().find(|other| other.options.contains(&field.as_ref()));
            let detail = if let Some(other) = elsewhere {
                format!("`{field}` is an option of {}, not of {}", other.path, route.path)
            } else if let Some(name) = nearest(field, known()) {
                format!("unknown field; did you mean `{name}`?")
            } else {
                format!("unknown field; {} takes the fields listed at /docs", route.path)
            };
            faults.push(fault(format!("/{}", escape(field)), detail));
        }
        self.faults.append(&mut faults);
    }
}

/// The caller's id of a sample, kept as it was sent.
#[derive(Debug, Clone)]
pub enum SampleId {
    /// A string.
    Text(String),
    /// An integer of any size, with its digits.
    Integer(Box<RawValue>),
}

impl serde::Serialize for SampleId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Integer(digits) => digits.serialize(serializer),
        }
    }
}

impl ToSchema for SampleId {}

impl PartialSchema for SampleId {
    fn schema() -> RefOr<Schema> {
        let text = ObjectBuilder::new().schema_type(Type::String);
        let integer = ObjectBuilder::new().schema_type(Type::Integer);
        let either = OneOfBuilder::new().item(text).item(integer);
        either.description(Some("A string, or an integer of any size.")).into()
    }
}

/// How many of the first entries count, as the spec describes it.
pub enum CutOff {}

impl ToSchema for CutOff {}

impl PartialSchema for CutOff {
    fn schema() -> RefOr<Schema> {
        let cut_off = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1));
        cut_off.description(Some("How many of the first entries count.")).into()
    }
}

/// The fields of a JSON object as they stand, repeats included.
struct Raw<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de> Deserialize<'de> for Raw<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;

        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = Raw<'de>;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry::<Name<'de>, &'de RawValue>()? {
                    fields.push((field.0.0, field.1));
                }
                Ok(Raw(fields))
            }
        }

        deserializer.deserialize_map(FieldsVisitor)
    }
}

/// A field's name, borrowed where it holds no escape.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

fn fault(pointer: impl Into<String>, detail: impl Into<String>) -> Fault {
    Fault { pointer: pointer.into(), detail: detail.into() }
}

/// A field's name inside a JSON pointer (RFC 6901), cut where it is absurdly long.
fn escape(field: &str) -> String {
    let short: String = field.chars().take(80).collect();
    short.replace('~', "~0").replace('/', "~1")
}

/// What a JSON token is, in words.
fn kind(token: &str) -> &'static str {
    match token.as_bytes().first() {
        Some(b'"') => "a string",
        Some(b'{') => "an object",
        Some(b'[') => "an array",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        _ => "a number",
    }
}

/// A token for an error message: short ones as they are, others by kind. Never text of the sample, but for a short word
/// where one of a few words was expected.
fn shown(raw: &RawValue) -> String {
    let token = raw.get();
    match token.as_bytes().first() {
        Some(b'{' | b'[') => kind(token).to_owned(),
        _ if token.chars().count() > 40 => kind(token).to_owned(),
        _ => format!("`{token}`"),
    }
}
