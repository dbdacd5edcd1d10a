//! SW005, SW101, SW203 and SW205: the fakes and expectations of a test do not fit the pipeline that it tests.
//!
//! A fake gives an answer that its step could give. An expectation names an outcome that the pipeline can reach.

use swarmc_plan::StepKind;

use crate::ast::{self, ExpectKind, Name};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::model::{Fake, Model, ParamRef, Step, StepRef, Test};
use crate::pattern;
use crate::suggest;
use crate::test::{Hold, Part};
use crate::types::{Kind, Lack, Limits, Type};

/// The codes that the check reports.
pub(super) const CODES: &[Code] = &[Code::WrongValue, Code::UnknownReference, Code::UnknownField, Code::TypeMismatch];

/// What a person can say of a failure (`on-failure escalate`).
const ESCALATED: &[&str] = &["retry", "skip", "fail"];

pub(super) fn check(model: &Model<'_>, diagnostics: &mut Diagnostics) {
    for test in &model.tests {
        check_params(model, test, diagnostics);
        test.fakes.iter().for_each(|fake| self::check_fake(model, fake, diagnostics));
        for (expect, steps) in test.ast.expects.iter().zip(&test.expects) {
            check_expectation(model, &expect.kind, steps, diagnostics);
        }
    }
}

fn check_params(model: &Model<'_>, test: &Test<'_>, diagnostics: &mut Diagnostics) {
    let (own, own_types) = match (test.pipeline, test.swarm) {
        (Some(pipeline), _) => {
            let own = model.pipelines[pipeline].ast.params.as_slice();
            (own, model.typing.pipelines[pipeline].own_params.as_slice())
        }
        // A swarm has none of its own.
        (None, Some(_)) => Default::default(),
        (None, None) => return,
    };
    for (param, value) in &test.params {
        let (declared, kind) = match *param {
            ParamRef::Pipeline(index) => (&own[index], &own_types[index]),
            ParamRef::Spec(index) => (&model.spec.params[index], &model.typing.params[index]),
        };
        if let Some(wrong) = model.typing.types.describe_misfit(kind, &Limits::default(), &value.value, "it") {
            let name = &declared.name.value;
            let diagnostic = Diagnostic::new(
                Code::TypeMismatch,
                format!("parameter `{name}` is `{kind}`, and its value does not fit: {wrong}"),
            )
            .label(value.span, wrong)
            .label(declared.kind.span, format!("`{kind}`"))
            .help(format!("give `{name}` a value of its type"));
            diagnostics.push(diagnostic);
        }
    }
    // One that is misspelt is not missing besides.
    if test.params.len() < test.ast.params.len() {
        return;
    }
    let given = |wanted: ParamRef| test.params.iter().any(|(param, _)| *param == wanted);
    let needed = |param: &ast::Param, kind: &Type| param.default.is_none() && kind.lack == Lack::NEVER;
    let inner = own.iter().zip(own_types).enumerate();
    let inner = inner.filter(|(index, (param, kind))| needed(param, kind) && !given(ParamRef::Pipeline(*index)));
    let outer = model.spec.params.iter().zip(&model.typing.params).enumerate();
    let outer = outer.filter(|(index, (param, kind))| {
        let wanted = model.uses.params[*index] || model.tables.modules.is_own(param.name.span);
        wanted && needed(param, kind) && !given(ParamRef::Spec(*index))
    });
    for (_, (param, _)) in inner.chain(outer) {
        let (name, test) = (&param.name, &test.ast.name);
        let diagnostic = Diagnostic::new(
            Code::TypeMismatch,
            format!("test `{}` gives parameter `{}` no value", test.value, name.value),
        )
        .label(test.span, format!("`param {}=…` is missing", name.value))
        .label(name.span, "declared here without a default")
        .help(format!("write `param {}=\"…\"` in the test", name.value));
        diagnostics.push(diagnostic);
    }
}

fn find_step<'m>(model: &'m Model<'_>, found: StepRef) -> &'m Step<'m> {
    &model.pipelines[found.pipeline].steps[found.step]
}

fn check_fake(model: &Model<'_>, fake: &Fake<'_>, diagnostics: &mut Diagnostics) {
    for &found in &fake.steps {
        let step = find_step(model, found);
        let problem = match fake.ast.part {
            Part::Check(number) => no_check(fake, step, number),
            Part::Fix => no_fix(fake, step),
            Part::Tool => no_tool(fake, step),
            Part::Body => check_body(model, fake, step),
        };
        // Of the steps that a fake is for, one that it does not fit is enough.
        if let Some(problem) = problem {
            diagnostics.push(problem);
            return;
        }
    }
}

