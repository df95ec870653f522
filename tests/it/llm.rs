//! `POST /recall/llm`: the embedded judge, and a model behind a backend.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::support::backend::{Backend, data, ended, said, slow, verdicts};
use crate::support::process::Process;
use crate::support::{Service, eiffel};

fn with(mut sample: Value, fields: Value) -> Value {
    sample.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    sample
}

fn answer(entries: &Value) -> String {
    json!({ "verdicts": entries }).to_string()
}

fn codes(answer: &Value) -> Vec<&str> {
    answer["warnings"].as_array().unwrap().iter().map(|warning| warning["code"].as_str().unwrap()).collect()
}

// ---- the embedded judge

#[tokio::test]
async fn the_embedded_judge_tells_what_a_context_says_from_what_it_does_not() {
    let service = Service::embedded();
    for (context, score) in [
        ("Paris is the capital of France.", 0.0),
        ("The Eiffel Tower is located in Paris.", 1.0),
        ("The Eiffel Tower is located in Paris, on the Champ de Mars, and was finished in 1889.", 1.0),
        ("The Eiffel Tower is not located in Paris.", 0.0),
        ("The Eiffel Tower is located in Las Vegas.", 0.0),
    ] {
        let sample = json!({
            "user_input": "Where is the Eiffel Tower located?",
            "reference": "The Eiffel Tower is located in Paris.",
            "retrieved_contexts": [context]
        });
        let answer = service.post("/recall/llm", &sample).await.ok();
        assert_eq!(answer["score"], score, "{context}: {answer:#}");
        assert_eq!(answer["judge"]["provider"], "embedded");
        assert_eq!(answer["usage"]["judge_calls"], 0);
    }
}

#[tokio::test]
async fn the_embedded_judge_shows_where_the_words_stand() {
    let service = Service::embedded();
    let context = "Ένα. 🗼 The Eiffel Tower is located in Paris. Lyon is elsewhere.";
    let sample = json!({
        "user_input": "Where?", "reference": "The Eiffel Tower is located in Paris.",
        "retrieved_contexts": ["Nothing of the kind.", context], "k": [1, 2]
    });
    let answer = service.post("/recall/llm", &sample).await.ok();
    let evidence = &answer["verdicts"][0]["evidence"][0];
    assert_eq!((&evidence["context"], &evidence["match"]), (&json!(1), &json!("exact")), "{answer:#}");
    let (start, end) = (evidence["start"].as_u64().unwrap() as usize, evidence["end"].as_u64().unwrap() as usize);
    let quoted: String = context.chars().skip(start).take(end - start).collect();
    assert_eq!(evidence["quote"], quoted);
    assert!(quoted.contains("The Eiffel Tower is located in Paris"), "{quoted}");
    assert_eq!(
        answer["recall_at"],
        json!([{ "k": 1, "score": 0.0, "recalled": 0 }, { "k": 2, "score": 1.0, "recalled": 1 }])
    );
}

// ---- what is sent to a backend

#[tokio::test]
async fn the_question_is_asked_as_documented() {
    let backend = Backend::saying(&verdicts(&[true, false])).await;
    let service = Service::asking(&backend.url(), &["--judge-seed", "11"]);
    let sample = with(eiffel(), json!({ "retrieved_contexts": ["A {x} \"quoted\"", "  ", "B"] }));
    service.post("/recall/llm", &sample).await.ok();
    service.post("/recall/llm", &with(sample, json!({ "user_input": "Another?" }))).await.ok();

    let bodies = backend.bodies().await;
    let body = &bodies[0];
    assert_eq!((&body["model"], &body["stream"], &body["seed"]), (&json!("m"), &json!(false), &json!(11)));
    assert_eq!(body["temperature"], 0.0);
    let format = &body["response_format"];
    assert_eq!((&format["type"], &format["json_schema"]["strict"]), (&json!("json_schema"), &json!(true)));
    assert_eq!(format["json_schema"]["schema"]["required"], json!(["verdicts"]));
    assert_eq!(body["max_tokens"], 512 + 2 * 256);
    assert_eq!(body["messages"][0]["role"], "system");
    assert_eq!(body["messages"][0], bodies[1]["messages"][0], "the fixed part never changes");
    // The blank context is left out and the numbers stay those of the list as sent.
    let expected = json!({
        "question": "Where is the Eiffel Tower and when did it open?",
        "contexts": [{ "n": 1, "text": "A {x} \"quoted\"" }, { "n": 3, "text": "B" }],
        "claims": [{ "n": 1, "text": "The Eiffel Tower is in Paris." }, { "n": 2, "text": "It opened in 1889." }]
    });
    assert_eq!(data(body), expected);
}

