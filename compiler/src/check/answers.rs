//! SW005: a task, or a member of a swarm, whose provider has recorded answers, and none for it. SW103: a recorded answer that
//! is never given, since one before it fits wherever it does.

use std::collections::{BTreeSet, HashMap};

use crate::ast::{self, Name};
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::model::{Body, Model, Provider};

pub(super) fn check(model: &Model<'_>, diagnostics: &mut Diagnostics) {
    never_given(model, diagnostics);
    let tapes: Vec<Option<RecordedAnswers<'_>>> = model.providers.iter().map(RecordedAnswers::from_provider).collect();
    let steps = || model.pipelines.iter().flat_map(|pipeline| &pipeline.steps);
    let members = model.spec.swarms.iter().flat_map(|swarm| swarm.party_names().map(|name| name.value.as_str()));
    let known: BTreeSet<&str> = steps().map(|step| step.name()).chain(members).collect();
    let mut asked = |agent: Option<usize>, what: &str, name: &Name| {
        let provider = agent.and_then(|agent| model.agents[agent].provider);
        let tape = provider.and_then(|index| Some((&model.providers[index], tapes[index].as_ref()?)));
        let Some((provider, tape)) = tape else { return };
        // Where a name is misspelt, that is what is wrong.
        let misspelt = || !tape.tasks.is_subset(&known);
        if !tape.any && !tape.first.contains(name.value.as_str()) && !misspelt() {
            diagnostics.push(report_unanswered(provider, what, name));
        }
    };
    for step in steps().filter(|step| matches!(step.body, Body::Prompt(_))) {
        asked(step.agent, "task", &step.ast.name);
    }
    for swarm in &model.swarms {
        for (written, member) in swarm.ast.members.iter().zip(&swarm.members) {
            asked(member.agent, "member", &written.name);
        }
    }
}

/// What an answer fits: its task, round, attempt, turn and item; none is any.
type Fits<'a> = (Option<&'a str>, [Option<u32>; 4]);

fn make_fits(answer: &ast::Answer) -> Fits<'_> {
    let task = answer.task.as_ref().map(|task| task.value.as_str());
    (task, [answer.iteration, answer.attempt, answer.turn, answer.index])
}

/// Everything that fits wherever this does: each of its parts, or any.
fn list_wider_fits((task, numbers): Fits<'_>) -> impl Iterator<Item = Fits<'_>> {
    // One bit for each of the five parts, the task last.
    (0..1u8 << 5).map(move |kept| {
        let keeps = |part: usize| kept >> part & 1 == 1;
        (task.filter(|_| keeps(4)), std::array::from_fn(|part| numbers[part].filter(|_| keeps(part))))
    })
}

/// Answers that are never given: the first one that fits is.
fn never_given(model: &Model<'_>, diagnostics: &mut Diagnostics) {
    let own = model.providers.iter().filter(|provider| model.tables.modules.is_own(provider.ast.name.span));
    for script in own.filter_map(|provider| provider.ast.script.as_ref()) {
        let mut first = HashMap::new();
        for answer in &script.answers {
            // A few lookups replace a comparison with all answers before.
            if let Some(before) = list_wider_fits(make_fits(answer)).find_map(|fits| first.get(&fits)) {
                diagnostics.push(
                    Diagnostic::new(Code::UnusedDefinition, "this answer is never given")
                        .label(answer.span, "never given")
                        .label(*before, "comes first, and fits every turn that the later one fits")
                        .help(
                            "limit the first one to some turns: `task=`, `iteration=`, `attempt=`, `turn=` or `index=`",
                        ),
                );
            }
            first.entry(make_fits(answer)).or_insert(answer.span);
        }
    }
}

/// What the recorded answers of a provider are for.
struct RecordedAnswers<'a> {
    /// The tasks that answers name.
    tasks: BTreeSet<&'a str>,
    /// Those whose first attempt is answered. Which rounds a step runs in is known only at run time.
    first: BTreeSet<&'a str>,
    /// Whether the first attempt of any task is.
    any: bool,
}

impl<'a> RecordedAnswers<'a> {
    fn from_provider(provider: &Provider<'a>) -> Option<RecordedAnswers<'a>> {
        let mut tape = RecordedAnswers { tasks: BTreeSet::new(), first: BTreeSet::new(), any: false };
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

fn report_unanswered(provider: &Provider<'_>, what: &str, asked: &Name) -> Diagnostic {
    let (name, task) = (&provider.ast.name, &asked.value);
    let first = if what == "task" { "attempt" } else { "turn" };
    Diagnostic::new(Code::WrongValue, format!("provider `{}` has no recorded answer for {what} `{task}`", name.value))
        .label(asked.span, format!("nothing answers its first {first}"))
        .label(name.span, "the answers are recorded here")
        .help(format!(
            "write `answer \"…\" task={task}` in its `script`, or an `answer` without `task=` for all {what}s"
        ))
}
