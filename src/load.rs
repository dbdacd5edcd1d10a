//! From a path on the command line to a plan: a spec is compiled, a plan is read.

use std::path::{Path, PathBuf};

use miette::{WrapErr, miette};
use swarmc_compiler::Settings;
use swarmc_plan::{Pipeline, Plan};
use swarmc_view::did_you_mean;

use crate::files::Workspace;
use crate::find::refuse_yaml;
use crate::render::{Counts, Problems, count_line};
use crate::terminal::{self, Stream};

/// A plan with the folder that its tasks run in.
pub(crate) struct Loaded {
    pub(crate) plan: Plan,
    pub(crate) workspace: PathBuf,
}

/// Loads a spec or a plan. None when the spec has errors, which have then been shown, as warnings are.
pub(crate) fn load_workflow(path: &Path) -> miette::Result<Option<Loaded>> {
    load_with(path, &Settings::default())
}

/// Loads a spec or a plan; a spec is compiled with these settings.
pub(crate) fn load_with(path: &Path, settings: &Settings) -> miette::Result<Option<Loaded>> {
    refuse_yaml(path)?;
    let (workspace, name) = Workspace::discover(path)?;
    if let Some(text) = plan_text(path)? {
        if !settings.providers.is_empty() {
            let help = "name the spec, or write another plan with `swarmc plan --provider`";
            return Err(miette!(help = help, "`{}` is a plan, whose providers are fixed", path.display()));
        }
        let plan = swarmc_runtime::load_plan(&text).map_err(|error| miette!("{error}"));
        let plan = plan.wrap_err_with(|| format!("cannot use the plan `{}`", path.display()))?;
        return Ok(Some(Loaded { plan, workspace: workspace.root }));
    }
    let compilation = swarmc_compiler::compile_with(&name, &workspace, settings);
    let problems = Problems::new(&compilation, &workspace, &settings.levels);
    let counts = problems.count_problems();
    if counts != Counts::default() {
        terminal::eprint(problems.render_text(Stream::Err));
        terminal::eprint(format!("{}\n", count_line(counts, Stream::Err.paint())));
    }
    Ok(compilation.plan.map(|plan| Loaded { plan, workspace: workspace.root }))
}

/// The pipeline to run: the one named, else the default one.
pub(crate) fn select_pipeline<'a>(plan: &'a Plan, name: Option<&str>) -> miette::Result<&'a Pipeline> {
    let name = name.unwrap_or(&plan.default);
    plan.pipeline(name).ok_or_else(|| {
        let names = plan.pipelines.iter().map(|pipeline| pipeline.name.as_str());
        miette!(help = did_you_mean(name, names), "there is no pipeline `{name}`")
    })
}

/// The text of a plan: a `.json` file, or one that begins as JSON does. None for a spec.
pub(crate) fn plan_text(path: &Path) -> miette::Result<Option<String>> {
    let named = path.extension().is_some_and(|extension| extension == "json");
    if !path.is_file() {
        return match named {
            true => Err(miette!("there is no plan `{}`", path.display())),
            false => Ok(None),
        };
    }
    if !named && !begins_with_brace(path) {
        return Ok(None);
    }
    let text = std::fs::read_to_string(path).map_err(|error| miette!("cannot read `{}`: {error}", path.display()))?;
    Ok(Some(text))
}

fn begins_with_brace(path: &Path) -> bool {
    use std::io::Read;
    let mut head = [0; 64];
    let read = std::fs::File::open(path).and_then(|mut file| file.read(&mut head)).unwrap_or(0);
    head[..read].iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{')
}
