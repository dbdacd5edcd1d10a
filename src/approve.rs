//! `swarmc approve`: answers a gate of a run or a request of its agents, from another terminal or from a script.

use std::fmt::Write;
use std::io::{BufRead, IsTerminal};
use std::time::Duration;

use miette::{IntoDiagnostic, miette};
use swarmc_runtime::{Choice, Control, GateAnswer, RunFolder, StepId, answer_gate};
use swarmc_view::{
    RunReport, check_running, check_unfinished, find_question, format_duration, has_request, list_questions, now_ms,
    resolve_answer,
};

use crate::args::Approve;
use crate::display::Display;
use crate::exit::Exit;
use crate::home::{find_home, read_past};
use crate::problem::to_report;
use crate::target::{find_target, refuse_more};
use crate::terminal::{self, Stream};

/// How often the journal is read for an answer that was faster, and after how long again.
const LOOKS: u32 = 5;
const LOOK: Duration = Duration::from_millis(40);

pub(crate) fn exec(args: &Approve) -> miette::Result<Exit> {
    let target = find_target(&find_home()?, &[&args.run, &args.gate, &args.choice], has_request)?;
    refuse_more(&target.rest, 2, "swarmc approve [RUN] GATE|REQUEST CHOICE, with the reason as --because TEXT")?;
    let folder = target.folder;
    let past = read_past(&folder)?;
    let ledger = past.build_report();
    check_unfinished(&ledger).map_err(to_report)?;
    let Some(word) = target.rest.first() else {
        return match args.because.is_some() || args.arguments.is_some() || !args.ask.is_empty() {
            true => Err(miette!(help = "swarmc approve [RUN] GATE|REQUEST CHOICE", "say what is answered, and how")),
            false => list_waiting(&ledger, &folder),
        };
    };
    let Some(choice) = target.rest.get(1) else {
        let options = find_question(&past, &ledger, word).map_err(to_report)?.format_choices(&past.plan);
        return Err(miette!(help = format!("swarmc approve {} {word} {options}", folder.id), "give the answer"));
    };
    let (because, arguments) = (args.because.clone(), args.arguments.clone());
    let typed = GateAnswer { gate: word.clone(), choice: choice.clone(), fields: args.ask.clone(), because, arguments };
    let (answer, question) = resolve_answer(&past, &ledger, typed).map_err(to_report)?;
    check_running(&folder).map_err(to_report)?;
    if let Err(error) = answer_gate(&folder, &answer) {
        // Where another answer was faster, its words say more; they come to the journal in a moment.
        for _ in 0..LOOKS {
            let past = read_past(&folder)?;
            resolve_answer(&past, &past.build_report(), answer.clone()).map_err(to_report)?;
            std::thread::sleep(LOOK);
        }
        return Err(error).into_diagnostic();
    }
    terminal::eprint(format!("{} of run {}: {choice}\n", question.describe(), folder.id));
    Ok(Exit::Done)
}

/// Says what waits, who wants it, since when, and what to type.
fn list_waiting(ledger: &RunReport, folder: &RunFolder) -> miette::Result<Exit> {
    let paint = Stream::Out.paint();
    let ago = |since: u64| format_duration(Duration::from_millis(now_ms().saturating_sub(since)));
    let mut out = String::new();
    for question in list_questions(ledger, folder, now_ms()) {
        let (id, step, sign) = (&folder.id, &question.step, paint.yellow("?"));
        let since = ago(question.since_ms);
        let expiry = question.expiry.as_ref().map(|expiry| format!(", {expiry}")).unwrap_or_default();
        let (word, what) = match &question.request {
            Some(wants) => (&question.key, format!("{} {step}: {wants}", question.key)),
            None => (step, format!("gate {step}")),
        };
        let _ = writeln!(out, "{sign} {what}, since {since}{expiry}");
        question.lines.iter().for_each(|line| _ = writeln!(out, "    {line}"));
        let options = question.choices.join("|");
        let options = if options.is_empty() { "CHOICE" } else { &options };
        let asks = question.format_asks();
        let _ = writeln!(out, "  swarmc approve {id} {word} {options}{asks}");
    }
    if out.is_empty() {
        terminal::eprint(format!("nothing of run {} waits for an answer\n", folder.id));
    }
    terminal::print(out)?;
    Ok(Exit::Done)
}

