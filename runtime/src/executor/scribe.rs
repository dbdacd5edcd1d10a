//! Writes small files behind the run, on a thread of its own: captured outputs and short logs.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::JoinHandle;

use crate::error::RunError;
use crate::home::create_private;

/// How many files may wait to be written; each holds an output at most.
const WAITING: usize = 64;

/// Writes files in the order they are given. Clones feed the same thread.
#[derive(Clone, Debug)]
pub(crate) struct Scribe {
    sender: SyncSender<Note>,
}

#[derive(Debug)]
struct Note {
    path: PathBuf,
    /// None removes the file.
    bytes: Option<Vec<u8>>,
}

impl Scribe {
    /// Starts the thread, which calls `failed` for the first file that cannot be written and drops the others. It ends
    /// when every clone is gone and all is written.
    pub(crate) fn start(failed: impl FnOnce(RunError) + Send + 'static) -> (Scribe, JoinHandle<()>) {
        let (sender, receiver) = mpsc::sync_channel(WAITING);
        let thread = std::thread::Builder::new()
            .name("scribe".to_owned())
            .stack_size(128 * 1024)
            .spawn(move || {
                if let Err(error) = write_all(&receiver) {
                    failed(error);
                    // Whoever still has something to write must not wait for us.
                    receiver.iter().for_each(drop);
                }
            })
            .expect("the system has room for one more thread");
        (Scribe { sender }, thread)
    }

    /// Writes `bytes` to `path`, replacing what is there.
    pub(crate) fn write(&self, path: PathBuf, bytes: Vec<u8>) {
        self.send(Note { path, bytes: Some(bytes) });
    }

    /// Removes the file at `path`, if there is one.
    pub(crate) fn remove(&self, path: PathBuf) {
        self.send(Note { path, bytes: None });
    }

    fn send(&self, note: Note) {
        // The thread outlives every sender.
        let _ = self.sender.send(note);
    }
}

fn write_all(receiver: &Receiver<Note>) -> Result<(), RunError> {
    let mut folders = BTreeSet::new();
    for Note { path, bytes } in receiver {
        match bytes {
            Some(bytes) => {
                let folder = path.parent().unwrap_or(Path::new("."));
                if !folders.contains(folder) {
                    create_private(folder, true).map_err(RunError::io("create", folder))?;
                    folders.insert(folder.to_owned());
                }
                std::fs::write(&path, bytes).map_err(RunError::io("write", path))?;
            }
            None => match std::fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(RunError::io("remove", path)(error));
                }
                _ => {}
            },
        }
    }
    Ok(())
}
