//! Where long computation leaves the async threads: bounded, stoppable, with a deadline.
//!
//! A leaf but for [`crate::slots`] and the [`Stop`] flag; knows neither judges nor HTTP.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::recall::Stop;
use crate::slots::{Full, Slots};

/// A bounded pool for computation: as many at once as there are cores.
#[derive(Debug, Clone)]
pub struct Compute(Slots);

/// Why a computation gave no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Uncomputed {
    /// Too much is waiting already.
    #[error(transparent)]
    Full(#[from] Full),
    /// The deadline passed while it ran; it was told to stop.
    #[error("the deadline passed")]
    Deadline,
}

impl Compute {
    /// A pool with one place per core and room for `queue` that wait.
    #[must_use]
    pub fn new(queue: usize) -> Self {
        Self(Slots::new(std::thread::available_parallelism().map_or(1, usize::from), queue))
    }

    /// Runs `work` on a thread of its own and gives its result. When `deadline` passes or the returned future is
    /// dropped, the [`Stop`] handed to `work` is raised; its place stays taken until it has really ended.
    ///
    /// # Errors
    ///
    /// [`Uncomputed`] when there is no place or no time.
    ///
    /// # Panics
    ///
    /// Passes a panic of `work` on.
    pub async fn run<T: Send + 'static>(
        &self,
        deadline: Instant,
        work: impl FnOnce(&Stop) -> T + Send + 'static,
    ) -> Result<T, Uncomputed> {
        let slot = self.0.enter(&deadline.into()).await?;
        let stop = Arc::new(Stop::default());
        let _stop_when_dropped = RaiseOnDrop(Arc::clone(&stop));
        let span = tracing::Span::current();
        let running = tokio::task::spawn_blocking(move || {
            let _within = span.entered();
            let _slot = slot;
            work(&stop)
        });
        match tokio::time::timeout_at(deadline.into(), running).await {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(failed)) => match failed.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // Only a runtime that shuts down cancels blocking work.
                Err(_) => Err(Uncomputed::Full(Full {
                    detail: "the service is shutting down".to_owned(),
                    retry_after: Duration::from_secs(1),
                })),
            },
            Err(_) => Err(Uncomputed::Deadline),
        }
    }
}

struct RaiseOnDrop(Arc<Stop>);

impl Drop for RaiseOnDrop {
    fn drop(&mut self) {
        self.0.raise();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spin(stop: &Stop) -> &'static str {
        while stop.check().is_ok() {
            std::thread::yield_now();
        }
        "stopped"
    }

    #[tokio::test]
    async fn work_is_told_to_stop_at_its_deadline() {
        let compute = Compute::new(1);
        let (ended, has_ended) = tokio::sync::oneshot::channel();
        let soon = Instant::now() + Duration::from_millis(30);
        let outcome = compute.run(soon, move |stop| ended.send(spin(stop)).is_ok()).await;
        assert_eq!(outcome, Err(Uncomputed::Deadline));
        assert_eq!(has_ended.await, Ok("stopped"));
    }

    #[tokio::test]
    async fn work_is_told_to_stop_when_nobody_waits_any_longer() {
        let compute = Compute::new(1);
        let (ended, has_ended) = tokio::sync::oneshot::channel();
        let later = Instant::now() + Duration::from_secs(60);
        let running = tokio::spawn(async move { compute.run(later, move |stop| ended.send(spin(stop)).is_ok()).await });
        tokio::time::sleep(Duration::from_millis(30)).await;
        running.abort();
        assert_eq!(has_ended.await, Ok("stopped"));
    }

    #[tokio::test]
    #[should_panic(expected = "a bug")]
    async fn a_panic_is_passed_on() {
        let later = Instant::now() + Duration::from_secs(60);
        let _ = Compute::new(1).run(later, |_| panic!("a bug")).await;
    }
}
