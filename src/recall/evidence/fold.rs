//! Text with its writing folded away, and the way back to where it stood.
//!
//! Folded away is what changes when somebody copies a passage by hand and leaves its words alone:
//!
//! - letter case: each character to lower, upper and lower case again, so that `ẞ`, `ß` and `SS`, and `Σ`, `σ` and `ς`
//!   are one; of the four Turkish i's all are `i`;
//! - compatibility forms and composition (NFKC): full width, ligatures, superscripts, NFD;
//! - white space: a run is one space;
//! - quote marks, single, double, typographic, primes and guillemets: all are `'`, since a writer of JSON trades one
//!   kind for another to save the escapes;
//! - hyphens, dashes and the minus sign: all are `-`;
//! - characters that show nothing: soft hyphen, zero-width space and joiners, direction marks, variation selectors.
//!
//! Knows nothing of contexts and citations.

use std::ops::Range;

use unicode_normalization::char::{canonical_combining_class, decompose_compatible};
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfkc_quick};

/// Distance of the notes on the way back, in bytes of the original. Each costs 16 bytes and saves folding again from
/// the start; a note for every character would need several times the memory of the text.
const STRIDE: usize = 1 << 12;

/// Most characters folded as one unit. More than any language stacks on a base; bounds the work on text that piles up
/// combining marks without end.
const LONGEST_CLUSTER: usize = 64;

/// A folded text.
#[derive(Debug)]
pub(super) struct Folded {
    text: String,
    /// Pairs of a place in the folded text and the place in the original where the same cluster starts, in bytes,
    /// ascending.
    notes: Vec<(usize, usize)>,
}

impl Folded {
    pub(super) fn new(original: &str) -> Self {
        let mut folder = Folder::default();
        let mut notes = vec![(0, 0)];
        let mut last = 0;
        for (at, cluster) in clusters(original) {
            // By the original's length: long runs of white space fold to next to nothing.
            if at - last >= STRIDE {
                notes.push((folder.text.len(), at));
                last = at;
            }
            folder.push(cluster);
        }
        Self { text: folder.text, notes }
    }

    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    /// Where in `original`, the text this was made from, the piece `folded` of the folded text stands, in bytes.
    ///
    /// A piece that starts or ends inside what one cluster folds to (`nland` in `ﬁnland`) is extended to the whole of
    /// it, so the range always covers whole characters.
    pub(super) fn unfold(&self, original: &str, folded: &Range<usize>) -> Range<usize> {
        let note = self.notes.partition_point(|(place, _)| *place <= folded.start).saturating_sub(1);
        let (place, from) = self.notes.get(note).copied().unwrap_or_default();
        let mut folder = Folder {
            // Whether a space is owed depends on what stands before the note.
            text: self
                .text
                .get(..place)
                .filter(|before| before.ends_with(' '))
                .map(|_| " ".to_owned())
                .unwrap_or_default(),
            ..Folder::default()
        };
        let base = place - folder.text.len();
        let mut range = None;
        for (at, cluster) in clusters(original.get(from..).unwrap_or_default()) {
            folder.push(cluster);
            let reached = base + folder.text.len();
            if reached > folded.start && range.is_none() {
                range = Some(from + at..from + at);
            }
            if let Some(range) = &mut range {
                range.end = from + at + cluster.len();
            }
            if reached >= folded.end {
                break;
            }
        }
        range.unwrap_or(from..from)
    }
}

/// Cuts a text where neither composition nor reordering reaches across, so that folding each piece alone gives the
/// same as folding the whole.
fn clusters(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = text.get(at..)?;
        let length = rest
            .char_indices()
            .skip(1)
            .enumerate()
            .find(|(index, (_, c))| index + 1 >= LONGEST_CLUSTER || !attaches(*c))
            .map_or(rest.len(), |(_, (length, _))| length);
        let cluster = rest.get(..length).filter(|cluster| !cluster.is_empty())?;
        let start = at;
        at += length;
        Some((start, cluster))
    })
}

/// May this character change together with the one before it?
fn attaches(c: char) -> bool {
    if c < '\u{300}' {
        return false;
    }
    match is_nfkc_quick(std::iter::once(c)) {
        IsNormalized::Yes => canonical_combining_class(c) != 0,
        IsNormalized::Maybe => true,
        IsNormalized::No => {
            // Half-width voicing marks and jamo are starters themselves, but what they decompose to is none.
            let mut first = None;
            decompose_compatible(c, |part| {
                first.get_or_insert(part);
            });
            first.is_some_and(|first| {
                canonical_combining_class(first) != 0 || is_nfkc_quick(std::iter::once(first)) == IsNormalized::Maybe
            })
        }
    }
}

#[derive(Default)]
struct Folder {
    text: String,
    spare: String,
}

impl Folder {
    fn push(&mut self, cluster: &str) {
        let mut chars = cluster.chars();
        match (chars.next(), chars.next()) {
            (Some(c), None) if c.is_ascii() => self.put(mark(c).to_ascii_lowercase()),
            (Some(c), None) if is_nfkc_quick(std::iter::once(c)) == IsNormalized::Yes => {
                self.put_cases(&[mark(c)]);
            }
            _ => {
                // Marks first: NFKC takes some of them apart into a space and an accent.
                let parts: Vec<char> = cluster.chars().map(mark).nfkc().map(mark).collect();
                self.put_cases(&parts);
            }
        }
    }

