//! The gate under a clock that stands still until everybody waits, and its law without any.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::join_all;

use super::*;
use crate::deadline::Deadline;

const FAULT: ProviderFault = ProviderFault::RateLimited;

fn secs(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

fn later(seconds: f64) -> Deadline {
    (Instant::now() + secs(seconds)).into_std().into()
}

async fn enter(gate: &Gate) -> Pass<'_> {
    gate.enter(&mut Ticket::default(), &later(3600.0), u32::MAX).await.unwrap()
}

/// As the backend's refusal with this wait, named by it.
fn refuse(pass: Pass<'_>, seconds: f64) {
    pass.refused(FAULT, "slow down".to_owned(), Some(secs(seconds)), true);
}

/// As a refusal without a wait: the backend is at work on too much, and the gate stays open.
fn refuse_for_now(pass: Pass<'_>) {
    pass.refused(ProviderFault::Overloaded, "overloaded".to_owned(), None, false);
}

/// How many may be in flight, and how many stand in line.
fn seen(gate: &Gate) -> (Option<usize>, usize) {
    let state = gate.lock();
    (state.law.places(), state.line.len())
}

fn places(gate: &Gate) -> usize {
    seen(gate).0.unwrap()
}

async fn passes(gate: &Gate, number: usize) -> Vec<Pass<'_>> {
    join_all((0..number).map(|_| enter(gate))).await
}

/// Does it end without time going by?
async fn at_once<T>(future: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(Duration::ZERO, future).await.ok()
}

#[tokio::test(start_paused = true)]
async fn a_backend_that_refuses_nothing_has_no_limit() {
    let gate = Gate::new();
    let start = Instant::now();
    let all = passes(&gate, 10_000).await;
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert_eq!(seen(&gate), (None, 0));
    all.into_iter().for_each(Pass::done);
}

#[tokio::test(start_paused = true)]
async fn the_longest_wait_keeps_the_gate_closed() {
    let gate = Gate::new();
    let mut all = passes(&gate, 3).await;
    let start = Instant::now();
    for seconds in [2.0, 5.0, 1.0] {
        refuse(all.pop().unwrap(), seconds);
    }
    assert!(gate.is_closed());
    enter(&gate).await.done();
    let range = secs(5.0)..secs(5.51);
    assert!(range.contains(&start.elapsed()), "{:?}", start.elapsed());
    assert!(!gate.is_closed());
}

#[tokio::test(start_paused = true)]
async fn a_wait_beyond_the_deadline_is_told_at_once_to_newcomers_and_to_those_in_line() {
    let gate = Gate::new();
    let mut all = passes(&gate, 2).await;
    refuse(all.pop().unwrap(), 5.0);
    let start = Instant::now();
    let hasty = gate.enter(&mut Ticket::default(), &later(1.0), 9).await.unwrap_err();
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert_eq!(hasty.fault, FAULT);
    assert!(hasty.retry_after.unwrap() >= secs(5.0));
    assert!(hasty.detail.ends_with("slow down"), "{}", hasty.detail);

    let mut ticket = Ticket::default();
    let deadline = later(10.0);
    let mut in_line = std::pin::pin!(gate.enter(&mut ticket, &deadline, 9));
    assert!(at_once(&mut in_line).await.is_none());
    refuse(all.pop().unwrap(), 60.0);
    let away = at_once(&mut in_line).await.unwrap().unwrap_err();
    assert!(away.retry_after.unwrap() >= secs(60.0));
}

#[tokio::test(start_paused = true)]
async fn a_deadline_that_passes_in_line_tells_what_the_line_is_for() {
    let gate = Gate::new();
    let mut all = passes(&gate, 2).await;
    refuse_for_now(all.pop().unwrap());
    let start = Instant::now();
    let late = gate.enter(&mut Ticket::default(), &later(3.0), 9).await.unwrap_err();
    assert_eq!((late.fault, late.retry_after), (ProviderFault::Overloaded, None));
    assert!(start.elapsed() >= secs(3.0));
    assert!(gate.lock().line.is_empty());
    let never = gate.enter(&mut Ticket::default(), &later(0.0), 9).await.unwrap_err();
    assert_eq!(never.fault, ProviderFault::Deadline);
}

