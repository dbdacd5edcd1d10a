//! The files that the editor watches for us: specs anywhere, and what lies in the folders that they name files in.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::convert;

/// The folders of each workspace whose files matter.
pub(super) type Folders = BTreeMap<PathBuf, BTreeSet<String>>;

/// More folders than this are watched by the outermost ones among them.
const MOST: usize = 64;

const METHOD: &str = "workspace/didChangeWatchedFiles";

/// What the editor watches.
#[derive(Default)]
pub(super) struct Watched {
    folders: Folders,
    /// How often it was told.
    told: u32,
}

impl Watched {
    /// Whether the editor was asked to watch anything.
    pub(super) fn is_registered(&self) -> bool {
        self.told > 0
    }

    /// The requests that have the editor watch these folders, and no more those before; none where it does already.
    pub(super) fn watch(&mut self, folders: Folders, relative: bool) -> Vec<(&'static str, Value)> {
        if self.told > 0 && self.folders == folders {
            return Vec::new();
        }
        let mut watchers = vec![json!({ "globPattern": "**/*.kdl" })];
        for (root, folders) in &folders {
            watchers.extend(list_patterns(folders).iter().map(|pattern| make_watcher(root, pattern, relative)));
        }
        let options = json!({ "watchers": watchers });
        let registration = json!({ "id": make_id(self.told + 1), "method": METHOD, "registerOptions": options });
        // The new ones first, so that no change falls between.
        let mut requests = vec![("client/registerCapability", json!({ "registrations": [registration] }))];
        if self.told > 0 {
            // The protocol spells it so.
            let old = json!({ "unregisterations": [{ "id": make_id(self.told), "method": METHOD }] });
            requests.push(("client/unregisterCapability", old));
        }
        self.told += 1;
        self.folders = folders;
        requests
    }
}

fn make_id(told: u32) -> String {
    format!("files-{told}")
}

/// Patterns for the files of some folders of a workspace.
fn list_patterns(folders: &BTreeSet<String>) -> BTreeSet<String> {
    let pattern = |folder: &String| if folder.is_empty() { "*".to_owned() } else { format!("{}/*", escape(folder)) };
    let whole = |folder: &String| match folder.split('/').next() {
        None | Some("") => "*".to_owned(),
        Some(first) => format!("{}/**/*", escape(first)),
    };
    if folders.len() > MOST { folders.iter().map(whole).collect() } else { folders.iter().map(pattern).collect() }
}

/// A path as a pattern: a character that means something there is any character.
fn escape(path: &str) -> String {
    path.chars().map(|sign| if "*?[]{}!,\\".contains(sign) { '?' } else { sign }).collect()
}

fn make_watcher(root: &Path, pattern: &str, relative: bool) -> Value {
    match relative {
        true => json!({ "globPattern": { "baseUri": convert::to_uri(root), "pattern": pattern } }),
        // What counts from no folder must fit anywhere.
        false => json!({ "globPattern": format!("**/{pattern}") }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folders(names: &[&str]) -> Folders {
        Folders::from([(PathBuf::from("/w"), names.iter().map(|name| (*name).to_owned()).collect())])
    }

    #[test]
    fn the_editor_is_told_what_matters_and_only_when_that_changes() {
        let mut watched = Watched::default();
        let patterns = |requests: &[(&str, Value)]| {
            let watchers = &requests[0].1["registrations"][0]["registerOptions"]["watchers"];
            let list = watchers.as_array().expect("it is a list").iter();
            list.map(|watcher| watcher["globPattern"].to_string()).collect::<Vec<_>>()
        };
        let first = watched.watch(Folders::new(), false);
        assert_eq!((patterns(&first), first.len()), (vec!["\"**/*.kdl\"".to_owned()], 1));
        assert_eq!(watched.watch(Folders::new(), false), []);
        let more = watched.watch(folders(&["", "a[b]/c"]), false);
        assert_eq!(patterns(&more)[1..], ["\"**/*\"", "\"**/a?b?/c/*\""]);
        assert_eq!(more[1].1["unregisterations"][0]["id"], "files-1");
        let relative = watched.watch(folders(&["prompts"]), true);
        assert_eq!(patterns(&relative)[1], "{\"baseUri\":\"file:///w\",\"pattern\":\"prompts/*\"}");
    }

    #[test]
    fn many_folders_are_watched_by_those_around_them() {
        let many: BTreeSet<String> = (0..100).map(|number| format!("src/{number}")).chain([String::new()]).collect();
        assert_eq!(list_patterns(&many).into_iter().collect::<Vec<_>>(), ["*", "src/**/*"]);
    }
}
