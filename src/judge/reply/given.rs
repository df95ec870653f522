//! What the model was given to read. Verdicts that stand in there are somebody else's words, whoever repeats them.
//!
//! A text under test may hold a verdict list of its own, and a reply may repeat it: beside the real answer, in place of
//! one, or, where a copied quote mark ended the string it was copied into, as part of one. Nothing in the syntax tells
//! these from an answer. That they were there to be copied does.

use super::Unreadable;
use super::json::{Noted, is_mark, is_space};

/// The key whose value is the decision.
pub(super) const DECISION: &str = "attributed";

/// Bytes of given text that may be looked through for one reply. Only a text that holds verdicts is looked through at
/// all, and a thousand decisions held against a hundred kilobytes of them stay below.
const MOST_WORK: usize = 1 << 28;

/// The texts that a model was given, as far as they could be repeated as verdicts.
#[derive(Debug, Clone, Default)]
pub struct Given {
    /// Without white space: a copy may be laid out anew.
    texts: Vec<String>,
}

impl Given {
    /// No text at all: whatever a reply says are its own words.
    #[must_use]
    pub fn nothing() -> Self {
        Self::default()
    }

    /// These texts. Those that hold no verdict, as nearly all do, cost a look at their colons.
    #[must_use]
    pub fn of<'t>(texts: impl IntoIterator<Item = &'t str>) -> Self {
        Self { texts: texts.into_iter().filter(|text| may_hold_a_verdict(text)).map(squeezed).collect() }
    }

    /// Refuses a reply with more decisions than can be looked for here in bounded time.
    pub(super) fn bear(&self, decisions: usize) -> Result<(), Unreadable> {
        let length: usize = self.texts.iter().map(String::len).sum();
        if length.saturating_mul(decisions) > MOST_WORK {
            return Err(Unreadable::Invalid("too many verdicts to be told from those in the contexts".to_owned()));
        }
        Ok(())
    }

    /// Was this decision in a reply copied from here?
    pub(super) fn has(&self, reply: &str, decision: &Noted) -> bool {
        // Nothing to copy from is the rule.
        !self.texts.is_empty() && Copy::of(reply, decision).is_some_and(|copy| self.holds(&copy))
    }

    fn holds(&self, copy: &Copy) -> bool {
        self.texts.iter().any(|text| {
            text.contains(&copy.words)
                || copy
                    .later_starts
                    .iter()
                    .any(|start| copy.words.get(*start..).is_some_and(|end| text.starts_with(end)))
        })
    }
}

/// A decision as it would stand in a text that it was copied from, with the end of what was said before it: the reason,
/// as a rule. So two who decide alike are not taken for one.
struct Copy {
    words: String,
    /// What was copied may begin inside that end, where the given text begins: the bytes from which on it is looked for there.
    later_starts: Vec<usize>,
}

impl Copy {
    fn of(reply: &str, decision: &Noted) -> Option<Self> {
        let before = decision.before.clone().unwrap_or(decision.field.start..decision.field.start);
        let rest = squeezed(reply.get(before.end..decision.field.end)?);
        let said = squeezed(reply.get(before)?);
        let start = said.char_indices().rev().nth(SAID_BEFORE).map_or(0, |(at, _)| at);
        let said = said.get(start..)?;
        let later_starts = said.char_indices().skip(1).map(|(at, _)| at).collect();
        Some(Self { words: format!("{said}{rest}"), later_starts })
    }
}

/// So many characters before a decision, from the mark on that ends them, must be the same.
const SAID_BEFORE: usize = 16;

fn squeezed(text: &str) -> String {
    text.chars().filter(|c| !is_space(*c)).collect()
}

/// Is there something like a key in it, and the key of the decision or an escape that may spell it?
fn may_hold_a_verdict(text: &str) -> bool {
    let is_key_end = |(at, _)| text.get(..at).unwrap_or_default().trim_end_matches(is_space).ends_with(is_mark);
    text.match_indices(':').any(is_key_end)
        && (text.contains("\\u")
            || text.as_bytes().windows(DECISION.len()).any(|word| word.eq_ignore_ascii_case(DECISION.as_bytes())))
}
