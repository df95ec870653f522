//! The string measures.
