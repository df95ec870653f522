//! Every setting: its flag, its variable, its default and its check. Plain data, and the only reader of the environment.

mod cache;
mod judge;
mod reader;
mod values;

use std::ffi::OsString;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::{CommandFactory, Parser, Subcommand};

pub use self::cache::CacheSetting;
use self::judge::JudgeName;
pub use self::judge::JudgeSetting;
use self::reader::Reader;
use self::values::{CACHES, DURATION, age, duration, parse, share, size, within};

/// What the process was asked to do.
#[derive(Debug, Clone, PartialEq, Subcommand)]
pub enum Task {
    /// Serve (the default)
    Serve,
    /// Print the OpenAPI document
    Openapi,
    /// Ask a running service whether it is alive; exit 0 if so, 1 if not
    Healthcheck,
    /// Score a file in this process, without a server; exit 0 passed, 1 below the gate, 2 too little was scored
    Score(Score),
}

/// A file to score, and the gate that it has to pass.
#[derive(Debug, Clone, PartialEq, clap::Args)]
pub struct Score {
    /// By which measure
    pub route: ScoreRoute,
    /// The samples: one JSON object a line, or what POST …/batch takes if the name ends in .json
    pub file: PathBuf,
    /// Where the results go, a line for each sample [default: standard output]
    #[arg(long, short)]
    pub output: Option<PathBuf>,
    /// Exit with 1 when the mean is below this
    #[arg(long, value_name = "MEAN", value_parser = share)]
    pub fail_under: Option<f64>,
    /// Exit with 2 when more samples than this could not be scored
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub max_failed: u64,
    /// An option of the measure, such as threshold=0.8 or k=1,3; may be repeated
    #[arg(long = "option", short = 'O', value_name = "NAME=VALUE")]
    pub options: Vec<String>,
}

/// The measures by their routes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ScoreRoute {
    /// Claims, by a judge
    Llm,
    /// Contexts, by string similarity
    Nonllm,
    /// Ids
    Id,
}

impl ScoreRoute {
    /// The path of its single route.
    #[must_use]
    pub fn path(self) -> &'static str {
        match self {
            Self::Llm => "/recall/llm",
            Self::Nonllm => "/recall/nonllm",
            Self::Id => "/recall/id",
        }
    }
}

/// The form of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogForm {
    /// For people.
    Text,
    /// For machines: one JSON object a line.
    Json,
}

/// Every setting, checked.
#[derive(Debug, Clone)]
pub struct Config {
    /// The address to listen on.
    pub host: IpAddr,
    /// The port to listen on; 0 for any free one.
    pub port: u16,
    /// Who decides on claims.
    pub judge: JudgeSetting,
    /// The longest that one call to the judge's backend may take.
    pub judge_timeout: Duration,
    /// The longest that one request may take.
    pub request_timeout: Duration,
    /// Tries of one call, at least 1.
    pub judge_attempts: u32,
    /// Re-asks after an unusable answer.
    pub judge_repairs: u32,
    /// Calls to the judge's backend in flight at once, at least 1.
    pub judge_concurrency: usize,
    /// Ceiling of one reply in tokens.
    pub judge_max_output_tokens: Option<u32>,
    /// The sampling seed.
    pub judge_seed: i64,
    /// The model's window in tokens, prompt and answer together; `None` for what the backend reports.
    pub judge_context_window: Option<u32>,
    /// Requests that may wait.
    pub queue: usize,
    /// The largest body in bytes.
    pub body_limit: usize,
    /// Bytes of one stream's input that may wait on disk.
    pub stream_spool: u64,
    /// Where verdicts are remembered.
    pub cache: CacheSetting,
    /// Bytes of memory for it: all that `memory` holds, or the part of a file that is held in memory.
    pub cache_size: u64,
    /// How long a verdict is remembered; `None` for ever.
    pub cache_ttl: Option<Duration>,
    /// The form of the log; `None` decides by whether a terminal reads it.
    pub log: Option<LogForm>,
    /// Which parts are logged, in the syntax of `RUST_LOG`.
    pub log_filter: String,
}

