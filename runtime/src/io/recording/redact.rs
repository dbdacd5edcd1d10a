//! Replaces what differs between runs and machines by placeholders in a recording: folders, the run's id, secrets.
//!
//! In: any bytes. Out: the same with `⟦run⟧`, `⟦workspace⟧`, `⟦home⟧`, `⟦id⟧` and `⟦secret:NAME⟧` in the place of such
//! values, and back. Invariant: filling in what was blanked out gives the same bytes, except for secrets, which stay
//! redacted for ever.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use memchr::memmem;
use serde_json::Value as Json;

use crate::types::secrets;

const OPEN: &str = "⟦";
const CLOSE: &str = "⟧";

/// The values of one run, and their placeholders.
#[derive(Clone, Debug, Default)]
pub(crate) struct Redactions {
    /// The longest value first: one may be the beginning of another.
    values: Vec<Value>,
}

#[derive(Clone, Debug)]
struct Value {
    bytes: Vec<u8>,
    blank: String,
    /// Whether it counts only where it is a whole path or word.
    whole: bool,
    /// Whether it is filled in again.
    fills: bool,
}

impl Redactions {
    /// The redactions of the run with this id, in this folder, of this workspace; `variables` hold secrets.
    pub(crate) fn new(
        (run, folder, workspace): (&str, &Path, &Path),
        environment: &BTreeMap<OsString, OsString>,
        variables: &BTreeSet<&str>,
    ) -> Redactions {
        let mut values = Vec::new();
        let mut path = |path: &Path, name: &str| {
            let bytes = path.as_os_str().as_bytes().to_vec();
            // The root alone would be found in every path.
            if path.is_absolute() && bytes.len() > 1 {
                values.push(Value { bytes, blank: blank(name), whole: true, fills: true });
            }
        };
        path(folder, "run");
        path(workspace, "workspace");
        if let Some(home) = environment.get(OsStr::new("HOME")) {
            path(Path::new(home), "home");
        }
        values.push(Value { bytes: run.as_bytes().to_vec(), blank: blank("id"), whole: true, fills: true });
        let mut secret =
            |bytes, name: &str| values.push(Value { bytes, blank: secrets::blank(name), whole: false, fills: false });
        // A replay gives processes the placeholder itself for a secret.
        variables.iter().for_each(|name| secret(secrets::blank(name).into(), name));
        secrets::values(environment, variables).into_iter().for_each(|(value, name)| secret(value, name));
        values.sort_by_key(|value| std::cmp::Reverse(value.bytes.len()));
        Redactions { values }
    }

    /// The text as a recording holds it.
    pub(crate) fn blank(&self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len());
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            let found = self.values.iter().find(|value| {
                rest.starts_with(&value.bytes) && (!value.whole || is_whole(bytes, at, at + value.bytes.len()))
            });
            if let Some(value) = found {
                out.extend_from_slice(value.blank.as_bytes());
                at += value.bytes.len();
            } else if rest.starts_with(OPEN.as_bytes()) {
                // The text has such a bracket itself: doubled, it is no placeholder for `fill`.
                out.extend_from_slice(OPEN.repeat(2).as_bytes());
                at += OPEN.len();
            } else {
                out.push(bytes[at]);
                at += 1;
            }
        }
        out
    }

    /// The bytes that a recorded text means in this run.
    pub(crate) fn fill(&self, mut bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len());
        while let Some(at) = memmem::find(bytes, OPEN.as_bytes()) {
            out.extend_from_slice(&bytes[..at]);
            bytes = &bytes[at..];
            let value = self.values.iter().find(|value| value.fills && bytes.starts_with(value.blank.as_bytes()));
            let length = match value {
                Some(value) => {
                    out.extend_from_slice(&value.bytes);
                    value.blank.len()
                }
                None => {
                    // No placeholder of this run, as one of a secret: it stays as it stands.
                    out.extend_from_slice(OPEN.as_bytes());
                    if bytes[OPEN.len()..].starts_with(OPEN.as_bytes()) { OPEN.len() * 2 } else { OPEN.len() }
                }
            };
            bytes = &bytes[length..];
        }
        out.extend_from_slice(bytes);
        out
    }

    /// [`Redactions::blank`] of a text.
    pub(crate) fn blank_text(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.blank(text.as_bytes())).into_owned()
    }

    /// [`Redactions::blank`] of the texts within a value: in its written form they may be escaped.
    pub(crate) fn blank_json(&self, value: &Json) -> Json {
        texts(value, &|text| self.blank_text(text))
    }

    /// The value that a recorded JSON text means; the text itself where a person edited it to something else.
    pub(crate) fn fill_json(&self, text: &str) -> Json {
        match serde_json::from_str::<Json>(text) {
            Ok(value) => texts(&value, &|text| self.fill_text(text)),
            Err(_) => Json::String(self.fill_text(text)),
        }
    }

    /// [`Redactions::fill`] of a text.
    pub(crate) fn fill_text(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.fill(text.as_bytes())).into_owned()
    }
}

