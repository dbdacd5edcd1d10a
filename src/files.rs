//! Specs and prompts on disk: finds the workspace of a spec, and reads files for the compiler.
//!
//! Nothing outside the workspace is ever read, symbolic links included; nothing that could block (a pipe, a device) is
//! opened; nothing larger than 16 MiB is held.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use swarmc_compiler::{Entry, FileError, Files};

/// The largest file that is read, in bytes (DESIGN "Limits").
pub(crate) const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// The names listed of one folder at most: they only serve "did you mean".
const MAX_NAMES: usize = 10_000;

/// A folder that specs and prompts belong to.
#[derive(Debug)]
pub(crate) struct Workspace {
    /// Absolute, with all links resolved.
    pub(crate) root: PathBuf,
}

impl Workspace {
    /// The workspace of a file, and the file's path in it: the nearest folder above it that holds `.git`, else the
    /// folder it lies in. The file need not exist.
    pub(crate) fn discover(file: &Path) -> miette::Result<(Workspace, String)> {
        let unreadable = |error| miette::miette!("cannot find `{}`: {error}", file.display());
        let absolute = std::path::absolute(file).map_err(unreadable)?;
        let Some(parent) = absolute.parent() else {
            return Err(miette::miette!("`{}` is not a file", file.display()));
        };
        // The deepest folder that exists counts; what is missing beneath it is for the compiler to report.
        let existing = parent.ancestors().find(|folder| folder.is_dir()).unwrap_or(parent);
        let folder = existing.canonicalize().map_err(unreadable)?;
        let rest = absolute.strip_prefix(existing).unwrap_or(&absolute);
        // `exists` and not `is_dir`: in a linked worktree and in a submodule `.git` is a file.
        let root = folder.ancestors().find(|folder| folder.join(".git").exists()).unwrap_or(&folder).to_owned();
        let path = folder.strip_prefix(&root).unwrap_or(&folder).join(rest);
        match path.to_str() {
            Some(path) => Ok((Workspace { root }, path.to_owned())),
            None => Err(miette::miette!("the path `{}` is not UTF-8", file.display())),
        }
    }

    /// A path of the workspace as a person in the current folder would type it.
    pub(crate) fn display_path(&self, path: &str) -> String {
        match std::env::current_dir() {
            // The compiler's own library is no file.
            _ if path.starts_with("std:") => path.to_owned(),
            Ok(current) => relative_path(&self.root.join(path), &current).display().to_string(),
            Err(_) => path.to_owned(),
        }
    }

    /// The name that differs from `path` in case only.
    fn other_case(&self, path: &str) -> Option<String> {
        let mut found = String::new();
        for wanted in path.split('/') {
            let names = self.list(&found);
            let same = |name: &&String| name.trim_end_matches('/') == wanted;
            let similar = |name: &&String| name.trim_end_matches('/').to_lowercase() == wanted.to_lowercase();
            // A folder may hold both spellings, and then the exact one leads on.
            let name = names.iter().find(same).or_else(|| names.iter().find(similar))?;
            if !found.is_empty() {
                found.push('/');
            }
            found.push_str(name.trim_end_matches('/'));
        }
        (found != path).then_some(found)
    }
}

impl Files for Workspace {
    fn read(&self, path: &str) -> Result<Arc<str>, FileError> {
        let (real, metadata) = self.resolve_path(path)?;
        match entry_kind(&metadata)? {
            Entry::File => decode_text(read_bounded(&real, metadata.len())?),
            Entry::Folder => Err(FileError::Folder),
        }
    }

    fn find(&self, path: &str) -> Result<Entry, FileError> {
        let (_, metadata) = self.resolve_path(path)?;
        match entry_kind(&metadata)? {
            Entry::File if metadata.len() > MAX_BYTES => Err(FileError::TooLarge { bytes: metadata.len() }),
            entry => Ok(entry),
        }
    }

    fn is_executable(&self, path: &str) -> Result<bool, FileError> {
        let (_, metadata) = self.resolve_path(path)?;
        match metadata.is_file() {
            true => Ok(metadata.permissions().mode() & 0o111 != 0),
            false => Err(FileError::Folder),
        }
    }

    fn list(&self, path: &str) -> Vec<String> {
        let Ok(folder) = self.root.join(path).canonicalize() else { return Vec::new() };
        if !folder.starts_with(&self.root) {
            return Vec::new();
        }
        let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
        let mut names: Vec<String> = entries
            .filter_map(Result::ok)
            .filter_map(|entry| {
                let name = entry.file_name().into_string().ok()?;
                let folder = entry.path().is_dir();
                Some(if folder { name + "/" } else { name })
            })
            .take(MAX_NAMES)
            .collect();
        // `--watch` compares two lists of a folder by binary search.
        names.sort();
        names
    }
}

