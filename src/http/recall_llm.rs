//! `POST /recall/llm`.

use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;
use utoipa::ToSchema;

use super::App;
use super::answer::{CutOffRecall, UsageBody, WarningBody};
use super::batch::{BatchAnswer, batch};
use super::body::JsonBody;
use super::extract::{CutOff, Fields, Route, SampleId};
use super::measure::{Measure, Scored, Terms};
use super::problem::{Problem, ProblemBody};
use super::work::work;
use crate::recall::Stop;
use crate::recall::evidence::Evidence;
use crate::recall::judge::{JudgeInfo, SplitterInfo, Votes};
use crate::recall::llm::{self, ClaimVerdict, EvidenceRule, LlmOptions, LlmRecall, LlmSample, Reference, Split};

/// What this route takes beside the sample's fields.
pub const ROUTE: Route = Route { path: "/recall/llm", options: &["split", "evidence", "votes", "k"] };

/// One sample: a question, what was retrieved for it, and the answer it should have led to.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RecallLlmRequest {
    /// Your name for this sample, given back in the answer.
    pub id: Option<SampleId>,
    /// The question. Also known as `question`, `input`, `query`.
    #[schema(min_length = 1)]
    pub user_input: String,
    /// What was retrieved, best first. May be empty: then recall is 0 and no judge is asked. Also known as `contexts`,
    /// `retrieval_context`.
    pub retrieved_contexts: Vec<String>,
    /// The answer that the contexts should bear out. It is cut into claims, sentence by sentence. Required unless
    /// `reference_claims` is given. Also known as `ground_truth`, `expected_output`, `expected`.
    #[schema(min_length = 1)]
    pub reference: Option<String>,
    /// Your own claims, used as they are; then `reference` is not read. At least one, none blank.
    #[schema(min_items = 1)]
    pub reference_claims: Option<Vec<String>>,
    /// How the reference is cut into claims. Not read when you send `reference_claims`.
    #[schema(default = "sentence")]
    pub split: Option<SplitBody>,
    /// What an attributed claim is worth when none of the judge's quotes stands in a context.
    #[schema(default = "flag")]
    pub evidence: Option<EvidenceRuleBody>,
    /// Judge this often and decide each claim by the majority; a tie is not attributed. The embedded judge always says the
    /// same, so it is asked once.
    #[schema(minimum = 1, maximum = 9, default = 1)]
    pub votes: Option<u8>,
    /// Report recall within the first k contexts too, for each k of this list.
    pub k: Option<Vec<CutOff>>,
}

/// How a reference is cut into claims.
#[derive(ToSchema)]
#[schema(as = Split)]
#[serde(rename_all = "snake_case")]
pub enum SplitBody {
    /// By this service: every sentence, list item or table row is a claim.
    Sentence,
    /// Each sentence further by the judge's model, in a call of its own that sees neither question nor contexts. A claim
    /// holds nothing that the reference does not; a sentence that the model cannot cut so stays whole. Needs a model.
    Atomic,
}

const SPLITS: &[(&str, Split)] = &[("sentence", Split::Sentence), ("atomic", Split::Atomic)];

/// What an attributed claim is worth when none of the judge's quotes stands in a context.
#[derive(ToSchema)]
#[schema(as = EvidenceRule)]
#[serde(rename_all = "snake_case")]
pub enum EvidenceRuleBody {
    /// It keeps its verdict, and a warning says so.
    Flag,
    /// It counts as not attributed.
    Require,
}

const EVIDENCE_RULES: &[(&str, EvidenceRule)] = &[("flag", EvidenceRule::Flag), ("require", EvidenceRule::Require)];

/// How many of the reference's claims can be attributed to the retrieved contexts.
#[derive(Serialize, ToSchema)]
pub struct RecallLlmAnswer {
    /// The measure's name in Ragas.
    #[schema(value_type = String, example = "context_recall")]
    pub metric: &'static str,
    /// The sample's id as sent, or null.
    #[schema(required = true)]
    pub id: Option<SampleId>,
    /// `recalled / total`.
    #[schema(minimum = 0, maximum = 1)]
    pub score: f64,
    /// How many claims are attributed.
    pub recalled: usize,
    /// How many claims there are.
    #[schema(minimum = 1)]
    pub total: usize,
    /// One verdict for each claim, in order.
    pub verdicts: Vec<ClaimVerdictBody>,
    /// Recall within the first k contexts, in the order of `k`. Absent when `k` was not sent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub recall_at: Vec<CutOffRecall>,
    /// Who decided, and by which question.
    pub judge: JudgeBody,
    /// What this answer cost; summed over answers, what was spent. All 0 from memory.
    pub usage: UsageBody,
    /// Was all of it remembered, so that nobody was asked? `false` beside 0 calls: it was asked together with an equal
    /// sample, whose answer holds what it cost. The embedded judge is never remembered: asking it costs nothing.
    pub cached: bool,
    /// What the reader of this score should know.
    pub warnings: Vec<WarningBody>,
}

