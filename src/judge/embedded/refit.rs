//! Chooses the weights anew on labelled claims, and tells what to expect of them on claims of other sources.
//!
//! `ATTRIBUTION_DATA=claims.jsonl cargo test --release --lib refit -- --ignored --nocapture`, with a file as
//! `benches/judge.rs` takes it. Chosen are what an objection costs and the score that is enough, by the mean over the
//! English sources of their balanced accuracies; for each source once more from all the others. There the checks are
//! chosen anew too: one without which the others do better is left out.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::weights::{self, CHECKS, WEIGHTS, Weights};
use crate::recall::judge::Question;
use crate::recall::{Stop, Units};

#[derive(Deserialize)]
struct Sample {
    source: String,
    lang: String,
    user_input: String,
    contexts: Vec<String>,
    claims: Vec<Labelled>,
}

#[derive(Deserialize)]
struct Labelled {
    claim: String,
    attributed: u8,
}

struct Labels {
    source: String,
    wanted: Vec<bool>,
    question: Question,
}

/// One claim's outcome.
#[derive(Clone, Copy)]
struct Outcome<'a> {
    source: &'a str,
    wanted: bool,
    margin: f32,
}

/// What an objection may cost.
const COSTS: [f32; 4] = [0.4, 0.5, 0.6, 0.7];

type Heeded = [bool; CHECKS.len()];

/// The margins of all claims, counted from a score of 0.
fn look(objection: f32, heeded: Heeded, samples: &[Labels]) -> Vec<Outcome<'_>> {
    let together = WEIGHTS.enough_together - WEIGHTS.enough;
    let weights = Weights { objection, heeded, enough: 0.0, enough_together: together };
    let mut outcomes = Vec::new();
    for Labels { source, wanted, question } in samples {
        let found = super::assess_by(&weights, question, &Stop::default()).unwrap();
        let pairs = wanted.iter().zip(found);
        outcomes.extend(pairs.map(|(wanted, found)| Outcome { source, wanted: *wanted, margin: found.margin }));
    }
    outcomes
}

