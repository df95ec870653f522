//! `POST /recall/nonllm`.

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
use super::work::cores;
use crate::recall::judge::Usage;
use crate::recall::nonllm::{self, NonLlmOptions, NonLlmRecall, NonLlmVerdict, Threshold};
use crate::recall::similarity::DistanceMeasure;
use crate::recall::{Stop, Units};

/// What this route takes beside the sample's fields.
pub const ROUTE: Route = Route { path: "/recall/nonllm", options: &["distance_measure", "threshold", "k"] };

/// One sample: which contexts were retrieved, and which should have been.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RecallNonLlmRequest {
    /// Your name for this sample, given back in the answer.
    pub id: Option<SampleId>,
    /// What was retrieved, best first. May be empty: then recall is 0. Also known as `contexts`, `retrieval_context`.
    pub retrieved_contexts: Vec<String>,
    /// What should have been retrieved; at least one. Also known as `expected_contexts`.
    #[schema(min_items = 1)]
    pub reference_contexts: Vec<String>,
    /// How two strings are compared.
    #[schema(default = "levenshtein")]
    pub distance_measure: Option<DistanceMeasureBody>,
    /// A reference context is recalled when its best similarity is above (not at) this.
    #[schema(default = 0.5, minimum = 0, maximum = 1)]
    pub threshold: Option<f64>,
    /// Report recall within the first k contexts too, for each k of this list.
    pub k: Option<Vec<CutOff>>,
}

/// How two strings are compared: similarity = 1 - normalised distance, on code points, exactly as RapidFuzz computes it.
#[derive(Serialize, ToSchema)]
#[schema(as = DistanceMeasure)]
#[serde(rename_all = "snake_case")]
pub enum DistanceMeasureBody {
    /// Insertions, deletions and substitutions, over the longer length.
    Levenshtein,
    /// Positions that differ, the shorter string padded, over the longer length.
    Hamming,
    /// Jaro.
    Jaro,
    /// Jaro with a bonus for a common prefix of up to four characters, where Jaro is above 0.7.
    JaroWinkler,
}

impl From<DistanceMeasure> for DistanceMeasureBody {
    fn from(measure: DistanceMeasure) -> Self {
        match measure {
            DistanceMeasure::Levenshtein => Self::Levenshtein,
            DistanceMeasure::Hamming => Self::Hamming,
            DistanceMeasure::Jaro => Self::Jaro,
            DistanceMeasure::JaroWinkler => Self::JaroWinkler,
        }
    }
}

/// How many of the reference contexts were retrieved.
#[derive(Serialize, ToSchema)]
pub struct RecallNonLlmAnswer {
    /// The measure's name in Ragas.
    #[schema(value_type = String, example = "non_llm_context_recall")]
    pub metric: &'static str,
    /// The sample's id as sent, or null.
    #[schema(required = true)]
    pub id: Option<SampleId>,
    /// `recalled / total`.
    #[schema(minimum = 0, maximum = 1)]
    pub score: f64,
    /// How many reference contexts were retrieved.
    pub recalled: usize,
    /// How many reference contexts there are.
    #[schema(minimum = 1)]
    pub total: usize,
    /// The measure in force.
    pub distance_measure: DistanceMeasureBody,
    /// The threshold in force.
    #[schema(minimum = 0, maximum = 1)]
    pub threshold: f64,
    /// One verdict for each reference context, in order.
    pub verdicts: Vec<NonLlmVerdictBody>,
    /// Recall within the first k contexts, in the order of `k`. Absent when `k` was not sent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub recall_at: Vec<CutOffRecall>,
    /// What the reader of this score should know.
    pub warnings: Vec<WarningBody>,
}

/// Was this reference context retrieved?
#[derive(Serialize, ToSchema)]
#[schema(as = NonLlmVerdict)]
pub struct NonLlmVerdictBody {
    /// Its position, counted from 0.
    pub reference_context: usize,
    /// Is its best similarity above the threshold?
    pub recalled: bool,
    /// The largest similarity to a retrieved context; null when nothing was retrieved.
    #[schema(minimum = 0, maximum = 1, required = true)]
    pub similarity: Option<f64>,
    /// The first retrieved context that reaches it, counted from 0; null when nothing was retrieved.
    #[schema(required = true)]
    pub best_match: Option<usize>,
}

/// What was retrieved, what should have been, and how the two are compared.
type Contexts = (Vec<String>, Units<String>, NonLlmOptions);

