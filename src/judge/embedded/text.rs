//! Text to units: folding, and reading words, numbers and character pairs out of a segment.
//!
//! Knows scripts and white space; knows nothing of claims, contexts or scores. Every function here is linear in its
//! text and takes any text.

use std::borrow::Cow;
use std::ops::Range;

use unicode_normalization::UnicodeNormalization;

use super::numbers::{self, Number};
use super::{stem, words};

/// How many tokens before and after a negator it is taken to negate.
const NEGATION_REACH: usize = 5;

/// The same for Japanese, which negates the verb at the end of a clause and reads as pairs of characters.
const KANA_REACH: usize = 12;

/// A segment read into units.
#[derive(Debug)]
pub(in crate::judge) struct Reading {
    folded: Vec<char>,
    pub(in crate::judge) tokens: Vec<Token>,
}

impl Reading {
    /// `token` as it was written, folded but neither lower-cased nor stemmed.
    pub(in crate::judge) fn written(&self, token: &Token) -> String {
        let letters = self.folded.get(token.place.clone());
        letters.unwrap_or_default().iter().collect()
    }
}

/// One unit of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::judge) struct Token {
    /// What is compared: a folded stem, a number's canonical form, or a pair of characters. Empty for a negator.
    pub(in crate::judge) key: String,
    /// What kind of unit this is.
    pub(in crate::judge) kind: Kind,
    /// Does a negator stand near?
    pub(super) negated: bool,
    place: Range<usize>,
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
pub(in crate::judge) fn fold(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    // Decomposed first, so that accents and points can be dropped; composed again for Hangul and kana.
    text.nfkd().filter_map(fold_char).nfc().collect::<String>().into()
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

/// The case-folded characters of `text` without white space: two texts equal in this are the same words.
pub(super) fn essence(text: &str) -> impl Iterator<Item = char> + '_ {
    text.nfkd().filter_map(fold_char).nfc().filter(|c| !c.is_whitespace()).flat_map(char::to_lowercase)
}

/// Reads the units of one segment.
pub(in crate::judge) fn read(segment: &str) -> Reading {
    let folded: Vec<char> = fold(segment).chars().collect();
    let mut reader = Reader { chars: &folded, tokens: Vec::new() };
    let mut at = 0;
    while let Some(&c) = folded.get(at) {
        let rest = &folded[at..];
        at = if numbers::digit(c).is_some() {
            reader.number(at)
        } else if is_dense(c) {
            reader.pairs(at..at + run_length(rest, is_dense))
        } else if is_word_char(c) {
            reader.word(at..at + word_length(rest))
        } else {
            if matches!(c, '%' | '٪') {
                reader.push("percent".to_owned(), Kind::Word, at..at + 1);
            }
            at + 1
        };
    }
    let mut tokens = reader.tokens;
    mark_negated(&mut tokens, &folded);
    Reading { folded, tokens }
}

fn run_length(chars: &[char], belongs: impl Fn(char) -> bool) -> usize {
    chars.iter().take_while(|&&c| belongs(c)).count()
}

