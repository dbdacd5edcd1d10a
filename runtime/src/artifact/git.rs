//! What changed in a Git checkout between two moments, changes that are not committed and new files included.
//!
//! In: a folder of a checkout. Out: the difference of what Git says is not as in an index of ours, a copy of that of the
//! people who work there: neither theirs nor their repository is touched. Each look costs a `git status`, and besides it
//! only what has changed is read. Invariant: no link is followed out of the checkout.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, openat, readlinkat, statat};
use rustix::io::Errno;
use tempfile::TempDir;

use super::diff::{Changes, LARGEST_FILE};
use super::version::{Kind, Version, difference};
use crate::executor::{Cancel, bytes};
use crate::home::create_private;
use crate::tools::Folder;

/// How long Git may take for one answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// The bytes of an answer that are read: the paths that changed, or what stood in those files.
const ANSWER: usize = 16 << 20;

/// The files that one look takes in at most, and their bytes together.
const FILES: usize = 5_000;
const BYTES: u64 = 32 << 20;

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
    apart: PathBuf,
}

/// A path that is not as in the index, and what stands there: its kind, and where its bytes are.
type Changed = (String, Option<(Kind, String)>);

/// Why a file is not taken in.
enum Skip {
    Large,
    /// It is no file, or cannot be read.
    Other,
}

