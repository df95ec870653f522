//! What a refusal tells of the model's window, read from its numbers and words.
//!
//! No two backends say it alike, so every reading here wants the sentence around a number and gives nothing when in
//! doubt: a window that is read wrongly would cut questions apart for nothing.

use super::said::Said;

/// A smaller "window" is a number of something else.
const LEAST_WINDOW: u32 = 256;

/// Tokens left free beside prompt and answer: counting differs by a few from template to template.
const SLACK: u32 = 16;

/// The window in tokens that a refusal for length names: the limit that prompt and answer have to fit into.
///
/// ```text
/// request (4532 tokens) exceeds the available context size (2048 tokens)   → 2048
/// This model's maximum context length is 4097 tokens                       → 4097
/// prompt is too long: 210000 tokens > 200000 maximum                       → 200000
/// input length and `max_tokens` exceed context limit: 9000 + 800 > 8192    → 8192
/// input token count (9000) exceeds the maximum number of tokens allowed (8192) → 8192
/// Request too large … tokens per minute (TPM): Limit 6000, Requested 12328 → 6000
/// ```
pub(super) fn told(said: &Said) -> Option<u32> {
    const BEFORE: [&str; 13] = [
        "context length is",
        "context length of",
        "context window of",
        "context window is",
        "context size (",
        "context size of",
        "context size is",
        "tokens allowed (",
        "tokens allowed is",
        "limit ",
        "limit: ",
        "maximum of ",
        "tokens > ",
    ];
    let text = said.text.to_ascii_lowercase();
    let worded = || BEFORE.iter().find_map(|phrase| first_number(text.split_once(phrase)?.1));
    let summed =
        || text.split_once(" > ").filter(|(sum, _)| sum.contains(" + ")).and_then(|(_, limit)| first_number(limit));
    said.window.or_else(summed).or_else(worded).filter(|window| *window >= LEAST_WINDOW)
}

/// What the window leaves for the answer, when a refusal counts our limit `sent` against it and the prompt alone would
/// fit: vLLM and its kin add the two. Read from sentences such as "maximum context length is 8192 tokens. However, you
/// requested 27012 tokens (900 in the messages, 26112 in the completion)". A room that is not worth having is none.
pub(super) fn room_for_answer(said: &Said, sent: u32) -> Option<u32> {
    let text = said.text.to_ascii_lowercase();
    if !numbers(&text).any(|number| number == sent) {
        return None;
    }
    let window = told(said)?;
    let summed = || {
        // "9000 + 800 > 8192"
        let sum = text.split_once(" > ")?.0;
        numbers(sum.rsplit_once(" + ")?.0).last()
    };
    let prompt = [" in the messages", " input tokens", " prompt tokens", " tokens from the input", " of text input"]
        .iter()
        .find_map(|phrase| numbers(text.split_once(phrase)?.0).last())
        .or_else(summed)?;
    let room = window.checked_sub(prompt)?.checked_sub(SLACK)?;
    (LEAST_WINDOW..sent).contains(&room).then_some(room)
}

/// The number that `text` begins with, blanks and signs before it left aside.
fn first_number(text: &str) -> Option<u32> {
    let start = text.trim_start_matches([' ', ':', '`', '(']);
    start.starts_with(|c: char| c.is_ascii_digit()).then(|| numbers(start).next())?
}

/// The whole numbers in a text, `16,384` read as one.
pub(super) fn numbers(text: &str) -> impl Iterator<Item = u32> {
    text.split(|c: char| !c.is_ascii_digit() && c != ',')
        .filter_map(|run| run.trim_matches(',').replace(',', "").parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(message: &str) -> Said {
        Said::of(&serde_json::json!({"error": {"message": message}}).to_string())
    }

    #[test]
    fn the_window_is_read_from_every_backends_sentence() {
        for (message, window) in [
            ("request (4532 tokens) exceeds the available context size (2048 tokens), try increasing it", Some(2048)),
            (
                "This model's maximum context length is 4097 tokens. However, your messages resulted in 6402 tokens.",
                Some(4097),
            ),
            (
                "This model's maximum context length is 128,000 tokens. However, you requested 190,000 tokens",
                Some(128_000),
            ),
            ("prompt is too long: 210000 tokens > 200000 maximum", Some(200_000)),
            ("input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease", Some(200_000)),
            (
                "The input token count (1100000) exceeds the maximum number of tokens allowed (1048576).",
                Some(1_048_576),
            ),
            ("Request too large for model `m` on tokens per minute (TPM): Limit 6000, Requested 12328", Some(6000)),
            ("the input length exceeds the context length", None),
            ("Your messages are too long, please reduce the length of the messages.", None),
            ("context length is 3 tokens", None),
            ("", None),
        ] {
            assert_eq!(told(&said(message)), window, "{message}");
        }
        let numbered = r#"{"error":{"code":400,"message":"too long","n_prompt_tokens":4532,"n_ctx":2048}}"#;
        assert_eq!(told(&Said::of(numbered)), Some(2048));
    }

    #[test]
    fn what_the_window_leaves_is_read_where_our_limit_is_counted_against_it() {
        for (message, sent, room) in [
            (
                "This model's maximum context length is 8192 tokens. However, you requested 27012 tokens (900 in the messages, 26112 in the completion). Please reduce the length of the messages or completion.",
                26112,
                Some(7276),
            ),
            (
                "'max_tokens' or 'max_completion_tokens' is too large: 26112. This model's maximum context length is 8192 tokens and your request has 900 input tokens (26112 > 8192 - 900).",
                26112,
                Some(7276),
            ),
            (
                "input length and `max_tokens` exceed context limit: 900 + 26112 > 8192, decrease input length or `max_tokens` and try again",
                26112,
                Some(7276),
            ),
            // The prompt alone is too long, or leaves next to nothing.
            (
                "maximum context length is 4097 tokens. However, you requested 7426 tokens (6402 in the messages, 1024 in the completion)",
                1024,
                None,
            ),
            (
                "maximum context length is 1000 tokens. However, you requested 1968 tokens (944 in the messages, 1024 in the completion)",
                1024,
                None,
            ),
            // Our limit is not spoken of.
            (
                "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
                1024,
                None,
            ),
            ("", 1024, None),
        ] {
            assert_eq!(room_for_answer(&said(message), sent), room, "{message}");
        }
    }
}
