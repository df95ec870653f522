//! The memory of verdicts, through the front door: what is asked once, what is asked again, and what it says it cost.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;
use wiremock::ResponseTemplate;

use crate::support::backend::{Backend, data, ended, said, slow, verdicts};
use crate::support::redis::Redis;
use crate::support::{Answer, Service, eiffel};

const PATH: &str = "/recall/llm";

fn with(mut sample: Value, fields: Value) -> Value {
    sample.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    sample
}

fn nothing() -> Value {
    json!({ "judge_calls": 0, "input_tokens": 0, "cached_input_tokens": 0, "output_tokens": 0, "reasoning_tokens": 0 })
}

/// An answer without what memory may change in it.
fn without_cost(mut answer: Value) -> Value {
    answer.as_object_mut().unwrap().retain(|name, _| !matches!(name.as_str(), "usage" | "cached"));
    answer
}

/// A model that says of every claim what its words decide, with a quote of the first context.
async fn deciding() -> Backend {
    Backend::answering(|body| {
        let asked = data(body);
        let context = &asked["contexts"][0];
        let entries: Vec<Value> = asked["claims"]
            .as_array()
            .unwrap()
            .iter()
            .map(|claim| {
                let quote: String = context["text"].as_str().unwrap().chars().take(9).collect();
                json!({
                    "n": claim["n"], "evidence": [{ "context": context["n"], "quote": quote }],
                    "reason": format!("r {}", claim["text"]), "attributed": claim["text"].as_str().unwrap().len() % 2 == 0
                })
            })
            .collect();
        said(&json!({ "verdicts": entries }).to_string())
    })
    .await
}

// ---- remembered

#[tokio::test]
async fn what_was_decided_is_not_asked_again_in_any_memory() {
    let folder = tempfile::tempdir().unwrap();
    let redis = Redis::start("what_was_decided_is_not_asked_again_in_any_memory", None);
    let mut memories = vec!["memory".to_owned(), format!("file:{}", folder.path().join("memory").display())];
    memories.extend(redis.as_ref().map(Redis::url));
    for memory in memories {
        let backend = deciding().await;
        let service = Service::asking(&backend.url(), &["--cache", &memory]);
        let first = service.post(PATH, &eiffel()).await.ok();
        let second = service.post(PATH, &eiffel()).await.ok();
        assert_eq!((&first["cached"], &second["cached"]), (&json!(false), &json!(true)), "{memory}");
        assert_eq!((&first["usage"]["judge_calls"], &second["usage"]), (&json!(1), &nothing()), "{memory}");
        assert_eq!(without_cost(first), without_cost(second), "{memory}");
        assert_eq!(backend.calls().await, 1, "{memory}");
        let kind = service.get("/info").await.ok()["cache"].take();
        assert_eq!(kind, memory.split(':').next().unwrap());
        service.app.close().await;
    }
    let backend = deciding().await;
    let service = Service::asking(&backend.url(), &["--cache", "off"]);
    for _ in 0..2 {
        assert_eq!(service.post(PATH, &eiffel()).await.ok()["cached"], false);
    }
    assert_eq!((backend.calls().await, &service.get("/info").await.ok()["cache"]), (2, &json!("off")));
}

