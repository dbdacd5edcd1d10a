//! SW202: a value read where its step can have been skipped, or can have failed.
//!
//! A step that started proves things about the steps before it: those that it needs succeeded, and so did those that
//! *they* need (dominators on the condition graph, never paths), and its `when` held. A read is right when that proves
//! its value, or when it has a default or a guard.

use std::collections::BTreeMap;

use swarmc_plan::{Join, OnFailure, When};

use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::model::{Need, Pipeline, Read, Step};
use crate::template::{Fact, Root, Status, same_name};

pub(super) fn check(pipeline: &Pipeline<'_>, diagnostics: &mut Diagnostics) {
    let mut proofs = Proofs { pipeline, certain: certain(pipeline), by_target: BTreeMap::new() };
    for (index, step) in pipeline.steps.iter().enumerate() {
        for (position, read) in step.reads.iter().enumerate() {
            let back =
                pipeline.order.back.binary_search_by_key(&(index, position), |back| (back.step, back.read)).is_ok();
            if back || read.guarded {
                continue;
            }
            match (read.root, read.step) {
                (Root::Previous, Some(target))
                    if !read.directive && !assumed(read, &pipeline.steps[target], Root::Previous) =>
                {
                    diagnostics.push(first_round(read, &pipeline.steps[target]));
                }
                (Root::Output | Root::Input, Some(target)) if target != index => {
                    let producer = &pipeline.steps[target];
                    let there = producer.ast.output_default.is_some()
                        || assumed(read, producer, read.root)
                        || proofs.present(index, target);
                    if !there {
                        diagnostics.push(missing(pipeline, step, read, target));
                    }
                }
                _ => {}
            }
        }
    }
}

/// What steps prove by having started, for each step that is asked about.
struct Proofs<'p, 'a> {
    pipeline: &'p Pipeline<'a>,
    /// The steps that run whatever happens.
    certain: Vec<bool>,
    by_target: BTreeMap<usize, Vec<Proof>>,
}

/// Whether a step proves that the value of another is there.
#[derive(Clone, Copy, Default)]
struct Proof {
    /// By its needs: they held even where it failed over its own `when`.
    settled: bool,
    /// By its needs and its `when`.
    started: bool,
}

impl Proofs<'_, '_> {
    fn present(&mut self, step: usize, target: usize) -> bool {
        let pipeline = self.pipeline;
        let producer = &pipeline.steps[target];
        if self.certain[target]
            && producer.keeps_output()
            && pipeline.steps[step].needs.iter().any(|need| need.step == target)
        {
            return true;
        }
        // Nearly every read is proved by the need that it implies.
        let direct =
            |need: &Need| need.step == target && pipeline.steps[step].binds(need) && gives(producer, need.when);
        if pipeline.steps[step].needs.iter().any(direct) {
            return true;
        }
        self.by_target.entry(target).or_insert_with(|| proofs(pipeline, target))[step].started
    }
}

/// The steps that nothing can skip: without `when`, and with needs that hold however those before them end.
fn certain(pipeline: &Pipeline<'_>) -> Vec<bool> {
    let mut certain = vec![false; pipeline.steps.len()];
    for &index in &pipeline.order.sorted {
        let step = &pipeline.steps[index];
        let holds = |need: &Need| match need.when {
            When::Always => true,
            When::Any => certain[need.step],
            When::Success | When::Failure => false,
        };
        certain[index] = step.when.is_none()
            && step.ast.on_failure == OnFailure::Fail
            && step.ast.join.value == Join::All
            && step.needs.iter().all(holds);
    }
    certain
}

/// One pass in the order of needs: each step after those that it needs.
fn proofs(pipeline: &Pipeline<'_>, target: usize) -> Vec<Proof> {
    let producer = &pipeline.steps[target];
    let mut proofs = vec![Proof::default(); pipeline.steps.len()];
    for &index in &pipeline.order.sorted {
        let step = &pipeline.steps[index];
        let by = |need: &Need, succeeded: bool| {
            let when = if succeeded { When::Success } else { need.when };
            if need.step == target {
                return gives(producer, when);
            }
            match when {
                When::Success => proofs[need.step].started,
                When::Failure | When::Any => proofs[need.step].settled,
                When::Always => false,
            }
        };
        let one_success = step.ast.join.value == Join::NoneFailed;
        let binding = step.needs.iter().any(|need| step.binds(need) && by(need, need.declared && one_success));
        let mut declared = step.needs.iter().filter(|need| need.declared).peekable();
        let any =
            step.ast.join.value != Join::All && declared.peek().is_some() && declared.all(|need| by(need, one_success));
        let settled = binding || any;
        let proved = step
            .when
            .as_ref()
            .is_some_and(|when| when.expression.proves.iter().any(|fact| says(fact, producer, Root::Output)));
        proofs[index] = Proof { settled, started: settled || proved };
    }
    proofs
}

