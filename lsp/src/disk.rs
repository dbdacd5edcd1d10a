//! How the server reaches files that no editor has open.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use swarmc_compiler::{Code, Files};

use crate::runs::Runs;
use crate::views::{NoViews, Views};

/// The files of a machine, as `swarmc check` sees them.
pub trait Disk: Send + Sync {
    /// The workspace of a file: its folder, and the file's path in it, with `/`. None where it has neither.
    fn find_workspace(&self, file: &Path) -> Option<(PathBuf, String)>;

    /// The files of a workspace.
    fn workspace_files(&self, root: &Path) -> Arc<dyn Files + Send + Sync>;

    /// The specs beneath a folder, by path; without those that ignore files leave out.
    fn list_specs(&self, folder: &Path) -> Vec<PathBuf>;

    /// The runs of a workspace.
    fn workspace_runs(&self, root: &Path) -> Arc<dyn Runs>;

    /// A file with the page of a rule, for editors to open; none where that is not said.
    fn rule_page(&self, _: Code) -> Option<PathBuf> {
        None
    }

    /// What a plan looks like; nothing where that is not said.
    fn views(&self) -> &dyn Views {
        &NoViews
    }
}
