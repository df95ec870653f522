//! What the three measures have in common at the front desk: a single sample and a batch are scored by the same code.

use std::future::Future;
use std::time::Instant;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::App;
use super::extract::{Fields, Route, SampleId};
use super::problem::{Code, Problem};
use crate::recall::Recall;
use crate::recall::judge::Usage;
use crate::recall::memory::Reuse;

/// A measure with its route.
pub(super) trait Measure: 'static {
    /// Its path and options.
    const ROUTE: Route;

    /// How to score: what stands beside the sample's fields.
    type Options: Clone + Default + Send + Sync + 'static;

    /// Reads the options; what is left out is as in `defaults`.
    fn options(app: &App, fields: &mut Fields<'_>, defaults: &Self::Options) -> Self::Options;

    /// Scores one sample, a JSON object whose options default to `options`.
    fn score(
        app: &App,
        sample: Bytes,
        options: &Self::Options,
        terms: Terms,
    ) -> impl Future<Output = Result<Scored, Problem>> + Send;

    /// How many samples of one batch are worked on at once.
    fn at_once(app: &App) -> usize;
}

/// On what terms one sample is scored.
#[derive(Debug, Clone, Copy)]
pub struct Terms {
    /// When it must be answered.
    pub deadline: Instant,
    /// Whether it may be answered from memory.
    pub reuse: Reuse,
}

/// A sample's answer, written out where it was computed, and what a summary wants to know of it.
#[derive(Debug)]
pub(super) struct Scored {
    /// The sample's id as sent.
    pub(super) id: Option<SampleId>,
    /// The answer as JSON.
    pub(super) json: Vec<u8>,
    pub(super) recall: Recall,
    pub(super) usage: Usage,
}

impl Scored {
    /// Writes an answer out.
    pub(super) fn new(
        id: Option<SampleId>,
        answer: &impl Serialize,
        recall: Recall,
        usage: Usage,
    ) -> Result<Self, Problem> {
        let json = serde_json::to_vec(answer).map_err(|error| {
            tracing::error!(%error, "an answer cannot be written");
            Problem::new(Code::Internal, "The service failed on this request.")
        })?;
        Ok(Self { id, json, recall, usage })
    }
}

impl IntoResponse for Scored {
    fn into_response(self) -> Response {
        let kind = (header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        ([kind], Body::from(self.json)).into_response()
    }
}
