//! Who may ask: the host and the origin of a request, its token, and whether a person can have sent it.
//!
//! In: the head of a request. Out: whether it is answered, or the problem. Invariant: a page of another site reaches
//! nothing, by whatever name it calls this machine, and no answer says more than that to a client without the token.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt};
use std::path::Path;

use hyper::StatusCode;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderName, ORIGIN};

use swarmc_runtime::{bearer_token, single_header};

use crate::digest::format_hex;
use crate::problem::Problem;

/// The bytes of a token that is made up: 256 bits.
const TOKEN: usize = 32;

/// Who may ask.
#[derive(Debug)]
pub(crate) struct Access {
    address: SocketAddr,
    hosts: Vec<String>,
    token: String,
}

impl Access {
    /// `address` is where the server listens.
    pub(crate) fn new(address: SocketAddr, hosts: Vec<String>, token: String) -> Access {
        Access { address, hosts, token }
    }

    /// The address for a browser. A fragment reaches no server, no log and no other page.
    pub(crate) fn url(&self) -> String {
        let ip = match self.address.ip() {
            ip if ip.is_unspecified() => IpAddr::from([127, 0, 0, 1]),
            ip => ip,
        };
        format!("http://{}/#t={}", SocketAddr::new(ip, self.address.port()), self.token)
    }

    /// Whether a request is for one of our own names, and from no page of another site. The page itself, which holds
    /// nothing, may be opened from anywhere, but not framed. Over a Unix socket the host is `localhost` without a port, too.
    ///
    /// # Errors
    /// It does not.
    pub(crate) fn check_site(&self, headers: &HeaderMap, is_page: bool, is_unix: bool) -> Result<(), Problem> {
        let refuse = |why: &str| Err(Problem::new(StatusCode::FORBIDDEN, why));
        let is_ours = |host: &str| self.is_own(host) || is_unix && host == "localhost";
        if !single_header(headers, &HOST).is_some_and(is_ours) {
            return refuse("this is not the host that you asked for: `--allow-host NAME` of `swarmc serve` adds one");
        }
        let origin = |origin: &str| {
            let host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
            host.is_some_and(|host| self.is_own(host))
        };
        if headers.contains_key(ORIGIN) && !single_header(headers, &ORIGIN).is_some_and(origin) {
            return refuse("pages of other sites are not answered");
        }
        let opens = |(name, value)| single_header(headers, &HeaderName::from_static(name)) == Some(value);
        if is_page && [("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")].into_iter().all(opens) {
            return Ok(());
        }
        let site = HeaderName::from_static("sec-fetch-site");
        // A person who types the address, or follows a link from another program, has no site.
        if headers.contains_key(&site) && !matches!(single_header(headers, &site), Some("same-origin" | "none")) {
            return refuse("pages of other sites are not answered");
        }
        Ok(())
    }

    /// Whether a request carries the token.
    ///
    /// # Errors
    /// It carries none, or another one.
    pub(crate) fn check_token(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let given = single_header(headers, &AUTHORIZATION).and_then(bearer_token);
        match given.is_some_and(|given| is_same(given.as_bytes(), self.token.as_bytes())) {
            true => Ok(()),
            false => Err(Problem::new(
                StatusCode::UNAUTHORIZED,
                "the token is missing or another one: send `Authorization: Bearer TOKEN`, with the token of the address that \
                 `swarmc serve` printed; it is never part of a query",
            )),
        }
    }

    /// Whether `HOST` or `HOST:PORT` is ours, by a name that no other machine's page can have.
    fn is_own(&self, authority: &str) -> bool {
        let port = format!(":{}", self.address.port());
        // On its usual port a browser says none.
        let name = authority.strip_suffix(&port).or_else(|| (self.address.port() == 80).then_some(authority));
        matches!(name, Some("127.0.0.1" | "localhost" | "[::1]"))
            || name.is_some_and(|name| name.trim_matches(['[', ']']).parse() == Ok(self.address.ip()))
            || self.hosts.iter().any(|host| *host == *authority || name.is_some_and(|name| *host == *name))
    }
}

