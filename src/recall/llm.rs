//! Recall of claims: the share of a reference's claims that a judge attributes to the retrieved contexts.
//!
//! Semantics of Ragas' `ContextRecall` (`attributed / all claims`), with one difference on purpose: the claims are cut
//! here, before the judge is asked, so a judge can change neither their number nor their words. Where a model cuts them, it
//! does so in a step of its own that sees neither question nor contexts.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Instant;

use super::evidence::{Evidence, Haystack};
use super::judge::{
    Ballot, Cut, Decision, JudgeError, JudgeFault, JudgeInfo, Judgement, Question, SplitterInfo, Usage, Verdict, Votes,
    Warning,
};
use super::memory::Reuse;
use super::panel::{Panel, Told};
use super::{Recall, RecallAt, Stop, Stopped, Unit, Units, claims, rank};

/// The ground truth of one sample, as claims.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    claims: Units<String>,
    splitter: Option<SplitterInfo>,
}

impl Reference {
    /// Cuts a reference answer into claims; `None` when it is blank.
    ///
    /// ```
    /// use context_recall::recall::llm::Reference;
    ///
    /// let reference = Reference::cut("The Eiffel Tower is in Paris. It opened in 1889.");
    /// assert_eq!(reference.map(|cut| cut.claims().len().get()), Some(2));
    /// assert_eq!(Reference::cut(" \n"), None);
    /// ```
    #[must_use]
    pub fn cut(reference: &str) -> Option<Self> {
        let claims = claims::cut(reference).into_iter().map(str::to_owned).collect();
        Some(Self {
            claims: Units::new(claims)?,
            splitter: Some(SplitterInfo { name: claims::SPLITTER, sha256: None }),
        })
    }

    /// Takes the caller's own claims as they are.
    #[must_use]
    pub fn of_claims(claims: Units<String>) -> Self {
        Self { claims, splitter: None }
    }

    /// The claims, in order.
    #[must_use]
    pub fn claims(&self) -> &Units<String> {
        &self.claims
    }
}

/// One thing to score.
#[derive(Debug, Clone)]
pub struct LlmSample {
    /// The question that the retriever worked for.
    pub user_input: String,
    /// The ground truth.
    pub reference: Reference,
    /// The retrieved contexts, in rank order. Blank ones count as nothing retrieved.
    pub retrieved_contexts: Vec<String>,
}

/// What an attributed claim without a quote that stands in a context is worth.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EvidenceRule {
    /// It keeps its verdict, and a warning says so.
    #[default]
    Flag,
    /// It counts as not attributed.
    Require,
}

/// How a reference is cut into claims.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Split {
    /// Sentence by sentence, by rules.
    #[default]
    Sentence,
    /// Each sentence further, by a model.
    Atomic,
}

/// How to score.
#[derive(Debug, Clone, Default)]
pub struct LlmOptions {
    /// How the reference is cut.
    pub split: Split,
    /// How often it is judged.
    pub votes: Votes,
    /// What an attributed claim without matching evidence is worth.
    pub evidence: EvidenceRule,
    /// Cut-offs at which recall is reported too.
    pub cut_offs: Vec<NonZeroUsize>,
}

/// A claim, the decision on it, and where the contexts bear it out.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimVerdict {
    /// The claim's words.
    pub claim: String,
    /// Can it be attributed to the retrieved contexts?
    pub attributed: bool,
    /// Why, in the judge's words.
    pub reason: String,
    /// The judge's quotes, each looked up in the contexts.
    pub evidence: Vec<Evidence>,
    /// The share of the votes that say so, from 0.5 to 1; `None` when there was to be one vote.
    pub agreement: Option<f64>,
}

/// The contexts in which quotes were found.
fn found_in(evidence: &[Evidence]) -> impl Iterator<Item = usize> {
    evidence.iter().filter_map(|evidence| match evidence {
        Evidence::Found { context, .. } => Some(*context),
        Evidence::Missing { .. } => None,
    })
}

impl ClaimVerdict {
    fn has_evidence(&self) -> bool {
        found_in(&self.evidence).next().is_some()
    }

    /// How many of `retrieved` contexts it takes: up to the last that holds matching evidence. Without matching evidence
    /// nobody knows which contexts mattered, so it takes the whole list. `None` when the claim is not attributed.
    fn rank(&self, retrieved: usize) -> Option<NonZeroUsize> {
        let whole_list = retrieved.saturating_sub(1);
        self.attributed.then(|| rank(found_in(&self.evidence).max().unwrap_or(whole_list)))
    }
}

