//! The clients below a store: a folder, or S3 over HTTP.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::client::{HttpClient, HttpConnector};
use object_store::local::LocalFileSystem;
use object_store::{BackoffConfig, ClientOptions, RetryConfig};

use crate::StoreError;

/// How long a request is tried again, from its first attempt on.
const RETRIES: Duration = Duration::from_secs(30);
/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(10);
/// The variables of which one says where credentials come from. Without one, the client would ask the network of a cloud.
const CREDENTIALS: [&str; 6] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_METADATA_ENDPOINT",
    "AWS_SKIP_SIGNATURE",
];

type Backend = Arc<dyn object_store::ObjectStore>;

pub(crate) fn open_folder(url: &str, folder: &Path) -> Result<Backend, StoreError> {
    if !folder.is_dir() {
        return Err(StoreError::Missing { place: url.to_owned() });
    }
    let opened = LocalFileSystem::new_with_prefix(folder)
        .map_err(|error| StoreError::Address { url: url.to_owned(), problem: error.to_string() })?;
    // What a journal names must be there after the machine lost its power.
    Ok(Arc::new(opened.with_fsync(true)))
}

/// The client of a bucket, and what people call it.
pub(crate) fn open_bucket(
    url: &str,
    bucket: &str,
    variables: BTreeMap<String, String>,
) -> Result<(Backend, String), StoreError> {
    let value = |name: &str| variables.get(name).map(String::as_str).filter(|value| !value.is_empty());
    let endpoint = value("AWS_ENDPOINT_URL_S3").or_else(|| value("AWS_ENDPOINT_URL")).or_else(|| value("AWS_ENDPOINT"));
    let name = endpoint.map_or_else(|| url.to_owned(), |endpoint| format!("{url} at {}", without_user(endpoint)));
    if CREDENTIALS.iter().all(|name| value(name).is_none()) {
        return Err(StoreError::NoCredentials { place: name });
    }
    let mut builder = AmazonS3Builder::new();
    for (name, value) in variables.iter().filter(|(name, value)| name.starts_with("AWS_") && !value.is_empty()) {
        if let Ok(key) = name.to_ascii_lowercase().parse::<AmazonS3ConfigKey>() {
            builder = builder.with_config(key, value);
        }
    }
    let allow_http = value("AWS_ALLOW_HTTP").is_some_and(|on| matches!(on, "true" | "1" | "yes" | "on"));
    if endpoint.is_some_and(|endpoint| endpoint.starts_with("http://")) && !allow_http {
        let problem = "its endpoint has no TLS: set AWS_ALLOW_HTTP=true where that is meant".to_owned();
        return Err(StoreError::Setting { place: name, problem });
    }
    let retry = RetryConfig {
        backoff: BackoffConfig { max_backoff: Duration::from_secs(5), ..BackoffConfig::default() },
        retry_timeout: RETRIES,
        ..RetryConfig::default()
    };
    let connector = Connector { is_local: endpoint.is_some_and(is_loopback), allow_http };
    let built = builder.with_bucket_name(bucket).with_retry(retry).with_http_connector(connector).build();
    match built {
        Ok(backend) => Ok((Arc::new(backend), name)),
        Err(error) => Err(StoreError::Setting { place: name, problem: crate::error::shorten(&error.to_string()) }),
    }
}

/// An endpoint without what stands before its host: that may be a password.
fn without_user(endpoint: &str) -> String {
    match (endpoint.split_once("://"), endpoint.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://{host}"),
        _ => endpoint.to_owned(),
    }
}

fn is_loopback(endpoint: &str) -> bool {
    let host = endpoint.split_once("://").map_or(endpoint, |(_, rest)| rest).split('/').next().unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or_default();
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Makes the HTTP client as the rest of us makes it: TLS by ring, no redirects, no proxy before this machine.
#[derive(Debug)]
struct Connector {
    is_local: bool,
    allow_http: bool,
}

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        // The first caller chooses for the process; all of us choose the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .https_only(!self.allow_http)
            .connect_timeout(CONNECT)
            .tcp_nodelay(true)
            .no_gzip()
            .referer(false)
            .user_agent(concat!("swarmc/", env!("CARGO_PKG_VERSION")));
        let client = if self.is_local { client.no_proxy() } else { client };
        let built =
            client.build().map_err(|error| object_store::Error::Generic { store: "S3", source: error.into() })?;
        Ok(HttpClient::new(built))
    }
}
