//! A memory in a file, for one process. What was put is on disk before [`Memory::put`] is done, whatever ends the process.
//!
//! One thread writes. Whatever waits while it commits goes into its next commit, so that many answers at once do not cost
//! as many flushes of the disk. A disk that fails costs what is not written, and the file is opened again after a pause.

use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use futures_util::future::BoxFuture;
use redb::{Database, DatabaseError, ReadableDatabase as _, TableDefinition, TableError};
use tokio::sync::oneshot;

use super::Trouble;
use crate::recall::memory::{Key, Memory};

/// An entry behind the second in which it was written, counted from 1970 in eight bytes, the lowest first.
const ENTRIES: TableDefinition<'_, &[u8; 32], &[u8]> = TableDefinition::new("entries/1");

/// Entries of one commit; more would hold up those who wait for it.
const MOST_AT_ONCE: usize = 1024;

/// How long a file that failed is left alone.
const PAUSE: Duration = Duration::from_secs(5);

/// What is said of a damaged file that the library did not expect.
const PANICKED: &str = "its library panicked";

/// In so many slices old entries are swept out, one after another, so that none holds up those who write.
const SLICES: u32 = 256;

/// A memory in a file.
#[derive(Debug)]
pub struct FileMemory {
    shelf: Arc<Shelf>,
    writer: Mutex<Option<Writer>>,
}

/// Why a file cannot serve as a memory.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    /// Another process has it.
    #[error("the file {} is in use by another process: a file serves one, several share redis://HOST", .0.display())]
    InUse(PathBuf),
    /// It cannot be opened, made or read.
    #[error("the file {} cannot be used as a memory: {}; move it away to begin anew", .0.display(), .1)]
    Broken(PathBuf, redb::Error),
}

#[derive(Debug)]
struct Writer {
    orders: Sender<Order>,
    thread: JoinHandle<()>,
}

#[derive(Debug)]
struct Order {
    key: Key,
    entry: Vec<u8>,
    /// Told once it is on disk, or cannot be.
    _done: oneshot::Sender<()>,
}

impl FileMemory {
    /// Opens the file at `path`, or makes it. At most `cache` bytes of it are held in memory; entries count for `age`.
    ///
    /// # Errors
    ///
    /// [`Unusable`] when another process has it, or when it is no such file.
    pub fn open(path: &Path, cache: usize, age: Option<Duration>) -> Result<Self, Unusable> {
        let shelf = Shelf {
            path: path.to_owned(),
            cache,
            age,
            open: RwLock::new(None),
            reading: Trouble::default(),
            writing: Trouble::default(),
        };
        shelf.open()?;
        let shelf = Arc::new(shelf);
        let (orders, taken) = channel();
        let mut clerk =
            Clerk { shelf: Arc::clone(&shelf), orders: taken, not_before: None, next_sweep: None, slice: 0 };
        let thread = std::thread::Builder::new().name("memory".to_owned()).spawn(move || clerk.work());
        let thread = thread.map_err(|error| Unusable::Broken(path.to_owned(), redb::Error::Io(error)))?;
        Ok(Self { shelf, writer: Mutex::new(Some(Writer { orders, thread })) })
    }
}

impl Memory for FileMemory {
    fn kind(&self) -> &'static str {
        "file"
    }

    fn get(&self, key: Key) -> BoxFuture<'_, Option<Arc<[u8]>>> {
        let shelf = Arc::clone(&self.shelf);
        Box::pin(async move {
            let found = tokio::task::spawn_blocking(move || {
                let found = shelf.read(key);
                match &found {
                    Ok(_) => shelf.reading.is_over("the memory's file is read"),
                    Err(error) => shelf.reading.tell("the memory's file cannot be read", error),
                }
                found.ok().flatten()
            });
            // A damaged file may make its reader panic; the panic is in the log.
            found.await.ok().flatten()
        })
    }

    fn put(&self, key: Key, entry: Vec<u8>) -> BoxFuture<'_, ()> {
        let (done, is_done) = oneshot::channel();
        if let Some(writer) = &*self.writer.lock().unwrap_or_else(PoisonError::into_inner) {
            // Without its thread it is as if it had not been written; the thread ends only with the memory.
            let _ = writer.orders.send(Order { key, entry, _done: done });
        }
        Box::pin(async move {
            let _ = is_done.await;
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        Box::pin(async move {
            let Some(Writer { orders, thread }) = writer else { return };
            drop(orders);
            let _ = tokio::task::spawn_blocking(move || thread.join()).await;
        })
    }
}

/// The file, open or not.
#[derive(Debug)]
struct Shelf {
    path: PathBuf,
    cache: usize,
    age: Option<Duration>,
    open: RwLock<Option<Arc<Database>>>,
    reading: Trouble,
    writing: Trouble,
}

