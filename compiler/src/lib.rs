//! The compiler of swarmc: text in, plan and diagnostics out.
//!
//! `text ─parse► tree ─lower► ast ─resolve► model ─check► diagnostics ─emit► plan`. Pure: the texts of files come
//! through [`Files`]. A problem in the text is a [`Diagnostic`], never an `Err`, and every stage carries on after it.

mod apply_fixes;
#[expect(dead_code, reason = "the later stages read more and more of it")]
mod ast;
mod baseline;
mod bounds;
mod cancel;
mod check;
mod code;
mod config;
mod diagnostic;
mod emit;
mod files;
mod flow;
mod format;
mod ignored;
mod import;
pub mod index;
pub mod interpolation;
mod library;
mod load;
mod lower;
mod mapped_text;
mod model;
mod modules;
#[cfg(test)]
mod pages;
mod pattern;
mod resolve;
pub mod schema;
mod settings;
mod source;
mod stale;
pub mod stats;
mod suggest;
mod suppress;
pub mod syntax;
mod template;
mod test;
mod text_cache;
mod tokens;
mod trust;
mod types;

pub use apply_fixes::{Mended, Overlay, fix_spec};
pub use baseline::Baseline;
pub use bounds::{Turn, Used, compute_bounds, count_turn_inputs, describe_excess};
pub use cancel::Cancel;
pub use code::{Code, Severity};
pub use config::{CONFIG_NAME, Config, parse_config};
pub use diagnostic::{Diagnostic, Edit, Fix, Label, Report};
pub use files::{Entry, FileError, Files};
pub use format::format_document;
pub use import::{Import, Route, import_compose};
pub use index::Index;
pub use library::{library_parts, preset_names};
pub use load::{join_path, path_from};
pub use pattern::is_match as pattern_matches;
pub use settings::{Levels, Profile, Settings};
pub use source::{FileId, Position, SourceFile, Sources, Span};
pub use stale::check_stale;
pub use stats::Stats;
pub use suggest::find_closest;
pub use swarmc_plan::{Bound, Bounds, When};
pub use test::{Count, Ending, Expectation, Expected, Fake, Hold, Moment, Part, StepEnd, Test};
pub use text_cache::Cache;
pub use tokens::{Bytes, O200k, Tokenizer};
pub use trust::Trust;

use diagnostic::Diagnostics;
use load::Loader;
use resolve::symbols::Tables;
use suppress::Suppressions;

/// What came of a spec.
#[derive(Debug)]
pub struct Compilation {
    /// The texts that were read, the spec first.
    pub sources: Sources,
    /// The problems, by place: the first thousand.
    pub diagnostics: Vec<Diagnostic>,
    /// The plan; none when there is an error.
    pub plan: Option<swarmc_plan::Plan>,
    /// The tests of the spec; none when there is an error.
    pub tests: Vec<Test>,
}

/// Compiles the spec at `path` (relative to the workspace, with `/`) in the default profile.
pub fn compile(path: &str, files: &dyn Files) -> Compilation {
    compile_with(path, files, &Settings::default())
}

/// Compiles the spec at `path` and reports what `settings` ask for.
pub fn compile_with(path: &str, files: &dyn Files, settings: &Settings) -> Compilation {
    compile_full(path, files, settings, &Cache::default(), &Cancel::default(), &mut |_, _, _, _| ()).0
}

/// Compiles the spec at `path` as [`compile_with`] does, and counts what that looked at and proved.
pub fn compile_with_stats(path: &str, files: &dyn Files, settings: &Settings) -> (Compilation, Stats) {
    let settings = Settings { count_tokens: true, ..settings.clone() };
    let mut names = stats::Names::default();
    let (cache, cancel) = (Cache::default(), Cancel::default());
    let (compilation, mut stats) = compile_full(path, files, &settings, &cache, &cancel, &mut |model, loader, _, _| {
        names = stats::count_names(model, loader)
    });
    stats.names = names;
    stats.files = compilation.sources.files().count();
    if let Some(plan) = &compilation.plan {
        stats.add_plan(plan);
    }
    (compilation, stats)
}

/// Compiles the spec at `path` as [`compile_with`] does, and says what an editor asks about it. `cache` keeps what is worked
/// out of other texts than the spec for the next time. The problems are told as soon as they are known, where the spec can
/// be read at all: the rest takes longer. None once it is cancelled.
pub fn analyze(
    path: &str,
    files: &dyn Files,
    settings: &Settings,
    cache: &Cache,
    cancel: &Cancel,
    tell: &mut dyn FnMut(&Sources, &[Diagnostic]),
) -> Option<(Compilation, Index)> {
    cache.prune();
    let mut index = Index::default();
    let (compilation, _) =
        compile_full(path, files, settings, cache, cancel, &mut |model, loader, trust, diagnostics| {
            tell(&loader.sources, diagnostics);
            if !cancel.is_cancelled() {
                index = index::build_index(model, loader, trust);
            }
        });
    (!cancel.is_cancelled()).then_some((compilation, index))
}