#[tokio::test]
async fn every_change_of_what_is_asked_asks_again_and_no_other() {
    let backend = deciding().await;
    let service = Service::asking(&backend.url(), &[]);
    let contexts = ["The Eiffel Tower stands in Paris, France.", "Lyon is a city."];
    let claims = ["The Eiffel Tower is in Paris.", "It opened in 1889."];
    service.post(PATH, &eiffel()).await.ok();
    let mut calls = 1;
    for (change, asks) in [
        (json!({ "user_input": "Where is the Eiffel Tower?" }), true),
        (json!({ "retrieved_contexts": [contexts[1], contexts[0]] }), true),
        (json!({ "retrieved_contexts": [contexts[0]] }), true),
        (json!({ "retrieved_contexts": [contexts[0], contexts[1], ""] }), true),
        (json!({ "retrieved_contexts": [contexts[0], "Lyon is a city!"] }), true),
        (json!({ "reference": "The Eiffel Tower is in Paris." }), true),
        (json!({ "reference_claims": [claims[1], claims[0]] }), true),
        (json!({ "votes": 3 }), true),
        // The same claims, however they come.
        (json!({ "reference_claims": claims }), false),
        (json!({ "reference": "The Eiffel Tower is in Paris.  It opened in 1889." }), false),
        // What is done with the verdicts afterwards.
        (json!({ "id": 7 }), false),
        (json!({ "k": [1, 2] }), false),
        (json!({ "evidence": "require" }), false),
        (json!({ "votes": 1, "split": "sentence" }), false),
        (json!({ "metadata": { "run": 2 } }), false),
    ] {
        let sample = with(eiffel(), change.clone());
        let answer = service.post(PATH, &sample).await.ok();
        let asked = backend.calls().await - calls;
        assert_eq!((asked > 0, &answer["cached"]), (asks, &json!(!asks)), "{change}");
        assert_eq!(answer["usage"]["judge_calls"], asked, "{change}");
        calls += asked;
        let again = service.post(PATH, &sample).await.ok();
        assert_eq!((&again["cached"], backend.calls().await), (&json!(true), calls), "{change}");
        assert_eq!(without_cost(again), without_cost(answer), "{change}");
    }
}

/// P57 and its siblings: settings that change what a model says.
#[tokio::test]
async fn p57_a_file_is_no_answer_for_another_model_or_seed_or_server() {
    let folder = tempfile::tempdir().unwrap();
    let memory = format!("file:{}", folder.path().join("memory").display());
    let case =
        crate::support::json_lines("tests/cases/field.jsonl").into_iter().find(|case| case["id"] == "P57").unwrap();
    let (backend, elsewhere) = (deciding().await, deciding().await);
    let ask = async |url: &str, arguments: &[&str]| {
        let arguments: Vec<&str> = ["--cache", memory.as_str()].iter().chain(arguments).copied().collect();
        let key = ("OPENAI_API_KEY", crate::support::KEY);
        let service = Service::with(&arguments, &[("OPENAI_BASE_URL", url), key]);
        let answer = service.post(PATH, &case["input"]).await.ok();
        service.app.close().await;
        assert_eq!(answer["cached"] == false, answer["usage"]["judge_calls"] == 1, "{answer:#}");
        answer["cached"].as_bool().unwrap()
    };
    let (url, other) = (backend.url(), elsewhere.url());
    let a = ["--judge", "openai/model-a"];
    for (url, arguments, cached) in [
        (&url, vec![], false),
        (&url, vec![], true),
        (&url, vec!["--judge", "openai/model-b"], false),
        (&url, vec!["--judge-seed", "8"], false),
        (&url, vec!["--judge-context-window", "100000"], false),
        (&url, vec!["--judge-max-output-tokens", "9000"], false),
        (&other, vec![], false),
        // What decides whether there is an answer, and not which.
        (&url, vec!["--judge-repairs", "3", "--judge-attempts", "2", "--request-timeout", "10s"], true),
        (&url, vec!["--judge-concurrency", "3"], true),
    ] {
        let mut all = arguments.clone();
        if !arguments.contains(&"--judge") {
            all.extend(a);
        }
        assert_eq!(ask(url, &all).await, cached, "{all:?} at {url}");
    }
}

/// P59 and its siblings: only what is complete and valid is remembered.
#[tokio::test]
async fn p59_no_failure_is_remembered() {
    let good = said(&verdicts(&[true, false]));
    let refused = json!({ "choices": [{ "message": { "content": null, "refusal": "no" }, "finish_reason": "stop" }] });
    let failures = [
        (ResponseTemplate::new(500), "upstream_error"),
        (ResponseTemplate::new(401), "upstream_auth"),
        (ResponseTemplate::new(429).insert_header("retry-after", "3600"), "upstream_rate_limited"),
        (said("I would rather not say."), "judge_output_invalid"),
        (said(&verdicts(&[true])), "judge_output_invalid"),
        (said(""), "judge_empty"),
        (ended(&verdicts(&[true, true]), "length"), "judge_truncated"),
        (ended("", "content_filter"), "content_filtered"),
        (ResponseTemplate::new(200).set_body_json(refused), "judge_refused"),
    ];
    for (failure, code) in failures {
        let backend = Backend::replying(vec![failure, good.clone()]).await;
        let arguments = ["--judge-attempts", "1", "--judge-repairs", "0", "--judge-max-output-tokens", "900"];
        let service = Service::asking(&backend.url(), &arguments);
        let failed = service.post(PATH, &eiffel()).await;
        assert_eq!(failed.json()["code"], code, "{}", failed.text());
        if code == "upstream_rate_limited" {
            continue; // The gate is closed for an hour: nothing is asked at all.
        }
        for cached in [false, true] {
            let answer = service.post(PATH, &eiffel()).await.ok();
            assert_eq!((&answer["score"], &answer["cached"]), (&json!(0.5), &json!(cached)), "{code}");
        }
        assert_eq!(backend.calls().await, 2, "{code}");
    }
}

