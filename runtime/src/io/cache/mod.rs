//! The cache: results of finished steps, by the digest of all that they depended on.
//!
//! `cache/XX/KEY.json` under the home is an [`Entry`], `cache/content/XX/DIGEST` a text or file that it names, and
//! `runs/RUN/reuse.jsonl` the entries of one run. Invariants: what is read is checked against its digest, and what is
//! written is there in full or not at all, also where two runs write at once. None of it is needed for anything else:
//! a file that is missing or damaged is a miss.

mod entry;
mod manifest;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

pub(crate) use entry::{Entry, Unfit, WrittenFile};
pub(crate) use manifest::{Manifest, ManifestLine};

use crate::io::home::{Home, create_private};
use crate::types::digest::digest_bytes;
use crate::types::error::RunError;

/// The folder of the cache under the home.
const FOLDER: &str = "cache";

/// The folder of contents in it.
const CONTENT: &str = "content";

/// Tells apart the drafts of one process.
static DRAFTS: AtomicU64 = AtomicU64::new(0);

/// The cache of a home.
#[derive(Clone, Debug)]
pub(crate) struct Cache {
    root: PathBuf,
}

impl Cache {
    /// That of `home`. Nothing is created before something is stored.
    pub(crate) fn new(home: &Home) -> Cache {
        Cache { root: home.root().join(FOLDER) }
    }

    /// The entry of `key`; none where there is none.
    ///
    /// # Errors
    /// It is damaged: how.
    pub(crate) fn find_entry(&self, key: &str) -> Result<Option<Entry>, String> {
        let line = match fs::read_to_string(self.entry_path(key)) {
            Ok(line) => line,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.to_string()),
        };
        let entry = Entry::parse_line(line.strip_suffix('\n').ok_or("it is cut off")?)?;
        match entry.key == key {
            true => Ok(Some(entry)),
            false => Err("it is the entry of another key".to_owned()),
        }
    }

    /// Stores an entry, in the place of an older one of the same key.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn store_entry(&self, entry: &Entry, line: &str) -> io::Result<()> {
        replace_file(&self.entry_path(&entry.key), line.as_bytes(), b"\n")
    }

    /// The content of this digest and length.
    ///
    /// # Errors
    /// It is missing or damaged: how.
    pub(crate) fn read_content(&self, digest: &str, bytes: u64) -> Result<Vec<u8>, String> {
        read_checked(&self.content_path(digest), digest, bytes)
    }

    /// Stores a content under its digest; a second name of the file `same`, where that holds it and can have one.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn store_content(&self, digest: &str, same: Option<&Path>, bytes: &[u8]) -> io::Result<()> {
        let path = self.content_path(digest);
        if fs::metadata(&path).is_ok_and(|found| found.len() == bytes.len() as u64) {
            return Ok(());
        }
        create_private(path.parent().expect("a content lies in a folder"), true)?;
        match same.map(|same| fs::hard_link(same, &path)) {
            Some(Ok(())) => Ok(()),
            _ => replace_file(&path, bytes, b""),
        }
    }

    /// Removes what has not changed since `limit`, or only counts it; says how many entries those are, and the bytes of
    /// all that is removed.
    ///
    /// # Errors
    /// Something cannot be removed.
    pub(crate) fn prune(&self, limit: SystemTime, dry_run: bool) -> Result<(u64, u64), RunError> {
        let (mut entries, mut bytes) = (0, 0);
        let mut open = vec![self.root.clone()];
        while let Some(folder) = open.pop() {
            let Ok(found) = fs::read_dir(&folder) else { continue };
            for entry in found.filter_map(Result::ok) {
                let (path, Ok(meta)) = (entry.path(), entry.metadata()) else { continue };
                if meta.is_dir() {
                    open.push(path);
                    continue;
                }
                if meta.modified().is_ok_and(|time| time > limit) {
                    continue;
                }
                entries += u64::from(path.extension().is_some_and(|extension| extension == "json"));
                bytes += meta.len();
                if !dry_run {
                    match fs::remove_file(&path) {
                        // Another prune was faster.
                        Err(error) if error.kind() != io::ErrorKind::NotFound => {
                            return Err(RunError::io("remove", path)(error));
                        }
                        _ => {}
                    }
                }
            }
        }
        Ok((entries, bytes))
    }

    fn entry_path(&self, key: &str) -> PathBuf {
        self.root.join(shard_name(key)).join(format!("{key}.json"))
    }

    fn content_path(&self, digest: &str) -> PathBuf {
        self.root.join(CONTENT).join(shard_name(digest)).join(digest)
    }
}

