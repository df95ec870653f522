//! What a backend says in an error body, of whatever make: its words, its codes, the field that it blames.
//!
//! Gateways answer in each other's formats, so all of them are read in one place. What the words amount to is the
//! business of `refusal`.

use serde_json::Value;

use super::envelope;

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
    pub(super) status: Option<u16>,
    /// The model's window in tokens, where a field of its own names it.
    pub(super) window: Option<u32>,
    /// A wait that a field of its own names, such as `34.07s`.
    pub(super) wait: Option<String>,
    /// Is it a quota for the whole day that is used up?
    pub(super) is_for_today: bool,
}

impl Said {
    /// What a backend would say of a question that is over its window, without words.
    pub(super) fn of_the_window(window: u32) -> Self {
        Self { window: Some(window), ..Self::default() }
    }

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
    pub(super) fn from_node(node: &Value, look_inside: bool) -> Self {
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
    pub(super) fn status_in_words(&self) -> Option<u16> {
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
    pub(super) fn is_over_the_window(&self, status: u16) -> bool {
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

    pub(super) fn is_filter(&self) -> bool {
        self.code_is(&["content_filter", "content_policy_violation", "responsibleaipolicyviolation"])
            || self.has("contentpolicyviolationerror")
            || self.has("content management policy")
    }

    pub(super) fn is_about_the_key(&self) -> bool {
        self.code_is(&["invalid_api_key", "authentication_error", "api_key_invalid"]) || self.has("api key not valid")
    }

    /// An allowance that no wait brings back in time.
    pub(super) fn is_out_of_money(&self) -> bool {
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
