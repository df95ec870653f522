//! The majority of several votes on one question.
//!
//! A vote is a whole judgement: each decides on every claim, in windows where it must. All of them have to be complete:
//! a majority of those that happened to answer would depend on which failed.

use futures_util::future::try_join_all;

use super::round::Manner;
use super::windows::{Asked, MOST_FURTHER, Vote, vote};
use crate::recall::judge::{Agreement, Ballot, Decision, JudgeError, JudgeFault, Question, Verdict, Verdicts, Votes};

/// The temperature of every vote but the first. At 0 all votes would be copies of one; 0.7 is the usual choice where
/// several samples of one answer are put to a majority: reasons differ, the form of the answer still holds.
const TEMPERATURE: f32 = 0.7;

/// Has a question judged `votes` times, at once as far as there are places.
///
/// The first vote is what a single one would be, temperature and seed included.
///
/// # Errors
///
/// The failure of the first vote that fails; the others are abandoned.
pub(super) async fn decide(asked: &Asked<'_>, votes: Votes) -> Result<Vote, JudgeError> {
    let every: Vec<Asked<'_>> =
        (0..votes.count()).map(|turn| Asked { manner: manner(asked.manner, turn), ..*asked }).collect();
    let cast = try_join_all(every.iter().map(vote)).await?;
    let mut all = Vec::with_capacity(cast.len());
    let (mut model, mut windows, mut warnings) = (None, 1, Vec::new());
    for vote in cast {
        all.push(vote.verdicts);
        model = model.or(vote.model);
        windows = windows.max(vote.windows);
        for warning in vote.warnings {
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
    }
    Ok(Vote { verdicts: majority(asked.question, all)?, model, windows, warnings })
}

fn manner(first: Manner, turn: u8) -> Manner {
    match turn {
        0 => first,
        turn => Manner { temperature: TEMPERATURE, seed: first.seed.wrapping_add(i64::from(turn)), ..first },
    }
}

/// The decision of most votes on each claim; a tie is not attributed. Its grounds are those of the votes that agree with
/// it, the first vote's first.
fn majority(question: &Question, votes: Vec<Verdicts>) -> Result<Verdicts, JudgeError> {
    let mut ballot = Ballot::of(question);
    let mut votes: Vec<_> = votes.into_iter().map(|vote| vote.into_units().into_vec().into_iter()).collect();
    for number in ballot.open() {
        let on_claim: Vec<Decision> = votes.iter_mut().filter_map(Iterator::next).collect();
        if let Some(decision) = settle(on_claim) {
            ballot.cast(number, decision);
        }
    }
    ballot.close().map_err(|_| JudgeError::new(JudgeFault::Internal, "a vote left a claim open"))
}

fn settle(votes: Vec<Decision>) -> Option<Decision> {
    let count = |attributed: bool| votes.iter().filter(|vote| vote.verdict.attributed == attributed).count();
    let attributed = count(true) > count(false);
    let share = |count: usize| u8::try_from(count).unwrap_or(u8::MAX);
    let agreement = Agreement::of(share(count(attributed)), share(votes.len()));
    let agreeing = votes.into_iter().filter(|vote| vote.verdict.attributed == attributed);
    let mut grounds = agreeing.flat_map(|vote| std::iter::once(vote.verdict).chain(vote.further));
    let verdict: Verdict = grounds.next()?;
    Some(Decision { verdict, further: grounds.take(MOST_FURTHER).collect(), agreement })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn vote(attributed: bool, reason: usize) -> Decision {
        Verdict { attributed, reason: reason.to_string(), evidence: Vec::new() }.into()
    }

    proptest! {
        #[test]
        fn most_votes_win_and_a_tie_is_not_attributed(votes in prop::collection::vec(any::<bool>(), 1..=9)) {
            let yes = votes.iter().filter(|vote| **vote).count();
            let cast = votes.iter().enumerate().map(|(turn, attributed)| vote(*attributed, turn)).collect();
            let decision = settle(cast).unwrap();
            prop_assert_eq!(decision.verdict.attributed, 2 * yes > votes.len());
            let share = decision.agreement.share();
            prop_assert!((0.5..=1.0).contains(&share), "{share}");
            let agreeing = if decision.verdict.attributed { yes } else { votes.len() - yes };
            prop_assert_eq!(share, agreeing as f64 / votes.len() as f64);
            // The reason is that of the first vote on the winning side.
            let first = votes.iter().position(|vote| *vote == decision.verdict.attributed).unwrap();
            prop_assert_eq!(decision.verdict.reason, first.to_string());
        }
    }

    #[test]
    fn the_first_vote_is_what_a_single_one_would_be() {
        let single = Manner { repairs: 1, ceiling: 100, temperature: 0.0, seed: i64::MAX };
        assert_eq!(manner(single, 0).seed, i64::MAX);
        assert!(manner(single, 0).temperature == 0.0 && manner(single, 1).temperature > 0.0);
        assert_eq!(manner(single, 2).seed, i64::MIN + 1);
    }
}