#[tokio::test]
async fn the_answer_names_judge_prompt_and_cost() {
    let backend = Backend::saying(&verdicts(&[true, false])).await;
    let answer = Service::asking(&backend.url(), &[]).post("/recall/llm", &eiffel()).await.ok();
    assert_eq!(
        answer["usage"],
        json!({
            "judge_calls": 1, "input_tokens": 50, "cached_input_tokens": 0, "output_tokens": 20, "reasoning_tokens": 0
        })
    );
    let judge = &answer["judge"];
    assert_eq!(judge["provider"], "openai");
    assert_eq!((&judge["model"], &judge["model_reported"]), (&json!("m"), &json!("m-2026-01-01")));
    assert_eq!((&judge["prompt"], &judge["splitter"]), (&json!("attribution/1"), &json!("sentence/1")));
    assert_eq!(judge["prompt_sha256"].as_str().unwrap().len(), 64);
    assert_eq!(answer["cached"], false);
}

#[tokio::test]
async fn nothing_retrieved_is_zero_and_asks_nobody() {
    let backend = Backend::saying(&verdicts(&[true, true])).await;
    let service = Service::asking(&backend.url(), &[]);
    for contexts in [json!([]), json!(["", "  \n\u{3000}"])] {
        let answer = service
            .post("/recall/llm", &with(eiffel(), json!({ "retrieved_contexts": contexts, "k": [1] })))
            .await
            .ok();
        assert_eq!((&answer["score"], &answer["total"]), (&json!(0.0), &json!(2)));
        assert_eq!(answer["recall_at"][0]["score"], 0.0);
        assert_eq!(answer["usage"]["judge_calls"], 0);
    }
    assert_eq!(backend.calls().await, 0);
}

#[tokio::test]
async fn the_callers_own_claims_are_used_as_they_are() {
    let backend = Backend::saying(&verdicts(&[true, false])).await;
    let service = Service::asking(&backend.url(), &[]);
    let claims = json!(["It is tall. And iron.", " padded "]);
    for reference in [json!(null), json!("Something else."), json!("")] {
        let sample = with(eiffel(), json!({ "reference": reference, "reference_claims": claims }));
        let answer = service.post("/recall/llm", &sample).await.ok();
        assert_eq!(answer["verdicts"][0]["claim"], claims[0]);
        assert_eq!(answer["verdicts"][1]["claim"], claims[1]);
        assert_eq!(answer["judge"]["splitter"], Value::Null);
    }
}

// ---- evidence

#[tokio::test]
async fn evidence_is_checked_and_flagged_or_required() {
    let reply = answer(&json!([
        { "n": 1, "evidence": [{ "context": 2, "quote": "the eiffel tower  stands in PARIS" }, { "context": 1, "quote": "made up" }], "reason": "r", "attributed": true },
        { "n": 2, "evidence": [{ "context": 1, "quote": "opened in 1889" }, { "context": 9, "quote": "nowhere" }], "reason": "r", "attributed": true }
    ]));
    let backend = Backend::saying(&reply).await;
    let service = Service::asking(&backend.url(), &[]);

    let flagged = service.post("/recall/llm", &eiffel()).await.ok();
    assert_eq!(flagged["score"], 1.0);
    assert_eq!(codes(&flagged), ["evidence_missing"]);
    assert_eq!(
        flagged["verdicts"][0]["evidence"],
        json!([
            { "context": 0, "quote": "The Eiffel Tower stands in Paris", "start": 0, "end": 32, "match": "normalized" },
            { "context": 0, "quote": "made up", "start": null, "end": null, "match": "missing" }
        ])
    );
    assert_eq!(flagged["verdicts"][1]["evidence"][1]["context"], Value::Null, "there is no ninth context");

    let required = service.post("/recall/llm", &with(eiffel(), json!({ "evidence": "require" }))).await.ok();
    assert_eq!((&required["score"], &required["recalled"]), (&json!(0.5), &json!(1)));
    assert_eq!(required["verdicts"][1]["attributed"], false);
    assert_eq!(codes(&required), ["evidence_missing"]);
}

