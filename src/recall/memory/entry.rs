//! What an entry looks like: a version, a checksum, and JSON that names every part in a letter or two.
//!
//! The checksum covers the key too, so that an entry under a wrong key is as unreadable as one whose bits have flipped.
//! The format is spelt out in types of its own: the domain may change without changing what was written, and a change of
//! what is written cannot happen unseen.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::super::Units;
use super::super::judge::{Agreement, Ballot, Citation, Cut, Decision, Judgement, Question, Usage, Verdict, Warning};
use super::Key;

/// The version of the format. Entries of another are passed over.
const VERSION: u8 = 1;

/// Bytes of the checksum: enough against accidents, and nobody forges an entry in a memory that they can write anyway.
const CHECKSUM: usize = 8;

/// Why an entry gives nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// Another version wrote it.
    #[error("it is of another version")]
    OtherVersion,
    /// It is not what was written.
    #[error("it is damaged")]
    Damaged,
    /// It is whole and does not answer the question.
    #[error("it does not fit the question")]
    Unfitting,
}

/// An answer of a model that can be remembered.
pub trait Remembered: Clone + Send + Sync + Sized + 'static {
    /// What was asked.
    type Question: Send + Sync;

    /// Writes it down, without what it cost.
    fn write(&self, key: Key) -> Vec<u8>;

    /// Reads the answer to `question`, which costs nothing.
    ///
    /// # Errors
    ///
    /// [`Unreadable`] for whatever is not a complete answer to that very question.
    fn read(key: Key, question: &Self::Question, entry: &[u8]) -> Result<Self, Unreadable>;

    /// What it cost.
    fn usage(&mut self) -> &mut Usage;
}

impl Remembered for Judgement {
    type Question = Question;

    fn write(&self, key: Key) -> Vec<u8> {
        let Self { verdicts, model_reported, windows, usage: _, warnings } = self;
        let body = Body {
            v: verdicts.iter().map(Entry::of).collect(),
            m: model_reported.clone(),
            w: *windows,
            x: notes(warnings),
        };
        seal(key, &body)
    }

    fn read(key: Key, question: &Question, entry: &[u8]) -> Result<Self, Unreadable> {
        let Body { v, m, w, x } = unseal(key, entry)?;
        if v.len() != question.claims.len().get() || w == 0 {
            return Err(Unreadable::Unfitting);
        }
        let mut ballot = Ballot::of(question);
        for (number, entry) in (1..).zip(v) {
            ballot.cast(number, entry.decision(question.contexts.len())?);
        }
        Ok(Self {
            verdicts: ballot.close().map_err(|_| Unreadable::Unfitting)?,
            model_reported: m,
            windows: w,
            usage: Usage::NOTHING,
            warnings: warnings(x),
        })
    }

    fn usage(&mut self) -> &mut Usage {
        &mut self.usage
    }
}

impl Remembered for Cut {
    type Question = Units<String>;

    fn write(&self, key: Key) -> Vec<u8> {
        let Self { claims, usage: _, warnings } = self;
        seal(key, &CutBody { c: claims.as_slice().to_vec(), x: notes(warnings) })
    }

    fn read(key: Key, sentences: &Units<String>, entry: &[u8]) -> Result<Self, Unreadable> {
        let CutBody { c, x } = unseal(key, entry)?;
        // At least one claim of each sentence.
        if c.len() < sentences.len().get() || c.iter().any(|claim| claim.trim().is_empty()) {
            return Err(Unreadable::Unfitting);
        }
        let claims = Units::new(c).ok_or(Unreadable::Unfitting)?;
        Ok(Self { claims, usage: Usage::NOTHING, warnings: warnings(x) })
    }

    fn usage(&mut self) -> &mut Usage {
        &mut self.usage
    }
}

fn seal(key: Key, body: &impl Serialize) -> Vec<u8> {
    let mut entry = vec![VERSION];
    entry.extend_from_slice(&[0; CHECKSUM]);
    // Strings, numbers and booleans alone always serialise; what could not would not be readable, and so be a miss.
    let _ = serde_json::to_writer(&mut entry, body);
    let checksum = checksum(key, &entry[1 + CHECKSUM..]);
    entry[1..=CHECKSUM].copy_from_slice(&checksum);
    entry
}

fn unseal<T: for<'de> Deserialize<'de>>(key: Key, entry: &[u8]) -> Result<T, Unreadable> {
    let (version, rest) = entry.split_first().ok_or(Unreadable::Damaged)?;
    if *version != VERSION {
        return Err(Unreadable::OtherVersion);
    }
    let (written, body) = rest.split_first_chunk::<CHECKSUM>().ok_or(Unreadable::Damaged)?;
    if *written != checksum(key, body) {
        return Err(Unreadable::Damaged);
    }
    serde_json::from_slice(body).map_err(|_| Unreadable::Damaged)
}

