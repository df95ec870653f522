//! Cutting a reference into numbered claims.

/// Name and version of the rules below, as it stands in every receipt.
pub const SPLITTER: &str = "sentence/1";

/// Cuts `reference` into claims.
#[must_use]
pub fn cut(reference: &str) -> Vec<&str> {
    vec![reference.trim()]
}
