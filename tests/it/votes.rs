//! `votes`: how often it is asked, in which manner, and what becomes of the answers.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::Service;
use crate::support::backend::{Backend, ended, said, slow, verdicts};

fn sample(votes: u8) -> Value {
    json!({
        "user_input": "Where is the Eiffel Tower and when did it open?",
        "reference": "The Eiffel Tower is in Paris. It opened in 1889.",
        "retrieved_contexts": ["The Eiffel Tower stands in Paris, France.", "Lyon is a city."],
        "votes": votes
    })
}

fn seed(body: &Value) -> i64 {
    body["seed"].as_i64().unwrap()
}

fn entry(n: usize, attributed: bool, reason: &str, quotes: &[(usize, &str)]) -> Value {
    let evidence: Vec<Value> =
        quotes.iter().map(|(context, quote)| json!({ "context": context, "quote": quote })).collect();
    json!({ "n": n, "evidence": evidence, "reason": reason, "attributed": attributed })
}

#[tokio::test]
async fn most_votes_decide_a_tie_is_not_attributed_and_agreement_says_how_clear_it_was() {
    // Votes for the two claims, by seed: 7 and on.
    for (ballots, attributed, agreement) in [
        (&[[true, true], [true, false], [false, false]][..], [true, false], [2.0 / 3.0, 2.0 / 3.0]),
        (&[[true, true], [false, true]][..], [false, true], [0.5, 1.0]),
        (&[[true, false], [true, false], [false, true], [false, true], [true, false]][..], [true, false], [0.6, 0.6]),
    ] {
        let backend =
            Backend::answering(|body| said(&verdicts(&ballots[usize::try_from(seed(body) - 7).unwrap()]))).await;
        let votes = u8::try_from(ballots.len()).unwrap();
        let answer = Service::asking(&backend.url(), &[]).post("/recall/llm", &sample(votes)).await.ok();
        for claim in 0..2 {
            assert_eq!(answer["verdicts"][claim]["attributed"], attributed[claim], "{answer:#}");
            assert_eq!(answer["verdicts"][claim]["agreement"], agreement[claim], "{answer:#}");
        }
        assert_eq!(backend.calls().await, ballots.len());
        assert_eq!(answer["usage"]["judge_calls"], ballots.len());
        assert_eq!(answer["usage"]["input_tokens"], 50 * ballots.len());
        assert_eq!(answer["judge"]["seed"], 7);
    }
}

#[tokio::test]
async fn every_vote_has_a_seed_of_its_own_and_only_the_first_is_cold() {
    let backend = Backend::saying(&verdicts(&[true, true])).await;
    let service = Service::asking(&backend.url(), &["--judge-seed", "100"]);
    let answer = service.post("/recall/llm", &sample(4)).await.ok();
    let mut bodies = backend.bodies().await;
    bodies.sort_by_key(seed);
    let manners: Vec<(i64, bool)> =
        bodies.iter().map(|body| (seed(body), body["temperature"].as_f64().unwrap() > 0.0)).collect();
    assert_eq!(manners, [(100, false), (101, true), (102, true), (103, true)]);
    assert!(bodies.iter().all(|body| body["messages"] == bodies[0]["messages"]), "one question, put four times");
    assert_eq!(answer["judge"]["seed"], 100);
}

#[tokio::test]
async fn without_votes_there_is_one_call_and_no_agreement() {
    for body in [sample(1), {
        let mut body = sample(1);
        body["votes"] = Value::Null;
        body
    }] {
        let backend = Backend::saying(&verdicts(&[true, false])).await;
        let answer = Service::asking(&backend.url(), &[]).post("/recall/llm", &body).await.ok();
        assert_eq!((backend.calls().await, answer["verdicts"][0].get("agreement")), (1, None));
        assert_eq!(backend.bodies().await[0]["temperature"], 0.0);
    }
}

#[tokio::test]
async fn votes_are_from_one_to_nine() {
    let service = Service::embedded();
    for votes in [json!(0), json!(10), json!(-1), json!(2.0), json!("3"), json!(1e3), json!([1])] {
        let mut body = sample(1);
        body["votes"] = votes;
        let problem = service.post("/recall/llm", &body).await.problem(422, "invalid_input");
        assert_eq!(problem["errors"][0]["pointer"], "/votes", "{problem:#}");
        assert!(problem["errors"][0]["detail"].as_str().unwrap().starts_with("expected an integer from 1 to 9, found"));
    }
    service.post("/recall/llm", &sample(9)).await.ok();
}

#[tokio::test]
async fn the_embedded_judge_agrees_with_itself() {
    let answer = Service::embedded().post("/recall/llm", &sample(5)).await.ok();
    let once = Service::embedded().post("/recall/llm", &sample(1)).await.ok();
    assert_eq!(answer["score"], once["score"]);
    assert_eq!(answer["verdicts"][0]["agreement"], 1.0);
    assert_eq!((&answer["usage"]["judge_calls"], &answer["judge"]["seed"]), (&json!(0), &Value::Null));
}

