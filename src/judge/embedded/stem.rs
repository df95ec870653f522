//! Cutting words down to what their common forms share.
//!
//! Light rules by script: endings only. Wrong now and then, cheap always; what they miss, a common beginning may still
//! catch (see `claim`).

use super::words;

/// Appends a folded, lower-case word without its endings, so that its common forms meet.
///
/// Endings only, and never below three letters: a word cut too far meets a stranger.
pub(super) fn stem(lower: &str, to: &mut String) {
    if let &[first @ (b'a' | b'd' | b'f' | b'j' | b'm'..=b'o' | b's'), _, _] = lower.as_bytes()
        && let Some(month) = words::MONTHS.iter().find(|month| month.as_bytes()[0] == first && month.starts_with(lower))
    {
        to.push_str(month);
        return;
    }
    let (rest, ending) = match lower.chars().next() {
        Some('a'..='z') => latin_stem(lower),
        Some('\u{370}'..='\u{3FF}') => (cut_ending(lower, "αεηιουωςν"), ""),
        Some('\u{400}'..='\u{52F}') => (cut_ending(lower, "аеиоуыэюяйьмх"), ""),
        Some('\u{600}'..='\u{6FF}') => (arabic_stem(lower), ""),
        Some('\u{900}'..='\u{DFF}') => {
            let sign = |c: char| !c.is_alphabetic() || matches!(c, '\u{93E}'..='\u{94C}' | '\u{902}');
            (lower.trim_end_matches(sign), "")
        }
        _ => (lower, ""),
    };
    to.push_str(rest);
    to.push_str(ending);
}

/// Drops up to three of the characters in `endings` from the end, while at least four stay.
fn cut_ending<'a>(word: &'a str, endings: &str) -> &'a str {
    let mut rest = word;
    for _ in 0..3 {
        let shorter = rest.strip_suffix(|c| endings.contains(c)).filter(|rest| rest.chars().nth(3).is_some());
        rest = shorter.unwrap_or(rest);
    }
    rest
}

/// What is kept of the word, and what is put after it.
fn latin_stem(word: &str) -> (&str, &'static str) {
    let irregular = match word {
        "won" => "win",
        "wrote" | "written" => "write",
        "made" => "make",
        "led" => "lead",
        "began" | "begun" => "begin",
        "became" => "become",
        "held" => "hold",
        "built" => "build",
        "took" | "taken" => "take",
        "gave" | "given" => "give",
        "went" | "gone" => "go",
        "children" => "child",
        "women" => "woman",
        "men" => "man",
        "rose" | "risen" => "rise",
        "fell" | "fallen" => "fall",
        "grew" | "grown" => "grow",
        "shrank" | "shrunk" => "shrink",
        "lost" => "lose",
        "sold" => "sell",
        "bought" => "buy",
        "died" | "dies" | "dying" => "die",
        "movie" | "movies" => "film",
        "tv" => "television",
        other => other,
    };
    let mut rest = irregular;
    let mut ending = "";
    if let Some(cut) = without(rest, "ies", 3) {
        (rest, ending) = (cut, "y");
    } else if !["ss", "us", "is"].iter().any(|no_plural| rest.ends_with(no_plural)) {
        rest = without(rest, "s", 3).unwrap_or(rest);
    }
    rest = without(rest, "ly", 4).unwrap_or(rest);
    if let Some(cut) = without(rest, "ied", 3) {
        (rest, ending) = (cut, "y");
    } else if let Some(cut) = without(rest, "ing", 3).or_else(|| without(rest, "ed", 3)) {
        // `stopped`, `running`; but `passed`, `called`.
        let mut last = cut.bytes().rev();
        let doubled = matches!((last.next(), last.next()), (Some(a), Some(b)) if a == b && a.is_ascii_lowercase() && !b"aeiouls".contains(&a));
        rest = if doubled { &cut[..cut.len() - 1] } else { cut };
    }
    if ending.is_empty() {
        rest = without(rest, "e", 3).unwrap_or(rest);
    }
    (rest, ending)
}

/// `word` without `ending`, if at least `keep` bytes stay.
fn without<'a>(word: &'a str, ending: &str, keep: usize) -> Option<&'a str> {
    word.strip_suffix(ending).filter(|rest| rest.len() >= keep)
}

fn arabic_stem(word: &str) -> &str {
    let length = |word: &str| word.chars().count();
    let mut rest = word;
    for article in ["وال", "بال", "فال", "کال", "لل", "ال"] {
        if let Some(cut) = rest.strip_prefix(article).filter(|cut| length(cut) >= 3) {
            rest = cut;
            break;
        }
    }
    for ending in ["های", "ها", "ات", "ان", "ین", "ون", "ه", "ی"] {
        if let Some(cut) = rest.strip_suffix(ending).filter(|cut| length(cut) >= 3) {
            rest = cut;
            break;
        }
    }
    rest
}

#[cfg(test)]
mod tests {
    fn stem(lower: &str) -> String {
        let mut folded = String::new();
        super::super::text::fold(lower, |c| folded.push(c));
        let mut stem = String::new();
        super::stem(&folded, &mut stem);
        stem
    }

    #[test]
    fn forms_of_a_word_meet() {
        for forms in [
            &["open", "opens", "opened", "opening"][..],
            &["locate", "located", "locating"],
            &["city", "cities"],
            &["study", "studies", "studied"],
            &["stop", "stopped"],
            &["mar", "march"],
            &["столица", "столицей", "столицы"],
            &["الكتاب", "والكتاب"],
        ] {
            let stems: Vec<String> = forms.iter().map(|form| stem(form)).collect();
            assert!(stems.iter().all(|other| *other == stems[0]), "{forms:?} gave {stems:?}");
        }
    }

    #[test]
    fn strangers_stay_apart() {
        for (a, b) in [("bus", "bu"), ("king", "kin"), ("red", "r"), ("news", "newt"), ("glass", "glas")] {
            assert_ne!(stem(a), stem(b));
        }
    }

    #[test]
    fn any_beginning_is_taken() {
        for odd in ["", "a\u{10000}ed", "ß", "ạ", "eé", "ééed", "s", "ed", "ing", "ا", "٣", "\u{94D}"] {
            assert!(stem(odd).len() <= odd.len());
        }
    }
}
