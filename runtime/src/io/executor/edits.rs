//! Which files an agent changes while its turn goes on, by what it says of its tools.
//!
//! In: uses of tools and their results, in the format of any program. Out: a [`Touch`] for each edit that went well.
//! Invariant: a path of an agent is compared and, within its working tree alone, read; nothing is written.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use serde_json::Value;

use crate::io::stream::{Edit, Item, ToolResult};
use crate::io::workspace_file::read_file;
use crate::types::team::Touch;

/// The uses whose results are waited for at most; further ones are not looked at.
const OPEN: usize = 100;
/// The lines of an edit that are shown to others at most, and the bytes of one.
const SHOWN_LINES: usize = 40;
const SHOWN_BYTES: usize = 1_200;
/// The bytes of an edit that is compared at most: longer ones are shown by their path alone.
const COMPARED: usize = 64 * 1024;
/// The bytes of a path at most.
const PATH: usize = 300;

/// The names under which programs give the path of an edit, what stood there, and what stands there now.
const PATHS: [&str; 5] = ["file_path", "filePath", "path", "absolute_path", "notebook_path"];
const OLD: [&str; 4] = ["old_string", "oldString", "old_str", "oldText"];
const NEW: [&str; 6] = ["new_string", "newString", "new_str", "newText", "content", "file_text"];

/// The edits of a turn that are under way, by the id of their use.
#[derive(Debug, Default)]
pub(super) struct EditLog {
    /// Whether edits are read from the arguments of tools, and not told by the agent.
    pub reads_arguments: bool,
    open: BTreeMap<String, Edit>,
}

impl EditLog {
    /// Takes what an agent tells; an edit that went well.
    pub(super) fn record_item(&mut self, item: &Item<'_>) -> Option<Edit> {
        match item {
            Item::Tool(used) if self.reads_arguments && self.open.len() < OPEN && !used.id.is_empty() => {
                read_edit(used.arguments).map(|edit| self.open.insert(used.id.to_owned(), edit));
                None
            }
            Item::Came(ToolResult { id, failed, .. }) => self.open.remove(*id).filter(|_| !failed),
            Item::Edited(edit) => Some((*edit).clone()),
            _ => None,
        }
    }
}

/// The edit that the arguments of a tool are; none where they are those of another tool.
pub(crate) fn read_edit(arguments: &str) -> Option<Edit> {
    let fields: Value = serde_json::from_str(arguments).ok()?;
    let find = |names: &[&str]| names.iter().find_map(|name| fields.get(name)?.as_str()).map(str::to_owned);
    Some(Edit { path: find(&PATHS)?, old: find(&OLD), new: find(&NEW)? })
}

/// What an edit touches in a working tree; none where its path leads elsewhere, or others need not know of it.
pub(crate) fn locate_edit(edit: &Edit, tree: &Path) -> Option<Touch> {
    let path = relative_path(&edit.path, tree)?;
    if is_lock_file(&path) {
        return None;
    }
    let old = edit.old.as_deref().unwrap_or_default();
    if old.len() + edit.new.len() > COMPARED {
        return Some(Touch { path: path.into(), lines: None, added: 0, removed: 0, diff: String::new() });
    }
    let lines = edit.old.as_ref().and_then(|old| find_lines(&read_file(tree, &path).ok()?, old, &edit.new));
    let diff = similar::TextDiff::from_lines(old, edit.new.as_str());
    let changes = |tag| diff.iter_all_changes().filter(|change| change.tag() == tag).count() as u32;
    let (added, removed) = (changes(similar::ChangeTag::Insert), changes(similar::ChangeTag::Delete));
    Some(Touch { path: path.into(), lines, added, removed, diff: shorten_diff(&diff.unified_diff().to_string()) })
}