/// What looks at a model that has been checked, at what may have reached whom, and at the problems.
type Observer<'o> = dyn FnMut(&model::Model<'_>, &Loader<'_>, &[(Span, Trust)], &[Diagnostic]) + 'o;

/// Compiles, and shows the model to `observe` once all problems are known; says what the checks counted. Once it is
/// cancelled nothing more is worked out, and what comes of it is nothing.
fn compile_full(
    path: &str,
    files: &dyn Files,
    settings: &Settings,
    cache: &Cache,
    cancel: &Cancel,
    observe: &mut Observer<'_>,
) -> (Compilation, Stats) {
    let mut diagnostics = Diagnostics::new(settings.clone());
    let mut loader = Loader::new(files, cache, cancel);
    let file = match loader.read_file(path) {
        Ok(file) => file,
        Err(error) => {
            diagnostics.push(loader.report_unreadable(path, path, &error, None));
            return (partial_compilation(loader, diagnostics), Stats::default());
        }
    };
    let tree = loader.syntax_tree(file);
    tree.problems.iter().cloned().for_each(|problem| diagnostics.push(problem.into()));
    let spec = lower::lower_spec(&tree.nodes, loader.sources.text(file), &mut diagnostics);
    let (modules, mut specs) = modules::load_modules(spec, file, &mut loader, &mut diagnostics);
    resolve::replace::declare_presets(&mut specs, &modules, &settings.providers, &mut loader);
    let tables = Tables::new(modules, &specs, &mut diagnostics);
    let mut spec = modules::merge_specs(&tables.modules, specs, &loader, &mut diagnostics);
    let allows = std::mem::take(&mut spec.allows);
    let templates = resolve::templates::apply_templates(&mut spec, &tables, &mut diagnostics);
    let providers = resolve::replace::replace_providers(&mut spec, &tables, &settings.providers, &mut diagnostics);
    let presets = library::load_presets(&spec, &mut loader);
    let filled = resolve::Filled { templates, providers };
    let model = resolve::resolve_spec(&spec, &presets, tables, filled, &mut loader, &mut diagnostics);
    if loader.is_cancelled() {
        return (partial_compilation(loader, diagnostics), Stats::default());
    }
    let (mut stats, trust) = check::run_checks(&model, &loader, &mut diagnostics);
    if loader.is_cancelled() {
        return (partial_compilation(loader, diagnostics), stats);
    }
    check::packs::check(&spec, &loader, &mut diagnostics);
    check::hidden::check_documents(&spec, &loader, &mut diagnostics);
    check::patterns::check(&model, &loader, &mut diagnostics);
    let mut suppressions = Suppressions::new(allows, &loader, &mut diagnostics);
    suppressions.apply(&mut diagnostics);
    let mut plan = if diagnostics.has_errors() { None } else { emit::emit_plan(&model, &loader, file_stem(path)) };
    if let Some(plan) = &plan {
        check::unsupported::check(plan, &loader.sources, &mut diagnostics);
        bounds::check_bounds(plan, &model, &loader.sources, &mut diagnostics);
        suppressions.apply(&mut diagnostics);
    }
    stats.suppressions = suppressions.count();
    // With other providers, what a suppression is for may not be there.
    if settings.providers.is_empty() {
        suppressions.report_unused(plan.is_some(), &loader.sources, &mut diagnostics);
    }
    plan = plan.filter(|_| !diagnostics.has_errors());
    if loader.is_cancelled() {
        return (partial_compilation(loader, diagnostics), stats);
    }
    let diagnostics = diagnostics.into_sorted();
    observe(&model, &loader, &trust, &diagnostics);
    if loader.is_cancelled() {
        return (Compilation { sources: loader.sources, diagnostics, plan: None, tests: Vec::new() }, stats);
    }
    if let Some(plan) = &mut plan {
        plan.bounds = compute_bounds(plan, if settings.count_tokens { &O200k } else { &Bytes });
    }
    let tests = if plan.is_some() { emit::emit_tests(&model, &loader) } else { Vec::new() };
    (Compilation { sources: loader.sources, diagnostics, plan, tests }, stats)
}

/// What there is of a spec of which the rest is not known.
fn partial_compilation(loader: Loader<'_>, diagnostics: Diagnostics) -> Compilation {
    let (sources, diagnostics) = (loader.sources, diagnostics.into_sorted());
    Compilation { sources, diagnostics, plan: None, tests: Vec::new() }
}

/// The reference of the language, in Markdown, from the table that the compiler itself uses.
pub fn language_reference() -> String {
    schema::render_page()
}

/// What a spec without a `workflow` is called: its file, without folder and ending.
fn file_stem(path: &str) -> &str {
    let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
    name.strip_suffix(".kdl").unwrap_or(name)
}