fn checksum(key: Key, body: &[u8]) -> [u8; CHECKSUM] {
    let digest = Sha256::new().chain_update(key.as_bytes()).chain_update(body).finalize();
    digest.first_chunk().copied().unwrap_or_default()
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    /// A decision on every claim.
    v: Vec<Entry>,
    /// The model as the backend reported it.
    m: Option<String>,
    /// Windows.
    w: usize,
    /// Warnings.
    x: Vec<Note>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CutBody {
    /// The claims.
    c: Vec<String>,
    /// Warnings.
    x: Vec<Note>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// Attributed?
    a: bool,
    /// The verdict that counts, then those that say the same.
    g: Vec<Ground>,
    /// Votes that agree, of how many.
    n: (u8, u8),
}

/// A reason, and quotes with the context that each is said to stand in.
#[derive(Serialize, Deserialize)]
struct Ground(String, Vec<(Option<usize>, String)>);

impl Entry {
    fn of(decision: &Decision) -> Self {
        let Decision { verdict, further: _, agreement } = decision;
        let ground = |verdict: &Verdict| {
            let Verdict { attributed: _, reason, evidence } = verdict;
            let quote = |Citation { context, quote }: &Citation| (*context, quote.clone());
            Ground(reason.clone(), evidence.iter().map(quote).collect())
        };
        Self { a: verdict.attributed, g: decision.grounds().map(ground).collect(), n: agreement.counts() }
    }

    fn decision(self, contexts: usize) -> Result<Decision, Unreadable> {
        let Self { a: attributed, g, n: (agreeing, votes) } = self;
        let quotes_fit = |Ground(_, quotes): &Ground| {
            quotes.iter().all(|(context, _)| context.is_none_or(|context| context < contexts))
        };
        if agreeing > votes || votes == 0 || !g.iter().all(quotes_fit) {
            return Err(Unreadable::Unfitting);
        }
        let mut grounds = g.into_iter().map(|Ground(reason, quotes)| {
            let evidence = quotes.into_iter().map(|(context, quote)| Citation { context, quote }).collect();
            Verdict { attributed, reason, evidence }
        });
        Ok(Decision {
            verdict: grounds.next().ok_or(Unreadable::Unfitting)?,
            further: grounds.collect(),
            agreement: Agreement::of(agreeing, votes),
        })
    }
}

/// A warning that tells how the verdicts were had. Others are about the check that follows and are made anew by it.
#[derive(Serialize, Deserialize)]
enum Note {
    #[serde(rename = "reasoning")]
    AnswerInReasoning,
    #[serde(rename = "downgraded")]
    StructuredOutputDowngraded(String),
}

fn notes(warnings: &[Warning]) -> Vec<Note> {
    warnings.iter().filter_map(Note::of).collect()
}

fn warnings(notes: Vec<Note>) -> Vec<Warning> {
    notes.into_iter().map(Note::warning).collect()
}

impl Note {
    fn of(warning: &Warning) -> Option<Self> {
        match warning {
            Warning::AnswerInReasoning => Some(Self::AnswerInReasoning),
            Warning::StructuredOutputDowngraded { used } => Some(Self::StructuredOutputDowngraded(used.to_string())),
            Warning::EvidenceMissing { .. } | Warning::SingleClaim => None,
        }
    }

    fn warning(self) -> Warning {
        match self {
            Self::AnswerInReasoning => Warning::AnswerInReasoning,
            Self::StructuredOutputDowngraded(used) => Warning::StructuredOutputDowngraded { used: used.into() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(claims: &[&str]) -> Question {
        Question {
            user_input: "q".to_owned(),
            contexts: vec!["a".to_owned(), "b".to_owned()],
            claims: Units::new(claims.iter().map(|&claim| claim.to_owned()).collect()).unwrap(),
        }
    }

    const KEY: Key = Key([7; 32]);

    fn judgement() -> Judgement {
        let verdict = |attributed, reason: &str, context| Verdict {
            attributed,
            reason: reason.to_owned(),
            evidence: vec![Citation { context, quote: "東京 \u{0} \"".to_owned() }],
        };
        let mut ballot = Ballot::of(&question(&["one", "two"]));
        ballot.cast(1, verdict(false, "r", None));
        let further =
            vec![verdict(true, "", Some(0)), Verdict { attributed: true, reason: "x".to_owned(), evidence: vec![] }];
        ballot.cast(2, Decision { verdict: verdict(true, "s", Some(1)), further, agreement: Agreement::of(2, 3) });
        Judgement {
            verdicts: ballot.close().unwrap(),
            model_reported: Some("m-1".to_owned()),
            windows: 2,
            usage: Usage { judge_calls: 3, ..Usage::NOTHING },
            warnings: vec![
                Warning::AnswerInReasoning,
                Warning::StructuredOutputDowngraded { used: "prose".into() },
                Warning::SingleClaim,
            ],
        }
    }

    fn read(entry: &[u8]) -> Result<Judgement, Unreadable> {
        Judgement::read(KEY, &question(&["one", "two"]), entry)
    }

    #[test]
    fn a_judgement_comes_back_whole_and_for_nothing() {
        let written = judgement();
        let Judgement { verdicts, model_reported, windows, usage, warnings } = read(&written.write(KEY)).unwrap();
        assert_eq!((verdicts, model_reported, windows), (written.verdicts, written.model_reported, written.windows));
        assert_eq!((usage, warnings.as_slice()), (Usage::NOTHING, &written.warnings[..2]));
    }

    #[test]
    fn the_format_stays_what_it_is() {
        // A change here makes entries unreadable that users have paid for: make it only together with another VERSION.
        let entry = judgement().write(KEY);
        assert_eq!(entry[0], VERSION);
        insta::assert_snapshot!(std::str::from_utf8(&entry[1 + CHECKSUM..]).unwrap(), @r#"{"v":[{"a":false,"g":[["r",[[null,"東京 \u0000 \""]]]],"n":[1,1]},{"a":true,"g":[["s",[[1,"東京 \u0000 \""]]],["",[[0,"東京 \u0000 \""]]],["x",[]]],"n":[2,3]}],"m":"m-1","w":2,"x":["reasoning",{"downgraded":"prose"}]}"#);
    }

    #[test]
    fn what_is_damaged_or_does_not_fit_is_told_from_what_is_of_another_version() {
        let entry = judgement().write(KEY);
        for at in 0..entry.len() {
            let mut flipped = entry.clone();
            flipped[at] ^= 4;
            let fault = if at == 0 { Unreadable::OtherVersion } else { Unreadable::Damaged };
            assert_eq!(read(&flipped).err(), Some(fault), "at {at}");
            assert_eq!(read(&entry[..at]).err(), Some(Unreadable::Damaged), "cut at {at}");
        }
        let mut longer = entry.clone();
        longer.push(b' ');
        assert_eq!(read(&longer).err(), Some(Unreadable::Damaged));
        assert_eq!(Judgement::read(Key([8; 32]), &question(&["one", "two"]), &entry).err(), Some(Unreadable::Damaged));
        for claims in [&["one"][..], &["one", "two", "three"]] {
            assert_eq!(Judgement::read(KEY, &question(claims), &entry).err(), Some(Unreadable::Unfitting));
        }
        let fewer = Question { contexts: vec!["a".to_owned()], ..question(&["one", "two"]) };
        assert_eq!(Judgement::read(KEY, &fewer, &entry).err(), Some(Unreadable::Unfitting));
        for body in [
            r#"{"v":[{"a":true,"g":[],"n":[1,1]},{"a":true,"g":[["",[]]],"n":[1,1]}],"m":null,"w":1,"x":[]}"#,
            r#"{"v":[{"a":true,"g":[["",[]]],"n":[2,1]},{"a":true,"g":[["",[]]],"n":[1,1]}],"m":null,"w":1,"x":[]}"#,
            r#"{"v":[{"a":true,"g":[["",[]]],"n":[0,0]},{"a":true,"g":[["",[]]],"n":[1,1]}],"m":null,"w":1,"x":[]}"#,
            r#"{"v":[{"a":true,"g":[["",[]]],"n":[1,1]},{"a":true,"g":[["",[]]],"n":[1,1]}],"m":null,"w":0,"x":[]}"#,
        ] {
            let body: serde_json::Value = serde_json::from_str(body).unwrap();
            assert_eq!(read(&seal(KEY, &body)).err(), Some(Unreadable::Unfitting), "{body}");
        }
        assert_eq!(read(&seal(KEY, &serde_json::json!({ "v": [] }))).err(), Some(Unreadable::Damaged));
    }

    #[test]
    fn a_cut_comes_back_and_never_with_fewer_claims_than_sentences() {
        let of = |texts: &[&str]| Units::new(texts.iter().map(|&text| text.to_owned()).collect()).unwrap();
        let cut = Cut { claims: of(&["a", "b"]), usage: Usage { judge_calls: 1, ..Usage::NOTHING }, warnings: vec![] };
        let entry = cut.write(KEY);
        let read = Cut::read(KEY, &of(&["a and b"]), &entry).unwrap();
        assert_eq!((read.claims, read.usage), (cut.claims, Usage::NOTHING));
        assert_eq!(Cut::read(KEY, &of(&["a", "b", "c"]), &entry).err(), Some(Unreadable::Unfitting));
        assert_eq!(super::Judgement::read(KEY, &question(&["one", "two"]), &entry).err(), Some(Unreadable::Damaged));
    }
}
