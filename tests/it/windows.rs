//! Contexts that do not fit the model's window at once.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use wiremock::ResponseTemplate;

use crate::support::Service;
use crate::support::backend::{Backend, data, ended, said};

/// A context of `words` words that begins with `fact`.
fn context(fact: &str, words: usize) -> String {
    format!("{fact}{}", " padding".repeat(words))
}

fn sample(contexts: &[String]) -> Value {
    json!({
        "user_input": "What of the tower?",
        "reference_claims": ["It stands in Paris.", "It opened in 1889.", "It opened before the bridge."],
        "retrieved_contexts": contexts
    })
}

/// Numbers of the contexts (from 1) or claims that were sent.
fn numbers(body: &Value, list: &str) -> Vec<usize> {
    data(body)[list]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| usize::try_from(item["n"].as_u64().unwrap()).unwrap())
        .collect()
}

/// A model that finds a claim borne out by the first context that holds all words of one of its groups of words, in one
/// context or, as people do, in several together.
fn reads(body: &Value) -> ResponseTemplate {
    let sent = data(body);
    let contexts = sent["contexts"].as_array().unwrap();
    let holding = |word: &str| contexts.iter().find(|context| context["text"].as_str().unwrap().contains(word));
    let entries: Vec<Value> = sent["claims"]
        .as_array()
        .unwrap()
        .iter()
        .map(|claim| {
            let words: &[&str] = match claim["text"].as_str().unwrap() {
                "It stands in Paris." => &["Paris"],
                "It opened in 1889." => &["1889"],
                _ => &["1889", "bridge of 1905"],
            };
            let found: Vec<_> = words.iter().filter_map(|word| Some((holding(word)?["n"].clone(), *word))).collect();
            let all = found.len() == words.len();
            let evidence: Vec<Value> =
                found.iter().map(|(n, word)| json!({ "context": n, "quote": word })).collect();
            json!({ "n": claim["n"], "evidence": evidence, "reason": format!("{} contexts", contexts.len()), "attributed": all })
        })
        .collect();
    said(&json!({ "verdicts": entries }).to_string())
}

fn too_long(message: &str) -> ResponseTemplate {
    ResponseTemplate::new(400)
        .set_body_json(json!({ "error": { "message": message, "code": "context_length_exceeded" } }))
}

/// The four facts, spread: a window of 4096 holds two such contexts.
fn spread() -> Vec<String> {
    [
        "The tower stands in Paris.",
        "Nothing.",
        "",
        "It opened in 1889.",
        "Nothing more.",
        "The bridge of 1905.",
        "Lyon.",
    ]
    .iter()
    .map(|fact| if fact.is_empty() { " \n".to_owned() } else { context(fact, 250) })
    .collect()
}

#[tokio::test]
async fn long_contexts_are_read_in_windows_and_once_more_together() {
    let backend = Backend::answering(reads).await;
    let service = Service::asking(&backend.url(), &["--judge-context-window", "4096"]);
    let mut body = sample(&spread());
    body["k"] = json!([1, 4, 6]);
    let answer = service.post("/recall/llm", &body).await.ok();
    assert_eq!(answer["score"], 1.0, "{answer:#}");
    let windows = usize::try_from(answer["judge"]["windows"].as_u64().unwrap()).unwrap();
    assert!(windows > 1, "{answer:#}");

    let bodies = backend.bodies().await;
    assert_eq!(bodies.len(), windows + 1, "every window once, and one reading of what is most alike");
    assert_eq!(answer["usage"]["judge_calls"], windows + 1);
    let (joint, single): (Vec<_>, Vec<_>) = bodies.iter().partition(|body| numbers(body, "claims").len() < 3);
    // Every context that holds text is in exactly one window, whole, and the windows go by rank.
    let mut seen: Vec<Vec<usize>> = single.iter().map(|body| numbers(body, "contexts")).collect();
    seen.sort();
    assert_eq!(seen.concat(), [1, 2, 4, 5, 6, 7]);
    for body in &bodies {
        for context in data(body)["contexts"].as_array().unwrap() {
            let n = usize::try_from(context["n"].as_u64().unwrap()).unwrap();
            assert_eq!(context["text"], spread()[n - 1], "whole and under its own number");
        }
    }
    // The claim that no window bears out alone is put to the contexts that speak of it.
    assert_eq!(numbers(joint[0], "claims"), [3]);
    let together: BTreeSet<usize> = numbers(joint[0], "contexts").into_iter().collect();
    assert!(together.is_superset(&[4, 6].into()), "{together:?}");

    let places = |claim: usize| -> Vec<Value> {
        let evidence = answer["verdicts"][claim]["evidence"].as_array().unwrap();
        evidence.iter().map(|evidence| evidence["context"].clone()).collect()
    };
    assert_eq!((places(0), places(1), places(2)), (vec![json!(0)], vec![json!(3)], vec![json!(3), json!(5)]));
    let recalled: Vec<_> = answer["recall_at"].as_array().unwrap().iter().map(|at| at["recalled"].clone()).collect();
    assert_eq!(recalled, [1, 2, 3]);
}

