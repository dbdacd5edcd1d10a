//! The pages of the rules as files, for editors that open what a diagnostic links to.
//!
//! In: a code. Out: the path of its page below the cache folder of the user, where it is written the first time that anyone
//! asks, and again when it differs. A folder that cannot be written to only costs the link.

use std::path::{Path, PathBuf};

use swarmc_compiler::Code;

/// The file with the page of a code; none where there is no place for it.
pub(crate) fn page_file(code: Code) -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    // A folder that is not absolute is none, as the standard has it.
    let cache = set("XDG_CACHE_HOME").filter(|folder| folder.is_absolute());
    write_page(&cache.or_else(|| set("HOME").map(|home| home.join(".cache")))?, code).ok()
}

/// Each version has a folder of its own, so that two of them do not write in turns.
fn write_page(cache: &Path, code: Code) -> std::io::Result<PathBuf> {
    let folder = cache.join("swarmc").join(concat!("rules-", env!("CARGO_PKG_VERSION")));
    let path = folder.join(format!("{}.md", code.id()));
    if std::fs::read(&path).is_ok_and(|known| known == code.page().as_bytes()) {
        return Ok(path);
    }
    std::fs::create_dir_all(&folder)?;
    // It takes its place only when it is whole: another server may be reading it.
    let partial = folder.join(format!("{}.{}", code.id(), std::process::id()));
    std::fs::write(&partial, code.page())?;
    std::fs::rename(&partial, &path)?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_written_once_and_mended() {
        let cache = tempfile::tempdir().expect("a temporary folder can be made");
        let read = |path: &Path| std::fs::read_to_string(path).expect("the page can be read");
        let path = write_page(cache.path(), Code::Cycle).expect("it can be written");
        assert_eq!(read(&path), Code::Cycle.page());
        let first = path.metadata().and_then(|data| data.modified()).expect("a time");
        assert_eq!(write_page(cache.path(), Code::Cycle).expect("it is there"), path);
        assert_eq!(path.metadata().and_then(|data| data.modified()).expect("a time"), first);
        std::fs::write(&path, "old").expect("it can be written");
        assert_eq!(read(&write_page(cache.path(), Code::Cycle).expect("it can be mended")), Code::Cycle.page());
        let folder = path.parent().expect("it lies in a folder");
        assert_eq!(std::fs::read_dir(folder).expect("the folder").count(), 1, "nothing else is left there");
    }

    #[test]
    fn where_nothing_can_be_written_there_is_no_page() {
        let cache = tempfile::NamedTempFile::new().expect("a temporary file can be made");
        assert!(write_page(cache.path(), Code::Cycle).is_err());
    }
}
