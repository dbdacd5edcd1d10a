//! What changed in a Git checkout between two moments, changes that are not committed and new files included.
//!
//! In: a folder of a checkout. Out: the difference of what Git says is not as in an index of ours, a copy of that of the
//! people who work there: neither theirs nor their repository is touched. A look takes less than a `git status`, which
//! compares with the last commit besides, and only what has changed is read. Invariants: no link is followed out of the
//! checkout, and nothing is started that the repository names.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use super::diff::Changes;
use super::room::Room;
use super::version::{Kind, Version, difference};
use crate::executor::{Cancel, bytes};
use crate::home::create_private;
use crate::tools::Folder;

/// How long Git may take for one answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// The bytes of an answer that are read: the paths that changed, or what stood in those files.
const ANSWER: usize = 16 << 20;

/// So many changed files mean that the index knows of older ones: it was copied along with them, say.
const STALE: usize = 200;

/// The filters that a repository may name.
const FILTERS: usize = 100;

/// What Git is told of the world: nothing that a task was given. Those that others set come last.
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
    _scratch: TempDir,
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

/// A path that is not as in the index, and what stands there: its kind, and where its bytes are.
type Changed = (String, Option<(Kind, String)>);

impl Git {
    /// The checkout that `folder` is part of, as it is now; none where there is none, or no Git that could say.
    /// `scratch` is where ours may lie meanwhile, and `apart` is not looked at.
    pub(super) fn look(
        folder: &Path,
        environment: &[(OsString, OsString)],
        (scratch, apart): (&Path, Option<&Path>),
    ) -> Option<Git> {
        // Without a repository above nobody need be asked.
        let top = folder.ancestors().find(|above| above.join(".git").exists())?;
        let passed = |name: &&str| environment.iter().find(|(given, _)| given.to_str() == Some(name)).cloned();
        let mut environment: Vec<(OsString, OsString)> = PASSED.iter().filter_map(passed).collect();
        // What is not here is not fetched, and nobody waits for a lock.
        let fixed = [("GIT_NO_LAZY_FETCH", "1"), ("GIT_ALLOW_PROTOCOL", ""), ("GIT_OPTIONAL_LOCKS", "0")];
        environment.extend(fixed.map(|(name, value)| (name.into(), value.into())));
        let names = names((folder, &environment))?;
        let (top, index) = places(top, (folder, &environment), &names)?;
        create_private(scratch, true).ok()?;
        let scratch = tempfile::tempdir_in(scratch).ok()?;
        let own = scratch.path().join("index");
        copy_index(&index, &own).ok()?;
        environment.push((OsString::from("GIT_INDEX_FILE"), own.into()));
        let mut git = Git {
            folder: folder.to_owned(),
            environment,
            _scratch: scratch,
            root: Folder::open(&top).ok()?,
            top,
            before: BTreeMap::new(),
            unknown: BTreeSet::new(),
            omitted: Vec::new(),
            apart: apart.map(Path::to_owned),
        };
        let changed = git.changed(&filters(&names)?).ok()?;
        let mut room = Room::default();
        for (path, _) in changed {
            match room.admits(&git.root, &path) {
                Ok(version) => _ = git.before.insert(path, version),
                Err(_) => _ = git.unknown.insert(path),
            }
        }
        room.tell(&mut git.omitted);
        Some(git)
    }

    /// What has changed since.
    ///
    /// # Errors
    /// Git does not say.
    pub(super) fn changes(&mut self) -> Result<Changes, String> {
        // Whoever took the turn may have changed what the repository says, too.
        let names = names((&self.folder, &self.environment)).ok_or("Git does not say how it is set up")?;
        let filters = filters(&names).ok_or("the repository names filters that cannot be left out")?;
        let changed = self.changed(&filters)?;
        let mut stood: BTreeMap<String, Option<(Kind, String)>> = changed.into_iter().collect();
        stood.retain(|path, _| !self.unknown.contains(path) && !self.before.contains_key(path));
        let kept = self.kept(stood.values().flatten().map(|(_, id)| id.as_str()))?;
        let mut before = std::mem::take(&mut self.before);
        let mut lost = 0;
        for (path, entry) in stood {
            let version = entry.map(|(kind, id)| kept.get(&id).map(|bytes| Version { kind, bytes: bytes.clone() }));
            match version {
                Some(None) => lost += 1,
                version => _ = before.insert(path, version.flatten()),
            }
        }
        let (mut changes, mut room) = (Changes::default(), Room::default());
        for (path, old) in &before {
            let Ok(new) = room.admits(&self.root, path) else { continue };
            if let Some(told) = difference(path, old.as_ref(), new.as_ref()) {
                changes.push(&told);
            }
        }
        room.tell(&mut self.omitted);
        if lost > 0 {
            self.omitted.push(format!("{lost} files: what stood in them is too long to compare"));
        }
        self.omitted.sort_unstable();
        self.omitted.dedup();
        changes.omitted = std::mem::take(&mut self.omitted);
        Ok(changes)
    }

