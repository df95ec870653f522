//! `/docs` in a real browser: Chromium without a window, driven over `WebDriver`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::peer::{found, skip};
use crate::support::process::Process;
use crate::support::project;

/// Where the picture of the page is left for people.
const PICTURE: &str = "target/docs.png";

/// How long the page may take for a step.
const PATIENCE: Duration = Duration::from_secs(30);

struct Browser {
    driver: Child,
    port: u16,
    client: reqwest::Client,
    /// The session's address at the driver.
    session: String,
    _profile: tempfile::TempDir,
}

impl Browser {
    async fn start(chromium: &str) -> Self {
        let mut driver = Command::new("chromedriver");
        driver.arg("--port=0").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut driver = driver.spawn().unwrap();
        let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines().map(Result::unwrap);
        let port = lines.find_map(|line| {
            line.split_once(" on port ")?.1.trim_end_matches('.').parse().ok().filter(|&port| port != 0)
        });
        let port = port.unwrap();
        // Read on, so that a full pipe never holds the driver up.
        std::thread::spawn(move || lines.for_each(drop));
        let profile = tempfile::tempdir().unwrap();
        let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(120)).build().unwrap();
        let mut browser =
            Self { driver, port, client, session: format!("http://127.0.0.1:{port}/session"), _profile: profile };
        let arguments = json!([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--window-size=1280,2400",
            format!("--user-data-dir={}", browser._profile.path().display())
        ]);
        let wanted = json!({ "capabilities": { "alwaysMatch": {
            "browserName": "chrome",
            "goog:chromeOptions": { "binary": chromium, "args": arguments },
            "goog:loggingPrefs": { "browser": "ALL", "performance": "ALL" }
        } } });
        let started = browser.post("", &wanted).await;
        browser.session = format!("{}/{}", browser.session, started["sessionId"].as_str().unwrap());
        browser
    }

    async fn read(&self, request: reqwest::RequestBuilder) -> Result<Value, String> {
        let response = request.send().await.unwrap();
        let is_fine = response.status().is_success();
        let text = response.text().await.unwrap();
        let answer: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error} in {text}"));
        if is_fine { Ok(answer["value"].clone()) } else { Err(answer["value"]["message"].to_string()) }
    }

    async fn try_post(&self, path: &str, body: &Value) -> Result<Value, String> {
        let request = self.client.post(format!("{}{path}", self.session));
        self.read(request.header("content-type", "application/json").body(body.to_string())).await
    }

    async fn post(&self, path: &str, body: &Value) -> Value {
        self.try_post(path, body).await.unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Tries until it works: the page draws itself step by step.
    async fn until<T>(&self, what: &str, mut attempt: impl AsyncFnMut() -> Result<T, String>) -> T {
        let end = Instant::now() + PATIENCE;
        loop {
            match attempt().await {
                Ok(value) => return value,
                Err(error) if Instant::now() > end => panic!("{what}: {error}"),
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    }

    async fn element(&self, selector: &str) -> Result<String, String> {
        let found = self.try_post("/element", &json!({ "using": "css selector", "value": selector })).await?;
        let id = found.as_object().and_then(|found| found.values().next()).and_then(Value::as_str);
        id.map(str::to_owned).ok_or_else(|| format!("{found} is no element"))
    }

    async fn click(&self, selector: &str) {
        let clicked = async || {
            let id = self.element(selector).await?;
            self.try_post(&format!("/element/{id}/click"), &json!({})).await.map(drop)
        };
        self.until(selector, clicked).await;
    }

    /// The text that a person sees there.
    async fn text(&self, selector: &str) -> String {
        let text = async || {
            let id = self.element(selector).await?;
            let text = self.read(self.client.get(format!("{}/element/{id}/text", self.session))).await?;
            text.as_str().filter(|text| !text.is_empty()).map(str::to_owned).ok_or_else(|| "empty".to_owned())
        };
        self.until(selector, text).await
    }

    /// What a field holds.
    async fn typed(&self, selector: &str) -> String {
        let typed = async || {
            let id = self.element(selector).await?;
            let value = self.read(self.client.get(format!("{}/element/{id}/property/value", self.session))).await?;
            value.as_str().filter(|value| !value.is_empty()).map(str::to_owned).ok_or_else(|| "empty".to_owned())
        };
        self.until(selector, typed).await
    }

    /// What the browser noted: `browser` for the console, `performance` for what it loaded.
    async fn log(&self, kind: &str) -> Vec<Value> {
        self.post("/se/log", &json!({ "type": kind })).await.as_array().unwrap().clone()
    }

    async fn take_picture(&self) {
        let picture = self.read(self.client.get(format!("{}/screenshot", self.session))).await.unwrap();
        let picture = decode_base64(picture.as_str().unwrap());
        assert!(picture.starts_with(b"\x89PNG"));
        std::fs::create_dir_all(project("target")).unwrap();
        std::fs::write(project(PICTURE), picture).unwrap();
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Also ends the browser that it started, which killing it would leave behind.
        if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) {
            let _ = stream.set_read_timeout(Some(Duration::from_secs(10)));
            let _ = stream.write_all(b"GET /shutdown HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n");
            let _ = stream.read_to_end(&mut Vec::new());
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

fn decode_base64(text: &str) -> Vec<u8> {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bytes, mut held, mut bits) = (Vec::new(), 0_u32, 0);
    for symbol in text.bytes().filter(|&symbol| symbol != b'=') {
        let value = ALPHABET.iter().position(|&known| known == symbol).unwrap();
        held = (held << 6 | value as u32) & 0xffff;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((held >> bits & 0xff) as u8);
        }
    }
    bytes
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_shows_the_routes_and_posts_a_sample() {
    let version: &[&str] = &["--version"];
    let chromium = found(&[(&["chromium"], version), (&["google-chrome"], version)]);
    let (Some(chromium), Some(_)) = (chromium, found(&[(&["chromedriver"], version)])) else {
        return skip("the_page_shows_the_routes_and_posts_a_sample", "chromium and chromedriver");
    };
    let path = Command::new("which").arg(&chromium[0]).output().unwrap().stdout;
    let service = Process::start(&[], &[]);
    let browser = Browser::start(String::from_utf8(path).unwrap().trim()).await;
    browser.post("/url", &json!({ "url": format!("{}/docs", service.url) })).await;

    for route in ["llm", "nonllm", "id"] {
        let shown = browser.text(&format!("#operations-recall-recall_{route} .opblock-summary")).await;
        assert!(shown.contains("POST") && shown.contains(&format!("/recall/{route}")), "{shown}");
    }
    let block = "#operations-recall-recall_id";
    browser.click(&format!("{block} .opblock-summary-control")).await;
    browser.click(&format!("{block} .try-out__btn")).await;
    let sample = browser.typed(&format!("{block} textarea.body-param__text")).await;
    browser.click(&format!("{block} .execute")).await;
    let answered = format!("{block} .live-responses-table .response");
    let status = browser.text(&format!("{answered} .response-col_status")).await;
    let body = browser.text(&format!("{answered} .response-col_description .highlight-code code")).await;
    browser.take_picture().await;
    assert!(status.starts_with("200"), "{status}: {body}");
    let shown: Value = serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error} in {body}"));
    let sample = browser.client.post(format!("{}/recall/id", service.url)).body(sample);
    let answer = sample.header("content-type", "application/json").send().await.unwrap().text().await.unwrap();
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert!(shown["score"].is_number() && shown["score"].as_f64() == answer["score"].as_f64(), "{body}");
    assert_eq!(shown["verdicts"], answer["verdicts"]);

    let errors: Vec<Value> =
        browser.log("browser").await.into_iter().filter(|line| line["level"] == "SEVERE").collect();
    assert!(errors.is_empty(), "the console shows errors: {errors:#?}");
    let mut loaded = 0;
    for entry in browser.log("performance").await {
        let message: Value = serde_json::from_str(entry["message"].as_str().unwrap()).unwrap();
        if message["message"]["method"] != "Network.requestWillBeSent" {
            continue;
        }
        let url = message["message"]["params"]["request"]["url"].as_str().unwrap();
        let is_inline = ["data:", "blob:", "chrome:", "about:"].iter().any(|scheme| url.starts_with(scheme));
        assert!(is_inline || url.starts_with(&service.url), "the page asks {url}");
        loaded += 1;
    }
    assert!(loaded > 4, "the log of what was loaded is missing");
}
