//! `swarmc lsp`: the language server, over the files that `swarmc check` sees.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use miette::miette;
use swarmc_compiler::{Code, Compilation, Files};
use swarmc_lsp::LastRun;
use swarmc_plan::Plan;

use crate::args::Lsp;
use crate::exit::Exit;
use crate::files::Workspace;
use crate::find;
use crate::graph;
use crate::last_run::{Known, LastRuns};
use crate::pages;
use crate::plan;
use crate::prompt_preview;
use crate::terminal::Paint;

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
    fn find_workspace(&self, file: &Path) -> Option<(PathBuf, String)> {
        let (workspace, path) = Workspace::discover(file).ok()?;
        Some((workspace.root, path))
    }

    fn workspace_files(&self, root: &Path) -> Arc<dyn Files + Send + Sync> {
        Arc::new(Workspace { root: root.to_owned() })
    }

    fn list_specs(&self, folder: &Path) -> Vec<PathBuf> {
        find::list_specs(folder)
    }

    fn workspace_runs(&self, root: &Path) -> Arc<dyn swarmc_lsp::Runs> {
        Arc::new(LastRuns { root: root.to_owned(), known: Arc::clone(&self.runs) })
    }

    fn rule_page(&self, code: Code) -> Option<PathBuf> {
        pages::page_file(code)
    }

    fn views(&self) -> &dyn swarmc_lsp::Views {
        self
    }
}

impl swarmc_lsp::Views for Disk {
    fn render_plan(&self, compilation: &Compilation, name: Option<&str>) -> Result<String, String> {
        Ok(plan::render_overview(require_plan(compilation)?, name, Paint::NONE))
    }

    fn render_graph(&self, compilation: &Compilation, name: Option<&str>) -> Result<String, String> {
        graph::render_picture(require_plan(compilation)?, name).map_err(|error| error.to_string())
    }

    fn render_prompt(
        &self,
        compilation: &Compilation,
        pipeline: Option<&str>,
        task: &str,
        last: &dyn Fn(&str) -> Option<Arc<LastRun>>,
    ) -> Result<String, String> {
        prompt_preview::preview_prompt(require_plan(compilation)?, pipeline, task, last)
    }
}

fn require_plan(compilation: &Compilation) -> Result<&Plan, String> {
    compilation.plan.as_ref().ok_or_else(|| "the spec has errors: fix them to get a plan".to_owned())
}
