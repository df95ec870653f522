//! `POST /recall/id`.

use std::num::NonZeroUsize;

use axum::extract::State;
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use super::App;
use super::answer::{CutOffRecall, WarningBody};
use super::body::JsonBody;
use super::extract::{CutOff, Fields, Route, SampleId};
use super::problem::{Problem, ProblemBody};
use super::work::{json, work};
use crate::recall::id::{self, Id};
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

fn read(body: &[u8]) -> Result<(Option<SampleId>, Ids<'_>), Problem> {
    let mut fields = Fields::parse(body, &ROUTE)?;
    let id = fields.sample_id();
    let retrieved = fields.required_ids("retrieved_context_ids");
    let reference = fields.required_ids("reference_context_ids");
    let reference = reference.and_then(|list| fields.not_empty("reference_context_ids", list));
    let cut_offs = fields.cut_offs();
    let ids = retrieved.zip(reference).map(|(retrieved, reference)| (id, (retrieved, reference, cut_offs)));
    fields.finish(ids)
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
pub async fn recall_id(State(app): State<App>, JsonBody { bytes, deadline }: JsonBody) -> Result<Response, Problem> {
    let size = bytes.len();
    let score = move |_: &Stop| {
        let (id, (retrieved, reference, cut_offs)) = read(&bytes)?;
        let scored = id::recall(&retrieved, &reference, &cut_offs);
        json(&RecallIdAnswer::new(id, scored))
    };
    work(app.compute(), size, deadline, score).await
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
