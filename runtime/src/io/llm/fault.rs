//! What failed between us and a model's service, in a sentence, with its class.
//!
//! In: an error of genai, whose texts are untrusted. Out: a [`Fault`]: one line, bounded, without a key.
//! Statuses and connections decide the class; where there is only a text, the words of [`retry`] do.

use std::error::Error as _;
use std::time::{Duration, SystemTime};

use genai::Error;
use genai::webc::StreamTimeout;
use reqwest::StatusCode;
use reqwest::header::{HeaderMap, LOCATION, RETRY_AFTER};
use serde_json::Value;

use super::Patience;
use super::endpoint::Endpoint;
use crate::types::chat::Fault;
use crate::types::retry;

/// The longest text of a service that is told, in bytes.
const TOLD: usize = 500;

/// Kinds of errors that services name in a stream, and that pass.
const PASSING: [&str; 7] = [
    "overloaded_error",
    "rate_limit_error",
    "rate_limit_exceeded",
    "api_error",
    "server_error",
    "internal_server_error",
    "timeout_error",
];

impl Fault {
    /// One that asking again does not help.
    pub(super) fn permanent(message: impl Into<String>) -> Fault {
        Fault { message: message.into(), transient: false, retry_after: None, crashed: false }
    }

    /// The answer was not whole in its time.
    pub(crate) fn late(longest: Duration) -> Fault {
        Fault::passing(format!("timed out after {} seconds", longest.as_secs_f64()))
    }

    fn passing(message: impl Into<String>) -> Fault {
        Fault { message: message.into(), transient: true, retry_after: None, crashed: false }
    }

    /// One of which only the words tell the class.
    fn in_words(message: String) -> Fault {
        Fault { transient: retry::is_transient(&message), message, retry_after: None, crashed: false }
    }
}

/// What an error of a request comes to.
pub(super) fn of(error: Error, endpoint: &Endpoint, patience: Patience) -> Fault {
    let mut fault = read(error, endpoint, patience);
    fault.message = endpoint.without_key(fault.message);
    fault
}

fn read(error: Error, endpoint: &Endpoint, patience: Patience) -> Fault {
    match error {
        Error::HttpError { status, body, headers, .. } => refused(status, &body, &headers),
        Error::WebStream { error, cause, .. } => {
            let error = match error.downcast::<Error>() {
                Ok(inner) => return read(*inner, endpoint, patience),
                Err(error) => error,
            };
            if let Some(timeout) = error.downcast_ref::<StreamTimeout>() {
                return timed_out(*timeout, endpoint, patience);
            }
            match error.downcast_ref::<reqwest::Error>() {
                Some(error) => connection(error, endpoint),
                None => Fault::permanent(format!("the model's service sent an invalid answer: {}", line(&cause))),
            }
        }
        Error::ChatResponse { body, .. } => in_stream(&body),
        // A response that its service calls failed comes so, its message in place of a place in the text.
        Error::StreamParse { serde_error, .. } if serde_error.line() == 0 => {
            Fault::in_words(format!("the model's service failed: {}", line(&serde_error.to_string())))
        }
        Error::StreamParse { serde_error, .. } => {
            Fault::permanent(format!("the model's service sent an invalid answer: {}", line(&serde_error.to_string())))
        }
        Error::JsonValueExt(_) | Error::SerdeJson(_) | Error::InvalidJsonResponseElement { .. } => {
            Fault::permanent("the model's service sent an answer of another kind")
        }
        error => Fault::in_words(line(&error.to_string())),
    }
}

/// A status that is no success.
pub(super) fn refused(status: StatusCode, body: &str, headers: &HeaderMap) -> Fault {
    let header = |name: reqwest::header::HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    if status.is_redirection() {
        let target = header(LOCATION).map(line).unwrap_or_default();
        let message =
            format!("the model's service answered with status {status}: it leads to `{target}`, which is not followed");
        return Fault::permanent(message);
    }
    let said = said(body);
    let message = match said.is_empty() {
        true => format!("the model's service answered with status {status}"),
        false => format!("the model's service answered with status {status}: {said}"),
    };
    let wait = header(RETRY_AFTER).and_then(|value| retry::retry_after(value, SystemTime::now()));
    let millis = headers.get("retry-after-ms").and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    let wait = millis.map(|millis| Duration::from_millis(millis).min(retry::LONGEST_WAIT)).or(wait);
    let transient = retry::is_transient_status(status.as_u16());
    Fault { message, transient, retry_after: wait.filter(|_| transient), crashed: false }
}

/// Bytes came, and nothing whole in all that time.
pub(super) fn nothing_whole(endpoint: &Endpoint, waited: Duration) -> Fault {
    Fault::passing(format!("{} sent no complete event: timed out after {waited:?}", endpoint.display_host()))
}

fn timed_out(timeout: StreamTimeout, endpoint: &Endpoint, patience: Patience) -> Fault {
    let place = endpoint.display_host();
    Fault::passing(match timeout {
        StreamTimeout::Headers => {
            format!("could not connect to {place}, or it did not begin to answer: timed out after {:?}", patience.first)
        }
        StreamTimeout::Read => {
            format!("the answer of {place} stopped: timed out after {:?} of silence", patience.silence)
        }
    })
}

