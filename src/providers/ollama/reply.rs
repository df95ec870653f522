//! Reading a reply of Ollama's own API, and telling whether the prompt was read whole.
//!
//! A prompt that is longer than the window is cut to half of it (older versions: to all of it) and answered with 200.
//! Only the count of tokens read gives it away. That count means different things: since 0.2 it is the whole prompt,
//! before and for a while in 0.30 it leaves out what was cached, down to a single token or to no count at all. So a count
//! that is too small is a cut only where no cache can explain it.

use serde_json::Value;

use super::super::backend::Completion;
use super::super::estimate::Estimate;
use super::super::refusal::{Refusal, Reply};
use super::super::said::is_something;
use super::super::{Ending, ProviderFault, Tokens, envelope};

/// What is known of a question beside its text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sent {
    /// What the prompt costs.
    pub(super) prompt: Estimate,
    /// The largest window that was asked for, where one is known.
    pub(super) window: Option<u32>,
}

/// The smallest window that models are run with is 2048, so a cut prompt is at least half as long. A smaller count is
/// what a cache left over.
const LEAST_LEFT_BY_A_CUT: u64 = 1024;

/// Half a window is kept, and what every prompt begins with; how much that is differs by a few.
const AROUND_HALF: u64 = 4;

/// Windows are rounded up to a multiple of this.
const PADDING: u64 = 256;

/// Reads a reply; `sent_limit` is the output limit that the request held.
pub(super) fn read(reply: &Reply, sent: &Sent, sent_limit: Option<u32>) -> Result<Completion, Refusal> {
    if !reply.is_success() {
        return Err(Refusal::of(reply));
    }
    let body = reply.json()?;
    if is_something(&body["error"]) {
        return Err(Refusal::inside(&body["error"], reply));
    }
    let message = &body["message"];
    if !message.is_object() {
        let what = "JSON that holds neither a message nor an error: is the host right?";
        return Err(Refusal::unusable(reply, what, false));
    }
    if body["done"].as_bool() == Some(false) {
        return Err(Refusal::unusable(reply, "an answer that is not done", true));
    }
    let counts = Counts::of(&body);
    let input = match counts.reading(sent) {
        Reading::Whole(tokens) => Some(tokens),
        Reading::Unknown => None,
        Reading::Cut(how) => {
            let detail = format!("the backend answered {}, but {how}", reply.status);
            let cut = Refusal::without_reply(ProviderFault::PromptTruncated, detail, false);
            return Err(Refusal { status: Some(reply.status), ..cut });
        }
    };
    let text = message["content"].as_str().unwrap_or_default().to_owned();
    let reasoning = message["thinking"].as_str().filter(|thoughts| !thoughts.trim().is_empty()).map(str::to_owned);
    let ending = match body["done_reason"].as_str() {
        Some("length") => Ending::Truncated,
        // `stop`, and `load` or `unload` around an answer of nothing, which is seen from the text.
        _ if envelope::is_cut(&text, counts.output, sent_limit) => Ending::Truncated,
        _ => Ending::Whole,
    };
    Ok(Completion {
        ending,
        model: body["model"].as_str().filter(|model| !model.is_empty()).map(str::to_owned),
        tokens: Tokens {
            input,
            cached_input: input.map(|_| counts.cached.unwrap_or(0)),
            output: counts.output,
            // Thoughts are part of the output, and how many is not told.
            reasoning: counts.output.filter(|_| reasoning.is_none()).map(|_| 0),
        },
        text,
        reasoning,
    })
}

/// The tokens that a reply counts.
#[derive(Debug, Clone, Copy)]
struct Counts {
    input: Option<u64>,
    /// The cached part of `input`; whoever counts it leaves nothing out of `input`.
    cached: Option<u64>,
    output: Option<u64>,
}

/// How much of the prompt was read.
#[derive(Debug, PartialEq, Eq)]
enum Reading {
    /// All of it: so many tokens.
    Whole(u64),
    /// Not told, or not counted in full.
    Unknown,
    /// Not all of it; how that is known.
    Cut(String),
}

