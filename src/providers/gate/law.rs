//! How much is asked of a backend that refuses: the control law of the gate. No clock, no lock, no waiting: what time it
//! is and what happened is told to it.
//!
//! A backend that never refused is given everything at once. From its first refusal on three things hold:
//!
//! 1. **It is left alone** for as long as it asked. Then one call goes out as a probe, and the others follow when that
//!    one is answered, or after [`PROBE_HEAD_START`], since an answer may take a minute where a refusal takes
//!    milliseconds. A probe that is refused while nothing else was sent teaches only that it came too early.
//! 2. **Places**, for backends that bound what they do at once: additive increase, multiplicative decrease (Chiu and Jain,
//!    "Analysis of the Increase and Decrease Algorithms for Congestion Avoidance in Computer Networks", 1989; the
//!    decrease is to half of what was in flight, RFC 5681, equation 4). Down once a round: calls that were in flight
//!    together are refused together, and 64 refusals of one moment say what one of them says. Up by one a second (a
//!    round trip is no clock: it may be 5 ms or a minute), never to more than double, and only while all places are
//!    used: what was never tried was never allowed.
//! 3. **A pace**, for backends that bound what they do in a minute: with answers of a few milliseconds one place is
//!    enough to be refused for ever. Each time the gate opens, the pace becomes what the backend admitted from the
//!    opening before to this one, the closed time included, within a half and nine tenths of the pace it refused. In
//!    between it grows with the square of the time ([`PACE_GROWTH`]): gently near the pace that was just refused,
//!    fast when that is long past, as in RFC 9438, section 4.2.
//!
//! All of it is forgotten after [`MEMORY`] without a refusal.

use tokio::time::{Duration, Instant};

use crate::providers::ProviderFault;

/// The others wait for a probe's answer at most this long.
const PROBE_HEAD_START: Duration = Duration::from_secs(1);

/// The least time between two steps up in places.
const STEP: Duration = Duration::from_secs(1);

/// The time in which a pace doubles when nothing is refused; in twice the time it is five times as high.
const PACE_GROWTH: Duration = Duration::from_secs(20);

/// Calls a second: no pace is slower. A caller's patience is two minutes, a backend's allowance at least one a minute:
/// a slower pace would spare few refusals and fail many callers.
const SLOWEST_PACE: f64 = 1.0;

/// Calls a second: no first pace is slower. It is a guess from one closing; too fast a one costs a few refusals and is
/// halved, too slow a one costs everybody's time.
const SLOWEST_FIRST_PACE: f64 = 10.0;

/// After this long without a refusal the backend counts as one that never refused.
const MEMORY: Duration = Duration::from_secs(300);

/// A stretch without a call: the rate before it says nothing of the rate after it.
const LULL: Duration = Duration::from_secs(1);

/// Of a period that is longer than this the older half is forgotten: what counts is the rate before a refusal.
const LONGEST_PERIOD: Duration = Duration::from_secs(60);

/// What is known of a backend's willingness, and the calls it is at work on.
#[derive(Debug)]
pub(super) struct Law {
    in_flight: usize,
    period: Period,
    learnt: Option<Learnt>,
}

/// A call in flight.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    /// The number of refusals that had counted when it was sent.
    round: u64,
    /// The number of openings before it.
    period: u64,
    is_probe: bool,
}

/// How a call ended.
#[derive(Debug)]
pub(super) enum End {
    /// It was never sent.
    Unsent,
    /// Nobody waited for its end.
    Abandoned,
    /// It failed in a way that says nothing of the backend's willingness.
    Failed,
    /// The backend did the work.
    Done,
    /// The backend had too much to do.
    Refused(Refused),
}

/// A refusal for want of capacity.
#[derive(Debug, Clone)]
pub(super) struct Refused {
    pub(super) fault: ProviderFault,
    /// The backend's words; secrets may be in them.
    pub(super) detail: String,
    /// For how long it is to be left alone; `None` where fewer calls at once will do.
    pub(super) wait: Option<Wait>,
}

/// How long a backend is left alone.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wait {
    pub(super) length: Duration,
    /// Added so that several of us do not come back at one instant.
    pub(super) spread: Duration,
    /// Did the backend name it? Else it is a guess of ours, and no measure of anything.
    pub(super) is_named: bool,
}

/// What the first in line should do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    Go,
    /// Look again then.
    At(Instant),
    /// Look again when a call has ended.
    AfterACall,
}

/// The time from one opening of the gate to the next.
#[derive(Debug)]
struct Period {
    number: u64,
    began: Instant,
    latest: Instant,
    sent: u64,
    refused: u64,
}