/// The bytes of a file, if they are those of this digest.
///
/// # Errors
/// They are not, or cannot be read: why.
pub(crate) fn read_checked(path: &Path, digest: &str, bytes: u64) -> Result<Vec<u8>, String> {
    let found = fs::read(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => "it is gone".to_owned(),
        _ => error.to_string(),
    })?;
    match found.len() as u64 == bytes && digest_bytes(&found) == digest {
        true => Ok(found),
        false => Err("its digest is that of another content".to_owned()),
    }
}

/// Writes a file as a whole: a reader sees the old one or the new one. Not durable: what a crash damages is a miss.
pub(crate) fn replace_file(path: &Path, bytes: &[u8], end: &[u8]) -> io::Result<()> {
    let folder = path.parent().expect("a file lies in a folder");
    let draft = folder.join(format!(".{}.{}", std::process::id(), DRAFTS.fetch_add(1, Ordering::Relaxed)));
    let write = || {
        let mut file = fs::File::create_new(&draft)?;
        file.write_all(bytes)?;
        file.write_all(end)
    };
    let written = match write() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => create_private(folder, true).and_then(|()| write()),
        written => written,
    };
    let placed = written.and_then(|()| fs::rename(&draft, path));
    if placed.is_err() {
        // The reason why it could not be written counts.
        let _ = fs::remove_file(&draft);
    }
    placed
}

/// The first two digits: a folder does not get too full.
fn shard_name(digest: &str) -> &str {
    digest.get(..2).unwrap_or("00")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::entry::tests::sample;
    use super::*;

    fn cache() -> (tempfile::TempDir, Cache) {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = Cache::new(&Home::new(folder.path().to_owned()));
        (folder, cache)
    }

    #[test]
    fn an_entry_is_found_by_its_key_alone() {
        let (_folder, cache) = cache();
        let entry = sample("x");
        cache.store_entry(&entry, &entry.format_line()).expect("it is written");
        assert_eq!(cache.find_entry(&entry.key), Ok(Some(entry.clone())));
        assert_eq!(cache.find_entry(&sample("y").key), Ok(None));
        // An entry that was moved to another key is damaged.
        let other = cache.entry_path(&sample("y").key);
        create_private(other.parent().expect("a folder"), true).expect("a folder");
        fs::copy(cache.entry_path(&entry.key), &other).expect("a copy");
        assert_eq!(cache.find_entry(&sample("y").key), Err("it is the entry of another key".to_owned()));
        fs::write(cache.entry_path(&entry.key), &entry.format_line()[..100]).expect("a cut entry");
        assert_eq!(cache.find_entry(&entry.key), Err("it is cut off".to_owned()));
    }

    #[test]
    fn a_content_is_checked_when_it_is_read() {
        let (_folder, cache) = cache();
        let digest = digest_bytes(b"text");
        cache.store_content(&digest, None, b"text").expect("it is written");
        assert_eq!(cache.read_content(&digest, 4), Ok(b"text".to_vec()));
        fs::write(cache.content_path(&digest), "texT").expect("a forged content");
        assert_eq!(cache.read_content(&digest, 4), Err("its digest is that of another content".to_owned()));
        fs::remove_file(cache.content_path(&digest)).expect("it is removed");
        assert_eq!(cache.read_content(&digest, 4), Err("it is gone".to_owned()));
    }

    #[test]
    fn those_who_write_one_entry_at_once_leave_a_whole_one() {
        let (_folder, cache) = cache();
        let entry = sample("x");
        let line = entry.format_line();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        cache.store_entry(&entry, &line).expect("it is written");
                        assert_eq!(cache.find_entry(&entry.key), Ok(Some(entry.clone())));
                    }
                });
            }
        });
        let folder = cache.entry_path(&entry.key);
        let left = fs::read_dir(folder.parent().expect("a folder")).expect("a folder").count();
        assert_eq!(left, 1, "no draft is left");
    }

    #[test]
    fn pruning_removes_what_is_old() {
        let (_folder, cache) = cache();
        let entry = sample("x");
        cache.store_entry(&entry, &entry.format_line()).expect("it is written");
        cache.store_content(&digest_bytes(b"text"), None, b"text").expect("it is written");
        let now = SystemTime::now();
        assert_eq!(cache.prune(now - Duration::from_secs(60), false).expect("it can be read"), (0, 0));
        let later = now + Duration::from_secs(60);
        let bytes = entry.format_line().len() as u64 + 5;
        assert_eq!(cache.prune(later, true).expect("it can be read"), (1, bytes));
        assert_eq!(cache.prune(later, false).expect("it can be removed"), (1, bytes));
        assert_eq!(cache.prune(later, false).expect("it can be read"), (0, 0));
        assert_eq!(cache.find_entry(&entry.key), Ok(None));
    }
}
