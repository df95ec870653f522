//! The service as a process: start, probes, log, departure.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::Service;
use crate::support::backend::{Backend, said, slow, verdicts};
use crate::support::process::{Process, command, run};

const SECRET_TEXT: &str = "Zanzibar-Quokka-41";

fn sample() -> Value {
    json!({ "user_input": SECRET_TEXT, "reference": SECRET_TEXT, "retrieved_contexts": [SECRET_TEXT] })
}

async fn post(url: &str, path: &str, body: String) -> reqwest::Response {
    let client = reqwest::Client::new();
    client.post(format!("{url}{path}")).header("content-type", "application/json").body(body).send().await.unwrap()
}

#[tokio::test]
async fn probes_and_info_answer() {
    let service = Service::embedded();
    assert_eq!(service.get("/healthz").await.ok(), json!({ "status": "ok" }));
    let usable = json!({ "usable": true, "code": null, "detail": null });
    assert_eq!(service.get("/readyz").await.ok(), json!({ "status": "ready", "judge": usable }));
    let info = service.get("/info").await.ok();
    assert_eq!((&info["name"], &info["version"]), (&json!("context-recall"), &json!(env!("CARGO_PKG_VERSION"))));
    assert_eq!(info["judge"]["provider"], "embedded");
    assert_eq!(info["limits"]["body_bytes"], 32 * 1024 * 1024);
    service.app.drain();
    let draining = service.get("/readyz").await;
    assert_eq!((draining.status.as_u16(), draining.json()), (503, json!({ "status": "draining", "judge": usable })));
    service.get("/healthz").await.ok();
}

#[tokio::test]
async fn info_holds_no_secret() {
    let service = Service::asking("http://127.0.0.1:9", &[]);
    let answer = service.get("/info").await;
    assert_eq!(answer.ok()["judge"], json!({ "provider": "openai", "model": "m", "prompt": "attribution/1" }));
    assert!(!answer.text().contains(crate::support::KEY));
}

/// A second service would overwrite the first one's memory: it does not start.
#[tokio::test]
async fn a_memory_in_use_is_said_plainly() {
    let folder = tempfile::tempdir().unwrap();
    let memory = format!("file:{}", folder.path().join("memory").display());
    let first = Process::start(&["--cache", &memory], &[]);
    let second = run(&["--cache", &memory, "--port", "0"], &[]);
    let said = String::from_utf8_lossy(&second.stderr);
    assert_eq!(second.status.code(), Some(1), "{said}");
    assert!(said.contains("is in use by another process") && said.contains("redis://"), "{said}");
    first.signal("TERM");
    assert_eq!(first.end(Duration::from_secs(10)).0, Some(0));
    let third = Process::start(&["--cache", &memory], &[]);
    third.signal("TERM");
    assert_eq!(third.end(Duration::from_secs(10)).0, Some(0));
}

#[tokio::test]
async fn the_log_tells_of_a_memory_that_fails_and_not_its_password() {
    let backend = Backend::saying(&verdicts(&[true])).await;
    let variables = [
        ("OPENAI_BASE_URL", backend.url()),
        ("RECALL_CACHE", "redis://user:swordfish-99@127.0.0.1:1/0".to_owned()),
        ("RUST_LOG", "trace,h2=info,hyper=info,hyper_util=info".to_owned()),
    ];
    let variables = variables.each_ref().map(|(name, value)| (*name, value.as_str()));
    let service = Process::start(&["--judge", "openai/m"], &variables);
    for _ in 0..3 {
        assert_eq!(post(&service.url, "/recall/llm", sample().to_string()).await.status(), 200);
    }
    service.signal("TERM");
    let (code, log) = service.end(Duration::from_secs(10));
    assert_eq!(code, Some(0), "{log}");
    assert!(!log.contains("swordfish") && !log.contains(SECRET_TEXT), "{log}");
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let warnings: Vec<_> = lines.iter().filter(|line| line["level"] == "WARN").collect();
    assert_eq!(warnings.len(), 1, "{log}");
    assert!(warnings[0]["message"].as_str().unwrap().starts_with("the shared memory cannot be reached"), "{log}");
    assert!(lines.iter().any(|line| line["memory"] == "redis"), "{log}");
}

