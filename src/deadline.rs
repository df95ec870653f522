//! When work has to end: a moment that may move later while the work goes on.
//!
//! Work that several callers wait for ends with the last of their deadlines, and nobody knows at its start who will join.
//! A leaf: knows neither the work nor who waits for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A deadline that can be put off. Cheap to clone; clones share the moment.
///
/// ```
/// use std::time::{Duration, Instant};
///
/// use context_recall::deadline::Deadline;
///
/// let first = Instant::now() + Duration::from_secs(1);
/// let deadline = Deadline::from(first);
/// let seen_by_the_work = deadline.clone();
/// deadline.put_off_to(first + Duration::from_secs(5));
/// deadline.put_off_to(first + Duration::from_secs(2));
/// assert_eq!(seen_by_the_work.at(), first + Duration::from_secs(5));
/// ```
#[derive(Debug, Clone)]
pub struct Deadline(Arc<Moment>);

#[derive(Debug)]
struct Moment {
    first: Instant,
    /// How much later it is by now, in nanoseconds.
    put_off_by: AtomicU64,
}

impl From<Instant> for Deadline {
    fn from(first: Instant) -> Self {
        Self(Arc::new(Moment { first, put_off_by: AtomicU64::new(0) }))
    }
}

impl Deadline {
    /// The moment as it stands now.
    #[must_use]
    pub fn at(&self) -> Instant {
        self.0.first + Duration::from_nanos(self.0.put_off_by.load(Ordering::Relaxed))
    }

    /// Puts the moment off to `later`, for everybody who goes by it. It never moves back.
    pub fn put_off_to(&self, later: Instant) {
        let by = later.saturating_duration_since(self.0.first).as_nanos();
        self.0.put_off_by.fetch_max(u64::try_from(by).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Done once the moment has passed, wherever it has moved to by then.
    pub async fn reached(&self) {
        loop {
            let at = self.at();
            tokio::time::sleep_until(at.into()).await;
            if self.at() <= at {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_waits_for_it_waits_for_where_it_moves() {
        let start = tokio::time::Instant::now();
        let deadline = Deadline::from((start + Duration::from_secs(10)).into_std());
        let waiting = tokio::spawn({
            let deadline = deadline.clone();
            async move { deadline.reached().await }
        });
        tokio::time::sleep(Duration::from_secs(5)).await;
        deadline.put_off_to((start + Duration::from_secs(15)).into_std());
        waiting.await.unwrap();
        assert_eq!(start.elapsed().as_secs(), 15);
    }
}
