//! How many tokens a text will cost, before anybody has counted them.
//!
//! Every model has a tokenizer of its own and most are not to be had, so there is no number but a range: a floor that
//! no usual tokenizer undercuts, to notice that a backend read less than it was sent, and a ceiling that none is likely
//! to exceed, to ask for room enough.

use std::ops::Add;

/// A range that the true count is expected in, in tokens.
///
/// ```
/// use context_recall::providers::estimate::Estimate;
///
/// let cost = Estimate::of("The Eiffel Tower is in Paris.");
/// assert_eq!((cost.least, cost.most), (6, 10));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Estimate {
    /// A word is at least one token in any vocabulary, and four letters of a script without spaces at least one.
    pub least: u32,
    /// Small vocabularies spend a token on three letters of a word, on every digit and mark, and up to one on every
    /// byte of a script that they hardly know.
    pub most: u32,
}

/// Letters that the longest usual token of a Latin word holds.
const LONGEST_TOKEN: u64 = 16;

impl Estimate {
    /// The range for a text; linear in its length.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let mut tally = Tally::default();
        for c in text.chars() {
            tally.take(c);
        }
        tally.end_word();
        Self {
            least: clamp(tally.words + tally.foreign.div_ceil(4)),
            most: clamp(tally.pieces + tally.foreign_bytes.div_ceil(2)),
        }
    }
}

impl Add for Estimate {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { least: self.least.saturating_add(other.least), most: self.most.saturating_add(other.most) }
    }
}

#[derive(Default)]
struct Tally {
    /// Letters of the ASCII word that is being read.
    word: u64,
    /// Do all of them equal the last one? `aaaaaaaa` is one token in many vocabularies.
    last: Option<char>,
    uniform: bool,
    words: u64,
    pieces: u64,
    foreign: u64,
    foreign_bytes: u64,
}

impl Tally {
    fn take(&mut self, c: char) {
        if c.is_ascii_alphabetic() {
            self.uniform = self.word == 0 || (self.uniform && self.last == Some(c));
            self.last = Some(c);
            self.word += 1;
            return;
        }
        self.end_word();
        if c.is_ascii() {
            // Blanks belong to the word behind them; line breaks, digits and marks may stand alone.
            self.pieces += u64::from(c != ' ');
        } else {
            self.foreign += u64::from(c.is_alphabetic());
            self.foreign_bytes += c.len_utf8() as u64;
        }
    }

    fn end_word(&mut self) {
        if self.word > 0 {
            self.words += if self.uniform { 1 } else { self.word.div_ceil(LONGEST_TOKEN) };
            self.pieces += self.word.div_ceil(3);
            self.word = 0;
        }
    }
}

fn clamp(tokens: u64) -> u32 {
    u32::try_from(tokens).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_range_holds_what_tokenizers_count() {
        // Counts of o200k_base.
        for (text, count) in [
            ("", 0),
            ("The Eiffel Tower is in Paris.", 7),
            ("It opened in 1889.", 7),
            ("東京は日本の首都です。", 8),
            ("Эйфелева башня находится в Париже.", 12),
            ("에펠탑은 파리에 있다.", 10),
            ("กรุงเทพเป็นเมืองหลวงของประเทศไทย", 9),
            ("दिल्ली भारत की राजधानी है।", 7),
            ("{\"verdicts\":[{\"n\":1}]}", 11),
        ] {
            let Estimate { least, most } = Estimate::of(text);
            assert!(least <= count && count <= most, "{text}: {least} {count} {most}");
        }
    }

    #[test]
    fn parts_add_up_and_never_overflow() {
        let long = Estimate::of(&"word ".repeat(1000));
        assert_eq!(long, Estimate { least: 1000, most: 2000 });
        assert_eq!(long + long, Estimate { least: 2000, most: 4000 });
        let full = Estimate { least: u32::MAX, most: u32::MAX };
        assert_eq!(full + long, full);
        assert_eq!(Estimate::of(&"=".repeat(80)).least, 0);
        assert_eq!(Estimate::of(&"a".repeat(80)).least, 1);
    }
}
