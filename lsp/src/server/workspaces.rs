//! Keeps every workspace of the editor's files, and finds the workspace of a file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gen_lsp_types::Uri;

use super::convert;
use super::pages::Pages;
use crate::disk::Disk;
use crate::ide::{Document, Place, Snapshot, Workspace};
use crate::runs::Runs;
use crate::views::Views;

/// The workspaces as they change.
pub(super) struct Workspaces {
    disk: Arc<dyn Disk>,
    pages: Arc<Pages>,
    workspaces: BTreeMap<PathBuf, Workspace>,
    names: Arc<Names>,
}

/// A snapshot of all workspaces.
#[derive(Clone)]
pub(super) struct WorkspaceSnapshot {
    disk: Arc<dyn Disk>,
    /// The pages of rules.
    pub(super) pages: Arc<Pages>,
    pub(super) workspaces: Arc<BTreeMap<PathBuf, Snapshot>>,
    names: Arc<Names>,
}

/// Where open documents belong, fixed when they are opened, and how the editor calls them: it may know a file by a link,
/// and would not take another name for it.
#[derive(Clone, Default)]
struct Names {
    places: BTreeMap<String, (PathBuf, String)>,
    uris: BTreeMap<(PathBuf, String), Uri>,
}

/// A file in its workspace.
pub(super) struct File<'m> {
    /// The folder of the workspace.
    pub(super) root: PathBuf,
    /// The workspace.
    pub(super) snapshot: &'m Snapshot,
    /// The file's path in it.
    pub(super) path: String,
    names: &'m Names,
}

impl Workspaces {
    /// `pages` says whether the editor opens what a diagnostic links to.
    pub(super) fn new(disk: Arc<dyn Disk>, pages: bool) -> Workspaces {
        Workspaces {
            pages: Arc::new(Pages::new(&disk, pages)),
            disk,
            workspaces: BTreeMap::new(),
            names: Arc::default(),
        }
    }

    /// The workspace of a file, and the path there.
    pub(super) fn find_workspace(&mut self, uri: &Uri) -> Option<(&mut Workspace, String)> {
        match self.names.places.get(&uri.0) {
            Some((root, path)) => Some((self.workspaces.get_mut(root)?, path.clone())),
            None => self.find_by_path(&convert::to_path(uri)?),
        }
    }

    /// The same by path.
    pub(super) fn find_by_path(&mut self, file: &Path) -> Option<(&mut Workspace, String)> {
        let (root, path) = self.disk.find_workspace(file)?;
        let disk = &self.disk;
        let new = || Workspace::new(disk.workspace_files(&root));
        Some((self.workspaces.entry(root.clone()).or_insert_with(new), path))
    }

    /// Reads the files on disk again. Returns whether any of them has changed.
    pub(super) fn refresh(&mut self) -> bool {
        let mut has_changed = false;
        for workspace in self.workspaces.values_mut() {
            has_changed |= workspace.refresh();
        }
        has_changed
    }

    /// The editor has a text open. Returns whether that changes a text, the list of specs, or the address of a file.
    pub(super) fn open(&mut self, uri: &Uri, text: &str) -> bool {
        let Some((root, path)) = convert::to_path(uri).and_then(|file| self.disk.find_workspace(&file)) else {
            return false;
        };
        let disk = &self.disk;
        let new = || Workspace::new(disk.workspace_files(&root));
        let workspace = self.workspaces.entry(root.clone()).or_insert_with(new);
        let changed = workspace.open(&path, text);
        let is_renamed = *uri != convert::to_uri(&root.join(&path));
        let names = Arc::make_mut(&mut self.names);
        names.places.insert(uri.0.clone(), (root.clone(), path.clone()));
        names.uris.insert((root, path), uri.clone());
        changed || is_renamed
    }

    /// The editor has it open no more.
    pub(super) fn close(&mut self, uri: &Uri) {
        let Some(place) = Arc::make_mut(&mut self.names).places.remove(&uri.0) else { return };
        Arc::make_mut(&mut self.names).uris.remove(&place);
        if let Some(workspace) = self.workspaces.get_mut(&place.0) {
            workspace.close(&place.1);
        }
    }

    pub(super) fn take_snapshot(&self) -> WorkspaceSnapshot {
        let snapshots = self.workspaces.iter().map(|(root, workspace)| (root.clone(), workspace.snapshot()));
        let workspaces = Arc::new(snapshots.collect());
        WorkspaceSnapshot {
            disk: Arc::clone(&self.disk),
            pages: Arc::clone(&self.pages),
            workspaces,
            names: Arc::clone(&self.names),
        }
    }
}

impl WorkspaceSnapshot {
    /// The file that a client names; none where it is no file of ours.
    pub(super) fn file(&self, uri: &Uri) -> Option<File<'_>> {
        let (root, path) = self.find_path(uri)?;
        self.find_in_root(&root, &path)
    }

    /// The folder of the workspace that an address lies in, and the path there.
    pub(super) fn find_path(&self, uri: &Uri) -> Option<(PathBuf, String)> {
        let open = self.names.places.get(&uri.0).cloned();
        open.or_else(|| self.disk.find_workspace(&convert::to_path(uri)?))
    }

    /// The folders whose files matter, by workspace.
    pub(super) fn list_folders(&self) -> BTreeMap<PathBuf, BTreeSet<String>> {
        self.workspaces.iter().map(|(root, snapshot)| (root.clone(), snapshot.list_folders())).collect()
    }

    /// A file of a workspace.
    pub(super) fn find_in_root(&self, root: &Path, path: &str) -> Option<File<'_>> {
        let snapshot = self.workspaces.get(root)?;
        Some(File { root: root.to_owned(), snapshot, path: path.to_owned(), names: &self.names })
    }

    /// Whether a question to this snapshot got no answer, as the texts have changed since.
    pub(super) fn is_cut(&self) -> bool {
        self.workspaces.values().any(Snapshot::is_cut)
    }

    /// Every workspace, as the file that is its folder.
    pub(super) fn list_roots(&self) -> impl Iterator<Item = File<'_>> {
        self.workspaces.keys().filter_map(|root| self.find_in_root(root, ""))
    }

    /// What plans look like.
    pub(super) fn views(&self) -> &dyn Views {
        self.disk.views()
    }

    /// The runs of the workspace of a file.
    pub(super) fn runs(&self, file: &File<'_>) -> Arc<dyn Runs> {
        self.disk.workspace_runs(&file.root)
    }
}

impl File<'_> {
    /// Its text.
    pub(super) fn document(&self) -> Option<Document> {
        self.snapshot.document(&self.path)
    }

    /// A file of the same workspace as a client names it.
    pub(super) fn uri(&self, path: &str) -> Uri {
        let open = self.names.uris.get(&(self.root.clone(), path.to_owned()));
        open.cloned().unwrap_or_else(|| convert::to_uri(&self.root.join(path)))
    }

    /// A place of the same workspace in the client's terms.
    pub(super) fn location(&self, place: &Place, encoding: convert::Encoding) -> Option<gen_lsp_types::Location> {
        let document = self.snapshot.document(&place.path)?;
        let range = convert::to_range(document.source(), &place.range, encoding);
        Some(gen_lsp_types::Location { uri: self.uri(&place.path), range })
    }
}
