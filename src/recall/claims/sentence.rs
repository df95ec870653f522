//! Whether a stop within one line ends a sentence.
//!
//! What a full stop means hangs on the word before it and on the word after it; see [`Stop::full_stop_ends`].

use unicode_normalization::char::is_combining_mark;

use super::asides::Asides;
use super::layout;
use super::lexicon::{self, Kind};
use super::stops::{
    closers, is_cased_stop, is_continuation, is_full_stop, is_hangul, is_stop, is_unspaced, is_wide_stop, stop_run,
};
use super::word::{self, LOOK_BACK};

/// Where sentences end inside `line`, ascending; the end of the line itself is not among them.
///
/// `lower_case` says that the whole text is written without capitals, so that a small letter tells nothing.
pub(super) fn ends(line: &str, lower_case: bool) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut asides = Asides::new(line);
    let mut start = 0;
    let mut first_word = None;
    let mut quotes = 0_usize;
    let mut at = layout::mark(line);
    let mut item = item_number(&line[..at]);
    while let Some(c) = line[at..].chars().next() {
        let greek = c == ';' && greek_question(&line[start..at], &line[at + 1..]);
        if !(is_stop(c) || greek) {
            if c.is_alphanumeric() && first_word.is_none() {
                first_word = Some(at);
            }
            quotes += usize::from(c == '"');
            at += c.len_utf8();
            continue;
        }
        let run = if greek { 1 } else { stop_run(&line[at..]) };
        let unspaced = line[start..at + run].chars().rev().take(2).any(|c| is_unspaced(c) || is_wide_stop(c));
        let closers = closers(&line[at + run..], quotes % 2 == 1, unspaced);
        let stop = Stop {
            before: &line[start..at],
            run: &line[at..at + run],
            closers: &line[at + run..at + run + closers],
            after: &line[at + run + closers..],
            lower_case,
        };
        let end = at + run + closers;
        if line[end..].chars().all(char::is_whitespace) {
            break;
        }
        if let Some((number, length)) = stop.item()
            && (item.is_some_and(|last| number == last + 1) || number == 1 && stop.opens_list())
        {
            // `1. Open the box 2. Close it`: the number belongs to what follows, also where no stop ends the item
            // before it.
            let mark = at - length;
            if number > 1 && first_word.is_some_and(|word| word < mark) && !asides.hold(mark, 0) {
                ends.push(mark);
                start = mark;
                first_word = None;
            }
            item = Some(number);
            at += run;
            continue;
        }
        if first_word.is_some_and(|word| stop.ends() && !asides.hold(end, word)) {
            ends.push(end);
            start = end;
            first_word = None;
            at = end + layout::mark(&line[end..]);
            item = item_number(&line[end..at]).or(item);
            quotes = 0;
        } else {
            at += run;
        }
    }
    ends
}

/// Is the semicolon between `before` and `after` a Greek question mark? `Πού βρίσκεται; Στην Αττική.`
///
/// Keyboards write it so. Two Greek letters before it, as one alone may be a symbol in a text of another language.
fn greek_question(before: &str, after: &str) -> bool {
    let greek = |c: char| c.is_alphabetic() && matches!(c, '\u{370}'..='\u{3FF}' | '\u{1F00}'..='\u{1FFF}');
    let mut letters = before.chars().rev();
    let behind = after.trim_start_matches(['»', '”', '"', ')']);
    letters.next().is_some_and(greek)
        && letters.next().is_some_and(greek)
        && behind.starts_with(char::is_whitespace)
        && behind.trim_start().trim_start_matches(['«', '“', '"', '(']).starts_with(char::is_uppercase)
}

/// The number of a list mark: 3 of `3.` or `- **3)`.
fn item_number(mark: &str) -> Option<u32> {
    mark.trim_matches(|c: char| !c.is_alphanumeric()).parse().ok()
}

/// What comes behind a stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// No letter or digit before the next stop.
    Nothing,
    /// A comma, colon or semicolon.
    Continuation,
    Digit,
    Lower,
    Upper,
    /// A letter of a script without capitals.
    Uncased,
}

