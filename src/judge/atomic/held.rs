//! Do the claims that a sentence was cut into say what it says? By words, in any script.
//!
//! A claim may take its words from the sentence and, since it puts names in place of pronouns, from the other sentences;
//! its numbers and negations from the sentence alone. Small words that join others are free. Together the claims have to
//! keep the sentence's numbers, its negation and most of its words. What this cannot see is words put together
//! differently: it keeps facts out and in, it does not prove that they are the same.

use std::collections::{BTreeSet, HashSet};
use std::ops::Bound;

use crate::judge::embedded::text::{self, Kind};
use crate::judge::embedded::words::is_light;

/// The sentences of a reference, read for holding claims against them.
pub(super) struct Text {
    sentences: Vec<Sentence>,
    /// The words of all of them, cut down to stems.
    words: BTreeSet<String>,
    /// Characters and pairs of neighbours in scripts without gaps.
    characters: HashSet<char>,
    pairs: HashSet<(char, char)>,
}

/// What one sentence says.
struct Sentence {
    numbers: HashSet<String>,
    is_negated: bool,
    /// What its claims have to keep.
    kept: Content,
}

/// What carries the meaning of a text: words and pairs of characters, and numbers.
#[derive(Default)]
struct Content {
    units: BTreeSet<String>,
    numbers: BTreeSet<String>,
}

/// Words of a complaint that are repeated in it.
const REPEATED: usize = 5;

impl Text {
    pub(super) fn read(sentences: &[String]) -> Self {
        let mut text = Self {
            sentences: Vec::with_capacity(sentences.len()),
            words: BTreeSet::new(),
            characters: HashSet::new(),
            pairs: HashSet::new(),
        };
        for sentence in sentences {
            let reading = text::read(sentence);
            let of_kind = |kind: Kind| reading.tokens.iter().filter(move |token| token.kind == kind);
            text.words.extend(of_kind(Kind::Word).map(|token| token.key.clone()));
            text.sentences.push(Sentence {
                numbers: of_kind(Kind::Number).map(|token| token.key.clone()).collect(),
                is_negated: of_kind(Kind::Negator).next().is_some(),
                kept: Content::of(&without_marks(sentence)),
            });
            for run in dense_runs(&text::fold(sentence)) {
                text.characters.extend(&run);
                text.pairs.extend(run.windows(2).filter_map(pair));
            }
        }
        text
    }

    /// What is wrong with `claims` as the cut of sentence `number` (from 1), in words for the model; `None` when nothing is.
    pub(super) fn fault(&self, number: usize, claims: &[String]) -> Option<String> {
        let sentence = self.sentences.get(number.checked_sub(1)?)?;
        let mut said = Content::default();
        let mut is_negated = false;
        for claim in claims {
            let added = self.added(sentence, claim);
            if !added.is_empty() {
                let words: Vec<String> =
                    added.iter().take(REPEATED).map(|word| format!("\"{}\"", short(word))).collect();
                return Some(format!("the claims add {}; take the sentence's own words", words.join(", ")));
            }
            let reading = text::read(claim);
            let turns_round = reading.tokens.iter().any(|token| token.kind == Kind::Negator);
            if turns_round && !sentence.is_negated {
                return Some("a claim negates what the sentence does not".to_owned());
            }
            is_negated |= turns_round;
            let content = Content::of(claim);
            if !content.touches(&sentence.kept) {
                return Some("a claim says nothing of this sentence".to_owned());
            }
            said.units.extend(content.units);
            said.numbers.extend(content.numbers);
        }
        if sentence.is_negated && !is_negated {
            return Some("the claims leave its negation out".to_owned());
        }
        if !sentence.kept.numbers.is_subset(&said.numbers) {
            return Some("the claims leave a number out".to_owned());
        }
        // Lead-ins and asides need not come along, so a part may be missing; half of a sentence is more than that.
        let kept = sentence.kept.units.iter().filter(|unit| said.holds(unit)).count();
        (kept * 2 < sentence.kept.units.len()).then(|| "the claims leave half of it out".to_owned())
    }

    /// The words and numbers of a claim that come from nowhere.
    fn added(&self, sentence: &Sentence, claim: &str) -> Vec<String> {
        let reading = text::read(claim);
        let mut added = Vec::new();
        for token in &reading.tokens {
            let written = reading.written(token);
            let is_held = match token.kind {
                Kind::Word => holds_word(&self.words, &token.key) || is_light(&written.to_lowercase()),
                Kind::Number => sentence.numbers.contains(&token.key),
                // Read below, where there are more than two characters to look at.
                Kind::Pair | Kind::Negator => true,
            };
            if !is_held {
                added.push(written);
            }
        }
        for run in dense_runs(&text::fold(&without_thai_glue(claim))) {
            let pieces = run.chunk_by(|a, b| Script::of(*a) == Script::of(*b));
            added.extend(pieces.filter(|piece| !self.holds_piece(piece)).map(|piece| piece.iter().collect()));
        }
        added
    }

