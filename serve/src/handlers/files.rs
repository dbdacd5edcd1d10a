//! Files of a run, and its artifacts.
//!
//! Invariant: nothing outside of the folder of the run is read, whatever an agent put there: no link is followed.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use swarmc_view::{ArtifactError, RunView};

use super::reply;
use crate::Service;
use crate::problem::Problem;
use crate::routes::{Call, Reply};
use crate::store::find_folder;

/// The bytes of an answer at most.
pub(crate) const MOST: i64 = 1024 * 1024;

pub(crate) fn read_file(service: &Service, call: &Call) -> Result<Reply, Problem> {
    let folder = find_folder(&service.home, call.part(0))?;
    let missing = || Problem::not_found(format!("run `{}` has no file `{}`", folder.id, call.part(1)));
    // The outputs lie beside the folder.
    let (root, path) = match call.part(1).strip_prefix("outputs/") {
        Some(path) => (&folder.outputs, path),
        None => (&folder.path, call.part(1)),
    };
    let file = open_beneath(root, Path::new(path)).map_err(|_| missing())?;
    let metadata = file.metadata().ok().filter(|metadata| metadata.is_file()).ok_or_else(missing)?;
    let total = metadata.len();
    let offset = call.number("offset").unwrap_or(0);
    let from = match u64::try_from(offset) {
        Ok(from) => from.min(total),
        Err(_) => total.saturating_sub(offset.unsigned_abs()),
    };
    let limit = call.number("limit").unwrap_or(MOST).clamp(1, MOST) as u64;
    let mut bytes = Vec::new();
    let read = Part { file: &file, at: from }.take(limit.min(total - from)).read_to_end(&mut bytes);
    read.map_err(|error| Problem::internal(format!("`{}` cannot be read: {error}", call.part(1))))?;
    Ok(Reply::Bytes { bytes, from, total })
}

/// Opens a file below a folder; no link leads to it.
///
/// # Errors
/// It is not there, or cannot be read.
pub(crate) fn open_beneath(root: &Path, path: &Path) -> io::Result<File> {
    let root = openat(CWD, root, OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let stays = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    Ok(File::from(openat2(root, path, flags, Mode::empty(), stays)?))
}

pub(crate) fn get_recording(service: &Service, call: &Call) -> Result<Reply, Problem> {
    Ok(Reply::Archive(find_folder(&service.home, call.part(0))?))
}

/// A file from somewhere on.
struct Part<'f> {
    file: &'f File,
    at: u64,
}

impl std::io::Read for Part<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.file.read_at(buffer, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

pub(crate) fn get_artifact(service: &Service, call: &Call) -> Result<Reply, Problem> {
    let reference = format!("artifact://{}/{}", call.part(1), call.part(2));
    service.store.with_run(&service.home, call.part(0), |run| {
        let found = RunView::of_followed(run).artifact_document(&reference);
        let artifact = found.map_err(|error| match error {
            ArtifactError::Unknown(problem) => problem.into(),
            ArtifactError::Lost(error) => Problem::internal(error.to_string()),
        })?;
        reply(&artifact)
    })
}
