//! What a batch says as a whole: means with their bounds and interval, and the spread of the scores.
//!
//! Failed samples are counted, never scored and never forgotten: a mean stands beside the bounds that it would have had,
//! had every failed sample scored 0, or 1. Whatever has no value (a mean of nothing, an interval of one) is `None`.
//! The result does not depend on the order in which samples end.

use std::collections::BTreeMap;

use super::Recall;

/// Counts samples as they end. Its size grows with the number of different scores, not with the number of samples.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// Samples by score. Scores are not negative, so their bits are in the order of their values.
    scores: BTreeMap<u64, u64>,
    scored: u64,
    failed: u64,
    recalled: u64,
    total: u64,
}

/// What a batch says as a whole.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// Samples that were read: `scored + failed`.
    pub total: u64,
    /// Samples with a score.
    pub scored: u64,
    /// Samples without one.
    pub failed: u64,
    /// Mean of the scores (macro average), from 0 to 1.
    pub mean: Option<f64>,
    /// All recalled units over all units (micro average), from 0 to 1.
    pub pooled: Option<f64>,
    /// The mean if every failed sample had scored 0, and if it had scored 1.
    pub bounds: Option<[f64; 2]>,
    /// A 95 % confidence interval of the mean; see [`Tally::summary`].
    pub ci95: Option<[f64; 2]>,
    /// Minimum, 10 %, 50 % and 90 % quantile, and maximum of the scores.
    pub spread: Option<[f64; 5]>,
}

/// Resamples drawn for an interval.
const RESAMPLES: usize = 1000;

/// Up to so many scores the interval is resampled; beyond, drawing would take longer than scoring, and the two ways agree
/// to the third significant digit.
const MOST_RESAMPLED: u64 = 50_000;

/// The 97.5 % quantile of the standard normal distribution.
const Z: f64 = 1.959_963_984_540_054;

impl Tally {
    /// Counts a sample that was scored.
    pub fn score(&mut self, recall: Recall) {
        *self.scores.entry(recall.score().to_bits()).or_default() += 1;
        self.scored += 1;
        self.recalled += recall.recalled() as u64;
        self.total += recall.total() as u64;
    }

    /// Counts a sample that was not.
    pub fn fail(&mut self) {
        self.failed += 1;
    }

    /// What all that was counted amounts to.
    ///
    /// The interval is the percentile bootstrap (Efron 1979): 1,000 resamples of the ascending scores, each of as many
    /// scores as there are, drawn by SplitMix64 from seed 0 (`index = (draw · n) >> 64`); its ends are the 2.5 % and
    /// 97.5 % quantiles of the resamples' means. Beyond 50,000 scores it is the normal approximation
    /// `mean ± 1.96 · s / √n`, cut to 0–1. Quantiles interpolate linearly between the ranks `(n − 1) · q`, as NumPy does.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
    pub fn summary(&self) -> Summary {
        let total = self.scored + self.failed;
        let of = |sum: f64, count: u64| (count > 0).then(|| sum / count as f64);
        let sum: f64 = self.scores.iter().map(|(bits, count)| f64::from_bits(*bits) * *count as f64).sum::<f64>() + 0.0;
        let mean = of(sum, self.scored);
        Summary {
            total,
            scored: self.scored,
            failed: self.failed,
            mean,
            pooled: of(self.recalled as f64, self.total),
            bounds: of(sum, total).zip(of(sum + self.failed as f64, total)).map(|(low, high)| [low, high.min(1.0)]),
            ci95: mean.filter(|_| self.scored > 1).map(|mean| self.interval(mean)),
            spread: (self.scored > 0).then(|| {
                let at = |q| quantile(q, self.scored, |rank| self.at(rank));
                [at(0.0), at(0.1), at(0.5), at(0.9), at(1.0)]
            }),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
    fn interval(&self, mean: f64) -> [f64; 2] {
        let n = self.scored;
        if n > MOST_RESAMPLED {
            let squares: f64 =
                self.scores.iter().map(|(bits, count)| (f64::from_bits(*bits) - mean).powi(2) * *count as f64).sum();
            let half = Z * (squares / (n - 1) as f64 / n as f64).sqrt();
            return [(mean - half).max(0.0), (mean + half).min(1.0)];
        }
        let scores: Vec<f64> = self
            .scores
            .iter()
            .flat_map(|(bits, count)| std::iter::repeat_n(f64::from_bits(*bits), usize::try_from(*count).unwrap_or(0)))
            .collect();
        let mut draws = SplitMix64(0);
        let mut means: Vec<f64> = (0..RESAMPLES)
            .map(|_| (0..n).map(|_| scores.get(draws.below(n)).copied().unwrap_or(mean)).sum::<f64>() / n as f64)
            .collect();
        means.sort_unstable_by(f64::total_cmp);
        let at = |q| quantile(q, RESAMPLES as u64, |rank| means.get(rank).copied().unwrap_or(mean));
        [at(0.025), at(0.975)]
    }

    /// The score at a rank, counted from 0 in ascending order.
    fn at(&self, rank: usize) -> f64 {
        let mut left = rank as u64;
        for (bits, count) in &self.scores {
            match left.checked_sub(*count) {
                Some(rest) => left = rest,
                None => return f64::from_bits(*bits),
            }
        }
        1.0
    }
}

/// The quantile `q` of `n` ascending values, between neighbours in proportion.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rank is not negative and far below 2^53"
)]
fn quantile(q: f64, n: u64, at: impl Fn(usize) -> f64) -> f64 {
    let place = (n - 1) as f64 * q;
    let (below, above) = (place.floor(), place.ceil());
    let (low, high) = (at(below as usize), at(above as usize));
    low + (high - low) * (place - below)
}

