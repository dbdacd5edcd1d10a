//! A folder that paths do not lead out of, whatever other processes change in it meanwhile.
//!
//! To read, the kernel resolves paths beneath the folder (`openat2` with `RESOLVE_BENEATH`: links inside of it are
//! followed, links out of it refused). Where it cannot, and to write, paths are walked name by name and no link is
//! followed at all. Invariants: nothing outside is opened or made, nothing in a `.git` is written, only regular files
//! are read and replaced, and opening never waits (FIFOs).

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, Stat, fchmod, fstat, mkdirat, openat, openat2, renameat,
    statat, unlinkat,
};
use rustix::io::Errno;

use crate::types::visible_text;

/// The longest path, in bytes.
const LONGEST: usize = 1024;

/// How often a path is looked up again when something was renamed meanwhile.
const TRIES: usize = 16;

/// The names in one folder that are looked at.
const MOST_NAMES: usize = 100_000;

// Opening a FIFO that has no writer would wait, and opening a terminal could make it that of the runner.
const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC).union(OFlags::NOCTTY);
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
// `BENEATH` refuses links like `/proc/self/fd/3` today; the kernel promises that only where it is asked for.
const BENEATH: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS);

/// The folder.
#[derive(Debug)]
pub(crate) struct Folder {
    root: OwnedFd,
    /// Whether the kernel keeps paths beneath it.
    kept: bool,
}

/// What lies in a folder.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub name: String,
    pub kind: FileType,
}

impl Folder {
    /// The folder at `path`, which is the runner's own.
    pub(crate) fn open(path: &Path) -> Result<Folder, String> {
        let root = openat(CWD, path, FOLDER, Mode::empty())
            .map_err(|error| format!("the working folder cannot be opened: {}", said(error)))?;
        Ok(Folder::beneath(root))
    }

    fn beneath(root: OwnedFd) -> Folder {
        // Kernels and sandboxes without it refuse this one, too.
        let kept = openat2(&root, ".", FOLDER, Mode::empty(), BENEATH).is_ok();
        Folder { root, kept }
    }

    /// Opens a regular file to read.
    pub(crate) fn file(&self, path: &str) -> Result<(File, Stat), String> {
        let parts = parts(path)?;
        let file = self.at(&parts, READ).map_err(|error| refused(path, error))?;
        let stat = regular(&file, path)?;
        Ok((File::from(file), stat))
    }

    /// Opens a folder in it; `.` is the folder itself.
    pub(crate) fn folder(&self, path: &str) -> Result<OwnedFd, String> {
        let parts = parts(path)?;
        self.at(&parts, FOLDER).map_err(|error| refused(path, error))
    }

    /// Writes a file whole: readers see the old or the new one. Missing folders are made.
    ///
    /// Says how many bytes were there before, if there was a file.
    pub(crate) fn write(&self, path: &str, bytes: &[u8]) -> Result<Option<u64>, String> {
        self.put(path, |file| fill(file, bytes))
    }

