//! Which of our request's fields a backend takes, learnt from its refusals.
//!
//! Lists of model names lag behind the models, so nothing is known beforehand: the request starts in the form that most
//! servers of a vendor's make take, and each refusal that names a field moves that field one step on. Every field only
//! ever moves on, so learning ends, and what two concurrent calls learnt can be put together.

use super::said::Said;
use super::window::numbers;

/// What a vendor calls the fields that may be refused, and in which order its spellings are tried. After the last one a
/// field is left out.
#[derive(Debug)]
pub(super) struct Vocabulary {
    /// The ways to ask for the answer's shape, from strict to not at all; the last is [`Shape::Plain`].
    pub(super) shapes: &'static [Shape],
    /// Words, in lower case, by which a refusal speaks of the shape.
    pub(super) shape_words: &'static [&'static str],
    /// The names of the output limit.
    pub(super) limits: &'static [&'static str],
    /// Is a request without an output limit refused? Then its last name is kept.
    pub(super) needs_limit: bool,
    /// The names of the seed.
    pub(super) seeds: &'static [&'static str],
    /// The names of the temperature.
    pub(super) temperatures: &'static [&'static str],
    /// Fields of the vendor's own that help where they are taken.
    pub(super) extras: &'static [&'static str],
}

/// What is known of a backend's taste: how far each field has moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Dialect {
    shape: usize,
    limit: usize,
    /// The largest output limit that the backend takes, where it told.
    ceiling: Option<u32>,
    seed: usize,
    temperature: usize,
    /// One bit for each extra that is left out.
    dropped: u8,
}

/// The form that one request takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Form {
    pub(super) shape: Shape,
    limit: Option<(&'static str, u32)>,
    seed: Option<&'static str>,
    temperature: Option<&'static str>,
    dropped: u8,
    extras: &'static [&'static str],
}

/// How the answer's shape is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// By a strict JSON schema.
    Schema,
    /// By a JSON schema in words that older models know.
    OldSchema,
    /// By a tool that must be called.
    Tool,
    /// As any JSON object.
    Object,
    /// In the prompt alone.
    Plain,
}

impl Shape {
    /// What the answer's shape came down to, in words; `None` when a schema holds it.
    pub(super) fn downgraded(self) -> Option<&'static str> {
        match self {
            Self::Schema | Self::OldSchema => None,
            Self::Tool => Some("a forced tool call"),
            Self::Object => Some("any JSON object"),
            Self::Plain => Some("the prompt alone"),
        }
    }
}

impl Form {
    /// The output limit that is sent.
    pub(super) fn limit(&self) -> Option<u32> {
        self.limit.map(|(_, tokens)| tokens)
    }

    /// The output limit, if it goes by this name.
    pub(super) fn limit_as(&self, name: &str) -> Option<u32> {
        self.limit.filter(|(used, _)| *used == name).map(|(_, tokens)| tokens)
    }

    /// The seed, if it goes by this name.
    pub(super) fn seed_as(&self, name: &str, seed: i64) -> Option<i64> {
        (self.seed == Some(name)).then_some(seed)
    }

    /// The temperature, if it is sent.
    pub(super) fn temperature(&self, temperature: f32) -> Option<f32> {
        self.temperature.map(|_| temperature)
    }

    /// Is this field of the vendor's own sent?
    pub(super) fn has(&self, extra: &str) -> bool {
        self.extras.iter().zip(0..).any(|(name, bit)| *name == extra && self.dropped & (1 << bit) == 0)
    }
}

/// A smaller "largest limit" is a number of something else.
const LEAST_CEILING: u32 = 256;

impl Dialect {
    /// The form of a request that wants an output limit of `wanted` tokens.
    pub(super) fn form(self, vocabulary: &Vocabulary, wanted: u32) -> Form {
        let Vocabulary { shapes, shape_words: _, limits, needs_limit, seeds, temperatures, extras } = vocabulary;
        let tokens = self.ceiling.map_or(wanted, |ceiling| ceiling.min(wanted));
        let kept = limits.last().filter(|_| *needs_limit);
        Form {
            shape: shapes.get(self.shape).copied().unwrap_or(Shape::Plain),
            limit: limits.get(self.limit).or(kept).map(|name| (*name, tokens)),
            seed: seeds.get(self.seed).copied(),
            temperature: temperatures.get(self.temperature).copied(),
            dropped: self.dropped,
            extras,
        }
    }

