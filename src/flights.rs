//! Equal work at once is done once, for all who wait for it.
//!
//! The work goes on while anybody waits: whoever started it may leave without failing the others, and it is dropped with
//! the last. What it comes to is given to all who wait, and to nobody who comes after. A leaf: knows neither the work nor
//! who asks.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared, WeakShared};

use crate::deadline::Deadline;

/// The work that is going on, by what it is. Cheap to clone; clones share the work.
pub struct Flights<K, T: Clone>(Arc<Mutex<Board<K, T>>>);

type Work<T> = BoxFuture<'static, T>;

struct Board<K, T: Clone> {
    going_on: HashMap<K, Flight<T>>,
    next_number: u64,
}

struct Flight<T: Clone> {
    /// Tells it from another of the same key that was begun after it.
    number: u64,
    /// Held by those who wait and by nobody else, so that the work ends with the last of them.
    outcome: WeakShared<Work<T>>,
    deadline: Deadline,
}

/// The caller's own deadline passed; the work goes on for others, who have more time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the deadline passed while the work went on for others")]
pub struct Overtaken;

/// How often somebody whose deadline has passed looks whether the work, which has no later one, is ending.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

impl<K, T: Clone> Clone for Flights<K, T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K, T: Clone> Default for Flights<K, T> {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Board { going_on: HashMap::new(), next_number: 0 })))
    }
}

