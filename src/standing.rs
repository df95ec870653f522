//! Can the judge be used? Asked for free, seldom, and once for all who want to know.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::recall::judge::{Judge, JudgeError};

/// How long a good answer is believed. A judge that fails later shows in every judgement anyway.
const GOOD_FOR: Duration = Duration::from_secs(60);

/// How long a bad one is, so that a key that was just allowed or a server that was just loading is soon seen.
const BAD_FOR: Duration = Duration::from_secs(5);

/// The most that one look may take.
const LOOK: Duration = Duration::from_secs(10);

/// What is known of a judge's usability.
pub struct Standing {
    judge: Arc<dyn Judge>,
    last: Mutex<Option<(Instant, Result<(), JudgeError>)>>,
    was_usable: AtomicBool,
}

impl Standing {
    /// Nothing is known of `judge` yet.
    #[must_use]
    pub fn of(judge: Arc<dyn Judge>) -> Self {
        Self { judge, last: Mutex::new(None), was_usable: AtomicBool::new(false) }
    }

    /// Whether the judge can be used, looked up when what is known has aged.
    ///
    /// # Errors
    ///
    /// Why it cannot.
    pub async fn now(self: Arc<Self>) -> Result<(), JudgeError> {
        // In a task of its own: a probe that gives up early must not end the look that the next one will need.
        let look = tokio::spawn(async move { self.look().await });
        look.await.unwrap_or_else(|error| Err(JudgeError::internal(format!("the judge's look-up broke: {error}"))))
    }

    async fn look(&self) -> Result<(), JudgeError> {
        let mut last = self.last.lock().await;
        if let Some((at, outcome)) = &*last
            && at.elapsed() < if outcome.is_ok() { GOOD_FOR } else { BAD_FOR }
        {
            return outcome.clone();
        }
        let outcome = self.judge.look_up((Instant::now() + LOOK).into_std()).await;
        if outcome.is_ok() {
            self.was_usable.store(true, Ordering::Relaxed);
        }
        *last = Some((Instant::now(), outcome.clone()));
        outcome
    }

    /// Was it found usable at any time?
    #[must_use]
    pub fn was_usable(&self) -> bool {
        self.was_usable.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use futures_util::future::BoxFuture;

    use super::*;
    use crate::deadline::Deadline;
    use crate::recall::judge::{JudgeFault, JudgeInfo, Judgement, Question, Votes};
    use crate::recall::memory::Settings;

    /// A judge whose look-ups end as told, one after another; the last for ever.
    struct Told {
        info: JudgeInfo,
        usable: Vec<bool>,
        looks: AtomicUsize,
    }

    impl Judge for Told {
        fn info(&self) -> &JudgeInfo {
            &self.info
        }

        fn settings(&self) -> Option<&Settings> {
            None
        }

        fn look_up(&self, _: std::time::Instant) -> BoxFuture<'_, Result<(), JudgeError>> {
            let look = self.looks.fetch_add(1, Ordering::SeqCst);
            let usable = self.usable[look.min(self.usable.len() - 1)];
            Box::pin(async move {
                tokio::time::sleep(Duration::from_secs(2)).await;
                if usable { Ok(()) } else { Err(JudgeError::new(JudgeFault::UpstreamAuth, "no")) }
            })
        }

        fn judge(&self, _: Arc<Question>, _: Votes, _: Deadline) -> BoxFuture<'_, Result<Judgement, JudgeError>> {
            Box::pin(std::future::ready(Err(JudgeError::internal("nobody asked"))))
        }
    }

    fn standing(usable: &[bool]) -> (Arc<Standing>, Arc<Told>) {
        let info = JudgeInfo { provider: "told", model: String::new(), prompt: None, prompt_sha256: None, seed: None };
        let judge = Arc::new(Told { info, usable: usable.to_vec(), looks: AtomicUsize::new(0) });
        (Arc::new(Standing::of(judge.clone())), judge)
    }

    async fn is_usable(standing: &Arc<Standing>) -> bool {
        Arc::clone(standing).now().await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn answers_age_the_bad_ones_sooner() {
        let (standing, judge) = standing(&[false, true, false, true]);
        let looks = || judge.looks.load(Ordering::SeqCst);
        assert!(!is_usable(&standing).await && !standing.was_usable());
        assert!(!is_usable(&standing).await);
        assert_eq!(looks(), 1);
        tokio::time::advance(BAD_FOR).await;
        assert!(is_usable(&standing).await && standing.was_usable());
        tokio::time::advance(GOOD_FOR / 2).await;
        assert!(is_usable(&standing).await);
        assert_eq!(looks(), 2);
        // It fails later: told, and still remembered as once usable.
        tokio::time::advance(GOOD_FOR).await;
        assert!(!is_usable(&standing).await && standing.was_usable());
        tokio::time::advance(BAD_FOR).await;
        assert!(is_usable(&standing).await);
        assert_eq!(looks(), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn a_probe_that_gives_up_leaves_its_look_to_the_next() {
        let (standing, judge) = standing(&[true]);
        let hasty = tokio::time::timeout(Duration::from_secs(1), is_usable(&standing)).await;
        assert!(hasty.is_err());
        assert!(is_usable(&standing).await);
        assert_eq!(judge.looks.load(Ordering::SeqCst), 1);
    }
}
