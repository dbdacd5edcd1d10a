//! The answer to a request that fails: `application/problem+json` (RFC 9457).

use hyper::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// Why a request failed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Problem {
    /// Always `about:blank`: the status says what kind it is.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The status in words.
    pub title: &'static str,
    /// The status of the answer.
    pub status: u16,
    /// What is wrong, and what to do about it.
    pub detail: String,
    /// The mistakes of a spec, as `swarmc check --format json` prints them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diagnostics: Option<Box<Value>>,
    /// The methods that the route has, where the request has another one.
    #[serde(skip)]
    pub allow: Vec<&'static str>,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Problem {
        let title = status.canonical_reason().unwrap_or("Error");
        Problem {
            kind: "about:blank",
            title,
            status: status.as_u16(),
            detail: detail.into(),
            diagnostics: None,
            allow: Vec::new(),
        }
    }

    pub(crate) fn bad_request(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::BAD_REQUEST, detail)
    }

    pub(crate) fn not_found(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::NOT_FOUND, detail)
    }

    /// What the run says against it.
    pub(crate) fn conflict(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::CONFLICT, detail)
    }

    /// The same, with what `swarmc check` says.
    pub(crate) fn with_diagnostics(self, document: Value) -> Problem {
        Problem { diagnostics: Some(Box::new(document)), ..self }
    }

    /// Something of the run, or of this machine, does not work.
    pub(crate) fn internal(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, detail)
    }
}