#[tokio::test]
async fn what_fits_is_read_whole() {
    let backend = Backend::answering(reads).await;
    for arguments in [&[][..], &["--judge-context-window", "32768"]] {
        let service = Service::asking(&backend.url(), arguments);
        let answer = service.post("/recall/llm", &sample(&spread())).await.ok();
        assert_eq!((&answer["score"], &answer["judge"]["windows"]), (&json!(1.0), &json!(1)));
        assert_eq!(answer["usage"]["judge_calls"], 1);
    }
    assert_eq!(backend.calls().await, 2);
}

/// The grounds are the first window's that bears the claim out, so recall within the first k does not suffer from what
/// was found again later.
#[tokio::test]
async fn what_a_later_window_finds_again_changes_nothing() {
    let backend = Backend::answering(reads).await;
    let service = Service::asking(&backend.url(), &["--judge-context-window", "4096"]);
    let mut contexts: Vec<String> = (0..8).map(|_| context("Paris, 1889, bridge of 1905.", 250)).collect();
    contexts.push(context("Lyon.", 250));
    let mut body = sample(&contexts);
    body["k"] = json!([1]);
    let answer = service.post("/recall/llm", &body).await.ok();
    let windows = answer["judge"]["windows"].as_u64().unwrap();
    assert!(windows > 2);
    assert_eq!(answer["recall_at"][0]["recalled"], 3, "{answer:#}");
    assert_eq!(answer["usage"]["judge_calls"], windows, "nothing is open, so nothing is read together");
}

#[tokio::test]
async fn a_window_that_a_refusal_tells_is_learnt() {
    // Takes no more than 1200 words, and calls them 4096 tokens.
    let backend = Backend::answering(|body| {
        let words = body["messages"].to_string().split_whitespace().count();
        if words > 1200 {
            return too_long(&format!(
                "This model's maximum context length is 4096 tokens. However, your messages resulted in {} tokens.",
                words * 3
            ));
        }
        reads(body)
    })
    .await;
    let service = Service::asking(&backend.url(), &[]);
    let answer = service.post("/recall/llm", &sample(&spread())).await.ok();
    assert_eq!(answer["score"], 1.0, "{answer:#}");
    let windows = answer["judge"]["windows"].as_u64().unwrap();
    assert!(windows > 1);
    let calls = backend.calls().await;
    assert_eq!(answer["usage"]["judge_calls"], calls);
    assert_eq!(calls, usize::try_from(windows).unwrap() + 2, "the refused one, the windows, the joint reading");
    // A refusal cost nothing, and all else was reported.
    assert_eq!(answer["usage"]["input_tokens"], 50 * (calls - 1));

    // Known from then on: nothing is refused again.
    service.post_anew("/recall/llm", &sample(&spread())).await.ok();
    assert_eq!(backend.calls().await, calls + usize::try_from(windows).unwrap() + 1);
}

#[tokio::test]
async fn a_window_that_is_refused_all_the_same_is_halved() {
    // Refuses more than one context at a time, whatever was told of its window.
    let backend = Backend::answering(|body| {
        if numbers(body, "contexts").len() > 1 {
            return too_long("the prompt exceeds the maximum context length of 30000 tokens");
        }
        reads(body)
    })
    .await;
    let contexts: Vec<String> = ["Paris", "Nothing", "1889", "Lyon"].iter().map(|fact| context(fact, 50)).collect();
    let answer = Service::asking(&backend.url(), &[]).post("/recall/llm", &sample(&contexts)).await.ok();
    assert_eq!((&answer["recalled"], &answer["judge"]["windows"]), (&json!(2), &json!(4)), "{answer:#}");

    // Halving comes to an end.
    let contexts: Vec<String> = (0..64).map(|n| context(&n.to_string(), 5)).collect();
    let problem = Service::asking(&backend.url(), &[]).post("/recall/llm", &sample(&contexts)).await;
    problem.problem(422, "context_length_exceeded");
}

