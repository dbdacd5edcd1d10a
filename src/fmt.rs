//! `swarmc fmt`: the white space of specs, put in order.

use std::collections::BTreeMap;
use std::io::Read;

use miette::{IntoDiagnostic, miette};
use swarmc_compiler::{Compilation, Levels, Sources};

use crate::args::Fmt;
use crate::change::{self, Change};
use crate::exit::Exit;
use crate::files::{MAX_BYTES, Workspace};
use crate::find;
use crate::render::Problems;
use crate::terminal::{self, Stream};

pub(crate) fn exec(args: &Fmt) -> miette::Result<Exit> {
    if args.specs.iter().any(|spec| spec.as_os_str() == "-") {
        return match args.specs.len() {
            1 => standard_input(args),
            _ => Err(miette!(help = "`swarmc fmt - < FILE`", "`-` stands alone")),
        };
    }
    let mut changes = Vec::new();
    let mut broken = false;
    for spec in &find::find_specs(&args.specs)? {
        let (workspace, name) = Workspace::discover(spec)?;
        let shown = workspace.display_path(&name);
        let text = std::fs::read_to_string(spec).map_err(|error| miette!("cannot read `{shown}`: {error}"))?;
        match format_text(&name, &text, &workspace) {
            Some(after) if after != text => changes.push(Change { path: spec.clone(), shown, before: text, after }),
            Some(_) => {}
            None => broken = true,
        }
    }
    let files = |count: usize| if count == 1 { "1 file".to_owned() } else { format!("{count} files") };
    if args.diff {
        terminal::print(change::render_diff(&changes, Stream::Out.paint()))?;
    } else if args.check {
        let list: String = changes.iter().map(|change| format!("{}\n", change.shown)).collect();
        terminal::print(list)?;
    } else {
        change::write_changes(&changes)?;
    }
    let reports_only = args.check || args.diff;
    match (changes.len(), reports_only) {
        (0, _) if broken => {}
        (0, _) => terminal::eprint("formatted already\n"),
        (count, true) => terminal::eprint(format!("{} would be formatted\n", files(count))),
        (count, false) => terminal::eprint(format!("formatted {}\n", files(count))),
    }
    Ok(if broken || reports_only && !changes.is_empty() { Exit::Spec } else { Exit::Done })
}

/// Formats what comes in, onto standard output.
fn standard_input(args: &Fmt) -> miette::Result<Exit> {
    let mut text = String::new();
    std::io::stdin().take(MAX_BYTES).read_to_string(&mut text).into_diagnostic()?;
    let workspace = Workspace { root: std::env::current_dir().into_diagnostic()? };
    let Some(after) = format_text("standard input", &text, &workspace) else { return Ok(Exit::Spec) };
    let changes = after != text;
    if args.diff {
        let change = Change { path: "-".into(), shown: "standard input".to_owned(), before: text, after };
        terminal::print(change::render_diff(&[change], Stream::Out.paint()))?;
    } else if !args.check {
        terminal::print(after)?;
    }
    Ok(if changes && (args.check || args.diff) { Exit::Spec } else { Exit::Done })
}

/// The formatted text; none of a broken one, and then its problems are told.
fn format_text(name: &str, text: &str, workspace: &Workspace) -> Option<String> {
    match swarmc_compiler::format_document(text) {
        Ok(after) => Some(after),
        Err(problems) => {
            let mut sources = Sources::new();
            sources.add(name, text);
            let diagnostics = problems.into_iter().map(Into::into).collect();
            let compilation =
                Compilation { sources, diagnostics, left_out: BTreeMap::new(), plan: None, tests: Vec::new() };
            let problems = Problems::new(&compilation, workspace, &Levels::default());
            terminal::eprint(problems.render_text(Stream::Err));
            None
        }
    }
}
