//! What a person says to a run: which gate or request an answer is for, and whether the run takes it.
//!
//! In: words that people type, and a run that was read back. Out: the answer as the run takes it, or a [`Problem`]. Nothing
//! is sent. The run decides for itself once more: what was open here may be answered when the answer comes.

use std::borrow::Cow;

use swarmc_plan::{Gate, Plan};
use swarmc_runtime::{AnsweredBy, Choice, Event, GateAnswer, RunFolder, StepId};

use crate::approvals::{OpenRequest, describe_answerer, describe_verdict, format_choices};
use crate::past::Past;
use crate::problem::{Problem, did_you_mean};
use crate::run_report::{Row, RowState, RunReport};
use crate::step_names::{matches_step, split_agent};

/// What waits for an answer.
#[derive(Clone, Debug)]
pub enum OpenQuestion<'r> {
    /// A request of an agent.
    Request(&'r OpenRequest),
    /// A gate.
    Gate(StepId),
}

impl OpenQuestion<'_> {
    /// Its name, in words.
    pub fn describe(&self) -> String {
        match self {
            OpenQuestion::Request(open) => format!("approval {}", open.request.id),
            OpenQuestion::Gate(step) => format!("gate {}", step.label()),
        }
    }

    /// What it can be answered with, as `a|b`; `CHOICE` where that is not known.
    pub fn format_choices(&self, plan: &Plan) -> String {
        match self {
            OpenQuestion::Request(open) => format_choices(&open.request.wants),
            OpenQuestion::Gate(step) => {
                declared_gate(plan, step).map_or("CHOICE".to_owned(), |gate| gate.options.join("|"))
            }
        }
    }

    /// Refuses an answer that it does not have, with what it has.
    fn check_choice(&self, plan: &Plan, typed: &GateAnswer) -> Result<(), Problem> {
        let choice = &typed.choice;
        let step = match self {
            OpenQuestion::Request(open) => {
                let choices = open.request.wants.choices();
                if Choice::from_word(choice).is_some_and(|choice| choices.contains(&choice)) {
                    return Ok(());
                }
                let help = did_you_mean(choice, choices.iter().map(|choice| choice.as_str()));
                let message = format!("{} cannot be answered with `{choice}`", open.describe());
                return Err(Problem::with_help(message, help));
            }
            OpenQuestion::Gate(step) => step,
        };
        // Where several steps have the name, only the run knows which of them asks: it checks the answer itself.
        let Some(gate) = declared_gate(plan, step) else { return Ok(()) };
        if !gate.options.iter().any(|option| option == choice) {
            let help = did_you_mean(choice, gate.options.iter().map(String::as_str));
            return Err(Problem::with_help(format!("gate `{}` has no option `{choice}`", step.name), help));
        }
        for (name, _) in &typed.fields {
            if gate.ask.iter().all(|ask| ask.name != *name) {
                let help = did_you_mean(name, gate.ask.iter().map(|ask| ask.name.as_str()));
                return Err(Problem::with_help(format!("gate `{}` does not ask for `{name}`", step.name), help));
            }
        }
        Ok(())
    }

    /// How the run knows it.
    fn id(&self) -> String {
        match self {
            OpenQuestion::Request(open) => open.request.id.to_string(),
            OpenQuestion::Gate(step) => step.to_string(),
        }
    }
}

/// Whether an agent of the run asked, or asks, with this number.
pub fn has_request(past: &Past, word: &str) -> bool {
    let number = word.parse().ok();
    number.is_some_and(|id| past.find_verdict(id).is_some() || past.build_report().approvals.contains_key(&id))
}

