//! Merges of worktrees: the branch of one tree is merged in another tree of the run, with Git.
//!
//! In: two trees of a run and what is to be done. Out: a [`Report`]: how far the merge is, or why it is refused. Invariants:
//! no hook, editor or signing program runs; a merge that was cut off begins anew; a merge is committed only when no marker
//! of a conflict is left, what either side added is in the result or named with a reason, and every check exits with 0.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use swarmc_plan::Command;

use super::{PATIENCE, Worktrees, parts};
use crate::io::process::{argv, capture_output, describe_command, read_stdout_bytes};
use crate::types::cancel::Cancel;
use crate::types::team::{Dropped, MergeState};

/// How long one check may take.
const CHECK_TIME: Duration = Duration::from_secs(3_600);
/// The bytes of what a failed check printed that its manager reads.
const CHECK_BYTES: usize = 2_000;
/// The bytes of what Git prints that are read at most.
const LISTED: usize = 4 * 1024 * 1024;
/// The files that a report names at most.
const NAMED: usize = 20;
const NAMED_BYTES: usize = 3_000;
/// The parts that a refusal shows at most.
const SHOWN: usize = 10;
/// The object id that stands for none.
const NOTHING: &str = "0000000000000000000000000000000000000000";

/// A merge of a worktree.
#[derive(Clone, Debug)]
pub(crate) struct Merge {
    pub trees: Arc<Worktrees>,
    /// The name of the worktree in its swarm, and its manager.
    pub name: String,
    pub manager: String,
    /// The tree that members work in.
    pub source: String,
    /// The tree that it is merged in.
    pub target: String,
    /// The branch of the repository that is moved on to the merge.
    pub into: Option<String>,
    /// What must exit with 0 before the merge is committed.
    pub checks: Vec<Command>,
    /// The environment of the checks, and where they run, from the top of the workspace.
    pub environment: Arc<Vec<(OsString, OsString)>>,
    pub working_dir: Option<String>,
}

/// What is done with a merge.
#[derive(Clone, Debug)]
pub(crate) enum GitStep {
    /// It begins.
    Begin { summary: String, commit_rest: Option<String> },
    /// Its conflicts are resolved, but for what is dropped.
    Continue { dropped: Vec<Dropped> },
    /// It is dropped.
    Abort { why: String },
    /// A branch of the repository is moved on to the commit of it.
    Move { commit: String },
    /// The tree that members work in is made.
    Open,
    /// A member leaves the tree: nothing in it may be uncommitted.
    Leave,
}

/// What came of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Report {
    /// What has changed.
    pub came: Came,
    /// The commit of the merge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The files that conflict, or are not committed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// In words, for the agent that asked.
    pub note: String,
}

/// What a step has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Came {
    /// Nothing: the note says why.
    Refused,
    /// The merge is this far.
    Merge(MergeState),
    /// The tree is made, or may be left.
    Ready,
}

impl Report {
    /// Nothing has changed, for this reason.
    pub(crate) fn refused(note: impl Into<String>) -> Report {
        Report { came: Came::Refused, commit: None, files: Vec::new(), note: note.into() }
    }

    /// What was asked for is done.
    pub(crate) fn ready() -> Report {
        Report { came: Came::Ready, commit: None, files: Vec::new(), note: String::new() }
    }

    /// The merge is this far.
    pub(crate) fn merge(state: MergeState, note: impl Into<String>) -> Report {
        Report { came: Came::Merge(state), commit: None, files: Vec::new(), note: note.into() }
    }

    fn open(files: Vec<String>, note: String) -> Report {
        Report { files, ..Report::merge(MergeState::Open, note) }
    }
}

impl Merge {
    /// Does one step.
    ///
    /// # Errors
    /// Git fails: says how.
    pub(crate) fn carry_out(&self, step: &GitStep, cancel: &Cancel) -> Result<Report, String> {
        let git = Git { merge: self, cancel };
        match step {
            GitStep::Begin { summary, commit_rest } => git.begin(summary, commit_rest.as_deref()),
            GitStep::Continue { dropped } => git.resume(dropped),
            GitStep::Abort { why } => git.abort(why),
            GitStep::Move { commit } => git.move_branch(commit),
            GitStep::Open => self.trees.create_tree(&self.source, cancel).map(|()| Report::ready()),
            GitStep::Leave => git.leave(),
        }
    }
}

/// Git, while it carries a step out.
struct Git<'m> {
    merge: &'m Merge,
    cancel: &'m Cancel,
}