    /// The next form to try after a refusal of `form`, which this one led to, when the refusal is about a field.
    pub(super) fn after(self, vocabulary: &Vocabulary, said: &Said, form: &Form) -> Option<Self> {
        let culprit_is_known = !said.param.is_empty();
        if form.shape != Shape::Plain && names_shape(vocabulary, said) {
            return Some(self.with_looser_shape(vocabulary, said));
        }
        if let Some((name, sent)) = form.limit
            && said.names(name)
        {
            if let Some(ceiling) = told_ceiling(said, sent) {
                let ceiling = Some(ceiling);
                return Some(Self { ceiling, ..self });
            }
            let next = self.limit + 1;
            if next < vocabulary.limits.len() || !vocabulary.needs_limit {
                let limit = next;
                return Some(Self { limit, ..self });
            }
        }
        if form.temperature.is_some_and(|name| said.names(name)) {
            let temperature = self.temperature + 1;
            return Some(Self { temperature, ..self });
        }
        // A later spelling is refused by the first one's name too.
        if form.seed.is_some() && vocabulary.seeds[..=self.seed].iter().any(|name| said.names(name)) {
            let seed = self.seed + 1;
            return Some(Self { seed, ..self });
        }
        for (extra, bit) in vocabulary.extras.iter().zip(0..) {
            if form.has(extra) && said.speaks_of(extra) {
                let dropped = self.dropped | (1 << bit);
                return Some(Self { dropped, ..self });
            }
        }
        // A server that fails at our schema speaks of schemas, grammars or its parser, and names no field.
        let vague = ["schema", "grammar", "parser"];
        let about_schema = vague.iter().any(|word| said.has(word));
        (form.shape != Shape::Plain && about_schema && !culprit_is_known)
            .then(|| self.with_looser_shape(vocabulary, said))
    }

    /// What this one and another have learnt.
    pub(super) fn merged(self, other: Self) -> Self {
        Self {
            shape: self.shape.max(other.shape),
            limit: self.limit.max(other.limit),
            ceiling: match (self.ceiling, other.ceiling) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            },
            seed: self.seed.max(other.seed),
            temperature: self.temperature.max(other.temperature),
            dropped: self.dropped | other.dropped,
        }
    }

    fn with_looser_shape(self, vocabulary: &Vocabulary, said: &Said) -> Self {
        // LM Studio takes a schema or text, and says so.
        let no_object = said.has("json_schema") && said.has("text") && !said.has("json_object");
        let mut shape = self.shape + 1;
        if no_object && vocabulary.shapes.get(shape) == Some(&Shape::Object) {
            shape += 1;
        }
        Self { shape, ..self }
    }
}

fn names_shape(vocabulary: &Vocabulary, said: &Said) -> bool {
    vocabulary.shape_words.iter().any(|word| said.param.to_ascii_lowercase().starts_with(word) || said.has(word))
}

