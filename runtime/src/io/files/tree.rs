//! Safe access to folders that agents write to: lists, reads and seals them without following a link.
//!
//! In: a folder that is open already. Out: what lies in it, or which name is none that a file may have. Invariants: a
//! link is never followed, nothing is opened that is no regular file, and opening never waits (FIFOs); what is looked at
//! is bounded.

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, fchmod, fstat, openat, statat};
use rustix::io::Errno;
use sha2::{Digest, Sha256};

use super::paths::find_odd_character;
use crate::types::digest::format_hex;
use crate::types::visible_text::shown;

/// How deep folders may lie in each other.
pub(super) const DEEPEST: usize = 64;

/// The names of one folder that are read at most.
const LISTED: usize = 100_000;

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
// NONBLOCK, as a FIFO without a writer would keep `open` waiting.
const FILE: OFlags =
    OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC).union(OFlags::NOCTTY);

/// What lies in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// From the folder that was listed.
    pub path: String,
    pub is_folder: bool,
    pub bytes: u64,
}

/// What was seen of a folder.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// Files and folders, each folder before what is in it.
    pub found: Vec<Found>,
    /// What may not lie there, in words.
    pub wrong: Vec<String>,
    /// There was more than was looked at.
    pub is_cut: bool,
}

/// Opens a folder by its path, which is the runner's own.
pub(super) fn open_root(path: &Path) -> io::Result<OwnedFd> {
    Ok(openat(CWD, path, FOLDER, Mode::empty())?)
}

/// Opens the folder called `name` in another; a link is none.
pub(super) fn open_folder(above: BorrowedFd<'_>, name: &str) -> Result<OwnedFd, String> {
    openat(above, name, FOLDER, Mode::empty()).map_err(|error| match error {
        Errno::NOENT => format!("`{name}/` is gone"),
        Errno::LOOP | Errno::NOTDIR => format!("`{name}/` was replaced by something that is no folder"),
        error => format!("`{name}/` cannot be opened: {}", io::Error::from(error)),
    })
}

/// Opens the folder at `path` beneath another, link by no part of it; empty is that itself.
fn open_beneath(root: BorrowedFd<'_>, path: &str) -> Result<OwnedFd, Errno> {
    let mut above = openat(root, ".", FOLDER, Mode::empty())?;
    for part in path.split('/').filter(|part| !part.is_empty()) {
        above = openat(&above, part, FOLDER, Mode::empty())?;
    }
    Ok(above)
}

/// Opens the regular file at `path` beneath a folder.
pub(super) fn open_file(root: BorrowedFd<'_>, path: &str) -> Result<(File, Stat), String> {
    let open = || -> Result<OwnedFd, Errno> {
        let mut above: Option<OwnedFd> = None;
        let mut parts = path.split('/').peekable();
        while let Some(part) = parts.next() {
            let at = above.as_ref().map_or(root, AsFd::as_fd);
            let flags = if parts.peek().is_some() { FOLDER } else { FILE };
            above = Some(openat(at, part, flags, Mode::empty())?);
        }
        above.ok_or(Errno::NOENT)
    };
    let file = open().map_err(|error| match error {
        Errno::NOENT => format!("there is no `{path}`"),
        Errno::LOOP => format!("`{path}` is a link"),
        Errno::NOTDIR => format!("`{path}` leads through something that is no folder"),
        Errno::NXIO => format!("`{path}` is no regular file"),
        error => format!("`{path}` cannot be opened: {}", io::Error::from(error)),
    })?;
    let stat = fstat(&file).map_err(|error| format!("`{path}`: {}", io::Error::from(error)))?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok((File::from(file), stat)),
        FileType::Directory => Err(format!("`{path}` is a folder")),
        _ => Err(format!("`{path}` is no regular file")),
    }
}

/// Reads the file at `path` beneath a folder, of `most` bytes.
pub(super) fn read(root: BorrowedFd<'_>, path: &str, most: u64) -> Result<Vec<u8>, String> {
    let (file, _) = open_file(root, path)?;
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes).map_err(|error| format!("`{path}` cannot be read: {error}"))?;
    match bytes.len() as u64 > most {
        true => Err(format!("`{path}` is longer than {most} bytes")),
        false => Ok(bytes),
    }
}

