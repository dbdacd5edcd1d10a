//! Diffs of checkouts: a diff reports all that a turn does to its tree, and nothing else, whatever its repository is
//! like.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;
use std::time::SystemTime;

use rustix::fs::{CWD, FileType, Mode, mknodat};

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

    /// As if some time had passed since: Git is certain of what its index says, and clocks of files have moved on.
    fn settle(&self) {
        let probe = self.at("probe");
        let now = || {
            fs::write(&probe, "").expect("a file");
            fs::metadata(&probe).expect("it is there").modified().expect("it has a time")
        };
        let begin = now();
        while now() == begin {}
        self.date("tree/.git/index", begin + Duration::from_secs(60));
    }

    fn date(&self, path: &str, time: SystemTime) {
        let file = File::options().write(true).open(self.at(path)).expect("it is there");
        file.set_modified(time).expect("it can be dated");
    }

    fn modified(&self, path: &str) -> SystemTime {
        fs::metadata(self.at(path)).expect("it is there").modified().expect("it has a time")
    }

    /// What is in the repository, objects and index included.
    fn repository(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let files = ignore::WalkBuilder::new(self.at("tree/.git")).standard_filters(false).build();
        let files = files.filter_map(Result::ok).filter(|entry| entry.path().is_file());
        let read = |path: PathBuf| (path.clone(), fs::read(path).expect("it can be read"));
        let mut files: Vec<(PathBuf, Vec<u8>)> = files.map(|entry| read(entry.into_path())).collect();
        files.sort_unstable();
        files
    }

    fn environment(&self) -> [(OsString, OsString); 2] {
        let environment = [("PATH", std::env::var_os("PATH").expect("a PATH")), ("HOME", self.at("home").into())];
        environment.map(|(name, value)| (OsString::from(name), value))
    }

    fn look(&self, folder: &str) -> Git {
        let places = (self.at("scratch"), self.at("tree/runs"));
        let folder = self.at(folder).canonicalize().expect("it is there");
        Git::open_checkout(&folder, &self.environment(), (&places.0, Some(&places.1))).expect("it is a checkout")
    }
}

/// What has changed in these files since, in one line; each with what was added and removed.
fn told(git: &mut Git) -> String {
    let changes = git.changes().expect("git says");
    let mut told = changes.omitted;
    for line in changes.text.lines() {
        match line.strip_prefix("diff --git a/") {
            Some(names) => told.push(names.split(' ').next().unwrap_or_default().to_owned()),
            None if line.starts_with(['+', '-']) && !line.starts_with("+++") && !line.starts_with("---") => {
                told.push(line.to_owned());
            }
            None => told.extend(line.strip_prefix("new mode ").map(str::to_owned)),
        }
    }
    told.join(" ")
}

#[test]
fn what_a_turn_did_is_told_whatever_it_did() {
    whatever_it_did(Checkout::settle);
    // Git wrote its index in the same second.
    whatever_it_did(|_| {});
}

