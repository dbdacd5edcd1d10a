//! SW202: a value read where its step can have been skipped, or can have failed.
//!
//! A step that started proves things about the steps before it: those that it needs succeeded, and so did those that
//! *they* need (dominators on the condition graph, never paths), and its `when` held. A read is right when that proves
//! its value, or when it has a default or a guard.

use std::collections::BTreeMap;

use swarmc_plan::{Join, When};

use crate::ast::OnFailure;

use crate::check::upstream::read_as_previous;
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::model::{Model, Need, ParamRef, Pipeline, Read, Step};
use crate::template::{Fact, Kind, Root, Status, same_name};

pub(super) fn check(model: &Model<'_>, pipeline: &Pipeline<'_>, diagnostics: &mut Diagnostics) {
    let mut proofs = Proofs::new(pipeline);
    for (index, step) in pipeline.steps.iter().enumerate() {
        diagnostics.about(Some(step.ast.name.span));
        for (position, read) in step.reads.iter().enumerate() {
            let back =
                pipeline.order.back.binary_search_by_key(&(index, position), |back| (back.step, back.read)).is_ok();
            let read_before = read_as_previous(pipeline, index, read) && !read.directive;
            if read.guarded || (back && !read_before) {
                continue;
            }
            match (read.root, read.step) {
                (Root::Param | Root::Stdin, _) => {
                    let asked = step.when.as_ref().filter(|_| !read.in_when).is_some_and(|when| {
                        let asks = |fact: &Fact| matches!(fact, Fact::Defined { root, .. } if *root == read.root);
                        when.expression.proves.iter().any(|fact| asks(fact) && names(fact, read))
                    });
                    if !asked {
                        diagnostics.extend(not_given(model, Some(pipeline), read));
                    }
                }
                (Root::Previous, Some(target)) if !read.directive && !assumed(read, &pipeline.steps[target]) => {
                    diagnostics.push(first_round(read, &pipeline.steps[target]));
                }
                (Root::Output, Some(target)) if back => {
                    diagnostics.push(first_round(read, &pipeline.steps[target]));
                }
                (Root::Output | Root::Input, Some(target)) if target != index => {
                    let producer = &pipeline.steps[target];
                    let there = producer.ast.output.default.is_some()
                        || assumed(read, producer)
                        || proofs.present(index, target, read);
                    if !there {
                        diagnostics.push(missing(pipeline, step, read, target));
                    }
                }
                // As a directive it renders nothing.
                (Root::Exit | Root::Error, Some(target)) if !read.directive => {
                    let there = assumed(read, &pipeline.steps[target]) || proofs.present(index, target, read);
                    if !there {
                        diagnostics.push(missing(pipeline, step, read, target));
                    }
                }
                _ => {}
            }
        }
    }
    diagnostics.about(None);
    // In the `env` of a pipeline nothing is known of any step.
    for read in &pipeline.env_reads {
        diagnostics.extend(not_given(model, Some(pipeline), read));
    }
}

/// What stands in the `env` of a provider.
pub(super) fn check_providers(model: &Model<'_>, diagnostics: &mut Diagnostics) {
    for read in model.providers.iter().flat_map(|provider| &provider.env_reads) {
        diagnostics.extend(not_given(model, None, read));
    }
}

/// What steps prove by having started, for each step that is asked about.
struct Proofs<'p, 'a> {
    pipeline: &'p Pipeline<'a>,
    /// The steps that run whatever happens.
    certain: Vec<bool>,
    /// Where each step stands in the order of needs.
    position: Vec<usize>,
    by_value: BTreeMap<(usize, Root), BTreeMap<usize, Proof>>,
}

/// Whether a step proves that the value of another is there.
#[derive(Clone, Copy, Default)]
struct Proof {
    /// By its needs: they held even where it failed over its own `when`.
    settled: bool,
    /// By its needs and its `when`.
    started: bool,
}

impl<'p, 'a> Proofs<'p, 'a> {
    fn new(pipeline: &'p Pipeline<'a>) -> Proofs<'p, 'a> {
        let mut position = vec![0; pipeline.steps.len()];
        for (at, &step) in pipeline.order.sorted.iter().enumerate() {
            position[step] = at;
        }
        Proofs { pipeline, certain: certain(pipeline), position, by_value: BTreeMap::new() }
    }

    fn present(&mut self, step: usize, target: usize, read: &Read) -> bool {
        let pipeline = self.pipeline;
        let producer = &pipeline.steps[target];
        let ran = [Status::Succeeded, Status::Failed];
        if self.certain[target]
            && ran.into_iter().all(|status| leaves(producer, read.root, status))
            && pipeline.steps[step].needs.iter().any(|need| need.step == target)
        {
            return true;
        }
        // Nearly every read is proved by the need that it implies.
        let direct = |need: &Need| {
            need.step == target && pipeline.steps[step].binds(need) && gives(producer, read.root, need.when)
        };
        if pipeline.steps[step].needs.iter().any(direct) {
            return true;
        }
        let root = if read.root == Root::Input { Root::Output } else { read.root };
        let proof = self.proof(step, target, root);
        // A `when` proves nothing for what it reads itself.
        if read.in_when { proof.settled } else { proof.started }
    }