#[tokio::test]
async fn what_costs_nothing_is_not_remembered() {
    let service = Service::embedded();
    for _ in 0..2 {
        assert_eq!(service.post(PATH, &eiffel()).await.ok()["cached"], false);
    }
    let backend = deciding().await;
    let service = Service::asking(&backend.url(), &[]);
    for _ in 0..2 {
        let answer = service.post(PATH, &with(eiffel(), json!({ "retrieved_contexts": [" "] }))).await.ok();
        assert_eq!((&answer["cached"], &answer["usage"]), (&json!(false), &nothing()));
    }
    assert_eq!(backend.calls().await, 0);
}

#[tokio::test]
async fn votes_and_warnings_come_back_as_they_were() {
    let reasoning = ResponseTemplate::new(200).set_body_json(json!({ "model": "m-1", "choices": [{ "message": {
        "content": "", "reasoning_content": verdicts(&[true, false]) }, "finish_reason": "stop" }] }));
    let backend = Backend::replying(vec![reasoning, said(&verdicts(&[true, true]))]).await;
    let service = Service::asking(&backend.url(), &["--judge-concurrency", "1"]);
    let sample = with(eiffel(), json!({ "votes": 3 }));
    let first = service.post(PATH, &sample).await.ok();
    let second = service.post(PATH, &sample).await.ok();
    assert_eq!((&second["cached"], backend.calls().await), (&json!(true), 3));
    assert_eq!(second["verdicts"][1]["agreement"], 2.0 / 3.0);
    assert!(second["warnings"].as_array().unwrap().iter().any(|warning| warning["code"] == "answer_in_reasoning"));
    assert_eq!(without_cost(first), without_cost(second));
}

/// Two retrievers are held to the same claims, and the claims are paid for once.
#[tokio::test]
async fn an_atomic_cut_is_remembered_for_its_reference_alone() {
    let backend = Backend::answering(|body| {
        let asked = data(body);
        let Some(sentences) = asked["sentences"].as_array() else {
            let claims = asked["claims"].as_array().unwrap().len();
            return said(&verdicts(&vec![true; claims]));
        };
        let cuts: Vec<Value> =
            sentences.iter().map(|sentence| json!({ "n": sentence["n"], "claims": [sentence["text"]] })).collect();
        said(&json!({ "cuts": cuts }).to_string())
    })
    .await;
    let service = Service::asking(&backend.url(), &[]);
    let sample = with(eiffel(), json!({ "split": "atomic" }));
    let other = with(sample.clone(), json!({ "retrieved_contexts": ["Another retriever's."], "user_input": "?" }));
    let mut usages = Vec::new();
    for (sample, cached) in [(&sample, false), (&other, false), (&sample, true), (&other, true)] {
        let answer = service.post(PATH, sample).await.ok();
        assert_eq!((&answer["cached"], &answer["judge"]["splitter"]), (&json!(cached), &json!("atomic/1")));
        usages.push(answer["usage"]["judge_calls"].as_u64().unwrap());
    }
    assert_eq!((usages, backend.calls().await), (vec![2, 1, 0, 0], 3));
    let asked_anew = service.post_with(PATH, "no-cache", &sample).await.ok();
    assert_eq!((&asked_anew["cached"], &asked_anew["usage"]["judge_calls"]), (&json!(false), &json!(2)));
}

// ---- asked anew on request

