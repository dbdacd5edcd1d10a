//! What changed in a Git checkout between two moments, changes that are not committed and new files included.
//!
//! In: a folder of a checkout. Out: the difference of what Git says is not as in an index of ours, a copy of that of
//! the people who work there: neither theirs nor their repository is touched. A look takes less than a `git status`,
//! which compares with the last commit besides, and only what has changed is read. Invariants: no link is followed out
//! of the checkout, and nothing is started that the repository names.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsString;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use super::diff::Changes;
use super::index::{Changed, DOUBTS, Index, IndexedVersion, open_regular};
use super::kept::KeptGit;
use super::read_budget::ReadBudget;
use super::version::{Kind, Version, diff_versions};
use crate::io::confine::Folder;
use crate::io::home::create_private;
use crate::io::process::read_stdout_bytes;
use crate::types::cancel::Cancel;

/// How long Git may take for one answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// The bytes of an answer that are read: the paths that changed, or what stood in those files.
const ANSWER: usize = 16 << 20;

/// The bytes of the settings of a repository that are looked through.
const SETTINGS: u64 = 1 << 20;

/// The bytes of an index that is copied: two and a half million files have one of this size.
const INDEX: u64 = 256 << 20;

/// The filters that a repository may name.
const FILTERS: usize = 100;

/// The environment of Git, without the variables of tasks. Variables that others set come last.
const PASSED: [&str; 6] = ["PATH", "HOME", "XDG_CONFIG_HOME", "LANG", "TMPDIR", "SWARM_RUN"];

/// What is not as in the index; what is new; and the order to look at all files again.
const DIFFERENT: [&str; 7] = ["diff-files", "--raw", "-z", "--no-abbrev", "--ignore-submodules=all", "--", "."];
const OTHERS: [&str; 7] = ["ls-files", "--others", "--exclude-standard", "--full-name", "-z", "--", "."];
const REFRESH: [&str; 3] = ["update-index", "-q", "--refresh"];

/// The mode of a repository in a repository.
const MODULE: &str = "160000";

/// A checkout as it was.
#[derive(Debug)]
pub(super) struct Git {
    folder: PathBuf,
    environment: Vec<(OsString, OsString)>,
    /// Where our index lies.
    scratch: TempDir,
    /// The top of the checkout, from which paths count.
    top: PathBuf,
    root: Folder,
    /// The files that were not as in the index, by path; none: there was none.
    before: BTreeMap<String, Option<Version>>,
    /// Those of which it is not known how they were.
    unknown: BTreeSet<String>,
    omitted: Vec<String>,
    /// What lies in here is not looked at.
    apart: Option<PathBuf>,
}

impl Git {
    /// The checkout that `folder` is part of, as it is now; none where there is none, or no Git that could say.
    /// `scratch` is where ours may lie meanwhile, and `apart` is not looked at.
    pub(super) fn open_checkout(
        folder: &Path,
        environment: &[(OsString, OsString)],
        (scratch, apart): (&Path, Option<&Path>),
    ) -> Option<Git> {
        let mut git = Git::open_with_index(folder, environment, (scratch, apart), None)?;
        let changed = git.list_changed().ok()?;
        let mut room = ReadBudget::default();
        for (path, _) in changed {
            match room.admit_file(&git.root, &path) {
                Ok(version) => _ = git.before.insert(path, version),
                Err(_) => _ = git.unknown.insert(path),
            }
        }
        room.report_omitted(&mut git.omitted);
        Some(git)
    }

    /// The checkout that `folder` is part of, as [`Git::keep`] kept it; none where it is none any more.
    pub(super) fn reopen_checkout(
        folder: &Path,
        environment: &[(OsString, OsString)],
        (scratch, apart): (&Path, Option<&Path>),
        (kept, index): (KeptGit, PathBuf),
    ) -> Option<Git> {
        let git = Git::open_with_index(folder, environment, (scratch, apart), Some(&index))?;
        let KeptGit { before, unknown, omitted } = kept;
        Some(Git { before, unknown, omitted, ..git })
    }

    /// Keeps its index in the file `index`, and gives the rest.
    pub(super) fn keep(&self, index: &Path) -> std::io::Result<KeptGit> {
        copy_index(&self.scratch.path().join("index"), index)?;
        Ok(KeptGit { before: self.before.clone(), unknown: self.unknown.clone(), omitted: self.omitted.clone() })
    }