impl Counts {
    fn of(body: &Value) -> Self {
        // A count of nothing is one that was not made.
        let count = |field: &str| body[field].as_u64().filter(|tokens| *tokens > 0);
        Self {
            input: count("prompt_eval_count"),
            cached: body["prompt_eval_cached_count"].as_u64(),
            output: count("eval_count"),
        }
    }

    fn reading(self, sent: &Sent) -> Reading {
        let Sent { prompt: Estimate { least, most }, window } = *sent;
        let Some(read) = self.input else {
            return Reading::Unknown;
        };
        if let Some(window) = window {
            let together = read.saturating_add(self.output.unwrap_or(0));
            if together > u64::from(window).next_multiple_of(PADDING) {
                return Reading::Cut(format!(
                    "prompt and answer together have {together} tokens, more than its window of {window}: the beginning of the prompt was dropped"
                ));
            }
            if most > window && read.abs_diff(u64::from(window) / 2 + 2) <= AROUND_HALF {
                return Reading::Cut(format!(
                    "it read {read} tokens, half its window of {window}, of a prompt of {least} to {most}: it cut the prompt"
                ));
            }
        }
        // The floor is a floor for every usual vocabulary; an eighth is left for the unusual ones.
        if read >= u64::from(least - least / 8) {
            return Reading::Whole(read);
        }
        if self.cached.is_none() && read < LEAST_LEFT_BY_A_CUT {
            return Reading::Unknown;
        }
        Reading::Cut(format!("it read {read} tokens of a prompt of at least {least}: it cut the prompt"))
    }
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderMap;
    use serde_json::json;

    use super::*;

    const SHORT: Sent = Sent { prompt: Estimate { least: 40, most: 90 }, window: None };

    fn reply(status: u16, body: &str) -> Reply {
        Reply { status, headers: HeaderMap::new(), body: body.to_owned() }
    }

    fn read_ok(body: &Value) -> Completion {
        read(&reply(200, &body.to_string()), &SHORT, Some(100)).unwrap()
    }

    #[test]
    fn a_cut_prompt_is_told_from_a_cached_one() {
        let counts = |input, cached, output| Counts { input, cached, output };
        let sent = |least, most, window| Sent { prompt: Estimate { least, most }, window };
        for (counts, sent, expected) in [
            // Whole, and whole within the margin.
            (counts(Some(9000), None, Some(90)), sent(7900, 15_000, None), "whole"),
            (counts(Some(6913), None, Some(90)), sent(7900, 15_000, None), "whole"),
            (counts(Some(1), None, None), sent(0, 9, None), "whole"),
            // Cut to half a window, to a whole one, or to some other part.
            (counts(Some(2050), None, Some(90)), sent(7900, 15_000, None), "cut"),
            (counts(Some(4096), None, Some(90)), sent(7900, 15_000, None), "cut"),
            (counts(Some(6912), None, Some(90)), sent(7900, 15_000, None), "cut"),
            (counts(Some(1026), None, None), sent(2500, 4000, None), "cut"),
            // Not told, or what a cache left over, unless the cached part is counted.
            (counts(None, None, Some(90)), sent(7900, 15_000, Some(8192)), "unknown"),
            (counts(Some(1), None, Some(90)), sent(7900, 15_000, None), "unknown"),
            (counts(Some(1023), None, Some(90)), sent(7900, 15_000, None), "unknown"),
            (counts(Some(800), Some(0), Some(90)), sent(7900, 15_000, None), "cut"),
            (counts(Some(8000), Some(7999), Some(90)), sent(7900, 15_000, None), "whole"),
            // Near half of a known window: suspicious only where the prompt may have been over it.
            (counts(Some(2051), None, Some(90)), sent(2000, 4500, Some(4096)), "cut"),
            (counts(Some(2054), None, Some(90)), sent(2000, 4500, Some(4096)), "cut"),
            (counts(Some(2055), None, Some(90)), sent(2000, 4500, Some(4096)), "whole"),
            (counts(Some(2050), None, Some(90)), sent(2000, 4096, Some(4096)), "whole"),
            // More than fits: the beginning went while the answer was written.
            (counts(Some(4000), None, Some(96)), sent(2000, 4500, Some(4096)), "whole"),
            (counts(Some(4000), None, Some(97)), sent(2000, 4500, Some(4096)), "cut"),
            (counts(Some(4096), None, None), sent(2000, 4500, Some(4000)), "whole"),
            (counts(Some(u64::MAX), None, Some(u64::MAX)), sent(u32::MAX, u32::MAX, Some(u32::MAX)), "cut"),
        ] {
            let reading = counts.reading(&sent);
            let name = match &reading {
                Reading::Whole(_) => "whole",
                Reading::Unknown => "unknown",
                Reading::Cut(_) => "cut",
            };
            assert_eq!(name, expected, "{counts:?} {sent:?} {reading:?}");
        }
    }

