//! One send path for every vendor: time-outs, tries, waits, the deadline, and errors without secrets.
//!
//! A vendor's file says where to post and what, and reads each reply as an answer or as a `Refusal`; whether that
//! refusal is worth another try, and when, is decided here. Nothing here knows a wire format.

use std::error::Error as _;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Client, RequestBuilder, Url, redirect};

use super::refusal::{Refusal, Reply, excerpt};
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

/// Characters of a backend's words that are passed on; more for limits, whose numbers must not be cut off.
const WORDS: usize = 300;
const WORDS_ON_LIMITS: usize = 600;

/// The connections to one backend, and what is known of its willingness.
#[derive(Debug)]
pub(super) struct Transport {
    client: Client,
    policy: CallPolicy,
    redactor: Redactor,
    gate: Gate,
}

/// What is posted, the same on every try.
#[derive(Debug)]
pub(super) struct Post<'a> {
    pub(super) url: &'a Url,
    pub(super) headers: &'a HeaderMap,
    /// JSON.
    pub(super) body: String,
}

impl Transport {
    /// `secrets` are taken out of everything that this transport says.
    pub(super) fn new(policy: CallPolicy, secrets: Vec<Secret>) -> Result<Self, SetupError> {
        let redactor = Redactor::new(secrets);
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
            .build()
            .map_err(|error| SetupError::Client(redactor.clean(&chain(error))))?;
        Ok(Self { client, policy, redactor, gate: Gate::default() })
    }

    /// A backend's words with the secrets of this transport taken out.
    pub(super) fn clean(&self, words: &str) -> String {
        self.redactor.clean(words)
    }

