//! JSON taken apart without being copied: the fields of an object, the elements of an array, a token in words.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// Hands over the elements of a JSON array one by one, so that no list of them is held.
pub(super) struct Each<F>(pub(super) F);

impl<'de, F: FnMut(&'de RawValue)> Visitor<'de> for Each<F> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut elements: A) -> Result<(), A::Error> {
        while let Some(element) = elements.next_element()? {
            (self.0)(element);
        }
        Ok(())
    }
}

/// The fields of a JSON object as they stand, repeats included.
pub(super) struct Raw<'a>(pub(super) Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de> Deserialize<'de> for Raw<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;

        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = Raw<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
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

/// What a JSON token is, in words.
pub(super) fn kind(token: &str) -> &'static str {
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
pub(super) fn shown(raw: &RawValue) -> String {
    let token = raw.get();
    match token.as_bytes().first() {
        Some(b'{' | b'[') => kind(token).to_owned(),
        _ if token.chars().count() > 40 => kind(token).to_owned(),
        _ => format!("`{token}`"),
    }
}
