//! Reading a message, from whichever server speaks the format.

use serde_json::Value;

use super::super::backend::Completion;
use super::super::refusal::{Refusal, Reply};
use super::super::said::{excerpt, is_something};
use super::super::{Ending, Tokens, envelope};

/// Characters of a refusal in the model's words that are passed on.
const WORDS: usize = 300;

/// Reads a reply; `sent_limit` is the output limit that the request held.
pub(super) fn read(reply: &Reply, sent_limit: Option<u32>) -> Result<Completion, Refusal> {
    if !reply.is_success() {
        return Err(Refusal::of(reply));
    }
    let body = reply.json()?;
    if is_something(&body["error"]) {
        return Err(Refusal::inside(&body["error"], reply));
    }
    let stop = body["stop_reason"].as_str().unwrap_or_default();
    if stop.is_empty() && !matches!(body["content"], Value::Array(_) | Value::String(_)) {
        let what = "JSON that holds neither content nor an error: is the base URL right?";
        return Err(Refusal::unusable(reply, what, false));
    }
    if stop == "pause_turn" {
        // The vendor pauses turns with tools that run on its side. We send none, so there is nothing to go on with; a
        // part of an answer must not pass for one.
        return Err(Refusal::unusable(reply, "a turn that is paused and not finished", true));
    }
    Ok(completion(&body, stop, sent_limit))
}

fn completion(body: &Value, stop: &str, sent_limit: Option<u32>) -> Completion {
    let Blocks { text, thoughts, calls } = Blocks::of(&body["content"]);
    // Whoever calls the tool may say something before, which is no part of the answer unless it is one itself.
    let text = match (calls.is_empty(), text.contains('{')) {
        (true, _) => text,
        (false, false) => calls,
        (false, true) => format!("{text}\n{calls}"),
    };
    let tokens = tokens(&body["usage"]);
    let ending = match stop {
        "max_tokens" | "model_context_window_exceeded" => Ending::Truncated,
        "refusal" => {
            let explanation = body["stop_details"]["explanation"].as_str().unwrap_or(&text);
            Ending::Refused(excerpt(explanation, WORDS))
        }
        // Gateways keep the word of the backend behind them.
        "content_filter" | "content_filtered" => Ending::Filtered(excerpt(&text, WORDS)),
        // Whole (`end_turn`, `tool_use`, `stop_sequence`) and every word that we do not know: whether the text is good
        // is seen from the text.
        _ if envelope::is_cut(&text, tokens.output, sent_limit) => Ending::Truncated,
        _ => Ending::Whole,
    };
    Completion {
        text,
        reasoning: Some(thoughts).filter(|thoughts| !thoughts.trim().is_empty()),
        ending,
        model: body["model"].as_str().filter(|model| !model.is_empty()).map(str::to_owned),
        tokens,
    }
}

/// The content of a message, taken apart.
#[derive(Debug, Default)]
struct Blocks {
    text: String,
    thoughts: String,
    /// What the tool was called with, as JSON. Calls that differ stay apart: whoever reads them sees that they do.
    calls: String,
}

impl Blocks {
    fn of(content: &Value) -> Self {
        let mut blocks = Self::default();
        match content {
            Value::String(text) => blocks.text.clone_from(text),
            Value::Array(list) => list.iter().for_each(|block| blocks.take(block)),
            _ => {}
        }
        blocks
    }

    fn take(&mut self, block: &Value) {
        let words = |field: &str| block[field].as_str().unwrap_or_default();
        match words("type") {
            "text" => self.text.push_str(words("text")),
            "thinking" => self.thoughts.push_str(words("thinking")),
            "tool_use" => match &block["input"] {
                Value::Object(fields) if fields.is_empty() => {}
                Value::Object(_) => self.call(&block["input"].to_string()),
                // Some gateways leave the arguments in OpenAI's form.
                Value::String(arguments) => self.call(arguments),
                _ => {}
            },
            _ => {}
        }
    }

    fn call(&mut self, input: &str) {
        if !self.calls.is_empty() {
            self.calls.push('\n');
        }
        self.calls.push_str(input);
    }
}

