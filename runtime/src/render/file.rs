//! `<<file:PATH>>`: files are read inside the workspace only, wherever symbolic links lead.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The largest file that is put into a text, in bytes.
const LARGEST: u64 = 16 * 1024 * 1024;

/// The contents of `path`, relative to `workspace`; bytes that are not UTF-8 become U+FFFD.
pub(crate) fn read(workspace: &Path, path: &str) -> Result<String, String> {
    let problem = |error: std::io::Error| format!("cannot read `{path}`: {error}");
    let root = workspace.canonicalize().map_err(problem)?;
    let target = root.join(path).canonicalize().map_err(problem)?;
    if !target.starts_with(&root) {
        return Err(format!("`{path}` lies outside the workspace"));
    }
    let meta = target.metadata().map_err(problem)?;
    if !meta.is_file() {
        // Opening a pipe or a device could wait for ever.
        return Err(format!("`{path}` is not a file"));
    }
    if meta.len() > LARGEST {
        return Err(format!("`{path}` is larger than {} MiB", LARGEST / (1024 * 1024)));
    }
    let mut bytes = Vec::new();
    File::open(&target).and_then(|file| file.take(LARGEST).read_to_end(&mut bytes)).map_err(problem)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
