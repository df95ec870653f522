//! One vote on a question: the contexts read as a whole or, where they do not fit the model's window at once, in several.
//!
//! Windows hold whole contexts, in rank order, each as many as fit. A claim that any window bears out is attributed, on
//! the grounds of the first that does. Claims that none bears out alone may need contexts from several: they are put
//! once more, to one window of the contexts that are most like them. How long a question is nobody knows before it was
//! counted, so what a backend refuses for its length all the same is halved and asked again.

mod plan;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};

use futures_util::future::{BoxFuture, try_join_all};

use self::plan::{Costs, Source};
use super::attribution::Attribution;
use super::likeness;
use super::prompt::Passage;
use super::round::{Failure, Filled, Manner, fill};
use super::session::Session;
use crate::recall::judge::{Ballot, Decision, JudgeError, JudgeFault, Question, Verdict, Verdicts, Warning};

/// How often one window may be halved when the backend refuses it for its length.
const MOST_HALVINGS: u32 = 4;

/// Verdicts kept beside the one that counts; more would only be more of the same.
pub(super) const MOST_FURTHER: usize = 8;

/// What is known of the model's window.
#[derive(Debug, Default)]
pub(super) struct Window {
    /// As set by hand.
    set: Option<u32>,
    /// The smallest that a refusal told; 0 while none did.
    told: AtomicU32,
}

impl Window {
    pub(super) fn new(set: Option<u32>) -> Self {
        Self { set, told: AtomicU32::new(0) }
    }

    /// The window in tokens, and how it is known: what was set goes before what the backend reports, and a smaller one that
    /// a refusal told before both.
    fn known(&self, reported: Option<u32>) -> Option<(u32, Source)> {
        let set = self.set.map(|tokens| (tokens, Source::Set));
        let reported = reported.map(|tokens| (tokens, Source::Reported));
        let told = Some((self.told.load(Ordering::Relaxed), Source::Told)).filter(|(tokens, _)| *tokens > 0);
        [set.or(reported), told].into_iter().flatten().min_by_key(|(tokens, _)| *tokens)
    }

    fn learn(&self, told: u32) {
        tracing::debug!(told, "the backend told the model's window");
        let smaller = |known: u32| (known == 0 || told < known).then_some(told);
        // Fails only when there is nothing to change.
        let _ = self.told.fetch_update(Ordering::Relaxed, Ordering::Relaxed, smaller);
    }
}

/// One complete decision on every claim.
pub(super) struct Vote {
    pub(super) verdicts: Verdicts,
    pub(super) model: Option<String>,
    pub(super) windows: usize,
    pub(super) warnings: Vec<Warning>,
}

/// What one window said.
struct Said {
    verdicts: Vec<(usize, Verdict)>,
    /// Positions of the first and the last context in it.
    span: (usize, usize),
    model: Option<String>,
    warnings: Vec<Warning>,
}

/// A question on its way to the model.
pub(super) struct Asked<'a> {
    pub(super) question: &'a Question,
    pub(super) passages: &'a [Passage<'a>],
    pub(super) session: &'a Session<'a>,
    pub(super) window: &'a Window,
    pub(super) manner: Manner,
}

/// Decides on every claim of a question once.
///
/// # Errors
///
/// Whatever kept a claim open; a context that does not fit the window by itself, since nothing is cut.
pub(super) async fn vote(asked: &Asked<'_>) -> Result<Vote, JudgeError> {
    let claims: Vec<usize> = (1..=asked.question.claims.len().get()).collect();
    let parts = match asked.costs(&claims) {
        Some(costs) => costs.plan(asked.passages)?,
        None => vec![asked.passages],
    };
    let said = asked.read_all(parts, &claims, 0).await?;
    let (windows, spans) = (said.len(), said.iter().map(|said| said.span).collect::<Vec<_>>());
    let mut joined = Joined::default();
    said.into_iter().for_each(|said| joined.add(said));
    let open = joined.open();
    if windows > 1
        && !open.is_empty()
        && let Some(jointly) = asked.read_jointly(&open, &spans).await?
    {
        joined.settle(jointly);
    }
    joined.close(asked.question, windows)
}

