//! Wiring: from settings to a service. The only file that names concrete judges and providers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::compute::Compute;
use crate::config::{Config, JudgeSetting};
use crate::judge::chat::{Asking, ChatJudge};
use crate::judge::embedded::EmbeddedJudge;
use crate::providers::transport::CallPolicy;
use crate::recall::judge::Judge;
use crate::slots::Slots;
use crate::standing::Standing;

/// The limits in force.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The largest body in bytes.
    pub body: usize,
    /// The longest that one request may take.
    pub request_timeout: Duration,
    /// The longest that one call to the judge's backend may take.
    pub judge_timeout: Duration,
    /// Calls to the judge's backend in flight at once.
    pub judge_concurrency: usize,
    /// Requests that may wait.
    pub queue: usize,
    /// Bytes of one stream's input that may wait on disk.
    pub stream_spool: u64,
}

/// What every handler works with. Cheap to clone; clones share all of it.
#[derive(Clone)]
pub struct App(Arc<Parts>);

struct Parts {
    judge: Arc<dyn Judge>,
    standing: Arc<Standing>,
    compute: Compute,
    checks: Compute,
    limits: Limits,
    draining: AtomicBool,
}

impl App {
    /// Builds the service that `config` describes.
    ///
    /// # Errors
    ///
    /// When the judge's backend cannot be used as set: a base URL that is none, a key that no header can hold.
    pub fn new(config: &Config) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let compute = Compute::new(config.queue);
        let judge = judge(config, &compute)?;
        let limits = Limits {
            body: config.body_limit,
            request_timeout: config.request_timeout,
            judge_timeout: config.judge_timeout,
            judge_concurrency: config.judge_concurrency,
            queue: config.queue,
            stream_spool: config.stream_spool,
        };
        Ok(Self(Arc::new(Parts {
            standing: Arc::new(Standing::of(Arc::clone(&judge))),
            judge,
            compute,
            checks: Compute::new(config.queue),
            limits,
            draining: AtomicBool::new(false),
        })))
    }

    /// Who decides on claims.
    #[must_use]
    pub fn judge(&self) -> &dyn Judge {
        self.0.judge.as_ref()
    }

    /// Can the judge be used?
    #[must_use]
    pub fn standing(&self) -> Arc<Standing> {
        Arc::clone(&self.0.standing)
    }

    /// Where long computation runs.
    #[must_use]
    pub fn compute(&self) -> &Compute {
        &self.0.compute
    }

    /// Where the evidence of what was judged is checked. A lane of its own: a judgement that was paid for must not wait
    /// behind comparisons that were not.
    #[must_use]
    pub fn checks(&self) -> &Compute {
        &self.0.checks
    }

    /// The limits in force.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.0.limits
    }

    /// Is the service about to leave?
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.0.draining.load(Ordering::Relaxed)
    }

    /// From now on the service says that it is about to leave.
    pub fn drain(&self) {
        self.0.draining.store(true, Ordering::Relaxed);
    }
}

fn judge(config: &Config, compute: &Compute) -> Result<Arc<dyn Judge>, Box<dyn std::error::Error + Send + Sync>> {
    let calls = CallPolicy { timeout: config.judge_timeout, attempts: config.judge_attempts };
    let model = match config.judge.clone() {
        JudgeSetting::Embedded => return Ok(Arc::new(EmbeddedJudge::new(compute.clone()))),
        JudgeSetting::OpenAi(openai) => openai.connect(calls)?,
    };
    let asking = Asking {
        repairs: config.judge_repairs,
        output_ceiling: config.judge_max_output_tokens,
        seed: config.judge_seed,
        window: config.judge_context_window,
    };
    let slots = Slots::forecasting(config.judge_concurrency, config.queue);
    Ok(Arc::new(ChatJudge::new(model, slots, asking)))
}
