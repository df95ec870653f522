//! Which judge is meant by `--judge`, and what the environment says of its backend.
//!
//! Only the variables of the judge in force are read and checked: a key for another one lies about in many shells.

use super::Reader;
use crate::providers::SetupError;
use crate::providers::anthropic::{self, AnthropicConfig};
use crate::providers::azure::{self, AzureConfig};
use crate::providers::gemini::{self, GeminiConfig};
use crate::providers::ollama::{self, OllamaConfig};
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
    /// A deployment on Azure.
    Azure(AzureConfig),
    /// A model in Ollama.
    Ollama(OllamaConfig),
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
            Self::Azure(_) => true,
            Self::Ollama(ollama) => ollama.api_key.is_some(),
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
    Azure(String),
    Ollama(String),
}

/// What `--judge` may be, in words.
pub(super) const EXPECTED: &str = "embedded, or openai, azure, anthropic, gemini or ollama with /MODEL";

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
            "azure" => Some(Self::Azure(model)),
            "ollama" => Some(Self::Ollama(model)),
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
            // The stand-in decides nothing: what is missing stops the start.
            Self::Azure(deployment) => azure(deployment, reader).map_or(JudgeSetting::Embedded, JudgeSetting::Azure),
            Self::Ollama(model) => JudgeSetting::Ollama(ollama(model, reader)),
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

fn azure(deployment: String, reader: &mut Reader<'_>) -> Option<AzureConfig> {
    const ENDPOINT: &str = "AZURE_OPENAI_ENDPOINT";
    let why = "needed for a judge on Azure: the resource's address, such as https://NAME.openai.azure.com";
    let endpoint = reader.needed(ENDPOINT, why);
    if let Some(endpoint) = &endpoint {
        reader.check(ENDPOINT, azure::check_endpoint(endpoint, &deployment));
    }
    let why = "needed for a judge on Azure: one of the resource's keys";
    let api_key = reader.needed_secret("AZURE_OPENAI_API_KEY", why);
    let api_version = reader.variable("OPENAI_API_VERSION").map(str::to_owned);
    Some(AzureConfig { endpoint: endpoint?, api_key: api_key?, deployment, api_version })
}

fn ollama(model: String, reader: &mut Reader<'_>) -> OllamaConfig {
    let host = reader.variable("OLLAMA_HOST").unwrap_or(ollama::DEFAULT_HOST).to_owned();
    reader.check("OLLAMA_HOST", ollama::check_host(&host));
    let api_key = if ollama::needs_key(&host) {
        reader.needed_secret("OLLAMA_API_KEY", "needed for a judge at ollama.com")
    } else {
        reader.secret("OLLAMA_API_KEY")
    };
    OllamaConfig { host, api_key, model, window: None }
}
