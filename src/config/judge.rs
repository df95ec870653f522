//! Which judge is meant by `--judge`, and what the environment says of its backend.
//!
//! Only the variables of the judge in force are read and checked: a key for another one lies about in many shells.

use super::Reader;
use crate::providers::azure::{self, AzureConfig};
use crate::providers::ollama::{self, OllamaConfig};
use crate::providers::openai::{self, OpenAiConfig};

/// Who decides on claims.
#[derive(Debug, Clone)]
pub enum JudgeSetting {
    /// The embedded judge.
    Embedded,
    /// A model behind a server that speaks the `OpenAI` format.
    OpenAi(OpenAiConfig),
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
    Azure(String),
    Ollama(String),
}

/// What `--judge` may be, in words.
pub(super) const EXPECTED: &str = "embedded, openai/MODEL, azure/DEPLOYMENT or ollama/MODEL";

impl JudgeName {
    pub(super) fn read(text: &str) -> Option<Self> {
        let Some((provider, model)) = text.split_once('/') else {
            return (text == "embedded").then_some(Self::Embedded);
        };
        let model = Some(model.trim()).filter(|model| !model.is_empty())?.to_owned();
        match provider {
            "openai" => Some(Self::OpenAi(model)),
            "azure" => Some(Self::Azure(model)),
            "ollama" => Some(Self::Ollama(model)),
            _ => None,
        }
    }

    /// The judge with all that its variables say. Faults go to the reader.
    pub(super) fn setting(self, reader: &mut Reader<'_>) -> JudgeSetting {
        match self {
            Self::Embedded => JudgeSetting::Embedded,
            Self::OpenAi(model) => JudgeSetting::OpenAi(openai(model, reader)),
            // The stand-in decides nothing: what is missing stops the start.
            Self::Azure(deployment) => azure(deployment, reader).map_or(JudgeSetting::Embedded, JudgeSetting::Azure),
            Self::Ollama(model) => JudgeSetting::Ollama(ollama(model, reader)),
        }
    }
}

fn openai(model: String, reader: &mut Reader<'_>) -> OpenAiConfig {
    let base_url = reader.variable("OPENAI_BASE_URL").unwrap_or(openai::PUBLIC_URL).to_owned();
    reader.check("OPENAI_BASE_URL", openai::check_base_url(&base_url));
    let api_key = if base_url == openai::PUBLIC_URL {
        let why = "needed for a judge at api.openai.com; set it, or OPENAI_BASE_URL to a server of your own";
        reader.needed_secret("OPENAI_API_KEY", why)
    } else {
        reader.secret("OPENAI_API_KEY")
    };
    OpenAiConfig { base_url, api_key, model }
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
