//! What a backend's refusal means: its words, its class, and whether and when another try helps.
//!
//! Every vendor's error body is read here, since gateways answer in each other's formats. A vendor's own file may
//! change the outcome where that vendor's statuses say something else.

use std::time::{Duration, SystemTime};

use reqwest::header::HeaderMap;
use serde_json::Value;

use super::{ProviderFault, envelope, wait};

/// A reply as it came, its body unpacked and whole.
#[derive(Debug)]
pub(super) struct Reply {
    /// The HTTP status.
    pub(super) status: u16,
    /// The headers.
    pub(super) headers: HeaderMap,
    /// The body; bytes that are no UTF-8 replaced.
    pub(super) body: String,
}

impl Reply {
    pub(super) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The JSON of a body that must hold some.
    pub(super) fn json(&self) -> Result<Value, Refusal> {
        if self.body.trim().is_empty() {
            return Err(Refusal::unusable(self, "an empty body", true));
        }
        envelope::json(&self.body).ok_or_else(|| {
            let (what, again) = if self.body.trim_start().starts_with('<') {
                ("an HTML page: is the base URL right?", false)
            } else if envelope::breaks_off(&self.body) {
                ("JSON that breaks off", true)
            } else {
                ("something that is not JSON", false)
            };
            Refusal::unusable(self, what, again)
        })
    }

    /// What the backend says of one model, in the reply to a call for it; `None` when it has no such call.
    ///
    /// # Errors
    ///
    /// When it refuses, or says that there is no such model. A 404 for the path says nothing of the model.
    pub(super) fn described_model(&self) -> Result<Option<Value>, Refusal> {
        if matches!(self.status, 404 | 405 | 501) {
            let said = Said::of(&self.body);
            let denied = said.code_is(&["not_found_error", "not_found", "model_not_found"]) && said.has("model");
            return if denied { Err(Refusal::of(self)) } else { Ok(None) };
        }
        if self.is_success() { Ok(envelope::json(&self.body)) } else { Err(Refusal::of(self)) }
    }
}

/// A try that gave no answer.
#[derive(Debug)]
pub(super) struct Refusal {
    /// What kind of failure it is, should it be the last.
    pub(super) fault: ProviderFault,
    /// What happened. Secrets are still in it: only the transport hands it out.
    pub(super) detail: String,
    /// The HTTP status, or the one that stands in its place inside a 200.
    pub(super) status: Option<u16>,
    /// How long the backend asked to be left alone.
    pub(super) wait: Option<Duration>,
    /// Can another try help?
    pub(super) again: bool,
    /// The try may have cost tokens that nobody counted.
    pub(super) uncounted: bool,
    /// The backend's own words; boxed, since every reading of a reply hands a refusal back.
    pub(super) said: Box<Said>,
}

impl Refusal {
    /// The refusal in a reply that is no success.
    pub(super) fn of(reply: &Reply) -> Self {
        let said = Said::of(&reply.body);
        let detail = match reply.status {
            status @ 300..400 => {
                format!("the backend answered {status}, a redirect, which is never followed: is its base URL right?")
            }
            status if said.text.is_empty() => format!("the backend answered {status}"),
            status => format!("the backend answered {status}: {}", said.text),
        };
        Self::classed(reply.status, detail, said, &reply.headers)
    }

    /// The refusal in the `error` of a reply whose status claims success. Its code, where it is one of HTTP's, counts
    /// as the status.
    pub(super) fn inside(error: &Value, reply: &Reply) -> Self {
        let said = Said::from_node(error, true);
        let inner = said.status.filter(|status| (400..600).contains(status));
        let code = inner.map(|code| format!(" {code}")).unwrap_or_default();
        let detail = format!("the backend answered {} with error{code} inside: {}", reply.status, said.text);
        // Without a number the words may still tell; what stays unknown is not worth money.
        let status = inner.or_else(|| said.status_in_words()).unwrap_or(reply.status);
        Self::classed(status, detail, said, &reply.headers)
    }

