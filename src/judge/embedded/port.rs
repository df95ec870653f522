//! The embedded rules behind the [`Judge`] port: off the async threads, stoppable, at no cost.

use std::sync::Arc;
use std::time::Instant;

use futures_util::future::BoxFuture;

use crate::compute::{Compute, Uncomputed};
use crate::deadline::Deadline;
use crate::recall::Stopped;
use crate::recall::judge::{Ballot, Judge, JudgeError, JudgeFault, JudgeInfo, Judgement, Question, Usage, Votes};
use crate::recall::memory::Settings;

/// The judge that needs no model, no network and no key.
#[derive(Debug)]
pub struct EmbeddedJudge {
    info: JudgeInfo,
    compute: Compute,
}

impl EmbeddedJudge {
    /// A judge that works in `compute`.
    #[must_use]
    pub fn new(compute: Compute) -> Self {
        let info = JudgeInfo {
            provider: "embedded",
            model: super::VERSION.to_owned(),
            prompt: None,
            prompt_sha256: None,
            seed: None,
        };
        Self { info, compute }
    }
}

impl Judge for EmbeddedJudge {
    fn info(&self) -> &JudgeInfo {
        &self.info
    }

    fn settings(&self) -> Option<&Settings> {
        None
    }

    fn look_up(&self, _: Instant) -> BoxFuture<'_, Result<(), JudgeError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// One vote speaks for all: asked again, these rules say the same again.
    fn judge(
        &self,
        question: Arc<Question>,
        _: Votes,
        deadline: Deadline,
    ) -> BoxFuture<'_, Result<Judgement, JudgeError>> {
        Box::pin(async move {
            let mut ballot = Ballot::of(&question);
            let decided = self.compute.run(deadline.at(), move |stop| super::decide(&question, stop)).await;
            for (verdict, number) in decided.map_err(not_run)?.map_err(stopped)?.into_iter().zip(1..) {
                ballot.cast(number, verdict);
            }
            Ok(Judgement {
                verdicts: ballot.close().map_err(|ballot| incomplete(&ballot))?,
                model_reported: None,
                windows: 1,
                usage: Usage::NOTHING,
                warnings: Vec::new(),
            })
        })
    }
}

fn not_run(reason: Uncomputed) -> JudgeError {
    match reason {
        Uncomputed::Full(full) => {
            JudgeError { retry_after: Some(full.retry_after), ..JudgeError::new(JudgeFault::Overloaded, full.detail) }
        }
        Uncomputed::Deadline => JudgeError::new(
            JudgeFault::DeadlineExceeded,
            "the embedded judge was not done before the request's deadline",
        ),
    }
}

fn stopped(_: Stopped) -> JudgeError {
    JudgeError::new(JudgeFault::DeadlineExceeded, "the embedded judge was stopped")
}

fn incomplete(ballot: &Ballot) -> JudgeError {
    JudgeError::internal(format!("the embedded judge left {} claims open", ballot.open().len()))
}
