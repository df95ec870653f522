//! What is said of a field that nobody knows.

use std::fmt::{self, Display};

use super::columns::{BATCH_OPTIONS, ROUTES, Route, known_columns};
use crate::recall::similarity::nearest;

/// A field's name as a JSON pointer (RFC 6901), cut where it is absurdly long.
pub(super) struct Escaped<'a>(pub(super) &'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short: String = self.0.chars().take(80).collect();
        write!(formatter, "/{}", short.replace('~', "~0").replace('/', "~1"))
    }
}

/// Where fields stand.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Around {
    OneSample,
    AllSamples,
    Query,
}

/// What is said of a field that is not known where it stands. The guess costs microseconds, so it is made only when it is
/// listed.
pub(super) struct Unknown<'a> {
    pub(super) field: &'a str,
    pub(super) around: Around,
    pub(super) known: &'a [&'a str],
    pub(super) route: &'a Route,
}

impl Display for Unknown<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { field, around, known, route } = self;
        if *around != Around::OneSample && known_columns().any(|column| column == *field) {
            let place = if *around == Around::Query { "a line of the body" } else { "`samples`" };
            return write!(formatter, "`{field}` belongs to a sample; put it into {place}");
        }
        let elsewhere = ROUTES.iter().find(|other| other.options.contains(field));
        if BATCH_OPTIONS.contains(field) {
            write!(formatter, "`{field}` is an option of a whole batch, not of one sample")
        } else if let Some(other) = elsewhere {
            write!(formatter, "`{field}` is an option of {}, not of {}", other.path, route.path)
        } else if let Some(name) = nearest(field, known.iter().copied()) {
            write!(formatter, "unknown field; did you mean `{name}`?")
        } else {
            write!(formatter, "unknown field; {} takes the fields listed at /docs", route.path)
        }
    }
}
