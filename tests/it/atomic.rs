//! `split: "atomic"`: what the model is shown, what of its cuts is taken, and what is not.

use serde_json::{Value, json};
use wiremock::ResponseTemplate;

use crate::support::Service;
use crate::support::backend::{Backend, data, ended, said};

const REFERENCE: &str = "The Eiffel Tower is in Paris and opened in 1889. It is not made of wood, but of iron.";

fn sample() -> Value {
    json!({
        "user_input": "What of the tower? SECRET-QUESTION",
        "reference": REFERENCE,
        "retrieved_contexts": ["The Eiffel Tower stands in Paris. SECRET-CONTEXT", "It is made of iron."],
        "split": "atomic"
    })
}

fn is_split(body: &Value) -> bool {
    data(body).get("sentences").is_some()
}

fn cuts(entries: &[(usize, &[&str])]) -> ResponseTemplate {
    let entries: Vec<Value> = entries.iter().map(|(n, claims)| json!({ "n": n, "claims": claims })).collect();
    said(&json!({ "cuts": entries }).to_string())
}

/// Attributes the claims that hold one of the words.
fn verdicts(body: &Value, words: &[&str]) -> ResponseTemplate {
    let entries: Vec<Value> = data(body)["claims"]
        .as_array()
        .unwrap()
        .iter()
        .map(|claim| {
            let text = claim["text"].as_str().unwrap();
            let attributed = words.iter().any(|word| text.contains(word));
            json!({ "n": claim["n"], "evidence": [], "reason": "", "attributed": attributed })
        })
        .collect();
    said(&json!({ "verdicts": entries }).to_string())
}

const FIRST: (usize, &[&str]) = (1, &["The Eiffel Tower is in Paris.", "The Eiffel Tower opened in 1889."]);
const SECOND: (usize, &[&str]) = (2, &["The Eiffel Tower is not made of wood.", "The Eiffel Tower is made of iron."]);

/// A backend that cuts by `cut` and attributes what is in Paris or of iron.
async fn backend(cut: impl Fn(&Value) -> ResponseTemplate + Send + Sync + 'static) -> Backend {
    Backend::answering(move |body| if is_split(body) { cut(body) } else { verdicts(body, &["Paris", "iron"]) }).await
}

