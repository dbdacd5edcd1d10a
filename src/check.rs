//! `swarmc check`: the problems of specs.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use miette::miette;
use serde_json::json;
use swarmc_compiler::{Code, Severity};

use crate::args::{Check, Format};
use crate::exit::Exit;
use crate::files::Workspace;
use crate::load::did_you_mean;
use crate::render::{Levels, Problems, count_line};
use crate::terminal::{self, Stream};

pub(crate) fn exec(args: &Check) -> miette::Result<Exit> {
    let levels = levels(args)?;
    let specs = if args.specs.is_empty() { find()? } else { args.specs.clone() };
    let mut seen = HashSet::new();
    let mut documents = Vec::new();
    let (mut errors, mut warnings) = (0, 0);
    for spec in &specs {
        let (workspace, name) = Workspace::of(spec)?;
        let compilation = swarmc_compiler::compile(&name, &workspace);
        let mut problems = Problems::new(&compilation, &workspace, &levels);
        problems.dedup(&mut seen);
        errors += problems.count(Severity::Error);
        warnings += problems.count(Severity::Warning);
        match args.format {
            Format::Text => terminal::print(problems.text(Stream::Out))?,
            Format::Short => terminal::print(problems.short())?,
            Format::Json => documents.extend(problems.json()),
        }
    }
    let counts = |stream: Stream| {
        let specs = if specs.len() == 1 { "1 spec".to_owned() } else { format!("{} specs", specs.len()) };
        format!("{} in {specs}\n", count_line(errors, warnings, stream.paint()))
    };
    match args.format {
        Format::Text => terminal::print(counts(Stream::Out))?,
        // Standard output holds one line for each problem and nothing else.
        Format::Short => terminal::eprint(counts(Stream::Err)),
        Format::Json => {
            let document = json!({ "version": 1, "diagnostics": documents, "errors": errors, "warnings": warnings });
            terminal::print(format!("{document}\n"))?;
        }
    }
    Ok(if errors > 0 { Exit::Spec } else { Exit::Done })
}

fn levels(args: &Check) -> miette::Result<Levels> {
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
    Ok(levels)
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
