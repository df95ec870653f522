//! Brings the answers of one reply together, number by number.
//!
//! What an entry says is read next door; here every number that was asked for gets one entry or a complaint.

use std::collections::BTreeMap;

use super::find::{Answer, Form, field, object};
use super::json::Value;
use super::{Reading, Unreadable};

/// How the entries of one kind of answer are read.
pub(super) struct Kind<T: 'static> {
    /// What the answer looks like.
    pub(super) form: &'static Form,
    /// What the numbers count.
    pub(super) item: &'static str,
    /// Reads an entry, or says what is wrong with it.
    pub(super) read: Read<T>,
    /// Do two entries on one number say the same?
    pub(super) is_same: fn(&T, &T) -> bool,
}

/// Makes an entry of the fields of an object.
type Read<T> = fn(&[(String, Value<'_>)]) -> Outcome<T>;

/// An entry, or what is wrong with it.
type Outcome<T> = Result<T, String>;

impl<T> Kind<T> {
    pub(super) fn tally(&self, answers: &[Answer<'_>], asked: &[usize]) -> Result<Reading<T>, Unreadable> {
        let mut places: BTreeMap<usize, Option<Outcome<T>>> = asked.iter().map(|number| (*number, None)).collect();
        for answer in answers {
            for (number, outcome) in self.one_answer(answer, &places) {
                let Some(place) = places.get_mut(&number) else {
                    continue;
                };
                match (place.as_ref(), &outcome) {
                    (Some(Ok(first)), Ok(second)) if !(self.is_same)(first, second) => {
                        return Err(Unreadable::Invalid(format!(
                            "two answers disagree on {} {number}; give one answer only",
                            self.item
                        )));
                    }
                    (None, _) | (Some(Ok(_)), Err(_)) => *place = Some(outcome),
                    (Some(_), _) => {}
                }
            }
        }
        let mut reading = Reading { entries: Vec::new(), open: Vec::new() };
        for (number, place) in places {
            match place {
                Some(Ok(entry)) => reading.entries.push((number, entry)),
                Some(Err(words)) => reading.open.push((number, words)),
                None => reading.open.push((number, "no entry".to_owned())),
            }
        }
        let counts_from_zero = answers
            .iter()
            .flatten()
            .filter_map(object)
            .any(|fields| field(fields, "n").and_then(whole_number) == Some(0));
        if counts_from_zero && !reading.open.is_empty() {
            // Shifted by one, every entry would be somebody else's.
            return Err(Unreadable::Invalid(format!("{}s are numbered from 1, and the answer has a 0", self.item)));
        }
        Ok(reading)
    }

    /// The outcome for each number that one answer names, among those in `asked`.
    fn one_answer(
        &self,
        answer: &Answer<'_>,
        asked: &BTreeMap<usize, Option<Outcome<T>>>,
    ) -> BTreeMap<usize, Outcome<T>> {
        let mut outcomes: BTreeMap<usize, Outcome<T>> = BTreeMap::new();
        for fields in answer.iter().filter_map(object) {
            let number = field(fields, "n").and_then(whole_number);
            if fields.iter().filter_map(|(_, inner)| object(inner)).any(|inner| self.form.is_entry(inner)) {
                // Second thoughts inside an entry: which of the two counts is open.
                if let Some(number) = number.filter(|number| asked.contains_key(number)) {
                    outcomes.insert(number, Err("an entry inside its entry".to_owned()));
                }
                continue;
            }
            let Some(number) = number.filter(|number| asked.contains_key(number)) else {
                continue;
            };
            let outcome = (self.read)(fields);
            match (outcomes.get_mut(&number), outcome) {
                (None, outcome) => {
                    outcomes.insert(number, outcome);
                }
                (Some(place @ Ok(_)), Err(words)) => *place = Err(words),
                (Some(place), Ok(second)) => {
                    if place.as_ref().is_ok_and(|first| !(self.is_same)(first, &second)) {
                        *place = Err("two entries that differ".to_owned());
                    }
                }
                (Some(Err(_)), Err(_)) => {}
            }
        }
        outcomes
    }
}

/// A decimal number; unlike `f64`'s own reading without names such as `inf`.
pub(super) fn number(written: &str) -> Option<f64> {
    written
        .bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'-' | b'+' | b'e' | b'E'))
        .then(|| written.parse().ok())
        .flatten()
}

/// A whole number of at least 0, written as a number (`1`, `1.0`) or as text that is one.
pub(super) fn whole_number(value: &Value<'_>) -> Option<usize> {
    let number = match value {
        Value::Number(written) => number(written)?,
        Value::Text(text) => number(text.trim())?,
        _ => return None,
    };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be whole and within u32")]
    let whole = (number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&number)).then_some(number as usize);
    whole
}