impl Unit for ClaimVerdict {
    fn is_recalled(&self) -> bool {
        self.attributed
    }
}

/// The recall of one sample's claims, with all that it rests on.
#[derive(Debug, Clone)]
pub struct LlmRecall {
    /// A verdict for every claim, in the order of the claims.
    pub verdicts: Units<ClaimVerdict>,
    /// The share of attributed claims in that list.
    pub recall: Recall,
    /// The recall within the first k contexts, in the order asked for.
    pub recall_at: Vec<RecallAt>,
    /// Who decided.
    pub judge: JudgeInfo,
    /// The model's name as the backend reported it.
    pub model_reported: Option<String>,
    /// What cut the reference; `None` when the caller gave the claims.
    pub splitter: Option<SplitterInfo>,
    /// In how many windows the contexts were read; 1 when they were read as a whole.
    pub windows: usize,
    /// What it cost.
    pub usage: Usage,
    /// Was all of it remembered?
    pub cached: bool,
    /// What the reader of the score should know.
    pub warnings: Vec<Warning>,
}

/// A sample whose claims were judged and whose evidence is still to be checked.
#[derive(Debug)]
pub struct Judged {
    question: Arc<Question>,
    judgement: Judgement,
    cached: bool,
    judge: JudgeInfo,
    splitter: Option<SplitterInfo>,
}

/// Has one sample judged. What remains is [`Judged::check`], which needs no judge and no waiting.
///
/// Nothing retrieved (no context, or only blank ones) is recall 0.0 without asking anybody. Claims that the caller gave are
/// cut no further. What depends on the options for the check that follows is not remembered: they may change.
///
/// # Errors
///
/// Whatever kept the judge from deciding on every claim; then there is no score.
pub async fn judge(
    sample: LlmSample,
    options: &LlmOptions,
    panel: &Panel,
    reuse: Reuse,
    deadline: Instant,
) -> Result<Judged, JudgeError> {
    let LlmSample { user_input, reference, retrieved_contexts: contexts } = sample;
    let judge = panel.judge().info().clone();
    if contexts.iter().all(|context| context.trim().is_empty()) {
        let Reference { claims, splitter } = reference;
        let question = Arc::new(Question { user_input, contexts, claims });
        let judgement = nothing_retrieved(&question)?;
        return Ok(Judged { question, judgement, cached: false, judge, splitter });
    }
    let cut = match options.split {
        Split::Atomic if reference.splitter.is_some() => cut(reference.claims, panel, reuse, deadline).await?,
        Split::Atomic | Split::Sentence => CutReference::as_it_is(reference),
    };
    let CutReference { reference: Reference { claims, splitter }, cached: cut_cached, usage, mut warnings } = cut;
    let question = Arc::new(Question { user_input, contexts, claims });
    let decided = panel.decide(&question, options.votes, reuse, deadline).await;
    let Told { answer: mut judgement, cached } = decided.map_err(|error| error.having_spent(usage))?;
    judgement.usage = judgement.usage.plus(usage);
    judgement.warnings.retain(|warning| !warnings.contains(warning));
    warnings.append(&mut judgement.warnings);
    judgement.warnings = warnings;
    Ok(Judged { question, judgement, cached: cached && cut_cached, judge, splitter })
}

/// A reference in the claims that are put to the judge.
struct CutReference {
    reference: Reference,
    /// Was nobody asked for it?
    cached: bool,
    usage: Usage,
    warnings: Vec<Warning>,
}

impl CutReference {
    fn as_it_is(reference: Reference) -> Self {
        Self { reference, cached: true, usage: Usage::NOTHING, warnings: Vec::new() }
    }
}

/// Has the sentences of a reference cut further.
async fn cut(
    sentences: Units<String>,
    panel: &Panel,
    reuse: Reuse,
    deadline: Instant,
) -> Result<CutReference, JudgeError> {
    let splitter = panel.splitter().ok_or_else(|| JudgeError::internal("there is nobody to cut the reference"))?;
    let Told { answer, cached } = panel.cut(splitter, &Arc::new(sentences), reuse, deadline).await?;
    let Cut { claims, usage, warnings } = answer;
    let reference = Reference { claims, splitter: Some(splitter.info().clone()) };
    Ok(CutReference { reference, cached, usage, warnings })
}

