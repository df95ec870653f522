//! `context-recall score`: a file, a gate, an exit code.

use std::path::PathBuf;
use std::process::Output;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::backend::{Backend, said, verdicts};
use crate::support::process::{command, run};

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

/// Two samples, of which half is recalled.
const HALF: &str = "{\"id\":\"a\",\"expected_ids\":[1],\"retrieved_ids\":[1]}\n{\"id\":\"b\",\"expected_ids\":[2],\"retrieved_ids\":[1]}\n";

fn results(output: &Output) -> Vec<Value> {
    let text = std::str::from_utf8(&output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn said_by(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

#[test]
fn the_exit_code_tells_passed_from_below_the_gate_from_unmeasured() {
    let folder = Folder::new();
    let half = folder.file("half.jsonl", HALF);
    let bad = folder.file("bad.jsonl", &format!("{HALF}{{\"expected_ids\":[],\"retrieved_ids\":[]}}\n"));
    let none = folder.file("none.jsonl", "\n");
    for (arguments, code, words) in [
        (vec!["score", "id", &half], 0, "mean"),
        (vec!["score", "id", &half, "--fail-under", "0.5"], 0, "passed: the mean is not below 0.5"),
        (vec!["score", "id", &half, "--fail-under", "0.51"], 1, "failed: the mean is below 0.51"),
        (vec!["score", "id", &bad], 2, "failed: more than 0 samples could not be scored"),
        (vec!["score", "id", &bad, "--max-failed", "1"], 0, "invalid_input"),
        (vec!["score", "id", &bad, "--max-failed", "1", "--fail-under", "0.9"], 1, "below 0.9"),
        (vec!["score", "id", &none], 2, "failed: nothing was scored"),
        (vec!["score", "id", "/nowhere.jsonl"], 2, "/nowhere.jsonl cannot be read"),
        (vec!["score", "id", &half, "-O", "k=0"], 2, "query parameter `k`: expected an integer of at least 1"),
        (vec!["score", "id", &half, "--option", "threshold=1"], 2, "is an option of /recall/nonllm"),
        (vec!["score", "id", &half, "--fail-under", "1.5"], 2, "expected a number from 0 to 1"),
        (vec!["score", "id", &half, "-o", &half], 2, "cannot be both the samples and the results"),
        (vec!["score", "ids", &half], 2, "possible values: llm, nonllm, id"),
    ] {
        let output = run(&arguments, &[]);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", said_by(&output));
        assert!(said_by(&output).contains(words), "{arguments:?}: {}", said_by(&output));
    }
}

#[test]
fn results_go_out_and_nothing_else_does() {
    let folder = Folder::new();
    let half = folder.file("half.jsonl", HALF);
    let output = run(&["score", "id", &half, "--option", "ordered=true", "-O", "k=1"], &[]);
    let lines = results(&output);
    assert_eq!((lines.len(), &lines[0]["id"], &lines[1]["id"]), (2, &json!("a"), &json!("b")));
    assert_eq!(lines[0]["result"]["recall_at"][0]["k"], 1);
    // All but the last line, the time that it took.
    let table = said_by(&output).trim_end().rsplit_once('\n').unwrap();
    assert!(table.1.starts_with("time "));
    insta::assert_snapshot!(table.0, @r"
    samples                             2 (2 scored, 0 failed)
    mean                                0.5000
    95 % interval                       0.0000 to 1.0000
    bounds if the failed scored 0 or 1  0.5000 to 0.5000
    pooled over all units               0.5000
    min, 10 %, median, 90 %, max        0.0000  0.1000  0.5000  0.9000  1.0000
    ");

    let target = folder.path("results.jsonl");
    let output = run(&["score", "id", &half, "-o", target.to_str().unwrap()], &[]);
    assert!(output.stdout.is_empty());
    assert_eq!(std::fs::read_to_string(&target).unwrap().lines().count(), 2);
}

#[test]
fn an_envelope_is_taken_by_its_name() {
    let folder = Folder::new();
    let envelope = json!({ "samples": [{ "reference_contexts": ["abc"], "contexts": ["abd"] }], "threshold": 0.9 });
    let file = folder.file("batch.json", &envelope.to_string());
    let output = run(&["score", "nonllm", &file], &[]);
    assert_eq!(output.status.code(), Some(0), "{}", said_by(&output));
    assert_eq!(results(&output)[0]["result"]["threshold"], 0.9);
    let file = folder.file("broken.json", "{\"samples\": [");
    assert_eq!(run(&["score", "nonllm", &file], &[]).status.code(), Some(2));
}

#[tokio::test]
async fn a_model_judges_a_file_and_its_cost_is_told() {
    let backend = Backend::replying(vec![said(&verdicts(&[true]))]).await;
    let folder = Folder::new();
    let sample = json!({ "user_input": "?", "reference": "A.", "retrieved_contexts": ["a"] });
    let mut other = sample.clone();
    other["user_input"] = json!("??");
    let file = folder.file("rows.jsonl", &format!("{sample}\n{other}\n"));
    let variables = [("OPENAI_BASE_URL", backend.url()), ("OPENAI_API_KEY", "sk-score-key-123456".to_owned())];
    let variables = variables.each_ref().map(|(name, value)| (*name, value.as_str()));
    let mut program = command(&["--judge", "openai/m", "score", "llm", &file, "--fail-under", "1"], &variables);
    let output = tokio::task::spawn_blocking(move || program.output().unwrap()).await.unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said_by(&output));
    assert!(said_by(&output).contains("2; tokens in 100, out 40"), "{}", said_by(&output));
    assert!(!said_by(&output).contains("sk-score"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_run_has_paid_for_the_next_one_has_for_nothing() {
    let backend = Backend::replying(vec![said(&verdicts(&[true]))]).await;
    let folder = Folder::new();
    let sample = json!({ "user_input": "?", "reference": "A.", "retrieved_contexts": ["a"] });
    let file = folder.file("one.jsonl", &sample.to_string());
    let memory = format!("file:{}", folder.path("memory").display());
    for cached in [false, true] {
        let url = backend.url();
        let arguments = ["score", "llm", &file, "--judge", "openai/m", "--cache", &memory];
        let mut command = command(&arguments, &[("OPENAI_BASE_URL", &url)]);
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", said_by(&output));
        assert_eq!(results(&output)[0]["result"]["cached"], cached);
    }
    assert_eq!(backend.calls().await, 1);
}
