//! Cutting the sentences of a reference into atomic claims, by a model that sees nothing else.
//!
//! The service cuts the sentences and numbers them, the model cuts each further, and code holds what it gives against
//! the sentence (see `held`): a judge that could add claims, or drop some, would choose its own denominator. A sentence
//! that the model gives no entry for is asked again, and then the sample fails. A sentence whose claims say more or less
//! than it does is asked again, and then stays whole: an uncut sentence is a true claim, only a coarse one.

mod held;

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde::Serialize;

use self::held::Text;
use super::chat::Asking;
use super::prompt::{Numbered, sha256};
use super::reply::{self, Reading, Unreadable};
use super::round::{Filled, Manner, Sheet, fill};
use super::session::{Desk, Session};
use crate::deadline::Deadline;
use crate::providers::estimate::Estimate;
use crate::providers::{AnswerSchema, ChatModel};
use crate::recall::Units;
use crate::recall::judge::{Cut, JudgeError, JudgeFault, Splitter, SplitterInfo, Usage};
use crate::recall::memory::Settings;
use crate::slots::Slots;

/// Name and version of the prompt and of the rules that its answer is held to, as it stands in every receipt. A change in
/// how the embedded judge reads words, which those rules rest on, is a change of these too.
pub const VERSION: &str = "atomic/1";

/// The fixed part of the question.
pub const SYSTEM: &str = include_str!("atomic-1.txt").trim_ascii_end();

/// The shape of the answer, in the subset of JSON Schema that every backend with strict output takes.
pub const ANSWER: AnswerSchema = AnswerSchema {
    name: "atomic_claims",
    json: r#"{"type":"object","additionalProperties":false,"required":["cuts"],"properties":{"cuts":{"type":"array","items":{"type":"object","additionalProperties":false,"required":["n","claims"],"properties":{"n":{"type":"integer"},"claims":{"type":"array","items":{"type":"string"}}}}}}}"#,
};

/// Cuts references by asking a [`ChatModel`].
pub struct AtomicSplitter {
    info: SplitterInfo,
    settings: Settings,
    desk: Desk,
    asking: Asking,
}

impl AtomicSplitter {
    /// A splitter that asks `model`, every call from a place in `slots`.
    #[must_use]
    pub fn new(model: Arc<dyn ChatModel>, slots: Slots, asking: Asking) -> Self {
        let info = SplitterInfo { name: VERSION, sha256: Some(sha256(SYSTEM)) };
        let settings = asking.settings(model.as_ref());
        Self { info, settings, desk: Desk { model, slots }, asking }
    }

    async fn cut(&self, sentences: &Units<String>, deadline: Deadline) -> Result<Cut, JudgeError> {
        let sheet = Sentences::of(sentences.as_slice());
        let manner = self.manner(&sheet)?;
        let session = self.desk.session(deadline).await?;
        let claims = cut(sheet, &session, manner).await;
        let usage = session.spent();
        claims.map(|cut| Cut { usage, ..cut }).map_err(|error| error.having_spent(usage))
    }

    /// The manner of asking, with no more room for the answer than a window that was set leaves.
    fn manner(&self, sheet: &Sentences<'_>) -> Result<Manner, JudgeError> {
        let manner = self.asking.manner();
        let Some(window) = self.asking.window else { return Ok(manner) };
        let prompt = Estimate::of(SYSTEM) + Estimate::of(&sheet.data(&sheet.open(), None));
        let answer = sheet.room().min(manner.ceiling).min(window / 2);
        let left = window.saturating_sub(prompt.most);
        if left < answer {
            let detail = format!(
                "The reference takes up to {} tokens by estimate, and its claims {answer}: more than the judge's window of {window}, and a reference is not cut into windows.",
                prompt.most
            );
            return Err(JudgeError::new(JudgeFault::ContextLengthExceeded, detail));
        }
        Ok(Manner { ceiling: manner.ceiling.min(left), ..manner })
    }
}

async fn cut(sheet: Sentences<'_>, session: &Session<'_>, manner: Manner) -> Result<Cut, JudgeError> {
    let Filled { sheet, warnings, .. } = fill(sheet, session, manner).await?;
    let claims = sheet.cuts.into_iter().flatten().flatten().collect();
    let none = || JudgeError::new(JudgeFault::Internal, "a reference was cut into nothing");
    Ok(Cut { claims: Units::new(claims).ok_or_else(none)?, usage: Usage::NOTHING, warnings })
}

impl Splitter for AtomicSplitter {
    fn info(&self) -> &SplitterInfo {
        &self.info
    }

    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn split(&self, sentences: Arc<Units<String>>, deadline: Deadline) -> BoxFuture<'_, Result<Cut, JudgeError>> {
        Box::pin(async move { self.cut(&sentences, deadline).await })
    }
}

/// The sheet of sentences to be cut.
struct Sentences<'a> {
    sentences: &'a [String],
    cuts: Vec<Option<Vec<String>>>,
    /// Numbers of the sentences that the model cut, but not as they are.
    refused: BTreeSet<usize>,
    /// What claims are held against; read when the first answer is there, since a reference that is too long gets none.
    text: Option<Text>,
}

