//! Where verdicts are remembered, as `--cache` says it. A URL may hold a password: it is a secret from here on.

use std::path::PathBuf;

use super::Reader;
use crate::memory::redis;
use crate::providers::secret::Secret;

/// Where verdicts are remembered.
#[derive(Debug, Clone)]
pub enum CacheSetting {
    /// Nowhere.
    Off,
    /// In this process, as long as it lives.
    Memory,
    /// In a file.
    File(PathBuf),
    /// In a Redis at this URL.
    Redis(Secret),
}

const EXPECTED: &str = "off, memory, file:PATH, redis://HOST or rediss://HOST";

/// The setting that stands for all that cannot be read, until the faults are reported.
const STAND_IN: CacheSetting = CacheSetting::Off;

impl CacheSetting {
    /// The setting from the flag or its variable, or from the file that `RECALL_CACHE_FILE` names. Faults go to the reader,
    /// without the text: half a password is one too many.
    pub(super) fn read(given: &str, reader: &mut Reader<'_>) -> Self {
        let given = given.trim();
        let is_in_file = reader.variable("RECALL_CACHE_FILE").is_some();
        if is_in_file && !given.is_empty() {
            reader.faults.push("--cache (RECALL_CACHE) and RECALL_CACHE_FILE: give one of them".to_owned());
            return STAND_IN;
        }
        let from_file = if is_in_file { reader.secret("RECALL_CACHE") } else { None };
        let text = match &from_file {
            Some(secret) => secret.expose(),
            None if is_in_file => return STAND_IN,
            None => given,
        };
        Self::of(text).unwrap_or_else(|why| {
            reader.faults.push(format!("--cache (RECALL_CACHE): {why}"));
            STAND_IN
        })
    }

    fn of(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text.is_empty() || text == "memory" => Ok(Self::Memory),
            None if text == "off" => Ok(Self::Off),
            Some(("file", path)) if !path.trim().is_empty() => Ok(Self::File(path.into())),
            Some(("redis" | "rediss", _)) => {
                redis::check_url(text).map_err(|why| format!("the URL names no Redis: {why}"))?;
                Secret::new(text)
                    .map(Self::Redis)
                    .map_err(|_| "the URL holds a letter outside ASCII; write it as %XX".to_owned())
            }
            _ => Err(format!("expected {EXPECTED}")),
        }
    }
}
