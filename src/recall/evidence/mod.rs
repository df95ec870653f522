//! Does this quote stand in that context, and where.
//!
//! A match proves that the words stand there, not that they support the claim. The order of looking: the named context
//! letter by letter, the named context folded (see `fold`), then the other contexts letter by letter, then folded;
//! among the others the first that matches wins, and in any context the first place. An exact match elsewhere goes
//! before a folded one elsewhere, since it is the better proof.
//!
//! Words are looked up as a piece of text, not as words: `art` stands in `party`. Scripts without spaces have no word
//! boundaries to insist on, and the answer shows the reader the place.

mod fold;

use std::ops::Range;
use std::sync::OnceLock;

use self::fold::Folded;
use super::judge::Citation;

/// A citation after it was looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Evidence {
    /// The words stand in a context.
    Found {
        /// Position of the context in the list as sent, counted from 0.
        context: usize,
        /// The context's own text from `start` to `end`.
        quote: String,
        /// First code point of the quote.
        start: usize,
        /// The code point after its last.
        end: usize,
        /// Letter by letter, or only after folding case, white space, quote marks and compatibility forms.
        exact: bool,
    },
    /// The words stand in no context.
    Missing {
        /// The context that the judge named, if it exists.
        context: Option<usize>,
        /// The judge's wording.
        quote: String,
    },
}

/// The contexts of one sample, made ready for looking quotes up.
#[derive(Debug)]
pub struct Haystack<'a> {
    contexts: Vec<Context<'a>>,
}

#[derive(Debug)]
struct Context<'a> {
    text: &'a str,
    /// Made when it is first needed: most quotes match letter by letter.
    folded: OnceLock<Folded>,
}

impl<'a> Haystack<'a> {
    /// Makes contexts ready. Costs nothing until a quote fails to match letter by letter.
    #[must_use]
    pub fn new(contexts: &'a [String]) -> Self {
        let context = |text: &'a String| Context { text, folded: OnceLock::new() };
        Self { contexts: contexts.iter().map(context).collect() }
    }

    /// Looks one citation up.
    ///
    /// A quote without a letter or digit is missing: punctuation stands everywhere. Quote marks around the wording and
    /// dots of omission at its ends are not held against it; dots in its middle are, since what they leave out may
    /// turn the meaning round.
    ///
    /// ```
    /// use context_recall::recall::evidence::{Evidence, Haystack};
    /// use context_recall::recall::judge::Citation;
    ///
    /// let contexts = ["In short, it “stands\nin Paris”.".to_owned()];
    /// let citation = Citation { context: Some(0), quote: "It \"stands in Paris\"".to_owned() };
    /// let expected = Evidence::Found {
    ///     context: 0,
    ///     quote: "it “stands\nin Paris”".to_owned(),
    ///     start: 10,
    ///     end: 30,
    ///     exact: false,
    /// };
    /// assert_eq!(Haystack::new(&contexts).find(&citation), expected);
    /// ```
    #[must_use]
    pub fn find(&self, citation: &Citation) -> Evidence {
        let named = citation.context.filter(|index| *index < self.contexts.len());
        self.place(&citation.quote, named)
            .unwrap_or_else(|| Evidence::Missing { context: named, quote: citation.quote.clone() })
    }

    fn place(&self, quote: &str, named: Option<usize>) -> Option<Evidence> {
        if !has_word(quote) {
            return None;
        }
        let wording = OnceLock::new();
        let exact = |index: usize| {
            let context = self.contexts.get(index)?;
            let start = context.text.find(quote)?;
            context.found(index, start..start + quote.len(), true)
        };
        let folded = |index: usize| {
            let context = self.contexts.get(index)?;
            let range = context.find_folded(wording.get_or_init(|| Wording::new(quote)))?;
            context.found(index, range, false)
        };
        let others = || (0..self.contexts.len()).filter(|index| Some(*index) != named);
        named
            .and_then(|index| exact(index).or_else(|| folded(index)))
            .or_else(|| others().find_map(exact))
            .or_else(|| others().find_map(folded))
    }
}

impl Context<'_> {
    fn found(&self, index: usize, range: Range<usize>, exact: bool) -> Option<Evidence> {
        let start = self.text.get(..range.start)?.chars().count();
        let quote = self.text.get(range)?;
        Some(Evidence::Found {
            context: index,
            quote: quote.to_owned(),
            start,
            end: start + quote.chars().count(),
            exact,
        })
    }

    fn find_folded(&self, wording: &Wording) -> Option<Range<usize>> {
        let folded = self.folded.get_or_init(|| Folded::new(self.text));
        let piece = wording.needles().find_map(|needle| {
            let start = folded.as_str().find(needle)?;
            Some(start..start + needle.len())
        })?;
        Some(folded.unfold(self.text, &piece))
    }
}

