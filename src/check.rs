//! `swarmc check`: the problems of specs.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use miette::miette;
use quick_junit::TestSuite;
use serde_json::Value;
use swarmc_compiler::{CONFIG_NAME, Code, Compilation, Config, Files, Overlay, Settings, Severity};
use swarmc_view::did_you_mean;
use swarmc_view::documents::{self, encode};

use crate::args::{Check, Format};
use crate::baselines::{Known, baseline_path};
use crate::change::{self, Change};
use crate::config::Configs;
use crate::exit::Exit;
use crate::file_deps::FileDependencies;
use crate::files::Workspace;
use crate::render::{Counts, Problems, count_line, junit_report, sarif_log};
use crate::since::{Changes, Since};
use crate::stats::Tally;
use crate::terminal::{self, Stream};
use crate::watch;

pub(crate) fn exec(args: &Check) -> miette::Result<Exit> {
    match args.watch {
        true => watch::exec(args),
        false => check_once(args, &FileDependencies::default()),
    }
}

/// Checks, and notes what for.
pub(crate) fn check_once(args: &Check, asked: &FileDependencies) -> miette::Result<Exit> {
    let mut configs = Configs::new(args, asked);
    let mut known = Known::default();
    let specs = asked.find_specs(&args.specs)?;
    let mut seen = HashSet::new();
    let mut out = Output::new(args.format);
    let mut counts = Counts::default();
    let mut mending = Mending::default();
    let mut tally = args.stats.then(Tally::default);
    let mut since = args.since.as_deref().map(Since::new);
    let mut unchanged = 0;
    for spec in &specs {
        let (workspace, name) = asked.find_workspace(spec)?;
        let Some((settings, config)) = configs.load_settings(&workspace)? else { return Ok(Exit::Usage) };
        let mends = args.fix || args.diff;
        let reads = FileDependencies::default();
        // The reads of the spec before any fix decide whether it is affected: a fix may change what it reads.
        let as_it_is = (!mends || since.is_some())
            .then(|| compile_spec(&name, &reads.track_files(&workspace), &settings, args.stats));
        let is_affected = match &mut since {
            Some(since) => is_affected(&reads, since.load_changes(&workspace.root)?, args, &config, &workspace)?,
            None => true,
        };
        asked.absorb(reads);
        if !is_affected {
            unchanged += 1;
            continue;
        }
        let compilation = match as_it_is {
            Some((compilation, stats)) if !mends => {
                if let (Some(tally), Some(stats)) = (&mut tally, stats) {
                    tally.add(workspace.display_path(&name), stats);
                }
                compilation
            }
            _ => mending.apply_fixes(&name, &workspace, &settings, args.r#unsafe),
        };
        let mut problems = Problems::new(&compilation, &workspace, &settings.levels);
        problems.dedup(&mut seen);
        if !mends && !known.hide_known(args, asked, &config, &workspace, &compilation, &mut problems)? {
            return Ok(Exit::Usage);
        }
        counts += problems.count_problems();
        match args.diff {
            // What a fix would do is all that is shown on standard output then.
            true => terminal::eprint(problems.render_short()),
            false => out.add(&problems, &workspace.display_path(&name))?,
        }
    }
    let changes = mending.collect_changes();
    if args.diff {
        terminal::print(change::render_diff(&changes, Stream::Out.paint()))?;
    } else {
        change::write_changes(&changes)?;
    }
    if args.fix || args.diff {
        terminal::eprint(mending.describe_fixes(changes.len(), args.diff));
    }
    let left = if args.fix || args.diff { " left" } else { "" };
    let specs = format_count(specs.len() - unchanged, "spec", "specs");
    // The end of this run removes them, so the hint how to remove them would be wrong.
    let gone = if args.update_baseline { 0 } else { known.count_gone() };
    let unchanged = args.since.as_deref().map(|since| (unchanged, since));
    let rest = describe_rest(known.hidden, gone, unchanged);
    let line = |stream: Stream| format!("{}{left} in {specs}{rest}\n", count_line(counts, stream.paint()));
    let table = |stream: Stream| tally.as_ref().map_or_else(String::new, |tally| tally.render_table(stream.paint()));
    match args.format {
        Format::Text if !args.diff => terminal::print(line(Stream::Out) + &table(Stream::Out))?,
        _ if args.diff => terminal::eprint(line(Stream::Err)),
        Format::Json => {
            out.finish(
                counts,
                known.hidden,
                unchanged.map(|(specs, _)| specs),
                tally.as_ref().map(Tally::to_document),
            )?;
            terminal::eprint(line(Stream::Err));
        }
        _ => {
            out.finish(counts, known.hidden, None, None)?;
            terminal::eprint(line(Stream::Err) + &table(Stream::Err));
        }
    }
    if args.update_baseline {
        return known.update_files();
    }
    Ok(if counts.errors > 0 || args.diff && !changes.is_empty() { Exit::Spec } else { Exit::Done })
}

/// What is not in the report: what baselines know, and the specs that did not change since a ref.
fn describe_rest(hidden: usize, gone: usize, unchanged: Option<(usize, &str)>) -> String {
    let hidden = (hidden > 0).then(|| format!("{} hidden", format_count(hidden, "known problem", "known problems")));
    let gone = (gone > 0).then(|| {
        let entries = format_count(gone, "entry of the baseline is", "entries of the baseline are");
        format!("{entries} gone: `--update-baseline` removes them")
    });
    let unchanged = unchanged.filter(|(specs, _)| *specs > 0).map(|(specs, since)| {
        let specs = format_count(specs, "spec is", "specs are");
        format!("{specs} unchanged since `{since}`")
    });
    let parts: Vec<String> = hidden.into_iter().chain(gone).chain(unchanged).collect();
    if parts.is_empty() { String::new() } else { format!(" ({})", parts.join("; ")) }
}

fn format_count(count: usize, one: &str, more: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { more })
}