fn no_check(fake: &Fake<'_>, step: &Step<'_>, number: u32) -> Option<Diagnostic> {
    let (count, name) = (step.ast.checks.len(), step.name());
    let there = usize::try_from(number).is_ok_and(|number| number <= count);
    let message = match count {
        0 => format!("step `{name}` has no `check`"),
        1 => format!("step `{name}` has one `check`, and no number {number}"),
        _ => format!("step `{name}` has {count} checks, and no number {number}"),
    };
    let diagnostic = Diagnostic::new(Code::UnknownReference, message)
        .label(fake.ast.part_span, "not there")
        .label(step.ast.name.span, "the step")
        .help("checks count from 1, in the order of the step");
    (!there).then_some(diagnostic)
}

fn no_fix(fake: &Fake<'_>, step: &Step<'_>) -> Option<Diagnostic> {
    let name = step.name();
    let diagnostic = Diagnostic::new(Code::WrongValue, format!("step `{name}` has no agent that mends its failure"))
        .label(fake.ast.part_span, "no agent is asked")
        .label(step.ast.name.span, "no `on-failure fix`")
        .help("remove `fix=`, or write `on-failure fix agent=…` in the step");
    step.fixer.is_none().then_some(diagnostic)
}

/// Reports a fake for a tool of a step: only members of swarms call tools through the run.
fn no_tool(fake: &Fake<'_>, step: &Step<'_>) -> Option<Diagnostic> {
    let message = format!("the tools that step `{}` calls are not faked", step.name());
    let diagnostic = Diagnostic::new(Code::WrongValue, message)
        .label(fake.ast.part_span, "only members of swarms call tools here")
        .label(step.ast.name.span, "the step")
        .help("remove `tool=`: a fake gives the result of the whole turn");
    Some(diagnostic)
}

fn check_body(model: &Model<'_>, fake: &Fake<'_>, step: &Step<'_>) -> Option<Diagnostic> {
    let name = step.name();
    let nothing = |why: String, help: &str| {
        let diagnostic = Diagnostic::new(Code::WrongValue, why)
            .label(fake.ast.step.span, "nothing to fake")
            .label(step.ast.name.span, "the step")
            .help(help);
        Some(diagnostic)
    };
    let kind = step.kind()?;
    match kind {
        _ if kind.takes_turn() => match (&fake.ast.choice, &step.ast.on_failure) {
            (Some(choice), ast::OnFailure::Escalate(_)) => no_option(step, choice, ESCALATED),
            (Some(choice), _) => {
                let diagnostic = Diagnostic::new(Code::WrongValue, format!("step `{name}` asks no person to choose"))
                    .label(choice.span, "no person chooses")
                    .label(step.ast.name.span, "no gate")
                    .help(format!("say what it answers: `fake {name} \"…\"`"));
                Some(diagnostic)
            }
            (None, _) => check_fields(fake, &[]).or_else(|| check_text(model, fake, step)),
        },
        StepKind::Gate => check_gate(model, fake, step),
        StepKind::Call => nothing(
            format!("step `{name}` calls a pipeline, so it cannot be faked itself"),
            "fake the steps of that pipeline",
        ),
        StepKind::Loop => {
            nothing(format!("step `{name}` is a loop, so it cannot be faked itself"), "fake the steps in it")
        }
        StepKind::Swarm => nothing(
            format!("step `{name}` starts a swarm, so it cannot be faked itself"),
            "fake the members of that swarm",
        ),
        kind => {
            nothing(format!("step `{name}` is {}, so it cannot be faked", kind.noun()), "fake the steps that it reads")
        }
    }
}