/// A quote, folded.
struct Wording {
    folded: Folded,
}

impl Wording {
    fn new(quote: &str) -> Self {
        Self { folded: Folded::new(quote) }
    }

    /// The wording as it is, then without what a writer puts around a quote.
    fn needles(&self) -> impl Iterator<Item = &str> {
        let whole = self.folded.as_str().trim();
        let bare = without_wrapping(whole);
        std::iter::once(whole).chain((bare != whole).then_some(bare)).filter(|needle| has_word(needle))
    }
}

/// Takes quote marks around the whole and dots of omission (`...`, `[...]`, `(...)`) at the ends away, layer by layer.
fn without_wrapping(mut text: &str) -> &str {
    loop {
        let before = text;
        if let Some(inner) = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\'')) {
            text = inner.trim();
        }
        for dots in ["[...]", "(...)", "..."] {
            text = text.strip_prefix(dots).unwrap_or(text).trim_start();
            text = text.strip_suffix(dots).unwrap_or(text).trim_end();
        }
        if text == before {
            return text;
        }
    }
}

/// Is there a letter or a digit of any script?
fn has_word(text: &str) -> bool {
    text.chars().any(char::is_alphanumeric)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use proptest::prelude::*;

    use super::*;

    /// Looks `quote` up in `contexts`, named by position, and gives the outcome in short: `2e[3..5]=text`.
    fn short(contexts: &[&str], named: Option<usize>, quote: &str) -> String {
        let contexts: Vec<String> = contexts.iter().map(|text| (*text).to_owned()).collect();
        let citation = Citation { context: named, quote: quote.to_owned() };
        match Haystack::new(&contexts).find(&citation) {
            Evidence::Found { context, quote, start, end, exact } => {
                let own: String = contexts[context].chars().skip(start).take(end - start).collect();
                assert_eq!(own, quote);
                let how = if exact { 'e' } else { 'n' };
                format!("{context}{how}[{start}..{end}]={quote}")
            }
            Evidence::Missing { context, quote: wording } => {
                assert_eq!(wording, quote);
                format!("missing from {context:?}")
            }
        }
    }

    #[test]
    fn which_context_wins() {
        let contexts = &["Nothing here.", "it OPENED in 1889", "It opened in 1889. It opened.", "It opened in 1889"];
        for (named, quote, outcome) in [
            (Some(2), "It opened", "2e[0..9]=It opened"),
            (Some(3), "It opened", "3e[0..9]=It opened"),
            (Some(1), "It opened", "1n[0..9]=it OPENED"),
            (Some(0), "It opened", "2e[0..9]=It opened"),
            (None, "It opened", "2e[0..9]=It opened"),
            (Some(9), "It opened", "2e[0..9]=It opened"),
            (Some(0), "IT opened", "1n[0..9]=it OPENED"),
            (Some(2), "IT opened", "2n[0..9]=It opened"),
            (Some(2), "closed", "missing from Some(2)"),
            (Some(4), "closed", "missing from None"),
            (None, "closed", "missing from None"),
        ] {
            assert_eq!(short(contexts, named, quote), outcome, "{named:?} {quote}");
        }
        assert_eq!(short(&[], Some(0), "a"), "missing from None");
    }

    #[test]
    fn a_quote_needs_a_letter_or_a_digit() {
        let context = "-- ... \"\" § 👍 . 7 ५ ½ é 京 ﷺ";
        for quote in ["", " ", "...", "--", "\"", "§", "👍", ". ", "\u{301}", "\u{200B}"] {
            assert_eq!(short(&[context], Some(0), quote), "missing from Some(0)", "{quote}");
        }
        for quote in ["7", "५", "½", "é", "京", "ﷺ", ". 7"] {
            assert!(short(&[context], Some(0), quote).starts_with("0e"), "{quote}");
        }
    }

    #[test]
    fn writing_is_folded_and_the_place_is_the_originals() {
        for (context, quote, outcome) in [
            // Case, with special foldings.
            ("The Eiffel Tower", "EIFFEL tower", "n[4..16]=Eiffel Tower"),
            ("Die Straße ist lang", "STRASSE IST", "n[4..14]=Straße ist"),
            ("DIE STRASSE", "straße", "n[4..11]=STRASSE"),
            ("ΟΔΥΣΣΕΥΣ ήρθε", "οδυσσευς", "n[0..8]=ΟΔΥΣΣΕΥΣ"),
            ("İstanbul'da", "istanbul", "n[0..8]=İstanbul"),
            ("москва – столица", "Москва", "n[0..6]=москва"),
            // Composition and compatibility.
            ("un cafe\u{301} noir", "café", "n[3..8]=cafe\u{301}"),
            ("un café noir", "cafe\u{301} noir", "n[3..12]=café noir"),
            ("한국어 문장", "\u{1112}\u{1161}\u{11AB}국어", "n[0..3]=한국어"),
            ("ﾊﾝｶﾞｸは", "ハンガク", "n[0..5]=ﾊﾝｶﾞｸ"),
            ("Ｎｏ．　１２３ です", "No. 123", "n[0..7]=Ｎｏ．　１２３"),
            ("the ﬁrst ﬂoor", "first floor", "n[4..13]=ﬁrst ﬂoor"),
            ("ﬁnland", "inland", "n[0..6]=ﬁnland"),
            ("10 m² gross", "m2 gross", "n[3..11]=m² gross"),
            ("Z\u{335}\u{321}a\u{301}lgo text", "z\u{321}\u{335}álgo", "n[0..8]=Z\u{335}\u{321}a\u{301}lgo"),
            // White space.
            ("opened\n  in\t1889 .", " opened in 1889\n", "n[0..16]=opened\n  in\t1889"),
            ("10\u{A0}000\u{202F}€ net", "10 000 €", "n[0..8]=10\u{A0}000\u{202F}€"),
            ("a\r\nb", "a b", "n[0..4]=a\r\nb"),
            // Quote marks and dashes.
            ("He said “stop” – it’s late", "said \"stop\" - it's", "n[3..21]=said “stop” – it’s"),
            ("Er sagte „Halt“.", "sagte 'Halt'", "n[3..15]=sagte „Halt“"),
            ("Il dit « non »", "dit « non »", "e[3..14]=dit « non »"),
            ("彼は「はい」と", "彼は\"はい\"と", "n[0..7]=彼は「はい」と"),
            // What shows nothing.
            ("Donau\u{AD}dampf\u{200B}schiff", "Donaudampfschiff", "n[0..18]=Donau\u{AD}dampf\u{200B}schiff"),
            ("می\u{200C}خواهم بروم", "میخواهم", "n[0..8]=می\u{200C}خواهم"),
            // Emoji, right to left, combining scripts: letter by letter.
            ("👨‍👩‍👧 family 👍🏽 ok", "family 👍🏽 ok", "e[6..18]=family 👍🏽 ok"),
            ("👨‍👩‍👧 family", "👨👩👧 Family", "n[0..12]=👨‍👩‍👧 family"),
            ("I ❤️ Rust", "i ❤ rust", "n[0..9]=I ❤️ Rust"),
            ("שלום עולם", "עולם", "e[5..9]=עולם"),
            ("مرحبا بالعالم", "بالعالم", "e[6..13]=بالعالم"),
            ("हिन्दी भाषा", "भाषा", "e[7..11]=भाषा"),
            ("北京是中国的首都。", "中国的首都", "e[3..8]=中国的首都"),
            // What a writer puts around a quote.
            ("It opened in 1889, in May", "\"It opened in 1889\"", "n[0..17]=It opened in 1889"),
            ("It opened in 1889, in May", "It opened in 1889...", "n[0..17]=It opened in 1889"),
            ("It opened in 1889, in May", "“… opened in 1889 …”", "n[3..17]=opened in 1889"),
            ("It opened in 1889, in May", "[...] in May", "n[19..25]=in May"),
            ("He wrote \"It opened\" then", "'it opened'", "n[9..20]=\"It opened\""),
            ("and so on... Then", "so on...", "e[4..12]=so on..."),
            // The first place.
            ("one two one two", "two", "e[4..7]=two"),
            ("Two one TWO", "two", "n[0..3]=Two"),
            // No evidence.
            ("It opened in 1889, in May", "It opened ... in May", "missing"),
            ("It opened in 1889", "It opened in 1890", "missing"),
            ("cafés", "cafe", "missing"),
            ("a b", "ab", "missing"),
            ("5 000", "5000", "missing"),
            ("a", "\"\"...\"a b\"", "missing"),
        ] {
            let expected = match outcome {
                "missing" => "missing from Some(0)".to_owned(),
                found => format!("0{found}"),
            };
            assert_eq!(short(&[context], Some(0), quote), expected, "{quote}");
        }
    }

    #[test]
    fn large_contexts_and_hostile_ones_take_linear_time() {
        let plain = "The quick brown fox jumps over the lazy dog; ";
        let cases = [
            (plain.repeat(50_000), "LAZY cat"),
            (format!("{}x The End", plain.repeat(50_000)), "x the END"),
            ("a\u{301}".repeat(300_000), "Á á"),
            (format!("a{}", "\u{301}".repeat(600_000)), "A\u{301}b"),
            (format!("a{}b", "\u{323}\u{301}".repeat(300_000)), "B"),
            (" ".repeat(1_000_000), "a"),
            ("\u{200B}".repeat(300_000) + "End", "end"),
            ("北京。".repeat(200_000), "北京A"),
            ("aa".repeat(500_000), "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAb"),
            ("a".to_owned(), "..."),
        ];
        for (context, quote) in cases {
            let contexts = [context];
            let haystack = Haystack::new(&contexts);
            let start = Instant::now();
            for _ in 0..4 {
                let _ = haystack.find(&Citation { context: None, quote: quote.to_owned() });
            }
            let took = start.elapsed();
            assert!(took < Duration::from_secs(20), "{quote}: {took:?}");
        }
        let wrapped = format!("{}a{}", "'".repeat(100_000), "'".repeat(100_000));
        assert_eq!(short(&["an A"], Some(0), &wrapped), "0n[0..1]=a");
    }

    /// Words of many scripts, with upper and lower case where there is one.
    fn words() -> impl Strategy<Value = String> {
        let word = prop_oneof![
            "[a-zA-Z0-9]{1,6}",
            "[а-яА-Я]{1,6}",
            "[α-ωΑ-ΡΣ-Ω]{1,4}",
            "[äöüßéÅﬁ½²]{1,4}",
            "[一-丁京都가-갛あ-ん]{1,4}",
            "[א-תا-ي]{1,4}",
            "(“no”|it’s|–|e\u{301}a|👍🏽|\u{200B})",
        ];
        proptest::collection::vec(word, 1..12).prop_map(|words| words.join(" "))
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_piece_of_a_context_is_found_exactly(text in "\\PC{0,20}[a-zé京\u{301} \n]{0,20}\\PC{0,20}", other in ".{0,20}", cuts in any::<[proptest::sample::Index; 2]>()) {
            let chars: Vec<char> = text.chars().collect();
            let [one, two] = cuts.map(|cut| cut.index(chars.len() + 1));
            let quote: String = chars[one.min(two)..one.max(two)].iter().collect();
            let contexts = [other, text];
            let found = Haystack::new(&contexts).find(&Citation { context: Some(1), quote: quote.clone() });
            if quote.chars().any(char::is_alphanumeric) {
                let Evidence::Found { context: 1, quote: own, start, end, exact: true } = found else {
                    return Err(TestCaseError::fail(format!("{found:?}")));
                };
                prop_assert_eq!(&own, &quote);
                prop_assert!(start <= one.min(two));
                prop_assert_eq!(chars[start..end].iter().collect::<String>(), quote);
            } else {
                prop_assert_eq!(found, Evidence::Missing { context: Some(1), quote });
            }
        }

        #[test]
        fn a_quote_with_other_case_and_white_space_is_found(before in words(), middle in words(), after in words(), space in "[ \t\n\u{A0}]{1,3}") {
            prop_assume!(has_word(&middle));
            let contexts = [format!("{before} {middle} {after}")];
            let haystack = Haystack::new(&contexts);
            for wording in [middle.to_uppercase(), middle.to_lowercase(), middle.replace(' ', &space), format!("\"{middle}…\"")] {
                let found = haystack.find(&Citation { context: Some(0), quote: wording.clone() });
                let Evidence::Found { quote, start, end, .. } = found else {
                    return Err(TestCaseError::fail(format!("{wording} in {contexts:?}")));
                };
                let own: String = contexts[0].chars().skip(start).take(end - start).collect();
                prop_assert_eq!(&own, &quote);
                prop_assert_eq!(quote.trim(), quote.as_str());
            }
        }

        #[test]
        fn any_texts_give_a_true_place_or_none(context in ".{0,40}", quote in ".{0,8}", named in proptest::option::of(0usize..3)) {
            short(&[&context, "", &quote.to_lowercase()], named, &quote);
        }
    }
}