    /// The checkout with an index of ours: a copy of `kept`, or of its own.
    fn open_with_index(
        folder: &Path,
        environment: &[(OsString, OsString)],
        (scratch, apart): (&Path, Option<&Path>),
        kept: Option<&Path>,
    ) -> Option<Git> {
        // Without a repository above, Git need not be asked.
        let top = folder.ancestors().find(|above| above.join(".git").exists())?;
        let passed = |name: &&str| environment.iter().find(|(given, _)| given.to_str() == Some(name)).cloned();
        let mut environment: Vec<(OsString, OsString)> = PASSED.iter().filter_map(passed).collect();
        // Git fetches no missing object, and waits for no lock.
        let fixed = [("GIT_NO_LAZY_FETCH", "1"), ("GIT_ALLOW_PROTOCOL", ""), ("GIT_OPTIONAL_LOCKS", "0")];
        environment.extend(fixed.map(|(name, value)| (name.into(), value.into())));
        let (top, index) = locate_checkout(top, (folder, &environment))?;
        create_private(scratch, true).ok()?;
        let scratch = tempfile::tempdir_in(scratch).ok()?;
        let own = scratch.path().join("index");
        // Git writes the index that it is given when it looks at files again.
        copy_index(kept.unwrap_or(&index), &own).ok()?;
        environment.push((OsString::from("GIT_INDEX_FILE"), own.into()));
        Some(Git {
            folder: folder.to_owned(),
            environment,
            scratch,
            root: Folder::open(&top).ok()?,
            top,
            before: BTreeMap::new(),
            unknown: BTreeSet::new(),
            omitted: Vec::new(),
            apart: apart.map(Path::to_owned),
        })
    }

    /// What has changed since.
    ///
    /// # Errors
    /// Git does not say.
    pub(super) fn changes(&mut self) -> Result<Changes, String> {
        let changed = self.list_changed()?;
        let mut stood: BTreeMap<String, IndexedVersion> = changed.into_iter().collect();
        // Of those that differed before, the version of then counts, and not that of the index.
        stood.retain(|path, _| !self.unknown.contains(path) && !self.before.contains_key(path));
        let kept = self.read_objects(stood.values().flatten().map(|(_, id)| id.as_str()))?;
        let mut before = std::mem::take(&mut self.before);
        let mut lost = 0;
        for (path, entry) in stood {
            let version = entry.map(|(kind, id)| kept.get(&id).map(|bytes| Version { kind, bytes: bytes.clone() }));
            match version {
                Some(None) => lost += 1,
                version => _ = before.insert(path, version.flatten()),
            }
        }
        let (mut changes, mut room) = (Changes::default(), ReadBudget::default());
        for (path, old) in &before {
            let Ok(new) = room.admit_file(&self.root, path) else { continue };
            if let Some(told) = diff_versions(path, old.as_ref(), new.as_ref()) {
                changes.push(&told);
            }
        }
        room.report_omitted(&mut self.omitted);
        if lost > 0 {
            self.omitted.push(format!("{lost} files: their earlier contents are too long to compare"));
        }
        self.omitted.sort_unstable();
        self.omitted.dedup();
        changes.omitted = std::mem::take(&mut self.omitted);
        Ok(changes)
    }

    /// What is not as in our index, or may not be.
    fn list_changed(&mut self) -> Result<Vec<(String, IndexedVersion)>, String> {
        let within = (self.folder.as_path(), self.environment.as_slice());
        let mut omitted = Vec::new();
        // Each of them goes through the whole tree: at the same time they take half as long.
        let (changed, new) = std::thread::scope(|scope| {
            let new = scope.spawn(|| run_git(within, &OTHERS, &[]));
            (
                self.list_tracked_changes(&mut omitted),
                new.join().unwrap_or_else(|_| Err("it cannot be asked".to_owned())),
            )
        });
        let (mut changed, new) = (changed?, new?);
        // A folder is a repository of its own.
        let new = split_entries(&new, &mut omitted).into_iter().filter(|path| !path.ends_with(b"/"));
        changed.extend(new.map(|path| (path.to_owned(), None)));
        let mut named = Vec::new();
        for (path, stood) in changed {
            match String::from_utf8(path) {
                Ok(path) if self.apart.as_ref().is_some_and(|apart| self.top.join(&path).starts_with(apart)) => {}
                Ok(path) => named.push((path, stood)),
                Err(_) => omitted.push("files whose names are no text".to_owned()),
            }
        }
        self.omitted.append(&mut omitted);
        Ok(named)
    }

