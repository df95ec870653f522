//! Settings, log, service, drain. No logic.

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use context_recall::app::App;
use context_recall::config::{Config, Task};
use context_recall::score::{self, Verdict};
use context_recall::{http, telemetry};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// How long a healthcheck waits for its answer.
const HEALTHCHECK: Duration = Duration::from_secs(3);

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            // The log may not have started, so the last word goes to standard error as it is.
            let _ = writeln!(std::io::stderr(), "context-recall: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<ExitCode, Failure> {
    let (task, config) = Config::load()?;
    match task {
        Task::Openapi => std::io::stdout().write_all(http::spec()?.as_bytes())?,
        Task::Healthcheck => {
            tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(healthcheck(&config))?;
        }
        Task::Score(task) => {
            telemetry::start(&config)?;
            let app = App::new(&config)?;
            let running = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
            let scored = running.block_on(async {
                let scored = score::score(app.clone(), &task).await;
                app.close().await;
                scored
            });
            let verdict = scored.unwrap_or_else(|error| {
                let _ = writeln!(std::io::stderr(), "context-recall: {error}");
                Verdict::Unmeasured
            });
            return Ok(ExitCode::from(verdict.code()));
        }
        Task::Serve => {
            telemetry::start(&config)?;
            tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(serve(&config))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn serve(config: &Config) -> Result<(), Failure> {
    let app = App::new(config)?;
    let address = config.address();
    let listener = TcpListener::bind(address).await.map_err(|error| format!("cannot listen on {address}: {error}"))?;
    // Before the line below tells anybody that there is something to stop.
    let leave = leave(app.clone())?;
    let judge = app.panel().judge().info();
    tracing::info!(
        address = %listener.local_addr()?,
        judge = judge.provider,
        model = judge.model,
        memory = app.panel().memory().kind(),
        version = env!("CARGO_PKG_VERSION"),
        "listening on http://{}",
        listener.local_addr()?
    );
    if config.judge.has_key() && !config.host.is_loopback() {
        tracing::warn!("whoever reaches this address can spend on the judge's key; keep it inside a private network");
    }
    let standing = app.standing();
    tokio::spawn(async move {
        if let Err(error) = standing.now().await {
            tracing::warn!(detail = error.detail, "the judge cannot be used now");
        }
    });
    let served = http::serve(listener, app.clone(), leave, config.request_timeout).await;
    app.close().await;
    served?;
    tracing::info!("stopped");
    Ok(())
}

/// Done once the process is asked to end. A second request ends it at once.
fn leave(app: App) -> std::io::Result<impl Future<Output = ()> + Send + 'static> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut asked = async move || {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    Ok(async move {
        asked().await;
        app.drain();
        tracing::info!("asked to stop: finishing what is in flight");
        tokio::spawn(async move {
            asked().await;
            tracing::warn!("asked to stop again: leaving at once");
            std::process::exit(1);
        });
    })
}

async fn healthcheck(config: &Config) -> Result<(), Failure> {
    let url = format!("{}/healthz", config.local_url());
    let client = reqwest::Client::builder().no_proxy().timeout(HEALTHCHECK).build()?;
    let status = client.get(&url).send().await.map_err(|error| format!("{url} does not answer: {error}"))?.status();
    if status.is_success() { Ok(()) } else { Err(format!("{url} answers {status}").into()) }
}
