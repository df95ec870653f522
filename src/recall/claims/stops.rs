//! The characters around the end of a sentence: stops, what closes behind them, what carries on.
//!
//! The stops are those of UAX #29 (`STerm` and `ATerm` of Unicode 17), with two corrections: the Burmese little
//! section mark is a comma and therefore no stop, and the ellipsis, the interrobang and the Greek question mark are
//! stops. Whether a stop ends a sentence is not decided here.

/// Is `c` a stop that may end a sentence?
pub(super) fn is_stop(c: char) -> bool {
    c.is_ascii() && matches!(c, '.' | '!' | '?')
        || !c.is_ascii()
            && STOPS
                .binary_search_by(|&(first, last)| {
                    if last < c {
                        std::cmp::Ordering::Less
                    } else if first > c {
                        std::cmp::Ordering::Greater
                    } else {
                        std::cmp::Ordering::Equal
                    }
                })
                .is_ok()
}

/// The stops beyond ASCII, as ranges in ascending order. A test holds them against the tables of UAX #29.
const STOPS: &[(char, char)] = &[
    ('\u{37E}', '\u{37E}'),
    ('\u{589}', '\u{589}'),
    ('\u{61D}', '\u{61F}'),
    ('\u{6D4}', '\u{6D4}'),
    ('\u{700}', '\u{702}'),
    ('\u{7F9}', '\u{7F9}'),
    ('\u{837}', '\u{837}'),
    ('\u{839}', '\u{839}'),
    ('\u{83D}', '\u{83E}'),
    ('\u{964}', '\u{965}'),
    ('\u{104B}', '\u{104B}'),
    ('\u{1362}', '\u{1362}'),
    ('\u{1367}', '\u{1368}'),
    ('\u{166E}', '\u{166E}'),
    ('\u{1735}', '\u{1736}'),
    ('\u{17D4}', '\u{17D5}'),
    ('\u{1803}', '\u{1803}'),
    ('\u{1809}', '\u{1809}'),
    ('\u{1944}', '\u{1945}'),
    ('\u{1AA8}', '\u{1AAB}'),
    ('\u{1B4E}', '\u{1B4F}'),
    ('\u{1B5A}', '\u{1B5B}'),
    ('\u{1B5E}', '\u{1B5F}'),
    ('\u{1B7D}', '\u{1B7F}'),
    ('\u{1C3B}', '\u{1C3C}'),
    ('\u{1C7E}', '\u{1C7F}'),
    ('\u{2024}', '\u{2024}'),
    ('\u{2026}', '\u{2026}'),
    ('\u{203C}', '\u{203D}'),
    ('\u{2047}', '\u{2049}'),
    ('\u{2CF9}', '\u{2CFB}'),
    ('\u{2E2E}', '\u{2E2E}'),
    ('\u{2E3C}', '\u{2E3C}'),
    ('\u{2E53}', '\u{2E54}'),
    ('\u{3002}', '\u{3002}'),
    ('\u{A4FF}', '\u{A4FF}'),
    ('\u{A60E}', '\u{A60F}'),
    ('\u{A6F3}', '\u{A6F3}'),
    ('\u{A6F7}', '\u{A6F7}'),
    ('\u{A876}', '\u{A877}'),
    ('\u{A8CE}', '\u{A8CF}'),
    ('\u{A92F}', '\u{A92F}'),
    ('\u{A9C8}', '\u{A9C9}'),
    ('\u{AA5D}', '\u{AA5F}'),
    ('\u{AAF0}', '\u{AAF1}'),
    ('\u{ABEB}', '\u{ABEB}'),
    ('\u{FE12}', '\u{FE12}'),
    ('\u{FE15}', '\u{FE16}'),
    ('\u{FE52}', '\u{FE52}'),
    ('\u{FE56}', '\u{FE57}'),
    ('\u{FF01}', '\u{FF01}'),
    ('\u{FF0E}', '\u{FF0E}'),
    ('\u{FF1F}', '\u{FF1F}'),
    ('\u{FF61}', '\u{FF61}'),
    ('\u{10A56}', '\u{10A57}'),
    ('\u{10F55}', '\u{10F59}'),
    ('\u{10F86}', '\u{10F89}'),
    ('\u{11047}', '\u{11048}'),
    ('\u{110BE}', '\u{110C1}'),
    ('\u{11141}', '\u{11143}'),
    ('\u{111C5}', '\u{111C6}'),
    ('\u{111CD}', '\u{111CD}'),
    ('\u{111DE}', '\u{111DF}'),
    ('\u{11238}', '\u{11239}'),
    ('\u{1123B}', '\u{1123C}'),
    ('\u{112A9}', '\u{112A9}'),
    ('\u{113D4}', '\u{113D5}'),
    ('\u{1144B}', '\u{1144C}'),
    ('\u{115C2}', '\u{115C3}'),
    ('\u{115C9}', '\u{115D7}'),
    ('\u{11641}', '\u{11642}'),
    ('\u{1173C}', '\u{1173E}'),
    ('\u{11944}', '\u{11944}'),
    ('\u{11946}', '\u{11946}'),
    ('\u{11A42}', '\u{11A43}'),
    ('\u{11A9B}', '\u{11A9C}'),
    ('\u{11C41}', '\u{11C42}'),
    ('\u{11EF7}', '\u{11EF8}'),
    ('\u{11F43}', '\u{11F44}'),
    ('\u{16A6E}', '\u{16A6F}'),
    ('\u{16AF5}', '\u{16AF5}'),
    ('\u{16B37}', '\u{16B38}'),
    ('\u{16B44}', '\u{16B44}'),
    ('\u{16D6E}', '\u{16D6F}'),
    ('\u{16E98}', '\u{16E98}'),
    ('\u{1BC9F}', '\u{1BC9F}'),
    ('\u{1DA88}', '\u{1DA88}'),
];