/// What a word asks to answer: a request by its number, or by the step, or the agent of a swarm, that waits with it; a gate
/// by its name.
///
/// # Errors
/// It names nothing that waits, or several things.
pub fn find_question<'r>(past: &Past, report: &'r RunReport, word: &str) -> Result<OpenQuestion<'r>, Problem> {
    let request = find_request(past, report, word)?;
    if let Some(problem) = word.parse().ok().and_then(|id| find_answer(past, report, id)) {
        return Err(problem);
    }
    request
        .map_or_else(|| find_gate(past, report, word).map(OpenQuestion::Gate), |open| Ok(OpenQuestion::Request(open)))
}

/// What was said to a request or a gate, by its number or its id, in a few words; none where no answer has come.
pub fn describe_answer(past: &Past, key: &str) -> Option<String> {
    if let Ok(id) = key.parse() {
        return past.find_verdict(id).map(|(_, verdict)| describe_verdict(verdict));
    }
    past.records.iter().rev().find_map(|record| match &record.event {
        Event::GateAnswered { step, choice, by, .. } if step.to_string() == key => {
            Some(format!("{}, by {}", choice.as_deref().unwrap_or("failed"), describe_answerer(*by)))
        }
        _ => None,
    })
}

/// The answer as the run takes it: `typed` names what it is for as a person does. With it, what it is for.
///
/// # Errors
/// The run has ended, nothing of that name waits, or it cannot be answered so.
pub fn resolve_answer<'r>(
    past: &Past,
    report: &'r RunReport,
    typed: GateAnswer,
) -> Result<(GateAnswer, OpenQuestion<'r>), Problem> {
    // The answer that was faster may have ended the run.
    check_unfinished(report).map_err(|ended| find_given(past, report, &typed.gate).unwrap_or(ended))?;
    let question = find_question(past, report, &typed.gate)?;
    question.check_choice(&past.plan, &typed)?;
    Ok((GateAnswer { gate: question.id(), ..typed }, question))
}

/// Refuses answers to a run that has ended.
///
/// # Errors
/// It has.
pub fn check_unfinished(report: &RunReport) -> Result<(), Problem> {
    if report.finished.is_none() {
        return Ok(());
    }
    let message = format!("run `{}` has ended: nothing waits for an answer", report.run);
    Err(Problem::with_help(message, "`swarmc ps` lists the runs that wait for an answer"))
}

/// Refuses answers to a run that no process runs.
///
/// # Errors
/// None does.
pub fn check_running(folder: &RunFolder) -> Result<(), Problem> {
    require_runner(folder, "; the request still waits then")
}

/// Refuses messages to a run that has ended, or that no process runs.
///
/// # Errors
/// It accepts none.
pub fn check_receiver(folder: &RunFolder, report: &RunReport) -> Result<(), Problem> {
    if report.finished.is_some() {
        return Err(Problem::new(format!("run `{}` has ended: it accepts no messages", folder.id)));
    }
    require_runner(folder, ", and send the message again")
}

fn require_runner(folder: &RunFolder, then: &str) -> Result<(), Problem> {
    if folder.is_running() {
        return Ok(());
    }
    let help = format!("continue it with `swarmc resume {}`{then}", folder.id);
    Err(Problem::with_help(format!("run `{}` is not running", folder.id), help))
}

/// The open request that a word names: by its number, or by the step, or the agent of a swarm, that waits with it. None
/// where it names no request, which a gate may be.
fn find_request<'r>(past: &Past, report: &'r RunReport, word: &str) -> Result<Option<&'r OpenRequest>, Problem> {
    if let Ok(id) = word.parse::<u32>() {
        return Ok(report.approvals.get(&id));
    }
    let asks = |row: &Row| row.state == RowState::Asking && matches_step(report, &row.step, word);
    // A gate of this name that asks goes before requests; `find_gate` finds it.
    if report.rows.iter().any(asks) {
        return Ok(None);
    }
    let (step, agent) = split_agent(past, word);
    let fits = |open: &&OpenRequest| {
        matches_step(report, &open.step, step) && agent.is_none_or(|agent| *open.request.agent == *agent)
    };
    match report.approvals.values().filter(fits).collect::<Vec<_>>()[..] {
        [] => Ok(None),
        [only] => Ok(Some(only)),
        ref several => {
            let numbers: Vec<String> = several.iter().map(|open| open.request.id.to_string()).collect();
            let help = format!("name one by its number: {}", numbers.join(", "));
            Err(Problem::with_help(format!("several requests of `{word}` wait for an answer"), help))
        }
    }
}

