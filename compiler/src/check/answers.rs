//! SW005: a task whose provider has recorded answers, and none for it.

use std::collections::BTreeSet;

use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::model::{Body, Model, Provider, Step};

pub(super) fn check(model: &Model<'_>, diagnostics: &mut Diagnostics) {
    let known: BTreeSet<&str> =
        model.pipelines.iter().flat_map(|pipeline| &pipeline.steps).map(|step| step.name()).collect();
    // Where a name is misspelt, that is what is wrong.
    let misspelt = |provider: &Provider<'_>| {
        let tasks =
            provider.ast.script.iter().flat_map(|script| &script.answers).filter_map(|answer| answer.task.as_ref());
        tasks.into_iter().any(|task| !known.contains(task.value.as_str()))
    };
    let misspelt: Vec<bool> = model.providers.iter().map(misspelt).collect();
    for step in model.pipelines.iter().flat_map(|pipeline| &pipeline.steps) {
        let provider = step.agent.and_then(|agent| model.agents[agent].provider).filter(|&index| !misspelt[index]);
        let provider = provider.map(|index| &model.providers[index]);
        if let (Body::Prompt(_), Some(provider)) = (&step.body, provider)
            && provider.ast.script.is_some()
            && !answers(provider, step)
        {
            diagnostics.push(unanswered(provider, step));
        }
    }
}

/// Whether something answers the first attempt. Which rounds a step runs in is known only at run time.
fn answers(provider: &Provider<'_>, step: &Step<'_>) -> bool {
    let answers = provider.ast.script.iter().flat_map(|script| &script.answers);
    answers.into_iter().any(|answer| {
        answer.task.as_ref().is_none_or(|task| task.value == step.name())
            && answer.attempt.is_none_or(|number| number == 1)
    })
}

fn unanswered(provider: &Provider<'_>, step: &Step<'_>) -> Diagnostic {
    let (name, task) = (&provider.ast.name, step.name());
    Diagnostic::new(Code::WrongValue, format!("provider `{}` has no recorded answer for task `{task}`", name.value))
        .label(step.ast.name.span, "nothing answers its first attempt")
        .label(name.span, "the answers are recorded here")
        .help(format!("write `answer \"…\" task={task}` in its `script`, or an `answer` without `task=` for all tasks"))
}
