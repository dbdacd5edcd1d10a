//! Every workspace that an editor has files of, and which of them a file belongs to.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gen_lsp_types::Uri;
use swarmc_compiler::Settings;

use super::convert;
use crate::disk::Disk;
use crate::ide::{Document, Place, Snapshot, Workspace};
use crate::runs::Runs;

/// The workspaces as they change.
pub(super) struct World {
    disk: Arc<dyn Disk>,
    workspaces: BTreeMap<PathBuf, Workspace>,
}

/// The workspaces at one moment.
#[derive(Clone)]
pub(super) struct Moment {
    disk: Arc<dyn Disk>,
    pub(super) workspaces: Arc<BTreeMap<PathBuf, Snapshot>>,
}

/// A file in its workspace.
pub(super) struct File<'m> {
    /// The folder of the workspace.
    pub(super) root: PathBuf,
    /// The workspace.
    pub(super) snapshot: &'m Snapshot,
    /// The file's path in it.
    pub(super) path: String,
}

impl World {
    pub(super) fn new(disk: Arc<dyn Disk>) -> World {
        World { disk, workspaces: BTreeMap::new() }
    }

    /// The workspace of a file, and the path there.
    pub(super) fn workspace(&mut self, uri: &Uri) -> Option<(&mut Workspace, String)> {
        self.at(&convert::path(uri)?)
    }

    /// The same by path.
    pub(super) fn at(&mut self, file: &Path) -> Option<(&mut Workspace, String)> {
        let (root, path) = self.disk.workspace(file)?;
        let disk = &self.disk;
        let new = || Workspace::new(disk.files(&root), Settings::default());
        Some((self.workspaces.entry(root.clone()).or_insert_with(new), path))
    }

    pub(super) fn moment(&self) -> Moment {
        let snapshots = self.workspaces.iter().map(|(root, workspace)| (root.clone(), workspace.snapshot()));
        Moment { disk: Arc::clone(&self.disk), workspaces: Arc::new(snapshots.collect()) }
    }
}

impl Moment {
    /// The file that a client names; none where it is no file of ours.
    pub(super) fn file(&self, uri: &Uri) -> Option<File<'_>> {
        let (root, path) = self.disk.workspace(&convert::path(uri)?)?;
        let snapshot = self.workspaces.get(&root)?;
        Some(File { root, snapshot, path })
    }
}

impl Moment {
    /// Every workspace, as the file that is its folder.
    pub(super) fn roots(&self) -> impl Iterator<Item = File<'_>> {
        let file = |(root, snapshot)| File { root: PathBuf::clone(root), snapshot, path: String::new() };
        self.workspaces.iter().map(file)
    }

    /// The runs of the workspace of a file.
    pub(super) fn runs(&self, file: &File<'_>) -> Arc<dyn Runs> {
        self.disk.runs(&file.root)
    }
}

impl File<'_> {
    /// Its text.
    pub(super) fn document(&self) -> Option<Document> {
        self.snapshot.document(&self.path)
    }

    /// A file of the same workspace as a client names it.
    pub(super) fn uri(&self, path: &str) -> Uri {
        convert::uri(&self.root.join(path))
    }

    /// A place of the same workspace in the client's terms.
    pub(super) fn location(&self, place: &Place, encoding: convert::Encoding) -> Option<gen_lsp_types::Location> {
        let document = self.snapshot.document(&place.path)?;
        let range = convert::range(document.source(), &place.range, encoding);
        Some(gen_lsp_types::Location { uri: self.uri(&place.path), range })
    }
}
