//! `POST /recall/id`.

use std::num::NonZeroUsize;

use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;
use utoipa::ToSchema;

use super::App;
use super::answer::{CutOffRecall, WarningBody};
use super::batch::{BatchAnswer, batch};
use super::body::JsonBody;
use super::extract::{CutOff, Fields, Route, SampleId};
use super::measure::{Measure, Scored, Terms};
use super::problem::{Problem, ProblemBody};
use super::work::{cores, work};
use crate::recall::id::{self, Id};
use crate::recall::judge::Usage;
use crate::recall::{Stop, Units};

/// What this route takes beside the sample's fields.
pub const ROUTE: Route = Route { path: "/recall/id", options: &["k"] };

/// One sample: which ids were retrieved, and which should have been.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RecallIdRequest {
    /// Your name for this sample, given back in the answer.
    pub id: Option<SampleId>,
    /// Ids of what was retrieved, best first; strings or integers. May be empty: then recall is 0. Also known as
    /// `retrieved_ids`.
    pub retrieved_context_ids: Vec<SampleId>,
    /// Ids of what should have been retrieved; strings or integers, at least one. Also known as `expected_ids`.
    #[schema(min_items = 1)]
    pub reference_context_ids: Vec<SampleId>,
    /// Report recall within the first k ids too, for each k of this list.
    pub k: Option<Vec<CutOff>>,
}

/// How many of the reference ids were retrieved.
#[derive(Serialize, ToSchema)]
pub struct RecallIdAnswer {
    /// The measure's name in Ragas.
    #[schema(value_type = String, example = "id_based_context_recall")]
    pub metric: &'static str,
    /// The sample's id as sent, or null.
    #[schema(required = true)]
    pub id: Option<SampleId>,
    /// `recalled / total`.
    #[schema(minimum = 0, maximum = 1)]
    pub score: f64,
    /// How many reference ids were retrieved.
    pub recalled: usize,
    /// How many different reference ids there are.
    #[schema(minimum = 1)]
    pub total: usize,
    /// One verdict for each different reference id, in order of first appearance.
    pub verdicts: Vec<IdVerdictBody>,
    /// Recall within the first k ids, in the order of `k`. Absent when `k` was not sent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub recall_at: Vec<CutOffRecall>,
    /// What the reader of this score should know.
    pub warnings: Vec<WarningBody>,
}

/// Was this reference id retrieved?
#[derive(Serialize, ToSchema)]
#[schema(as = IdVerdict)]
pub struct IdVerdictBody {
    /// The id as text.
    pub reference_context_id: String,
    /// Was it retrieved?
    pub recalled: bool,
    /// Where it first stands among the retrieved ids, counted from 1; null when it does not.
    #[schema(value_type = Option<usize>, minimum = 1, required = true)]
    pub rank: Option<NonZeroUsize>,
}

/// What was retrieved, what should have been, and the cut-offs.
type Ids<'a> = (Vec<Id<'a>>, Units<Id<'a>>, Vec<NonZeroUsize>);

fn read<'a>(body: &'a [u8], defaults: &[NonZeroUsize]) -> Result<(Option<SampleId>, Ids<'a>), Problem> {
    let mut fields = Fields::parse(body, &RecallId::ROUTE)?;
    let id = fields.sample_id();
    let retrieved = fields.required_ids("retrieved_context_ids");
    let reference = fields.required_ids("reference_context_ids");
    let reference = reference.and_then(|list| fields.not_empty("reference_context_ids", list));
    let cut_offs = fields.cut_offs(defaults);
    let ids = retrieved.zip(reference).map(|(retrieved, reference)| (id, (retrieved, reference, cut_offs)));
    fields.finish(ids)
}

/// The measure behind `/recall/id`.
pub(super) enum RecallId {}

impl Measure for RecallId {
    const ROUTE: Route = ROUTE;
    type Options = Vec<NonZeroUsize>;

