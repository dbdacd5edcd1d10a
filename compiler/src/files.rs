//! How the compiler asks for files: it does no I/O, whoever drives it does.

use std::sync::Arc;

/// The files of a workspace. Paths are relative to it, with `/`, without `.` and `..`.
pub trait Files {
    /// The text of the file at `path`.
    ///
    /// # Errors
    /// Says why there is none.
    fn read(&self, path: &str) -> Result<Arc<str>, FileError>;

    /// The names of what lies in the folder at `path` (empty for the workspace itself), for "did you mean"; folders end
    /// in `/`. Empty when it cannot be read.
    fn list(&self, path: &str) -> Vec<String>;
}

/// Why a file has no text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileError {
    /// There is none.
    Missing,
    /// There is one whose name differs in case only.
    Case {
        /// The name it has.
        actual: String,
    },
    /// It lies outside the workspace, perhaps behind a symbolic link.
    Outside,
    /// It is a folder.
    Folder,
    /// It has more than the 16 MiB of DESIGN "Limits".
    TooLarge {
        /// Its length in bytes.
        bytes: u64,
    },
    /// It is not UTF-8.
    NotText {
        /// The first byte that is wrong.
        offset: usize,
        /// What it seems to be instead, such as `UTF-16`.
        looks_like: Option<&'static str>,
    },
    /// The system refuses it.
    Refused {
        /// In its words.
        message: String,
    },
}