#[tokio::test]
async fn the_log_tells_what_happened_and_nothing_of_what_was_sent() {
    let backend = Backend::replying(vec![said(&verdicts(&[true])), said(SECRET_TEXT)]).await;
    let variables = [
        ("OPENAI_BASE_URL", backend.url()),
        ("OPENAI_API_KEY", "sk-quokka-key-9876543210".to_owned()),
        ("RUST_LOG", "trace,h2=info,hyper=info,hyper_util=info".to_owned()),
    ];
    let variables = variables.each_ref().map(|(name, value)| (*name, value.as_str()));
    let service = Process::start(&["--judge", "openai/m", "--judge-repairs", "0"], &variables);
    assert_eq!(post(&service.url, "/recall/llm", sample().to_string()).await.status(), 200);
    let mut other = sample();
    other["user_input"] = json!(format!("{SECRET_TEXT}?"));
    assert_eq!(post(&service.url, "/recall/llm", other.to_string()).await.status(), 502);
    post(&service.url, "/recall/llm", format!("{{\"{SECRET_TEXT}\": 1}}")).await;
    post(&service.url, &format!("/{SECRET_TEXT}?key={SECRET_TEXT}"), String::new()).await;
    service.signal("TERM");
    let (code, log) = service.end(Duration::from_secs(10));
    assert_eq!(code, Some(0), "{log}");
    assert!(!log.contains(SECRET_TEXT), "{log}");
    assert!(!log.contains("sk-quokka-key"), "{log}");
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let answered: Vec<_> = lines.iter().filter(|line| line["message"] == "answered").collect();
    let told: Vec<_> =
        answered.iter().map(|line| (line["route"].clone(), line["status"].clone(), line["code"].clone())).collect();
    let expected = [
        ("/recall/llm", 200, "-"),
        ("/recall/llm", 502, "judge_output_invalid"),
        ("/recall/llm", 422, "invalid_input"),
        ("-", 404, "not_found"),
    ];
    assert_eq!(told, expected.map(|(route, status, code)| (json!(route), json!(status), json!(code))));
    assert!(answered.iter().all(|line| line["duration_ms"].is_number() && line["span"]["request_id"].is_string()));
}

#[tokio::test]
async fn what_is_in_flight_is_finished_before_the_end() {
    let backend = Backend::replying(vec![slow(said(&verdicts(&[true])), Duration::from_millis(800))]).await;
    let service = Process::start(&["--judge", "openai/m"], &[("OPENAI_BASE_URL", &backend.url())]);
    let url = service.url.clone();
    let in_flight = tokio::spawn(async move { post(&url, "/recall/llm", sample().to_string()).await.status() });
    while backend.calls().await == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    service.signal("TERM");
    assert_eq!(in_flight.await.unwrap(), 200);
    let (code, log) = service.end(Duration::from_secs(5));
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("asked to stop") && log.contains("\"stopped\""), "{log}");
}

#[tokio::test]
async fn a_second_signal_ends_it_at_once() {
    let backend = Backend::replying(vec![slow(said(&verdicts(&[true])), Duration::from_secs(60))]).await;
    let service = Process::start(&["--judge", "openai/m"], &[("OPENAI_BASE_URL", &backend.url())]);
    let url = service.url.clone();
    let in_flight = tokio::spawn(async move {
        let client = reqwest::Client::new();
        let body = sample().to_string();
        client
            .post(format!("{url}/recall/llm"))
            .header("content-type", "application/json")
            .body(body)
            .send()
            .await
            .is_err()
    });
    while backend.calls().await == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    service.signal("TERM");
    tokio::time::sleep(Duration::from_millis(200)).await;
    service.signal("TERM");
    let (code, log) = service.end(Duration::from_secs(5));
    assert_eq!(code, Some(1), "{log}");
    assert!(in_flight.await.unwrap());
}

