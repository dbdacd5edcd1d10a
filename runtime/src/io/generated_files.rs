//! Files whose changes are no news for a team: Git ignores them, or `.gitattributes` says that a program generates them
//! (`linguist-generated`).
//!
//! In: the folder in which an agent works, and a path in it. Out: whether it is such a file. The files of the repository
//! around the folder count, and those of its folders.

use std::path::{Component, Path};
use std::sync::Arc;

use crate::io::confine::Folder;
use crate::io::ignored::{Meaning, is_named};

/// Whether the file at `path` below `folder` is no news for others.
pub(crate) fn is_generated(folder: &Path, path: &str) -> bool {
    let path = Path::new(path);
    if !path.components().all(|part| matches!(part, Component::Normal(_))) {
        return false;
    }
    let file = folder.join(path);
    let root = folder.ancestors().find(|folder| folder.join(".git").exists()).unwrap_or(folder);
    let (Ok(opened), Ok(within)) = (Folder::open(root).map(Arc::new), file.strip_prefix(root)) else { return false };
    [Meaning::Ignored, Meaning::Generated].into_iter().any(|meaning| is_named(&opened, within, meaning))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_ignores_or_a_program_writes_is_no_news() {
        let place = tempfile::TempDir::new().expect("a folder can be made");
        let write = |name: &str, text: &str| {
            let path = place.path().join(name);
            std::fs::create_dir_all(path.parent().expect("it has a folder")).expect("a folder can be made");
            std::fs::write(path, text).expect("it can be written");
        };
        std::fs::create_dir(place.path().join(".git")).expect("a folder can be made");
        write(".gitignore", "target/\n*.log\n");
        write("web/.gitignore", "!kept.log\n/dist\n");
        write(".gitattributes", "*.pb.rs linguist-generated\nweb/api.ts text linguist-generated=true\n*.txt text\n");
        write("web/.gitattributes", "own.pb.rs -linguist-generated\n");
        let folder = place.path();
        for noise in
            ["target/debug/a.rs", "run.log", "web/run.log", "web/dist/a.js", "a.pb.rs", "web/a.pb.rs", "web/api.ts"]
        {
            assert!(is_generated(folder, noise), "{noise}");
        }
        for news in ["src/lib.rs", "web/kept.log", "dist/a.js", "web/own.pb.rs", "a.txt", "../target/a", "/run.log"] {
            assert!(!is_generated(folder, news), "{news}");
        }
        // A workspace below the root of its repository.
        assert!(is_generated(&folder.join("web"), "run.log") && !is_generated(&folder.join("web"), "kept.log"));
    }
}
