//! `swarmc lsp`: the language server, over the files that `swarmc check` sees.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use miette::miette;
use swarmc_compiler::Files;

use crate::args::Lsp;
use crate::exit::Exit;
use crate::files::Workspace;
use crate::find;
use crate::last::{Known, LastRuns};

pub(crate) fn exec(_: &Lsp) -> miette::Result<Exit> {
    match swarmc_lsp::serve(Arc::new(Disk { runs: Arc::default() })) {
        Ok(swarmc_lsp::Exit::Clean) => Ok(Exit::Done),
        // The protocol asks for 1.
        Ok(swarmc_lsp::Exit::Abrupt) => Ok(Exit::Spec),
        Err(error) => Err(miette!(help = "the language server is started by an editor", "not the protocol: {error}")),
    }
}

/// The files of this machine.
struct Disk {
    runs: Arc<Known>,
}

impl swarmc_lsp::Disk for Disk {
    fn workspace(&self, file: &Path) -> Option<(PathBuf, String)> {
        let (workspace, path) = Workspace::of(file).ok()?;
        Some((workspace.root, path))
    }

    fn files(&self, root: &Path) -> Arc<dyn Files + Send + Sync> {
        Arc::new(Workspace { root: root.to_owned() })
    }

    fn specs(&self, folder: &Path) -> Vec<PathBuf> {
        find::beneath(folder)
    }

    fn runs(&self, root: &Path) -> Arc<dyn swarmc_lsp::Runs> {
        Arc::new(LastRuns { root: root.to_owned(), known: Arc::clone(&self.runs) })
    }
}
