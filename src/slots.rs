//! A bounded number of places to work in and a bounded queue before them.
//!
//! Used for calls to a judge and for computation. A leaf but for [`Deadline`]: knows neither what the work is nor who asks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::deadline::Deadline;

/// Places to work in. Cheap to clone; clones share the places.
#[derive(Debug, Clone)]
pub struct Slots(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    free: Arc<Semaphore>,
    places: usize,
    waiting: AtomicUsize,
    queue: usize,
    /// Moving average of how long a place is held, in microseconds; 0 until the first one was given back.
    held_us: AtomicU64,
    /// Is that average a guide to how long the next one will be held?
    forecasts: bool,
}

/// A place, given back when dropped.
#[derive(Debug)]
pub struct Slot {
    _permit: OwnedSemaphorePermit,
    since: Instant,
    shared: Arc<Shared>,
}

/// There is no place, and waiting for one makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct Full {
    /// Why, for a person.
    pub detail: String,
    /// When another try may find a place.
    pub retry_after: Duration,
}

impl Slots {
    /// `places` to work in at once, and at most `queue` callers who wait for one, for work that may take any time.
    #[must_use]
    pub fn new(places: usize, queue: usize) -> Self {
        Self::of(places, queue, false)
    }

    /// The same for work that mostly takes about as long as it took lately, such as calls to one backend: whoever would
    /// wait in vain is told so at once.
    #[must_use]
    pub fn forecasting(places: usize, queue: usize) -> Self {
        Self::of(places, queue, true)
    }

    fn of(places: usize, queue: usize, forecasts: bool) -> Self {
        Self(Arc::new(Shared {
            free: Arc::new(Semaphore::new(places.min(Semaphore::MAX_PERMITS))),
            places: places.max(1),
            waiting: AtomicUsize::new(0),
            queue,
            held_us: AtomicU64::new(0),
            forecasts,
        }))
    }

    /// Waits for a place, first come first served.
    ///
    /// # Errors
    ///
    /// [`Full`] at once when the queue is full or when, going by a forecast, the wait would outlast `deadline`; [`Full`] at
    /// `deadline` when no place became free before.
    pub async fn enter(&self, deadline: &Deadline) -> Result<Slot, Full> {
        let shared = &self.0;
        if let Some(slot) = self.try_enter() {
            return Ok(slot);
        }
        let ahead = shared.waiting.fetch_add(1, Ordering::Relaxed);
        let _waiter = Waiter(shared);
        let wait = shared.expected_wait(ahead);
        if ahead >= shared.queue {
            let detail = format!("{ahead} requests are waiting already, which is all that the queue holds");
            return Err(Full::after(wait, detail));
        }
        if Instant::now() + wait > deadline.at() {
            let detail =
                format!("a place would be free in about {} s, after the request's deadline", wait.as_secs().max(1));
            return Err(Full::after(wait, detail));
        }
        tokio::select! {
            biased;
            permit = Arc::clone(&shared.free).acquire_owned() => {
                // The semaphore is never closed.
                permit.map(|permit| shared.slot(permit)).map_err(|error| Full::after(wait, error.to_string()))
            }
            () = deadline.reached() => {
                Err(Full::after(wait, "no place became free before the request's deadline".to_owned()))
            }
        }
    }

    /// A place if one is free at once and nobody waits for it.
    #[must_use]
    pub fn try_enter(&self) -> Option<Slot> {
        // A place that is given back goes to whoever waits first; only what nobody waits for is free.
        Arc::clone(&self.0.free).try_acquire_owned().ok().map(|permit| self.0.slot(permit))
    }
}

impl Full {
    fn after(wait: Duration, detail: String) -> Self {
        Self { detail, retry_after: wait.max(Duration::from_secs(1)) }
    }
}

impl Shared {
    fn slot(self: &Arc<Self>, permit: OwnedSemaphorePermit) -> Slot {
        Slot { _permit: permit, since: Instant::now(), shared: Arc::clone(self) }
    }

    fn expected_wait(&self, ahead: usize) -> Duration {
        if !self.forecasts {
            return Duration::ZERO;
        }
        let rounds = u32::try_from(ahead / self.places + 1).unwrap_or(u32::MAX);
        Duration::from_micros(self.held_us.load(Ordering::Relaxed)).saturating_mul(rounds)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let held = u64::try_from(self.since.elapsed().as_micros()).unwrap_or(u64::MAX);
        // An update lost to a race costs one sample of an average.
        let before = self.shared.held_us.load(Ordering::Relaxed);
        let after = if before == 0 { held } else { (before / 4).saturating_mul(3).saturating_add(held / 4) };
        self.shared.held_us.store(after, Ordering::Relaxed);
    }
}

/// Counts a caller as waiting until it has a place or gives up, whichever way it ends.
struct Waiter<'a>(&'a Shared);

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn soon(ms: u64) -> Deadline {
        (Instant::now() + Duration::from_millis(ms)).into()
    }

    #[tokio::test]
    async fn a_place_is_given_back_when_dropped() {
        let slots = Slots::new(1, 0);
        let held = slots.enter(&soon(1000)).await.unwrap();
        assert!(slots.enter(&soon(1000)).await.is_err(), "no place and no queue");
        drop(held);
        assert!(slots.enter(&soon(1000)).await.is_ok());
    }

    #[tokio::test]
    async fn those_who_wait_are_served_and_counted() {
        let slots = Slots::new(1, 1);
        let held = slots.enter(&soon(5000)).await.unwrap();
        let second = tokio::spawn({
            let slots = slots.clone();
            async move { slots.enter(&soon(5000)).await.is_ok() }
        });
        tokio::task::yield_now().await;
        let full = slots.enter(&soon(5000)).await.unwrap_err();
        assert!(full.detail.starts_with("1 requests are waiting"), "{full}");
        drop(held);
        assert!(second.await.unwrap());
        assert_eq!(slots.0.waiting.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn a_wait_past_the_deadline_is_refused_at_once() {
        let slots = Slots::forecasting(1, 10);
        slots.0.held_us.store(60_000_000, Ordering::Relaxed);
        let _held = slots.enter(&soon(1000)).await.unwrap();
        let asked = Instant::now();
        let full = slots.enter(&soon(5000)).await.unwrap_err();
        assert!(asked.elapsed() < Duration::from_secs(4));
        assert_eq!(full.retry_after, Duration::from_secs(60));
    }

    #[tokio::test]
    async fn who_gives_up_waiting_is_not_counted_any_longer() {
        let slots = Slots::new(1, 1);
        let _held = slots.enter(&soon(1000)).await.unwrap();
        assert!(slots.enter(&soon(20)).await.is_err());
        assert_eq!(slots.0.waiting.load(Ordering::Relaxed), 0);
    }
}