/// Letters of scripts that write no gaps between words, or (Hangul) glue endings to them.
pub(in crate::judge) fn is_dense(c: char) -> bool {
    matches!(c,
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

fn is_word_char(c: char) -> bool {
    // Vowel signs and viramas of the Indic scripts are no letters, but words fall apart without them.
    let indic_sign = matches!(c, '\u{900}'..='\u{DFF}') && !matches!(c, '\u{964}' | '\u{965}' | '\u{970}');
    (c.is_alphanumeric() || indic_sign) && !is_dense(c)
}

/// The length of the word at the start of `chars`: letters, digits, inner apostrophes, the dots of `U.S.`
fn word_length(chars: &[char]) -> usize {
    let mut end = 0;
    while let Some(&c) = chars.get(end) {
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
            _ => is_word_char(c),
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
    tokens: Vec<Token>,
}

impl Reader<'_> {
    fn push(&mut self, key: String, kind: Kind, place: Range<usize>) {
        self.tokens.push(Token { key, kind, negated: false, place });
    }

    fn lower(&self, place: Range<usize>) -> String {
        self.chars[place].iter().filter(|c| **c != '.').flat_map(|c| c.to_lowercase()).collect()
    }

    fn word(&mut self, place: Range<usize>) -> usize {
        let end = place.end;
        let lower = self.lower(place.clone());
        if words::is_negator(&lower) {
            // The verb in `isn't` is dropped with it: it weighs next to nothing.
            self.push(String::new(), Kind::Negator, place);
            return end;
        }
        let lower = lower.strip_suffix("'s").unwrap_or(&lower);
        if let Some(power) = numbers::scale(lower)
            && let Some(last) = self.tokens.last_mut()
            && let Some(number) = Number::of_key(&last.key)
        {
            last.key = number.times_ten_to(power).key();
            last.place.end = end;
        } else if let Some(value) = numbers::word(lower) {
            self.number_word(value, place);
        } else {
            self.push(stem::stem(lower), Kind::Word, place);
        }
        end
    }

    /// `twenty` stands alone; `two` after it makes 22. `one` is a count only there, a pronoun elsewhere.
    fn number_word(&mut self, value: u32, place: Range<usize>) {
        let last = self.tokens.last().filter(|last| last.kind == Kind::Number && value < 10);
        let tens = last.and_then(|last| numbers::word(&self.lower(last.place.clone()))).filter(|tens| *tens >= 20);
        match (tens, self.tokens.last_mut()) {
            (Some(tens), Some(last)) => {
                last.key = Number::of(tens + value).key();
                last.place.end = place.end;
            }
            _ if value == 1 => self.push("one".to_owned(), Kind::Word, place),
            _ => self.push(Number::of(value).key(), Kind::Number, place),
        }
    }

    /// A number, or a date written as numbers.
    fn number(&mut self, at: usize) -> usize {
        let chars = &self.chars[at..];
        if let Some((date, length)) = numbers::iso_date(chars) {
            self.push(Number::of(date.year).key(), Kind::Number, at..at + 4);
            self.push(words::month(date.month).to_owned(), Kind::Word, at + 5..at + 7);
            self.push(Number::of(date.day).key(), Kind::Number, at + 8..at + length);
            return at + length;
        }
        let (mut number, mut length) = numbers::read(chars);
        if let Some(power) = chars.get(length).and_then(|c| numbers::dense_scale(*c)) {
            number = number.times_ten_to(power);
            length += 1;
        }
        self.push(number.key(), Kind::Number, at..at + length);
        // `19th`, `1990s`: the ending says nothing more.
        let suffix = run_length(&chars[length..], char::is_alphanumeric);
        let ending: String = chars[length..length + suffix].iter().take(3).collect();
        let idle = matches!(ending.as_str(), "st" | "nd" | "rd" | "th" | "s");
        at + length + if idle { suffix } else { 0 }
    }

    fn pairs(&mut self, place: Range<usize>) -> usize {
        let run = &self.chars[place.clone()];
        if let [alone] = run {
            if words::is_dense_negator(run) {
                self.push(String::new(), Kind::Negator, place.start..place.start);
            }
            self.push(alone.to_string(), Kind::Pair, place.clone());
        }
        for (start, pair) in (place.start..).zip(run.windows(2)) {
            if words::is_dense_negator(&run[start - place.start..]) {
                self.push(String::new(), Kind::Negator, start..start);
            }
            self.push(pair.iter().collect(), Kind::Pair, start..start + 2);
        }
        place.end
    }
}

/// Marks every token that has a negator within reach.
fn mark_negated(tokens: &mut [Token], folded: &[char]) {
    // Nothing before `marked` is visited again, or a text of negators alone would cost their number times the reach.
    let mut marked = 0;
    for at in 0..tokens.len() {
        if tokens[at].kind == Kind::Negator {
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

#[cfg(test)]
mod tests {
    use super::{Kind, essence, read};

    fn keys(text: &str) -> Vec<String> {
        let tokens = read(text).tokens.into_iter();
        tokens.filter(|token| token.kind != Kind::Negator).map(|token| token.key).collect()
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
    fn essence_knows_neither_case_nor_space() {
        assert!(essence("Ａ b\u{301}\n C").eq(essence("a B c")));
        assert!(!essence("a").eq(essence("b")));
    }
}