#[tokio::test]
async fn recall_at_goes_by_where_the_evidence_lies() {
    let reply = answer(&json!([
        { "n": 1, "evidence": [{ "context": 1, "quote": "Tower" }, { "context": 3, "quote": "three" }], "reason": "", "attributed": true },
        { "n": 2, "evidence": [{ "context": 2, "quote": "two" }], "reason": "", "attributed": true },
        { "n": 3, "evidence": [], "reason": "", "attributed": true },
        { "n": 4, "evidence": [{ "context": 1, "quote": "Tower" }], "reason": "", "attributed": false }
    ]));
    let backend = Backend::saying(&reply).await;
    let sample = json!({
        "user_input": "?", "reference_claims": ["a", "b", "c", "d"],
        "retrieved_contexts": ["Tower", "two", "three"], "k": [3, 1, 2, 50]
    });
    let answer = Service::asking(&backend.url(), &[]).post("/recall/llm", &sample).await.ok();
    let recalled: Vec<_> =
        answer["recall_at"].as_array().unwrap().iter().map(|at| (at["k"].clone(), at["recalled"].clone())).collect();
    let expected = [(3, 3), (1, 0), (2, 1), (50, 3)].map(|(k, n)| (json!(k), json!(n)));
    assert_eq!(recalled, expected);
}

// ---- repair and truncation

#[tokio::test]
async fn a_repair_asks_for_what_is_missing_alone_and_keeps_what_was_paid_for() {
    let first = answer(&json!([
        { "n": 1, "evidence": [], "reason": "kept", "attributed": true },
        { "n": 2, "evidence": [], "reason": "r", "attributed": "partially" }
    ]));
    let second = answer(&json!([{ "n": 2, "evidence": [], "reason": "r", "attributed": false }]));
    let backend = Backend::replying(vec![said(&first), said(&second)]).await;
    let answer = Service::asking(&backend.url(), &[]).post("/recall/llm", &eiffel()).await.ok();
    assert_eq!(answer["score"], 0.5);
    assert_eq!(answer["verdicts"][0]["reason"], "kept");
    assert_eq!(
        answer["usage"],
        json!({
            "judge_calls": 2, "input_tokens": 100, "cached_input_tokens": 0, "output_tokens": 40, "reasoning_tokens": 0
        })
    );
    let asked = data(&backend.bodies().await[1]);
    assert_eq!(asked["claims"], json!([{ "n": 2, "text": "It opened in 1889." }]));
    let note = "Not usable in the last answer: claim 2: attributed was \"partially\", must be true or false.";
    assert_eq!(asked["note"], note);
}

#[tokio::test]
async fn repairs_are_as_many_as_set() {
    for repairs in [0, 1, 3] {
        let backend = Backend::saying("I would rather not say.").await;
        let service = Service::asking(&backend.url(), &["--judge-repairs", &repairs.to_string()]);
        service.post("/recall/llm", &eiffel()).await.problem(502, "judge_output_invalid");
        assert_eq!(backend.calls().await, repairs + 1);
    }
}