    fn put_cases(&mut self, parts: &[char]) {
        let mut spare = std::mem::take(&mut self.spare);
        spare.extend(
            parts.iter().flat_map(|c| c.to_lowercase()).flat_map(char::to_uppercase).flat_map(char::to_lowercase),
        );
        let mut chars = spare.chars();
        if let (Some(c), None) = (chars.next(), chars.next()) {
            self.put(c);
        } else {
            // Case mapping may take apart what was composed.
            let mut before = None;
            for c in spare.nfkc() {
                // `İ` in lower case is an `i` with a dot above.
                if (before, c) != (Some('i'), '\u{307}') {
                    self.put(c);
                }
                before = Some(c);
            }
        }
        spare.clear();
        self.spare = spare;
    }

    fn put(&mut self, c: char) {
        if c.is_whitespace() {
            if !self.text.ends_with(' ') {
                self.text.push(' ');
            }
        } else if !is_invisible(c) {
            self.text.push(c);
        }
    }
}

/// One mark for all quote marks, one for all dashes.
fn mark(c: char) -> char {
    match c {
        '"'
        | '`'
        | '´'
        | '«'
        | '»'
        | '\u{2BB}'
        | '\u{2BC}'
        | '\u{2018}'..='\u{201F}'
        | '\u{2032}'..='\u{2037}'
        | '‹'
        | '›'
        | '\u{300C}'..='\u{300F}'
        | '\u{301D}'..='\u{301F}'
        | '\u{FF02}'
        | '\u{FF07}'
        | '\u{FF62}'
        | '\u{FF63}' => '\'',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        other => other,
    }
}

fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{AD}' | '\u{61C}' | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}'
            | '\u{2060}'..='\u{206F}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{E0100}'..='\u{E01EF}'
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_folded_away() {
        for (one, other) in [
            ("Paris  is\n\tBIG", "paris is big"),
            ("a\u{A0}\u{2003}b\u{3000}c", "a b c"),
            ("STRASSE", "straße"),
            ("STRA\u{1E9E}E", "strasse"),
            ("ΟΔΥΣΣΕΥΣ", "οδυσσευς"),
            ("İSTANBUL ısı", "istanbul ISI"),
            ("cafe\u{301}", "CAFÉ"),
            ("\u{1100}\u{1161}\u{11A8}", "각"),
            ("\u{FF76}\u{FF9E}", "ガ"),
            ("ＡＢＣ１２３", "abc123"),
            ("ﬁnd ﬀ", "find ff"),
            ("x² ½ №", "x2 1\u{2044}2 no"),
            ("“a” «b» 「c」 ‘d’ e´s f`s", "'a' 'b' \"c\" 'd' e's f's"),
            ("1990–1995 −5 non\u{2011}stop", "1990-1995 -5 non-stop"),
            ("in\u{AD}visible\u{200B} \u{202B}x\u{FE0F}", "invisible x"),
            ("می\u{200C}خواهم", "میخواهم"),
            ("…", "..."),
            ("ǆ ǅ Ǆ", "dž dž dž"),
            ("ᾳ", "αι"),
            ("a\u{323}\u{307}", "a\u{307}\u{323}"),
            ("क\u{93C}", "\u{958}"),
        ] {
            assert_eq!(Folded::new(one).text, Folded::new(other).text, "{one}");
        }
        for (one, other) in [("cafe", "café"), ("a b", "ab"), ("-", "'"), ("é", "è")] {
            assert_ne!(Folded::new(one).text, Folded::new(other).text, "{one}");
        }
    }

    #[test]
    fn the_way_back_is_found_from_any_note() {
        let line = "A\u{A0} “Straße”  e\u{301}\u{FF76}\u{FF9E} ﬁn \u{200B}\n";
        let text = line.repeat(2000);
        let folded = Folded::new(&text);
        assert!(folded.notes.len() > 5);
        let mut seen = 0;
        for (at, piece) in folded.text.match_indices("'strasse'") {
            let back = folded.unfold(&text, &(at..at + piece.len()));
            assert_eq!(&text[back.clone()], "“Straße”");
            assert_eq!(back.start, seen * line.len() + 4);
            seen += 1;
        }
        assert_eq!(seen, 2000);
    }

    #[test]
    fn a_part_of_a_character_becomes_the_whole() {
        let back = |text: &str, piece: &str| {
            let folded = Folded::new(text);
            let at = folded.text.find(piece).unwrap();
            text[folded.unfold(text, &(at..at + piece.len()))].to_owned()
        };
        assert_eq!(back("ﬁnland", "inland"), "ﬁnland");
        assert_eq!(back("eﬀ!", "ef"), "eﬀ");
        assert_eq!(back("¨o", "\u{308}"), "¨");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Cutting into clusters changes nothing, and every cluster leads back to itself.
        #[test]
        fn clusters_do_not_touch(text in "(.|[a\u{300}-\u{310}\u{323}\u{345}가-각\u{1100}-\u{1112}\u{1161}-\u{1175}\u{11A8}-\u{11B0}\u{FF76}\u{FF9E}]){0,40}") {
            let cut: String = clusters(&text).flat_map(|(_, cluster)| cluster.nfkc().collect::<Vec<_>>()).collect();
            prop_assert_eq!(cut, text.nfkc().collect::<String>());
            let whole: String = clusters(&text).map(|(_, cluster)| cluster).collect();
            prop_assert_eq!(whole, text);
        }

        #[test]
        fn any_piece_leads_back_to_whole_characters(text in "(.|[ \u{A0}ßﬁa\u{301}\u{200B}]){0,30}", cuts in any::<[proptest::sample::Index; 2]>()) {
            let folded = Folded::new(&text);
            let ends: Vec<usize> = (0..=folded.text.len()).filter(|at| folded.text.is_char_boundary(*at)).collect();
            let [one, other] = cuts.map(|cut| *cut.get(&ends));
            let piece = one.min(other)..one.max(other);
            let back = folded.unfold(&text, &piece);
            let again = Folded::new(text.get(back).unwrap());
            prop_assert!(again.text.trim().contains(folded.text[piece].trim()));
        }
    }
}
