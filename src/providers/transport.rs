//! One send path for every vendor: time-outs, tries, waits, the deadline, and errors without secrets.
//!
//! A vendor's file says where to post and what, and reads each reply as an answer or as a `Refusal`; whether that
//! refusal is worth another try, and when, is decided here; when a call may go out at all, by the backend's `gate`.
//! Nothing here knows a wire format.

use std::error::Error as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Client, RequestBuilder, Url, redirect};
use tower::BoxError;
use tower::util::AndThenLayer;

use super::gate::{Gate, Pass, Ticket, TurnedAway};
use super::refusal::{Refusal, Reply};
use super::said::excerpt;
use super::secret::{Redactor, Secret};
use super::{ProviderError, ProviderFault, SetupError, window};
use crate::deadline::Deadline;

/// How long and how often a backend is tried.
#[derive(Debug, Clone, Copy)]
pub struct CallPolicy {
    /// The most that one call may take, from the first byte sent to the last byte of the reply. It bounds the whole
    /// rather than the silence between bytes, since some backends send blank lines for minutes while they queue.
    pub timeout: Duration,
    /// Tries of one question, at least 1. Waits that the backend names and adaptations of the request spend none.
    pub attempts: u32,
}

/// No answer of ours comes near; a reply that is longer is somebody else's page or a bomb.
const LONGEST_BODY: usize = 8 * 1024 * 1024;

/// A host that does not take a connection in this time is down, however long an answer may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Pause before the second try at most; it doubles from try to try.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(8);

/// A named wait is at least this long, and twice as long each further time in one question. Named waits spend no try,
/// so without it a backend that says "retry after 0" would be asked without end and without a pause.
const FIRST_FLOOR: Duration = Duration::from_millis(25);
const LONGEST_FLOOR: Duration = Duration::from_secs(2);

/// A wait up to this holds for everybody, even if whoever was told has less time left. A longer one that nobody waits for
/// is not believed for others: an hour without a single call would hide that the allowance was raised.
const LONGEST_COMMON_WAIT: Duration = Duration::from_secs(60);

/// Characters of a backend's words that are passed on; more for limits, whose numbers must not be cut off.
const WORDS: usize = 300;
const WORDS_ON_LIMITS: usize = 600;

/// The connections to one backend, and what is known of its willingness.
#[derive(Debug)]
pub(super) struct Transport {
    client: Client,
    policy: CallPolicy,
    redactor: Redactor,
    gate: Arc<Gate>,
}

/// What is posted, the same on every try.
#[derive(Debug)]
pub(super) struct Post<'a> {
    pub(super) url: &'a Url,
    pub(super) headers: &'a HeaderMap,
    /// JSON. Bytes that all tries share: a prompt may be megabytes.
    pub(super) body: Bytes,
}

impl Transport {
    /// `secrets` are taken out of everything that this transport says.
    pub(super) fn new(policy: CallPolicy, secrets: Vec<Secret>) -> Result<Self, SetupError> {
        let redactor = Redactor::new(secrets);
        let gate = Arc::new(Gate::new());
        let client = Client::builder()
            .user_agent(concat!("context-recall/", env!("CARGO_PKG_VERSION")))
            // Following one would hand `x-api-key` and the like to another host.
            .redirect(redirect::Policy::none())
            .referer(false)
            .connect_timeout(CONNECT_TIMEOUT)
            .tcp_nodelay(true)
            .tcp_keepalive(Duration::from_secs(30))
            // Below the minute after which load balancers drop idle connections without a word.
            .pool_idle_timeout(Duration::from_secs(45))
            .http2_keep_alive_interval(Duration::from_secs(30))
            .http2_keep_alive_timeout(Duration::from_secs(10))
            .connector_layer(AndThenLayer::new(unless_closed(&gate)))
            .build()
            .map_err(|error| SetupError::Client(redactor.clean(&chain(error))))?;
        Ok(Self { client, policy, redactor, gate })
    }

    /// A backend's words with the secrets of this transport taken out.
    pub(super) fn clean(&self, words: &str) -> String {
        self.redactor.clean(words)
    }