/// All that is wrong with the settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Faults(Vec<String>);

impl fmt::Display for Faults {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the settings cannot be used:")?;
        self.0.iter().try_for_each(|fault| write!(formatter, "\n  - {fault}"))
    }
}

impl std::error::Error for Faults {}

const DEFAULT_FILTER: &str = "info";

/// Beside results and a progress bar, only what is wrong is worth a line.
const QUIET_FILTER: &str = "warn";

#[derive(Debug, Parser)]
#[command(version, about, after_help = AFTER_HELP)]
struct Cli {
    #[command(subcommand)]
    task: Option<Task>,

    /// Address to listen on
    #[arg(long, env = "RECALL_HOST", default_value = "127.0.0.1", global = true, allow_hyphen_values = true)]
    host: String,
    /// Port to listen on; 0 for any free one
    #[arg(long, env = "PORT", default_value = "8080", global = true, allow_hyphen_values = true)]
    port: String,
    /// Who decides on claims: embedded, or openai, azure, anthropic, gemini or ollama with /MODEL
    #[arg(long, env = "RECALL_JUDGE", default_value = "embedded", global = true, allow_hyphen_values = true)]
    judge: String,
    /// Longest time for one call to the judge's backend
    #[arg(long, env = "RECALL_JUDGE_TIMEOUT", default_value = "60s", global = true, allow_hyphen_values = true)]
    judge_timeout: String,
    /// Longest time for one request, waiting and retries included
    #[arg(long, env = "RECALL_REQUEST_TIMEOUT", default_value = "120s", global = true, allow_hyphen_values = true)]
    request_timeout: String,
    /// Tries of one call to the judge's backend
    #[arg(long, env = "RECALL_JUDGE_ATTEMPTS", default_value = "4", global = true, allow_hyphen_values = true)]
    judge_attempts: String,
    /// Re-asks after an answer that cannot be used
    #[arg(long, env = "RECALL_JUDGE_REPAIRS", default_value = "1", global = true, allow_hyphen_values = true)]
    judge_repairs: String,
    /// Calls to the judge's backend in flight at once
    #[arg(long, env = "RECALL_JUDGE_CONCURRENCY", default_value = "64", global = true, allow_hyphen_values = true)]
    judge_concurrency: String,
    /// Ceiling of one reply in tokens [default: none]
    #[arg(
        long,
        env = "RECALL_JUDGE_MAX_OUTPUT_TOKENS",
        default_value = "",
        hide_default_value = true,
        global = true,
        allow_hyphen_values = true
    )]
    judge_max_output_tokens: String,
    /// Sampling seed sent to the judge's backend
    #[arg(long, env = "RECALL_JUDGE_SEED", default_value = "7", global = true, allow_hyphen_values = true)]
    judge_seed: String,
    /// Window of the judge's model in tokens, prompt and answer together [default: what the backend reports]
    #[arg(
        long,
        env = "RECALL_JUDGE_CONTEXT_WINDOW",
        default_value = "",
        hide_default_value = true,
        global = true,
        allow_hyphen_values = true
    )]
    judge_context_window: String,
    /// Requests that may wait for a judge; beyond it 503
    #[arg(long, env = "RECALL_QUEUE", default_value = "4096", global = true, allow_hyphen_values = true)]
    queue: String,
    /// Largest request body, unpacked
    #[arg(long, env = "RECALL_BODY_LIMIT", default_value = "32MiB", global = true, allow_hyphen_values = true)]
    body_limit: String,
    /// Most of one stream's input that waits in a temporary file; 0 for no file
    #[arg(long, env = "RECALL_STREAM_SPOOL", default_value = "16GiB", global = true, allow_hyphen_values = true)]
    stream_spool: String,
    /// Where a model's verdicts are remembered: off, memory, file:PATH, redis://HOST or rediss://HOST [default: memory]
    #[arg(
        long,
        env = "RECALL_CACHE",
        default_value = "",
        hide_default_value = true,
        hide_env_values = true,
        global = true,
        allow_hyphen_values = true
    )]
    cache: String,
    /// Memory for remembered verdicts; with file:PATH, for the part of it that is at hand
    #[arg(long, env = "RECALL_CACHE_SIZE", default_value = "64MiB", global = true, allow_hyphen_values = true)]
    cache_size: String,
    /// How long a verdict is remembered, such as 12h or 30d [default: for ever]
    #[arg(
        long,
        env = "RECALL_CACHE_TTL",
        default_value = "",
        hide_default_value = true,
        global = true,
        allow_hyphen_values = true
    )]
    cache_ttl: String,
    /// Form of the log: text or json [default: text on a terminal, else json]
    #[arg(
        long,
        env = "RECALL_LOG",
        default_value = "",
        hide_default_value = true,
        global = true,
        allow_hyphen_values = true
    )]
    log: String,
}