/// Answers gates and agents with the lines that a person types at this terminal: `CHOICE` or `CHOICE FIELD=VALUE` for
/// the gate that has waited longest; `NUMBER CHOICE` for an agent, with a reason or with other arguments behind it.
pub(crate) fn listen_for_answers(control: Control, display: Display) {
    if !display.can_ask() || !std::io::stdin().is_terminal() {
        return;
    }
    // The thread ends with the process: a read from a terminal cannot be cancelled.
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            let answer = match parse_line(&line, |id| display.has_request(id), || display.first_gate()) {
                Typed::Nothing => continue,
                Typed::Which => {
                    Err("no request with this number waits: type the number before the answer, as in `1 allow`"
                        .to_owned())
                }
                Typed::Answer(answer) => control.answer(answer),
            };
            if let Err(problem) = answer {
                display.show_problem(&problem);
            }
        }
    });
}

/// What a typed line is.
#[derive(Debug, PartialEq)]
enum Typed {
    Nothing,
    /// An answer without the number of its request.
    Which,
    Answer(GateAnswer),
}

fn parse_line(line: &str, requested: impl Fn(u32) -> bool, gate: impl FnOnce() -> Option<StepId>) -> Typed {
    let line = line.trim();
    let (first, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    // The rest of the line is one value: people write sentences.
    let rest = rest.trim();
    if first.is_empty() {
        return Typed::Nothing;
    }
    if first.parse().is_ok_and(requested) {
        let (choice, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let rest = Some(rest.trim().to_owned()).filter(|rest| !rest.is_empty());
        let (arguments, because) = match rest {
            Some(rest) if rest.starts_with('{') => (Some(rest), None),
            rest => (None, rest),
        };
        let (gate, choice) = (first.to_owned(), choice.to_owned());
        return Typed::Answer(GateAnswer { gate, choice, because, arguments, ..GateAnswer::default() });
    }
    let Some(gate) = gate() else {
        // Without a number, an answer could reach a request that came while the person was typing.
        let answers = Choice::from_word(first).is_some() || first.parse::<u32>().is_ok();
        return if answers { Typed::Which } else { Typed::Nothing };
    };
    let fields = rest.split_once('=').map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()));
    let (gate, choice, fields) = (gate.to_string(), first.to_owned(), fields.into_iter().collect());
    Typed::Answer(GateAnswer { gate, choice, fields, ..GateAnswer::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typed_line_answers_what_it_names() {
        let read = |line: &str, gates: bool| match parse_line(
            line,
            |id| id == 3,
            || gates.then(|| StepId::new("human", 1, 1)),
        ) {
            Typed::Nothing => "nothing".to_owned(),
            Typed::Which => "which".to_owned(),
            Typed::Answer(GateAnswer { gate, choice, fields, because, arguments }) => {
                format!("{gate} {choice} {fields:?} {because:?} {arguments:?}")
            }
        };
        for (line, gates, expected) in [
            ("3 allow", false, "3 allow [] None None"),
            (" 3  deny  not that one ", true, "3 deny [] Some(\"not that one\") None"),
            ("3 allow {\"n\": 1}", false, "3 allow [] None Some(\"{\\\"n\\\": 1}\")"),
            ("3", false, "3  [] None None"),
            ("allow", false, "which"),
            ("4 allow", false, "which"),
            ("so what", false, "nothing"),
            ("allow", true, "human/1/1 allow [] None None"),
            ("yes remark=a b = c", true, "human/1/1 yes [(\"remark\", \"a b = c\")] None None"),
            ("", true, "nothing"),
        ] {
            assert_eq!(read(line, gates), expected, "{line}");
        }
    }
}
