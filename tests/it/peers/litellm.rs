//! `LiteLLM`'s proxy as the judge's backend: scripted models, failing ones, and the real llama.cpp server behind it
//! (`tests/peers/litellm.yaml`).

use std::time::Duration;

use serde_json::{Value, json};

use super::llama::{self, MODEL, QUICK, ask, check, is_downgraded};
use crate::support::peer::{Server, folder, skip};
use crate::support::process::Process;
use crate::support::{KEY, Service, eiffel};

const SCRIPT: &str = "tests/peers/start-litellm.sh";

fn service(proxy: &Server, model: &str, key: &str) -> Service {
    let judge = format!("openai/{model}");
    let arguments = [
        "--cache",
        "off",
        "--judge",
        &judge,
        "--judge-attempts",
        "2",
        "--judge-timeout",
        "30s",
        "--request-timeout",
        "90s",
    ];
    Service::with(&arguments, &[("OPENAI_BASE_URL", &proxy.url), ("OPENAI_API_KEY", key)])
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_real_gateway_answers_is_a_score_or_has_its_name() {
    let folder = folder("LITELLM_DIR", "litellm");
    if !folder.join("installed").exists() {
        let needed = format!("LiteLLM's proxy; install it with: {SCRIPT} target/litellm install");
        return skip("what_a_real_gateway_answers_is_a_score_or_has_its_name", &needed);
    }
    let llama = llama::server().await;
    let behind = llama.as_ref().map_or_else(|| "http://127.0.0.1:9/v1".to_owned(), |(url, _)| format!("{url}/v1"));
    let proxy = Server::start(SCRIPT, &folder, &[], &[("LLAMA_BASE_URL", &behind)], "/health/liveliness").await;

    for model in ["verdicts", "fenced"] {
        let answer = service(&proxy, model, KEY).post("/recall/llm", &eiffel()).await.ok();
        assert_eq!((&answer["score"], &answer["total"]), (&json!(0.5), &json!(2)), "{model}: {answer:#}");
        assert_eq!(answer["usage"]["judge_calls"], 1, "{model}");
        let quote = if model == "verdicts" { json!("stands in Paris") } else { Value::Null };
        assert_eq!(answer["verdicts"][0]["evidence"][0]["quote"], quote, "{model}: {answer:#}");
    }
    for (model, status, code, retryable) in [
        ("half", 502, "judge_output_invalid", false),
        ("prose", 502, "judge_output_invalid", false),
        ("cut", 502, "judge_truncated", false),
        ("blank", 502, "judge_empty", false),
        ("limited", 503, "upstream_rate_limited", true),
        ("broken", 502, "upstream_error", true),
        ("gone", 502, "upstream_error", true),
        ("slow", 504, "upstream_timeout", true),
        ("too-long", 422, "context_length_exceeded", false),
        ("filtered", 502, "content_filtered", false),
        ("not-in-its-list", 502, "upstream_error", false),
    ] {
        let answer = service(&proxy, model, KEY).post("/recall/llm", &eiffel()).await;
        assert_eq!(answer.status, status, "{model}: {}", answer.text());
        let problem = answer.problem(status, code);
        assert_eq!(problem["retryable"], retryable, "{model}: {problem:#}");
        assert!(!answer.text().contains(KEY), "{model}: {problem:#}");
    }
    // Without a database the proxy cannot tell a wrong key from trouble of its own, and says 400.
    let problem = service(&proxy, "verdicts", "sk-wrong-0123456789").post("/recall/llm", &eiffel()).await;
    let problem = problem.problem(502, "upstream_error");
    assert!(!problem.to_string().contains("sk-wrong"), "{problem:#}");

    let Some((_, _turn)) = llama else {
        return skip("what_a_real_gateway_answers_is_a_score_or_has_its_name, its second half,", llama::NEEDED);
    };
    let judge = format!("openai/{MODEL}");
    let arguments = [
        ["--judge", &judge],
        ["--judge-max-output-tokens", "80"],
        ["--judge-timeout", "120s"],
        ["--request-timeout", "300s"],
        ["--judge-repairs", "0"],
    ];
    let variables = [("OPENAI_BASE_URL", proxy.url.as_str()), ("OPENAI_API_KEY", KEY)];
    let service = Process::start(arguments.as_flattened(), &variables);
    let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(300)).build().unwrap();
    let mut scored = 0;
    for sample in QUICK {
        let (status, answer) = ask(&client, &format!("{}/recall/llm", service.url), sample).await;
        if status == 200 {
            check(&answer, "openai", sample[1], sample[2]);
            assert!(!is_downgraded(&answer), "the schema passes through: {answer:#}");
            scored += 1;
        } else {
            let code = answer["code"].as_str().unwrap_or_default();
            let is_named = ["judge_truncated", "judge_output_invalid"].contains(&code);
            assert!(status == 502 && is_named && answer.get("score").is_none(), "{status} {answer:#}");
        }
    }
    println!("{scored} of {} were scored through the gateway", QUICK.len());
    assert!(scored > 0);
}