    fn options(_: &App, fields: &mut Fields<'_>, defaults: &Self::Options) -> Self::Options {
        fields.cut_offs(defaults)
    }

    async fn score(app: &App, sample: Bytes, options: &Self::Options, terms: Terms) -> Result<Scored, Problem> {
        let deadline = terms.deadline;
        let size = sample.len();
        let options = options.clone();
        let score = move |_: &Stop| {
            let (id, (retrieved, reference, cut_offs)) = read(&sample, &options)?;
            let scored = id::recall(&retrieved, &reference, &cut_offs);
            let recall = scored.recall;
            Scored::new(id.clone(), &RecallIdAnswer::new(id, scored), recall, Usage::NOTHING)
        };
        work(app.compute(), size, deadline, score).await
    }

    fn at_once(_: &App) -> usize {
        cores()
    }
}

/// Recall of ids
///
/// The share of the different `reference_context_ids` that stand among the `retrieved_context_ids`. Exact and without
/// any judge; the semantics of Ragas' `IDBasedContextRecall`. Ids compare as text and as sets: repeats count once,
/// `1` equals `"1"`, integers keep all their digits. Floats, booleans and null are no ids.
#[utoipa::path(
    post,
    path = "/recall/id",
    tag = "recall",
    request_body(content = RecallIdRequest, content_type = "application/json", examples(
        ("one of four found" = (value = json!({
            "retrieved_context_ids": ["doc_1", "doc_2", "doc_3"],
            "reference_context_ids": ["doc_1", "doc_4", "doc_5", "doc_6"]
        }))),
        ("with integers and cut-offs" = (value = json!({
            "id": "q-7",
            "retrieved_context_ids": [30, 10, 20],
            "reference_context_ids": [10, "20"],
            "k": [1, 2, 3]
        })))
    )),
    responses(
        (status = 200, description = "The score, with a verdict for each reference id.", body = RecallIdAnswer, examples(
            ("one of four found" = (value = json!({
                "metric": "id_based_context_recall", "id": null, "score": 0.25, "recalled": 1, "total": 4,
                "verdicts": [
                    { "reference_context_id": "doc_1", "recalled": true, "rank": 1 },
                    { "reference_context_id": "doc_4", "recalled": false, "rank": null },
                    { "reference_context_id": "doc_5", "recalled": false, "rank": null },
                    { "reference_context_id": "doc_6", "recalled": false, "rank": null }
                ],
                "warnings": []
            }))),
            ("with integers and cut-offs" = (value = json!({
                "metric": "id_based_context_recall", "id": "q-7", "score": 1.0, "recalled": 2, "total": 2,
                "verdicts": [
                    { "reference_context_id": "10", "recalled": true, "rank": 2 },
                    { "reference_context_id": "20", "recalled": true, "rank": 3 }
                ],
                "recall_at": [
                    { "k": 1, "score": 0.0, "recalled": 0 },
                    { "k": 2, "score": 0.5, "recalled": 1 },
                    { "k": 3, "score": 1.0, "recalled": 2 }
                ],
                "warnings": []
            })))
        )),
        (status = "4XX", description = "The request cannot be scored.", body = ProblemBody, content_type = "application/problem+json"),
        (status = "5XX", description = "The service failed.", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub async fn recall_id(State(app): State<App>, JsonBody { bytes, terms }: JsonBody) -> Result<Response, Problem> {
    Ok(RecallId::score(&app, bytes, &Vec::new(), terms).await?.into_response())
}

/// Many samples for `/recall/id`, and options for those that have none of their own.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RecallIdBatchRequest {
    /// The samples, at least one. Options of their own stand beside their fields.
    #[schema(min_items = 1)]
    pub samples: Vec<RecallIdRequest>,
    /// Give lines in the order of the samples. A JSON answer always is.
    #[schema(default = false)]
    pub ordered: Option<bool>,
    /// Report recall within the first k entries too, for each k of this list.
    pub k: Option<Vec<CutOff>>,
}

/// Recall of ids, many samples
///
/// Many samples in one request: as a JSON object, or as a stream of lines (`application/x-ndjson`), each a sample, with
/// options in the query string. `Accept` decides the form of the answer; without it the form is the request's. Lines leave
/// as soon as they are done; the last one is `{"summary": {…}}`, and an answer without it was cut off. One bad sample never
/// sinks the others: it is an item with `status: "failed"` and the problem that its single request would have got.
#[utoipa::path(
    post,
    path = "/recall/id/batch",
    tag = "recall",
    request_body(content(
        (RecallIdBatchRequest = "application/json", examples(("two samples, one of them bad" = (value = json!({
            "samples": [
                { "id": "q-1", "retrieved_context_ids": ["doc_1"], "reference_context_ids": ["doc_1", "doc_4"] },
                { "id": "q-2", "retrieved_context_ids": ["doc_1"], "reference_context_ids": [] }
            ]
        }))))),
        (String = "application/x-ndjson")
    )),
    params(("ordered" = Option<bool>, Query, description = "For lines: give results in the order of the samples. Options of the route may stand here too, `k` as `k=1,3,5`.")),
    responses(
        (status = 200, description = "A result for each sample and a summary. `duration_ms` varies.", content(
            (BatchAnswer<RecallIdAnswer> = "application/json", examples(("two samples, one of them bad" = (value = json!({
            "results": [
                { "index": 0, "id": "q-1", "status": "scored", "result": {
                    "metric": "id_based_context_recall", "id": "q-1", "score": 0.5, "recalled": 1, "total": 2,
                    "verdicts": [
                        { "reference_context_id": "doc_1", "recalled": true, "rank": 1 },
                        { "reference_context_id": "doc_4", "recalled": false, "rank": null }
                    ],
                    "warnings": [] } },
                { "index": 1, "id": "q-2", "status": "failed", "error": { "type": "about:blank", "title": "Unprocessable Entity", "status": 422, "code": "invalid_input",
                  "detail": "/reference_context_ids: must not be empty: without a reference there is nothing to recall", "hint": "errors lists every fault with its place in the body.",
                  "errors": [{ "pointer": "/reference_context_ids", "detail": "must not be empty: without a reference there is nothing to recall" }], "retryable": false, "request_id": "3f6b1a2c4d5e6f70" } }
            ],
            "summary": {
                "total": 2, "scored": 1, "failed": 1, "mean": 0.5, "pooled": 0.5, "bounds": [0.25, 0.75], "ci95": null,
                "min": 0.5, "p10": 0.5, "p50": 0.5, "p90": 0.5, "max": 0.5, "failures": { "invalid_input": 1 },
                "usage": { "judge_calls": 0, "input_tokens": 0, "cached_input_tokens": 0, "output_tokens": 0, "reasoning_tokens": 0 },
                "duration_ms": 1
            }
        }))))),
            (String = "application/x-ndjson")
        )),
        (status = "4XX", description = "The batch cannot be read.", body = ProblemBody, content_type = "application/problem+json"),
        (status = "5XX", description = "The service failed.", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub async fn recall_id_batch(State(app): State<App>, request: Request) -> Result<Response, Problem> {
    batch::<RecallId>(app, request).await
}

impl RecallIdAnswer {
    fn new(id: Option<SampleId>, scored: id::IdRecall) -> Self {
        let verdict = |verdict: id::IdVerdict| IdVerdictBody {
            reference_context_id: verdict.id,
            recalled: verdict.rank.is_some(),
            rank: verdict.rank,
        };
        Self {
            metric: "id_based_context_recall",
            id,
            score: scored.recall.score(),
            recalled: scored.recall.recalled(),
            total: scored.recall.total(),
            verdicts: scored.verdicts.map(verdict).into_vec(),
            recall_at: scored.recall_at.into_iter().map(CutOffRecall::from).collect(),
            warnings: Vec::new(),
        }
    }
}