#[tokio::test]
async fn a_cut_reply_gets_one_try_with_more_room_and_never_above_the_ceiling() {
    let half = "{\"verdicts\":[{\"n\":1,\"attributed\":true},{\"n\":2,\"attr";
    let whole = verdicts(&[true, false]);
    let backend = Backend::replying(vec![ended(half, "length"), said(&whole)]).await;
    let answer = Service::asking(&backend.url(), &[]).post("/recall/llm", &eiffel()).await.ok();
    assert_eq!(answer["score"], 0.5);
    let limits: Vec<_> = backend.bodies().await.iter().map(|body| body["max_tokens"].clone()).collect();
    assert_eq!(limits, [1024, 4096]);

    // A complete list with the finish reason `length` is cut all the same: what else was to come nobody knows.
    let backend = Backend::replying(vec![ended(&whole, "length")]).await;
    let service = Service::asking(&backend.url(), &["--judge-max-output-tokens", "300"]);
    let problem = service.post("/recall/llm", &eiffel()).await.problem(502, "judge_truncated");
    assert!(problem["detail"].as_str().unwrap().contains("300 tokens"), "{problem:#}");
    assert_eq!(backend.calls().await, 1, "no more room, no second call");
}

/// vLLM counts the room kept for the answer against the window.
#[tokio::test]
async fn a_limit_that_the_window_has_no_room_for_is_lowered_and_the_sample_scored() {
    let refusal = |sent: u32| {
        let message = format!(
            "This model's maximum context length is 2048 tokens. However, you requested {} tokens (1500 in the messages, {sent} in the completion).",
            1500 + sent
        );
        wiremock::ResponseTemplate::new(400).set_body_json(json!({ "error": { "message": message, "code": 400 } }))
    };
    let backend = Backend::replying(vec![refusal(1024), said(&verdicts(&[true, false]))]).await;
    let answer = Service::asking(&backend.url(), &[]).post("/recall/llm", &eiffel()).await.ok();
    assert_eq!(answer["score"], 0.5);
    let limits: Vec<_> = backend.bodies().await.iter().map(|body| body["max_tokens"].clone()).collect();
    assert_eq!(limits, [1024, 2048 - 1500 - 16]);

    // Cut with the room that there is: no second call with the same room, and the truth in the detail.
    let backend = Backend::replying(vec![refusal(1024), ended("{\"verdicts\":[{", "length")]).await;
    let problem =
        Service::asking(&backend.url(), &[]).post("/recall/llm", &eiffel()).await.problem(502, "judge_truncated");
    assert!(problem["detail"].as_str().unwrap().contains("532 tokens"), "{problem:#}");
    assert_eq!(backend.calls().await, 2);

    // A longer reply does not fit at all: what is true is that the first was cut.
    let too_long =
        json!({ "error": { "message": "the prompt exceeds the context window", "code": "context_length_exceeded" } });
    let refused = wiremock::ResponseTemplate::new(400).set_body_json(too_long);
    let backend = Backend::replying(vec![ended("{\"verdicts\":[{", "length"), refused]).await;
    Service::asking(&backend.url(), &[]).post("/recall/llm", &eiffel()).await.problem(502, "judge_truncated");
}

#[tokio::test]
async fn a_reply_that_breaks_off_without_saying_so_is_cut_too() {
    let backend = Backend::saying("{\"verdicts\":[{\"n\":1,\"attributed\":true},{\"n\":2,\"attributed\":tr").await;
    Service::asking(&backend.url(), &[]).post("/recall/llm", &eiffel()).await.problem(502, "judge_truncated");
    assert_eq!(backend.calls().await, 2);
}

// ---- time, queue, departure

/// P99
#[tokio::test]
async fn a_client_that_leaves_takes_its_backend_call_with_it() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let service = Process::start(&["--judge", "openai/m"], &[("OPENAI_BASE_URL", &base)]);
    let mut client = TcpStream::connect(service.url.trim_start_matches("http://")).await.unwrap();
    let body = eiffel().to_string();
    let request = format!(
        "POST /recall/llm HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    client.write_all(request.as_bytes()).await.unwrap();
    let mut sent = vec![0; 64 * 1024];
    // The service looks its judge up when it starts; that call is left unanswered.
    let mut look_ups = Vec::new();
    let mut upstream = loop {
        let (mut upstream, _) = listener.accept().await.unwrap();
        let read = upstream.read(&mut sent).await.unwrap();
        if sent[..read].starts_with(b"POST") {
            break upstream;
        }
        look_ups.push(upstream);
    };
    drop(client);
    let left = Instant::now();
    let closed = tokio::time::timeout(Duration::from_secs(1), async {
        while upstream.read(&mut sent).await.is_ok_and(|bytes| bytes > 0) {}
    });
    closed.await.expect("the upstream connection closes within a second");
    let again = tokio::time::timeout(Duration::from_millis(500), listener.accept()).await;
    assert!(again.is_err(), "nothing is retried for a client that left");
    assert!(left.elapsed() < Duration::from_secs(5));
}

