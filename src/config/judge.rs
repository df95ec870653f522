//! Which judge is meant by `--judge`, and what the environment says of its backend.
//!
//! Only the variables of the judge in force are read and checked: a key for another one lies about in many shells.

use super::Reader;
use crate::providers::SetupError;
use crate::providers::anthropic::{self, AnthropicConfig};
use crate::providers::gemini::{self, GeminiConfig};
use crate::providers::openai::{self, OpenAiConfig};
use crate::providers::secret::Secret;

/// Who decides on claims.
#[derive(Debug, Clone)]
pub enum JudgeSetting {
    /// The embedded judge.
    Embedded,
    /// A model behind a server that speaks the `OpenAI` format.
    OpenAi(OpenAiConfig),
    /// A model behind Anthropic, or a server that speaks its format.
    Anthropic(AnthropicConfig),
    /// A model behind Google's Gemini.
    Gemini(GeminiConfig),
}

impl JudgeSetting {
    /// Is there a key that a judgement spends on?
    #[must_use]
    pub fn has_key(&self) -> bool {
        match self {
            Self::Embedded => false,
            Self::OpenAi(openai) => openai.api_key.is_some(),
            Self::Anthropic(anthropic) => anthropic.api_key.is_some(),
            Self::Gemini(gemini) => gemini.api_key.is_some(),
        }
    }
}

/// What `--judge` names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum JudgeName {
    Embedded,
    OpenAi(String),
    Anthropic(String),
    Gemini(String),
}

/// What `--judge` may be, in words.
pub(super) const EXPECTED: &str = "embedded, openai/MODEL, anthropic/MODEL or gemini/MODEL";

impl JudgeName {
    pub(super) fn read(text: &str) -> Option<Self> {
        let Some((provider, model)) = text.split_once('/') else {
            return (text == "embedded").then_some(Self::Embedded);
        };
        let model = Some(model.trim()).filter(|model| !model.is_empty())?.to_owned();
        match provider {
            "openai" => Some(Self::OpenAi(model)),
            "anthropic" => Some(Self::Anthropic(model)),
            "gemini" => Some(Self::Gemini(model)),
            _ => None,
        }
    }

    /// The judge with all that its variables say. Faults go to the reader.
    pub(super) fn setting(self, reader: &mut Reader<'_>) -> JudgeSetting {
        match self {
            Self::Embedded => JudgeSetting::Embedded,
            Self::OpenAi(model) => {
                let (base_url, api_key) = OPENAI.place(reader);
                JudgeSetting::OpenAi(OpenAiConfig { base_url, api_key, model })
            }
            Self::Anthropic(model) => {
                let (base_url, api_key) = ANTHROPIC.place(reader);
                JudgeSetting::Anthropic(AnthropicConfig { base_url, api_key, model })
            }
            Self::Gemini(model) => {
                let (base_url, api_key) = GEMINI.place(reader);
                JudgeSetting::Gemini(GeminiConfig { base_url, api_key, model })
            }
        }
    }
}

/// A vendor with one public address, and the variables that say where to ask instead and with which key.
struct Vendor {
    base_url: &'static str,
    api_key: &'static str,
    public_url: &'static str,
    check: fn(&str) -> Result<(), SetupError>,
}

const OPENAI: Vendor = Vendor {
    base_url: "OPENAI_BASE_URL",
    api_key: "OPENAI_API_KEY",
    public_url: openai::PUBLIC_URL,
    check: openai::check_base_url,
};

const ANTHROPIC: Vendor = Vendor {
    base_url: "ANTHROPIC_BASE_URL",
    api_key: "ANTHROPIC_API_KEY",
    public_url: anthropic::PUBLIC_URL,
    check: anthropic::check_base_url,
};

const GEMINI: Vendor = Vendor {
    base_url: "GEMINI_BASE_URL",
    api_key: "GEMINI_API_KEY",
    public_url: gemini::PUBLIC_URL,
    check: gemini::check_base_url,
};

impl Vendor {
    /// Base URL and key. Only at the vendor's own host one is needed.
    fn place(&self, reader: &mut Reader<'_>) -> (String, Option<Secret>) {
        let Self { base_url: variable, api_key, public_url, check } = self;
        let base_url = reader.variable(variable).unwrap_or(public_url).to_owned();
        reader.check(variable, check(&base_url));
        let host = |url: &str| url.split('/').nth(2).unwrap_or_default().to_owned();
        let key = if host(&base_url) == host(public_url) {
            let host = host(public_url);
            let why = format!("needed for a judge at {host}; set it, or {variable} to a server of your own");
            reader.needed_secret(api_key, &why)
        } else {
            reader.secret(api_key)
        };
        (base_url, key)
    }
}