/// Compiles a spec, with what `--stats` shows where it is wanted.
fn compile_spec(
    name: &str,
    files: &impl Files,
    settings: &Settings,
    stats: bool,
) -> (Compilation, Option<swarmc_compiler::Stats>) {
    match stats {
        true => {
            let (compilation, stats) = swarmc_compiler::compile_with_stats(name, files, settings);
            (compilation, Some(stats))
        }
        false => (swarmc_compiler::compile_with(name, files, settings), None),
    }
}

/// Whether the check of a spec can come out otherwise since these changes: by what it read, or by its settings.
fn is_affected(
    reads: &FileDependencies,
    changes: &Changes,
    args: &Check,
    config: &Config,
    workspace: &Workspace,
) -> miette::Result<bool> {
    let baseline = baseline_path(args, reads, config, workspace)?;
    let settings = [Some(workspace.root.join(CONFIG_NAME)), baseline];
    Ok(reads.is_affected_by(changes) || settings.iter().flatten().any(|path| changes.has_changed(path)))
}

/// Problems on their way to standard output. Where a program reads them, nothing else is there.
enum Output {
    Text,
    Short,
    Json(Vec<documents::Diagnostic>),
    Sarif(Vec<Value>),
    Github(Vec<(Severity, String)>),
    Junit(Vec<TestSuite>),
}

impl Output {
    fn new(format: Format) -> Output {
        match format {
            Format::Text => Output::Text,
            Format::Short => Output::Short,
            Format::Json => Output::Json(Vec::new()),
            Format::Sarif => Output::Sarif(Vec::new()),
            Format::Github => Output::Github(Vec::new()),
            Format::Junit => Output::Junit(Vec::new()),
        }
    }

    /// Takes the problems of a spec.
    fn add(&mut self, problems: &Problems, spec: &str) -> miette::Result<()> {
        match self {
            Output::Text => terminal::print(problems.render_text(Stream::Out))?,
            Output::Short => terminal::print(problems.render_short())?,
            Output::Json(found) => found.extend(problems.list_documents()),
            Output::Sarif(results) => results.extend(problems.render_sarif()),
            Output::Github(commands) => commands.extend(problems.render_github()),
            Output::Junit(suites) => suites.push(problems.render_junit(spec)),
        }
        Ok(())
    }

    /// Prints what has to stand as one document.
    fn finish(
        self,
        counts: Counts,
        known: usize,
        unchanged: Option<usize>,
        stats: Option<documents::CheckStats>,
    ) -> miette::Result<()> {
        match self {
            Output::Text | Output::Short => Ok(()),
            Output::Json(diagnostics) => {
                let Counts { errors, warnings, hints, left_out } = counts;
                let version = documents::Version;
                let document = documents::Check {
                    version,
                    diagnostics,
                    errors,
                    warnings,
                    hints,
                    left_out,
                    known,
                    unchanged,
                    stats,
                };
                terminal::print(encode(&document) + "\n")
            }
            Output::Sarif(results) => terminal::print(format!("{}\n", sarif_log(results))),
            Output::Github(mut commands) => {
                // GitHub shows only the first of a step, so the worst come first.
                commands.sort_by_key(|(severity, _)| *severity);
                terminal::print(commands.into_iter().map(|(_, command)| command).collect::<String>())
            }
            Output::Junit(suites) => terminal::print(junit_report("swarmc check", suites)?),
        }
    }
}

/// The texts that fixes have changed so far, by workspace: specs may share a prompt.
#[derive(Default)]
struct Mending {
    texts: BTreeMap<PathBuf, BTreeMap<String, Arc<str>>>,
    fixes: usize,
}

impl Mending {
    fn apply_fixes(&mut self, name: &str, workspace: &Workspace, settings: &Settings, guesses: bool) -> Compilation {
        let mut overlay = Overlay::new(workspace);
        let texts = self.texts.entry(workspace.root.clone()).or_default();
        overlay.texts = std::mem::take(texts);
        let mended = swarmc_compiler::fix_spec(name, &mut overlay, settings, guesses);
        *texts = overlay.texts;
        self.fixes += mended.applied.len();
        mended.compilation
    }

    fn collect_changes(&self) -> Vec<Change> {
        let mut changes = Vec::new();
        for (root, texts) in &self.texts {
            let workspace = Workspace { root: root.clone() };
            for (name, after) in texts {
                let before = workspace.read(name).map(|text| text.to_string()).unwrap_or_default();
                if *before != **after {
                    let (path, shown) = (root.join(name), workspace.display_path(name));
                    changes.push(Change { path, shown, before, after: after.to_string() });
                }
            }
        }
        changes
    }

    /// What was done, or would be.
    fn describe_fixes(&self, files: usize, only_shown: bool) -> String {
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

/// The code with this id or name.
pub(crate) fn find_code(name: &str) -> miette::Result<Code> {
    Code::find(name).ok_or_else(|| {
        let names = Code::ALL.iter().flat_map(|code| [code.id(), code.name()]);
        let help = match did_you_mean(name, names) {
            help if help.starts_with("did") => help,
            _ => "`swarmc explain` lists all codes".to_owned(),
        };
        miette!(help = help, "there is no problem called `{name}`")
    })
}
