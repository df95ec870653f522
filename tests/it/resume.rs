//! Sending it again after a crash: what had left the service is never asked again, and the results are those of a run
//! that nothing disturbed.
//!
//! The program is ended as no program can prepare for (SIGKILL). With `RESUME_FULL` set: 20 moments of a batch of 2,000.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::backend::{Backend, data, said, slow, verdicts};
use crate::support::process::Process;
use crate::support::redis::Redis;

/// Samples asked about at once.
const AT_ONCE: usize = 16;

/// A backend that counts what it is asked, by question.
struct Counting {
    backend: Backend,
    calls: Arc<Mutex<BTreeMap<String, usize>>>,
}

impl Counting {
    async fn start() -> Self {
        let calls: Arc<Mutex<BTreeMap<String, usize>>> = Arc::default();
        let counted = Arc::clone(&calls);
        let backend = Backend::answering(move |body| {
            let question = data(body)["question"].as_str().unwrap().to_owned();
            let number: usize = question.rsplit(' ').next().unwrap().parse().unwrap();
            *counted.lock().unwrap().entry(question).or_default() += 1;
            slow(said(&verdicts(&[number.is_multiple_of(2), number.is_multiple_of(3)])), Duration::from_millis(10))
        })
        .await;
        Self { backend, calls }
    }

    fn calls(&self) -> BTreeMap<String, usize> {
        self.calls.lock().unwrap().clone()
    }

    fn replica(&self, memory: &str) -> Process {
        let at_once = AT_ONCE.to_string();
        let arguments = ["--judge", "openai/m", "--judge-concurrency", &at_once, "--cache", memory];
        Process::start(&arguments, &[("OPENAI_BASE_URL", &self.backend.url())])
    }
}

fn question(number: usize) -> String {
    format!("What of tower {number}")
}

fn batch(samples: usize) -> String {
    let sample = |number| {
        json!({
            "id": number, "user_input": question(number),
            "reference": "The tower stands in Paris. It opened in 1889.",
            "retrieved_contexts": [format!("Tower {number} stands in Paris.")]
        })
    };
    (0..samples).map(|number| sample(number).to_string()).collect::<Vec<_>>().join("\n")
}

/// What arrived of a batch: the results by sample, and the summary if it came.
#[derive(Default)]
struct Arrived {
    results: BTreeMap<usize, Value>,
    summary: Option<Value>,
}

impl Arrived {
    /// What was found, without what it cost.
    fn findings(&self) -> BTreeMap<usize, Value> {
        let mut found = self.results.clone();
        found.values_mut().for_each(|result| {
            result.as_object_mut().unwrap().retain(|name, _| !matches!(name.as_str(), "usage" | "cached"));
        });
        found
    }

    fn cached(&self) -> usize {
        self.results.values().filter(|result| result["cached"] == true).count()
    }
}

/// Posts a batch and calls `at` whenever more has arrived, until the answer ends, however it does.
async fn post(url: &str, lines: &str, mut at: impl FnMut(usize)) -> Arrived {
    let request = reqwest::Client::new().post(format!("{url}/recall/llm/batch"));
    let response = request.header("content-type", "application/x-ndjson").body(lines.to_owned()).send().await;
    let mut arrived = Arrived::default();
    let Ok(mut response) = response else { return arrived };
    let mut rest = Vec::new();
    at(0);
    while let Ok(Some(bytes)) = response.chunk().await {
        rest.extend_from_slice(&bytes);
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = rest.drain(..=end).collect();
            let mut line: Value = serde_json::from_slice(&line).unwrap();
            if let Some(summary) = line.get_mut("summary") {
                arrived.summary = Some(summary.take());
                continue;
            }
            assert_eq!(line["status"], "scored", "{line:#}");
            let number = usize::try_from(line["id"].as_u64().unwrap()).unwrap();
            arrived.results.insert(number, line["result"].take());
        }
        at(arrived.results.len());
    }
    arrived
}

fn kill(process: &mut Process) {
    process.child.kill().unwrap();
    process.child.wait().unwrap();
}

fn is_full() -> bool {
    std::env::var_os("RESUME_FULL").is_some()
}

fn size() -> (usize, Vec<usize>) {
    if is_full() {
        return (2000, (0..20).map(|moment| moment * 2000 / 20).collect());
    }
    (150, vec![0, 1, 40, 110])
}

/// The findings of a run that nothing disturbs and nothing remembers.
async fn undisturbed(backend: &Counting, lines: &str, samples: usize) -> BTreeMap<usize, Value> {
    let service = backend.replica("off");
    let arrived = post(&service.url, lines, |_| ()).await;
    assert_eq!(arrived.summary.as_ref().unwrap()["scored"], samples);
    assert_eq!(arrived.cached(), 0);
    arrived.findings()
}