/// The decision on one claim.
#[derive(Serialize, ToSchema)]
#[schema(as = ClaimVerdict)]
pub struct ClaimVerdictBody {
    /// The claim.
    pub claim: String,
    /// Can it be attributed to the retrieved contexts?
    pub attributed: bool,
    /// Why, in the judge's words.
    pub reason: String,
    /// The judge's quotes, each looked up in the contexts by code. A quote that is found proves that the words stand
    /// there, not that they support the claim.
    pub evidence: Vec<EvidenceBody>,
    /// The share of the votes that say so. Absent when there was to be one vote.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0.5, maximum = 1, nullable = false)]
    pub agreement: Option<f64>,
}

/// A quote and where it stands.
#[derive(Serialize, ToSchema)]
#[schema(as = ClaimEvidence)]
pub struct EvidenceBody {
    /// The retrieved context, counted from 0; null when the judge named none that exists.
    #[schema(required = true)]
    pub context: Option<usize>,
    /// The context's own text from `start` to `end`; the judge's wording when it stands nowhere.
    pub quote: String,
    /// Its first code point in that context, counted from 0; null when it stands nowhere.
    #[schema(required = true)]
    pub start: Option<usize>,
    /// The code point after its last; null when it stands nowhere.
    #[schema(required = true)]
    pub end: Option<usize>,
    /// How it was found.
    #[serde(rename = "match")]
    pub matched: MatchBody,
}

/// How a quote was found.
#[derive(Serialize, ToSchema)]
#[schema(as = ClaimEvidenceMatch)]
#[serde(rename_all = "snake_case")]
pub enum MatchBody {
    /// Letter by letter.
    Exact,
    /// After folding case, white space, quote marks and compatibility forms.
    Normalized,
    /// It stands in no context.
    Missing,
}

/// Who decided, and by which question.
#[derive(Serialize, ToSchema)]
#[schema(as = JudgeReceipt)]
pub struct JudgeBody {
    /// `embedded`, or the provider asked.
    pub provider: &'static str,
    /// The model asked for, or the version of the embedded judge.
    pub model: String,
    /// The model's name as the backend reported it.
    #[schema(required = true)]
    pub model_reported: Option<String>,
    /// Name and version of the question put to the model; null for the embedded judge.
    #[schema(required = true)]
    pub prompt: Option<&'static str>,
    /// SHA-256 of its fixed part.
    #[schema(required = true)]
    pub prompt_sha256: Option<String>,
    /// Name and version of what cut the reference; null when you sent the claims.
    #[schema(required = true)]
    pub splitter: Option<&'static str>,
    /// SHA-256 of the fixed part of its question; null for the service's own rules.
    #[schema(required = true)]
    pub splitter_sha256: Option<String>,
    /// The sampling seed asked for; further votes count on from it. Null for the embedded judge.
    #[schema(required = true)]
    pub seed: Option<i64>,
    /// In how many windows the contexts were read: 1 as a whole, more when they did not fit the model's window at once.
    #[schema(minimum = 1)]
    pub windows: usize,
}

fn read(body: &[u8], app: &App, defaults: &LlmOptions) -> Result<(Option<SampleId>, LlmSample, LlmOptions), Problem> {
    let mut fields = Fields::parse(body, &RecallLlm::ROUTE)?;
    let id = fields.sample_id();
    let user_input = fields.required_text("user_input", "a string");
    let reference = reference(&mut fields);
    let retrieved_contexts = fields.required_texts("retrieved_contexts");
    let options = RecallLlm::options(app, &mut fields, defaults);
    let sample = (|| {
        Some(LlmSample { user_input: user_input?, reference: reference?, retrieved_contexts: retrieved_contexts? })
    })();
    fields.finish(sample.map(|sample| (id, sample, options)))
}