fn claims(answer: &Value) -> Vec<&str> {
    answer["verdicts"].as_array().unwrap().iter().map(|verdict| verdict["claim"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn sentences_are_cut_in_a_call_of_their_own_that_sees_nothing_else() {
    let backend = backend(|_| cuts(&[FIRST, SECOND])).await;
    let answer = Service::asking(&backend.url(), &[]).post("/recall/llm", &sample()).await.ok();
    assert_eq!(claims(&answer), [FIRST.1, SECOND.1].concat());
    assert_eq!((&answer["score"], &answer["total"]), (&json!(0.5), &json!(4)));

    let bodies = backend.bodies().await;
    assert_eq!(bodies.len(), 2);
    let (split, judged) = (&bodies[0], &bodies[1]);
    let sentences = json!({ "sentences": [
        { "n": 1, "text": "The Eiffel Tower is in Paris and opened in 1889." },
        { "n": 2, "text": "It is not made of wood, but of iron." }
    ] });
    assert_eq!(data(split), sentences);
    assert!(!split.to_string().contains("SECRET"), "neither question nor contexts");
    assert_ne!(split["messages"][0], judged["messages"][0]);
    assert_eq!(split["response_format"]["json_schema"]["schema"]["required"], json!(["cuts"]));
    assert_eq!((&split["temperature"], &split["seed"]), (&json!(0.0), &json!(7)));
    assert_eq!(data(judged)["claims"].as_array().unwrap().len(), 4);

    let judge = &answer["judge"];
    assert_eq!((&judge["splitter"], &judge["prompt"]), (&json!("atomic/1"), &json!("attribution/1")));
    assert_eq!(judge["splitter_sha256"].as_str().unwrap().len(), 64);
    assert_ne!(judge["splitter_sha256"], judge["prompt_sha256"]);
    assert_eq!((&answer["usage"]["judge_calls"], &answer["usage"]["input_tokens"]), (&json!(2), &json!(100)));
}

#[tokio::test]
async fn votes_share_one_cut() {
    let backend = backend(|_| cuts(&[FIRST, SECOND])).await;
    let mut body = sample();
    body["votes"] = json!(3);
    let answer = Service::asking(&backend.url(), &[]).post("/recall/llm", &body).await.ok();
    assert_eq!((&answer["usage"]["judge_calls"], &answer["verdicts"][0]["agreement"]), (&json!(4), &json!(1.0)));
    assert_eq!(backend.bodies().await.iter().filter(|body| is_split(body)).count(), 1);
}

#[tokio::test]
async fn a_sentence_without_claims_is_asked_again_and_then_the_sample_fails() {
    let backend = backend(|body| match data(body).get("asked") {
        None => cuts(&[FIRST, (9, &["No sentence of ours."])]),
        Some(_) => cuts(&[SECOND]),
    })
    .await;
    let answer = Service::asking(&backend.url(), &[]).post("/recall/llm", &sample()).await.ok();
    assert_eq!(claims(&answer), [FIRST.1, SECOND.1].concat());
    assert_eq!(answer["usage"]["judge_calls"], 3);
    let again = data(&backend.bodies().await[1]);
    assert_eq!((&again["asked"], again["sentences"].as_array().unwrap().len()), (&json!([2]), 2));
    assert_eq!(again["note"], "Not usable in the last answer: sentence 2: no entry.");

    for useless in [
        cuts(&[FIRST]),
        cuts(&[FIRST, (2, &[])]),
        cuts(&[FIRST, (2, &["  "])]),
        cuts(&[
            FIRST,
            (
                2,
                &[
                    "It is made of iron, 1.",
                    "2",
                    "3",
                    "4",
                    "5",
                    "6",
                    "7",
                    "8",
                    "9",
                    "10",
                    "11",
                    "12",
                    "13",
                    "14",
                    "15",
                    "16",
                    "17",
                    "18",
                    "19",
                    "20",
                    "21",
                ],
            ),
        ]),
        said("I cut nothing."),
        said(&json!({ "verdicts": [{ "n": 1, "attributed": true }] }).to_string()),
    ] {
        let backend = self::backend(move |_| useless.clone()).await;
        let service = Service::asking(&backend.url(), &["--judge-repairs", "2"]);
        let problem = service.post("/recall/llm", &sample()).await.problem(502, "judge_output_invalid");
        assert_eq!(problem["usage"]["judge_calls"], 3, "{problem:#}");
        assert!(backend.bodies().await.iter().all(is_split), "nothing is judged without its claims");
    }
}

#[tokio::test]
async fn what_a_claim_adds_or_leaves_out_is_asked_again_and_then_the_sentence_stays_whole() {
    for (bad, note) in [
        (&["The Eiffel Tower is in Paris.", "The Eiffel Tower opened in 1889 in Lyon."][..], "the claims add \"Lyon\""),
        (&["The Eiffel Tower is in Paris.", "The Eiffel Tower opened in 1888."], "the claims add \"1888\""),
        (&["The Eiffel Tower is in Paris.", "The Eiffel Tower opened."], "leave a number out"),
        (&["The Eiffel Tower is not in Paris.", "The Eiffel Tower opened in 1889."], "negates"),
    ] {
        // The second answer is as it should be.
        let backend = self::backend(move |body| match data(body).get("asked") {
            None => cuts(&[(1, bad), SECOND]),
            Some(_) => cuts(&[FIRST]),
        })
        .await;
        let answer = Service::asking(&backend.url(), &[]).post("/recall/llm", &sample()).await.ok();
        assert_eq!(claims(&answer), [FIRST.1, SECOND.1].concat());
        let again = data(&backend.bodies().await[1]);
        assert_eq!(again["asked"], json!([1]));
        assert!(again["note"].as_str().unwrap().contains(note), "{again:#}");

        // It never is.
        let backend = self::backend(move |_| cuts(&[(1, bad), SECOND])).await;
        let answer = Service::asking(&backend.url(), &[]).post("/recall/llm", &sample()).await.ok();
        let whole = "The Eiffel Tower is in Paris and opened in 1889.";
        assert_eq!(claims(&answer), [&[whole][..], SECOND.1].concat());
        assert_eq!((&answer["usage"]["judge_calls"], &answer["judge"]["splitter"]), (&json!(3), &json!("atomic/1")));
    }
}

#[tokio::test]
async fn the_embedded_judge_cannot_cut() {
    let service = Service::embedded();
    let mut body = sample();
    for reference_claims in [Value::Null, json!(["A claim."])] {
        body["reference_claims"] = reference_claims;
        let problem = service.post("/recall/llm", &body).await.problem(422, "invalid_input");
        assert_eq!(problem["errors"][0]["pointer"], "/split");
        assert!(problem["detail"].as_str().unwrap().contains("--judge"), "{problem:#}");
    }
    body["split"] = json!("sentence");
    service.post("/recall/llm", &body).await.ok();
    body["split"] = json!("atomc");
    let problem = service.post("/recall/llm", &body).await.problem(422, "invalid_input");
    assert!(problem["detail"].as_str().unwrap().contains("did you mean `atomic`?"), "{problem:#}");
}

/// Your own claims are never cut, and nothing retrieved asks nobody; the receipt says what the claims are.
#[tokio::test]
async fn where_there_is_nothing_to_cut_nobody_is_asked_to() {
    let backend = backend(|_| cuts(&[FIRST, SECOND])).await;
    let service = Service::asking(&backend.url(), &[]);
    let mut own = sample();
    own["reference_claims"] = json!(["In Paris. And of iron."]);
    let answer = service.post("/recall/llm", &own).await.ok();
    assert_eq!((claims(&answer), &answer["judge"]["splitter"]), (vec!["In Paris. And of iron."], &Value::Null));
    assert_eq!(answer["judge"]["splitter_sha256"], Value::Null);
    assert_eq!(backend.calls().await, 1);

    let mut nothing = sample();
    nothing["retrieved_contexts"] = json!([" "]);
    let answer = service.post("/recall/llm", &nothing).await.ok();
    assert_eq!(
        (&answer["score"], &answer["total"], &answer["judge"]["splitter"]),
        (&json!(0.0), &json!(2), &json!("sentence/1"))
    );
    assert_eq!((backend.calls().await, &answer["usage"]["judge_calls"]), (1, &json!(0)));
}

#[tokio::test]
async fn what_the_cut_cost_is_told_whichever_call_fails() {
    let refusing =
        Backend::answering(|body| if is_split(body) { cuts(&[FIRST, SECOND]) } else { ended("", "content_filter") })
            .await;
    let problem = Service::asking(&refusing.url(), &[]).post("/recall/llm", &sample()).await;
    assert_eq!(problem.problem(502, "content_filtered")["usage"]["judge_calls"], 2);

    let cut_short = backend(|_| ended("{\"cuts\":[", "length")).await;
    let problem = Service::asking(&cut_short.url(), &[]).post("/recall/llm", &sample()).await;
    assert_eq!(problem.problem(502, "judge_truncated")["usage"]["judge_calls"], 2, "once more with more room");
    let limits: Vec<u64> = cut_short.bodies().await.iter().map(|body| body["max_tokens"].as_u64().unwrap()).collect();
    assert_eq!(limits[1], 4 * limits[0]);
}

#[tokio::test]
async fn a_reference_that_does_not_fit_a_window_set_by_hand_is_not_sent() {
    let backend = backend(|_| cuts(&[FIRST, SECOND])).await;
    let service = Service::asking(&backend.url(), &["--judge-context-window", "2048"]);
    let mut body = sample();
    body["reference"] = json!("The tower is tall. ".repeat(400));
    let problem = service.post("/recall/llm", &body).await.problem(422, "context_length_exceeded");
    assert!(problem["detail"].as_str().unwrap().contains("2048"), "{problem:#}");
    assert_eq!(backend.calls().await, 0);
}

/// One place is enough for a cut and its verdicts.
#[tokio::test]
async fn the_cut_takes_a_place_like_any_call() {
    let backend = backend(|_| cuts(&[FIRST, SECOND])).await;
    let service = Service::asking(&backend.url(), &["--judge-concurrency", "1", "--queue", "3"]);
    let body = sample();
    let answers = tokio::join!(service.post("/recall/llm", &body), service.post_anew("/recall/llm", &body));
    assert_eq!((&answers.0.ok()["score"], &answers.1.ok()["score"]), (&json!(0.5), &json!(0.5)));
    assert_eq!(backend.calls().await, 4);
}
