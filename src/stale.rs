//! `swarmc plan --check`: checks whether a written plan is still the plan of its spec.

use std::io::ErrorKind;
use std::path::Path;

use miette::{WrapErr, miette};
use swarmc_compiler::{Compilation, Levels, Settings, Severity};
use swarmc_view::quote_word;

use crate::exit::Exit;
use crate::files::Workspace;
use crate::load::plan_text;
use crate::render::{Problems, count_line};
use crate::terminal::{self, Stream};

/// Compares; says nothing where nothing differs. Warnings of the spec are told by `swarmc check`.
pub(crate) fn exec(spec: &Path, plan: &Path) -> miette::Result<Exit> {
    let help = format!("name the spec: `swarmc plan SPEC --check {}`", quote_path(plan));
    if plan_text(spec)?.is_some() {
        return Err(miette!(help = help, "`{}` is a plan already, so nothing can be compiled", spec.display()));
    }
    let command = format!("swarmc plan {} -o {}", quote_path(spec), quote_path(plan));
    let written = std::fs::read_to_string(plan).map_err(|error| match error.kind() {
        // Without a plan, the help shows how to write one.
        ErrorKind::NotFound => {
            miette!(help = format!("write it: `{command}`"), "there is no plan `{}`", plan.display())
        }
        _ => miette!("cannot read the plan `{}`: {error}", plan.display()),
    })?;
    let (workspace, name) = Workspace::discover(spec)?;
    let mut compilation = swarmc_compiler::compile_with(&name, &workspace, &Settings::default());
    if compilation.plan.is_none() {
        compilation.diagnostics.retain(|found| found.severity() == Severity::Error);
        return Ok(report_problems(&compilation, &workspace));
    }
    let found = swarmc_compiler::check_stale(&compilation, &written, &plan.display().to_string(), &command)
        .map_err(|error| miette!("{error}"))
        .wrap_err_with(|| format!("cannot use the plan `{}`", plan.display()))?;
    Ok(match found {
        Some(found) => {
            compilation.diagnostics = vec![found];
            report_problems(&compilation, &workspace)
        }
        None => Exit::Done,
    })
}

fn report_problems(compilation: &Compilation, workspace: &Workspace) -> Exit {
    let problems = Problems::new(compilation, workspace, &Levels::default());
    terminal::eprint(problems.render_text(Stream::Err));
    terminal::eprint(format!("{}\n", count_line(problems.count_problems(), Stream::Err.paint())));
    Exit::Spec
}

fn quote_path(path: &Path) -> String {
    quote_word(&path.display().to_string())
}
