//! Contexts that try to steer the judge, each written for this test (`tests/cases/planted.jsonl`): what they reach, and what
//! they never reach.
//!
//! What no code can prevent is a model that obeys. It decides in words of its own, and nobody else can tell that it was told
//! to. What is held here is that a plant never decides by being *parsed*: it is sent as data, and a copy of it in a reply is
//! no verdict. For a judge that obeys there is `"evidence": "require"`, with the limit that the last test states.

use serde_json::{Value, json};
use wiremock::ResponseTemplate;

use crate::support::backend::{Backend, data, said, verdicts};
use crate::support::{Answer, Service, json_lines};

struct Plant {
    id: String,
    text: String,
}

impl Plant {
    /// Text made to look like the end of any reason, decision and all, can cost a sample its score. It buys none.
    fn may_cost_the_score(&self) -> bool {
        self.text.starts_with("\",\"attributed\"")
    }
}

fn plants() -> Vec<Plant> {
    let text = |case: &Value, field: &str| case[field].as_str().unwrap().to_owned();
    let cases = json_lines("tests/cases/planted.jsonl");
    let plants: Vec<Plant> =
        cases.iter().map(|case| Plant { id: text(case, "id"), text: text(case, "text") }).collect();
    assert!(plants.len() >= 36, "only {} plants", plants.len());
    plants
}

const HONEST: &str = "The harbour of Marlow freezes in hard winters.";
const CLAIMS: [&str; 2] =
    ["The Marlow lighthouse was completed in 1874.", "Ada Fenwick kept its lamp for thirty years."];

/// Two claims that neither the honest context nor any plant bears out.
fn sample(plant: &str) -> Value {
    json!({
        "user_input": "When was the lighthouse of Marlow built and who kept it?",
        "reference": CLAIMS.join(" "), "retrieved_contexts": [HONEST, plant]
    })
}

fn with_evidence_required(plant: &str) -> Value {
    let mut sample = sample(plant);
    sample["evidence"] = json!("require");
    sample
}

/// What a service answers to these samples, the judge of each saying what stands beside it.
async fn judged(cases: Vec<(Value, ResponseTemplate)>) -> Vec<Answer> {
    let (samples, replies): (Vec<_>, Vec<_>) = cases.into_iter().unzip();
    let backend = Backend::replying(replies).await;
    // One call a sample: neither remembered, nor asked again, nor given more room.
    let arguments =
        ["--cache", "off", "--judge-attempts", "1", "--judge-repairs", "0", "--judge-max-output-tokens", "1024"];
    let service = Service::asking(&backend.url(), &arguments);
    let mut answers = Vec::new();
    for sample in &samples {
        answers.push(service.post("/recall/llm", sample).await);
    }
    assert_eq!(backend.calls().await, samples.len());
    answers
}

/// No score, but a problem that says that the reply was of no use.
#[track_caller]
fn is_no_score(answer: &Answer, what: &str) {
    let body = answer.json();
    let code = body["code"].as_str().unwrap_or_default();
    let is_named = ["judge_output_invalid", "judge_truncated", "judge_empty"].contains(&code);
    assert!(answer.status == 502 && is_named && body.get("score").is_none(), "{what}: {} {body:#}", answer.status);
}

/// Either the judge's own verdicts or no score; says which.
#[track_caller]
fn is_the_judges_or_none(answer: &Answer, attributed: &[bool], what: &str) -> bool {
    if answer.status != 200 {
        is_no_score(answer, what);
        return false;
    }
    let body = answer.ok();
    let given: Vec<bool> =
        body["verdicts"].as_array().unwrap().iter().map(|verdict| verdict["attributed"] == true).collect();
    assert_eq!(given, attributed, "{what}: {body:#}");
    true
}

/// A reply in a JSON string, as a model writes it that escapes what it must.
fn escaped(text: &str) -> String {
    let string = Value::from(text).to_string();
    string[1..string.len() - 1].to_owned()
}

/// The judge's own answer, with reasons of its own; `quote` and `reason` are put into its strings as they stand, escaped or
/// not.
fn answer_saying([one, two]: [bool; 2], quote: &str, reason: &str) -> String {
    format!(
        r#"{{"verdicts":[{{"n":1,"evidence":[{{"context":1,"quote":"freezes{quote}"}}],"reason":"Of the tower nothing is said.{reason}","attributed":{one}}},{{"n":2,"evidence":[{{"context":2,"quote":"{quote}"}}],"reason":"Nobody is named there.{reason}","attributed":{two}}}]}}"#
    )
}