impl Git {
    /// The checkout that `folder` is part of, as it is now; none where there is none, or no Git that could say.
    /// `scratch` is where ours may lie meanwhile, and `apart` is not looked at.
    pub(super) fn look(
        folder: &Path,
        environment: &[(OsString, OsString)],
        (scratch, apart): (&Path, &Path),
    ) -> Option<Git> {
        // Without a repository above nobody need be asked.
        folder.ancestors().find(|above| above.join(".git").exists())?;
        let words = ["rev-parse", "--is-inside-work-tree", "--show-toplevel", "--git-path", "index"];
        let places = ask((folder, environment), &words, &[]).ok()?;
        let places = String::from_utf8_lossy(&places).into_owned();
        let mut places = places.lines();
        let (inside, top, index) = (places.next()?, PathBuf::from(places.next()?), places.next()?);
        if inside != "true" {
            return None;
        }
        create_private(scratch, true).ok()?;
        let scratch = tempfile::tempdir_in(scratch).ok()?;
        let own = scratch.path().join("index");
        copy_index(&folder.join(index), &own).ok()?;
        let mut git = Git {
            folder: folder.to_owned(),
            environment: environment.to_vec(),
            _scratch: scratch,
            root: Folder::open(&top).ok()?,
            top,
            before: BTreeMap::new(),
            unknown: BTreeSet::new(),
            omitted: Vec::new(),
            apart: apart.to_owned(),
        };
        git.environment.push((OsString::from("GIT_INDEX_FILE"), own.into()));
        let changed = git.status().ok()?;
        let mut room = Room::default();
        for (path, _) in changed {
            match room.admits(&git.root, &path) {
                Some(version) => _ = git.before.insert(path, version),
                None => _ = git.unknown.insert(path),
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
        let changed = self.status()?;
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
            let Some(new) = room.admits(&self.root, path) else { continue };
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

    /// What is not as in our index.
    fn status(&mut self) -> Result<Vec<Changed>, String> {
        let words = ["status", "--porcelain=v2", "-z", "-uall", "--no-renames", "--ignore-submodules=all", "--", "."];
        let told = ask((&self.folder, &self.environment), &words, &[])?;
        let mut entries: Vec<&[u8]> = told.split(|&byte| byte == 0).collect();
        if told.len() >= ANSWER {
            entries.pop();
            self.omitted.push("the changes of more files than can be listed".to_owned());
        }
        let mut changed = Vec::new();
        for entry in entries {
            match std::str::from_utf8(entry) {
                Ok(entry) => changed.extend(read(entry)),
                Err(_) => self.omitted.push("files whose names are no text".to_owned()),
            }
        }
        changed.retain(|(path, _)| !self.top.join(path).starts_with(&self.apart));
        Ok(changed)
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

/// What a line of `status --porcelain=v2` says of a file that is not as in the index.
fn read(entry: &str) -> Option<Changed> {
    let at = |kind: &str, id: &str| Some((Kind::read(kind)?, id.to_owned()));
    let fields = |count: usize| entry.splitn(count, ' ').collect::<Vec<&str>>();
    match entry.split_at_checked(2)? {
        ("1 ", _) => match fields(9)[..] {
            [_, state, module, _, mode, _, _, id, path] if !state.ends_with('.') && module.starts_with('N') => {
                Some((path.to_owned(), at(mode, id)))
            }
            _ => None,
        },
        ("u ", _) => match fields(11)[..] {
            [_, _, module, _, mode, _, _, _, id, _, path] if module.starts_with('N') => {
                Some((path.to_owned(), at(mode, id)))
            }
            _ => None,
        },
        // A folder is a repository of its own.
        ("? ", path) => (!path.ends_with('/')).then(|| (path.to_owned(), None)),
        _ => None,
    }
}

/// What one look takes in.
#[derive(Default)]
struct Room {
    files: usize,
    bytes: u64,
    large: usize,
    more: usize,
}

impl Room {
    /// The file at a path, which there may be none of; nothing where it is not taken in.
    fn admits(&mut self, root: &Folder, path: &str) -> Option<Option<Version>> {
        if self.files == FILES || self.bytes >= BYTES {
            self.more += 1;
            return None;
        }
        match version(root, path) {
            Ok(version) => {
                self.files += 1;
                self.bytes += version.as_ref().map_or(0, |version| version.bytes.len() as u64);
                Some(version)
            }
            Err(Skip::Large) => {
                self.large += 1;
                None
            }
            Err(Skip::Other) => None,
        }
    }

    fn tell(&self, omitted: &mut Vec<String>) {
        if self.large > 0 {
            omitted.push(format!("{} files of more than {} KiB", self.large, LARGEST_FILE >> 10));
        }
        if self.more > 0 {
            omitted.push(format!("{} files: there are too many to compare", self.more));
        }
    }
}

/// The file at a path; none where there is none, or a folder.
fn version(root: &Folder, path: &str) -> Result<Option<Version>, Skip> {
    let (above, name) = path.rsplit_once('/').unwrap_or((".", path));
    // Where its folder is gone, or no folder any more, so is the file.
    let Ok(above) = root.folder(above) else { return Ok(None) };
    let stat = match statat(&above, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Ok(None),
        Err(_) => return Err(Skip::Other),
    };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => Ok(None),
        FileType::Symlink => {
            let target = readlinkat(&above, name, Vec::new()).map_err(|_| Skip::Other)?;
            Ok(Some(Version { kind: Kind::Link, bytes: target.into_bytes() }))
        }
        FileType::RegularFile if u64::try_from(stat.st_size).is_ok_and(|size| size > LARGEST_FILE) => Err(Skip::Large),
        FileType::RegularFile => {
            let kind = if stat.st_mode & 0o100 == 0 { Kind::Plain } else { Kind::Program };
            let bytes = contents(&above, name)?;
            Ok(Some(Version { kind, bytes }))
        }
        _ => Err(Skip::Other),
    }
}

fn contents(above: &OwnedFd, name: &str) -> Result<Vec<u8>, Skip> {
    // Whatever took its place meanwhile is not followed, and not waited for.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = openat(above.as_fd(), name, flags, Mode::empty()).map_err(|_| Skip::Other)?;
    let mut bytes = Vec::new();
    File::from(file).take(LARGEST_FILE + 1).read_to_end(&mut bytes).map_err(|_| Skip::Other)?;
    if bytes.len() as u64 > LARGEST_FILE { Err(Skip::Large) } else { Ok(bytes) }
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
            Git::look(&folder, &environment, (&places.0, &places.1)).expect("it is a checkout")
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
