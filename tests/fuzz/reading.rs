//! What holds for the reading of any reply. Shared by the fuzz target and by the tests that always run.

use std::time::{Duration, Instant};

use context_recall::judge::reply::{Given, Reading, Unreadable, read};
use context_recall::recall::judge::Verdict;

/// The sets of claims that are asked for: one, and some of which a reply numbers few.
const ASKED: [&[usize]; 2] = [&[1], &[1, 2, 7]];

/// Reads a reply beside a context and checks everything that must hold whatever they are.
pub fn holds(context: &str, reply: &str) {
    let began = Instant::now();
    let (nothing, given, itself) = (Given::nothing(), Given::of([context]), Given::of([reply]));
    let readings = ASKED.map(|asked| {
        let alone = read(reply, asked, &nothing);
        is_sound(&alone, reply, asked);

        // A context without verdicts changes nothing, and the same text is read in the same way.
        let beside = read(reply, asked, &given);
        is_sound(&beside, reply, asked);
        assert!(may_hold_verdicts(context) || beside == alone, "{alone:?} became {beside:?}");

        let repeated = read(reply, asked, &itself);
        is_sound(&repeated, reply, asked);
        assert!(verdicts(&repeated).is_empty(), "a reply that was given to read, whole, decides nothing");
        alone
    });
    agree(&readings[0], &readings[1]);
    // Far above what linear work takes with a sanitizer on a busy machine, far below what quadratic work takes.
    let most = Duration::from_secs(10) + Duration::from_micros(100) * u32::try_from(reply.len()).unwrap_or(u32::MAX);
    let took = began.elapsed();
    assert!(took < most, "{took:?} for {} bytes", reply.len());
}

fn may_hold_verdicts(context: &str) -> bool {
    // The key of a decision as it is spelt, or escapes that may spell it.
    context.to_ascii_lowercase().contains("attributed") || context.contains("\\u")
}

type Outcome = Result<Reading<Verdict>, Unreadable>;

fn verdicts(outcome: &Outcome) -> Vec<(usize, bool)> {
    let listed = outcome.as_ref().map(|reading| reading.entries.as_slice()).unwrap_or_default();
    listed.iter().map(|(number, verdict)| (*number, verdict.attributed)).collect()
}

/// Every number asked for once, in order, with a verdict or with words; nothing longer than it may be.
fn is_sound(outcome: &Outcome, reply: &str, asked: &[usize]) {
    let reading = match outcome {
        Ok(reading) => reading,
        Err(Unreadable::Truncated | Unreadable::Empty) => return,
        Err(Unreadable::Invalid(words)) => return assert!(!words.is_empty() && words.len() < 400, "{words}"),
    };
    assert!(reading.entries.is_sorted_by(|a, b| a.0 < b.0) && reading.open.is_sorted_by(|a, b| a.0 < b.0));
    let mut numbers: Vec<usize> = reading.entries.iter().map(|(number, _)| *number).collect();
    numbers.extend(reading.open.iter().map(|(number, _)| *number));
    numbers.sort_unstable();
    assert_eq!(numbers, asked, "each claim that was asked for, once");
    let mut kept = 0;
    for (_, verdict) in &reading.entries {
        assert!(verdict.reason.chars().count() <= 2_000 && verdict.evidence.len() <= 32);
        kept += verdict.reason.len();
        for citation in &verdict.evidence {
            assert!(!citation.quote.trim().is_empty());
            kept += citation.quote.len();
        }
    }
    assert!(kept <= reply.len(), "nothing is kept that was not said");
    for (_, words) in &reading.open {
        assert!(!words.is_empty() && words.len() < 400, "{words}");
    }
}

/// What is said of a claim does not depend on which others are asked for.
fn agree(few: &Outcome, many: &Outcome) {
    if let (Ok(few), Ok(many)) = (few, many) {
        let of = |reading: &Reading<Verdict>| reading.entries.iter().find(|(number, _)| *number == 1).cloned();
        assert_eq!(of(few), of(many));
    }
}
