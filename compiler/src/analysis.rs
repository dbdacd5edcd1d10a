//! The stages of the compiler in their order: the text of a spec in, an [`Analysis`] out.

use std::collections::BTreeMap;
use std::fmt;

use swarmc_plan::Plan;

use crate::ast::Spec;
use crate::bounds::{self, compute_bounds};
use crate::cancel::Cancel;
use crate::check;
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::emit;
use crate::files::Files;
use crate::index::{self, Index};
use crate::load::Loader;
use crate::lower::lower_spec;
use crate::model::Model;
use crate::modules;
use crate::resolve::{self, Filled, presets, replace, templates, variants};
use crate::settings::Settings;
use crate::source::{Sources, Span, file_stem};
use crate::stats::{Names, Stats};
use crate::suppress::Suppressions;
use crate::symbols::Tables;
use crate::test::Test;
use crate::text_cache::Cache;
use crate::tokens::{Bytes, O200k};
use crate::trust::Trust;

/// What came of a spec.
#[derive(Debug)]
pub struct Compilation {
    /// The texts that were read, the spec first.
    pub sources: Sources,
    /// The problems, by place: a thousand of each code.
    pub diagnostics: Vec<Diagnostic>,
    /// How many more there are of a code.
    pub left_out: BTreeMap<Code, usize>,
    /// The plan; none when there is an error.
    pub plan: Option<Plan>,
    /// The tests of the spec; none when there is an error.
    pub tests: Vec<Test>,
}

/// The trees of a spec and of the presets that it starts from. An [`Analysis`] borrows them.
#[derive(Debug, Default)]
pub struct Trees(Option<(Spec, Spec)>);

/// What the compiler found out about a spec. It has all problems, but not yet what takes longer.
pub struct Analysis<'s> {
    /// The problems, by place: a thousand of each code.
    pub diagnostics: Vec<Diagnostic>,
    /// How many more there are of a code.
    pub left_out: BTreeMap<Code, usize>,
    /// What the checks looked at and proved.
    pub stats: Stats,
    /// The model; none where the spec could not be read.
    model: Option<Model<'s>>,
    /// The plan without its bounds; none when there is an error.
    plan: Option<Plan>,
    /// What may have reached which place.
    trust: Vec<(Span, Trust)>,
    loader: Loader<'s>,
    settings: &'s Settings,
}

/// Compiles the spec at `path` (relative to the workspace, with `/`) in the default profile.
pub fn compile(path: &str, files: &dyn Files) -> Compilation {
    compile_with(path, files, &Settings::default())
}

/// Compiles the spec at `path` and reports what `settings` ask for.
pub fn compile_with(path: &str, files: &dyn Files, settings: &Settings) -> Compilation {
    let (mut trees, cache, cancel) = Default::default();
    let analysis = analyze(&mut trees, path, files, settings, &cache, &cancel);
    analysis.and_then(Analysis::finish).expect("nothing cancels it")
}

/// Compiles the spec at `path` as [`compile_with`] does, and counts what that looked at and proved.
pub fn compile_with_stats(path: &str, files: &dyn Files, settings: &Settings) -> (Compilation, Stats) {
    let settings = Settings { count_tokens: true, ..settings.clone() };
    let (mut trees, cache, cancel) = Default::default();
    let analysis = analyze(&mut trees, path, files, &settings, &cache, &cancel).expect("nothing cancels it");
    let mut stats = Stats { names: analysis.count_names(), ..analysis.stats.clone() };
    let compilation = analysis.finish().expect("nothing cancels it");
    stats.files = compilation.sources.files().count();
    if let Some(plan) = &compilation.plan {
        bounds::add_plan(&mut stats, plan);
    }
    (compilation, stats)
}

