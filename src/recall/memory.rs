//! The port to a memory of what a model has said, and what makes two questions to it the same.
//!
//! Only what is complete and was validated is remembered, never a failure. A memory that fails costs a miss and a line in
//! the log, never a sample. Which judge is worth remembering, the judge says by its [`Settings`]: the embedded one has none,
//! since asking it again costs nothing. This room knows no store.

pub mod entry;

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use sha2::{Digest as _, Sha256};

use super::Units;
use super::judge::{JudgeInfo, Question, SplitterInfo, Votes};

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

/// Which model is asked, and what of the settings can change its answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The provider's name.
    pub provider: &'static str,
    /// The model's name, as asked for.
    pub model: String,
    /// The address that is asked, without any secret: models of one name differ from server to server.
    pub address: String,
    /// The sampling seed.
    pub seed: i64,
    /// The window in tokens as set by hand; decides how long contexts are divided.
    pub window: Option<u32>,
    /// The ceiling of one reply in tokens; leaves more or less of the window to the contexts.
    pub output_ceiling: Option<u32>,
    /// Re-asks after an unusable answer.
    pub repairs: u32,
}

/// Raised whenever the same question, put to the same model, may come to another verdict because of *how* it is put: how
/// contexts are divided into windows, how votes are drawn and counted.
const VERDICTS: &str = "verdicts/1";

/// The same for the claims that sentences are cut into.
const CUT: &str = "cut/1";

/// Bytes that are hashed in one go; other work gets the thread in between.
const PIECE: usize = 1024 * 1024;

impl Key {
    /// The key of the verdicts on a question.
    pub async fn of_verdicts(question: &Question, votes: Votes, info: &JudgeInfo, settings: &Settings) -> Self {
        let Question { user_input, contexts, claims } = question;
        let JudgeInfo { provider, model, prompt, prompt_sha256, seed } = info;
        let mut parts = Parts::of(VERDICTS);
        parts.short(provider);
        parts.short(model);
        parts.option(*prompt, Parts::short);
        parts.option(prompt_sha256.as_deref(), Parts::short);
        parts.option(*seed, Parts::signed);
        // How often it may be asked again decides whether there is a verdict, not which: whoever raises it and sends a batch
        // again must not pay anew for what was decided.
        parts.model(&Settings { repairs: 0, ..settings.clone() });
        parts.number(u64::from(votes.count()));
        parts.text(user_input).await;
        parts.texts(contexts).await;
        parts.texts(claims.as_slice()).await;
        parts.key()
    }