    /// A reply that is not what was asked for: nothing that a backend said, but what is wrong with it.
    pub(super) fn unusable(reply: &Reply, what: &str, again: bool) -> Self {
        Self {
            detail: format!("the backend answered {} with {what}", reply.status),
            status: Some(reply.status),
            uncounted: true,
            ..Self::without_reply(ProviderFault::Other, String::new(), again)
        }
    }

    /// A try that got no whole reply.
    pub(super) fn without_reply(fault: ProviderFault, detail: String, again: bool) -> Self {
        Self { fault, detail, status: None, wait: None, again, uncounted: false, said: Box::default() }
    }

    /// A question of at least `prompt` tokens, which with `answer` more is over the model's window. Nothing was sent.
    pub(super) fn over_the_window(prompt: u32, answer: u32, window: u32) -> Self {
        let detail = format!(
            "the prompt has at least {prompt} tokens; with {answer} for the answer it does not fit the model's window of {window}, and nothing was sent"
        );
        let said = Box::new(Said { window: Some(window), ..Said::default() });
        Self { said, ..Self::without_reply(ProviderFault::ContextLength, detail, false) }
    }

    /// A request of ours that cannot be written. Nothing was sent.
    pub(super) fn unwritable(error: serde_json::Error) -> Self {
        let detail = format!("our own request cannot be written as JSON: {error}");
        Self::without_reply(ProviderFault::Other, detail, false)
    }

    fn classed(status: u16, detail: String, said: Said, headers: &HeaderMap) -> Self {
        let (fault, mut again) = class(status, &said);
        // The backend knows best, but for what no second try can change.
        let settled = matches!(fault, ProviderFault::ContextLength | ProviderFault::Filtered) || said.is_out_of_money();
        let should_retry = headers.get("x-should-retry").map(|value| value.as_bytes());
        match should_retry {
            Some(b"true") if !settled => again = true,
            Some(b"false") => again = false,
            _ => {}
        }
        let may_clear = again || fault == ProviderFault::RateLimited;
        let wait =
            may_clear.then(|| wait::named(headers, said.wait.as_deref(), &said.text, SystemTime::now())).flatten();
        Self { fault, detail, status: Some(status), wait, again, uncounted: false, said: Box::new(said) }
    }
}

/// Status first, then code, then words; but a code or a sentence that is beyond doubt wins, since statuses lie.
fn class(status: u16, said: &Said) -> (ProviderFault, bool) {
    use ProviderFault as Fault;

    if said.is_over_the_window(status) {
        return (Fault::ContextLength, false);
    }
    if said.is_filter() && status < 500 {
        return (Fault::Filtered, false);
    }
    if said.is_out_of_money() {
        return (Fault::Other, false);
    }
    match status {
        401 | 403 => (Fault::Auth, false),
        400 if said.is_about_the_key() => (Fault::Auth, false),
        408 | 504 => (Fault::Timeout, true),
        429 if said.has("capacity exceeded") => (Fault::Overloaded, true),
        429 => (Fault::RateLimited, true),
        503 | 529 => (Fault::Overloaded, true),
        // Ollama dropped the call, as nginx would for a client that left; we are still here.
        499 => (Fault::Other, true),
        500.. => (Fault::Other, true),
        _ => (Fault::Other, false),
    }
}

/// What a backend said in its refusal.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// Its message as plain text on one line; empty when it said nothing.
    pub(super) text: String,
    /// The field of our request that it names as the culprit; may be empty.
    pub(super) param: String,
    /// Its codes, types and the like, in lower case.
    codes: Vec<String>,
    /// A number among them: mostly an HTTP status.
    status: Option<u16>,
    /// The model's window in tokens, where a field of its own names it.
    pub(super) window: Option<u32>,
    /// A wait that a field of its own names, such as `34.07s`.
    wait: Option<String>,
    /// Is it a quota for the whole day that is used up?
    is_for_today: bool,
}

