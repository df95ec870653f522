//! Reading a chat completion, from whichever server speaks the format.

use serde_json::Value;

use super::super::backend::Completion;
use super::super::refusal::{Refusal, Reply};
use super::super::said::{excerpt, is_something};
use super::super::{Ending, Tokens, envelope};

/// Characters of a refusal in the model's words that are passed on.
const WORDS: usize = 300;

/// Reads a reply; `sent_limit` is the output limit that the request held.
pub(in super::super) fn read(reply: &Reply, sent_limit: Option<u32>) -> Result<Completion, Refusal> {
    if !reply.is_success() {
        return failed_generation(reply).ok_or_else(|| Refusal::of(reply));
    }
    let body = reply.json()?;
    let choice = &body["choices"][0];
    for error in [&body["error"], &choice["error"]] {
        if is_something(error) {
            return Err(Refusal::inside(error, reply));
        }
    }
    if !choice.is_object() {
        let what = "JSON that holds neither choices nor an error: is the base URL right?";
        return Err(Refusal::unusable(reply, what, false));
    }
    let finish = choice["finish_reason"].as_str().unwrap_or_default();
    let finish = finish.to_ascii_lowercase();
    if finish == "error" {
        return Err(Refusal::unusable(reply, "the finish reason `error`", true));
    }
    Ok(completion(&body, &choice["message"], &finish, sent_limit))
}

