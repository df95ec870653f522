//! Why a sentence is not carried, in words.

use super::checks::{self, Sight, Stretch};
use super::claim::{Sentence, Unit};
use super::order;
use super::text::Kind;
use super::window::{Search, Window};

/// Where less of the sentence is covered, what no context mentions at all is told before all else.
const LITTLE: f32 = 0.6;

/// The words of a reason at most.
const NAMED: usize = 5;

/// Says what kept the `closest` window from carrying the sentence.
pub(super) fn objection(search: &Search<'_>, closest: Option<&Window>) -> String {
    let sentence = search.sentence();
    let none;
    let seen: &[Sight] = match closest {
        Some(window) => &window.seen,
        None => {
            none = vec![Sight::default(); sentence.units.len()];
            &none
        }
    };
    let pick = |wanted: &dyn Fn(usize, &Unit, Sight) -> bool| -> Vec<usize> {
        let sights = sentence.units.iter().zip(seen).enumerate();
        sights.filter(|(number, (unit, sight))| wanted(*number, unit, **sight)).map(|(number, _)| number).collect()
    };
    let numbers = pick(&|_, unit, sight| checks::is_number_missing(unit, sight));
    let covered: f32 = sentence.units.iter().zip(seen).map(|(unit, sight)| unit.weight * sight.credit()).sum();
    let unheard = pick(&|_, unit, sight| !sight.covers() && unit.is_heavy() && !search.is_heard(unit));
    let little = covered < LITTLE * sentence.weight;
    if little && unheard.iter().any(|number| !numbers.contains(number)) {
        return format!("the contexts say nothing of: {}", name(sentence, &unheard));
    }
    if !numbers.is_empty() {
        let verb = if numbers.len() == 1 { "does" } else { "do" };
        return format!("{} {verb} not occur in the passage", name(sentence, &numbers));
    }
    let missing = || pick(&|_, unit, sight| !sight.covers() && unit.is_heavy());
    let told =
        closest.and_then(|window| search.revisit(window, |stretch| contradiction(stretch, &missing())).flatten());
    told.unwrap_or_else(|| format!("no passage says all of it; missing: {}", name(sentence, &missing())))
}

/// Says what in `stretch` speaks against the sentence, the plainest first.
fn contradiction(stretch: &Stretch<'_>, missing: &[usize]) -> Option<String> {
    let Stretch { sentence, seen, whole, .. } = *stretch;
    let facts = checks::Facts::of(stretch);
    let pick = |wanted: &dyn Fn(usize) -> bool| -> String {
        let numbers: Vec<usize> = stretch.units().filter(|number| wanted(*number)).collect();
        name(sentence, &numbers)
    };
    Some(if facts.name {
        let absent = pick(&|number| checks::is_name_missing(&sentence.units[number], whole[number]));
        format!("the passage does not name: {absent}")
    } else if facts.swapped {
        format!("the passage says it of another than: {}", name(sentence, missing))
    } else if facts.exchanged {
        format!("the passage says it the other way round of: {}", pick(&|number| sentence.is_named(number)))
    } else if facts.opposite {
        format!("the passage says the opposite of: {}", pick(&|number| stretch.is_opposed(number)))
    } else if facts.turned || facts.undenied {
        let denies = sentence.negates;
        let reason = if denies { "the claim negates what the passage says" } else { "the passage negates it" };
        reason.to_owned()
    } else if facts.rival {
        format!("the passage has another than: {}", pick(&|number| stretch.is_rivalled(number)))
    } else if let Some(place) = order::replaced(stretch).and_then(|gap| sentence.order.get(gap)) {
        format!("the passage says something else in place of: {}", name(sentence, place))
    } else if facts.sweeping {
        let absent = pick(&|number| sentence.units[number].sweeping && !seen[number].covers());
        format!("the passage does not say: {absent}")
    } else if facts.talk {
        "the claim asks, or speaks for whoever says it; the passage does not".to_owned()
    } else {
        return None;
    })
}

/// The units of these numbers as the claim writes them; neighbours stay together.
fn name(sentence: &Sentence, numbers: &[usize]) -> String {
    let mut names: Vec<String> = Vec::new();
    let mut before: Option<&Unit> = None;
    for unit in numbers.iter().filter_map(|number| sentence.units.get(*number)) {
        let neighbour = before.is_some_and(|before| before.place + 1 == unit.place);
        match names.last_mut().filter(|_| neighbour) {
            // Pairs overlap by a character.
            Some(last) if unit.kind == Kind::Pair => last.extend(unit.written.chars().skip(1)),
            Some(last) => {
                last.push(' ');
                last.push_str(&unit.written);
            }
            None => names.push(unit.written.clone()),
        }
        before = Some(unit);
    }
    names.truncate(NAMED);
    names.join(", ")
}