impl Said {
    /// Reads an error body in any of the forms that backends use.
    pub(super) fn of(body: &str) -> Self {
        let body = body.trim_start_matches('\u{feff}').trim();
        if let Some(json) = envelope::json(body) {
            return Self::from_json(&json);
        }
        let text = if body.starts_with('<') {
            html_title(body).map_or_else(|| "an HTML page".to_owned(), one_line)
        } else {
            one_line(body)
        };
        Self { text, ..Self::default() }
    }

    fn from_json(json: &Value) -> Self {
        // Gemini wraps its error in a list.
        let outer = match json {
            Value::Array(list) => list.first().unwrap_or(json),
            other => other,
        };
        match outer.get("error") {
            // Ollama hands on the whole body of the server behind it as a string. Each such string in a string takes
            // twice the backslashes, so this ends soon.
            Some(Value::String(inner)) if inner.trim_start().starts_with('{') => match envelope::json(inner) {
                Some(json) => Self::from_json(&json),
                None => Self::from_node(&Value::String(inner.clone()), true),
            },
            Some(node) if !node.is_null() => {
                let mut said = Self::from_node(node, true);
                said.take_codes(outer);
                said
            }
            _ => Self::from_node(outer, true),
        }
    }

    /// `look_inside`: a gateway puts the body of the backend behind it, JSON in a string, into `metadata.raw`.
    fn from_node(node: &Value, look_inside: bool) -> Self {
        let mut said = Self {
            text: one_line(&words(node)),
            param: node["param"].as_str().unwrap_or_default().to_owned(),
            ..Self::default()
        };
        said.take_codes(node);
        said.take_codes(&node["innererror"]);
        said.take_details(&node["details"]);
        if let (true, Some(raw)) = (look_inside, node["metadata"]["raw"].as_str()) {
            let inner = match envelope::json(raw) {
                Some(json) => Self::from_node(json.get("error").unwrap_or(&json), false).text,
                None => one_line(raw),
            };
            said.text = format!("{}: {inner}", said.text);
        }
        said.window = node["n_ctx"].as_u64().and_then(|tokens| u32::try_from(tokens).ok());
        for (field, name) in [("n_prompt_tokens", "prompt"), ("n_ctx", "window")] {
            if let Some(tokens) = node[field].as_u64()
                && !said.text.contains(&tokens.to_string())
            {
                said.text.push_str(&format!(" ({name}: {tokens} tokens)"));
            }
        }
        said
    }

    fn take_codes(&mut self, node: &Value) {
        for field in ["code", "type", "status"] {
            match &node[field] {
                Value::String(code) => {
                    self.status = self.status.or_else(|| code.parse().ok());
                    self.codes.push(code.to_ascii_lowercase());
                }
                Value::Number(code) => {
                    let code = code.as_u64().and_then(|code| u16::try_from(code).ok());
                    self.status = self.status.or(code);
                }
                _ => {}
            }
        }
    }

    /// Google's list of details: what kind of error it is, how long to wait, which quota or which fields it is about.
    fn take_details(&mut self, details: &Value) {
        for detail in first_of(details) {
            if let Some(reason) = detail["reason"].as_str() {
                self.codes.push(reason.to_ascii_lowercase());
            }
            if let Some(wait) = detail["retryDelay"].as_str() {
                self.wait = Some(wait.to_owned());
            }
            for violation in first_of(&detail["violations"]) {
                let quota = violation["quotaId"].as_str().filter(|quota| quota.contains("PerDay"));
                if let (Some(quota), false) = (quota, self.is_for_today) {
                    self.is_for_today = true;
                    self.text = one_line(&format!("the quota {quota} is used up: {}", self.text));
                }
            }
            for violation in first_of(&detail["fieldViolations"]) {
                let said = [&violation["field"], &violation["description"]].map(|said| one_line(&words(said)));
                let news: Vec<&str> =
                    said.iter().map(String::as_str).filter(|said| !self.text.contains(said)).collect();
                if !news.is_empty() {
                    self.text = one_line(&format!("{} ({})", self.text, news.join(": ")));
                }
            }
        }
    }

