//! A queue that takes in whatever is put into it: a little in memory, the rest in a temporary file without a name.
//!
//! Many clients read nothing before they have sent everything. If the service waited for its answers to be read before
//! it took in more, both sides would wait for ever; if it kept the input in memory, a long one would fill it. A leaf: knows
//! neither HTTP nor what the records mean.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// One record: a tag that travels with it, and its bytes.
pub type Record = (u64, Box<[u8]>);

/// How much a spool may hold.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    /// Bytes in memory; a single record may be larger.
    pub memory: usize,
    /// Bytes in the file; beyond, whoever puts in has to wait. 0 for no file.
    pub disk: u64,
}

/// The end that records are put into. Dropping it ends the queue.
#[derive(Debug)]
pub struct Inlet(Arc<Shared>);

/// The end that records come out of, in the order in which they were put in. Dropping it stops whoever puts in.
#[derive(Debug)]
pub struct Outlet {
    shared: Arc<Shared>,
    /// Records read from the file that are older than all in memory.
    ready: VecDeque<Record>,
    /// The beginning of a record whose end was not read yet.
    partial: Vec<u8>,
}

/// Nobody takes records out any longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("nobody takes records out any longer")]
pub struct Abandoned;

#[derive(Debug)]
struct Shared {
    room: Room,
    state: Mutex<State>,
    /// Told of every change that the other end may wait for.
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Record>,
    queued: usize,
    file: Option<Arc<File>>,
    written: u64,
    read: u64,
    /// The file cannot be written: no room on the disk, or no place for it.
    broken: bool,
    ended: bool,
    abandoned: bool,
}

/// Bytes read from the file at once.
const BLOCK: usize = 256 * 1024;

/// A queue without records.
#[must_use]
pub fn spool(room: Room) -> (Inlet, Outlet) {
    let shared = Arc::new(Shared { room, state: Mutex::default(), changed: Notify::new() });
    (Inlet(Arc::clone(&shared)), Outlet { shared, ready: VecDeque::new(), partial: Vec::new() })
}

impl Inlet {
    /// Puts records in. Waits only when memory is full and so is the file, or it cannot be written.
    ///
    /// # Errors
    ///
    /// [`Abandoned`] once the other end is gone.
    pub async fn put(&mut self, records: Vec<Record>) -> Result<(), Abandoned> {
        let size: usize = records.iter().map(|(_, bytes)| bytes.len()).sum();
        let mut records = Some(records);
        loop {
            // Before looking, so that no change goes unseen between the look and the wait.
            let changed = self.0.changed.notified();
            let (file, at) = match self.0.place(size, &mut records)? {
                Place::Taken => break,
                Place::File(file, at) => (file, at),
                Place::None => {
                    changed.await;
                    continue;
                }
            };
            let block = encoded(records.as_deref().unwrap_or_default());
            let length = block.len() as u64;
            let written = tokio::task::spawn_blocking(move || {
                let file = file.map_or_else(|| tempfile::tempfile().map(Arc::new), Ok)?;
                file.write_all_at(&block, at).map(|()| file)
            });
            let outcome = written.await.unwrap_or_else(|error| Err(io::Error::other(error)));
            let mut state = self.0.state();
            match outcome {
                Ok(file) => {
                    state.file = Some(file);
                    state.written += length;
                    break;
                }
                Err(error) => {
                    tracing::warn!(%error, "the temporary file for a stream's input cannot be written; its sender has to wait");
                    state.broken = true;
                }
            }
        }
        self.0.changed.notify_waiters();
        Ok(())
    }
}

impl Drop for Inlet {
    fn drop(&mut self) {
        self.0.state().ended = true;
        self.0.changed.notify_waiters();
    }
}

impl Outlet {
    /// The next record; `None` once all were taken and no more will come.
    ///
    /// # Errors
    ///
    /// When what lies in the file cannot be read back.
    pub async fn take(&mut self) -> io::Result<Option<Record>> {
        loop {
            if let Some(record) = self.ready.pop_front() {
                return Ok(Some(record));
            }
            let shared = Arc::clone(&self.shared);
            let changed = shared.changed.notified();
            match shared.next() {
                Next::Record(record) => {
                    shared.changed.notify_waiters();
                    return Ok(Some(record));
                }
                Next::InFile(file, from, to) => self.read_block(file, from, to).await?,
                Next::NotYet => changed.await,
                Next::Never => return Ok(None),
            }
        }
    }

    async fn read_block(&mut self, file: Arc<File>, from: u64, to: u64) -> io::Result<()> {
        let length = usize::try_from(to - from).unwrap_or(BLOCK).min(BLOCK);
        let reading = tokio::task::spawn_blocking(move || {
            let mut block = vec![0; length];
            file.read_exact_at(&mut block, from).map(|()| block)
        });
        let block = reading.await.unwrap_or_else(|error| Err(io::Error::other(error)))?;
        self.partial.extend_from_slice(&block);
        let used = decode(&self.partial, &mut self.ready);
        self.partial.drain(..used);
        let mut state = self.shared.state();
        state.read += length as u64;
        drop(state);
        self.shared.changed.notify_waiters();
        Ok(())
    }
}

impl Drop for Outlet {
    fn drop(&mut self) {
        self.shared.state().abandoned = true;
        self.shared.changed.notify_waiters();
    }
}

/// Where records go.
enum Place {
    /// They are in memory now.
    Taken,
    /// Into the file (a new one where there is none), at this place.
    File(Option<Arc<File>>, u64),
    None,
}

/// Where the next record is.
enum Next {
    Record(Record),
    /// In the file, between these places.
    InFile(Arc<File>, u64, u64),
    NotYet,
    Never,
}

