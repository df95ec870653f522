//! The port to a memory of what a model has said, and what makes two questions to it the same.
//!
//! Only what is complete and was validated is remembered, never a failure. A memory that fails costs a miss and a line in
//! the log, never a sample. Which judge is worth remembering, the judge says by its [`Settings`]: the embedded one has none,
//! since asking it again costs nothing. This room knows no store.

pub mod entry;

use std::fmt::{self, Write as _};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use sha2::{Digest as _, Sha256};

use super::Units;
use super::judge::{JudgeInfo, Question, Votes};

/// Where entries are kept between questions.
///
/// Failures are its own affair: a failed look-up is a miss, a failed write is forgotten, and the log tells of either.
pub trait Memory: Send + Sync {
    /// What kind of memory this is, as in `--cache KIND`.
    fn kind(&self) -> &'static str;

    /// The entry under this key, if there is one.
    fn get(&self, key: Key) -> BoxFuture<'_, Option<Arc<[u8]>>>;

    /// Keeps an entry, in place of any other under this key. Done once it is as safe as this memory makes it. Dropping the
    /// future does not take the entry back: it was paid for.
    fn put(&self, key: Key, entry: Vec<u8>) -> BoxFuture<'_, ()>;

    /// Brings what is under way to its end. Afterwards nothing is kept any more.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// Whether a question may be answered from memory, and its answer be kept there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reuse {
    /// Answered from memory, or together with an equal question that is being asked; kept.
    #[default]
    Allowed,
    /// Asked anew, and kept in place of what was remembered.
    Renewed,
    /// Asked anew, and not kept.
    Never,
}

/// What makes two questions to a model the same: a hash of everything that can change its answer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key([u8; 32]);

/// What of a model's settings can change its answer, beside the name and the prompt in its receipt.
///
/// Settings that only decide whether there is an answer are left out: after raising the number of repairs a batch that is
/// sent again must not pay anew for what was decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The address that is asked, without any secret: models of one name differ from server to server.
    pub address: String,
    /// The window in tokens as set by hand; decides how long contexts are divided.
    pub window: Option<u32>,
    /// The ceiling of one reply in tokens; leaves more or less of the window to the contexts.
    pub output_ceiling: Option<u32>,
}

/// Raised whenever the same question, put to the same model, may come to another verdict because of *how* it is put: how
/// contexts are divided into windows, how votes are drawn and counted.
const VERDICTS: &str = "verdicts/1";

/// Bytes that are hashed in one go; other work gets the thread in between.
const PIECE: usize = 1024 * 1024;

impl Key {
    /// The key of the verdicts on a question.
    pub async fn of_verdicts(question: &Question, votes: Votes, info: &JudgeInfo, settings: &Settings) -> Self {
        let Question { user_input, contexts, claims } = question;
        let mut parts = Parts::of(VERDICTS);
        parts.model(info, settings);
        parts.number(u64::from(votes.count()));
        parts.text(user_input).await;
        parts.texts(contexts).await;
        parts.texts(claims.as_slice()).await;
        parts.key()
    }

    /// The bytes of the key.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Key({self})")
    }
}

/// Parts on their way into a key. Each goes in behind its length, and lists behind their number of entries, so that no
/// two different sets of parts are the same bytes.
struct Parts(Sha256);

impl Parts {
    fn of(domain: &str) -> Self {
        let mut parts = Self(Sha256::new());
        parts.short(domain);
        parts
    }

    fn model(&mut self, info: &JudgeInfo, settings: &Settings) {
        let JudgeInfo { provider, model, prompt, prompt_sha256, seed } = info;
        let Settings { address, window, output_ceiling } = settings;
        self.short(provider);
        self.short(model);
        self.option(*prompt, Self::short);
        self.option(prompt_sha256.as_deref(), Self::short);
        self.option(*seed, |parts, seed| parts.number(u64::from_ne_bytes(seed.to_ne_bytes())));
        self.short(address);
        self.option(*window, |parts, tokens| parts.number(u64::from(tokens)));
        self.option(*output_ceiling, |parts, tokens| parts.number(u64::from(tokens)));
    }

    fn number(&mut self, number: u64) {
        self.0.update(number.to_le_bytes());
    }