fn connection(error: &reqwest::Error, endpoint: &Endpoint) -> Fault {
    let mut root = error.source();
    let mut cause = String::new();
    while let Some(source) = root {
        cause = source.to_string();
        root = source.source();
    }
    let (place, cause) = (endpoint.display_host(), line(&cause).to_lowercase());
    if error.is_builder() {
        return Fault::permanent(format!("the request cannot be made: {cause}"));
    }
    let lost = error.is_timeout() || error.is_body() || error.is_decode() || error.is_request();
    match error.is_connect() {
        // A certificate does not become valid by waiting, nor a name by asking again at once: what does not answer may.
        true if cause.contains("certificate") => Fault::permanent(format!("could not connect to {place}: {cause}")),
        true => Fault::passing(format!("could not connect to {place}: {cause}")),
        false if lost => {
            Fault::passing(format!("the connection closed before the answer of {place} was complete: {cause}"))
        }
        false => Fault::in_words(format!("the connection to {place} failed: {cause}")),
    }
}

/// An error that a service tells in a stream, its status being a success.
fn in_stream(body: &Value) -> Fault {
    let error = body.get("error").filter(|error| error.is_object()).unwrap_or(body);
    let words = ["type", "code", "status"].into_iter().filter_map(|key| error.get(key));
    let passes = words.into_iter().any(|word| match word {
        Value::String(word) => PASSING.contains(&word.to_lowercase().as_str()),
        Value::Number(number) => {
            let status = number.as_u64().and_then(|number| u16::try_from(number).ok());
            status.is_some_and(retry::is_transient_status)
        }
        _ => false,
    });
    let kind = error.get("type").and_then(Value::as_str).unwrap_or_default();
    let text = error.get("message").and_then(Value::as_str).map_or_else(|| body.to_string(), str::to_owned);
    let fault = Fault::in_words(line(&format!("the model's service failed: {text} {kind}")));
    Fault { transient: fault.transient || passes, ..fault }
}

/// What the body of a refusal says.
fn said(body: &str) -> String {
    let read: Option<Value> = serde_json::from_str(body).ok();
    let read = read.as_ref().map(|body| body.get(0).unwrap_or(body));
    let error = read.and_then(|body| body.get("error"));
    let message = error.and_then(|error| error.get("message").or(Some(error))).or_else(|| read?.get("message"));
    line(message.and_then(Value::as_str).unwrap_or(body))
}

/// A text in one line, without what a terminal might obey, cut at a character.
fn line(text: &str) -> String {
    let mut line = String::new();
    for word in text.split(|character: char| character.is_whitespace() || character.is_control()) {
        if word.is_empty() {
            continue;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > TOLD {
            line.truncate(line.floor_char_boundary(TOLD));
            line.push('…');
            break;
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn status(code: u16, body: &str, headers: &[(&str, &str)]) -> Fault {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name = reqwest::header::HeaderName::try_from(*name).unwrap();
            map.insert(name, value.parse().unwrap());
        }
        refused(StatusCode::from_u16(code).unwrap(), body, &map)
    }

    #[test]
    fn a_refusal_says_what_the_service_says_and_when_to_ask_again() {
        let fault = status(429, r#"{"error":{"message":"slow\ndown"}}"#, &[("retry-after", "7")]);
        let message = "the model's service answered with status 429 Too Many Requests: slow down";
        assert_eq!((fault.message.as_str(), fault.transient), (message, true));
        assert_eq!(fault.retry_after, Some(Duration::from_secs(7)));
        let both = [("retry-after-ms", "250"), ("retry-after", "1")];
        assert_eq!(status(503, "", &both).retry_after, Some(Duration::from_millis(250)));
        let fault = status(401, r#"{"error":"no key"}"#, &[("retry-after", "7")]);
        assert_eq!((fault.transient, fault.retry_after), (false, None));
        assert!(fault.message.ends_with("401 Unauthorized: no key"), "{}", fault.message);
        let fault = status(500, "<html>\u{1b}[31m oops", &[]);
        assert!(fault.transient && fault.message.ends_with(": <html> [31m oops"), "{}", fault.message);
        let fault = status(307, "", &[("location", "http://elsewhere.example/")]);
        assert!(!fault.transient && fault.message.contains("`http://elsewhere.example/`"), "{}", fault.message);
    }

    #[test]
    fn an_error_in_a_stream_is_told_from_one_that_passes() {
        let check = |body: Value, transient: bool| assert_eq!(in_stream(&body).transient, transient, "{body}");
        check(json!({ "type": "error", "error": { "type": "overloaded_error", "message": "busy" } }), true);
        check(json!({ "type": "server_error", "message": "it broke" }), true);
        check(json!({ "code": 503, "message": "later" }), true);
        check(json!({ "type": "invalid_request_error", "message": "no such model" }), false);
        check(json!({ "message": "Rate limit reached" }), true);
        check(json!("nonsense"), false);
    }

    #[test]
    fn a_text_is_one_short_line() {
        assert_eq!(line(" a\r\n\tb\u{7}c "), "a b c");
        let long = line(&"é ".repeat(10_000));
        assert!(long.len() <= TOLD + 3 && long.ends_with('…'));
        assert!(line(&"é".repeat(10_000)).len() <= TOLD + 3);
    }
}