/// After one run was cut off by a kill: posts the batch again to `service` and holds the calls against what was promised.
async fn resume(
    backend: &Counting,
    service: &Process,
    lines: &str,
    before: &Arrived,
    findings: &BTreeMap<usize, Value>,
) {
    // What the backend had taken in when its client was killed counts as asked.
    tokio::time::sleep(Duration::from_millis(200)).await;
    let asked = backend.calls();
    let began = Instant::now();
    let after = post(&service.url, lines, |_| ()).await;
    let all = findings.len();
    let summary = after.summary.as_ref().unwrap();
    assert_eq!((&summary["scored"], &summary["failed"]), (&json!(all), &json!(0)));
    assert_eq!(&after.findings(), findings);
    let asked_again: BTreeSet<String> = {
        let now = backend.calls();
        asked
            .iter()
            .filter(|(question, calls)| now[*question] > **calls)
            .map(|(question, _)| question.clone())
            .collect()
    };
    for number in before.results.keys() {
        assert!(!asked_again.contains(&question(*number)), "{number} had left the service and is asked again");
    }
    assert!(asked_again.len() <= AT_ONCE, "{} asked again, {AT_ONCE} were in flight", asked_again.len());
    let calls: usize = backend.calls().values().sum::<usize>() - asked.values().sum::<usize>();
    assert_eq!((after.cached(), summary["usage"]["judge_calls"].as_u64()), (all - calls, Some(calls as u64)));
    if !is_full() {
        return;
    }
    let (arrived, remembered, twice) = (before.results.len(), after.cached(), asked_again.len());
    let _ = writeln!(
        std::io::stderr(),
        "killed after {arrived} of {all}: {} had been asked, {remembered} were remembered, {twice} asked twice; the rest took {:.1?}",
        asked.len(),
        began.elapsed()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_batch_sent_again_asks_nothing_that_was_answered() {
    let (samples, moments) = size();
    let lines = batch(samples);
    let findings = undisturbed(&Counting::start().await, &lines, samples).await;
    for moment in moments {
        let backend = Counting::start().await;
        let folder = tempfile::tempdir().unwrap();
        let memory = format!("file:{}", folder.path().join("memory").display());
        let mut service = backend.replica(&memory);
        let url = service.url.clone();
        let mut is_alive = true;
        let before = post(&url, &lines, |arrived| {
            if is_alive && arrived >= moment {
                is_alive = false;
                kill(&mut service);
            }
        })
        .await;
        assert!(before.summary.is_none() && before.results.len() >= moment, "cut off in the middle");
        let again = backend.replica(&memory);
        resume(&backend, &again, &lines, &before, &findings).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_is_killed_leaves_its_verdicts_to_the_other() {
    let Some(redis) = Redis::start("a_replica_that_is_killed_leaves_its_verdicts_to_the_other", None) else { return };
    let (samples, moments) = size();
    let lines = batch(samples);
    let findings = undisturbed(&Counting::start().await, &lines, samples).await;
    for moment in moments.into_iter().step_by(3) {
        redis.say(&[b"FLUSHALL"]);
        let backend = Counting::start().await;
        let (mut first, second) = (backend.replica(&redis.url()), backend.replica(&redis.url()));
        let url = first.url.clone();
        let mut is_alive = true;
        let before = post(&url, &lines, |arrived| {
            if is_alive && arrived >= moment {
                is_alive = false;
                kill(&mut first);
            }
        })
        .await;
        assert!(before.summary.is_none(), "cut off in the middle");
        resume(&backend, &second, &lines, &before, &findings).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_goes_and_comes_back_in_the_middle_costs_no_sample() {
    let test = "a_redis_that_goes_and_comes_back_in_the_middle_costs_no_sample";
    let Some(mut redis) = Redis::start(test, None) else { return };
    let (samples, _) = size();
    let lines = batch(samples);
    let findings = undisturbed(&Counting::start().await, &lines, samples).await;
    let backend = Counting::start().await;
    let service = backend.replica(&redis.url());
    let arrived = post(&service.url, &lines, |arrived| {
        if arrived >= samples / 3 {
            redis.stop();
        }
    })
    .await;
    assert_eq!(arrived.findings(), findings);
    assert_eq!(backend.calls().values().sum::<usize>(), samples, "each was asked once");
    let kept = redis_keys_after_restart(&mut redis);
    assert!(kept >= samples / 3 && kept < samples, "{kept} of {samples} were kept");
    // Found again at the latest after its pause.
    let mut again = Arrived::default();
    let until = Instant::now() + Duration::from_secs(30);
    while again.cached() < kept {
        assert!(Instant::now() < until, "{} of {kept} came from memory", again.cached());
        again = post(&service.url, &lines, |_| ()).await;
        assert_eq!(again.findings(), findings);
    }
}

fn redis_keys_after_restart(redis: &mut Redis) -> usize {
    redis.start_again();
    redis.keys().len()
}
