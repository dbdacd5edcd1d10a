//! SW601: literals that look like keys, in the spec and in every file that it reads.
//!
//! A key is a known prefix at the start of a word and enough characters after it that look drawn by lot, so that
//! `sk-your-key-here` and `AKIAEXAMPLE` are what they are: examples.

use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::load::Loader;
use crate::source::Span;
use crate::text_cache::Derived;

/// A prefix, the least length of what follows it, and whose key it is.
const KEYS: &[(&str, usize, &str)] = &[
    ("sk-", 20, "an API key"),
    ("ghp_", 30, "a GitHub token"),
    ("gho_", 30, "a GitHub token"),
    ("ghs_", 30, "a GitHub token"),
    ("github_pat_", 40, "a GitHub token"),
    ("glpat-", 20, "a GitLab token"),
    ("xoxb-", 20, "a Slack token"),
    ("xoxp-", 20, "a Slack token"),
    ("AKIA", 16, "an AWS access key"),
    ("AIza", 30, "a Google API key"),
    ("hf_", 30, "a Hugging Face token"),
    ("npm_", 30, "an npm token"),
];

const PRIVATE: &str = "-----BEGIN ";

/// What looks like keys in a text.
struct Keys(Vec<Key>);

impl Derived for Keys {
    fn from_text(text: &str) -> Keys {
        Keys(find_keys(text))
    }
}

/// What looks like a key.
#[derive(Debug)]
struct Key {
    start: usize,
    end: usize,
    what: &'static str,
}

pub(super) fn check(loader: &Loader<'_>, diagnostics: &mut Diagnostics) {
    let sources = &loader.sources;
    for file in sources.files().filter(|&file| !sources.name(file).starts_with("std:")) {
        for key in &loader.facts(file).derived::<Keys>().0 {
            report_key(file, key.start, key.end, key.what, diagnostics);
        }
    }
}

/// What looks like keys in a text: by kind, then by place.
fn find_keys(text: &str) -> Vec<Key> {
    let bytes = text.as_bytes();
    let mut found: Vec<(usize, Key)> = Vec::new();
    // Each prefix ends in `-` or `_`, or starts with `A`; what is private starts with `-`.
    for at in memchr::memchr3_iter(b'-', b'_', b'A', bytes) {
        for (kind, (prefix, least, what)) in KEYS.iter().enumerate() {
            let start = if bytes[at] == b'A' { Some(at) } else { (at + 1).checked_sub(prefix.len()) };
            if let Some(start) = start.filter(|&start| bytes[start..].starts_with(prefix.as_bytes()))
                && let Some(end) = find_key_end(text, start, prefix, *least)
            {
                found.push((kind, Key { start, end, what }));
            }
        }
        if bytes[at..].starts_with(PRIVATE.as_bytes()) {
            let line = text[at..].lines().next().unwrap_or_default();
            if line.ends_with("PRIVATE KEY-----") {
                found.push((KEYS.len(), Key { start: at, end: at + line.len(), what: "a private key" }));
            }
        }
    }
    found.sort_by_key(|(kind, key)| (*kind, key.start));
    found.into_iter().map(|(_, key)| key).collect()
}

/// Where a key that starts here ends, if it is one.
fn find_key_end(text: &str, start: usize, prefix: &str, least: usize) -> Option<usize> {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    let before = start.checked_sub(1).map(|at| text.as_bytes()[at]);
    if before.is_some_and(word) {
        return None;
    }
    let body = &text.as_bytes()[start + prefix.len()..];
    let length = body.iter().take_while(|&&byte| word(byte)).count();
    let body = &body[..length];
    let digits = body.iter().filter(|byte| byte.is_ascii_digit()).count();
    let letters = body.iter().filter(|byte| byte.is_ascii_alphabetic()).count();
    let kinds: std::collections::BTreeSet<u8> = body.iter().copied().collect();
    // Words joined by dashes have few digits; fillers repeat few characters.
    let drawn = digits >= 2 && letters >= 2 && kinds.len() >= 8;
    (length >= least && drawn).then_some(start + prefix.len() + length)
}

fn report_key(file: crate::source::FileId, start: usize, end: usize, what: &str, diagnostics: &mut Diagnostics) {
    let byte = |at: usize| u32::try_from(at).expect("files are under 4 GiB");
    diagnostics.push(
        Diagnostic::new(Code::SecretInSource, format!("this looks like {what}"))
            .label(Span::new(file, byte(start), byte(end)), "a secret in the source")
            .help("take it back where it was issued, and read it from the environment: `secret NAME env=VARIABLE`"),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> usize {
        find_keys(text).len()
    }

    #[test]
    fn keys_are_found_and_examples_are_not() {
        // Put together here, so that no scanner of ours or others finds a key in this file.
        let body = "4f9Qz81LmN0pRs7TuVw2Xy3Zab5Cd6Ef8Gh9";
        assert_eq!(found(&format!("env K=\"{}{body}\"", "sk-")), 1);
        assert_eq!(found(&format!("{}{body}", "ghp_")), 1);
        assert_eq!(found(&format!("-----BEGIN {}-----", "RSA PRIVATE KEY")), 1);
        assert_eq!(found("sk-your-key-goes-here-please"), 0);
        assert_eq!(found("task-4f9Qz81LmN0pRs7TuVw2Xy3Zab"), 0);
        assert_eq!(found("AKIAEXAMPLEEXAMPLEEXAMPLE"), 0);
        assert_eq!(found("sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxx"), 0);
    }
}