#[tokio::test]
async fn a_context_that_does_not_fit_by_itself_is_never_cut() {
    let contexts = [context("Paris", 20), context("1889", 9000), context("Lyon", 20)];
    // Set by hand: nobody is asked.
    let backend = Backend::answering(reads).await;
    let service = Service::asking(&backend.url(), &["--judge-context-window", "4096"]);
    let problem = service.post("/recall/llm", &sample(&contexts)).await.problem(422, "context_length_exceeded");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("/retrieved_contexts/1") && detail.contains("4096"), "{detail}");
    assert_eq!((backend.calls().await, problem.get("usage")), (0, None));

    // Told by the backend: its own words, and what it was asked.
    let backend = Backend::answering(|body| {
        if body.to_string().len() > 20_000 {
            too_long("maximum context length is 4096 tokens, not 18500")
        } else {
            reads(body)
        }
    })
    .await;
    let problem = Service::asking(&backend.url(), &[])
        .post("/recall/llm", &sample(&contexts))
        .await
        .problem(422, "context_length_exceeded");
    assert!(problem["detail"].as_str().unwrap().contains("4096 tokens, not 18500"), "{problem:#}");
    assert!(problem["usage"]["judge_calls"].as_u64().unwrap() >= 2);
}

#[tokio::test]
async fn without_a_known_window_there_are_no_windows() {
    let backend = Backend::replying(vec![too_long("Your messages are too long.")]).await;
    let problem = Service::asking(&backend.url(), &[]).post("/recall/llm", &sample(&spread())).await;
    let problem = problem.problem(422, "context_length_exceeded");
    assert_eq!(backend.calls().await, 1);
    assert_eq!(problem["usage"]["judge_calls"], 1);
    assert_eq!(problem["usage"]["input_tokens"], 0, "refused at the door");
}

#[tokio::test]
async fn so_many_windows_that_the_judge_is_the_wrong_one_are_refused() {
    let backend = Backend::answering(reads).await;
    let service = Service::asking(&backend.url(), &["--judge-context-window", "4096"]);
    let contexts: Vec<String> = (0..150).map(|_| context("x", 550)).collect();
    let problem = service.post("/recall/llm", &sample(&contexts)).await.problem(422, "context_length_exceeded");
    assert!(problem["detail"].as_str().unwrap().contains("150 windows"), "{problem:#}");
    assert_eq!(backend.calls().await, 0);
}

/// Votes are whole judgements, windows are repaired one by one, and the limit sent is what a window leaves.
#[tokio::test]
async fn windows_votes_and_repairs_go_together() {
    let broken = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&broken);
    let backend = Backend::answering(move |body| {
        // The first answer of every window of the second vote leaves a claim out.
        if body["seed"] == 8 && data(body).get("note").is_none() && numbers(body, "claims").len() == 3 {
            count.fetch_add(1, Ordering::SeqCst);
            let entry = |n: usize| json!({ "n": n, "evidence": [], "reason": "", "attributed": false });
            return said(&json!({ "verdicts": [entry(1), entry(3)] }).to_string());
        }
        reads(body)
    })
    .await;
    let service = Service::asking(&backend.url(), &["--judge-context-window", "4096", "--judge-concurrency", "2"]);
    let mut body = sample(&spread());
    body["votes"] = json!(3);
    let answer = service.post("/recall/llm", &body).await.ok();
    let windows = usize::try_from(answer["judge"]["windows"].as_u64().unwrap()).unwrap();
    assert_eq!(broken.load(Ordering::SeqCst), windows);
    // Three votes, each its windows and one joint reading; one repair for each window of the second.
    assert_eq!(backend.calls().await, 3 * (windows + 1) + windows);
    assert_eq!(answer["score"], 1.0, "{answer:#}");
    // The second vote had two claims to read together, and room for fewer contexts beside their answers.
    let agreement: Vec<_> =
        answer["verdicts"].as_array().unwrap().iter().map(|verdict| verdict["agreement"].as_f64().unwrap()).collect();
    assert_eq!(agreement, [1.0, 1.0, 2.0 / 3.0]);
    for body in backend.bodies().await {
        let limit = body["max_tokens"].as_u64().unwrap();
        assert!((256..=512 + 3 * 256).contains(&limit), "{limit}");
    }
}

#[tokio::test]
async fn a_window_whose_answer_is_cut_fails_the_sample() {
    let backend = Backend::answering(|body| {
        if numbers(body, "contexts").contains(&7) { ended("{\"verdicts\":[", "length") } else { reads(body) }
    })
    .await;
    let service = Service::asking(&backend.url(), &["--judge-context-window", "4096"]);
    service.post("/recall/llm", &sample(&spread())).await.problem(502, "judge_truncated");
}
