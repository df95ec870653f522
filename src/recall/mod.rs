//! The measure: what context recall *is*, as plain data and pure functions.
//!
//! Every measure ends in [`Units`], a list that cannot be empty of things that were either recalled or not, and every
//! score is read off that very list by [`Units::recall`]. So a score is never NaN, never outside 0 to 1, and never
//! disagrees with the verdicts beside it.
//!
//! This room knows no HTTP, no client, no clock and no environment. What it needs from outside stands in
//! [`judge`] and [`memory`] as ports; [`panel`] brings the two together.

pub mod claims;
pub mod evidence;
pub mod id;
pub mod judge;
pub mod llm;
pub mod memory;
pub mod nonllm;
pub mod panel;
pub mod similarity;
pub mod summary;

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};

/// Something that counts as recalled or not: one claim, one reference context or one reference id with its verdict.
pub trait Unit {
    /// Does this unit count in the numerator?
    fn is_recalled(&self) -> bool;
}

/// A list that holds at least one element, so that a share of it is always a number.
///
/// ```
/// use context_recall::recall::Units;
///
/// assert!(Units::<u8>::new(vec![]).is_none());
/// assert_eq!(Units::new(vec!['a', 'b']).map(|units| units.len().get()), Some(2));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Units<T>(Vec<T>);

impl<T> Units<T> {
    /// Wraps a list; `None` when it is empty.
    #[must_use]
    pub fn new(units: Vec<T>) -> Option<Self> {
        (!units.is_empty()).then_some(Self(units))
    }

    /// How many there are: the denominator.
    #[must_use]
    pub fn len(&self) -> NonZeroUsize {
        NonZeroUsize::new(self.0.len()).unwrap_or(NonZeroUsize::MIN)
    }

    /// The elements, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.0.iter()
    }

    /// The elements as a slice.
    #[must_use]
    pub fn as_slice(&self) -> &[T] {
        &self.0
    }

    /// The elements as a plain list.
    #[must_use]
    pub fn into_vec(self) -> Vec<T> {
        self.0
    }

    /// Turns every element into another; as many come out as went in.
    #[must_use]
    pub fn map<U>(self, turn: impl FnMut(T) -> U) -> Units<U> {
        Units(self.0.into_iter().map(turn).collect())
    }

    /// The recall at each cut-off, in the order asked, when a unit counts from a certain rank on or never.
    ///
    /// The ranks are sorted once: counting the units anew for each cut-off would be quadratic in a request that lists as
    /// many cut-offs as units.
    pub fn recall_at(&self, rank_of: impl Fn(&T) -> Option<NonZeroUsize>, cut_offs: &[NonZeroUsize]) -> Vec<RecallAt> {
        if cut_offs.is_empty() {
            return Vec::new();
        }
        let mut ranks: Vec<NonZeroUsize> = self.iter().filter_map(rank_of).collect();
        ranks.sort_unstable();
        let recalled = |k: NonZeroUsize| ranks.partition_point(|&rank| rank <= k);
        let at = |&k: &NonZeroUsize| RecallAt { k, recall: Recall { recalled: recalled(k), total: self.len() } };
        cut_offs.iter().map(at).collect()
    }
}

impl<T: Unit> Units<T> {
    /// The recall of this very list.
    #[must_use]
    pub fn recall(&self) -> Recall {
        Recall { recalled: self.0.iter().filter(|unit| unit.is_recalled()).count(), total: self.len() }
    }
}

/// The rank of the entry at `position`: counted from 1, not 0.
fn rank(position: usize) -> NonZeroUsize {
    NonZeroUsize::MIN.saturating_add(position)
}

/// Numerator and denominator of a recall.
///
/// The only way to one is counting a [`Units`] list, so `recalled <= total` and `total >= 1` hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recall {
    recalled: usize,
    total: NonZeroUsize,
}

impl Recall {
    /// How many units were recalled: the numerator.
    #[must_use]
    pub fn recalled(self) -> usize {
        self.recalled
    }

    /// How many units there are: the denominator, at least 1.
    #[must_use]
    pub fn total(self) -> usize {
        self.total.get()
    }

    /// `recalled / total` as an IEEE double, from 0.0 to 1.0.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
    pub fn score(self) -> f64 {
        self.recalled as f64 / self.total.get() as f64
    }
}

/// The recall that a list cut after its first `k` entries would have reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecallAt {
    /// The cut-off, at least 1.
    pub k: NonZeroUsize,
    /// The recall within the first `k` entries.
    pub recall: Recall,
}

/// A flag by which whoever waits for a long computation tells it to end.
#[derive(Debug, Default)]
pub struct Stop(AtomicBool);

impl Stop {
    /// Asks the computation to end soon.
    pub fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Has anybody asked? Cheap enough for an inner loop, once every few thousand steps.
    ///
    /// # Errors
    ///
    /// [`Stopped`] once [`Self::raise`] was called.
    pub fn check(&self) -> Result<(), Stopped> {
        if self.0.load(Ordering::Relaxed) { Err(Stopped) } else { Ok(()) }
    }
}

/// A computation ended early because its [`Stop`] was raised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("stopped before it was done")]
pub struct Stopped;