/// A path within the tree, without `.` and `..`.
fn relative_path(written: &str, tree: &Path) -> Option<String> {
    let path = Path::new(written);
    let inside = match path.is_absolute() {
        true => path.strip_prefix(tree).ok().or_else(|| path.strip_prefix(tree.canonicalize().ok()?).ok())?,
        false => path,
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in inside.components() {
        match part {
            Component::Normal(name) => parts.push(name.to_str()?),
            Component::CurDir => {}
            Component::ParentDir => _ = parts.pop()?,
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    let path = parts.join("/");
    (!path.is_empty() && path.len() <= PATH && !path.contains(char::is_control)).then_some(path)
}

/// Files that package managers write: every change of a dependency touches them.
fn is_lock_file(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let known = ["package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "go.sum", "composer.lock", "bun.lockb"];
    known.contains(&name) || name.ends_with(".lock")
}

/// Where the changed lines of a text stand in a file, in lines from 1, where that is one place. Of a deletion it is the
/// line before.
fn find_lines(file: &str, old: &str, new: &str) -> Option<(u32, u32)> {
    let mut found = file.match_indices(new).map(|(start, _)| start);
    let (start, None) = (found.next()?, found.next()) else { return None };
    if new.is_empty() {
        return None;
    }
    let (before, now): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let same = before.iter().zip(&now).take_while(|(old, new)| old == new).count();
    let rest = before.len().min(now.len()) - same;
    let tail = before.iter().rev().zip(now.iter().rev()).take(rest).take_while(|(old, new)| old == new).count();
    let top = u32::try_from(file[..start].matches('\n').count()).ok()?;
    let first = top.saturating_add(u32::try_from(same).ok()?).saturating_add(1);
    let last = top.saturating_add(u32::try_from(now.len() - tail).ok()?);
    Some((first.min(last).max(1), last.max(1)))
}

fn shorten_diff(diff: &str) -> String {
    let lines: Vec<&str> = diff.lines().take(SHOWN_LINES).collect();
    let text = lines.join("\n");
    match text.len() > SHOWN_BYTES || diff.lines().count() > SHOWN_LINES {
        true => format!("{}\n…", &text[..text.floor_char_boundary(SHOWN_BYTES)]),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_read_from_the_arguments_of_any_program() {
        for (arguments, path, old, new) in [
            (r#"{"file_path":"/t/a","old_string":"1","new_string":"2"}"#, "/t/a", Some("1"), "2"),
            (r#"{"filePath":"a","oldString":"1","newString":"2"}"#, "a", Some("1"), "2"),
            (r#"{"path":"a","content":"2"}"#, "a", None, "2"),
        ] {
            let edit = Edit { path: path.to_owned(), old: old.map(str::to_owned), new: new.to_owned() };
            assert_eq!(read_edit(arguments), Some(edit), "{arguments}");
        }
        for other in ["", "ls", "[]", r#"{"command":"ls"}"#, r#"{"path":"a"}"#, r#"{"path":1,"content":"x"}"#] {
            assert_eq!(read_edit(other), None, "{other}");
        }
    }

    #[test]
    fn an_edit_is_found_in_its_file_and_nowhere_else() {
        let tree = tempfile::tempdir().unwrap();
        std::fs::write(tree.path().join("a.rs"), "one\ntwo\nthree\nfour\n").unwrap();
        let touch = |path: &str, old: Option<&str>, new: &str| {
            let edit = Edit { path: path.to_owned(), old: old.map(str::to_owned), new: new.to_owned() };
            locate_edit(&edit, tree.path())
        };
        let found = touch("./x/../a.rs", Some("2\n3\n"), "two\nthree\n").unwrap();
        assert_eq!((&*found.path, found.lines, found.added, found.removed), ("a.rs", Some((2, 3)), 2, 2));
        assert!(found.diff.contains("-2") && found.diff.contains("+two"), "{}", found.diff);
        let context = touch("a.rs", Some("one\n2\nthree\nfour\n"), "one\ntwo\nthree\nfour\n").unwrap();
        assert_eq!(context.lines, Some((2, 2)), "lines that are the same are none of it");
        let whole = tree.path().join("a.rs");
        assert_eq!(touch(whole.to_str().unwrap(), None, "x").unwrap().lines, None);
        assert_eq!(touch("a.rs", Some("x"), "e").unwrap().lines, None, "it stands there more than once");
        for elsewhere in
            ["../a", "/etc/passwd", "", ".", "x/../..", "a\u{1b}[2J", "Cargo.lock", "web/package-lock.json"]
        {
            assert_eq!(touch(elsewhere, None, "x"), None, "{elsewhere}");
        }
        let long = "line\n".repeat(5_000);
        assert!(touch("b", None, &long).unwrap().diff.len() < SHOWN_BYTES + 10);
    }

    #[test]
    fn an_edit_counts_when_it_went_well() {
        use crate::io::stream::ToolUse;
        let mut log = EditLog { reads_arguments: true, ..EditLog::default() };
        let used = |id| Item::Tool(ToolUse { id, name: "Edit", arguments: r#"{"path":"a","content":"x"}"# });
        let came = |id, failed| Item::Came(ToolResult { id, failed, text: "" });
        assert_eq!(log.record_item(&used("1")), None);
        assert_eq!(log.record_item(&used("2")), None);
        assert_eq!(log.record_item(&came("1", true)), None);
        assert_eq!(log.record_item(&came("2", false)).unwrap().path, "a");
        assert_eq!(log.record_item(&came("2", false)), None);
    }
}