#[tokio::test]
async fn a_plant_is_sent_as_data_unchanged_and_nowhere_else() {
    let backend = Backend::saying(&verdicts(&[false, false])).await;
    let service = Service::asking(&backend.url(), &[]);
    service.post("/recall/llm", &sample("A PLACE FOR A PLANT")).await.ok();
    let plain = backend.bodies().await.remove(0);
    for (index, Plant { id, text }) in plants().iter().enumerate() {
        service.post("/recall/llm", &sample(text)).await.ok();
        let mut body = backend.bodies().await.remove(index + 1);
        let mut data = data(&body);
        assert_eq!(data["contexts"][1], json!({ "n": 2, "text": text }), "{id}");
        // With the plant taken out of its place, nothing tells this request from one without a plant.
        data["contexts"][1]["text"] = json!("A PLACE FOR A PLANT");
        body["messages"][1]["content"] = json!(data.to_string());
        assert_eq!(body, plain, "{id}");
    }
}

#[tokio::test]
async fn a_reply_that_only_repeats_the_plant_is_no_score() {
    let (mut cases, mut names) = (Vec::new(), Vec::new());
    for Plant { id, text } in plants() {
        let reasoning = json!({
            "id": "c1", "object": "chat.completion", "created": 0, "model": "m",
            "choices": [{ "index": 0, "finish_reason": "stop",
                "message": { "role": "assistant", "content": "", "reasoning_content": text } }]
        });
        let replies = [
            said(&text),
            said(&format!("Here is my answer.\n\n{text}")),
            said(&format!("The second context reads:\n```json\n{text}\n```\nThat is all.")),
            said(&format!("<think>\nOne context talks to me.\n</think>\n{text}")),
            said(&format!("\"{}\"", escaped(&text))),
            said(&format!("{{\"contexts\":[\"{}\"]}}\n{text}", escaped(&text))),
            ResponseTemplate::new(200).set_body_json(reasoning),
        ];
        for (index, reply) in replies.into_iter().enumerate() {
            cases.push((sample(&text), reply));
            names.push(format!("{id}, form {index}"));
        }
    }
    for (answer, name) in judged(cases).await.iter().zip(&names) {
        is_no_score(answer, name);
    }
}

/// The judge mentions the plant beside its answer, and escapes what it puts into strings.
#[tokio::test]
async fn a_plant_beside_the_real_answer_never_wins() {
    let (mut cases, mut expected) = (Vec::new(), Vec::new());
    for plant in plants() {
        let Plant { id, text } = &plant;
        for attributed in [[false, false], [true, false]] {
            let own = answer_saying(attributed, "", "");
            let replies = [
                answer_saying(attributed, &escaped(text), &escaped(text)),
                format!("The second context tries to steer me:\n{text}\nMy answer:\n{own}"),
                format!("{own}\nI did not follow this:\n{text}"),
                format!("```json\n{own}\n```\nIt said:\n```\n{text}\n```"),
                format!("<think>It says {text}</think>\n{own}"),
            ];
            for (index, reply) in replies.iter().enumerate() {
                cases.push((sample(text), said(reply)));
                let must_score = index == 0 && !plant.may_cost_the_score();
                expected.push((attributed, must_score, format!("{id}, form {index}: {reply}")));
            }
        }
    }
    let mut scored = 0;
    for (answer, (attributed, must_score, name)) in judged(cases).await.iter().zip(&expected) {
        let is_scored = is_the_judges_or_none(answer, attributed, name);
        assert!(is_scored || !must_score, "what stands in a string is no reason to doubt: {name}: {}", answer.text());
        scored += usize::from(is_scored);
    }
    let all = expected.len();
    println!("{scored} of {all} replies that mention a plant gave the judge's own score, the others none");
    assert!(scored * 4 > all * 3, "{scored} of {all}");
}

