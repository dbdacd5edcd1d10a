//! The folder of a run, kept in an engine: its driver passes on what it writes, and others lay it out again from that.
//!
//! Invariants: texts that records refer to are kept before the records; of two drivers only the later one writes.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;
use tokio::task::JoinSet;

use super::holder::HANDLED;
use super::tree::PATCHES;
use super::{CallError, Client, Objects};
use crate::io::home::{RunFolder, create_private};
use crate::types::engine::{Append, Bytes, KeptFile, Page, Read};

/// What is not kept: locks, sockets, and what belongs to one machine.
const OWN: [&str; 6] = ["lock", "journal.jsonl", "attempts", "engine.json", "run.json", "runner.log"];

/// The plan, without which no driver goes on.
const PLAN: &str = "plan.json";

/// What stands before the paths of outputs.
const OUTPUTS: &str = "outputs/";

/// How long a folder must be as it is before its time is trusted.
const SETTLED: Duration = Duration::from_millis(100);

/// The bytes of records that are passed on at once, about, and of a piece of a file.
const BATCH: usize = 1 << 20;

/// The objects that are put at once.
const PUTS: usize = 16;

/// Passes on what is written into the folder of a run.
#[derive(Debug)]
pub(crate) struct Keeper {
    client: Client,
    objects: Objects,
    folder: RunFolder,
    driver: u64,
    handle: Handle,
    progress: Mutex<Progress>,
}

#[derive(Debug, Default)]
struct Progress {
    /// The bytes of the journal, and its records, that were passed on.
    journal: u64,
    records: u64,
    artifacts: HashSet<String>,
    /// When something was last stored there, as far as that is known.
    stored: Option<SystemTime>,
    files: BTreeMap<PathBuf, (u64, SystemTime)>,
}

impl Keeper {
    /// Passes on from the folder as it is: `records` and what is there beside them are known to the engine.
    pub(crate) fn new(
        (client, objects): (Client, Objects),
        folder: RunFolder,
        driver: u64,
        handle: Handle,
        (journal, records): (u64, u64),
    ) -> Keeper {
        let keeper = Keeper { client, objects, folder, driver, handle, progress: Mutex::default() };
        {
            let mut progress = keeper.progress.lock().unwrap_or_else(PoisonError::into_inner);
            (progress.journal, progress.records) = (journal, records);
            if records > 0 {
                progress.artifacts = keeper.list_artifacts().unwrap_or_default().into_iter().collect();
                for (path, state) in keeper.list_files() {
                    progress.files.insert(path, state);
                }
            }
        }
        keeper
    }

    /// Passes on everything that is written so far. This waits for the engine.
    ///
    /// # Errors
    /// The engine does not answer, or another driver has the run.
    pub(crate) fn keep(&self) -> io::Result<()> {
        self.keep_all(true, false)
    }

    /// The same with all files that people look at, and whether the run is over.
    ///
    /// # Errors
    /// As [`Keeper::keep`].
    pub(crate) fn keep_all(&self, is_urgent: bool, is_over: bool) -> io::Result<()> {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        // Ahead of the files: what a record refers to was written before it.
        let (mut end, mut lines) = (progress.journal, Vec::new());
        let journal = self.read_journal(progress.journal)?;
        for line in journal.split_inclusive(|&byte| byte == b'\n').filter(|line| line.ends_with(b"\n")) {
            end += line.len() as u64;
            lines.push(String::from_utf8_lossy(&line[..line.len() - 1]).into_owned());
        }
        let mut files = Vec::new();
        // The folder is read again only where its time has changed; a time of this moment may change without showing it.
        let stored = std::fs::metadata(self.folder.path.join("artifacts")).and_then(|meta| meta.modified()).ok();
        let is_settled = stored.is_some_and(|stored| stored.elapsed().is_ok_and(|age| age > SETTLED));
        if stored.is_some() && (stored != progress.stored || !is_settled) {
            let mut names = self.list_artifacts()?;
            names.retain(|name| !progress.artifacts.contains(name));
            let found = self.store_artifacts(&names)?;
            // One that is not whole yet is looked at again.
            progress.stored = stored.filter(|_| is_settled && found.len() == names.len());
            progress.artifacts.extend(found.iter().map(|(name, _)| name.clone()));
            files.extend(found.into_iter().map(|(_, file)| file));
        }
        // What a driver reads with the records goes with them; what people look at may come later.
        let found = if is_urgent { self.find_needed() } else { self.list_files() };
        for (path, state) in found {
            let former = progress.files.insert(path.clone(), state);
            if former == Some(state) {
                continue;
            }
            // Logs only grow.
            let from = former.map_or(0, |(length, _)| length);
            let grows = path.starts_with("logs") && state.0 >= from;
            files.extend(self.pack_file(&path, if grows { from } else { 0 })?);
        }
        if lines.is_empty() && files.is_empty() && !is_over {
            return Ok(());
        }
        let mut lines = lines.into_iter().peekable();
        let mut from = progress.records + 1;
        loop {
            let (mut batch, mut bytes) = (Vec::new(), 0);
            while bytes < BATCH
                && let Some(line) = lines.next()
            {
                bytes += line.len();
                batch.push(line);
            }
            let count = batch.len() as u64;
            let is_last = lines.peek().is_none();
            let append = Append {
                driver: self.driver,
                from,
                lines: batch,
                files: std::mem::take(&mut files),
                is_over: is_over && is_last,
            };
            self.handle.block_on(self.client.append(&self.folder.id, &append)).map_err(io::Error::other)?;
            from += count;
            if is_last {
                break;
            }
        }
        (progress.journal, progress.records) = (end, from - 1);
        Ok(())
    }

