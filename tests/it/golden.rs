//! What real Ragas computed, line by line, through the routes.

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::support::backend::{Backend, said};
use crate::support::{Service, json_lines, read};

#[tokio::test]
async fn nonllm_equals_ragas_to_the_last_bit() {
    let service = Service::embedded();
    let lines = json_lines("tests/golden/nonllm.jsonl");
    assert_eq!(lines.len(), 600);
    for line in lines {
        let (id, request, expect) = (&line["id"], &line["request"], &line["expect"]);
        let body = json!({
            "retrieved_contexts": request["retrieved_contexts"],
            "reference_contexts": request["reference_contexts"],
            "distance_measure": request["measure"],
            "threshold": request["threshold"],
        });
        let answer = service.post("/recall/nonllm", &body).await;
        if request["reference_contexts"].as_array().unwrap().is_empty() {
            // Ragas gives NaN here.
            assert_eq!(answer.problem(422, "invalid_input")["errors"][0]["pointer"], "/reference_contexts", "{id}");
            continue;
        }
        let answer = answer.ok();
        if request["retrieved_contexts"].as_array().unwrap().is_empty() {
            // Ragas raises here.
            assert_eq!(answer["score"], 0.0, "{id}");
            continue;
        }
        assert_eq!(bits(&answer["score"]), bits(&expect["value"]), "{id}");
        assert_eq!(answer["threshold"], request["threshold"], "{id}");
        let expected = expect["per_reference"].as_array().unwrap();
        let verdicts = answer["verdicts"].as_array().unwrap();
        assert_eq!(verdicts.len(), expected.len(), "{id}");
        for (index, (verdict, expected)) in verdicts.iter().zip(expected).enumerate() {
            assert_eq!(verdict["reference_context"], index, "{id}");
            assert_eq!(bits(&verdict["similarity"]), bits(&expected["similarity"]), "{id} {index}");
            assert_eq!(verdict["best_match"], expected["best_index"], "{id} {index}");
            assert_eq!(verdict["recalled"], expected["relevant"], "{id} {index}");
        }
    }
}

fn bits(number: &Value) -> u64 {
    number.as_f64().unwrap_or_else(|| panic!("{number} is no number")).to_bits()
}

#[derive(serde::Deserialize)]
struct IdLine<'a> {
    id: String,
    #[serde(borrow)]
    request: IdRequest<'a>,
    expect: IdExpect,
}

#[derive(serde::Deserialize)]
struct IdRequest<'a> {
    #[serde(borrow)]
    retrieved_context_ids: Vec<&'a RawValue>,
    #[serde(borrow)]
    reference_context_ids: Vec<&'a RawValue>,
}

#[derive(serde::Deserialize)]
struct IdExpect {
    value: Option<f64>,
    found: Vec<String>,
    missing: Vec<String>,
}

#[tokio::test]
async fn id_equals_ragas_where_the_contract_takes_the_ids() {
    let service = Service::embedded();
    let text = read("tests/golden/id.jsonl");
    let lines: Vec<&str> = text.split('\n').filter(|line| !line.is_empty()).collect();
    assert_eq!(lines.len(), 200);
    let mut scored = 0;
    for line in lines {
        let IdLine { id, request, expect } = serde_json::from_str(line).unwrap();
        // The number tokens go out as they stand in the file.
        let list = |ids: &[&RawValue]| ids.iter().map(|id| id.get()).collect::<Vec<_>>().join(",");
        let body = format!(
            r#"{{"retrieved_context_ids":[{}],"reference_context_ids":[{}]}}"#,
            list(&request.retrieved_context_ids),
            list(&request.reference_context_ids)
        );
        let answer = service.post_text("/recall/id", body).await;
        let ids = || request.retrieved_context_ids.iter().chain(&request.reference_context_ids);
        if request.reference_context_ids.is_empty() || ids().any(|id| is_no_id(id.get())) {
            answer.problem(422, "invalid_input");
            continue;
        }
        let answer = answer.ok();
        assert_eq!(answer["score"].as_f64().map(f64::to_bits), expect.value.map(f64::to_bits), "{id}");
        let which = |recalled: bool| -> Vec<&str> {
            let verdicts = answer["verdicts"].as_array().unwrap().iter();
            verdicts
                .filter(|v| v["recalled"] == recalled)
                .map(|v| v["reference_context_id"].as_str().unwrap())
                .collect()
        };
        assert_eq!((which(true), which(false)), (strs(&expect.found), strs(&expect.missing)), "{id}");
        scored += 1;
    }
    assert!(scored >= 150, "only {scored} of 200 lines were scored");
}

fn strs(list: &[String]) -> Vec<&str> {
    list.iter().map(String::as_str).collect()
}

/// Ragas turns booleans and whole floats into integers; here they are refused.
fn is_no_id(token: &str) -> bool {
    !token.starts_with('"') && (token == "true" || token == "false" || token.contains(['.', 'e', 'E']))
}

/// Ragas' judge names statements and verdicts; ours answers the claims by number. Given the same verdicts, the score is
/// Ragas' wherever its verdicts are verdicts.
#[tokio::test]
async fn llm_scores_equal_ragas_on_the_same_verdicts() {
    let lines = json_lines("tests/golden/llm_scoring.jsonl");
    assert_eq!(lines.len(), 200);
    let (mut scored, mut refused) = (0, 0);
    for line in lines {
        let id = &line["id"];
        let items = line["classifications"][0].as_array().unwrap();
        let claims: Vec<String> = (1..).zip(items).map(|(n, _)| format!("Claim {n}.")).collect();
        if claims.is_empty() {
            // No claim at all: Ragas gives NaN; a sample without claims is refused before a judge is asked.
            continue;
        }
        let entries: Vec<Value> = (1..)
            .zip(items)
            .map(|(n, item)| json!({ "n": n, "reason": item["reason"], "attributed": item["attributed"] }))
            .collect();
        let backend = Backend::replying(vec![said(&json!({ "verdicts": entries }).to_string())]).await;
        let service = Service::asking(&backend.url(), &["--judge-repairs", "0"]);
        let body = json!({ "user_input": "q", "reference_claims": claims, "retrieved_contexts": ["c"] });
        let answer = service.post("/recall/llm", &body).await;
        let is_verdict = |item: &Value| {
            matches!(
                item["attributed"].to_string().as_str(),
                "0" | "1" | "\"0\"" | "\"1\"" | "1.0" | "0.0" | "true" | "false"
            )
        };
        if items.iter().all(is_verdict) {
            let attributed = items.iter().filter(|item| item["attributed"].to_string().contains(['1', 't'])).count();
            let answer = answer.ok();
            assert_eq!(answer["recalled"], attributed, "{id}");
            if let Some(value) = line["expect"]["legacy_shipped_value"].as_f64() {
                assert_eq!(bits(&answer["score"]), value.to_bits(), "{id}");
            }
            scored += 1;
        } else if answer.status == 200 {
            // A looser spelling that is read here, such as "yes" or a reason that is a number. Where Ragas reads it too, the
            // scores agree.
            if let Some(value) = line["expect"]["legacy_shipped_value"].as_f64() {
                assert_eq!(bits(&answer.ok()["score"]), value.to_bits(), "{id}");
            }
            scored += 1;
        } else {
            answer.problem(502, "judge_output_invalid");
            refused += 1;
        }
    }
    assert!(scored >= 130 && refused >= 10, "{scored} scored, {refused} refused");
}
