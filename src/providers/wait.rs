//! How long a backend asks to be left alone: in headers, or in words.

use std::time::{Duration, SystemTime};

use reqwest::header::{HeaderMap, RETRY_AFTER};

/// Longer waits are not worth telling apart, and adding one to a clock must not overflow it.
const LONGEST: Duration = Duration::from_secs(30 * 24 * 3600);

/// The wait that a reply names: `retry-after-ms`, then `retry-after` (seconds, a fraction allowed, or an HTTP date),
/// then the same header as LiteLLM passes it on, then `field`, which its body holds for it, then the words of its message.
pub(super) fn named(headers: &HeaderMap, field: Option<&str>, message: &str, now: SystemTime) -> Option<Duration> {
    let header = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    header("retry-after-ms")
        .and_then(|text| seconds(text.parse::<f64>().ok()? / 1000.0))
        .or_else(|| header(RETRY_AFTER.as_str()).and_then(|text| retry_after(text, now)))
        .or_else(|| header("llm_provider-retry-after").and_then(|text| retry_after(text, now)))
        .or_else(|| field.and_then(duration))
        .or_else(|| in_words(message))
}

fn retry_after(text: &str, now: SystemTime) -> Option<Duration> {
    if let Ok(number) = text.parse::<f64>() {
        return seconds(number);
    }
    let date = httpdate::parse_http_date(text).ok()?;
    // A date that has passed asks for nothing more.
    Some(date.duration_since(now).unwrap_or_default().min(LONGEST))
}

fn seconds(number: f64) -> Option<Duration> {
    if number.is_nan() || number < 0.0 {
        return None;
    }
    Some(Duration::try_from_secs_f64(number).map_or(LONGEST, |wait| wait.min(LONGEST)))
}

/// The phrases before a wait, in lower case.
const PHRASES: [&str; 4] = ["try again in ", "retry in ", "retry after ", "try again after "];

fn in_words(message: &str) -> Option<Duration> {
    let message = message.to_ascii_lowercase();
    PHRASES
        .iter()
        .find_map(|phrase| message.match_indices(phrase).find_map(|(at, _)| duration(&message[at + phrase.len()..])))
}

/// A duration at the start of `text`: Go's `1m2.5s` and `12ms`, or `45 seconds`, `2 minutes`; a bare number is seconds.
fn duration(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut total: Option<f64> = None;
    loop {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let Ok(number) = rest[..end].trim_end_matches('.').parse::<f64>() else {
            break;
        };
        let after = rest[end..].trim_start_matches(' ');
        let unit_end = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let unit = match &after[..unit_end] {
            "ms" | "millisecond" | "milliseconds" => 0.001,
            "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
            "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
            "h" | "hr" | "hour" | "hours" => 3600.0,
            "d" | "day" | "days" => 86400.0,
            // `2026-03-01` and `12:30` are dates and times of day, no waits.
            _ if total.is_none() && !rest[end..].starts_with(['-', ':', '/']) => {
                return seconds(number);
            }
            _ => break,
        };
        total = Some(total.unwrap_or(0.0) + number * unit);
        rest = after[unit_end..].trim_start_matches(' ');
    }
    seconds(total?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_headers(headers: &[(&'static str, &str)], message: &str) -> Option<f64> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        named(&map, None, message, now).map(|wait| wait.as_secs_f64())
    }

    #[test]
    fn a_field_of_the_body_comes_after_the_headers_and_before_the_words() {
        let now = SystemTime::now();
        let mut headers = HeaderMap::new();
        let words = "Please retry in 9s.";
        let wait = |headers: &HeaderMap, field| named(headers, Some(field), words, now).map(|wait| wait.as_secs_f64());
        assert_eq!(wait(&headers, "34.074824224s"), Some(34.074_824_224));
        assert_eq!(wait(&headers, "0s"), Some(0.0));
        assert_eq!(wait(&headers, "soon"), Some(9.0));
        headers.insert(RETRY_AFTER, "2".parse().unwrap());
        assert_eq!(wait(&headers, "34s"), Some(2.0));
    }

    #[test]
    fn headers_name_a_wait_in_this_order() {
        let month = LONGEST.as_secs_f64();
        for (headers, wait) in [
            (&[("retry-after-ms", "1250"), ("retry-after", "2")][..], Some(1.25)),
            (&[("retry-after-ms", "soon"), ("retry-after", "2")], Some(2.0)),
            (&[("retry-after", " 0.5 ")], Some(0.5)),
            (&[("retry-after", "0")], Some(0.0)),
            (&[("retry-after", "2"), ("llm_provider-retry-after", "60")], Some(2.0)),
            (&[("llm_provider-retry-after", "60")], Some(60.0)),
            (&[("retry-after", "Sun, 06 Nov 1994 08:50:07 GMT")], Some(30.0)),
            (&[("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT")], Some(0.0)),
            (&[("retry-after", "99999999999999999999")], Some(month)),
            (&[("retry-after", "inf")], Some(month)),
            (&[("retry-after", "-1")], None),
            (&[("retry-after", "NaN")], None),
            (&[("retry-after", "")], None),
            (&[], None),
        ] {
            assert_eq!(from_headers(headers, ""), wait, "{headers:?}");
        }
        assert_eq!(from_headers(&[("retry-after", "2")], "try again in 9s"), Some(2.0));
    }

    #[test]
    fn words_name_a_wait() {
        for (message, wait) in [
            ("Limit 500. Please try again in 1.25s.", Some(1.25)),
            ("Please try again in 1m2.5s. Visit", Some(62.5)),
            ("try again in 250ms", Some(0.25)),
            ("Please retry after 45 seconds.", Some(45.0)),
            ("Please Retry After 45.", Some(45.0)),
            ("retry in 1 minute 30 seconds", Some(90.0)),
            ("Please retry in 34.074824224s.", Some(34.074_824_224)),
            ("try again in 6m0s", Some(360.0)),
            ("please retry after 2026-03-01", None),
            ("try again in a moment", None),
            ("Please retry shortly.", None),
            ("try again in ", None),
            ("try again in ...s", None),
            ("", None),
        ] {
            assert_eq!(from_headers(&[], message), wait, "{message}");
        }
    }
}
