//! The checks, as one table. Each check reads the model, or the plan made of it, and reports; none changes it.
//!
//! [`run_checks`] and [`run_plan_checks`] walk the table from the top: they leave out a check none of whose codes is
//! enabled, and count what the checks looked at.

mod answers;
mod calls;
mod circles;
mod command;
mod coordinated;
mod cut_off;
mod cycle;
mod dead_output;
mod deadlock;
mod divisors;
mod duplicated;
mod edges;
mod exhaustive;
mod floating;
mod gates;
mod given_values;
mod granted_tools;
mod guarded_join;
mod hidden;
mod injection;
mod irreversible;
mod large_patterns;
mod loops;
mod maybe_missing;
mod never_asked;
mod never_reused;
mod never_runs;
mod nothing_to_run;
mod packages;
mod packs;
mod patterns;
mod permissions;
mod privileged;
mod produced_files;
mod provider_lacks;
mod receivers;
mod roles;
mod scopes;
mod secret_flow;
mod secret_width;
mod secrets;
mod servers;
mod shared_repository;
mod shell_words;
mod spawn;
mod swarm;
mod test_blocks;
mod tools;
mod types;
mod unhandled;
mod unsupported;
mod unused;
mod upstream;
mod value_types;
mod writers;
mod written_paths;

use std::cell::OnceCell;

use swarmc_plan::Plan;

use crate::bounds;
use crate::code::Code;
use crate::diagnostic::Diagnostics;
use crate::flow::{self, Lazy};
use crate::load::Loader;
use crate::model::{Model, Pipeline, Swarm};
use crate::source::{Sources, Span};
use crate::stats::{self, Stats};
use crate::trust::graph::Graph;
use crate::trust::{self, Trust};
pub use servers::PROGRAM_TOOLS;
use written_paths::Written;

/// A check.
struct Check {
    /// The codes that it reports, and no others.
    codes: &'static [Code],
    run: Run,
}