#[tokio::test]
async fn an_idle_connection_does_not_hold_up_the_end() {
    let service = Process::start(&[], &[]);
    let idle = tokio::net::TcpStream::connect(service.url.trim_start_matches("http://")).await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    service.signal("INT");
    let (code, log) = service.end(Duration::from_secs(5));
    assert_eq!(code, Some(0), "{log}");
    drop(idle);
}

#[test]
fn healthcheck_goes_by_the_running_service() {
    let service = Process::start(&[], &[]);
    let port = service.url.rsplit(':').next().unwrap().to_owned();
    let ask = |port: &str| run(&["healthcheck"], &[("PORT", port), ("RECALL_HOST", "0.0.0.0")]);
    assert!(ask(&port).status.success());
    drop(service);
    let dead = ask(&port);
    assert_eq!(dead.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&dead.stderr).contains("/healthz does not answer"), "{dead:?}");
}

#[test]
fn the_spec_is_printed() {
    let printed = run(&["openapi"], &[]);
    assert!(printed.status.success());
    assert_eq!(String::from_utf8(printed.stdout).unwrap(), context_recall::http::spec().unwrap());
}

#[test]
fn a_port_in_use_is_said_plainly() {
    let service = Process::start(&[], &[]);
    let port = service.url.rsplit(':').next().unwrap().to_owned();
    let second = run(&["--port", &port], &[]);
    assert_eq!(second.status.code(), Some(1));
    let said = String::from_utf8_lossy(&second.stderr);
    assert!(said.contains(&format!("cannot listen on 127.0.0.1:{port}")), "{said}");
}

#[tokio::test]
async fn an_open_door_to_a_paid_judge_is_warned_of() {
    let service = Process::start(
        &["--judge", "openai/m", "--host", "0.0.0.0"],
        &[("OPENAI_BASE_URL", "http://127.0.0.1:9"), ("OPENAI_API_KEY", "sk-x")],
    );
    service.signal("TERM");
    let (_, log) = service.end(Duration::from_secs(5));
    assert!(log.contains("whoever reaches this address"), "{log}");
}

/// A large upload is refused with an answer that the client gets to read, also when it reads only once it has sent all.
#[tokio::test]
async fn a_client_that_sends_everything_first_still_reads_the_refusal() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let service = Process::start(&["--body-limit", "1MiB"], &[]);
    for (head, code) in [
        ("POST /recall/id HTTP/1.1\r\ncontent-type: application/json\r\ncontent-length: 20971520", "payload_too_large"),
        (
            "POST /recall/id HTTP/1.1\r\ncontent-type: application/json\r\ntransfer-encoding: chunked",
            "payload_too_large",
        ),
        ("POST /recall/id HTTP/1.1\r\ncontent-type: text/plain\r\ncontent-length: 20971520", "unsupported_media_type"),
        ("POST /recall/id?x=1 HTTP/1.1\r\ncontent-type: application/json\r\ncontent-length: 20971520", "invalid_input"),
        ("POST /nowhere HTTP/1.1\r\ncontent-type: application/json\r\ncontent-length: 20971520", "not_found"),
        ("PUT /recall/id HTTP/1.1\r\ncontent-type: application/json\r\ncontent-length: 20971520", "method_not_allowed"),
    ] {
        let mut client = tokio::net::TcpStream::connect(service.url.trim_start_matches("http://")).await.unwrap();
        client.write_all(format!("{head}\r\nhost: x\r\n\r\n").as_bytes()).await.unwrap();
        let piece = vec![b' '; 1 << 20];
        for _ in 0..20 {
            if head.contains("chunked") {
                client.write_all(b"100000\r\n").await.unwrap();
                client.write_all(&piece).await.unwrap();
                client.write_all(b"\r\n").await.unwrap();
            } else {
                client.write_all(&piece).await.unwrap();
            }
        }
        if head.contains("chunked") {
            client.write_all(b"0\r\n\r\n").await.unwrap();
        }
        let mut answer = vec![0; 8192];
        let read = tokio::time::timeout(Duration::from_secs(20), client.read(&mut answer)).await.unwrap().unwrap();
        let answer = String::from_utf8_lossy(&answer[..read]);
        assert!(answer.contains(&format!("\"code\":\"{code}\"")), "{head}: {answer}");
    }
}

