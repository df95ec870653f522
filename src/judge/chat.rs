//! A judge that asks a language model.
//!
//! From the outside in: `votes` asks as often as wanted, `windows` cuts what is too long for the model, `attribution`
//! is the sheet that one window is asked to fill, `round` asks until it is full, and `session` holds the places to call
//! from and the bill.

use std::sync::Arc;
use std::time::Instant;

use futures_util::future::BoxFuture;

use super::prompt::{self, Passage};
use super::round::{Manner, failed};
use super::session::Desk;
use super::votes;
use super::windows::{Asked, Vote, Window};
use crate::deadline::Deadline;
use crate::providers::ChatModel;
use crate::recall::judge::{Judge, JudgeError, JudgeInfo, Judgement, Question, Votes};
use crate::recall::memory::Settings;
use crate::slots::Slots;

/// How a model is asked.
#[derive(Debug, Clone, Copy)]
pub struct Asking {
    /// Questions put again after an unusable answer.
    pub repairs: u32,
    /// Ceiling of one reply in tokens; `None` for no ceiling but the backend's.
    pub output_ceiling: Option<u32>,
    /// The sampling seed.
    pub seed: i64,
    /// The model's window in tokens, prompt and answer together; `None` for what the backend reports.
    pub window: Option<u32>,
}

impl Asking {
    /// What the answers of `model`, asked so, depend on.
    pub(super) fn settings(self, model: &dyn ChatModel) -> Settings {
        let Self { repairs, output_ceiling, seed, window } = self;
        Settings {
            provider: model.provider(),
            model: model.model().to_owned(),
            address: model.address().to_owned(),
            seed,
            window,
            output_ceiling,
            repairs,
        }
    }

    /// The manner of a single question.
    pub(super) fn manner(self) -> Manner {
        Manner {
            repairs: self.repairs,
            ceiling: self.output_ceiling.unwrap_or(u32::MAX),
            temperature: 0.0,
            seed: self.seed,
        }
    }
}

/// A judge behind a [`ChatModel`].
pub struct ChatJudge {
    info: JudgeInfo,
    settings: Settings,
    desk: Desk,
    asking: Asking,
    window: Window,
}

impl ChatJudge {
    /// A judge that asks `model`, every call from a place in `slots`.
    #[must_use]
    pub fn new(model: Arc<dyn ChatModel>, slots: Slots, asking: Asking) -> Self {
        let info = JudgeInfo {
            provider: model.provider(),
            model: model.model().to_owned(),
            prompt: Some(prompt::VERSION),
            prompt_sha256: Some(prompt::sha256(prompt::SYSTEM)),
            seed: Some(asking.seed),
        };
        let settings = asking.settings(model.as_ref());
        Self { info, settings, desk: Desk { model, slots }, asking, window: Window::new(asking.window) }
    }

    async fn decide(&self, question: &Question, votes: Votes, deadline: Deadline) -> Result<Judgement, JudgeError> {
        let session = self.desk.session(deadline).await?;
        let passages: Vec<Passage<'_>> = question.passages().collect();
        let asked = Asked {
            question,
            passages: &passages,
            session: &session,
            window: &self.window,
            manner: self.asking.manner(),
        };
        let decided = votes::decide(&asked, votes).await;
        let usage = session.spent();
        let Vote { verdicts, model, windows, warnings } = decided.map_err(|error| error.having_spent(usage))?;
        Ok(Judgement { verdicts, model_reported: model, windows, usage, warnings })
    }
}

impl Judge for ChatJudge {
    fn info(&self) -> &JudgeInfo {
        &self.info
    }

    fn settings(&self) -> Option<&Settings> {
        Some(&self.settings)
    }

    fn look_up(&self, deadline: Instant) -> BoxFuture<'_, Result<(), JudgeError>> {
        Box::pin(async move { self.desk.model.look_up(deadline).await.map_err(failed) })
    }

    fn judge(
        &self,
        question: Arc<Question>,
        votes: Votes,
        deadline: Deadline,
    ) -> BoxFuture<'_, Result<Judgement, JudgeError>> {
        Box::pin(async move { self.decide(&question, votes, deadline).await })
    }
}