const AFTER_HELP: &str = "\
Read from the environment alone:
  OPENAI_API_KEY         key for openai/MODEL; or OPENAI_API_KEY_FILE names a file that holds it; a local server needs none
  OPENAI_BASE_URL        any server that speaks the OpenAI format [default: https://api.openai.com/v1]
  AZURE_OPENAI_ENDPOINT  resource of azure/DEPLOYMENT, such as https://NAME.openai.azure.com
  AZURE_OPENAI_API_KEY   its key; or AZURE_OPENAI_API_KEY_FILE names a file that holds it
  OPENAI_API_VERSION     version such as 2024-10-21, for Azure's dated addresses; without it the newer ones are used
  ANTHROPIC_API_KEY      key for anthropic/MODEL; or ANTHROPIC_API_KEY_FILE names a file that holds it
  ANTHROPIC_BASE_URL     any server that speaks the Anthropic format [default: https://api.anthropic.com]
  GEMINI_API_KEY         key for gemini/MODEL; or GEMINI_API_KEY_FILE names a file that holds it
  GEMINI_BASE_URL        any server that speaks the Gemini format [default: https://generativelanguage.googleapis.com]
  OLLAMA_HOST            where Ollama listens, as Ollama itself reads it [default: 127.0.0.1:11434]
  OLLAMA_API_KEY         key for ollama.com; or OLLAMA_API_KEY_FILE names a file that holds it; a local Ollama needs none
  RECALL_CACHE_FILE      file that holds what --cache would say, such as a redis:// URL with its password
  RUST_LOG               which parts are logged, and how much [default: info]

Durations as 500ms, 60s, 2m; sizes as 512KiB, 32MiB. An empty variable counts as not set.";

impl Config {
    /// Reads the command line and the environment. Prints help, version or a misspelt flag and exits, as command-line
    /// programs do.
    ///
    /// # Errors
    ///
    /// Every fault of the settings at once.
    pub fn load() -> Result<(Task, Self), Faults> {
        let variables: Vec<(String, String)> = std::env::vars_os().filter_map(readable).collect();
        Self::of(Cli::parse(), &variables)
    }

    /// What a command line (without the program's name) and some variables amount to; for a service inside another
    /// program, such as a test.
    ///
    /// # Errors
    ///
    /// Every fault of the settings at once, or the first misspelt flag.
    pub fn from_parts(arguments: &[&str], variables: &[(String, String)]) -> Result<(Task, Self), Faults> {
        let arguments = std::iter::once(env!("CARGO_PKG_NAME")).chain(arguments.iter().copied());
        let cli = Cli::try_parse_from(arguments).map_err(|error| Faults(vec![error.to_string()]))?;
        Self::of(cli, variables)
    }

    fn of(cli: Cli, variables: &[(String, String)]) -> Result<(Task, Self), Faults> {
        let task = cli.task.clone().unwrap_or(Task::Serve);
        let filter = if matches!(task, Task::Score(_)) { QUIET_FILTER } else { DEFAULT_FILTER };
        Self::check(&cli, variables, filter).map(|config| (task, config))
    }

    fn check(cli: &Cli, variables: &[(String, String)], filter: &str) -> Result<Self, Faults> {
        let command = Cli::command();
        let mut reader = Reader { command: &command, variables, faults: Vec::new() };
        reader.refuse_unknown();
        let config = Self {
            host: reader.read("host", &cli.host, "an IP address such as 127.0.0.1 or 0.0.0.0", parse),
            port: reader.read("port", &cli.port, "a port from 0 to 65535", parse),
            judge: reader.read("judge", &cli.judge, judge::EXPECTED, JudgeName::read).setting(&mut reader),
            judge_timeout: reader.read("judge_timeout", &cli.judge_timeout, DURATION, duration),
            request_timeout: reader.read("request_timeout", &cli.request_timeout, DURATION, duration),
            judge_attempts: reader
                .read("judge_attempts", &cli.judge_attempts, "a number from 1 to 100", |text| within(text, 1, 100)),
            judge_repairs: reader
                .read("judge_repairs", &cli.judge_repairs, "a number from 0 to 10", |text| within(text, 0, 10)),
            judge_concurrency: reader.read(
                "judge_concurrency",
                &cli.judge_concurrency,
                "a number from 1 to 100000",
                |text| within(text, 1, 100_000),
            ),
            judge_max_output_tokens: reader.read(
                "judge_max_output_tokens",
                &cli.judge_max_output_tokens,
                "a number of at least 16",
                |text| {
                    if text.is_empty() { Some(None) } else { within(text, 16, u32::MAX).map(Some) }
                },
            ),
            judge_seed: reader.read("judge_seed", &cli.judge_seed, "an integer", parse),
            judge_context_window: reader.read(
                "judge_context_window",
                &cli.judge_context_window,
                "a number of at least 256",
                |text| {
                    if text.is_empty() { Some(None) } else { within(text, 256, u32::MAX).map(Some) }
                },
            ),
            queue: reader.read("queue", &cli.queue, "a number from 0 to 1000000", |text| within(text, 0, 1_000_000)),
            body_limit: reader.read("body_limit", &cli.body_limit, "a size from 1KiB to 4GiB, such as 32MiB", size),
            stream_spool: reader.read(
                "stream_spool",
                &cli.stream_spool,
                "a size such as 512MiB or 16GiB, or 0",
                |text| text.parse::<bytesize::ByteSize>().ok().map(|size| size.as_u64()),
            ),
            cache: CacheSetting::read(&cli.cache, &mut reader),
            cache_size: reader.read(
                "cache_size",
                &cli.cache_size,
                "a size from 1MiB to 64GiB, such as 64MiB",
                |text| {
                    text.parse::<bytesize::ByteSize>()
                        .ok()
                        .map(|size| size.as_u64())
                        .filter(|size| CACHES.contains(size))
                },
            ),
            cache_ttl: reader.read(
                "cache_ttl",
                &cli.cache_ttl,
                "a duration from 1s to 10y, such as 12h or 30d",
                |text| {
                    if text.is_empty() { Some(None) } else { age(text).map(Some) }
                },
            ),
            log: reader.read("log", &cli.log, "text or json", log_form),
            log_filter: reader.log_filter(filter),
        };
        if reader.faults.is_empty() { Ok(config) } else { Err(Faults(reader.faults)) }
    }

    /// Where to listen.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        SocketAddr::new(self.host, self.port)
    }

    /// Where a service with these settings is reached from the same machine.
    #[must_use]
    pub fn local_url(&self) -> String {
        let host = match self.host {
            host if !host.is_unspecified() => host,
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(_) => IpAddr::V6(std::net::Ipv6Addr::LOCALHOST),
        };
        format!("http://{}", SocketAddr::new(host, self.port))
    }
}

fn log_form(text: &str) -> Option<Option<LogForm>> {
    match text {
        "" => Some(None),
        "text" => Some(Some(LogForm::Text)),
        "json" => Some(Some(LogForm::Json)),
        _ => None,
    }
}

fn readable((name, value): (OsString, OsString)) -> Option<(String, String)> {
    Some((name.into_string().ok()?, value.into_string().ok()?))
}
