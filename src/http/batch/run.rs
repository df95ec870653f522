//! The work on a batch: so many samples at once, each by the code of its single route.

use std::io;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Bytes;
use futures_util::FutureExt as _;
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;
use tracing::Instrument as _;

use super::super::App;
use super::super::body::LineError;
use super::super::extract::sample_id;
use super::super::measure::{Measure, Scored, Terms};
use super::super::problem::{Code, Problem};
use super::input::{Entry, Source};
use super::output::Item;
use crate::recall::memory::Reuse;

/// A batch at work. Dropping it ends the work at once, calls to a judge included.
pub(super) struct Run {
    pub(super) done: mpsc::Receiver<Done>,
    pub(super) workers: JoinSet<io::Result<()>>,
    pub(super) ordered: bool,
    pub(super) began: Instant,
    pub(super) request_id: String,
}

/// A sample that was worked on.
pub(super) struct Done {
    pub(super) item: Item,
    /// Given back once the result has left, so that no more results pile up than there are permits.
    pub(super) permit: OwnedSemaphorePermit,
}

/// Results that may be done and not yet written, for each sample worked on at once. A slow sample holds up only so many
/// others when results leave in order.
const AHEAD: usize = 8;

/// What holds for every sample of a batch.
pub(super) struct Manner<T> {
    /// Options, where a sample has none of its own.
    pub(super) options: T,
    /// Whether it may be answered from memory.
    pub(super) reuse: Reuse,
}

struct Work<M: Measure> {
    app: App,
    manner: Manner<M::Options>,
    source: Mutex<Source>,
    room: Arc<Semaphore>,
    done: mpsc::Sender<Done>,
}

impl Run {
    pub(super) fn start<M: Measure>(
        app: App,
        source: Source,
        manner: Manner<M::Options>,
        request_id: String,
        ordered: bool,
    ) -> Self {
        let at_once = M::at_once(&app).max(1);
        let (sender, done) = mpsc::channel(at_once);
        let room = Arc::new(Semaphore::new(at_once.saturating_mul(AHEAD)));
        let work = Arc::new(Work::<M> { app, manner, source: Mutex::new(source), room, done: sender });
        let mut workers = JoinSet::new();
        for _ in 0..at_once {
            workers.spawn(Arc::clone(&work).all().in_current_span());
        }
        Self { done, workers, ordered, began: Instant::now(), request_id }
    }
}

impl<M: Measure> Work<M> {
    /// Takes up one sample after another.
    async fn all(self: Arc<Self>) -> io::Result<()> {
        loop {
            let Ok(permit) = Arc::clone(&self.room).acquire_owned().await else { return Ok(()) };
            let entry = self.source.lock().await.next().await?;
            let Some(Entry { index, line, text }) = entry else { return Ok(()) };
            let item = match text {
                Ok(text) => match self.score(&text).await {
                    Ok(scored) => Item::scored(index, scored),
                    Err(problem) => Item::failed(index, sample_id(&text), at_line(problem, line)),
                },
                Err(error) => Item::failed(index, None, at_line(broken(error, &self.app), line)),
            };
            if self.done.send(Done { item, permit }).await.is_err() {
                return Ok(());
            }
        }
    }

    /// Scores one sample. Its clock starts now, and starts again whenever the service itself has no room for it: a batch
    /// waits where a single request is turned away.
    async fn score(&self, sample: &Bytes) -> Result<Scored, Problem> {
        loop {
            let deadline = Instant::now() + self.app.limits().request_timeout;
            let terms = Terms { deadline, reuse: self.manner.reuse };
            let scoring = M::score(&self.app, sample.clone(), &self.manner.options, terms);
            // A panic costs one sample; the hook has logged where it happened.
            let outcome = AssertUnwindSafe(scoring).catch_unwind().await;
            match outcome.unwrap_or_else(|_| Err(Problem::internal())) {
                Err(problem) if problem.code == Code::Overloaded => {
                    tokio::time::sleep(problem.retry_after.unwrap_or(PATIENCE).min(PATIENCE)).await;
                }
                outcome => return outcome,
            }
        }
    }
}

/// Longest pause before the service is asked for room again.
const PATIENCE: Duration = Duration::from_secs(1);

fn broken(error: LineError, app: &App) -> Problem {
    match error {
        LineError::TooLong => super::super::body::too_large(app.limits().body, "one line"),
        LineError::BrokeOff => super::super::body::broke_off(),
    }
}

/// Where a sample that could not be read stood.
fn at_line(problem: Problem, line: Option<u64>) -> Problem {
    match line {
        Some(line) if matches!(problem.code, Code::InvalidJson | Code::PayloadTooLarge) => {
            Problem { detail: format!("Line {line} of the stream: {}", problem.detail), ..problem }
        }
        _ => problem,
    }
}
