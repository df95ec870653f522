//! Text to units: folding, and reading words, numbers and character pairs out of a segment.
//!
//! Knows scripts and white space; knows nothing of claims, contexts or scores. Every function here is linear in its
//! text and takes any text.

use std::ops::Range;

use unicode_normalization::UnicodeNormalization;

use super::numbers::{self, Number};
use super::stem;
use super::words::{self, Traits};

/// How many tokens before and after a negator it is taken to negate.
const NEGATION_REACH: usize = 5;

/// The same for Japanese, which negates the verb at the end of a clause and reads as pairs of characters.
const KANA_REACH: usize = 12;

/// What a denial denies stands within this many tokens of it.
const DENIAL_REACH: usize = 4;

/// A denial's heads are the first so many words of weight after it: `does not *increase* the *risk*`.
const DENIAL_HEADS: usize = 2;

/// A segment read into units. Kept and filled again for each segment, so that reading allocates only while it grows.
#[derive(Debug, Default)]
pub(in crate::judge) struct Reading {
    folded: Vec<char>,
    keys: String,
    lower: String,
    /// The units in order.
    pub(in crate::judge) tokens: Vec<Token>,
}

impl Reading {
    /// What is compared: a folded stem, a number's canonical form, or a pair of characters. Empty for a negator.
    pub(in crate::judge) fn key(&self, token: &Token) -> &str {
        self.keys.get(token.key.clone()).unwrap_or_default()
    }

    /// `token` as it was written, folded but neither lower-cased nor stemmed.
    pub(in crate::judge) fn written(&self, token: &Token) -> String {
        self.letters(token).iter().collect()
    }

    /// Does it say by whom something was done?
    pub(super) fn is_passive(&self) -> bool {
        self.tokens.iter().any(|token| token.traits.has(Traits::AGENT))
    }

    /// Does the segment end as a question?
    pub(super) fn asks(&self) -> bool {
        let ending =
            self.folded.iter().rev().find(|c| !c.is_whitespace() && !matches!(c, '"' | '\'' | ')' | '”' | '»'));
        ending.is_some_and(|c| matches!(c, '?' | '؟'))
    }

    /// The characters of `token` as they were written.
    pub(super) fn letters(&self, token: &Token) -> &[char] {
        self.folded.get(token.place.clone()).unwrap_or_default()
    }
}

/// One unit of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::judge) struct Token {
    /// What kind of unit this is.
    pub(in crate::judge) kind: Kind,
    /// What the tables say of the word.
    pub(super) traits: Traits,
    /// Does it say too little for anything to depend on it?
    pub(super) light: bool,
    /// Is it a word that begins with a capital?
    pub(super) capital: bool,
    /// Does a negator stand near?
    pub(super) negated: bool,
    /// Is it among the first words of weight after a negator, or a word such as `failed`?
    pub(super) head: bool,
    /// Does such a word stand close by, or is it a head?
    pub(super) denied: bool,
    key: Range<usize>,
    place: Range<usize>,
}

impl Token {
    /// Is this a negator, or a word such as `failed`?
    fn denies(&self) -> bool {
        self.kind == Kind::Negator || self.traits.has(Traits::FAILING)
    }
}

/// The kinds of units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::judge) enum Kind {
    /// A word of a script that writes gaps between words.
    Word,
    /// A number, however it was written.
    Number,
    /// Two neighbouring characters of a script without such gaps, or a character that stands alone.
    Pair,
    /// A word that turns a statement round. Never compared as a word.
    Negator,
}

/// Brings the many ways to encode a text to one: compatibility forms, accents, pointing, joiners, quotation marks.
/// Keeps letter case, since names are read off it.
///
/// ASCII is its own folding, and nothing that is kept composes with it: only what lies between pays for the tables.
pub(super) fn fold(mut text: &str, mut push: impl FnMut(char)) {
    while !text.is_empty() {
        let plain = text.bytes().take_while(u8::is_ascii).count();
        let (ascii, rest) = text.split_at(plain);
        ascii.chars().for_each(&mut push);
        let (odd, rest) = rest.split_at(rest.find(|c: char| c.is_ascii()).unwrap_or(rest.len()));
        // Decomposed first, so that accents and points can be dropped; composed again for Hangul and kana.
        odd.nfkd().filter_map(fold_char).nfc().for_each(&mut push);
        text = rest;
    }
}