impl Workspace {
    /// Where a path leads to, with all links resolved, and what is there.
    fn resolve_path(&self, path: &str) -> Result<(PathBuf, std::fs::Metadata), FileError> {
        let real = match self.root.join(path).canonicalize() {
            Ok(real) => real,
            Err(error) => return Err(self.missing_error(path, &error)),
        };
        let Ok(inside) = real.strip_prefix(&self.root) else { return Err(FileError::Outside) };
        // Where the file system ignores case, the name must be right all the same: elsewhere it would not be found.
        if cfg!(any(target_os = "macos", windows))
            && let Some(actual) = inside.to_str()
            && actual != path
            && actual.to_lowercase() == path.to_lowercase()
        {
            return Err(FileError::Case { actual: actual.to_owned() });
        }
        let metadata = real.metadata().map_err(io_error)?;
        Ok((real, metadata))
    }

    fn missing_error(&self, path: &str, error: &std::io::Error) -> FileError {
        match error.kind() {
            std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => match self.other_case(path) {
                Some(actual) => FileError::Case { actual },
                None => FileError::Missing,
            },
            _ => FileError::Refused { message: error.to_string() },
        }
    }
}

fn entry_kind(metadata: &std::fs::Metadata) -> Result<Entry, FileError> {
    if metadata.is_dir() {
        return Ok(Entry::Folder);
    }
    match metadata.is_file() {
        true => Ok(Entry::File),
        false => Err(FileError::Refused { message: "it is not a regular file".to_owned() }),
    }
}

/// Reads a file, but never more than the limit: its length may lie, or grow.
fn read_bounded(path: &Path, length: u64) -> Result<Vec<u8>, FileError> {
    if length > MAX_BYTES {
        return Err(FileError::TooLarge { bytes: length });
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(io_error)?;
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(io_error)?;
    match u64::try_from(bytes.len()) {
        Ok(length) if length <= MAX_BYTES => Ok(bytes),
        _ => Err(FileError::TooLarge { bytes: MAX_BYTES + 1 }),
    }
}

fn decode_text(bytes: Vec<u8>) -> Result<Arc<str>, FileError> {
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text.into()),
        Err(error) => {
            let offset = error.utf8_error().valid_up_to();
            Err(FileError::NotText { offset, looks_like: looks_like(error.as_bytes()) })
        }
    }
}

/// What bytes that are not UTF-8 seem to be.
fn looks_like(bytes: &[u8]) -> Option<&'static str> {
    // English text in UTF-16 has a NUL in every other byte.
    let nul_at = |parity: usize| {
        let sample = bytes.len().min(512);
        sample >= 4 && bytes[..sample].iter().skip(parity).step_by(2).filter(|&&byte| byte == 0).count() * 3 > sample
    };
    match bytes {
        // Ahead of UTF-16, whose mark begins one of these.
        [0xFF, 0xFE, 0, 0, ..] | [0, 0, 0xFE, 0xFF, ..] => Some("UTF-32"),
        [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] => Some("UTF-16"),
        [0x1F, 0x8B, ..] => Some("gzip"),
        [b'P', b'K', 3, 4, ..] => Some("a zip archive"),
        [0x7F, b'E', b'L', b'F', ..] => Some("a program"),
        _ if nul_at(0) || nul_at(1) => Some("UTF-16"),
        _ if !bytes.contains(&0) => Some("Latin-1 or Windows-1252"),
        _ => None,
    }
}

fn io_error(error: std::io::Error) -> FileError {
    FileError::Refused { message: error.to_string() }
}

