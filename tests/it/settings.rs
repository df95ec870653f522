//! Settings: read, checked together, refused aloud.

use crate::support::process::run;

fn refused(arguments: &[&str], variables: &[(&str, &str)]) -> String {
    let output = run(arguments, variables);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn all_faults_are_reported_at_once() {
    let said = refused(
        &["--judge-timeout", "soon"],
        &[
            ("PORT", "70000"),
            ("RECALL_HOST", "localhost"),
            ("RECALL_JUDGE", "gpt-4o"),
            ("RECALL_BODY_LIMIT", "many"),
            ("RECALL_JUDGE_ATTEMPTS", "0"),
            ("RECALL_LOG", "xml"),
            ("RECALL_BODYLIMIT", "1MiB"),
            ("RECALL_PORT", "9000"),
            ("RUST_LOG", "a=b=c"),
        ],
    );
    insta::assert_snapshot!(said, @r#"
    context-recall: the settings cannot be used:
      - RECALL_BODYLIMIT: unknown setting; did you mean RECALL_BODY_LIMIT?
      - RECALL_PORT: unknown setting; did you mean PORT?
      - --host (RECALL_HOST): expected an IP address such as 127.0.0.1 or 0.0.0.0, found `localhost`
      - --port (PORT): expected a port from 0 to 65535, found `70000`
      - --judge (RECALL_JUDGE): expected embedded, or openai, azure, anthropic, gemini or ollama with /MODEL, found `gpt-4o`
      - --judge-timeout (RECALL_JUDGE_TIMEOUT): expected a duration from 1ms to 24h, such as 60s or 2m, found `soon`
      - --judge-attempts (RECALL_JUDGE_ATTEMPTS): expected a number from 1 to 100, found `0`
      - --body-limit (RECALL_BODY_LIMIT): expected a size from 1KiB to 4GiB, such as 32MiB, found `many`
      - --log (RECALL_LOG): expected text or json, found `xml`
      - RUST_LOG: expected a filter such as info or context_recall=debug: error parsing level filter: expected one of "off", "error", "warn", "info", "debug", "trace", or a number 0-5
    "#);
}

#[test]
fn an_empty_variable_counts_as_not_set_and_kubernetes_own_are_passed_over() {
    let output = run(
        &["openapi"],
        &[
            ("PORT", ""),
            ("RECALL_JUDGE", ""),
            ("RECALL_LOG", " "),
            ("OPENAI_API_KEY", ""),
            ("RECALL_SERVICE_HOST", "10.0.0.1"),
            ("RECALL_PORT_80_TCP", "tcp://10.0.0.1:80"),
            ("RECALL_PORT", "tcp://10.0.0.1:80"),
        ],
    );
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn a_judge_at_the_public_address_needs_its_key_and_a_local_one_does_not() {
    for (judge, url, key, host) in [
        ("openai/m", "OPENAI_BASE_URL", "OPENAI_API_KEY", "https://api.openai.com"),
        ("anthropic/m", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "https://api.anthropic.com"),
        ("gemini/m", "GEMINI_BASE_URL", "GEMINI_API_KEY", "https://generativelanguage.googleapis.com"),
    ] {
        for variables in [&[][..], &[(url, host)], &[(url, &format!("{host}/v1/"))]] {
            let variables = [&[("RECALL_JUDGE", judge)], variables].concat();
            let said = refused(&["openapi"], &variables);
            assert!(said.contains(&format!("{key}: needed for a judge at {}", &host[8..])), "{said}");
            assert!(run(&["openapi"], &[&variables[..], &[(key, "sk-x")]].concat()).status.success());
        }
        let said = refused(&["openapi"], &[("RECALL_JUDGE", judge), (url, "ftp://swordfish@h"), (key, "sk-x")]);
        assert!(said.contains(&format!("{url}: the base URL")) && !said.contains("swordfish"), "{said}");
    }
    for variables in [
        [("RECALL_JUDGE", "anthropic/m"), ("ANTHROPIC_BASE_URL", "http://127.0.0.1:8081")],
        [("RECALL_JUDGE", "gemini/models/m"), ("GEMINI_BASE_URL", "http://127.0.0.1:8081")],
        [("RECALL_JUDGE", "openai/org/model"), ("OPENAI_BASE_URL", "http://127.0.0.1:8081")],
        [("RECALL_JUDGE", "openai/gpt-4o-mini"), ("OPENAI_API_KEY", "sk-x")],
        // A key alone starts no paid calls; neither is it a fault.
        [("RECALL_JUDGE", "embedded"), ("OPENAI_API_KEY", "sk-x")],
    ] {
        assert!(run(&["openapi"], &variables).status.success(), "{variables:?}");
    }
}

#[test]
fn a_judge_on_azure_needs_its_address_and_its_key() {
    let judge = ("RECALL_JUDGE", "azure/my-gpt");
    let said = refused(&["openapi"], &[judge]);
    assert!(said.contains("AZURE_OPENAI_ENDPOINT: needed") && said.contains("AZURE_OPENAI_API_KEY: needed"), "{said}");
    let said = refused(&["openapi"], &[judge, ("AZURE_OPENAI_ENDPOINT", "n.openai.azure.com")]);
    assert!(said.contains("AZURE_OPENAI_ENDPOINT: the base URL is no URL"), "{said}");
    assert!(said.contains("AZURE_OPENAI_API_KEY: needed"), "{said}");
    let other = "https://n.openai.azure.com/openai/deployments/other/chat/completions?api-version=2024-10-21";
    let said = refused(&["openapi"], &[judge, ("AZURE_OPENAI_ENDPOINT", other), ("AZURE_OPENAI_API_KEY", "k")]);
    assert!(said.contains("names the deployment `other`, but the judge is azure/my-gpt"), "{said}");
    let endpoint = ("AZURE_OPENAI_ENDPOINT", "https://n.openai.azure.com/");
    assert!(run(&["openapi"], &[judge, endpoint, ("AZURE_OPENAI_API_KEY", "k")]).status.success());
}

#[test]
fn a_judge_in_ollama_is_found_as_ollama_finds_itself() {
    let judge = ("RECALL_JUDGE", "ollama/hf.co/org/model:Q4_K_M");
    assert!(run(&["openapi"], &[judge]).status.success(), "it needs nothing");
    for host in ["0.0.0.0", "gpu-box:1234", "https://gpu-box/team", "[::]"] {
        assert!(run(&["openapi"], &[judge, ("OLLAMA_HOST", host)]).status.success(), "{host}");
    }
    let said = refused(&["openapi"], &[judge, ("OLLAMA_HOST", "gpu-box:port")]);
    assert!(said.contains("OLLAMA_HOST: the base URL is no URL (invalid port number)"), "{said}");
    let said = refused(&["openapi"], &[judge, ("OLLAMA_HOST", "ollama.com")]);
    assert!(said.contains("OLLAMA_API_KEY: needed for a judge at ollama.com"), "{said}");
}

#[test]
fn a_secret_may_stand_in_a_file_and_is_never_shown() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    std::fs::write(&path, "sk-secret\n").unwrap();
    let file = path.to_str().unwrap();
    let judge = ("RECALL_JUDGE", "openai/m");
    assert!(run(&["openapi"], &[judge, ("OPENAI_API_KEY_FILE", file)]).status.success());

    let said = refused(&["openapi"], &[judge, ("OPENAI_API_KEY_FILE", file), ("OPENAI_API_KEY", "sk-other-secret")]);
    assert!(said.contains("OPENAI_API_KEY and OPENAI_API_KEY_FILE: give one of them"), "{said}");
    assert!(!said.contains("sk-"), "{said}");

    let said = refused(&["openapi"], &[judge, ("OPENAI_API_KEY_FILE", "/nowhere")]);
    assert!(said.contains("the file /nowhere cannot be read") && !said.contains("needed"), "{said}");
    std::fs::write(&path, "\n").unwrap();
    let said = refused(&["openapi"], &[judge, ("OPENAI_API_KEY_FILE", file)]);
    assert!(said.contains("OPENAI_API_KEY_FILE: the secret is blank"), "{said}");
}

#[test]
fn a_key_or_address_that_cannot_be_used_stops_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    std::fs::write(&path, "sk-two\nlines").unwrap();
    let said = refused(&["--port", "0", "--judge", "openai/m"], &[("OPENAI_API_KEY_FILE", path.to_str().unwrap())]);
    assert!(!said.contains("sk-two"), "{said}");
    for url in ["localhost:1234", "ftp://host/v1", "http://"] {
        let variables = [("OPENAI_BASE_URL", url), ("RECALL_QUEUE", "-5")];
        let said = refused(&["--port", "0", "--judge", "openai/m", "--judge-repairs", "-1"], &variables);
        assert!(said.contains("OPENAI_BASE_URL: the base URL"), "{url}: {said}");
        assert!(said.contains("--judge-repairs") && said.contains("--queue"), "{url}: {said}");
    }
}

#[test]
fn where_verdicts_are_remembered_is_checked_and_a_password_never_shown() {
    for good in
        ["", "off", "memory", "file:/tmp/m", "redis://h", "redis://:swordfish@h:6380/2", "rediss://u:swordfish@h"]
    {
        assert!(run(&["openapi"], &[("RECALL_CACHE", good)]).status.success(), "{good}");
    }
    for bad in [
        "file",
        "file:",
        "file: ",
        "/tmp/m",
        "redis",
        "redis:",
        "redis://",
        "redis://:swordfish@h:x",
        "redis://h/swordfish",
        "http://:swordfish@h",
        "Memory",
        "redis://:swordfish@h:99999",
        "redis://:swordfish\u{e9}@h",
    ] {
        let said = refused(&["openapi"], &[("RECALL_CACHE", bad)]);
        assert!(said.contains("--cache (RECALL_CACHE): ") && !said.contains("swordfish"), "{bad}: {said}");
    }
    let said = refused(&["--cache-size", "10", "--cache-ttl", "0s"], &[]);
    assert!(
        said.contains("--cache-size (RECALL_CACHE_SIZE)") && said.contains("--cache-ttl (RECALL_CACHE_TTL)"),
        "{said}"
    );
    assert!(run(&["openapi", "--cache-ttl", "30d", "--cache-size", "1GiB"], &[]).status.success());
    let help = run(&["--help"], &[("RECALL_CACHE", "redis://:swordfish@h")]);
    assert!(!String::from_utf8(help.stdout).unwrap().contains("swordfish"));

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("url");
    let file = ("RECALL_CACHE_FILE", path.to_str().unwrap());
    std::fs::write(&path, "redis://:swordfish@h\n").unwrap();
    assert!(run(&["openapi"], &[file]).status.success());
    for (arguments, variables) in
        [(&["openapi"][..], vec![file, ("RECALL_CACHE", "off")]), (&["--cache", "off"], vec![file])]
    {
        let said = refused(arguments, &variables);
        assert!(said.contains("RECALL_CACHE_FILE: give one of them"), "{said}");
    }
    std::fs::write(&path, "redis://:swordfish@h:x").unwrap();
    let said = refused(&["openapi"], &[file]);
    assert!(said.contains("names no Redis: Redis URL did not parse") && !said.contains("swordfish"), "{said}");
    let said = refused(&["openapi"], &[("RECALL_CACHE_FILE", "/nowhere")]);
    assert!(said.contains("the file /nowhere cannot be read"), "{said}");
}

#[test]
fn a_misspelt_flag_is_refused_with_advice() {
    let output = run(&["--judge-time", "1s"], &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--judge-timeout"), "{output:?}");
}

#[test]
fn flags_stand_before_or_after_the_task_and_win_over_variables() {
    for arguments in [["--body-limit", "x", "serve"], ["serve", "--body-limit", "x"]] {
        let said = refused(&arguments, &[("RECALL_BODY_LIMIT", "1MiB")]);
        assert!(said.contains("found `x`"), "{said}");
    }
}
