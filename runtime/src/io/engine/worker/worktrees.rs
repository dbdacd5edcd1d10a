//! The files of processes: working trees of the worker's clone, each at a commit with the patches of a run.
//!
//! In: a commit and patches. Out: a folder with these files, and at the end what was changed in it. A tree that no process
//! has any more is used again, and what was applied once is a commit that any tree can go to. A tree in which nothing has
//! changed, as its stamp says, needs no Git. Invariants: a tree has one process; no hook, editor or signing program of the
//! repository runs, and what a process does to the `.git` of its tree changes nothing.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::io::file_stamps::FolderStamp;
use crate::io::home::{create_private, list_folder_names};
use crate::io::process::read_stdout_bytes;
use crate::types::cancel::Cancel;
use crate::types::engine::Files;

/// How long Git may take for one thing: a fetch of a large repository is the longest.
const PATIENCE: Duration = Duration::from_secs(1800);

/// The bytes of an answer of Git at most, and those of a patch.
const ANSWER: usize = 16 << 20;
const LONGEST: usize = 256 << 20;

/// What Git keeps of a tree in which nothing is under way, as a merge would be.
const PLAIN: [&str; 8] = ["HEAD", "ORIG_HEAD", "COMMIT_EDITMSG", "commondir", "gitdir", "index", "logs", "refs"];

/// The working trees of a worker.
#[derive(Debug)]
pub(super) struct CloneWorktrees {
    folder: PathBuf,
    /// The clone; none where the worker has none.
    workspace: Option<PathBuf>,
    /// The environment of Git, and of a fetch, which may need the credentials of the worker.
    environment: Vec<(OsString, OsString)>,
    credentials: Vec<(OsString, OsString)>,
    state: Mutex<State>,
    /// Held while a tree is made: Git reads all other trees meanwhile. Also while something is fetched, so that each
    /// commit is fetched once.
    making: Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    /// Those that no process has, the last one used at the end.
    free: Vec<u32>,
    /// Those in which Git has found nothing to do.
    unchanged: HashMap<u32, Unchanged>,
    next: u32,
    /// The commits of files that were made: the commit and the patches, and what they are as one commit.
    known: HashMap<(String, Vec<String>), String>,
}

/// A working tree that a process has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tree {
    /// Its number.
    pub number: u32,
    /// Where it lies.
    pub path: PathBuf,
    /// The commit of the files in it.
    pub base: String,
}

/// A tree that is as it was made.
#[derive(Clone, Debug)]
struct Unchanged {
    /// The commit of its files, and that of its `HEAD`.
    base: String,
    head: String,
    stamp: FolderStamp,
    /// Whether an equal stamp proves that its process has changed nothing.
    is_sure: bool,
}

/// What was changed in a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Changes {
    pub patch: Vec<u8>,
    pub paths: Vec<String>,
}