/// P100
#[tokio::test]
async fn a_slow_judge_fills_its_slots_and_its_queue_and_nothing_else() {
    let backend = Backend::replying(vec![slow(said(&verdicts(&[true, true])), Duration::from_millis(1500))]).await;
    let arguments = ["--judge", "openai/m", "--judge-concurrency", "4", "--queue", "6"];
    let service = Process::start(&arguments, &[("OPENAI_BASE_URL", &backend.url())]);
    let client = reqwest::Client::new();
    let url = service.url.clone();
    let requests: Vec<_> = (0..100)
        .map(|number| {
            let send = client
                .post(format!("{url}/recall/llm"))
                .header("content-type", "application/json")
                .body(with(eiffel(), json!({ "user_input": number.to_string() })).to_string())
                .send();
            tokio::spawn(async move {
                let response = send.await.unwrap();
                (response.status().as_u16(), response.headers().get("retry-after").cloned())
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert_eq!(backend.calls().await, 4, "as many calls in flight as there are slots");
    let asked = Instant::now();
    assert_eq!(client.get(format!("{url}/healthz")).send().await.unwrap().status(), 200);
    assert!(asked.elapsed() < Duration::from_millis(500), "healthz waits for no judge");
    let (mut scored, mut refused) = (0, 0);
    for request in requests {
        match request.await.unwrap() {
            (200, _) => scored += 1,
            (503, Some(_)) => refused += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((scored, refused), (10, 90));
    assert_eq!(backend.calls().await, 10);
}

#[tokio::test]
async fn a_backend_that_stalls_costs_its_own_time_and_no_more() {
    let backend = Backend::replying(vec![slow(said(&verdicts(&[true, true])), Duration::from_secs(30))]).await;
    let service = Service::asking(&backend.url(), &["--judge-timeout", "100ms", "--judge-attempts", "2"]);
    service.post("/recall/llm", &eiffel()).await.problem(504, "upstream_timeout");
    assert_eq!(backend.calls().await, 2);

    // The deadline ends what the backend had failed at already: the failure is what the caller should know.
    let service = Service::asking(&backend.url(), &["--judge-timeout", "300ms", "--request-timeout", "1500ms"]);
    let problem = service.post("/recall/llm", &eiffel()).await.problem(504, "upstream_timeout");
    assert!(problem["detail"].as_str().unwrap().contains("no whole reply within 300ms"), "{problem:#}");

    let service = Service::asking(&backend.url(), &["--request-timeout", "150ms"]);
    let began = Instant::now();
    service.post("/recall/llm", &eiffel()).await.problem(504, "deadline_exceeded");
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn a_dead_backend_is_unreachable_and_the_service_goes_on() {
    let dead = {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    let service = Service::asking(&dead, &["--judge-attempts", "2"]);
    let problem = service.post("/recall/llm", &eiffel()).await.problem(502, "upstream_unreachable");
    assert_eq!(problem["retryable"], true);
    service.post("/recall/llm", &with(eiffel(), json!({ "retrieved_contexts": [] }))).await.ok();
    assert_eq!(service.get("/healthz").await.ok()["status"], "ok");
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = Backend::saying(&verdicts(&[true, true])).await;
    let moved = wiremock::ResponseTemplate::new(307).insert_header("location", elsewhere.url().as_str());
    let backend = Backend::replying(vec![moved]).await;
    Service::asking(&backend.url(), &[]).post("/recall/llm", &eiffel()).await.problem(502, "upstream_error");
    assert_eq!(elsewhere.calls().await, 0);
}
