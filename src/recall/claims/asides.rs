//! Asides in brackets: the sentence around one goes on behind it.

/// The longest aside in brackets, in bytes, that is kept in one piece with the sentence around it.
const LONGEST_ASIDE: usize = 400;

/// The brackets of a line that close again, to know which stops stand inside one.
pub(super) struct Asides {
    /// Opening and closing place of each pair, by opening place.
    pairs: Vec<(usize, usize)>,
    next: usize,
    open: Vec<(usize, usize)>,
}

impl Asides {
    pub(super) fn new(line: &str) -> Self {
        let mut pairs = Vec::new();
        let mut open: Vec<(char, usize)> = Vec::new();
        for (at, c) in line.char_indices() {
            if let Some(close) = closing(c) {
                open.push((close, at));
            } else if let Some(&(close, from)) = open.last()
                && close == c
            {
                open.pop();
                if at - from <= LONGEST_ASIDE {
                    pairs.push((from, at));
                }
            }
        }
        pairs.sort_unstable();
        Self { pairs, next: 0, open: Vec::new() }
    }

    /// Does `at` lie inside brackets that were opened after `word`, the first word of the sentence? Then the sentence
    /// around them goes on. To be asked with ascending places.
    pub(super) fn hold(&mut self, at: usize, word: usize) -> bool {
        while let Some(&pair) = self.pairs.get(self.next).filter(|pair| pair.0 < at) {
            drop_closed(&mut self.open, pair.0);
            self.open.push(pair);
            self.next += 1;
        }
        drop_closed(&mut self.open, at);
        self.open.last().is_some_and(|&(from, _)| from > word)
    }
}

/// Drops from the top of `open` the pairs that close before `at`.
fn drop_closed(open: &mut Vec<(usize, usize)>, at: usize) {
    while open.last().is_some_and(|&(_, close)| close < at) {
        open.pop();
    }
}

/// Brackets and title marks. Quotation marks are left out: what is quoted may be many sentences.
fn closing(open: char) -> Option<char> {
    Some(match open {
        '(' => ')',
        '[' => ']',
        '{' => '}',
        '（' => '）',
        '［' => '］',
        '【' => '】',
        '〔' => '〕',
        '《' => '》',
        '〈' => '〉',
        '『' => '』',
        _ => return None,
    })
}
