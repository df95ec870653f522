//! `context-recall score`: a batch from a file, scored in this process, for a terminal or for CI.
//!
//! The file goes through the same routes as a request. Results leave as lines as they are done; a progress bar and the
//! summary go to standard error, so that standard output holds nothing but results.

use std::io::{self, BufWriter, Write as _};
use std::path::Path;

use futures_util::StreamExt as _;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Deserialize;
use tokio::io::AsyncReadExt as _;

use crate::app::App;
use crate::config::Score;
use crate::http::in_process;

/// How a run ended, as the exit code says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Scored, and not below the gate: exit code 0.
    Passed,
    /// The mean is below `--fail-under`: exit code 1.
    BelowGate,
    /// The file could not be read, or too little of it was scored to say anything: exit code 2.
    Unmeasured,
}

impl Verdict {
    /// The exit code.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Passed => 0,
            Self::BelowGate => 1,
            Self::Unmeasured => 2,
        }
    }
}

/// The last line of a batch's answer.
#[derive(Deserialize)]
struct LastLine {
    summary: Summary,
}

#[derive(Deserialize)]
struct Summary {
    total: u64,
    scored: u64,
    failed: u64,
    mean: Option<f64>,
    pooled: Option<f64>,
    bounds: Option<[f64; 2]>,
    ci95: Option<[f64; 2]>,
    min: Option<f64>,
    p10: Option<f64>,
    p50: Option<f64>,
    p90: Option<f64>,
    max: Option<f64>,
    failures: serde_json::Map<String, serde_json::Value>,
    usage: Usage,
    duration_ms: u64,
}

#[derive(Deserialize)]
struct Usage {
    judge_calls: u64,
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
}

/// Bytes read from the file at once.
const PIECE: usize = 64 * 1024;

/// Scores a file and says how it went.
///
/// # Errors
///
/// What kept the file from being read or the results from being written.
pub async fn score(app: App, task: &Score) -> Result<Verdict, String> {
    let Score { route, file, output, fail_under, max_failed, options } = task;
    let unreadable = |error: io::Error| format!("{} cannot be read: {error}", file.display());
    let source = tokio::fs::File::open(file).await.map_err(unreadable)?;
    let size = source.metadata().await.map_err(unreadable)?.len();
    let bar = progress(size);
    let read = bar.clone();
    let body = futures_util::stream::unfold(source, move |mut source| {
        let read = read.clone();
        async move {
            let mut piece = Vec::with_capacity(PIECE);
            match (&mut source).take(PIECE as u64).read_to_end(&mut piece).await {
                Ok(0) => None,
                Ok(length) => {
                    read.inc(length as u64);
                    Some((Ok(piece.into()), source))
                }
                Err(error) => Some((Err(error), source)),
            }
        }
    });
    let query = options.join("&");
    let mut answer = in_process::batch(app, route.path(), &query, is_lines(file), body).await?;

    let unwritable = |error: io::Error| format!("the results cannot be written: {error}");
    // Before the target is emptied.
    if let Some(target) = output
        && let (Ok(target), Ok(source)) = (target.canonicalize(), file.canonicalize())
        && target == source
    {
        return Err(format!("{} cannot be both the samples and the results", file.display()));
    }
    let mut results = sink(output.as_deref()).map_err(unwritable)?;
    let mut pending = Vec::new();
    let mut last = Vec::new();
    let (mut scored, mut failed) = (0_u64, 0_u64);
    while let Some(piece) = answer.next().await {
        pending.extend_from_slice(&piece.map_err(|error| format!("the batch broke off: {error}"))?);
        let mut from = 0;
        while let Some(length) = memchr::memchr(b'\n', &pending[from..]) {
            let line = &pending[from..=from + length];
            if line.starts_with(b"{\"summary\"") {
                last = line.to_vec();
            } else {
                // Ours to read: the status stands before anything that a sample could hold, but for its id.
                let is_scored = memchr::memmem::find(line, b"\"status\":\"scored\"").is_some();
                *(if is_scored { &mut scored } else { &mut failed }) += 1;
                results.write_all(line).map_err(unwritable)?;
            }
            from += length + 1;
        }
        pending.drain(..from);
        bar.set_message(format!("{scored} scored, {failed} failed"));
    }
    results.flush().map_err(unwritable)?;
    bar.finish_and_clear();
    let LastLine { summary } =
        serde_json::from_slice(&last).map_err(|_| "the batch broke off before its summary".to_owned())?;
    let verdict = summary.verdict(*fail_under, *max_failed);
    let told = summary.table(verdict, *fail_under, *max_failed);
    io::stderr().write_all(told.as_bytes()).map_err(unwritable)?;
    Ok(verdict)
}

