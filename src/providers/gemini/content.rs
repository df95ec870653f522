//! Reading what a model generated.

use serde_json::Value;

use super::super::backend::Completion;
use super::super::refusal::{Refusal, Reply};
use super::super::said::{excerpt, is_something};
use super::super::{Ending, ProviderFault, Tokens, envelope};

/// Characters of a filter's words that are passed on.
const WORDS: usize = 300;

/// Reads a reply; `sent_limit` is the output limit that the request held.
pub(super) fn read(reply: &Reply, sent_limit: Option<u32>) -> Result<Completion, Refusal> {
    if !reply.is_success() {
        return Err(Refusal::of(reply));
    }
    let body = reply.json()?;
    // Some answers of Google come as a list of one.
    let body = match body.as_array().map(Vec::as_slice) {
        Some([only]) => only,
        _ => &body,
    };
    if is_something(&body["error"]) {
        return Err(Refusal::inside(&body["error"], reply));
    }
    let candidate = &body["candidates"][0];
    if !candidate.is_object() {
        if let Some(reason) = body["promptFeedback"]["blockReason"].as_str() {
            return Err(blocked(reply, reason, &body["promptFeedback"]["blockReasonMessage"]));
        }
        if !["candidates", "promptFeedback", "usageMetadata"].iter().any(|field| body.get(field).is_some()) {
            let what = "JSON that holds neither candidates nor an error: is the base URL right?";
            return Err(Refusal::unusable(reply, what, false));
        }
    }
    completion(reply, body, candidate, sent_limit)
}

/// The prompt was blocked: no answer was generated, and none will be for the same prompt.
fn blocked(reply: &Reply, reason: &str, message: &Value) -> Refusal {
    let detail = format!("the backend answered {} and blocked the prompt: {}", reply.status, said(reason, message));
    Refusal { status: Some(reply.status), ..Refusal::without_reply(ProviderFault::Filtered, detail, false) }
}

/// A reason with the sentence that goes with it, if any.
fn said(reason: &str, message: &Value) -> String {
    match message.as_str() {
        Some(message) => excerpt(&format!("{reason}: {message}"), WORDS),
        None => excerpt(reason, WORDS),
    }
}

fn completion(reply: &Reply, body: &Value, candidate: &Value, sent_limit: Option<u32>) -> Result<Completion, Refusal> {
    let (mut text, mut thoughts) = (String::new(), String::new());
    // Content or parts may be missing: nothing was generated, or thinking took all the room.
    for part in candidate["content"]["parts"].as_array().into_iter().flatten() {
        let is_thought = part["thought"].as_bool().unwrap_or(false);
        let into = if is_thought { &mut thoughts } else { &mut text };
        into.push_str(part["text"].as_str().unwrap_or_default());
    }
    let tokens = tokens(&body["usageMetadata"]);
    let ending = match candidate["finishReason"].as_str().unwrap_or("STOP") {
        "MAX_TOKENS" => Ending::Truncated,
        reason @ ("SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII") => {
            Ending::Filtered(said(reason, &candidate["finishMessage"]))
        }
        "STOP" | "FINISH_REASON_UNSPECIFIED" if envelope::is_cut(&text, tokens.output, sent_limit) => Ending::Truncated,
        "STOP" | "FINISH_REASON_UNSPECIFIED" => Ending::Whole,
        other => {
            // These are the model's slips. A language that it does not know stays unknown, and what a reason from
            // tomorrow means is not worth money.
            let may_pass = matches!(other, "OTHER" | "MALFORMED_RESPONSE" | "MALFORMED_FUNCTION_CALL");
            let what = format!("the finish reason `{}`", said(other, &candidate["finishMessage"]));
            return Err(Refusal::unusable(reply, &what, may_pass));
        }
    };
    Ok(Completion {
        text,
        reasoning: Some(thoughts).filter(|thoughts| !thoughts.trim().is_empty()),
        ending,
        model: body["modelVersion"].as_str().filter(|model| !model.is_empty()).map(str::to_owned),
        tokens,
    })
}

