//! How well and how fast the embedded judge decides, against human labels.
//!
//! `ATTRIBUTION_DATA=claims.jsonl cargo bench --bench judge`, where every line of the file holds `source`, `lang`,
//! `user_input`, `contexts` and `claims`, a list of `{ "claim": text, "attributed": 0 or 1 }`.

#![expect(clippy::print_stdout, reason = "a benchmark's result is what it prints")]

use std::collections::BTreeMap;
use std::error::Error;
use std::time::Instant;

use context_recall::judge::embedded::{self, Assessment};
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
    margin: f32,
    confidence: f32,
}

fn main() -> Result<(), Box<dyn Error>> {
    let Some(path) = std::env::var_os("ATTRIBUTION_DATA") else {
        println!("skipped: ATTRIBUTION_DATA names no file of labelled claims");
        return Ok(());
    };
    let mut samples = Vec::new();
    for line in std::fs::read_to_string(path)?.lines().filter(|line| !line.trim().is_empty()) {
        samples.push(serde_json::from_str(line)?);
    }

    let mut sources: BTreeMap<(bool, &str), Vec<Outcome>> = BTreeMap::new();
    let (mut foreign, mut refused) = (0.0, 0.0);
    for (at, sample) in samples.iter().enumerate() {
        let Sample { source, lang, user_input, contexts, claims } = sample;
        let outcomes = sources.entry((lang != "en", source)).or_default();
        for Labelled { claim, attributed } in claims {
            let found = judge(user_input, contexts, claim)?;
            outcomes.push(Outcome {
                wanted: *attributed == 1,
                given: found.verdict.attributed,
                margin: found.margin,
                confidence: found.confidence(),
            });
            let other = &samples[(at + samples.len() / 2) % samples.len()].contexts;
            foreign += 1.0;
            refused += if judge(user_input, other, claim)?.verdict.attributed { 0.0 } else { 1.0 };
        }
    }

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
    println!("\nwith the contexts of another sample, {:.1} % of the claims are refused", 100.0 * refused / foreign);
    let all: Vec<&Outcome> = sources.values().flatten().collect();
    reliability(&all);
    speed(&samples)
}

fn judge(user_input: &str, contexts: &[String], claim: &str) -> Result<Assessment, Box<dyn Error>> {
    let question = Question {
        user_input: user_input.to_owned(),
        contexts: contexts.to_vec(),
        claims: Units::new(vec![claim.to_owned()]).ok_or("no claim")?,
    };
    Ok(embedded::assess(&question, &Stop::default())?.remove(0))
}

/// Prints how often decisions are right, by how sure the judge was of them.
fn reliability(outcomes: &[&Outcome]) {
    println!("\n{:<12} {:>6} {:>6} {:>6}", "confidence", "claims", "mean", "right");
    let mut error = 0.0;
    for tenth in 5..10_u8 {
        let from = f32::from(tenth) / 10.0;
        let within = |outcome: &&&Outcome| (from..from + 0.1).contains(&outcome.confidence.min(0.999));
        let inside: Vec<&Outcome> = outcomes.iter().filter(within).copied().collect();
        if inside.is_empty() {
            continue;
        }
        let n = inside.len() as f64;
        let mean = 100.0 * inside.iter().map(|outcome| f64::from(outcome.confidence)).sum::<f64>() / n;
        let right = share(inside.iter().copied(), |outcome| outcome.given == outcome.wanted);
        println!("{from:.1} to {:.1}   {n:>6} {mean:>5.1}% {right:>5.1}%", from + 0.1);
        error += (mean - right).abs() * n / outcomes.len() as f64;
    }
    println!("expected calibration error: {error:.1} points");
}

/// Prints what a claim costs, alone with its contexts, and how that grows with them.
fn speed(samples: &[Sample]) -> Result<(), Box<dyn Error>> {
    let (mut claims, mut chars) = (0_u32, 0);
    let mut micros = f64::INFINITY;
    // The best of a few rounds: others may be at work on the machine.
    for _ in 0..5 {
        (claims, chars) = (0, 0);
        let start = Instant::now();
        for Sample { user_input, contexts, claims: labelled, .. } in samples {
            for Labelled { claim, .. } in labelled {
                judge(user_input, contexts, claim)?;
                claims += 1;
                chars += contexts.iter().map(|text| text.chars().count()).sum::<usize>();
            }
        }
        micros = micros.min(start.elapsed().as_secs_f64() * 1e6 / f64::from(claims));
    }
    println!(
        "\n{micros:.0} µs per claim, one claim a question, with {} characters of contexts each",
        chars / claims as usize
    );
    let text: String = samples.iter().flat_map(|sample| &sample.contexts).map(|text| format!("{text}\n")).collect();
    let claim = &samples.first().and_then(|sample| sample.claims.first()).ok_or("no claims")?.claim;
    for size in [1_000, 10_000, 100_000, 1_000_000] {
        let contexts = [text.chars().cycle().take(size).collect::<String>()];
        let start = Instant::now();
        judge("", &contexts, claim)?;
        let micros = start.elapsed().as_secs_f64() * 1e6;
        println!("{size:>8} characters: {micros:>8.0} µs, {:>5.0} ns each", micros * 1e3 / size as f64);
    }
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
            won += match yes.margin.total_cmp(&no.margin) {
                std::cmp::Ordering::Greater => 1.0,
                std::cmp::Ordering::Equal => 0.5,
                std::cmp::Ordering::Less => 0.0,
            };
        }
    }
    100.0 * won / pairs
}