fn fold_char(c: char) -> Option<char> {
    match c {
        // Combining accents, Hebrew points, Arabic harakat and tatweel, soft hyphen, joiners and direction marks.
        '\u{300}'..='\u{36F}'
        | '\u{591}'..='\u{5BD}'
        | '\u{5BF}'
        | '\u{5C1}'
        | '\u{5C2}'
        | '\u{64B}'..='\u{65F}'
        | '\u{670}'
        | '\u{640}'
        | '\u{AD}'
        | '\u{200B}'..='\u{200F}'
        | '\u{202A}'..='\u{202E}'
        | '\u{2060}'..='\u{2069}'
        | '\u{FEFF}' => None,
        '’' | '‘' | 'ʼ' => Some('\''),
        // Arabic and Persian keyboards write the same letters differently.
        'ي' | 'ى' => Some('ی'),
        'ك' => Some('ک'),
        'ة' => Some('ه'),
        other => Some(other),
    }
}

/// Appends the case-folded characters of `text` without white space: two texts equal in this are the same words.
pub(super) fn essence(text: &str, to: &mut String) {
    fold(text, |c| {
        if !c.is_whitespace() {
            push_lower(c, to);
        }
    });
}

/// The folded text as a whole.
pub(in crate::judge) fn folded(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    fold(text, |c| folded.push(c));
    folded
}

/// Reads the units of a text that stands alone.
pub(in crate::judge) fn read_alone(text: &str) -> Reading {
    let mut reading = Reading::default();
    read(text, &mut reading);
    reading
}

/// Reads the units of one segment into `reading`, in place of what it held.
pub(super) fn read(segment: &str, reading: &mut Reading) {
    let Reading { folded, keys, lower, tokens } = reading;
    folded.clear();
    keys.clear();
    tokens.clear();
    fold(segment, |c| folded.push(c));
    let mut reader = Reader { chars: folded, keys, lower, tokens, tens: None };
    let mut at = 0;
    while let Some(&c) = reader.chars.get(at) {
        let rest = &reader.chars[at..];
        at = if numbers::digit(c).is_some() {
            reader.number(at)
        } else if is_dense(c) {
            reader.pairs(at..at + run_length(rest, is_dense))
        } else if is_word_char(c) {
            reader.word(at..at + word_length(rest))
        } else {
            if matches!(c, '%' | '٪') {
                reader.push("percent", Kind::Word, at..at + 1);
            }
            at + 1
        };
    }
    mark_negated(tokens, folded);
    mark_denied(tokens);
}

fn push_lower(c: char, to: &mut String) {
    if c.is_ascii() {
        to.push(c.to_ascii_lowercase());
    } else {
        to.extend(c.to_lowercase());
    }
}

fn run_length(chars: &[char], belongs: impl Fn(char) -> bool) -> usize {
    chars.iter().take_while(|&&c| belongs(c)).count()
}

/// Letters of scripts that write no gaps between words, or (Hangul) glue endings to them.
#[inline]
pub(in crate::judge) fn is_dense(c: char) -> bool {
    !c.is_ascii()
        && matches!(c,
        '\u{E01}'..='\u{E4E}'        // Thai
        | '\u{E81}'..='\u{ECE}'      // Lao
        | '\u{1000}'..='\u{103F}'    // Myanmar
        | '\u{1780}'..='\u{17D3}'    // Khmer
        | '\u{3005}'..='\u{3007}'
        | '\u{3041}'..='\u{3096}'
        | '\u{3099}' | '\u{309A}'
        | '\u{30A1}'..='\u{30FA}'
        | '\u{30FC}'
        | '\u{3400}'..='\u{4DBF}'
        | '\u{4E00}'..='\u{9FFF}'
        | '\u{AC00}'..='\u{D7A3}'
        | '\u{F900}'..='\u{FAFF}'
        | '\u{20000}'..='\u{323AF}')
}

