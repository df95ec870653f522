//! The whole wire of a judged sample against the real llama.cpp server.
//!
//! Its model of 135 million parameters judges badly and often runs on until it is cut. What is tested is the wire: the
//! answer schema is accepted, the reply read, the usage counted, the evidence looked up, and every failure has its name.
//! The server speaks Anthropic's format as well, but without a schema, so few of its answers there are any use.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use serde_json::{Value, json};

use crate::support::peer::skip;
use crate::support::process::Process;
use crate::support::project;

const SCRIPT: &str = "tests/peers/start-llama-server.sh";
const MODEL: &str = "smollm2-135m";

/// How many samples are asked at once: as many as the server has places.
const AT_ONCE: usize = 2;

/// For all samples together. A call takes two to ten seconds on two quiet cores.
const PATIENCE: Duration = Duration::from_secs(600);

struct LlamaServer {
    child: Child,
    url: String,
}

impl LlamaServer {
    /// Starts the server, if engine and weights are there.
    async fn start() -> Option<Self> {
        let folder = std::env::var_os("LLAMA_DIR").map_or_else(|| project("target/llama"), PathBuf::from);
        let is_installed = folder.join("venv").is_dir()
            && std::fs::read_dir(&folder).is_ok_and(|mut files| {
                files.any(|file| file.is_ok_and(|file| file.path().extension().is_some_and(|end| end == "gguf")))
            });
        if !is_installed {
            return None;
        }
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let log = std::fs::File::create(folder.join("server.log")).unwrap();
        let mut command = Command::new("bash");
        command.arg(project(SCRIPT)).arg(&folder).arg(port.to_string());
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        let mut server = Self { child: command.spawn().unwrap(), url: format!("http://127.0.0.1:{port}") };
        server.wait().await;
        Some(server)
    }

