//! A claim taken apart: sentences of weighted units, each with what may stand for it in a context.
//!
//! Weights come from the claim alone. Were they taken from the contexts (as an inverse document frequency is), one more
//! context could change them all and lower a recall.

use std::collections::HashMap;

use super::relations::{self, Direction};
use super::segments;
use super::text::{self, Kind, Reading, Token};
use super::words::{self, Traits};

/// The weight of a word that says little, beside 1 for any other.
const LIGHT: f32 = 0.3;

/// The weight of two neighbouring hiragana: mostly endings and particles.
const KANA: f32 = 0.5;

/// Words that share this many letters at their beginning, after stemming, are taken for forms of one word.
const BEGINNING: usize = 5;

/// A sentence with more than this share of capitalised words, in percent, is a headline: its capitals name nothing.
const HEADLINE: usize = 80;

/// So many words of a sentence are compared with others of their kind, and with words that lead the other way: each
/// meets all of them, so a sentence of such words alone would cost their number times the contexts.
const RELATED: usize = 8;

/// The number by which a key is known in one question.
pub(super) type Key = usize;

/// Every key that some claim of the question looks for. Nothing else of the contexts is kept.
#[derive(Debug, Default)]
pub(super) struct Vocabulary {
    words: HashMap<String, Key>,
    beginnings: HashMap<String, Key>,
    /// The words of both directions, once a claim has looked for one.
    directions: Option<[Vec<Key>; 2]>,
}

impl Vocabulary {
    fn enter(&mut self, word: &str) -> Key {
        let next = self.len();
        self.words.get(word).copied().unwrap_or_else(|| {
            self.words.insert(word.to_owned(), next);
            next
        })
    }

    fn enter_all(&mut self, words: &[String]) -> Vec<Key> {
        words.iter().map(|word| self.enter(word)).collect()
    }

    fn enter_beginning(&mut self, beginning: &str) -> Key {
        let next = self.len();
        self.beginnings.get(beginning).copied().unwrap_or_else(|| {
            self.beginnings.insert(beginning.to_owned(), next);
            next
        })
    }

    fn enter_directions(&mut self) {
        if self.directions.is_none() {
            let both = [Direction::More, Direction::Less];
            self.directions = Some(both.map(|direction| self.enter_all(direction.stems())));
        }
    }

    /// The number of this word, and that of words that begin as it does, if some claim looks for them.
    pub(super) fn find(&self, reading: &Reading, token: &Token) -> (Option<Key>, Option<Key>) {
        let near = beginning(reading, token).and_then(|beginning| self.beginnings.get(beginning));
        (self.words.get(reading.key(token)).copied(), near.copied())
    }

    /// All words that lead in `direction`; empty unless a claim has one.
    pub(super) fn leading(&self, direction: Direction) -> &[Key] {
        match (&self.directions, direction) {
            (Some([more, _]), Direction::More) => more,
            (Some([_, less]), Direction::Less) => less,
            (None, _) => &[],
        }
    }

    /// How many keys there are; they are numbered from 0.
    pub(super) fn len(&self) -> usize {
        self.words.len() + self.beginnings.len()
    }
}

/// One sentence of a claim.
#[derive(Debug)]
pub(super) struct Sentence {
    /// Its distinct units in order; never empty, and no more than a segment has characters.
    pub(super) units: Vec<Unit>,
    /// The sum of their weights, above 0.
    pub(super) weight: f32,
    /// The units of weight, in order.
    pub(super) heavy: Vec<usize>,
    /// The unit of each of its tokens, in order; a negator is none.
    pub(super) order: Vec<usize>,
    /// Does it open with a word that may be a name? Capitals do not tell: every sentence opens with one.
    pub(super) opens_with_name: bool,
    /// Does it negate anything?
    pub(super) negates: bool,
    /// Is it a question?
    pub(super) asks: bool,
    /// Does it say by whom something was done?
    pub(super) passive: bool,
}

impl Sentence {
    /// Does this unit look like a name, also as the first word?
    pub(super) fn is_named(&self, number: usize) -> bool {
        self.units.get(number).is_some_and(|unit| unit.name || (number == 0 && self.opens_with_name && unit.capital))
    }
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
    /// Is it a word that begins with a capital?
    pub(super) capital: bool,
    /// Does the claim negate it?
    pub(super) negated: bool,
    /// How much it counts.
    pub(super) weight: f32,
    /// The unit itself.
    pub(super) exact: Key,
    /// Words that begin as it does.
    pub(super) near: Option<Key>,
    /// Does a word such as `not` or `failed` in the claim deny this?
    pub(super) denied: bool,
    /// Does it leave no exception?
    pub(super) sweeping: bool,
    /// Does it stand for who speaks or is spoken to?
    pub(super) speaker: bool,
    /// Words that say the opposite.
    pub(super) opposites: Vec<Key>,
    /// Words for other things of its kind, none of which the sentence has.
    pub(super) rivals: Vec<Key>,
    /// Does it say more, or less?
    pub(super) direction: Option<Direction>,
}

impl Unit {
    /// Is a token with these keys this unit, or a form of it?
    pub(super) fn matches(&self, (exact, near): (Option<Key>, Option<Key>)) -> bool {
        exact == Some(self.exact) || (near.is_some() && near == self.near)
    }

