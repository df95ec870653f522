//! Ids and cut-offs as they are sent, and as the spec describes them.

use serde_json::value::RawValue;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

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