/// `path` relative to `base`, both absolute. Where they share too little, the absolute path is simpler.
pub(crate) fn relative_path(path: &Path, base: &Path) -> PathBuf {
    let shared = path.components().zip(base.components()).take_while(|(a, b)| a == b).count();
    let up = base.components().count() - shared;
    // All absolute paths share the root, which is one component.
    if up > 3 || shared <= 1 {
        return path.to_owned();
    }
    let ups = std::iter::repeat_n(Component::ParentDir, up);
    let below: PathBuf = ups.chain(path.components().skip(shared)).collect();
    if below.as_os_str().is_empty() { PathBuf::from(".") } else { below }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace() -> (tempfile::TempDir, Workspace) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("prompts")).unwrap();
        std::fs::write(root.join("prompts/plan.md"), "plan").unwrap();
        (folder, Workspace { root })
    }

    #[test]
    fn a_file_is_read_and_its_folder_listed() {
        let (_folder, workspace) = workspace();
        assert_eq!(&*workspace.read("prompts/plan.md").unwrap(), "plan");
        assert_eq!(workspace.list(""), ["prompts/"]);
        assert_eq!(workspace.list("prompts"), ["plan.md"]);
        assert!(workspace.list("nothing").is_empty());
    }

    #[test]
    fn what_is_not_there_is_told_from_what_is_written_otherwise() {
        let (_folder, workspace) = workspace();
        assert_eq!(workspace.read("prompts/none.md"), Err(FileError::Missing));
        assert_eq!(workspace.read("Prompts/Plan.md"), Err(FileError::Case { actual: "prompts/plan.md".to_owned() }));
        assert_eq!(workspace.read("prompts/plan.md/x"), Err(FileError::Missing));
        assert_eq!(workspace.read("prompts"), Err(FileError::Folder));
    }

    #[test]
    fn links_that_leave_the_workspace_are_refused() {
        let (_folder, workspace) = workspace();
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("secret"), "secret").unwrap();
        std::os::unix::fs::symlink(outside.path().join("secret"), workspace.root.join("leak.md")).unwrap();
        std::os::unix::fs::symlink(outside.path(), workspace.root.join("out")).unwrap();
        std::os::unix::fs::symlink("prompts/plan.md", workspace.root.join("inside.md")).unwrap();
        assert_eq!(workspace.read("leak.md"), Err(FileError::Outside));
        assert_eq!(workspace.read("out/secret"), Err(FileError::Outside));
        assert!(workspace.list("out").is_empty());
        assert_eq!(&*workspace.read("inside.md").unwrap(), "plan");
    }

    #[test]
    fn a_program_may_be_started_where_its_mode_says_so() {
        let (_folder, workspace) = workspace();
        let program = workspace.root.join("agent.sh");
        std::fs::write(&program, "#!/bin/sh").unwrap();
        for (mode, may) in [(0o644, false), (0o755, true)] {
            std::fs::set_permissions(&program, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(workspace.is_executable("agent.sh"), Ok(may));
        }
        assert_eq!(workspace.is_executable("prompts"), Err(FileError::Folder));
        assert_eq!(workspace.is_executable("none.sh"), Err(FileError::Missing));
    }

    #[test]
    fn pipes_and_devices_do_not_hang() {
        let (_folder, workspace) = workspace();
        let pipe = workspace.root.join("pipe.kdl");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        assert!(matches!(workspace.read("pipe.kdl"), Err(FileError::Refused { .. })));
    }

    #[test]
    fn large_files_and_other_encodings_are_refused() {
        let (_folder, workspace) = workspace();
        let large = std::fs::File::create(workspace.root.join("large.kdl")).unwrap();
        large.set_len(MAX_BYTES + 1).unwrap();
        assert_eq!(workspace.read("large.kdl"), Err(FileError::TooLarge { bytes: MAX_BYTES + 1 }));
        let check = |bytes: &[u8]| match decode_text(bytes.to_vec()) {
            Err(FileError::NotText { offset, looks_like }) => (offset, looks_like),
            other => panic!("{other:?}"),
        };
        assert_eq!(check(b"\xFF\xFEt\0a\0"), (0, Some("UTF-16")));
        assert_eq!(check(b"t\0a\0s\0k\0\xE9\0 \0x\0"), (8, Some("UTF-16")));
        assert_eq!(check(b"caf\xE9 task"), (3, Some("Latin-1 or Windows-1252")));
        assert_eq!(check(b"ab\xFF\0"), (2, None));
    }

    #[test]
    fn the_workspace_is_the_repository_or_the_folder() {
        let (_folder, workspace) = workspace();
        let spec = workspace.root.join("flows/deep/flow.kdl");
        std::fs::create_dir_all(spec.parent().unwrap()).unwrap();
        let (alone, path) = Workspace::discover(&spec).unwrap();
        assert_eq!((alone.root, path.as_str()), (workspace.root.join("flows/deep"), "flow.kdl"));
        std::fs::create_dir(workspace.root.join(".git")).unwrap();
        let (repository, path) = Workspace::discover(&spec).unwrap();
        assert_eq!((&repository.root, path.as_str()), (&workspace.root, "flows/deep/flow.kdl"));
        let (repository, path) = Workspace::discover(&workspace.root.join("flows/../none/flow.kdl")).unwrap();
        assert_eq!((&repository.root, path.as_str()), (&workspace.root, "none/flow.kdl"));
    }

    #[test]
    fn paths_are_shown_from_where_one_stands() {
        let check = |path: &str, base: &str| relative_path(Path::new(path), Path::new(base)).display().to_string();
        assert_eq!(check("/home/a/flow.kdl", "/home/a"), "flow.kdl");
        assert_eq!(check("/home/a/flow.kdl", "/home/a/b/c"), "../../flow.kdl");
        assert_eq!(check("/home/a", "/home/a"), ".");
        assert_eq!(check("/tmp/flow.kdl", "/home/a"), "/tmp/flow.kdl");
        assert_eq!(check("/a/x", "/a/1/2/3/4"), "/a/x");
    }
}
