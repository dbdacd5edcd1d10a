//! The files of a workspace that patterns match.
//!
//! In: patterns from the workspace. Out: paths, sorted. Invariant: none lies outside of the workspace; links are not
//! followed, what ignore files name is left out, and so are `.git`, `node_modules` and `target`, unless a pattern
//! names them.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fast_glob::glob_match;

use crate::io::confine::Folder;
use crate::io::file_digests::base_folder;
use crate::io::ignored::build_walk;

/// The files that are looked at for one rule.
const LOOKED_AT: usize = 500_000;

/// Folders of what others made.
const ASIDE: &[&str] = &[".git", "node_modules", "target"];

/// The bytes of a file that say whether it is text.
const HEAD: u64 = 1024;

/// A workspace, ready to be walked.
#[derive(Debug)]
pub(crate) struct Walk {
    root: PathBuf,
    folder: Arc<Folder>,
}

/// What patterns match.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// The text files, in the order of their paths, relative to the workspace.
    pub paths: Vec<String>,
    /// How many more match.
    pub more: usize,
    /// There was more in the workspace than was looked at.
    pub is_cut: bool,
}

impl Walk {
    /// Of this workspace.
    ///
    /// # Errors
    /// It is not there.
    pub(crate) fn new(workspace: &Path) -> Result<Walk, String> {
        let root = workspace.canonicalize().map_err(|error| format!("cannot read the workspace: {error}"))?;
        let folder = Arc::new(Folder::open(&root)?);
        Ok(Walk { root, folder })
    }

    /// The text files that any of the patterns matches, `max` at most.
    pub(crate) fn find(&self, globs: &[String], max: usize) -> Found {
        self.find_among(globs, max, LOOKED_AT)
    }

    fn find_among(&self, globs: &[String], max: usize, most: usize) -> Found {
        let globs: Vec<(&str, PathBuf)> =
            globs.iter().filter_map(|glob| Some((glob.as_str(), base_folder(glob)?))).collect();
        let bases: Vec<PathBuf> = globs.iter().map(|(_, base)| base.clone()).collect();
        let root = self.root.clone();
        let walk = build_walk(&self.root, &self.folder, move |entry| {
            let Ok(path) = entry.path().strip_prefix(&root) else { return false };
            // Folders above a base are on the way to it, and what is below may match.
            let on_the_way = |base: &&PathBuf| base.starts_with(path) || path.starts_with(base);
            let aside = ASIDE.iter().any(|name| entry.file_name() == *name);
            bases.iter().filter(on_the_way).any(|base| !aside || base.starts_with(path))
        });
        let mut paths: Vec<String> = Vec::new();
        let mut looked_at = 0;
        for entry in walk.build() {
            looked_at += 1;
            if looked_at > most {
                break;
            }
            let Ok(entry) = entry else { continue };
            if !entry.file_type().is_some_and(|kind| kind.is_file()) {
                continue;
            }
            // A pack holds text: a path that is no UTF-8 cannot be named in it.
            let path = entry.path().strip_prefix(&self.root).ok().and_then(Path::to_str);
            let Some(path) = path else { continue };
            if globs.iter().any(|(glob, _)| glob_match(glob, path)) {
                paths.push(path.to_owned());
            }
        }
        // Before the list is cut: a folder gives its files in any order.
        paths.sort_unstable();
        let mut found = Found { is_cut: looked_at > most, ..Found::default() };
        for path in paths {
            match found.paths.len() < max {
                true if self.is_text(&path) => found.paths.push(path),
                true => {}
                false => found.more += 1,
            }
        }
        found
    }

    /// Whether a file is no binary.
    fn is_text(&self, path: &str) -> bool {
        let mut head = Vec::new();
        let Ok((file, _)) = self.folder.file(path) else { return false };
        file.take(HEAD).read_to_end(&mut head).is_ok() && !head.contains(&0)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    fn write(root: &Path, path: &str, bytes: &[u8]) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, bytes).expect("a file");
    }

    #[test]
    fn globs_stay_in_the_workspace_links_included() {
        let outside = tempfile::tempdir().expect("a folder");
        write(outside.path(), "secret.rs", b"x");
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        for path in ["src/b.rs", "src/a.rs", "src/deep/c.rs", "target/d.rs", "lib/e.rs", "src/made/f.rs", ".hid/g.rs"] {
            write(root, path, b"fn main() {}");
        }
        write(root, "src/picture.rs", b"\0\x01");
        write(root, ".gitignore", b"made/\n");
        let (kind, mode) = (FileType::Fifo, Mode::from_raw_mode(0o600));
        mknodat(CWD, root.join("src/.gitignore"), kind, mode, 0).expect("a pipe");
        symlink(outside.path(), root.join("src/link")).expect("a link");
        symlink(outside.path().join("secret.rs"), root.join("src/linked.rs")).expect("a link");
        let check = |globs: &[&str], max, expected: &[&str], more| {
            let globs: Vec<String> = globs.iter().map(|&glob| glob.to_owned()).collect();
            let found = Walk::new(root).expect("a workspace").find(&globs, max);
            assert_eq!((found.paths.as_slice(), found.more), (&expected.map(str::to_owned)[..], more), "{globs:?}");
        };
        trait Map {
            fn map(&self, f: fn(&str) -> String) -> Vec<String>;
        }
        impl Map for [&str] {
            fn map(&self, f: fn(&str) -> String) -> Vec<String> {
                self.iter().map(|path| f(path)).collect()
            }
        }
        check(&["src/**/*.rs"], 9, &["src/a.rs", "src/b.rs", "src/deep/c.rs"], 0);
        check(&["src/**/*.rs"], 1, &["src/a.rs"], 3);
        check(&["**/*.rs"], 9, &[".hid/g.rs", "lib/e.rs", "src/a.rs", "src/b.rs", "src/deep/c.rs"], 0);
        check(&["target/*.rs", "lib/e.rs"], 9, &["lib/e.rs", "target/d.rs"], 0);
        let cut = |most| Walk::new(root).expect("a workspace").find_among(&["**/*.rs".to_owned()], 9, most).is_cut;
        assert!(cut(3) && !cut(100));
        check(&["../*.rs", "/etc/passwd", "src/../../*"], 9, &[], 0);
    }
}
