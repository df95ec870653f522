//! Secrets: text that may be sent to a backend and shown to nobody.
//!
//! [`Secret`] cannot be printed. The redactor here takes secrets out of words that others wrote, since backends like to
//! quote the key that they refuse.

use std::fmt;

use reqwest::header::HeaderValue;

/// An API key or password. Its `Debug` form is `***`; it has no `Display`.
///
/// ```
/// use context_recall::providers::secret::Secret;
///
/// let key = Secret::new("sk-very-private")?;
/// assert_eq!(format!("{key:?}"), "***");
/// assert_eq!(key.expose(), "sk-very-private");
/// assert!(Secret::new("two\nlines").is_err());
/// # Ok::<(), context_recall::providers::secret::BadSecret>(())
/// ```
#[derive(Clone)]
pub struct Secret(Box<str>);

/// Why a text is no secret that could be sent. Says nothing of the text itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadSecret {
    /// Nothing but white space.
    #[error("is blank")]
    Blank,
    /// A character that no HTTP header takes.
    #[error("holds a character that an HTTP header cannot carry (a line break, perhaps, or a letter outside ASCII)")]
    Unsendable,
}

impl Secret {
    /// Takes a secret over as it stands.
    ///
    /// # Errors
    ///
    /// [`BadSecret`] when it is blank or cannot stand in an HTTP header.
    pub fn new(text: impl Into<String>) -> Result<Self, BadSecret> {
        let text = text.into();
        if text.trim().is_empty() {
            return Err(BadSecret::Blank);
        }
        if !text.is_ascii() || HeaderValue::from_str(&text).is_err() {
            return Err(BadSecret::Unsendable);
        }
        Ok(Self(text.into()))
    }

