//! A JSON reader that forgives the slips of syntax which language models make.
//!
//! Forgiven, because none of it leaves the meaning in doubt: a trailing comma, raw control characters in a string, a
//! lone surrogate escape (becomes U+FFFD), an unknown escape (kept as written), typographic or single quote marks
//! around a string, the words `True`, `None`, `yes` and the like as values. Not forgiven: comments, bare keys, missing
//! commas, and above all a missing end: nothing that was cut is ever mended.
//!
//! Knows nothing of verdicts. Work and memory are linear in what is read, nesting is bounded.

use std::ops::Range;

/// Deepest nesting that is read; an answer needs five levels.
const DEEPEST: usize = 64;

/// A JSON value. Keys keep their order and their repetitions, so that the caller can refuse a key that stands twice.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value<'a> {
    Null,
    Bool(bool),
    /// As written; certain to be a finite or overflowing decimal that `f64` can read.
    Number(&'a str),
    Text(String),
    List(Vec<Value<'a>>),
    Object(Vec<(String, Value<'a>)>),
}

/// Why no value could be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// The text ends inside the value.
    EndOfText,
    /// Something else than a separator follows a string: most likely a quote mark inside it that was not escaped, so
    /// that nobody can tell where strings begin and end from here on.
    AfterString,
    /// Nested deeper than any answer is.
    TooDeep,
    /// This is not JSON.
    Syntax,
}

/// A value that was read.
#[derive(Debug)]
pub(super) struct Found<'a> {
    pub(super) value: Value<'a>,
    /// The byte after it.
    pub(super) end: usize,
    /// Where the noted key stands in it, at any depth.
    pub(super) noted: Vec<Noted>,
}

/// A place of the noted key.
#[derive(Debug)]
pub(super) struct Noted {
    /// The key and its value.
    pub(super) field: Range<usize>,
    /// The field before it in the same object.
    pub(super) before: Option<Range<usize>>,
}

/// A value that could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) why: Why,
    /// The byte where reading ended.
    pub(super) at: usize,
    /// A watched key was met before that.
    pub(super) watched: bool,
}

/// Reads the value that starts at byte `start` of `text`, and tells where it ends and where the key `note` stands in it.
///
/// A failure says whether one of the keys in `watch` was met on the way. Keys in any letter case.
pub(super) fn read<'a>(text: &'a str, start: usize, watch: &[&str], note: Option<&str>) -> Result<Found<'a>, Failure> {
    let mut reader = Reader { text, at: start, watch, watched: false, note, noted: Vec::new() };
    match reader.value(0) {
        Ok(value) => Ok(Found { value, end: reader.at, noted: reader.noted }),
        Err(why) => Err(Failure { why, at: reader.at, watched: reader.watched }),
    }
}

/// Does this name the key `name`? Letter case and white space around it do not matter.
pub(super) fn is_key(key: &str, name: &str) -> bool {
    key.trim().eq_ignore_ascii_case(name)
}

/// White space between tokens, with the invisible characters that find their way into replies.
pub(super) fn is_space(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\0' | '\u{FEFF}' | '\u{200B}' | '\u{2060}')
}

struct Reader<'a, 'w> {
    text: &'a str,
    at: usize,
    watch: &'w [&'w str],
    watched: bool,
    note: Option<&'w str>,
    noted: Vec<Noted>,
}