/// Room for an answer: what it takes around the claims, and each sentence twice, since claims repeat their subject.
const TOKENS_AROUND: u32 = 512;
const TOKENS_PER_SENTENCE: u32 = 64;

impl<'a> Sentences<'a> {
    fn of(sentences: &'a [String]) -> Self {
        Self { sentences, cuts: vec![None; sentences.len()], refused: BTreeSet::new(), text: None }
    }
}

impl Sheet for Sentences<'_> {
    type Entry = Vec<String>;

    const WANTED: &'static str = "cut of";
    const ITEM: &'static str = "sentence";
    const ITEMS: &'static str = "sentences";
    const SYSTEM: &'static str = SYSTEM;
    const ANSWER: AnswerSchema = ANSWER;

    fn open(&self) -> Vec<usize> {
        (1..).zip(&self.cuts).filter(|(_, cut)| cut.is_none()).map(|(number, _)| number).collect()
    }

    fn room(&self) -> u32 {
        let each =
            |sentence: &String| Estimate::of(sentence).most.saturating_mul(2).saturating_add(TOKENS_PER_SENTENCE);
        self.sentences.iter().map(each).fold(TOKENS_AROUND, u32::saturating_add)
    }

    /// All sentences go along whatever is asked, since one may name what another calls "it".
    fn data(&self, asked: &[usize], note: Option<&str>) -> String {
        let sentences = (1..).zip(self.sentences).map(|(n, text)| Numbered { n, text }).collect();
        let asked = (asked.len() < self.sentences.len()).then_some(asked);
        serde_json::to_string(&Data { sentences, asked, note }).unwrap_or_default()
    }

    fn read(&self, text: &str, asked: &[usize]) -> Result<Reading<Vec<String>>, Unreadable> {
        reply::read_cuts(text, asked)
    }

    fn take(&mut self, reading: Reading<Vec<String>>) -> Vec<(usize, String)> {
        let text = self.text.get_or_insert_with(|| Text::read(self.sentences));
        let mut wrongs = reading.open;
        for (number, claims) in reading.entries {
            let Some(cut) = number.checked_sub(1).and_then(|index| self.cuts.get_mut(index)) else { continue };
            match text.fault(number, &claims) {
                None => *cut = Some(claims),
                Some(fault) => {
                    self.refused.insert(number);
                    wrongs.push((number, fault));
                }
            }
        }
        wrongs.sort_unstable();
        wrongs
    }

    fn make_do(&mut self) {
        for ((number, cut), sentence) in (1..).zip(&mut self.cuts).zip(self.sentences) {
            if cut.is_none() && self.refused.contains(&number) {
                *cut = Some(vec![sentence.clone()]);
            }
        }
    }
}

#[derive(Serialize)]
struct Data<'a> {
    sentences: Vec<Numbered<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    asked: Option<&'a [usize]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'a str>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentences() -> Vec<String> {
        ["The tower is in Paris.", "It opened in 1889 \"{}\"."].map(str::to_owned).to_vec()
    }

    #[test]
    fn the_data_holds_every_sentence_and_nothing_else() {
        let sentences = sentences();
        let sheet = Sentences::of(&sentences);
        insta::assert_snapshot!(
            sheet.data(&[1, 2], None),
            @r#"{"sentences":[{"n":1,"text":"The tower is in Paris."},{"n":2,"text":"It opened in 1889 \"{}\"."}]}"#
        );
        insta::assert_snapshot!(
            sheet.data(&[2], Some("no")),
            @r#"{"sentences":[{"n":1,"text":"The tower is in Paris."},{"n":2,"text":"It opened in 1889 \"{}\"."}],"asked":[2],"note":"no"}"#
        );
    }

    #[test]
    fn an_echo_of_the_prompt_is_no_answer() {
        let sentences = sentences();
        let data = Sentences::of(&sentences).data(&[1, 2], None);
        for echo in [SYSTEM.to_owned(), data.clone(), format!("{SYSTEM}\n{data}"), format!("{data}\n{SYSTEM}")] {
            let read = reply::read_cuts(&echo, &[1, 2]).map(|reading| reading.entries);
            assert!(read.as_ref().is_ok_and(Vec::is_empty) || read.is_err(), "{read:?} from {echo}");
        }
        let mut answer: serde_json::Value = serde_json::from_str(&data).unwrap();
        for sentence in answer["sentences"].as_array_mut().unwrap() {
            sentence["claims"] = serde_json::json!(["a"]);
        }
        assert_eq!(
            reply::read_cuts(&answer.to_string(), &[1, 2]).unwrap().entries.len(),
            2,
            "under the question's key"
        );
    }

    #[test]
    fn wording_and_shape_are_those_of_this_version() {
        // A change here changes claims: give it a new VERSION.
        assert_eq!(VERSION, "atomic/1");
        insta::assert_snapshot!(sha256(SYSTEM), @"49839aba3ef5c02d99aa1134f0272c169179c8c945ca72820f15b614ab47e988");
        let schema: serde_json::Value = serde_json::from_str(ANSWER.json).unwrap();
        assert_eq!(schema["required"][0], "cuts");
    }
}
