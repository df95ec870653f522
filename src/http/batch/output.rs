//! What a batch answers: an item for each sample and a summary, in either form.

use std::collections::BTreeMap;
use std::io;
use std::time::Instant;

use axum::body::Bytes;
use futures_util::Stream;
use futures_util::stream::unfold;
use serde::Serialize;
use tokio::sync::OwnedSemaphorePermit;
use utoipa::ToSchema;

use super::super::answer::UsageBody;
use super::super::body::Form;
use super::super::extract::SampleId;
use super::super::measure::Scored;
use super::super::problem::{Problem, ProblemBody};
use super::run::{Done, Run};
use crate::recall::Recall;
use crate::recall::judge::Usage;
use crate::recall::summary::{Summary, Tally};

/// The result of one sample.
pub(super) struct Item {
    index: u64,
    id: Option<SampleId>,
    outcome: Outcome,
}

enum Outcome {
    Scored { json: Vec<u8>, recall: Recall, usage: Usage },
    Failed(Box<Problem>),
}

impl Item {
    pub(super) fn scored(index: u64, scored: Scored) -> Self {
        let Scored { id, json, recall, usage } = scored;
        Self { index, id, outcome: Outcome::Scored { json, recall, usage } }
    }

    pub(super) fn failed(index: u64, id: Option<SampleId>, problem: Problem) -> Self {
        Self { index, id, outcome: Outcome::Failed(Box::new(problem)) }
    }

    /// Appends the item as JSON.
    fn write(self, request_id: &str, bytes: &mut Vec<u8>) -> serde_json::Result<()> {
        bytes.extend_from_slice(b"{\"index\":");
        serde_json::to_writer(&mut *bytes, &self.index)?;
        bytes.extend_from_slice(b",\"id\":");
        serde_json::to_writer(&mut *bytes, &self.id)?;
        match self.outcome {
            Outcome::Scored { json, .. } => {
                bytes.extend_from_slice(b",\"status\":\"scored\",\"result\":");
                bytes.extend_from_slice(&json);
            }
            Outcome::Failed(problem) => {
                bytes.extend_from_slice(b",\"status\":\"failed\",\"error\":");
                serde_json::to_writer(&mut *bytes, &problem.body(request_id))?;
            }
        }
        bytes.push(b'}');
        Ok(())
    }
}

/// What a batch says as a whole. A statistic without a value is null.
#[derive(Debug, Serialize, ToSchema)]
pub struct BatchSummary {
    /// Samples that were read: `scored + failed`.
    pub total: u64,
    /// Samples with a score.
    pub scored: u64,
    /// Samples without one.
    pub failed: u64,
    /// Mean of the scores (macro average).
    #[schema(required = true, minimum = 0, maximum = 1)]
    pub mean: Option<f64>,
    /// All recalled units over all units (micro average).
    #[schema(required = true, minimum = 0, maximum = 1)]
    pub pooled: Option<f64>,
    /// The mean if every failed sample had scored 0, and if it had scored 1.
    #[schema(required = true)]
    pub bounds: Option<[f64; 2]>,
    /// 95 % interval of the mean: percentile bootstrap of 1,000 resamples with a fixed seed; the normal approximation
    /// beyond 50,000 scores.
    #[schema(required = true)]
    pub ci95: Option<[f64; 2]>,
    /// The lowest score.
    #[schema(required = true)]
    pub min: Option<f64>,
    /// 10 % quantile of the scores, interpolated.
    #[schema(required = true)]
    pub p10: Option<f64>,
    /// The median score.
    #[schema(required = true)]
    pub p50: Option<f64>,
    /// 90 % quantile of the scores, interpolated.
    #[schema(required = true)]
    pub p90: Option<f64>,
    /// The highest score.
    #[schema(required = true)]
    pub max: Option<f64>,
    /// Failed samples by code.
    pub failures: BTreeMap<&'static str, u64>,
    /// What the whole batch cost, failed samples included.
    pub usage: UsageBody,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
}

/// Counts items as they leave.
struct Count {
    tally: Tally,
    failures: BTreeMap<&'static str, u64>,
    usage: Usage,
}

impl Count {
    fn take(&mut self, item: &Item) {
        match &item.outcome {
            Outcome::Scored { recall, usage, .. } => {
                self.tally.score(*recall);
                self.usage = self.usage.plus(*usage);
            }
            Outcome::Failed(problem) => {
                self.tally.fail();
                *self.failures.entry(problem.code.name()).or_default() += 1;
                self.usage = self.usage.plus(problem.usage.as_deref().copied().unwrap_or(Usage::NOTHING));
            }
        }
    }

    fn summary(self, began: Instant) -> BatchSummary {
        let Summary { total, scored, failed, mean, pooled, bounds, ci95, spread } = self.tally.summary();
        let [min, p10, p50, p90, max] = spread.map_or([None; 5], |spread| spread.map(Some));
        let duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let (failures, usage) = (self.failures, self.usage.into());
        BatchSummary {
            total,
            scored,
            failed,
            mean,
            pooled,
            bounds,
            ci95,
            min,
            p10,
            p50,
            p90,
            max,
            failures,
            usage,
            duration_ms,
        }
    }
}