fn completion(body: &Value, message: &Value, finish: &str, sent_limit: Option<u32>) -> Completion {
    let Parts { mut text, thoughts, refusal } = Parts::of(&message["content"]);
    // We send no tools, but gateways turn an answer schema into a forced tool call and forget to turn it back. Answers that
    // differ stay apart: whoever reads them sees that they do.
    let calls = message["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
    let calls = calls.iter().map(|call| &call["function"]["arguments"]).chain([&message["function_call"]["arguments"]]);
    let calls: Vec<&str> = calls.filter_map(Value::as_str).collect();
    if !calls.is_empty() && !text.contains('{') {
        text.clear();
    }
    for call in calls {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(call);
    }
    let reasoning = ["reasoning_content", "reasoning"]
        .iter()
        .filter_map(|field| message[*field].as_str())
        .find(|thoughts| !thoughts.trim().is_empty())
        .map_or(thoughts, str::to_owned);
    let refusal = message["refusal"].as_str().unwrap_or(&refusal);
    let tokens = tokens(&body["usage"]);
    let ending = match finish {
        "content_filter" | "safety" | "recitation" | "blocklist" | "prohibited_content" | "spii" => {
            Ending::Filtered(excerpt(if refusal.is_empty() { &text } else { refusal }, WORDS))
        }
        _ if !refusal.trim().is_empty() => Ending::Refused(excerpt(refusal, WORDS)),
        "length" | "max_tokens" | "model_length" | "model_context_window_exceeded" => Ending::Truncated,
        // Whole, `stop` and every word that we do not know: whether the text is good is seen from the text.
        _ if envelope::is_cut(&text, tokens.output, sent_limit) => Ending::Truncated,
        _ => Ending::Whole,
    };
    Completion {
        text,
        reasoning: Some(reasoning).filter(|reasoning| !reasoning.trim().is_empty()),
        ending,
        model: body["model"].as_str().filter(|model| !model.is_empty()).map(str::to_owned),
        tokens,
    }
}

/// The content of a message, taken apart.
#[derive(Debug, Default)]
struct Parts {
    text: String,
    thoughts: String,
    refusal: String,
}

impl Parts {
    fn of(content: &Value) -> Self {
        let mut parts = Self::default();
        match content {
            Value::String(text) => parts.text.clone_from(text),
            Value::Array(list) => list.iter().for_each(|part| parts.take(part)),
            _ => {}
        }
        parts
    }

    fn take(&mut self, part: &Value) {
        match part["type"].as_str() {
            Some("thinking" | "reasoning") => push_texts(part, &mut self.thoughts),
            Some("refusal") => self.refusal.push_str(part["refusal"].as_str().unwrap_or_default()),
            _ => {
                let text = part.as_str().or_else(|| part["text"].as_str());
                self.text.push_str(text.unwrap_or_default());
            }
        }
    }
}

/// Mistral nests thoughts as text parts below `thinking`; others hold a string there or in `text`.
fn push_texts(part: &Value, thoughts: &mut String) {
    for field in ["thinking", "text"] {
        match &part[field] {
            Value::String(text) => thoughts.push_str(text),
            Value::Array(list) => {
                list.iter().filter_map(|inner| inner["text"].as_str()).for_each(|text| thoughts.push_str(text))
            }
            _ => {}
        }
    }
}

/// Groq checks the model's text itself and answers 400 when it breaks the schema: the model's fault, not the request's,
/// so its text is handed on as an answer that whoever asked can have mended.
fn failed_generation(reply: &Reply) -> Option<Completion> {
    if reply.status != 400 {
        return None;
    }
    let body = envelope::json(&reply.body)?;
    let error = &body["error"];
    if error["code"].as_str() != Some("json_validate_failed") {
        return None;
    }
    let message = error["message"].as_str().unwrap_or_default();
    let cut = message.to_ascii_lowercase().contains("max completion tokens reached");
    Some(Completion {
        text: error["failed_generation"].as_str().unwrap_or_default().to_owned(),
        reasoning: None,
        ending: if cut { Ending::Truncated } else { Ending::Whole },
        model: None,
        tokens: Tokens::default(),
    })
}

/// Usage in one meaning for all servers: cached tokens inside the input, reasoning inside the output; a part left out
/// beside a reported total is 0, a total left out is unknown.
fn tokens(usage: &Value) -> Tokens {
    let input = usage["prompt_tokens"].as_u64();
    let output = usage["completion_tokens"].as_u64();
    let cached =
        usage["prompt_tokens_details"]["cached_tokens"].as_u64().or_else(|| usage["prompt_cache_hit_tokens"].as_u64());
    let reasoning = usage["completion_tokens_details"]["reasoning_tokens"].as_u64();
    let output = match (input, output, reasoning, usage["total_tokens"].as_u64()) {
        // xAI counts reasoning beside the completion; the total gives it away.
        (Some(input), Some(output), Some(reasoning), Some(total))
            if input.checked_add(output).and_then(|sum| sum.checked_add(reasoning)) == Some(total) =>
        {
            Some(output + reasoning)
        }
        (_, output, _, _) => output,
    };
    Tokens {
        input,
        cached_input: input.map(|_| cached.unwrap_or(0)),
        output,
        reasoning: output.map(|_| reasoning.unwrap_or(0)),
    }
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderMap;
    use serde_json::json;

    use super::*;

    fn reply(status: u16, body: &str) -> Reply {
        Reply { status, headers: HeaderMap::new(), body: body.to_owned() }
    }

    /// A completion of one choice, read with an output limit of 100.
    fn read_choice(choice: &Value, usage: &Value) -> Completion {
        let body = json!({"model": "m", "choices": [choice], "usage": usage});
        read(&reply(200, &body.to_string()), Some(100)).unwrap()
    }

    fn message(message: &Value) -> Completion {
        let choice = json!({"finish_reason": "stop", "message": message});
        read_choice(&choice, &Value::Null)
    }

    #[test]
    fn text_is_found_in_every_form_of_content() {
        for (content, text) in [
            (json!({"content": "plain"}), "plain"),
            (json!({"content": [{"type": "text", "text": "a"}, {"type": "output_text", "text": "b"}, "c"]}), "abc"),
            (json!({"content": null}), ""),
            (json!({}), ""),
            (json!({"content": 7}), ""),
            (json!({"content": null, "tool_calls": [{"function": {"arguments": "{\"a\":1}"}}]}), "{\"a\":1}"),
            (json!({"content": "t", "tool_calls": [{"function": {"arguments": "{\"a\":1}"}}]}), "{\"a\":1}"),
            (
                json!({"content": "{}", "tool_calls": [{"function": {"arguments": "[1]"}}, {"function": {"arguments": "[2]"}}]}),
                "{}\n[1]\n[2]",
            ),
            (json!({"content": "", "function_call": {"arguments": "{}"}}), "{}"),
        ] {
            let completion = message(&content);
            assert_eq!(completion.text, text, "{content}");
            assert_eq!(completion.ending, Ending::Whole);
            assert_eq!(completion.reasoning, None);
        }
    }

    #[test]
    fn reasoning_is_kept_apart() {
        let thinking = json!({"content": [
            {"type": "thinking", "thinking": [{"type": "text", "text": "hmm [1]"}]},
            {"type": "text", "text": "{}"},
        ]});
        for content in [
            thinking,
            json!({"content": "{}", "reasoning_content": "hmm [1]"}),
            json!({"content": "{}", "reasoning": "hmm [1]", "reasoning_content": ""}),
        ] {
            let completion = message(&content);
            assert_eq!(completion.text, "{}");
            assert_eq!(completion.reasoning.as_deref(), Some("hmm [1]"), "{content}");
        }
    }

    #[test]
    fn the_ending_is_told_from_reason_and_refusal() {
        let refused = || Ending::Refused("no".to_owned());
        for (finish, said, ending) in [
            ("stop", json!({"content": "{}"}), Ending::Whole),
            ("eos", json!({"content": "{}"}), Ending::Whole),
            ("length", json!({"content": ""}), Ending::Truncated),
            ("MAX_TOKENS", json!({"content": "{}"}), Ending::Truncated),
            ("content_filter", json!({}), Ending::Filtered(String::new())),
            ("SAFETY", json!({"refusal": "unsafe"}), Ending::Filtered("unsafe".to_owned())),
            ("stop", json!({"content": null, "refusal": "no"}), refused()),
            ("stop", json!({"content": [{"type": "refusal", "refusal": "no"}]}), refused()),
            ("stop", json!({"content": "{}", "refusal": null}), Ending::Whole),
            ("stop", json!({"content": "{}", "refusal": ""}), Ending::Whole),
        ] {
            let choice = json!({"finish_reason": finish, "message": said});
            assert_eq!(read_choice(&choice, &Value::Null).ending, ending, "{choice}");
        }
        let unnamed = json!({"message": {"content": "{}"}});
        assert_eq!(read_choice(&unnamed, &Value::Null).ending, Ending::Whole);
    }

    #[test]
    fn an_answer_that_used_up_its_limit_must_close() {
        for (text, output, ending) in [
            ("{\"a\":[1", 100, Ending::Truncated),
            ("", 120, Ending::Truncated),
            ("{\"a\":[1", 99, Ending::Whole),
            ("{\"a\":[1]}\n", 100, Ending::Whole),
            ("[1]", 100, Ending::Whole),
            ("```json\n{}\n```", 100, Ending::Whole),
        ] {
            let choice = json!({"finish_reason": "stop", "message": {"content": text}});
            let usage = json!({"prompt_tokens": 1, "completion_tokens": output});
            assert_eq!(read_choice(&choice, &usage).ending, ending, "{text} {output}");
        }
    }

    #[test]
    fn usage_means_the_same_for_every_server() {
        let some = |input, cached_input, output, reasoning| Tokens { input, cached_input, output, reasoning };
        for (usage, expected) in [
            (Value::Null, Tokens::default()),
            (json!({"prompt_tokens": null, "completion_tokens": -1}), Tokens::default()),
            (json!({"prompt_tokens": 5}), some(Some(5), Some(0), None, None)),
            (
                json!({"completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 3}}),
                some(None, None, Some(5), Some(0)),
            ),
            (
                json!({"prompt_tokens": 5, "completion_tokens": 2, "prompt_cache_hit_tokens": 4}),
                some(Some(5), Some(4), Some(2), Some(0)),
            ),
            (
                json!({"prompt_tokens": 5, "completion_tokens": 9, "total_tokens": 14, "completion_tokens_details": {"reasoning_tokens": 7}}),
                some(Some(5), Some(0), Some(9), Some(7)),
            ),
            (
                json!({"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 14, "completion_tokens_details": {"reasoning_tokens": 7}}),
                some(Some(5), Some(0), Some(9), Some(7)),
            ),
        ] {
            assert_eq!(tokens(&usage), expected, "{usage}");
        }
    }

    #[test]
    fn a_success_without_an_answer_is_a_failure() {
        for (body, again, words) in [
            ("", true, "an empty body"),
            (" \n\n", true, "an empty body"),
            ("<html><title>Welcome</title></html>", false, "an HTML page"),
            ("OK", false, "not JSON"),
            ("{}", false, "neither choices nor an error"),
            ("{\"choices\":[]}", false, "neither choices nor an error"),
            ("[]", false, "neither choices nor an error"),
            ("{\"choices\":[{\"finish_reason\":\"error\"}]}", true, "finish reason `error`"),
            ("{\"error\":\"went wrong\"}", false, "went wrong"),
            ("{\"choices\":[{\"error\":{\"code\":502,\"message\":\"gone\"}}]}", true, "gone"),
        ] {
            let refusal = read(&reply(200, body), None).unwrap_err();
            assert_eq!(refusal.again, again, "{body}");
            assert!(refusal.detail.contains(words), "{}", refusal.detail);
            assert!(refusal.detail.contains("200"));
        }
    }

    #[test]
    fn an_error_that_did_not_happen_is_none() {
        for error in [json!(null), json!(""), json!({}), json!(false)] {
            let choice = json!({"message": {"content": "{}"}, "error": error});
            let body = json!({"error": error, "choices": [choice]}).to_string();
            assert_eq!(read(&reply(200, &body), None).unwrap().text, "{}", "{body}");
        }
    }

    #[test]
    fn a_text_that_failed_the_hosts_check_is_handed_on() {
        let body = |message: &str| {
            json!({"error": {"code": "json_validate_failed", "message": message, "failed_generation": "{\"a\""}})
                .to_string()
        };
        let completion = read(&reply(400, &body("Failed to validate JSON")), Some(9)).unwrap();
        assert_eq!((completion.text.as_str(), completion.ending), ("{\"a\"", Ending::Whole));
        let cut = body("max completion tokens reached before generating a valid document");
        assert_eq!(read(&reply(400, &cut), Some(9)).unwrap().ending, Ending::Truncated);
    }
}