/// The mean over the sources of their balanced accuracies, in percent, when `enough` decides.
fn balanced(outcomes: &[Outcome<'_>], enough: f32) -> f64 {
    // By source and label: right, all.
    let mut counts: BTreeMap<(&str, bool), (f64, f64)> = BTreeMap::new();
    for outcome in outcomes {
        let (right, all) = counts.entry((outcome.source, outcome.wanted)).or_default();
        *right += f64::from(u8::from((outcome.margin >= enough) == outcome.wanted));
        *all += 1.0;
    }
    100.0 * counts.values().map(|(right, all)| right / all).sum::<f64>() / counts.len() as f64
}

/// The threshold in the middle of the stretch that gives the best mean balanced accuracy, and that.
fn threshold(outcomes: &[Outcome<'_>]) -> (f32, f64) {
    let steps: Vec<f32> = (0..100_u8).map(|step| f32::from(step) / 100.0).collect();
    let scores: Vec<f64> = steps.iter().map(|enough| balanced(outcomes, *enough)).collect();
    // The mean of nine neighbours: one step's luck is not chosen.
    let smooth = scores.windows(9).map(|scores| scores.iter().sum::<f64>() / 9.0);
    let best = steps[4..].iter().copied().zip(smooth).max_by(|(_, a), (_, b)| a.total_cmp(b));
    best.unwrap_or((WEIGHTS.enough, 0.0))
}

/// The steepness that makes the decisions on one side of the threshold likeliest.
fn steepness(outcomes: &[Outcome<'_>], enough: f32, passed: bool) -> f32 {
    let likelihood = |steepness: f32| -> f32 {
        let side = outcomes.iter().filter(|outcome| (outcome.margin >= enough) == passed);
        side.map(|outcome| {
            let confidence = weights::logistic(steepness * (outcome.margin - enough).abs());
            if outcome.wanted == passed { confidence.ln() } else { (1.0 - confidence).max(1e-6).ln() }
        })
        .sum()
    };
    let steps = (0..100_u8).map(|step| f32::from(step) / 10.0);
    steps.max_by(|a, b| likelihood(*a).total_cmp(&likelihood(*b))).unwrap()
}

/// The chance that an attributed claim stands above one that is not, in percent.
fn auroc(outcomes: &[Outcome<'_>], source: &str) -> f64 {
    let of = |wanted: bool| outcomes.iter().filter(move |outcome| outcome.source == source && outcome.wanted == wanted);
    let (mut pairs, mut won) = (0.0, 0.0);
    for yes in of(true) {
        for no in of(false) {
            pairs += 1.0;
            won += match yes.margin.total_cmp(&no.margin) {
                std::cmp::Ordering::Greater => 1.0,
                std::cmp::Ordering::Equal => 0.5,
                std::cmp::Ordering::Less => 0.0,
            };
        }
    }
    100.0 * won / pairs
}

/// Those of all other sources.
fn others<'a>(outcomes: &[Outcome<'a>], source: &str) -> Vec<Outcome<'a>> {
    outcomes.iter().filter(|outcome| outcome.source != source).copied().collect()
}

/// Prints the table, and the mean balanced accuracy on sources that were left out.
#[test]
#[ignore = "needs the labelled claims that ATTRIBUTION_DATA names"]
fn refit() {
    // Read when this is built: the environment of the running program is the settings' alone.
    let Some(path) = option_env!("ATTRIBUTION_DATA") else {
        panic!("ATTRIBUTION_DATA names no file of labelled claims")
    };
    let mut samples = Vec::new();
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let Sample { source, lang, user_input, contexts, claims } = serde_json::from_str(line).unwrap();
        let wanted = claims.iter().map(|labelled| labelled.attributed == 1).collect();
        let claims = Units::new(claims.into_iter().map(|labelled| labelled.claim).collect()).unwrap();
        if lang == "en" {
            samples.push(Labels { source, wanted, question: Question { user_input, contexts, claims } });
        }
    }
    let mut sources: Vec<&str> = samples.iter().map(|sample| sample.source.as_str()).collect();
    sources.dedup();
    sources.sort_unstable();
    sources.dedup();

    let area = |outcomes: &[Outcome<'_>]| {
        sources.iter().map(|source| auroc(outcomes, source)).sum::<f64>() / sources.len() as f64
    };
    let print = |what: &str, outcomes: &[Outcome<'_>]| {
        let (enough, accuracy) = threshold(outcomes);
        println!("{what:<24} BAcc {accuracy:.1}, AUROC {:.1} at {enough:.2}", area(outcomes));
    };
    let all = look(WEIGHTS.objection, WEIGHTS.heeded, &samples);
    let without: Vec<Vec<Outcome<'_>>> = (0..CHECKS.len())
        .map(|check| {
            let mut heeded = WEIGHTS.heeded;
            heeded[check] = false;
            let outcomes = look(WEIGHTS.objection, heeded, &samples);
            print(&format!("without {}", CHECKS[check]), &outcomes);
            outcomes
        })
        .collect();
    for cost in COSTS {
        print(&format!("all at {cost}"), &look(cost, WEIGHTS.heeded, &samples));
    }
    let enough = threshold(&all).0;
    let (above, below) = (steepness(&all, enough, true), steepness(&all, enough, false));
    println!("confidence grows by {above} above, {below} below\n");

    let (mut held, mut ranked) = (0.0, 0.0);
    for source in &sources {
        let whole = threshold(&others(&all, source)).1;
        let heeded = std::array::from_fn(|check| threshold(&others(&without[check], source)).1 <= whole);
        let looks = COSTS.map(|cost| (cost, look(cost, heeded, &samples)));
        let best = looks.iter().map(|(cost, outcomes)| (cost, outcomes, threshold(&others(outcomes, source))));
        let (cost, outcomes, (enough, _)) = best.max_by(|(.., (_, a)), (.., (_, b))| a.total_cmp(b)).unwrap();
        let own: Vec<Outcome<'_>> = outcomes.iter().filter(|outcome| outcome.source == *source).copied().collect();
        let (accuracy, area) = (balanced(&own, enough), auroc(&own, source));
        let dropped: Vec<&str> = CHECKS.iter().zip(heeded).filter(|(_, kept)| !kept).map(|(name, _)| *name).collect();
        println!(
            "{source:<18} BAcc {accuracy:.1}, AUROC {area:.1}; others say {cost}, {enough:.2}, without {dropped:?}"
        );
        held += accuracy / sources.len() as f64;
        ranked += area / sources.len() as f64;
    }
    println!("left out: BAcc {held:.1}, AUROC {ranked:.1}");
}
