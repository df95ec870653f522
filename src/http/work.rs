//! Where the work of a handler runs: in place while it is small, on the computing threads when it is not.

use std::time::Instant;

use super::problem::{Code, Problem};
use crate::compute::Compute;
use crate::recall::{Stop, Stopped};

/// Bytes that are parsed, compared or written in well under a millisecond.
pub(super) const SMALL: usize = 64 * 1024;

/// Runs `work` on something of `size` bytes: in place up to [`SMALL`], else in `compute`, so that no request holds up the
/// threads that all others are waiting for.
pub(super) async fn work<T: Send + 'static>(
    compute: &Compute,
    size: usize,
    deadline: Instant,
    work: impl FnOnce(&Stop) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    if size <= SMALL { work(&Stop::default()) } else { compute.run(deadline, work).await? }
}

/// Processor cores to work on, at least 1.
pub(super) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

impl From<Stopped> for Problem {
    fn from(_: Stopped) -> Self {
        Self::new(Code::DeadlineExceeded, "The computation was stopped at the request's deadline.")
    }
}
