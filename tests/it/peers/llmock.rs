//! A backend that fails on command and then judges its client: every failure has its name, and no retry is out of place.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::backend::verdicts;
use crate::support::peer::{Server, folder, skip};
use crate::support::{Answer, KEY, Service, eiffel};

const SCRIPT: &str = "tests/peers/start-llmock.sh";

struct Mock {
    server: Server,
    client: reqwest::Client,
}

impl Mock {
    async fn start(test: &str, arguments: &[&str]) -> Option<Self> {
        let folder = folder("LLMOCK_DIR", "llmock");
        if !folder.join("installed").exists() {
            skip(test, &format!("LLMock; install it with: {SCRIPT} target/llmock install"));
            return None;
        }
        let server = Server::start(SCRIPT, &folder, arguments, &[], "/health").await;
        Some(Self { server, client: reqwest::Client::builder().no_proxy().build().unwrap() })
    }

    async fn post(&self, path: &str, body: &Value) {
        let sent = self.client.post(format!("{}/_llmock/{path}", self.server.url)).body(body.to_string()).send().await;
        let answer = sent.unwrap();
        assert!(answer.status().is_success(), "{path} {body}: {}", answer.text().await.unwrap());
    }

    async fn get(&self, path: &str) -> Value {
        let answer = self.client.get(format!("{}/_llmock/{path}", self.server.url)).send().await.unwrap();
        serde_json::from_str(&answer.text().await.unwrap()).unwrap()
    }

    /// Forgets what was, and behaves in this way from now on.
    async fn behave(&self, behaviors: Value) {
        self.post("reset", &json!({})).await;
        self.post("scenario", &json!({ "behaviors": behaviors })).await;
    }

    /// How many requests there were, after a look at what the server thinks of them.
    #[track_caller]
    fn well_behaved(verdict: &Value, requests: &Value, case: &str) -> u64 {
        let errors: Vec<&Value> = verdict["findings"]
            .as_array()
            .unwrap_or_else(|| panic!("{verdict:#}"))
            .iter()
            .filter(|finding| finding["severity"] == "error")
            .collect();
        assert!(errors.is_empty(), "{case}: {errors:#?}");
        let requests = requests["requests"].as_array().unwrap();
        requests.iter().filter(|request| request["method"] == "POST").count() as u64
    }

    fn service(&self, arguments: &[&str]) -> Service {
        Service::asking(&self.server.url, &[&["--cache", "off"], arguments].concat())
    }
}