    /// The status that a vendor's name for an error stands for.
    fn status_in_words(&self) -> Option<u16> {
        const NAMES: [(u16, &[&str]); 5] = [
            (401, &["authentication_error"]),
            (429, &["rate_limit_exceeded", "rate_limit_error"]),
            (500, &["api_error"]),
            (504, &["timeout_error"]),
            (529, &["overloaded_error"]),
        ];
        NAMES.iter().find(|(_, names)| self.code_is(names)).map(|(status, _)| *status)
    }

    /// Is one of its codes one of `names` (in lower case)?
    pub(super) fn code_is(&self, names: &[&str]) -> bool {
        self.codes.iter().any(|code| names.contains(&code.as_str()))
    }

    /// Do its words hold `phrase` (in lower case)?
    pub(super) fn has(&self, phrase: &str) -> bool {
        self.text.to_ascii_lowercase().contains(phrase)
    }

    /// Does it name `field` of our request, as the culprit or as a word of its own?
    pub(super) fn names(&self, field: &str) -> bool {
        self.places_of(field).any(|rest| !rest.starts_with(in_word)) || self.param == field
    }

    /// Does it name `field`, or use a word made of it (`thinking` of `think`)?
    pub(super) fn speaks_of(&self, field: &str) -> bool {
        self.places_of(field).next().is_some() || self.param == field
    }

    /// What follows each place where `field` begins as a word. `maxOutputTokens` is called `max_output_tokens` as well:
    /// Google takes the one spelling and refuses in the other.
    fn places_of(&self, field: &str) -> impl Iterator<Item = &str> {
        let spellings = [field.to_owned(), snake_case(field)];
        let count = if spellings[0] == spellings[1] { 1 } else { 2 };
        spellings.into_iter().take(count).flat_map(|name| {
            let places = self.text.match_indices(name.as_str()).filter(|(at, _)| !self.text[..*at].ends_with(in_word));
            places.map(|(at, found)| &self.text[at + found.len()..]).collect::<Vec<_>>()
        })
    }

    /// Is the prompt, or the prompt with the room for the answer, too long?
    fn is_over_the_window(&self, status: u16) -> bool {
        const CODES: [&str; 2] = ["context_length_exceeded", "exceed_context_size_error"];
        const PHRASES: [&str; 9] = [
            "context length",
            "context window",
            "context size",
            "contextwindowexceeded",
            "context limit",
            "prompt is too long",
            "input is too long",
            "input token count",
            "reduce the length of the messages",
        ];
        match status {
            _ if self.code_is(&CODES) => true,
            400 | 422 => PHRASES.iter().any(|phrase| self.has(phrase)),
            // The size of one request against the tokens allowed per minute: waiting is useless.
            429 => self.has("request too large"),
            413 => true,
            _ => false,
        }
    }

    fn is_filter(&self) -> bool {
        self.code_is(&["content_filter", "content_policy_violation", "responsibleaipolicyviolation"])
            || self.has("contentpolicyviolationerror")
            || self.has("content management policy")
    }

    fn is_about_the_key(&self) -> bool {
        self.code_is(&["invalid_api_key", "authentication_error", "api_key_invalid"]) || self.has("api key not valid")
    }

    /// An allowance that no wait brings back in time.
    fn is_out_of_money(&self) -> bool {
        self.is_for_today || self.code_is(&["insufficient_quota", "billing_hard_limit_reached", "billing_not_active"])
    }
}

/// The entries of a list that are looked at: more would only be more of the same.
fn first_of(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().map(Vec::as_slice).unwrap_or_default().iter().take(8)
}

fn in_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// `maxOutputTokens` as `max_output_tokens`.
fn snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    for c in name.chars() {
        if c.is_ascii_uppercase() && snake.ends_with(|before: char| before.is_ascii_lowercase()) {
            snake.push('_');
            snake.push(c.to_ascii_lowercase());
        } else {
            snake.push(c);
        }
    }
    snake
}

