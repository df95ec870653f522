//! Where the work of a handler runs: in place while it is small, on the computing threads when it is not.

use std::time::Instant;

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

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

/// An answer, written out where it was computed.
pub(super) fn json(answer: &impl Serialize) -> Result<Response, Problem> {
    let bytes = serde_json::to_vec(answer).map_err(|error| {
        tracing::error!(%error, "an answer cannot be written");
        Problem::new(Code::Internal, "The service failed on this request.")
    })?;
    let kind = (header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(([kind], Body::from(bytes)).into_response())
}

impl From<Stopped> for Problem {
    fn from(_: Stopped) -> Self {
        Self::new(Code::DeadlineExceeded, "The computation was stopped at the request's deadline.")
    }
}