/// One JSON document only by its name; everything else is lines.
fn is_lines(file: &Path) -> bool {
    !file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"))
}

fn sink(output: Option<&Path>) -> io::Result<Box<dyn io::Write + Send>> {
    Ok(match output {
        Some(path) => Box::new(BufWriter::new(std::fs::File::create(path)?)),
        None => Box::new(BufWriter::new(io::stdout())),
    })
}

/// Drawn on a terminal alone.
fn progress(size: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:30} {percent:>3} % read · {msg} · {elapsed}, {eta} to go");
    ProgressBar::new(size).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

impl Summary {
    fn verdict(&self, fail_under: Option<f64>, max_failed: u64) -> Verdict {
        match self.mean {
            None => Verdict::Unmeasured,
            Some(_) if self.failed > max_failed => Verdict::Unmeasured,
            Some(mean) if fail_under.is_some_and(|least| mean < least) => Verdict::BelowGate,
            Some(_) => Verdict::Passed,
        }
    }

    fn table(&self, verdict: Verdict, fail_under: Option<f64>, max_failed: u64) -> String {
        let number = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| format!("{value:.4}"));
        let range = |value: Option<[f64; 2]>| {
            value.map_or_else(|| "–".to_owned(), |[low, high]| format!("{low:.4} to {high:.4}"))
        };
        let tokens = |value: Option<u64>| value.map_or_else(|| "unknown".to_owned(), |value| value.to_string());
        let spread = [self.min, self.p10, self.p50, self.p90, self.max].map(number).join("  ");
        let mut rows = vec![
            ("samples", format!("{} ({} scored, {} failed)", self.total, self.scored, self.failed)),
            ("mean", number(self.mean)),
            ("95 % interval", range(self.ci95)),
            ("bounds if the failed scored 0 or 1", range(self.bounds)),
            ("pooled over all units", number(self.pooled)),
            ("min, 10 %, median, 90 %, max", spread),
        ];
        if self.usage.judge_calls > 0 {
            let Usage { judge_calls, input_tokens, output_tokens } = &self.usage;
            let cost = format!("{judge_calls}; tokens in {}, out {}", tokens(*input_tokens), tokens(*output_tokens));
            rows.push(("judge calls", cost));
        }
        rows.extend(self.failures.iter().map(|(code, count)| (code.as_str(), count.to_string())));
        rows.push(("time", format!("{:.1} s", std::time::Duration::from_millis(self.duration_ms).as_secs_f64())));
        let gate = match verdict {
            Verdict::Passed => fail_under.map(|least| format!("passed: the mean is not below {least}")),
            Verdict::BelowGate => fail_under.map(|least| format!("failed: the mean is below {least}")),
            Verdict::Unmeasured if self.mean.is_none() => Some("failed: nothing was scored".to_owned()),
            Verdict::Unmeasured => Some(format!("failed: more than {max_failed} samples could not be scored")),
        };
        let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default();
        let mut table: String = rows.iter().map(|(name, value)| format!("{name:width$}  {value}\n")).collect();
        table.extend(gate.map(|gate| format!("{gate}\n")));
        table
    }
}
