//! Claims that a context, or a segment of one, says letter by letter.
//!
//! Knows neither words nor scores. Emoji have no units, and a sentence's length may cut it in the context elsewhere
//! than in the claim: what the search by words refuses is looked up here.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::claim::Sentence;
use super::index::{Index, Segment};
use super::text;
use crate::recall::judge::{Citation, Question};
use crate::recall::{Stop, Stopped};

/// Where a text stands: the context's position in the list as sent, and the bytes of it.
type Place = (usize, Range<usize>);

/// What repeats the claims of one question.
#[derive(Debug)]
pub(super) struct Repeats<'a> {
    question: &'a Question,
    index: &'a Index,
    claims: &'a [(&'a str, Vec<Sentence>)],
    /// By the claims' essences. Filled for all of them at once, when the first is asked for: one pass over the contexts
    /// for each refused claim would cost claims times segments.
    found: Option<HashMap<String, Option<Place>>>,
}

impl<'a> Repeats<'a> {
    /// Reads nothing yet.
    pub(super) fn new(question: &'a Question, index: &'a Index, claims: &'a [(&'a str, Vec<Sentence>)]) -> Self {
        Self { question, index, claims, found: None }
    }

    /// The first context, else the first segment of one, that says `claim`, one of the question's, and nothing else.
    /// A claim without any word may stand anywhere in a context.
    pub(super) fn of(&mut self, claim: &str, stop: &Stop) -> Result<Option<Citation>, Stopped> {
        let found = match self.found.take() {
            Some(found) => found,
            None => self.read(stop)?,
        };
        let place = self.found.insert(found).get(&essence(claim)).cloned().flatten();
        Ok(place.and_then(|(context, range)| {
            let quote = self.question.contexts.get(context)?.get(range)?.trim().to_owned();
            Some(Citation { context: Some(context), quote })
        }))
    }

    fn read(&self, stop: &Stop) -> Result<HashMap<String, Option<Place>>, Stopped> {
        let mut found: HashMap<String, Option<Place>> = HashMap::new();
        let mut anywhere: Vec<String> = Vec::new();
        for (claim, sentences) in self.claims {
            let essence = essence(claim);
            // A claim of negators alone, such as `No.`, would be found inside `know.`
            let wordless = sentences.is_empty() && !essence.is_empty() && !essence.chars().any(char::is_alphanumeric);
            if found.insert(essence.clone(), None).is_none() && wordless {
                anywhere.push(essence);
            }
        }
        let lengths: HashSet<usize> = found.keys().map(String::len).collect();
        let mut essence = String::new();
        for (context, text) in self.question.passages() {
            stop.check()?;
            if anywhere.is_empty() && !may_repeat(text, &lengths) {
                continue;
            }
            essence.clear();
            text::essence(text, &mut essence);
            let place = || (context, 0..text.len());
            offer(&mut found, &essence, place());
            // One by one, but only those that no context held so far.
            anywhere.retain(|claim| {
                let here = essence.contains(claim.as_str());
                if here {
                    offer(&mut found, claim, place());
                }
                !here
            });
        }
        for (number, Segment { context, range, .. }) in self.index.segments.iter().enumerate() {
            if number % 1024 == 0 {
                stop.check()?;
            }
            let text =
                self.question.contexts.get(*context).and_then(|text| text.get(range.clone())).unwrap_or_default();
            if !may_repeat(text, &lengths) {
                continue;
            }
            essence.clear();
            text::essence(text, &mut essence);
            offer(&mut found, &essence, (*context, range.clone()));
        }
        Ok(found)
    }
}

/// Can the essence of `text` have one of these lengths? Most have not, and of ASCII it can be told by counting.
fn may_repeat(text: &str, lengths: &HashSet<usize>) -> bool {
    !text.is_ascii() || lengths.contains(&text.chars().filter(|c| !c.is_whitespace()).count())
}

fn essence(text: &str) -> String {
    let mut essence = String::new();
    text::essence(text, &mut essence);
    essence
}

/// Notes `place` for the claim of this essence, if there is one and it has no place yet.
fn offer(found: &mut HashMap<String, Option<Place>>, essence: &str, place: Place) {
    if let Some(none @ None) = found.get_mut(essence) {
        *none = Some(place);
    }
}
