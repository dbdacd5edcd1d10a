//! The settings of `swarmc check` in a workspace: its `swarmc.kdl`, read once, with the flags on top.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use miette::miette;
use swarmc_compiler::{CONFIG_NAME, Compilation, Config, Diagnostic, Files, Levels, Settings, Severity, Sources};

use crate::args::{self, Check};
use crate::check::find_code;
use crate::file_deps::FileDependencies;
use crate::files::Workspace;
use crate::render::Problems;
use crate::terminal::{self, Stream};

/// The settings of every workspace that a command comes to.
pub(crate) struct Configs<'a> {
    args: &'a Check,
    asked: &'a FileDependencies,
    read: BTreeMap<PathBuf, (Settings, Config)>,
}

impl<'a> Configs<'a> {
    pub(crate) fn new(args: &'a Check, asked: &'a FileDependencies) -> Configs<'a> {
        Configs { args, asked, read: BTreeMap::new() }
    }

    /// The settings of a workspace. None when its file is wrong, which has then been told.
    pub(crate) fn load_settings(&mut self, workspace: &Workspace) -> miette::Result<Option<(Settings, Config)>> {
        if let Some(known) = self.read.get(&workspace.root) {
            return Ok(Some(known.clone()));
        }
        let Some(config) = read_config(workspace, self.asked)? else { return Ok(None) };
        let mut levels = config.levels.clone();
        apply_flags(self.args, &mut levels)?;
        let profile = match self.args.profile {
            Some(args::Profile::Default) => swarmc_compiler::Profile::Default,
            Some(args::Profile::Strict) => swarmc_compiler::Profile::Strict,
            Some(args::Profile::Audit) => swarmc_compiler::Profile::Audit,
            None => config.profile.unwrap_or_default(),
        };
        let found = (Settings { profile, levels, ..Settings::default() }, config);
        self.read.insert(workspace.root.clone(), found.clone());
        Ok(Some(found))
    }
}

/// The `swarmc.kdl` of a workspace; nothing where there is none.
fn read_config(workspace: &Workspace, asked: &FileDependencies) -> miette::Result<Option<Config>> {
    // The read comes before the test: `--watch` then knows of the file even where there is none yet.
    let text = asked.track_files(workspace).read(CONFIG_NAME);
    if !workspace.root.join(CONFIG_NAME).exists() {
        return Ok(Some(Config::default()));
    }
    let text = text.map_err(|error| miette!("cannot read `{}`: {error:?}", workspace.display_path(CONFIG_NAME)))?;
    let mut sources = Sources::new();
    sources.add(CONFIG_NAME, text);
    let (config, diagnostics) = swarmc_compiler::parse_config(&sources);
    Ok(is_right(sources, diagnostics, workspace).then_some(config))
}

/// Whether nothing is wrong in a file that is no spec; what is has then been told.
pub(crate) fn is_right(sources: Sources, diagnostics: Vec<Diagnostic>, workspace: &Workspace) -> bool {
    let compilation = Compilation { sources, diagnostics, left_out: BTreeMap::new(), plan: None, tests: Vec::new() };
    let problems = Problems::new(&compilation, workspace, &Levels::default());
    terminal::eprint(problems.render_text(Stream::Err));
    compilation.diagnostics.is_empty()
}

/// Sets what the flags say on top.
///
/// # Errors
/// Says which is no problem.
pub(crate) fn apply_flags(args: &Check, levels: &mut Levels) -> miette::Result<()> {
    let flags = [(&args.allow, None), (&args.warn, Some(Severity::Warning)), (&args.deny, Some(Severity::Error))];
    for (names, severity) in flags {
        for name in names {
            match name.as_str() {
                "warnings" => levels.set(None, severity),
                name => levels.set(Some(find_code(name)?), severity),
            }
        }
    }
    Ok(())
}

/// A path as a file in `folder` would name it, both absolute.
pub(crate) fn relative_name(folder: &Path, path: &Path) -> String {
    let shared = path.components().zip(folder.components()).take_while(|(a, b)| a == b).count();
    let ups = std::iter::repeat_n("..".to_owned(), folder.components().count() - shared);
    let rest = path.components().skip(shared).map(|part| part.as_os_str().to_string_lossy().into_owned());
    ups.chain(rest).collect::<Vec<_>>().join("/")
}
