//! SW303: a step that can structurally never run.
//!
//! A join of branches that exclude each other: each of them can run, and never two in one run.

use swarmc_plan::When;

use super::guarded_join::suggest_default;
use super::never_runs::describe_need;
use crate::code::Code;
use crate::diagnostic::Diagnostic;
use crate::flow::Flow;
use crate::model::{Need, Pipeline};

/// The needs of one step that are compared with each other.
const COMPARED: usize = 30;

/// A step whose needs hold on no one route; `bound` are those that must.
pub(super) fn report_conflict<'a>(
    pipeline: &Pipeline<'a>,
    index: usize,
    bound: &[usize],
    flow: &mut Flow<'_, 'a>,
) -> Diagnostic {
    let step = &pipeline.steps[index];
    let name = step.name();
    let compared = &bound[..bound.len().min(COMPARED)];
    let pairs =
        compared.iter().enumerate().flat_map(|(at, &one)| compared[..at].iter().map(move |&other| [other, one]));
    let Some(pair) = pairs.into_iter().find(|pair| !flow.may_hold(index, pair)) else {
        let diagnostic = Diagnostic::new(
            Code::Deadlock,
            format!("step `{name}` can never run: no run fulfils everything that it waits for"),
        );
        let diagnostic = diagnostic.label(step.ast.name.span, "never starts");
        return step
            .needs
            .iter()
            .take(6)
            .fold(diagnostic, |diagnostic, need| {
                diagnostic.label(need.span, format!("needs {}", describe_need(pipeline, need)))
            })
            .help("remove one of the needs, or write `join any`");
    };
    let [one, other] = pair.map(|need| &step.needs[need]);
    let diagnostic = Diagnostic::new(
        Code::Deadlock,
        format!(
            "step `{name}` can never run: there is no run in which `{}` {} and `{}` {}",
            pipeline.steps[one.step].name(),
            outcome_verb(one),
            pipeline.steps[other.step].name(),
            outcome_verb(other)
        ),
    );
    let diagnostic = [other, one].into_iter().fold(diagnostic, |diagnostic, need| {
        diagnostic.label(need.span, format!("needs {}", describe_need(pipeline, need)))
    });
    let diagnostic = [one, other].into_iter().fold(diagnostic, |diagnostic, need| {
        let needed = &pipeline.steps[need.step];
        match &needed.when {
            Some(when) => diagnostic.label(
                when.text.span(0..when.text.as_str().len()),
                format!("`{}` runs when this holds", needed.name()),
            ),
            None => diagnostic,
        }
    });
    match one.declared && other.declared {
        true => {
            diagnostic.help("to run after either of them, write `join any`; to run after both ended, `when=always`")
        }
        false => suggest_default(diagnostic, pipeline, step, if one.declared { other } else { one }),
    }
}

fn outcome_verb(need: &Need) -> &'static str {
    match need.when {
        When::Success => "succeeds",
        When::Failure => "fails",
        When::Any => "runs",
        When::Always => "ends",
    }
}
