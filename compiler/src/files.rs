//! The trait through which the compiler reads files: the compiler does no I/O, its caller does.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

#[cfg(doc)]
use crate::source::FileId;
use crate::syntax::Tree;

/// The files of a workspace. Paths are relative to it, with `/`, without `.` and `..`.
pub trait Files {
    /// The text of the file at `path`.
    ///
    /// # Errors
    /// Says why there is none.
    fn read(&self, path: &str) -> Result<Arc<str>, FileError>;

    /// What lies at `path` (empty for the workspace itself), without reading it.
    ///
    /// # Errors
    /// Says why nothing there could be used at run time.
    fn find(&self, path: &str) -> Result<Entry, FileError>;

    /// Whether the file at `path` may be started as a program.
    ///
    /// # Errors
    /// Says why there is no file.
    fn is_executable(&self, path: &str) -> Result<bool, FileError> {
        match self.find(path)? {
            Entry::File => Ok(true),
            Entry::Folder => Err(FileError::Folder),
        }
    }

    /// The names of what lies in the folder at `path` (empty for the workspace itself), for "did you mean"; folders end
    /// in `/`. Empty when it cannot be read.
    fn list(&self, path: &str) -> Vec<String>;

    /// The tree of the text that [`Files::read`] gives for `path`, if the caller has parsed it already: parsed as
    /// [`FileId`] 0, the id of the spec that the compiler compiles.
    fn tree(&self, _path: &str) -> Option<Arc<Tree>> {
        None
    }
}

/// The kind of the entry at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A regular file of at most 16 MiB, text or not.
    File,
    /// A folder.
    Folder,
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

/// Files in memory, texts by path: for tests, and for an editor that holds texts of its own.
impl Files for BTreeMap<String, String> {
    fn read(&self, path: &str) -> Result<Arc<str>, FileError> {
        if let Some(text) = self.get(path) {
            return Ok(text.as_str().into());
        }
        let folder = format!("{path}/");
        if self.keys().any(|file| file.starts_with(&folder)) {
            return Err(FileError::Folder);
        }
        match self.keys().find(|file| file.eq_ignore_ascii_case(path)) {
            Some(actual) => Err(FileError::Case { actual: actual.rsplit('/').next().unwrap_or(actual).to_owned() }),
            None => Err(FileError::Missing),
        }
    }

    fn find(&self, path: &str) -> Result<Entry, FileError> {
        match self.read(path) {
            Ok(_) => Ok(Entry::File),
            Err(FileError::Folder) => Ok(Entry::Folder),
            Err(_) if path.is_empty() => Ok(Entry::Folder),
            Err(error) => Err(error),
        }
    }

    fn list(&self, path: &str) -> Vec<String> {
        let folder = if path.is_empty() { String::new() } else { format!("{path}/") };
        let names: BTreeSet<String> = self
            .keys()
            .filter_map(|file| file.strip_prefix(&folder))
            .map(|rest| rest.split_inclusive('/').next().unwrap_or(rest).to_owned())
            .collect();
        names.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_in_memory_answer_as_those_on_disk_do() {
        let files: BTreeMap<String, String> = [("spec.kdl", "pipeline p"), ("prompts/plan.md", "Plan")]
            .map(|(path, text)| (path.into(), text.into()))
            .into();
        assert_eq!(files.read("prompts/plan.md").as_deref(), Ok("Plan"));
        assert_eq!(files.read("prompts"), Err(FileError::Folder));
        assert_eq!(files.find("prompts/plan.md"), Ok(Entry::File));
        assert_eq!([files.find("prompts"), files.find("")], [Ok(Entry::Folder), Ok(Entry::Folder)]);
        assert_eq!(files.find("prompt"), Err(FileError::Missing));
        assert_eq!(files.read("prompts/Plan.md"), Err(FileError::Case { actual: "plan.md".into() }));
        assert_eq!(files.read("prompts/code.md"), Err(FileError::Missing));
        assert_eq!(files.list(""), ["prompts/", "spec.kdl"]);
        assert_eq!(files.list("prompts"), ["plan.md"]);
    }
}