    /// Everything that will be sent for one question, which has to end before `deadline`.
    pub(super) fn effort(&self, deadline: Deadline) -> Effort<'_> {
        Effort {
            transport: self,
            deadline,
            ticket: Ticket::default(),
            failures: 0,
            last: None,
            floor: FIRST_FLOOR,
            calls: 0,
            uncounted: false,
        }
    }

    /// Asks once, for free, past the gate: GET, or POST where there is a body.
    pub(super) async fn look_up<T>(
        &self,
        url: &Url,
        headers: &HeaderMap,
        body: Option<String>,
        deadline: Deadline,
        read: impl Fn(&Reply) -> Result<T, Refusal>,
    ) -> Result<T, ProviderError> {
        let request = match body {
            Some(body) => self
                .client
                .post(url.clone())
                .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
                .body(body),
            None => self.client.get(url.clone()),
        };
        let closed = || Err(Refusal::without_reply(ProviderFault::Overloaded, Closed.to_string(), true));
        let outcome = self.exchange(request.headers(headers.clone()), &deadline).await.unwrap_or_else(closed);
        outcome.and_then(|reply| read(&reply)).map_err(|refusal| {
            let mut effort = self.effort(deadline);
            effort.calls = 1;
            effort.give_up(refusal)
        })
    }

    /// `None` when the gate closed before anything was sent.
    async fn post(&self, post: &Post<'_>, deadline: &Deadline) -> Option<Result<Reply, Refusal>> {
        let request = self
            .client
            .post(post.url.clone())
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .headers(post.headers.clone())
            .body(post.body.clone());
        self.exchange(request, deadline).await
    }

    /// `None` when the gate closed before anything was sent.
    async fn exchange(&self, request: RequestBuilder, deadline: &Deadline) -> Option<Result<Reply, Refusal>> {
        let exchange = async {
            let mut response = request
                .header(ACCEPT, HeaderValue::from_static("application/json"))
                .send()
                .await
                .map_err(|error| if caused_by::<Closed>(&error).is_some() { None } else { Some(broken(error)) })?;
            let mut bytes = Vec::new();
            while let Some(chunk) = response.chunk().await.map_err(broken)? {
                if bytes.len() + chunk.len() > LONGEST_BODY {
                    let detail = format!("the backend's reply is longer than {LONGEST_BODY} bytes");
                    return Err(Some(Refusal::without_reply(ProviderFault::Other, detail, false)));
                }
                bytes.extend_from_slice(&chunk);
            }
            Ok(Reply {
                status: response.status().as_u16(),
                headers: std::mem::take(response.headers_mut()),
                body: String::from_utf8(bytes)
                    .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
            })
        };
        tokio::select! {
            biased;
            outcome = exchange => match outcome {
                Ok(reply) => Some(Ok(reply)),
                Err(refusal) => refusal.map(Err),
            },
            () = deadline.reached() => Some(Err(Refusal::without_reply(
                ProviderFault::Deadline,
                "the request's deadline passed while the backend was at work".to_owned(),
                false,
            ))),
            () = tokio::time::sleep(self.policy.timeout) => {
                let detail = format!("the backend gave no whole reply within {:?}", self.policy.timeout);
                Some(Err(Refusal { uncounted: true, ..Refusal::without_reply(ProviderFault::Timeout, detail, true) }))
            }
        }
    }
}

/// The gate closed while a connection was being made.
#[derive(Debug, thiserror::Error)]
#[error("the backend asked to be left alone")]
struct Closed;

/// Looks at the gate once more when a connection stands: making one takes long enough for a first refusal to arrive, and a
/// call that was let through before it would be sent after it. The connection is given up: who knows when it is wanted.
fn unless_closed<C>(gate: &Arc<Gate>) -> impl Fn(C) -> future::Ready<Result<C, BoxError>> + Clone + use<C> {
    let gate = Arc::clone(gate);
    move |connection| future::ready(if gate.is_closed() { Err(Closed.into()) } else { Ok(connection) })
}

fn broken(error: reqwest::Error) -> Refusal {
    use ProviderFault::{Other, Unreachable};
    let (fault, again, what) = if error.is_builder() {
        (Other, false, "the request cannot be sent")
    } else if error.is_connect() {
        (Unreachable, true, "no connection to the backend")
    } else if bad_compression(&error) {
        (Other, true, "the backend's reply cannot be unpacked")
    } else {
        (Unreachable, true, "the connection to the backend broke")
    };
    Refusal {
        // Connecting costs nothing; whatever broke later may have been billed.
        uncounted: !error.is_connect(),
        ..Refusal::without_reply(fault, format!("{what}: {}", chain(error)), again)
    }
}

