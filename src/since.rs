//! `swarmc check --since REF`: which specs can come out otherwise than at a Git ref.
//!
//! In: a ref, and what the check of a spec read. Out: whether one of these files is another one than at the ref. The ref
//! counts as it was where the current branch left it, so what others did on theirs since is no change.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use miette::miette;

/// Settings of Git that keep it from starting what a repository names.
const QUIET: [&str; 4] = ["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"];

/// Where a hook of Git tells others which repository it means; we look for it ourselves.
const HOOK_VARIABLES: [&str; 5] = ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_OBJECT_DIRECTORY"];

/// A ref, and what has changed since in every repository that a check comes to.
pub(crate) struct Since<'a> {
    reference: &'a str,
    repositories: BTreeMap<PathBuf, Changes>,
}

/// The files of a repository that changed, each as its absolute path.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// Whether it is a file that came or went, and not only its content that changed.
    files: BTreeMap<PathBuf, bool>,
}

impl<'a> Since<'a> {
    pub(crate) fn new(reference: &'a str) -> Since<'a> {
        Since { reference, repositories: BTreeMap::new() }
    }

    /// What has changed in the repository with this root, read once.
    ///
    /// # Errors
    /// Says why Git cannot tell, and what to type.
    pub(crate) fn load_changes(&mut self, root: &Path) -> miette::Result<&Changes> {
        match self.repositories.entry(root.to_owned()) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(free) => Ok(free.insert(read_changes(root, self.reference)?)),
        }
    }
}

impl Changes {
    /// Whether the content of this file changed, or it came or went. A submodule counts as one file.
    pub(crate) fn has_changed(&self, path: &Path) -> bool {
        path.ancestors().any(|above| self.files.contains_key(above))
    }

    /// Whether a file came or went beneath this folder.
    pub(crate) fn has_moved_beneath(&self, folder: &Path) -> bool {
        let beneath = self.files.range(folder.to_owned()..).take_while(|(path, _)| path.starts_with(folder));
        beneath.into_iter().any(|(_, came_or_went)| *came_or_went)
    }
}

fn read_changes(root: &Path, reference: &str) -> miette::Result<Changes> {
    let plain = "leave `--since` out to check every spec";
    let inside = ask_git(root, &["rev-parse", "--is-inside-work-tree"]);
    if let Err(problem) = inside {
        return Err(miette!(
            help = plain,
            "`--since` needs a Git repository, and `{}` is in none that can be used: {problem}",
            root.display()
        ));
    }
    // A tag leads to its commit; behind `--end-of-options` a ref may begin with a dash.
    let named = format!("{reference}^{{commit}}");
    let Ok(commit) = ask_git(root, &["rev-parse", "--verify", "--quiet", "--end-of-options", &named]) else {
        let help = format!(
            "`git branch --all` lists branches; in CI, fetch it first, as `fetch-depth: 0` of actions/checkout does; \
             or {plain}"
        );
        return Err(miette!(
            help = help,
            "there is no commit `{reference}` in the Git repository of `{}`",
            root.display()
        ));
    };
    let commit = as_line(&commit);
    // Without one, as in a clone of few commits, the ref itself is compared: that may check more, and never less.
    let base = ask_git(root, &["merge-base", &commit, "HEAD"]).map_or(commit, |base| as_line(&base));
    let failed = |problem: String| miette!("Git cannot tell what changed since `{reference}`: {problem}");
    // A rename would have two names, and the loop below reads one for each status.
    let diff = ["diff", "--name-status", "--no-renames", "--no-ext-diff", "--relative", "-z", &base, "--"];
    let changed = ask_git(root, &diff).map_err(failed)?;
    // A new file that Git does not know yet is in no diff.
    let new = ask_git(root, &["ls-files", "--others", "--exclude-standard", "-z"]).map_err(failed)?;
    let mut changes = Changes::default();
    let mut words = split_names(&changed);
    while let (Some(status), Some(name)) = (words.next(), words.next()) {
        changes.files.insert(root.join(name), status != "M");
    }
    changes.files.extend(split_names(&new).map(|name| (root.join(name), true)));
    Ok(changes)
}

/// What Git prints; else what it says is wrong.
fn ask_git(root: &Path, arguments: &[&str]) -> Result<Vec<u8>, String> {
    let mut git = Command::new("git");
    git.args(QUIET).args(arguments).current_dir(root);
    for variable in HOOK_VARIABLES {
        git.env_remove(variable);
    }
    let output = git.output().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => "the program `git` is not installed".to_owned(),
        _ => format!("cannot start `git`: {error}"),
    })?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.trim().strip_prefix("fatal: ").unwrap_or(said.trim());
    Err(swarmc_view::make_printable(said).into_owned())
}

fn as_line(output: &[u8]) -> String {
    String::from_utf8_lossy(output).trim().to_owned()
}

/// Names that end with NUL. One of a folder, as of a repository in this one, has a slash at its end.
fn split_names(output: &[u8]) -> impl Iterator<Item = &Path> {
    let names = output.split(|&byte| byte == 0).filter(|name| !name.is_empty());
    names.map(|name| Path::new(OsStr::from_bytes(name.strip_suffix(b"/").unwrap_or(name))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_in_a_changed_submodule_has_changed() {
        let paths = [("/w/a.md", false), ("/w/lib", false), ("/w/docs/new.md", true)];
        let changes = Changes { files: paths.iter().map(|(path, moved)| (PathBuf::from(path), *moved)).collect() };
        let changed = |path: &str| changes.has_changed(Path::new(path));
        assert!(changed("/w/a.md") && changed("/w/lib/deep/x.kdl") && changed("/w/docs/new.md"));
        assert!(!changed("/w/a.md.kdl") && !changed("/w/docs") && !changed("/w"));
        let moved = |folder: &str| changes.has_moved_beneath(Path::new(folder));
        assert!(moved("/w") && moved("/w/docs") && !moved("/w/doc") && !moved("/w/lib"));
    }
}
