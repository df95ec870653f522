//! A judge in Ollama, which cuts a prompt without a word: whatever it says about half a question is no score.

use serde_json::{Value, json};
use wiremock::ResponseTemplate;

use crate::support::backend::{Backend, data, verdicts};
use crate::support::{Service, read};

/// A sample whose only context has so many words.
fn sample(words: usize) -> Value {
    json!({
        "user_input": "Where is the Eiffel Tower and when did it open?",
        "reference": "The Eiffel Tower is in Paris. It opened in 1889.",
        "retrieved_contexts": ["word ".repeat(words)]
    })
}

/// A reply as a file in `tests/wire` holds it, with a complete answer in it.
fn recorded(name: &str) -> ResponseTemplate {
    let file: Value = serde_json::from_str(&read(&format!("tests/wire/{name}.json"))).unwrap();
    let mut body = file["body"].clone();
    assert_eq!(body["message"]["content"], "@VERDICTS@");
    body["message"]["content"] = json!(verdicts(&[true, false]));
    ResponseTemplate::new(200).set_body_json(body)
}

#[tokio::test]
async fn a_prompt_that_was_cut_in_silence_is_never_a_score() {
    // About 7900 tokens were sent; the server keeps to a window of 4096, whatever it is asked for.
    let backend = Backend::replying(vec![recorded("ollama-silent-truncation")]).await;
    let service = Service::asking_provider("ollama", &backend.url(), &[]);
    let answer = service.post("/recall/llm", &sample(7500)).await;
    let problem = answer.problem(502, "prompt_truncated");
    assert_eq!(problem["retryable"], false);
    let (detail, hint) = (problem["detail"].as_str().unwrap(), problem["hint"].as_str().unwrap());
    assert!(detail.contains("it read 2050 tokens of a prompt of at least 7"), "{detail}");
    assert!(hint.contains("OLLAMA_CONTEXT_LENGTH") && hint.contains("--judge-context-window"), "{hint}");
    let bodies = backend.bodies().await;
    assert_eq!(bodies.len(), 1, "asking again would be cut again");
    assert_eq!((&bodies[0]["truncate"], &bodies[0]["options"]["num_ctx"]), (&json!(false), &json!(32768)));
}

#[tokio::test]
async fn a_prompt_that_was_read_whole_is_a_score_with_its_cost() {
    let backend = Backend::replying(vec![recorded("ollama-ok-native")]).await;
    let service = Service::asking_provider("ollama", &backend.url(), &["--judge-seed", "11"]);
    let answer = service.post("/recall/llm", &sample(30)).await.ok();
    assert_eq!(answer["score"], 0.5);
    let judge = &answer["judge"];
    assert_eq!((&judge["provider"], &judge["model_reported"]), (&json!("ollama"), &json!("llama3.1:8b")));
    assert_eq!(
        answer["usage"],
        json!({
            "judge_calls": 1, "input_tokens": 812, "cached_input_tokens": 0, "output_tokens": 96, "reasoning_tokens": 0
        })
    );
    let body = &backend.bodies().await[0];
    assert_eq!((&body["model"], &body["options"]["seed"]), (&json!("m"), &json!(11)));
    assert_eq!(data(body)["claims"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn the_window_that_is_asked_for_grows_with_the_prompt_and_is_kept() {
    let reply = json!({ "message": { "content": verdicts(&[true, true]) }, "done": true, "done_reason": "stop" });
    let backend = Backend::replying(vec![ResponseTemplate::new(200).set_body_json(reply)]).await;
    let service = Service::asking_provider("ollama", &backend.url(), &[]);
    for words in [30, 4000, 30] {
        let answer = service.post_anew("/recall/llm", &sample(words)).await.ok();
        assert_eq!(answer["usage"]["input_tokens"], Value::Null, "what was not counted is not 0");
    }
    let sizes: Vec<_> = backend.bodies().await.iter().map(|body| body["options"]["num_ctx"].clone()).collect();
    assert_eq!(sizes, [4096, 16384, 16384]);
}
