//! `swarmc check`: the problems of specs.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use miette::miette;
use serde_json::json;
use swarmc_compiler::{Code, Compilation, Files, Levels, Overlay, Profile, Settings, Severity};

use crate::args::{self, Check, Format};
use crate::change::{self, Change};
use crate::exit::Exit;
use crate::files::Workspace;
use crate::find;
use crate::load::did_you_mean;
use crate::render::{Counts, Problems, count_line};
use crate::terminal::{self, Stream};

pub(crate) fn exec(args: &Check) -> miette::Result<Exit> {
    let settings = settings(args)?;
    let specs = find::specs(&args.specs)?;
    let mut seen = HashSet::new();
    let mut documents = Vec::new();
    let mut counts = Counts::default();
    let mut mending = Mending::default();
    for spec in &specs {
        let (workspace, name) = Workspace::of(spec)?;
        let compilation = match args.fix || args.diff {
            true => mending.mend(&name, &workspace, &settings, args.r#unsafe),
            false => swarmc_compiler::compile_with(&name, &workspace, &settings),
        };
        let mut problems = Problems::new(&compilation, &workspace, &settings.levels);
        problems.dedup(&mut seen);
        counts += problems.counts();
        match args.format {
            // What a fix would do is all that is shown on standard output then.
            _ if args.diff => terminal::eprint(problems.short()),
            Format::Text => terminal::print(problems.text(Stream::Out))?,
            Format::Short => terminal::print(problems.short())?,
            Format::Json => documents.extend(problems.json()),
        }
    }
    let line = |stream: Stream| {
        let specs = if specs.len() == 1 { "1 spec".to_owned() } else { format!("{} specs", specs.len()) };
        let left = if args.fix || args.diff { " left" } else { "" };
        format!("{}{left} in {specs}\n", count_line(counts, stream.paint()))
    };
    let changes = mending.changes();
    if args.diff {
        terminal::print(change::diff(&changes, Stream::Out.paint()))?;
    } else {
        change::write(&changes)?;
    }
    if args.fix || args.diff {
        terminal::eprint(mending.told(changes.len(), args.diff));
    }
    match args.format {
        _ if args.diff => terminal::eprint(line(Stream::Err)),
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
    Ok(if counts.errors > 0 || args.diff && !changes.is_empty() { Exit::Spec } else { Exit::Done })
}

/// The texts that fixes have changed so far, by workspace: specs may share a prompt.
#[derive(Default)]
struct Mending {
    texts: BTreeMap<PathBuf, BTreeMap<String, Arc<str>>>,
    fixes: usize,
}

impl Mending {
    fn mend(&mut self, name: &str, workspace: &Workspace, settings: &Settings, guesses: bool) -> Compilation {
        let mut overlay = Overlay::new(workspace);
        let texts = self.texts.entry(workspace.root.clone()).or_default();
        overlay.texts = std::mem::take(texts);
        let mended = swarmc_compiler::mend(name, &mut overlay, settings, guesses);
        *texts = overlay.texts;
        self.fixes += mended.applied.len();
        mended.compilation
    }

    fn changes(&self) -> Vec<Change> {
        let mut changes = Vec::new();
        for (root, texts) in &self.texts {
            let workspace = Workspace { root: root.clone() };
            for (name, after) in texts {
                let before = workspace.read(name).map(|text| text.to_string()).unwrap_or_default();
                if *before != **after {
                    let (path, shown) = (root.join(name), workspace.shown(name));
                    changes.push(Change { path, shown, before, after: after.to_string() });
                }
            }
        }
        changes
    }

    /// What was done, or would be.
    fn told(&self, files: usize, only_shown: bool) -> String {
        let plural = |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
        match (files, only_shown) {
            (0, _) => "nothing to fix\n".to_owned(),
            (_, true) => format!("`--fix` would make these changes in {}\n", plural(files, "file")),
            (_, false) => {
                format!("made {} in {}\n", plural(self.fixes, "fix").replace("fixs", "fixes"), plural(files, "file"))
            }
        }
    }
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