/// The SHA-256 of what can be read, in hexadecimal, and its length; `each` gets it piece by piece.
pub(super) fn digest_of(
    mut from: impl Read,
    mut each: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<(String, u64)> {
    let (mut hash, mut bytes, mut buffer) = (Sha256::new(), 0, vec![0; 64 * 1024]);
    loop {
        let count = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        hash.update(&buffer[..count]);
        each(&buffer[..count])?;
        bytes += count as u64;
    }
    Ok((format_hex(&hash.finalize()), bytes))
}

/// What lies in a folder and beneath, `most` files and folders of it. `name` is that of the folder, for words.
pub(super) fn list(root: BorrowedFd<'_>, name: &str, most: usize) -> Result<Listing, String> {
    let mut listing = Listing::default();
    // By their paths: as many could be open at once as there are files.
    let mut open: Vec<(String, usize)> = vec![(String::new(), 0)];
    while let Some((above, depth)) = open.pop() {
        let folder = open_beneath(root, &above).map_err(|error| describe_unreadable(name, error))?;
        let mut entries = Vec::new();
        for entry in Dir::read_from(&folder).map_err(|error| describe_unreadable(name, error))? {
            let entry = entry.map_err(|error| describe_unreadable(name, error))?;
            let bytes = entry.file_name().to_bytes();
            if bytes == b"." || bytes == b".." {
                continue;
            }
            if entries.len() == LISTED {
                listing.is_cut = true;
                break;
            }
            entries.push(String::from_utf8(bytes.to_vec()).map_err(|_| String::from_utf8_lossy(bytes).into_owned()));
        }
        // The first by name are looked at, in whatever order the system tells them.
        entries.sort_unstable();
        let room = most.saturating_sub(listing.found.len() + listing.wrong.len());
        listing.is_cut |= entries.len() > room;
        entries.truncate(room);
        let mut inside = Vec::new();
        for entry in entries {
            let entry = match entry {
                Ok(entry) => entry,
                Err(entry) => {
                    listing.wrong.push(format!("`{name}/{above}{}` has a name that is no text", shown(&entry)));
                    continue;
                }
            };
            let path = format!("{above}{entry}");
            match looked_at(folder.as_fd(), &entry) {
                Ok(_) if find_odd_character(&entry).is_some() => {
                    let what = find_odd_character(&entry).unwrap_or_default();
                    listing.wrong.push(format!("`{name}/{}` {what}", shown(&path)));
                }
                Ok(true) if depth == DEEPEST => {
                    listing.wrong.push(format!("`{name}/{}` lies deeper than {DEEPEST} folders", shown(&path)));
                }
                Ok(true) => {
                    listing.found.push(Found { path: path.clone(), is_folder: true, bytes: 0 });
                    inside.push((format!("{path}/"), depth + 1));
                }
                Ok(false) => match file_size(folder.as_fd(), &entry) {
                    Ok(bytes) => listing.found.push(Found { path, is_folder: false, bytes }),
                    Err(what) => listing.wrong.push(format!("`{name}/{}` {what}", shown(&path))),
                },
                Err(what) => listing.wrong.push(format!("`{name}/{}` {what}", shown(&path))),
            }
        }
        // The list of open folders is a stack: the first by name is to be taken first.
        inside.reverse();
        open.append(&mut inside);
        if listing.is_cut {
            break;
        }
    }
    Ok(listing)
}

fn describe_unreadable(name: &str, error: Errno) -> String {
    format!("`{name}/` cannot be read: {}", io::Error::from(error))
}

/// Whether there is a folder of that name, or a file; else what is wrong.
fn looked_at(above: BorrowedFd<'_>, name: &str) -> Result<bool, String> {
    let stat = statat(above, name, AtFlags::SYMLINK_NOFOLLOW).map_err(describe_errno)?;
    match FileType::from_raw_mode(stat.st_mode) {
        // Its bytes may be those of a file outside, which sealing would take from its owner.
        FileType::RegularFile if stat.st_nlink > 1 => Err("has a second name elsewhere".to_owned()),
        FileType::RegularFile => Ok(false),
        FileType::Directory => Ok(true),
        FileType::Symlink => Err("is a link".to_owned()),
        _ => Err("is no regular file".to_owned()),
    }
}

fn file_size(above: BorrowedFd<'_>, name: &str) -> Result<u64, String> {
    let stat = statat(above, name, AtFlags::SYMLINK_NOFOLLOW).map_err(describe_errno)?;
    Ok(u64::try_from(stat.st_size).unwrap_or(0))
}

fn describe_errno(error: Errno) -> String {
    format!("cannot be looked at: {}", io::Error::from(error))
}

/// What a folder takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FolderSize {
    /// On the disk: holes take nothing.
    pub bytes: u64,
    /// Files and folders.
    pub files: usize,
    /// Some lie deeper than is looked at.
    pub is_deep: bool,
}

