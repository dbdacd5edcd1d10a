//! `swarmc import`: a compose file of another tool, as a spec.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use miette::miette;
use swarmc_compiler::{Code, Compilation, FileError, Files, Levels, Overlay, Route, Settings};
use swarmc_view::{did_you_mean, format_count};

use crate::args::Import;
use crate::exit::Exit;
use crate::files::Workspace;
use crate::render::{Counts, Problems, count_line};
use crate::terminal::{self, Stream};

pub(crate) fn exec(args: &Import) -> miette::Result<Exit> {
    let presets = swarmc_compiler::preset_names();
    if !presets.contains(&args.preset.as_str()) {
        let help = did_you_mean(&args.preset, presets.iter().copied());
        return Err(miette!(help = help, "there is no preset `{}`", args.preset));
    }
    let (workspace, from) = Workspace::discover(&args.compose)?;
    let text = workspace.read(&from).map_err(|error| read_error(&args.compose, error))?;
    let (output, to) = resolve_destination(args, &workspace)?;
    let route = Route { from: &from, to: &to, preset: &args.preset };
    let import = swarmc_compiler::import_compose(&text, route, &workspace);
    let read = Compilation {
        sources: import.sources,
        diagnostics: import.diagnostics,
        left_out: BTreeMap::new(),
        plan: None,
        tests: Vec::new(),
    };
    let levels = Levels::default();
    let lost = Problems::new(&read, &workspace, &levels);
    terminal::eprint(lost.render_text(Stream::Err));
    let Some(spec) = import.spec else {
        terminal::eprint("nothing to write\n");
        return Ok(Exit::Spec);
    };
    let mut overlay = Overlay::new(&workspace);
    overlay.texts.insert(to.clone(), spec.as_str().into());
    let compilation = swarmc_compiler::compile_with(&to, &overlay, &Settings::default());
    let left = Problems::new(&compilation, &workspace, &levels);
    terminal::eprint(left.render_text(Stream::Err));
    match &output {
        None => terminal::print(&spec)?,
        Some(output) => write_spec(output, &spec)?,
    }
    let older = compilation.diagnostics.iter().any(|found| found.code == Code::LegacyDirective);
    report_import(output.as_deref(), import.counts, lost.count_problems(), left.count_problems(), older);
    Ok(if lost.count_problems().errors + left.count_problems().errors > 0 { Exit::Spec } else { Exit::Done })
}

/// The file that the spec goes to, none for standard output; and the name in the workspace that it has or would have.
fn resolve_destination(args: &Import, workspace: &Workspace) -> miette::Result<(Option<PathBuf>, String)> {
    let to_stdout = args.output.as_deref() == Some(Path::new("-"));
    let output = match &args.output {
        Some(file) if !to_stdout => file.clone(),
        _ => args.compose.with_extension("kdl"),
    };
    if !to_stdout && !args.force && output.symlink_metadata().is_ok() {
        let help = "`--force` overwrites it, `-o FILE` writes another one, `-o -` prints it";
        return Err(miette!(help = help, "`{}` is there already", output.display()));
    }
    let (home, to) = Workspace::discover(&output)?;
    if home.root != workspace.root {
        let help = "a spec names its prompts within one workspace: the nearest folder with `.git`, else its own";
        let (compose, output) = (args.compose.display(), output.display());
        return Err(miette!(help = help, "`{compose}` and `{output}` are in different workspaces"));
    }
    Ok(((!to_stdout).then_some(output), to))
}

/// Says what was written, what was lost, and what is left to do.
fn report_import(output: Option<&Path>, (tasks, pipelines): (usize, usize), lost: Counts, left: Counts, older: bool) {
    let (tasks, pipelines) = (format_count(tasks as u64, "task"), format_count(pipelines as u64, "pipeline"));
    let wrote = output.map_or("printed the spec".to_owned(), |output| format!("wrote {}", output.display()));
    let mut out = format!("{wrote}: {tasks}, {pipelines}\n");
    out += &match lost.errors {
        0 => "everything was carried over\n".to_owned(),
        errors => format!("{} not carried over: see the comments in it\n", format_count(errors as u64, "thing")),
    };
    out += &format!("`swarmc check` finds {} in it\n", count_line(left, Stream::Err.paint()));
    if let Some(output) = output.filter(|_| older) {
        out += &format!("`swarmc check --fix {}` rewrites older directives in prompt files too\n", output.display());
    }
    terminal::eprint(out);
}

/// Writes the spec as a whole, or leaves what was there.
fn write_spec(output: &Path, spec: &str) -> miette::Result<()> {
    let failed = |error: std::io::Error| miette!("cannot write `{}`: {error}", output.display());
    let folder = output.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // In the folder of the target: a rename is atomic only within one file system.
    let mut file = tempfile::Builder::new().permissions(file_mode()).tempfile_in(folder).map_err(failed)?;
    std::io::Write::write_all(&mut file, spec.as_bytes()).map_err(failed)?;
    file.persist(output).map_err(|error| failed(error.error))?;
    Ok(())
}

/// As any new file, less what the caller's mask takes away.
fn file_mode() -> std::fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(0o666)
}

fn read_error(path: &Path, error: FileError) -> miette::Report {
    let path = path.display();
    match error {
        FileError::Missing => miette!(help = "check its name", "there is no file `{path}`"),
        FileError::Case { actual } => miette!(help = format!("it is called `{actual}`"), "there is no file `{path}`"),
        FileError::Outside => miette!("`{path}` is a link that leaves its workspace"),
        FileError::Folder => miette!(help = "name the compose file in it", "`{path}` is a folder"),
        FileError::TooLarge { bytes } => miette!("`{path}` has {bytes} bytes, and 16 MiB are read at most"),
        FileError::NotText { looks_like: Some(what), .. } => miette!("`{path}` is not UTF-8, but seems to be {what}"),
        FileError::NotText { offset, looks_like: None } => miette!("`{path}` is not UTF-8 from byte {offset} on"),
        FileError::Refused { message } => miette!("cannot read `{path}`: {message}"),
    }
}
