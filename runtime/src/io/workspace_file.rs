//! `<<file:PATH>>`: files are read inside the workspace only, wherever symbolic links lead.

use std::io::Read;
use std::path::Path;

use crate::io::confine::Folder;

/// The largest file that is put into a text, in bytes.
const LARGEST: u64 = 16 * 1024 * 1024;

/// The contents of `path`, relative to `workspace`; bytes that are not UTF-8 become U+FFFD.
pub(crate) fn read_file(workspace: &Path, path: &str) -> Result<String, String> {
    let bytes = read_file_bytes(workspace, path, LARGEST)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The same as bytes, and so many of them at most.
pub(crate) fn read_file_bytes(workspace: &Path, path: &str, most: u64) -> Result<Vec<u8>, String> {
    let problem = |error: std::io::Error| format!("cannot read `{path}`: {error}");
    let root = workspace.canonicalize().map_err(problem)?;
    let target = root.join(path).canonicalize().map_err(problem)?;
    let Ok(inside) = target.strip_prefix(&root) else {
        return Err(format!("`{path}` lies outside the workspace"));
    };
    if !target.is_file() {
        return Err(format!("`{path}` is not a file"));
    }
    let inside = inside.to_str().ok_or_else(|| format!("the name of `{path}` is no text"))?;
    // What was put in its place meanwhile is neither followed out nor waited for.
    let (file, _) = Folder::open(&root)?.file(inside).map_err(|problem| format!("cannot read `{path}`: {problem}"))?;
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes).map_err(problem)?;
    if bytes.len() as u64 > most {
        return Err(format!("`{path}` is larger than {} MiB", most / (1024 * 1024)));
    }
    Ok(bytes)
}