    /// What `step` proves of a value of `target`: looks at the steps before it whose end it depends on, each once.
    fn proof(&mut self, step: usize, target: usize, root: Root) -> Proof {
        let steps = &self.pipeline.steps;
        let known = self.by_value.entry((target, root)).or_default();
        let mut open = vec![step];
        let mut found = BTreeMap::new();
        while let Some(step) = open.pop() {
            if known.contains_key(&step) || found.insert(self.position[step], step).is_some() {
                continue;
            }
            let told = |need: &&Need| need.step != target && effective(&steps[step], need) != When::Always;
            open.extend(steps[step].needs.iter().filter(told).map(|need| need.step));
        }
        // In the order of needs, so that what a step needs is known before it.
        for step in found.into_values() {
            let proof = proof(&steps[step], &steps[target], target, root, known);
            known.insert(step, proof);
        }
        known[&step]
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

/// What a step proves, once those that it needs are known.
fn proof(step: &Step<'_>, producer: &Step<'_>, target: usize, root: Root, known: &BTreeMap<usize, Proof>) -> Proof {
    let by = |need: &Need| {
        let when = effective(step, need);
        if need.step == target {
            return gives(producer, root, when);
        }
        let before = known.get(&need.step).copied().unwrap_or_default();
        match when {
            When::Success => before.started,
            When::Failure | When::Any => before.settled,
            When::Always => false,
        }
    };
    let binding = step.needs.iter().any(|need| step.binds(need) && by(need));
    let mut declared = step.needs.iter().filter(|need| need.declared).peekable();
    let any = step.ast.join.value != Join::All && declared.peek().is_some() && declared.all(by);
    let settled = binding || any;
    let proves = |fact: &Fact| says(fact, producer, root);
    let started = settled || step.when.as_ref().is_some_and(|when| when.expression.proves.iter().any(proves));
    Proof { settled, started }
}

/// How the step that is needed must have ended where this need is the one that held.
fn effective(step: &Step<'_>, need: &Need) -> When {
    match need.declared && step.ast.join.value == Join::NoneFailed {
        true => When::Success,
        false => need.when,
    }
}

/// Whether a step that ended like this has a value.
fn gives(producer: &Step<'_>, root: Root, when: When) -> bool {
    ends(producer, when).into_iter().all(|status| leaves(producer, root, status))
}

/// The ways to end that satisfy a need; a failure that counts as a skip is none of its own.
fn ends(producer: &Step<'_>, when: When) -> Vec<Status> {
    let all = match when {
        When::Success => vec![Status::Succeeded],
        When::Failure => vec![Status::Failed],
        When::Any => vec![Status::Succeeded, Status::Failed],
        When::Always => vec![Status::Succeeded, Status::Failed, Status::Skipped],
    };
    let skips = producer.ast.on_failure == OnFailure::Skip && when != When::Failure;
    all.into_iter().filter(|status| !(skips && *status == Status::Failed)).collect()
}

/// Whether a step that ended like this leaves such a value behind.
fn leaves(producer: &Step<'_>, root: Root, status: Status) -> bool {
    match (root, status) {
        (Root::Output | Root::Input, Status::Succeeded) => true,
        (Root::Output | Root::Input, Status::Failed) => producer.keeps_output(),
        (Root::Exit, Status::Succeeded | Status::Failed) => producer.has_exit(),
        (Root::Error, Status::Failed) => true,
        _ => false,
    }
}

fn assumed(read: &Read, producer: &Step<'_>) -> bool {
    read.assumes.iter().any(|fact| match fact {
        Fact::Defined { root: Root::Input, .. } => read.root == Root::Input && names(fact, read),
        fact => says(fact, producer, read.root),
    })
}

/// Whether a fact is about what a reference names.
fn names(fact: &Fact, read: &Read) -> bool {
    match (fact, &read.name) {
        (Fact::Defined { name: Some(name), .. }, Some(read)) => same_name(name, read),
        (Fact::Defined { name: None, .. }, None) => true,
        _ => false,
    }
}

/// Whether a fact says that the value of a step is there.
fn says(fact: &Fact, producer: &Step<'_>, wanted: Root) -> bool {
    match fact {
        Fact::Defined { root, name: Some(name), .. } => {
            *root != Root::Input && *root == wanted && same_name(name, producer.name())
        }
        Fact::Defined { .. } => false,
        Fact::Ended { step, any_of } => {
            same_name(step, producer.name())
                && !any_of.is_empty()
                && any_of.iter().all(|status| leaves(producer, wanted, *status))
        }
    }
}

fn missing(pipeline: &Pipeline<'_>, step: &Step<'_>, read: &Read, target: usize) -> Diagnostic {
    let producer = &pipeline.steps[target];
    let (reader, name) = (step.name(), producer.name());
    let plain = name.replace('-', "_");
    let what = match read.root {
        Root::Exit => "exit code",
        Root::Error => "error",
        _ => "output",
    };
    let word = Kind::Read(read.root).word();
    let ask = format!("ask first: `{word}.{plain} is defined and …`");
    if std::ptr::eq(step, producer) {
        return Diagnostic::new(
            Code::OutputMayBeSkipped,
            format!("the first attempt of `{name}` has no {what} before it"),
        )
        .label(read.span, "missing in the first attempt")
        .help(format!("{ask}, or write `<<{word}:{name}>>`, which then renders nothing"));
    }
    if read.root == Root::Exit && !producer.has_exit() {
        return Diagnostic::new(Code::OutputMayBeSkipped, format!("`{name}` starts no process, and has no exit code"))
            .label(read.span, "never there")
            .label(producer.ast.name.span, "computes its text")
            .help(format!("ask how it ended: `status.{plain} == \"succeeded\"`"));
    }
    let need = step.needs.iter().find(|need| need.step == target);
    let possible = match need {
        Some(need) if step.binds(need) => ends(producer, need.when),
        _ => ends(producer, When::Always),
    };
    let lacking: Vec<&str> = possible
        .into_iter()
        .filter(|status| !leaves(producer, read.root, *status))
        .map(|status| match status {
            Status::Succeeded => "succeeded",
            Status::Failed => "failed",
            Status::Skipped => "been skipped",
        })
        .collect();
    let diagnostic = Diagnostic::new(
        Code::OutputMayBeSkipped,
        format!("`{reader}` reads the {what} of `{name}`, which can have {}", lacking.join(" or ")),
    )
    .label(read.span, "may be missing here");
    let diagnostic = match need {
        Some(need) if need.declared => {
            let route = match (step.binds(need), need.when) {
                (false, _) => format!("`{reader}` runs also when only another of these held"),
                (true, When::Always) => format!("`{reader}` runs however `{name}` ends"),
                (true, When::Failure) => format!("`{reader}` runs when `{name}` failed"),
                (true, When::Success) => format!("`{reader}` runs when `{name}` succeeded"),
                (true, When::Any) => format!("`{reader}` runs also when `{name}` failed"),
            };
            diagnostic.label(need.span, route)
        }
        Some(need) if need.span != read.span => {
            diagnostic.label(need.span, format!("because of this, `{reader}` runs also when `{name}` did not succeed"))
        }
        _ => diagnostic,
    };
    let skipped = lacking.contains(&"been skipped");
    let diagnostic = match skipped.then(|| why_skipped(pipeline, producer)).flatten() {
        Some((span, text)) => diagnostic.label(span, text),
        None => diagnostic,
    };
    let field = read.fields.iter().map(|field| format!(".{}", field.value)).collect::<String>();
    diagnostic.help(match (read.root, read.directive) {
        // A condition holds no directives.
        (Root::Exit | Root::Error, _) if read.in_when => ask,
        (Root::Exit | Root::Error, _) => {
            format!("{ask}, or write `<<{word}:{name}>>`, which renders nothing where there is none")
        }
        (Root::Input, _) => {
            let port = read.name.as_deref().unwrap_or_default();
            match read.directive {
                true => format!(
                    "say what to read instead: `<<input:{port}{field} | default:\"…\">>`, or `output default=\"…\"` in `{name}`"
                ),
                false => format!("ask first: `input.{} is defined and …`, or `output default=\"…\"` in `{name}`", port.replace('-', "_")),
            }
        }
        (_, true) => format!(
            "say what to read instead: `<<output:{name}{field} | default:\"…\">>`, or `output default=\"…\"` in `{name}`"
        ),
        (_, false) => format!("{ask}, or `output default=\"…\"` in `{name}`"),
    })
}

/// A value that whoever starts the run may leave out, read by an expression; a directive renders nothing.
fn not_given(model: &Model<'_>, pipeline: Option<&Pipeline<'_>>, read: &Read) -> Option<Diagnostic> {
    if read.guarded || read.directive {
        return None;
    }
    if read.root == Root::Stdin {
        return Some(
            Diagnostic::new(Code::OutputMayBeSkipped, "`stdin` is missing when nothing is piped into `swarmc run`")
                .label(read.span, "may be missing here")
                .help("write `stdin | default(\"\")`, or `<<stdin>>`, which then renders nothing"),
        );
    }
    let name = read.name.as_deref().filter(|_| read.root == Root::Param)?;
    let param = match read.param? {
        ParamRef::Pipeline(index) => &pipeline?.ast.params[index],
        ParamRef::Spec(index) => &model.spec.params[index],
    };
    if !param.kind.optional || param.default.is_some() {
        return None;
    }
    let plain = name.replace('-', "_");
    Some(
        Diagnostic::new(Code::OutputMayBeSkipped, format!("parameter `{}` may be left out", param.name.value))
            .label(read.span, "may be missing here")
            .label(param.name.span, "optional, and without a default")
            .help(format!(
                "ask first: `param.{plain} is defined and …`, or write `param.{plain} | default(\"\")`, or declare it with `default=`"
            )),
    )
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
