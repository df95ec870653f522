//! From a body to typed fields, with every fault at once.
//!
//! A body is read in two steps. First its fields are found and kept as raw JSON, which costs no copy and keeps the
//! digits of numbers. Then each route takes the fields that it needs; whatever is wrong with one is noted under its
//! JSON pointer, and [`Fields::finish`] answers with all of it.

mod columns;
mod raw;
mod spec;
mod unknown;

use std::borrow::Cow;
use std::fmt::{self, Display};
use std::num::NonZeroUsize;
use std::ops::RangeInclusive;

use serde::de::Deserializer as _;
use serde_json::value::RawValue;

pub use self::columns::{BATCH_OPTIONS, COLUMNS, Column, IGNORED_COLUMNS, ROUTES, Route, known_columns};
use self::raw::{Each, Raw, kind, shown};
pub use self::spec::{CutOff, SampleId};
use self::unknown::{Around, Escaped, Unknown};
use super::invalid_json::{invalid_json, not_utf8, place};
use super::problem::{Code, Fault, Faults, Problem};
use crate::recall::Units;
use crate::recall::id::Id;
use crate::recall::similarity::nearest;

/// Around the samples of a batch.
pub(super) struct Envelope<Options> {
    /// The options of every sample that has none of its own.
    pub(super) options: Options,
    /// Are results given in the order of the samples?
    pub(super) ordered: bool,
}

/// The id of a sample that is otherwise unfit, if it has one.
pub(super) fn sample_id(sample: &[u8]) -> Option<SampleId> {
    Fields::found(sample, "a sample").ok()?.sample_id()
}