impl<'a> Reader<'a, '_> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The next character that is no white space, not yet taken.
    fn peek(&mut self) -> Result<char, Why> {
        // Most tokens stand close together.
        if let Some(byte) = self.text.as_bytes().get(self.at)
            && byte.is_ascii_graphic()
        {
            return Ok(char::from(*byte));
        }
        let rest = self.rest().trim_start_matches(is_space);
        self.at = self.text.len() - rest.len();
        rest.chars().next().ok_or(Why::EndOfText)
    }

    fn take(&mut self, c: char) {
        self.at += c.len_utf8();
    }

    fn value(&mut self, depth: usize) -> Result<Value<'a>, Why> {
        match self.peek()? {
            '{' | '[' if depth >= DEEPEST => Err(Why::TooDeep),
            '{' => self.object(depth),
            '[' => self.list(depth),
            '-' | '0'..='9' => self.number(),
            c if closing_marks(c).is_some() => self.string().map(Value::Text),
            c if c.is_ascii_alphabetic() => self.word(),
            _ => Err(Why::Syntax),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value<'a>, Why> {
        self.take('{');
        let mut fields = Vec::new();
        let mut before = None;
        loop {
            if self.peek()? == '}' {
                self.take('}');
                return Ok(Value::Object(fields));
            }
            let start = self.at;
            let key = self.string()?;
            self.watched = self.watched || self.watch.iter().any(|name| is_key(&key, name));
            if self.peek()? != ':' {
                return Err(Why::AfterString);
            }
            self.take(':');
            let value = self.value(depth + 1)?;
            let field = start..self.at;
            if self.note.is_some_and(|name| is_key(&key, name)) {
                self.noted.push(Noted { field: field.clone(), before });
            }
            before = Some(field);
            let goes_on = self.separator('}', &value)?;
            fields.push((key, value));
            if !goes_on {
                return Ok(Value::Object(fields));
            }
        }
    }

    fn list(&mut self, depth: usize) -> Result<Value<'a>, Why> {
        self.take('[');
        let mut items = Vec::new();
        loop {
            if self.peek()? == ']' {
                self.take(']');
                return Ok(Value::List(items));
            }
            let value = self.value(depth + 1)?;
            let goes_on = self.separator(']', &value)?;
            items.push(value);
            if !goes_on {
                return Ok(Value::List(items));
            }
        }
    }

    /// Takes what must follow `value`: a comma (true) or the end of the container (false).
    fn separator(&mut self, close: char, value: &Value<'_>) -> Result<bool, Why> {
        match self.peek()? {
            ',' => {
                self.take(',');
                Ok(true)
            }
            c if c == close => {
                self.take(c);
                Ok(false)
            }
            _ if matches!(value, Value::Text(_)) => Err(Why::AfterString),
            _ => Err(Why::Syntax),
        }
    }

    fn number(&mut self) -> Result<Value<'a>, Why> {
        let written = self.run(|c| matches!(c, '0'..='9' | '-' | '+' | '.' | 'e' | 'E')).trim_end();
        match written.parse::<f64>() {
            Ok(_) => Ok(Value::Number(written)),
            Err(_) => Err(self.end_or_syntax()),
        }
    }

    fn word(&mut self) -> Result<Value<'a>, Why> {
        let word = self.run(|c| c.is_ascii_alphabetic());
        // A number of letters is enough for the longest word, so a run of a megabyte is not copied.
        match word.get(..word.len().min(6)).unwrap_or_default().to_ascii_lowercase().as_str() {
            "true" | "yes" => Ok(Value::Bool(true)),
            "false" | "no" => Ok(Value::Bool(false)),
            "null" | "none" => Ok(Value::Null),
            _ => Err(self.end_or_syntax()),
        }
    }

    fn run(&mut self, belongs: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.find(|c| !belongs(c)).unwrap_or(rest.len());
        self.at += length;
        rest.get(..length).unwrap_or_default()
    }

    /// A token that makes no sense is merely unfinished when the text ends with it.
    fn end_or_syntax(&self) -> Why {
        if self.at >= self.text.len() { Why::EndOfText } else { Why::Syntax }
    }

    fn string(&mut self) -> Result<String, Why> {
        let open = self.peek()?;
        let closing = closing_marks(open).ok_or(Why::Syntax)?;
        self.take(open);
        let mut text = String::new();
        loop {
            text.push_str(self.run(|c| c != '\\' && !closing.contains(&c)));
            match self.rest().chars().next() {
                None => return Err(Why::EndOfText),
                Some('\\') => self.escape(&mut text)?,
                Some(mark) => {
                    self.take(mark);
                    return Ok(text);
                }
            }
        }
    }

    fn escape(&mut self, text: &mut String) -> Result<(), Why> {
        self.take('\\');
        let c = self.rest().chars().next().ok_or(Why::EndOfText)?;
        self.take(c);
        match c {
            '"' | '\'' | '\\' | '/' => text.push(c),
            'b' => text.push('\u{8}'),
            'f' => text.push('\u{C}'),
            'n' => text.push('\n'),
            'r' => text.push('\r'),
            't' => text.push('\t'),
            'u' => match self.four_digits() {
                Some(unit) => self.code_unit(unit, text),
                None => text.push_str("\\u"),
            },
            // LaTeX, patterns and paths: the writer forgot to double the backslash.
            other => text.extend(['\\', other]),
        }
        Ok(())
    }

    fn code_unit(&mut self, unit: u16, text: &mut String) {
        let mut units = vec![unit];
        let before = self.at;
        if (0xD800..0xDC00).contains(&unit) && self.rest().starts_with("\\u") {
            self.at += 2;
            match self.four_digits() {
                Some(low) if (0xDC00..0xE000).contains(&low) => units.push(low),
                _ => self.at = before,
            }
        }
        text.extend(char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)));
    }

    fn four_digits(&mut self) -> Option<u16> {
        let digits = self.rest().get(..4)?;
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        self.at += 4;
        u16::from_str_radix(digits, 16).ok()
    }
}

/// Can this end a string?
pub(super) fn is_mark(c: char) -> bool {
    // Each mark but the low ones may close, and each may open.
    closing_marks(c).is_some()
}