fn read(body: &[u8], defaults: &NonLlmOptions) -> Result<(Option<SampleId>, Contexts), Problem> {
    let mut fields = Fields::parse(body, &RecallNonLlm::ROUTE)?;
    let id = fields.sample_id();
    let retrieved = fields.required_texts("retrieved_contexts");
    let reference = fields.required_texts("reference_contexts");
    let reference = reference.and_then(|list| fields.not_empty("reference_contexts", list));
    let options = options(&mut fields, defaults);
    let contexts = retrieved.zip(reference).map(|(retrieved, reference)| (id, (retrieved, reference, options)));
    fields.finish(contexts)
}

fn options(fields: &mut Fields<'_>, defaults: &NonLlmOptions) -> NonLlmOptions {
    let measures: Vec<_> = DistanceMeasure::ALL.iter().map(|measure| (measure.name(), *measure)).collect();
    NonLlmOptions {
        distance_measure: fields.choice("distance_measure", &measures).unwrap_or(defaults.distance_measure),
        threshold: threshold(fields).unwrap_or(defaults.threshold),
        cut_offs: fields.cut_offs(&defaults.cut_offs),
    }
}

/// The measure behind `/recall/nonllm`.
pub(super) enum RecallNonLlm {}

impl Measure for RecallNonLlm {
    const ROUTE: Route = ROUTE;
    type Options = NonLlmOptions;

    fn options(_: &App, fields: &mut Fields<'_>, defaults: &NonLlmOptions) -> NonLlmOptions {
        options(fields, defaults)
    }

    async fn score(app: &App, sample: Bytes, options: &NonLlmOptions, terms: Terms) -> Result<Scored, Problem> {
        let deadline = terms.deadline;
        let defaults = options.clone();
        // Comparing takes the product of the sizes, so even a small body may mean much work.
        let score = move |stop: &Stop| {
            let (id, (retrieved, reference, options)) = read(&sample, &defaults)?;
            let scored = nonllm::recall(&retrieved, &reference, &options, stop)?;
            let recall = scored.recall;
            let answer = RecallNonLlmAnswer::new(id.clone(), &options, scored);
            Scored::new(id, &answer, recall, Usage::NOTHING)
        };
        app.compute().run(deadline, score).await?
    }

    fn at_once(_: &App) -> usize {
        cores()
    }
}

fn threshold(fields: &mut Fields<'_>) -> Option<Threshold> {
    const EXPECTED: &str = "a number from 0 to 1";
    let number = fields.number("threshold", EXPECTED)?;
    let threshold = Threshold::new(number);
    if threshold.is_none() {
        fields.fault("/threshold", format!("expected {EXPECTED}, found {number}"));
    }
    threshold
}

