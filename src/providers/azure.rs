//! Azure OpenAI: OpenAI's format under addresses and with a header of its own.
//!
//! There are two forms of address. The dated one names the deployment in its path and a version of the API in its
//! query; the newer one, below `/openai/v1`, takes the deployment as the model and needs no version.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName};

use super::backend::{Access, Backend};
use super::base_url::BaseUrl;
use super::openai::ChatCompletions;
use super::secret::Secret;
use super::transport::CallPolicy;
use super::{ChatModel, SetupError};

/// Where and how a deployment on Azure is asked.
#[derive(Debug, Clone)]
pub struct AzureConfig {
    /// The resource, such as `https://NAME.openai.azure.com`: with or without a slash at the end, `/openai`, `/openai/v1`,
    /// a gateway's prefix, or the whole address of a call.
    pub endpoint: String,
    /// Sent as `api-key`.
    pub api_key: Secret,
    /// The deployment's name.
    pub deployment: String,
    /// The version of the API, such as `2024-10-21`; without it the one in `endpoint` counts. A date leads to the dated
    /// form of address, none or a word such as `preview` to the newer one.
    pub api_version: Option<String>,
}

impl AzureConfig {
    /// Prepares the backend; sends nothing.
    ///
    /// # Errors
    ///
    /// [`SetupError`] when the endpoint is no address for HTTP or names another deployment, when the key cannot stand in
    /// a header, or when no HTTP client can be built.
    pub fn connect(self, calls: CallPolicy) -> Result<Arc<dyn ChatModel>, SetupError> {
        Ok(Arc::new(self.backend(calls)?))
    }

    fn backend(self, calls: CallPolicy) -> Result<Backend<ChatCompletions>, SetupError> {
        let Self { endpoint, api_key, deployment, api_version } = self;
        let Addresses { base, completions, listing, is_dated } = Addresses::of(&endpoint, &deployment, api_version)?;
        let mut headers = HeaderMap::new();
        headers.insert(HeaderName::from_static("api-key"), api_key.header("")?);
        if let Some(basic) = base.basic {
            headers.insert(AUTHORIZATION, basic);
        }
        let mut secrets = base.secrets;
        secrets.push(api_key);
        let wire = ChatCompletions {
            provider: "azure",
            model: (!is_dated).then(|| deployment.clone()),
            listing,
            // It names the models of the region, not the deployments: it proves the key alone.
            lists_it: false,
        };
        Backend::new(wire, Access { endpoint: completions, headers, secrets, model: deployment, calls })
    }
}

/// Says whether an endpoint can be used for a deployment, before anything is built with it.
///
/// # Errors
///
/// [`SetupError::BaseUrl`] in words that do not quote it: it may hold a password.
pub fn check_endpoint(endpoint: &str, deployment: &str) -> Result<(), SetupError> {
    Addresses::of(endpoint, deployment, None).map(drop)
}

#[derive(Debug)]
struct Addresses {
    base: BaseUrl,
    completions: Url,
    listing: Url,
    is_dated: bool,
}

impl Addresses {
    fn of(endpoint: &str, deployment: &str, version: Option<String>) -> Result<Self, SetupError> {
        let base = BaseUrl::parse(endpoint, "https://NAME.openai.azure.com")?;
        let pasted = base.with_path(|_| ());
        if let Some(other) = deployment_in(&pasted).filter(|other| *other != deployment) {
            let fault = format!("names the deployment `{other}`, but the judge is azure/{deployment}");
            return Err(SetupError::BaseUrl(fault));
        }
        let version = version.or_else(|| version_in(&pasted));
        let is_dated = version.as_ref().is_some_and(|version| version.starts_with(|c: char| c.is_ascii_digit()));
        let address = |api: &[&'static str], tail: &[&'static str]| {
            let mut url = base.with_path(|steps| {
                steps.truncate(resource_steps(steps));
                steps.push("openai");
                steps.extend(api);
                if api == DATED_API {
                    steps.push(deployment);
                }
                steps.extend(tail);
            });
            set_version(&mut url, version.as_deref());
            url
        };
        let completions = address(if is_dated { DATED_API } else { NEWER_API }, &["chat", "completions"]);
        let listing = address(if is_dated { &[] } else { NEWER_API }, &["models"]);
        Ok(Self { base, completions, listing, is_dated })
    }
}

const DATED_API: &[&str] = &["deployments"];
const NEWER_API: &[&str] = &["v1"];

const VERSION: &str = "api-version";

/// How many steps of a pasted path belong to the resource or to a gateway in front of it.
fn resource_steps(steps: &[&str]) -> usize {
    let is_api = |at: usize| {
        let known = ["v1", "deployments", "models", "responses"];
        steps[at] == "openai" && steps.get(at + 1).is_none_or(|next| known.contains(next))
    };
    (0..steps.len()).rev().find(|&at| is_api(at)).unwrap_or(steps.len())
}

/// The deployment that a pasted address names.
fn deployment_in(url: &Url) -> Option<&str> {
    let (_, rest) = url.path().split_once("/openai/deployments/")?;
    rest.split('/').next().filter(|name| !name.is_empty())
}

fn version_in(url: &Url) -> Option<String> {
    let stated = url.query_pairs().find(|(name, _)| name == VERSION);
    stated.map(|(_, version)| version.into_owned()).filter(|version| !version.is_empty())
}

/// Puts the version into the query, in the place of one that was pasted, and keeps what else stands there.
fn set_version(url: &mut Url, version: Option<&str>) {
    let others: Vec<(String, String)> = url.query_pairs().filter(|(name, _)| name != VERSION).map(owned).collect();
    url.set_query(None);
    if !others.is_empty() || version.is_some() {
        let version = version.map(|version| (VERSION.to_owned(), version.to_owned()));
        url.query_pairs_mut().extend_pairs(others.into_iter().chain(version));
    }
}

fn owned((name, value): (std::borrow::Cow<'_, str>, std::borrow::Cow<'_, str>)) -> (String, String) {
    (name.into_owned(), value.into_owned())
}
