//! Calls of the engine: JSON over HTTP, made again until they are answered.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use reqwest::header::CONTENT_TYPE;
use reqwest::{StatusCode, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::io::llm::build_client;
use crate::types::engine::{
    Append, Ask, Delivery, Forget, HttpRequest, HttpResponse, Item, Page, Read, Report, Says, Start, Started,
    Submission, Take, UserOrder,
};

/// What its services are called by.
const PREFIX: &str = "swarmc";

/// How long one call may wait for its answer: longer than the engine lets a question wait.
const PATIENCE: Duration = Duration::from_secs(60);

/// Between two calls, the first time and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Why a call has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CallError {
    /// The engine refuses it: it would refuse it again.
    #[error("the engine at {url} refuses: {message}")]
    Refused {
        /// The address of the engine.
        url: String,
        /// 409 where another driver has the run, 404 where nothing is called so.
        status: u16,
        /// Why.
        message: String,
    },
    /// Nothing answers there.
    #[error("the engine at {url} does not answer: {message}")]
    Unreachable {
        /// The address of the engine.
        url: String,
        /// What happened to the last call.
        message: String,
    },
}

/// The calls of an engine. Clones call the same.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    http: reqwest::Client,
    url: Url,
    /// For how long a call is made again.
    patience: Duration,
}

impl Client {
    /// The engine at `url`: the ingress of Restate, as in `http://127.0.0.1:8080`. Calls are made again for `patience`.
    ///
    /// # Errors
    /// It is no address of HTTP.
    pub(crate) fn new(url: &str, patience: Duration) -> Result<Client, String> {
        let wrong = |error: &dyn std::fmt::Display| {
            format!("`{url}` is no address of an engine: {error}; type one as in http://127.0.0.1:8080")
        };
        let parsed = Url::parse(url).map_err(|error| wrong(&error))?;
        if !matches!(parsed.scheme(), "http" | "https") || parsed.host().is_none() {
            return Err(wrong(&"it begins with neither `http://` nor `https://`"));
        }
        let http = build_client(&parsed).map_err(|error| wrong(&error))?;
        Ok(Client { http, url: parsed, patience })
    }

    /// Where it is.
    pub(crate) fn url(&self) -> &str {
        self.url.as_str()
    }

    /// Offers processes to their pools: the number of each start.
    pub(crate) async fn start(&self, run: &str, start: &Start) -> Result<Vec<u64>, CallError> {
        self.call(&["Inbox", run, "start"], start).await
    }

    /// The processes that drivers of a run have had started, and whether each is talked with.
    pub(crate) async fn list(&self, run: &str, driver: u64) -> Result<Vec<(Started, bool)>, CallError> {
        self.call(&["Inbox", run, "list"], &driver).await
    }

    /// Passes lines on to shims.
    pub(crate) async fn say(&self, run: &str, says: &Says) -> Result<(), CallError> {
        self.call(&["Inbox", run, "say"], says).await
    }

    /// Reports: the starts that count no more, whose processes are to be ended.
    pub(crate) async fn push(&self, run: &str, reports: &[Report]) -> Result<Vec<Started>, CallError> {
        self.call(&["Inbox", run, "push"], reports).await
    }

    /// What a driver has to take, by number; nothing after some 25 seconds.
    pub(crate) async fn items(&self, take: &Take) -> Result<Vec<(u64, Item)>, CallError> {
        self.call(&["Pull", "items"], take).await
    }

    /// Has items forgotten.
    pub(crate) async fn forget(&self, run: &str, forget: &Forget) -> Result<(), CallError> {
        self.call(&["Inbox", run, "forget"], forget).await
    }

    /// What a worker is given; nothing after some 25 seconds.
    pub(crate) async fn deliveries(&self, ask: &Ask) -> Result<Vec<Delivery>, CallError> {
        self.call(&["Pull", "deliveries"], ask).await
    }

    /// A process calls its run.
    pub(crate) async fn request(&self, of: &Started, request: &HttpRequest) -> Result<HttpResponse, CallError> {
        self.call(&["Pull", "request"], &(of, request)).await
    }

    /// Answers an item.
    pub(crate) async fn answer(&self, reply: &str, answer: &impl Serialize) -> Result<(), CallError> {
        let answer = serde_json::to_value(answer).unwrap_or_default();
        self.call(&["Pull", "answer"], &(reply, answer)).await
    }

    /// What a person wants of a run: what came of it, or why nothing did.
    pub(crate) async fn order(&self, run: &str, order: &UserOrder) -> Result<Result<String, String>, CallError> {
        self.call(&["Pull", "order"], &(run, order)).await
    }

