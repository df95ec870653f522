//! What holds for every sample.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::Service;

/// Scores a sample on a route; every answer is a 200 with a score that is `recalled / total` of its own list.
fn score(path: &str, sample: &Value) -> f64 {
    let answer = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(async { Service::embedded().post(path, sample).await.ok() });
    let verdicts = answer["verdicts"].as_array().unwrap();
    let is_recalled = |verdict: &&Value| verdict["recalled"] == true || verdict["attributed"] == true;
    let recalled = verdicts.iter().filter(is_recalled).count();
    assert_eq!((&answer["recalled"], &answer["total"]), (&json!(recalled), &json!(verdicts.len())), "{answer:#}");
    let score = answer["score"].as_f64().unwrap();
    assert_eq!(score.to_bits(), (recalled as f64 / verdicts.len() as f64).to_bits());
    assert!((0.0..=1.0).contains(&score));
    score
}

/// Text of the kind that breaks things: several scripts, stops, quotes, marks, white space.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-z]{1,8}",
        "[0-9]{1,4}",
        Just("not".to_owned()),
        Just("Paris".to_owned()),
        Just("東京".to_owned()),
        Just("서울".to_owned()),
        Just("é\u{301}".to_owned()),
        Just("🗼".to_owned()),
        Just("\u{200f}".to_owned()),
        "[.!?。,;:\"'(){}\\[\\]<>`|\\\\\n\t-]",
        any::<char>().prop_map(String::from),
    ];
    proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.join(" "))
}

fn texts(least: usize) -> impl Strategy<Value = Vec<String>> {
    proptest::collection::vec(text(), least..5)
}

fn ids(least: usize) -> impl Strategy<Value = Vec<Value>> {
    let id = prop_oneof![
        any::<i64>().prop_map(Value::from),
        (0..6).prop_map(Value::from),
        (0..6).prop_map(|n: i32| json!(n.to_string())),
        text().prop_map(Value::from)
    ];
    proptest::collection::vec(id, least..8)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn one_more_context_never_lowers_the_recall_of_claims(reference in text(), contexts in texts(0), more in text(), at in 0..5usize) {
        prop_assume!(!reference.trim().is_empty());
        let sample = |contexts: &[String]| json!({ "user_input": "?", "reference": reference, "retrieved_contexts": contexts });
        let before = score("/recall/llm", &sample(&contexts));
        let mut longer = contexts.clone();
        longer.insert(at.min(contexts.len()), more);
        let after = score("/recall/llm", &sample(&longer));
        prop_assert!(after >= before, "{before} became {after}");
    }

    #[test]
    fn a_claim_among_the_contexts_is_recalled(reference in text(), contexts in texts(0)) {
        prop_assume!(!reference.trim().is_empty());
        let mut contexts = contexts;
        contexts.push(reference.clone());
        let sample = json!({ "user_input": "?", "reference_claims": [reference], "retrieved_contexts": contexts });
        prop_assert_eq!(score("/recall/llm", &sample), 1.0);
    }

    #[test]
    fn one_more_context_never_lowers_the_recall_of_contexts(reference in texts(1), contexts in texts(0), more in text(), threshold in 0.0..1.0f64) {
        for measure in ["levenshtein", "hamming", "jaro", "jaro_winkler"] {
            let sample = |contexts: &[String]| json!({
                "retrieved_contexts": contexts, "reference_contexts": reference, "threshold": threshold, "distance_measure": measure
            });
            let before = score("/recall/nonllm", &sample(&contexts));
            let mut longer = contexts.clone();
            longer.push(more.clone());
            prop_assert!(score("/recall/nonllm", &sample(&longer)) >= before);
        }
    }

    #[test]
    fn neither_order_nor_repeats_of_ids_matter(retrieved in ids(0), reference in ids(1), turn in 0..8usize) {
        let sample = |retrieved: &[Value], reference: &[Value]| json!({ "retrieved_context_ids": retrieved, "reference_context_ids": reference });
        let once = score("/recall/id", &sample(&retrieved, &reference));
        let mut turned = [retrieved.clone(), retrieved.clone()].concat();
        let turn = turn.min(turned.len());
        turned.rotate_left(turn);
        let mut reversed = [reference.clone(), reference.clone()].concat();
        reversed.reverse();
        prop_assert_eq!(score("/recall/id", &sample(&turned, &reversed)), once);
    }

    #[test]
    fn no_body_whatever_makes_the_service_fail(
        path in 0..3usize, at in any::<proptest::sample::Index>(), piece in "[\\x00-\\x7f]{0,3}|[\\[\\]{}\",:0-9eE.+-]{1,4}", cut in any::<proptest::sample::Index>()
    ) {
        let (path, good) = [
            ("/recall/llm", r#"{"user_input":"q","reference":"Paris. 1889.","retrieved_contexts":["Paris.",""],"k":[1,2],"evidence":"require","id":7}"#),
            ("/recall/nonllm", r#"{"retrieved_contexts":["a","\ud83d\ude00"],"reference_contexts":["b"],"threshold":0.25,"distance_measure":"jaro"}"#),
            ("/recall/id", r#"{"retrieved_context_ids":[1,"2",-0],"reference_context_ids":["1",99999999999999999999],"k":[1]}"#),
        ][path];
        let mut body = good.as_bytes().to_vec();
        let (at, cut) = (at.index(body.len()), cut.index(4));
        body.splice(at..(at + cut).min(body.len()), piece.bytes());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let answer = runtime.block_on(async { Service::embedded().post_text(path, body).await });
        prop_assert!(matches!(answer.status.as_u16(), 200 | 400 | 422), "{}", answer.text());
    }
}