    fn option<T>(&mut self, part: Option<T>, put: impl FnOnce(&mut Self, T)) {
        self.0.update([u8::from(part.is_some())]);
        if let Some(part) = part {
            put(self, part);
        }
    }

    fn short(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.update(text);
    }

    /// A text of any length.
    async fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        for (turn, piece) in text.as_bytes().chunks(PIECE).enumerate() {
            if turn > 0 {
                tokio::task::yield_now().await;
            }
            self.0.update(piece);
        }
    }

    async fn texts(&mut self, texts: &[String]) {
        self.number(texts.len() as u64);
        let mut since = 0;
        for text in texts {
            self.text(text).await;
            since += text.len();
            if since >= PIECE {
                since = 0;
                tokio::task::yield_now().await;
            }
        }
    }

    fn key(self) -> Key {
        Key(self.0.finalize().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|&text| text.to_owned()).collect()
    }

    /// Everything that goes into a key.
    #[derive(Clone)]
    struct All {
        question: Question,
        votes: Votes,
        info: JudgeInfo,
        settings: Settings,
    }

    impl All {
        async fn key(&self) -> Key {
            Key::of_verdicts(&self.question, self.votes, &self.info, &self.settings).await
        }
    }

    fn all() -> All {
        let claims = Units::new(texts(&["one", "two"])).unwrap();
        All {
            question: Question { user_input: "q".to_owned(), contexts: texts(&["a", "b", ""]), claims },
            votes: Votes::ONE,
            info: JudgeInfo {
                provider: "openai",
                model: "m".to_owned(),
                prompt: Some("p/1"),
                prompt_sha256: Some("00".to_owned()),
                seed: Some(7),
            },
            settings: Settings { address: "http://h/v1".to_owned(), window: None, output_ceiling: None },
        }
    }

    #[tokio::test]
    async fn whatever_can_change_a_verdict_changes_the_key() {
        let changes: Vec<fn(&mut All)> = vec![
            |_| (),
            |all| all.question.user_input.push(' '),
            |all| all.question.contexts = texts(&["b", "a", ""]),
            |all| all.question.contexts = texts(&["a", "b"]),
            |all| all.question.contexts = texts(&["ab", "", ""]),
            |all| all.question.contexts = texts(&["a", "b", "", "one"]),
            |all| all.question.contexts = texts(&["A", "b", ""]),
            |all| all.question.claims = Units::new(texts(&["two", "one"])).unwrap(),
            |all| all.question.claims = Units::new(texts(&["one two"])).unwrap(),
            |all| all.question.claims = Units::new(texts(&["one", "two."])).unwrap(),
            |all| all.votes = Votes::new(3).unwrap(),
            |all| all.info.provider = "azure",
            |all| all.info.model.push('2'),
            |all| all.info.prompt = Some("p/2"),
            |all| all.info.prompt = None,
            |all| all.info.prompt_sha256 = Some("01".to_owned()),
            |all| all.info.seed = Some(8),
            |all| all.info.seed = Some(-7),
            |all| all.info.seed = None,
            |all| all.settings.address.push('2'),
            |all| all.settings.window = Some(4096),
            |all| all.settings.output_ceiling = Some(4096),
        ];
        let mut keys = Vec::new();
        for change in &changes {
            let mut changed = all();
            change(&mut changed);
            keys.push(changed.key().await);
            assert_eq!(keys.last(), Some(&changed.key().await));
        }
        let many = keys.len();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), many);
    }

    #[tokio::test]
    async fn the_key_stays_what_it_is() {
        // A change here forgets whatever users have paid for: make it only together with another VERDICTS.
        insta::assert_snapshot!(all().key().await, @"");
    }

    #[tokio::test]
    async fn how_a_long_text_is_read_changes_nothing() {
        let mut long = all();
        long.question.user_input = "é".repeat(PIECE);
        let mut whole = Parts::of(VERDICTS);
        whole.model(&long.info, &long.settings);
        whole.number(1);
        whole.short(&long.question.user_input);
        whole.number(3);
        ["a", "b", ""].iter().for_each(|text| whole.short(text));
        whole.number(2);
        ["one", "two"].iter().for_each(|text| whole.short(text));
        assert_eq!(long.key().await, whole.key());
    }
}