/// Recall of contexts by string similarity
///
/// The share of `reference_contexts` whose best string similarity to a retrieved context is above `threshold`. Exact and
/// without any judge; the semantics of Ragas' `NonLLMContextRecall`, to the last bit. Strings are compared as they are
/// sent, code point by code point: no case is folded and no Unicode form is changed.
#[utoipa::path(
    post,
    path = "/recall/nonllm",
    tag = "recall",
    request_body(content = RecallNonLlmRequest, content_type = "application/json", examples(
        ("one of two found" = (value = json!({
            "retrieved_contexts": ["Paris is the capital of France."],
            "reference_contexts": ["Paris is the capital of France.", "The Eiffel Tower is one of the most famous landmarks in Paris."]
        }))),
        ("with another measure" = (value = json!({
            "retrieved_contexts": ["Oslo is the capital of Norway"],
            "reference_contexts": ["Oslo is the capital of Norway."],
            "distance_measure": "hamming",
            "threshold": 0.9
        })))
    )),
    responses(
        (status = 200, description = "The score, with a verdict for each reference context.", body = RecallNonLlmAnswer, examples(
            ("one of two found" = (value = json!({
                "metric": "non_llm_context_recall", "id": null, "score": 0.5, "recalled": 1, "total": 2,
                "distance_measure": "levenshtein", "threshold": 0.5,
                "verdicts": [
                    { "reference_context": 0, "recalled": true, "similarity": 1.0, "best_match": 0 },
                    { "reference_context": 1, "recalled": false, "similarity": 0.22580645161290325, "best_match": 0 }
                ],
                "warnings": []
            }))),
            ("with another measure" = (value = json!({
                "metric": "non_llm_context_recall", "id": null, "score": 1.0, "recalled": 1, "total": 1,
                "distance_measure": "hamming", "threshold": 0.9,
                "verdicts": [ { "reference_context": 0, "recalled": true, "similarity": 0.9666666666666667, "best_match": 0 } ],
                "warnings": []
            })))
        )),
        (status = "4XX", description = "The request cannot be scored.", body = ProblemBody, content_type = "application/problem+json"),
        (status = "5XX", description = "The service failed.", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub async fn recall_nonllm(State(app): State<App>, JsonBody { bytes, terms }: JsonBody) -> Result<Response, Problem> {
    Ok(RecallNonLlm::score(&app, bytes, &NonLlmOptions::default(), terms).await?.into_response())
}

/// Many samples for `/recall/nonllm`, and options for those that have none of their own.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RecallNonLlmBatchRequest {
    /// The samples, at least one. Options of their own stand beside their fields.
    #[schema(min_items = 1)]
    pub samples: Vec<RecallNonLlmRequest>,
    /// Give lines in the order of the samples. A JSON answer always is.
    #[schema(default = false)]
    pub ordered: Option<bool>,
    /// How strings are compared.
    #[schema(default = "levenshtein")]
    pub distance_measure: Option<DistanceMeasureBody>,
    /// A similarity above it counts as recalled.
    #[schema(minimum = 0, maximum = 1, default = 0.5)]
    pub threshold: Option<f64>,
    /// Report recall within the first k entries too, for each k of this list.
    pub k: Option<Vec<CutOff>>,
}

/// Recall of contexts by string similarity, many samples
///
/// Many samples in one request: as a JSON object, or as a stream of lines (`application/x-ndjson`), each a sample, with
/// options in the query string. `Accept` decides the form of the answer; without it the form is the request's. Lines leave
/// as soon as they are done; the last one is `{"summary": {…}}`, and an answer without it was cut off. One bad sample never
/// sinks the others: it is an item with `status: "failed"` and the problem that its single request would have got.
#[utoipa::path(
    post,
    path = "/recall/nonllm/batch",
    tag = "recall",
    request_body(content(
        (RecallNonLlmBatchRequest = "application/json", examples(("two samples, one of them bad" = (value = json!({
            "samples": [
                { "id": "q-1", "retrieved_contexts": ["Oslo is the capital of Norway."], "reference_contexts": ["Oslo is the capital of Norway."] },
                { "id": "q-2", "retrieved_contexts": ["Oslo is the capital of Norway."], "reference_contexts": "Oslo" }
            ],
            "threshold": 0.8
        }))))),
        (String = "application/x-ndjson")
    )),
    params(("ordered" = Option<bool>, Query, description = "For lines: give results in the order of the samples. Options of the route may stand here too, `k` as `k=1,3,5`.")),
    responses(
        (status = 200, description = "A result for each sample and a summary. `duration_ms` varies.", content(
            (BatchAnswer<RecallNonLlmAnswer> = "application/json", examples(("two samples, one of them bad" = (value = json!({
            "results": [
                { "index": 0, "id": "q-1", "status": "scored", "result": {
                    "metric": "non_llm_context_recall", "id": "q-1", "score": 1.0, "recalled": 1, "total": 1,
                    "distance_measure": "levenshtein", "threshold": 0.8,
                    "verdicts": [ { "reference_context": 0, "recalled": true, "similarity": 1.0, "best_match": 0 } ],
                    "warnings": [] } },
                { "index": 1, "id": "q-2", "status": "failed", "error": { "type": "about:blank", "title": "Unprocessable Entity", "status": 422, "code": "invalid_input",
                  "detail": "/reference_contexts: expected an array of strings, found a string; put the string into an array", "hint": "errors lists every fault with its place in the body.",
                  "errors": [{ "pointer": "/reference_contexts", "detail": "expected an array of strings, found a string; put the string into an array" }], "retryable": false, "request_id": "3f6b1a2c4d5e6f70" } }
            ],
            "summary": {
                "total": 2, "scored": 1, "failed": 1, "mean": 1.0, "pooled": 1.0, "bounds": [0.5, 1.0], "ci95": null,
                "min": 1.0, "p10": 1.0, "p50": 1.0, "p90": 1.0, "max": 1.0, "failures": { "invalid_input": 1 },
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
pub async fn recall_nonllm_batch(State(app): State<App>, request: Request) -> Result<Response, Problem> {
    batch::<RecallNonLlm>(app, request).await
}

impl RecallNonLlmAnswer {
    fn new(id: Option<SampleId>, options: &NonLlmOptions, scored: NonLlmRecall) -> Self {
        let mut position = 0..;
        let verdict = |verdict: NonLlmVerdict| NonLlmVerdictBody {
            reference_context: position.next().unwrap_or_default(),
            recalled: verdict.recalled,
            similarity: verdict.best.as_ref().map(|best| best.similarity),
            best_match: verdict.best.as_ref().map(|best| best.context),
        };
        Self {
            metric: "non_llm_context_recall",
            id,
            score: scored.recall.score(),
            recalled: scored.recall.recalled(),
            total: scored.recall.total(),
            distance_measure: options.distance_measure.into(),
            threshold: options.threshold.get(),
            verdicts: scored.verdicts.map(verdict).into_vec(),
            recall_at: scored.recall_at.into_iter().map(CutOffRecall::from).collect(),
            warnings: Vec::new(),
        }
    }
}
