//! context-recall.

pub mod judge;
pub mod providers;
pub mod recall;
