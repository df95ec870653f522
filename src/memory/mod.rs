//! What is remembered: stores behind the port in [`crate::recall::memory`].
//!
//! A store keeps bytes under keys. It knows neither what they say nor who asked, and whatever goes wrong with it stays in
//! here: a miss, a line in the log.

pub mod file;
pub mod local;
pub mod redis;

use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::{BoxFuture, ready};

use crate::recall::memory::{Key, Memory};

/// Remembers nothing.
#[derive(Debug, Clone, Copy)]
pub struct Off;

impl Memory for Off {
    fn kind(&self) -> &'static str {
        "off"
    }

    fn get(&self, _: Key) -> BoxFuture<'_, Option<Arc<[u8]>>> {
        Box::pin(ready(None))
    }

    fn put(&self, _: Key, _: Vec<u8>) -> BoxFuture<'_, ()> {
        Box::pin(ready(()))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(ready(()))
    }
}

/// Something that can go wrong a thousand times a second, and is worth a line when it begins and one when it ends.
#[derive(Debug, Default)]
struct Trouble(AtomicBool);

impl Trouble {
    /// `what` went wrong; `error` says how and holds no secret.
    fn tell(&self, what: &'static str, error: &dyn Display) {
        if self.0.swap(true, Ordering::Relaxed) {
            tracing::debug!(%error, "{what}");
        } else {
            tracing::warn!(%error, "{what}; samples are judged all the same. Further failures are told at debug level");
        }
    }

    /// It went right.
    fn is_over(&self, what: &'static str) {
        if self.0.load(Ordering::Relaxed) && self.0.swap(false, Ordering::Relaxed) {
            tracing::info!("{what} again");
        }
    }
}
