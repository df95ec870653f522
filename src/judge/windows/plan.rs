//! Which contexts share a window, by estimate.

use super::super::attribution::Attribution;
use super::super::prompt::{self, Passage};
use crate::providers::estimate::Estimate;
use crate::recall::judge::{JudgeError, JudgeFault, Question};

/// Tokens around prompt and answer: the backend's template, and what a repair has to say.
const AROUND: u32 = 128;

/// Most windows of one question: each is a call, and a judge with a larger window is a better help than a hundred more.
const MOST_WINDOWS: usize = 100;

/// Contexts that go into one window each, in rank order.
pub(super) type Plan<'p> = Vec<&'p [Passage<'p>]>;

/// How a window is known, which decides when a context that fills it alone is refused before anybody was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// Set by hand, which is how one guards a backend that cuts in silence: what may not fit is not tried.
    Set,
    /// The backend reported it: what may fit is tried.
    Reported,
    /// Read from the words of a refusal, and they may have been misread: everything is tried.
    Told,
}

/// What there is room for in one window, in tokens.
pub(super) struct Costs {
    window: u32,
    source: Source,
    /// The prompt without any context.
    fixed: Estimate,
    /// Kept free for the answer.
    answer: u32,
}

impl Costs {
    pub(super) fn new(question: &Question, claims: &[usize], window: u32, source: Source, ceiling: u32) -> Self {
        let empty = prompt::data(question, &[], claims, None);
        let around = Estimate { least: 0, most: AROUND };
        Self {
            window,
            source,
            fixed: Estimate::of(prompt::SYSTEM) + Estimate::of(&empty) + around,
            // An answer seldom takes all the room that it is given; a prompt always does.
            answer: Attribution::room_for(claims.len()).min(ceiling).min(window / 2),
        }
    }

    /// Tokens that one window has for contexts.
    fn room(&self) -> u32 {
        self.window.saturating_sub(self.fixed.most).saturating_sub(self.answer)
    }