    /// The files of our index that are not as in there, or may not be.
    fn list_tracked_changes(&self, omitted: &mut Vec<String>) -> Result<Vec<Changed>, String> {
        let within = self.folder.strip_prefix(&self.top).map_err(|_| "the folder is not in its checkout")?;
        let mut within = within.as_os_str().as_bytes().to_owned();
        if !within.is_empty() {
            within.push(b'/');
        }
        let top = self.root.folder(".")?;
        let own = self.scratch.path().join("index");
        let index = Index::open(&own).map_err(|error| format!("the copy of its index cannot be read: {error}"))?;
        match index.and_then(|index| index.find_changed(top.as_fd(), &within)) {
            Some(changed) => Ok(changed),
            None => self.compare_tracked(omitted),
        }
    }

    /// The same by Git, which reads files that may have changed, without the help of the repository's own filters.
    fn compare_tracked(&self, omitted: &mut Vec<String>) -> Result<Vec<Changed>, String> {
        let within = (self.folder.as_path(), self.environment.as_slice());
        // The turn may have changed the configuration of the repository, too.
        let names = list_settings(within).ok_or("Git does not say how it is set up")?;
        let filters = disable_filters(&names).ok_or("the repository names filters that cannot be left out")?;
        let words = |words: &[&'static str]| {
            let words: Vec<&str> = filters.iter().map(String::as_str).chain(words.iter().copied()).collect();
            run_git(within, &words, &[])
        };
        let mut told = words(&DIFFERENT)?;
        if told.iter().filter(|&&byte| byte == b':').count() > DOUBTS {
            // What it says of those that are as they were is of no interest.
            let _ = words(&REFRESH);
            told = words(&DIFFERENT)?;
        }
        let mut entries = split_entries(&told, omitted).into_iter();
        let mut changed = Vec::new();
        // `:MODE MODE ID ID STATE`, and a path.
        while let (Some(head), Some(path)) = (entries.next(), entries.next()) {
            let head = String::from_utf8_lossy(head);
            let fields: Vec<&str> = head.trim_start_matches(':').split(' ').collect();
            if let [mode, _, id, _, _] = fields[..]
                && mode != MODULE
            {
                changed.push((path.to_owned(), Kind::from_git_mode(mode).map(|kind| (kind, id.to_owned()))));
            }
        }
        Ok(changed)
    }

    /// The contents of objects in the repository, by id.
    fn read_objects<'i>(&self, ids: impl Iterator<Item = &'i str>) -> Result<HashMap<String, Vec<u8>>, String> {
        let list: String = ids.map(|id| format!("{id}\n")).collect();
        if list.is_empty() {
            return Ok(HashMap::new());
        }
        let told = run_git((&self.folder, &self.environment), &["cat-file", "--batch"], list.as_bytes())?;
        let (mut kept, mut rest) = (HashMap::new(), told.as_slice());
        // `ID blob SIZE`, the bytes, and a line's end; what is cut off at the end is not known.
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let head = String::from_utf8_lossy(&rest[..end]).into_owned();
            rest = &rest[end + 1..];
            let mut words = head.split(' ');
            let (Some(id), Some("blob"), Some(size)) = (words.next(), words.next(), words.next()) else { continue };
            let size = size.parse().unwrap_or(usize::MAX);
            let Some(bytes) = rest.get(..size) else { break };
            kept.insert(id.to_owned(), bytes.to_vec());
            rest = rest.get(size + 1..).unwrap_or_default();
        }
        Ok(kept)
    }
}

/// The entries between NULs.
fn split_entries<'t>(told: &'t [u8], omitted: &mut Vec<String>) -> Vec<&'t [u8]> {
    if told.len() >= ANSWER {
        omitted.push("the changes of more files than can be listed".to_owned());
    }
    let mut entries: Vec<&[u8]> = told.split(|&byte| byte == 0).collect();
    // After the last one there is nothing, or the beginning of one that was cut off.
    entries.pop();
    entries
}