    #[test]
    fn the_answer_its_thoughts_and_its_ending_are_read() {
        let message = |message: &Value, reason: &str| {
            read_ok(&json!({"model": "m", "message": message, "done": true, "done_reason": reason, "eval_count": 9}))
        };
        let whole = message(&json!({"content": "{}", "thinking": " \n"}), "stop");
        assert_eq!((whole.text.as_str(), whole.reasoning, whole.ending), ("{}", None, Ending::Whole));
        assert_eq!((whole.model.as_deref(), whole.tokens.reasoning), (Some("m"), Some(0)));
        let thoughtful = message(&json!({"content": "", "thinking": "hmm"}), "stop");
        assert_eq!((thoughtful.text.as_str(), thoughtful.reasoning.as_deref()), ("", Some("hmm")));
        assert_eq!(thoughtful.tokens.reasoning, None);
        assert_eq!(message(&json!({"content": "{\"a\":"}), "length").ending, Ending::Truncated);
        for reason in ["load", "unload", "stop", "", "new"] {
            let empty = message(&json!({"role": "assistant", "content": ""}), reason);
            assert_eq!((empty.text.as_str(), empty.ending), ("", Ending::Whole), "{reason}");
        }
        let used_up = json!({"message": {"content": "{\"a\":["}, "eval_count": 100});
        assert_eq!(read_ok(&used_up).ending, Ending::Truncated);
    }

    #[test]
    fn usage_that_is_not_told_is_unknown() {
        let some = |input, cached_input, output, reasoning| Tokens { input, cached_input, output, reasoning };
        for (usage, tokens) in [
            (json!({}), Tokens::default()),
            (json!({"prompt_eval_count": 0, "eval_count": 0}), Tokens::default()),
            (json!({"prompt_eval_count": 50, "eval_count": 7}), some(Some(50), Some(0), Some(7), Some(0))),
            (
                json!({"prompt_eval_count": 50, "prompt_eval_cached_count": 30, "eval_count": 7}),
                some(Some(50), Some(30), Some(7), Some(0)),
            ),
            // Of 40 tokens at least these are what was not cached.
            (json!({"prompt_eval_count": 3, "eval_count": 7}), some(None, None, Some(7), Some(0))),
            (json!({"eval_count": 7}), some(None, None, Some(7), Some(0))),
        ] {
            let mut body = json!({"message": {"content": "{}"}, "done": true});
            body.as_object_mut().unwrap().extend(usage.as_object().unwrap().clone());
            assert_eq!(read_ok(&body).tokens, tokens, "{usage}");
        }
    }

    #[test]
    fn a_success_without_an_answer_is_a_failure() {
        for (body, again, words) in [
            ("", true, "an empty body"),
            ("Ollama is running", false, "not JSON"),
            ("<html></html>", false, "an HTML page"),
            ("{}", false, "neither a message nor an error"),
            ("{\"message\":\"m\"}", false, "neither a message nor an error"),
            ("{\"error\":\"went wrong\"}", false, "went wrong"),
            ("{\"message\":{\"content\":\"a\"},\"done\":false}", true, "not done"),
            ("{\"message\":{\"content\":\"a", true, "breaks off"),
        ] {
            let refusal = read(&reply(200, body), &SHORT, None).unwrap_err();
            assert_eq!(refusal.again, again, "{body}");
            assert!(refusal.detail.contains(words) && refusal.detail.contains("200"), "{}", refusal.detail);
        }
    }
}
