//! The sheet of verdicts: which claims can be attributed to some contexts.

use std::collections::BTreeMap;

use super::prompt::{self, Passage};
use super::reply::{self, Reading, Unreadable};
use super::round::Sheet;
use crate::providers::AnswerSchema;
use crate::recall::judge::{Question, Verdict};

/// Some of a question's claims, to be judged by some of its contexts.
pub(super) struct Attribution<'a> {
    question: &'a Question,
    passages: &'a [Passage<'a>],
    verdicts: BTreeMap<usize, Option<Verdict>>,
}

/// Room for an answer: what it takes around the verdicts, and some 190 words of evidence and reason for each. A model
/// that thinks aloud needs more and gets it on the second try.
const TOKENS_AROUND: u32 = 512;
const TOKENS_PER_CLAIM: u32 = 256;

impl<'a> Attribution<'a> {
    /// Asks for a verdict on each of `claims` (numbers, from 1) by `passages` alone.
    pub(super) fn of(question: &'a Question, passages: &'a [Passage<'a>], claims: &[usize]) -> Self {
        Self { question, passages, verdicts: claims.iter().map(|number| (*number, None)).collect() }
    }

    /// The verdicts given, by claim number, ascending.
    pub(super) fn into_verdicts(self) -> impl Iterator<Item = (usize, Verdict)> {
        self.verdicts.into_iter().filter_map(|(number, verdict)| Some((number, verdict?)))
    }

    /// Tokens that an answer on so many claims needs.
    pub(super) fn room_for(claims: usize) -> u32 {
        let claims = u32::try_from(claims).unwrap_or(u32::MAX);
        TOKENS_PER_CLAIM.saturating_mul(claims).saturating_add(TOKENS_AROUND)
    }
}

impl Sheet for Attribution<'_> {
    type Entry = Verdict;

    const WANTED: &'static str = "verdict on";
    const ITEM: &'static str = "claim";
    const ITEMS: &'static str = "claims";
    const SYSTEM: &'static str = prompt::SYSTEM;
    const ANSWER: AnswerSchema = prompt::ANSWER;

    fn open(&self) -> Vec<usize> {
        self.verdicts.iter().filter(|(_, verdict)| verdict.is_none()).map(|(number, _)| *number).collect()
    }

    fn room(&self) -> u32 {
        Self::room_for(self.verdicts.len())
    }

    fn data(&self, asked: &[usize], note: Option<&str>) -> String {
        prompt::data(self.question, self.passages, asked, note)
    }

    fn read(&self, text: &str, asked: &[usize]) -> Result<Reading<Verdict>, Unreadable> {
        reply::read(text, asked)
    }

    fn take(&mut self, reading: Reading<Verdict>) -> Vec<(usize, String)> {
        for (number, verdict) in reading.entries {
            if let Some(place) = self.verdicts.get_mut(&number) {
                *place = Some(verdict);
            }
        }
        reading.open
    }
}