impl<K, T> Flights<K, T>
where
    K: Eq + Hash + Clone + Send + 'static,
    T: Clone + Send + Sync + 'static,
{
    /// Waits for the work called `key`: what is going on under that name, or `begin`. The deadline handed to `begin` is
    /// the latest of all who wait. The work has to end by it on its own.
    ///
    /// # Errors
    ///
    /// [`Overtaken`] at this caller's `deadline`, when the work goes on for somebody with a later one.
    pub async fn join(
        &self,
        key: K,
        deadline: Instant,
        begin: impl FnOnce(Deadline) -> Work<T>,
    ) -> Result<T, Overtaken> {
        let (outcome, until) = self.board(key, deadline, begin);
        tokio::select! {
            biased;
            outcome = outcome => Ok(outcome),
            () = left_behind(deadline, &until) => Err(Overtaken),
        }
    }

    fn board(&self, key: K, deadline: Instant, begin: impl FnOnce(Deadline) -> Work<T>) -> (Shared<Work<T>>, Deadline) {
        let mut board = lock(&self.0);
        if let Some(flight) = board.going_on.get(&key)
            && let Some(outcome) = flight.outcome.upgrade()
        {
            flight.deadline.put_off_to(deadline);
            return (outcome, flight.deadline.clone());
        }
        let number = board.next_number;
        board.next_number += 1;
        let until = Deadline::from(deadline);
        let over = Over { board: Arc::clone(&self.0), key: key.clone(), number };
        let work = begin(until.clone());
        let outcome = async move {
            let outcome = work.await;
            // Before anybody hears of it: who asks after that asks anew.
            drop(over);
            outcome
        };
        let outcome = outcome.boxed().shared();
        if let Some(weak) = outcome.downgrade() {
            board.going_on.insert(key, Flight { number, outcome: weak, deadline: until.clone() });
        }
        (outcome, until)
    }

    /// How much work is going on.
    #[must_use]
    pub fn len(&self) -> usize {
        lock(&self.0).going_on.len()
    }

    /// Is nothing going on?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Done once the caller's deadline has passed and the work has a later one. Work without a later one is about to end by
/// itself, and knows better why.
async fn left_behind(own: Instant, works: &Deadline) {
    tokio::time::sleep_until(own.into()).await;
    while works.at() <= own {
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// Takes the work off the board when it is over, however it ended.
struct Over<K: Eq + Hash, T: Clone> {
    board: Arc<Mutex<Board<K, T>>>,
    key: K,
    number: u64,
}

impl<K: Eq + Hash, T: Clone> Drop for Over<K, T> {
    fn drop(&mut self) {
        let mut board = lock(&self.board);
        if board.going_on.get(&self.key).is_some_and(|flight| flight.number == self.number) {
            board.going_on.remove(&self.key);
        }
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::Notify;
    use tokio::time;

    use super::*;

    const KEY: &str = "work";

    /// Work that can be begun, held, let go and dropped, and counts all of it.
    #[derive(Clone, Default)]
    struct Counted(Arc<Counts>);

    #[derive(Default)]
    struct Counts {
        flights: Flights<&'static str, usize>,
        begun: AtomicUsize,
        dropped: AtomicUsize,
        go: Notify,
    }

    struct CountDrop(Arc<Counts>);

    impl Drop for CountDrop {
        fn drop(&mut self) {
            self.0.dropped.fetch_add(1, Ordering::SeqCst);
        }
    }

    impl Counted {
        async fn join(self, within: Duration) -> Result<usize, Overtaken> {
            let counts = Arc::clone(&self.0);
            let begin = move |deadline: Deadline| -> Work<usize> {
                let number = counts.begun.fetch_add(1, Ordering::SeqCst) + 1;
                let dropped = CountDrop(Arc::clone(&counts));
                Box::pin(async move {
                    let _dropped = dropped;
                    tokio::select! {
                        () = counts.go.notified() => number,
                        () = deadline.reached() => 0,
                    }
                })
            };
            self.0.flights.join(KEY, (time::Instant::now() + within).into_std(), begin).await
        }

        fn spawn(&self, within: Duration) -> tokio::task::JoinHandle<Result<usize, Overtaken>> {
            tokio::spawn(self.clone().join(within))
        }

        fn begun_and_dropped(&self) -> (usize, usize) {
            (self.0.begun.load(Ordering::SeqCst), self.0.dropped.load(Ordering::SeqCst))
        }
    }

    const LONG: Duration = Duration::from_secs(60);

    async fn a_moment() {
        time::sleep(Duration::from_millis(1)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_equal_is_done_once_and_later_anew() {
        let work = Counted::default();
        let waiting: Vec<_> = (0..50).map(|_| work.spawn(LONG)).collect();
        a_moment().await;
        assert_eq!((work.begun_and_dropped(), work.0.flights.len()), ((1, 0), 1));
        work.0.go.notify_one();
        for caller in waiting {
            assert_eq!(caller.await.unwrap(), Ok(1));
        }
        assert!(work.0.flights.is_empty());
        let later = work.spawn(LONG);
        a_moment().await;
        work.0.go.notify_one();
        assert_eq!(later.await.unwrap(), Ok(2));
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_may_leave_and_the_last_takes_the_work_along() {
        let work = Counted::default();
        let waiting: Vec<_> = (0..3).map(|_| work.spawn(LONG)).collect();
        a_moment().await;
        waiting[0].abort();
        a_moment().await;
        assert_eq!(work.begun_and_dropped(), (1, 0));
        work.0.go.notify_one();
        assert_eq!((waiting.into_iter().next_back().unwrap().await.unwrap(), work.begun_and_dropped().0), (Ok(1), 1));

        let waiting: Vec<_> = (0..3).map(|_| work.spawn(LONG)).collect();
        a_moment().await;
        waiting.iter().for_each(tokio::task::JoinHandle::abort);
        a_moment().await;
        assert_eq!(work.begun_and_dropped(), (2, 2));
        assert!(work.0.flights.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn every_caller_has_a_deadline_of_its_own_and_the_work_the_latest() {
        let work = Counted::default();
        let start = time::Instant::now();
        let short = work.spawn(Duration::from_secs(10));
        a_moment().await;
        let (long, middle) = (work.spawn(Duration::from_secs(30)), work.spawn(Duration::from_secs(20)));
        assert_eq!(short.await.unwrap(), Err(Overtaken));
        assert_eq!(start.elapsed().as_secs(), 10);
        assert_eq!(middle.await.unwrap(), Err(Overtaken));
        assert_eq!(start.elapsed().as_secs(), 20);
        // The last hears of the deadline from the work itself.
        assert_eq!(long.await.unwrap(), Ok(0));
        assert_eq!((start.elapsed().as_secs(), work.begun_and_dropped()), (30, (1, 1)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_panic_leaves_nothing_behind() {
        let flights: Flights<&str, ()> = Flights::default();
        let joining = flights.clone();
        let panicked = tokio::spawn(async move {
            joining.join(KEY, Instant::now() + LONG, |_| Box::pin(async { panic!("a bug") })).await
        });
        assert!(panicked.await.unwrap_err().is_panic());
        assert!(flights.is_empty());
        assert_eq!(flights.join(KEY, Instant::now() + LONG, |_| Box::pin(async {})).await, Ok(()));
    }
}