/// What a check looks at, and how it does so.
enum Run {
    /// The whole spec, once.
    Spec(fn(&Checked<'_, '_>, &mut Diagnostics)),
    /// Each pipeline.
    Pipeline(fn(&mut CheckedPipeline<'_, '_, '_>, &mut Diagnostics)),
    /// Each pipeline whose steps have an order. Where steps wait for each other, nothing can be said of what runs before
    /// what.
    Ordered(fn(&mut CheckedPipeline<'_, '_, '_>, &mut Diagnostics)),
    /// Each swarm.
    Swarm(fn(&Checked<'_, '_>, &Swarm<'_>, &mut Diagnostics)),
    /// The plan of a spec without errors, after all others.
    Plan(fn(&Checked<'_, '_>, &Plan, &mut Diagnostics)),
}

/// The checks in the order in which they run: a later one may leave out what an earlier one has reported at its place.
const CHECKS: &[Check] = &[
    // What stands in a command is read by nothing, and yet not forgotten: `unused` comes after it.
    on_spec(&[Code::UntrustedToCommand], |on, found| command::check(on.model, found)),
    on_spec(&[Code::UnquotedShell], |on, found| shell_words::check(on.model, on.sources(), found)),
    on_spec(&[Code::UnusedDefinition], |on, found| unused::check(on.model, on.loader, found)),
    on_spec(types::CODES, |on, found| types::check(on.model, found)),
    on_spec(calls::CODES, |on, found| calls::check(on.model, found)),
    on_spec(&[Code::Cycle], |on, found| cycle::check_calls(on.model, found)),
    on_spec(&[Code::WrongValue], |on, found| large_patterns::check(on.model, found)),
    on_spec(&[Code::TemplateError], |on, found| divisors::check(on.model, found)),
    on_spec(value_types::CODES, |on, found| value_types::check(on.model, found)),
    on_pipeline(&[Code::OutputNotUpstream, Code::PreviousIteration], |on, found| upstream::check(on.pipeline, found)),
    on_pipeline(&[Code::Cycle], |on, found| cycle::check(on.pipeline, found)),
    on_pipeline(&[Code::UnboundedLoop], |on, found| loops::check(on.pipeline, found)),
    on_pipeline(&[Code::UnattendedGate], |on, found| gates::check(on.pipeline, found)),
    on_pipeline(edges::CODES, |on, found| edges::check(on.pipeline, &on.model.typing.types, found)),
    on_order(&[Code::OutputMayBeSkipped], |on, found| {
        on.counts.outputs = maybe_missing::check(on.model, on.pipeline, &mut on.flow, found)
    }),
    on_order(&[Code::NeverRuns, Code::Deadlock], |on, found| {
        on.counts.steps = never_runs::check(on.pipeline, &mut on.flow, found)
    }),
    on_order(&[Code::NonExhaustive], |on, found| {
        on.counts.routes = exhaustive::check(on.model, on.pipeline, &mut on.flow, found)
    }),
    on_order(&[Code::ParallelWriters], |on, found| writers::check(on.pipeline, on.written, &mut on.flow, found)),
    on_order(&[Code::MissingFile, Code::OutputMayBeSkipped], |on, found| {
        produced_files::check(on.model, on.pipeline, on.sources, &mut on.flow, found)
    }),
    on_order(&[Code::FailureUnhandled], |on, found| unhandled::check(on.pipeline, &mut on.flow, found)),
    on_order(&[Code::UnreachableReceiver], |on, found| receivers::check(on.pipeline, &mut on.flow, found)),
    on_order(&[Code::GuardedJoin], |on, found| guarded_join::check(on.pipeline, &mut on.flow, found)),
    on_pipeline(&[Code::DeadOutput], |on, found| dead_output::check(on.pipeline, found)),
    on_spec(&[Code::PreviousIteration], |on, found| upstream::check_previous(on.model, found)),
    on_swarm(&[Code::WrongValue], |on, swarm, found| swarm::check(on.model, swarm, found)),
    on_swarm(coordinated::CODES, |_, swarm, found| coordinated::check(swarm, found)),
    on_swarm(roles::CODES, |on, swarm, found| roles::check(on.model, swarm, found)),
    on_swarm(&[Code::SharedScope], |_, swarm, found| scopes::check(swarm.ast, found)),
    on_swarm(edges::CODES, |on, swarm, found| edges::check_swarm(swarm, &on.model.typing.types, found)),
    on_spec(&[Code::Deadlock], |on, found| circles::check(on.model, found)),
    on_spec(&[Code::UnknownReference], |on, found| servers::check(on.model, found)),
    on_spec(&[Code::ToolNotAble, Code::UnknownReference], |on, found| granted_tools::check(on.model, found)),
    on_spec(&[Code::WrongValue], |on, found| nothing_to_run::check(on.model, found)),
    on_spec(&[Code::NeverReused], |on, found| never_reused::check(on.model, found)),
    on_spec(&[Code::DuplicatedContext], |on, found| duplicated::check(on.model, on.sources(), found)),
    on_spec(&[Code::UnusedDefinition, Code::WrongValue], |on, found| answers::check(on.model, found)),
    on_spec(never_asked::CODES, |on, found| never_asked::check(on.model, found)),
    on_spec(test_blocks::CODES, |on, found| test_blocks::check(on.model, found)),
    on_spec(&[Code::OutputMayBeSkipped], |on, found| maybe_missing::check_outside(on.model, found)),
    on_spec(&[Code::SecretInSource], |on, found| secrets::check(on.loader, found)),
    on_spec(&[Code::LethalTrifecta], |on, found| injection::check(on.graph(), found)),
    on_spec(&[Code::UntrustedToPrivileged], |on, found| privileged::check(on.graph(), found)),
    on_spec(&[Code::SpawnEscalation], |on, found| spawn::check(on.model, found)),
    on_spec(&[Code::ProviderLacks, Code::WrongValue], |on, found| provider_lacks::check(on.model, found)),
    on_spec(&[Code::SecretInPrompt], |on, found| secret_flow::check(on.model, on.sources(), found)),
    on_spec(&[Code::HiddenText], |on, found| hidden::check(on.sources(), found)),
    on_spec(&[Code::OverBroadPermission], |on, found| permissions::check(on.model, on.sources(), found)),
    on_spec(&[Code::NeedsDeniedTool], |on, found| tools::check(on.model, found)),
    on_spec(&[Code::SecretTooWide], |on, found| secret_width::check(on.model, on.sources(), found)),
    on_spec(&[Code::UngatedIrreversible], |on, found| irreversible::check(on.model, on.sources(), found)),
    on_spec(&[Code::FloatingVersion], |on, found| floating::check(on.model, found)),
    on_spec(&[Code::PackOverBudget], |on, found| packs::check(on.model.spec, on.loader, found)),
    on_spec(&[Code::HiddenText], |on, found| hidden::check_documents(on.model.spec, on.loader, found)),
    on_spec(&[Code::GlobMatchesNothing, Code::MissingProgram], |on, found| patterns::check(on.model, on.loader, found)),
    on_plan(&[Code::CannotRun], |on, plan, found| unsupported::check(plan, on.sources(), found)),
    on_plan(&[Code::ContextOverflow], |on, plan, found| bounds::check_windows(plan, on.sources(), found)),
    on_plan(&[Code::UnboundedInput], |on, plan, found| bounds::check_inputs(plan, on.model, on.sources(), found)),
    on_plan(&[Code::BudgetExceeded], |on, plan, found| bounds::check_budgets(plan, on.sources(), found)),
];

/// A check of the whole spec.
const fn on_spec(codes: &'static [Code], run: fn(&Checked<'_, '_>, &mut Diagnostics)) -> Check {
    Check { codes, run: Run::Spec(run) }
}

/// A check of each pipeline.
const fn on_pipeline(codes: &'static [Code], run: fn(&mut CheckedPipeline<'_, '_, '_>, &mut Diagnostics)) -> Check {
    Check { codes, run: Run::Pipeline(run) }
}

/// A check of each pipeline whose steps have an order.
const fn on_order(codes: &'static [Code], run: fn(&mut CheckedPipeline<'_, '_, '_>, &mut Diagnostics)) -> Check {
    Check { codes, run: Run::Ordered(run) }
}

/// A check of each swarm.
const fn on_swarm(codes: &'static [Code], run: fn(&Checked<'_, '_>, &Swarm<'_>, &mut Diagnostics)) -> Check {
    Check { codes, run: Run::Swarm(run) }
}

/// A check of the plan.
const fn on_plan(codes: &'static [Code], run: fn(&Checked<'_, '_>, &Plan, &mut Diagnostics)) -> Check {
    Check { codes, run: Run::Plan(run) }
}

/// A spec that is checked.
struct Checked<'c, 'a> {
    model: &'c Model<'a>,
    loader: &'c Loader<'c>,
    /// What may reach what; built by the first check that asks.
    graph: OnceCell<Graph>,
}

/// A pipeline that is checked.
struct CheckedPipeline<'w, 'c, 'a> {
    model: &'c Model<'a>,
    sources: &'c Sources,
    pipeline: &'c Pipeline<'a>,
    flow: Lazy<'w, 'a>,
    written: &'w mut Written<'c, 'a>,
    /// What the checks looked at.
    counts: stats::Pipeline,
}

impl<'c, 'a> Checked<'c, 'a> {
    fn new(model: &'c Model<'a>, loader: &'c Loader<'_>) -> Checked<'c, 'a> {
        Checked { model, loader, graph: OnceCell::new() }
    }

    fn sources(&self) -> &'c Sources {
        &self.loader.sources
    }

    fn graph(&self) -> &Graph {
        self.graph.get_or_init(|| trust::build_graph(self.model, self.sources()))
    }
}

/// What is checked now.
enum Subject<'s, 'w, 'c, 'a> {
    Spec(&'s Checked<'c, 'a>),
    Pipeline(&'s mut CheckedPipeline<'w, 'c, 'a>),
    Swarm(&'s Checked<'c, 'a>, &'s Swarm<'a>),
    Plan(&'s Checked<'c, 'a>, &'s Plan),
}

/// How often a check runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    Spec,
    Pipeline,
    Swarm,
    Plan,
}

impl Check {
    fn scope(&self) -> Scope {
        match self.run {
            Run::Spec(_) => Scope::Spec,
            Run::Pipeline(_) | Run::Ordered(_) => Scope::Pipeline,
            Run::Swarm(_) => Scope::Swarm,
            Run::Plan(_) => Scope::Plan,
        }
    }
}

/// Runs every check of the model; says what they looked at, and what may have reached whom. None once it is cancelled.
pub(crate) fn run_checks(
    model: &Model<'_>,
    loader: &Loader<'_>,
    diagnostics: &mut Diagnostics,
) -> Option<(Stats, Vec<(Span, Trust)>)> {
    let on = Checked::new(model, loader);
    let mut stats = Stats::default();
    // Each group is a stretch of the table, so that its order holds across kinds of checks.
    for group in CHECKS.chunk_by(|one, next| one.scope() == next.scope()) {
        match group.first().map(Check::scope) {
            Some(Scope::Spec) => run_group(group, Subject::Spec(&on), loader, diagnostics)?,
            Some(Scope::Pipeline) => check_pipelines(group, &on, &mut stats, diagnostics)?,
            Some(Scope::Swarm) => {
                for swarm in &model.swarms {
                    run_group(group, Subject::Swarm(&on, swarm), loader, diagnostics)?;
                }
            }
            Some(Scope::Plan) | None => {}
        }
    }
    stats.flows = on.graph().count();
    Some((stats, trust::collect_taints(on.graph())))
}

/// Runs every check of the plan. None once it is cancelled.
pub(crate) fn run_plan_checks(
    plan: &Plan,
    model: &Model<'_>,
    loader: &Loader<'_>,
    diagnostics: &mut Diagnostics,
) -> Option<()> {
    run_group(CHECKS, Subject::Plan(&Checked::new(model, loader), plan), loader, diagnostics)
}

/// Runs a group of checks on one pipeline after the other.
fn check_pipelines(
    group: &[Check],
    on: &Checked<'_, '_>,
    stats: &mut Stats,
    diagnostics: &mut Diagnostics,
) -> Option<()> {
    let (model, sources) = (on.model, on.sources());
    // Pipelines share what their conditions may take to follow.
    let steps = model.pipelines.iter().map(|pipeline| pipeline.steps.len()).sum();
    let budget = flow::Budget::new(steps, on.loader.cancel());
    let sure = flow::check_pipeline_values(model, &budget);
    let mut written = Written::new(model, sources);
    for (pipeline, &is_wanted) in model.pipelines.iter().zip(&model.wanted) {
        let (name, all) = (pipeline.ast.name.value.clone(), pipeline.steps.len());
        let steps = stats::Runs { all, ..stats::Runs::default() };
        let counts = stats::Pipeline { name, steps, ..stats::Pipeline::default() };
        let flow = Lazy::new(model, pipeline, &sure, &budget);
        let mut checked = CheckedPipeline { model, sources, pipeline, flow, written: &mut written, counts };
        run_group(group, Subject::Pipeline(&mut checked), on.loader, diagnostics)?;
        if is_wanted {
            stats.pipelines.push(checked.counts);
        }
    }
    stats.conditions = budget.spent_steps();
    Some(())
}

/// Runs the checks of a group that look at such a subject, without those none of whose codes is enabled. None once it is
/// cancelled.
fn run_group(
    group: &[Check],
    mut subject: Subject<'_, '_, '_, '_>,
    loader: &Loader<'_>,
    diagnostics: &mut Diagnostics,
) -> Option<()> {
    for check in group {
        if loader.is_cancelled() {
            return None;
        }
        if !check.codes.iter().any(|&code| diagnostics.is_enabled(code)) {
            continue;
        }
        diagnostics.declare_codes(Some(check.codes));
        match (&check.run, &mut subject) {
            (Run::Spec(run), Subject::Spec(on)) => run(on, diagnostics),
            (Run::Pipeline(run), Subject::Pipeline(on)) => run(on, diagnostics),
            (Run::Ordered(run), Subject::Pipeline(on)) if on.pipeline.order.cycles.is_empty() => run(on, diagnostics),
            (Run::Swarm(run), Subject::Swarm(on, swarm)) => run(on, swarm, diagnostics),
            (Run::Plan(run), Subject::Plan(on, plan)) => run(on, plan, diagnostics),
            _ => {}
        }
        diagnostics.declare_codes(None);
    }
    Some(())
}
