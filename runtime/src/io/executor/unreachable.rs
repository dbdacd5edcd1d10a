//! Whether a turn failed because its provider could not be reached, in which case another agent may take it.
//!
//! Only two things count: a program that did not start, and the agent's own stream when it says that the service behind
//! it refused or was not there. Time limits, exit codes and everything said after a tool was used do not: the turn may
//! have done something by then.

use crate::types::event::Failure;

/// Words for a service that is not there, or does not let us in.
const PHRASES: [&str; 24] = [
    "api key",
    "authentication",
    "connection closed",
    "connection error",
    "connection refused",
    "connection reset",
    "could not connect",
    "cannot connect",
    "econnrefused",
    "econnreset",
    "enotfound",
    "error sending request",
    "failed to connect",
    "fetch failed",
    "insufficient_quota",
    "network error",
    "not logged in",
    "overloaded",
    "quota exceeded",
    "rate limit",
    "service unavailable",
    "too many requests",
    "unable to connect",
    "unauthorized",
];

/// Those of them that a person mends who logs in.
const LOGIN: [&str; 4] = ["api key", "authentication", "not logged in", "unauthorized"];

/// Statuses of a service that refuses everybody for now, or us.
const STATUSES: [&str; 9] = ["401", "402", "403", "429", "500", "502", "503", "504", "529"];

/// Words that make a number a status.
const STATUS_WORDS: [&str; 5] = ["status", "http", "error", "code", "api"];

/// Whether `failure` says that no provider was reached.
pub(super) fn is_unreachable(failure: &Failure) -> bool {
    match failure {
        Failure::Spawn { .. } => true,
        Failure::Agent { message } => speaks_of_service(message),
        _ => false,
    }
}

/// Whether a failure's `message` says that a login is missing.
pub(super) fn wants_login(message: &str) -> bool {
    let message = message.to_lowercase();
    LOGIN.iter().any(|phrase| message.contains(phrase))
}

fn speaks_of_service(message: &str) -> bool {
    let message = message.to_lowercase();
    if PHRASES.iter().any(|phrase| message.contains(phrase)) {
        return true;
    }
    let words = || message.split(|character: char| !character.is_alphanumeric());
    words().any(|word| STATUSES.contains(&word)) && words().any(|word| STATUS_WORDS.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_that_is_not_there_is_told_from_a_turn_that_went_wrong() {
        let agent = |message: &str| is_unreachable(&Failure::Agent { message: message.to_owned() });
        for message in [
            "unexpected status 401 Unauthorized: no key",
            "exceeded retry limit, last status: 429 Too Many Requests",
            "stream disconnected before completion: error sending request for url (http://x/v1/responses)",
            "API Error: 529 {\"type\":\"overloaded_error\"}",
            "the stream ended without a result: the model's server answered with status 503",
            "Cannot connect to API: connect ECONNREFUSED 127.0.0.1:1",
            "Not logged in · Please run /login",
        ] {
            assert!(agent(message), "{message}");
        }
        for message in [
            "unexpected status 400 Bad Request: told to fail",
            "the stream ended without a result",
            "the model's answer was cut off: it stopped with `length`",
            "the output is not one JSON document: expected value at line 429 column 1",
            "I stopped at line 401 of the file",
            "the agent does not say why",
        ] {
            assert!(!agent(message), "{message}");
        }
        assert!(is_unreachable(&Failure::Spawn { message: "`x`: not found".to_owned() }));
        assert!(!is_unreachable(&Failure::Exit) && !is_unreachable(&Failure::Timeout { after_ms: 1 }));
    }

    #[test]
    fn a_missing_login_is_told_apart_from_an_unreachable_service() {
        for message in [
            "Not logged in · Please run /login",
            "Invalid API key · Fix external API key",
            "the agent wants authentication before a session: Authentication required (by API Key, ChatGPT)",
            "unexpected status 401 Unauthorized: no key",
        ] {
            assert!(wants_login(message) && speaks_of_service(message), "{message}");
        }
        for message in ["exceeded retry limit, last status: 429 Too Many Requests", "connection refused", "overloaded"]
        {
            assert!(!wants_login(message) && speaks_of_service(message), "{message}");
        }
    }
}