    /// The journal behind its first bytes; it ends before the zeros that are written ahead.
    fn read_journal(&self, from: u64) -> io::Result<Vec<u8>> {
        let mut file = File::open(self.folder.journal_path())?;
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let end = memchr::memchr(0, &bytes).unwrap_or(bytes.len());
        bytes.truncate(end);
        Ok(bytes)
    }

    /// The plan, and the list of changes where there is one.
    fn find_needed(&self) -> Vec<(PathBuf, (u64, SystemTime))> {
        let find = |path: PathBuf| {
            let meta = std::fs::metadata(self.folder.path.join(&path)).ok()?;
            Some((path, (meta.len(), meta.modified().unwrap_or(SystemTime::UNIX_EPOCH))))
        };
        [PLAN, PATCHES, HANDLED].into_iter().filter_map(|name| find(name.into())).collect()
    }

    fn list_artifacts(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(self.folder.path.join("artifacts"))? {
            // Those that are being written have an extension.
            let name = entry?.file_name().into_string().ok();
            names.extend(name.filter(|name| name.bytes().all(|byte| byte.is_ascii_hexdigit())));
        }
        Ok(names)
    }

    /// The other files, by their paths as they are kept, with length and time.
    fn list_files(&self) -> Vec<(PathBuf, (u64, SystemTime))> {
        let mut found = Vec::new();
        let mut open = vec![(self.folder.path.clone(), PathBuf::new()), (self.folder.outputs.clone(), OUTPUTS.into())];
        while let Some((folder, path)) = open.pop() {
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                let name = entry.file_name();
                let is_top = path.as_os_str().is_empty();
                let is_own = is_top && (OWN.iter().any(|own| name == *own) || name == "artifacts");
                let is_draft = [".draft", ".sock"].iter().any(|end| name.as_encoded_bytes().ends_with(end.as_bytes()));
                let Ok(meta) = entry.metadata() else { continue };
                if is_own || is_draft {
                    continue;
                } else if meta.is_dir() {
                    open.push((entry.path(), path.join(&name)));
                } else if meta.is_file() {
                    found.push((path.join(&name), (meta.len(), meta.modified().unwrap_or(SystemTime::UNIX_EPOCH))));
                }
            }
        }
        found.sort();
        found
    }

    /// Has texts that records refer to as objects, however short: the store has each under the digest that records name.
    /// Those that are whole, with their names.
    fn store_artifacts(&self, names: &[String]) -> io::Result<Vec<(String, KeptFile)>> {
        let mut files = Vec::new();
        for some in names.chunks(PUTS) {
            let mut puts = JoinSet::new();
            for name in some {
                let path = format!("artifacts/{name}");
                // It may be gone meanwhile.
                let Ok(bytes) = std::fs::read(self.folder.path.join(&path)) else { continue };
                let (objects, name) = (self.objects.clone(), name.clone());
                let put = async move {
                    let digest = objects.put(&bytes).await?;
                    let is_whole = digest == name;
                    let bytes = Bytes::Object { digest, length: bytes.len() as u64 };
                    Ok::<_, String>(is_whole.then_some((name, KeptFile { path, from: 0, bytes })))
                };
                puts.spawn_on(put, &self.handle);
            }
            for file in self.handle.block_on(puts.join_all()) {
                files.extend(file.map_err(io::Error::other)?);
            }
        }
        Ok(files)
    }

    /// A file from a byte on, in pieces.
    fn pack_file(&self, path: &Path, mut from: u64) -> io::Result<Vec<KeptFile>> {
        let Some(name) = path.to_str() else { return Ok(Vec::new()) };
        let Some(place) = place(&self.folder, name) else { return Ok(Vec::new()) };
        // It may be gone meanwhile.
        let Ok(mut file) = File::open(place) else { return Ok(Vec::new()) };
        file.seek(SeekFrom::Start(from))?;
        let mut pieces = Vec::new();
        loop {
            let mut bytes = Vec::new();
            (&mut file).take(BATCH as u64).read_to_end(&mut bytes)?;
            let is_last = bytes.len() < BATCH;
            if !bytes.is_empty() || from == 0 {
                let length = bytes.len() as u64;
                let bytes = self.handle.block_on(self.objects.pack(&bytes)).map_err(io::Error::other)?;
                pieces.push(KeptFile { path: name.to_owned(), from, bytes });
                from += length;
            }
            if is_last {
                return Ok(pieces);
            }
        }
    }
}