    /// Does a piece of one script without gaps come from the text? What joins words there is part of them, so each script
    /// has a rule of its own.
    fn holds_piece(&self, piece: &[char]) -> bool {
        let is_known = |window: &[char]| pair(window).is_some_and(|pair| self.pairs.contains(&pair));
        let Some((first, rest)) = piece.split_first() else { return true };
        match Script::of(*first) {
            // Endings and particles; names are not written so.
            Script::Hiragana => true,
            Script::Han => piece.iter().all(|c| self.characters.contains(c) || HAN_GLUE.contains(*c)),
            Script::Katakana => rest.is_empty() || piece.windows(2).all(is_known),
            // A word begins with its stem and ends with what joins it.
            Script::Hangul => {
                let word: String = piece.iter().collect();
                let is_glue =
                    HANGUL_GLUE.iter().any(|glue| word.starts_with(glue)) || HANGUL_GLUE_ALONE.contains(&word.as_str());
                is_glue || if rest.is_empty() { self.characters.contains(first) } else { is_known(piece) }
            }
            // Where two words meet that did not before, a pair or two is new; a new word makes more.
            Script::Other => {
                let mut streak = 0;
                piece.windows(2).all(|window| {
                    streak = if is_known(window) { 0 } else { streak + 1 };
                    streak < 4
                })
            }
        }
    }
}

impl Content {
    fn of(text: &str) -> Self {
        let reading = text::read(text);
        let mut content = Self::default();
        for token in &reading.tokens {
            match token.kind {
                Kind::Number => {
                    content.numbers.insert(token.key.clone());
                }
                Kind::Word if is_light(&reading.written(token).to_lowercase()) => {}
                Kind::Word | Kind::Pair => {
                    content.units.insert(token.key.clone());
                }
                Kind::Negator => {}
            }
        }
        content
    }

    fn holds(&self, unit: &str) -> bool {
        holds_word(&self.units, unit)
    }

    /// Do the two have anything in common? Of a text that says nothing nobody can tell.
    fn touches(&self, other: &Self) -> bool {
        other.units.is_empty() && other.numbers.is_empty()
            || self.units.iter().any(|unit| other.holds(unit))
            || !self.numbers.is_disjoint(&other.numbers)
    }
}

/// Is this word among `words`, or one that differs in its ending alone?
fn holds_word(words: &BTreeSet<String>, word: &str) -> bool {
    // Sorted, what shares a beginning stands close by.
    let near = || {
        let above = words.range::<str, _>((Bound::Included(word), Bound::Unbounded)).take(NEIGHBOURS);
        above.chain(words.range::<str, _>((Bound::Unbounded, Bound::Excluded(word))).rev().take(NEIGHBOURS))
    };
    words.contains(word) || near().any(|known| is_form_of(known, word))
}

/// Neighbours that are looked at, on either side.
const NEIGHBOURS: usize = 4;

/// Do two words differ in an ending alone? Four letters have to be the same, and one of the two ends there or one letter
/// on: `founder` and `found`, but not `Johnson` and `Johnston`.
fn is_form_of(a: &str, b: &str) -> bool {
    let is_code = |word: &str| word.chars().all(|c| "ivxlcdm".contains(c)) || word.contains(|c: char| c.is_numeric());
    let same = a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count();
    let rest = |word: &str| word.chars().count() - same;
    let (shorter, longer) = (rest(a).min(rest(b)), rest(a).max(rest(b)));
    same >= 4 && shorter <= 1 && longer <= 3 && !is_code(a) && !is_code(b)
}

/// A sentence without the mark of a list item and without numbers in square brackets, which cite and say nothing.
fn without_marks(sentence: &str) -> String {
    let text = sentence.trim_start();
    let label = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = text.len() - label.len();
    let item = label
        .strip_prefix(['.', ')'])
        .filter(|rest| (1..=3).contains(&digits) && rest.starts_with(char::is_whitespace));
    let mut kept = String::with_capacity(text.len());
    let mut rest = item.unwrap_or(text);
    while let Some((before, after)) = rest.split_once('[') {
        kept.push_str(before);
        let mark = after.split_once(']').filter(|(inside, _)| {
            inside.contains(|c: char| c.is_ascii_digit()) && !inside.contains(|c: char| c.is_alphabetic() || c == '[')
        });
        match mark {
            Some((_, behind)) => rest = behind,
            None => {
                kept.push('[');
                rest = after;
            }
        }
    }
    kept.push_str(rest);
    kept
}

