//! Small workspaces for tests: files as text, with the cursor at `$0`.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Snapshot, Workspace};

/// A workspace of `//- PATH` lines, each with the text of its file after it; the path and offset are those of the `$0`,
/// or the first file and its beginning where there is none. The file of the cursor is open, the others lie on disk.
pub(super) fn parse_fixture(text: &str) -> (Snapshot, String, usize) {
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    let (mut first, mut cursor) = (None, None);
    for part in text.trim_start().split("//- ").skip(1) {
        let (path, body) = part.split_once('\n').expect("a path has a line of its own");
        let body = match body.find("$0") {
            Some(at) => {
                cursor = Some((path.to_owned(), at));
                body.replacen("$0", "", 1)
            }
            None => body.to_owned(),
        };
        first.get_or_insert_with(|| path.to_owned());
        files.insert(path.to_owned(), body);
    }
    let (path, offset) = cursor.unwrap_or_else(|| (first.expect("a fixture has a file"), 0));
    let mut workspace = Workspace::new(Arc::new(files.clone()));
    for spec in files.keys().filter(|path| path.ends_with(".kdl")) {
        workspace.invalidate_path(spec);
    }
    workspace.open(&path, &files[&path]);
    (workspace.snapshot(), path, offset)
}

/// The texts of the files after some edits, those that changed only, each after its `//- PATH`.
pub(super) fn apply_edits(snapshot: &Snapshot, edits: &BTreeMap<String, Vec<super::Edit>>) -> String {
    let mut shown = String::new();
    for (path, edits) in edits {
        let mut text = snapshot.document(path).expect("the file is there").text().to_owned();
        for edit in edits.iter().rev() {
            text.replace_range(edit.range.clone(), &edit.text);
        }
        shown.push_str(&format!("//- {path}\n{}\n", text.trim_end()));
    }
    shown
}
