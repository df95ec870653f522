//! `OLLAMA_HOST`, read as Ollama's own client reads it.
//!
//! Without a scheme it is `http` and the port 11434; with one the scheme's own port, 80 or 443; `ollama.com` alone is the
//! hosted service, at 443. An address to listen on, such as `0.0.0.0`, stands for this machine. Unlike there, a port that
//! is no number is a fault and not replaced.

use std::net::Ipv6Addr;

use reqwest::Url;

use super::super::SetupError;
use super::super::base_url::{BaseUrl, strip_tail};

/// Where Ollama listens unless told otherwise.
pub const DEFAULT_HOST: &str = "127.0.0.1:11434";

const PORT: u16 = 11434;
const HOSTED: &str = "ollama.com";

/// Says whether a host can be used, before anything is built with it.
///
/// # Errors
///
/// [`SetupError::BaseUrl`] in words that do not quote it: it may hold a password.
pub fn check_host(text: &str) -> Result<(), SetupError> {
    base(text).map(drop)
}

/// Is this the hosted service, which answers nobody without a key?
#[must_use]
pub fn needs_key(text: &str) -> bool {
    base(text).is_ok_and(|base| base.with_path(|_| ()).host_str() == Some(HOSTED))
}

pub(super) fn base(text: &str) -> Result<BaseUrl, SetupError> {
    let spelt_out = spelt_out(text);
    // What is no URL is told so by the one place that reads them.
    let reachable = Url::parse(&spelt_out).ok().map(|mut url| {
        let loopback = match url.host_str() {
            Some("0.0.0.0") => Some("127.0.0.1"),
            Some("[::]") => Some("[::1]"),
            _ => None,
        };
        // Only a URL that cannot be a base refuses a host, and that one had none.
        let _ = loopback.map(|host| url.set_host(Some(host)));
        String::from(url)
    });
    BaseUrl::parse(&reachable.unwrap_or(spelt_out), "http://127.0.0.1:11434")
}

/// The address of a call below a host that may have been pasted with the address of another.
pub(super) fn below(base: &BaseUrl, call: &'static str) -> Url {
    base.with_path(|steps| {
        for tail in [["api", "chat"].as_slice(), &["api"], &["v1", "chat", "completions"], &["v1"]] {
            strip_tail(steps, tail);
        }
        steps.extend(["api", call]);
    })
}

/// The host as a URL, with whatever was left out.
fn spelt_out(text: &str) -> String {
    let text = text.trim().trim_matches(['"', '\'']).trim();
    if text.contains("://") {
        return text.to_owned();
    }
    let (authority, path) = text.split_once('/').unwrap_or((text, ""));
    if authority == HOSTED {
        return format!("https://{authority}/{path}");
    }
    let (user, address) = match authority.rsplit_once('@') {
        Some((user, address)) => (format!("{user}@"), address),
        None => (String::new(), authority),
    };
    let address = match address.parse::<Ipv6Addr>() {
        Ok(bare) => format!("[{bare}]"),
        Err(_) => address.trim_end_matches(':').to_owned(),
    };
    // The colons of an address in brackets are no sign of a port.
    let has_port = address.rsplit(']').next().is_some_and(|rest| rest.contains(':'));
    let host = if address.is_empty() || address.starts_with(':') { "127.0.0.1" } else { "" };
    let port = if has_port { String::new() } else { format!(":{PORT}") };
    format!("http://{user}{host}{address}{port}/{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_read_as_ollama_reads_them() {
        for (host, chat) in [
            ("", "http://127.0.0.1:11434/api/chat"),
            (DEFAULT_HOST, "http://127.0.0.1:11434/api/chat"),
            ("1.2.3.4", "http://1.2.3.4:11434/api/chat"),
            ("1.2.3.4:1234/", "http://1.2.3.4:1234/api/chat"),
            (":1234", "http://127.0.0.1:1234/api/chat"),
            ("gpu-box:", "http://gpu-box:11434/api/chat"),
            ("http://gpu-box", "http://gpu-box/api/chat"),
            ("http://gpu-box:11434", "http://gpu-box:11434/api/chat"),
            ("https://gpu-box/", "https://gpu-box/api/chat"),
            ("HTTPS://gpu-box:8443/team/llm", "https://gpu-box:8443/team/llm/api/chat"),
            ("gpu-box/team", "http://gpu-box:11434/team/api/chat"),
            ("0.0.0.0", "http://127.0.0.1:11434/api/chat"),
            ("http://0.0.0.0:80", "http://127.0.0.1/api/chat"),
            ("::1", "http://[::1]:11434/api/chat"),
            ("::", "http://[::1]:11434/api/chat"),
            ("[::]", "http://[::1]:11434/api/chat"),
            ("[::]:1234", "http://[::1]:1234/api/chat"),
            ("[fe80::7]:1234", "http://[fe80::7]:1234/api/chat"),
            (" \"gpu-box:1\"\n", "http://gpu-box:1/api/chat"),
            ("'http://gpu-box:1'", "http://gpu-box:1/api/chat"),
            ("ollama.com", "https://ollama.com/api/chat"),
            ("ollama.com:80", "http://ollama.com/api/chat"),
            ("https://ollama.com/api", "https://ollama.com/api/chat"),
            ("http://gpu-box:11434/v1/", "http://gpu-box:11434/api/chat"),
            ("http://gpu-box:11434/v1/chat/completions", "http://gpu-box:11434/api/chat"),
            ("http://gpu-box:11434/api/chat", "http://gpu-box:11434/api/chat"),
            ("some:pass@gpu-box", "http://gpu-box:11434/api/chat"),
        ] {
            let base = base(host).unwrap();
            assert_eq!(below(&base, "chat").as_str(), chat, "{host}");
            assert_eq!(base.basic.is_some(), host.contains('@'));
        }
    }

    #[test]
    fn a_host_that_is_none_is_refused_without_quoting_it() {
        for host in
            ["gpu box", "gpu-box:port", "gpu-box:99999", "ftp://gpu-box", "unix:///run/x", "http://", "a:swordfish@[::"]
        {
            let error = check_host(host).unwrap_err().to_string();
            assert!(error.ends_with("it looks like http://127.0.0.1:11434"), "{host}: {error}");
            assert!(!error.contains("swordfish"));
        }
    }

    #[test]
    fn only_the_hosted_one_needs_a_key() {
        assert!(needs_key("ollama.com") && needs_key("https://ollama.com/api/"));
        assert!(!needs_key(DEFAULT_HOST) && !needs_key("ollama.com.lan") && !needs_key(":::"));
    }
}
