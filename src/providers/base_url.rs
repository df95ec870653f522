//! A backend's base URL, in all the spellings that people paste.

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::{Client, Url};

use super::SetupError;
use super::secret::Secret;

/// A base URL, read, with user name and password taken out of it.
#[derive(Debug, Clone)]
pub(super) struct BaseUrl {
    url: Url,
    /// The `Authorization` header that stands for `user:password@`.
    pub(super) basic: Option<HeaderValue>,
    /// What must never be printed of it.
    pub(super) secrets: Vec<Secret>,
}

impl BaseUrl {
    /// Reads a base URL that looks like `example`.
    ///
    /// # Errors
    ///
    /// [`SetupError::BaseUrl`] in words that do not quote it: it may hold a password.
    pub(super) fn parse(text: &str, example: &str) -> Result<Self, SetupError> {
        let fault = |what: &str| SetupError::BaseUrl(format!("{what}; it looks like {example}"));
        let url = Url::parse(text.trim()).map_err(|error| fault(&format!("is no URL ({error})")))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(fault("begins neither with http:// nor with https://"));
        }
        let password = url.password().map(Secret::new).transpose();
        let (url, basic) = without_credentials(url)?;
        let token = basic.as_ref().and_then(|basic| basic.to_str().ok()?.split(' ').nth(1));
        let token = token.and_then(|token| Secret::new(token).ok());
        let secrets = password.ok().flatten().into_iter().chain(token).collect();
        Ok(Self { url, basic, secrets })
    }

    /// Is there a `name=…` in its query?
    pub(super) fn has_in_query(&self, name: &str) -> bool {
        self.url.query_pairs().any(|(known, _)| known == name)
    }

    /// The header that lets us in, the key or what stands before the `@`, and all that must never be printed.
    ///
    /// # Errors
    ///
    /// [`SetupError::BaseUrl`] when there are both, since they travel in the same header.
    pub(super) fn authorize(self, key: Option<Secret>) -> Result<(HeaderMap, Vec<Secret>), SetupError> {
        let Self { url: _, basic, mut secrets } = self;
        let mut headers = HeaderMap::new();
        match (basic, key) {
            (Some(_), Some(_)) => {
                return Err(SetupError::BaseUrl(
                    "holds a user name or password although there is an API key; only one of them can be sent"
                        .to_owned(),
                ));
            }
            (Some(basic), None) => {
                headers.insert(AUTHORIZATION, basic);
            }
            (None, Some(key)) => {
                headers.insert(AUTHORIZATION, key.header("Bearer ")?);
                secrets.push(key);
            }
            (None, None) => {}
        }
        Ok((headers, secrets))
    }

    /// The same base with the steps of its path changed; its query stays, its fragment goes.
    pub(super) fn with_path<'a>(&'a self, change: impl FnOnce(&mut Vec<&'a str>)) -> Url {
        let mut url = self.url.clone();
        let mut steps: Vec<&str> = self.url.path().split('/').filter(|step| !step.is_empty()).collect();
        change(&mut steps);
        url.set_path(&steps.join("/"));
        url.set_fragment(None);
        url
    }
}

/// The address one step below `url`. What has a meaning in addresses is encoded: a model's name may hold any of it.
pub(super) fn step_below(mut url: Url, step: &str) -> Url {
    if let Ok(mut steps) = url.path_segments_mut() {
        steps.push(step);
    }
    url
}

/// Takes `tail` off the end of a path, for bases that were pasted with the whole address of a call.
pub(super) fn strip_tail(steps: &mut Vec<&str>, tail: &[&str]) {
    if steps.ends_with(tail) {
        steps.truncate(steps.len() - tail.len());
    }
}

/// A URL without user name and password, and the `Authorization` header that stands for them.
fn without_credentials(url: Url) -> Result<(Url, Option<HeaderValue>), SetupError> {
    if url.username().is_empty() && url.password().is_none() {
        return Ok((url, None));
    }
    // Any client does this for every request; asking one now keeps the password out of all later errors and logs, and
    // spares us an encoder.
    let fault = |error: reqwest::Error| SetupError::Client(error.without_url().to_string());
    let client = Client::builder().build().map_err(fault)?;
    let request = client.post(url).build().map_err(fault)?;
    let basic = request.headers().get(AUTHORIZATION).cloned();
    Ok((request.url().clone(), basic))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_leave_the_url() {
        let base = BaseUrl::parse("http://user:pa%20ss@h:1/v1?x=1#top", "…").unwrap();
        assert_eq!(base.with_path(|_| ()).as_str(), "http://h:1/v1?x=1");
        let basic = base.basic.as_ref().unwrap();
        assert!(basic.is_sensitive());
        assert_eq!(basic, "Basic dXNlcjpwYSBzcw==");
        assert_eq!(base.secrets.len(), 2);
        assert!(!format!("{base:?}").contains("ss@"));
        assert!(BaseUrl::parse("http://h:1/v1", "…").unwrap().basic.is_none());
    }

    #[test]
    fn a_step_below_holds_any_name() {
        let base = BaseUrl::parse("http://h/v1?key=1", "…").unwrap();
        let url = step_below(base.with_path(|steps| steps.push("models")), "a/b c?d#e%2f:ü");
        assert_eq!(url.as_str(), "http://h/v1/models/a%2Fb%20c%3Fd%23e%252f:%C3%BC?key=1");
        assert!(base.has_in_query("key") && !base.has_in_query("ke"));
    }

    #[test]
    fn what_is_no_address_is_refused_without_quoting_it() {
        for text in ["", "h", "localhost:8080", "/v1", "ftp://h/v1", "http://", "http://h:99999", "user:swordfish@h"] {
            let error = BaseUrl::parse(text, "https://host/v1").unwrap_err().to_string();
            assert!(error.ends_with("it looks like https://host/v1"), "{text}: {error}");
            assert!(!error.contains("swordfish"));
        }
    }
}
