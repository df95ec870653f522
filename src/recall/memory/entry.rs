//! What an entry looks like: a version, a checksum, and JSON that names every part in a letter or two.
//!
//! The checksum covers the key too, so that an entry under a wrong key is as unreadable as one whose bits have flipped.
//! The format is spelt out in types of its own: the domain may change without changing what was written, and a change of
//! what is written cannot happen unseen.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::Key;
use crate::recall::judge::{Agreement, Ballot, Citation, Decision, Judgement, Question, Usage, Verdict, Warning};

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

/// Writes a judgement down, without what it cost.
#[must_use]
pub fn write(key: Key, judgement: &Judgement) -> Vec<u8> {
    let Judgement { verdicts, model_reported, windows, usage: _, warnings } = judgement;
    let body = Body {
        v: verdicts.iter().map(Entry::of).collect(),
        m: model_reported.clone(),
        w: *windows,
        x: warnings.iter().filter_map(Note::of).collect(),
    };
    seal(key, &body)
}

/// Reads a judgement on `question`, which costs nothing.
///
/// # Errors
///
/// [`Unreadable`] for whatever is not exactly one decision on every claim.
pub fn read(key: Key, question: &Question, entry: &[u8]) -> Result<Judgement, Unreadable> {
    let body: Body = unseal(key, entry)?;
    let mut ballot = Ballot::of(question);
    if body.v.len() != question.claims.len().get() {
        return Err(Unreadable::Unfitting);
    }
    for (number, entry) in (1..).zip(body.v) {
        ballot.cast(number, entry.decision(question.contexts.len())?);
    }
    Ok(Judgement {
        verdicts: ballot.close().map_err(|_| Unreadable::Unfitting)?,
        model_reported: body.m,
        windows: body.w,
        usage: Usage::NOTHING,
        warnings: body.x.into_iter().map(Note::warning).collect(),
    })
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
        Self {
            a: verdict.attributed,
            g: decision.grounds().map(ground).collect(),
            n: (agreement.agreeing(), agreement.votes()),
        }
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
