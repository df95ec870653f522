//! Which of our request's fields a backend takes, learnt from its refusals.
//!
//! Lists of model names lag behind the models, so nothing is known beforehand: the request starts in the form that most
//! servers take, and each refusal that names a field moves that field one step on. Every field only ever moves on, so
//! learning ends, and what two concurrent calls learnt can be put together.

use super::super::refusal::Said;
use super::super::window::numbers;

/// The form that a request takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in super::super) struct Dialect {
    pub(super) shape: Shape,
    pub(super) limit: LimitField,
    /// The largest output limit that the backend takes, where it told.
    pub(super) ceiling: Option<u32>,
    pub(super) seed: SeedField,
    pub(super) without_temperature: bool,
}

/// How the answer's shape is asked for, from strict to not at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) enum Shape {
    #[default]
    Schema,
    Object,
    Plain,
}

/// What the output limit is called. Only the newest models of OpenAI refuse the old name; some servers know no other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) enum LimitField {
    #[default]
    MaxTokens,
    MaxCompletionTokens,
    None,
}

/// What the seed is called; Mistral has a name of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) enum SeedField {
    #[default]
    Seed,
    RandomSeed,
    None,
}

/// A smaller "largest limit" is a number of something else.
const LEAST_CEILING: u32 = 256;

impl Dialect {
    /// The output limit that is sent when `wanted` is asked for.
    pub(super) fn output_limit(self, wanted: u32) -> Option<u32> {
        let limit = self.ceiling.map_or(wanted, |ceiling| ceiling.min(wanted));
        (self.limit != LimitField::None).then_some(limit)
    }

    /// The next form to try after a refusal of this one, when the refusal is about a field; `sent` is the output limit
    /// that was sent.
    pub(super) fn after(self, said: &Said, sent: Option<u32>) -> Option<Self> {
        let culprit_is_known = !said.param.is_empty();
        if self.shape != Shape::Plain && names_shape(said) {
            return Some(self.with_looser_shape(said));
        }
        if let (Some(field), Some(sent)) = (self.limit_field(), sent)
            && said.names(field)
        {
            if let Some(ceiling) = told_ceiling(said, sent) {
                let ceiling = Some(ceiling);
                return Some(Self { ceiling, ..self });
            }
            let limit = match self.limit {
                LimitField::MaxTokens => LimitField::MaxCompletionTokens,
                LimitField::MaxCompletionTokens | LimitField::None => LimitField::None,
            };
            return Some(Self { limit, ..self });
        }
        if !self.without_temperature && said.names("temperature") {
            let without_temperature = true;
            return Some(Self { without_temperature, ..self });
        }
        match self.seed {
            SeedField::Seed if said.names("seed") => {
                let seed = SeedField::RandomSeed;
                return Some(Self { seed, ..self });
            }
            SeedField::RandomSeed if said.names("random_seed") || said.names("seed") => {
                let seed = SeedField::None;
                return Some(Self { seed, ..self });
            }
            _ => {}
        }
        // A server that fails at our schema speaks of schemas, grammars or its parser, and names no field.
        let vague = ["schema", "grammar", "parser"];
        let about_schema = vague.iter().any(|word| said.has(word));
        (self.shape != Shape::Plain && about_schema && !culprit_is_known).then(|| self.with_looser_shape(said))
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
            without_temperature: self.without_temperature || other.without_temperature,
        }
    }

    /// What the answer's shape came down to, in words; `None` when it was asked for as wanted.
    pub(super) fn downgraded(self) -> Option<&'static str> {
        match self.shape {
            Shape::Schema => None,
            Shape::Object => Some("any JSON object (json_object)"),
            Shape::Plain => Some("no response_format"),
        }
    }

    fn limit_field(self) -> Option<&'static str> {
        match self.limit {
            LimitField::MaxTokens => Some("max_tokens"),
            LimitField::MaxCompletionTokens => Some("max_completion_tokens"),
            LimitField::None => None,
        }
    }

    fn with_looser_shape(self, said: &Said) -> Self {
        // LM Studio takes a schema or text, and says so.
        let no_object = said.has("json_schema") && said.has("text") && !said.has("json_object");
        let shape = match self.shape {
            Shape::Schema if !no_object => Shape::Object,
            _ => Shape::Plain,
        };
        Self { shape, ..self }
    }
}

fn names_shape(said: &Said) -> bool {
    said.param.starts_with("response_format")
        || ["response_format", "json_schema", "json_object", "structured output"].iter().any(|word| said.has(word))
}

/// The largest limit that the backend takes, when its refusal is about the value and not about the field.
fn told_ceiling(said: &Said, sent: u32) -> Option<u32> {
    const ABOUT_THE_VALUE: [&str; 8] =
        ["too large", "too high", "at most", "less than or equal", "valid range", "maximum", "exceeds", " > "];
    if said.has("unsupported") || !ABOUT_THE_VALUE.iter().any(|phrase| said.has(phrase)) {
        return None;
    }
    numbers(&said.text).filter(|number| (LEAST_CEILING..sent).contains(number)).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(message: &str) -> Said {
        Said::of(&serde_json::json!({"error": {"message": message}}).to_string())
    }

    #[test]
    fn each_refusal_moves_one_field_one_step() {
        let fresh = Dialect::default();
        let object = Dialect { shape: Shape::Object, ..fresh };
        let plain = Dialect { shape: Shape::Plain, ..fresh };
        let renamed = Dialect { limit: LimitField::MaxCompletionTokens, ..fresh };
        let unlimited = Dialect { limit: LimitField::None, ..fresh };
        let random = Dialect { seed: SeedField::RandomSeed, ..fresh };
        let seedless = Dialect { seed: SeedField::None, ..fresh };
        let cool = Dialect { without_temperature: true, ..fresh };
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
            (seedless, "seed", None),
            (fresh, "the messages are proceeded with seeds", None),
            (fresh, "", None),
        ] {
            assert_eq!(from.after(&said(message), Some(800)), to, "{message}");
        }
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
        ] {
            let next = Dialect::default().after(&said(message), Some(32000)).unwrap();
            assert_eq!(next.ceiling, Some(ceiling), "{message}");
            assert_eq!(next.limit, LimitField::MaxTokens);
            assert_eq!(next.output_limit(32000), Some(ceiling));
            assert_eq!(next.output_limit(100), Some(100));
        }
    }

    #[test]
    fn what_two_calls_learnt_is_kept_and_never_unlearnt() {
        let a = Dialect { shape: Shape::Plain, ceiling: Some(9), ..Dialect::default() };
        let b = Dialect {
            limit: LimitField::MaxCompletionTokens,
            ceiling: Some(7),
            without_temperature: true,
            ..Dialect::default()
        };
        let both = Dialect {
            shape: Shape::Plain,
            limit: LimitField::MaxCompletionTokens,
            ceiling: Some(7),
            without_temperature: true,
            ..Dialect::default()
        };
        assert_eq!(a.merged(b), both);
        assert_eq!(b.merged(a), both);
        assert_eq!(both.merged(Dialect::default()), both);
    }
}