/// What must come of a case.
enum Right {
    Score(f64),
    Problem(u16, &'static str),
}

use Right::{Problem, Score};

fn is_right(answer: &Answer, right: &Right, case: &str) {
    match *right {
        Score(score) => assert_eq!(answer.ok()["score"], score, "{case}"),
        Problem(status, code) => {
            assert_eq!(answer.status, status, "{case}: {}", answer.text());
            let problem = answer.problem(status, code);
            assert!(!problem.to_string().contains(KEY), "{case}: {problem:#}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_injected_failure_has_its_name_and_no_retry_is_out_of_place() {
    let Some(mock) = Mock::start("every_injected_failure_has_its_name_and_no_retry_is_out_of_place", &[]).await else {
        return;
    };
    let good = json!({ "type": "reply", "text": verdicts(&[true, false]), "times": null });
    let fail = |status: u16, times: Option<u32>| json!({ "type": "fail", "status": status, "times": times });
    let waiting = |seconds: f64, times: Option<u32>| json!({ "type": "fail", "status": 429, "retry_after": seconds, "times": times });
    let say = |text: &str, times: Option<u32>| json!({ "type": "reply", "text": text, "times": times });
    // The behaviour, what must come of it, and the number of requests; 0 for some.
    let mut cases = vec![
        (json!([good]), Score(0.5), 1),
        (json!([fail(500, Some(2)), good]), Score(0.5), 3),
        (json!([fail(503, Some(1)), fail(529, Some(1)), good]), Score(0.5), 3),
        (json!([fail(408, Some(1)), good]), Score(0.5), 2),
        (json!([fail(500, None)]), Problem(502, "upstream_error"), 3),
        (json!([fail(502, None)]), Problem(502, "upstream_error"), 3),
        // With these it names a wait of a second, which costs no try: asked again for as long as the request may take, and told to
        // wait when it may not.
        (json!([fail(503, None)]), Problem(503, "upstream_overloaded"), 0),
        (json!([fail(529, None)]), Problem(503, "upstream_overloaded"), 0),
        (json!([fail(429, None)]), Problem(503, "upstream_rate_limited"), 0),
        (json!([fail(504, None)]), Problem(503, "upstream_overloaded"), 0),
        (json!([fail(408, None)]), Problem(504, "upstream_timeout"), 3),
        (json!([waiting(1.0, Some(2)), good]), Score(0.5), 3),
        // Longer than the request may take: said at once.
        (json!([waiting(600.0, None)]), Problem(503, "upstream_rate_limited"), 1),
        (json!([{ "type": "delay", "seconds": 0.3, "times": 1 }, good]), Score(0.5), 1),
        (json!([{ "type": "delay", "seconds": 3, "times": null }, good]), Problem(504, "upstream_timeout"), 3),
        (
            json!([{ "type": "fail", "status": 400, "code": "context_length_exceeded", "message": "This model's maximum context length was exceeded." }]),
            Problem(422, "context_length_exceeded"),
            1,
        ),
        (json!([say("I would rather not say.", None)]), Problem(502, "judge_output_invalid"), 2),
        (json!([say("Sure!", Some(1)), good]), Score(0.5), 2),
        (json!([say(" ", None)]), Problem(502, "judge_empty"), 2),
        (json!([say("{\"verdicts\":[{\"n\":1,\"attributed\":tr", None)]), Problem(502, "judge_truncated"), 2),
        (
            json!([{ "type": "reply", "text": verdicts(&[true, true]), "finish_reason": "length", "times": null }]),
            Problem(502, "judge_truncated"),
            2,
        ),
        (
            json!([{ "type": "reply", "text": "", "finish_reason": "content_filter", "times": null }]),
            Problem(502, "content_filtered"),
            1,
        ),
    ];
    for (status, code) in [
        (400, "upstream_error"),
        (401, "upstream_auth"),
        (402, "upstream_error"),
        (403, "upstream_auth"),
        (404, "upstream_error"),
        (422, "upstream_error"),
    ] {
        cases.push((json!([fail(status, None)]), Problem(502, code), 1));
    }
    for (behaviors, right, requests) in &cases {
        let case = behaviors.to_string();
        mock.behave(behaviors.clone()).await;
        let deadline = if *requests == 0 { "5s" } else { "30s" };
        let service = mock.service(&["--judge-attempts", "3", "--judge-timeout", "2s", "--request-timeout", deadline]);
        let began = Instant::now();
        is_right(&service.post("/recall/llm", &eiffel()).await, right, &case);
        assert!(began.elapsed() < Duration::from_secs(40), "{case}: {:?}", began.elapsed());
        let sent = Mock::well_behaved(&mock.get("verdict").await, &mock.get("requests").await, &case);
        assert!(sent == *requests || *requests == 0 && (2..=6).contains(&sent), "{case}: {sent} requests");
    }

    // What it makes up by itself to fit the schema is no answer to our claims, or a whole one.
    mock.post("reset", &json!({})).await;
    let answer = mock.service(&[]).post("/recall/llm", &eiffel()).await;
    if answer.status == 200 {
        let body = answer.ok();
        assert_eq!(body["total"], 2, "{body:#}");
    } else {
        answer.problem(502, "judge_output_invalid");
    }
}

/// A real quota: who comes too early is told how long to wait. Twelve at once against three a second all get through.
#[tokio::test(flavor = "multi_thread")]
async fn a_real_quota_slows_a_crowd_down_and_fails_nobody() {
    let Some(mock) = Mock::start("a_real_quota_slows_a_crowd_down_and_fails_nobody", &["--rpm", "180"]).await else {
        return;
    };
    mock.behave(json!([{ "type": "reply", "text": verdicts(&[true, false]), "times": null }])).await;
    let service = mock.service(&["--request-timeout", "100s"]);
    let sample = eiffel();
    let asked = (0..12).map(|_| service.post("/recall/llm", &sample));
    for answer in futures_util::future::join_all(asked).await {
        assert_eq!(answer.ok()["score"], 0.5);
    }
    Mock::well_behaved(&mock.get("verdict").await, &mock.get("requests").await, "a crowd");
}