/// The first word behind a stop.
#[derive(Clone, Copy)]
struct Ahead<'a> {
    next: Next,
    /// Its letters and digits; empty when there is none.
    word: &'a str,
    /// What stands behind the word.
    rest: &'a str,
}

impl<'a> Ahead<'a> {
    const fn without_word(next: Next) -> Self {
        Self { next, word: "", rest: "" }
    }

    fn at(text: &'a str, next: impl FnOnce(&str, &str) -> Next) -> Self {
        let length = text
            .chars()
            .take(LOOK_BACK)
            .take_while(|c| c.is_alphanumeric() || is_combining_mark(*c))
            .map(char::len_utf8)
            .sum();
        let (word, rest) = text.split_at(length);
        Self { next: next(word, rest), word, rest }
    }

    /// Is it of the kind that opens sentences and is no name?
    fn starts_sentence(&self) -> bool {
        // `U.S. A. Smith`, `J. In-Sung`: with a stop or hyphen behind it, it is an initial or a part of a name.
        !self.rest.starts_with(|c| is_full_stop(c) || c == '-') && lexicon::starts_sentence(&self.word.to_lowercase())
    }
}

/// A stop and what stands around it on its line.
struct Stop<'a> {
    before: &'a str,
    run: &'a str,
    closers: &'a str,
    after: &'a str,
    lower_case: bool,
}

impl<'a> Stop<'a> {
    fn ends(&self) -> bool {
        let ahead = self.ahead();
        let next = ahead.next;
        if next == Next::Continuation || self.goes_on_after_quote() {
            return false;
        }
        if self.before.trim_end().ends_with(['(', '[', '（']) {
            // `1340 (?) in`, `he [...] went`
            return false;
        }
        if self.run.chars().any(|c| !is_cased_stop(c) && c != ' ') {
            // Khmer writes "et cetera" as a stop, a letter and a stop.
            return !(self.run.starts_with('។') && self.after.starts_with("ល។"));
        }
        if self.after.starts_with(|c: char| !c.is_whitespace()) {
            return self.glued_ends(ahead);
        }
        let mut stops = self.run.chars().filter(|c| *c != ' ');
        if self
            .run
            .contains(['!', '?', '\u{37E}', '\u{203C}', '\u{2047}', '\u{2048}', '\u{2049}', '\u{203D}', '\u{2E2E}'])
        {
            self.exclamation_ends(ahead)
        } else if self.run.contains('…') || stops.nth(1).is_some() {
            matches!(next, Next::Upper | Next::Nothing) || next == Next::Uncased && !self.run.contains('…')
        } else {
            self.full_stop_ends(ahead)
        }
    }

    /// The number before this stop and its length in bytes, when it could be a list mark: `2. Close`.
    fn item(&self) -> Option<(u32, usize)> {
        let bare = self.before.trim_end_matches(|c: char| c.is_ascii_digit());
        let digits = self.before.len() - bare.len();
        // `3.2. Then` ends in a version, `at no cost.2. Then` in a list mark without its space.
        let behind_stop = bare.strip_suffix(['.', '!', '?', ')']);
        let alone =
            bare.ends_with(char::is_whitespace) || behind_stop.is_some_and(|rest| !rest.ends_with(char::is_numeric));
        let fits = (1..=2).contains(&digits) && alone && self.run == "." && self.closers.is_empty();
        let spaced = self.after.starts_with(char::is_whitespace) && self.ahead().next != Next::Nothing;
        let number = self.before[bare.len()..].parse().ok()?;
        (fits && spaced).then_some((number, digits))
    }

    /// Does the number before this stop follow a colon? `Steps: 1. Open the box.`
    fn opens_list(&self) -> bool {
        self.before.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end().ends_with(':')
    }

