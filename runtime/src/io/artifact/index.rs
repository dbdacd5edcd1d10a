//! The index of a checkout: what Git last saw of every file that it tracks, by which those that may have changed are found
//! without reading any, nor asking Git.
//!
//! In: an index as Git stores it (versions 2 to 4, SHA-1), and the top of its checkout. Out: the files of which it is not
//! certain that they are as in the index. Invariants: a file in doubt is reported, such as one that changed in the
//! second in which the index was written; no link is followed; an index that is not understood to its last byte is
//! none.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, Stat, openat, statat};
use rustix::io::Errno;

use super::version::Kind;
use crate::types::digest::format_hex;

/// The bytes of an id.
const ID: usize = 20;

/// The most files that are believed to be in one.
const MOST: usize = 10_000_000;

/// So many files that may have changed mean that the index knows of older ones: it was copied along with them, say. The
/// bytes of those in doubt that are worth reading instead of asking Git.
pub(super) const DOUBTS: usize = 200;
const READ: u64 = 1 << 20;

/// The threads that look at files at most, and how many files one takes at a time.
const THREADS: usize = 8;
const SHARE: usize = 500;

/// Bits of an entry: that it has more bits, its side of a conflict, and the length of its path, up to so much.
const MORE: u16 = 0x4000;
const SIDE: u16 = 0x3000;
const LENGTH: u16 = 0x0fff;

/// Of the further bits, that the file need not be there, and that it is only meant to be added.
const ABSENT: u16 = 0x4000;
const MEANT: u16 = 0x2000;

/// The mode of a repository in a repository.
const MODULE: u32 = 0o160_000;

/// What nothing is stored under.
const NOTHING: &str = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391";

/// What Git last saw.
#[derive(Debug)]
pub(super) struct Index {
    /// By path.
    entries: Vec<Entry>,
}

/// A file that may have changed: its path, and what stood there.
pub(super) type Changed = (Vec<u8>, IndexedVersion);

/// The kind of a file and the id of its bytes; none where there was none, or that is not known.
pub(super) type IndexedVersion = Option<(Kind, String)>;

#[derive(Debug)]
struct Entry {
    path: Vec<u8>,
    blob: Option<(Kind, [u8; ID])>,
    /// Seconds and nanoseconds, the latter 0 where they are not known.
    changed: (u32, u32),
    modified: (u32, u32),
    inode: u32,
    size: u32,
    /// Whether the file is known not to be as stored.
    differs: bool,
    /// Whether a file that looks the same may yet be another: it is as young as the index.
    in_doubt: bool,
    /// Whether it is as Git wants it where it is not there.
    may_lack: bool,
}