#[test]
fn help_and_version_are_printed() {
    let help = command(&["--help"], &[]).output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    for word in ["--judge", "RECALL_JUDGE", "OPENAI_BASE_URL", "healthcheck", "32MiB"] {
        assert!(help.contains(word), "{word} is not in:\n{help}");
    }
    let version = command(&["--version"], &[]).output().unwrap();
    assert_eq!(
        String::from_utf8(version.stdout).unwrap().trim(),
        concat!("context-recall ", env!("CARGO_PKG_VERSION"))
    );
}

/// A body that does not arrive is answered at the request's deadline.
#[tokio::test]
async fn a_body_that_drips_is_not_waited_for() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let service = Process::start(&["--request-timeout", "300ms"], &[]);
    let mut client = tokio::net::TcpStream::connect(service.url.trim_start_matches("http://")).await.unwrap();
    let head = "POST /recall/id HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{";
    client.write_all(head.as_bytes()).await.unwrap();
    let mut answer = vec![0; 4096];
    let read = tokio::time::timeout(Duration::from_secs(10), client.read(&mut answer)).await.unwrap().unwrap();
    let answer = String::from_utf8_lossy(&answer[..read]);
    assert!(answer.starts_with("HTTP/1.1 504") && answer.contains("deadline_exceeded"), "{answer}");
}

/// A large request does not hold up a small one.
#[tokio::test]
async fn heavy_bodies_do_not_hold_up_the_probes() {
    let service = Process::start(&[], &[]);
    let ids = (0..400_000).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
    let body = format!(r#"{{"retrieved_context_ids": [{ids}], "reference_context_ids": [{ids}]}}"#);
    let heavy: Vec<_> = (0..4)
        .map(|_| {
            let (url, body) = (service.url.clone(), body.clone());
            tokio::spawn(async move { post(&url, "/recall/id", body).await.status() })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(200)).await;
    let mut probes = 0;
    while !heavy.iter().all(tokio::task::JoinHandle::is_finished) {
        let asked = std::time::Instant::now();
        assert_eq!(reqwest::get(format!("{}/healthz", service.url)).await.unwrap().status(), 200);
        // Generous: the machine may be busy with other tests. On the async threads this took as long as the bodies do.
        assert!(asked.elapsed() < Duration::from_secs(2), "a probe took {:?}", asked.elapsed());
        probes += 1;
    }
    assert!(probes > 0);
    for answer in heavy {
        assert_eq!(answer.await.unwrap(), 200);
    }
}

/// A comparison that would take hours ends at the request's deadline and gives its place back.
#[tokio::test]
async fn a_comparison_past_its_deadline_is_stopped() {
    let service = Service::with(&["--request-timeout", "200ms"], &[]);
    let (a, b) = ("ab".repeat(2_000_000), "ba".repeat(2_000_000));
    let sample = json!({ "retrieved_contexts": [a], "reference_contexts": [b] });
    for _ in 0..4 {
        let began = std::time::Instant::now();
        service.post("/recall/nonllm", &sample).await.problem(504, "deadline_exceeded");
        assert!(began.elapsed() < Duration::from_secs(10));
    }
    let small = json!({ "retrieved_contexts": ["a"], "reference_contexts": ["a"] });
    assert_eq!(service.post("/recall/nonllm", &small).await.ok()["score"], 1.0);
}
