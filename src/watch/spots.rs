//! Where changes show: the folders to watch, and which of their events are about what a check asked.
//!
//! In: what was asked. Out: folders that exist, by their real paths. Of what is not there the nearest folder above it is
//! watched; so are the folders above what is, up to the one that holds the workspace, as they may be moved or deleted.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use notify::event::{CreateKind, Event, EventKind, ModifyKind, RemoveKind};

use crate::file_deps::{FileDependencies, Subject};
use crate::find;

/// What decides which specs a folder holds, and which folder is a workspace.
const DECIDING: [&str; 3] = [".git", ".gitignore", ".ignore"];

/// How many links that lead nowhere yet are followed.
const LINKS: usize = 8;

#[derive(Debug, Default)]
pub(super) struct Spots {
    /// To be watched, each by itself.
    pub(super) folders: BTreeSet<PathBuf>,
    /// In lower case: names that differ in case only are told.
    paths: HashSet<String>,
    listed: HashSet<PathBuf>,
    searched: HashSet<PathBuf>,
}

impl Spots {
    pub(super) fn from_dependencies(asked: &FileDependencies) -> Spots {
        let mut spots = Spots::default();
        let mut known = HashSet::new();
        for subject in asked.list_subjects() {
            match subject {
                Subject::Path { root, path } => {
                    let top = root.parent().unwrap_or(&root);
                    spots.add_path(&path, top, &mut known);
                    let mut next = Some(resolve_links(&path));
                    // A link may lead to what is not there yet, through further links: when it appears, the answer
                    // changes.
                    for _ in 0..LINKS {
                        let Some(real) = next else { break };
                        spots.add_path(&real, top, &mut known);
                        next = resolve_dangling(&real);
                    }
                }
                Subject::Names(folder) => spots.listed.extend(folder.canonicalize()),
                Subject::Specs(folder) => spots.searched.extend(find::list_folders(&resolve_links(&folder))),
            }
        }
        let inside = spots.listed.iter().chain(&spots.searched);
        spots.folders.extend(inside.filter(|folder| folder.is_dir()).cloned());
        spots
    }

    /// Adds a path and what lies above it.
    fn add_path(&mut self, path: &Path, top: &Path, known: &mut HashSet<PathBuf>) {
        // Nothing outside the workspace is read, so no answer comes from there.
        if !path.starts_with(top) {
            return;
        }
        for here in path.ancestors() {
            self.paths.insert(lowercase_path(here));
            let Some(folder) = here.parent() else { break };
            if known.insert(folder.to_owned()) {
                self.folders.extend(folder.canonicalize().ok().filter(|folder| folder.is_dir()));
            }
            // Where not even the top is there, it goes on to what is.
            if top.starts_with(folder) && folder.is_dir() {
                break;
            }
        }
    }

    /// Whether an answer may be another one after this.
    pub(super) fn is_affected_by(&self, event: &Event) -> bool {
        // A check reads these files itself: if accesses counted, each check would start the next one.
        if event.need_rescan() || event.kind.is_access() {
            return event.need_rescan();
        }
        let data = matches!(event.kind, EventKind::Modify(ModifyKind::Data(_) | ModifyKind::Metadata(_)));
        let of_file =
            data || matches!(event.kind, EventKind::Create(CreateKind::File) | EventKind::Remove(RemoveKind::File));
        event.paths.iter().any(|path| {
            let within = |folders: &HashSet<PathBuf>| path.parent().is_some_and(|above| folders.contains(above));
            let is_kdl = path.extension().is_some_and(|extension| extension == "kdl");
            self.paths.contains(&lowercase_path(path))
                || DECIDING.iter().any(|name| path.ends_with(name))
                // New content of a file changes no list of names.
                || !data && within(&self.listed)
                || (is_kdl || !of_file) && within(&self.searched)
        })
    }
}

fn lowercase_path(path: &Path) -> String {
    path.to_string_lossy().to_lowercase()
}

/// Where a path with the links resolved leads to by one that leads nowhere yet.
fn resolve_dangling(real: &Path) -> Option<PathBuf> {
    let (link, target) = real.ancestors().find_map(|above| Some((above, above.read_link().ok()?)))?;
    Some(resolve_links(&link.parent()?.join(target).join(real.strip_prefix(link).ok()?)))
}

/// A path with the links resolved in as much of it as is there.
fn resolve_links(path: &Path) -> PathBuf {
    let mut parts = path.ancestors();
    let found = parts.find_map(|above| Some((above, above.canonicalize().ok()?)));
    match found.and_then(|(above, real)| Some(real.join(path.strip_prefix(above).ok()?))) {
        // Joining nothing would leave a slash behind.
        Some(real) => real.components().collect(),
        None => path.to_owned(),
    }
}