/// How a script without gaps builds its words.
#[derive(PartialEq, Eq)]
enum Script {
    Han,
    Hiragana,
    Katakana,
    Hangul,
    Other,
}

impl Script {
    fn of(c: char) -> Self {
        match c {
            '\u{3041}'..='\u{309F}' => Self::Hiragana,
            '\u{30A1}'..='\u{30FF}' => Self::Katakana,
            '\u{AC00}'..='\u{D7A3}' => Self::Hangul,
            '\u{3005}'..='\u{3007}' | '\u{3400}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{323AF}' => {
                Self::Han
            }
            _ => Self::Other,
        }
    }
}

/// Characters of Chinese that join words: of, is, in, and, its, this, by, from, located.
const HAN_GLUE: &str = "的是了在有为為于於与與和及其他她它这這该該被由从從之也而并並且位者个個";

/// What Korean words begin with that only join others: to be, to do, to become, he, it, thing, and.
const HANGUL_GLUE: [&str; 24] = [
    "있다",
    "있는",
    "있었",
    "있습",
    "이다",
    "이었",
    "입니",
    "였다",
    "한다",
    "하였",
    "했다",
    "했습",
    "하는",
    "된다",
    "되었",
    "됐다",
    "됩니",
    "그는",
    "그녀",
    "그것",
    "이것",
    "것이",
    "또한",
    "그리고",
];

/// The same for words of one syllable.
const HANGUL_GLUE_ALONE: [&str; 5] = ["및", "수", "때", "등", "것"];

/// The same for Thai, which writes them between its words without a gap.
const THAI_GLUE: [&str; 12] = ["เป็น", "คือ", "มี", "อยู่", "ของ", "ใน", "ที่", "ได้", "และ", "เมื่อ", "จาก", "โดย"];

fn without_thai_glue(text: &str) -> String {
    let is_thai = text.contains(|c: char| matches!(c, '\u{E01}'..='\u{E4E}'));
    let words = if is_thai { &THAI_GLUE[..] } else { &[] };
    words.iter().fold(text.to_owned(), |text, glue| text.replace(glue, " "))
}

/// The runs of characters in scripts without gaps.
fn dense_runs(text: &str) -> Vec<Vec<char>> {
    let runs = text.split(|c| !text::is_dense(c)).filter(|run| !run.is_empty());
    runs.map(|run| run.chars().collect()).collect()
}

fn pair(window: &[char]) -> Option<(char, char)> {
    match window {
        [first, second, ..] => Some((*first, *second)),
        _ => None,
    }
}

