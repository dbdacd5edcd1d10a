//! What changed in a Git checkout between two moments, changes that are not committed and new files included.
//!
//! In: a folder of a checkout. Out: the difference of two trees, written to a store beside the repository's own with an
//! index beside its own: neither the index of the people who work there nor their repository is touched. Costs about a
//! `git status` each time.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use super::diff::{Changes, LARGEST_FILE};
use crate::executor::{Cancel, bytes};
use crate::home::create_private;

/// How long Git may take for one answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// The bytes of an answer that are read: the paths that changed, or the diff of all of them.
const ANSWER: usize = 16 << 20;

/// The files that one look takes in at most, and their bytes together.
const FILES: usize = 5_000;
const BYTES: u64 = 64 << 20;

/// A checkout as it was.
#[derive(Debug)]
pub(super) struct Git {
    folder: PathBuf,
    environment: Vec<(OsString, OsString)>,
    /// The index and the objects of ours.
    scratch: TempDir,
    tree: String,
    omitted: Vec<String>,
    /// What lies in here is not looked at.
    apart: PathBuf,
}

impl Git {
    /// The checkout that `folder` is part of, as it is now; none where there is none, or no Git that could say.
    /// `scratch` is where ours may lie meanwhile, and `apart` is not looked at.
    pub(super) fn look(
        folder: &Path,
        environment: &[(OsString, OsString)],
        (scratch, apart): (&Path, &Path),
    ) -> Option<Git> {
        // Without a repository above nobody need be asked.
        folder.ancestors().find(|above| above.join(".git").exists())?;
        create_private(scratch, true).ok()?;
        let scratch = tempfile::tempdir_in(scratch).ok()?;
        let mut git = Git {
            folder: folder.to_owned(),
            environment: environment.to_vec(),
            scratch,
            tree: String::new(),
            omitted: Vec::new(),
            apart: apart.to_owned(),
        };
        let words = ["rev-parse", "--is-inside-work-tree", "--git-path", "index", "--git-path", "objects"];
        let places = git.ask(&words, &[]).ok()?;
        let places = String::from_utf8_lossy(&places).into_owned();
        let mut places = places.lines();
        let (inside, index, objects) = (places.next()?, places.next()?, places.next()?);
        if inside != "true" {
            return None;
        }
        let own = git.scratch.path().join("objects");
        fs::create_dir(&own).ok()?;
        let index_path = git.scratch.path().join("index");
        if folder.join(index).exists() {
            fs::copy(folder.join(index), &index_path).ok()?;
        }
        let set = |name: &str, value: OsString| (OsString::from(name), value);
        git.environment.extend([
            set("GIT_INDEX_FILE", index_path.into()),
            set("GIT_OBJECT_DIRECTORY", own.into()),
            set("GIT_ALTERNATE_OBJECT_DIRECTORIES", folder.join(objects).canonicalize().ok()?.into()),
        ]);
        git.tree = git.write().ok()?;
        Some(git)
    }

    /// What has changed since.
    ///
    /// # Errors
    /// Git does not say.
    pub(super) fn changes(&mut self) -> Result<Changes, String> {
        let after = self.write()?;
        let mut changes = Changes { omitted: std::mem::take(&mut self.omitted), ..Changes::default() };
        changes.omitted.sort_unstable();
        changes.omitted.dedup();
        if after == self.tree {
            return Ok(changes);
        }
        let words = ["diff-tree", "-r", "-p", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames"];
        let diff = self.ask(&[&words[..], &[self.tree.as_str(), after.as_str(), "--", "."]].concat(), &[])?;
        let diff = String::from_utf8_lossy(&diff);
        let mut from = 0;
        let starts: Vec<usize> = diff.match_indices("\ndiff --git ").map(|(at, _)| at + 1).collect();
        for end in starts.into_iter().chain([diff.len()]) {
            if end > from {
                changes.push(&diff[from..end]);
            }
            from = end;
        }
        Ok(changes)
    }

    /// Takes what has changed into our index, and writes that as a tree.
    fn write(&mut self) -> Result<String, String> {
        let words = ["status", "--porcelain=v1", "-z", "-uall", "--no-renames", "--ignore-submodules=all", "--", "."];
        let status = self.ask(&words, &[])?;
        let changed = self.changed(&status);
        if !changed.is_empty() {
            // Paths of `status` count from the top of the checkout, those of `update-index` from where it runs.
            let top = self.ask(&["rev-parse", "--show-toplevel"], &[])?;
            let top = PathBuf::from(os(top.strip_suffix(b"\n").unwrap_or(&top)));
            let list = self.admitted(&top, &changed);
            let folder = std::mem::replace(&mut self.folder, top);
            let taken = self.ask(&["update-index", "-z", "--add", "--remove", "--stdin"], &list);
            self.folder = folder;
            taken?;
        }
        let tree = self.ask(&["write-tree"], &[])?;
        Ok(String::from_utf8_lossy(&tree).trim().to_owned())
    }

    /// The paths that differ from our index.
    fn changed<'s>(&mut self, status: &'s [u8]) -> Vec<&'s [u8]> {
        let entries = status.split(|&byte| byte == 0).filter(|entry| entry.len() > 3 && entry[1] != b' ');
        let mut changed: Vec<&[u8]> = entries.map(|entry| &entry[3..]).collect();
        if status.len() >= ANSWER {
            changed.pop();
            self.omitted.push("the changes of more files than can be listed".to_owned());
        }
        changed
    }

    /// Those of them that are looked at, each with a NUL behind it.
    fn admitted(&mut self, top: &Path, changed: &[&[u8]]) -> Vec<u8> {
        let (mut list, mut count, mut sum, mut large) = (Vec::new(), 0, 0, 0);
        for path in changed {
            // A folder with a repository of its own, or what the run writes.
            if path.ends_with(b"/") || top.join(os(path)).starts_with(&self.apart) {
                continue;
            }
            let size = fs::symlink_metadata(top.join(os(path))).map_or(0, |metadata| metadata.len());
            if size > LARGEST_FILE {
                large += 1;
                continue;
            }
            if count == FILES || sum + size > BYTES {
                self.omitted.push(format!("{} files: there are too many to compare", changed.len() - count));
                break;
            }
            (count, sum) = (count + 1, sum + size);
            list.extend_from_slice(path);
            list.push(0);
        }
        if large > 0 {
            self.omitted.push(format!("{large} files of more than {} KiB", LARGEST_FILE >> 10));
        }
        list
    }

    fn ask(&self, words: &[&str], stdin: &[u8]) -> Result<Vec<u8>, String> {
        // Whatever the repository says, Git starts nothing for it and takes no locks.
        let first = ["git", "--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"];
        let words = first.iter().chain(&["-c", "core.quotePath=false"]).chain(words);
        let argv: Vec<OsString> = words.map(OsString::from).collect();
        bytes(
            &argv,
            &self.environment,
            (&self.folder, Some(stdin).filter(|bytes| !bytes.is_empty())),
            (PATIENCE, ANSWER),
            &Cancel::default(),
        )
    }
}

fn os(path: &[u8]) -> OsString {
    std::os::unix::ffi::OsStringExt::from_vec(path.to_vec())
}