impl Judged {
    /// About how many bytes checking has to read: every quote may be looked for in every context.
    #[must_use]
    pub fn weight(&self) -> usize {
        let context: usize = self.question.contexts.iter().map(String::len).sum();
        let grounds = self.judgement.verdicts.iter().flat_map(Decision::grounds);
        let quotes: usize = grounds.map(|verdict| verdict.evidence.len()).sum();
        context.saturating_mul(quotes)
    }

    /// What the judgement cost, for whoever reports a failure after it.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.judgement.usage
    }

    /// Looks every quote up in the contexts, applies the rule for missing evidence, and counts.
    ///
    /// # Errors
    ///
    /// When `stop` was raised, or when the judge broke its contract and gave another number of verdicts than there are
    /// claims.
    pub fn check(self, options: &LlmOptions, stop: &Stop) -> Result<LlmRecall, JudgeError> {
        let Self { question, judgement, cached, judge, splitter } = self;
        let mut warnings = judgement.warnings;
        let decisions = judgement.verdicts.into_units();
        if decisions.len() != question.claims.len() {
            return Err(incomplete());
        }
        let haystack = Haystack::new(&question.contexts);
        let mut checked = Vec::with_capacity(decisions.len().get());
        for ((decision, claim), number) in decisions.into_vec().into_iter().zip(question.claims.iter()).zip(1..) {
            let agreement = (options.votes != Votes::ONE).then(|| decision.agreement.share());
            let attributed = decision.verdict.attributed;
            let (reason, evidence) = grounds(decision, &haystack, stop).map_err(stopped)?;
            let mut verdict = ClaimVerdict { claim: claim.clone(), attributed, reason, evidence, agreement };
            if attributed && !verdict.has_evidence() {
                verdict.attributed = options.evidence == EvidenceRule::Flag;
                warnings.push(Warning::EvidenceMissing { claim: number, counts: verdict.attributed });
            }
            checked.push(verdict);
        }
        let verdicts = Units::new(checked).ok_or_else(incomplete)?;
        if verdicts.len() == NonZeroUsize::MIN {
            warnings.push(Warning::SingleClaim);
        }
        let retrieved = question.contexts.len();
        Ok(LlmRecall {
            recall: verdicts.recall(),
            recall_at: verdicts.recall_at(|verdict| verdict.rank(retrieved), &options.cut_offs),
            verdicts,
            judge,
            model_reported: judgement.model_reported,
            splitter,
            windows: judgement.windows,
            usage: judgement.usage,
            cached,
            warnings,
        })
    }
}

/// The reason and the looked-up quotes of the first verdict with a quote that stands in a context; the first verdict's
/// when none has one. Reason and quotes stay together: what one vote or window relied on, not a mixture.
fn grounds(decision: Decision, haystack: &Haystack<'_>, stop: &Stop) -> Result<(String, Vec<Evidence>), Stopped> {
    let mut first = None;
    for verdict in std::iter::once(decision.verdict).chain(decision.further) {
        let looked_up = verdict.evidence.iter().map(|citation| {
            stop.check()?;
            Ok(haystack.find(citation))
        });
        let evidence = looked_up.collect::<Result<Vec<_>, Stopped>>()?;
        if !verdict.attributed || found_in(&evidence).next().is_some() {
            return Ok((verdict.reason, evidence));
        }
        first.get_or_insert((verdict.reason, evidence));
    }
    Ok(first.unwrap_or_default())
}

fn stopped(_: Stopped) -> JudgeError {
    JudgeError::new(JudgeFault::DeadlineExceeded, "the evidence was not checked before the request's deadline")
}

fn incomplete() -> JudgeError {
    JudgeError::internal("the judge gave another number of verdicts than there are claims")
}

fn nothing_retrieved(question: &Question) -> Result<Judgement, JudgeError> {
    let mut ballot = Ballot::of(question);
    for number in ballot.open() {
        let verdict = Verdict { attributed: false, reason: "Nothing was retrieved.".to_owned(), evidence: Vec::new() };
        ballot.cast(number, verdict);
    }
    Ok(Judgement {
        verdicts: ballot.close().map_err(|_| incomplete())?,
        model_reported: None,
        windows: 1,
        usage: Usage::NOTHING,
        warnings: Vec::new(),
    })
}