#[inline]
fn is_word_char(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_alphanumeric();
    }
    // Vowel signs and viramas of the Indic scripts are no letters, but words fall apart without them.
    let indic_sign = matches!(c, '\u{900}'..='\u{DFF}') && !matches!(c, '\u{964}' | '\u{965}' | '\u{970}');
    (c.is_alphanumeric() || indic_sign) && !is_dense(c)
}

/// The length of the word at the start of `chars`: letters, digits, inner apostrophes, the dots of `U.S.`
fn word_length(chars: &[char]) -> usize {
    let mut end = 0;
    while let Some(&c) = chars.get(end) {
        if is_word_char(c) {
            end += 1;
            continue;
        }
        let before = end.checked_sub(1).and_then(|i| chars.get(i)).copied();
        let after = chars.get(end + 1).copied();
        let lone = |i: Option<usize>| i.and_then(|i| chars.get(i)).is_none_or(|c| !is_word_char(*c));
        let inner = match c {
            '\'' => after.is_some_and(char::is_alphabetic),
            // `U.S`: an upper-case letter on its own before the dot, a letter after it.
            '.' => {
                before.is_some_and(char::is_uppercase)
                    && after.is_some_and(char::is_uppercase)
                    && lone(end.checked_sub(2))
            }
            _ => false,
        };
        if !inner {
            break;
        }
        end += 1;
    }
    end.max(1)
}

/// The tokens of a segment in the making. Every method takes a place in `chars` and gives the place to go on from.
struct Reader<'a> {
    chars: &'a [char],
    keys: &'a mut String,
    lower: &'a mut String,
    tokens: &'a mut Vec<Token>,
    /// The last token, if it was a word for tens, such as `twenty`.
    tens: Option<u32>,
}