/// Steele, Lea, Flood: Fast splittable pseudorandom number generators (2014). Ten lines in any language, so that an
/// interval can be drawn again elsewhere.
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, n: u64) -> usize {
        usize::try_from((u128::from(self.next()) * u128::from(n)) >> 64).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use proptest::prelude::*;

    use super::*;

    fn recall(recalled: usize, total: usize) -> Recall {
        Recall { recalled, total: NonZeroUsize::new(total).unwrap() }
    }

    fn tally(scored: &[(usize, usize)], failed: usize) -> Tally {
        let mut tally = Tally::default();
        scored.iter().for_each(|(recalled, total)| tally.score(recall(*recalled, *total)));
        (0..failed).for_each(|_| tally.fail());
        tally
    }

    #[test]
    fn nothing_has_no_mean_and_one_has_no_interval() {
        let nothing = tally(&[], 0).summary();
        assert_eq!((nothing.mean, nothing.pooled, nothing.bounds, nothing.ci95), (None, None, None, None));
        let failed = tally(&[], 3).summary();
        assert_eq!((failed.total, failed.failed, failed.mean), (3, 3, None));
        assert_eq!(failed.bounds, Some([0.0, 1.0]));
        let one = tally(&[(1, 4)], 0).summary();
        assert_eq!((one.mean, one.bounds, one.ci95), (Some(0.25), Some([0.25, 0.25]), None));
        assert_eq!(one.spread, Some([0.25; 5]));
    }

    #[test]
    fn the_figures_are_those_of_an_independent_computation() {
        // Python: statistics, numpy.quantile, and SplitMix64 written out (tests/peers/summary.py).
        let summary = tally(&[(0, 2), (1, 2), (2, 2), (1, 4), (3, 3)], 2).summary();
        assert_eq!(summary.mean, Some(0.55));
        assert_eq!(summary.pooled, Some(7.0 / 13.0));
        assert_eq!(summary.bounds, Some([2.75 / 7.0, 4.75 / 7.0]));
        assert_eq!(summary.spread, Some([0.0, 0.1, 0.5, 1.0, 1.0]));
        assert_eq!(summary.ci95, Some([0.2, 0.9]));
    }

    #[test]
    fn a_large_batch_takes_the_normal_interval() {
        let mut tally = Tally::default();
        for place in 0..100_000 {
            tally.score(recall(place % 2, 1));
        }
        let [low, high] = tally.summary().ci95.unwrap();
        assert!((low - 0.496_901).abs() < 1e-6 && (high - 0.503_099).abs() < 1e-6, "{low} {high}");
    }

    #[test]
    fn splitmix_is_splitmix() {
        // The published first outputs for seed 1234567.
        let mut draws = SplitMix64(1_234_567);
        assert_eq!([draws.next(), draws.next()], [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
    }

    proptest! {
        #[test]
        fn figures_stay_in_order_whatever_the_batch(
            scored in prop::collection::vec((0_usize..5, 4_usize..7), 0..40),
            failed in 0_usize..20,
        ) {
            let summary = tally(&scored, failed).summary();
            let mut turned = scored.clone();
            turned.reverse();
            prop_assert_eq!(summary, tally(&turned, failed).summary());
            prop_assert_eq!(summary.total, summary.scored + summary.failed);
            if let (Some(mean), Some([low, high]), Some([min, p10, p50, p90, max])) = (summary.mean, summary.bounds, summary.spread) {
                let slack = 1e-12;
                prop_assert!(min <= p10 && p10 <= p50 && p50 <= p90 && p90 <= max);
                prop_assert!(min <= mean + slack && mean <= max + slack);
                prop_assert!(low <= mean + slack && mean <= high + slack && low >= 0.0 && high <= 1.0);
                if let Some([from, to]) = summary.ci95 {
                    prop_assert!(min - slack <= from && from <= to && to <= max + slack);
                }
            }
        }
    }
}