/// Full stops in their several widths: the ones that also end abbreviations and stand in numbers.
pub(super) fn is_full_stop(c: char) -> bool {
    matches!(c, '.' | '\u{2024}' | '\u{FE52}' | '\u{FF0E}')
}

/// Stops of the scripts that know capitals, before which a small letter tells that the sentence goes on.
pub(super) fn is_cased_stop(c: char) -> bool {
    is_full_stop(c)
        || matches!(c, '!' | '?' | '…' | '\u{37E}' | '\u{203C}' | '\u{2047}'..='\u{2049}' | '\u{203D}' | '\u{2E2E}')
}

/// The length of the run of stops at the head of `text`: `.`, `?!`, `...`, `. . .`
pub(super) fn stop_run(text: &str) -> usize {
    let mut length = 0;
    let mut rest = text.chars();
    while let Some(c) = rest.clone().next() {
        let mut look = rest.clone();
        look.next();
        let next = look.clone().next();
        if is_stop(c) {
            length += c.len_utf8();
            rest = look;
        } else if c == ' ' && length > 0 && next == Some('.') {
            look.next();
            // `ca. .5` is a number, `. . .` and `Stop. ...` are ellipses.
            if look.next().is_some_and(char::is_alphanumeric) {
                break;
            }
            length += 2;
            rest = text[length..].chars();
        } else {
            break;
        }
    }
    length
}

/// The length of what belongs to the sentence behind its stop: closing quotes and brackets, footnote marks, emoji.
///
/// A straight quote between spaces closes when an odd number of them came before (`open_quote`). `“` and `‘` close in
/// German and open elsewhere: always behind a script without spaces (`unspaced`), else before a word.
pub(super) fn closers(text: &str, open_quote: bool, unspaced: bool) -> usize {
    let mut at = 0;
    loop {
        let rest = &text[at..];
        let Some(c) = rest.chars().next() else {
            return at;
        };
        if matches!(c, '“' | '‘') && (unspaced || opens(rest)) {
            return at;
        }
        if is_closer(c) || is_pictograph(c) {
            at += c.len_utf8();
        } else if let Some(length) = footnote(rest) {
            at += length;
        } else if c.is_whitespace() {
            let behind = &rest[c.len_utf8()..];
            let mut chars = behind.chars();
            let Some(mark) = chars.next() else { return at };
            let free = chars.next().is_none_or(|c| c.is_whitespace() || is_continuation(c) || is_stop(c));
            let closes = match mark {
                '»' | '›' | '”' | '’' => free,
                '"' => free && open_quote && at == 0,
                ')' | ']' | '}' => true,
                _ => false,
            };
            if !closes {
                return at;
            }
            at += c.len_utf8() + mark.len_utf8();
        } else {
            return at;
        }
    }
}

/// Does a word stand behind the quotes and brackets at the head of `text`?
fn opens(text: &str) -> bool {
    const MOST: usize = 3;
    text.chars().take(MOST).find(|c| !matches!(c, '“' | '‘' | '(' | '[')).is_some_and(char::is_alphanumeric)
}

fn is_closer(c: char) -> bool {
    matches!(
        c,
        ')' | ']'
            | '}'
            | '"'
            | '\''
            | '*'
            | '_'
            | '`'
            | '~'
            | '”'
            | '’'
            | '“'
            | '‘'
            | '»'
            | '«'
            | '›'
            | '‹'
            | '」'
            | '』'
            | '】'
            | '〕'
            | '》'
            | '〉'
            | '）'
            | '］'
            | '｝'
            | '｣'
            | '＂'
            | '＇'
            | '〞'
            | '〟'
            | '⁰'
            | '¹'
            | '²'
            | '³'
            | '⁴'..='⁹' | '†' | '‡'
    )
}

fn is_pictograph(c: char) -> bool {
    matches!(c, '\u{1F000}'..='\u{1FAFF}' | '\u{2600}'..='\u{27BF}' | '\u{FE0F}' | '\u{200D}')
}

/// The length of `[12]`, `[a]`, `[citation needed]` at the head of `text`.
fn footnote(text: &str) -> Option<usize> {
    const LONGEST: usize = 24;
    let inner = text.strip_prefix('[')?;
    let (length, _) = inner.char_indices().take(LONGEST).find(|&(_, c)| c == ']')?;
    (length > 0 && inner[..length].chars().all(|c| c.is_alphanumeric() || matches!(c, ' ' | ',' | '-' | '–')))
        .then_some(length + 2)
}

pub(super) fn is_continuation(c: char) -> bool {
    matches!(c, ',' | ';' | ':' | '،' | '؛' | '、' | '，' | '；' | '：' | '၊')
}

/// Stops of Chinese and Japanese.
pub(super) fn is_wide_stop(c: char) -> bool {
    matches!(c, '。' | '．' | '！' | '？' | '｡')
}

/// A Korean syllable.
pub(super) fn is_hangul(c: char) -> bool {
    matches!(c, '\u{AC00}'..='\u{D7AF}')
}

/// Letters of the scripts that put no space between sentences or words.
pub(super) fn is_unspaced(c: char) -> bool {
    matches!(
        c,
        '\u{0E00}'..='\u{0EFF}' | '\u{1000}'..='\u{109F}' | '\u{1780}'..='\u{17FF}' | '\u{3040}'..='\u{30FF}'
            | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7AF}' | '\u{F900}'..='\u{FAFF}'
            | '\u{20000}'..='\u{3FFFF}'
    )
}
