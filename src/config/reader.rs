//! Reading settings from flags and variables, one fault never hiding the next.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use tracing_subscriber::EnvFilter;

use super::judge::JudgeName;
use crate::providers::SetupError;
use crate::providers::secret::Secret;
use crate::recall::similarity::nearest;

/// Secrets of ours that a file may hold.
const SECRET_FILES: [&str; 1] = ["RECALL_CACHE_FILE"];

/// Reads settings one by one and keeps what is wrong with them, so that all of it is told at once.
pub(super) struct Reader<'a> {
    pub(super) command: &'a clap::Command,
    pub(super) variables: &'a [(String, String)],
    pub(super) faults: Vec<String>,
}

impl Reader<'_> {
    /// Reads a setting with a flag. An empty value counts as not set; a bad one is noted and replaced by a stand-in, so
    /// that reading goes on to the next fault.
    pub(super) fn read<T>(&mut self, id: &str, given: &str, expected: &str, read: impl Fn(&str) -> Option<T>) -> T
    where
        T: Fallback,
    {
        let argument = self.command.get_arguments().find(|argument| argument.get_id() == id);
        let default =
            argument.and_then(|argument| argument.get_default_values().first()).and_then(|value| value.to_str());
        let given = given.trim();
        let text = if given.is_empty() { default.unwrap_or_default() } else { given };
        read(text).unwrap_or_else(|| {
            let flag = id.replace('_', "-");
            let variable = argument.and_then(clap::Arg::get_env).and_then(|name| name.to_str()).unwrap_or_default();
            self.faults.push(format!("--{flag} ({variable}): expected {expected}, found `{text}`"));
            T::fallback()
        })
    }

    pub(super) fn log_filter(&mut self, default: &str) -> String {
        let filter = self.variable("RUST_LOG").unwrap_or(default).to_owned();
        if let Err(error) = EnvFilter::try_new(&filter) {
            self.faults.push(format!("RUST_LOG: expected a filter such as info or context_recall=debug: {error}"));
        }
        filter
    }

    pub(super) fn variable(&self, name: &str) -> Option<&str> {
        let found = self.variables.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
    }

    /// A variable without which the service cannot work; `why` says so.
    pub(super) fn needed(&mut self, name: &str, why: &str) -> Option<String> {
        let given = self.variable(name).map(str::to_owned);
        if given.is_none() {
            self.faults.push(format!("{name}: {why}"));
        }
        given
    }

    /// A secret from `NAME`, or from the file that `NAME_FILE` names.
    pub(super) fn secret(&mut self, name: &str) -> Option<Secret> {
        let file = format!("{name}_FILE");
        let given = self.variable(name).map(str::to_owned);
        let from = self.variable(&file).map(str::to_owned);
        let (text, name) = match (given, from) {
            (None, None) => return None,
            (Some(_), Some(_)) => {
                self.faults.push(format!("{name} and {file}: give one of them"));
                return None;
            }
            (Some(value), None) => (value, name),
            (None, Some(path)) => match std::fs::read_to_string(&path) {
                Ok(text) => (text.trim().to_owned(), file.as_str()),
                Err(error) => {
                    self.faults.push(format!("{file}: the file {path} cannot be read: {error}"));
                    return None;
                }
            },
        };
        Secret::new(text).map_err(|error| self.faults.push(format!("{name}: the secret {error}"))).ok()
    }

    /// The same for a secret without which the service cannot work; `why` says so.
    pub(super) fn needed_secret(&mut self, name: &str, why: &str) -> Option<Secret> {
        let is_given = [name.to_owned(), format!("{name}_FILE")].iter().any(|name| self.variable(name).is_some());
        if !is_given {
            self.faults.push(format!("{name}: {why}"));
        }
        self.secret(name)
    }

    /// Notes what is wrong with a variable.
    pub(super) fn check(&mut self, name: &str, outcome: Result<(), SetupError>) {
        if let Err(error) = outcome {
            self.faults.push(format!("{name}: {error}"));
        }
    }

    pub(super) fn refuse_unknown(&mut self) {
        let known: Vec<&str> = self
            .command
            .get_arguments()
            .filter_map(|argument| argument.get_env()?.to_str())
            .chain(SECRET_FILES)
            .collect();
        for (name, value) in self.variables {
            // Kubernetes sets these in every pod beside a service that is named `recall`; a plain number is somebody's guess.
            let is_guess = name == "RECALL_PORT" && value.trim().parse::<u16>().is_ok();
            if is_guess {
                self.faults.push("RECALL_PORT: unknown setting; did you mean PORT?".to_owned());
                continue;
            }
            let is_kubernetes = name.starts_with("RECALL_SERVICE_") || name.starts_with("RECALL_PORT");
            if !name.starts_with("RECALL_") || is_kubernetes || known.contains(&name.as_str()) {
                continue;
            }
            let guess = nearest(name, known.iter().copied()).map(|known| format!("; did you mean {known}?"));
            self.faults.push(format!("{name}: unknown setting{}", guess.unwrap_or_default()));
        }
    }
}

/// What stands in for a value that could not be read, until the faults are reported.
pub(super) trait Fallback {
    fn fallback() -> Self;
}

macro_rules! fallback {
    ($($of:ty => $value:expr),+ $(,)?) => { $(impl Fallback for $of { fn fallback() -> Self { $value } })+ };
}

fallback! {
    IpAddr => IpAddr::V4(Ipv4Addr::LOCALHOST),
    u16 => 0,
    u32 => 0,
    u64 => 0,
    usize => 0,
    i64 => 0,
    Duration => Duration::ZERO,
    JudgeName => Self::Embedded,
}

impl<T> Fallback for Option<T> {
    fn fallback() -> Self {
        None
    }
}
