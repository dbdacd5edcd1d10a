//! What can go wrong: each error says what failed, where, and what to do.

use std::error::Error;
use std::io;

use object_store::client::{HttpError, HttpErrorKind};

use crate::Digest;

/// The characters of what a store said that an error repeats.
const DETAIL: usize = 300;

/// Why a store did not do what it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The address is not that of a store.
    #[error("`{url}` is not the address of an object store: {problem}")]
    Address {
        /// What was given.
        url: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A setting of the environment is missing or wrong.
    #[error("cannot use the object store {place}: {problem}")]
    Setting {
        /// The store.
        place: String,
        /// What is wrong, and what to set.
        problem: String,
    },
    /// The environment names no credentials.
    #[error("no credentials for the object store {place}: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")]
    NoCredentials {
        /// The store.
        place: String,
    },
    /// The store refuses the credentials, or what they may do is not enough.
    #[error(
        "the object store {place} refuses to {doing}: {detail}; check the credentials, and that they may read and write there"
    )]
    Denied {
        /// The store.
        place: String,
        /// What was tried.
        doing: &'static str,
        /// What the store said.
        detail: String,
    },
    /// The bucket or the folder does not exist.
    #[error("the object store {place} does not exist: create its bucket or folder, or mend its address")]
    Missing {
        /// The store.
        place: String,
    },
    /// There is no object of this digest.
    #[error(
        "the object store {place} has no object {digest}: put it there first, or look in the store that it was put in"
    )]
    Absent {
        /// The store.
        place: String,
        /// What was asked for.
        digest: Digest,
    },
    /// An object does not have the contents of its digest.
    #[error(
        "the object `{key}` in the object store {place} is damaged or forged: its digest is {digest}, and there is {found}; remove it, and put it there again"
    )]
    Damaged {
        /// The store.
        place: String,
        /// The object, below the store's folder or bucket.
        key: String,
        /// What it should be.
        digest: Digest,
        /// What was found in its place.
        found: String,
    },
    /// An object is larger than the caller takes.
    #[error(
        "the object `{key}` in the object store {place} has {bytes} bytes or more, and at most {max} are read here"
    )]
    TooLarge {
        /// The store.
        place: String,
        /// The object.
        key: String,
        /// Its size as far as it is known, in bytes.
        bytes: u64,
        /// The bytes that the caller takes.
        max: u64,
    },
    /// The store does not answer, or not in time.
    #[error(
        "cannot reach the object store {place} to {doing}: {detail}; check the network and AWS_ENDPOINT_URL, then try again"
    )]
    Unreachable {
        /// The store.
        place: String,
        /// What was tried.
        doing: &'static str,
        /// What happened.
        detail: String,
    },
    /// The store failed in another way.
    #[error("the object store {place} failed to {doing}: {detail}")]
    Failed {
        /// The store.
        place: String,
        /// What was tried.
        doing: &'static str,
        /// What the store said.
        detail: String,
    },
}

impl StoreError {
    /// What an error of the client means.
    pub(crate) fn describe(error: object_store::Error, place: &str, doing: &'static str, digest: Digest) -> StoreError {
        let place = place.to_owned();
        let text = error.to_string();
        let detail = summarize(&text);
        if let object_store::Error::NotFound { .. } = error {
            return match text.contains("<Code>NoSuchBucket</Code>") {
                true => StoreError::Missing { place },
                false => StoreError::Absent { place, digest },
            };
        }
        let refused =
            matches!(error, object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. });
        let io = find_cause::<io::Error>(&error).map(io::Error::kind);
        let http = find_cause::<HttpError>(&error).map(HttpError::kind);
        match http {
            _ if refused => StoreError::Denied { place, doing, detail },
            Some(
                HttpErrorKind::Connect | HttpErrorKind::Request | HttpErrorKind::Timeout | HttpErrorKind::Interrupted,
            ) => StoreError::Unreachable { place, doing, detail },
            None if io == Some(io::ErrorKind::PermissionDenied) => StoreError::Denied { place, doing, detail },
            _ => StoreError::Failed { place, doing, detail },
        }
    }
}

/// The first error of a kind among the causes.
fn find_cause<'e, T: Error + 'static>(error: &'e (dyn Error + 'static)) -> Option<&'e T> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

/// What S3 says in XML as `CODE: MESSAGE`, any other text as it is.
fn summarize(text: &str) -> String {
    let part = |name: &str| {
        let (_, rest) = text.split_once(&format!("<{name}>"))?;
        Some(rest.split_once('<')?.0.trim())
    };
    match (part("Code"), part("Message")) {
        (Some(code), Some(message)) => shorten(&format!("{code}: {message}")),
        _ => shorten(text),
    }
}

/// A text of others for a line of a terminal: a server may say anything at any length.
pub(crate) fn shorten(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let printable = |sign: char| if sign.is_control() { '\u{fffd}' } else { sign };
    let short: String = line.chars().map(printable).take(DETAIL).collect();
    if line.chars().nth(DETAIL).is_some() { short + "…" } else { short }
}