fn reference(fields: &mut Fields<'_>) -> Option<Reference> {
    if !fields.has("reference_claims") {
        let text = fields.required_text("reference", "a string, unless `reference_claims` is given")?;
        let cut = Reference::cut(&text);
        if cut.is_none() {
            fields.fault("/reference", "holds no claim");
        }
        return cut;
    }
    let claims = fields.required_texts("reference_claims")?;
    let blank: Vec<usize> =
        (0..).zip(&claims).filter(|(_, claim)| claim.trim().is_empty()).map(|(index, _)| index).collect();
    for index in &blank {
        fields.fault(format!("/reference_claims/{index}"), "must not be blank");
    }
    let claims = fields.not_empty("reference_claims", claims)?;
    blank.is_empty().then(|| Reference::of_claims(claims))
}

/// The measure behind `/recall/llm`.
pub(super) enum RecallLlm {}

impl Measure for RecallLlm {
    const ROUTE: Route = ROUTE;
    type Options = LlmOptions;

    fn options(app: &App, fields: &mut Fields<'_>, defaults: &LlmOptions) -> LlmOptions {
        let split = fields.choice("split", SPLITS).unwrap_or(defaults.split);
        if split == Split::Atomic && app.panel().splitter().is_none() {
            fields.fault(
                "/split",
                "`atomic` needs a model to cut with, and the judge in force is the embedded one; see --judge",
            );
        }
        LlmOptions {
            split,
            votes: fields.whole_number("votes", 1..=Votes::MOST).and_then(Votes::new).unwrap_or(defaults.votes),
            evidence: fields.choice("evidence", EVIDENCE_RULES).unwrap_or(defaults.evidence),
            cut_offs: fields.cut_offs(&defaults.cut_offs),
        }
    }

    async fn score(app: &App, sample: Bytes, options: &LlmOptions, terms: Terms) -> Result<Scored, Problem> {
        let size = sample.len();
        let Terms { deadline, reuse } = terms;
        let (reader, defaults) = (app.clone(), options.clone());
        let read = work(app.compute(), size, deadline, move |_| read(&sample, &reader, &defaults));
        let (id, sample, options) = read.await?;
        let judged = llm::judge(sample, &options, app.panel(), reuse, deadline).await?;
        let (weight, spent) = (judged.weight(), judged.usage());
        let check = move |stop: &Stop| {
            let scored = judged.check(&options, stop)?;
            let (recall, usage) = (scored.recall, scored.usage);
            Scored::new(id.clone(), &RecallLlmAnswer::new(id, scored), recall, usage)
        };
        work(app.checks(), size.max(weight), deadline, check).await.map_err(|problem| problem.having_spent(spent))
    }

    fn at_once(app: &App) -> usize {
        app.limits().judge_concurrency
    }
}