impl Index {
    /// The index at a path; none where only Git understands it, and an empty one where there is no file.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn open(path: &Path) -> std::io::Result<Option<Index>> {
        let Some(mut file) = open_regular(path)? else { return Ok(Some(Index { entries: Vec::new() })) };
        let (mut bytes, written) = (Vec::new(), file.metadata()?.mtime());
        file.read_to_end(&mut bytes)?;
        Ok(Index::parse_index(&bytes, written))
    }

    /// The index of these bytes, which were written in this second; none where only Git understands it.
    fn parse_index(bytes: &[u8], written: i64) -> Option<Index> {
        let mut rest = Rest(bytes.get(..bytes.len().checked_sub(ID)?)?);
        let (head, version, count) = (rest.read_u32()?, rest.read_u32()?, rest.read_u32()? as usize);
        if head != u32::from_be_bytes(*b"DIRC") || !(2..=4).contains(&version) || count > MOST {
            return None;
        }
        let mut entries: Vec<Entry> = Vec::new();
        let mut path = Vec::new();
        for _ in 0..count {
            let (mode, entry) = parse_entry(&mut rest, version, &mut path, written as u32)?;
            // The sides of a conflict have one path: one of them is enough to ask for the file.
            if mode != MODULE && entries.last().is_none_or(|last| last.path != entry.path) {
                entries.push(entry);
            }
        }
        // What others have added may be left out, unless its name begins with a small letter.
        while !rest.0.is_empty() {
            let name = rest.take(4)?[0];
            let length = rest.read_u32()? as usize;
            rest.take(length)?;
            if !name.is_ascii_uppercase() {
                return None;
            }
        }
        Some(Index { entries })
    }

    /// The files below `within` (empty, or with a slash at its end) that may not be as in the index; none where there are
    /// so many that it had better be Git that reads them. What cannot be looked at is left out, as Git does.
    pub(super) fn find_changed(&self, top: BorrowedFd<'_>, within: &[u8]) -> Option<Vec<Changed>> {
        // Sorted by path, those below a folder stand side by side.
        let begin = self.entries.partition_point(|entry| entry.path.as_slice() < within);
        let length = self.entries[begin..].partition_point(|entry| entry.path.starts_with(within));
        let entries = &self.entries[begin..begin + length];
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS);
        // Who has a core for itself takes more of them.
        let (shares, next): (Vec<&[Entry]>, _) = (entries.chunks(SHARE).collect(), AtomicUsize::new(0));
        let work = || {
            let mut found = Vec::new();
            while let Some(share) = shares.get(next.fetch_add(1, Ordering::Relaxed)) {
                found.extend(select_changed(share, top));
            }
            found
        };
        let mut found: Vec<&Entry> = std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads.min(shares.len())).map(|_| scope.spawn(work)).collect();
            let mut found = work();
            for other in others {
                found.extend(other.join().expect("looking does not panic"));
            }
            found
        });
        // The threads come to an end in any order.
        found.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        let doubtful: u64 = found.iter().filter(|entry| entry.in_doubt).map(|entry| u64::from(entry.size)).sum();
        let changed = |entry: &Entry| (entry.path.clone(), entry.blob.map(|(kind, id)| (kind, format_hex(&id))));
        (found.len() <= DOUBTS && doubtful <= READ).then(|| found.into_iter().map(changed).collect())
    }
}

/// Those of these files that may have changed.
fn select_changed<'e>(entries: &'e [Entry], top: BorrowedFd<'_>) -> Vec<&'e Entry> {
    let mut trail = Trail { top, folders: Vec::new() };
    let mut found = Vec::new();
    for entry in entries {
        let (above, name) = split_path(&entry.path);
        let stat = trail.open_folder(above).and_then(|above| statat(above, name, AtFlags::SYMLINK_NOFOLLOW));
        let is_same = match stat {
            Ok(stat) => !entry.in_doubt && entry.looks_like(&stat),
            // A folder above that became a file or a link has taken the file away as well.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => entry.may_lack,
            Err(_) => true,
        };
        if !is_same {
            found.push(entry);
        }
    }
    found
}

impl Entry {
    fn looks_like(&self, stat: &Stat) -> bool {
        // Git keeps the lower half of each.
        let same = |(seconds, nanos): (u32, u32), now: i64, now_nanos: u64| {
            seconds == now as u32 && (nanos == 0 || u64::from(nanos) == now_nanos)
        };
        !self.differs
            && self.blob.map(|(kind, _)| kind) == Kind::from_mode(stat.st_mode)
            && self.size == stat.st_size as u32
            && self.inode == stat.st_ino as u32
            && same(self.modified, stat.st_mtime, stat.st_mtime_nsec)
            && same(self.changed, stat.st_ctime, stat.st_ctime_nsec)
    }
}

