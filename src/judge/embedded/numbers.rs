//! Numbers, however they are written, brought to one form.
//!
//! `1,234.5`, `1234.5` and `1.234,5` are one number, and so are `3.5 million` and `3,500,000`, `twelve` and `12`, `١٢`
//! and `12`. Exact: digits are kept as digits, nothing is a float.

/// A non-negative decimal number: its digits without zeros at either end, and a power of ten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Number {
    digits: String,
    power: i64,
}

impl Number {
    /// A small whole number.
    pub(super) fn of(value: u32) -> Self {
        Self::from_parts(&value.to_string(), 0)
    }

    fn from_parts(digits: &str, power: i64) -> Self {
        let significant = digits.trim_start_matches('0');
        let trimmed = significant.trim_end_matches('0');
        if trimmed.is_empty() {
            return Self { digits: "0".to_owned(), power: 0 };
        }
        let dropped = i64::try_from(significant.len() - trimmed.len()).unwrap_or(i64::MAX);
        Self { digits: trimmed.to_owned(), power: power.saturating_add(dropped) }
    }

    /// Appends the form by which numbers are compared; no word has it.
    pub(super) fn write_key(&self, to: &mut String) {
        to.push('#');
        to.push_str(&self.digits);
        to.push('e');
        if self.power != 0 {
            to.push_str(&self.power.to_string());
        }
    }

    /// The number that [`Self::write_key`] wrote.
    pub(super) fn of_key(key: &str) -> Option<Self> {
        let (digits, power) = key.strip_prefix('#')?.split_once('e')?;
        let power = if power.is_empty() { 0 } else { power.parse().ok()? };
        Some(Self { digits: digits.to_owned(), power })
    }

    /// This number with its point moved.
    pub(super) fn times_ten_to(mut self, power: i64) -> Self {
        if self.digits != "0" {
            self.power = self.power.saturating_add(power);
        }
        self
    }
}

/// Where the ten digits of each script begin. NFKC has folded full-width and mathematical digits before.
const ZEROS: [char; 24] = [
    '0', '\u{660}', '\u{6F0}', '\u{7C0}', '\u{966}', '\u{9E6}', '\u{A66}', '\u{AE6}', '\u{B66}', '\u{BE6}', '\u{C66}',
    '\u{CE6}', '\u{D66}', '\u{DE6}', '\u{E50}', '\u{ED0}', '\u{F20}', '\u{1040}', '\u{1090}', '\u{17E0}', '\u{1810}',
    '\u{1946}', '\u{19D0}', '\u{1B50}',
];

/// The value of a decimal digit of any script.
pub(super) fn digit(c: char) -> Option<u32> {
    if c.is_ascii() {
        return c.to_digit(10);
    }
    ZEROS.iter().find_map(|&zero| u32::from(c).checked_sub(u32::from(zero)).filter(|value| *value < 10))
}

/// Reads the number at the start of `chars`, which must be a digit, and says how many characters it took.
///
/// A lone point or comma before exactly three digits groups thousands (`1.234` is 1234), unless a zero leads
/// (`0.125`): the reading that English and German share for one of the two marks, and at worst a number more lenient.
pub(super) fn read(chars: &[char]) -> (Number, usize) {
    let mut digits = String::new();
    // Each separator, with how many digits came before it.
    let mut marks: Vec<(char, usize)> = Vec::new();
    let mut length = 0;
    while let Some(&c) = chars.get(length) {
        let follows = chars.get(length + 1).is_some_and(|next| digit(*next).is_some());
        if let Some(value) = digit(c) {
            digits.extend(char::from_digit(value, 10));
        } else if let Some(mark) = separator(c)
            && follows
        {
            marks.push((mark, digits.len()));
        } else {
            break;
        }
        length += 1;
    }
    let decimals = match marks.as_slice() {
        [] => 0,
        [(_, before)] => {
            let after = digits.len() - before;
            let groups = after == 3 && *before <= 3 && !digits.starts_with('0');
            if groups { 0 } else { after }
        }
        [.., (before_last, _), (last, before)] if before_last != last => digits.len() - before,
        _ => 0,
    };
    let power = i64::try_from(decimals).map_or(i64::MIN, |decimals| -decimals);
    (Number::from_parts(&digits, power), length)
}

fn separator(c: char) -> Option<char> {
    match c {
        '.' | '٫' => Some('.'),
        ',' | '٬' | '،' => Some(','),
        '\'' => Some('\''),
        _ => None,
    }
}

/// A calendar date written as numbers.
pub(super) struct Date {
    pub(super) year: u32,
    /// From 1 to 12.
    pub(super) month: u32,
    pub(super) day: u32,
}

