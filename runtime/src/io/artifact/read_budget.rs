//! What one look at a tree takes in: files as they are now, up to bounds that all looks share.
//!
//! In: a folder that is open, and paths in it. Out: versions, and in words what was left out. Invariants: no link is
//! followed, nothing is waited for (FIFOs), and every file that is read counts.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, openat, readlinkat, statat};
use rustix::io::Errno;

use super::version::{Kind, Version};
use crate::io::confine::Folder;

/// The largest file that is compared, in bytes.
const LARGEST_FILE: u64 = 1 << 20;

/// The files that one look takes in at most, and their bytes together.
pub(super) const FILES: usize = 5_000;
const BYTES: u64 = 32 << 20;

/// What one look takes in.
#[derive(Debug, Default)]
pub(super) struct ReadBudget {
    files: usize,
    bytes: u64,
    large: usize,
    more: usize,
}

/// Why a file is not taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Skip {
    Large,
    /// There is no room left.
    Full,
    /// It is no file, or cannot be read.
    Other,
}

impl ReadBudget {
    /// The file at a path, which there may be none of.
    ///
    /// # Errors
    /// It is not taken in.
    pub(super) fn admit_file(&mut self, root: &Folder, path: &str) -> Result<Option<Version>, Skip> {
        if self.is_full() {
            self.more += 1;
            return Err(Skip::Full);
        }
        // Also one that cannot be read: looking at it takes time all the same.
        self.files += 1;
        let version = read_version(root, path);
        match &version {
            Ok(version) => self.bytes += version.as_ref().map_or(0, |version| version.bytes.len() as u64),
            Err(Skip::Large) => self.large += 1,
            Err(_) => {}
        }
        version
    }

    /// Whether nothing more is taken in.
    pub(super) fn is_full(&self) -> bool {
        self.files == FILES || self.bytes >= BYTES
    }

    /// Says what was left out.
    pub(super) fn report_omitted(&self, omitted: &mut Vec<String>) {
        omitted.extend(describe_large(self.large));
        if self.more > 0 {
            omitted.push(format!("{} files: there are too many to compare", self.more));
        }
    }
}

/// That so many files are too large.
pub(super) fn describe_large(count: usize) -> Option<String> {
    (count > 0).then(|| format!("{count} files of more than {} KiB", LARGEST_FILE >> 10))
}

/// The file at a path; none where there is none, or a folder.
fn read_version(root: &Folder, path: &str) -> Result<Option<Version>, Skip> {
    let (above, name) = path.rsplit_once('/').unwrap_or((".", path));
    // Where its folder is gone, or no folder any more, so is the file.
    let Ok(above) = root.folder(above) else { return Ok(None) };
    let stat = match statat(&above, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Ok(None),
        Err(_) => return Err(Skip::Other),
    };
    match Kind::from_mode(stat.st_mode) {
        Some(Kind::Link) => {
            let target = readlinkat(&above, name, Vec::new()).map_err(|_| Skip::Other)?;
            Ok(Some(Version { kind: Kind::Link, bytes: target.into_bytes() }))
        }
        Some(_) if u64::try_from(stat.st_size).is_ok_and(|size| size > LARGEST_FILE) => Err(Skip::Large),
        Some(kind) => {
            let bytes = read_contents(&above, name)?;
            Ok(Some(Version { kind, bytes }))
        }
        None if FileType::from_raw_mode(stat.st_mode) == FileType::Directory => Ok(None),
        None => Err(Skip::Other),
    }
}

fn read_contents(above: &OwnedFd, name: &str) -> Result<Vec<u8>, Skip> {
    // Whatever took its place meanwhile is not followed, and not waited for.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = openat(above.as_fd(), name, flags, Mode::empty()).map_err(|_| Skip::Other)?;
    let mut bytes = Vec::new();
    File::from(file).take(LARGEST_FILE + 1).read_to_end(&mut bytes).map_err(|_| Skip::Other)?;
    if bytes.len() as u64 > LARGEST_FILE { Err(Skip::Large) } else { Ok(bytes) }
}