impl Git<'_> {
    fn begin(&self, summary: &str, commit_rest: Option<&str>) -> Result<Report, String> {
        let Merge { trees, name, source, target, .. } = self.merge;
        if !trees.is_ready(source) {
            return self.nothing_new("no member has begun to work in it");
        }
        trees.create_tree(target, self.cancel)?;
        let (from, to) = (self.path(source), self.path(target));
        self.remove_lock(&to)?;
        self.remove_lock(&from)?;
        if let Some(refused) = self.check_branch(source, "have its members switch back")? {
            return Ok(refused);
        }
        let left = self.list_changes(&from, "normal")?;
        match commit_rest {
            _ if left.is_empty() => {}
            Some(message) => {
                self.git(&from, &["add", "-A"])?;
                self.commit(&from, message)?;
            }
            None => {
                let note = format!(
                    "not merged: worktree `{name}` has changes that are not committed: {}; have their authors commit \
                     them, or say in `commit_rest` what they are",
                    list_names(&left)
                );
                return Ok(Report { files: clip_names(left), ..Report::refused(note) });
            }
        }
        if self.find_commit(&to, "MERGE_HEAD").is_some() {
            // Its runner was killed before the result was recorded.
            self.git(&to, &["merge", "--abort"])?;
        }
        if let Some(refused) = self.check_branch(target, "switch back")? {
            return Ok(refused);
        }
        let changed = self.list_changes(&to, "no")?;
        if !changed.is_empty() {
            let note = format!(
                "not merged: your folder has changes that are not committed: {}; commit or restore them",
                list_names(&changed)
            );
            return Ok(Report { files: clip_names(changed), ..Report::refused(note) });
        }
        let branch = trees.branch(source);
        if self.count_commits(&format!("HEAD..{branch}"), &to)? == 0 {
            return match self.count_commits(&format!("{}..{branch}", trees.commit), &to)? {
                0 => self.nothing_new("nothing was committed in it"),
                _ => self.committed("everything in it is merged already"),
            };
        }
        let message = format!("Merge worktree {name}\n\n{}", strip_comments(summary));
        let merged = self.git(&to, &["merge", "--quiet", "--no-ff", "--no-commit", "-m", &message, &branch]);
        let conflicts = self.list_names(&to, &["diff", "--name-only", "--diff-filter=U", "-z"])?;
        if !conflicts.is_empty() {
            let note = format!(
                "{} in conflict: {}; resolve them in your folder, then use `integrate_continue`",
                if conflicts.len() == 1 { "1 file is".to_owned() } else { format!("{} files are", conflicts.len()) },
                list_names(&conflicts)
            );
            return Ok(Report::open(clip_names(conflicts), note));
        }
        if let Err(problem) = merged {
            if self.find_commit(&to, "MERGE_HEAD").is_some() {
                self.git(&to, &["merge", "--abort"])?;
            }
            return Ok(Report::refused(format!("not merged: {problem}")));
        }
        self.finish(&to, &[], "merged without conflicts")
    }

    fn resume(&self, dropped: &[Dropped]) -> Result<Report, String> {
        let to = self.path(&self.merge.target);
        self.remove_lock(&to)?;
        let branch = self.merge.trees.branch(&self.merge.source);
        if self.find_commit(&to, "MERGE_HEAD").is_none() && !self.reopen(&to)? {
            return Ok(Report::refused(
                "there is no open merge in your folder any more: use `integrate_abort`, then `integrate` again",
            ));
        }
        let their = self.find_commit(&to, "MERGE_HEAD").unwrap_or_else(|| branch.clone());
        if self.count_commits(&format!("{branch}..{their}"), &to)? > 0 {
            return Ok(Report::refused(format!(
                "the open merge in your folder is not that of `{branch}`: use `integrate_abort`, then `integrate` again"
            )));
        }
        let base = self.git(&to, &["merge-base", "HEAD", &their])?.trim().to_owned();
        let sides = [("HEAD", "what was merged before"), (their.as_str(), "this worktree")];
        let files = self.list_both_changed(&to, &base, &their)?;
        let (mut missing, mut marked) = (Vec::new(), Vec::new());
        for path in &files {
            let result = parts::read_result(&to, path);
            let show = |commit: &str| self.show(&to, commit, path);
            let [ours, theirs] = sides.map(|(commit, _)| show(commit));
            if parts::has_markers(result.as_deref(), [ours.as_deref(), theirs.as_deref()]) {
                marked.push(path.clone());
                continue;
            }
            let both = [(ours, sides[0].1), (theirs, sides[1].1)];
            missing.extend(parts::find_missing(path, show(&base).as_deref(), &both, result.as_deref()));
        }
        if !marked.is_empty() {
            let note = format!("not merged: markers of conflicts are left in {}", list_names(&marked));
            return Ok(Report { files: clip_names(marked), ..Report::refused(note) });
        }
        missing.retain(|part| !dropped.iter().any(|dropped| dropped.part == part.name));
        if !missing.is_empty() {
            let shown: Vec<String> = missing.iter().take(SHOWN).map(parts::Part::describe).collect();
            let note = format!(
                "not merged: {} of what was added would be lost; put them back, or name each in `dropped` with the \
                 reason:\n{}",
                if missing.len() == 1 { "1 part".to_owned() } else { format!("{} parts", missing.len()) },
                shown.join("\n")
            );
            return Ok(Report::refused(note));
        }
        for path in &files {
            self.git(&to, &["add", "-A", "--", path])?;
        }
        self.git(&to, &["add", "-u"])?;
        self.finish(&to, dropped, "merged, and what was open is resolved")
    }

    /// A refusal where a tree is at another branch than its own: what is committed there would be missing.
    fn check_branch(&self, tree: &str, help: &str) -> Result<Option<Report>, String> {
        let branch = self.merge.trees.branch(tree);
        let head = self.git(&self.path(tree), &["rev-parse", "--symbolic-full-name", "HEAD"])?;
        Ok((head.trim() != self.merge.trees.reference(tree)).then(|| {
            let name = if tree == self.merge.source { "the worktree" } else { "your folder" };
            Report::refused(format!("not merged: {name} is not at its branch: {help} by `git switch {branch}`"))
        }))
    }

    fn abort(&self, why: &str) -> Result<Report, String> {
        let to = self.path(&self.merge.target);
        self.remove_lock(&to)?;
        if self.find_commit(&to, "MERGE_HEAD").is_some() {
            self.git(&to, &["merge", "--abort"])?;
        }
        Ok(Report::merge(MergeState::Aborted, why))
    }

    fn leave(&self) -> Result<Report, String> {
        let Merge { trees, name, source, .. } = self.merge;
        if !trees.is_ready(source) {
            return Ok(Report::ready());
        }
        let left = self.list_changes(&self.path(source), "normal")?;
        if left.is_empty() {
            return Ok(Report::ready());
        }
        let note = format!(
            "not moved: worktree `{name}` has changes that are not committed: {}; have their authors commit them",
            list_names(&left)
        );
        Ok(Report { files: clip_names(left), ..Report::refused(note) })
    }

    /// Moves the branch that the worktree names on to the merge, where that loses nothing.
    fn move_branch(&self, commit: &str) -> Result<Report, String> {
        let Merge { trees, into, target, .. } = self.merge;
        let into = into.as_deref().unwrap_or_default();
        let report =
            |note: String| Ok(Report { commit: Some(commit.to_owned()), ..Report::merge(MergeState::Merged, note) });
        let (workspace, branch) = (&trees.repository.workspace, trees.branch(target));
        let reference = format!("refs/heads/{into}");
        let Some(before) = self.find_commit(workspace, &reference) else {
            return match self.git(workspace, &["update-ref", &reference, commit, NOTHING]) {
                Ok(_) => report(format!("branch `{into}` is made")),
                Err(problem) => report(format!("branch `{into}` cannot be made: {problem}")),
            };
        };
        if self.count_commits(&format!("{before}..{commit}"), workspace)? == 0 {
            return report(format!("branch `{into}` holds it already"));
        }
        if self.count_commits(&format!("{commit}..{before}"), workspace)? > 0 {
            return report(format!(
                "branch `{into}` stays as it is: it has other commits, so switch to it and type `git merge {branch}`"
            ));
        }
        let Some(place) = self.find_checkout(&reference)? else {
            return match self.git(workspace, &["update-ref", &reference, commit, &before]) {
                Ok(_) => report(format!("branch `{into}` is moved on to it")),
                Err(problem) => report(format!("branch `{into}` stays as it is: {problem}; type `git merge {branch}`")),
            };
        };
        let command = format!("git -C {} merge {branch}", place.display());
        if !self.list_changes(&place, "no")?.is_empty() {
            return report(format!(
                "branch `{into}` stays as it is: its checkout has changes; commit them, then type `{command}`"
            ));
        }
        match self.git(&place, &["merge", "--quiet", "--ff-only", commit]) {
            Ok(_) => report(format!("branch `{into}` is moved on to it")),
            Err(problem) => report(format!("branch `{into}` stays as it is: {problem}; type `{command}`")),
        }
    }

    /// Runs the checks, and commits.
    fn finish(&self, to: &Path, dropped: &[Dropped], note: &str) -> Result<Report, String> {
        let folder = to.join(&self.merge.trees.repository.prefix);
        let folder = folder.join(self.merge.working_dir.as_deref().unwrap_or_default());
        for check in &self.merge.checks {
            let words = argv(check);
            let environment = &self.merge.environment;
            let printed = capture_output(&words, environment, &folder, CHECK_TIME, CHECK_BYTES, self.cancel)?;
            if printed.exit != 0 || printed.too_long || printed.cancelled {
                let shown = describe_command(check);
                let how =
                    if printed.too_long { "took too long".to_owned() } else { format!("exited with {}", printed.exit) };
                let note = format!(
                    "not merged: check `{shown}` {how}; mend it in your folder and use `integrate_continue`, or use \
                     `integrate_abort`:\n{}",
                    String::from_utf8_lossy(&printed.text).trim()
                );
                return Ok(Report::open(Vec::new(), note));
            }
        }
        let mut message = self.read_message(to)?;
        if !dropped.is_empty() {
            message.push_str("\n\nLeft out:");
            dropped.iter().for_each(|it| message.push_str(&format!("\n- {}: {}", it.part, strip_comments(&it.why))));
        }
        self.commit(to, &message)?;
        // What a check has changed is no part of the merge.
        self.git(to, &["reset", "--quiet", "--hard"])?;
        self.committed(note)
    }

    /// The merge is committed: what follows depends on whether a branch is to be moved.
    fn committed(&self, note: &str) -> Result<Report, String> {
        let to = self.path(&self.merge.target);
        let state = if self.merge.into.is_some() { MergeState::Committed } else { MergeState::Merged };
        let commit = Some(self.git(&to, &["rev-parse", "HEAD"])?.trim().to_owned());
        let note = match state {
            MergeState::Merged => format!("{note}, on branch `{}`", self.merge.trees.branch(&self.merge.target)),
            _ => note.to_owned(),
        };
        Ok(Report { commit, ..Report::merge(state, note) })
    }

    fn nothing_new(&self, why: &str) -> Result<Report, String> {
        Ok(Report::merge(MergeState::Merged, format!("there is nothing to merge: {why}")))
    }

    /// Makes a merge that its manager has committed on its own an open one again. False where there is none.
    fn reopen(&self, to: &Path) -> Result<bool, String> {
        let source = self.merge.trees.reference(&self.merge.source);
        let (parent, tip) = (self.find_commit(to, "HEAD^2"), self.find_commit(to, &source));
        let Some(tip) = tip.filter(|tip| parent.as_ref() == Some(tip)) else { return Ok(false) };
        let message = self.git(to, &["log", "-1", "--format=%B", "HEAD"])?;
        self.git(to, &["reset", "--quiet", "--soft", "HEAD^1"])?;
        for (name, text) in [("MERGE_HEAD", format!("{tip}\n")), ("MERGE_MSG", message)] {
            std::fs::write(self.git_path(to, name)?, text).map_err(|error| error.to_string())?;
        }
        Ok(true)
    }

    fn commit(&self, tree: &Path, message: &str) -> Result<(), String> {
        self.git(tree, &["commit", "--quiet", "--no-verify", "--allow-empty-message", "--cleanup=strip", "-m", message])
            .map(drop)
    }

    /// The message of the open merge.
    fn read_message(&self, to: &Path) -> Result<String, String> {
        let message = std::fs::read_to_string(self.git_path(to, "MERGE_MSG")?).unwrap_or_default();
        let lines: Vec<&str> = message.lines().filter(|line| !line.starts_with('#')).collect();
        match lines.join("\n").trim() {
            "" => Ok(format!("Merge worktree {}", self.merge.name)),
            message => Ok(message.to_owned()),
        }
    }

    /// The files that both sides have changed.
    fn list_both_changed(&self, to: &Path, base: &str, their: &str) -> Result<Vec<String>, String> {
        let changed = |commit| self.list_names(to, &["diff", "--name-only", "--no-renames", "-z", base, commit]);
        let (ours, theirs) = (changed("HEAD")?, changed(their)?);
        Ok(ours.into_iter().filter(|path| theirs.contains(path)).collect())
    }

    /// A file as a commit has it; none where it has none of this path.
    fn show(&self, to: &Path, commit: &str, path: &str) -> Option<Vec<u8>> {
        let object = format!("{commit}:{path}");
        let arguments = self.arguments(&["cat-file", "blob", &object]);
        let limits = (PATIENCE, parts::LARGEST);
        read_stdout_bytes(&arguments, &self.environment(), (to, None), limits, self.cancel).ok()
    }

    /// Where a branch is checked out.
    fn find_checkout(&self, reference: &str) -> Result<Option<PathBuf>, String> {
        let listed = self.git(&self.merge.trees.repository.workspace, &["worktree", "list", "--porcelain", "-z"])?;
        let mut place = None;
        for line in listed.split('\0') {
            match line.split_once(' ') {
                Some(("worktree", path)) => place = Some(PathBuf::from(path)),
                Some(("branch", branch)) if branch == reference => return Ok(place),
                _ => {}
            }
        }
        Ok(None)
    }

    /// The paths of what is not committed in a tree; `untracked` says which files that Git does not know count.
    fn list_changes(&self, tree: &Path, untracked: &str) -> Result<Vec<String>, String> {
        let untracked = format!("--untracked-files={untracked}");
        let listed = self.git(tree, &["status", "--porcelain", "-z", "--no-renames", &untracked])?;
        Ok(listed.split('\0').filter_map(|line| line.get(3..)).map(str::to_owned).collect())
    }

    fn list_names(&self, tree: &Path, arguments: &[&str]) -> Result<Vec<String>, String> {
        Ok(self.git(tree, arguments)?.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect())
    }

    fn count_commits(&self, range: &str, tree: &Path) -> Result<u64, String> {
        let counted = self.git(tree, &["rev-list", "--count", range, "--"])?;
        counted.trim().parse().map_err(|_| format!("Git counts `{}` commits", counted.trim()))
    }

    fn find_commit(&self, tree: &Path, name: &str) -> Option<String> {
        let commit = self.git(tree, &["rev-parse", "--verify", "--quiet", &format!("{name}^{{commit}}")]).ok()?;
        Some(commit.trim().to_owned())
    }

    fn git_path(&self, tree: &Path, name: &str) -> Result<PathBuf, String> {
        Ok(tree.join(self.git(tree, &["rev-parse", "--git-path", name])?.trim_end_matches('\n')))
    }

    /// Removes the lock of a Git that was killed: no other one works in this tree now.
    fn remove_lock(&self, tree: &Path) -> Result<(), String> {
        match std::fs::remove_file(self.git_path(tree, "index.lock")?) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.to_string()),
            _ => Ok(()),
        }
    }

    fn path(&self, tree: &str) -> PathBuf {
        self.merge.trees.folder.join(tree)
    }

    fn git(&self, tree: &Path, arguments: &[&str]) -> Result<String, String> {
        let (argv, limits) = (self.arguments(arguments), (PATIENCE, LISTED));
        let printed = read_stdout_bytes(&argv, &self.environment(), (tree, None), limits, self.cancel)?;
        Ok(String::from_utf8_lossy(&printed).into_owned())
    }

    fn arguments(&self, arguments: &[&str]) -> Vec<OsString> {
        let settings =
            ["core.hooksPath=/dev/null", "commit.gpgSign=false", "core.quotePath=false", "rerere.enabled=false"];
        let settings = settings.iter().flat_map(|setting| ["-c", setting]);
        ["git", "--literal-pathspecs"]
            .into_iter()
            .chain(settings)
            .chain(arguments.iter().copied())
            .map(OsString::from)
            .collect()
    }

    /// Its commits are the manager's; nothing asks a person.
    fn environment(&self) -> Vec<(OsString, OsString)> {
        let Merge { trees, manager, .. } = self.merge;
        let address = format!("{manager}@swarm.invalid");
        let settings = [
            ("GIT_EDITOR", "false"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_AUTHOR_NAME", manager),
            ("GIT_AUTHOR_EMAIL", &address),
            ("GIT_COMMITTER_NAME", manager),
            ("GIT_COMMITTER_EMAIL", &address),
        ];
        let settings = settings.map(|(name, value)| (OsString::from(name), OsString::from(value)));
        trees.repository.environment.iter().cloned().chain(settings).collect()
    }
}

/// A text of an agent, without lines that Git takes for comments.
fn strip_comments(text: &str) -> String {
    text.lines().map(|line| line.trim_start_matches('#')).collect::<Vec<_>>().join("\n")
}

fn list_names(names: &[String]) -> String {
    let shown: Vec<&str> = names.iter().take(NAMED).map(String::as_str).collect();
    match names.len() - shown.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// As many names as an event can hold.
fn clip_names(names: Vec<String>) -> Vec<String> {
    let mut bytes = 0;
    let fits = |name: &String| {
        bytes += name.len();
        bytes <= NAMED_BYTES
    };
    names.into_iter().take(NAMED).take_while(fits).collect()
}
