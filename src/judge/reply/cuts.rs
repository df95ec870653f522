//! Reads the claims that sentences were cut into from the entries of answers.

use super::find::{Form, field, has_key_twice, is_dots, object};
use super::json::Value;
use super::tally::Kind;

/// Most claims of one sentence. More is a model that runs on, or a sentence that no cut makes easier.
pub(super) const MOST_CLAIMS: usize = 20;

/// Answers of cuts.
pub(super) const CUTS: Kind<Vec<String>> = Kind {
    form: &Form { list: "cuts", entry: ["n", "claims"], keys: &["cuts", "n", "claims"], is_question, is_example },
    item: "sentence",
    read: entry,
    is_same: |first, second| first == second,
};

/// A list of sentences, unless it was filled with claims: some models answer under the question's own key.
fn is_question(value: &Value<'_>) -> bool {
    let Some(Value::List(items)) = object(value).and_then(|fields| field(fields, "sentences")) else {
        return false;
    };
    !items.iter().filter_map(object).any(|fields| CUTS.form.is_entry(fields))
}

fn is_example(entry: &Value<'_>) -> bool {
    match object(entry).and_then(|fields| field(fields, "claims")) {
        Some(Value::List(claims)) => !claims.is_empty() && claims.iter().all(is_dots),
        Some(single) => is_dots(single),
        None => false,
    }
}

fn entry(fields: &[(String, Value<'_>)]) -> Result<Vec<String>, String> {
    if has_key_twice(fields) {
        return Err("a key stands twice in its entry".to_owned());
    }
    let mut claims: Vec<String> = Vec::new();
    let listed = match field(fields, "claims") {
        Some(Value::List(items)) => items.as_slice(),
        Some(single) => std::slice::from_ref(single),
        None => return Err("claims is missing".to_owned()),
    };
    for item in listed {
        let text = text(item).ok_or("claims must hold texts alone")?.trim();
        // Said twice is said once.
        if !text.is_empty() && !claims.iter().any(|claim| claim == text) {
            claims.push(text.to_owned());
        }
        if claims.len() > MOST_CLAIMS {
            return Err(format!("more than {MOST_CLAIMS} claims"));
        }
    }
    if claims.is_empty() { Err("no claims".to_owned()) } else { Ok(claims) }
}

/// A claim, also as an object with one text in it.
fn text<'v>(value: &'v Value<'_>) -> Option<&'v str> {
    match value {
        Value::Text(text) => Some(text),
        Value::Object(fields) => {
            let mut texts = fields.iter().filter_map(|(_, value)| match value {
                Value::Text(text) => Some(text.as_str()),
                _ => None,
            });
            texts.next().filter(|_| texts.next().is_none())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Reading, Unreadable, read_cuts};

    fn short(text: &str) -> String {
        match read_cuts(text, &[1, 2]) {
            Ok(Reading { entries, open }) => {
                let read = entries.iter().map(|(n, claims)| format!("{n}:{}", claims.join("|")));
                let open = open.iter().map(|(n, wrong)| format!("{n}?{wrong}"));
                read.chain(open).collect::<Vec<_>>().join(" ")
            }
            Err(Unreadable::Truncated) => "truncated".to_owned(),
            Err(Unreadable::Empty) => "empty".to_owned(),
            Err(Unreadable::Invalid(_)) => "invalid".to_owned(),
        }
    }

    #[test]
    fn what_is_tolerated_and_what_is_not() {
        for (text, outcome) in [
            (r#"{"cuts":[{"n":1,"claims":["a","b"]},{"n":2,"claims":["c"]}]}"#, "1:a|b 2:c"),
            (r#"[{"n":"1","claims":["a"]},{"N":2.0,"Claims":"c",}]"#, "1:a 2:c"),
            (r#"{"n":1,"claims":["a"]} {"n":2,"claims":[{"text":"c"}]}"#, "1:a 2:c"),
            (
                "<think>{\"cuts\":[]}</think>Here:\n```json\n{\"cuts\":[{\"n\":1,\"claims\":[\" a \",\"a\",\"\"]}]}\n```",
                "1:a 2?no entry",
            ),
            (
                r#"{"cuts":[{"n":1,"claims":["a"]},{"n":1,"claims":["b"]},{"n":2,"claims":[]}]}"#,
                "1?two entries that differ 2?no claims",
            ),
            (
                r#"{"cuts":[{"n":1,"claims":["a"],"claims":["b"]},{"n":7,"claims":["x"]}]}"#,
                "1?a key stands twice in its entry 2?no entry",
            ),
            (
                r#"{"cuts":[{"n":1,"claims":[1]},{"n":2,"claims":[{"a":"x","b":"y"}]}]}"#,
                "1?claims must hold texts alone 2?claims must hold texts alone",
            ),
            (r#"{"cuts":[{"n":1,"claims":["a"]}]} {"cuts":[{"n":1,"claims":["b"]}]}"#, "invalid"),
            (r#"{"cuts":[{"n":1,"claims":["a"]},{"n":2,"cla"#, "truncated"),
            (r#"{"sentences":[{"n":1,"text":"a"}]}"#, "invalid"),
            (r#"{"cuts":[{"n":1,"claims":["..."]}]}"#, "invalid"),
            ("a, b and c", "invalid"),
            (" \n", "empty"),
        ] {
            assert_eq!(short(text), outcome, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_gives_every_sentence_once(text in r#"(\{|\}|\[|\]|"n"|"claims"|"cuts"|:|,|"[a.]*"|[0-3]| |[^x])*"#) {
            if let Ok(Reading { entries, open }) = read_cuts(&text, &[1, 2, 3]) {
                let mut numbers: Vec<usize> = entries.iter().map(|(n, _)| *n).chain(open.iter().map(|(n, _)| *n)).collect();
                numbers.sort_unstable();
                prop_assert_eq!(numbers, [1, 2, 3]);
                prop_assert!(entries.iter().all(|(_, claims)| (1..=super::MOST_CLAIMS).contains(&claims.len())));
            }
        }
    }
}
