//! A claim taken apart: sentences of weighted units, each with what may stand for it in a context.
//!
//! Weights come from the claim alone. Were they taken from the contexts (as an inverse document frequency is), one more
//! context could change them all and lower a recall.

use std::collections::HashMap;

use super::segments;
use super::text::{self, Kind, Reading, Token};
use super::words;

/// The weight of a word that says little, beside 1 for any other.
const LIGHT: f32 = 0.1;

/// The weight of two neighbouring hiragana: mostly endings and particles.
const KANA: f32 = 0.5;

/// Words that share this many letters at their beginning, after stemming, are taken for forms of one word.
const BEGINNING: usize = 5;

/// A sentence with more than this share of capitalised words, in percent, is a headline: its capitals name nothing.
const HEADLINE: usize = 80;

/// The number by which a key is known in one question.
pub(super) type Key = usize;

/// Every key that some claim of the question looks for. Nothing else of the contexts is kept.
#[derive(Debug, Default)]
pub(super) struct Vocabulary(HashMap<String, Key>);

impl Vocabulary {
    fn enter(&mut self, key: String) -> Key {
        let next = self.0.len();
        *self.0.entry(key).or_insert(next)
    }

    /// The number of `key`, if some claim looks for it.
    pub(super) fn find(&self, key: &str) -> Option<Key> {
        self.0.get(key).copied()
    }

    /// How many keys there are; they are numbered from 0.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

/// One sentence of a claim.
#[derive(Debug)]
pub(super) struct Sentence {
    /// Its distinct units in order; never empty, and no more than a segment has characters.
    pub(super) units: Vec<Unit>,
    /// The sum of their weights, above 0.
    pub(super) weight: f32,
    /// Does it open with a word that may be a name? Capitals do not tell: every sentence opens with one.
    pub(super) opens_with_name: bool,
}

/// Something that a context should say.
#[derive(Debug)]
pub(super) struct Unit {
    /// As the claim writes it, for reasons.
    pub(super) written: String,
    /// Its place among the sentence's tokens.
    pub(super) place: usize,
    /// What kind of unit it is.
    pub(super) kind: Kind,
    /// Does it look like a name?
    pub(super) name: bool,
    /// Does the claim negate it?
    pub(super) negated: bool,
    /// How much it counts.
    pub(super) weight: f32,
    /// The unit itself.
    pub(super) exact: Key,
    /// Words that begin as it does.
    pub(super) near: Option<Key>,
    /// Words that say the opposite.
    pub(super) opposites: Vec<Key>,
}

impl Unit {
    /// Is a token with these keys this unit, or a form of it?
    pub(super) fn matches(&self, (exact, near): (Option<Key>, Option<Key>)) -> bool {
        exact == Some(self.exact) || (near.is_some() && near == self.near)
    }

    /// Does it carry meaning of its own?
    pub(super) fn is_heavy(&self) -> bool {
        self.weight > KANA
    }
}

/// What `token` shares with other forms of its word; `None` when it is too short to tell.
pub(super) fn beginning(token: &Token) -> Option<String> {
    let (end, _) = token.key.char_indices().nth(BEGINNING - 1)?;
    let last = token.key[end..].chars().next()?;
    // The mark keeps beginnings apart from whole words.
    (token.kind == Kind::Word).then(|| format!("{}-", &token.key[..end + last.len_utf8()]))
}

/// Takes `claim` apart and enters what it looks for into `vocabulary`. Empty when the claim holds no unit at all.
pub(super) fn sentences(claim: &str, vocabulary: &mut Vocabulary) -> Vec<Sentence> {
    let segments = segments::segments(claim).into_iter();
    let sentences = segments.map(|range| sentence(segments::without_mark(&claim[range]), vocabulary));
    sentences.filter(|sentence| !sentence.units.is_empty()).collect()
}

fn sentence(segment: &str, vocabulary: &mut Vocabulary) -> Sentence {
    let reading = text::read(segment);
    let headline = is_headline(&reading);
    let mut units: Vec<Unit> = Vec::new();
    for (place, token) in reading.tokens.iter().enumerate() {
        let exact = match token.kind {
            Kind::Negator => continue,
            Kind::Word | Kind::Number | Kind::Pair => vocabulary.enter(token.key.clone()),
        };
        if units.iter().any(|unit| unit.exact == exact) {
            continue;
        }
        let written = reading.written(token);
        let light = is_light(token, &written);
        // The first word of a sentence is capitalised anyway, unless it is written like `eBay` or `T2`.
        let marked = place > 0 || written.chars().skip(1).any(|c| c.is_uppercase() || c.is_ascii_digit());
        let name = is_capitalised(token, &written) && marked && !light && !headline && written.chars().nth(1).is_some();
        let kana = token.kind == Kind::Pair && token.key.chars().all(|c| matches!(c, '\u{3041}'..='\u{309F}'));
        units.push(Unit {
            place,
            kind: token.kind,
            name,
            negated: token.negated,
            weight: if light {
                LIGHT
            } else if kana {
                KANA
            } else {
                1.0
            },
            exact,
            near: beginning(token).map(|key| vocabulary.enter(key)),
            opposites: words::opposites(&token.key).iter().map(|key| vocabulary.enter(key.clone())).collect(),
            written,
        });
    }
    let weight = units.iter().map(|unit| unit.weight).sum();
    let opens_with_name = !headline && reading.tokens.first().is_some_and(|token| may_be_name(&reading, token));
    Sentence { units, weight, opens_with_name }
}

/// Might `token` of `reading` name something? A capital or, in scripts that have none, any word of some weight.
pub(super) fn may_be_name(reading: &Reading, token: &Token) -> bool {
    let written = reading.written(token);
    let cased = written.starts_with(|c: char| c.is_lowercase() || c.is_uppercase());
    match token.kind {
        Kind::Word => {
            written.chars().nth(1).is_some()
                && (!cased || is_capitalised(token, &written))
                && !is_light(token, &written)
                && !words::is_opener(&written.to_lowercase())
        }
        Kind::Pair => written.chars().nth(1).is_some() && !words::is_dense_pronoun(&written),
        Kind::Number | Kind::Negator => false,
    }
}

/// Does `token` of `reading` say too little for anything to depend on it?
pub(super) fn is_slight(reading: &Reading, token: &Token) -> bool {
    token.kind == Kind::Negator || is_light(token, &reading.written(token))
}

fn is_capitalised(token: &Token, written: &str) -> bool {
    token.kind == Kind::Word && written.starts_with(char::is_uppercase)
}

/// `us` and `may` are light, `US` and `May` are not.
fn is_light(token: &Token, written: &str) -> bool {
    let shortening = written.chars().nth(1).is_some() && !written.chars().any(char::is_lowercase);
    let shouted = shortening && written.starts_with(char::is_uppercase);
    token.kind == Kind::Word && !shouted && written != "May" && words::is_light(&written.to_lowercase())
}

fn is_headline(reading: &Reading) -> bool {
    let words = reading.tokens.iter().filter(|token| token.kind == Kind::Word);
    let capitals = words.clone().filter(|token| is_capitalised(token, &reading.written(token))).count();
    let words = words.count();
    words >= 5 && capitals * 100 > words * HEADLINE
}