    /// The same with whatever `fill` writes.
    pub(crate) fn put(
        &self,
        path: &str,
        fill: impl FnOnce(&File) -> std::io::Result<()>,
    ) -> Result<Option<u64>, String> {
        let (folder, name) = self.parent(path)?;
        // A rename would replace whatever is there, a link or a socket too.
        let before = match statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Some(checked(&stat, path)?),
            Err(Errno::NOENT) => None,
            Err(error) => return Err(refused(path, error)),
        };
        let mode = before.map_or(0o666, |(_, mode)| mode);
        // In the folder of the file itself: only within one file system a rename replaces a file whole.
        let (draft, file) = draft(&folder).map_err(|error| refused(path, error))?;
        let written = fill(&file)
            .and_then(|()| match before {
                // The rename puts the draft with its own mode in the place of the file: a script is to stay executable.
                Some(_) => fchmod(&file, Mode::from_raw_mode(mode)).map_err(std::io::Error::from),
                None => Ok(()),
            })
            .and_then(|()| renameat(&folder, &*draft, &folder, name).map_err(std::io::Error::from));
        written.map_err(|error| {
            // A draft that is left behind would do no harm, but no one would know its owner.
            let _ = unlinkat(&folder, &*draft, AtFlags::empty());
            format!("`{path}` cannot be written: {error}")
        })?;
        Ok(before.map(|(size, _)| size))
    }

    /// Appends to a regular file, up to `most` bytes in all; makes it where there is none.
    pub(crate) fn append(&self, path: &str, bytes: &[u8], most: u64) -> Result<u64, String> {
        let (folder, name) = self.parent(path)?;
        let flags = OFlags::WRONLY
            | OFlags::APPEND
            | OFlags::CREATE
            | OFlags::NOFOLLOW
            | OFlags::NONBLOCK
            | OFlags::NOCTTY
            | OFlags::CLOEXEC;
        let file = openat(&folder, name, flags, Mode::from_raw_mode(0o666)).map_err(|error| refused(path, error))?;
        let stat = regular(&file, path)?;
        let size = u64::try_from(stat.st_size).unwrap_or(0) + bytes.len() as u64;
        // The other name may lie outside, and has the same bytes.
        if stat.st_nlink > 1 {
            return Err(format!("`{path}` has a second name elsewhere, and is not appended to"));
        }
        if size > most {
            return Err(format!("`{path}` would have {size} bytes, more than the {most} that a file may have"));
        }
        fill(&File::from(file), bytes).map_err(|error| format!("`{path}` cannot be written: {error}"))?;
        Ok(size)
    }

    /// The folder called `name` directly in it, made where there is none; never a link.
    pub(crate) fn make(&self, name: &str) -> Result<Made, String> {
        make(self.root.as_fd(), name).map(Made).map_err(|error| refused(name, error))
    }

    /// The folder of a file that is to be written, and the file's name in it.
    fn parent<'p>(&self, path: &'p str) -> Result<(OwnedFd, &'p str), String> {
        let mut parts = parts(path)?;
        let name = parts.pop().ok_or_else(|| format!("`{path}` is a folder"))?;
        // In whatever case: some file systems, and Git on them, ignore it.
        if parts.iter().chain([&name]).any(|part| part.eq_ignore_ascii_case(".git")) {
            return Err(format!("`{path}` belongs to Git: files there can run as commands"));
        }
        // Not even a link that stays inside is followed: it may lead into what is not written to.
        let mut folder = child(self.root.as_fd(), ".", FileType::Directory).map_err(|error| refused(path, error))?;
        for part in parts {
            let below = match child(folder.as_fd(), part, FileType::Directory) {
                Err(Errno::NOENT) => make(folder.as_fd(), part),
                // With DIRECTORY and NOFOLLOW the kernel says of a link that it is no folder, which would mislead.
                Err(Errno::NOTDIR) if is_link(folder.as_fd(), part) => Err(Errno::LOOP),
                below => below,
            };
            folder = below.map_err(|error| refused(path, error))?;
        }
        Ok((folder, name))
    }

    fn at(&self, parts: &[&str], flags: OFlags) -> Result<OwnedFd, Errno> {
        if !self.kept {
            return walk(self.root.as_fd(), parts, flags);
        }
        let path = if parts.is_empty() { ".".to_owned() } else { parts.join("/") };
        let mut tries = 0;
        loop {
            tries += 1;
            match openat2(&self.root, path.as_str(), flags, Mode::empty(), BENEATH) {
                Err(Errno::AGAIN | Errno::INTR) if tries < TRIES => {}
                opened => return opened,
            }
        }
    }
}

/// A folder that we made, for files of ours.
pub(crate) struct Made(OwnedFd);

impl Made {
    /// Writes a file that is not there yet; else why not, and nothing where the name is taken.
    pub(crate) fn create(&self, name: &str, bytes: &[u8]) -> Result<(), Option<String>> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&self.0, name, flags, Mode::from_raw_mode(0o666)).map_err(|error| match error {
            Errno::EXIST => None,
            error => Some(refused(name, error)),
        })?;
        fill(&File::from(file), bytes).map_err(|error| Some(format!("`{name}` cannot be written: {error}")))
    }

    /// The highest number that follows `beginning` in a name.
    pub(crate) fn highest(&self, beginning: &str) -> Result<u32, String> {
        let (entries, _) = entries(self.0.as_fd(), MOST_NAMES)?;
        let number = |entry: &Entry| {
            let rest = entry.name.strip_prefix(beginning)?;
            rest.split('-').next()?.parse::<u32>().ok()
        };
        Ok(entries.iter().filter_map(number).max().unwrap_or(0))
    }
}

/// Opens what lies directly in `folder`, never through a link.
pub(crate) fn child(folder: BorrowedFd<'_>, name: &str, kind: FileType) -> Result<OwnedFd, Errno> {
    let flags = if kind == FileType::Directory { FOLDER } else { READ };
    openat(folder, name, flags | OFlags::NOFOLLOW, Mode::empty())
}