/// Usage in the meaning that all providers share: here thoughts come on top of the candidates' tokens, and a count of 0
/// is left out.
fn tokens(usage: &Value) -> Tokens {
    let count = |field: &str| usage[field].as_u64();
    let (answer, thoughts) = (count("candidatesTokenCount"), count("thoughtsTokenCount"));
    let output = match (answer, thoughts) {
        (None, None) => None,
        (answer, thoughts) => Some(answer.unwrap_or(0).saturating_add(thoughts.unwrap_or(0))),
    };
    let input = count("promptTokenCount");
    Tokens {
        input,
        cached_input: input.map(|_| count("cachedContentTokenCount").unwrap_or(0)),
        output,
        reasoning: output.map(|_| thoughts.unwrap_or(0)),
    }
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderMap;
    use serde_json::json;

    use super::*;
    use crate::providers::ProviderFault as Fault;

    fn reply(status: u16, body: &str) -> Reply {
        Reply { status, headers: HeaderMap::new(), body: body.to_owned() }
    }

    fn generated(body: &Value) -> Result<Completion, Refusal> {
        read(&reply(200, &body.to_string()), Some(100))
    }

    fn candidate(candidate: &Value) -> Completion {
        generated(&json!({"candidates": [candidate]})).unwrap()
    }

    #[test]
    fn the_answer_is_joined_from_the_parts_that_are_no_thoughts() {
        for (content, text, reasoning) in [
            (json!({"parts": [{"text": "{\"a\""}, {"text": ":1}"}]}), "{\"a\":1}", None),
            (
                json!({"parts": [{"text": "{\"draft\":1}", "thought": true}, {"text": "{}", "thought": false, "thoughtSignature": "c2ln"}]}),
                "{}",
                Some("{\"draft\":1}"),
            ),
            (json!({"parts": [{"text": "only thoughts", "thought": true}]}), "", Some("only thoughts")),
            (json!({"parts": [{"functionCall": {"name": "f"}}, {"text": 7}, 7, {"text": "t"}]}), "t", None),
            (json!({"parts": []}), "", None),
            (json!({"role": "model"}), "", None),
            (Value::Null, "", None),
        ] {
            let completion = candidate(&json!({"content": content, "finishReason": "STOP"}));
            assert_eq!((completion.text.as_str(), completion.reasoning.as_deref()), (text, reasoning), "{content}");
            assert_eq!(completion.ending, Ending::Whole);
        }
        for body in [json!({"candidates": []}), json!({"usageMetadata": {}}), json!([{"candidates": [{}]}])] {
            let completion = generated(&body).unwrap();
            assert_eq!((completion.text.as_str(), completion.ending, completion.model), ("", Ending::Whole, None));
        }
    }

    #[test]
    fn the_ending_is_told_from_the_finish_reason() {
        let filtered = |words: &str| Ending::Filtered(words.to_owned());
        for (finish, ending) in [
            (json!("STOP"), Ending::Whole),
            (json!("FINISH_REASON_UNSPECIFIED"), Ending::Whole),
            (Value::Null, Ending::Whole),
            (json!("MAX_TOKENS"), Ending::Truncated),
            (json!("SAFETY"), filtered("SAFETY: why")),
            (json!("RECITATION"), filtered("RECITATION: why")),
            (json!("BLOCKLIST"), filtered("BLOCKLIST: why")),
            (json!("PROHIBITED_CONTENT"), filtered("PROHIBITED_CONTENT: why")),
            (json!("SPII"), filtered("SPII: why")),
        ] {
            let parts = json!({"parts": [{"text": "{}"}]});
            let completion = candidate(&json!({"content": parts, "finishReason": finish, "finishMessage": "why"}));
            assert_eq!(completion.ending, ending, "{finish}");
        }
        assert_eq!(candidate(&json!({"finishReason": "SAFETY"})).ending, filtered("SAFETY"));
        for (finish, again) in [
            ("OTHER", true),
            ("MALFORMED_RESPONSE", true),
            ("MALFORMED_FUNCTION_CALL", true),
            ("LANGUAGE", false),
            ("TOMORROWS_REASON", false),
        ] {
            let parts = json!({"parts": [{"text": "{\"verdicts\":[]}"}]});
            let body = json!({"candidates": [{"content": parts, "finishReason": finish}]});
            let refusal = generated(&body).unwrap_err();
            assert_eq!((refusal.fault, refusal.again, refusal.uncounted), (Fault::Other, again, true), "{finish}");
            assert!(refusal.detail.contains(finish), "{}", refusal.detail);
        }
    }

    #[test]
    fn an_answer_that_used_up_its_limit_must_close() {
        for (text, thoughts, ending) in
            [("{\"a\":[1", 90, Ending::Truncated), ("{\"a\":[1", 89, Ending::Whole), ("{}", 90, Ending::Whole)]
        {
            let candidate = json!({"content": {"parts": [{"text": text}]}, "finishReason": "STOP"});
            let usage = json!({"candidatesTokenCount": 10, "thoughtsTokenCount": thoughts});
            let body = json!({"candidates": [candidate], "usageMetadata": usage});
            assert_eq!(generated(&body).unwrap().ending, ending, "{text} {thoughts}");
        }
    }

    #[test]
    fn a_blocked_prompt_is_filtered_and_not_asked_again() {
        for (feedback, words) in [
            (json!({"blockReason": "SAFETY"}), "blocked the prompt: SAFETY"),
            (json!({"blockReason": "OTHER", "blockReasonMessage": "why"}), "blocked the prompt: OTHER: why"),
        ] {
            for body in [
                json!({"promptFeedback": feedback, "usageMetadata": {"promptTokenCount": 5}}),
                json!({"promptFeedback": feedback, "candidates": []}),
            ] {
                let refusal = generated(&body).unwrap_err();
                assert_eq!((refusal.fault, refusal.again), (Fault::Filtered, false), "{body}");
                assert!(refusal.detail.ends_with(words), "{}", refusal.detail);
            }
        }
        // Ratings alone block nothing.
        let rated = json!({"promptFeedback": {"safetyRatings": []}, "candidates": [{"finishReason": "STOP"}]});
        assert_eq!(generated(&rated).unwrap().ending, Ending::Whole);
    }

    #[test]
    fn usage_means_what_it_means_for_every_provider() {
        let some = |input, cached_input, output, reasoning| Tokens { input, cached_input, output, reasoning };
        for (usage, expected) in [
            (Value::Null, Tokens::default()),
            (json!({"promptTokenCount": 5, "candidatesTokenCount": 2}), some(Some(5), Some(0), Some(2), Some(0))),
            (
                json!({"promptTokenCount": 900, "cachedContentTokenCount": 512, "candidatesTokenCount": 120, "thoughtsTokenCount": 300}),
                some(Some(900), Some(512), Some(420), Some(300)),
            ),
            (json!({"promptTokenCount": 5, "thoughtsTokenCount": 7}), some(Some(5), Some(0), Some(7), Some(7))),
            (json!({"promptTokenCount": 50, "totalTokenCount": 70}), some(Some(50), Some(0), None, None)),
            (json!({"candidatesTokenCount": -1}), Tokens::default()),
        ] {
            assert_eq!(tokens(&usage), expected, "{usage}");
        }
    }

    #[test]
    fn what_is_no_answer_is_a_failure() {
        let invalid_key = r#"{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}]}}"#;
        let unavailable = r#"{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}"#;
        let window = r#"[{"error":{"code":400,"message":"The input token count (1100000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]"#;
        for (status, body, fault, again, words) in [
            (200, "", Fault::Other, true, "an empty body"),
            (200, "<html>", Fault::Other, false, "an HTML page"),
            (200, "{}", Fault::Other, false, "neither candidates nor an error"),
            (200, "[]", Fault::Other, false, "neither candidates nor an error"),
            (200, "[{},{}]", Fault::Other, false, "neither candidates nor an error"),
            (200, "{\"candidates\":[{", Fault::Other, true, "breaks off"),
            (200, unavailable, Fault::Overloaded, true, "overloaded"),
            (503, unavailable, Fault::Overloaded, true, "overloaded"),
            (400, invalid_key, Fault::Auth, false, "API key not valid"),
            (400, window, Fault::ContextLength, false, "1048576"),
            (403, r#"{"error":{"status":"PERMISSION_DENIED"}}"#, Fault::Auth, false, "PERMISSION_DENIED"),
            (504, r#"{"error":{"status":"DEADLINE_EXCEEDED"}}"#, Fault::Timeout, true, "DEADLINE_EXCEEDED"),
        ] {
            let refusal = read(&reply(status, body), None).unwrap_err();
            assert_eq!((refusal.fault, refusal.again), (fault, again), "{body}");
            assert!(refusal.detail.contains(words), "{}", refusal.detail);
        }
    }

    #[test]
    fn a_stream_that_nobody_asked_for_is_read_where_it_is_one_event() {
        let event = json!({"candidates": [{"content": {"parts": [{"text": "{}"}]}, "finishReason": "STOP"}]});
        assert_eq!(read(&reply(200, &format!("data: {event}\n\n")), None).unwrap().text, "{}");
    }
}
