//! How large a window Ollama is asked for.
//!
//! Another size reloads the model, which takes seconds to minutes, so sizes are coarse and only grow. A size that no
//! answer came of counts only while its call can still be under way: one sample that is too large for the machine's
//! memory must not take the small ones with it.

use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::super::estimate::Estimate;
use super::super::refusal::Refusal;

/// Ollama's own default on small machines.
const LEAST_SIZE: u32 = 4096;

/// A window that leaves less for the answer is not worth asking.
const LEAST_ANSWER: u32 = 64;

/// What is known of the room for prompt and answer together, in tokens.
#[derive(Debug)]
pub(super) struct Room {
    /// The largest size that may be asked for.
    set: Option<u32>,
    /// The model's own.
    told: OnceLock<u32>,
    /// How long a size counts that was asked for and not yet answered.
    patience: Duration,
    sizes: Mutex<Sizes>,
}

#[derive(Debug, Default)]
struct Sizes {
    /// The largest that an answer came of.
    answered: u32,
    /// A larger one that is asked for, and until when that counts.
    asked: Option<(u32, Instant)>,
}

impl Room {
    pub(super) fn new(set: Option<u32>, patience: Duration) -> Self {
        Self { set, told: OnceLock::new(), patience, sizes: Mutex::default() }
    }

    /// The model's own window is known from now on.
    pub(super) fn learn(&self, tokens: u32) {
        // A model that is replaced under its name is rare enough to ask for a restart.
        let _ = self.told.set(tokens);
    }

    /// The largest size that makes sense, where one is known.
    pub(super) fn bound(&self) -> Option<u32> {
        self.set.into_iter().chain(self.told.get().copied()).min()
    }

    /// The size to ask for: at least what the question needs, and no other than before where that is large enough.
    ///
    /// # Errors
    ///
    /// A refusal of our own when the question cannot fit, however its tokens are counted.
    pub(super) fn size(&self, prompt: Estimate, answer: u32) -> Result<u32, Refusal> {
        let bound = self.bound().unwrap_or(u32::MAX);
        let least = answer.min(LEAST_ANSWER);
        if prompt.least.saturating_add(least) > bound {
            return Err(Refusal::over_the_window(prompt.least, least, bound));
        }
        let needed = needed(prompt, answer).min(bound);
        let now = Instant::now();
        let mut sizes = self.sizes.lock().unwrap_or_else(PoisonError::into_inner);
        let asked = sizes.asked.filter(|(_, until)| now < *until).map_or(0, |(size, _)| size);
        let known = sizes.answered.max(asked);
        if needed > known {
            sizes.asked = now.checked_add(self.patience).map(|until| (needed, until));
        }
        Ok(needed.max(known).min(bound))
    }

    /// An answer came of this question, so its size is one that the machine can bear.
    pub(super) fn answered(&self, prompt: Estimate, answer: u32) {
        let mut sizes = self.sizes.lock().unwrap_or_else(PoisonError::into_inner);
        sizes.answered = sizes.answered.max(needed(prompt, answer));
    }
}

/// A power of two that holds the question even when its tokens are many.
fn needed(prompt: Estimate, answer: u32) -> u32 {
    let tokens = prompt.most.saturating_add(answer).max(LEAST_SIZE);
    tokens.checked_next_power_of_two().unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::super::ProviderFault;
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn prompt(most: u32) -> Estimate {
        Estimate { least: most / 2, most }
    }

    #[test]
    fn the_size_grows_with_the_prompt_and_never_shrinks() {
        let room = Room::new(None, HOUR);
        for (most, answer, size) in [
            (100, 1000, 4096),
            (3096, 1000, 4096),
            (3097, 1000, 8192),
            (10, 10, 8192),
            (20_000, 1000, 32768),
            (1, 1, 32768),
        ] {
            assert_eq!(room.size(prompt(most), answer).unwrap(), size, "{most}");
        }
        assert_eq!(room.size(prompt(u32::MAX), 1).unwrap(), u32::MAX);
    }

    #[test]
    fn a_size_that_nothing_came_of_is_forgotten_and_an_answered_one_is_not() {
        let room = Room::new(None, Duration::ZERO);
        assert_eq!(room.size(prompt(100_000), 1000).unwrap(), 131_072);
        assert_eq!(room.size(prompt(100), 1000).unwrap(), 4096);
        room.answered(prompt(5000), 1000);
        assert_eq!(room.size(prompt(100), 1000).unwrap(), 8192);
    }

    #[test]
    fn the_smaller_of_both_windows_bounds_it() {
        let room = Room::new(Some(10_000), HOUR);
        assert_eq!(room.bound(), Some(10_000));
        assert_eq!(room.size(prompt(9500), 1000).unwrap(), 10_000);
        room.learn(6000);
        assert_eq!(room.size(prompt(100), 1000).unwrap(), 6000, "learnt after a larger one was in use");
        assert_eq!(room.bound(), Some(6000));
        // What may fit is asked, what cannot is not.
        assert_eq!(room.size(Estimate { least: 5936, most: 12_000 }, 1000).unwrap(), 6000);
        let refusal = room.size(Estimate { least: 5937, most: 12_000 }, 1000).unwrap_err();
        assert_eq!(
            (refusal.fault, refusal.again, refusal.said.window),
            (ProviderFault::ContextLength, false, Some(6000))
        );
        assert!(refusal.detail.contains("5937") && refusal.detail.contains("6000"), "{}", refusal.detail);
        assert_eq!(room.size(Estimate { least: 5999, most: 12_000 }, 1).unwrap(), 6000);
    }
}