#[tokio::test(start_paused = true)]
async fn refusals_of_one_round_halve_once() {
    let gate = Gate::new();
    passes(&gate, 64).await.into_iter().for_each(refuse_for_now);
    assert_eq!(places(&gate), 32);
    // The next round: as many as there are places, and no more.
    let all = passes(&gate, 32).await;
    assert!(at_once(enter(&gate)).await.is_none());
    all.into_iter().for_each(refuse_for_now);
    assert_eq!(places(&gate), 16);
    for halved in [8, 4, 2, 1, 1, 1] {
        passes(&gate, places(&gate)).await.into_iter().for_each(refuse_for_now);
        assert_eq!(places(&gate), halved);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_halved_is_what_was_in_flight() {
    let gate = Gate::new();
    passes(&gate, 64).await.into_iter().for_each(refuse_for_now);
    passes(&gate, 6).await.into_iter().for_each(refuse_for_now);
    assert_eq!(places(&gate), 3);
}

#[tokio::test(start_paused = true)]
async fn a_call_refused_alone_says_nothing_of_places() {
    let gate = Gate::new();
    refuse_for_now(enter(&gate).await);
    assert_eq!(passes(&gate, 100).await.len(), 100);
}

#[tokio::test(start_paused = true)]
async fn places_grow_by_one_a_second_while_all_are_used() {
    let gate = Gate::new();
    passes(&gate, 8).await.into_iter().for_each(refuse_for_now);
    assert_eq!(places(&gate), 4);
    for expected in 5..=12 {
        for _ in 0..20 {
            let all = passes(&gate, places(&gate)).await;
            tokio::time::sleep(secs(0.051)).await;
            all.into_iter().for_each(Pass::done);
        }
        assert_eq!(places(&gate), expected);
    }
    // Not tried, not allowed.
    for _ in 0..20 {
        let all = passes(&gate, 3).await;
        tokio::time::sleep(secs(1.0)).await;
        all.into_iter().for_each(Pass::done);
    }
    assert_eq!(places(&gate), 12);
    // A minute for one answer: as many more as seconds, at most doubled.
    let all = passes(&gate, 12).await;
    tokio::time::sleep(secs(60.0)).await;
    all.into_iter().for_each(Pass::done);
    assert_eq!(places(&gate), 24);
    tokio::time::sleep(secs(301.0)).await;
    passes(&gate, 1000).await.into_iter().for_each(Pass::done);
    assert_eq!(seen(&gate).0, None, "forgotten");
}

#[tokio::test(start_paused = true)]
async fn the_line_is_served_in_order_and_a_retry_stands_before_the_younger() {
    let gate = Gate::new();
    let mut oldest = Ticket::default();
    let first = gate.enter(&mut oldest, &later(3600.0), 9).await.unwrap();
    let served = Mutex::new(Vec::new());
    let visit = async |name: usize, ticket: &mut Ticket| {
        let pass = gate.enter(ticket, &later(3600.0), 9).await.unwrap();
        served.lock().unwrap().push((name, Instant::now()));
        tokio::time::sleep(secs(0.01)).await;
        pass.done();
    };
    refuse(first, 1.0);
    let young = (1..=40).map(|name| async move { visit(name, &mut Ticket::default()).await });
    let old = async {
        tokio::time::sleep(secs(0.5)).await;
        visit(0, &mut oldest).await;
    };
    futures_util::future::join(join_all(young), old).await;
    let served = served.into_inner().unwrap();
    let names: Vec<usize> = served.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, (0..=40).collect::<Vec<_>>());
    assert!(served.windows(2).all(|pair| pair[1].1 >= pair[0].1 + secs(0.01)), "one after another: {served:?}");
    assert!(gate.lock().line.is_empty());
}

#[tokio::test(start_paused = true)]
async fn nobody_passes_a_closed_gate_and_after_it_one_goes_first() {
    let gate = Gate::new();
    let mut all = passes(&gate, 64).await;
    let taken = all.split_off(44);
    all.into_iter().for_each(|pass| refuse(pass, 1.0));
    let closed = Instant::now();
    taken.into_iter().for_each(Pass::done);
    let went = Mutex::new(Vec::new());
    let calls = (0..64).map(|_| async {
        let pass = enter(&gate).await;
        assert!(!gate.is_closed());
        went.lock().unwrap().push(Instant::now());
        tokio::time::sleep(secs(0.005)).await;
        pass.done();
    });
    join_all(calls).await;
    let went = went.into_inner().unwrap();
    assert!(went[0] >= closed + secs(1.0));
    assert!(went[1] >= went[0] + secs(0.005), "the probe is answered first");
    // 20 were taken in the second before, so about 20 go in the second after, and not all in its first instant.
    let within = |seconds: f64| went.iter().filter(|at| **at < went[0] + secs(seconds)).count();
    assert!((15..=22).contains(&within(1.0)), "{}", within(1.0));
    assert!((4..=12).contains(&within(0.4)), "{}", within(0.4));
}

#[tokio::test(start_paused = true)]
async fn others_do_not_wait_a_minute_for_a_probe_that_takes_one() {
    let gate = Gate::new();
    passes(&gate, 64).await.into_iter().for_each(|pass| refuse(pass, 1.0));
    let probe = enter(&gate).await;
    let start = Instant::now();
    let others = passes(&gate, 10).await;
    let range = secs(1.0)..secs(2.5);
    assert!(range.contains(&start.elapsed()), "{:?}", start.elapsed());
    others.into_iter().chain([probe]).for_each(Pass::done);
}

#[tokio::test(start_paused = true)]
async fn a_lost_probe_teaches_nothing_but_patience() {
    let gate = Gate::new();
    let mut all = passes(&gate, 64).await;
    let taken = all.split_off(44);
    all.into_iter().for_each(|pass| refuse(pass, 1.0));
    taken.into_iter().for_each(Pass::done);
    let probe = enter(&gate).await;
    let learnt = || (places(&gate), gate.lock().law.pace(Instant::now()).unwrap());
    let before = learnt();
    refuse(probe, 1.0);
    for _ in 0..20 {
        refuse(enter(&gate).await, 1.0);
    }
    enter(&gate).await.done();
    assert_eq!(learnt(), before);
}

#[tokio::test(start_paused = true)]
async fn whoever_sees_enough_probes_lost_is_turned_away_unless_the_backend_named_the_wait() {
    for is_named in [false, true] {
        let gate = Gate::new();
        let refuse = |pass: Pass<'_>| pass.refused(FAULT, "no".to_owned(), Some(secs(1.0)), is_named);
        let mut oldest = Ticket::default();
        refuse(gate.enter(&mut oldest, &later(3600.0), 9).await.unwrap());
        let unlucky = async {
            for _ in 0..4 {
                refuse(gate.enter(&mut oldest, &later(3600.0), 9).await.unwrap());
            }
            gate.enter(&mut oldest, &later(3600.0), 9).await.unwrap().done();
        };
        let witness = async {
            tokio::time::sleep(secs(0.1)).await;
            gate.enter(&mut Ticket::default(), &later(3600.0), 3).await.map(Pass::done)
        };
        let ((), seen) = futures_util::future::join(unlucky, witness).await;
        assert_eq!(seen.is_ok(), is_named);
        if let Err(away) = seen {
            assert_eq!((away.fault, away.detail.contains("in a row")), (FAULT, true));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn who_leaves_gives_back_a_place_in_line_or_in_flight() {
    let gate = Gate::new();
    let mut all = passes(&gate, 2).await;
    refuse_for_now(all.pop().unwrap());
    assert_eq!(places(&gate), 1);
    let done = AtomicUsize::new(0);
    let visit = async || {
        enter(&gate).await.done();
        done.fetch_add(1, Ordering::Relaxed);
    };
    let mut first = Box::pin(visit());
    let mut second = Box::pin(visit());
    let mut third = Box::pin(visit());
    for waiting in [&mut first, &mut second, &mut third] {
        assert!(at_once(waiting).await.is_none());
    }
    assert_eq!(seen(&gate).1, 3);
    drop(second);
    assert_eq!(seen(&gate).1, 2);
    // The call in flight is dropped, which wakes the first; that one goes away with its wake-up.
    drop(all);
    drop(first);
    third.await;
    assert_eq!((done.load(Ordering::Relaxed), seen(&gate).1), (1, 0));
    drop(enter(&gate).await);
    enter(&gate).await.done();
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_is_dropped_is_followed_by_another() {
    let gate = Gate::new();
    let all = passes(&gate, 64).await;
    all.into_iter().for_each(|pass| refuse(pass, 1.0));
    let probe = enter(&gate).await;
    assert!(at_once(enter(&gate)).await.is_none());
    drop(probe);
    let probe = at_once(enter(&gate)).await.unwrap();
    assert!(at_once(enter(&gate)).await.is_none());
    probe.unsent();
    at_once(enter(&gate)).await.unwrap().failed();
    tokio::time::timeout(secs(0.5), enter(&gate)).await.unwrap().done();
}

/// Callers that come, wait, are refused, give up or are dropped at random: in the end nobody is left and all could call.
#[tokio::test(start_paused = true)]
async fn no_wake_up_is_lost_whatever_happens() {
    for seed in 0..50 {
        let mut random = fastrand::Rng::with_seed(seed);
        let gate = Gate::new();
        let served = AtomicUsize::new(0);
        let (gate, served) = (&gate, &served);
        let callers = (0..100).map(|_| {
            let (come, patience) = (secs(random.f64() * 3.0), secs(random.f64() * 20.0));
            let (takes, fate) = (secs(random.f64() * 0.3), random.u8(0..10));
            async move {
                tokio::time::sleep(come).await;
                let visit = async {
                    let mut ticket = Ticket::default();
                    for attempt in 0.. {
                        let Ok(pass) = gate.enter(&mut ticket, &later(3000.0), 9).await else {
                            return;
                        };
                        tokio::time::sleep(takes).await;
                        match (fate, attempt) {
                            (0, 0) => refuse(pass, 0.7),
                            (1, 0..2) => refuse_for_now(pass),
                            (2, 0) => pass.unsent(),
                            (3, 0) => pass.failed(),
                            (4, 0) => drop(pass),
                            _ => {
                                pass.done();
                                served.fetch_add(1, Ordering::Relaxed);
                                return;
                            }
                        }
                    }
                };
                let leaves = fate == 9;
                let bound = if leaves { patience } else { secs(2000.0) };
                let outcome = tokio::time::timeout(bound, visit).await;
                assert!(leaves || outcome.is_ok(), "stuck");
            }
        });
        join_all(callers).await;
        assert!(gate.lock().line.is_empty());
        assert!(served.load(Ordering::Relaxed) >= 80);
        enter(gate).await.done();
    }
}

/// A backend that takes `allowance` calls in any second and says `retry-after: 1` to all others; each answer takes `takes`.
async fn against_a_rate(calls: usize, allowance: usize, takes: Duration) -> (usize, Duration) {
    let gate = Gate::new();
    let taken: Mutex<Vec<Instant>> = Mutex::default();
    let refusals = AtomicUsize::new(0);
    let places = tokio::sync::Semaphore::new(64);
    let start = Instant::now();
    let call = async || {
        let _place = places.acquire().await.unwrap();
        let mut ticket = Ticket::default();
        loop {
            let pass = gate.enter(&mut ticket, &later(3600.0), 9).await.unwrap();
            let now = Instant::now();
            let is_taken = {
                let mut taken = taken.lock().unwrap();
                let is_taken =
                    taken.iter().rev().take_while(|at| now.duration_since(**at) < secs(1.0)).count() < allowance;
                if is_taken {
                    taken.push(now);
                }
                is_taken
            };
            if is_taken {
                tokio::time::sleep(takes).await;
                return pass.done();
            }
            tokio::time::sleep(secs(0.003)).await;
            refusals.fetch_add(1, Ordering::Relaxed);
            refuse(pass, 1.0);
        }
    };
    join_all((0..calls).map(|_| call())).await;
    (refusals.into_inner(), start.elapsed())
}

#[tokio::test(start_paused = true)]
async fn a_rate_is_found_and_kept() {
    for (allowance, takes) in [(20, 0.005), (20, 2.0), (5, 0.005), (2, 0.5), (40, 1.0)] {
        fastrand::seed(7);
        let (refusals, time) = against_a_rate(500, allowance, secs(takes)).await;
        let least = 500.0 / allowance as f64;
        println!("{allowance}/s, {takes} s each: {refusals} refusals, {time:.1?} of at least {least} s");
        assert!(refusals <= 150, "{allowance}/s, {takes} s each: {refusals} refusals");
        assert!(time.as_secs_f64() < 2.0 * least + 10.0, "{allowance}/s, {takes} s each: {time:?}");
    }
}

/// A backend that works on `allowance` calls at once, 50 ms each, and refuses all others without a hint; who was refused
/// pauses as a question does. Refusals of one question at most, refusals in all, and the time it took.
async fn against_places(calls: usize, allowance: usize) -> (usize, usize, Duration) {
    let gate = Gate::new();
    let at_work = AtomicUsize::new(0);
    let slots = tokio::sync::Semaphore::new(64);
    let start = Instant::now();
    let call = async || {
        let _slot = slots.acquire().await.unwrap();
        let mut ticket = Ticket::default();
        for refusals in 0.. {
            let pass = gate.enter(&mut ticket, &later(3600.0), 9).await.unwrap();
            let is_taken = at_work.fetch_add(1, Ordering::Relaxed) < allowance;
            tokio::time::sleep(secs(if is_taken { 0.05 } else { 0.001 })).await;
            at_work.fetch_sub(1, Ordering::Relaxed);
            if is_taken {
                pass.done();
                return refusals;
            }
            refuse_for_now(pass);
            tokio::time::sleep(secs(0.5 * f64::from(1 << refusals.min(4)) * (0.5 + 0.5 * fastrand::f64()))).await;
        }
        unreachable!("it is taken or goes on");
    };
    let refusals = join_all((0..calls).map(|_| call())).await;
    (*refusals.iter().max().unwrap(), refusals.iter().sum(), start.elapsed())
}

#[tokio::test(start_paused = true)]
async fn places_are_found_before_anybody_runs_out_of_tries() {
    for allowance in [1, 4, 16] {
        let (mut most, mut total, mut longest) = (0, 0, Duration::ZERO);
        for seed in 0..40 {
            fastrand::seed(seed);
            let (worst, refusals, time) = against_places(200, allowance).await;
            (most, total, longest) = (most.max(worst), total + refusals, longest.max(time));
        }
        println!("{allowance} at once: {most} refusals of one at most, {} in all, {longest:.1?}", total / 40);
        assert!(most < 4, "{allowance} at once: {most} refusals of one question");
    }
}
