//! `swarmc approve`: answers a gate of a running run, from another terminal or from a script.

use std::borrow::Cow;
use std::io::{BufRead, IsTerminal};

use miette::{IntoDiagnostic, miette};
use swarmc_plan::{Gate, Plan};
use swarmc_runtime::{Control, GateAnswer, StepId, answer_gate};

use crate::args::Approve;
use crate::display::Display;
use crate::exit::Exit;
use crate::home::{Past, home};
use crate::ledger::{Ledger, RowState};
use crate::load::did_you_mean;
use crate::terminal;

pub(crate) fn exec(args: &Approve) -> miette::Result<Exit> {
    let folder = home()?.find(&args.run).into_diagnostic()?;
    let past = Past::read(&folder)?;
    let ledger = past.ledger();
    if ledger.finished.is_some() {
        return Err(miette!("run `{}` has ended: no gate waits for an answer", folder.id));
    }
    let step = asking(&ledger, &args.gate)?;
    fits(&past.plan, &step, &args.choice, &args.ask)?;
    if !folder.is_running() {
        let help = format!("go on with `swarmc resume {}`; the gate still waits then, and can be answered", folder.id);
        return Err(miette!(help = help, "run `{}` is not running", folder.id));
    }
    let answer = GateAnswer { gate: step.to_string(), choice: args.choice.clone(), fields: args.ask.clone() };
    answer_gate(&folder, &answer).into_diagnostic()?;
    terminal::eprint(format!("gate {} of run {}: {}\n", step.label(), folder.id, args.choice));
    Ok(Exit::Done)
}

/// The gate of this name that waits for an answer.
fn asking(ledger: &Ledger, word: &str) -> miette::Result<StepId> {
    let asking: Vec<&StepId> =
        ledger.rows.iter().filter(|row| row.state == RowState::Asking).map(|row| &row.step).collect();
    let fits = |step: &&&StepId| *step.name == *word || step.label() == word || step.to_string() == word;
    match asking.iter().filter(fits).collect::<Vec<_>>()[..] {
        [step] => Ok((*step).clone()),
        [] if asking.is_empty() => Err(miette!("no gate of run `{}` waits for an answer", ledger.run)),
        [] => {
            let labels: Vec<String> = asking.iter().map(|step| step.label()).collect();
            let help = did_you_mean(word, labels.iter().map(String::as_str));
            Err(miette!(help = help, "no gate `{word}` of run `{}` waits for an answer", ledger.run))
        }
        ref several => {
            let names: Vec<String> = several.iter().map(|step| format!("`{step}`")).collect();
            Err(miette!(
                help = format!("name one of {}", names.join(", ")),
                "several gates `{word}` wait for an answer"
            ))
        }
    }
}

/// Refuses an answer that the gate does not have, with what it has.
fn fits(plan: &Plan, step: &StepId, choice: &str, ask: &[(String, String)]) -> miette::Result<()> {
    let Some(gate) = gate(plan, step) else { return Ok(()) };
    if !gate.options.iter().any(|option| option == choice) {
        let help = did_you_mean(choice, gate.options.iter().map(String::as_str));
        return Err(miette!(help = help, "gate `{}` has no option `{choice}`", step.name));
    }
    for (name, _) in ask {
        if gate.ask.iter().all(|ask| ask.name != *name) {
            let help = did_you_mean(name, gate.ask.iter().map(|ask| ask.name.as_str()));
            return Err(miette!(help = help, "gate `{}` does not ask for `{name}`", step.name));
        }
    }
    Ok(())
}

/// What is asked, as the plan declares it, where only one step has the name.
pub(crate) fn gate<'a>(plan: &'a Plan, step: &StepId) -> Option<Cow<'a, Gate>> {
    let mut gates = plan
        .pipelines
        .iter()
        .flat_map(|pipeline| pipeline.all_steps())
        .filter_map(|found| if *found.name == *step.name { found.question() } else { None });
    let gate = gates.next()?;
    gates.next().is_none().then_some(gate)
}

/// Has gates answered by what is typed at this terminal: `CHOICE` or `CHOICE FIELD=VALUE …`, for the gate that has
/// waited longest.
pub(crate) fn listen(control: Control, display: Display) {
    if !display.asks() || !std::io::stdin().is_terminal() {
        return;
    }
    // It ends with the process: nobody can take back a read from a terminal.
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            let mut words = line.split_whitespace().map(str::to_owned);
            let (Some(choice), Some(gate)) = (words.next(), display.first_gate()) else { continue };
            let mut fields = Vec::new();
            // The rest of the line is the value: people write sentences.
            let rest = line.trim_start().get(choice.len()..).unwrap_or_default().trim();
            if let Some((name, value)) = rest.split_once('=') {
                fields.push((name.trim().to_owned(), value.trim().to_owned()));
            }
            if let Err(problem) = control.answer(GateAnswer { gate: gate.to_string(), choice, fields }) {
                display.tell(&problem);
            }
        }
    });
}