/// Is this an error? Some servers fill the place of one that did not happen.
pub(super) fn is_something(error: &Value) -> bool {
    match error {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        _ => true,
    }
}

/// The words of an error object, of whatever make.
fn words(node: &Value) -> String {
    match node {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(list) => list.iter().map(words).collect::<Vec<_>>().join("; "),
        Value::Object(_) => {
            let said = ["message", "msg", "detail", "error_description", "title"]
                .iter()
                .map(|field| words(&node[*field]))
                .find(|said| !said.is_empty());
            match (said, node["loc"].as_array()) {
                // pydantic's way to name a field: `{"loc": ["body", "seed"], "msg": "…"}`
                (Some(said), Some(path)) => {
                    let path: Vec<String> = path.iter().map(words).collect();
                    format!("{}: {said}", path.join("."))
                }
                (Some(said), None) => said,
                (None, _) => node.to_string(),
            }
        }
        other => other.to_string(),
    }
}

fn html_title(page: &str) -> Option<&str> {
    let lower = page.to_ascii_lowercase();
    let open = lower.find("<title")?;
    let start = open + lower[open..].find('>')? + 1;
    let end = start + lower[start..].find('<')?;
    Some(page[start..end].trim()).filter(|title| !title.is_empty())
}

/// Bytes of a backend's words that are looked at: far more than any message, far less than a body may have.
const MOST_WORDS: usize = 16 * 1024;

/// `text` with every run of white space and control characters as one blank. Of a very long text the first words, each
/// of them whole: half a key would not be known for one.
fn one_line(text: &str) -> String {
    let mut line = String::new();
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()) {
        if line.len() + word.len() > MOST_WORDS {
            break;
        }
        if !word.is_empty() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    line
}

