//! The parts that the answers of all routes have in common.

use serde::Serialize;
use utoipa::ToSchema;

use crate::recall::RecallAt;
use crate::recall::judge::{Usage, Warning};

/// The recall that a list cut after its first `k` entries would have reached.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RecallAt)]
pub struct CutOffRecall {
    /// The cut-off.
    #[schema(minimum = 1)]
    pub k: usize,
    /// `recalled / total` within the first k.
    #[schema(minimum = 0, maximum = 1)]
    pub score: f64,
    /// How many units are recalled within the first k.
    pub recalled: usize,
}

impl From<RecallAt> for CutOffRecall {
    fn from(at: RecallAt) -> Self {
        Self { k: at.k.get(), score: at.recall.score(), recalled: at.recall.recalled() }
    }
}

/// Something that the reader of a score should know.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RecallWarning)]
pub struct WarningBody {
    /// Which kind.
    pub code: WarningCode,
    /// What happened this time.
    pub detail: String,
}

/// The kinds of warnings: a closed list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WarningCode {
    /// An attributed claim has no quote that stands in a context.
    EvidenceMissing,
    /// The judge's answer stood where its reasoning belongs.
    AnswerInReasoning,
    /// The backend refused the strict answer schema and was asked with a weaker one.
    StructuredOutputDowngraded,
    /// The reference is one claim, so the score can only be 0 or 1.
    SingleClaim,
}

impl From<Warning> for WarningBody {
    fn from(warning: Warning) -> Self {
        let (code, detail) = match warning {
            Warning::EvidenceMissing { claim, counts } => {
                let counted = if counts { "it counts all the same" } else { "so it counts as not attributed" };
                let detail = format!(
                    "The judge attributed claim {claim}, but none of its quotes stands in a context; {counted}."
                );
                (WarningCode::EvidenceMissing, detail)
            }
            Warning::AnswerInReasoning => (
                WarningCode::AnswerInReasoning,
                "The judge's answer stood where its reasoning belongs; it was read there.".to_owned(),
            ),
            Warning::StructuredOutputDowngraded { used } => (
                WarningCode::StructuredOutputDowngraded,
                format!("The backend refused the strict answer schema; used instead: {used}."),
            ),
            Warning::SingleClaim => {
                (WarningCode::SingleClaim, "The reference is one claim, so the score can only be 0 or 1.".to_owned())
            }
        };
        Self { code, detail }
    }
}

/// What an answer cost. A count that the backend did not report is null.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = JudgeUsage)]
pub struct UsageBody {
    /// Calls sent to the backend, retries and repairs included.
    pub judge_calls: u64,
    /// Tokens of the prompts, cached ones included.
    #[schema(required = true)]
    pub input_tokens: Option<u64>,
    /// The part of `input_tokens` that the backend had cached.
    #[schema(required = true)]
    pub cached_input_tokens: Option<u64>,
    /// Tokens of the replies, reasoning included.
    #[schema(required = true)]
    pub output_tokens: Option<u64>,
    /// The part of `output_tokens` that was reasoning.
    #[schema(required = true)]
    pub reasoning_tokens: Option<u64>,
}

impl From<Usage> for UsageBody {
    fn from(usage: Usage) -> Self {
        let Usage { judge_calls, input_tokens, cached_input_tokens, output_tokens, reasoning_tokens } = usage;
        Self { judge_calls, input_tokens, cached_input_tokens, output_tokens, reasoning_tokens }
    }
}