/// Bytes after which what is written is sent on, although more is ready.
const PIECE: usize = 64 * 1024;

struct Writer {
    run: Run,
    form: Form,
    count: Count,
    /// Results that came before their turn.
    early: BTreeMap<u64, Done>,
    next: u64,
    /// What was written last; its room is given back when more is asked for, which means that it has left.
    leaving: Vec<OwnedSemaphorePermit>,
    state: State,
}

#[derive(PartialEq)]
enum State {
    Opening,
    Items,
    Over,
}

/// The body of the answer. It ends in an error, and so visibly unfinished, where the work could not be brought to its end.
pub(super) fn written(run: Run, form: Form) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
    let count = Count { tally: Tally::default(), failures: BTreeMap::new(), usage: Usage::NOTHING };
    let writer =
        Writer { run, form, count, early: BTreeMap::new(), next: 0, leaving: Vec::new(), state: State::Opening };
    unfold(writer, |mut writer| async move {
        if writer.state == State::Over {
            return None;
        }
        let piece = writer.piece().await;
        if piece.is_err() {
            writer.state = State::Over;
        }
        Some((piece, writer))
    })
}

impl Writer {
    async fn piece(&mut self) -> io::Result<Bytes> {
        self.leaving.clear();
        let mut bytes = Vec::new();
        if self.state == State::Opening {
            self.state = State::Items;
            if self.form == Form::Json {
                // Sent at once: the status is known from here on.
                return Ok(Bytes::from_static(b"{\"results\":["));
            }
        }
        loop {
            let done = if bytes.is_empty() { self.run.done.recv().await } else { self.run.done.try_recv().ok() };
            match done {
                Some(done) if self.run.ordered => {
                    self.early.insert(done.item.index, done);
                    while let Some(done) = self.early.remove(&self.next) {
                        self.write(done, &mut bytes)?;
                    }
                }
                Some(done) => self.write(done, &mut bytes)?,
                None if bytes.is_empty() => return self.end().await,
                None => break,
            }
            if bytes.len() >= PIECE {
                break;
            }
        }
        Ok(bytes.into())
    }

    fn write(&mut self, done: Done, bytes: &mut Vec<u8>) -> io::Result<()> {
        let Done { item, permit } = done;
        self.count.take(&item);
        self.leaving.push(permit);
        if self.form == Form::Json && self.next > 0 {
            bytes.push(b',');
        }
        self.next += 1;
        item.write(&self.run.request_id, bytes)?;
        if self.form == Form::Lines {
            bytes.push(b'\n');
        }
        Ok(())
    }

    async fn end(&mut self) -> io::Result<Bytes> {
        self.state = State::Over;
        while let Some(worker) = self.run.workers.join_next().await {
            worker.map_err(io::Error::other)??;
        }
        let none = Count { tally: Tally::default(), failures: BTreeMap::new(), usage: Usage::NOTHING };
        let count = std::mem::replace(&mut self.count, none);
        let began = self.run.began;
        // Drawing an interval takes up to a tenth of a second.
        let summary = tokio::task::spawn_blocking(move || count.summary(began)).await.map_err(io::Error::other)?;
        tracing::info!(
            total = summary.total,
            scored = summary.scored,
            failed = summary.failed,
            duration_ms = summary.duration_ms,
            "batch done"
        );
        let mut bytes = Vec::new();
        bytes.extend_from_slice(if self.form == Form::Json { b"],\"summary\":" } else { b"{\"summary\":" });
        serde_json::to_writer(&mut bytes, &summary)?;
        bytes.extend_from_slice(if self.form == Form::Json { b"}" } else { b"}\n" });
        Ok(bytes.into())
    }
}

/// The result of one sample of a batch.
#[derive(ToSchema)]
#[serde(untagged)]
pub enum BatchItem<T> {
    /// With a score.
    Scored(ScoredItem<T>),
    /// Without one.
    Failed(FailedItem),
}

/// A sample that was scored.
#[derive(ToSchema)]
pub struct ScoredItem<T> {
    /// Its place among the samples, counted from 0.
    pub index: u64,
    /// The sample's id as sent, or null.
    #[schema(required = true)]
    pub id: Option<SampleId>,
    /// Always `scored`.
    #[schema(value_type = String, example = "scored")]
    pub status: &'static str,
    /// Its answer, as its single route gives it.
    pub result: T,
}

/// A sample that was not.
#[derive(ToSchema)]
pub struct FailedItem {
    /// Its place among the samples, counted from 0.
    pub index: u64,
    /// The sample's id as sent, or null.
    #[schema(required = true)]
    pub id: Option<SampleId>,
    /// Always `failed`.
    #[schema(value_type = String, example = "failed")]
    pub status: &'static str,
    /// What went wrong, as its single route says it.
    pub error: ProblemBody,
}

/// Every result in the order of the samples, and the summary.
#[derive(ToSchema)]
pub struct BatchAnswer<T> {
    /// A result for each sample, in the order of the samples.
    pub results: Vec<BatchItem<T>>,
    /// What they amount to.
    pub summary: BatchSummary,
}