/// What lies beneath a folder; no more than `most` files and folders are weighed.
pub(super) fn measure_folder(root: BorrowedFd<'_>, most: usize) -> FolderSize {
    let mut weight = FolderSize::default();
    walk_folders(root, DEEPEST, |seen| {
        match seen {
            Seen::Left(_) => {}
            Seen::Deep => weight.is_deep = true,
            Seen::Entry(_, _, stat) => {
                weight.files += 1;
                // Whatever the block size of the file system, `st_blocks` counts units of 512 bytes.
                weight.bytes += u64::try_from(stat.st_blocks).unwrap_or(0) * 512;
            }
        }
        weight.files <= most
    });
    weight
}

/// Takes the right to write to everything beneath a folder, and to the folder, or gives it back.
pub(super) fn set_writable(root: BorrowedFd<'_>, writable: bool) {
    // What was removed meanwhile needs no mode.
    walk_folders(root, DEEPEST * 2, |seen| {
        match seen {
            Seen::Entry(folder, name, stat) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => {
                seal_file(folder, name, writable);
            }
            Seen::Left(folder) => {
                let _ = fchmod(folder, Mode::from_raw_mode(if writable { 0o700 } else { 0o500 }));
            }
            Seen::Entry(..) | Seen::Deep => {}
        }
        true
    });
}

/// The same of a file, which may be something else by now. One with a second name may belong to another program, too.
fn seal_file(folder: BorrowedFd<'_>, name: &CStr, writable: bool) {
    let Ok(file) = openat(folder, name, FILE, Mode::empty()) else { return };
    let Ok(stat) = fstat(&file) else { return };
    if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile && stat.st_nlink == 1 {
        // A program stays one, for those who look into the folder later.
        let mode = if writable { 0o600 } else { 0o400 } | stat.st_mode & 0o100;
        let _ = fchmod(&file, Mode::from_raw_mode(mode));
    }
}

/// What is met on a walk.
enum Seen<'w> {
    /// A name in a folder.
    Entry(BorrowedFd<'w>, &'w CStr, &'w Stat),
    /// A folder all of whose names were met.
    Left(BorrowedFd<'w>),
    /// A folder that lies too deep to be walked.
    Deep,
}

/// Walks a folder and those in it, `deepest` of which are open at once, for as long as `meet` wants to go on.
fn walk_folders(root: BorrowedFd<'_>, deepest: usize, mut meet: impl FnMut(Seen<'_>) -> bool) {
    let opened =
        |above: BorrowedFd<'_>, name: &CStr| openat(above, name, FOLDER, Mode::empty()).and_then(Dir::new).ok();
    let mut open: Vec<Dir> = opened(root, c".").into_iter().collect();
    while let Some(folder) = open.last_mut() {
        let entry = folder.read();
        let Ok(at) = folder.fd() else { return };
        let Some(Ok(entry)) = entry else {
            let goes_on = meet(Seen::Left(at));
            open.pop();
            match goes_on {
                true => continue,
                false => return,
            }
        };
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        let Ok(stat) = statat(at, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
        if !meet(Seen::Entry(at, name, &stat)) {
            return;
        }
        if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
            continue;
        }
        let below = opened(at, name);
        match open.len() > deepest {
            true => _ = meet(Seen::Deep),
            false => open.extend(below),
        }
    }
}

/// Removes a folder and what is in it, which may have been made read-only.
///
/// # Errors
/// Something cannot be removed.
pub(crate) fn remove_all(path: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            unlock_folders(path)?;
            std::fs::remove_dir_all(path)
        }
        done => done,
    }
}