/// Recall of claims, by a judge
///
/// The reference is cut into claims; a judge decides for each whether it can be attributed to the retrieved contexts.
/// Score = attributed / all claims, the semantics of Ragas' `ContextRecall`. The claims are cut by this service before the
/// judge is asked, so a judge can neither add nor drop one; every quote it gives is looked up in the contexts. Nothing
/// retrieved scores 0 without asking anybody; a judge that fails gives an error and never a number.
#[utoipa::path(
    post,
    path = "/recall/llm",
    tag = "recall",
    request_body(content = RecallLlmRequest, content_type = "application/json", examples(
        ("one of two attributed" = (value = json!({
            "id": "q-7",
            "user_input": "Where is the Eiffel Tower and when did it open?",
            "reference": "The Eiffel Tower is in Paris. It opened in 1889.",
            "retrieved_contexts": ["The Eiffel Tower stands in Paris, France."]
        }))),
        ("your own claims" = (value = json!({
            "user_input": "Where is the Eiffel Tower located?",
            "reference_claims": ["The Eiffel Tower is located in Paris."],
            "retrieved_contexts": ["Paris is the capital of France."],
            "evidence": "require",
            "k": [1]
        })))
    )),
    responses(
        (status = 200, description = "The score, with a verdict and checked evidence for each claim. The examples are the embedded judge's.", body = RecallLlmAnswer, examples(
            ("one of two attributed" = (value = json!({
                "metric": "context_recall", "id": "q-7", "score": 0.5, "recalled": 1, "total": 2,
                "verdicts": [
                    { "claim": "The Eiffel Tower is in Paris.", "attributed": true, "reason": "covered by the contexts",
                      "evidence": [{ "context": 0, "quote": "The Eiffel Tower stands in Paris, France.", "start": 0, "end": 41, "match": "exact" }] },
                    { "claim": "It opened in 1889.", "attributed": false, "reason": "the contexts say nothing of: opened, 1889", "evidence": [] }
                ],
                "judge": { "provider": "embedded", "model": "lexical/2", "model_reported": null, "prompt": null, "prompt_sha256": null, "splitter": "sentence/1", "splitter_sha256": null, "seed": null, "windows": 1 },
                "usage": { "judge_calls": 0, "input_tokens": 0, "cached_input_tokens": 0, "output_tokens": 0, "reasoning_tokens": 0 },
                "cached": false, "warnings": []
            }))),
            ("your own claims" = (value = json!({
                "metric": "context_recall", "id": null, "score": 0.0, "recalled": 0, "total": 1,
                "verdicts": [
                    { "claim": "The Eiffel Tower is located in Paris.", "attributed": false, "reason": "the contexts say nothing of: Eiffel Tower, located", "evidence": [] }
                ],
                "recall_at": [{ "k": 1, "score": 0.0, "recalled": 0 }],
                "judge": { "provider": "embedded", "model": "lexical/2", "model_reported": null, "prompt": null, "prompt_sha256": null, "splitter": null, "splitter_sha256": null, "seed": null, "windows": 1 },
                "usage": { "judge_calls": 0, "input_tokens": 0, "cached_input_tokens": 0, "output_tokens": 0, "reasoning_tokens": 0 },
                "cached": false,
                "warnings": [{ "code": "single_claim", "detail": "The reference is one claim, so the score can only be 0 or 1." }]
            })))
        )),
        (status = "4XX", description = "The request cannot be scored.", body = ProblemBody, content_type = "application/problem+json"),
        (status = "5XX", description = "The service or the judge's backend failed. Nothing was scored.", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub async fn recall_llm(State(app): State<App>, JsonBody { bytes, terms }: JsonBody) -> Result<Response, Problem> {
    Ok(RecallLlm::score(&app, bytes, &LlmOptions::default(), terms).await?.into_response())
}

/// Many samples for `/recall/llm`, and options for those that have none of their own.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RecallLlmBatchRequest {
    /// The samples, at least one. Options of their own stand beside their fields.
    #[schema(min_items = 1)]
    pub samples: Vec<RecallLlmRequest>,
    /// Give lines in the order of the samples. A JSON answer always is.
    #[schema(default = false)]
    pub ordered: Option<bool>,
    /// How the references are cut into claims.
    #[schema(default = "sentence")]
    pub split: Option<SplitBody>,
    /// How often each judge is asked; the majority decides on each claim.
    #[schema(minimum = 1, maximum = 9, default = 1)]
    pub votes: Option<u8>,
    /// What an attributed claim is worth when none of the judge's quotes stands in a context.
    #[schema(default = "flag")]
    pub evidence: Option<EvidenceRuleBody>,
    /// Report recall within the first k entries too, for each k of this list.
    pub k: Option<Vec<CutOff>>,
}

/// Recall of claims, many samples
///
/// Many samples in one request: as a JSON object, or as a stream of lines (`application/x-ndjson`), each a sample, with
/// options in the query string. `Accept` decides the form of the answer; without it the form is the request's. Lines leave
/// as soon as they are done; the last one is `{"summary": {…}}`, and an answer without it was cut off. One bad sample never
/// sinks the others: it is an item with `status: "failed"` and the problem that its single request would have got.
#[utoipa::path(
    post,
    path = "/recall/llm/batch",
    tag = "recall",
    request_body(content(
        (RecallLlmBatchRequest = "application/json", examples(("two samples, one of them bad" = (value = json!({
            "samples": [
                { "id": "q-1", "user_input": "Where is the Eiffel Tower?", "reference": "The Eiffel Tower is in Paris. It opened in 1889.",
                  "retrieved_contexts": ["The Eiffel Tower stands in Paris, France."] },
                { "id": "q-2", "user_input": "Where is the Eiffel Tower?", "reference": " ",
                  "retrieved_contexts": ["The Eiffel Tower stands in Paris, France."] }
            ],
            "evidence": "require"
        }))))),
        (String = "application/x-ndjson")
    )),
    params(("ordered" = Option<bool>, Query, description = "For lines: give results in the order of the samples. Options of the route may stand here too, `k` as `k=1,3,5`.")),
    responses(
        (status = 200, description = "A result for each sample and a summary. `duration_ms` varies.", content(
            (BatchAnswer<RecallLlmAnswer> = "application/json", examples(("two samples, one of them bad" = (value = json!({
            "results": [
                { "index": 0, "id": "q-1", "status": "scored", "result": {
                    "metric": "context_recall", "id": "q-1", "score": 0.5, "recalled": 1, "total": 2,
                    "verdicts": [
                        { "claim": "The Eiffel Tower is in Paris.", "attributed": true, "reason": "covered by the contexts",
                          "evidence": [{ "context": 0, "quote": "The Eiffel Tower stands in Paris, France.", "start": 0, "end": 41, "match": "exact" }] },
                        { "claim": "It opened in 1889.", "attributed": false, "reason": "the contexts say nothing of: opened, 1889", "evidence": [] }
                    ],
                    "judge": { "provider": "embedded", "model": "lexical/2", "model_reported": null, "prompt": null, "prompt_sha256": null, "splitter": "sentence/1", "splitter_sha256": null, "seed": null, "windows": 1 },
                    "usage": { "judge_calls": 0, "input_tokens": 0, "cached_input_tokens": 0, "output_tokens": 0, "reasoning_tokens": 0 },
                    "cached": false, "warnings": [] } },
                { "index": 1, "id": "q-2", "status": "failed", "error": { "type": "about:blank", "title": "Unprocessable Entity", "status": 422, "code": "invalid_input",
                  "detail": "/reference: must not be blank", "hint": "errors lists every fault with its place in the body.",
                  "errors": [{ "pointer": "/reference", "detail": "must not be blank" }], "retryable": false, "request_id": "3f6b1a2c4d5e6f70" } }
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
pub async fn recall_llm_batch(State(app): State<App>, request: Request) -> Result<Response, Problem> {
    batch::<RecallLlm>(app, request).await
}

impl RecallLlmAnswer {
    fn new(id: Option<SampleId>, scored: LlmRecall) -> Self {
        Self {
            metric: "context_recall",
            id,
            score: scored.recall.score(),
            recalled: scored.recall.recalled(),
            total: scored.recall.total(),
            verdicts: scored.verdicts.map(ClaimVerdictBody::from).into_vec(),
            recall_at: scored.recall_at.into_iter().map(CutOffRecall::from).collect(),
            judge: JudgeBody::new(scored.judge, scored.model_reported, scored.splitter, scored.windows),
            usage: scored.usage.into(),
            cached: scored.cached,
            warnings: scored.warnings.into_iter().map(WarningBody::from).collect(),
        }
    }
}

impl From<ClaimVerdict> for ClaimVerdictBody {
    fn from(verdict: ClaimVerdict) -> Self {
        Self {
            claim: verdict.claim,
            attributed: verdict.attributed,
            reason: verdict.reason,
            evidence: verdict.evidence.into_iter().map(EvidenceBody::from).collect(),
            agreement: verdict.agreement,
        }
    }
}

impl From<Evidence> for EvidenceBody {
    fn from(evidence: Evidence) -> Self {
        match evidence {
            Evidence::Found { context, quote, start, end, exact } => Self {
                context: Some(context),
                quote,
                start: Some(start),
                end: Some(end),
                matched: if exact { MatchBody::Exact } else { MatchBody::Normalized },
            },
            Evidence::Missing { context, quote } => {
                Self { context, quote, start: None, end: None, matched: MatchBody::Missing }
            }
        }
    }
}

impl JudgeBody {
    fn new(info: JudgeInfo, model_reported: Option<String>, splitter: Option<SplitterInfo>, windows: usize) -> Self {
        let JudgeInfo { provider, model, prompt, prompt_sha256, seed } = info;
        let (splitter, splitter_sha256) = splitter.map(|SplitterInfo { name, sha256 }| (name, sha256)).unzip();
        let splitter_sha256 = splitter_sha256.flatten();
        Self { provider, model, model_reported, prompt, prompt_sha256, splitter, splitter_sha256, seed, windows }
    }
}
