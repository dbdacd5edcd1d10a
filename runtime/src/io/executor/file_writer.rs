//! Writes small files (captured outputs, short logs) on a thread of its own, so that the thread of an attempt is free
//! for the next one. An end is reported behind its files: when the journal records an end, its files are written.

use std::collections::HashSet;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, SendError, SyncSender};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::thread::JoinHandle;

use crate::io::home::create_private;
use crate::types::error::RunError;

/// How many files may wait to be written; each holds an output at most.
const WAITING: usize = 64;

/// The folders that are remembered to be there.
const REMEMBERED: usize = 1000;

/// Writes files in the order they are given, on a thread that starts with the first of them. Clones feed the same thread.
#[derive(Clone, Debug)]
pub(crate) struct FileWriter {
    sender: Arc<LazyLock<SyncSender<Note>, Start>>,
}

/// Starts the thread.
type Start = Box<dyn FnOnce() -> SyncSender<Note> + Send>;

/// The thread that writes, once there is a file.
#[derive(Debug)]
pub(crate) struct WritingThread(Arc<Mutex<Option<JoinHandle<()>>>>);

impl WritingThread {
    /// Ends the thread when all is written that `writer` and its clones were given, and waits for that.
    ///
    /// # Errors
    /// The thread panicked.
    pub(crate) fn join(self, writer: &FileWriter) -> std::thread::Result<()> {
        let thread = take_given(&self.0);
        thread.map_or(Ok(()), |thread| {
            writer.send(Note::End);
            thread.join()
        })
    }
}

enum Note {
    Write(PathBuf, Vec<u8>),
    Store(PathBuf, Vec<u8>),
    Append(PathBuf, Vec<u8>),
    Remove(PathBuf),
    RemoveFolder(PathBuf),
    Then(Box<dyn FnOnce() + Send>),
    End,
}

impl FileWriter {
    /// A writer that calls `failed` for the first file that cannot be written and drops the others.
    pub(crate) fn new(failed: impl FnOnce(RunError) + Send + 'static) -> (FileWriter, WritingThread) {
        let thread = Arc::new(Mutex::new(None));
        let started = Arc::clone(&thread);
        let start = move || {
            let (sender, receiver) = mpsc::sync_channel(WAITING);
            // What the thread is given comes back where there is none.
            let given = Arc::new(Mutex::new(Some((receiver, failed))));
            let taken = Arc::clone(&given);
            let write = move || {
                let Some((receiver, failed)) = take_given(&taken) else { return };
                if let Err(error) = write_all(&receiver) {
                    failed(error);
                    // A task that still has something to write must not wait for us, nor for what comes behind it.
                    receiver.into_iter().take_while(|note| !matches!(note, Note::End)).for_each(drop_note);
                }
            };
            let builder = std::thread::Builder::new().name("files".to_owned()).stack_size(128 * 1024);
            match builder.spawn(write) {
                Ok(handle) => *started.lock().unwrap_or_else(PoisonError::into_inner) = Some(handle),
                Err(error) => {
                    let (_, failed) = take_given(&given).expect("no thread has taken it");
                    failed(RunError::Request(format!("the system has no room for one more thread: {error}")));
                }
            }
            sender
        };
        (FileWriter { sender: Arc::new(LazyLock::new(Box::new(start))) }, WritingThread(thread))
    }

    /// Writes `bytes` to `path`, replacing what is there.
    pub(crate) fn write(&self, path: PathBuf, bytes: Vec<u8>) {
        self.send(Note::Write(path, bytes));
    }

    /// The same for an artifact: its name, the digest of `bytes`, is there once they are.
    pub(crate) fn store(&self, path: PathBuf, bytes: Vec<u8>) {
        self.send(Note::Store(path, bytes));
    }

    /// Adds `bytes` to the end of the file at `path`, which need not be there.
    pub(crate) fn append(&self, path: PathBuf, bytes: Vec<u8>) {
        self.send(Note::Append(path, bytes));
    }

    /// Removes the folder at `path` with all that is in it, if there is one.
    pub(crate) fn remove_folder(&self, path: PathBuf) {
        self.send(Note::RemoveFolder(path));
    }

    /// Removes the file at `path`, if there is one.
    pub(crate) fn remove(&self, path: PathBuf) {
        self.send(Note::Remove(path));
    }

    /// Calls `report` when everything given before is written, or cannot be.
    pub(crate) fn report_when_written(&self, report: impl FnOnce() + Send + 'static) {
        self.send(Note::Then(Box::new(report)));
    }

    fn send(&self, note: Note) {
        // The thread outlives every sender, where it could be started.
        if let Err(SendError(note)) = self.sender.send(note) {
            drop_note(note);
        }
    }
}

fn take_given<T>(given: &Mutex<Option<T>>) -> Option<T> {
    given.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// Writes nothing, and calls what waits for that.
fn drop_note(note: Note) {
    if let Note::Then(report) = note {
        report();
    }
}

fn write_all(receiver: &Receiver<Note>) -> Result<(), RunError> {
    // Those that are there, as far as is remembered.
    let mut folders: HashSet<OsString> = HashSet::new();
    for note in receiver {
        match note {
            Note::Write(path, bytes) => {
                prepare_folder(&mut folders, &path)?;
                std::fs::write(&path, bytes).map_err(RunError::io("write", path))?;
            }
            Note::Store(path, bytes) => {
                prepare_folder(&mut folders, &path)?;
                let draft = path.with_extension("draft");
                let stored = std::fs::write(&draft, bytes).and_then(|()| std::fs::rename(&draft, &path));
                stored.map_err(RunError::io("write", path))?;
            }
            Note::Append(path, bytes) => {
                prepare_folder(&mut folders, &path)?;
                let file = std::fs::File::options().append(true).create(true).open(&path);
                file.and_then(|mut file| file.write_all(&bytes)).map_err(RunError::io("write", path))?;
            }
            Note::RemoveFolder(path) => {
                folders.clear();
                match std::fs::remove_dir_all(&path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        return Err(RunError::io("remove", path)(error));
                    }
                    _ => {}
                }
            }
            Note::Then(report) => report(),
            Note::End => break,
            Note::Remove(path) => match std::fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(RunError::io("remove", path)(error));
                }
                _ => {}
            },
        }
    }
    Ok(())
}

/// Makes the folder of a file, unless it is remembered to be there.
fn prepare_folder(folders: &mut HashSet<OsString>, path: &Path) -> Result<(), RunError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    if !folders.contains(folder.as_os_str()) {
        create_private(folder, true).map_err(RunError::io("create", folder))?;
        if folders.len() >= REMEMBERED {
            folders.clear();
        }
        folders.insert(folder.into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn an_artifact_that_is_read_meanwhile_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("artifacts/0af3");
        let (writer, thread) = FileWriter::new(|error| panic!("{error}"));
        writer.store(path.clone(), b"before".to_vec());
        let (sender, receiver) = mpsc::channel();
        writer.report_when_written(move || sender.send(()).unwrap());
        receiver.recv().unwrap();
        let mut reader = std::fs::File::open(&path).unwrap();
        writer.store(path.clone(), b"behind it".to_vec());
        thread.join(&writer).unwrap();
        let mut read = String::new();
        reader.read_to_string(&mut read).unwrap();
        assert_eq!((read.as_str(), std::fs::read(&path).unwrap().as_slice()), ("before", &b"behind it"[..]));
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "its draft is gone");
    }
}
