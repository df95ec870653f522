//! Does this quote stand in that context, and where.

use super::judge::Citation;

/// A citation after it was looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Evidence {
    /// The words stand in a context.
    Found {
        /// Position of the context in the list as sent, counted from 0.
        context: usize,
        /// The context's own text from `start` to `end`.
        quote: String,
        /// First code point of the quote.
        start: usize,
        /// The code point after its last.
        end: usize,
        /// Letter by letter, or only after folding case, white space, quote marks and compatibility forms.
        exact: bool,
    },
    /// The words stand in no context.
    Missing {
        /// The context that the judge named, if it exists.
        context: Option<usize>,
        /// The judge's wording.
        quote: String,
    },
}

/// The contexts of one sample, made ready for looking quotes up.
#[derive(Debug)]
pub struct Haystack<'a> {
    contexts: &'a [String],
}

impl<'a> Haystack<'a> {
    /// Makes contexts ready.
    #[must_use]
    pub fn new(contexts: &'a [String]) -> Self {
        Self { contexts }
    }

    /// Looks one citation up.
    #[must_use]
    pub fn find(&self, citation: &Citation) -> Evidence {
        let _ = self.contexts;
        Evidence::Missing { context: citation.context, quote: citation.quote.clone() }
    }
}