/// The largest limit that the backend takes, when its refusal is about the value and not about the field.
fn told_ceiling(said: &Said, sent: u32) -> Option<u32> {
    const ABOUT_THE_VALUE: [&str; 8] =
        ["too large", "too high", "at most", "less than or equal", "valid range", "maximum", "exceeds", " > "];
    // Google names a bound that is itself refused: "the supported range is from 1 (inclusive) to 8193 (exclusive)".
    if let Some((range, _)) = said.text.split_once(" (exclusive)") {
        let largest = numbers(range).last()?.checked_sub(1)?;
        return (LEAST_CEILING..sent).contains(&largest).then_some(largest);
    }
    if said.has("unsupported") || !ABOUT_THE_VALUE.iter().any(|phrase| said.has(phrase)) {
        return None;
    }
    numbers(&said.text).filter(|number| (LEAST_CEILING..sent).contains(number)).max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::backend::Wire;
    use crate::providers::openai::ChatCompletions;

    /// As the many servers that speak OpenAI's format take it, and two fields of a vendor's own.
    const WORDS: Vocabulary = Vocabulary { extras: &["think", "keep_alive"], ..<ChatCompletions as Wire>::VOCABULARY };

    fn said(message: &str) -> Said {
        Said::of(&serde_json::json!({"error": {"message": message}}).to_string())
    }

    fn after(from: Dialect, message: &str, sent: u32) -> Option<Dialect> {
        from.after(&WORDS, &said(message), &from.form(&WORDS, sent))
    }

    #[test]
    fn each_refusal_moves_one_field_one_step() {
        let fresh = Dialect::default();
        let object = Dialect { shape: 1, ..fresh };
        let plain = Dialect { shape: 2, ..fresh };
        let renamed = Dialect { limit: 1, ..fresh };
        let unlimited = Dialect { limit: 2, ..fresh };
        let random = Dialect { seed: 1, ..fresh };
        let seedless = Dialect { seed: 2, ..fresh };
        let cool = Dialect { temperature: 1, ..fresh };
        let thoughtless = Dialect { dropped: 1, ..fresh };
        for (from, message, to) in [
            (fresh, "'response_format' of type 'json_schema' is not supported with this model", Some(object)),
            (object, "This model does not support response format `json_object`: response_format", Some(plain)),
            (plain, "response_format is not supported", None),
            (fresh, "response_format.type: only json_schema or text allowed", Some(plain)),
            (object, "'response_format.type' must be 'json_schema' or 'text'", Some(plain)),
            (fresh, "JSON schema error at #: unrecognized type nosuch", Some(object)),
            (fresh, "Failed to parse grammar", Some(object)),
            (plain, "Failed to parse grammar", None),
            (fresh, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", Some(renamed)),
            (renamed, "body.max_completion_tokens: Extra inputs are not permitted", Some(unlimited)),
            (unlimited, "max_tokens and max_completion_tokens", None),
            (fresh, "max_completion_tokens", None),
            (fresh, "'temperature' does not support 0 with this model. Only the default (1)", Some(cool)),
            (cool, "temperature", None),
            (fresh, "body.seed: Extra inputs are not permitted", Some(random)),
            (random, "body.random_seed: Extra inputs are not permitted", Some(seedless)),
            (random, "body.seed: Extra inputs are not permitted", Some(seedless)),
            (seedless, "seed", None),
            (fresh, "\"m\" does not support thinking", Some(thoughtless)),
            (fresh, "unknown field think", Some(thoughtless)),
            (thoughtless, "\"m\" does not support thinking", None),
            (fresh, "the messages are proceeded with seeds", None),
            (fresh, "", None),
        ] {
            assert_eq!(after(from, message, 800), to, "{message}");
        }
    }

    #[test]
    fn a_limit_that_must_be_sent_is_kept() {
        let strict = Vocabulary { limits: &["max_tokens"], needs_limit: true, ..WORDS };
        let fresh = Dialect::default();
        let form = fresh.form(&strict, 800);
        assert_eq!(fresh.after(&strict, &said("max_tokens: Field required"), &form), None);
        assert_eq!(form.limit_as("max_tokens"), Some(800));
        assert!(form.has("think") && !form.has("thin"));
    }

    #[test]
    fn a_limit_that_is_too_large_is_lowered_not_renamed() {
        for (message, ceiling) in [
            (
                "max_tokens is too large: 32000. This model supports at most 16384 completion tokens, whereas you provided 32000.",
                16384,
            ),
            ("`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens`", 8192),
            ("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", 8192),
            ("max_tokens: 32000 > 4,096, which is the maximum", 4096),
            (
                "max_tokens has a value of 32000 but the supported range is from 1 (inclusive) to 8193 (exclusive).",
                8192,
            ),
        ] {
            let next = after(Dialect::default(), message, 32000).unwrap();
            assert_eq!((next.ceiling, next.limit), (Some(ceiling), 0), "{message}");
            assert_eq!(next.form(&WORDS, 32000).limit(), Some(ceiling));
            assert_eq!(next.form(&WORDS, 100).limit(), Some(100));
        }
        let bound = "max_tokens has a value of 8193 but the supported range is from 1 (inclusive) to 8193 (exclusive).";
        assert_eq!(after(Dialect::default(), bound, 8193).unwrap().ceiling, Some(8192));
    }

    #[test]
    fn what_two_calls_learnt_is_kept_and_never_unlearnt() {
        let a = Dialect { shape: 2, ceiling: Some(9), dropped: 1, ..Dialect::default() };
        let b = Dialect { limit: 1, ceiling: Some(7), temperature: 1, dropped: 2, ..Dialect::default() };
        let both = Dialect { shape: 2, limit: 1, ceiling: Some(7), seed: 0, temperature: 1, dropped: 3 };
        assert_eq!(a.merged(b), both);
        assert_eq!(b.merged(a), both);
        assert_eq!(both.merged(Dialect::default()), both);
    }
}