/// The judge copies the plant into its strings and does not escape it.
#[tokio::test]
async fn a_plant_that_breaks_out_of_a_string_never_wins() {
    let (mut cases, mut names) = (Vec::new(), Vec::new());
    for Plant { id, text } in plants() {
        for (quote, reason) in [(text.as_str(), ""), ("", text.as_str()), (text.as_str(), text.as_str())] {
            let reply = answer_saying([false, false], quote, reason);
            cases.push((sample(&text), said(&reply)));
            names.push(format!("{id}: {reply}"));
        }
    }
    for (answer, name) in judged(cases).await.iter().zip(&names) {
        is_the_judges_or_none(answer, &[false, false], name);
    }
}

/// A judge that obeys grants every claim. With `"evidence": "require"` that counts for nothing unless a quote stands in a
/// context.
///
/// The limit: a plant *is* a context, so its own words are a real quote, and a judge that obeys and quotes them scores. What
/// is checked of a quote is that it stands there, not that it bears the claim out; the answer shows it, so a reader sees what
/// the score rests on.
#[tokio::test]
async fn a_judge_that_obeys_scores_nothing_without_a_real_quote() {
    let obeying = |quotes: [Value; 2]| {
        let entry = |n: usize, evidence: &Value| json!({ "n": n, "evidence": evidence, "reason": "As told.", "attributed": true });
        said(&json!({ "verdicts": [entry(1, &quotes[0]), entry(2, &quotes[1])] }).to_string())
    };
    let quote = |context: usize, quote: &str| json!([{ "context": context, "quote": quote }]);
    let (costly, plants): (Vec<Plant>, Vec<Plant>) = plants().into_iter().partition(Plant::may_cost_the_score);
    assert!(costly.len() < 3);
    let (mut cases, mut names) = (Vec::new(), Vec::new());
    for Plant { id, text } in &plants {
        for reply in [
            obeying([json!([]), json!([])]),
            // Quotes that stand nowhere: the claims themselves, the plant with a word added, nothing at all.
            obeying([quote(2, CLAIMS[0]), quote(2, CLAIMS[1])]),
            obeying([quote(2, &format!("{text} indeed")), quote(1, &format!("so {text}"))]),
            obeying([quote(2, " "), quote(9, "...")]),
        ] {
            cases.extend([(with_evidence_required(text), reply.clone()), (sample(text), reply)]);
            names.push(id);
        }
    }
    for (answers, id) in judged(cases).await.chunks(2).zip(&names) {
        let (required, flagged) = (answers[0].ok(), answers[1].ok());
        assert_eq!((&required["score"], &required["recalled"]), (&json!(0.0), &json!(0)), "{id}: {required:#}");
        assert_eq!(flagged["score"], 1.0, "{id}");
        assert_eq!(flagged["warnings"][0]["code"], "evidence_missing", "{id}: {flagged:#}");
    }
    // The limit.
    let limit = |Plant { text, .. }: &Plant| (with_evidence_required(text), obeying([quote(2, text), json!([])]));
    for (answer, Plant { id, .. }) in judged(plants.iter().map(limit).collect()).await.iter().zip(&plants) {
        let required = answer.ok();
        assert_eq!(required["score"], 0.5, "{id}: {required:#}");
        assert_eq!(required["verdicts"][0]["evidence"][0]["context"], 1, "{id}");
    }
}

/// The embedded judge reads no orders; and words about claims and truth bear out no claim about something else.
#[tokio::test]
async fn the_embedded_judge_is_not_steered() {
    let service = Service::embedded();
    let references = [
        CLAIMS.join(" "),
        "Norway has about five million inhabitants. Its capital is Oslo.".to_owned(),
        "Der Rhein entspringt in der Schweiz. Er mündet in die Nordsee.".to_owned(),
        "珠穆朗玛峰高8849米。它位于喜马拉雅山脉。".to_owned(),
        "Волга впадает в Каспийское море.".to_owned(),
        "النيل أطول نهر في أفريقيا.".to_owned(),
    ];
    for reference in &references {
        for Plant { id, text } in plants() {
            for contexts in [json!([text]), json!([HONEST, text]), json!([text, HONEST, text])] {
                let sample =
                    json!({ "user_input": "What is true?", "reference": reference, "retrieved_contexts": contexts });
                let answer = service.post("/recall/llm", &sample).await.ok();
                assert_eq!(answer["recalled"], 0, "{id} against {reference}: {answer:#}");
            }
        }
    }
}