impl Reader<'_> {
    fn push(&mut self, key: &str, kind: Kind, place: Range<usize>) {
        let start = self.keys.len();
        self.keys.push_str(key);
        self.push_keyed(start, kind, place);
    }

    /// The key is what was appended to `keys` since `start`.
    fn push_keyed(&mut self, start: usize, kind: Kind, place: Range<usize>) {
        self.tokens.push(Token {
            kind,
            traits: Traits::default(),
            light: false,
            capital: false,
            negated: false,
            head: false,
            denied: false,
            key: start..self.keys.len(),
            place,
        });
        self.tens = None;
    }

    fn push_number(&mut self, number: &Number, place: Range<usize>) {
        let start = self.keys.len();
        number.write_key(self.keys);
        self.push_keyed(start, Kind::Number, place);
    }

    /// Puts `number` in the place of the last token's, which then reaches to `end`.
    fn renumber(&mut self, number: &Number, end: usize) {
        if let Some(last) = self.tokens.last_mut() {
            self.keys.truncate(last.key.start);
            number.write_key(self.keys);
            last.key.end = self.keys.len();
            last.place.end = end;
        }
    }

    fn word(&mut self, place: Range<usize>) -> usize {
        let end = place.end;
        let letters = &self.chars[place.clone()];
        self.lower.clear();
        letters.iter().filter(|c| **c != '.').for_each(|c| push_lower(*c, self.lower));
        let written = std::mem::take(self.lower);
        self.lower_word(&written, place);
        *self.lower = written;
        end
    }

    fn lower_word(&mut self, written: &str, place: Range<usize>) {
        let traits = words::traits(written);
        if traits.has(Traits::NEGATOR) {
            // The verb in `isn't` is dropped with it: it weighs next to nothing.
            self.push("", Kind::Negator, place);
            return;
        }
        // `I'm` is `I`, `Einstein's` is `Einstein`.
        let shortened = ["'s", "'m", "'ve", "'ll", "'d", "'re"].iter().find_map(|end| written.strip_suffix(end));
        let (lower, traits) = shortened.map_or((written, traits), |lower| (lower, words::traits(lower)));
        if let Some(power) = numbers::scale(lower)
            && let Some(number) = self.tokens.last().and_then(|last| Number::of_key(self.keys.get(last.key.clone())?))
        {
            self.renumber(&number.times_ten_to(power), place.end);
        } else if let Some(value) = numbers::word(lower) {
            self.number_word(value, place);
        } else {
            let letters = &self.chars[place.clone()];
            let capital = letters.first().is_some_and(|c| c.is_uppercase());
            let shouted = capital && letters.len() > 1 && !letters.iter().any(|c| c.is_lowercase());
            // `us` and `may` are light, `US` and `May` are not.
            let light = traits.has(Traits::LIGHT) && !shouted && !(capital && lower == "may");
            let start = self.keys.len();
            stem::stem(lower, self.keys);
            self.push_keyed(start, Kind::Word, place);
            if let Some(token) = self.tokens.last_mut() {
                (token.traits, token.light, token.capital) = (traits, light, capital);
            }
        }
    }

    /// `twenty` stands alone; `two` after it makes 22. `one` is a count only there, a pronoun elsewhere.
    fn number_word(&mut self, value: u32, place: Range<usize>) {
        match self.tens.take().filter(|_| value < 10) {
            Some(tens) => self.renumber(&Number::of(tens + value), place.end),
            None if value == 1 => self.push("one", Kind::Word, place),
            None => {
                self.push_number(&Number::of(value), place);
                self.tens = Some(value).filter(|value| *value >= 20);
            }
        }
    }

    /// A number, or a date written as numbers.
    fn number(&mut self, at: usize) -> usize {
        let chars = &self.chars[at..];
        if let Some((date, length)) = numbers::iso_date(chars) {
            self.push_number(&Number::of(date.year), at..at + 4);
            self.push(words::month(date.month), Kind::Word, at + 5..at + 7);
            self.push_number(&Number::of(date.day), at + 8..at + length);
            return at + length;
        }
        let (mut number, mut length) = numbers::read(chars);
        if let Some(power) = chars.get(length).and_then(|c| numbers::dense_scale(*c)) {
            number = number.times_ten_to(power);
            length += 1;
        }
        // `19th`, `1990s`: the ending says nothing more.
        let suffix = run_length(&chars[length..], char::is_alphanumeric);
        let idle = matches!(chars[length..length + suffix], ['s'] | ['s', 't'] | ['n' | 'r', 'd'] | ['t', 'h']);
        self.push_number(&number, at..at + length);
        at + length + if idle { suffix } else { 0 }
    }

    fn pairs(&mut self, place: Range<usize>) -> usize {
        let run = &self.chars[place.clone()];
        let mut key = [0; 8];
        if let [alone] = run {
            if words::is_dense_negator(run) {
                self.push("", Kind::Negator, place.start..place.start);
            }
            self.push(alone.encode_utf8(&mut key), Kind::Pair, place.clone());
        }
        for (start, pair) in (place.start..).zip(run.windows(2)) {
            if words::is_dense_negator(&run[start - place.start..]) {
                self.push("", Kind::Negator, start..start);
            }
            let from = self.keys.len();
            self.keys.extend(pair);
            self.push_keyed(from, Kind::Pair, start..start + 2);
        }
        place.end
    }
}

/// Marks every token that has a negator, or a word such as `failed`, within reach.
fn mark_negated(tokens: &mut [Token], folded: &[char]) {
    // Nothing before `marked` is visited again, or a text of negators alone would cost their number times the reach.
    let mut marked = 0;
    for at in 0..tokens.len() {
        if tokens[at].denies() {
            let kana = folded.get(tokens[at].place.start).is_some_and(|c| matches!(c, '\u{3041}'..='\u{309F}'));
            let reach = if kana { KANA_REACH } else { NEGATION_REACH };
            let to = (at + reach + 1).min(tokens.len());
            let from = at.saturating_sub(reach).max(marked).min(to);
            for token in &mut tokens[from..to] {
                token.negated = true;
            }
            marked = marked.max(to);
        }
    }
}