    /// The secret itself. Whoever calls this answers for where it goes.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// A header value of `scheme` and the secret, marked as sensitive so that no client prints it.
    pub(super) fn header(&self, scheme: &str) -> Result<HeaderValue, BadSecret> {
        let mut value = HeaderValue::from_str(&format!("{scheme}{}", self.0)).map_err(|_| BadSecret::Unsendable)?;
        value.set_sensitive(true);
        Ok(value)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

const MASK: &str = "***";

/// Placeholders such as `x` or `EMPTY` stand for "no key" in front of local servers; masking them would only garble
/// the text.
const SHORTEST_KNOWN: usize = 6;

/// How the keys of well-known vendors begin.
const KEY_STARTS: [&str; 9] = ["sk-", "sk_", "gsk_", "AIza", "hf_", "xai-", "pplx-", "ghp_", "eyJ"];

/// So many characters after a key's start make it a key, not a word like `sk-learn`.
const SHORTEST_TAIL: usize = 8;

/// Takes secrets out of foreign text: the ones it was told of anywhere, others by their looks.
#[derive(Debug, Default)]
pub(super) struct Redactor(Vec<Secret>);

impl Redactor {
    pub(super) fn new(known: Vec<Secret>) -> Self {
        Self(known)
    }

    /// `text` without secrets, in time linear in its length.
    pub(super) fn clean(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in self.0.iter().filter(|secret| secret.0.len() >= SHORTEST_KNOWN) {
            text = text.replace(secret.expose(), MASK);
        }
        let mut clean = String::with_capacity(text.len());
        let mut after_bearer = false;
        for piece in text.split_inclusive(is_gap) {
            let word = piece.trim_end_matches(is_gap);
            if after_bearer && !word.is_empty() {
                clean.push_str(MASK);
            } else {
                clean_word(word, &mut clean);
            }
            clean.push_str(&piece[word.len()..]);
            if !word.is_empty() {
                after_bearer = word.trim_end_matches(':').eq_ignore_ascii_case("bearer");
            }
        }
        clean
    }
}

fn is_gap(c: char) -> bool {
    c.is_whitespace() || "\"'`,;()<>[]{}|\\".contains(c)
}

fn clean_word(word: &str, clean: &mut String) {
    let mut rest = word;
    // The password of a URL ends at the last `@` before the path.
    if let Some((scheme, after)) = rest.split_once("://") {
        let authority = after.split(['/', '?', '#']).next().unwrap_or(after);
        if let Some(at) = authority.rfind('@') {
            clean.push_str(scheme);
            clean.push_str("://");
            clean.push_str(MASK);
            rest = &after[at..];
        }
    }
    for part in rest.split_inclusive(['&', '?', '#']) {
        let value = part.trim_end_matches(['&', '?', '#']);
        let secret_from = match value.split_once('=') {
            Some((name, _)) if names_a_secret(name) => Some(name.len() + 1),
            _ => key_start(value),
        };
        match secret_from {
            Some(at) => {
                clean.push_str(&value[..at]);
                clean.push_str(MASK);
            }
            None => clean.push_str(value),
        }
        clean.push_str(&part[value.len()..]);
    }
}

fn names_a_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["key", "token", "secret", "password", "sig", "signature"].iter().any(|ending| name.ends_with(ending))
}

/// Where a vendor's key begins in `word`, if one does. The word's whole rest is taken for the key.
fn key_start(word: &str) -> Option<usize> {
    KEY_STARTS
        .iter()
        .flat_map(|start| word.match_indices(start))
        .filter(|(at, start)| {
            let boundary = !word[..*at].ends_with(|c: char| c.is_ascii_alphanumeric());
            boundary && word.len() - at - start.len() >= SHORTEST_TAIL
        })
        .map(|(at, _)| at)
        .min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_never_printed() {
        let secret = Secret::new("swordfish-1").unwrap();
        assert_eq!(format!("{secret:?} {:?}", Some(secret.clone())), "*** Some(***)");
        let header = secret.header("Bearer ").unwrap();
        assert!(header.is_sensitive());
        assert!(!format!("{header:?}").contains("swordfish"));
    }

    #[test]
    fn what_no_header_carries_is_refused_without_quoting_it() {
        for (text, fault) in [
            ("", BadSecret::Blank),
            (" \n", BadSecret::Blank),
            ("abc\ndef", BadSecret::Unsendable),
            ("abc\0def", BadSecret::Unsendable),
            ("schlüssel", BadSecret::Unsendable),
        ] {
            let error = Secret::new(text).unwrap_err();
            assert_eq!(error, fault);
            assert!(!error.to_string().contains("abc"));
        }
    }

    #[test]
    fn foreign_text_loses_its_secrets_and_keeps_its_words() {
        let redactor = Redactor::new(vec![Secret::new("swordfish-1").unwrap(), Secret::new("x").unwrap()]);
        for (text, clean) in [
            ("key swordfish-1 is wrong", "key *** is wrong"),
            ("xswordfish-1x swordfish-1", "x***x ***"),
            ("Authorization: Bearer abc.def, sorry", "Authorization: Bearer ***, sorry"),
            ("bearer: abc", "bearer: ***"),
            (
                "Incorrect API key provided: sk-proj-a1b2****************9xyz. See https://x.y/z.",
                "Incorrect API key provided: *** See https://x.y/z.",
            ),
            ("GET https://h/v1?key=abc&alt=json failed", "GET https://h/v1?key=***&alt=json failed"),
            ("https://h/v1?api_key=a#b max_tokens=12", "https://h/v1?api_key=***#b max_tokens=12"),
            ("http://user:pa@ss@h:1/v1?x=1", "http://***@h:1/v1?x=1"),
            ("{\"k\":\"gsk_0123456789abcdef\"}", "{\"k\":\"***\"}"),
            ("sk-learn, task-oriented-dialogues, mail a@b.c", "sk-learn, task-oriented-dialogues, mail a@b.c"),
            ("", ""),
        ] {
            assert_eq!(redactor.clean(text), clean, "{text}");
        }
    }
}
