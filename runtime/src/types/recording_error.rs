//! Why a recording cannot be read.

use std::io;
use std::path::PathBuf;

/// Why a recording cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// There is no such folder.
    #[error("there is no folder `{path}` with a recording", path = path.display())]
    Nowhere {
        /// The folder.
        path: PathBuf,
    },
    /// Something else is in it.
    #[error("`{path}` is not a recording: `swarmc run … --record DIR` makes one", path = path.display())]
    NotOne {
        /// The folder.
        path: PathBuf,
    },
    /// It was written by a newer swarmc.
    #[error("the recording `{path}` has version {found}, but this swarmc reads up to {known}: update swarmc",
        path = path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u64,
        /// The newest that this build reads.
        known: u32,
    },
    /// Something is wrong in it.
    #[error("the recording is damaged: {path}:{line}: {problem}", path = path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        problem: String,
    },
    /// A file of it cannot be read.
    #[error("cannot read `{path}`: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}