/// What lies in a folder, by name; and whether there is more than that.
pub(crate) fn entries(folder: BorrowedFd<'_>, most: usize) -> Result<(Vec<Entry>, bool), String> {
    let unreadable = |error: Errno| format!("a folder cannot be read: {}", said(error));
    let mut found = Vec::new();
    for entry in Dir::read_from(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        if found.len() == most {
            return Ok((found, true));
        }
        // A name that is no text cannot be named in a call either.
        let Ok(name) = std::str::from_utf8(name) else { continue };
        let kind = match entry.file_type() {
            // Not every file system tells it with the names.
            FileType::Unknown => {
                let stat = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
                stat.map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode))
            }
            kind => kind,
        };
        found.push(Entry { name: name.to_owned(), kind });
    }
    // The order of a folder differs from one file system to the next.
    found.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    Ok((found, false))
}

/// The names that a path leads through.
pub(crate) fn parts(path: &str) -> Result<Vec<&str>, String> {
    let shown = visible_text::short(path);
    if path.len() > LONGEST {
        return Err(format!("`{shown}` is longer than the {LONGEST} bytes that a path may have"));
    }
    if path.trim().is_empty() {
        return Err("the path is empty: `.` is the working folder".to_owned());
    }
    if path.starts_with('/') {
        return Err(format!("`{shown}` is absolute: write paths as they count from the working folder"));
    }
    if path.chars().any(char::is_control) {
        return Err(format!("`{shown}` holds control characters"));
    }
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    match parts.contains(&"..") {
        true => Err(format!("`{shown}` goes up with `..`: paths stay inside of the working folder")),
        false => Ok(parts),
    }
}

/// Walks a path name by name, following no link.
fn walk(root: BorrowedFd<'_>, parts: &[&str], flags: OFlags) -> Result<OwnedFd, Errno> {
    let Some((last, folders)) = parts.split_last() else {
        return openat(root, ".", flags, Mode::empty());
    };
    let mut at: Option<OwnedFd> = None;
    for part in folders {
        let above = at.as_ref().map_or(root, AsFd::as_fd);
        at = Some(openat(above, *part, FOLDER | OFlags::NOFOLLOW, Mode::empty())?);
    }
    openat(at.as_ref().map_or(root, AsFd::as_fd), *last, flags | OFlags::NOFOLLOW, Mode::empty())
}

fn make(above: BorrowedFd<'_>, name: &str) -> Result<OwnedFd, Errno> {
    match mkdirat(above, name, Mode::from_raw_mode(0o777)) {
        // Another process may have made it meanwhile, or put a link there: that is found out by opening it.
        Ok(()) | Err(Errno::EXIST) => openat(above, name, FOLDER | OFlags::NOFOLLOW, Mode::empty()),
        Err(error) => Err(error),
    }
}

fn is_link(folder: BorrowedFd<'_>, name: &str) -> bool {
    statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
}

/// A new file under an unused name, to be renamed when it is whole.
fn draft(folder: &OwnedFd) -> Result<(String, File), Errno> {
    static COUNT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    for _ in 0..TRIES {
        let number = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let name = format!(".swarmc-{}-{number}.draft", std::process::id());
        match openat(folder, name.as_str(), flags, Mode::from_raw_mode(0o666)) {
            Err(Errno::EXIST) => {}
            opened => return opened.map(|file| (name, File::from(file))),
        }
    }
    Err(Errno::EXIST)
}

fn fill(mut file: &File, bytes: &[u8]) -> std::io::Result<()> {
    file.write_all(bytes)
}

fn regular(file: &OwnedFd, path: &str) -> Result<Stat, String> {
    let stat = fstat(file).map_err(|error| refused(path, error))?;
    checked(&stat, path).map(|_| stat)
}

/// The size and mode of a regular file.
fn checked(stat: &Stat, path: &str) -> Result<(u64, u32), String> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok((u64::try_from(stat.st_size).unwrap_or(0), stat.st_mode & 0o777)),
        FileType::Directory => Err(format!("`{path}` is a folder")),
        FileType::Symlink => Err(format!("`{path}` is a link: name what it leads to")),
        _ => Err(format!("`{path}` is no regular file")),
    }
}

