//! Texts that a command changed: shown as a diff, or written over the files they come from.
//!
//! Nothing is ever half written: every new text is prepared beside its file first, and then takes its place whole. A file
//! that changed since it was read, or that may not be written, stops all of them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use miette::miette;
use similar::{ChangeTag, TextDiff};
use swarmc_view::make_printable;
use tempfile::NamedTempFile;

use crate::terminal::Paint;

/// The lines shown around a change.
const CONTEXT: usize = 3;

/// How long the smallest difference is looked for; then one that is larger does.
const PATIENCE: Duration = Duration::from_secs(2);

/// A file and what becomes of it.
#[derive(Debug)]
pub(crate) struct Change {
    /// Where it lies.
    pub(crate) path: PathBuf,
    /// As a person would type it.
    pub(crate) shown: String,
    /// Its text when it was read.
    pub(crate) before: String,
    pub(crate) after: String,
}

/// The changes as a unified diff.
pub(crate) fn render_diff(changes: &[Change], paint: Paint) -> String {
    let one = |change: &Change| render_unified((&change.shown, &change.before), (&change.shown, &change.after), paint);
    changes.iter().map(one).collect()
}

/// Two texts, each with what it is called, as a unified diff.
pub(crate) fn render_unified((old, before): (&str, &str), (new, after): (&str, &str), paint: Paint) -> String {
    let mut out = paint.bold(&format!("--- {old}\n+++ {new}"));
    out.push('\n');
    let diff = TextDiff::configure().timeout(PATIENCE).diff_lines(before, after);
    for hunk in diff.unified_diff().context_radius(CONTEXT).iter_hunks() {
        out.push_str(&paint.cyan(&hunk.header().to_string()));
        out.push('\n');
        for line in hunk.iter_changes() {
            let text = make_printable(line.value().trim_end_matches(['\n', '\r'])).into_owned();
            out.push_str(&match line.tag() {
                ChangeTag::Equal => format!(" {text}"),
                ChangeTag::Delete => paint.red(&format!("-{text}")),
                ChangeTag::Insert => paint.green(&format!("+{text}")),
            });
            out.push('\n');
            if line.missing_newline() {
                out.push_str("\\ no line break at the end of the file\n");
            }
        }
    }
    out
}

/// The difference of two texts, plain.
pub(crate) fn text_diff(before: &str, after: &str, old: &str, new: &str) -> String {
    let diff = TextDiff::from_lines(old, new);
    let mut out = format!("--- {before}\n+++ {after}\n");
    for hunk in diff.unified_diff().context_radius(CONTEXT).iter_hunks() {
        for line in hunk.iter_changes() {
            let sign = match line.tag() {
                ChangeTag::Equal => ' ',
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
            };
            out.push(sign);
            out.push_str(line.value().trim_end_matches(['\n', '\r']));
            out.push('\n');
        }
    }
    out
}

/// Writes all changes, or none of them.
///
/// # Errors
/// Says which file may not be written or is another one now; every file is as it was then.
pub(crate) fn write_changes(changes: &[Change]) -> miette::Result<()> {
    // All are prepared before the first takes its place, so that a refusal leaves every file as it was.
    let mut ready = Vec::new();
    for change in changes {
        ready.push(prepare_change(change)?);
    }
    for (change, (file, path)) in changes.iter().zip(ready) {
        file.persist(path).map_err(|error| write_error(&change.shown, &error.error))?;
    }
    Ok(())
}

