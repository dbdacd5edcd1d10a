//! Where a provider's model is reached: address, key and client.
//!
//! In: a provider of the plan and the caller's environment. Out: an [`Endpoint`]. Invariants: a key is in one header
//! and nowhere else, and no request goes to another place than the provider's own, whatever it answers.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::time::Duration;

use reqwest::Url;
use reqwest::redirect::{Attempt, Policy};
use swarmc_plan::{Ability, Connection, LlmKind, Provider, ToolProtocol};

/// How long making a connection may take.
const CONNECT: Duration = Duration::from_secs(20);

/// How many redirects are followed, each to the same place.
const REDIRECTS: usize = 3;

tokio::task_local! {
    /// The status of the answer to the request that this task makes, from the moment in which it is known; 0 before.
    pub(super) static STATUS: Cell<u16>;
}

/// A model behind HTTP, ready to be asked.
#[derive(Debug)]
pub(super) struct Endpoint {
    pub kind: LlmKind,
    /// The model of agents that name none.
    pub model: Option<String>,
    /// Whether it holds an answer to a schema.
    pub provides_schema: bool,
    pub client: reqwest::Client,
    base: Url,
    key: Option<Key>,
}

struct Key(String);

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key")
    }
}

impl Endpoint {
    /// The endpoint of a provider.
    ///
    /// # Errors
    /// Why it has none: it is no model, its address or its key cannot be used.
    pub(super) fn new(provider: &Provider, environment: &BTreeMap<OsString, OsString>) -> Result<Endpoint, String> {
        let Connection::Llm { kind, base_url, model, auth, tools } = &provider.connection else {
            return Err(format!("provider `{}` is no model", provider.name));
        };
        let base = resolve_base(*kind, base_url.as_deref())?;
        let key = auth.as_deref().map(|variable| read_key(variable, environment)).transpose()?;
        let client = build_client(&base).map_err(|error| format!("no HTTP client can be made: {error}"))?;
        // A provider that calls tools by schema supports schemas.
        let provides_schema = provider.provides.contains(&Ability::Schema) || *tools == Some(ToolProtocol::Schema);
        Ok(Endpoint { kind: *kind, model: model.clone(), provides_schema, client, base, key })
    }

    /// Where a question for `model` goes.
    pub(super) fn url(&self, model: &str) -> String {
        let path = match self.kind {
            LlmKind::Openai => "chat/completions".to_owned(),
            LlmKind::OpenaiResponses => "responses".to_owned(),
            LlmKind::Anthropic => "messages".to_owned(),
            LlmKind::Gemini => format!("models/{model}:streamGenerateContent"),
        };
        let mut url = self.base.clone();
        url.set_path(&format!("{}/{path}", self.base.path().trim_end_matches('/')));
        if self.kind == LlmKind::Gemini {
            url.query_pairs_mut().append_pair("alt", "sse");
        }
        url.into()
    }

    /// The headers of a request, apart from those about its body.
    pub(super) fn headers(&self) -> Vec<(String, String)> {
        let mut headers = Vec::new();
        if self.kind == LlmKind::Anthropic {
            headers.push(("anthropic-version".to_owned(), "2023-06-01".to_owned()));
        }
        if let Some(Key(key)) = &self.key {
            headers.push(match self.kind {
                LlmKind::Openai | LlmKind::OpenaiResponses => ("authorization".to_owned(), format!("Bearer {key}")),
                LlmKind::Anthropic => ("x-api-key".to_owned(), key.clone()),
                LlmKind::Gemini => ("x-goog-api-key".to_owned(), key.clone()),
            });
        }
        headers
    }