/// The mode of the next entry, and the entry. `path` is that of the last one, and becomes its own.
fn parse_entry(rest: &mut Rest<'_>, version: u32, path: &mut Vec<u8>, written: u32) -> Option<(u32, Entry)> {
    let before = rest.0.len();
    let changed = (rest.read_u32()?, rest.read_u32()?);
    let modified = (rest.read_u32()?, rest.read_u32()?);
    // A device may have another number after each mount: Git does not compare it either.
    let (_device, inode, mode) = (rest.read_u32()?, rest.read_u32()?, rest.read_u32()?);
    let (_user, _group, size) = (rest.read_u32()?, rest.read_u32()?, rest.read_u32()?);
    let id: [u8; ID] = rest.take(ID)?.try_into().ok()?;
    let bits = rest.read_u16()?;
    let more = if bits & MORE == 0 { 0 } else { rest.read_u16()? };
    // Paths go up, and have the length that precedes them: otherwise what was read is something else.
    let last = if version == 4 { rest.read_shared_length(path.len())? } else { 0 };
    let end = memchr::memchr(0, rest.0)?;
    let tail = rest.take(end)?;
    let is_ordered = path[last..] <= *tail;
    path.truncate(last);
    path.extend_from_slice(tail);
    // The index is a file of the workspace, so that an agent may have written it.
    let leads_out = path.split(|&byte| byte == b'/').any(|name| matches!(name, b"" | b"." | b".."));
    if !is_ordered || leads_out || path.len().min(LENGTH.into()) != usize::from(bits & LENGTH) {
        return None;
    }
    let taken = before - rest.0.len();
    // One NUL ends a path; up to version 3, as many as fill the last eight bytes.
    let nuls = if version == 4 { 1 } else { 8 - taken % 8 };
    if rest.take(nuls)?.iter().any(|&byte| byte != 0) {
        return None;
    }
    let is_one = bits & SIDE == 0 && more & MEANT == 0;
    let kind = Kind::from_mode(mode);
    if kind.is_none() && mode != MODULE {
        return None;
    }
    // A size of nothing is how Git marks what it knows to have changed.
    let differs = !is_one || size == 0 && format_hex(&id) != NOTHING;
    // Git calls such an entry racily clean: a write in the second of the index leaves no other trace.
    let in_doubt = changed.0.max(modified.0) >= written;
    let blob = kind.filter(|_| is_one).map(|kind| (kind, id));
    let may_lack = more & ABSENT != 0;
    Some((mode, Entry { path: path.clone(), blob, changed, modified, inode, size, differs, in_doubt, may_lack }))
}

/// Opens a file of a repository, where there is one, without waiting for what takes its place.
///
/// # Errors
/// It cannot be opened, or is no file.
pub(super) fn open_regular(path: &Path) -> std::io::Result<Option<File>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = match openat(CWD, path, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    if !file.metadata()?.is_file() {
        return Err(std::io::Error::new(ErrorKind::InvalidInput, "it is no file"));
    }
    Ok(Some(file))
}

/// What is not read yet.
struct Rest<'b>(&'b [u8]);

impl<'b> Rest<'b> {
    fn take(&mut self, length: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn read_u32(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    fn read_u16(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(self.take(2)?.try_into().ok()?))
    }

    /// How many of the last path's bytes the next one begins with: it is said how many it does not.
    fn read_shared_length(&mut self, length: usize) -> Option<usize> {
        let mut apart: usize = 0;
        loop {
            let byte = self.take(1)?[0];
            apart = apart.checked_mul(128)?.checked_add(usize::from(byte & 127))?;
            if byte & 128 == 0 {
                return length.checked_sub(apart);
            }
            // As Git's pack files write offsets: without it, a number would have several forms.
            apart = apart.checked_add(1)?;
        }
    }
}

/// The folders that lead to the one that was looked at last, opened without following a link.
struct Trail<'t> {
    top: BorrowedFd<'t>,
    folders: Vec<(Vec<u8>, Result<OwnedFd, Errno>)>,
}

impl Trail<'_> {
    fn open_folder(&mut self, path: &[u8]) -> Result<BorrowedFd<'_>, Errno> {
        let leads = |above: &[u8]| path.starts_with(above) && matches!(path.get(above.len()), None | Some(b'/'));
        // Entries are sorted by path, so that most files lie in a folder that is open already.
        while self.folders.last().is_some_and(|(above, _)| !leads(above)) {
            self.folders.pop();
        }
        let mut reached = self.folders.last().map_or(0, |(above, _)| above.len());
        while reached < path.len() {
            let begin = if reached == 0 { 0 } else { reached + 1 };
            let end = memchr::memchr(b'/', &path[begin..]).map_or(path.len(), |length| begin + length);
            let folder = self.last().and_then(|above| {
                // To look at what is inside, a folder need not be readable.
                let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                openat(above, &path[begin..end], flags, Mode::empty())
            });
            self.folders.push((path[..end].to_vec(), folder));
            reached = end;
        }
        self.last()
    }

    fn last(&self) -> Result<BorrowedFd<'_>, Errno> {
        match self.folders.last() {
            None => Ok(self.top),
            Some((_, folder)) => folder.as_ref().map(AsFd::as_fd).map_err(|error| *error),
        }
    }
}