/// Puts the new text beside its file.
fn prepare_change(change: &Change) -> miette::Result<(NamedTempFile, PathBuf)> {
    let failed = |error| write_error(&change.shown, &error);
    if change.before.is_empty() && !change.path.exists() {
        let folder = change.path.parent().unwrap_or(Path::new("/"));
        std::fs::create_dir_all(folder).map_err(failed)?;
        let mut file = NamedTempFile::new_in(folder).map_err(failed)?;
        std::io::Write::write_all(&mut file, change.after.as_bytes()).map_err(failed)?;
        make_readable(&file).map_err(failed)?;
        return Ok((file, change.path.clone()));
    }
    // Behind a link lies the file itself.
    let path = change.path.canonicalize().map_err(failed)?;
    let permissions = path.metadata().map_err(failed)?.permissions();
    if permissions.readonly() {
        return Err(miette!(
            help = format!("`chmod u+w {}` lets it be written", change.shown),
            "`{}` is read-only: nothing was written",
            change.shown
        ));
    }
    if std::fs::read(&path).map_err(failed)? != change.before.as_bytes() {
        return Err(miette!(
            help = "run the command again",
            "`{}` has changed meanwhile: nothing was written",
            change.shown
        ));
    }
    let folder = path.parent().unwrap_or(Path::new("/"));
    // A rename replaces the file at once only where both lie in one file system.
    let mut file = NamedTempFile::new_in(folder).map_err(failed)?;
    std::io::Write::write_all(&mut file, change.after.as_bytes()).map_err(failed)?;
    file.as_file().set_permissions(permissions).map_err(failed)?;
    Ok((file, path))
}

/// A new file is for everybody to read, as others are; a temporary one is not.
fn make_readable(file: &NamedTempFile) -> std::io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        file.as_file().set_permissions(std::fs::Permissions::from_mode(0o644))?;
    }
    Ok(())
}

fn write_error(shown: &str, error: &std::io::Error) -> miette::Report {
    miette!("cannot write `{shown}`: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::Stream;

    fn change(folder: &Path, name: &str, before: &str, after: &str) -> Change {
        std::fs::write(folder.join(name), before).unwrap();
        Change { path: folder.join(name), shown: name.to_owned(), before: before.to_owned(), after: after.to_owned() }
    }

    #[test]
    fn all_are_written_or_none() {
        let folder = tempfile::tempdir().unwrap();
        let changes = ["a", "b"].map(|name| change(folder.path(), name, "old\n", "new\n"));
        std::fs::write(folder.path().join("b"), "other\n").unwrap();
        let error = write_changes(&changes).unwrap_err().to_string();
        assert_eq!(error, "`b` has changed meanwhile: nothing was written");
        let text = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!([text("a"), text("b")], ["old\n", "other\n"]);
        std::fs::write(folder.path().join("b"), "old\n").unwrap();
        let mut permissions = std::fs::metadata(folder.path().join("b")).unwrap().permissions();
        permissions.set_readonly(true);
        std::fs::set_permissions(folder.path().join("b"), permissions.clone()).unwrap();
        assert!(write_changes(&changes).unwrap_err().to_string().contains("read-only"));
        assert_eq!(text("a"), "old\n");
        std::fs::remove_file(folder.path().join("b")).unwrap();
        std::fs::write(folder.path().join("b"), "old\n").unwrap();
        write_changes(&changes).unwrap();
        assert_eq!([text("a"), text("b")], ["new\n", "new\n"]);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_link_stays_a_link_and_modes_stay() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let mut one = change(folder.path(), "real", "old", "new");
        std::fs::set_permissions(&one.path, std::fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink("real", folder.path().join("link")).unwrap();
        one.path = folder.path().join("link");
        write_changes(&[one]).unwrap();
        assert!(folder.path().join("link").is_symlink());
        let real = folder.path().join("real");
        assert_eq!(std::fs::read_to_string(&real).unwrap(), "new");
        assert_eq!(real.metadata().unwrap().permissions().mode() & 0o777, 0o640);
    }

    #[test]
    fn a_diff_shows_what_changes() {
        let folder = tempfile::tempdir().unwrap();
        let lines: String = (0..20).map(|line| format!("{line}\n")).collect();
        let one = change(folder.path(), "a.kdl", &lines, &lines.replace("\n9\n", "\nnine\u{1b}[31m\n"));
        let shown = render_diff(&[one], Stream::Out.paint());
        assert_eq!(shown, "--- a.kdl\n+++ a.kdl\n@@ -7,7 +7,7 @@\n 6\n 7\n 8\n-9\n+nine\n 10\n 11\n 12\n");
    }
}