    /// The place, for messages: `api.openai.com`, `127.0.0.1:8080`.
    pub(super) fn display_host(&self) -> String {
        let host = self.base.host_str().unwrap_or_default();
        self.base.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    /// The key that it is sent.
    pub(super) fn key(&self) -> Option<&str> {
        self.key.as_ref().map(|Key(key)| key.as_str())
    }

    /// A text of the endpoint's without the key that it may repeat.
    pub(super) fn without_key(&self, text: String) -> String {
        match &self.key {
            Some(Key(key)) if text.contains(key.as_str()) => text.replace(key.as_str(), "[key]"),
            _ => text,
        }
    }
}

/// The address below which a kind's paths lie: one without a path gets the usual one.
fn resolve_base(kind: LlmKind, given: Option<&str>) -> Result<Url, String> {
    let (own, version) = match kind {
        LlmKind::Openai | LlmKind::OpenaiResponses => ("https://api.openai.com", "/v1"),
        LlmKind::Anthropic => ("https://api.anthropic.com", "/v1"),
        LlmKind::Gemini => ("https://generativelanguage.googleapis.com", "/v1beta"),
    };
    let given = given.unwrap_or(own);
    let mut url = Url::parse(given).map_err(|error| format!("`{given}` is not an address: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(format!("`{given}` is not an address of HTTP"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("an address holds no user and no password: say `auth`".to_owned());
    }
    if url.path() == "/" {
        url.set_path(version);
    }
    Ok(url)
}

fn read_key(variable: &str, environment: &BTreeMap<OsString, OsString>) -> Result<Key, String> {
    let value = environment.get(OsStr::new(variable)).filter(|value| !value.is_empty());
    let value = value.ok_or_else(|| format!("the secret variable `{variable}` is not set"))?;
    let value = value.to_str().map(str::trim).filter(|value| value.bytes().all(|byte| byte.is_ascii_graphic()));
    let value = value.filter(|value| !value.is_empty());
    value
        .map(|value| Key(value.to_owned()))
        .ok_or_else(|| format!("the variable `{variable}` holds no key: it has characters that no header may have"))
}

/// Tells [`STATUS`] how each answer begins; nothing is asked again.
fn build_status_policy() -> reqwest::retry::Builder {
    let policy = reqwest::retry::for_host(String::new()).no_budget().max_retries_per_request(1);
    policy.classify_fn(|answer| {
        let status = answer.status().map_or(0, |status| status.as_u16());
        // A caller that does not want the status has not set the variable.
        let _ = STATUS.try_with(|seen| seen.set(status));
        answer.success()
    })
}

/// A client that stays with the place of `base`.
pub(crate) fn build_client(base: &Url) -> reqwest::Result<reqwest::Client> {
    // The first caller chooses for the process; all of us choose the same.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (origin, home) = (base.origin(), base.host_str().unwrap_or_default());
    let stay = move |attempt: Attempt<'_>| {
        let same = attempt.url().origin() == origin && attempt.previous().len() <= REDIRECTS;
        if same { attempt.follow() } else { attempt.stop() }
    };
    let builder = reqwest::Client::builder()
        .redirect(Policy::custom(stay))
        .retry(build_status_policy())
        .connect_timeout(CONNECT)
        .tcp_nodelay(true)
        .no_gzip()
        .referer(false)
        .user_agent(concat!("swarmc/", env!("CARGO_PKG_VERSION")));
    // What runs on this machine is not asked for through another.
    let is_local = home == "localhost"
        || home.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
    if is_local { builder.no_proxy().build() } else { builder.build() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(kind: LlmKind, base_url: Option<&str>, key: Option<&str>) -> Result<Endpoint, String> {
        let auth = key.map(|_| "KEY".to_owned());
        let base_url = base_url.map(str::to_owned);
        let connection = Connection::Llm { kind, base_url, model: None, auth, tools: None };
        let environment = key.map(|key| (OsString::from("KEY"), OsString::from(key))).into_iter().collect();
        Endpoint::new(&Provider { connection, ..Provider::default() }, &environment)
    }

    #[test]
    fn each_kind_has_its_address_and_its_header() {
        let check = |kind, base, url: &str, header: &str| {
            let endpoint = endpoint(kind, base, Some(" k-1\n")).unwrap();
            assert_eq!(endpoint.url("m"), url);
            let headers = endpoint.headers();
            let headers: Vec<String> = headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
            assert_eq!(headers.last().map(String::as_str), Some(header));
        };
        use LlmKind::{Anthropic, Gemini, Openai, OpenaiResponses};
        check(Openai, None, "https://api.openai.com/v1/chat/completions", "authorization: Bearer k-1");
        check(OpenaiResponses, None, "https://api.openai.com/v1/responses", "authorization: Bearer k-1");
        check(Anthropic, None, "https://api.anthropic.com/v1/messages", "x-api-key: k-1");
        let gemini = "https://generativelanguage.googleapis.com/v1beta/models/m:streamGenerateContent?alt=sse";
        check(Gemini, None, gemini, "x-goog-api-key: k-1");
        let local = "http://127.0.0.1:8080/v1/chat/completions";
        check(Openai, Some("http://127.0.0.1:8080"), local, "authorization: Bearer k-1");
        check(Openai, Some("http://127.0.0.1:8080/v1/"), local, "authorization: Bearer k-1");
        let deep = "https://x.example/a/b/chat/completions?v=2";
        check(Openai, Some("https://x.example/a/b?v=2"), deep, "authorization: Bearer k-1");
    }

    #[test]
    fn without_a_key_none_is_sent() {
        assert_eq!(endpoint(LlmKind::Openai, None, None).unwrap().headers(), []);
        let names = endpoint(LlmKind::Anthropic, None, None).unwrap().headers().into_iter().map(|(name, _)| name);
        assert_eq!(names.collect::<Vec<_>>(), ["anthropic-version"]);
    }

    #[test]
    fn what_cannot_be_used_is_said() {
        let check = |base, key, part: &str| {
            let problem = endpoint(LlmKind::Openai, base, key).expect_err("it cannot be used");
            assert!(problem.contains(part), "{problem}");
        };
        check(None, Some(""), "the secret variable `KEY` is not set");
        check(None, Some("a\nb"), "no key");
        check(None, Some("sch\u{fc}ssel"), "no key");
        check(Some("ftp://x.example"), None, "not an address");
        check(Some("http://me:pw@x.example"), None, "say `auth`");
        check(Some("nonsense"), None, "not an address");
    }

    #[test]
    fn a_key_is_in_no_message() {
        let endpoint = endpoint(LlmKind::Openai, None, Some("sk-1234567")).unwrap();
        assert_eq!(endpoint.without_key("the key sk-1234567 is wrong".to_owned()), "the key [key] is wrong");
        assert!(!format!("{endpoint:?}").contains("sk-1234567"));
    }
}