/// Marks what negators and words such as `failed` deny.
fn mark_denied(tokens: &mut [Token]) {
    let mut marked = 0;
    for at in 0..tokens.len() {
        if !tokens[at].denies() {
            continue;
        }
        let to = (at + DENIAL_REACH + 1).min(tokens.len());
        for token in &mut tokens[at.saturating_sub(DENIAL_REACH).max(marked).min(to)..to] {
            token.denied = true;
        }
        marked = marked.max(to);
        let after = tokens[at + 1..].iter_mut().take(DENIAL_REACH + 1);
        let clause = after.take_while(|token| token.kind != Kind::Negator);
        for token in clause.filter(|token| !token.light).take(DENIAL_HEADS) {
            (token.head, token.denied) = (true, true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, Reading, Token};

    fn read(text: &str) -> Reading {
        let mut reading = Reading::default();
        // Twice, since a reading is used again.
        super::read("Another 12.5 nots", &mut reading);
        super::read(text, &mut reading);
        reading
    }

    fn keys(text: &str) -> Vec<String> {
        let reading = read(text);
        let tokens = reading.tokens.iter().filter(|token| token.kind != Kind::Negator);
        tokens.map(|token| reading.key(token).to_owned()).collect()
    }

    fn essence(text: &str) -> String {
        let mut essence = String::new();
        super::essence(text, &mut essence);
        essence
    }

    #[test]
    fn the_same_words_have_the_same_keys() {
        for forms in [
            ["March 14, 1879", "mar 14 1879"],
            ["12 %", "12 percent"],
            ["twelve", "12"],
            ["twenty-one", "21"],
            ["3.5 million", "3,500,000"],
            ["two hundred", "200"],
            ["the 19th century", "the 19 centuries"],
            ["U.S. Army", "US army"],
            ["Ｃａｆé", "cafe"],
            ["كتاب", "کِتابـ"],
            ["70亿", "7000000000"],
            ["Einstein's", "Einstein"],
            ["I'm sure we've", "I sure we"],
        ] {
            assert_eq!(keys(forms[0]), keys(forms[1]), "{forms:?}");
        }
        let mut iso = keys("1879-03-14");
        let mut said = keys("14 March 1879");
        iso.sort();
        said.sort();
        assert_eq!(iso, said);
    }

    #[test]
    fn scripts_without_gaps_give_pairs() {
        assert_eq!(keys("東京都 犬"), ["東京", "京都", "犬"]);
        assert_eq!(keys("서울은"), ["서울", "울은"]);
        assert!(keys("กรุงเทพ").len() > 3);
    }

    #[test]
    fn a_negator_reaches_its_neighbours_only() {
        let tokens = read("It never rained while the harvest was brought into the old barn").tokens;
        assert!(tokens[2].negated);
        assert!(!tokens.last().is_some_and(|token| token.negated));
        for negated in
            ["He isn't here", "он не был", "他不在", "그는 없다", "彼はいない", "هو ليس هنا", "वह नहीं है", "เขาไม่อยู่"]
        {
            assert!(read(negated).tokens.iter().any(|token| token.negated), "{negated}");
        }
    }

    #[test]
    fn a_denial_has_heads() {
        let of = |text: &str, wanted: fn(&Token) -> bool| -> Vec<String> {
            let reading = read(text);
            reading.tokens.iter().filter(|token| wanted(token)).map(|token| reading.written(token)).collect()
        };
        assert_eq!(of("It does not increase the risk of stroke", |token| token.head), ["increase", "risk"]);
        assert_eq!(of("She declined to act in films", |token| token.head), ["act", "films"]);
        assert!(of("It increases the risk", |token| token.head || token.denied).is_empty());
        assert!(
            of("Rain fell all night, which is not what the farmers of the valley wanted", |token| token.denied)
                .iter()
                .all(|word| word != "valley" && word != "Rain")
        );
    }

    #[test]
    fn essence_knows_neither_case_nor_space() {
        assert_eq!(essence("Ａ b\u{301}\n C"), essence("a B c"));
        assert_ne!(essence("a"), essence("b"));
    }
}
