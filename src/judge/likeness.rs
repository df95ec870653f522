//! Which contexts are most like some claims: by the words they share, in any script.
//!
//! A guess at where to look first, never a verdict.

use std::collections::{HashMap, HashSet};

use super::embedded::text::{self, Kind, Token};
use super::embedded::words::is_light;
use super::prompt::Passage;
use crate::recall::judge::Question;

/// Orders `passages` by likeness to `claims` (numbers, from 1): indexes into the list, the most alike first and, among
/// those alike, by rank.
///
/// The likeness is the sum, over the claims, of the share of a claim's words that the context holds. Linear in the
/// texts; lets others have the thread between contexts.
pub(super) async fn rank(question: &Question, claims: &[usize], passages: &[Passage<'_>]) -> Vec<usize> {
    let weights = weights(question, claims);
    let mut ranked = Vec::with_capacity(passages.len());
    for (index, (_, text)) in passages.iter().enumerate() {
        let shared: f64 = units(text).iter().filter_map(|unit| weights.get(unit)).sum();
        ranked.push((shared, index));
        tokio::task::yield_now().await;
    }
    ranked.sort_by(|(a, at), (b, bt)| b.total_cmp(a).then(at.cmp(bt)));
    ranked.into_iter().map(|(_, index)| index).collect()
}

/// What finding each unit is worth: its share of every claim that holds it.
fn weights(question: &Question, claims: &[usize]) -> HashMap<String, f64> {
    let mut weights = HashMap::new();
    for claim in claims.iter().filter_map(|number| question.claims.as_slice().get(number.checked_sub(1)?)) {
        let units = units(claim);
        #[expect(clippy::cast_precision_loss, reason = "a claim has far fewer than 2^53 words")]
        let share = 1.0 / units.len().max(1) as f64;
        for unit in units {
            *weights.entry(unit).or_insert(0.0) += share;
        }
    }
    weights
}

/// The different words, numbers and pairs of characters in a text, without those that say little.
fn units(text: &str) -> HashSet<String> {
    let reading = text::read(text);
    let says_little = |token: &&Token| {
        token.kind == Kind::Negator || token.kind == Kind::Word && is_light(&reading.written(token).to_lowercase())
    };
    reading.tokens.iter().filter(|token| !says_little(token)).map(|token| token.key.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recall::Units;

    async fn ranked(claims: &[&str], contexts: &[&str]) -> Vec<usize> {
        let question = Question {
            user_input: String::new(),
            contexts: contexts.iter().map(|&text| text.to_owned()).collect(),
            claims: Units::new(claims.iter().map(|&text| text.to_owned()).collect()).unwrap(),
        };
        let numbers: Vec<usize> = (1..=claims.len()).collect();
        rank(&question, &numbers, &question.passages().collect::<Vec<_>>()).await
    }

    #[tokio::test]
    async fn what_shares_words_goes_first_and_rank_decides_the_rest() {
        let contexts =
            ["Lyon is a city.", "Gustave Eiffel built towers.", "Nothing here.", "The tower opened in 1889."];
        assert_eq!(ranked(&["Eiffel's tower opened in 1889."], &contexts).await, [3, 1, 0, 2]);
        assert_eq!(ranked(&["塔は1889年に開業した。"], &["リヨンは都市です。", "塔の開業は1889年。"]).await, [1, 0]);
        assert_eq!(ranked(&["?"], &["a", "b", "c"]).await, [0, 1, 2]);
    }
}