/// At most `most` characters of `text` on one line, with an ellipsis where it was cut.
pub(super) fn excerpt(text: &str, most: usize) -> String {
    let line = one_line(text);
    match line.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", line[..end].trim_end()),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(status: u16, headers: &[(&'static str, &str)], body: &str) -> Reply {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        Reply { status, headers: map, body: body.to_owned() }
    }

    #[test]
    fn words_are_found_in_every_kind_of_body() {
        for (body, text) in [
            (
                r#"{"error":{"message":"The model `m` does not exist","code":"model_not_found"}}"#,
                "The model `m` does not exist",
            ),
            ("\n\n\n{\"error\":\"No models\\n loaded\"}", "No models loaded"),
            (r#"{"object":"error","message":"flat","code":400}"#, "flat"),
            (r#"{"detail":"Unauthorized"}"#, "Unauthorized"),
            (r#"{"message":"Unauthorized","request_id":"r"}"#, "Unauthorized"),
            (r#"[{"error":{"code":400,"message":"in a list","status":"INVALID_ARGUMENT"}}]"#, "in a list"),
            (r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#, "Overloaded"),
            (
                r#"{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","seed"],"msg":"Extra inputs are not permitted"}]},"code":null}"#,
                "body.seed: Extra inputs are not permitted",
            ),
            (
                r#"{"error":{"message":"Provider returned error","metadata":{"raw":"busy upstream"}}}"#,
                "Provider returned error: busy upstream",
            ),
            (
                r#"{"error":{"message":"Provider returned error","metadata":{"raw":"{\"error\":{\"message\":\"inner\"}}"}}}"#,
                "Provider returned error: inner",
            ),
            (
                r#"{"error":{"message":"too long","n_prompt_tokens":7,"n_ctx":5}}"#,
                "too long (prompt: 7 tokens) (window: 5 tokens)",
            ),
            (
                r#"{"error":"{\"error\":{\"code\":400,\"message\":\"request (8889 tokens) exceeds\",\"n_ctx\":4096}}"}"#,
                "request (8889 tokens) exceeds (window: 4096 tokens)",
            ),
            (r#"{"error":"{not JSON"}"#, "{not JSON"),
            (r#"{"error":{"code":7}}"#, r#"{"code":7}"#),
            (r#"{"error":null,"message":"m"}"#, "m"),
            (r#""just a string""#, "just a string"),
            ("[]", ""),
            ("<html>\r\n<head><title>502 Bad\r\nGateway</title></head><b>x</b></html>", "502 Bad Gateway"),
            ("<!doctype html><TITLE lang=en>Ü</TITLE>", "Ü"),
            ("<html><title", "an HTML page"),
            ("Internal\tServer\u{0} Error", "Internal Server Error"),
            ("{\"error\": cut", "{\"error\": cut"),
            ("", ""),
            (" \n ", ""),
        ] {
            assert_eq!(Said::of(body).text, text, "{body}");
        }
    }

    #[test]
    fn refusals_are_classed_by_status_then_code_then_words() {
        use ProviderFault as Fault;
        let error =
            |code: &str, message: &str| serde_json::json!({"error": {"code": code, "message": message}}).to_string();
        for (status, body, fault, again) in [
            (401, error("", "key"), Fault::Auth, false),
            (403, error("", "no access"), Fault::Auth, false),
            (403, error("content_filter", "moderated"), Fault::Filtered, false),
            (400, error("invalid_api_key", "key"), Fault::Auth, false),
            (400, error("", "bad"), Fault::Other, false),
            (400, error("content_filter", "x"), Fault::Filtered, false),
            (400, error("", "API key not valid. Please pass a valid API key."), Fault::Auth, false),
            (400, error("context_length_exceeded", "limit 4097"), Fault::ContextLength, false),
            (
                400,
                error("", "This model's maximum context length is 4096 tokens, max_tokens is 99"),
                Fault::ContextLength,
                false,
            ),
            (500, error("context_length_exceeded", "x"), Fault::ContextLength, false),
            (402, error("", "pay"), Fault::Other, false),
            (404, error("model_not_found", "no"), Fault::Other, false),
            (408, error("408", "slow"), Fault::Timeout, true),
            (413, error("rate_limit_exceeded", "Request too large"), Fault::ContextLength, false),
            (422, error("", "x"), Fault::Other, false),
            (429, error("rate_limit_exceeded", "x"), Fault::RateLimited, true),
            (429, error("insufficient_quota", "x"), Fault::Other, false),
            (429, error("rate_limit_exceeded", "Request too large for m"), Fault::ContextLength, false),
            (429, error("", "Service tier capacity exceeded for this model."), Fault::Overloaded, true),
            (500, String::new(), Fault::Other, true),
            (502, "<html>".to_owned(), Fault::Other, true),
            (503, error("", "Loading model"), Fault::Overloaded, true),
            (504, String::new(), Fault::Timeout, true),
            (529, String::new(), Fault::Overloaded, true),
            (524, String::new(), Fault::Other, true),
            (499, String::new(), Fault::Other, true),
            (307, String::new(), Fault::Other, false),
        ] {
            let refusal = Refusal::of(&reply(status, &[], &body));
            assert_eq!((refusal.fault, refusal.again), (fault, again), "{status} {body}");
            assert!(refusal.detail.contains(&status.to_string()));
        }
    }

    #[test]
    fn the_backend_may_say_whether_another_try_helps() {
        let again =
            |status, value: &str, body: &str| Refusal::of(&reply(status, &[("x-should-retry", value)], body)).again;
        assert!(again(400, "true", ""));
        assert!(!again(500, "false", ""));
        assert!(!again(429, "false", ""));
        assert!(again(500, "perhaps", ""));
        assert!(!again(429, "true", r#"{"error":{"code":"insufficient_quota"}}"#));
        assert!(!again(400, "true", r#"{"error":{"code":"content_filter"}}"#));
    }

    #[test]
    fn googles_details_are_read() {
        use ProviderFault as Fault;
        let refusal = |status, details: Value| {
            let error = serde_json::json!({"code": status, "message": "m, quota exceeded", "details": details});
            Refusal::of(&reply(status, &[], &serde_json::json!({"error": error}).to_string()))
        };
        let wait = serde_json::json!({"@type": "…/google.rpc.RetryInfo", "retryDelay": "34.5s"});
        let quota = |id: &str| serde_json::json!({"violations": [{"quotaId": "Other"}, {"quotaId": id}]});
        let busy = refusal(429, serde_json::json!([quota("RequestsPerMinute"), wait]));
        assert_eq!(
            (busy.fault, busy.again, busy.wait),
            (Fault::RateLimited, true, Some(Duration::from_millis(34_500)))
        );

        // A wait is named here too, and is of no use: the day is not over by then.
        let spent = refusal(429, serde_json::json!([quota("RequestsPerDayPerProject"), wait]));
        assert_eq!((spent.fault, spent.again, spent.wait), (Fault::Other, false, None));
        assert!(spent.detail.contains("the quota RequestsPerDayPerProject is used up: m"), "{}", spent.detail);

        let key = refusal(400, serde_json::json!([{"reason": "API_KEY_INVALID"}]));
        assert_eq!((key.fault, key.again), (Fault::Auth, false));

        let field = |words: &str| serde_json::json!([{"fieldViolations": [{"field": words}, {"description": "quota exceeded"}]}]);
        assert_eq!(
            refusal(400, field("generation_config.seed")).said.text,
            "m, quota exceeded (generation_config.seed)"
        );
        assert_eq!(refusal(400, field("")).said.text, "m, quota exceeded");
        for details in
            [Value::Null, serde_json::json!("x"), serde_json::json!([1, {"violations": {}, "retryDelay": 4}])]
        {
            assert_eq!(refusal(429, details).fault, Fault::RateLimited);
        }
    }

    #[test]
    fn an_error_inside_a_success_counts_by_its_code() {
        use ProviderFault as Fault;
        for (error, fault, again) in [
            (serde_json::json!({"code": 429, "message": "m"}), Fault::RateLimited, true),
            (serde_json::json!({"code": "502", "message": "m"}), Fault::Other, true),
            (serde_json::json!({"code": 401, "message": "m"}), Fault::Auth, false),
            (serde_json::json!({"code": "rate_limit_exceeded", "message": "m"}), Fault::RateLimited, true),
            (serde_json::json!({"type": "overloaded_error", "message": "m"}), Fault::Overloaded, true),
            (serde_json::json!({"type": "api_error", "message": "m"}), Fault::Other, true),
            (serde_json::json!({"type": "authentication_error", "message": "m"}), Fault::Auth, false),
            (serde_json::json!({"code": 7, "message": "m"}), Fault::Other, false),
            (serde_json::json!("m"), Fault::Other, false),
        ] {
            let refusal = Refusal::inside(&error, &reply(200, &[], ""));
            assert_eq!((refusal.fault, refusal.again), (fault, again), "{error}");
            assert!(refusal.detail.starts_with("the backend answered 200 with error"));
            assert!(refusal.detail.ends_with("inside: m"));
        }
    }

    #[test]
    fn a_field_is_named_by_param_or_as_a_whole_word() {
        let said = Said::of(r#"{"error":{"message":"use max_completion_tokens, not 'seed'","param":"top_p"}}"#);
        assert!(said.names("max_completion_tokens") && said.names("seed") && said.names("top_p"));
        assert!(!said.names("max_tokens") && !said.names("tokens") && !said.names("see"));
        assert!(said.names("maxCompletionTokens") && !said.names("maxTokens"));
        assert!(said.speaks_of("maxCompletion") && !said.speaks_of("completionTokens"));
    }

    #[test]
    fn excerpts_are_cut_between_characters() {
        assert_eq!(excerpt(" ä\n\nö ü ", 9), "ä ö ü");
        assert_eq!(excerpt("äöü", 2), "äö…");
        assert_eq!(excerpt("", 2), "");
        assert_eq!(excerpt(&format!("a {}", "k".repeat(MOST_WORDS)), 2), "a");
    }
}