/// Reads a date such as `1879-03-14` at the start of `chars`, and says how many characters it took.
pub(super) fn iso_date(chars: &[char]) -> Option<(Date, usize)> {
    const LENGTH: usize = 10;
    let part = |from: usize, to: usize| chars.get(from..to)?.iter().try_fold(0, |sum, c| Some(sum * 10 + digit(*c)?));
    let (year, month, day) = (part(0, 4)?, part(5, 7)?, part(8, 10)?);
    let dashes = chars.get(4) == Some(&'-') && chars.get(7) == Some(&'-');
    let ends = chars.get(LENGTH).is_none_or(|c| digit(*c).is_none() && *c != '-');
    (dashes && ends && (1..=12).contains(&month) && (1..=31).contains(&day))
        .then_some((Date { year, month, day }, LENGTH))
}

/// The value of a number word in lower case.
pub(super) fn word(lower: &str) -> Option<u32> {
    let value = match lower {
        "one" => 1,
        "two" => 2,
        "three" => 3,
        "four" => 4,
        "five" => 5,
        "six" => 6,
        "seven" => 7,
        "eight" => 8,
        "nine" => 9,
        "ten" => 10,
        "eleven" => 11,
        "twelve" => 12,
        "thirteen" => 13,
        "fourteen" => 14,
        "fifteen" => 15,
        "sixteen" => 16,
        "seventeen" => 17,
        "eighteen" => 18,
        "nineteen" => 19,
        "twenty" => 20,
        "thirty" => 30,
        "forty" => 40,
        "fifty" => 50,
        "sixty" => 60,
        "seventy" => 70,
        "eighty" => 80,
        "ninety" => 90,
        _ => return None,
    };
    Some(value)
}

/// The power of ten of a word that multiplies the number before it.
pub(super) fn scale(lower: &str) -> Option<i64> {
    match lower {
        "hundred" => Some(2),
        "thousand" => Some(3),
        "million" | "millions" | "millionen" | "millones" => Some(6),
        "billion" | "billions" | "milliarde" | "milliarden" | "milliard" | "milliards" => Some(9),
        "trillion" | "trillions" => Some(12),
        _ => None,
    }
}

/// The same for a character directly after the digits.
pub(super) fn dense_scale(c: char) -> Option<i64> {
    match c {
        '百' | '백' => Some(2),
        '千' | '천' => Some(3),
        '万' | '萬' | '만' => Some(4),
        '亿' | '億' | '억' => Some(8),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{digit, iso_date, read};

    fn key(text: &str) -> String {
        let chars: Vec<char> = text.chars().collect();
        let (number, length) = read(&chars);
        assert_eq!(length, chars.len(), "{text}");
        let mut key = String::new();
        number.write_key(&mut key);
        assert_eq!(super::Number::of_key(&key), Some(number));
        key
    }

    #[test]
    fn one_number_has_one_form() {
        for forms in [
            &["1234.5", "1,234.5", "1.234,5", "1'234.5", "1234.50", "١٢٣٤٫٥"][..],
            &["1234567", "1,234,567", "1.234.567", "1'234'567"],
            &["12", "012", "१२", "๑๒", "۱۲"],
            &["0.5", "0,5", "0.500"],
            &["0", "00", "0.0"],
            &["1000", "1,000", "1.000"],
        ] {
            assert!(forms.iter().all(|form| key(form) == key(forms[0])), "{forms:?}");
        }
    }

    #[test]
    fn different_numbers_differ() {
        let all = ["1887", "1889", "18.89", "0.125", "125", "1250", "12.5", "1.25"];
        for (at, a) in all.iter().enumerate() {
            assert!(all[at + 1..].iter().all(|b| key(a) != key(b)), "{a}");
        }
    }

    #[test]
    fn a_separator_belongs_to_a_number_only_before_a_digit() {
        let chars: Vec<char> = "1889, then".chars().collect();
        assert_eq!(read(&chars).1, 4);
    }

    #[test]
    fn dates_are_checked() {
        let date = |text: &str| iso_date(&text.chars().collect::<Vec<_>>()).map(|(date, _)| date.month);
        assert_eq!(date("1879-03-14"), Some(3));
        assert_eq!(date("1879-03-14T00:00"), Some(3));
        for other in ["1879-13-14", "1879-03-00", "1879-03-145", "1879-03-1", "1879/03/14", ""] {
            assert_eq!(date(other), None, "{other}");
        }
    }

    #[test]
    fn letters_are_no_digits() {
        assert!("aé½²Ⅳ十".chars().all(|c| digit(c).is_none()));
    }
}