/// Where a kept file lies; none where its path leads elsewhere.
fn place(folder: &RunFolder, path: &str) -> Option<PathBuf> {
    let (root, path) = match path.strip_prefix(OUTPUTS) {
        Some(path) => (&folder.outputs, path),
        None => (&folder.path, path),
    };
    let path = Path::new(path);
    let is_inside = path.components().all(|part| matches!(part, Component::Normal(_)));
    let is_own = path.iter().next().is_some_and(|first| OWN.iter().any(|own| first == OsStr::new(own)));
    (is_inside && !is_own && path.file_name().is_some()).then(|| root.join(path))
}

/// How far a copy of a run is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Copied {
    /// Records and files that were copied, and the bytes of the journal.
    pub records: u64,
    files: u64,
    /// See `records`.
    pub journal: u64,
    /// Whether the run has ended, and all of it is copied.
    pub is_over: bool,
}

/// Copies what is new of a run into its folder, and adds the paths of files that grew to `changed`.
///
/// # Errors
/// The engine or the store does not answer, or the folder cannot be written.
pub(crate) async fn copy_new(
    client: &Client,
    objects: &Objects,
    folder: &RunFolder,
    copied: &mut Copied,
    changed: &mut Vec<PathBuf>,
) -> Result<(), String> {
    loop {
        let read = Read { after: copied.records, files_after: copied.files };
        let page = client.read(&folder.id, read).await.map_err(|error: CallError| error.to_string())?;
        let Page { lines, files, records, all_files, is_over } = page;
        if lines.is_empty() && files.is_empty() {
            copied.is_over = is_over;
            return Ok(());
        }
        let failed = |error: io::Error| format!("the copy of run {} cannot be written: {error}", folder.id);
        // Texts first: a record refers to them.
        for file in files {
            let bytes = objects.unpack(file.bytes).await?;
            if let Some(place) = place(folder, &file.path) {
                write_piece(&place, file.from, &bytes).map_err(failed)?;
                changed.push(place);
            }
            copied.files += 1;
        }
        if copied.files == all_files {
            let mut text = String::new();
            for line in &lines {
                text.push_str(line);
                text.push('\n');
            }
            write_piece(&folder.journal_path(), copied.journal, text.as_bytes()).map_err(failed)?;
            copied.journal += text.len() as u64;
            copied.records += lines.len() as u64;
        }
        if copied.records == records && copied.files == all_files {
            copied.is_over = is_over;
            return Ok(());
        }
    }
}

fn write_piece(path: &Path, from: u64, bytes: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        create_private(folder, true)?;
    }
    let mut file = File::options().write(true).create(true).truncate(from == 0).open(path)?;
    file.write_all_at(bytes, from)?;
    file.flush()
}

/// The keeper of a journal: what makes it durable.
pub(crate) fn keeping(keeper: &Arc<Keeper>) -> impl Fn() -> io::Result<()> + Send + Sync + 'static {
    let keeper = Arc::clone(keeper);
    move || keeper.keep()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::home::Home;
    use crate::types::digest::digest_bytes;

    #[test]
    fn an_artifact_that_is_half_written_is_kept_once_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let objects = Objects::open(&format!("file://{}", folder.path().display())).unwrap();
        let client = Client::new("http://127.0.0.1:1", Duration::from_secs(1)).unwrap();
        let run = Home::new(folder.path().join("home")).create_named("run").unwrap();
        let artifacts = run.path.join("artifacts");
        create_private(&artifacts, true).unwrap();
        let keeper = Keeper::new((client, objects.clone()), run, 1, runtime.handle().clone(), (0, 0));
        let (text, other) = ("a text in two halves", "another");
        let names = [text, other].map(|text| digest_bytes(text.as_bytes()));
        std::fs::write(artifacts.join(&names[0]), &text[..9]).unwrap();
        std::fs::write(artifacts.join(&names[1]), other).unwrap();
        std::fs::write(artifacts.join("0af3.draft"), "not there yet").unwrap();
        let mut listed = keeper.list_artifacts().unwrap();
        listed.sort();
        let mut sorted = names.to_vec();
        sorted.sort();
        assert_eq!(listed, sorted);
        let kept = |keeper: &Keeper| {
            let kept = keeper.store_artifacts(&names).unwrap();
            kept.into_iter().map(|(name, _)| name).collect::<Vec<String>>()
        };
        assert_eq!(kept(&keeper), [names[1].clone()]);
        std::fs::write(artifacts.join(&names[0]), text).unwrap();
        assert_eq!(kept(&keeper).len(), 2);
        assert_eq!(runtime.block_on(objects.get(&names[0])).unwrap(), text.as_bytes());
    }
}