impl<'a> Asked<'a> {
    /// What asking about `claims` costs; `None` while nobody knows the window.
    fn costs(&self, claims: &[usize]) -> Option<Costs> {
        let (window, source) = self.window.known(self.session.window())?;
        Some(Costs::new(self.question, claims, window, source, self.manner.ceiling))
    }

    async fn ask(&self, part: &[Passage<'_>], claims: &[usize]) -> Result<Said, Failure> {
        // The answer gets what the prompt leaves, since many backends count both.
        let ceiling = self.costs(claims).map_or(self.manner.ceiling, |costs| costs.left_by(part));
        let sheet = Attribution::of(self.question, part, claims);
        let manner = Manner { ceiling: self.manner.ceiling.min(ceiling), ..self.manner };
        let Filled { sheet, model, warnings } = fill(sheet, self.session, manner).await?;
        let position = |passage: Option<&Passage<'_>>| passage.map(|(position, _)| *position).unwrap_or_default();
        let span = (position(part.first()), position(part.last()));
        Ok(Said { verdicts: sheet.into_verdicts().collect(), span, model, warnings })
    }

    fn read_all<'s>(
        &'s self,
        parts: Vec<&'s [Passage<'s>]>,
        claims: &'s [usize],
        halvings: u32,
    ) -> BoxFuture<'s, Result<Vec<Said>, JudgeError>> {
        Box::pin(async move {
            let said = parts.into_iter().map(|part| self.read(part, claims, halvings));
            Ok(try_join_all(said).await?.into_iter().flatten().collect())
        })
    }

    async fn read(&self, part: &[Passage<'_>], claims: &[usize], halvings: u32) -> Result<Vec<Said>, JudgeError> {
        let (window, error) = match self.ask(part, claims).await {
            Ok(said) => return Ok(vec![said]),
            Err(Failure::Failed(error)) => return Err(error),
            Err(Failure::TooLong { window, error }) => (window, error),
        };
        if let Some(told) = window {
            self.window.learn(told);
        }
        // One context cannot be cut, and nobody can fill a window of unknown size.
        let Some(costs) = self.costs(claims).filter(|_| part.len() > 1 && halvings < MOST_HALVINGS) else {
            return Err(error);
        };
        let parts = match costs.plan(part)? {
            parts if parts.len() > 1 => parts,
            _ => costs.halves(part),
        };
        self.read_all(parts, claims, halvings + 1).await
    }

    /// Puts `open` claims to the contexts that are most like them, as many as fit; `None` when that would show the model
    /// nothing that it has not seen in one of the windows.
    async fn read_jointly(&self, open: &[usize], spans: &[(usize, usize)]) -> Result<Option<Said>, JudgeError> {
        let ranking = likeness::rank(self.question, open, self.passages).await;
        let Some(costs) = self.costs(open) else { return Ok(None) };
        let mut chosen = costs.fill(self.passages, &ranking);
        loop {
            let part: Vec<Passage<'_>> = {
                let mut indexes = chosen.clone();
                indexes.sort_unstable();
                indexes.iter().filter_map(|index| self.passages.get(*index).copied()).collect()
            };
            let (Some((first, _)), Some((last, _))) = (part.first(), part.last()) else { return Ok(None) };
            if spans.iter().any(|(from, to)| from <= first && last <= to) {
                return Ok(None);
            }
            match self.ask(&part, open).await {
                Ok(said) => return Ok(Some(said)),
                Err(Failure::Failed(error)) => return Err(error),
                // The less likely half stays away; what is left ends in one context, which a window has seen.
                Err(Failure::TooLong { .. }) => chosen.truncate(chosen.len() / 2),
            }
        }
    }
}

/// What the windows said, claim by claim.
#[derive(Default)]
struct Joined {
    decisions: BTreeMap<usize, Decision>,
    model: Option<String>,
    warnings: Vec<Warning>,
}

impl Joined {
    /// Adds a window, in rank order: what a later one bears out is never lost, and what an earlier one bore out is never
    /// taken back.
    fn add(&mut self, said: Said) {
        for (number, verdict) in said.verdicts {
            let Some(decision) = self.decisions.get_mut(&number) else {
                self.decisions.insert(number, verdict.into());
                continue;
            };
            match (decision.verdict.attributed, verdict.attributed) {
                (false, true) => *decision = verdict.into(),
                (true, true) if decision.further.len() < MOST_FURTHER => decision.further.push(verdict),
                (true | false, _) => {}
            }
        }
        self.note(said.model, said.warnings);
    }

