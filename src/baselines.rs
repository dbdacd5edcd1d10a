//! Known problems: those of baselines are taken out of what a check shows, and baselines are written anew.
//!
//! Files stand in a baseline as it would name them itself, so that it holds wherever the check is started. An entry is
//! gone when its file was checked, or is no more, and the problem was not found.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use miette::miette;
use swarmc_compiler::{Baseline, Compilation, Config, Files, Sources};

use crate::args::Check;
use crate::change;
use crate::config::{is_right, relative_name};
use crate::exit::Exit;
use crate::file_deps::FileDependencies;
use crate::files::Workspace;
use crate::render::Problems;
use crate::terminal;

/// The baselines of a check.
#[derive(Default)]
pub(crate) struct Known {
    files: BTreeMap<PathBuf, File>,
    pub(crate) hidden: usize,
}

/// A baseline: what it knew that was not found yet, and what was found.
struct File {
    shown: String,
    text: Option<String>,
    left: Baseline,
    found: Baseline,
    checked: BTreeSet<String>,
}

impl Known {
    /// Takes out of the problems of a spec what its baseline knows. False when that is wrong, which has then been told.
    pub(crate) fn hide_known(
        &mut self,
        args: &Check,
        asked: &FileDependencies,
        config: &Config,
        workspace: &Workspace,
        compilation: &Compilation,
        problems: &mut Problems,
    ) -> miette::Result<bool> {
        let Some(path) = baseline_path(args, asked, config, workspace)? else { return Ok(true) };
        if !self.files.contains_key(&path) {
            let Some(file) = read_baseline(&path, asked, args.update_baseline)? else { return Ok(false) };
            self.files.insert(path.clone(), file);
        }
        let Some(file) = self.files.get_mut(&path) else { return Ok(true) };
        let folder = path.parent().unwrap_or(Path::new("/"));
        let named = |name: &str| relative_name(folder, &workspace.root.join(name));
        let sources = &compilation.sources;
        file.checked.extend(sources.files().map(|file| named(sources.name(file))));
        self.hidden += problems.hide_matching(|at, code, message| {
            let name = at.map_or(String::new(), |at| named(sources.name(at)));
            file.found.add(&name, code, message);
            args.update_baseline || file.left.take(&name, code, message)
        });
        Ok(true)
    }

    /// How many entries of the baselines were not found any more.
    pub(crate) fn count_gone(&self) -> usize {
        self.files.iter().map(|(path, file)| file.count_gone(path)).sum()
    }

    /// Writes the baselines anew, and says so.
    pub(crate) fn update_files(self) -> miette::Result<Exit> {
        if self.files.is_empty() {
            return Err(miette!(
                help = "`--baseline FILE`, or `baseline \"FILE\"` in `swarmc.kdl`",
                "there is no baseline to update"
            ));
        }
        for (path, file) in self.files {
            let File { shown, text, mut left, mut found, checked } = file;
            // What was not looked at stays as it was.
            left.retain(|name| !checked.contains(name) && is_there(&path, name));
            found.extend(left);
            let after = found.render_text();
            let entries = if found.len() == 1 { "1 entry".to_owned() } else { format!("{} entries", found.len()) };
            match &text {
                Some(before) if *before == after => {
                    terminal::eprint(format!("{shown} is current: {entries}\n"));
                    continue;
                }
                Some(before) => {
                    let change = change::Change { path, shown: shown.clone(), before: before.clone(), after };
                    change::write_changes(&[change])?;
                }
                None => {
                    std::fs::write(&path, after).map_err(|error| miette!("cannot write `{shown}`: {error}"))?;
                }
            }
            terminal::eprint(format!("wrote {shown}: {entries}\n"));
        }
        Ok(Exit::Done)
    }
}

impl File {
    fn count_gone(&self, path: &Path) -> usize {
        let mut gone = self.left.clone();
        gone.retain(|name| self.checked.contains(name) || !is_there(path, name));
        gone.len()
    }
}

fn is_there(baseline: &Path, name: &str) -> bool {
    !name.is_empty() && baseline.parent().is_some_and(|folder| folder.join(name).exists())
}

/// Where the baseline of a workspace lies; the flag wins.
pub(crate) fn baseline_path(
    args: &Check,
    asked: &FileDependencies,
    config: &Config,
    workspace: &Workspace,
) -> miette::Result<Option<PathBuf>> {
    let path = match (&args.baseline, &config.baseline) {
        (Some(path), _) => path.clone(),
        (None, Some(path)) => workspace.root.join(path),
        (None, None) => return Ok(None),
    };
    // As the root of a workspace is: absolute, with all links of its folder resolved.
    let absolute = std::path::absolute(&path).map_err(|error| miette!("cannot find `{}`: {error}", path.display()))?;
    let folder = absolute.parent().unwrap_or(Path::new("/"));
    asked.note_folder(folder);
    let folder = folder.canonicalize().map_err(|error| miette!("cannot find `{}`: {error}", folder.display()))?;
    Ok(Some(folder.join(absolute.file_name().unwrap_or_default())))
}

/// A baseline; none when it is wrong, which has then been told.
fn read_baseline(path: &Path, asked: &FileDependencies, update: bool) -> miette::Result<Option<File>> {
    let (workspace, name) = Workspace::discover(path)?;
    let text = asked.track_files(&workspace).read(&name);
    let shown = workspace.display_path(&name);
    let empty = |text| File {
        shown: shown.clone(),
        text,
        left: Baseline::default(),
        found: Baseline::default(),
        checked: BTreeSet::new(),
    };
    if !path.exists() {
        let help = "`swarmc check --update-baseline` writes it, with the current problems";
        return match update {
            true => Ok(Some(empty(None))),
            false => Err(miette!(help = help, "there is no baseline `{shown}`")),
        };
    }
    let text = text.map_err(|error| miette!("cannot read `{shown}`: {error:?}"))?;
    let mut sources = Sources::new();
    sources.add(name, text.clone());
    let (left, diagnostics) = Baseline::read(&sources);
    // One that is wrong is mended by hand: what it knew would be lost.
    Ok(is_right(sources, diagnostics, &workspace).then(|| File { left, ..empty(Some(text.to_string())) }))
}
