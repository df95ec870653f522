//! The word before a stop: where it begins, and which abbreviation, initial or unit it is.

use unicode_normalization::char::is_combining_mark;

use super::lexicon::{self, Kind};
use super::stops::is_unspaced;

/// How far around a stop the rules read, in characters. No abbreviation is longer, and a bound keeps them linear.
pub(super) const LOOK_BACK: usize = 48;

/// May `c` stand inside a word? Marks belong to the letter before them: `प्रो` is one word.
pub(super) fn is_inside(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '.' | '-' | '\'' | '’') || !c.is_ascii() && is_combining_mark(c)
}

/// The letters of `word` without their marks.
pub(super) fn base_letters(word: &str) -> usize {
    word.chars().filter(|c| !is_combining_mark(*c)).count()
}

/// The last word of `text` (with the dots and hyphens inside it, without the ones around it, without the article of
/// `l'art`) and what stands before it up to the previous white space. Empty when `text` does not end in a letter,
/// digit or mark.
pub(super) fn last(text: &str) -> (&str, &str) {
    let text = text.trim_end();
    let from = text.char_indices().rev().nth(LOOK_BACK - 1).map_or(0, |(at, _)| at);
    let text = &text[from..];
    let start = text.char_indices().rev().take_while(|&(_, c)| is_inside(c)).last().map_or(text.len(), |(at, _)| at);
    let word = text[start..].trim_start_matches(|c: char| !c.is_alphanumeric());
    if !text.ends_with(|c: char| c.is_alphanumeric() || is_combining_mark(c)) {
        return ("", "");
    }
    let before = text[..text.len() - word.len()].trim_end();
    let previous = before.rsplit(char::is_whitespace).next().unwrap_or_default();
    (without_article(word), previous)
}

/// `art` of `l'art`, `avv` of `dell’avv`, `U.E` of `l'U.E`; `don't` as it is.
fn without_article(word: &str) -> &str {
    let Some((_, noun)) = word.rsplit_once(['\'', '’']) else { return word };
    let mut letters = noun.chars();
    let first = letters.next();
    let elided =
        first.is_some_and(char::is_uppercase) || first.is_some_and(char::is_alphabetic) && letters.next().is_some();
    if elided { noun } else { word }
}

/// What the stop behind `word` means, as far as the word and the one before it tell.
pub(super) fn kind(word: &str, previous: &str, lower_case: bool) -> Option<Kind> {
    let capital = lower_case || !word.chars().next().is_some_and(char::is_lowercase);
    let key = word.to_lowercase();
    let before = previous.trim_start_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    let shouted = word.chars().count() > 1 && word.chars().all(char::is_uppercase);
    let number = before.ends_with(char::is_numeric);
    if is_unit(word, previous) {
        return Some(Kind::Unit);
    }
    // `p. ex`, `Dr. med`, `ad es`: abbreviations of two words.
    let pair = format!("{before} {key}");
    let joined = spelled(&key, &before);
    [pair.as_str(), joined.as_deref().unwrap_or(&key), &key]
        .into_iter()
        .find_map(|key| lexicon::kind(key, capital))
        // `She has MS. Doctors …`: written so, what would be a title is mostly something else.
        .map(|kind| match kind {
            Kind::Title if shouted && lexicon::kind(&key, false).is_none() => Kind::Ending,
            kind => kind,
        })
        // `A.M. Turing` is no time.
        .filter(|kind| *kind != Kind::Closing || number || !matches!(&*key, "a.m" | "p.m"))
        .or_else(|| letters(joined.as_deref().unwrap_or(&key)).filter(|_| !lexicon::precedes_letter(&before)))
}

/// `B` after `z.` is `z.B`: an abbreviation of two parts written with a space.
fn spelled(word: &str, previous: &str) -> Option<String> {
    let single = |text: &str| text.chars().count() == 1;
    let first = previous.strip_suffix('.')?;
    let letters = single(word) && single(first) && first.chars().all(char::is_alphabetic);
    let joined = format!("{first}.{word}");
    (letters || lexicon::kind(&joined, true).is_some()).then_some(joined)
}

/// Is `word` a unit? `100 °C`, `5 N·m`, `120 km/h`, `6 ft`, `10 A`; the letters not behind a year, where they are
/// initials: `In 1990 A. Smith`.
fn is_unit(word: &str, previous: &str) -> bool {
    let single = word.chars().count() == 1;
    if single && previous.ends_with(['°', '·', '⋅', '′', '″'])
        || single && previous.ends_with('/') && word.chars().all(char::is_lowercase)
    {
        return true;
    }
    if !previous.ends_with(|c: char| c.is_ascii_digit()) {
        return false;
    }
    let year = previous.len() == 4 && previous.chars().all(|c| c.is_ascii_digit());
    lexicon::is_unit(word) && !(single && year)
}

/// `k`, `u.s`, `j.-p`: single letters, of a script that abbreviates so.
///
/// The scripts of India spell the names of letters: `எம்.ஜி.ஆர்`. Those of the south end their sentences in long
/// verbs, so that a lone syllable is an initial there.
fn letters(word: &str) -> Option<Kind> {
    let mut parts = 0;
    let mut syllables = false;
    for part in word.split(['.', '-']).filter(|part| !part.is_empty()) {
        let first = part.chars().next().filter(|c| c.is_alphabetic() && !is_unspaced(*c))?;
        let length = base_letters(part);
        let indic = matches!(first, '\u{900}'..='\u{DFF}');
        let southern = matches!(first, '\u{B80}'..='\u{D7F}');
        if part.len() != first.len_utf8() {
            if !(indic && length <= 3 || length == 1 && !indic) {
                return None;
            }
            syllables |= indic && !(southern && length == 1);
        }
        parts += 1;
    }
    match parts {
        0 => None,
        1 => (!syllables).then_some(Kind::Initial),
        _ => Some(Kind::Ending),
    }
}

/// `5`, `S1`, `IV`, `A`: what follows `Fig.` or `No.`
pub(super) fn is_numeral(word: &str, lower_case: bool) -> bool {
    word.contains(char::is_numeric)
        || !lower_case && (is_roman(word) || word.chars().count() == 1 && word.contains(char::is_uppercase))
}

pub(super) fn is_roman(word: &str) -> bool {
    !word.is_empty() && word.len() <= 7 && word.chars().all(|c| "IVXLC".contains(c))
}