    /// Is it more than a word of little weight?
    pub(super) fn is_weighty(&self) -> bool {
        self.weight > LIGHT
    }

    /// Does it carry meaning of its own?
    pub(super) fn is_heavy(&self) -> bool {
        self.weight > KANA
    }
}

/// What `token` shares with other forms of its word; `None` when it is too short to tell.
fn beginning<'a>(reading: &'a Reading, token: &Token) -> Option<&'a str> {
    let key = reading.key(token);
    let (end, last) = key.char_indices().nth(BEGINNING - 1)?;
    (token.kind == Kind::Word).then(|| &key[..end + last.len_utf8()])
}

/// Takes `claim` apart and enters what it looks for into `vocabulary`. Empty when the claim holds no unit at all.
pub(super) fn sentences(claim: &str, vocabulary: &mut Vocabulary) -> Vec<Sentence> {
    let segments = segments::segments(claim).into_iter();
    let sentences = segments.map(|range| sentence(segments::without_mark(&claim[range]), vocabulary));
    sentences.filter(|sentence| !sentence.units.is_empty()).collect()
}

fn sentence(segment: &str, vocabulary: &mut Vocabulary) -> Sentence {
    let mut reading = Reading::default();
    text::read(segment, &mut reading);
    let headline = is_headline(&reading);
    let mut units: Vec<Unit> = Vec::new();
    let mut order = Vec::new();
    for (place, token) in reading.tokens.iter().enumerate() {
        let exact = match token.kind {
            Kind::Negator => continue,
            Kind::Word | Kind::Number | Kind::Pair => vocabulary.enter(reading.key(token)),
        };
        if let Some(known) = units.iter().position(|unit| unit.exact == exact) {
            order.push(known);
            continue;
        }
        order.push(units.len());
        units.push(unit(&reading, place, token, exact, headline, vocabulary));
    }
    let known: Vec<Key> = units.iter().map(|unit| unit.exact).collect();
    for unit in &mut units {
        unit.rivals.retain(|rival| !known.contains(rival));
    }
    let rivalled = units.iter_mut().filter(|unit| !unit.rivals.is_empty());
    rivalled.skip(RELATED).for_each(|unit| unit.rivals.clear());
    let directed = units.iter_mut().filter(|unit| unit.direction.is_some());
    directed.skip(RELATED).for_each(|unit| unit.direction = None);
    let weight = units.iter().map(|unit| unit.weight).sum();
    let opens_with_name = !headline && reading.tokens.first().is_some_and(|token| may_be_name(&reading, token));
    Sentence {
        heavy: (0..units.len()).filter(|number| units[*number].is_heavy()).collect(),
        units,
        weight,
        order,
        opens_with_name,
        negates: reading.tokens.iter().any(|token| token.kind == Kind::Negator),
        asks: reading.asks(),
        passive: reading.is_passive(),
    }
}

fn unit(
    reading: &Reading,
    place: usize,
    token: &Token,
    exact: Key,
    headline: bool,
    vocabulary: &mut Vocabulary,
) -> Unit {
    let written = reading.written(token);
    // The first word of a sentence is capitalised anyway, unless it is written like `eBay` or `T2`.
    let marked = place > 0 || written.chars().skip(1).any(|c| c.is_uppercase() || c.is_ascii_digit());
    let kana = token.kind == Kind::Pair && written.chars().all(|c| matches!(c, '\u{3041}'..='\u{309F}'));
    let known = Some(reading.key(token)).filter(|_| token.kind == Kind::Word).and_then(relations::relations);
    let direction = known.and_then(|known| known.direction);
    if direction.is_some() {
        vocabulary.enter_directions();
    }
    Unit {
        place,
        kind: token.kind,
        name: token.capital && marked && !token.light && !headline && written.chars().nth(1).is_some(),
        capital: token.capital,
        negated: token.negated,
        denied: token.head,
        sweeping: token.traits.has(Traits::SWEEPING),
        speaker: token.traits.has(Traits::SPEAKER),
        weight: if token.light {
            LIGHT
        } else if kana {
            KANA
        } else {
            1.0
        },
        exact,
        near: beginning(reading, token).map(|beginning| vocabulary.enter_beginning(beginning)),
        opposites: known.map_or_else(Vec::new, |known| vocabulary.enter_all(&known.opposites)),
        rivals: known.map_or_else(Vec::new, |known| vocabulary.enter_all(&known.rivals)),
        direction,
        written,
    }
}

/// Might `token` of `reading` name something? A capital or, in scripts that have none, any word of some weight.
pub(super) fn may_be_name(reading: &Reading, token: &Token) -> bool {
    let letters = reading.letters(token);
    let long = letters.len() > 1;
    match token.kind {
        Kind::Word => {
            let cased = letters.first().is_some_and(|c| c.is_lowercase() || c.is_uppercase());
            // Last, since it alone allocates.
            long && !token.light
                && (!cased || token.capital)
                && !words::is_opener(&reading.written(token).to_lowercase())
        }
        Kind::Pair => long && !words::is_dense_pronoun(letters),
        Kind::Number | Kind::Negator => false,
    }
}

fn is_headline(reading: &Reading) -> bool {
    let words = reading.tokens.iter().filter(|token| token.kind == Kind::Word);
    let capitals = words.clone().filter(|token| token.capital).count();
    let words = words.count();
    words >= 5 && capitals * 100 > words * HEADLINE
}