#[tokio::test]
async fn nothing_retrieved_is_beyond_dispute() {
    let backend = Backend::saying(&verdicts(&[true, true])).await;
    let mut body = sample(3);
    body["retrieved_contexts"] = json!([]);
    let answer = Service::asking(&backend.url(), &[]).post("/recall/llm", &body).await.ok();
    assert_eq!((&answer["score"], &answer["verdicts"][1]["agreement"]), (&json!(0.0), &json!(1.0)));
    assert_eq!(backend.calls().await, 0);
}

/// Reason and quotes are those of one vote: the first on the winning side whose quote stands in a context.
#[tokio::test]
async fn the_grounds_are_one_winning_votes_and_stand_up_to_a_look() {
    let backend = Backend::answering(|body| {
        let entries = match seed(body) {
            7 => [entry(1, false, "lost", &[]), entry(2, true, "made up", &[(1, "opened in 1889")])],
            8 => [entry(1, true, "first", &[(1, "stands in Paris")]), entry(2, true, "true", &[(2, "Lyon is a city")])],
            _ => [entry(1, true, "second", &[(2, "Lyon")]), entry(2, false, "lost", &[])],
        };
        said(&json!({ "verdicts": entries }).to_string())
    })
    .await;
    let mut body = sample(3);
    body["evidence"] = json!("require");
    body["k"] = json!([1]);
    let answer = Service::asking(&backend.url(), &[]).post("/recall/llm", &body).await.ok();
    assert_eq!(answer["score"], 1.0, "{answer:#}");
    let (one, two) = (&answer["verdicts"][0], &answer["verdicts"][1]);
    assert_eq!((&one["reason"], one["evidence"].as_array().unwrap().len()), (&json!("first"), 1));
    assert_eq!((&two["reason"], &two["evidence"][0]["context"]), (&json!("true"), &json!(1)));
    assert_eq!(answer["recall_at"][0]["recalled"], 1, "as the evidence shown says");
    assert_eq!(answer["warnings"], json!([]));
}

#[tokio::test]
async fn a_vote_that_fails_fails_the_sample_and_what_was_paid_is_told() {
    let backend = Backend::answering(|body| match seed(body) {
        9 => ended("{\"verdicts\":[", "content_filter"),
        _ => said(&verdicts(&[true, true])),
    })
    .await;
    // One place, so that the votes come one after the other.
    let service = Service::asking(&backend.url(), &["--judge-concurrency", "1"]);
    let problem = service.post("/recall/llm", &sample(5)).await.problem(502, "content_filtered");
    assert_eq!(problem["usage"]["judge_calls"], 3, "{problem:#}");
    assert_eq!(problem["usage"]["input_tokens"], 150);
    assert_eq!(backend.calls().await, 3, "the votes after it are not asked");
}

#[tokio::test]
async fn what_an_abandoned_vote_cost_is_not_known_and_not_guessed() {
    let backend = Backend::answering(|body| match seed(body) {
        7 => slow(ended("", "content_filter"), Duration::from_millis(400)),
        _ => slow(said(&verdicts(&[true, true])), Duration::from_secs(30)),
    })
    .await;
    let problem = Service::asking(&backend.url(), &[]).post("/recall/llm", &sample(3)).await;
    let usage = &problem.problem(502, "content_filtered")["usage"];
    assert_eq!(usage["judge_calls"], 3, "{usage:#}");
    assert_eq!((&usage["input_tokens"], &usage["output_tokens"]), (&Value::Null, &Value::Null));
}

/// However many votes there are, never more calls are in flight than were allowed, one place is enough for all of them,
/// and a queue without room does not matter to a sample that has its place.
#[tokio::test]
async fn votes_keep_to_the_places_there_are() {
    for places in [1, 3] {
        let backend = Backend::answering(|_| slow(said(&verdicts(&[true, false])), Duration::from_millis(60))).await;
        let places = places.to_string();
        let service = Service::asking(&backend.url(), &["--judge-concurrency", &places, "--queue", "2"]);
        let (body, other) = (sample(6), sample(5));
        let began = std::time::Instant::now();
        let (one, two, three) = tokio::join!(
            service.post("/recall/llm", &body),
            service.post("/recall/llm", &other),
            service.post_anew("/recall/llm", &body)
        );
        for answer in [one, two, three] {
            assert_eq!(answer.ok()["score"], 0.5);
        }
        assert_eq!(backend.calls().await, 17);
        // 17 calls of 60 ms from so many places cannot be done sooner.
        let least = 17_u32.div_ceil(places.parse().unwrap()) * Duration::from_millis(60);
        assert!(began.elapsed() >= least, "{:?}", began.elapsed());
    }
}
