//! What the file system says of files, by which an unchanged one is known without reading it.
//!
//! Invariant: of two equal stamps of a file, the second one proves that nothing has changed since the first one, if that
//! was *settled* when it was taken.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use sha2::{Digest as _, Sha256};

/// How old a change must be before the time of it proves that there was none since: clocks of file systems tick slowly.
const SETTLED: Duration = Duration::from_secs(1);

/// What tells a file from a later version of it: device, inode, mode, length, and the seconds and nanoseconds of its last
/// writing and of its last change.
pub(crate) type Stamp = [u64; 8];

pub(crate) fn stamp_of(meta: &Metadata) -> Stamp {
    let times = [meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec()].map(i64::cast_unsigned);
    [meta.dev(), meta.ino(), meta.mode().into(), meta.len(), times[0], times[1], times[2], times[3]]
}

/// Whether a change at this second since 1970 is old enough. Also metadata counts: contents can be written with an old time.
pub(crate) fn is_settled(changed: i64) -> bool {
    let changed = SystemTime::UNIX_EPOCH + Duration::from_secs(changed.unsigned_abs());
    SystemTime::now().duration_since(changed).is_ok_and(|age| age > SETTLED)
}

/// The stamps of all that lies in some folders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FolderStamp {
    digest: [u8; 32],
    /// The last change of a file, in seconds since 1970.
    changed: i64,
}

impl FolderStamp {
    /// Looks at everything in these folders, and follows no link.
    ///
    /// # Errors
    /// A folder cannot be read, or changes meanwhile.
    pub(crate) fn read(folders: &[&Path]) -> io::Result<FolderStamp> {
        let (mut hash, mut changed) = (Sha256::new(), i64::MIN);
        let mut open: Vec<PathBuf> = folders.iter().rev().map(|&folder| folder.to_owned()).collect();
        while let Some(folder) = open.pop() {
            let mut names =
                fs::read_dir(&folder)?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>()?;
            names.sort_unstable();
            hash.update(names.len().to_le_bytes());
            for name in names {
                let path = folder.join(&name);
                let meta = fs::symlink_metadata(&path)?;
                hash.update(name.len().to_le_bytes());
                hash.update(name.as_bytes());
                match meta.is_dir() {
                    // What was made and removed in it has changed its times, and nothing else.
                    true => {
                        hash.update(meta.mode().to_le_bytes());
                        open.push(path);
                    }
                    false => {
                        stamp_of(&meta).iter().for_each(|part| hash.update(part.to_le_bytes()));
                        changed = changed.max(meta.ctime());
                    }
                }
            }
        }
        Ok(FolderStamp { digest: hash.finalize().into(), changed })
    }

    /// Whether an equal one that is taken later proves that nothing has changed.
    pub(crate) fn is_settled(&self) -> bool {
        is_settled(self.changed)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn each_change_below_a_folder_changes_its_stamp() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path();
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join("a/file"), "one").unwrap();
        fs::write(root.join("a/other"), "one").unwrap();
        let read = || FolderStamp::read(&[root]).unwrap();
        let mut former = read();
        assert_eq!(former, read());
        let changes: [(&str, &dyn Fn()); 7] = [
            ("an empty folder", &|| fs::create_dir(root.join("a/empty")).unwrap()),
            ("an empty file", &|| fs::write(root.join("new"), "").unwrap()),
            ("another length", &|| fs::write(root.join("a/file"), "three").unwrap()),
            ("a right", &|| fs::set_permissions(root.join("a/file"), fs::Permissions::from_mode(0o755)).unwrap()),
            ("a name", &|| fs::rename(root.join("a/other"), root.join("a/third")).unwrap()),
            ("a link", &|| std::os::unix::fs::symlink("/", root.join("a/b/link")).unwrap()),
            ("a file less", &|| fs::remove_file(root.join("new")).unwrap()),
        ];
        for (what, change) in changes {
            change();
            let later = read();
            assert_ne!(former, later, "{what}");
            former = later;
        }
    }

    #[test]
    fn a_change_that_keeps_length_and_time_is_seen_once_the_stamp_is_settled() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("file");
        fs::write(&path, "one").unwrap();
        let young = FolderStamp::read(&[place.path()]).unwrap();
        assert!(!young.is_settled());
        while !young.is_settled() {
            std::thread::sleep(Duration::from_millis(20));
        }
        let written = fs::metadata(&path).unwrap().modified().unwrap();
        fs::write(&path, "two").unwrap();
        fs::File::options().write(true).open(&path).unwrap().set_modified(written).unwrap();
        assert_ne!(young, FolderStamp::read(&[place.path()]).unwrap());
    }
}