fn bad_compression(error: &reqwest::Error) -> bool {
    use std::io::ErrorKind;
    caused_by::<std::io::Error>(error)
        .is_some_and(|io| matches!(io.kind(), ErrorKind::InvalidData | ErrorKind::InvalidInput))
}

/// The first cause of this kind.
fn caused_by<E: std::error::Error + 'static>(error: &reqwest::Error) -> Option<&E> {
    let mut source = error.source();
    while let Some(cause) = source {
        if let Some(found) = cause.downcast_ref() {
            return Some(found);
        }
        source = cause.source();
    }
    None
}

/// The causes of an error in a row. The URL is left out: it may hold a key.
fn chain(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut words = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_words = cause.to_string();
        // Wrappers often repeat what they wrap.
        if !words.contains(&cause_words) {
            words.push_str(": ");
            words.push_str(&cause_words);
        }
        source = cause.source();
    }
    words
}

/// The tries for one question.
#[derive(Debug)]
pub(super) struct Effort<'t> {
    transport: &'t Transport,
    deadline: Deadline,
    ticket: Ticket,
    failures: u32,
    /// The last failure without a named wait.
    last: Option<(ProviderFault, String)>,
    floor: Duration,
    calls: u64,
    uncounted: bool,
}

impl<'t> Effort<'t> {
    /// Posts until `read` makes an answer of a reply, or no further try is worth it. May be called again with another
    /// body: the tries go on where they were, and a reply that `read` accepts spends none.
    pub(super) async fn send<T>(
        &mut self,
        post: &Post<'_>,
        read: impl Fn(&Reply) -> Result<T, Refusal>,
    ) -> Result<T, ProviderError> {
        loop {
            let pass = self.enter().await?;
            let Some(outcome) = self.transport.post(post, &self.deadline).await else {
                pass.unsent();
                continue;
            };
            self.calls += 1;
            match outcome.and_then(|reply| read(&reply)) {
                Ok(answer) => {
                    pass.done();
                    return Ok(answer);
                }
                Err(refusal) => self.pause(refusal, pass).await?,
            }
        }
    }

    /// What a refusal amounts to that came before anything was sent.
    pub(super) fn refuse(&self, refusal: Refusal) -> ProviderError {
        self.give_up(refusal)
    }

    /// Requests sent so far.
    pub(super) fn calls(&self) -> u64 {
        self.calls
    }

    /// Did a failed try perhaps cost tokens that no reply reported? A refusal costs none, a call that was cut may.
    pub(super) fn is_uncounted(&self) -> bool {
        self.uncounted
    }