impl Shared {
    fn place(&self, size: usize, records: &mut Option<Vec<Record>>) -> Result<Place, Abandoned> {
        let mut state = self.state();
        if state.abandoned {
            return Err(Abandoned);
        }
        if state.read == state.written && state.written > 0 {
            // All was read: the file starts anew and gives its room on the disk back. Done by whoever puts in, since a
            // block might be on its way into the file else.
            (state.read, state.written) = (0, 0);
            state.broken |= state.file.as_ref().is_some_and(|file| file.set_len(0).is_err());
        }
        let is_on_disk = state.read < state.written;
        let fits = state.queue.is_empty() || state.queued + size <= self.room.memory;
        if !is_on_disk && fits {
            state.queued += size;
            state.queue.extend(records.take().unwrap_or_default());
            return Ok(Place::Taken);
        }
        if !state.broken && state.written + size as u64 <= self.room.disk {
            return Ok(Place::File(state.file.clone(), state.written));
        }
        Ok(Place::None)
    }

    fn next(&self) -> Next {
        let mut state = self.state();
        if let Some(record) = state.queue.pop_front() {
            state.queued -= record.1.len();
            return Next::Record(record);
        }
        match state.file.clone() {
            Some(file) if state.read < state.written => Next::InFile(file, state.read, state.written),
            _ if state.ended => Next::Never,
            _ => Next::NotYet,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Each record as its tag and its length, eight bytes each, and its bytes.
fn encoded(records: &[Record]) -> Vec<u8> {
    let mut block = Vec::with_capacity(records.iter().map(|(_, bytes)| bytes.len() + 16).sum());
    for (tag, bytes) in records {
        block.extend_from_slice(&tag.to_le_bytes());
        block.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        block.extend_from_slice(bytes);
    }
    block
}

/// Takes the whole records off the front of a block; gives the bytes that they took.
fn decode(mut block: &[u8], records: &mut VecDeque<Record>) -> usize {
    let before = block.len();
    while let Some((head, rest)) = block.split_first_chunk::<16>() {
        let mut number = [0; 8];
        number.copy_from_slice(&head[..8]);
        let tag = u64::from_le_bytes(number);
        number.copy_from_slice(&head[8..]);
        let length = usize::try_from(u64::from_le_bytes(number)).unwrap_or(usize::MAX);
        let Some(bytes) = rest.get(..length) else { break };
        records.push_back((tag, bytes.into()));
        block = &rest[length..];
    }
    before - block.len()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn record(tag: u64, size: usize) -> Record {
        (tag, vec![u8::try_from(tag % 251).unwrap(); size].into())
    }

    const SMALL: Room = Room { memory: 1000, disk: 1 << 30 };

    #[tokio::test]
    async fn all_is_taken_in_before_anything_is_taken_out() {
        let (mut inlet, mut outlet) = spool(SMALL);
        for tag in 0..5000 {
            inlet.put(vec![record(tag, usize::try_from(tag % 700).unwrap())]).await.unwrap();
        }
        drop(inlet);
        for tag in 0..5000 {
            let taken = outlet.take().await.unwrap().unwrap();
            assert_eq!(taken, record(tag, usize::try_from(tag % 700).unwrap()));
        }
        assert_eq!(outlet.take().await.unwrap(), None);
    }

    #[tokio::test]
    async fn order_is_kept_while_both_ends_work() {
        let (mut inlet, mut outlet) = spool(SMALL);
        let putting = tokio::spawn(async move {
            for start in (0..20_000).step_by(10) {
                let records = (start..start + 10).map(|tag| record(tag, 90)).collect();
                inlet.put(records).await.unwrap();
                if start % 3000 == 0 {
                    tokio::time::sleep(Duration::from_millis(3)).await;
                }
            }
        });
        for tag in 0..20_000 {
            assert_eq!(outlet.take().await.unwrap().unwrap().0, tag);
        }
        assert_eq!(outlet.take().await.unwrap(), None);
        putting.await.unwrap();
        let state = outlet.shared.state();
        assert_eq!(state.read, state.written);
        // The sender rested now and then, so what was read had been given back before more was written.
        assert!(state.written < 20_000 * 106, "{}", state.written);
    }

    #[tokio::test]
    async fn a_full_spool_makes_the_sender_wait_and_loses_nothing() {
        let (mut inlet, mut outlet) = spool(Room { memory: 100, disk: 3000 });
        let putting = tokio::spawn(async move {
            for tag in 0..500 {
                inlet.put(vec![record(tag, 60)]).await.unwrap();
            }
        });
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(!putting.is_finished());
        for tag in 0..500 {
            assert_eq!(outlet.take().await.unwrap().unwrap(), record(tag, 60));
        }
        putting.await.unwrap();
    }

    #[tokio::test]
    async fn without_a_file_memory_alone_is_used() {
        let (mut inlet, mut outlet) = spool(Room { memory: 100, disk: 0 });
        // One that is larger than all the room still passes.
        inlet.put(vec![record(0, 5000)]).await.unwrap();
        let more = tokio::spawn(async move { inlet.put(vec![record(1, 1)]).await });
        assert_eq!(outlet.take().await.unwrap().unwrap(), record(0, 5000));
        assert_eq!(outlet.take().await.unwrap().unwrap(), record(1, 1));
        more.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn who_leaves_stops_the_other() {
        let (mut inlet, outlet) = spool(Room { memory: 10, disk: 0 });
        inlet.put(vec![record(0, 10)]).await.unwrap();
        let waiting = tokio::spawn(async move { inlet.put(vec![record(1, 10)]).await });
        tokio::time::sleep(Duration::from_millis(20)).await;
        drop(outlet);
        assert_eq!(waiting.await.unwrap(), Err(Abandoned));
    }
}
