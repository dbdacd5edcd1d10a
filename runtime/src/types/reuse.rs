//! Reuse: the result of a step that has finished, and the digests of everything that it depends on.
//!
//! In: the named parts of a step's input. Out: a [`Key`], equal exactly where all parts are, and the first part that
//! differs where they are not. Invariant: no part is compared by anything but the digest of all of its bytes.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::digest::{digest_bytes, format_hex};

/// The version of the list of parts: another one makes every key another one.
const FORMAT: &str = "swarmc reuse 1\n";

/// Whose results a run may take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReuseFrom {
    /// Those of every run that the cache knows; of several equal ones, that of the last run of the workflow.
    Any,
    /// Those of the last run of the workflow that left any.
    Last,
    /// Those of this run.
    Run(String),
}

/// What a run takes from earlier ones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reuse {
    /// Whose results.
    pub from: ReuseFrom,
    /// The steps that run in any case, by the names that they have in the pipeline that runs (`--from`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub anew: Vec<String>,
}

impl Reuse {
    /// Every result.
    pub const ANY: Reuse = Reuse { from: ReuseFrom::Any, anew: Vec::new() };
}

/// A part of what a step depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Part {
    /// Its name, as people read it: `prompt`, `file src/a.rs`.
    pub name: String,
    /// The digest of its bytes.
    pub digest: String,
}

/// Everything that a step depends on, and the digest of all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub parts: Vec<Part>,
    pub digest: String,
}

impl Key {
    /// The key of these parts, in this order.
    pub(crate) fn new(parts: Vec<Part>) -> Key {
        let mut hasher = Sha256::new();
        hasher.update(FORMAT);
        for part in &parts {
            // The length keeps a name from running into its digest.
            hasher.update(format!("{} {} {}\n", part.name.len(), part.name, part.digest));
        }
        Key { digest: format_hex(&hasher.finalize()), parts }
    }

    /// What differs from an earlier key, in words; none where nothing does.
    pub(crate) fn describe_difference(&self, earlier: &[Part]) -> Option<String> {
        let find = |parts: &[Part], name: &str| parts.iter().find(|part| part.name == name).cloned();
        let changed = self.parts.iter().find(|part| find(earlier, &part.name).as_ref() != Some(*part));
        let gone = earlier.iter().find(|part| find(&self.parts, &part.name).is_none());
        let describe = |name: &str, how: &str| match name.strip_prefix("file ") {
            Some(path) => format!("the file `{path}` {how}"),
            None => format!("its {name} {how}"),
        };
        match (changed, gone) {
            (Some(part), _) if find(earlier, &part.name).is_some() => Some(describe(&part.name, "changed")),
            (Some(part), _) => Some(describe(&part.name, "is new")),
            (None, Some(part)) => Some(describe(&part.name, "is gone")),
            (None, None) => None,
        }
    }
}

/// Collects the parts of a key.
#[derive(Debug, Default)]
pub(crate) struct Parts(Vec<Part>);

impl Parts {
    /// Adds a part; an empty one is as none.
    pub(crate) fn add(&mut self, name: &str, bytes: impl AsRef<[u8]>) {
        if !bytes.as_ref().is_empty() {
            self.add_digest(name, digest_bytes(bytes.as_ref()));
        }
    }

    /// Adds a part as JSON.
    pub(crate) fn add_json(&mut self, name: &str, value: &impl Serialize) {
        self.add(name, serde_json::to_vec(value).expect("data of a plan is JSON"));
    }

    /// Adds a part whose digest is known.
    pub(crate) fn add_digest(&mut self, name: &str, digest: String) {
        self.0.push(Part { name: name.to_owned(), digest });
    }

    pub(crate) fn into_key(self) -> Key {
        Key::new(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(parts: &[(&str, &str)]) -> Key {
        let mut collected = Parts::default();
        parts.iter().for_each(|(name, text)| collected.add(name, text));
        collected.into_key()
    }

    #[test]
    fn a_key_depends_on_every_name_and_every_byte() {
        let one = key(&[("prompt", "a"), ("model", "b")]);
        for other in [
            &[("prompt", "a"), ("model", "c")][..],
            &[("prompt", "ab"), ("model", "b")],
            &[("model", "b"), ("prompt", "a")],
            &[("prompt", "a"), ("system", "b")],
            &[("prompt", "a")],
        ] {
            assert_ne!(one.digest, key(other).digest, "{other:?}");
        }
        assert_eq!(one, key(&[("prompt", "a"), ("tools", ""), ("model", "b")]));
    }

    #[test]
    fn a_difference_names_the_part() {
        let earlier = key(&[("prompt", "a"), ("file src/a", "1"), ("model", "m")]);
        let check = |now: &[(&str, &str)], expected: Option<&str>| {
            assert_eq!(key(now).describe_difference(&earlier.parts).as_deref(), expected, "{now:?}");
        };
        check(&[("prompt", "a"), ("file src/a", "1"), ("model", "m")], None);
        check(&[("prompt", "b"), ("file src/a", "2"), ("model", "m")], Some("its prompt changed"));
        check(&[("prompt", "a"), ("file src/a", "2"), ("model", "m")], Some("the file `src/a` changed"));
        check(&[("prompt", "a"), ("file src/a", "1"), ("file b", "1"), ("model", "m")], Some("the file `b` is new"));
        check(&[("prompt", "a"), ("model", "m")], Some("the file `src/a` is gone"));
        check(&[("prompt", "a"), ("file src/a", "1")], Some("its model is gone"));
    }
}
