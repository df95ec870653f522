//! How well and how fast the embedded judge decides, against human labels.
//!
//! `ATTRIBUTION_DATA=claims.jsonl cargo bench --bench judge`, where every line of the file holds `source`, `lang`,
//! `user_input`, `contexts` and `claims`, a list of `{ "claim": text, "attributed": 0 or 1 }`.

#![expect(clippy::print_stdout, reason = "a benchmark's result is what it prints")]

use std::collections::BTreeMap;
use std::error::Error;
use std::time::Instant;

use context_recall::judge::embedded;
use context_recall::recall::judge::Question;
use context_recall::recall::{Stop, Units};
use serde::Deserialize;

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

/// One claim's outcome.
struct Outcome {
    wanted: bool,
    given: bool,
    score: f32,
}

fn main() -> Result<(), Box<dyn Error>> {
    let Some(path) = std::env::var_os("ATTRIBUTION_DATA") else {
        println!("skipped: ATTRIBUTION_DATA names no file of labelled claims");
        return Ok(());
    };
    let mut samples = Vec::new();
    for line in std::fs::read_to_string(path)?.lines().filter(|line| !line.trim().is_empty()) {
        let Sample { source, lang, user_input, contexts, claims } = serde_json::from_str(line)?;
        let labels: Vec<bool> = claims.iter().map(|labelled| labelled.attributed == 1).collect();
        let claims = claims.into_iter().map(|labelled| labelled.claim).collect();
        if let Some(claims) = Units::new(claims) {
            samples.push((source, lang == "en", labels, Question { user_input, contexts, claims }));
        }
    }

    let mut sources: BTreeMap<(bool, &str), Vec<Outcome>> = BTreeMap::new();
    let (mut count, mut bytes) = (0, 0);
    let start = Instant::now();
    for (source, english, labels, question) in &samples {
        let outcomes = sources.entry((!english, source)).or_default();
        count += labels.len();
        bytes += question.contexts.iter().map(String::len).sum::<usize>();
        for (wanted, found) in labels.iter().zip(embedded::assess(question, &Stop::default())?) {
            outcomes.push(Outcome { wanted: *wanted, given: found.verdict.attributed, score: found.margin });
        }
    }
    let seconds = start.elapsed().as_secs_f64();

    println!("{}\n", embedded::VERSION);
    println!("{:<18} {:>6} {:>6} {:>6} {:>8}", "source", "claims", "BAcc", "AUROC", "says yes");
    let mut means = Vec::new();
    for ((other, source), outcomes) in &sources {
        let (accuracy, area) = (balanced_accuracy(outcomes), auroc(outcomes));
        let yes = share(outcomes, |outcome| outcome.given);
        println!("{source:<18} {:>6} {accuracy:>6.1} {area:>6.1} {yes:>7.1}%", outcomes.len());
        means.push((*other, accuracy, area));
    }
    for (name, wanted) in [("mean, English", Some(false)), ("mean, others", Some(true)), ("mean, all", None)] {
        let rows = || means.iter().filter(|(other, ..)| wanted.is_none_or(|wanted| wanted == *other));
        let n = rows().count() as f64;
        let accuracy = rows().map(|(_, accuracy, _)| accuracy).sum::<f64>() / n;
        let area = rows().map(|(_, _, area)| area).sum::<f64>() / n;
        println!("{name:<18} {:>6} {accuracy:>6.1} {area:>6.1}", "");
    }
    let (claims, megabytes) = (f64::from(u32::try_from(count)?) / seconds, bytes as f64 / 1e6 / seconds);
    println!("\n{claims:.0} claims/s, {megabytes:.1} MB of contexts/s, one thread");
    Ok(())
}

/// The share of `outcomes` for which `holds`, in percent.
fn share<'a>(outcomes: impl IntoIterator<Item = &'a Outcome>, holds: impl Fn(&Outcome) -> bool) -> f64 {
    let (mut all, mut held) = (0.0, 0.0);
    for outcome in outcomes {
        all += 1.0;
        held += if holds(outcome) { 1.0 } else { 0.0 };
    }
    100.0 * held / all
}

/// The mean of sensitivity and specificity, in percent.
fn balanced_accuracy(outcomes: &[Outcome]) -> f64 {
    let of = |label: bool| outcomes.iter().filter(move |outcome| outcome.wanted == label);
    f64::midpoint(share(of(true), |outcome| outcome.given), share(of(false), |outcome| !outcome.given))
}

/// The chance that an attributed claim scores above one that is not, ties counted half, in percent.
fn auroc(outcomes: &[Outcome]) -> f64 {
    let (mut pairs, mut won) = (0.0, 0.0);
    for yes in outcomes.iter().filter(|outcome| outcome.wanted) {
        for no in outcomes.iter().filter(|outcome| !outcome.wanted) {
            pairs += 1.0;
            won += match yes.score.total_cmp(&no.score) {
                std::cmp::Ordering::Greater => 1.0,
                std::cmp::Ordering::Equal => 0.5,
                std::cmp::Ordering::Less => 0.0,
            };
        }
    }
    100.0 * won / pairs
}