    /// What is not as in our index, without the help of the repository's own `filters`.
    fn changed(&mut self, filters: &[String]) -> Result<Vec<Changed>, String> {
        let words = |words: &'static [&'static str]| filters.iter().map(String::as_str).chain(words.iter().copied());
        let within = (self.folder.as_path(), self.environment.as_slice());
        // Each of them reads the whole tree: at the same time they take half as long.
        let (told, new) = std::thread::scope(|scope| {
            let new = scope.spawn(|| ask(within, &words(&OTHERS).collect::<Vec<&str>>(), &[]));
            let told = ask(within, &words(&DIFFERENT).collect::<Vec<&str>>(), &[]);
            let told = told.and_then(|told| match told.iter().filter(|&&byte| byte == b':').count() > STALE {
                true => {
                    // What it says of those that are as they were is of no interest.
                    let _ = ask(within, &words(&REFRESH).collect::<Vec<&str>>(), &[]);
                    ask(within, &words(&DIFFERENT).collect::<Vec<&str>>(), &[])
                }
                false => Ok(told),
            });
            (told, new.join().unwrap_or_else(|_| Err("it cannot be asked".to_owned())))
        });
        let (told, new) = (told?, new?);
        let mut changed = Vec::new();
        let mut entries = self.entries(&told).into_iter();
        // `:MODE MODE ID ID STATE`, and a path.
        while let (Some(head), Some(path)) = (entries.next(), entries.next()) {
            let (Some(head), Some(path)) = (head, path) else { continue };
            let fields: Vec<&str> = head.trim_start_matches(':').split(' ').collect();
            if let [mode, _, id, _, state] = fields[..]
                && state != "U"
                && mode != MODULE
            {
                changed.push((path.to_owned(), Kind::read(mode).map(|kind| (kind, id.to_owned()))));
            }
        }
        // A folder is a repository of its own.
        let new = self.entries(&new).into_iter().flatten().filter(|path| !path.ends_with('/'));
        changed.extend(new.map(|path| (path.to_owned(), None)));
        changed.retain(|(path, _)| self.apart.as_ref().is_none_or(|apart| !self.top.join(path).starts_with(apart)));
        Ok(changed)
    }

    /// What stands between NULs; what is no text is none.
    fn entries<'t>(&mut self, told: &'t [u8]) -> Vec<Option<&'t str>> {
        let mut entries: Vec<&[u8]> = told.split(|&byte| byte == 0).collect();
        // Behind the last one stands nothing, or the beginning of one that was cut off.
        entries.pop();
        if told.len() >= ANSWER {
            self.omitted.push("the changes of more files than can be listed".to_owned());
        }
        let entries: Vec<Option<&str>> = entries.into_iter().map(|entry| std::str::from_utf8(entry).ok()).collect();
        if entries.contains(&None) {
            self.omitted.push("files whose names are no text".to_owned());
        }
        entries
    }

    /// What stands in the repository, by id.
    fn kept<'i>(&self, ids: impl Iterator<Item = &'i str>) -> Result<HashMap<String, Vec<u8>>, String> {
        let list: String = ids.map(|id| format!("{id}\n")).collect();
        if list.is_empty() {
            return Ok(HashMap::new());
        }
        let told = ask((&self.folder, &self.environment), &["cat-file", "--batch"], list.as_bytes())?;
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

/// The names of all that the repository and its user have set.
fn names(within: (&Path, &[(OsString, OsString)])) -> Option<Vec<String>> {
    let told = ask(within, &["config", "--list", "--name-only", "-z"], &[]).ok()?;
    told.split(|&byte| byte == 0).map(|name| String::from_utf8(name.to_vec()).ok()).collect()
}

/// The top of a checkout, below which `.git` stands, and where its index lies.
fn places(top: &Path, within: (&Path, &[(OsString, OsString)]), names: &[String]) -> Option<(PathBuf, PathBuf)> {
    let repository = top.join(".git");
    let is_usual = repository.join("objects").is_dir() && repository.join("HEAD").exists();
    if is_usual && !names.iter().any(|name| name == "core.worktree") {
        return Some((top.to_owned(), repository.join("index")));
    }
    let told =
        ask(within, &["rev-parse", "--is-inside-work-tree", "--show-toplevel", "--git-path", "index"], &[]).ok()?;
    let told = String::from_utf8_lossy(&told).into_owned();
    let mut told = told.lines();
    let (inside, top, index) = (told.next()?, PathBuf::from(told.next()?), told.next()?);
    (inside == "true").then(|| (top, within.0.join(index)))
}

/// The words that keep Git from starting the filters with these settings; none where they cannot be named.
fn filters(names: &[String]) -> Option<Vec<String>> {
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
fn copy_index(from: &Path, to: &Path) -> std::io::Result<()> {
    if !from.exists() {
        return Ok(());
    }
    let time = fs::metadata(from)?.modified()?;
    fs::copy(from, to)?;
    File::options().write(true).open(to)?.set_modified(time)
}

/// Asks Git. Whatever the repository says, it starts nothing for that, and the only index that it may write is ours.
fn ask(
    (folder, environment): (&Path, &[(OsString, OsString)]),
    words: &[&str],
    stdin: &[u8],
) -> Result<Vec<u8>, String> {
    let first = ["git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.quotePath=false"];
    let argv: Vec<OsString> = first.iter().chain(words).map(OsString::from).collect();
    let stdin = Some(stdin).filter(|bytes| !bytes.is_empty());
    bytes(&argv, environment, (folder, stdin), (PATIENCE, ANSWER), &Cancel::default())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::process::Command;

    use super::*;

    struct Checkout(TempDir);

    impl Checkout {
        fn new() -> Checkout {
            let checkout = Checkout(tempfile::tempdir().expect("a folder"));
            fs::create_dir(checkout.at("tree")).expect("a folder");
            checkout.git(&["init", "--quiet"]);
            checkout
        }

        fn at(&self, path: &str) -> PathBuf {
            self.0.path().join(path)
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.at("tree").join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, text).expect("a file");
        }

        fn git(&self, words: &[&str]) {
            let person = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"];
            let mut command = Command::new("git");
            let output = command.args(person).args(words).current_dir(self.at("tree")).output().expect("git starts");
            assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        }

        fn commit(&self) {
            self.git(&["add", "-A"]);
            self.git(&["commit", "--quiet", "--allow-empty", "-m", "One"]);
        }

        fn look(&self, folder: &str) -> Git {
            let environment = [("PATH", std::env::var_os("PATH").expect("a PATH")), ("HOME", self.at("home").into())];
            let environment = environment.map(|(name, value)| (OsString::from(name), value));
            let places = (self.at("scratch"), self.at("tree/runs"));
            let folder = self.at(folder).canonicalize().expect("it is there");
            Git::look(&folder, &environment, (&places.0, Some(&places.1))).expect("it is a checkout")
        }
    }

    #[test]
    fn what_a_turn_did_is_told_whatever_it_did() {
        let checkout = Checkout::new();
        for path in ["kept", "dirty", "again", "gone", "committed", "mode", "to-link", "deep/in/it"] {
            checkout.write(path, &format!("{path}\n"));
        }
        checkout.write(".gitignore", "*.log\n");
        checkout.commit();
        checkout.write("dirty", "before\n");
        checkout.write("again", "before\n");
        checkout.write("untracked", "before\n");
        checkout.write("goes", "before\n");
        checkout.write("staged", "before\n");
        checkout.git(&["add", "staged"]);
        let index = fs::read(checkout.at("tree/.git/index")).expect("an index");
        let mut git = checkout.look("tree");
        checkout.write("again", "after\n");
        checkout.write("untracked", "after\n");
        checkout.write("new/one", "after\n");
        checkout.write("noise.log", "after\n");
        fs::remove_file(checkout.at("tree/goes")).expect("it is there");
        fs::remove_file(checkout.at("tree/gone")).expect("it is there");
        fs::set_permissions(checkout.at("tree/mode"), fs::Permissions::from_mode(0o755)).expect("it is there");
        fs::remove_file(checkout.at("tree/to-link")).expect("it is there");
        symlink("/etc/passwd", checkout.at("tree/to-link")).expect("a link");
        assert_eq!(fs::read(checkout.at("tree/.git/index")).expect("an index"), index, "nobody touches it");
        // Whoever commits has changed something all the same.
        checkout.write("committed", "after\n");
        checkout.git(&["commit", "--quiet", "-m", "Two", "committed"]);
        let changes = git.changes().expect("git says");
        let text = changes.text;
        assert_eq!((changes.files, changes.omitted), (8, Vec::<String>::new()), "{text}");
        for part in [
            "--- a/again\n+++ b/again\n@@ -1 +1 @@\n-before\n+after\n",
            "--- a/untracked\n+++ b/untracked\n@@ -1 +1 @@\n-before\n+after\n",
            "--- a/committed\n+++ b/committed\n@@ -1 +1 @@\n-committed\n+after\n",
            "new file mode 100644\n--- /dev/null\n+++ b/new/one\n@@ -0,0 +1 @@\n+after\n",
            "deleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n",
            "deleted file mode 100644\n--- a/goes\n+++ /dev/null\n@@ -1 +0,0 @@\n-before\n",
            "diff --git a/mode b/mode\nold mode 100644\nnew mode 100755\n",
            "new file mode 120000\n--- /dev/null\n+++ b/to-link\n@@ -0,0 +1 @@\n+/etc/passwd\n\\ No newline at end of file\n",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert!(!text.contains("dirty") && !text.contains("staged") && !text.contains("root:"), "{text}");
    }

    #[test]
    fn no_folder_is_followed_out_and_what_lies_apart_is_not_looked_at() {
        let checkout = Checkout::new();
        checkout.write("deep/file", "inside\n");
        checkout.write("sub/other", "one\n");
        checkout.commit();
        fs::create_dir_all(checkout.at("outside")).expect("a folder");
        fs::write(checkout.at("outside/file"), "secret\n").expect("a file");
        let (mut all, mut part) = (checkout.look("tree"), checkout.look("tree/sub"));
        fs::remove_dir_all(checkout.at("tree/deep")).expect("it is there");
        symlink(checkout.at("outside"), checkout.at("tree/deep")).expect("a link");
        checkout.write("runs/journal", "ours\n");
        checkout.write("sub/other", "two\n");
        checkout.write("large", &"x\n".repeat(1 << 20));
        let changes = all.changes().expect("git says");
        assert!(changes.text.contains("-inside\n") && !changes.text.contains("secret"), "{}", changes.text);
        assert!(!changes.text.contains("journal"), "{}", changes.text);
        assert_eq!(changes.omitted, ["1 files of more than 1024 KiB"]);
        // Of a part of the checkout that part alone.
        let changes = part.changes().expect("git says");
        assert_eq!(changes.files, 1, "{}", changes.text);
        assert!(
            changes.text.contains("--- a/sub/other\n+++ b/sub/other\n@@ -1 +1 @@\n-one\n+two\n"),
            "{}",
            changes.text
        );
    }

    #[test]
    fn nothing_is_started_that_the_repository_names() {
        let checkout = Checkout::new();
        let (started, filter) = (checkout.at("started"), "filter.a b.c");
        let program = format!("touch {}; cat", started.display());
        checkout.write("file", "one\n");
        checkout.write(".gitattributes", "file filter=other\n");
        checkout.commit();
        // Before the turn, and by the turn.
        for filter in ["filter.other", filter] {
            let mut git = checkout.look("tree");
            for (word, value) in [("clean", program.as_str()), ("process", &program), ("required", "true")] {
                checkout.git(&["config", &format!("{filter}.{word}"), value]);
            }
            checkout.write(".gitattributes", &format!("file filter={}\n", &filter[7..]));
            checkout.write("file", "two\n");
            assert!(git.changes().expect("git says").text.contains("+two"));
            checkout.write("file", "six\n");
            assert!(checkout.look("tree").before.contains_key("file"));
            assert!(!started.exists(), "{filter}");
        }
    }

    #[test]
    fn a_checkout_whose_index_knows_nothing_of_its_files_is_looked_at_all_the_same() {
        let checkout = Checkout::new();
        (0..STALE * 2).for_each(|number| checkout.write(&format!("{number}"), "same\n"));
        checkout.commit();
        for number in 0..STALE * 2 {
            let file = File::options().write(true).open(checkout.at(&format!("tree/{number}"))).expect("it is there");
            file.set_modified(std::time::SystemTime::UNIX_EPOCH).expect("it can be dated");
        }
        let mut git = checkout.look("tree");
        assert_eq!(git.before.len(), 0);
        checkout.write("7", "other\n");
        assert_eq!(git.changes().expect("git says").files, 1);
    }

    #[test]
    fn a_checkout_without_a_commit_is_one() {
        let checkout = Checkout::new();
        checkout.write("there", "one\n");
        let mut git = checkout.look("tree");
        checkout.write("there", "two\n");
        assert_eq!(git.changes().expect("git says").files, 1);
        let mut git = checkout.look("tree");
        assert_eq!(git.changes().expect("git says").files, 0);
    }
}
