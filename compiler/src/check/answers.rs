//! SW005: a task whose provider has recorded answers, and none for it.

use std::collections::BTreeSet;

use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::model::{Body, Model, Provider, Step};

pub(super) fn check(model: &Model<'_>, diagnostics: &mut Diagnostics) {
    let tapes: Vec<Option<Tape<'_>>> = model.providers.iter().map(Tape::of).collect();
    let known: BTreeSet<&str> =
        model.pipelines.iter().flat_map(|pipeline| &pipeline.steps).map(|step| step.name()).collect();
    for step in model.pipelines.iter().flat_map(|pipeline| &pipeline.steps) {
        let provider = step.agent.and_then(|agent| model.agents[agent].provider);
        let Some((provider, tape)) = provider.and_then(|index| Some((&model.providers[index], tapes[index].as_ref()?)))
        else {
            continue;
        };
        // Where a name is misspelt, that is what is wrong.
        let misspelt = || !tape.tasks.is_subset(&known);
        if matches!(step.body, Body::Prompt(_)) && !tape.any && !tape.first.contains(step.name()) && !misspelt() {
            diagnostics.push(unanswered(provider, step));
        }
    }
}

/// What the recorded answers of a provider are for.
struct Tape<'a> {
    /// The tasks that answers name.
    tasks: BTreeSet<&'a str>,
    /// Those whose first attempt is answered. Which rounds a step runs in is known only at run time.
    first: BTreeSet<&'a str>,
    /// Whether the first attempt of any task is.
    any: bool,
}

impl<'a> Tape<'a> {
    fn of(provider: &Provider<'a>) -> Option<Tape<'a>> {
        let mut tape = Tape { tasks: BTreeSet::new(), first: BTreeSet::new(), any: false };
        for answer in &provider.ast.script.as_ref()?.answers {
            let first = [answer.attempt, answer.turn].into_iter().flatten().all(|number| number == 1);
            match &answer.task {
                Some(task) => {
                    tape.tasks.insert(&task.value);
                    if first {
                        tape.first.insert(&task.value);
                    }
                }
                None => tape.any |= first,
            }
        }
        Some(tape)
    }
}

fn unanswered(provider: &Provider<'_>, step: &Step<'_>) -> Diagnostic {
    let (name, task) = (&provider.ast.name, step.name());
    Diagnostic::new(Code::WrongValue, format!("provider `{}` has no recorded answer for task `{task}`", name.value))
        .label(step.ast.name.span, "nothing answers its first attempt")
        .label(name.span, "the answers are recorded here")
        .help(format!("write `answer \"…\" task={task}` in its `script`, or an `answer` without `task=` for all tasks"))
}
