//! What the service says about itself while it runs.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use crate::config::{Config, LogForm};

/// Starts the log on standard error. Lines hold no text of a sample and no secret, on any level of this crate.
///
/// # Errors
///
/// When the filter cannot be read or a log was started before.
pub fn start(config: &Config) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let filter = EnvFilter::try_new(&config.log_filter).map_err(|error| format!("RUST_LOG: {error}"))?;
    let on_terminal = std::io::stderr().is_terminal();
    let by_reader = if on_terminal { LogForm::Text } else { LogForm::Json };
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(on_terminal);
    match config.log.unwrap_or(by_reader) {
        LogForm::Text => lines.with_target(false).try_init(),
        LogForm::Json => lines.json().flatten_event(true).with_current_span(true).with_span_list(false).try_init(),
    }?;
    std::panic::set_hook(Box::new(log_panic));
    Ok(())
}

/// Logs where the code panicked, not with what words: slicing panics quote what they slice, which may be a context.
fn log_panic(panic: &std::panic::PanicHookInfo<'_>) {
    let place = panic.location().map(ToString::to_string).unwrap_or_default();
    tracing::error!(place, "panicked");
}