    async fn wait(&mut self) {
        let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(2)).build().unwrap();
        let until = Instant::now() + Duration::from_secs(120);
        loop {
            let answer = client.get(format!("{}/health", self.url)).send().await;
            if answer.is_ok_and(|answer| answer.status().is_success()) {
                return;
            }
            assert!(self.child.try_wait().unwrap().is_none(), "the llama.cpp server ended; server.log says why");
            assert!(Instant::now() < until, "the llama.cpp server is not ready; server.log may say why");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}

impl Drop for LlamaServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One-claim samples: question, claim, context; the first half supported, the second not.
const SAMPLES: [[&str; 3]; 24] = [
    ["Where is the Eiffel Tower?", "The Eiffel Tower is in Paris.", "The Eiffel Tower stands in Paris, France."],
    [
        "What is the capital of Norway?",
        "Oslo is the capital of Norway.",
        "Oslo is the capital of Norway and its largest city.",
    ],
    [
        "When did the Titanic sink?",
        "The Titanic sank in 1912.",
        "The Titanic sank in April 1912 after it struck an iceberg.",
    ],
    [
        "Who wrote Hamlet?",
        "Hamlet was written by Shakespeare.",
        "William Shakespeare wrote the tragedy Hamlet around 1600.",
    ],
    ["What do bees make?", "Bees make honey.", "Bees collect nectar and make honey from it."],
    [
        "How hot does water boil?",
        "Water boils at 100 degrees Celsius.",
        "At sea level, water boils at 100 degrees Celsius.",
    ],
    [
        "What is the longest river of Africa?",
        "The Nile is the longest river of Africa.",
        "The longest river of Africa is the Nile.",
    ],
    [
        "Who painted the Mona Lisa?",
        "Leonardo da Vinci painted the Mona Lisa.",
        "The Mona Lisa was painted by Leonardo da Vinci.",
    ],
    ["How many legs has a spider?", "A spider has eight legs.", "Spiders have eight legs, insects have six."],
    [
        "Which planet is red?",
        "Mars is called the red planet.",
        "Because of the iron in its soil, Mars is called the red planet.",
    ],
    [
        "What is the refund period?",
        "Refunds are given within 30 days.",
        "Customers receive refunds within 30 days of purchase.",
    ],
    [
        "Which port does the service use?",
        "The service listens on port 8080.",
        "By default the service listens on port 8080.",
    ],
    ["Where is the Eiffel Tower?", "The Eiffel Tower is in Paris.", "Paris is the capital of France."],
    ["What is the capital of Norway?", "Oslo is the capital of Norway.", "Stockholm is the capital of Sweden."],
    ["When did the Titanic sink?", "The Titanic sank in 1912.", "The Titanic was built in Belfast."],
    ["Who wrote Hamlet?", "Hamlet was written by Shakespeare.", "Hamlet is a prince of Denmark."],
    ["What do bees make?", "Bees make honey.", "Wasps build nests out of paper."],
    ["How hot does water boil?", "Water boils at 100 degrees Celsius.", "Iron melts at 1538 degrees Celsius."],
    [
        "What is the longest river of Africa?",
        "The Nile is the longest river of Africa.",
        "The Amazon flows through Brazil.",
    ],
    ["Who painted the Mona Lisa?", "Leonardo da Vinci painted the Mona Lisa.", "The Mona Lisa hangs in the Louvre."],
    ["How many legs has a spider?", "A spider has eight legs.", "Many people are afraid of spiders."],
    ["Which planet is red?", "Mars is called the red planet.", "Saturn is known for its rings."],
    ["What is the refund period?", "Refunds are given within 30 days.", "The shop opens at nine in the morning."],
    ["Which port does the service use?", "The service listens on port 8080.", "The service is written in Rust."],
];

#[tokio::test(flavor = "multi_thread")]
async fn samples_are_scored_by_a_real_server_or_fail_by_name() {
    let Some(server) = LlamaServer::start().await else {
        return skip(
            "samples_are_scored_by_a_real_server_or_fail_by_name",
            &format!("a llama.cpp server; install it with: {SCRIPT} target/llama install"),
        );
    };
    let scored = judged(&server, "openai", &SAMPLES).await;
    assert!(scored >= 3, "only {scored} of {} were scored", SAMPLES.len());
    judged(&server, "anthropic", &SAMPLES[10..14]).await;
}

/// Has the samples judged by way of a provider; gives how many were scored, after it has looked at all answers.
async fn judged(server: &LlamaServer, provider: &str, samples: &[[&str; 3]]) -> usize {
    let judge = format!("{provider}/{MODEL}");
    let arguments = [
        ["--judge", &judge],
        ["--judge-max-output-tokens", "300"],
        ["--judge-timeout", "120s"],
        ["--request-timeout", "300s"],
        ["--judge-repairs", "0"],
    ];
    let base_url = format!("{}_BASE_URL", provider.to_ascii_uppercase());
    let service = Process::start(arguments.as_flattened(), &[(&base_url, server.url.as_str())]);
    let url = format!("{}/recall/llm", service.url);
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let asked = samples.iter().map(|sample| ask(&client, &url, sample));
    let answers: Vec<(u16, Value)> =
        tokio::time::timeout(PATIENCE, futures_util::stream::iter(asked).buffered(AT_ONCE).collect()).await.unwrap();
    let mut scored = 0;
    for ([_, claim, context], (status, answer)) in samples.iter().zip(&answers) {
        if *status == 200 {
            check(answer, provider, claim, context);
            scored += 1;
        } else {
            let code = answer["code"].as_str().unwrap_or_default();
            let named = ["judge_truncated", "judge_output_invalid", "judge_empty"];
            assert!(*status == 502 && named.contains(&code), "{provider}, {claim}: {status} {answer:#}");
        }
    }
    println!("{provider}: {scored} of {} were scored", samples.len());
    scored
}

async fn ask(client: &reqwest::Client, url: &str, [question, claim, context]: &[&str; 3]) -> (u16, Value) {
    let sample = json!({ "user_input": question, "reference": claim, "retrieved_contexts": [context] });
    let request = client.post(url).header("content-type", "application/json").body(sample.to_string());
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    (status, serde_json::from_str(&response.text().await.unwrap()).unwrap())
}

/// Holds an answer against what was sent and against itself.
fn check(answer: &Value, provider: &str, claim: &str, context: &str) {
    let [verdict] = answer["verdicts"].as_array().unwrap().as_slice() else { panic!("one claim: {answer:#}") };
    assert_eq!(verdict["claim"], claim);
    let recalled = u64::from(verdict["attributed"].as_bool().unwrap());
    assert_eq!((answer["recalled"].as_u64(), answer["total"].as_u64()), (Some(recalled), Some(1)), "{answer:#}");
    assert_eq!(answer["score"], recalled as f64, "{answer:#}");

    let judge = &answer["judge"];
    assert_eq!((&judge["provider"], &judge["model"]), (&json!(provider), &json!(MODEL)));
    assert!(judge["model_reported"].as_str().is_some_and(|name| !name.is_empty()), "{answer:#}");
    let usage = &answer["usage"];
    for count in ["judge_calls", "input_tokens", "output_tokens"] {
        assert!(usage[count].as_u64().is_some_and(|count| count > 0), "{count}: {answer:#}");
    }
    assert!(usage["cached_input_tokens"].as_u64() <= usage["input_tokens"].as_u64(), "{answer:#}");

    let codes: Vec<&str> =
        answer["warnings"].as_array().unwrap().iter().map(|warning| warning["code"].as_str().unwrap()).collect();
    assert!(!codes.contains(&"structured_output_downgraded"), "the server refuses no schema: {answer:#}");
    let evidence = verdict["evidence"].as_array().unwrap();
    let mut matched = 0;
    for place in evidence {
        if place["match"] == "missing" {
            assert_eq!((&place["start"], &place["end"]), (&Value::Null, &Value::Null), "{answer:#}");
            continue;
        }
        matched += 1;
        let [start, end] = ["start", "end"].map(|name| usize::try_from(place[name].as_u64().unwrap()).unwrap());
        let there: String = context.chars().skip(start).take(end - start).collect();
        assert_eq!((&place["context"], &place["quote"]), (&json!(0), &json!(there)), "{answer:#}");
        assert!(!there.is_empty());
    }
    assert_eq!(codes.contains(&"evidence_missing"), recalled == 1 && matched == 0, "{answer:#}");
}