/// Usage in the meaning that all providers share: here the cached parts come on top of `input_tokens`.
fn tokens(usage: &Value) -> Tokens {
    let part = |field: &str| usage[field].as_u64().unwrap_or(0);
    let cached = part("cache_read_input_tokens");
    let beside = cached.saturating_add(part("cache_creation_input_tokens"));
    let output = usage["output_tokens"].as_u64();
    let input = usage["input_tokens"].as_u64();
    Tokens {
        input: input.map(|input| input.saturating_add(beside)),
        cached_input: input.map(|_| cached),
        output,
        reasoning: output.map(|_| usage["output_tokens_details"]["thinking_tokens"].as_u64().unwrap_or(0)),
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

    fn message(fields: &Value) -> Completion {
        read(&reply(200, &fields.to_string()), Some(100)).unwrap()
    }

    #[test]
    fn the_answer_is_found_among_the_blocks() {
        let text = |text: &str| json!({"type": "text", "text": text});
        let call = |input: Value| json!({"type": "tool_use", "id": "t", "name": "n", "input": input});
        let thought = json!({"type": "thinking", "thinking": "hmm [1]", "signature": "c2ln"});
        let hidden = json!({"type": "redacted_thinking", "data": "e30="});
        for (content, answer, reasoning) in [
            (json!([text("{\"a\""), text(":1}")]), "{\"a\":1}", None),
            (json!([thought, hidden, text("{}")]), "{}", Some("hmm [1]")),
            (json!([text("So:"), call(json!({"b": 1, "a": [2]}))]), "{\"b\":1,\"a\":[2]}", None),
            (json!([call(json!({"a": 1})), call(json!({"a": 2}))]), "{\"a\":1}\n{\"a\":2}", None),
            (json!([text("{\"a\":1}"), call(json!({}))]), "{\"a\":1}", None),
            (json!([call(json!("{\"a\":1}"))]), "{\"a\":1}", None),
            (json!([text("t"), call(Value::Null), {"type": "text"}, {"type": "new", "text": "x"}, 7, "x"]), "t", None),
            (json!([thought]), "", Some("hmm [1]")),
            (json!([]), "", None),
            (json!("plain"), "plain", None),
            (Value::Null, "", None),
        ] {
            let message = message(&json!({"content": content, "stop_reason": "end_turn", "model": ""}));
            assert_eq!((message.text.as_str(), message.reasoning.as_deref()), (answer, reasoning), "{content}");
            assert_eq!((message.ending, message.model), (Ending::Whole, None));
        }
    }

    #[test]
    fn the_ending_is_told_from_the_stop_reason() {
        let refused = |words: &str| Ending::Refused(words.to_owned());
        for (stop, ending) in [
            (json!("end_turn"), Ending::Whole),
            (json!("tool_use"), Ending::Whole),
            (json!("stop_sequence"), Ending::Whole),
            (json!("tomorrow's"), Ending::Whole),
            (Value::Null, Ending::Whole),
            (json!("max_tokens"), Ending::Truncated),
            (json!("model_context_window_exceeded"), Ending::Truncated),
            (json!("refusal"), refused("I will not.")),
            (json!("content_filter"), Ending::Filtered("I will not.".to_owned())),
        ] {
            let body = json!({"content": [{"type": "text", "text": "I will not."}], "stop_reason": stop});
            assert_eq!(message(&body).ending, ending, "{stop}");
        }
        let details = json!({"type": "refusal", "category": "bio", "explanation": "Not\nthis."});
        let body = json!({"content": [], "stop_reason": "refusal", "stop_details": details});
        assert_eq!(message(&body).ending, refused("Not this."));
    }

    #[test]
    fn an_answer_that_used_up_its_limit_must_close() {
        for (text, output, ending) in [
            ("{\"a\":[1", 100, Ending::Truncated),
            ("{\"a\":[1", 99, Ending::Whole),
            ("{\"a\":[1]}", 100, Ending::Whole),
        ] {
            let content = json!([{"type": "text", "text": text}]);
            let usage = json!({"input_tokens": 1, "output_tokens": output});
            let body = json!({"content": content, "stop_reason": "end_turn", "usage": usage});
            assert_eq!(message(&body).ending, ending, "{text} {output}");
        }
    }

    #[test]
    fn usage_means_what_it_means_for_every_provider() {
        let some = |input, cached_input, output, reasoning| Tokens { input, cached_input, output, reasoning };
        for (usage, expected) in [
            (Value::Null, Tokens::default()),
            (json!({"input_tokens": 5, "output_tokens": 2}), some(Some(5), Some(0), Some(2), Some(0))),
            (
                json!({
                    "input_tokens": 5, "cache_creation_input_tokens": 30, "cache_read_input_tokens": 100,
                    "output_tokens": 9, "output_tokens_details": {"thinking_tokens": 7},
                }),
                some(Some(135), Some(100), Some(9), Some(7)),
            ),
            (
                json!({"input_tokens": 5, "cache_creation_input_tokens": null, "cache_read_input_tokens": null}),
                some(Some(5), Some(0), None, None),
            ),
            (json!({"cache_read_input_tokens": 100, "output_tokens": 2}), some(None, None, Some(2), Some(0))),
            (
                json!({"input_tokens": u64::MAX, "cache_read_input_tokens": 1}),
                some(Some(u64::MAX), Some(1), None, None),
            ),
            (json!({"input_tokens": -1, "output_tokens": 2.5}), Tokens::default()),
        ] {
            assert_eq!(tokens(&usage), expected, "{usage}");
        }
    }

    #[test]
    fn what_is_no_answer_is_a_failure() {
        let overloaded = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
        for (status, body, fault, again, words) in [
            (200, "", Fault::Other, true, "an empty body"),
            (200, "<html>", Fault::Other, false, "an HTML page"),
            (200, "{}", Fault::Other, false, "neither content nor an error"),
            (200, "[]", Fault::Other, false, "neither content nor an error"),
            (200, "{\"content\":[{\"type\"", Fault::Other, true, "breaks off"),
            (200, overloaded, Fault::Overloaded, true, "Overloaded"),
            (529, overloaded, Fault::Overloaded, true, "Overloaded"),
            (200, r#"{"content":[],"stop_reason":"pause_turn"}"#, Fault::Other, true, "paused"),
            (
                404,
                r#"{"type":"error","error":{"type":"not_found_error","message":"model: m"}}"#,
                Fault::Other,
                false,
                "model: m",
            ),
            (
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#,
                Fault::ContextLength,
                false,
                "200000",
            ),
            (
                402,
                r#"{"type":"error","error":{"type":"billing_error","message":"Your credit balance is too low"}}"#,
                Fault::Other,
                false,
                "credit balance",
            ),
        ] {
            let refusal = read(&reply(status, body), None).unwrap_err();
            assert_eq!((refusal.fault, refusal.again), (fault, again), "{body}");
            assert!(refusal.detail.contains(words), "{}", refusal.detail);
        }
    }

    #[test]
    fn a_stream_that_nobody_asked_for_is_read_where_it_is_one_event() {
        let message = json!({"content": [{"type": "text", "text": "{}"}], "stop_reason": "end_turn"});
        let body = format!("event: message\ndata: {message}\n\ndata: [DONE]\n\n");
        assert_eq!(read(&reply(200, &body), None).unwrap().text, "{}");
    }
}
