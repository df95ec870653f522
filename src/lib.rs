//! context-recall: how much of what matters did the retriever find?
//!
//! # The house
//!
//! Each room knows as little as it can; a test holds the arrows (`tests/it/house.rs`).
//!
//! | room | what it is for | may import |
//! |---|---|---|
//! | [`http`] | the front desk: routes, bodies in, answers and problems out. Alone knows axum and utoipa | `recall`, `compute`, `app`, `spool` |
//! | [`recall`] | the measure: pure data and functions, the ports to a judge and to a memory, and that nobody is asked twice | `deadline`, `flights` |
//! | [`judge`] | who decides: the embedded judge, and a judge that asks a model | `recall`, `providers`, `slots`, `compute`, `deadline` |
//! | [`memory`] | what is remembered: in the process, in a file, in a Redis | `recall` |
//! | [`providers`] | the outside: models behind HTTP. Alone knows reqwest | `deadline` |
//! | [`config`] | every setting, checked. Alone reads the environment | `providers` (secrets), `memory` (URLs), `recall` (the nearest name) |
//! | [`app`] | wiring: settings to service. Alone names concrete judges, providers and stores | everything |
//! | [`spool`] | a queue that takes in everything, beyond a little memory on disk | nothing of ours |
//! | [`slots`], [`compute`] | bounded places to work in, and computation off the async threads | `deadline`, the `Stop` flag of `recall` |
//! | [`flights`] | equal work at once is done once | `deadline` |
//! | [`deadline`] | when work has to end | nothing of ours |
//! | [`standing`] | can the judge be used? asked seldom, for `/readyz` | `recall` |
//! | [`score`] | a file scored in this process, for CI | `app`, `config`, `http` |
//! | [`telemetry`] | the log | `config` |
//!
//! # One request, walked
//!
//! `POST /recall/llm`: [`http`]'s layers → `http/body.rs` (bytes) → `http/extract.rs` (fields, every fault at once) →
//! `http/recall_llm.rs` (the handler) → [`recall::llm`] (cut → remember? → judge → check → score) → `recall/claims.rs` →
//! `recall/panel.rs` (remembered, being asked, or asked anew) → `judge/embedded` or
//! `judge/chat.rs` (votes → windows → round) → `judge/prompt.rs` → `providers/openai.rs` → `providers/transport.rs` →
//! `judge/reply` → `recall/evidence` → [`recall::Recall`] → the answer. Whatever fails turns round once, in
//! `http/problem.rs`.
//!
//! # Where to change what
//!
//! A string measure's formula: `recall/similarity/NAME.rs`. Which retrieved context wins a tie (under Jaro-Winkler as under
//! any measure), and what a threshold means: `recall/nonllm.rs`. A rule for cutting sentences: `recall/claims`. The question put to a
//! model: `judge/prompt.rs`. How a model cuts sentences further, and what is held against it: `judge/atomic`. What fits a
//! window: `judge/windows/plan.rs`. What of a model's answer is tolerated: `judge/reply`. A vendor: the checklist in [`providers`].
//! A place to remember in: `memory`.
//! What makes two questions the same: `recall/memory.rs`. An error code: the table in `http/problem.rs`. The name of a sample's
//! field: `http/extract/columns.rs`. How a batch comes in and goes out: `http/batch`. What a summary says: `recall/summary.rs`. What a
//! backend's error means: `providers/refusal.rs`, and how its words are found: `providers/said.rs`. A setting: `config.rs`.

pub mod app;
pub mod compute;
pub mod config;
pub mod deadline;
pub mod flights;
pub mod http;
pub mod judge;
pub mod memory;
pub mod providers;
pub mod recall;
pub mod score;
pub mod slots;
pub mod spool;
pub mod standing;
pub mod telemetry;
