//! The digests of the files of a workspace that patterns match.
//!
//! In: patterns from the workspace. Out: each file with its digest, in the order of their paths. Every file counts,
//! whatever ignore files say of it, except below a folder `.git` that no pattern names; links to folders are not
//! followed. Invariant: a digest that was computed before is used again only for a file that cannot have changed since.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use fast_glob::glob_match;

use crate::io::file_stamps::{Stamp, is_settled, stamp_of};
use crate::types::digest::digest_bytes;

/// What makes a path a pattern.
const SIGNS: [char; 5] = ['*', '?', '[', '{', '!'];

/// The files and folders that are looked at for one step.
const MOST: usize = 200_000;

/// A file as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileDigest {
    /// The SHA-256 of its bytes; of a link also of where it leads.
    pub digest: String,
    /// Its length.
    pub bytes: u64,
    /// Whether it can be executed.
    pub executable: bool,
}

/// Computes digests, and remembers those of files that do not change.
#[derive(Debug, Default)]
pub(crate) struct FileDigests {
    known: RefCell<HashMap<PathBuf, (Stamp, FileDigest)>>,
}

impl FileDigests {
    /// The files below `root` that any of `globs` matches, by path. A folder stands for all that lies in it.
    ///
    /// # Errors
    /// Something cannot be read, or there is too much: why.
    pub(crate) fn match_files(&self, root: &Path, globs: &[String]) -> Result<BTreeMap<String, FileDigest>, String> {
        let mut found = BTreeMap::new();
        let mut looked_at = 0;
        for glob in globs {
            let glob = glob.strip_prefix("./").unwrap_or(glob);
            let base = base_folder(glob).ok_or_else(|| format!("`{glob}` leads out of the workspace"))?;
            let keeps_git = glob.split('/').any(|part| part == ".git");
            let is_plain = !glob.contains(SIGNS);
            let mut open = vec![base];
            while let Some(path) = open.pop() {
                looked_at += 1;
                if looked_at > MOST {
                    return Err(format!("`{glob}` matches more than {MOST} files and folders"));
                }
                let full = root.join(&path);
                let failed = |error: io::Error| format!("`{}` cannot be read: {error}", path.display());
                let meta = match fs::symlink_metadata(&full) {
                    Ok(meta) => meta,
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    // A part of the way to it is a file.
                    Err(error) if error.kind() == io::ErrorKind::NotADirectory => continue,
                    Err(error) => return Err(failed(error)),
                };
                if meta.is_dir() {
                    for entry in fs::read_dir(&full).map_err(failed)? {
                        let name = entry.map_err(failed)?.file_name();
                        if name != ".git" || keeps_git {
                            open.push(path.join(name));
                        }
                    }
                    continue;
                }
                let name = path.to_str().ok_or_else(|| format!("`{}` is no text", path.display()))?;
                if found.contains_key(name) || !(is_plain || glob_match(glob, name)) {
                    continue;
                }
                let digest = self.digest_file(&full, &meta).map_err(failed)?;
                found.insert(name.to_owned(), digest);
            }
        }
        Ok(found)
    }

    /// The digest of one file.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn digest_path(&self, path: &Path) -> io::Result<FileDigest> {
        self.digest_file(path, &fs::symlink_metadata(path)?)
    }

    fn digest_file(&self, path: &Path, meta: &Metadata) -> io::Result<FileDigest> {
        if meta.is_symlink() {
            let target = fs::read_link(path)?;
            let behind = match fs::metadata(path) {
                Ok(meta) if meta.is_file() => digest_bytes(&fs::read(path)?),
                // A link to a folder, or to nothing, says where it leads, and no more.
                _ => String::new(),
            };
            let digest = digest_bytes(format!("link {} {behind}", target.display()).as_bytes());
            return Ok(FileDigest { digest, bytes: 0, executable: false });
        }
        if !meta.is_file() {
            return Err(io::Error::other("it is neither a file nor a folder"));
        }
        let stamp = stamp_of(meta);
        if let Some((known, digest)) = self.known.borrow().get(path)
            && *known == stamp
        {
            return Ok(digest.clone());
        }
        let bytes = fs::read(path)?;
        let executable = meta.permissions().mode() & 0o111 != 0;
        let digest = FileDigest { digest: digest_bytes(&bytes), bytes: bytes.len() as u64, executable };
        if is_settled(meta.ctime()) {
            self.known.borrow_mut().insert(path.to_owned(), (stamp, digest.clone()));
        }
        Ok(digest)
    }
}

/// The folder, or the file, that everything lies in which a pattern can match; none where that is no part of the
/// workspace.
pub(crate) fn base_folder(glob: &str) -> Option<PathBuf> {
    let path = Path::new(glob);
    let plain = path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    let words = path.components().filter(|part| matches!(part, Component::Normal(_)));
    plain.then(|| {
        words.take_while(|part| !part.as_os_str().to_string_lossy().contains(SIGNS)).map(Component::as_os_str).collect()
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }

    #[test]
    fn every_file_that_a_pattern_matches_counts() {
        let root = tempfile::tempdir().expect("a folder");
        let root = root.path();
        for path in ["src/a.rs", "src/deep/b.rs", "src/c.md", ".git/config", "target/x.rs", ".gitignore"] {
            write(root, path, path);
        }
        fs::write(root.join(".gitignore"), "target\n").expect("a file");
        let digests = FileDigests::default();
        let check = |globs: &[&str], expected: &[&str]| {
            let globs: Vec<String> = globs.iter().map(|&glob| glob.to_owned()).collect();
            let found = digests.match_files(root, &globs).expect("they can be read");
            assert_eq!(found.keys().map(String::as_str).collect::<Vec<_>>(), expected, "{globs:?}");
        };
        check(&["src/**/*.rs"], &["src/a.rs", "src/deep/b.rs"]);
        check(&["src"], &["src/a.rs", "src/c.md", "src/deep/b.rs"]);
        check(&["./src/a.rs", "src/a.rs", "gone.rs", "src/a.rs/x"], &["src/a.rs"]);
        check(&["**/*.rs"], &["src/a.rs", "src/deep/b.rs", "target/x.rs"]);
        check(&[".git/**"], &[".git/config"]);
        assert_eq!(
            digests.match_files(root, &["../x".to_owned()]),
            Err("`../x` leads out of the workspace".to_owned())
        );
    }

    #[test]
    fn a_digest_follows_its_file() {
        let root = tempfile::tempdir().expect("a folder");
        let root = root.path();
        write(root, "a", "one");
        symlink("a", root.join("link")).expect("a link");
        let digests = FileDigests::default();
        let read = |name: &str| digests.digest_path(&root.join(name)).expect("it can be read").digest;
        let (one, link) = (read("a"), read("link"));
        assert_eq!((read("a"), read("link")), (one.clone(), link.clone()));
        // As long as before, at nearly the same time.
        write(root, "a", "two");
        assert!(read("a") != one && read("link") != link);
    }
}