impl CloneWorktrees {
    /// Those in `folder`, without those that processes have already.
    pub(super) fn new(
        folder: PathBuf,
        workspace: Option<PathBuf>,
        environment: Vec<(OsString, OsString)>,
        credentials: Vec<(OsString, OsString)>,
        taken: &BTreeSet<u32>,
    ) -> CloneWorktrees {
        let found = list_folder_names(&folder).unwrap_or_default();
        let found: Vec<u32> = found.iter().filter_map(|name| name.parse().ok()).collect();
        let next = found.iter().chain(taken).max().map_or(0, |last| last.saturating_add(1));
        let trees = CloneWorktrees {
            folder,
            workspace,
            environment,
            credentials,
            state: Mutex::default(),
            making: Mutex::default(),
        };
        let free = found.into_iter().filter(|number| !taken.contains(number)).collect();
        *trees.lock() = State { free, next, ..State::default() };
        trees
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A tree with these files. `read_patch` reads a patch by its digest. This waits for Git.
    ///
    /// # Errors
    /// It cannot be made: says what to type.
    pub(super) fn make(
        &self,
        files: &Files,
        read_patch: &dyn Fn(&str) -> Result<Vec<u8>, String>,
    ) -> Result<Tree, String> {
        let commit = files.commit.as_deref().unwrap_or_default();
        let is_id = matches!(commit.len(), 40 | 64) && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_id {
            return Err(format!("`{}` is no commit", commit.escape_debug()));
        }
        self.fetch(commit)?;
        let (base, done) = self.find_known(files);
        let number = self.take_free(commit, &base);
        let made = match self.is_unchanged(number, commit, &base) && done == files.patches.len() {
            true => Ok(Tree { number, path: self.path(number), base }),
            false => self.fill(number, files, (base, done), read_patch),
        };
        if made.is_err() {
            self.release(number);
        }
        made
    }

    /// A tree that no process has: one that has these files already, else the one that was used least recently.
    fn take_free(&self, head: &str, base: &str) -> u32 {
        let mut state = self.lock();
        if state.free.is_empty() {
            state.next += 1;
            return state.next - 1;
        }
        let has_files = |number| state.unchanged.get(number).is_some_and(|tree| tree.head == head && tree.base == base);
        let at = state.free.iter().position(has_files).unwrap_or(0);
        state.free.remove(at)
    }

    /// Whether a tree has these files, without asking Git.
    fn is_unchanged(&self, number: u32, head: &str, base: &str) -> bool {
        let Some(mut tree) = self.lock().unchanged.remove(&number) else { return false };
        let is_same =
            tree.head == head && tree.base == base && self.read_stamp(number).is_some_and(|stamp| stamp == tree.stamp);
        if is_same {
            tree.is_sure = tree.stamp.is_settled();
            self.lock().unchanged.insert(number, tree);
        }
        is_same
    }

    /// The stamp of a tree and of what Git keeps of it; none where it cannot be read.
    fn read_stamp(&self, number: u32) -> Option<FolderStamp> {
        FolderStamp::read(&[&self.path(number), &self.git_folder(number)]).ok()
    }

    /// Remembers a tree in which Git has found no change, if nothing of its process is left in it either.
    fn keep_unchanged(&self, number: u32, base: &str) {
        let folder = self.git_folder(number);
        let is_plain = |name: &OsString| PLAIN.iter().any(|plain| name == plain);
        let names = fs::read_dir(&folder).map(|entries| entries.flatten().map(|entry| entry.file_name()).collect());
        let names: Vec<OsString> = names.unwrap_or_default();
        let has_nothing_else =
            || self.in_tree(number, &["clean", "--dry-run", "-ffdx"], &[]).is_ok_and(|left| left.is_empty());
        if !names.iter().all(is_plain) || !self.leads_to_git(number) || !has_nothing_else() {
            return;
        }
        let head = fs::read_to_string(folder.join("HEAD")).unwrap_or_default().trim_end().to_owned();
        if let Some(stamp) = self.read_stamp(number) {
            self.lock().unchanged.insert(number, Unchanged { base: base.to_owned(), head, stamp, is_sure: false });
        }
    }

    /// No process has this tree any more.
    pub(super) fn release(&self, number: u32) {
        self.lock().free.push(number);
    }

    /// Has the commit in the clone.
    fn fetch(&self, commit: &str) -> Result<(), String> {
        let Some(workspace) = &self.workspace else {
            return Err("it needs the files of a repository: start this worker with `--workspace DIR`, a clone of it"
                .to_owned());
        };
        let files = (commit.to_owned(), Vec::new());
        if self.lock().known.contains_key(&files) {
            return Ok(());
        }
        let _making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        let object = format!("{commit}^{{commit}}");
        let is_there = || self.git(workspace, &self.environment, &["cat-file", "-e", &object]).is_ok();
        if !is_there() {
            let fetch = |words: &[&str]| self.git(workspace, &self.credentials, words).err();
            // Not every server gives out commits that no branch begins with.
            let mut problem = fetch(&["fetch", "--quiet", "origin", commit]);
            if !is_there() {
                problem = fetch(&["fetch", "--quiet", "--all", "--tags"]).or(problem);
            }
            if !is_there() {
                let problem = problem.unwrap_or_else(|| "no branch of `origin` has it".to_owned());
                let folder = workspace.display();
                return Err(format!(
                    "commit {commit} is not in `{folder}` ({problem}): push it, or type `git fetch` there"
                ));
            }
        }
        self.lock().known.insert(files, commit.to_owned());
        Ok(())
    }

    fn fill(
        &self,
        number: u32,
        files: &Files,
        (mut base, done): (String, usize),
        read_patch: &dyn Fn(&str) -> Result<Vec<u8>, String>,
    ) -> Result<Tree, String> {
        let path = self.path(number);
        let failed = |problem: String| format!("its files cannot be made: {problem}");
        if self.reset(number, &base).is_err() {
            self.create(number, &base).map_err(failed)?;
        }
        for (at, digest) in files.patches.iter().enumerate().skip(done) {
            let patch = read_patch(digest).map_err(failed)?;
            base = self.apply(number, &patch).map_err(|problem| failed(format!("patch {digest}: {problem}")))?;
            let known = (files.commit.clone().unwrap_or_default(), files.patches[..=at].to_vec());
            self.lock().known.insert(known, base.clone());
        }
        if let Some(commit) = files.commit.as_deref().filter(|commit| *commit != base) {
            // What the run has changed is not committed where it goes on in one place either: `git diff HEAD` shows it.
            self.in_tree(number, &["reset", "--quiet", "--soft", commit], &[]).map_err(failed)?;
        }
        Ok(Tree { number, path, base })
    }

    /// The commit with most of these patches that there is, and how many it has.
    fn find_known(&self, files: &Files) -> (String, usize) {
        let state = self.lock();
        let mut sought = (files.commit.clone().unwrap_or_default(), files.patches.clone());
        while !sought.1.is_empty() {
            if let Some(commit) = state.known.get(&sought) {
                return (commit.clone(), sought.1.len());
            }
            sought.1.pop();
        }
        (sought.0, 0)
    }

    /// Brings a tree that is there to a commit, whatever was done in it.
    fn reset(&self, number: u32, commit: &str) -> Result<(), String> {
        if !self.git_folder(number).join("HEAD").exists() {
            return Err("it is not there".to_owned());
        }
        // A process may have removed it, or made it lead elsewhere.
        if !self.leads_to_git(number) {
            let link = self.path(number).join(".git");
            let _ = fs::remove_dir_all(&link).or_else(|_| fs::remove_file(&link));
            fs::write(link, self.git_link(number)).map_err(|error| error.to_string())?;
        }
        // Of a Git that was killed in it.
        let _ = fs::remove_file(self.git_folder(number).join("index.lock"));
        self.in_tree(number, &["checkout", "--quiet", "--force", "--detach", commit], &[])?;
        // Twice `--force`: repositories in it go as well.
        self.in_tree(number, &["clean", "--quiet", "-ffdx"], &[]).map(drop)
    }

    fn create(&self, number: u32, commit: &str) -> Result<(), String> {
        let _making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(workspace) = &self.workspace else { return Err("there is no clone".to_owned()) };
        let path = self.path(number);
        create_private(&self.folder, true).map_err(|error| error.to_string())?;
        let _ = fs::remove_dir_all(&path);
        let _ = fs::remove_file(self.link(number));
        let place = path.to_string_lossy();
        // Twice `--force`: what a killed worker left of it is registered, and locked.
        let add = ["worktree", "add", "--quiet", "--force", "--force", "--detach", &place, commit];
        self.git(workspace, &self.environment, &add)?;
        // Asked before a process has been in it: later its `.git` may lead elsewhere.
        let folder = self.git(&path, &self.environment, &["rev-parse", "--absolute-git-dir"])?;
        let folder = String::from_utf8_lossy(&folder).trim_end_matches('\n').to_owned();
        std::os::unix::fs::symlink(folder, self.link(number)).map_err(|error| error.to_string())
    }

    /// Applies a patch to a tree without changes: the commit of the result.
    fn apply(&self, number: u32, patch: &[u8]) -> Result<String, String> {
        self.in_tree(number, &["apply", "--binary", "--index", "--whitespace=nowarn"], patch)?;
        self.in_tree(
            number,
            &["commit", "--quiet", "--allow-empty", "--no-verify", "--message=changes of the run"],
            &[],
        )?;
        let commit = self.in_tree(number, &["rev-parse", "--verify", "HEAD"], &[])?;
        Ok(String::from_utf8_lossy(&commit).trim().to_owned())
    }

    /// What was changed in a tree since it was made, committed or not, without what Git ignores; none where nothing was.
    ///
    /// # Errors
    /// Git fails, or the changes are too long.
    pub(super) fn find_changes(&self, number: u32, base: &str) -> Result<Option<Changes>, String> {
        let known = self.lock().unchanged.get(&number).filter(|tree| tree.is_sure && tree.base == base).cloned();
        if known.is_some_and(|tree| self.read_stamp(number) == Some(tree.stamp)) {
            return Ok(None);
        }
        self.lock().unchanged.remove(&number);
        let _ = fs::remove_file(self.git_folder(number).join("index.lock"));
        // A new file may be what Git takes for an old one by its time.
        self.in_tree(number, &["add", "--all"], &[])?;
        let names = ["diff", "--cached", "--name-only", "-z", "--no-renames", "--no-ext-diff", base, "--"];
        let names = self.in_tree(number, &names, &[])?;
        if names.is_empty() {
            self.keep_unchanged(number, base);
            return Ok(None);
        }
        let paths: Result<Vec<String>, _> = names
            .split(|&byte| byte == 0)
            .filter(|name| !name.is_empty())
            .map(|name| String::from_utf8(name.to_vec()))
            .collect();
        let paths = paths.map_err(|_| "a file was changed whose name is no text".to_owned())?;
        let mut words = vec!["diff", "--cached", "--binary", "--full-index", "--no-renames", "--no-ext-diff"];
        words.extend(["--no-textconv", "--no-color", "--src-prefix=a/", "--dst-prefix=b/", base, "--"]);
        let patch = self.in_tree(number, &words, &[])?;
        match patch.len() < LONGEST {
            true => Ok(Some(Changes { patch, paths })),
            false => Err(format!("its changes are longer than {} MB", LONGEST >> 20)),
        }
    }

    /// Where a tree lies.
    pub(super) fn path(&self, number: u32) -> PathBuf {
        self.folder.join(number.to_string())
    }

    /// A link to what Git keeps of a tree.
    fn link(&self, number: u32) -> PathBuf {
        self.folder.join(format!(".{number}"))
    }

    fn git_folder(&self, number: u32) -> PathBuf {
        fs::read_link(self.link(number)).unwrap_or_else(|_| self.link(number))
    }

    /// What the file `.git` of a tree says.
    fn git_link(&self, number: u32) -> String {
        format!("gitdir: {}\n", self.git_folder(number).display())
    }

    /// Whether the `.git` of a tree leads to what Git keeps of it.
    fn leads_to_git(&self, number: u32) -> bool {
        let link = self.path(number).join(".git");
        let right = self.git_link(number);
        let has_length = |meta: fs::Metadata| meta.is_file() && meta.len() == right.len() as u64;
        fs::symlink_metadata(&link).is_ok_and(has_length) && fs::read(link).is_ok_and(|text| text == right.as_bytes())
    }

    /// Git in a tree, whatever its `.git` says.
    fn in_tree(&self, number: u32, words: &[&str], stdin: &[u8]) -> Result<Vec<u8>, String> {
        let path = self.path(number);
        let mut environment = self.environment.clone();
        let who = [("NAME", "swarmc"), ("EMAIL", "swarmc@swarm.invalid"), ("DATE", "@0 +0000")];
        for (what, value) in who {
            // So that the same patches make the same commit.
            for role in ["AUTHOR", "COMMITTER"] {
                environment.push((format!("GIT_{role}_{what}").into(), value.into()));
            }
        }
        environment.push(("GIT_DIR".into(), self.git_folder(number).into()));
        environment.push(("GIT_WORK_TREE".into(), path.clone().into()));
        run_git(&path, &environment, words, stdin)
    }

    fn git(&self, folder: &Path, environment: &[(OsString, OsString)], words: &[&str]) -> Result<Vec<u8>, String> {
        run_git(folder, environment, words, &[])
    }
}

/// Runs Git: whatever the repository says, it starts no hook, and asks no person.
fn run_git(
    folder: &Path,
    environment: &[(OsString, OsString)],
    words: &[&str],
    stdin: &[u8],
) -> Result<Vec<u8>, String> {
    let settings = [
        "core.hooksPath=/dev/null",
        "core.fsmonitor=false",
        "core.quotePath=false",
        "commit.gpgSign=false",
        "gc.auto=0",
        "maintenance.auto=false",
    ];
    let argv = ["git", "--literal-pathspecs"].into_iter();
    let argv = argv.chain(settings.iter().flat_map(|setting| ["-c", *setting])).chain(words.iter().copied());
    let argv: Vec<OsString> = argv.map(OsString::from).collect();
    let is_diff = words.contains(&"--binary");
    let mut environment = environment.to_vec();
    environment.extend(
        [("GIT_TERMINAL_PROMPT", "0"), ("GIT_EDITOR", "false")].map(|(name, value)| (name.into(), value.into())),
    );
    let stdin = Some(stdin).filter(|bytes| !bytes.is_empty());
    let limits = (PATIENCE, if is_diff { LONGEST } else { ANSWER });
    read_stdout_bytes(&argv, &environment, (folder, stdin), limits, &Cancel::default())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::process::Command;

    use super::*;

    /// A clone with a commit, and the trees of a worker that has it.
    struct Place {
        folder: tempfile::TempDir,
        trees: CloneWorktrees,
        files: Files,
    }

    impl Place {
        fn new() -> Place {
            let folder = tempfile::tempdir().unwrap();
            let clone = folder.path().join("clone");
            let run = |script: &str| {
                let script = format!("set -eu; {script}");
                let done = Command::new("sh").args(["-c", &script]).current_dir(folder.path()).output().unwrap();
                assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
                String::from_utf8(done.stdout).unwrap().trim().to_owned()
            };
            run("git init -q clone && cd clone && mkdir part && echo one > part/file && echo ignored > .gitignore");
            run("cd clone && git add -A && git -c user.name=a -c user.email=b commit -qm first");
            // Writes down what Git is asked.
            let git = run("command -v git");
            fs::create_dir(folder.path().join("bin")).unwrap();
            let log = folder.path().join("log");
            let script = format!("#!/bin/sh\necho \"$*\" >> '{}'\nexec '{git}' \"$@\"\n", log.display());
            fs::write(folder.path().join("bin/git"), script).unwrap();
            fs::set_permissions(folder.path().join("bin/git"), fs::Permissions::from_mode(0o755)).unwrap();
            let path = format!("{}:{}", folder.path().join("bin").display(), std::env::var("PATH").unwrap());
            let environment = vec![("PATH".into(), path.into())];
            let places = (folder.path().join("trees"), Some(clone));
            let trees = CloneWorktrees::new(places.0, places.1, environment.clone(), environment, &BTreeSet::new());
            let commit = run("cd clone && git rev-parse HEAD");
            Place { folder, trees, files: Files { commit: Some(commit), patches: Vec::new() } }
        }

        fn make(&self) -> Tree {
            self.trees.make(&self.files, &|digest| Err(digest.to_owned())).unwrap()
        }

        /// What a process changes that does this in its tree, and whether Git was asked.
        fn change(&self, script: &str) -> (Option<Vec<String>>, bool) {
            let log = self.folder.path().join("log");
            let _ = fs::remove_file(&log);
            let tree = self.make();
            let status = Command::new("sh").args(["-c", script]).current_dir(&tree.path).status().unwrap();
            assert!(status.success(), "{script}: {:?}", fs::read_dir(&tree.path).unwrap().collect::<Vec<_>>());
            let changes = self.trees.find_changes(tree.number, &tree.base).unwrap();
            self.trees.release(tree.number);
            assert_eq!(tree.number, 0, "one tree is enough for one process after another");
            (changes.map(|changes| changes.paths), log.exists())
        }

        fn await_settled(&self) {
            while !self.trees.read_stamp(0).unwrap().is_settled() {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }

    #[test]
    fn a_tree_in_which_nothing_changes_needs_no_git_and_each_change_is_found() {
        let place = Place::new();
        assert_eq!(place.change("true"), (None, true));
        place.await_settled();
        assert_eq!(place.change("cat part/file"), (None, false));
        let same_length_and_time =
            "cp -p part/file /tmp/$$; echo two > part/file; touch -r /tmp/$$ part/file; rm /tmp/$$";
        assert_eq!(place.change(same_length_and_time), (Some(vec!["part/file".to_owned()]), true));
        for script in ["rm part/file", "chmod +x part/file", "ln -sf / part/file"] {
            place.change("true");
            place.await_settled();
            assert_eq!(place.change(script), (Some(vec!["part/file".to_owned()]), true), "{script}");
        }
    }

    #[test]
    fn nothing_that_is_left_in_a_tree_is_there_for_the_next_process() {
        let place = Place::new();
        let commit = "git -c user.name=a -c user.email=b commit -q --allow-empty -m own";
        for leaves in ["mkdir empty", "echo built > ignored", commit, "git checkout -q -b own", "rm .git"] {
            place.change("true");
            place.await_settled();
            assert_eq!(place.change(leaves).0, None, "{leaves}");
            place.await_settled();
            let (log, wanted) =
                ("git log --format=%s; git branch --show-current; ls -A", "first\n.git\n.gitignore\npart");
            let script = format!("test \"$({log})\" = \"{wanted}\"");
            assert_eq!(place.change(&script).0, None, "after {leaves}");
        }
    }
}