#[tokio::test]
async fn cache_control_asks_anew() {
    let replies = [[true, true], [false, false], [true, false], [false, true]];
    let backend = Backend::replying(replies.iter().map(|reply| said(&verdicts(reply))).collect()).await;
    let service = Service::asking(&backend.url(), &[]);
    let told = async |cache_control: &str| {
        let answer = service.post_with(PATH, cache_control, &eiffel()).await.ok();
        let attributed = answer["verdicts"].as_array().unwrap().iter().map(|v| v["attributed"].as_bool().unwrap());
        (attributed.collect::<Vec<_>>(), answer["cached"].as_bool().unwrap())
    };
    assert_eq!(told("").await, (vec![true, true], false));
    assert_eq!(told("max-age=60").await, (vec![true, true], true));
    // Asked anew, and remembered in place of what was.
    assert_eq!(told("no-cache").await, (vec![false, false], false));
    assert_eq!(told("").await, (vec![false, false], true));
    assert_eq!(told(" Max-Age=0 , private").await, (vec![true, false], false));
    assert_eq!(told("").await, (vec![true, false], true));
    // Asked anew, and not remembered.
    assert_eq!(told("no-cache, no-store").await, (vec![false, true], false));
    assert_eq!(told("").await, (vec![true, false], true));
}

#[tokio::test]
async fn a_batch_is_remembered_and_asked_anew_like_its_samples() {
    let backend = deciding().await;
    let service = Service::asking(&backend.url(), &[]);
    let samples: Vec<Value> = (0..6).map(|n| with(eiffel(), json!({ "user_input": format!("{}", n % 3) }))).collect();
    let batch = json!({ "samples": samples });
    for (cache_control, calls, cached) in [("", 3, 0), ("", 0, 6), ("no-cache", 6, 0), ("", 0, 6), ("no-store", 6, 0)] {
        let before = backend.calls().await;
        let answer = service.post_with("/recall/llm/batch", cache_control, &batch).await.ok();
        assert_eq!(backend.calls().await - before, calls, "{cache_control}");
        assert_eq!(answer["summary"]["usage"]["judge_calls"], calls, "{cache_control}: the sum is what was spent");
        let results = answer["results"].as_array().unwrap();
        let from_memory = results.iter().filter(|item| item["result"]["cached"] == true).count();
        // Equal samples of one batch may have met in flight or in memory.
        assert!(from_memory >= cached && (cached > 0 || cache_control.is_empty() || from_memory == 0));
    }
    // One sample alone meets what a batch has decided.
    assert_eq!(service.post(PATH, &samples[0]).await.ok()["cached"], true);
}

// ---- asked together

fn calls(answers: &[Answer]) -> u64 {
    answers.iter().map(|answer| answer.json()["usage"]["judge_calls"].as_u64().unwrap_or_default()).sum()
}

#[tokio::test]
async fn equal_samples_at_once_are_one_call_and_one_bill() {
    let reply = slow(said(&verdicts(&[true, false])), Duration::from_millis(300));
    let backend = Backend::replying(vec![reply]).await;
    let service = Service::asking(&backend.url(), &[]);
    let sample = eiffel();
    let answers = join_all((0..50).map(|_| service.post(PATH, &sample))).await;
    for answer in &answers {
        assert_eq!((&answer.ok()["score"], &answer.ok()["cached"]), (&json!(0.5), &json!(false)));
    }
    assert_eq!((backend.calls().await, calls(&answers)), (1, 1));
    assert_eq!(service.post(PATH, &sample).await.ok()["cached"], true);
}

#[tokio::test]
async fn a_failure_is_everybodys_and_nobodys_after() {
    let failure = slow(ResponseTemplate::new(500), Duration::from_millis(300));
    let backend = Backend::replying(vec![failure, said(&verdicts(&[true, false]))]).await;
    let service = Service::asking(&backend.url(), &["--judge-attempts", "1"]);
    let sample = eiffel();
    let answers = join_all((0..20).map(|_| service.post(PATH, &sample))).await;
    answers.iter().for_each(|answer| drop(answer.problem(502, "upstream_error")));
    assert_eq!((backend.calls().await, calls(&answers)), (1, 1));
    assert_eq!(service.post(PATH, &sample).await.ok()["usage"]["judge_calls"], 1);
}

