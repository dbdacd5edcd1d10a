//! `swarmc check`: the problems of specs.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use miette::miette;
use serde_json::json;
use swarmc_compiler::{Code, Levels, Profile, Settings, Severity};

use crate::args::{self, Check, Format};
use crate::exit::Exit;
use crate::files::Workspace;
use crate::load::did_you_mean;
use crate::render::{Counts, Problems, count_line};
use crate::terminal::{self, Stream};

pub(crate) fn exec(args: &Check) -> miette::Result<Exit> {
    let settings = settings(args)?;
    let specs = if args.specs.is_empty() { find()? } else { args.specs.clone() };
    let mut seen = HashSet::new();
    let mut documents = Vec::new();
    let mut counts = Counts::default();
    for spec in &specs {
        let (workspace, name) = Workspace::of(spec)?;
        let compilation = swarmc_compiler::compile_with(&name, &workspace, &settings);
        let mut problems = Problems::new(&compilation, &workspace, &settings.levels);
        problems.dedup(&mut seen);
        counts += problems.counts();
        match args.format {
            Format::Text => terminal::print(problems.text(Stream::Out))?,
            Format::Short => terminal::print(problems.short())?,
            Format::Json => documents.extend(problems.json()),
        }
    }
    let line = |stream: Stream| {
        let specs = if specs.len() == 1 { "1 spec".to_owned() } else { format!("{} specs", specs.len()) };
        format!("{} in {specs}\n", count_line(counts, stream.paint()))
    };
    match args.format {
        Format::Text => terminal::print(line(Stream::Out))?,
        // Standard output holds one line for each problem and nothing else.
        Format::Short => terminal::eprint(line(Stream::Err)),
        Format::Json => {
            let Counts { errors, warnings, hints } = counts;
            let document = json!({
                "version": 1,
                "diagnostics": documents,
                "errors": errors,
                "warnings": warnings,
                "hints": hints,
            });
            terminal::print(format!("{document}\n"))?;
        }
    }
    Ok(if counts.errors > 0 { Exit::Spec } else { Exit::Done })
}

fn settings(args: &Check) -> miette::Result<Settings> {
    let mut levels = Levels::default();
    let flags = [(&args.allow, None), (&args.warn, Some(Severity::Warning)), (&args.deny, Some(Severity::Error))];
    for (names, severity) in flags {
        for name in names {
            match name.as_str() {
                "warnings" => levels.set(None, severity),
                name => levels.set(Some(code(name)?), severity),
            }
        }
    }
    let profile = match args.profile {
        args::Profile::Default => Profile::Default,
        args::Profile::Strict => Profile::Strict,
        args::Profile::Audit => Profile::Audit,
    };
    Ok(Settings { profile, levels, count_tokens: false })
}

/// The code with this id or name.
pub(crate) fn code(name: &str) -> miette::Result<Code> {
    Code::find(name).ok_or_else(|| {
        let names = Code::ALL.iter().flat_map(|code| [code.id(), code.name()]);
        let help = match did_you_mean(name, names) {
            help if help.starts_with("did") => help,
            _ => "`swarmc explain` lists all codes".to_owned(),
        };
        miette!(help = help, "there is no problem called `{name}`")
    })
}

/// The specs beneath the current folder, in order of their paths.
fn find() -> miette::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::from(".")];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.filter_map(Result::ok) {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let Ok(kind) = entry.file_type() else { continue };
            let path = folder.join(&*name);
            if kind.is_dir() && !name.starts_with('.') && name != "target" && name != "node_modules" {
                folders.push(path);
            } else if kind.is_file() && name.ends_with(".kdl") && is_spec(&path) {
                found.push(path.strip_prefix(".").map(Path::to_owned).unwrap_or(path));
            }
        }
    }
    found.sort();
    match found.is_empty() {
        true => Err(miette!(help = "name one: `swarmc check SPEC`", "there is no spec beneath the current folder")),
        false => Ok(found),
    }
}

/// Whether a file declares a workflow or a pipeline: KDL is used for much else.
fn is_spec(path: &Path) -> bool {
    let Ok(bytes) = std::fs::read(path) else { return false };
    bytes.split(|&byte| byte == b'\n').any(|line| {
        let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
        [&b"workflow"[..], b"pipeline"].iter().any(|word| {
            line.strip_prefix(*word).is_some_and(|rest| rest.first().is_none_or(|&byte| b" \t\r{".contains(&byte)))
        })
    })
}