    /// Tokens that a window with these contexts leaves for the answer.
    pub(super) fn left_by(&self, part: &[Passage<'_>]) -> u32 {
        let contexts = part.iter().map(cost).fold(Estimate::default(), |sum, cost| sum + cost);
        let prompt = self.fixed + contexts;
        self.window.saturating_sub(prompt.most).max(self.answer)
    }

    /// Fills one window after the other; every context is in exactly one.
    ///
    /// # Errors
    ///
    /// A context that cannot fit by itself. One of which nobody knows goes alone, and the backend will tell (see [`Source`]).
    pub(super) fn plan<'p>(&self, passages: &'p [Passage<'p>]) -> Result<Plan<'p>, JudgeError> {
        let mut plan = Vec::new();
        let (mut from, mut filled) = (0, 0);
        for (index, passage) in passages.iter().enumerate() {
            let cost = cost(passage);
            let is_refused = match self.source {
                Source::Set => cost.most > self.room(),
                Source::Reported => self.fixed.least.saturating_add(cost.least) > self.window,
                Source::Told => false,
            };
            if is_refused {
                return Err(self.too_long(passage.0, cost));
            }
            if index > from && cost.most.saturating_add(filled) > self.room() {
                plan.extend(passages.get(from..index));
                (from, filled) = (index, 0);
            }
            filled = cost.most.saturating_add(filled);
        }
        plan.extend(passages.get(from..).filter(|rest| !rest.is_empty()));
        if plan.len() > MOST_WINDOWS { Err(self.too_many(plan.len())) } else { Ok(plan) }
    }

    /// Cuts contexts in two, near the middle of their cost; at least one on either side.
    pub(super) fn halves<'p>(&self, part: &'p [Passage<'p>]) -> Plan<'p> {
        let costs: Vec<u64> = part.iter().map(|passage| u64::from(cost(passage).most)).collect();
        let total: u64 = costs.iter().sum();
        let mut sum = 0;
        let middle = costs.iter().take_while(|cost| {
            sum += **cost;
            sum * 2 <= total
        });
        let at = middle.count().clamp(1, part.len().saturating_sub(1).max(1)).min(part.len());
        let (first, second) = part.split_at(at);
        [first, second].into_iter().filter(|half| !half.is_empty()).collect()
    }

    /// The first of `ranking` (indexes into `passages`, best first) that fit into one window together, best first.
    pub(super) fn fill(&self, passages: &[Passage<'_>], ranking: &[usize]) -> Vec<usize> {
        let mut room = self.room();
        let fits = |index: &&usize| {
            let cost = passages.get(**index).map_or(u32::MAX, |passage| cost(passage).most);
            let fits = cost <= room;
            if fits {
                room -= cost;
            }
            fits
        };
        ranking.iter().filter(fits).copied().collect()
    }

    fn too_long(&self, position: usize, cost: Estimate) -> JudgeError {
        let detail = format!(
            "/retrieved_contexts/{position} takes up to {} tokens by estimate. The judge's window of {} has room for {} beside the question ({}) and its answer ({}), and no context is cut.",
            cost.most,
            self.window,
            self.room(),
            self.fixed.most,
            self.answer
        );
        JudgeError::new(JudgeFault::ContextLengthExceeded, detail)
    }

    fn too_many(&self, windows: usize) -> JudgeError {
        let detail = format!(
            "The contexts would take {windows} windows of {} tokens each; more than {MOST_WINDOWS} are not asked for one sample.",
            self.window
        );
        JudgeError::new(JudgeFault::ContextLengthExceeded, detail)
    }
}

/// What a context adds to the prompt.
fn cost(passage: &Passage<'_>) -> Estimate {
    Estimate::of(&prompt::passage(passage))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::recall::Units;

    fn question(contexts: &[usize]) -> Question {
        Question {
            user_input: "?".to_owned(),
            contexts: contexts.iter().map(|words| "word ".repeat(*words)).collect(),
            claims: Units::new(vec!["A claim.".to_owned()]).unwrap(),
        }
    }

    fn costs(question: &Question, window: u32, source: Source) -> Costs {
        Costs::new(question, &[1], window, source, u32::MAX)
    }

    fn tokens(part: &[Passage<'_>]) -> u32 {
        part.iter().map(|passage| cost(passage).most).sum()
    }

    proptest! {
        #[test]
        fn every_context_is_in_exactly_one_window_and_none_is_over_full(
            contexts in prop::collection::vec(0_usize..400, 1..40),
            window in 2500_u32..6000,
        ) {
            let question = question(&contexts);
            let passages: Vec<Passage<'_>> = question.passages().collect();
            let costs = costs(&question, window, Source::Set);
            let plan = costs.plan(&passages).unwrap();
            prop_assert_eq!(&plan.concat(), &passages, "in rank order, nothing lost, nothing twice");
            for part in &plan {
                prop_assert!(!part.is_empty() && tokens(part) <= costs.room());
                prop_assert!(costs.left_by(part) >= costs.answer);
            }
            for pair in plan.windows(2) {
                let next = pair[1].first().map_or(0, |passage| cost(passage).most);
                prop_assert!(tokens(pair[0]) + next > costs.room(), "a window is filled before the next is begun");
            }
            for part in plan.iter().filter(|part| part.len() > 1) {
                let halves = costs.halves(part);
                prop_assert_eq!(halves.len(), 2);
                prop_assert_eq!(halves.concat(), part.to_vec());
            }
        }

        #[test]
        fn one_window_is_filled_with_the_best_that_fit(contexts in prop::collection::vec(1_usize..400, 1..20)) {
            let question = question(&contexts);
            let passages: Vec<Passage<'_>> = question.passages().collect();
            let costs = costs(&question, 3000, Source::Set);
            let ranking: Vec<usize> = (0..passages.len()).rev().collect();
            let chosen = costs.fill(&passages, &ranking);
            let part: Vec<Passage<'_>> = chosen.iter().map(|index| passages[*index]).collect();
            prop_assert!(tokens(&part) <= costs.room());
            prop_assert_eq!(chosen.first(), ranking.first());
            let left = costs.room() - tokens(&part);
            for index in ranking.iter().filter(|index| !chosen.contains(index)) {
                prop_assert!(cost(&passages[*index]).most > left, "{index} would have had room");
            }
        }
    }

    #[test]
    fn what_may_fit_is_tried_unless_the_window_was_set_by_hand() {
        // Between 1000 and 2000 tokens.
        let question = question(&[1000, 10]);
        let passages: Vec<Passage<'_>> = question.passages().collect();
        let planned = |window, source| costs(&question, window, source).plan(&passages).map(|plan| plan.len());
        assert!(planned(2500, Source::Set).is_err());
        assert_eq!(planned(2500, Source::Reported).unwrap(), 2);
        assert!(planned(1000, Source::Reported).is_err());
        assert_eq!(planned(1000, Source::Told).unwrap(), 2);
    }
}