    fn ahead(&self) -> Ahead<'a> {
        let item = self.after.trim_start();
        if item.starts_with(['(', '[']) && layout::numbering(item).is_some() {
            // `… of the beam. (c) the vessel …`
            return Ahead::at(&item[1..], |_, _| Next::Upper);
        }
        for (at, c) in self.after.char_indices() {
            if is_continuation(c) {
                return Ahead::without_word(Next::Continuation);
            }
            if is_stop(c) {
                let number = c == '.' && self.after[at + 1..].starts_with(|c: char| c.is_ascii_digit());
                return Ahead::without_word(if number { Next::Digit } else { Next::Nothing });
            }
            if c.is_alphanumeric() {
                return Ahead::at(&self.after[at..], |word, rest| {
                    if c.is_numeric() {
                        Next::Digit
                    } else if c.is_uppercase() {
                        Next::Upper
                    } else if !c.is_lowercase() {
                        Next::Uncased
                    } else if !self.lower_case && word.contains(char::is_uppercase) || rest.starts_with("://") {
                        // `mRNA`, `iPhone`, an address: they keep their small letter at the head of a sentence.
                        Next::Upper
                    } else {
                        Next::Lower
                    }
                });
            }
        }
        Ahead::without_word(Next::Nothing)
    }

    /// `「…。」と言った`, `"…."라고 했다`: a Japanese or Korean quotation inside the sentence is followed by a particle,
    /// a Chinese one by who said it.
    fn goes_on_after_quote(&self) -> bool {
        let quoted = self.closers.ends_with(['」', '』', '”', '》', '〉']);
        if self.closers.ends_with(['"', '\'', '”', '’', '」', '』', '》', '〉']) {
            // Korean puts a space between sentences, so whatever stands there without one is a particle.
            let particle = self.after.starts_with(is_hangul)
                || ["라고", "라는", "라며", "라면서", "하고", "하며"].iter().any(|word| {
                    self.after.trim_start().strip_prefix(word).is_some_and(|rest| rest.starts_with([' ', ',']))
                });
            let mut who = self.after.chars();
            let said = who.next().is_some_and(|c| "他她它我你".contains(c))
                && who.find(|c| *c != '们').is_some_and(|c| "说說问問道喊答叫".contains(c));
            if particle || said {
                return true;
            }
        }
        quoted && self.after.starts_with(['と', 'を', 'が', 'は', 'の', 'に', 'で', 'も', 'や'])
            || self.run.ends_with(['！', '？', '!', '?'])
                && self.after.strip_prefix('と').is_some_and(|rest| !rest.starts_with(['て', 'に', 'こ', 'り', 'も']))
    }

    /// A stop with no white space behind it.
    fn glued_ends(&self, ahead: Ahead<'_>) -> bool {
        let follows = self.after.chars().next();
        if self.closers.contains(']') && ahead.next == Next::Upper {
            // `in Paris.[1]The next`
            return true;
        }
        let unspaced = self.before.chars().next_back().is_some_and(is_unspaced)
            && follows.is_some_and(|c| is_unspaced(c) || matches!(c, '「' | '『' | '“' | '‘' | '《' | '（'));
        if unspaced {
            return !self.run.contains('…');
        }
        let (last, _) = word::last(self.before);
        // `است.ولی`, but not `ه.ش`, where single letters abbreviate.
        let uncased = ahead.next == Next::Uncased
            && last.chars().all(|c| {
                word::is_inside(c)
                    && !matches!(c, '.' | '-')
                    && !c.is_numeric()
                    && !c.is_lowercase()
                    && !c.is_uppercase()
            })
            && word::base_letters(last) > 1
            && word::base_letters(ahead.word) > 1
            && follows.is_some_and(char::is_alphabetic);
        if uncased {
            return true;
        }
        // `the tower.The tower`: a forgotten space, where the word behind can hardly be part of a name.
        self.closers.is_empty()
            && last.chars().count() > 2
            && last.chars().all(char::is_alphabetic)
            && last.chars().next_back().is_some_and(char::is_lowercase)
            && ahead.next == Next::Upper
            && follows.is_some_and(char::is_uppercase)
            && ahead.starts_sentence()
            && ahead.rest.starts_with(char::is_whitespace)
    }

    fn exclamation_ends(&self, ahead: Ahead<'_>) -> bool {
        match ahead.next {
            Next::Lower => self.lower_case && self.closers.is_empty(),
            Next::Upper | Next::Digit => {
                let (last, _) = word::last(self.before);
                let name = self.run == "!" && lexicon::is_name_with_mark(&last.to_lowercase());
                let aside = self.closers.contains([')', ']']);
                !(name || aside) || ahead.starts_sentence()
            }
            _ => true,
        }
    }

    /// A single full stop and white space. The word before it decides first:
    ///
    /// - a title (`Dr.`) or a lead-in (`e.g.`) never ends a sentence, for it always announces something;
    /// - a unit behind its number (`5 ft.`, `10 A.`) ends none before another number;
    /// - `etc.` and `p.m.` end one before most capitals;
    /// - an abbreviation that counts (`Fig.`, `No.`, `Jan.`) ends none before a number;
    /// - one that may stand at the end (`U.S.`, `Inc.`) or an initial (`K.`) ends one only when the next
    ///   word is of the kind that opens sentences (`The`), since a name may follow as well;
    /// - a number ends none when it is an ordinal or part of a date (`14. März`, `19. Jahrhundert`);
    /// - any other word ends one before a capital, a digit or a letter of a script without capitals.
    fn full_stop_ends(&self, ahead: Ahead<'_>) -> bool {
        let Ahead { next, word, .. } = ahead;
        if next == Next::Nothing {
            return true;
        }
        let (last, previous) = word::last(self.before);
        let kind = word::kind(last, previous, self.lower_case);
        let open = match kind {
            Some(Kind::Unit) => next != Next::Digit,
            Some(Kind::Closing) => next != Next::Digit && (ahead.starts_sentence() || self.closes(last, ahead)),
            Some(Kind::Title | Kind::LeadIn) => return false,
            Some(Kind::Counting) => !word::is_numeral(word, self.lower_case) || ahead.starts_sentence(),
            Some(Kind::Ending) => next != Next::Digit && ahead.starts_sentence(),
            Some(Kind::Initial) => {
                next != Next::Digit && ahead.starts_sentence() && !lexicon::is_particle(&word.to_lowercase())
            }
            None => true,
        };
        if !open {
            return false;
        }
        if next == Next::Lower {
            return self.lower_case;
        }
        if kind.is_none() && (last.chars().all(char::is_numeric) || word::is_roman(last)) && !last.is_empty() {
            return self.number_ends(last, previous, ahead);
        }
        true
    }

    /// Does a capital behind `etc.` or `p.m.` open a sentence? Mostly, but not in `3 p.m. Eastern`, `5 p.m. CET`, nor
    /// where the time opens the sentence: `At 3 p.m. Obama spoke`.
    fn closes(&self, last: &str, ahead: Ahead<'_>) -> bool {
        let Ahead { next, word, .. } = ahead;
        if next == Next::Lower || lexicon::follows_closing(&word.to_lowercase()) {
            return false;
        }
        if !last.ends_with(['m', 'M']) {
            return true;
        }
        let zone = (2..=4).contains(&word.len()) && word.chars().all(|c| c.is_ascii_uppercase());
        let mut words = self.before.split_whitespace();
        // The length is asked first, so that a long sentence is not read anew at each of its times.
        let fronted = self.before.len() <= LOOK_BACK
            && words.next().is_some_and(|first| lexicon::precedes_time(&first.to_lowercase()));
        !(zone || fronted)
    }

    fn number_ends(&self, number: &str, previous: &str, ahead: Ahead<'_>) -> bool {
        let Ahead { next, word, rest } = ahead;
        let short = number.chars().count() <= 2 || word::is_roman(number);
        let dated = previous.strip_suffix('.').is_some_and(|p| !p.is_empty() && p.chars().all(char::is_numeric));
        if dated && short && word.starts_with(is_hangul) {
            // `2020. 3. 5. 발표되었다.`
            return false;
        }
        if next == Next::Digit {
            // `14. 3. 1879`, `2019. 3. 5.`
            let goes_on = rest.starts_with('.');
            return !(goes_on && word.len() <= 4 || dated && short);
        }
        if previous.ends_with([':', '(']) && short {
            // `Steps: 1. Open the box.`
            return false;
        }
        let word = word.to_lowercase();
        let ordinal = short
            && (lexicon::follows_ordinal(&word)
                || lexicon::precedes_ordinal(&previous.to_lowercase()) && !ahead.starts_sentence());
        !ordinal
    }
}