    /// Takes the verdicts on open claims from the joint reading, which saw more at once than any window.
    fn settle(&mut self, jointly: Said) {
        self.decisions.extend(jointly.verdicts.into_iter().map(|(number, verdict)| (number, verdict.into())));
        self.note(jointly.model, jointly.warnings);
    }

    fn note(&mut self, model: Option<String>, warnings: Vec<Warning>) {
        self.model = self.model.take().or(model);
        for warning in warnings {
            if !self.warnings.contains(&warning) {
                self.warnings.push(warning);
            }
        }
    }

    fn open(&self) -> Vec<usize> {
        let is_open = |(number, decision): (&usize, &Decision)| (!decision.verdict.attributed).then_some(*number);
        self.decisions.iter().filter_map(is_open).collect()
    }

    fn close(self, question: &Question, windows: usize) -> Result<Vote, JudgeError> {
        let Self { decisions, model, warnings } = self;
        let mut ballot = Ballot::of(question);
        for (number, decision) in decisions {
            ballot.cast(number, decision);
        }
        let incomplete = |_| JudgeError::new(JudgeFault::Internal, "the windows left a claim open");
        Ok(Vote { verdicts: ballot.close().map_err(incomplete)?, model, windows, warnings })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::recall::Units;

    fn verdict(attributed: bool, window: usize) -> Verdict {
        Verdict { attributed, reason: window.to_string(), evidence: Vec::new() }
    }

    proptest! {
        #[test]
        fn joining_windows_never_lowers_what_one_of_them_found(
            windows in prop::collection::vec(prop::collection::vec(any::<bool>(), 3), 1..12),
            jointly in prop::collection::vec(any::<bool>(), 3),
        ) {
            let question = Question {
                user_input: String::new(),
                contexts: Vec::new(),
                claims: Units::new(vec![String::new(); 3]).unwrap(),
            };
            let said = |window: usize, verdicts: Vec<(usize, Verdict)>| Said {
                verdicts,
                span: (window, window),
                model: None,
                warnings: Vec::new(),
            };
            let mut joined = Joined::default();
            for (window, verdicts) in windows.iter().enumerate() {
                let verdicts = (1..).zip(verdicts).map(|(n, attributed)| (n, verdict(*attributed, window)));
                joined.add(said(window, verdicts.collect()));
            }
            let open = joined.open();
            let last = open.iter().map(|n| (*n, verdict(jointly[n - 1], windows.len()))).collect();
            joined.settle(said(windows.len(), last));
            let vote = joined.close(&question, windows.len()).unwrap();
            for (claim, decision) in vote.verdicts.iter().enumerate() {
                let found: Vec<usize> =
                    windows.iter().enumerate().filter(|(_, verdicts)| verdicts[claim]).map(|(window, _)| window).collect();
                let is_open = found.is_empty();
                prop_assert_eq!(decision.verdict.attributed, !is_open || jointly[claim]);
                prop_assert_eq!(open.contains(&(claim + 1)), is_open);
                // The first window's grounds first, then those of the others, in rank order.
                let grounds: Vec<usize> = decision.grounds().map(|verdict| verdict.reason.parse().unwrap()).collect();
                let expected = if is_open { vec![windows.len()] } else { found };
                prop_assert_eq!(&grounds[..], &expected[..expected.len().min(1 + MOST_FURTHER)]);
            }
        }
    }

    #[test]
    fn the_smallest_window_told_goes_before_what_was_set() {
        let window = Window::new(Some(4096));
        assert_eq!(window.known(Some(8192)), Some((4096, Source::Set)));
        window.learn(3000);
        window.learn(5000);
        assert_eq!(window.known(Some(8192)), Some((3000, Source::Told)));
        assert_eq!(Window::new(None).known(Some(8192)), Some((8192, Source::Reported)));
        assert_eq!(Window::new(None).known(None), None);
    }
}