fn whatever_it_did(settle: fn(&Checkout)) {
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
    settle(&checkout);
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
    assert_eq!(fs::read(checkout.at("tree/.git/index")).expect("an index"), index, "it is not touched");
    // A committed change counts as well.
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
    assert!(changes.text.contains("--- a/sub/other\n+++ b/sub/other\n@@ -1 +1 @@\n-one\n+two\n"), "{}", changes.text);
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
    (0..DOUBTS * 2).for_each(|number| checkout.write(&format!("{number}"), "same\n"));
    checkout.commit();
    for number in 0..DOUBTS * 2 {
        checkout.date(&format!("tree/{number}"), SystemTime::UNIX_EPOCH);
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

#[test]
fn what_git_is_certain_of_is_not_read() {
    let checkout = Checkout::new();
    checkout.write("kept", "one\n");
    checkout.write("empty", "");
    checkout.write("deep/program", "one\n");
    fs::set_permissions(checkout.at("tree/deep/program"), fs::Permissions::from_mode(0o755)).expect("it is there");
    symlink("kept", checkout.at("tree/link")).expect("a link");
    checkout.commit();
    checkout.settle();
    checkout.write("new", "one\n");
    assert_eq!(checkout.look("tree").before.keys().collect::<Vec<_>>(), ["new"]);
}

#[test]
fn an_edit_that_hides_is_told() {
    for settle in [Checkout::settle, |_: &Checkout| {}] {
        let checkout = Checkout::new();
        for path in ["same", "one/file", "two/file", "moved", "mode", "folder", "there-and-back", "away/file"] {
            checkout.write(path, &format!("{}\n", &path[..3]));
        }
        checkout.commit();
        settle(&checkout);
        // As long as before, and as old.
        let mut git = checkout.look("tree");
        let time = checkout.modified("tree/same");
        checkout.write("same", "sam\n");
        checkout.write("same", "eas\n");
        checkout.date("tree/same", time);
        assert_eq!(told(&mut git), "same -sam +eas");
        // Folders in each other's place, with files that no one changed.
        let mut git = checkout.look("tree");
        let rename = |from: &str, to: &str| {
            fs::rename(checkout.at(&format!("tree/{from}")), checkout.at(&format!("tree/{to}"))).expect("it is there");
        };
        rename("one", "between");
        rename("two", "one");
        rename("between", "two");
        assert_eq!(told(&mut git), "one/file -one +two two/file -two +one");
        let mut git = checkout.look("tree");
        rename("moved", "to");
        assert_eq!(told(&mut git), "moved -mov to +mov");
        let mut git = checkout.look("tree");
        fs::set_permissions(checkout.at("tree/mode"), fs::Permissions::from_mode(0o755)).expect("it is there");
        assert_eq!(told(&mut git), "mode 100755");
        // Out of the tree, with a link in its place.
        let mut git = checkout.look("tree");
        rename("away", "../away");
        symlink("../away", checkout.at("tree/away")).expect("a link");
        assert_eq!(told(&mut git), "away +../away away/file -awa");
        // A folder in the place of a file, and a file in its place again.
        let mut git = checkout.look("tree");
        fs::remove_file(checkout.at("tree/folder")).expect("it is there");
        checkout.write("folder/inner", "inn\n");
        assert_eq!(told(&mut git), "folder -fol folder/inner +inn");
        let mut git = checkout.look("tree");
        fs::remove_dir_all(checkout.at("tree/folder")).expect("it is there");
        checkout.write("folder", "fol\n");
        assert_eq!(told(&mut git), "folder +fol folder/inner -inn");
        let mut git = checkout.look("tree");
        fs::remove_file(checkout.at("tree/there-and-back")).expect("it is there");
        checkout.write("there-and-back/inner", "inn\n");
        fs::remove_dir_all(checkout.at("tree/there-and-back")).expect("it is there");
        checkout.write("there-and-back", "the\n");
        assert_eq!(told(&mut git), "");
    }
}

#[test]
fn what_is_tracked_is_looked_at_even_where_it_is_ignored_and_a_repository_in_it_is_not() {
    let checkout = Checkout::new();
    checkout.write(".gitignore", "out/\n");
    checkout.write("deep/.gitignore", "*.tmp\n!kept.tmp\n");
    checkout.write(".git/info/exclude", "mine\n");
    checkout.write("out/tracked", "one\n");
    checkout.write("module/file", "one\n");
    checkout.git(&["-C", "module", "init", "--quiet"]);
    checkout.git(&["-C", "module", "add", "file"]);
    checkout.git(&["-C", "module", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "One"]);
    checkout.git(&["add", "--force", "out/tracked"]);
    checkout.commit();
    checkout.settle();
    let mut git = checkout.look("tree");
    for path in ["out/tracked", "out/new", "mine", "deep/a.tmp", "deep/kept.tmp", "module/file", "module/new"] {
        checkout.write(path, "two\n");
    }
    assert_eq!(told(&mut git), "deep/kept.tmp +two out/tracked -one +two");
}

#[test]
fn every_kind_of_index_is_understood_and_none_is_touched() {
    let kinds: [&[&[&str]]; 7] = [
        &[],
        &[&["update-index", "--index-version", "4"]],
        &[&["update-index", "--split-index"], &["config", "core.splitIndex", "true"]],
        &[&["sparse-checkout", "set", "--sparse-index", "deep"]],
        &[&["config", "core.fileMode", "false"], &["config", "core.checkStat", "minimal"]],
        &[&["config", "index.skipHash", "true"], &["update-index", "--force-write-index"]],
        &[&["rm", "--cached", "--quiet", "deep/changed"], &["add", "--intent-to-add", "deep/changed"]],
    ];
    for format in ["sha1", "sha256"] {
        for kind in kinds {
            let checkout = Checkout::new();
            fs::remove_dir_all(checkout.at("tree/.git")).expect("it is there");
            checkout.git(&["init", "--quiet", "--object-format", format]);
            for path in ["deep/kept", "deep/changed", "deep/dirty", "other/kept", "other/deep/kept", "top"] {
                checkout.write(path, "one\n");
            }
            checkout.commit();
            kind.iter().for_each(|words| checkout.git(words));
            checkout.settle();
            // Git itself goes by seconds, and by lengths.
            checkout.write("deep/dirty", "dirty\n");
            let before = checkout.repository();
            let (mut git, mut part) = (checkout.look("tree"), checkout.look("tree/deep"));
            for path in ["deep/changed", "top", "deep/new"] {
                checkout.write(path, "changed\n");
            }
            assert_eq!(
                told(&mut git),
                "deep/changed -one +changed deep/new +changed top -one +changed",
                "{format} {kind:?}"
            );
            assert_eq!(told(&mut part), "deep/changed -one +changed deep/new +changed", "{format} {kind:?}");
            assert!(checkout.repository() == before, "{format} {kind:?}");
        }
    }
}

#[test]
fn an_index_that_is_locked_old_or_gone_is_no_hindrance() {
    let checkout = Checkout::new();
    (0..DOUBTS * 2).for_each(|number| checkout.write(&format!("{number}"), "one\n"));
    checkout.commit();
    checkout.write("0", "two\n");
    checkout.git(&["config", "core.splitIndex", "true"]);
    checkout.write(".git/index.lock", "of another one");
    for _ in 0..2 {
        let before = checkout.repository();
        let mut git = checkout.look("tree");
        checkout.write("0", "six\n");
        checkout.write("1", "six\n");
        assert_eq!(told(&mut git), "0 -two +six 1 -one +six");
        assert!(checkout.repository() == before);
        checkout.write("0", "two\n");
        checkout.write("1", "one\n");
        (0..DOUBTS * 2).for_each(|number| checkout.date(&format!("tree/{number}"), SystemTime::UNIX_EPOCH));
    }
    fs::remove_file(checkout.at("tree/.git/index")).expect("it is there");
    let mut git = checkout.look("tree");
    checkout.write("1", "six\n");
    assert_eq!(told(&mut git), "1 -one +six");
    assert!(!checkout.at("tree/.git/index").exists());
}

#[test]
fn a_turn_in_a_merge_or_in_a_worktree_is_one_like_others() {
    let checkout = Checkout::new();
    checkout.write("both", "one\n");
    checkout.write("gone", "one\n");
    checkout.commit();
    checkout.git(&["worktree", "add", "--quiet", "../side"]);
    checkout.write("both", "two\n");
    checkout.git(&["rm", "--quiet", "gone"]);
    checkout.commit();
    fs::write(checkout.at("side/both"), "six\n").expect("a file");
    fs::write(checkout.at("side/gone"), "six\n").expect("a file");
    let mut git = checkout.look("side");
    fs::write(checkout.at("side/both"), "ten\n").expect("a file");
    assert_eq!(told(&mut git), "both -six +ten");
    checkout.git(&["-C", "../side", "commit", "--quiet", "--all", "-m", "Two"]);
    let person = ["-c", "user.name=a", "-c", "user.email=a@b"];
    let merge = Command::new("git").args(person).args(["merge", "side"]).current_dir(checkout.at("tree")).output();
    assert!(!merge.expect("git starts").status.success(), "both have changed");
    checkout.write("both", "half merged\n");
    let mut git = checkout.look("tree");
    checkout.write("both", "merged\n");
    checkout.write("gone", "merged\n");
    assert_eq!(told(&mut git), "both -half merged +merged gone -six +merged");
}

#[test]
fn an_index_that_is_no_file_does_not_block() {
    let checkout = Checkout::new();
    mknodat(CWD, checkout.at("tree/.git/index"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).expect("a pipe");
    let scratch = checkout.at("scratch");
    assert!(Git::open_checkout(&checkout.at("tree"), &checkout.environment(), (&scratch, None)).is_none());
}

#[test]
fn an_index_that_is_larger_than_any_is_not_copied() {
    let folder = tempfile::tempdir().expect("a folder");
    let (index, copy) = (folder.path().join("index"), folder.path().join("copy"));
    File::create(&index).and_then(|file| file.set_len(INDEX + 1)).expect("a file with a hole");
    let error = copy_index(&index, &copy).expect_err("it is too large");
    assert_eq!((error.kind(), copy.exists()), (ErrorKind::FileTooLarge, false));
    fs::write(&index, "DIRC").expect("a file");
    copy_index(&index, &copy).expect("it is copied");
    assert_eq!(fs::read(&copy).expect("a copy"), b"DIRC");
}