    /// The key of the claims that sentences are cut into. They depend on nothing that was retrieved.
    pub async fn of_cut(sentences: &Units<String>, info: &SplitterInfo, settings: &Settings) -> Self {
        let SplitterInfo { name, sha256 } = info;
        let mut parts = Parts::of(CUT);
        parts.short(name);
        parts.option(sha256.as_deref(), Parts::short);
        // Here it does decide which: a sentence that is badly cut once too often stays whole.
        parts.model(settings);
        parts.texts(sentences.as_slice()).await;
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

    fn model(&mut self, settings: &Settings) {
        let Settings { provider, model, address, seed, window, output_ceiling, repairs } = settings;
        self.short(provider);
        self.short(model);
        self.short(address);
        self.signed(*seed);
        self.option(*window, |parts, tokens| parts.number(u64::from(tokens)));
        self.option(*output_ceiling, |parts, tokens| parts.number(u64::from(tokens)));
        self.number(u64::from(*repairs));
    }

    fn number(&mut self, number: u64) {
        self.0.update(number.to_le_bytes());
    }

    fn signed(&mut self, number: i64) {
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

    fn units(of: &[&str]) -> Units<String> {
        Units::new(texts(of)).unwrap()
    }

    /// Everything that goes into a key.
    #[derive(Clone)]
    struct All {
        question: Question,
        votes: Votes,
        info: JudgeInfo,
        splitter: SplitterInfo,
        settings: Settings,
    }

    impl All {
        async fn of_verdicts(&self) -> Key {
            Key::of_verdicts(&self.question, self.votes, &self.info, &self.settings).await
        }

        async fn of_cut(&self) -> Key {
            Key::of_cut(&self.question.claims, &self.splitter, &self.settings).await
        }
    }

    fn all() -> All {
        All {
            question: Question {
                user_input: "q".to_owned(),
                contexts: texts(&["a", "b", ""]),
                claims: units(&["one", "two"]),
            },
            votes: Votes::ONE,
            info: JudgeInfo {
                provider: "openai",
                model: "m".to_owned(),
                prompt: Some("p/1"),
                prompt_sha256: Some("00".to_owned()),
                seed: Some(7),
            },
            splitter: SplitterInfo { name: "s/1", sha256: Some("00".to_owned()) },
            settings: Settings {
                provider: "openai",
                model: "m".to_owned(),
                address: "http://h/v1".to_owned(),
                seed: 7,
                window: None,
                output_ceiling: None,
                repairs: 1,
            },
        }
    }

    /// Does the change give another key of verdicts, and another of the cut?
    type Change = (fn(&mut All), bool, bool);

    const CHANGES: [Change; 27] = [
        (|all| all.question.user_input.push(' '), true, false),
        (|all| all.question.contexts = texts(&["b", "a", ""]), true, false),
        (|all| all.question.contexts = texts(&["a", "b"]), true, false),
        (|all| all.question.contexts = texts(&["ab", "", ""]), true, false),
        (|all| all.question.contexts = texts(&["a", "b", "", "one"]), true, false),
        (|all| all.question.contexts = texts(&["A", "b", ""]), true, false),
        (|all| all.question.claims = units(&["two", "one"]), true, true),
        (|all| all.question.claims = units(&["one two"]), true, true),
        (|all| all.question.claims = units(&["one", "two."]), true, true),
        (|all| all.votes = Votes::new(3).unwrap(), true, false),
        (|all| all.info.provider = "azure", true, false),
        (|all| all.info.model.push('2'), true, false),
        (|all| all.info.prompt = Some("p/2"), true, false),
        (|all| all.info.prompt = None, true, false),
        (|all| all.info.prompt_sha256 = Some("01".to_owned()), true, false),
        (|all| all.info.seed = Some(-7), true, false),
        (|all| all.info.seed = None, true, false),
        (|all| all.splitter.name = "s/2", false, true),
        (|all| all.splitter.sha256 = None, false, true),
        (|all| all.settings.provider = "azure", true, true),
        (|all| all.settings.model.push('2'), true, true),
        (|all| all.settings.address.push('2'), true, true),
        (|all| all.settings.seed = 8, true, true),
        (|all| all.settings.window = Some(4096), true, true),
        (|all| all.settings.output_ceiling = Some(4096), true, true),
        (|all| all.settings.repairs = 2, false, true),
        (|_| (), false, false),
    ];

    #[tokio::test]
    async fn whatever_can_change_an_answer_changes_its_key() {
        let (mut of_verdicts, mut of_cut) = (vec![all().of_verdicts().await], vec![all().of_cut().await]);
        assert_ne!(of_verdicts, of_cut);
        for (turn, (change, verdicts, cut)) in CHANGES.iter().enumerate() {
            let mut changed = all();
            change(&mut changed);
            for (known, key, is_new) in [
                (&mut of_verdicts, changed.of_verdicts().await, *verdicts),
                (&mut of_cut, changed.of_cut().await, *cut),
            ] {
                assert_eq!(!known.contains(&key), is_new, "change {turn}");
                if is_new {
                    known.push(key);
                } else {
                    assert_eq!(key, known[0], "change {turn}");
                }
            }
        }
    }

    #[tokio::test]
    async fn the_keys_stay_what_they_are() {
        // A change here forgets whatever users have paid for: make it only together with another VERDICTS or CUT.
        insta::assert_snapshot!(all().of_verdicts().await, @"8a9a8d90e2b5624df5a1b1db2b351673b01fd9be32f310f9756d0fb151e55c43");
        insta::assert_snapshot!(all().of_cut().await, @"bbdc44156fda766f3a471257009e4bca5e4fb192c558dc6ee1264fc6f68f508f");
    }

    #[tokio::test]
    async fn how_a_long_text_is_read_changes_nothing() {
        let long = "é".repeat(PIECE);
        let (mut pieces, mut whole) = (Parts::of(CUT), Parts::of(CUT));
        pieces.texts(&[long.clone(), "a".to_owned(), long.clone()]).await;
        whole.number(3);
        [&long, "a", &long].into_iter().for_each(|text| whole.short(text));
        assert_eq!(pieces.key(), whole.key());
    }
}
