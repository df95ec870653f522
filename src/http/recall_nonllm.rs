//! `POST /recall/nonllm`.

use axum::extract::State;
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use super::App;
use super::answer::{CutOffRecall, WarningBody};
use super::body::JsonBody;
use super::extract::{CutOff, Fields, Route, SampleId};
use super::problem::{Problem, ProblemBody};
use super::work::json;
use crate::recall::Units;
use crate::recall::nonllm::{self, NonLlmOptions, NonLlmRecall, NonLlmVerdict, Threshold};
use crate::recall::similarity::DistanceMeasure;

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

fn read(body: &[u8]) -> Result<(Option<SampleId>, Contexts), Problem> {
    let mut fields = Fields::parse(body, &ROUTE)?;
    let id = fields.sample_id();
    let retrieved = fields.required_texts("retrieved_contexts");
    let reference = fields.required_texts("reference_contexts");
    let reference = reference.and_then(|list| fields.not_empty("reference_contexts", list));
    let measures: Vec<_> = DistanceMeasure::ALL.iter().map(|measure| (measure.name(), *measure)).collect();
    let options = NonLlmOptions {
        distance_measure: fields.choice("distance_measure", &measures).unwrap_or_default(),
        threshold: threshold(&mut fields),
        cut_offs: fields.cut_offs(),
    };
    let contexts = retrieved.zip(reference).map(|(retrieved, reference)| (id, (retrieved, reference, options)));
    fields.finish(contexts)
}

fn threshold(fields: &mut Fields<'_>) -> Threshold {
    const EXPECTED: &str = "a number from 0 to 1";
    let Some(number) = fields.number("threshold", EXPECTED) else {
        return Threshold::default();
    };
    Threshold::new(number).unwrap_or_else(|| {
        fields.fault("/threshold", format!("expected {EXPECTED}, found {number}"));
        Threshold::default()
    })
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
pub async fn recall_nonllm(
    State(app): State<App>,
    JsonBody { bytes, deadline }: JsonBody,
) -> Result<Response, Problem> {
    // Comparing takes the product of the sizes, so even a small body may mean much work.
    app.compute()
        .run(deadline, move |stop| {
            let (id, (retrieved, reference, options)) = read(&bytes)?;
            let scored = nonllm::recall(&retrieved, &reference, &options, stop)?;
            json(&RecallNonLlmAnswer::new(id, &options, scored))
        })
        .await?
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