    async fn enter(&mut self) -> Result<Pass<'t>, ProviderError> {
        let patience = self.transport.policy.attempts.saturating_sub(self.failures);
        let gate = &self.transport.gate;
        let entry = gate.enter(&mut self.ticket, &self.deadline, patience).await;
        entry.map_err(|TurnedAway { fault, detail, retry_after }| self.error(fault, &detail, retry_after))
    }

    /// Waits until the next try is due, in line where the gate is closed; an error when none is.
    async fn pause(&mut self, mut refusal: Refusal, pass: Pass<'_>) -> Result<(), ProviderError> {
        self.uncounted |= refusal.uncounted;
        if refusal.fault == ProviderFault::Deadline
            && let Some(before) = self.last.take()
        {
            // The deadline only ended what the backend had failed at already: the failure is the news.
            refusal.detail = format!("{} ({} calls, until the request's deadline)", before.1, self.calls);
            refusal.fault = before.0;
            pass.failed();
            return Err(self.give_up(refusal));
        }
        let left = self.deadline.at().saturating_duration_since(Instant::now());
        let named = refusal.wait.filter(|_| refusal.again);
        let wait = if let Some(named) = named {
            let wait = named.max(self.floor);
            self.floor = (self.floor * 2).min(LONGEST_FLOOR);
            wait
        } else {
            self.failures += 1;
            back_off(self.failures)
        };
        let is_for_all = refusal.again && (named.is_some() || refusal.fault == ProviderFault::RateLimited);
        let closing = Some(wait).filter(|wait| is_for_all && (*wait < left || *wait <= LONGEST_COMMON_WAIT));
        if closing.is_some() || matches!(refusal.fault, ProviderFault::RateLimited | ProviderFault::Overloaded) {
            pass.refused(backing_off(refusal.fault), refusal.detail.clone(), closing, named.is_some());
        } else {
            pass.failed();
        }
        if !refusal.again {
            return Err(self.give_up(refusal));
        }
        if named.is_none() {
            self.last = Some((refusal.fault, refusal.detail.clone()));
        }
        let is_last_try = named.is_none() && self.failures >= self.transport.policy.attempts;
        if is_last_try || wait >= left {
            // Said at once: a caller learns nothing from waiting for a deadline that is bound to pass.
            return Err(self.give_up(refusal));
        }
        tracing::debug!(
            status = refusal.status,
            fault = ?refusal.fault,
            wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
            named = named.is_some(),
            call = self.calls,
            "the backend is asked again after a pause"
        );
        if closing.is_none() {
            tokio::time::sleep(wait).await;
        }
        Ok(())
    }

    fn give_up(&self, refusal: Refusal) -> ProviderError {
        let fault = match refusal.fault {
            // Whoever names a wait is not broken but busy, whatever its status.
            fault if refusal.again && refusal.wait.is_some() => backing_off(fault),
            ProviderFault::Other if refusal.again => ProviderFault::Failing,
            fault => fault,
        };
        let window = (fault == ProviderFault::ContextLength).then(|| window::told(&refusal.said)).flatten();
        ProviderError { window, ..self.error(fault, &refusal.detail, refusal.wait) }
    }

    fn error(&self, fault: ProviderFault, detail: &str, retry_after: Option<Duration>) -> ProviderError {
        let most = match fault {
            ProviderFault::ContextLength => WORDS_ON_LIMITS,
            _ => WORDS,
        };
        ProviderError {
            fault,
            // Cut last: half a key would not be known for one.
            detail: excerpt(&self.transport.redactor.clean(detail), most),
            retry_after,
            window: None,
            calls: self.calls,
        }
    }
}

fn backing_off(fault: ProviderFault) -> ProviderFault {
    match fault {
        ProviderFault::RateLimited => ProviderFault::RateLimited,
        _ => ProviderFault::Overloaded,
    }
}

/// The pause after failure number `failures` (from 1): doubling, capped, the upper half of it random.
fn back_off(failures: u32) -> Duration {
    let doubled = FIRST_PAUSE.saturating_mul(1 << failures.saturating_sub(1).min(16));
    doubled.min(LONGEST_PAUSE).mul_f64(0.5 + 0.5 * fastrand::f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_cap_and_differ() {
        for (failures, least, most) in [(1, 250, 500), (2, 500, 1000), (5, 4000, 8000), (u32::MAX, 4000, 8000)] {
            let pauses: Vec<Duration> = (0..50).map(|_| back_off(failures)).collect();
            let range = Duration::from_millis(least)..=Duration::from_millis(most);
            assert!(pauses.iter().all(|pause| range.contains(pause)), "{pauses:?}");
            assert!(pauses.iter().any(|pause| *pause != pauses[0]));
        }
    }

    #[tokio::test]
    async fn nothing_is_sent_when_the_gate_closes_while_a_connection_is_made() {
        use tokio::io::AsyncReadExt as _;

        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = Url::parse(&format!("http://{}/v1", listener.local_addr().unwrap())).unwrap();
        let policy = CallPolicy { timeout: Duration::from_secs(5), attempts: 1 };
        let transport = Transport::new(policy, Vec::new()).unwrap();
        let deadline = Deadline::from(Instant::now() + Duration::from_secs(60));
        let gate = &transport.gate;
        let enter = async || gate.enter(&mut Ticket::default(), &deadline, 1).await.unwrap();
        let (ours, other) = (enter().await, enter().await);
        other.refused(ProviderFault::RateLimited, String::new(), Some(Duration::from_secs(30)), true);
        let post = Post { url: &url, headers: &HeaderMap::new(), body: Bytes::from_static(b"{}") };
        let (outcome, connection) = future::join(transport.post(&post, &deadline), listener.accept()).await;
        assert!(outcome.is_none());
        assert_eq!(connection.unwrap().0.read(&mut [0; 64]).await.unwrap(), 0, "closed without a byte");
        ours.unsent();
    }
}