/// The value with each text in it changed. As deep as JSON that was read can be.
fn texts(value: &Json, change: &impl Fn(&str) -> String) -> Json {
    match value {
        Json::String(text) => Json::String(change(text)),
        Json::Array(items) => Json::Array(items.iter().map(|item| texts(item, change)).collect()),
        Json::Object(fields) => {
            Json::Object(fields.iter().map(|(name, value)| (change(name), texts(value, change))).collect())
        }
        Json::Null | Json::Bool(_) | Json::Number(_) => value.clone(),
    }
}

fn blank(name: &str) -> String {
    format!("{OPEN}{name}{CLOSE}")
}

/// Whether the match is not a part of a longer name.
fn is_whole(bytes: &[u8], start: usize, end: usize) -> bool {
    // Bytes beyond ASCII belong to letters, and so to names.
    let names = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') || !byte.is_ascii();
    let before = start.checked_sub(1).and_then(|before| bytes.get(before));
    // A full stop after a folder ends a sentence; one before a letter belongs to a longer name.
    let dotted = bytes.get(end) == Some(&b'.') && bytes.get(end + 1).is_some_and(names);
    !before.is_some_and(|byte| names(byte) || *byte == b'.') && !bytes.get(end).is_some_and(names) && !dotted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redactions(folder: &str, workspace: &str, home: &str, secret: Option<&str>) -> Redactions {
        let mut environment = BTreeMap::from([("HOME".into(), home.into())]);
        environment.extend(secret.map(|secret| ("KEY".into(), secret.into())));
        Redactions::new(
            ("20261122-014233-k3f9", Path::new(folder), Path::new(workspace)),
            &environment,
            &BTreeSet::from(["KEY"]),
        )
    }

    #[test]
    fn what_is_blanked_out_is_filled_in_again() {
        let ours = redactions("/h/u/.swarm/runs/20261122-014233-k3f9", "/h/u/work", "/h/u", Some("s3cr3t-key"));
        let theirs = redactions("/home/x/runs/20261122-014233-k3f9", "/srv/work", "/home/x", None);
        for (text, blank, there) in [
            ("in /h/u/work/a.rs", "in ⟦workspace⟧/a.rs", "in /srv/work/a.rs"),
            ("/h/u/work.", "⟦workspace⟧.", "/srv/work."),
            ("/h/u/work2 /h/u/work.bak x/h/u/work", "⟦home⟧/work2 ⟦home⟧/work.bak x/h/u/work", ""),
            ("/h/u/.swarm/runs/20261122-014233-k3f9/x", "⟦run⟧/x", "/home/x/runs/20261122-014233-k3f9/x"),
            ("run 20261122-014233-k3f9", "run ⟦id⟧", "run 20261122-014233-k3f9"),
            ("⟦run⟧ ⟦⟦ ⟦", "⟦⟦run⟧ ⟦⟦⟦⟦ ⟦⟦", "⟦run⟧ ⟦⟦ ⟦"),
            ("é ⟧ \u{0}", "é ⟧ \u{0}", "é ⟧ \u{0}"),
        ] {
            assert_eq!(ours.blank_text(text), blank);
            assert_eq!(ours.fill_text(blank), text);
            if !there.is_empty() {
                assert_eq!(theirs.fill_text(blank), there);
                assert_eq!(theirs.blank_text(there), blank);
            }
        }
    }

    #[test]
    fn a_secret_is_blank_for_ever() {
        let ours = redactions("/r", "/w", "/h", Some("s3cr3t-key"));
        assert_eq!(ours.blank_text("key=s3cr3t-key!"), "key=⟦secret:KEY⟧!");
        assert_eq!(ours.fill_text("key=⟦secret:KEY⟧!"), "key=⟦secret:KEY⟧!");
        // What a replay puts into a prompt is what was recorded.
        assert_eq!(redactions("/r", "/w", "/h", None).blank_text("key=⟦secret:KEY⟧!"), "key=⟦secret:KEY⟧!");
        assert_eq!(redactions("/r", "/w", "/h", Some("short")).blank_text("a short one"), "a short one");
    }

    #[test]
    fn a_secret_that_json_escapes_is_blank_in_it_too() {
        let ours = redactions("/r", "/w", "/h", Some("a\"b\\c\nd"));
        let value = serde_json::json!({ "path": "/w/x", "deep": [{ "k=a\"b\\c\nd": "a\"b\\c\nd" }], "n": 3 });
        let blank = ours.blank_json(&value).to_string();
        assert!(!blank.contains("c\\nd") && blank.contains("\"k=⟦secret:KEY⟧\":\"⟦secret:KEY⟧\""), "{blank}");
        assert_eq!(ours.fill_json(&blank)["path"], "/w/x");
        assert_eq!(ours.fill_json("no JSON in ⟦workspace⟧"), "no JSON in /w");
    }

    #[test]
    fn bytes_that_are_no_text_pass() {
        let ours = redactions("/r", "/w", "/h", None);
        assert_eq!(ours.fill(&ours.blank(b"\xff\xfe/w/\xe2\x9f")), b"\xff\xfe/w/\xe2\x9f");
        assert_eq!(ours.fill("⟦unknown⟧".as_bytes()), "⟦unknown⟧".as_bytes());
    }
}