/// The marks that end a string which `open` began; `None` when `open` begins none.
fn closing_marks(open: char) -> Option<&'static [char]> {
    match open {
        '"' => Some(&['"']),
        '\'' => Some(&['\'']),
        '\u{201C}'..='\u{201F}' => Some(&['\u{201C}', '\u{201D}', '\u{201F}']),
        '\u{2018}'..='\u{201B}' => Some(&['\u{2018}', '\u{2019}', '\u{201B}']),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str) -> Result<Value<'_>, Why> {
        match read(text, 0, &[], None) {
            Ok(found) => {
                assert_eq!(found.end, text.len(), "{text}");
                Ok(found.value)
            }
            Err(failure) => Err(failure.why),
        }
    }

    fn text(text: &str) -> Value<'static> {
        Value::Text(text.to_owned())
    }

    #[test]
    fn strings_are_read_as_they_were_meant() {
        for (written, meant) in [
            (r#""a\"b\\\/\b\f\n\r\t""#, "a\"b\\/\u{8}\u{C}\n\r\t"),
            (r#""caf\u00e9 \ud83d\ude00""#, "café 😀"),
            (r#""cut \ud83d""#, "cut \u{FFFD}"),
            (r#""\ud83d\ud83d\ude00""#, "\u{FFFD}😀"),
            (r#""\ude00x""#, "\u{FFFD}x"),
            (r#""\ud83d\n""#, "\u{FFFD}\n"),
            (r#""\ud83d\u0041""#, "\u{FFFD}A"),
            (r#""\u12 \uzzzz \u""#, "\\u12 \\uzzzz \\u"),
            (r#""\d+ \alpha""#, "\\d+ \\alpha"),
            ("\"line\nand\ttab\0\"", "line\nand\ttab\0"),
            ("“smart”", "smart"),
            ("„tief“", "tief"),
            ("‘single’", "single"),
            (r"'it\'s'", "it's"),
            (r#"'a "b"'"#, "a \"b\""),
            ("\"“inner”\"", "“inner”"),
            ("\"{[,]}\"", "{[,]}"),
            ("\"\"", ""),
        ] {
            assert_eq!(whole(written), Ok(text(meant)), "{written}");
        }
    }

    #[test]
    fn values_and_containers() {
        use Value::{Bool, List, Null, Number, Object};
        for (written, meant) in [
            ("[]", List(vec![])),
            ("{ }", Object(vec![])),
            ("[1,]", List(vec![Number("1")])),
            ("[-1.5e3, 0.0]", List(vec![Number("-1.5e3"), Number("0.0")])),
            ("[true, False, NONE, yes, no]", List(vec![Bool(true), Bool(false), Null, Bool(true), Bool(false)])),
            ("\u{FEFF}{\u{A0}\"a\"\0:\n[ ] , }", Object(vec![("a".into(), List(vec![]))])),
            (r#"{"a":1,"a":2}"#, Object(vec![("a".into(), Number("1")), ("a".into(), Number("2"))])),
        ] {
            assert_eq!(whole(written), Ok(meant), "{written}");
        }
    }

    #[test]
    fn what_is_refused() {
        use Why::{AfterString, EndOfText, Syntax};
        for (written, why) in [
            ("", EndOfText),
            ("[", EndOfText),
            ("{\"a", EndOfText),
            ("{\"a\"", EndOfText),
            ("{\"a\":", EndOfText),
            ("{\"a\":tru", EndOfText),
            ("{\"a\":-", EndOfText),
            ("[\"a\\", EndOfText),
            ("[“a\"", EndOfText),
            ("[1 2]", Syntax),
            ("[,]", Syntax),
            ("[1,,]", Syntax),
            ("[1}", Syntax),
            ("{a:1}", Syntax),
            ("{1:1}", Syntax),
            ("[1 // one\n]", Syntax),
            ("[nan]", Syntax),
            ("[1-2-3]", Syntax),
            ("[truest]", Syntax),
            ("[...]", Syntax),
            ("{\"a\":\"b\"c\"}", AfterString),
            ("[\"b\"c\"]", AfterString),
            ("{\"a\"b\":1}", AfterString),
        ] {
            assert_eq!(whole(written), Err(why), "{written}");
        }
    }

    #[test]
    fn nesting_is_bounded() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(whole(&nested(DEEPEST)).is_ok());
        assert_eq!(whole(&nested(DEEPEST + 1)), Err(Why::TooDeep));
        assert_eq!(whole(&nested(1_000_000)), Err(Why::TooDeep));
    }

    #[test]
    fn watched_keys_are_reported() {
        let watched = |text| read(text, 0, &["n"], None).is_err_and(|failure| failure.watched);
        assert!(watched(r#"{" N ":1"#));
        assert!(!watched(r#"{"note":"n""#));
    }

    #[test]
    fn a_noted_key_is_told_with_the_field_before_it() {
        let text = r#"[{"a":"x","b":1,"n":2},{"a":"x", " N " : true, "n":"s"},{"n":[{"n":0}]},{"a":"n"}]"#;
        let found = read(text, 0, &[], Some("n")).unwrap();
        let show = |place: Range<usize>| &text[place];
        let noted: Vec<_> = found.noted.into_iter().map(|noted| (noted.before.map(show), show(noted.field))).collect();
        let expected = [
            (Some(r#""b":1"#), r#""n":2"#),
            (Some(r#""a":"x""#), r#"" N " : true"#),
            (Some(r#"" N " : true"#), r#""n":"s""#),
            (None, r#""n":0"#),
            (None, r#""n":[{"n":0}]"#),
        ];
        assert_eq!(noted, expected);
    }
}
