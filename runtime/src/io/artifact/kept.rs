//! How a tree was before a turn, kept on disk for a runner that comes back to the turn.
//!
//! In: a [`Watch`]. Out: a folder with the versions that the watch holds, and the copy of the index that they are compared
//! with; and out of that the same watch again.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::diff::{Before, Watch, Watches};
use super::git::Git;
use super::snapshot::Snapshot;
use super::version::Version;
use crate::io::home::create_private;

/// The files in the folder.
const VERSIONS: &str = "versions.json";
const INDEX: &str = "index";

/// What is in the first of them.
#[derive(Serialize, Deserialize)]
enum SavedTree {
    Git(KeptGit),
    Snapshot(Snapshot),
}

/// What a look at a checkout holds beside its index.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct KeptGit {
    /// The files that were not as in the index, by path; none: there was none.
    pub before: BTreeMap<String, Option<Version>>,
    /// Those of which it is not known how they were.
    pub unknown: BTreeSet<String>,
    pub omitted: Vec<String>,
}

impl Watches {
    /// The watch of a turn that a former runner began, and [`Watch::keep`] kept in the folder `kept`; none where there is
    /// none.
    pub(crate) fn resume_watch(
        &self,
        label: &str,
        folder: &Path,
        environment: &[(OsString, OsString)],
        kept: &Path,
    ) -> Option<Watch> {
        let before = serde_json::from_slice(&std::fs::read(kept.join(VERSIONS)).ok()?).ok()?;
        self.watch_since(label, folder, environment, |folder, apart| match before {
            SavedTree::Snapshot(snapshot) => Some(Before::Snapshot(snapshot)),
            SavedTree::Git(git) => {
                let former = (git, kept.join(INDEX));
                Some(Before::Git(Box::new(Git::reopen_checkout(folder, environment, (&self.scratch, apart), former)?)))
            }
        })
    }
}

impl Watch {
    /// Keeps in the folder `kept` how the tree was.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn keep(&self, kept: &Path) -> io::Result<()> {
        create_private(kept, true)?;
        let versions = match &self.before {
            Before::Git(git) => serde_json::to_vec(&SavedTree::Git(git.keep(&kept.join(INDEX))?))?,
            Before::Snapshot(snapshot) => serde_json::to_vec(&SavedTree::Snapshot(snapshot.clone()))?,
        };
        std::fs::write(kept.join(VERSIONS), versions)
    }
}

/// Bytes in a file of JSON.
pub(super) mod base64_bytes {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(in super::super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(bytes))
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        STANDARD.decode(String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}