/// Whether a step that ended like this has a value.
fn gives(producer: &Step<'_>, when: When) -> bool {
    match when {
        When::Success => true,
        When::Any | When::Failure => producer.keeps_output(),
        When::Always => false,
    }
}

fn assumed(read: &Read, producer: &Step<'_>, root: Root) -> bool {
    read.assumes.iter().any(|fact| says(fact, producer, root))
}

/// Whether a fact says that the value of a step is there.
fn says(fact: &Fact, producer: &Step<'_>, wanted: Root) -> bool {
    match fact {
        Fact::Defined { root, name: Some(name), .. } => {
            let port = *root == Root::Input && wanted == Root::Input;
            port || (*root == wanted && same_name(name, producer.name()))
        }
        Fact::Defined { .. } => false,
        Fact::Ended { step, any_of } => {
            wanted != Root::Previous
                && same_name(step, producer.name())
                && !any_of.is_empty()
                && any_of.iter().all(|status| match status {
                    Status::Succeeded => true,
                    Status::Failed => producer.keeps_output(),
                    Status::Skipped => false,
                })
        }
    }
}

fn missing(pipeline: &Pipeline<'_>, step: &Step<'_>, read: &Read, target: usize) -> Diagnostic {
    let producer = &pipeline.steps[target];
    let (reader, name) = (step.name(), producer.name());
    let need = step.needs.iter().find(|need| need.step == target);
    let fails = !producer.keeps_output();
    let skipped = need.is_none_or(|need| need.when == When::Always || !step.binds(need));
    let how = match (skipped, fails) {
        (true, true) => "failed or been skipped",
        (true, false) => "been skipped",
        (false, _) => "failed",
    };
    let diagnostic = Diagnostic::new(
        Code::OutputMayBeSkipped,
        format!("`{reader}` reads the output of `{name}`, which can have {how}"),
    )
    .label(read.span, "may be missing here");
    let diagnostic = match need {
        Some(need) if need.declared => {
            let route = match (step.binds(need), need.when) {
                (false, _) => format!("`{reader}` runs also when only another of these held"),
                (true, When::Always) => format!("`{reader}` runs however `{name}` ends"),
                (true, When::Failure) => format!("`{reader}` runs when `{name}` failed"),
                (true, _) => format!("`{reader}` runs also when `{name}` failed"),
            };
            diagnostic.label(need.span, route)
        }
        Some(need) if need.span != read.span => {
            diagnostic.label(need.span, format!("because of this, `{reader}` runs also when `{name}` did not succeed"))
        }
        _ => diagnostic,
    };
    let diagnostic = match skipped.then(|| why_skipped(pipeline, producer)).flatten() {
        Some((span, text)) => diagnostic.label(span, text),
        None => diagnostic,
    };
    let field = read.fields.iter().map(|field| format!(".{}", field.value)).collect::<String>();
    diagnostic.help(match read.directive {
        true => format!(
            "say what to read instead: `<<output:{name}{field} | default:\"…\">>`, or `output default=\"…\"` in `{name}`"
        ),
        false => format!("ask first: `output.{} is defined and …`, or `output default=\"…\"` in `{name}`", name.replace('-', "_")),
    })
}

/// What can keep a step from running.
fn why_skipped(pipeline: &Pipeline<'_>, step: &Step<'_>) -> Option<(crate::source::Span, String)> {
    let name = step.name();
    if let Some(when) = &step.when {
        let text = &when.text;
        return Some((text.span(0..text.as_str().len()), format!("`{name}` is skipped when this is false")));
    }
    let need = step.needs.iter().find(|need| need.when != When::Always)?;
    let needed = pipeline.steps[need.step].name();
    let ends = if need.when == When::Failure { "succeeds" } else { "fails" };
    Some((need.span, format!("`{name}` is skipped when `{needed}` {ends}")))
}

fn first_round(read: &Read, producer: &Step<'_>) -> Diagnostic {
    let name = producer.name().replace('-', "_");
    Diagnostic::new(Code::OutputMayBeSkipped, format!("`previous.{name}` is missing in the first round"))
        .label(read.span, "there is no round before the first")
        .help(format!("ask first: `previous.{name} is defined`, or write `previous.{name} | default(\"\")`"))
}