fn check_gate(model: &Model<'_>, fake: &Fake<'_>, step: &Step<'_>) -> Option<Diagnostic> {
    let gate = step.body.gate()?;
    let name = step.name();
    let text = fake.ast.texts.first().map(|text| text.span).or(fake.ast.file.as_ref().map(|path| path.span(0..0)));
    if let Some(place) = text.or(fake.ast.exit_span) {
        let diagnostic = Diagnostic::new(Code::WrongValue, format!("`{name}` is a gate, so its fake needs a choice"))
            .label(place, "not what a person answers")
            .help(format!("write `fake {name} choice={}`", gate.options.first().map_or("…", |it| &it.value)));
        return Some(diagnostic);
    }
    let Some(choice) = &fake.ast.choice else {
        let options = gate.options.iter().map(|option| option.value.as_str());
        let diagnostic = Diagnostic::new(Code::WrongValue, format!("gate `{name}` is given no choice"))
            .label(fake.ast.step.span, "`choice=` is missing")
            .help(format!("write `choice=` with {}", suggest::format_list(options, "or")));
        return Some(diagnostic);
    };
    let options: Vec<&str> = gate.options.iter().map(|option| option.value.as_str()).chain(["fail"]).collect();
    if let Some(problem) = no_option(step, choice, &options) {
        return Some(problem);
    }
    let Kind::Record(record) = &step.output.kind else { return None };
    let asked: Vec<&str> = gate.asks.iter().map(|ask| ask.name.value.as_str()).collect();
    if let Some(problem) = check_fields(fake, &asked) {
        return Some(problem);
    }
    for (field, value) in &fake.ast.fields {
        let Some(declared) = record.fields.iter().find(|declared| declared.name == field.value) else { continue };
        if let Some(wrong) = model.typing.types.describe_misfit(&declared.kind, &declared.limits, &value.value, "it") {
            let message = format!(
                "field `{}` of gate `{name}` is `{}`, and this value does not fit: {wrong}",
                field.value, declared.kind
            );
            let diagnostic = Diagnostic::new(Code::TypeMismatch, message)
                .label(value.span, wrong)
                .label(declared.span, "asked for here")
                .help("give it a value of its type");
            return Some(diagnostic);
        }
    }
    let given = |ask: &&ast::Field| fake.ast.fields.iter().any(|(field, _)| field.value == ask.name.value);
    let missing = gate.asks.iter().find(|ask| !ask.kind.optional && choice.value != "fail" && !given(ask))?;
    let diagnostic = Diagnostic::new(
        Code::TypeMismatch,
        format!("gate `{name}` asks for `{}`, but the answer does not have it", missing.name.value),
    )
    .label(fake.ast.step.span, format!("`{}` is missing", missing.name.value))
    .label(missing.name.span, "asked for here")
    .help(format!("write `fake {name} choice={} {{ {} … }}`", choice.value, missing.name.value));
    Some(diagnostic)
}

/// Reports a field that the gate does not ask for.
fn check_fields(fake: &Fake<'_>, asked: &[&str]) -> Option<Diagnostic> {
    let (field, _) = fake.ast.fields.iter().find(|(field, _)| !asked.contains(&field.value.as_str()))?;
    let (close, help) = suggest::did_you_mean(&field.value, asked, "it asks for ");
    let step = &fake.ast.step.value;
    let diagnostic =
        Diagnostic::new(Code::UnknownField, format!("nothing asks for `{}` at step `{step}`", field.value))
            .label(field.span, "not asked for");
    let diagnostic = match help {
        Some(help) => diagnostic.help(help),
        None => diagnostic.help("remove it: only gates ask for fields, with `ask`"),
    };
    Some(match close {
        Some(close) => diagnostic.write_near(field.span, close),
        None => diagnostic,
    })
}

fn no_option(step: &Step<'_>, choice: &Name, options: &[&str]) -> Option<Diagnostic> {
    if options.contains(&choice.value.as_str()) {
        return None;
    }
    let (close, help) = suggest::did_you_mean(&choice.value, options, "it has ");
    let what = if step.kind().is_some_and(StepKind::asks_person) { "gate" } else { "step" };
    let message = format!("{what} `{}` has no option `{}`", step.name(), choice.value);
    let diagnostic =
        Diagnostic::new(Code::UnknownReference, message).label(choice.span, "not an option").help_maybe(help);
    Some(match close {
        Some(close) => diagnostic.write_near(choice.span, close),
        None => diagnostic,
    })
}

/// A text that is not of the type that its step declares.
fn check_text(model: &Model<'_>, fake: &Fake<'_>, step: &Step<'_>) -> Option<Diagnostic> {
    // What comes too late is never read.
    let limits = [step.ast.timeout_ms, step.ast.idle_ms];
    let is_late = limits.into_iter().flatten().any(|limit| fake.ast.delay_ms > limit);
    let kind = step.declared.as_ref().filter(|_| fake.ast.exit == 0 && !fake.ast.unchecked && !is_late)?;
    let path = fake.ast.file.as_ref().map(|path| path.span(0..path.as_str().len()));
    let none = (path.is_none() && fake.ast.texts.is_empty()).then_some(("", fake.ast.step.span));
    let texts = fake.ast.texts.iter().map(|text| (text.value.as_str(), text.span));
    let mut texts = texts.chain(fake.file.as_deref().zip(path)).chain(none);
    let (wrong, place) = texts.find_map(|(text, place)| {
        Some((model.typing.types.describe_misfit(kind, &Limits::default(), text, "it")?, place))
    })?;
    let message = format!("the output of `{}` is `{kind}`, and its fake does not fit: {wrong}", step.name());
    let diagnostic = Diagnostic::new(Code::TypeMismatch, message)
        .label(place, wrong)
        .label(step.ast.output.kind.as_ref().map_or(step.ast.name.span, |kind| kind.span), format!("`{kind}`"))
        .help(match model.typing.types.write_example(kind) {
            Some(example) if matches!(model.typing.types.underlying_kind(&kind.kind), Kind::Enum(_)) => {
                format!("write one of its words, as `{example}`; to test a wrong answer, add `unchecked=#true`")
            }
            Some(example) => {
                format!("write JSON of this type, as `#\"{example}\"#`; to test a wrong answer, add `unchecked=#true`")
            }
            None => "write JSON of this type; to test a wrong answer, add `unchecked=#true`".to_owned(),
        });
    Some(diagnostic)
}

