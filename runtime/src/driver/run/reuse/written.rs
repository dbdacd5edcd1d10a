//! The files that a step is declared to write: kept when it has ended, and put back when its result is reused.
//!
//! In: the files before and after the step. Out: their contents in the cache, and later the same files. Invariants: only
//! what the step's `writes` name is put back, no path leads out of the workspace, and nothing is put back unless all of it
//! can be.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path};

use fast_glob::glob_match;

use super::super::driver::Driver;
use crate::core::graph::Key;
use crate::io::cache::{Entry, WrittenFile, replace_file};
use crate::io::file_digests::FileDigest;
use crate::types::artifact::{ArtifactKind, ArtifactMeta};
use crate::types::event::StepId;

/// The bytes of the files of one step that are kept at most.
const LARGEST: u64 = 64 << 20;

impl Driver<'_> {
    /// Keeps the files that a step has written, in the cache.
    ///
    /// # Errors
    /// They cannot be kept, or it did more than to write them: why.
    pub(super) fn keep_written(
        &self,
        at: Key,
        before: &BTreeMap<String, FileDigest>,
    ) -> Result<Vec<WrittenFile>, String> {
        let step = self.evaluator.step_definition(&self.state, at);
        let workspace = &self.services.process_env.workspace;
        let after = self.attempts.reuse.digests.match_files(workspace, &step.writes)?;
        if let Some(gone) = before.keys().find(|path| !after.contains_key(*path)) {
            return Err(format!("it removed the file `{gone}`"));
        }
        if after.values().map(|file| file.bytes).sum::<u64>() > LARGEST {
            return Err(format!("the files that it writes have more than {} MiB", LARGEST >> 20));
        }
        let Some(cache) = self.attempts.reuse.target.as_ref().map(|target| &target.cache) else {
            return Ok(Vec::new());
        };
        let mut kept = Vec::new();
        for (path, FileDigest { digest, bytes, executable }) in after {
            let full = workspace.join(&path);
            if full.is_symlink() {
                return Err(format!("`{path}`, which it writes, is a link"));
            }
            let content = fs::read(&full).map_err(|error| format!("`{path}` cannot be read: {error}"))?;
            if crate::types::digest::digest_bytes(&content) != digest {
                return Err(format!("`{path}` changed while it was kept"));
            }
            let stored = cache.store_content(&digest, None, &content);
            stored.map_err(|error| format!("`{path}` cannot be kept: {error}"))?;
            kept.push(WrittenFile { path, digest, bytes, executable });
        }
        Ok(kept)
    }

    /// Puts the files of an entry back that are not as the step left them.
    ///
    /// # Errors
    /// One of them cannot be put back: why. Then none has been, unless the file system failed in between.
    pub(super) fn restore_files(&self, entry: &Entry, before: &BTreeMap<String, FileDigest>) -> Result<(), String> {
        let workspace = &self.services.process_env.workspace;
        let at = self.state.find_step(&entry.step);
        let globs = at.map_or(&[][..], |at| &self.evaluator.step_definition(&self.state, at).writes);
        let mut missing = Vec::new();
        for file in &entry.writes {
            let same = before.get(&file.path);
            if same.is_some_and(|same| same.digest == file.digest && same.executable == file.executable) {
                continue;
            }
            if !may_write(workspace, &file.path, globs) {
                return Err(format!("its file `{}` cannot be put back: it is none that it writes", file.path));
            }
            let content = self.read_content(&entry.run, &file.digest, file.bytes);
            let content =
                content.map_err(|problem| format!("its file `{}` cannot be put back: {problem}", file.path))?;
            missing.push((file, content));
        }
        for (file, content) in missing {
            let path = workspace.join(&file.path);
            let failed = |error: std::io::Error| format!("its file `{}` cannot be put back: {error}", file.path);
            let folder = path.parent().unwrap_or(workspace);
            fs::create_dir_all(folder).map_err(failed)?;
            replace_file(&path, &content, b"").map_err(failed)?;
            let mode = if file.executable { 0o755 } else { 0o644 };
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).map_err(failed)?;
        }
        Ok(())
    }

    /// Notes what the turn of an agent has changed beside the files that its step is declared to write.
    pub(in super::super) fn note_changes(&mut self, step: &StepId, artifact: &ArtifactMeta) {
        if artifact.kind != ArtifactKind::Diff {
            return;
        }
        let Some(at) = self.state.find_step(step) else { return };
        let globs = &self.evaluator.step_definition(&self.state, at).writes;
        let text = self.outputs.texts.load_text(&artifact.content).unwrap_or_default();
        let problem = match changed_files(&text) {
            _ if !artifact.with.is_empty() => Some("other steps changed files at the same time".to_owned()),
            _ if !artifact.omitted.is_empty() => Some("not all of what it changed is known".to_owned()),
            None => Some("not all of what it changed is known".to_owned()),
            Some(files) => files
                .iter()
                .find(|file| !globs.iter().any(|glob| covers(glob, file)))
                .map(|file| format!("it changed `{file}`, which its `writes` do not name")),
        };
        if let Some(problem) = problem {
            self.attempts.reuse.mar(step, &problem);
        }
    }
}

