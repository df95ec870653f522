//! A memory that several replicas share: a Redis, or what speaks its protocol.
//!
//! One connection carries all commands. A Redis that does not answer costs each sample a bounded wait, and after the first
//! failure it is left alone for some seconds, in which nothing waits for it at all.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, ready};
use redis::aio::MultiplexedConnection;
use redis::io::tcp::TcpSettings;
use redis::{AsyncConnectionConfig, Client, Cmd, FromRedisValue, IntoConnectionInfo as _, RedisError};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::Trouble;
use crate::recall::memory::{Key, Memory};

/// What stands before each key. The key itself tells versions apart.
const PREFIX: &str = "context-recall:";

/// The longest wait for a connection, its greetings included.
const CONNECT: Duration = Duration::from_secs(1);

/// The longest wait for an answer.
const ANSWER: Duration = Duration::from_secs(1);

/// How long a Redis that failed is left alone.
const PAUSE: Duration = Duration::from_secs(5);

/// A memory in a Redis.
#[derive(Debug, Clone)]
pub struct RedisMemory(Arc<Remote>);

#[derive(Debug)]
struct Remote {
    client: Client,
    age: Option<Duration>,
    line: Mutex<Line>,
    /// Trouble with the Redis itself, and with single commands to it: a full one refuses writes and still answers.
    reaching: Trouble,
    reading: Trouble,
    writing: Trouble,
}

/// The connection. It has a number, so that a command that failed ends its own and no later one.
enum Line {
    None { number: u64 },
    Up { number: u64, connection: MultiplexedConnection },
    Down { number: u64, until: Instant },
}

impl std::fmt::Debug for Line {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Line")
    }
}

/// What came of a command.
enum Failure {
    /// The Redis cannot be reached, or has just failed.
    Down,
    /// It answered that it will not.
    Refused(RedisError),
}

/// What is asked at `url`, sent without waiting for more to send.
fn client(url: &str) -> Result<Client, String> {
    let at_once = TcpSettings::default().set_nodelay(true);
    let info = url.into_connection_info().map(|info| info.set_tcp_settings(at_once));
    info.and_then(Client::open).map_err(|error| {
        // Its fixed words stand before the dash; what was given may follow.
        error.to_string().split(" - ").next().unwrap_or_default().trim_end_matches('-').trim_end().to_owned()
    })
}

/// Says in words why a URL does not name a Redis; never quotes it, since it may hold a password.
///
/// # Errors
///
/// When it does not.
pub fn check_url(url: &str) -> Result<(), String> {
    client(url).map(drop)
}

impl RedisMemory {
    /// A memory at `url`; connects when it is first needed. Entries are forgotten after `age`.
    ///
    /// # Errors
    ///
    /// In words, when the URL names no Redis.
    pub fn new(url: &str, age: Option<Duration>) -> Result<Self, String> {
        Ok(Self(Arc::new(Remote {
            client: client(url)?,
            age,
            line: Mutex::new(Line::None { number: 0 }),
            reaching: Trouble::default(),
            reading: Trouble::default(),
            writing: Trouble::default(),
        })))
    }
}

impl Memory for RedisMemory {
    fn kind(&self) -> &'static str {
        "redis"
    }

    fn get(&self, key: Key) -> BoxFuture<'_, Option<Arc<[u8]>>> {
        Box::pin(async move {
            let mut command = redis::cmd("GET");
            command.arg(name(key));
            match self.0.send::<Option<Vec<u8>>>(&command).await {
                Ok(found) => {
                    self.0.reading.is_over("the shared memory is read");
                    found.map(Into::into)
                }
                Err(Failure::Down) => None,
                Err(Failure::Refused(error)) => {
                    self.0.reading.tell("the shared memory refuses to be read", &plain(&error));
                    None
                }
            }
        })
    }

    fn put(&self, key: Key, entry: Vec<u8>) -> BoxFuture<'_, ()> {
        let remote = Arc::clone(&self.0);
        // A task of its own, so that it is written whoever leaves.
        let writing = tokio::spawn(async move {
            let mut command = redis::cmd("SET");
            command.arg(name(key)).arg(entry);
            if let Some(age) = remote.age {
                command.arg("EX").arg(age.as_secs().max(1));
            }
            match remote.send::<()>(&command).await {
                Ok(()) => remote.writing.is_over("the shared memory is written"),
                Err(Failure::Down) => {}
                Err(Failure::Refused(error)) => {
                    remote.writing.tell("the shared memory refuses to be written", &plain(&error));
                }
            }
        });
        Box::pin(async move {
            let _ = writing.await;
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(ready(()))
    }
}

impl Remote {
    /// Sends a command; once more where the connection turns out to have been closed, as after a restart of the Redis.
    async fn send<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, Failure> {
        let mut is_second = false;
        loop {
            let (number, mut connection) = self.connection().await.ok_or(Failure::Down)?;
            let error = match tokio::time::timeout(ANSWER, command.query_async(&mut connection)).await {
                Ok(Ok(value)) => return Ok(value),
                Ok(Err(error)) if !is_broken(&error) => return Err(Failure::Refused(error)),
                Ok(Err(error)) => plain(&error),
                Err(_) => {
                    self.give_up(number, format!("no answer within {ANSWER:?}")).await;
                    return Err(Failure::Down);
                }
            };
            if is_second {
                self.give_up(number, error).await;
                return Err(Failure::Down);
            }
            self.hang_up(number).await;
            is_second = true;
        }
    }

    /// The connection, made where there is none; `None` while the Redis is left alone. Whoever comes while one is being made
    /// waits for that one.
    async fn connection(&self) -> Option<(u64, MultiplexedConnection)> {
        let mut line = self.line.lock().await;
        let number = match &*line {
            Line::Up { number, connection } => return Some((*number, connection.clone())),
            Line::Down { until, .. } if Instant::now() < *until => return None,
            Line::None { number } | Line::Down { number, .. } => number + 1,
        };
        let config = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        let connecting = self.client.get_multiplexed_async_connection_with_config(&config);
        let error = match tokio::time::timeout(CONNECT, connecting).await {
            Ok(Ok(connection)) => {
                self.reaching.is_over("the shared memory answers");
                *line = Line::Up { number, connection: connection.clone() };
                return Some((number, connection));
            }
            Ok(Err(error)) => plain(&error),
            Err(_) => format!("no connection within {CONNECT:?}"),
        };
        *line = Line::Down { number, until: Instant::now() + PAUSE };
        self.reaching.tell("the shared memory cannot be reached", &error);
        None
    }

    /// Lets go of this connection, if it still is the one in use.
    async fn hang_up(&self, failed: u64) {
        let mut line = self.line.lock().await;
        if matches!(&*line, Line::Up { number, .. } if *number == failed) {
            *line = Line::None { number: failed };
        }
    }

    /// The same, and leaves the Redis alone for a while.
    async fn give_up(&self, failed: u64, error: String) {
        let mut line = self.line.lock().await;
        if matches!(&*line, Line::Up { number, .. } if *number == failed) {
            *line = Line::Down { number: failed, until: Instant::now() + PAUSE };
            self.reaching.tell("the shared memory does not answer", &error);
        }
    }
}

fn name(key: Key) -> String {
    format!("{PREFIX}{key}")
}

/// Did the connection fail, rather than the command?
fn is_broken(error: &RedisError) -> bool {
    error.is_io_error() || error.is_connection_dropped() || error.is_unrecoverable_error()
}

/// An error in words that hold no address and no password.
fn plain(error: &RedisError) -> String {
    let kind = error.category();
    error.code().map_or_else(|| kind.to_owned(), |code| format!("{kind} ({code})"))
}