#[tokio::test]
async fn who_asks_anew_joins_nobody() {
    let reply = slow(said(&verdicts(&[true, false])), Duration::from_millis(300));
    let backend = Backend::replying(vec![reply]).await;
    let service = Service::asking(&backend.url(), &[]);
    let sample = eiffel();
    let (first, second, third) = tokio::join!(
        service.post(PATH, &sample),
        service.post_with(PATH, "no-cache", &sample),
        service.post_with(PATH, "no-store", &sample)
    );
    for answer in [first, second, third] {
        assert_eq!(answer.ok()["usage"]["judge_calls"], 1);
    }
    assert_eq!(backend.calls().await, 3);
}

#[tokio::test]
async fn the_first_may_leave_and_the_others_get_their_answer() {
    let backend = Backend::replying(vec![slow(said(&verdicts(&[true, false])), Duration::from_millis(700))]).await;
    let service = Arc::new(Service::asking(&backend.url(), &[]));
    let ask = || {
        let service = Arc::clone(&service);
        tokio::spawn(async move { service.post(PATH, &eiffel()).await })
    };
    let first = ask();
    while backend.calls().await == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let others = [ask(), ask(), ask()];
    tokio::time::sleep(Duration::from_millis(100)).await;
    first.abort();
    let mut answers = Vec::new();
    for other in others {
        answers.push(other.await.unwrap());
    }
    answers.iter().for_each(|answer| assert_eq!(answer.ok()["score"], 0.5));
    // The bill goes to one of those who stayed.
    assert_eq!((backend.calls().await, calls(&answers)), (1, 1));
}

#[tokio::test]
async fn the_last_to_leave_takes_the_call_along() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let service = Arc::new(Service::asking(&format!("http://{}", listener.local_addr().unwrap()), &[]));
    let clients: Vec<_> = (0..3)
        .map(|_| {
            let service = Arc::clone(&service);
            tokio::spawn(async move { service.post(PATH, &eiffel()).await })
        })
        .collect();
    let (mut upstream, _) = listener.accept().await.unwrap();
    let mut sent = vec![0; 64 * 1024];
    assert_ne!(upstream.read(&mut sent).await.unwrap(), 0);
    clients[0].abort();
    clients[1].abort();
    let goes_on = tokio::time::timeout(Duration::from_millis(300), async {
        while upstream.read(&mut sent).await.is_ok_and(|bytes| bytes > 0) {}
    });
    assert!(goes_on.await.is_err(), "one is still waiting");
    clients[2].abort();
    let closed = tokio::time::timeout(Duration::from_secs(5), async {
        while upstream.read(&mut sent).await.is_ok_and(|bytes| bytes > 0) {}
    });
    closed.await.expect("the upstream connection closes");
}