/// What was said to a request already; none where it waits, or never was there.
fn find_answer(past: &Past, report: &RunReport, id: u32) -> Option<Problem> {
    let (step, verdict) = past.find_verdict(id)?;
    let label = report.label(step);
    let help = match verdict.by {
        AnsweredBy::Timeout => format!(
            "`swarmc send {} {label} TEXT` writes to its agent; `policy {{ on-timeout … after=… }}` says how long a request waits",
            report.run
        ),
        _ => format!("`swarmc inspect {} {label}` shows what was asked and answered", report.run),
    };
    Some(Problem::with_help(format!("approval {id} is already answered: {}", describe_verdict(verdict)), help))
}

/// What was said already to what a word means: the number of a request, or a gate.
fn find_given(past: &Past, report: &RunReport, word: &str) -> Option<Problem> {
    word.parse().ok().and_then(|id| find_answer(past, report, id)).or_else(|| find_gate_answer(past, report, word))
}

/// What was said to the last gate that a word means; none where it means none that has an answer.
fn find_gate_answer(past: &Past, report: &RunReport, word: &str) -> Option<Problem> {
    let rows = report.rows.iter().rev().filter(|row| matches_step(report, &row.step, word));
    let (step, said) =
        rows.filter_map(|row| Some((&row.step, describe_answer(past, &row.step.to_string())?))).next()?;
    let label = report.label(step);
    let help = format!("`swarmc inspect {} {label}` shows what was asked and answered", report.run);
    Some(Problem::with_help(format!("gate {label} is already answered: {said}"), help))
}

/// The gate of this name that waits for an answer.
fn find_gate(past: &Past, report: &RunReport, word: &str) -> Result<StepId, Problem> {
    let asking: Vec<&StepId> =
        report.rows.iter().filter(|row| row.state == RowState::Asking).map(|row| &row.step).collect();
    let fits = |step: &&&StepId| matches_step(report, step, word);
    match asking.iter().filter(fits).collect::<Vec<_>>()[..] {
        [step] => Ok((*step).clone()),
        [] if let Some(answered) = find_gate_answer(past, report, word) => Err(answered),
        [] if asking.is_empty() && !report.approvals.is_empty() => Err(Problem::with_help(
            format!("no `{word}` waits for an answer"),
            format!("`swarmc approve {}` lists what waits", report.run),
        )),
        [] if asking.is_empty() => Err(Problem::new(format!("nothing of run `{}` waits for an answer", report.run))),
        [] => {
            let labels: Vec<String> = asking.iter().map(|step| step.label()).collect();
            let help = did_you_mean(word, labels.iter().map(String::as_str));
            Err(Problem::with_help(format!("no gate `{word}` of run `{}` waits for an answer", report.run), help))
        }
        ref several => {
            let names: Vec<String> = several.iter().map(|step| format!("`{step}`")).collect();
            let help = format!("name one of {}", names.join(", "));
            Err(Problem::with_help(format!("several gates `{word}` wait for an answer"), help))
        }
    }
}

/// The gate of a step as the plan declares it; none where several steps have the name.
fn declared_gate<'p>(plan: &'p Plan, step: &StepId) -> Option<Cow<'p, Gate>> {
    let mut gates = plan
        .pipelines
        .iter()
        .flat_map(|pipeline| pipeline.all_steps())
        .filter_map(|found| if *found.name == *step.name { found.effective_gate() } else { None });
    let gate = gates.next()?;
    gates.next().is_none().then_some(gate)
}