#[derive(Debug)]
struct Learnt {
    /// Calls that may be in flight at once, at least 1; `usize::MAX` until several were at work when one was refused.
    places: usize,
    /// When `places` changed last.
    stepped: Instant,
    /// Refusals that counted.
    rounds: u64,
    /// Probes refused in a row, without a wait that the backend named.
    lost_probes: u32,
    closed: Option<Closed>,
    probe: Probe,
    pace: Option<Pace>,
    last: Refused,
    last_at: Instant,
}

#[derive(Debug, Clone, Copy)]
struct Closed {
    from: Instant,
    until: Instant,
    /// Does the period that it ended teach a pace? Not when only a probe was sent in it.
    teaches: bool,
    is_named: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Probe {
    Due,
    Out(Instant),
    Over,
}

#[derive(Debug, Clone, Copy)]
struct Pace {
    /// Calls a second at `since`.
    base: f64,
    since: Instant,
    /// When the next call is due.
    next: Instant,
}

impl Law {
    pub(super) fn new(now: Instant) -> Self {
        Self { in_flight: 0, period: Period::new(0, now), learnt: None }
    }

    /// May a call be sent now? Opens a gate whose time has come.
    pub(super) fn look(&mut self, now: Instant) -> Look {
        let Some(learnt) = &mut self.learnt else {
            return Look::Go;
        };
        if let Some(closed) = learnt.closed {
            if now < closed.until {
                return Look::At(closed.until);
            }
            learnt.open(closed, &self.period, now);
            self.period = Period::new(self.period.number + 1, closed.until);
        }
        if now.duration_since(learnt.last_at) > MEMORY {
            self.learnt = None;
            return Look::Go;
        }
        if self.in_flight >= learnt.places {
            return Look::AfterACall;
        }
        match (learnt.probe, learnt.pace) {
            (Probe::Out(since), _) if now < since + PROBE_HEAD_START => Look::At(since + PROBE_HEAD_START),
            (Probe::Out(_) | Probe::Over, Some(pace)) if now < pace.next => Look::At(pace.next),
            _ => Look::Go,
        }
    }

    /// A call is sent, after [`Law::look`] said so.
    pub(super) fn send(&mut self, now: Instant) -> Call {
        self.in_flight += 1;
        self.period.count(now);
        let mut call = Call { round: 0, period: self.period.number, is_probe: false };
        if let Some(learnt) = &mut self.learnt {
            call.round = learnt.rounds;
            call.is_probe = learnt.probe == Probe::Due;
            learnt.probe = if call.is_probe { Probe::Out(now) } else { Probe::Over };
            if let Some(pace) = &mut learnt.pace {
                pace.advance(now);
            }
        }
        call
    }

    /// A call has ended. Says whether the gate was closed by it, or closed for longer.
    pub(super) fn end(&mut self, call: Call, end: End, now: Instant) -> bool {
        let at_work = self.in_flight;
        self.in_flight = self.in_flight.saturating_sub(1);
        let is_of_this_period = call.period == self.period.number;
        if let Some(learnt) = &mut self.learnt
            && call.is_probe
            && is_of_this_period
            && matches!(learnt.probe, Probe::Out(_))
        {
            // Whoever left took the answer along, and the next in line has to find out.
            learnt.probe = if matches!(end, End::Unsent | End::Abandoned) { Probe::Due } else { Probe::Over };
        }
        match end {
            End::Abandoned | End::Failed => false,
            End::Unsent => {
                if is_of_this_period {
                    self.period.sent = self.period.sent.saturating_sub(1);
                }
                false
            }
            End::Done => {
                if let Some(learnt) = &mut self.learnt {
                    learnt.lost_probes = 0;
                    if call.round == learnt.rounds && at_work >= learnt.places {
                        learnt.step_up(now);
                    }
                }
                false
            }
            End::Refused(refused) => {
                let was_alone = call.is_probe && is_of_this_period && self.period.sent == 1;
                if is_of_this_period {
                    self.period.refused += 1;
                }
                let learnt = self.learnt.get_or_insert_with(|| Learnt::new(refused.clone(), now));
                learnt.take(refused, call, was_alone, at_work, now)
            }
        }
    }

    /// Until when the gate is closed.
    pub(super) fn closed_until(&self, now: Instant) -> Option<Instant> {
        let until = self.learnt.as_ref()?.closed?.until;
        (now < until).then_some(until)
    }

    /// Probes refused in a row, without a wait that the backend named. Whoever waits for them may take each for a refusal
    /// of its own.
    pub(super) fn lost_probes(&self) -> u32 {
        self.learnt.as_ref().map_or(0, |learnt| learnt.lost_probes)
    }

    /// The last refusal, while it is remembered.
    pub(super) fn last_refusal(&self) -> Option<&Refused> {
        self.learnt.as_ref().map(|learnt| &learnt.last)
    }

    /// Calls that may be in flight at once, once there is a limit.
    pub(super) fn places(&self) -> Option<usize> {
        self.learnt.as_ref().map(|learnt| learnt.places).filter(|places| *places < usize::MAX)
    }