    /// A new driver of a run: its number.
    pub(crate) async fn begin(&self, run: &str) -> Result<u64, CallError> {
        self.call(&["View", run, "begin"], &()).await
    }

    /// Keeps records and files.
    pub(crate) async fn append(&self, run: &str, append: &Append) -> Result<(), CallError> {
        self.call(&["View", run, "append"], append).await
    }

    /// A part of a run.
    pub(crate) async fn read(&self, run: &str, read: Read) -> Result<Page, CallError> {
        self.call(&["View", run, "read"], &read).await
    }

    /// Has a run carried out.
    pub(crate) async fn submit(&self, run: &str, submission: &Submission) -> Result<(), CallError> {
        self.call(&["Pull", "submit"], &(run, submission)).await
    }

    /// The ids of its runs, the newest last.
    pub(crate) async fn runs(&self) -> Result<Vec<String>, CallError> {
        self.call(&["Runs", "all", "list"], &()).await
    }

    /// The address of its object store.
    pub(crate) async fn store_url(&self) -> Result<String, CallError> {
        self.call(&["Pull", "store"], &()).await
    }

    /// `path` is the service, for an object its key, and the handler. The engine knows by a number of the call when it
    /// comes again.
    async fn call<A: Serialize + ?Sized, R: DeserializeOwned>(
        &self,
        path: &[&str],
        argument: &A,
    ) -> Result<R, CallError> {
        let mut url = self.url.clone();
        if let (Ok(mut segments), [service, rest @ ..]) = (url.path_segments_mut(), path) {
            segments.pop_if_empty().push(&format!("{PREFIX}.{service}")).extend(rest);
        }
        let body = serde_json::to_vec(argument).unwrap_or_default();
        let number = call_number();
        let until = Instant::now() + self.patience;
        let mut pause = FIRST_PAUSE;
        loop {
            let request = self.http.post(url.clone()).header(CONTENT_TYPE, "application/json");
            let sent = request.header("idempotency-key", &number).body(body.clone()).timeout(PATIENCE).send().await;
            let message = match sent {
                Ok(response) => {
                    let status = response.status();
                    match response.bytes().await {
                        Ok(bytes) if status.is_success() => match parse_answer(&bytes) {
                            Ok(answer) => return Ok(answer),
                            Err(error) => error.to_string(),
                        },
                        Ok(bytes) => {
                            let message = describe_problem(status, &bytes);
                            if is_final(status) {
                                let url = self.url.to_string();
                                return Err(CallError::Refused { url, status: status.as_u16(), message });
                            }
                            message
                        }
                        Err(error) => describe_error(&error),
                    }
                }
                Err(error) => describe_error(&error),
            };
            if Instant::now() + pause > until {
                return Err(CallError::Unreachable { url: self.url.to_string(), message });
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

/// A handler without an answer has an empty body.
fn parse_answer<R: DeserializeOwned>(bytes: &[u8]) -> serde_json::Result<R> {
    serde_json::from_slice(if bytes.is_empty() { b"null" } else { bytes })
}

/// Whether the same call would fail again.
fn is_final(status: StatusCode) -> bool {
    status.is_client_error() && !matches!(status.as_u16(), 408 | 425 | 429)
}

fn describe_problem(status: StatusCode, body: &[u8]) -> String {
    let told = serde_json::from_slice::<serde_json::Value>(body).ok();
    let message = told.as_ref().and_then(|told| told.get("message")?.as_str()).map(str::to_owned);
    let hint = "`swarmc-engine serve` registers its services";
    match message {
        Some(message) if status == StatusCode::NOT_FOUND => format!("{message} ({hint})"),
        Some(message) => message,
        None => status.to_string(),
    }
}

fn describe_error(error: &reqwest::Error) -> String {
    let mut causes = Vec::new();
    let mut next: Option<&dyn std::error::Error> = Some(error);
    while let Some(cause) = next {
        causes.push(cause.to_string());
        next = cause.source();
    }
    causes.last().cloned().unwrap_or_default()
}

/// A text that no other call has.
fn call_number() -> String {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    static PROCESS: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    let process = PROCESS.get_or_init(|| {
        let mut random = [0_u8; 16];
        // Where the system has none, time and process are as good as unique.
        if std::fs::File::open("/dev/urandom")
            .and_then(|mut file| std::io::Read::read_exact(&mut file, &mut random))
            .is_err()
        {
            let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
            random = (time.as_nanos() ^ u128::from(std::process::id()) << 96).to_le_bytes();
        }
        random.iter().map(|byte| format!("{byte:02x}")).collect()
    });
    format!("{process}-{}", CALLS.fetch_add(1, Ordering::Relaxed))
}