/// Whether a step with these `writes` may write this path.
fn may_write(workspace: &Path, path: &str, globs: &[String]) -> bool {
    let relative = Path::new(path);
    let is_plain = relative.components().all(|part| matches!(part, Component::Normal(_)));
    if !is_plain || !globs.iter().any(|glob| covers(glob, path)) {
        return false;
    }
    // A folder on the way to it may be a link that leads out.
    let mut folder = workspace.to_owned();
    for part in relative.components() {
        folder.push(part);
        if folder.is_symlink() {
            return false;
        }
    }
    true
}

/// Whether a pattern of `writes` names a file: itself, or a folder that it lies in.
fn covers(glob: &str, path: &str) -> bool {
    let glob = glob.strip_prefix("./").unwrap_or(glob);
    glob_match(glob, path) || Path::new(path).starts_with(glob)
}

/// The files that a diff is about; none where that cannot be told.
fn changed_files(diff: &str) -> Option<Vec<&str>> {
    let heads = diff.lines().filter_map(|line| line.strip_prefix("diff --git "));
    let files: Option<Vec<&str>> = heads.map(same_path).collect();
    files.filter(|files| !files.is_empty())
}

/// The path in `a/PATH b/PATH`.
fn same_path(head: &str) -> Option<&str> {
    let half = head.len().checked_sub(1)? / 2;
    let (one, other) = (head.get(..half)?.strip_prefix("a/")?, head.get(half + 1..)?.strip_prefix("b/")?);
    (one == other).then_some(one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_names_its_files() {
        let diff = "diff --git a/src/a b.rs b/src/a b.rs\n--- a/src/a b.rs\n+diff --git a/x b/x\ndiff --git a/y b/y\n";
        assert_eq!(changed_files(diff), Some(vec!["src/a b.rs", "y"]));
        for unknown in ["", "Binary", "diff --git \"a/\\303\" \"b/\\303\"\n", "diff --git a/x b/y\n"] {
            assert_eq!(changed_files(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn only_declared_files_of_the_workspace_are_put_back() {
        let root = tempfile::tempdir().expect("a folder");
        let root = root.path();
        fs::create_dir(root.join("out")).expect("a folder");
        std::os::unix::fs::symlink("/tmp", root.join("out/link")).expect("a link");
        let globs = ["out/**".to_owned(), "./gen".to_owned()];
        let check = |path: &str, expected: bool| assert_eq!(may_write(root, path, &globs), expected, "{path}");
        check("out/a", true);
        check("out/deep/a", true);
        check("gen", true);
        check("gen/a", true);
        check("src/a", false);
        check("out/../src/a", false);
        check("/etc/passwd", false);
        check("out/link/a", false);
        check("out/link", false);
    }
}