fn check_expectation(model: &Model<'_>, kind: &ExpectKind, steps: &[Vec<StepRef>], diagnostics: &mut Diagnostics) {
    for holds in kind.holds() {
        if let Hold::Matches(pattern) = &holds.hold
            && let Some(fault) =
                pattern::find_fault(pattern).or(pattern::is_large(pattern).then_some("it is too large"))
        {
            let diagnostic = Diagnostic::new(Code::WrongValue, format!("this pattern cannot be used: {fault}"))
                .label(holds.span, fault)
                .help("write a regular expression, such as `^PASS`");
            diagnostics.push(diagnostic);
        }
    }
    let found = || steps.iter().flatten().map(|&found| find_step(model, found));
    match kind {
        ExpectKind::Prompt(name, ..) => {
            let asks = |step: &Step<'_>| match step.kind() {
                Some(StepKind::Run) => step.stdin.is_some(),
                kind => kind.is_none_or(|kind| kind == StepKind::Prompt || kind.asks_person()),
            };
            if let Some(silent) = found().next().filter(|_| !found().any(asks)) {
                let diagnostic =
                    Diagnostic::new(Code::WrongValue, format!("step `{}` has no prompt to check", name.value))
                        .label(name.span, "no prompt, no `stdin` and no message")
                        .label(silent.ast.name.span, "the step")
                        .help(format!("look at its value: `output {} contains=…`", name.value));
                diagnostics.push(diagnostic);
            }
        }
        ExpectKind::Team { of, agent, .. } => check_team(model, (of.as_ref(), agent.as_ref()), steps, diagnostics),
        ExpectKind::Rounds(Some(name), _) => {
            let is_loop = |step: &Step<'_>| step.kind() == Some(StepKind::Loop);
            if let Some(other) = found().next().filter(|_| !found().any(is_loop)) {
                let diagnostic = Diagnostic::new(Code::WrongValue, format!("step `{}` is no loop", name.value))
                    .label(name.span, "has no rounds")
                    .label(other.ast.name.span, "the step")
                    .help("name a `loop`, or leave `of=` out for the rounds of the pipeline");
                diagnostics.push(diagnostic);
            }
        }
        _ => {}
    }
}

/// What is expected of a swarm with a coordinator that the spec does not have, or of an agent that is not in it.
fn check_team(
    model: &Model<'_>,
    (of, agent): (Option<&Name>, Option<&Name>),
    steps: &[Vec<StepRef>],
    diagnostics: &mut Diagnostics,
) {
    let teams = || model.spec.swarms.iter().filter(|swarm| swarm.coordinator().is_some());
    if let Some(of) = of {
        let found = || steps.iter().flatten().map(|&found| find_step(model, found));
        let runs_team = |step: &Step<'_>| matches!(&step.ast.body, Some(ast::Body::Swarm { swarm, .. }) if teams().any(|team| team.name.value == swarm.value));
        if let Some(other) = found().next().filter(|_| !found().any(runs_team)) {
            let diagnostic =
                Diagnostic::new(Code::WrongValue, format!("step `{}` runs no swarm with a coordinator", of.value))
                    .label(of.span, "has no plan")
                    .label(other.ast.name.span, "the step")
                    .help("name the step whose `swarm` has a `coordinator`, or leave `of=` out");
            diagnostics.push(diagnostic);
        }
    }
    let Some(agent) = agent else { return };
    let known: Vec<&str> = teams().flat_map(|team| team.party_names()).map(|name| name.value.as_str()).collect();
    // A coordinator may name the agents that it adds, and a run those that have no name.
    let is_open = teams().any(|team| team.spawns.is_some() || !team.groups.is_empty());
    if known.is_empty() || known.contains(&agent.value.as_str()) || is_open {
        return;
    }
    let (close, help) = suggest::did_you_mean(&agent.value, &known, "the agents are ");
    let message = format!("no swarm with a coordinator has an agent `{}`", agent.value);
    let diagnostic =
        Diagnostic::new(Code::UnknownReference, message).label(agent.span, "not one of its agents").help_maybe(help);
    diagnostics.push(match close {
        Some(close) => diagnostic.write_near(agent.span, close),
        None => diagnostic,
    });
}