/// Whether the body of a request that changes something is JSON: a form of another site can send other types without
/// asking first.
///
/// # Errors
/// It is not.
pub(crate) fn check_json(headers: &HeaderMap) -> Result<(), Problem> {
    let kind = single_header(headers, &CONTENT_TYPE).and_then(|kind| kind.split(';').next()).map(str::trim);
    match kind.is_some_and(|kind| kind.eq_ignore_ascii_case("application/json")) {
        true => Ok(()),
        false => {
            Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "send the body as `Content-Type: application/json`"))
        }
    }
}

/// Compares in a time that depends on the lengths alone.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |differs, (one, other)| differs | (one ^ other)) == 0
}

/// A new token.
pub(crate) fn make_token() -> String {
    let mut bytes = [0; TOKEN];
    let read = File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut bytes));
    read.expect("the system has random numbers");
    format_hex(&bytes)
}

/// Writes the token to a file that only its owner reads, whole or not at all.
///
/// # Errors
/// It cannot be written.
pub(crate) fn write_token(path: &Path, token: &str) -> io::Result<()> {
    let folder = path.parent().unwrap_or(path);
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let mut file = tempfile::Builder::new().permissions(PermissionsExt::from_mode(0o600)).tempfile_in(folder)?;
    file.write_all(token.as_bytes())?;
    file.persist(path).map(drop).map_err(|error| error.error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(all: &[(&'static str, &str)]) -> HeaderMap {
        let pair =
            |(name, value): &(&'static str, &str)| (HeaderName::from_static(name), value.parse().expect("a header"));
        all.iter().map(pair).collect()
    }

    #[test]
    fn only_our_own_sites_are_answered() {
        let access =
            Access::new("127.0.0.1:4983".parse().expect("an address"), vec!["runs.example".to_owned()], "t".to_owned());
        let answers = |all: &[(&'static str, &str)]| access.check_site(&headers(all), false, false).is_ok();
        for host in ["127.0.0.1:4983", "localhost:4983", "[::1]:4983", "runs.example", "runs.example:4983"] {
            assert!(answers(&[("host", host)]), "{host}");
        }
        for host in ["evil.test:4983", "127.0.0.1", "127.0.0.1:80", "localhost.evil:4983", "", "127.0.0.1:4983.evil"] {
            assert!(!answers(&[("host", host)]), "{host}");
        }
        let over_unix = |host: &str| access.check_site(&headers(&[("host", host)]), false, true).is_ok();
        assert!(over_unix("localhost") && over_unix("runs.example") && !over_unix("evil.test"));
        assert!(!answers(&[("host", "localhost")]));
        let from = |origin: &str| answers(&[("host", "127.0.0.1:4983"), ("origin", origin)]);
        assert!(from("http://127.0.0.1:4983") && from("https://runs.example"));
        assert!(!from("http://evil.test") && !from("null") && !from("http://127.0.0.1:8000"));
        let fetched = |site: &str| answers(&[("host", "127.0.0.1:4983"), ("sec-fetch-site", site)]);
        assert!(fetched("same-origin") && fetched("none") && !fetched("cross-site") && !fetched("same-site"));
        let opened = |dest: &str| {
            let all = [("host", "127.0.0.1:4983"), ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")];
            access.check_site(&headers(&[&all[..], &[("sec-fetch-dest", dest)]].concat()), true, false).is_ok()
        };
        assert!(opened("document") && !opened("iframe"));
    }

    #[test]
    fn the_token_is_the_whole_token() {
        let access = Access::new("127.0.0.1:4983".parse().expect("an address"), Vec::new(), "0af3".to_owned());
        let answers = |value: &str| access.check_token(&headers(&[("authorization", value)])).is_ok();
        assert!(answers("Bearer 0af3") && answers("bearer  0af3 "));
        for wrong in ["0af3", "Basic 0af3", "Bearer 0af", "Bearer 0af33", "Bearer"] {
            assert!(!answers(wrong), "{wrong}");
        }
        assert_eq!(make_token().len(), 64);
        assert_ne!(make_token(), make_token());
    }
}