/// Analyses the spec at `path` and reports what `settings` ask for. `cache` keeps what is worked out of other texts than
/// the spec for the next time. None once it is cancelled.
pub fn analyze<'s>(
    trees: &'s mut Trees,
    path: &str,
    files: &'s dyn Files,
    settings: &'s Settings,
    cache: &'s Cache,
    cancel: &'s Cancel,
) -> Option<Analysis<'s>> {
    cache.prune();
    let mut diagnostics = Diagnostics::new(settings.clone());
    let mut loader = Loader::new(files, cache, cancel);
    let file = match loader.read_file(path) {
        Ok(file) => file,
        Err(error) => {
            diagnostics.push(loader.report_unreadable(path, path, &error, None));
            let (diagnostics, stats, trust) = (diagnostics.into_sorted(), Stats::default(), Vec::new());
            return Some(Analysis {
                diagnostics,
                left_out: BTreeMap::new(),
                stats,
                model: None,
                plan: None,
                trust,
                loader,
                settings,
            });
        }
    };
    let tree = loader.syntax_tree(file);
    tree.problems.iter().cloned().for_each(|problem| diagnostics.push(problem.into()));
    let spec = lower_spec(&tree.nodes, loader.sources.text(file), &mut diagnostics);
    let chosen: Vec<&str> = settings.providers.iter().map(|(_, to)| to.as_str()).collect();
    let (modules, mut specs) = modules::load_modules(spec, file, &chosen, &mut loader, &mut diagnostics);
    specs.iter_mut().for_each(variants::declare_variants);
    let tables = Tables::new(modules, &specs, &mut diagnostics);
    let mut spec = modules::merge_specs(&tables.modules, specs, &loader, &mut diagnostics);
    let allows = std::mem::take(&mut spec.allows);
    let filled = Filled {
        templates: templates::apply_templates(&mut spec, &tables, &mut diagnostics),
        providers: replace::replace_providers(&mut spec, &tables, &settings.providers, &mut diagnostics),
    };
    let presets = presets::load_presets(&spec, &mut loader);
    let (spec, presets) = trees.0.insert((spec, presets));
    let model = resolve::resolve_spec(spec, presets, tables, filled, &mut loader, &mut diagnostics);
    let (mut stats, trust) = check::run_checks(&model, &loader, &mut diagnostics)?;
    let mut suppressions = Suppressions::new(allows, &loader, &mut diagnostics);
    suppressions.apply(&mut diagnostics);
    let mut plan = if diagnostics.has_errors() { None } else { emit::emit_plan(&model, &loader, file_stem(path)) };
    if let Some(plan) = &plan {
        check::run_plan_checks(plan, &model, &loader, &mut diagnostics)?;
        // What the checks of the plan found may be suppressed as well.
        suppressions.apply(&mut diagnostics);
    }
    stats.suppressions = suppressions.count();
    // With other providers, what a suppression is for may not be there.
    if settings.providers.is_empty() {
        suppressions.report_unused(plan.is_some(), &loader.sources, &mut diagnostics);
    }
    // The checks of the plan may have found errors of their own.
    plan = plan.filter(|_| !diagnostics.has_errors());
    let (left_out, diagnostics) = (diagnostics.take_left_out(), diagnostics.into_sorted());
    let is_cancelled = loader.is_cancelled();
    let analysis = Analysis { diagnostics, left_out, stats, model: Some(model), plan, trust, loader, settings };
    (!is_cancelled).then_some(analysis)
}

impl Analysis<'_> {
    /// The texts that were read, the spec first.
    pub fn sources(&self) -> &Sources {
        &self.loader.sources
    }

    /// What an editor asks about the spec; nothing where it could not be read.
    pub fn build_index(&self) -> Index {
        let model = self.model.as_ref();
        model.map_or_else(Index::default, |model| index::build_index(model, &self.loader, &self.trust))
    }

    /// Counts the names and values that the spec and its texts read.
    fn count_names(&self) -> Names {
        self.model.as_ref().map_or_else(Names::default, |model| index::count_names(model, &self.loader))
    }

    /// Works out the rest: the bounds of the plan, and the tests. None once it is cancelled.
    pub fn finish(self) -> Option<Compilation> {
        let Analysis { diagnostics, left_out, model, mut plan, loader, settings, .. } = self;
        if loader.is_cancelled() {
            return None;
        }
        let mut tests = Vec::new();
        if let (Some(plan), Some(model)) = (&mut plan, &model) {
            plan.bounds = compute_bounds(plan, if settings.count_tokens { &O200k } else { &Bytes });
            tests = emit::emit_tests(model, &loader);
        }
        (!loader.is_cancelled()).then_some(Compilation { sources: loader.sources, diagnostics, left_out, plan, tests })
    }
}

impl fmt::Debug for Analysis<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Analysis").field("diagnostics", &self.diagnostics).finish_non_exhaustive()
    }
}
