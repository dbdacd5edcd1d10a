//! Entries of the cache: what a finished step depended on, and what came of it, in a form that shows every damage.
//!
//! In: an [`Entry`]. Out: a line `{"digest":"SHA-256","entry":{…}}`, and back. Invariant: a line of which a byte is
//! missing or another one is no entry.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::types::digest::digest_bytes;
use crate::types::event::{Outcome, StepId};
use crate::types::reuse::{Key, Part};

/// What stands before the digest, between it and the entry, and behind that.
const FRAME: [&str; 3] = ["{\"digest\":\"", "\",\"entry\":", "}"];

/// The hexadecimal digits of a digest.
const DIGITS: usize = 64;

/// A finished step, as the cache holds it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// The digest of the parts.
    pub key: String,
    /// The run that made the result.
    pub run: String,
    /// The step.
    pub step: StepId,
    /// Its attempt.
    pub attempt: u32,
    pub parts: Vec<Part>,
    /// How the attempt ended; a long text of it lies in the cache, by digest.
    pub outcome: Outcome,
    /// The files that it left, of those that it is declared to write.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<WrittenFile>,
}

/// A file that a step left.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct WrittenFile {
    /// From the workspace.
    pub path: String,
    /// The SHA-256 of its bytes.
    pub digest: String,
    /// Its length.
    pub bytes: u64,
    /// Whether it can be executed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub executable: bool,
}

/// Why a step that finished left nothing that a later run could take.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Unfit {
    /// The step.
    pub step: StepId,
    /// Why, in words that follow "its earlier result cannot be reused: ".
    pub reason: Arc<str>,
}

impl Entry {
    /// As a line, without its newline.
    pub(crate) fn format_line(&self) -> String {
        frame_line(&serde_json::to_string(self).expect("an entry has string keys only"))
    }

    /// The entry of a line.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn parse_line(line: &str) -> Result<Entry, String> {
        let entry: Entry =
            serde_json::from_str(unframe_line(line)?).map_err(|error| format!("it is no entry: {error}"))?;
        match Key::new(entry.parts.clone()).digest == entry.key {
            true => Ok(entry),
            false => Err("its key is not that of its parts".to_owned()),
        }
    }
}

/// The text of an entry with its digest.
pub(super) fn frame_line(entry: &str) -> String {
    let [before, between, behind] = FRAME;
    format!("{before}{}{between}{entry}{behind}", digest_bytes(entry.as_bytes()))
}

/// The text of the entry in a line.
///
/// # Errors
/// What is wrong with the line.
pub(super) fn unframe_line(line: &str) -> Result<&str, String> {
    let [before, between, behind] = FRAME;
    let rest = line.strip_prefix(before).ok_or("it does not begin as an entry does")?;
    let (digest, rest) = rest.split_at_checked(DIGITS).ok_or("it is cut off")?;
    let entry = rest.strip_prefix(between).and_then(|rest| rest.strip_suffix(behind)).ok_or("it is cut off")?;
    match digest_bytes(entry.as_bytes()) == digest {
        true => Ok(entry),
        false => Err("its digest is that of another text".to_owned()),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::types::event::Content;
    use crate::types::reuse::Parts;

    pub(crate) fn sample(prompt: &str) -> Entry {
        let mut parts = Parts::default();
        parts.add("prompt", prompt);
        let key = parts.into_key();
        let output = Some(Content::Text(format!("answer to {prompt}")));
        Entry {
            key: key.digest,
            run: "r".to_owned(),
            step: StepId::new("a", 1, 1),
            attempt: 1,
            parts: key.parts,
            outcome: Outcome { output, ..Outcome::default() },
            writes: Vec::new(),
        }
    }

    #[test]
    fn every_damage_of_a_line_shows() {
        let line = sample("x").format_line();
        assert_eq!(Entry::parse_line(&line), Ok(sample("x")));
        for end in 0..line.len() {
            assert!(Entry::parse_line(&line[..end]).is_err(), "cut at {end}");
        }
        for at in 0..line.len() {
            let mut bytes = line.clone().into_bytes();
            bytes[at] ^= 1;
            let damaged = String::from_utf8(bytes).expect("ASCII");
            assert!(Entry::parse_line(&damaged).is_err(), "byte {at}");
        }
    }

    #[test]
    fn an_entry_under_the_key_of_another_is_none() {
        let forged = Entry { key: sample("y").key, ..sample("x") }.format_line();
        assert_eq!(Entry::parse_line(&forged), Err("its key is not that of its parts".to_owned()));
    }
}