impl Shelf {
    fn open(&self) -> Result<(), Unusable> {
        let broken = |error: redb::Error| Unusable::Broken(self.path.clone(), error);
        keep_private(&self.path).map_err(|error| broken(error.into()))?;
        let create = || Database::builder().set_cache_size(self.cache).create(&self.path);
        let database =
            catch_unwind(create).unwrap_or_else(|_| Err(redb::StorageError::Corrupted(PANICKED.to_owned()).into()));
        let database = database.map_err(|error| match error {
            DatabaseError::DatabaseAlreadyOpen => Unusable::InUse(self.path.clone()),
            error => broken(error.into()),
        })?;
        *self.open.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(database));
        Ok(())
    }

    /// Lets go of the file once nobody reads it.
    fn shut(&self) {
        self.open.write().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Opens it again where it was shut.
    fn stand_open(&self) -> Result<(), Unusable> {
        if self.database().is_some() { Ok(()) } else { self.open() }
    }

    fn database(&self) -> Option<Arc<Database>> {
        self.open.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn read(&self, key: Key) -> Result<Option<Arc<[u8]>>, redb::Error> {
        // Shut after a failure, which the log has told.
        let Some(database) = self.database() else { return Ok(None) };
        let table = match database.begin_read()?.open_table(ENTRIES) {
            // Nothing was ever written.
            Err(TableError::TableDoesNotExist(_)) => return Ok(None),
            table => table?,
        };
        let found = table.get(key.as_bytes())?;
        Ok(found.and_then(|found| {
            let (written, entry) = found.value().split_first_chunk()?;
            self.counts(*written, now()).then(|| entry.into())
        }))
    }

    /// Does an entry of that second still count?
    fn counts(&self, written: [u8; 8], now: u64) -> bool {
        self.age.is_none_or(|age| now.saturating_sub(u64::from_le_bytes(written)) < age.as_secs().max(1))
    }

    fn write(&self, orders: &[Order]) -> Result<(), redb::Error> {
        let written = now().to_le_bytes();
        self.change(|table| {
            orders.iter().try_for_each(|order| {
                table.insert(order.key.as_bytes(), [&written, order.entry.as_slice()].concat().as_slice())?;
                Ok(())
            })
        })
    }

    /// Throws out what counts no longer of the entries whose key begins with `slice`.
    fn sweep(&self, slice: u8) -> Result<(), redb::Error> {
        let (mut first, mut last) = ([0; 32], [u8::MAX; 32]);
        (first[0], last[0]) = (slice, slice);
        let now = now();
        self.change(|table| {
            table.retain_in::<&[u8; 32], _>(&first..=&last, |_, entry| {
                entry.split_first_chunk().is_some_and(|(written, _)| self.counts(*written, now))
            })?;
            Ok(())
        })
    }

    fn change(
        &self,
        change: impl FnOnce(&mut redb::Table<'_, &'static [u8; 32], &'static [u8]>) -> Result<(), redb::Error>,
    ) -> Result<(), redb::Error> {
        let transaction = self.database().ok_or(redb::Error::DatabaseClosed)?.begin_write()?;
        change(&mut transaction.open_table(ENTRIES)?)?;
        Ok(transaction.commit()?)
    }
}

/// The thread that writes.
struct Clerk {
    shelf: Arc<Shelf>,
    orders: Receiver<Order>,
    /// The file failed and is not tried before this.
    not_before: Option<Instant>,
    next_sweep: Option<Instant>,
    slice: u8,
}

impl Clerk {
    fn work(&mut self) {
        let between_sweeps =
            self.shelf.age.map(|age| (age / SLICES).clamp(Duration::from_secs(1), Duration::from_secs(3600)));
        let mut batch = Vec::new();
        loop {
            self.next_sweep = self.next_sweep.or(between_sweeps.map(|pause| Instant::now() + pause));
            let patience = self.next_sweep.map_or(Duration::MAX, |next| next.saturating_duration_since(Instant::now()));
            match self.orders.recv_timeout(patience) {
                Ok(order) => batch.push(order),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            batch.extend(self.orders.try_iter().take(MOST_AT_ONCE));
            if !batch.is_empty() {
                self.attempt(|shelf| shelf.write(&batch));
                // Told one by one, by being dropped.
                batch.clear();
            }
            if self.next_sweep.is_some_and(|next| next <= Instant::now()) {
                let slice = self.slice;
                self.attempt(|shelf| shelf.sweep(slice));
                self.slice = slice.wrapping_add(1);
                self.next_sweep = None;
            }
        }
        self.shelf.shut();
    }

    /// Changes the file, unless it has just failed. A library that panics over a damaged file must not end this thread.
    fn attempt(&mut self, change: impl FnOnce(&Shelf) -> Result<(), redb::Error>) {
        if self.not_before.is_some_and(|not_before| Instant::now() < not_before) {
            return;
        }
        self.not_before = None;
        let change = || {
            self.shelf
                .stand_open()
                .map_err(|error| error.to_string())
                .and_then(|()| change(&self.shelf).map_err(|error| error.to_string()))
        };
        let Err(error) = catch_unwind(AssertUnwindSafe(change)).unwrap_or_else(|_| Err(PANICKED.to_owned())) else {
            return self.shelf.writing.is_over("the memory's file is written");
        };
        self.shelf.writing.tell("the memory's file cannot be written", &error);
        self.not_before = Some(Instant::now() + PAUSE);
        // After a failure nothing more can be done with it as it stands. A full disk can still be read: where it cannot be
        // opened again at once, the next attempt will try.
        self.shelf.shut();
        let _ = self.shelf.stand_open();
    }
}

/// Makes the file before anybody else does, readable to its owner alone: it holds quotes from what was sent.
fn keep_private(path: &Path) -> io::Result<()> {
    match std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made.map(drop),
    }
}

/// Seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