    /// Everything that will be sent for one question, which has to end before `deadline`.
    pub(super) fn effort(&self, deadline: Deadline) -> Effort<'_> {
        Effort { transport: self, deadline, failures: 0, last: None, floor: FIRST_FLOOR, calls: 0, uncounted: false }
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
        let outcome = self.exchange(request.headers(headers.clone()), &deadline).await;
        outcome.and_then(|reply| read(&reply)).map_err(|refusal| {
            let mut effort = self.effort(deadline);
            effort.calls = 1;
            effort.give_up(refusal)
        })
    }

    async fn post(&self, post: &Post<'_>, deadline: &Deadline) -> Result<Reply, Refusal> {
        let request = self
            .client
            .post(post.url.clone())
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .headers(post.headers.clone())
            .body(post.body.clone());
        self.exchange(request, deadline).await
    }

    async fn exchange(&self, request: RequestBuilder, deadline: &Deadline) -> Result<Reply, Refusal> {
        let exchange = async {
            let request = request.header(ACCEPT, HeaderValue::from_static("application/json"));
            let mut response = request.send().await.map_err(broken)?;
            let mut bytes = Vec::new();
            while let Some(chunk) = response.chunk().await.map_err(broken)? {
                if bytes.len() + chunk.len() > LONGEST_BODY {
                    let detail = format!("the backend's reply is longer than {LONGEST_BODY} bytes");
                    return Err(Refusal::without_reply(ProviderFault::Other, detail, false));
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
            outcome = exchange => outcome,
            () = deadline.reached() => Err(Refusal::without_reply(
                ProviderFault::Deadline,
                "the request's deadline passed while the backend was at work".to_owned(),
                false,
            )),
            () = tokio::time::sleep(self.policy.timeout) => {
                let detail = format!("the backend gave no whole reply within {:?}", self.policy.timeout);
                Err(Refusal { uncounted: true, ..Refusal::without_reply(ProviderFault::Timeout, detail, true) })
            }
        }
    }
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
    let mut source = error.source();
    while let Some(cause) = source {
        if let Some(io) = cause.downcast_ref::<std::io::Error>() {
            return matches!(io.kind(), ErrorKind::InvalidData | ErrorKind::InvalidInput);
        }
        source = cause.source();
    }
    false
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
    failures: u32,
    /// The last failure without a named wait.
    last: Option<(ProviderFault, String)>,
    floor: Duration,
    calls: u64,
    uncounted: bool,
}

impl Effort<'_> {
    /// Posts until `read` makes an answer of a reply, or no further try is worth it. May be called again with another
    /// body: the tries go on where they were, and a reply that `read` accepts spends none.
    pub(super) async fn send<T>(
        &mut self,
        post: &Post<'_>,
        read: impl Fn(&Reply) -> Result<T, Refusal>,
    ) -> Result<T, ProviderError> {
        loop {
            self.pass_gate().await?;
            self.calls += 1;
            let outcome = self.transport.post(post, &self.deadline).await;
            match outcome.and_then(|reply| read(&reply)) {
                Ok(answer) => return Ok(answer),
                Err(refusal) => self.pause(refusal).await?,
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

    async fn pass_gate(&self) -> Result<(), ProviderError> {
        loop {
            let now = Instant::now();
            let left = self.deadline.at().saturating_duration_since(now);
            if left.is_zero() {
                let detail = "the request's deadline passed before the backend could be asked";
                return Err(self.error(ProviderFault::Deadline, detail, None));
            }
            let Some((wait, fault)) = self.transport.gate.closed_for(now) else {
                return Ok(());
            };
            if wait >= left {
                let detail = format!("the backend asked to be left alone for another {wait:.1?}");
                return Err(self.error(fault, &detail, Some(wait)));
            }
            // Spread over a tenth, at most a second: whoever waits at the gate must not start at one instant.
            let jitter = wait.min(Duration::from_secs(10)).mul_f64(0.1 * fastrand::f64());
            tokio::time::sleep((wait + jitter).min(left)).await;
        }
    }

    /// Waits until the next try is due; an error when none is.
    async fn pause(&mut self, mut refusal: Refusal) -> Result<(), ProviderError> {
        self.uncounted |= refusal.uncounted;
        if refusal.fault == ProviderFault::Deadline
            && let Some(before) = self.last.take()
        {
            // The deadline only ended what the backend had failed at already: the failure is the news.
            refusal.detail = format!("{} ({} calls, until the request's deadline)", before.1, self.calls);
            refusal.fault = before.0;
        }
        if !refusal.again {
            return Err(self.give_up(refusal));
        }
        let now = Instant::now();
        let left = self.deadline.at().saturating_duration_since(now);
        let wait = if let Some(named) = refusal.wait {
            let wait = named.max(self.floor);
            self.floor = (self.floor * 2).min(LONGEST_FLOOR);
            wait
        } else {
            self.failures += 1;
            self.last = Some((refusal.fault, refusal.detail.clone()));
            if self.failures >= self.transport.policy.attempts {
                return Err(self.give_up(refusal));
            }
            back_off(self.failures)
        };
        if wait >= left {
            // Said at once: a caller learns nothing from waiting for a deadline that is bound to pass. The gate stays
            // open, since another caller may have more time, or ask for less.
            return Err(self.give_up(refusal));
        }
        tracing::debug!(
            status = refusal.status,
            fault = ?refusal.fault,
            wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
            named = refusal.wait.is_some(),
            call = self.calls,
            "the backend is asked again after a pause"
        );
        if refusal.wait.is_some() || refusal.fault == ProviderFault::RateLimited {
            self.transport.gate.close(now + wait, backing_off(refusal.fault));
        } else {
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

/// One gate for all questions to a backend: after "come back in 5 s" nobody asks for 5 s, so that a thousand waiting
/// questions do not each earn their own refusal.
#[derive(Debug, Default)]
struct Gate(Mutex<Option<(Instant, ProviderFault)>>);

impl Gate {
    fn close(&self, until: Instant, fault: ProviderFault) {
        let mut closed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if closed.is_none_or(|(other, _)| other < until) {
            *closed = Some((until, fault));
        }
    }

    fn closed_for(&self, now: Instant) -> Option<(Duration, ProviderFault)> {
        let closed = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (until, fault) = closed?;
        let wait = until.saturating_duration_since(now);
        (!wait.is_zero()).then_some((wait, fault))
    }
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

    #[test]
    fn the_longest_wait_keeps_the_gate_closed() {
        let gate = Gate::default();
        let now = Instant::now();
        assert_eq!(gate.closed_for(now), None);
        gate.close(now + Duration::from_secs(5), ProviderFault::RateLimited);
        gate.close(now + Duration::from_secs(2), ProviderFault::Overloaded);
        let expected = (Duration::from_secs(5), ProviderFault::RateLimited);
        assert_eq!(gate.closed_for(now), Some(expected));
        assert_eq!(gate.closed_for(now + Duration::from_secs(5)), None);
    }
}
