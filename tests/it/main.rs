//! Tests through the front door: the real router, the real program, backends that speak HTTP.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test ends where it fails")]
#![expect(unreachable_pub, reason = "one binary: nothing here is reached from outside")]

mod atomic;
mod batch;
mod delivery;
mod field_cases;
mod golden;
mod herd;
mod hostile_replies;
mod house;
mod llm;
mod memory;
mod ollama;
mod openapi;
mod operations;
mod peers;
mod planted;
mod problems;
mod prompt_cost;
mod properties;
mod readiness;
mod readme;
mod remembering;
mod resume;
mod score;
mod settings;
mod support;
mod votes;
mod windows;