#[tokio::test]
async fn every_caller_keeps_to_its_own_deadline() {
    let backend = Backend::replying(vec![slow(said(&verdicts(&[true, false])), Duration::from_secs(6))]).await;
    let service = Arc::new(Service::asking(&backend.url(), &["--request-timeout", "4s"]));
    let ask = || {
        let service = Arc::clone(&service);
        tokio::spawn(async move { service.post(PATH, &eiffel()).await })
    };
    let began = Instant::now();
    let first = ask();
    tokio::time::sleep(Duration::from_secs(3)).await;
    let second = ask();
    first.await.unwrap().problem(504, "deadline_exceeded");
    assert!((4..6).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
    let answer = second.await.unwrap().ok();
    assert_eq!((&answer["score"], &answer["usage"]["judge_calls"]), (&json!(0.5), &json!(1)));
    assert_eq!(backend.calls().await, 1, "the call went on for the second");
}

// ---- stores that fail

#[tokio::test]
async fn replicas_share_a_redis_and_outlive_it() {
    let Some(mut redis) = Redis::start("replicas_share_a_redis_and_outlive_it", Some("swordfish-77")) else { return };
    let backend = deciding().await;
    let url = redis.url();
    let replicas =
        [Service::asking(&backend.url(), &["--cache", &url]), Service::asking(&backend.url(), &["--cache", &url])];
    let first = replicas[0].post(PATH, &eiffel()).await.ok();
    let second = replicas[1].post(PATH, &eiffel()).await.ok();
    assert_eq!((&first["cached"], &second["cached"]), (&json!(false), &json!(true)));
    assert_eq!(without_cost(first), without_cost(second));
    assert!(!replicas[0].get("/info").await.text().contains("swordfish"));

    redis.stop();
    for replica in &replicas {
        let answer = replica.post(PATH, &eiffel()).await.ok();
        assert_eq!((&answer["cached"], &answer["usage"]["judge_calls"]), (&json!(false), &json!(1)));
    }
    redis.start_again();
    let until = Instant::now() + Duration::from_secs(20);
    while replicas[1].post(PATH, &eiffel()).await.ok()["cached"] == false {
        assert!(Instant::now() < until, "it is not found again");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test]
async fn a_redis_that_hangs_costs_no_sample() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    let backend = deciding().await;
    let service = Service::asking(&backend.url(), &["--cache", &url, "--request-timeout", "10s"]);
    let began = Instant::now();
    for number in 0..10 {
        let sample = with(eiffel(), json!({ "user_input": number.to_string() }));
        assert_eq!(service.post(PATH, &sample).await.ok()["cached"], false);
    }
    // One wait for it, and then five seconds without any.
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    assert_eq!(backend.calls().await, 10);
    drop(listener);
}

/// What may have become of a remembered entry.
fn spoilt(entry: &[u8]) -> Vec<Vec<u8>> {
    let mut flipped = entry.to_vec();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 1;
    let mut newer = entry.to_vec();
    newer[0] += 1;
    vec![flipped, newer, entry[..middle].to_vec(), vec![], b"{\"verdicts\":[]}".to_vec(), vec![0xff; 1000]]
}

#[tokio::test]
async fn spoilt_entries_in_a_redis_are_misses() {
    let Some(redis) = Redis::start("spoilt_entries_in_a_redis_are_misses", None) else { return };
    let backend = deciding().await;
    let service = Service::asking(&backend.url(), &["--cache", &redis.url()]);
    service.post(PATH, &eiffel()).await.ok();
    let keys = redis.keys();
    assert_eq!(keys.len(), 1);
    assert!(keys[0].starts_with(b"context-recall:"));
    let entry: Vec<u8> = redis::from_redis_value(redis.say(&[b"GET", &keys[0]])).unwrap();
    for (turn, spoilt) in spoilt(&entry).into_iter().enumerate() {
        redis.say(&[b"SET", &keys[0], &spoilt]);
        for cached in [false, true] {
            let answer = service.post(PATH, &eiffel()).await.ok();
            assert_eq!(answer["cached"], cached, "spoilt in way {turn}");
        }
    }
    // An entry of another question.
    service.post(PATH, &with(eiffel(), json!({ "user_input": "Another?" }))).await.ok();
    let other = redis.keys().into_iter().find(|key| *key != keys[0]).unwrap();
    redis.say(&[b"COPY", &other, &keys[0], b"REPLACE"]);
    assert_eq!(service.post(PATH, &eiffel()).await.ok()["cached"], false);
}

#[tokio::test]
async fn spoilt_entries_in_a_file_are_misses() {
    use redb::ReadableTable as _;
    const ENTRIES: redb::TableDefinition<'_, &[u8; 32], &[u8]> = redb::TableDefinition::new("entries/1");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory");
    let memory = format!("file:{}", path.display());
    let backend = deciding().await;
    let ask = async || {
        let service = Service::asking(&backend.url(), &["--cache", &memory]);
        let answer = service.post(PATH, &eiffel()).await.ok();
        service.app.close().await;
        answer["cached"].as_bool().unwrap()
    };
    assert!(!ask().await);
    // The second in which it was written stands before the entry.
    let read = || {
        let database = redb::Database::open(&path).unwrap();
        let write = database.begin_write().unwrap();
        let table = write.open_table(ENTRIES).unwrap();
        let (key, value) = table.first().unwrap().unwrap();
        (*key.value(), value.value().to_vec())
    };
    let (key, value) = read();
    let (written, entry) = value.split_at(8);
    for (turn, spoilt) in spoilt(entry).into_iter().map(|entry| [written, &entry].concat()).chain([vec![1]]).enumerate()
    {
        let database = redb::Database::open(&path).unwrap();
        let write = database.begin_write().unwrap();
        write.open_table(ENTRIES).unwrap().insert(&key, spoilt.as_slice()).unwrap();
        write.commit().unwrap();
        drop(database);
        assert!(!ask().await, "spoilt in way {turn}");
        assert!(ask().await, "spoilt in way {turn}");
    }
}