    /// Calls a second, once there is a limit.
    pub(super) fn pace(&self, now: Instant) -> Option<f64> {
        Some(self.learnt.as_ref()?.pace?.at(now))
    }
}

impl Learnt {
    fn new(last: Refused, now: Instant) -> Self {
        Self {
            places: usize::MAX,
            stepped: now,
            rounds: 0,
            lost_probes: 0,
            closed: None,
            probe: Probe::Over,
            pace: None,
            last,
            last_at: now,
        }
    }

    fn take(&mut self, refused: Refused, call: Call, was_alone: bool, at_work: usize, now: Instant) -> bool {
        let mut teaches = false;
        if call.round == self.rounds {
            self.rounds += 1;
            if was_alone {
                let is_counted = refused.wait.is_some_and(|wait| !wait.is_named);
                self.lost_probes += u32::from(is_counted);
            } else {
                teaches = true;
                // With nothing else at work, fewer at once cannot be what the backend wants.
                if at_work > 1 {
                    self.places = (at_work.min(self.places) / 2).max(1);
                    self.stepped = now;
                }
            }
        }
        let wait = refused.wait;
        self.last = refused;
        self.last_at = now;
        wait.is_some_and(|wait| self.close(wait, teaches, now))
    }

    /// The longest wait wins. A refusal that arrives late in a spell adds no spread of its own to one that is there.
    fn close(&mut self, wait: Wait, teaches: bool, now: Instant) -> bool {
        let end = now + wait.length;
        match &mut self.closed {
            Some(closed) if now < closed.until => {
                closed.teaches |= teaches;
                let is_longer = end > closed.until;
                if is_longer {
                    closed.until = end + wait.spread;
                    closed.is_named = wait.is_named;
                }
                is_longer
            }
            // One whose time has come, though nobody has looked since, is the same spell: it goes on.
            closed => {
                let before = *closed;
                *closed = Some(Closed {
                    from: before.map_or(now, |closed| closed.from),
                    until: end + wait.spread,
                    teaches: teaches || before.is_some_and(|closed| closed.teaches),
                    is_named: wait.is_named,
                });
                true
            }
        }
    }

    fn open(&mut self, closed: Closed, period: &Period, now: Instant) {
        self.closed = None;
        self.probe = Probe::Due;
        // Time in which nobody could call is no time without a refusal.
        self.last_at = self.last_at.max(closed.until);
        let refused = self.pace.map(|pace| pace.at(closed.from));
        let base = match refused {
            Some(refused) if closed.teaches => {
                period.rate(closed.until).clamp(refused * 0.5, refused * 0.9).max(SLOWEST_PACE)
            }
            Some(refused) => refused,
            None if closed.is_named || self.places == usize::MAX => period.rate(closed.until).max(SLOWEST_FIRST_PACE),
            // Neither the backend nor the clock told; what may be at work at once may as well come in one second.
            None => (self.places as f64).max(SLOWEST_FIRST_PACE),
        };
        self.pace = Some(Pace { base, since: now, next: now });
    }

    fn step_up(&mut self, now: Instant) {
        let seconds = now.duration_since(self.stepped).as_secs() / STEP.as_secs();
        if seconds > 0 {
            let step = usize::try_from(seconds).unwrap_or(usize::MAX).min(self.places);
            self.places = self.places.saturating_add(step);
            self.stepped = now;
        }
    }
}

impl Period {
    fn new(number: u64, began: Instant) -> Self {
        Self { number, began, latest: began, sent: 0, refused: 0 }
    }

    fn count(&mut self, now: Instant) {
        if now.duration_since(self.latest) > LULL {
            *self = Self::new(self.number, now);
        }
        let age = now.duration_since(self.began);
        if age > LONGEST_PERIOD {
            self.began += age / 2;
            self.sent /= 2;
            self.refused /= 2;
        }
        self.latest = now;
        self.sent += 1;
    }

    /// Calls a second that were sent and not refused; refusals are quick, so what is not answered was taken.
    fn rate(&self, until: Instant) -> f64 {
        let seconds = until.duration_since(self.began).max(Duration::from_millis(1)).as_secs_f64();
        self.sent.saturating_sub(self.refused) as f64 / seconds
    }
}

impl Pace {
    fn at(&self, now: Instant) -> f64 {
        let age = now.duration_since(self.since).as_secs_f64() / PACE_GROWTH.as_secs_f64();
        self.base * (1.0 + age * age)
    }

    /// Keeps to the schedule rather than to the last call, since timers are late; but a call that nobody wanted is not
    /// made up for.
    fn advance(&mut self, now: Instant) {
        let interval = Duration::from_secs_f64(1.0 / self.at(now));
        self.next = (self.next + interval).max(now);
    }
}