fn short(word: &str) -> String {
    word.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(sentences: &[&str], number: usize, claims: &[&str]) -> Option<String> {
        let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        Text::read(&owned(sentences)).fault(number, &owned(claims))
    }

    #[track_caller]
    fn held(sentences: &[&str], number: usize, claims: &[&str]) {
        assert_eq!(fault(sentences, number, claims), None, "{claims:?}");
    }

    #[track_caller]
    fn refused(sentences: &[&str], number: usize, claims: &[&str], why: &str) {
        let fault = fault(sentences, number, claims).unwrap_or_else(|| panic!("{claims:?} passed"));
        assert!(fault.contains(why), "{claims:?}: {fault}");
    }

    const TOWER: [&str; 2] = [
        "The Eiffel Tower, built by Gustave Eiffel's company between 1887 and 1889, is in Paris.",
        "It is not the tallest tower, but 7 million people visited it in 2015 [12].",
    ];

    #[test]
    fn a_cut_in_the_sentences_own_words_is_held() {
        held(
            &TOWER,
            1,
            &[
                "The Eiffel Tower is in Paris.",
                "The Eiffel Tower was built by the company of Gustave Eiffel.",
                "Building it was between 1887 and 1889.",
            ],
        );
        held(
            &TOWER,
            2,
            &["The Eiffel Tower is not the tallest tower.", "7,000,000 people visited the Eiffel Tower in 2015."],
        );
        held(&["Norway"], 1, &["Norway"]);
        held(&["3. Cats sleep."], 1, &["Cats sleep."]);
        held(&["!!!"], 1, &["!!!"]);
    }

    #[test]
    fn what_is_added_is_refused() {
        for (claim, word) in [
            ("The Eiffel Tower is in Lyon.", "Lyon"),
            ("The Eiffel Tower was built between 1887 and 1890.", "1890"),
            ("The Eiffel Tower is a famous landmark.", "famous"),
            ("The Eiffel Tower was built by Gustav Eiffels's brother.", "brother"),
            // A number of another sentence is not of this one.
            ("The Eiffel Tower was built in 2015.", "2015"),
        ] {
            refused(&TOWER, 1, &[TOWER[0], claim], &format!("\"{word}\""));
        }
        refused(
            &TOWER,
            1,
            &["The Eiffel Tower is not in Paris, built by Gustave Eiffel's company 1887 1889."],
            "negates",
        );
        refused(&TOWER, 1, &[TOWER[0], "It is the tallest."], "nothing of this sentence");
    }

    #[test]
    fn what_is_left_out_is_missed() {
        refused(&TOWER, 2, &["It is the tallest tower.", "7 million people visited it in 2015."], "negation");
        refused(&TOWER, 2, &["It is not the tallest tower.", "People visited it in 2015."], "number");
        refused(&["Cats sleep, dogs bark, birds sing, fish swim."], 1, &["Cats sleep."], "half");
    }

    #[test]
    fn scripts_without_gaps_are_held_to_their_characters() {
        let tower = ["エッフェル塔は1889年に完成し、パリにある。"];
        held(&tower, 1, &["エッフェル塔は1889年に完成した。", "エッフェル塔はパリにある。"]);
        refused(&tower, 1, &["エッフェル塔は1889年に完成した。", "エッフェル塔はロンドンにある。"], "ロンドン");
        refused(&tower, 1, &["エッフェル塔は1889年に完成した。", "エッフェル塔は東京にある。"], "東京");
        let tower = ["埃菲尔铁塔位于巴黎，于1889年开放。"];
        held(&tower, 1, &["埃菲尔铁塔位于巴黎。", "埃菲尔铁塔是在1889年开放的。"]);
        refused(&tower, 1, &["埃菲尔铁塔位于巴黎。", "埃菲尔铁塔于1889年开放，高300米。"], "高");
        refused(&tower, 1, &["埃菲尔铁塔不位于巴黎。", "埃菲尔铁塔于1889年开放。"], "不");
        let tower = ["에펠탑은 1889년에 완공되어 파리에 있다."];
        held(&tower, 1, &["에펠탑은 1889년에 완공되었다.", "에펠탑은 파리에 있었다."]);
        refused(&tower, 1, &["에펠탑은 1889년에 완공되었다.", "에펠탑은 런던에 있다."], "런던에");
        let capital = ["กรุงเทพมหานครเป็นเมืองหลวงของประเทศไทย"];
        held(&capital, 1, &["กรุงเทพมหานครเป็นเมืองหลวง", "เมืองหลวงของประเทศไทยคือกรุงเทพมหานคร"]);
        refused(&capital, 1, &["กรุงเทพมหานครเป็นเมืองหลวงของประเทศไทย", "เชียงใหม่เป็นเมืองหลวงของประเทศไทย"], "เช");
    }

    #[test]
    fn other_scripts_with_gaps_too() {
        let tower = ["Эйфелева башня, построенная в 1889 году, находится в Париже."];
        held(&tower, 1, &["Эйфелева башня построена в 1889 году.", "Эйфелева башня находится в Париже."]);
        refused(&tower, 1, &["Эйфелева башня построена в 1889 году.", "Эйфелева башня находится в Лионе."], "Лионе");
        let tower = ["Der Eiffelturm wurde 1889 eröffnet und steht in Paris."];
        held(&tower, 1, &["Der Eiffelturm wurde 1889 eröffnet.", "Der Eiffelturm steht in Paris."]);
        refused(&tower, 1, &["Der Eiffelturm wurde 1889 eröffnet.", "Der Eiffelturm steht nicht in Paris."], "negates");
    }

    proptest::proptest! {
        #[test]
        fn a_sentence_is_always_a_cut_of_itself(sentence in "\\PC{0,60}", other in "\\PC{0,60}") {
            let fault = Text::read(&[sentence.clone(), other]).fault(1, &[sentence]);
            proptest::prop_assert_eq!(fault, None);
        }
    }

    #[test]
    fn hostile_text_costs_little() {
        let long = "ab12 [9 不 エ 가 ".repeat(20_000);
        let began = std::time::Instant::now();
        let text = Text::read(std::slice::from_ref(&long));
        let _ = text.fault(1, &[long.clone(), "[".repeat(100_000)]);
        let _ = without_marks(&"[1".repeat(100_000));
        assert!(began.elapsed() < std::time::Duration::from_secs(30), "{:?}", began.elapsed());
    }
}
