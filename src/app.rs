//! Wiring: from settings to a service. The only file that names concrete judges, providers and stores.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::compute::Compute;
use crate::config::{CacheSetting, Config, JudgeSetting};
use crate::judge::atomic::AtomicSplitter;
use crate::judge::chat::{Asking, ChatJudge};
use crate::judge::embedded::EmbeddedJudge;
use crate::memory::Off;
use crate::memory::file::FileMemory;
use crate::memory::local::LocalMemory;
use crate::memory::redis::RedisMemory;
use crate::providers::ollama::OllamaConfig;
use crate::providers::transport::CallPolicy;
use crate::recall::judge::{Judge, Splitter};
use crate::recall::memory::Memory;
use crate::recall::panel::Panel;
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
    panel: Panel,
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
    /// When the judge's backend cannot be used as set (a base URL that is none, a key that no header can hold), or the file
    /// to remember verdicts in.
    pub fn new(config: &Config) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let compute = Compute::new(config.queue);
        let (judge, splitter) = judge(config, &compute)?;
        let memory = memory(config)?;
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
            panel: Panel::new(judge, splitter, memory),
            compute,
            checks: Compute::new(config.queue),
            limits,
            draining: AtomicBool::new(false),
        })))
    }

    /// Who decides on claims, and what is remembered of it.
    #[must_use]
    pub fn panel(&self) -> &Panel {
        &self.0.panel
    }

    /// Brings to its end what is still being remembered. Afterwards nothing is remembered any more.
    pub async fn close(&self) {
        self.0.panel.memory().close().await;
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

fn memory(config: &Config) -> Result<Arc<dyn Memory>, Box<dyn std::error::Error + Send + Sync>> {
    let Config { cache_size: size, cache_ttl: age, .. } = *config;
    Ok(match &config.cache {
        CacheSetting::Off => Arc::new(Off),
        CacheSetting::Memory => Arc::new(LocalMemory::new(size, age)),
        CacheSetting::File(path) => Arc::new(FileMemory::open(path, usize::try_from(size).unwrap_or(usize::MAX), age)?),
        CacheSetting::Redis(url) => Arc::new(RedisMemory::new(url.expose(), age)?),
    })
}

/// Who decides on claims, and who cuts them.
type Deciders = (Arc<dyn Judge>, Option<Arc<dyn Splitter>>);

fn judge(config: &Config, compute: &Compute) -> Result<Deciders, Box<dyn std::error::Error + Send + Sync>> {
    let calls = CallPolicy { timeout: config.judge_timeout, attempts: config.judge_attempts };
    let model = match config.judge.clone() {
        JudgeSetting::Embedded => return Ok((Arc::new(EmbeddedJudge::new(compute.clone())), None)),
        JudgeSetting::OpenAi(openai) => openai.connect(calls)?,
        JudgeSetting::Anthropic(anthropic) => anthropic.connect(calls)?,
        JudgeSetting::Gemini(gemini) => gemini.connect(calls)?,
        JudgeSetting::Azure(azure) => azure.connect(calls)?,
        JudgeSetting::Ollama(ollama) => {
            OllamaConfig { window: config.judge_context_window, ..ollama }.connect(calls)?
        }
    };
    let asking = Asking {
        repairs: config.judge_repairs,
        output_ceiling: config.judge_max_output_tokens,
        seed: config.judge_seed,
        window: config.judge_context_window,
    };
    let slots = Slots::forecasting(config.judge_concurrency, config.queue);
    let splitter = AtomicSplitter::new(Arc::clone(&model), slots.clone(), asking);
    Ok((Arc::new(ChatJudge::new(model, slots, asking)), Some(Arc::new(splitter))))
}
