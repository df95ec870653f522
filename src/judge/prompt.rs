//! The question put to a model.
//!
//! The system part never changes from call to call, so providers can cache it. The data is one JSON object: JSON is the
//! fence, and nothing inside a context can end it. Any change of wording or shape is a new [`VERSION`].

use std::fmt::Write as _;

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::providers::AnswerSchema;
use crate::recall::judge::Question;

/// Name and version of the prompt, as it stands in every receipt.
pub const VERSION: &str = "attribution/1";

/// The fixed system part. Measured on human-labelled claims before it was chosen; a stricter wording looked safer and
/// refused too many claims that people call supported.
pub const SYSTEM: &str = include_str!("attribution-1.txt").trim_ascii_end();

/// The shape of the answer, in the subset of JSON Schema that every backend with strict output takes: no counts, no
/// patterns, every property required. Reason and evidence stand before the verdict, so that a weak model thinks first.
pub const ANSWER: AnswerSchema = AnswerSchema {
    name: "attribution",
    json: r#"{"type":"object","additionalProperties":false,"required":["verdicts"],"properties":{"verdicts":{"type":"array","items":{"type":"object","additionalProperties":false,"required":["n","evidence","reason","attributed"],"properties":{"n":{"type":"integer"},"evidence":{"type":"array","items":{"type":"object","additionalProperties":false,"required":["context","quote"],"properties":{"context":{"type":"integer"},"quote":{"type":"string"}}}},"reason":{"type":"string"},"attributed":{"type":"boolean"}}}}}}"#,
};

/// SHA-256 of a prompt's fixed part in lower-case hex, as it stands in every receipt.
#[must_use]
pub fn sha256(system: &str) -> String {
    Sha256::digest(system).iter().fold(String::new(), |mut hex, byte| {
        // Writing to a String cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// A context that holds text, with its position in the list as sent, counted from 0.
pub type Passage<'a> = (usize, &'a str);

/// The data part: the question, `passages`, and the claims whose numbers are in `asked`.
///
/// Numbers count from 1 and are those of the whole sample, so they stay true when only some claims are asked again.
/// `note` tells what was wrong with the answer before; it comes last, so that the part that providers cache reaches as
/// far as it can.
#[must_use]
pub fn data(question: &Question, passages: &[Passage<'_>], asked: &[usize], note: Option<&str>) -> String {
    let data = Data {
        question: &question.user_input,
        contexts: passages.iter().map(|&(position, text)| Numbered { n: position + 1, text }).collect(),
        claims: (1..)
            .zip(question.claims.iter())
            .filter(|(n, _)| asked.binary_search(n).is_ok())
            .map(|(n, text)| Numbered { n, text })
            .collect(),
        note,
    };
    // Strings and numbers alone always serialise; an empty question would be answered with an error, not a number.
    serde_json::to_string(&data).unwrap_or_default()
}

/// A passage as it stands in [`data`].
#[must_use]
pub fn passage(&(position, text): &Passage<'_>) -> String {
    serde_json::to_string(&Numbered { n: position + 1, text }).unwrap_or_default()
}

#[derive(Serialize)]
struct Data<'a> {
    question: &'a str,
    contexts: Vec<Numbered<'a>>,
    claims: Vec<Numbered<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'a str>,
}

/// A text under its number.
#[derive(Serialize)]
pub(super) struct Numbered<'a> {
    pub(super) n: usize,
    pub(super) text: &'a str,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recall::Units;

    fn question() -> Question {
        Question {
            user_input: "Where?".to_owned(),
            contexts: vec!["東京 {x} \"</context>\"".to_owned(), "  ".to_owned(), "B".to_owned()],
            claims: Units::new(vec!["one".to_owned(), "two".to_owned()]).unwrap(),
        }
    }

    fn whole(question: &Question, asked: &[usize], note: Option<&str>) -> String {
        data(question, &question.passages().collect::<Vec<_>>(), asked, note)
    }

    #[test]
    fn the_data_is_json_with_real_characters_and_true_numbers() {
        insta::assert_snapshot!(
            whole(&question(), &[1, 2], None),
            @r#"{"question":"Where?","contexts":[{"n":1,"text":"東京 {x} \"</context>\""},{"n":3,"text":"B"}],"claims":[{"n":1,"text":"one"},{"n":2,"text":"two"}]}"#
        );
    }

    #[test]
    fn a_repair_asks_for_the_open_claims_alone_and_says_why() {
        insta::assert_snapshot!(
            whole(&question(), &[2], Some("no entry for claim 2")),
            @r#"{"question":"Where?","contexts":[{"n":1,"text":"東京 {x} \"</context>\""},{"n":3,"text":"B"}],"claims":[{"n":2,"text":"two"}],"note":"no entry for claim 2"}"#
        );
    }

    #[test]
    fn an_echo_of_the_prompt_is_no_answer() {
        for asked in [&[1][..], &[1, 2]] {
            let data = whole(&question(), asked, None);
            for echo in [SYSTEM.to_owned(), data.clone(), format!("{SYSTEM}\n{data}"), format!("{data}\n{SYSTEM}")] {
                let read = crate::judge::reply::read(&echo, asked).map(|reading| reading.entries);
                assert!(read.as_ref().is_ok_and(Vec::is_empty) || read.is_err(), "{read:?} from {echo}");
            }
        }
    }

    #[test]
    fn wording_and_shape_are_those_of_this_version() {
        // A change here changes verdicts: give it a new VERSION and measure it.
        assert_eq!(VERSION, "attribution/1");
        insta::assert_snapshot!(sha256(SYSTEM), @"4751002114f29e6d14a26624c6824d75511784f729899017d7656f05a5efbe0e");
        let schema: serde_json::Value = serde_json::from_str(ANSWER.json).unwrap();
        assert_eq!(schema["required"][0], "verdicts");
    }
}