/// The names of all that the repository and its user have set.
fn list_settings(within: (&Path, &[(OsString, OsString)])) -> Option<Vec<String>> {
    let told = run_git(within, &["config", "--list", "--name-only", "-z"], &[]).ok()?;
    told.split(|&byte| byte == 0).map(|name| String::from_utf8(name.to_vec()).ok()).collect()
}

/// The top of a checkout, which holds `.git`, and the path of its index.
fn locate_checkout(top: &Path, within: (&Path, &[(OsString, OsString)])) -> Option<(PathBuf, PathBuf)> {
    let repository = top.join(".git");
    if is_usual(&repository) {
        return Some((top.to_owned(), repository.join("index")));
    }
    let told =
        run_git(within, &["rev-parse", "--is-inside-work-tree", "--show-toplevel", "--git-path", "index"], &[]).ok()?;
    let told = String::from_utf8_lossy(&told).into_owned();
    let mut told = told.lines();
    let (inside, top, index) = (told.next()?, PathBuf::from(told.next()?), told.next()?);
    (inside == "true").then(|| (top, within.0.join(index)))
}

/// Whether it is clear where the tree and the index of a repository lie: Git says otherwise in its settings alone.
fn is_usual(repository: &Path) -> bool {
    let settings = || {
        let mut settings = Vec::new();
        open_regular(&repository.join("config")).ok()??.take(SETTINGS).read_to_end(&mut settings).ok()?;
        Some(settings.to_ascii_lowercase())
    };
    repository.join("objects").is_dir()
        && repository.join("HEAD").exists()
        && settings().is_some_and(|settings| {
            (settings.len() as u64) < SETTINGS && memchr::memmem::find(&settings, b"worktree").is_none()
        })
}

/// The words that keep Git from starting the filters with these settings; none where they cannot be named.
fn disable_filters(names: &[String]) -> Option<Vec<String>> {
    let named = names.iter().filter_map(|name| name.strip_prefix("filter.")?.rsplit_once('.'));
    let filters: BTreeSet<&str> = named.map(|(filter, _)| filter).collect();
    if filters.len() > FILTERS || filters.iter().any(|filter| filter.contains('=')) {
        return None;
    }
    let off = |filter: &str| {
        let off = ["clean=", "smudge=", "process=", "required=false"].map(|word| format!("filter.{filter}.{word}"));
        off.into_iter().flat_map(|word| ["-c".to_owned(), word])
    };
    Some(filters.into_iter().flat_map(off).collect())
}

/// Copies an index, where there is one. By its time Git knows which files may have changed since in the same moment.
///
/// # Errors
/// It cannot be read or written, or is larger than any that people work with.
fn copy_index(from: &Path, to: &Path) -> std::io::Result<()> {
    let Some(index) = open_regular(from)? else { return Ok(()) };
    let modified = index.metadata()?.modified()?;
    if index.metadata()?.len() > INDEX {
        return Err(ErrorKind::FileTooLarge.into());
    }
    let mut copy = File::options().write(true).create_new(true).open(to)?;
    // It may grow meanwhile.
    std::io::copy(&mut index.take(INDEX), &mut copy)?;
    copy.set_modified(modified)
}

/// Asks Git. Whatever the repository says, it starts nothing for that, and the only index that it may write is ours.
fn run_git(
    (folder, environment): (&Path, &[(OsString, OsString)]),
    words: &[&str],
    stdin: &[u8],
) -> Result<Vec<u8>, String> {
    let off = ["core.fsmonitor=false", "core.hooksPath=/dev/null", "core.quotePath=false", "core.splitIndex=false"];
    let first = ["git"].into_iter().chain(off.into_iter().flat_map(|setting| ["-c", setting]));
    let argv: Vec<OsString> = first.chain(words.iter().copied()).map(OsString::from).collect();
    let stdin = Some(stdin).filter(|bytes| !bytes.is_empty());
    read_stdout_bytes(&argv, environment, (folder, stdin), (PATIENCE, ANSWER), &Cancel::default())
}

#[cfg(test)]
mod tests;