/// Gives back the right to change the folders beneath `path`.
///
/// # Errors
/// One cannot be changed.
fn unlock_folders(path: &Path) -> io::Result<()> {
    let mut open = vec![path.to_owned()];
    while let Some(folder) = open.pop() {
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700))?;
        for entry in std::fs::read_dir(&folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                open.push(entry.path());
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn paths(listing: &Listing) -> Vec<&str> {
        listing.found.iter().map(|found| found.path.as_str()).collect()
    }

    #[test]
    fn a_folder_is_listed_in_order_and_what_does_not_belong_there_is_named() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path();
        std::fs::create_dir_all(root.join("data/deep")).unwrap();
        for file in ["b", "data/a", "data/deep/c"] {
            std::fs::write(root.join(file), "xy").unwrap();
        }
        let open = open_root(root).unwrap();
        let listing = list(open.as_fd(), "outbox", 100).unwrap();
        assert_eq!(paths(&listing), ["b", "data", "data/a", "data/deep", "data/deep/c"]);
        assert!(listing.wrong.is_empty() && !listing.is_cut);
        assert!(list(open.as_fd(), "outbox", 3).unwrap().is_cut);
        assert_eq!(measure_folder(open.as_fd(), 100).files, 5);

        symlink("/etc/passwd", root.join("link")).unwrap();
        symlink("..", root.join("data/up")).unwrap();
        std::fs::hard_link(root.join("b"), root.join("data/b")).unwrap();
        rustix::fs::mknodat(CWD, root.join("fifo"), FileType::Fifo, Mode::from_raw_mode(0o666), 0).unwrap();
        std::fs::write(root.join("a\nb"), "").unwrap();
        std::fs::write(root.join("a\\b"), "").unwrap();
        let wrong = list(open.as_fd(), "outbox", 100).unwrap().wrong.join("\n");
        for expected in [
            "`outbox/link` is a link",
            "`outbox/data/up` is a link",
            "`outbox/b` has a second name elsewhere",
            "`outbox/fifo` is no regular file",
            "holds control characters",
            "holds a `\\`",
        ] {
            assert!(wrong.contains(expected), "{expected}: {wrong}");
        }
        assert!(read(open.as_fd(), "link", 10).unwrap_err().contains("is a link"));
        assert!(read(open.as_fd(), "data/up/etc", 10).is_err());
        assert!(read(open.as_fd(), "fifo", 10).unwrap_err().contains("no regular file"));
        assert_eq!(read(open.as_fd(), "data/deep/c", 2).unwrap(), b"xy");
        assert!(read(open.as_fd(), "data/deep/c", 1).unwrap_err().contains("longer than 1 bytes"));
    }

    #[test]
    fn what_has_a_second_name_is_not_sealed() {
        let place = tempfile::tempdir().unwrap();
        let (root, outside) = (place.path().join("kept"), place.path().join("outside"));
        std::fs::create_dir_all(root.join("workspace")).unwrap();
        std::fs::write(&outside, "x").unwrap();
        std::fs::hard_link(&outside, root.join("workspace/second")).unwrap();
        std::fs::write(root.join("workspace/own"), "x").unwrap();
        symlink(&outside, root.join("workspace/link")).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        std::fs::set_permissions(&outside, std::fs::Permissions::from_mode(0o640)).unwrap();
        set_writable(open_root(&root).unwrap().as_fd(), false);
        assert_eq!((mode(&outside), mode(&root.join("workspace/own"))), (0o640, 0o400));
        // Nor is what was put in its place since it was looked at.
        let folder = open_root(&root.join("workspace")).unwrap();
        seal_file(folder.as_fd(), c"link", false);
        assert_eq!(mode(&outside), 0o640);
    }

    #[test]
    fn what_is_sealed_can_be_removed() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("kept");
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::write(root.join("a/b/c"), "x").unwrap();
        let open = open_root(&root).unwrap();
        set_writable(open.as_fd(), false);
        assert_eq!(std::fs::metadata(root.join("a/b/c")).unwrap().permissions().mode() & 0o777, 0o400);
        assert_eq!(std::fs::metadata(root.join("a")).unwrap().permissions().mode() & 0o777, 0o500);
        remove_all(&root).unwrap();
        assert!(!root.exists());
    }
}