/// The fields of one sample and the faults found so far.
pub struct Fields<'a> {
    body: &'a str,
    fields: Vec<(Cow<'a, str>, &'a RawValue)>,
    faults: Faults,
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
        let mut parsed = Self::found(body, "one sample, a JSON object")?;
        let known: Vec<&str> = known_columns().chain(route.options.iter().copied()).collect();
        parsed.refuse_unknown(Around::OneSample, &known, route);
        Ok(parsed)
    }

    /// Finds the fields around the samples of a batch.
    ///
    /// # Errors
    ///
    /// As for [`Self::parse`].
    pub fn parse_envelope(body: &'a [u8], route: &Route) -> Result<Self, Problem> {
        let mut parsed = Self::found(body, "a JSON object with a list `samples`")?;
        let known: Vec<&str> = ["samples"].iter().chain(BATCH_OPTIONS).chain(route.options).copied().collect();
        parsed.refuse_unknown(Around::AllSamples, &known, route);
        Ok(parsed)
    }

    /// Finds the options of a batch whose samples come as lines: its query string as JSON.
    ///
    /// # Errors
    ///
    /// As for [`Self::parse`].
    pub fn parse_query(query: &'a str, route: &Route) -> Result<Self, Problem> {
        let mut parsed = Self::found(query.as_bytes(), "a query string")?;
        let known: Vec<&str> = BATCH_OPTIONS.iter().chain(route.options).copied().collect();
        parsed.refuse_unknown(Around::Query, &known, route);
        Ok(parsed)
    }

    fn found(body: &'a [u8], expected: &str) -> Result<Self, Problem> {
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
                Problem::invalid_input(Faults::one("", format_args!("expected {expected}, found {found}")))
            } else {
                invalid_json(body, error.line(), error.column(), &error)
            }
        })?;
        Ok(Self { body, fields, faults: Faults::default(), broken: None })
    }

    /// Notes a fault.
    pub fn fault(&mut self, pointer: impl Display, detail: impl Display) {
        self.faults.note(pointer, detail);
    }

    /// The text of a required field that must not be blank.
    pub fn required_text(&mut self, name: &'static str, expected: &str) -> Option<String> {
        let (pointer, raw) = self.required(name, expected)?;
        let text = self.text(Place::of(&pointer), raw, "")?;
        if text.trim().is_empty() {
            self.fault(pointer, "must not be blank");
            return None;
        }
        Some(text)
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
            let pointer = self.find(name).map_or_else(|| format!("/{name}"), |(pointer, _)| pointer);
            self.fault(pointer, "must not be empty: without a reference there is nothing to recall");
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
        match self.id(Place::of(&pointer), raw)? {
            id if raw.get().starts_with('"') => Some(SampleId::Text(id.as_str().to_owned())),
            _ => Some(SampleId::Integer(raw.to_owned())),
        }
    }

    /// The cut-offs of option `k`; `defaults` when it is left out.
    pub fn cut_offs(&mut self, defaults: &[NonZeroUsize]) -> Vec<NonZeroUsize> {
        const EXPECTED: &str = "an array of integers of at least 1, such as [1, 3, 5]";
        let Some((pointer, raw)) = self.find("k") else {
            return defaults.to_vec();
        };
        let one = |fields: &mut Self, place: Place<'_>, raw: &'a RawValue| {
            let cut_off = raw.get().parse::<NonZeroUsize>().ok();
            if cut_off.is_none() {
                fields.fault(place, format_args!("expected an integer of at least 1, found {}", shown(raw)));
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

    /// An option that is a whole number in a range.
    pub fn whole_number(&mut self, name: &'static str, range: RangeInclusive<u8>) -> Option<u8> {
        let (pointer, raw) = self.find(name)?;
        let number = raw.get().parse().ok().filter(|number| range.contains(number));
        if number.is_none() {
            let (least, most) = range.into_inner();
            self.fault(pointer, format_args!("expected an integer from {least} to {most}, found {}", shown(raw)));
        }
        number
    }

    /// An option that is one word out of a list.
    pub fn choice<T: Copy>(&mut self, name: &'static str, choices: &[(&'static str, T)]) -> Option<T> {
        let (pointer, raw) = self.find(name)?;
        let word = self.text(Place::of(&pointer), raw, "")?;
        if let Some((_, choice)) = choices.iter().find(|(known, _)| *known == word) {
            return Some(*choice);
        }
        let known: Vec<&str> = choices.iter().map(|(known, _)| *known).collect();
        let guess = nearest(&word, known.iter().copied()).map(|known| format!("; did you mean `{known}`?"));
        let detail = format!("expected one of {}, found {}{}", known.join(", "), shown(raw), guess.unwrap_or_default());
        self.fault(pointer, detail);
        None
    }

    /// A yes-or-no option, no when it is left out.
    pub fn flag(&mut self, name: &'static str) -> bool {
        let Some((pointer, raw)) = self.find(name) else { return false };
        match raw.get() {
            "true" => true,
            "false" => false,
            _ => {
                self.fault(pointer, format_args!("expected true or false, found {}", shown(raw)));
                false
            }
        }
    }

    /// The samples of a batch, each still to be read.
    pub fn samples(&mut self) -> Option<Vec<&'a RawValue>> {
        let (pointer, raw) = self.required("samples", "an array of samples")?;
        let samples = self.list(&pointer, raw, "an array of samples", |_, _, raw| Some(raw))?;
        if samples.is_empty() {
            self.fault(pointer, "must not be empty: there is nothing to score");
        }
        Some(samples)
    }

    /// [`Self::finish`] for options that stood in a query string, where a pointer into the body would lead nowhere.
    ///
    /// # Errors
    ///
    /// `invalid_input`.
    pub fn finish_query<T>(mut self, value: T) -> Result<T, Problem> {
        self.faults = std::mem::take(&mut self.faults).retold(|fault| {
            let name = fault.pointer.trim_start_matches('/').split('/').next().unwrap_or_default();
            Fault { detail: format!("query parameter `{name}`: {}", fault.detail), pointer: String::new() }
        });
        self.finish(Some(value))
    }

    /// Answers with every fault that was found, or gives what `value` holds.
    ///
    /// # Errors
    ///
    /// `invalid_json` or `invalid_input`.
    pub fn finish<T>(self, value: Option<T>) -> Result<T, Problem> {
        match (self.broken, self.faults.count == 0, value) {
            (Some(broken), ..) => Err(broken),
            (None, true, Some(value)) => Ok(value),
            (None, ..) => Err(Problem::invalid_input(self.faults)),
        }
    }

    /// The raw value of a field under its own name or an alias, with its pointer; `null` counts as left out.
    fn find(&mut self, name: &'static str) -> Option<(String, &'a RawValue)> {
        let aliases = COLUMNS.iter().find(|column| column.name == name).map_or(&[][..], |column| column.aliases);
        let is_given = |(field, raw): &&(Cow<'_, str>, &RawValue)| {
            (field == name || aliases.contains(&field.as_ref())) && raw.get() != "null"
        };
        let mut given = self.fields.iter().filter(is_given);
        let (first, raw) = given.next()?;
        let Some((again, _)) = given.next() else {
            return Some((format!("/{first}"), raw));
        };
        if first == again {
            self.faults.note(format_args!("/{again}"), format_args!("`{again}` is given twice"));
        } else {
            let detail = format_args!("`{again}` and `{first}` are two names of one field; give one of them");
            self.faults.note(format_args!("/{again}"), detail);
        }
        None
    }

    fn required(&mut self, name: &'static str, expected: &str) -> Option<(String, &'a RawValue)> {
        let faults = self.faults.count;
        let found = self.find(name);
        if found.is_none() && self.faults.count == faults {
            self.fault(format_args!("/{name}"), format_args!("required: {expected}"));
        }
        found
    }

    fn texts(&mut self, pointer: &str, raw: &'a RawValue) -> Option<Vec<String>> {
        let text = |fields: &mut Self, place: Place<'_>, raw| {
            fields.text(place, raw, "; send the text alone, as a plain string")
        };
        self.list(pointer, raw, "an array of strings", text)
    }

    fn list<T>(
        &mut self,
        pointer: &str,
        raw: &'a RawValue,
        expected: &str,
        mut read: impl FnMut(&mut Self, Place<'_>, &'a RawValue) -> Option<T>,
    ) -> Option<Vec<T>> {
        if !raw.get().starts_with('[') {
            let advice = if raw.get().starts_with('"') { "; put the string into an array" } else { "" };
            self.fault(pointer, format!("expected {expected}, found {}{advice}", kind(raw.get())));
            return None;
        }
        let mut values = Vec::new();
        let mut elements = 0;
        let each = Each(|element| {
            values.extend(read(self, Place { pointer, index: Some(elements) }, element));
            elements += 1;
        });
        // The array was checked when the body was parsed, so this cannot fail.
        serde_json::Deserializer::from_str(raw.get()).deserialize_seq(each).ok()?;
        (values.len() == elements).then_some(values)
    }

    fn text(&mut self, place: Place<'_>, raw: &'a RawValue, advice: &str) -> Option<String> {
        if !raw.get().starts_with('"') {
            let list =
                if raw.get().starts_with('[') && advice.is_empty() { "; join the list into one string" } else { "" };
            self.fault(place, format_args!("expected a string, found {}{advice}{list}", kind(raw.get())));
            return None;
        }
        self.string(raw).map(Cow::into_owned)
    }

    fn id(&mut self, place: Place<'_>, raw: &'a RawValue) -> Option<Id<'a>> {
        let token = raw.get();
        if token.starts_with('"') {
            return self.string(raw).map(Id::text);
        }
        let id = Id::integer(token);
        if id.is_none() {
            self.fault(place, format_args!("expected a string or an integer, found {}", shown(raw)));
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

    fn refuse_unknown(&mut self, around: Around, known: &[&str], route: &Route) {
        for (field, _) in &self.fields {
            if !known.contains(&field.as_ref()) {
                self.faults.note(Escaped(field), Unknown { field, around, known, route });
            }
        }
    }
}

/// Where a value stands: a field, or an element of the list in it. Written out only when there is something to say.
#[derive(Clone, Copy)]
struct Place<'a> {
    pointer: &'a str,
    index: Option<usize>,
}

impl<'a> Place<'a> {
    fn of(pointer: &'a str) -> Self {
        Self { pointer, index: None }
    }
}

impl Display for Place<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.index {
            Some(index) => write!(formatter, "{}/{index}", self.pointer),
            None => formatter.write_str(self.pointer),
        }
    }
}
