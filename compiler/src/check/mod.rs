//! The checks, in order. Each reads the model and reports; none changes it.

mod answers;
mod calls;
mod circles;
mod command;
mod cut_off;
mod cycle;
mod dead_output;
mod deadlock;
mod duplicated;
mod edges;
mod exhaustive;
mod floating;
mod gates;
mod granted_tools;
mod guarded_join;
pub(crate) mod hidden;
mod injection;
mod irreversible;
mod loops;
mod maybe_missing;
mod never_runs;
mod packages;
pub(crate) mod packs;
pub(crate) mod patterns;
mod permissions;
mod privileged;
mod produced_files;
mod provider_lacks;
mod receivers;
mod secret_flow;
mod secret_width;
pub(crate) mod secrets;
mod servers;
mod shell_words;
mod spawn;
mod swarm;
mod test_blocks;
mod tools;
mod types;
mod unhandled;
pub(crate) mod unsupported;
mod unused;
pub(crate) mod upstream;
mod value_types;
mod writers;
mod written_paths;

use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::flow;
use crate::load::Loader;
use crate::model::Model;
use crate::resolve::symbols::NameKind;
use crate::source::{FileId, Sources, Span};
use crate::stats::{self, Flows, Stats};
use crate::trust::Trust;

/// Runs every check; says what they looked at, and what may have reached whom.
pub(crate) fn run_checks(
    model: &Model<'_>,
    loader: &Loader<'_>,
    diagnostics: &mut Diagnostics,
) -> (Stats, Vec<(Span, Trust)>) {
    let mut stats = Stats::default();
    // What stands in a command is read by nothing, and yet not forgotten: `unused` comes after it.
    model.pipelines.iter().for_each(|pipeline| command::check(pipeline, diagnostics));
    command::check_providers(model, diagnostics);
    let sources = &loader.sources;
    shell_words::check(model, sources, diagnostics);
    unused::check(model, loader, diagnostics);
    // Pipelines share what their conditions may take to follow.
    let steps = model.pipelines.iter().map(|pipeline| pipeline.steps.len()).sum();
    let budget = flow::Budget::new(steps, loader.cancel());
    let sure = flow::check_pipeline_values(model, &budget);
    types::check(model, diagnostics);
    calls::check(model, diagnostics);
    value_types::check(model, diagnostics);
    let mut written = written_paths::Written::new(model, sources);
    for (index, pipeline) in model.pipelines.iter().enumerate() {
        if loader.is_cancelled() {
            return (stats, Vec::new());
        }
        let mut looked = stats::Pipeline::new(pipeline);
        upstream::check(pipeline, diagnostics);
        cycle::check(pipeline, diagnostics);
        loops::check(pipeline, diagnostics);
        gates::check(pipeline, diagnostics);
        edges::check(pipeline, &model.typing.types, diagnostics);
        // Where steps wait for each other, nothing can be said of what runs before what.
        if pipeline.order.cycles.is_empty() {
            let mut flow = flow::Lazy::new(model, pipeline, &sure, &budget);
            looked.outputs = maybe_missing::check(model, pipeline, &mut flow, diagnostics);
            looked.steps = never_runs::check(pipeline, &mut flow, diagnostics);
            looked.routes = exhaustive::check(model, pipeline, &mut flow, diagnostics);
            writers::check(pipeline, &mut written, &mut flow, diagnostics);
            produced_files::check(model, pipeline, sources, diagnostics);
            if diagnostics.is_enabled(Code::FailureUnhandled) {
                unhandled::check(pipeline, &mut flow, diagnostics);
            }
            receivers::check(pipeline, &mut flow, diagnostics);
            guarded_join::check(pipeline, &mut flow, diagnostics);
        }
        if diagnostics.is_enabled(Code::DeadOutput) {
            dead_output::check(pipeline, diagnostics);
        }
        if model.wanted[index] {
            stats.pipelines.push(looked);
        }
    }
    stats.conditions = budget.spent_steps();
    upstream::check_previous(model, diagnostics);
    let nothing = model.pipelines.is_empty() && model.swarms.is_empty();
    for swarm in &model.swarms {
        swarm::check(model, swarm, diagnostics);
        edges::check_swarm(swarm, &model.typing.types, diagnostics);
    }
    circles::check(model, diagnostics);
    servers::check(model, diagnostics);
    granted_tools::check(model, diagnostics);
    if nothing && !diagnostics.has_errors() {
        let file = FileId::new(0);
        diagnostics.push(
            Diagnostic::new(Code::WrongValue, "the spec has no pipeline, so there is nothing to run")
                .label(Span::new(file, 0, 0), "no pipeline")
                .help("write `pipeline NAME { task NAME { … } }`"),
        );
    }
    if !nothing && model.default.is_none() && !diagnostics.has_errors() {
        let names: Vec<String> = model.tables.visible_names(NameKind::Pipeline, FileId::new(0));
        let help = match names.first() {
            Some(name) => format!("say which imported one runs: `workflow NAME {{ default {name} }}`, or write one"),
            None => "write `pipeline NAME { task NAME { … } }`".to_owned(),
        };
        diagnostics.push(
            Diagnostic::new(Code::WrongValue, "the spec has no pipeline of its own, so it has no default to run")
                .label(Span::new(FileId::new(0), 0, 0), "no pipeline")
                .help(help),
        );
    }
    duplicated::check(model, sources, diagnostics);
    answers::check(model, diagnostics);
    test_blocks::check(model, diagnostics);
    maybe_missing::check_providers(model, diagnostics);
    secrets::check(loader, diagnostics);
    if loader.is_cancelled() {
        return (stats, Vec::new());
    }
    let (flows, reached) = check_trust(model, sources, diagnostics);
    stats.flows = flows;
    (stats, reached)
}

/// What may reach what: text of strangers, private data, secrets.
fn check_trust(model: &Model<'_>, sources: &Sources, diagnostics: &mut Diagnostics) -> (Flows, Vec<(Span, Trust)>) {
    let graph = crate::trust::build_graph(model, sources);
    injection::check(&graph, diagnostics);
    if diagnostics.is_enabled(Code::UntrustedToPrivileged) {
        privileged::check(&graph, diagnostics);
    }
    spawn::check(model, diagnostics);
    provider_lacks::check(model, diagnostics);
    secret_flow::check(model, sources, diagnostics);
    hidden::check(sources, diagnostics);
    if diagnostics.is_enabled(Code::OverBroadPermission) {
        permissions::check(model, sources, diagnostics);
    }
    if diagnostics.is_enabled(Code::NeedsDeniedTool) {
        tools::check(model, diagnostics);
    }
    if diagnostics.is_enabled(Code::SecretTooWide) {
        secret_width::check(model, sources, diagnostics);
    }
    if diagnostics.is_enabled(Code::UngatedIrreversible) {
        irreversible::check(model, sources, diagnostics);
    }
    if diagnostics.is_enabled(Code::FloatingVersion) {
        floating::check(model, diagnostics);
    }
    (graph.count(), crate::trust::collect_taints(&graph))
}
