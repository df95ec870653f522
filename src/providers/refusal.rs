//! What a backend's refusal means: its words, its class, and whether and when another try helps.
//!
//! Every vendor's error body is read here, since gateways answer in each other's formats. A vendor's own file may
//! change the outcome where that vendor's statuses say something else.

use std::time::{Duration, SystemTime};

use reqwest::header::HeaderMap;
use serde_json::Value;

use super::said::Said;
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
        let said = Box::new(Said::of_the_window(window));
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
}
