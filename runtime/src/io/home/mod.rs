//! `$SWARM_HOME`: where runs, their journals, logs and outputs lie, and how they are found and removed.
//!
//! `outputs/RUN/…` is for people and for other tools, `runs/RUN/…` is the run itself. Invariant: a folder in `runs/`
//! belongs to the one process that holds its `lock`; everything is readable and writable by its owner only.

mod folder;
mod id;
mod layout;
mod snapshots;

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

pub use folder::{RunFolder, Runner};
pub use layout::Layout;
pub use snapshots::{JournalRead, SNAPSHOTS, SnapshotWriter};

pub(crate) use folder::{Lock, Part, RunConfig, cut_part, holds_lock};
pub(crate) use layout::ATTEMPTS;

use crate::types::error::RunError;

/// What the folder of a run begins with before the run has been recorded.
pub(crate) const DRAFT: char = '.';

/// The folder that everything about runs lies in. Nothing is created before a run starts.
#[derive(Clone, Debug)]
pub struct Home {
    root: PathBuf,
}

impl Home {
    /// The home at `root`, by custom `$SWARM_HOME` or `~/.swarm`.
    pub fn new(root: PathBuf) -> Home {
        Home { root }
    }

    /// That in which this run lies.
    pub(crate) fn of_run(run: &RunFolder) -> Home {
        // `runs/RUN` in the home.
        Home { root: run.path.ancestors().nth(2).unwrap_or(&run.path).to_owned() }
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folders of all runs, the newest first; nothing in them is read.
    ///
    /// # Errors
    /// The folder of the runs cannot be read.
    pub fn list_folders(&self) -> Result<Vec<RunFolder>, RunError> {
        Ok(self.list_ids()?.into_iter().rev().map(|id| self.run_folder(id)).collect())
    }

    /// The run called `id`: in full, the beginning of one, or `last` for the newest.
    ///
    /// # Errors
    /// No run is called so, or several are.
    pub fn find(&self, id: &str) -> Result<RunFolder, RunError> {
        // There may be thousands of others, which need not be listed for a whole id. As in the list, a link is none.
        let may_be_whole = !id.is_empty() && id != "last" && !id.starts_with(DRAFT) && !id.contains('/');
        let exact = self.run_folder(id.to_owned());
        if may_be_whole && std::fs::symlink_metadata(&exact.path).is_ok_and(|found| found.is_dir()) {
            return Ok(exact);
        }
        let mut ids = self.list_ids()?;
        if id == "last"
            && let Some(newest) = ids.pop()
        {
            return Ok(self.run_folder(newest));
        }
        let mut candidates: Vec<String> = ids.into_iter().filter(|run| run.starts_with(id) && !id.is_empty()).collect();
        match candidates.len() {
            0 => Err(RunError::UnknownRun { id: id.to_owned(), home: self.root.clone() }),
            1 => Ok(self.run_folder(candidates.swap_remove(0))),
            _ => Err(RunError::AmbiguousRun { id: id.to_owned(), candidates }),
        }
    }

    /// The folder of a run that is about to start, under a hidden name until [`Home::publish`]: a runner that is killed
    /// before leaves no run behind that could not be resumed. Its id has not been used before.
    pub(crate) fn create(&self) -> Result<RunFolder, RunError> {
        let runs = self.root.join("runs");
        create_private(&runs, true).map_err(RunError::io("create", &runs))?;
        loop {
            let mut folder = self.run_folder(id::make_id()?);
            if folder.path.exists() {
                continue;
            }
            folder.path = runs.join(format!("{DRAFT}{}", folder.id));
            match create_private(&folder.path, false) {
                Ok(()) => return Ok(folder),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(RunError::io("create", folder.path)(error)),
            }
        }
    }

    /// The folder of a run whose id is given: that of an engine. It is there at once.
    ///
    /// # Errors
    /// It is no id, and might lead elsewhere; or the folder cannot be created.
    pub(crate) fn create_named(&self, id: &str) -> Result<RunFolder, RunError> {
        let is_id = |byte: u8| byte.is_ascii_digit() || byte.is_ascii_lowercase() || byte == b'-';
        if id.is_empty() || id.len() > 64 || !id.bytes().all(is_id) {
            return Err(RunError::Request(format!("`{}` is no id of a run", id.escape_debug())));
        }
        let folder = self.run_folder(id.to_owned());
        create_private(&folder.path, true).map_err(RunError::io("create", &folder.path))?;
        Ok(folder)
    }

    /// An id for a run that an engine is to have.
    pub(crate) fn make_id() -> Result<String, RunError> {
        id::make_id()
    }

    /// Gives a run that has been recorded its name.
    pub(crate) fn publish(&self, draft: RunFolder) -> Result<RunFolder, RunError> {
        let folder = self.run_folder(draft.id);
        std::fs::rename(&draft.path, &folder.path).map_err(RunError::io("create", &folder.path))?;
        Ok(folder)
    }

    pub(crate) fn run_folder(&self, id: String) -> RunFolder {
        RunFolder { path: self.root.join("runs").join(&id), outputs: self.root.join("outputs").join(&id), id }
    }

    /// The ids of all runs, in order of their start.
    fn list_ids(&self) -> Result<Vec<String>, RunError> {
        let mut ids = list_folder_names(&self.root.join("runs"))?;
        ids.retain(|id| !id.starts_with(DRAFT));
        Ok(ids)
    }
}

/// The names of the folders in `path`, sorted; none where there is no such folder.
pub(crate) fn list_folder_names(path: &Path) -> Result<Vec<String>, RunError> {
    let entries = match std::fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(RunError::io("read", path)(error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(RunError::io("read", path))?;
        if entry.file_type().is_ok_and(|kind| kind.is_dir())
            && let Ok(name) = entry.file_name().into_string()
        {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// Creates a folder that only its owner may enter.
pub(crate) fn create_private(path: &Path, recursive: bool) -> io::Result<()> {
    DirBuilder::new().recursive(recursive).mode(0o700).create(path)
}
