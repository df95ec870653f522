//! context-recall.

pub mod app;
pub mod compute;
pub mod config;
pub mod http;
pub mod judge;
pub mod providers;
pub mod recall;
pub mod slots;
pub mod telemetry;
