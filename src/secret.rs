//! A value that must not be shown.

use std::fmt;

/// A key or password. It can be used, but neither printed nor logged.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Hides a value.
    #[must_use]
    pub fn new(value: String) -> Self {
        Self(value)
    }

    /// The value itself, for the one place that sends it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("***")
    }
}