fn refused(path: &str, error: Errno) -> String {
    let path = visible_text::short(path);
    match error {
        Errno::XDEV => format!("`{path}` leads out of the working folder"),
        // Linux says LOOP of a link under NOFOLLOW, FreeBSD MLINK.
        Errno::LOOP | Errno::MLINK => format!("`{path}` leads through a link that is not followed"),
        Errno::NOENT => missing(&path),
        Errno::NOTDIR => format!("`{path}` is no folder, or goes through something that is none"),
        Errno::ISDIR => format!("`{path}` is a folder"),
        // A FIFO without a reader, and a socket.
        Errno::NXIO => format!("`{path}` is no regular file"),
        error => format!("`{path}`: {}", said(error)),
    }
}

/// The words for a file that is not there.
pub(crate) fn missing(path: &str) -> String {
    format!("there is no `{}`", visible_text::short(path))
}

fn said(error: Errno) -> std::io::Error {
    std::io::Error::from(error)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// A folder with a file outside of it, opened both ways.
    fn world() -> (tempfile::TempDir, [Folder; 2]) {
        let place = tempfile::tempdir().unwrap();
        let inside = place.path().join("in");
        std::fs::create_dir_all(inside.join("sub")).unwrap();
        std::fs::write(place.path().join("outside"), "secret").unwrap();
        std::fs::write(inside.join("a"), "inside").unwrap();
        std::fs::write(inside.join("sub/b"), "deeper").unwrap();
        let kept = Folder::open(&inside).unwrap();
        let walked = Folder { root: kept.root.try_clone().unwrap(), kept: false };
        (place, [kept, walked])
    }

    #[test]
    fn files_inside_are_opened() {
        let (_place, folders) = world();
        for folder in folders {
            assert_eq!(folder.file("./sub//b").unwrap().1.st_size, 6);
            assert!(folder.folder(".").is_ok() && folder.folder("sub/").is_ok());
            assert_eq!(folder.file("sub").unwrap_err(), "`sub` is a folder");
            assert_eq!(folder.file("none").unwrap_err(), "there is no `none`");
            assert_eq!(folder.file("a/b").unwrap_err(), "`a/b` is no folder, or goes through something that is none");
        }
    }

    #[test]
    fn no_path_leads_out() {
        let (place, folders) = world();
        let inside = place.path().join("in");
        symlink("../outside", inside.join("up")).unwrap();
        symlink(place.path().join("outside"), inside.join("absolute")).unwrap();
        symlink("..", inside.join("sub/above")).unwrap();
        symlink("/", inside.join("root")).unwrap();
        symlink("loop", inside.join("loop")).unwrap();
        symlink("/proc/self/root", inside.join("magic")).unwrap();
        let outside = place.path().join("outside").display().to_string();
        let long = "x/".repeat(1000);
        for folder in folders {
            for path in [
                "../outside",
                "sub/../../outside",
                "up",
                "absolute",
                "sub/above/../outside",
                "sub/above/up",
                "root/etc/passwd",
                "magic/etc/passwd",
                "loop",
                &outside,
                "/etc/passwd",
                "a\0b",
                "a\nb",
                "",
                " ",
                &long,
            ] {
                let refused = folder.file(path).unwrap_err();
                assert!(!refused.contains("secret"), "{path}: {refused}");
                assert!(folder.write(path, b"x").is_err() && folder.append(path, b"x", 10).is_err(), "{path}");
            }
            assert_eq!(std::fs::read_to_string(place.path().join("outside")).unwrap(), "secret");
            assert!(std::fs::read_dir(place.path()).unwrap().count() == 2, "nothing was made beside the folder");
        }
    }

    #[test]
    fn links_inside_are_followed_where_the_kernel_keeps_us_inside() {
        let (place, [kept, walked]) = world();
        symlink("sub/b", place.path().join("in/link")).unwrap();
        if kept.kept {
            assert!(kept.file("link").is_ok());
        }
        assert_eq!(walked.file("link").unwrap_err(), "`link` leads through a link that is not followed");
        for folder in [kept, walked] {
            assert_eq!(folder.write("link", b"x").unwrap_err(), "`link` is a link: name what it leads to");
        }
    }

    #[test]
    fn nothing_is_written_through_a_link() {
        let (place, folders) = world();
        let inside = place.path().join("in");
        std::fs::create_dir(inside.join(".git")).unwrap();
        symlink(".git", inside.join("meta")).unwrap();
        symlink("../.git", inside.join("sub/meta")).unwrap();
        symlink("sub", inside.join("other")).unwrap();
        for folder in folders {
            for path in ["meta/config", "meta/hooks/pre-commit", "sub/meta/config", "other/b", "other/new/b"] {
                let expected = format!("`{path}` leads through a link that is not followed");
                assert_eq!(folder.write(path, b"x").unwrap_err(), expected);
                assert_eq!(folder.append(path, b"x", 10).unwrap_err(), expected);
            }
        }
        assert_eq!(std::fs::read_dir(inside.join(".git")).unwrap().count(), 0);
        assert_eq!(std::fs::read_to_string(inside.join("sub/b")).unwrap(), "deeper");
    }

    #[test]
    fn what_is_no_regular_file_is_refused_at_once() {
        let (place, folders) = world();
        let fifo = place.path().join("in/fifo");
        rustix::fs::mknodat(CWD, &fifo, FileType::Fifo, Mode::from_raw_mode(0o666), 0).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(place.path().join("in/socket")).unwrap();
        for folder in folders {
            for path in ["fifo", "socket"] {
                let expected = format!("`{path}` is no regular file");
                assert_eq!(folder.file(path).unwrap_err(), expected);
                assert_eq!(folder.write(path, b"x").unwrap_err(), expected);
                assert_eq!(folder.append(path, b"x", 10).unwrap_err(), expected);
            }
        }
    }

    #[test]
    fn files_are_written_whole_and_keep_their_mode() {
        use std::os::unix::fs::PermissionsExt;
        let (place, folders) = world();
        for (number, folder) in folders.iter().enumerate() {
            let path = format!("new-{number}/deep/file");
            assert_eq!(folder.write(&path, b"one"), Ok(None));
            let file = place.path().join("in").join(&path);
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o751)).unwrap();
            assert_eq!(folder.write(&path, b"three"), Ok(Some(3)));
            assert_eq!(std::fs::read_to_string(&file).unwrap(), "three");
            assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o751);
            assert_eq!(folder.append(&path, b"!", 6), Ok(6));
            assert!(folder.append(&path, b"!", 6).unwrap_err().contains("7 bytes, more than the 6"));
            let left = std::fs::read_dir(file.parent().unwrap()).unwrap().count();
            assert_eq!(left, 1, "no draft stays");
            assert_eq!(folder.write("sub", b"x").unwrap_err(), "`sub` is a folder");
            assert!(folder.write(".git/hooks/pre-commit", b"x").unwrap_err().contains("belongs to Git"));
            assert!(folder.write("sub/.GIT/config", b"x").unwrap_err().contains("belongs to Git"));
        }
    }

    #[test]
    fn a_file_with_a_second_name_outside_is_not_changed_there() {
        let (place, folders) = world();
        for folder in folders {
            let link = place.path().join("in/hard");
            std::fs::hard_link(place.path().join("outside"), &link).unwrap();
            assert!(folder.append("hard", b"x", 100).unwrap_err().contains("second name"));
            assert_eq!(folder.write("hard", b"new"), Ok(Some(6)));
            assert_eq!(std::fs::read_to_string(place.path().join("outside")).unwrap(), "secret");
            std::fs::remove_file(link).unwrap();
        }
    }

    /// Another thread exchanges a folder and a link that leads out while files are opened and written through that
    /// name.
    #[test]
    fn a_process_that_exchanges_folders_for_links_meanwhile_gains_nothing() {
        let (place, folders) = world();
        let inside = place.path().join("in");
        std::fs::create_dir(inside.join("swap")).unwrap();
        std::fs::write(inside.join("swap/outside"), "inside").unwrap();
        symlink("..", inside.join("trap")).unwrap();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let exchange = rustix::fs::RenameFlags::EXCHANGE;
                while !over.load(Ordering::Relaxed) {
                    rustix::fs::renameat_with(CWD, inside.join("swap"), CWD, inside.join("trap"), exchange).unwrap();
                }
            });
            for folder in &folders {
                for _ in 0..2_000 {
                    if let Ok((mut file, _)) = folder.file("swap/outside") {
                        let mut text = String::new();
                        std::io::Read::read_to_string(&mut file, &mut text).unwrap();
                        assert_ne!(text, "secret");
                    }
                    // It may or may not succeed, and never reaches what lies outside.
                    let _ = folder.write("swap/outside", b"inside");
                }
            }
            over.store(true, Ordering::Relaxed);
        });
        assert_eq!(std::fs::read_to_string(place.path().join("outside")).unwrap(), "secret");
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 2);
    }
}
