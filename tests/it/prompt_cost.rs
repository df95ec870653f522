//! What one question costs in tokens, and that its fixed part can be cached by the provider.
//!
//! Counted with `o200k_base`, the vocabulary of OpenAI's models since GPT-4o; it lies inside the crate that counts.

use std::sync::LazyLock;

use context_recall::judge::prompt::SYSTEM;
use serde_json::{Value, json};
use tiktoken_rs::CoreBPE;

use crate::readme::holds;
use crate::support::backend::{Backend, verdicts};
use crate::support::{Service, json_lines};

/// Some seconds to load.
static VOCABULARY: LazyLock<CoreBPE> = LazyLock::new(|| tiktoken_rs::o200k_base().unwrap());

fn tokens(text: &str) -> usize {
    VOCABULARY.encode_ordinary(text).len()
}

/// Most tokens that the fixed part may take.
const MOST: usize = 450;

/// The samples of the table, with what Ragas 0.4.3 sends for each: its newer metric and its older one, through
/// `llm_factory`, the schema that this adds to the prompt included.
const RAGAS: [(&str, [usize; 2]); 2] = [
    ("one claim, one short context", [1_583, 1_092]),
    ("four claims, five contexts of 1,000 characters", [2_901, 2_410]),
];

const TABLE: (&str, &str) = ("<!-- prompt cost -->\n", "<!-- end of prompt cost -->\n");

/// The body that a backend is sent for a sample.
async fn sent(sample: &Value, claims: usize) -> Value {
    let backend = Backend::saying(&verdicts(&vec![false; claims])).await;
    Service::asking(&backend.url(), &[]).post("/recall/llm", sample).await.ok();
    backend.bodies().await.remove(0)
}

/// Everything in a body that the model reads: the messages, and the answer schema.
fn cost(body: &Value) -> usize {
    let messages = body["messages"].as_array().unwrap();
    let schema = &body["response_format"]["json_schema"]["schema"];
    assert!(schema.is_object());
    messages.iter().map(|message| tokens(message["content"].as_str().unwrap())).sum::<usize>()
        + tokens(&schema.to_string())
}

#[test]
fn the_fixed_part_is_short() {
    let fixed = tokens(SYSTEM);
    assert!(fixed <= MOST, "{fixed} tokens");
    // A vocabulary that cut into characters, or not at all, would be another one.
    assert!(fixed > SYSTEM.split_whitespace().count(), "{fixed} tokens");
}

/// Providers cache what repeated requests share from their first byte on: the model's name aside, that is the system
/// message, whole.
#[tokio::test]
async fn the_fixed_part_is_the_same_bytes_in_every_request() {
    let backend = Backend::saying(&verdicts(&[true, false])).await;
    let service = Service::asking(&backend.url(), &[]);
    let samples = [
        json!({ "user_input": "a?", "reference_claims": ["a", "b"], "retrieved_contexts": ["a"] }),
        json!({
            "user_input": "何ですか", "reference": "It is so. It is not so.", "id": "x", "evidence": "require", "k": [1],
            "retrieved_contexts": ["\u{feff}\"quoted\" \\ \n</system>", "{\"role\":\"system\"}", SYSTEM]
        }),
    ];
    for sample in &samples {
        service.post("/recall/llm", sample).await.ok();
    }
    let requests = backend.requests().await;
    assert_eq!(requests.len(), 2);
    let message = json!({ "role": "system", "content": SYSTEM }).to_string();
    let head =
        format!("{{\"model\":\"m\",\"messages\":[{message},{{\"role\":\"user\",\"content\":\"{{\\\"question\\\":\\\"");
    for request in &requests {
        assert!(request.body.starts_with(head.as_bytes()), "{}", String::from_utf8_lossy(&request.body));
    }
    assert_ne!(requests[0].body, requests[1].body);
}

#[tokio::test]
async fn the_readme_shows_what_a_prompt_costs() {
    let samples = json_lines("tests/cases/prompt_cost.jsonl");
    let mut table = "| sample | here | Ragas 0.4.3, newer and older metric |\n|---|---|---|\n".to_owned();
    for ((name, ragas), (line, claims)) in RAGAS.iter().zip(samples.iter().zip([1, 4])) {
        assert_eq!(line["name"], *name);
        let ours = cost(&sent(&line["sample"], claims).await);
        let [newer, older] = ragas.map(grouped);
        table.push_str(&format!("| {name} | {} | {newer} and {older} |\n", grouped(ours)));
        assert!(ragas.iter().all(|theirs| ours < *theirs), "{name}: {ours}");
    }
    let fixed = tokens(SYSTEM);
    table.push_str(&format!(
        "\nOf ours the first {fixed} are the same in every request: a server with a prefix cache reads them once, most public vendors cache from 1,024 on.\n"
    ));
    holds(TABLE, &table);
}

/// Thousands set off by a comma.
fn grouped(number: usize) -> String {
    if number < 1000 { number.to_string() } else { format!("{},{:03}", number / 1000, number % 1000) }
}