/// The folder of a path, and its name in there.
fn split_path(path: &[u8]) -> (&[u8], &[u8]) {
    memchr::memrchr(b'/', path).map_or((&[][..], path), |slash| (&path[..slash], &path[slash + 1..]))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use tempfile::TempDir;

    use super::*;

    /// A checkout of these files, with what Git is told to do; its index, and when that was written at the earliest.
    fn checkout(files: &[(&str, &str)], orders: &[&[&str]]) -> (TempDir, Vec<u8>, i64) {
        let folder = tempfile::tempdir().expect("a folder");
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, text).expect("a file");
        }
        let init: &[&[&str]] = &[&["init", "--quiet"], &["add", "-A"]];
        for words in init.iter().chain(orders) {
            let git = Command::new("git").args(*words).current_dir(folder.path()).output().expect("git starts");
            assert!(git.status.success(), "{words:?}");
        }
        let bytes = fs::read(folder.path().join(".git/index")).expect("an index");
        let changed = |(path, _): &(&str, &str)| fs::metadata(folder.path().join(path)).expect("it is there").ctime();
        let (first, second) =
            (files.iter().map(changed).min().unwrap_or(0), files.iter().map(changed).max().unwrap_or(0));
        // The tests of few files ask which of them are in doubt: all were written in one second.
        match first == second || files.len() > 10 {
            true => (folder, bytes, second),
            false => checkout(files, orders),
        }
    }

    fn changed(folder: &TempDir, bytes: &[u8], written: i64) -> Option<Vec<String>> {
        let top = File::open(folder.path()).expect("it is there");
        let changed = Index::parse_index(bytes, written)?.find_changed(top.as_fd(), b"")?;
        Some(changed.into_iter().map(|(path, _)| String::from_utf8_lossy(&path).into_owned()).collect())
    }

    /// Writes over the first of these bytes.
    fn patched(bytes: &[u8], old: &[u8], new: &[u8]) -> Vec<u8> {
        let at = memchr::memmem::find(bytes, old).expect("it is in there");
        [&bytes[..at], new, &bytes[at + new.len()..]].concat()
    }

    #[test]
    fn a_length_that_no_path_has_is_none() {
        let check = |bytes: &[u8], expected: Option<usize>| {
            assert_eq!(Rest(bytes).read_shared_length(300), expected, "{bytes:x?}")
        };
        check(&[3], Some(297));
        check(&[0x80, 0x01], Some(300 - 129));
        check(&[0x81, 0x7f], None);
        // One more bit than a length has, and one more byte than a number has.
        let most = [&[0x80][..], &[0xfe; 8], &[0xff, 0x00]].concat();
        check(&most, None);
        check(&[0xff; 20], None);
        check(&[0x80], None);
    }

    #[test]
    fn a_file_is_in_doubt_unless_it_is_older_than_the_index_by_a_second() {
        for version in ["2", "3", "4"] {
            let order: &[&str] = &["update-index", "--index-version", version];
            let (folder, bytes, second) = checkout(&[("a/b", "1"), ("a/b.c", "2")], &[order]);
            assert_eq!(changed(&folder, &bytes, second), Some(vec!["a/b".to_owned(), "a/b.c".to_owned()]), "{version}");
            assert_eq!(changed(&folder, &bytes, second + 1), Some(Vec::new()), "{version}");
        }
    }

    #[test]
    fn many_files_are_looked_at_by_several_threads() {
        let names: Vec<String> = (0..4001).map(|number| format!("{}/{number:05}", number % 10)).collect();
        let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "")).collect();
        let (folder, bytes, second) = checkout(&files, &[]);
        assert_eq!(changed(&folder, &bytes, second + 1), Some(Vec::new()));
        let gone = ["0/00000", "5/01005", "9/03999"];
        gone.iter().for_each(|name| fs::remove_file(folder.path().join(name)).expect("it is there"));
        assert_eq!(changed(&folder, &bytes, second + 1), Some(gone.map(str::to_owned).to_vec()));
        let top = File::open(folder.path()).expect("it is there");
        let part = Index::parse_index(&bytes, second + 1).expect("it is one").find_changed(top.as_fd(), b"5/");
        assert_eq!(part.map(|part| part.len()), Some(1));
        assert_eq!(changed(&folder, &bytes, 0), None, "all of them are in doubt");
    }

    #[test]
    fn what_is_in_doubt_and_too_long_to_read_is_left_to_git() {
        let long = "x".repeat(600 << 10);
        let (folder, bytes, second) = checkout(&[("one", &long)], &[]);
        assert_eq!(changed(&folder, &bytes, second), Some(vec!["one".to_owned()]));
        let (folder, bytes, second) = checkout(&[("one", &long), ("two", &long)], &[]);
        assert_eq!(changed(&folder, &bytes, 0), None);
        assert_eq!(changed(&folder, &bytes, second + 1), Some(Vec::new()));
    }

    #[test]
    fn a_file_that_git_knows_to_have_changed_is_told() {
        let (folder, bytes, second) = checkout(&[("file", "")], &[]);
        assert_eq!(changed(&folder, &bytes, second + 1), Some(Vec::new()));
        // The size is still nothing, which is how Git marks it, but what it has stored is something.
        let marked = patched(&bytes, &[0xe6, 0x9d, 0xe2, 0x9b], &[1]);
        assert_eq!(changed(&folder, &marked, second + 1), Some(vec!["file".to_owned()]));
    }

    /// Who says so may be wrong.
    const ASSUMED: &[&str] = &["update-index", "--assume-unchanged", "one"];

    #[test]
    fn what_need_not_be_there_is_not_missed() {
        let (folder, bytes, second) =
            checkout(&[("one", "1"), ("two", "2")], &[&["update-index", "--skip-worktree", "two"], ASSUMED]);
        fs::remove_file(folder.path().join("one")).expect("it is there");
        fs::remove_file(folder.path().join("two")).expect("it is there");
        assert_eq!(changed(&folder, &bytes, second + 1), Some(vec!["one".to_owned()]));
        fs::write(folder.path().join("two"), "2").expect("a file");
        assert_eq!(changed(&folder, &bytes, second + 1), Some(vec!["one".to_owned(), "two".to_owned()]));
    }

    #[test]
    fn what_is_no_index_is_none() {
        let (folder, bytes, second) = checkout(&[("aa/file", "1"), ("bb/file", "2")], &[&["write-tree"]]);
        assert_eq!(changed(&folder, &patched(&bytes, b"TREE", b"tree"), second), None, "it must be understood");
        assert!(changed(&folder, &patched(&bytes, b"TREE", b"TRUE"), second).is_some(), "it need not be");
        let (folder, bytes, second) = checkout(&[("aa/file", "1"), ("bb/file", "2")], &[]);
        for leads_out in ["../", "./a", "/aa", "aa//"] {
            assert_eq!(
                changed(&folder, &patched(&bytes, b"aa/file", leads_out.as_bytes()), second),
                None,
                "{leads_out}"
            );
        }
        assert_eq!(changed(&folder, &patched(&bytes, b"aa/file", b"cc"), second), None, "they are not in order");
        for length in 0..bytes.len() {
            assert_eq!(changed(&folder, &bytes[..length], second), None, "{length}");
        }
        let compressed = checkout(&[("aa/file", "1"), ("aa/new", "2")], &[&["update-index", "--index-version", "4"]]).1;
        for bytes in [bytes, compressed] {
            // Whatever they say, they are read to an end.
            for (place, flipped) in (0..bytes.len()).flat_map(|place| [1, 0x40, 0x80, 0xff].map(|bits| (place, bits))) {
                let mut bytes = bytes.clone();
                bytes[place] ^= flipped;
                let _ = changed(&folder, &bytes, second);
            }
        }
    }
}
