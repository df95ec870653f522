//! A memory in this process, bounded by bytes. Ends with the process.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, ready};
use moka::sync::Cache;

use crate::recall::memory::{Key, Memory};

/// A memory in this process.
#[derive(Debug)]
pub struct LocalMemory(Cache<Key, Arc<[u8]>>);

/// What an entry takes beside its own bytes: its key twice, and what the cache keeps about it. Measured, rounded up.
const OVERHEAD: usize = 512;

impl LocalMemory {
    /// A memory of at most `bytes`; entries are forgotten after `age`, and before that where there is no room.
    #[must_use]
    pub fn new(bytes: u64, age: Option<Duration>) -> Self {
        let weight = |_: &Key, entry: &Arc<[u8]>| u32::try_from(entry.len() + OVERHEAD).unwrap_or(u32::MAX);
        let cache = Cache::builder().max_capacity(bytes).weigher(weight);
        Self(match age {
            Some(age) => cache.time_to_live(age).build(),
            None => cache.build(),
        })
    }
}

impl Memory for LocalMemory {
    fn kind(&self) -> &'static str {
        "memory"
    }

    fn get(&self, key: Key) -> BoxFuture<'_, Option<Arc<[u8]>>> {
        Box::pin(ready(self.0.get(&key)))
    }

    fn put(&self, key: Key, entry: Vec<u8>) -> BoxFuture<'_, ()> {
        self.0.insert(key, entry.into());
        Box::pin(ready(()))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(ready(()))
    }
}
