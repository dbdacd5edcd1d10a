//! The end of a run: a table of its steps, what failed and where to read on, the result, and the exit code.

use std::fmt::Write;

use swarmc_plan::Pipeline;
use swarmc_runtime::{Content, End, Ended, Home, RunFolder, RunOutcome, Status, StepId, Stream as TaskStream};
use swarmc_view::documents::{ResultStatus, RunLine, RunLineKind, RunResult, SkippedResult, encode};
use swarmc_view::{Row, RowState, RunReport, describe_saving, format_count, format_duration, make_printable, now_ms};

use crate::args::{LogLines, Show};
use crate::exit::Exit;
use crate::terminal::{self, Paint, Stream};

/// A table with more rows shows only those that did not succeed.
const MAX_ROWS: usize = 40;

/// The lines of stderr shown of a failure.
const MAX_STDERR: usize = 10;

pub(crate) fn show_summary(
    home: &Home,
    pipeline: &Pipeline,
    ledger: &RunReport,
    outcome: RunOutcome,
    show: Show,
) -> miette::Result<Exit> {
    let exit = match outcome.ended {
        Ended::Succeeded => Exit::Done,
        Ended::Failed => Exit::Failed,
        Ended::Stopped => Exit::Stopped,
        Ended::OverBudget => Exit::OverBudget,
    };
    if show.is_machine() {
        let line = result_line(&outcome, &skipped_results(ledger, pipeline, &outcome), exit);
        terminal::print(encode(&line) + "\n")?;
        return Ok(exit);
    }
    let paint = Stream::Err.paint();
    let mut text = String::new();
    if !show.quiet {
        text.push('\n');
        let rows = ledger.rows.iter().filter(|row| ledger.is_current(row));
        write_table(&mut text, ledger, rows, ledger.changed_ms, paint);
        let used = ledger.describe_usage();
        if !used.is_empty() {
            let _ = writeln!(text, "\n{used} in all");
        }
        let reused: Vec<_> = ledger.rows.iter().filter_map(|row| row.reused.as_deref()).collect();
        if !reused.is_empty() {
            let saved: Vec<_> = reused.iter().filter_map(|reused| reused.usage).collect();
            let saving = Some(describe_saving(&saved)).filter(|saving| !saving.is_empty());
            let saving = saving.map(|saving| format!(", which saved {saving}")).unwrap_or_default();
            let _ = writeln!(text, "\n{} reused{saving}", format_count(reused.len() as u64, "step"));
        }
    }
    if outcome.ended != Ended::Stopped {
        let folder = home.find(&outcome.run).ok();
        // `--logs none` keeps what steps print out of the log of a CI; `--quiet` only shortens.
        let is_silent = show.logs == LogLines::None;
        write_failures(&mut text, (folder.as_ref(), pipeline, ledger), is_silent, paint);
        write_ends(&mut text, &outcome, pipeline, (ledger, folder.as_ref()), show.quiet);
        if !show.quiet {
            for row in skipped_results(ledger, pipeline, &outcome) {
                let name = ledger.label(&row.step);
                let reason = printable_lines(&row.reason());
                let _ = writeln!(text, "\n{}: {name} was skipped: {}", paint.yellow("no result"), reason.trim_end());
            }
        }
    }
    if !show.quiet || outcome.ended != Ended::Succeeded {
        let is_copy = home.find(&outcome.run).is_ok_and(|folder| folder.is_copy());
        last_line(&mut text, ledger, &outcome, is_copy, paint);
    }
    // To standard error, as standard output is for the values alone, which another program may read.
    terminal::eprint(text);
    // What is empty would be an empty line.
    for value in outcome.values.iter().filter(|value| !value.is_empty()) {
        let mut value = if Stream::Out.is_terminal() { printable_lines(value) } else { value.clone() };
        if !value.ends_with('\n') {
            value.push('\n');
        }
        terminal::print(value)?;
    }
    Ok(exit)
}

/// Until when the steps of a run that go on have taken: now, where something runs them.
pub(crate) fn latest_time(folder: &RunFolder, ledger: &RunReport) -> u64 {
    if folder.is_running() { now_ms().max(ledger.changed_ms) } else { ledger.changed_ms }
}

/// The label of a step, with its round where there are several.
pub(crate) fn name_step(ledger: &RunReport, step: &StepId) -> String {
    match ledger.rounds > 1 || step.iteration > 1 {
        true => format!("{} #{}", ledger.label(step), step.iteration),
        false => ledger.label(step),
    }
}

/// The steps with what became of them.
pub(crate) fn write_table<'a>(
    out: &mut String,
    ledger: &RunReport,
    rows: impl Iterator<Item = &'a Row>,
    now: u64,
    paint: Paint,
) {
    let mut rows: Vec<&Row> = rows.collect();
    if rows.len() > MAX_ROWS {
        let all = rows.len();
        rows.retain(|row| row.state != RowState::Ended(Status::Succeeded));
        let _ = writeln!(out, "{} that succeeded are not listed", format_count((all - rows.len()) as u64, "step"));
        rows.truncate(MAX_ROWS);
    }
    let name = |row: &Row| name_step(ledger, &row.step);
    let width = rows.iter().map(|row| name(row).chars().count()).max().unwrap_or(0);
    for row in rows {
        let status = format!("{:<9}", row.state.as_str());
        let status = match row.state {
            RowState::Ended(Status::Succeeded) => paint.green(&status),
            RowState::Ended(Status::Failed) => paint.red(&status),
            RowState::Ended(Status::Skipped) => paint.dim(&status),
            RowState::Running
            | RowState::Waiting
            | RowState::Idle
            | RowState::Stalled
            | RowState::Asking
            | RowState::Blocked
            | RowState::Cancelled => paint.yellow(&status),
        };
        let took = if row.attempt == 0 { String::new() } else { format_duration(row.time_taken(now)) };
        let turns = row.post.as_ref().map_or(0, |post| post.turns);
        let attempts =
            if row.attempt > turns.max(1) { format_count(row.attempt.into(), "attempt") } else { String::new() };
        let post = row.post.as_ref().map(|post| post.summarize()).unwrap_or_default();
        let reason = row.reason();
        let reason = make_printable(reason.lines().next().unwrap_or_default());
        let team = ledger.teams.get(&row.step).map(swarmc_view::Team::summarize).unwrap_or_default();
        // The agents of a swarm say it already.
        let used = if team.is_empty() { row.describe_usage() } else { String::new() };
        let reused = match (&row.reused, &row.missed) {
            (Some(reused), _) => format!("reused from {}", reused.run),
            (None, Some(missed)) => make_printable(missed).into_owned(),
            (None, None) => String::new(),
        };
        let notes: Vec<&str> = [attempts.as_str(), &reused, &post, &team, &used, &reason]
            .into_iter()
            .filter(|note| !note.is_empty())
            .collect();
        let line = format!("{:<width$}  {status}  {took:>7}  {}", name(row), notes.join(", "));
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

/// What failed: why, the end of stderr unless `is_silent`, and where the whole of it is.
fn write_failures(
    out: &mut String,
    (folder, pipeline, ledger): (Option<&RunFolder>, &Pipeline, &RunReport),
    is_silent: bool,
    paint: Paint,
) {
    let failed = |row: &&Row| ledger.is_current(row) && row.state == RowState::Ended(Status::Failed);
    for row in ledger.rows.iter().filter(failed).take(MAX_ROWS) {
        let reason = printable_lines(&row.reason());
        let _ = writeln!(out, "\n{}: {}", paint.red(&format!("{} failed", ledger.label(&row.step))), reason.trim_end());
        let text = if is_silent { String::new() } else { printable_lines(&row.stderr) };
        let all: Vec<&str> = text.lines().collect();
        for line in &all[all.len().saturating_sub(MAX_STDERR)..] {
            let _ = writeln!(out, "  {} {line}", paint.dim("│"));
        }
        let Some(folder) = folder.filter(|_| row.attempt > 0) else { continue };
        let layout = folder.layout(pipeline);
        for stream in [TaskStream::Stderr, TaskStream::Stdout] {
            let log = layout.log_path(&row.step, row.attempt, stream);
            if log.exists() {
                let _ = writeln!(out, "  log: {}", log.display());
            }
        }
    }
}

/// Why an instance ended without a step that failed: what a `stop` said, or that no `until` held.
fn write_ends(
    out: &mut String,
    outcome: &RunOutcome,
    pipeline: &Pipeline,
    (ledger, folder): (&RunReport, Option<&RunFolder>),
    quiet: bool,
) {
    for (number, end) in (1_u32..).zip(&outcome.ends) {
        let stop = ledger.stop_of(number);
        let why = match (end, stop) {
            (End::Exhausted, _) => {
                format!("no `until` held in {}", format_count(pipeline.iteration.max.into(), "round"))
            }
            (End::Stopped, Some(stop)) => {
                format!("`{}` ended it as failed{}", stop.step.name, stop_message(stop, folder))
            }
            // The last line says so.
            (End::Stopped, None) if outcome.ended == Ended::OverBudget => continue,
            (End::Stopped, None) => "a `stop` with status=failure ended it".to_owned(),
            (End::Succeeded, Some(stop)) if !quiet && !is_value(stop, outcome) => {
                format!("`{}` ended it{}", stop.step.name, stop_message(stop, folder))
            }
            (End::Succeeded | End::Unhandled | End::Cut, _) => continue,
        };
        let _ = match outcome.ends.len() {
            1 => writeln!(out, "\n{}: {why}", pipeline.name),
            _ => writeln!(out, "\n{}.{number}: {why}", pipeline.name),
        };
    }
}

/// The steps whose value would have been the result of an instance that succeeded without one: all were skipped. The
/// first of each instance.
fn skipped_results<'l>(ledger: &'l RunReport, pipeline: &Pipeline, outcome: &RunOutcome) -> Vec<&'l Row> {
    let without = |(number, end): (u32, &End)| {
        // What a `stop` ends is meant to end so.
        if !matches!(end, End::Succeeded) || ledger.stop_of(number).is_some() {
            return None;
        }
        let mut rows = ledger.rows.iter().filter(|row| {
            let listed = pipeline.result.iter().any(|name| **name == *row.step.name);
            listed && row.step.instance == number && ledger.is_current(row)
        });
        let first = rows.next()?;
        let skipped = |row: &Row| row.state == RowState::Ended(Status::Skipped);
        (skipped(first) && rows.all(skipped)).then_some(first)
    };
    (1_u32..).zip(&outcome.ends).filter_map(without).collect()
}

/// Whether what a `stop` says is the value of the pipeline, and shown as that.
fn is_value(stop: &Row, outcome: &RunOutcome) -> bool {
    matches!(stop.message.as_deref(), Some(Content::Text(text)) if outcome.values.contains(text))
}

/// What a `stop` says, behind what it did: in the same line where it is one.
fn stop_message(stop: &Row, folder: Option<&RunFolder>) -> String {
    let text = match (stop.message.as_deref(), folder) {
        (Some(Content::Text(text)), _) => text.clone(),
        (Some(stored), Some(folder)) => folder.read_text(stored).unwrap_or_default(),
        _ => String::new(),
    };
    let text = printable_lines(text.trim());
    match text.lines().count() {
        0 => String::new(),
        1 => format!(": {}", text.trim_end()),
        _ => text.lines().fold(":".to_owned(), |all, line| all + "\n  " + line),
    }
}

/// How the run ended, and what may follow; an engine resumes no run.
fn last_line(out: &mut String, ledger: &RunReport, outcome: &RunOutcome, is_copy: bool, paint: Paint) {
    let took = format_duration(std::time::Duration::from_millis(ledger.changed_ms.saturating_sub(ledger.started_ms)));
    let run = &outcome.run;
    let (end, next) = match outcome.ended {
        Ended::Succeeded => (format!("{} in {took}", paint.green(&format!("run {run} succeeded"))), None),
        Ended::Failed => {
            let what = paint.red(&format!("run {run} failed"));
            let next = match outcome.failed.is_empty() {
                false => format!("run the failed steps again with: swarmc resume {run} --retry-failed"),
                true => format!("continue with a fixed spec with: swarmc resume {run} --with SPEC"),
            };
            (format!("{what} after {took}; look closer with: swarmc inspect {run}"), Some(format!("\n{next}")))
        }
        Ended::OverBudget => {
            let what = paint.red(&format!("run {run} is over budget"));
            let next = format!("continue with a spec that has a larger budget with: swarmc resume {run} --with SPEC");
            (format!("{what} after {took}; look closer with: swarmc inspect {run}"), Some(format!("\n{next}")))
        }
        Ended::Stopped => {
            let what = paint.yellow(&format!("run {run} stopped"));
            (what, Some(format!("; resume with: swarmc resume {run}")))
        }
    };
    let _ = writeln!(out, "\n{end}{}", next.filter(|_| !is_copy).unwrap_or_default());
}

fn result_line(outcome: &RunOutcome, skipped: &[&Row], exit: Exit) -> RunLine {
    let skipped = skipped.iter().map(|row| SkippedResult {
        instance: row.step.instance,
        step: row.step.name.to_string(),
        reason: row.reason(),
    });
    RunLine::from(RunLineKind::Result(RunResult {
        run: outcome.run.clone(),
        status: match outcome.ended {
            Ended::Succeeded => ResultStatus::Succeeded,
            Ended::Failed => ResultStatus::Failed,
            Ended::Stopped => ResultStatus::Stopped,
            Ended::OverBudget => ResultStatus::OverBudget,
        },
        exit: exit as u8,
        values: outcome.values.clone(),
        failed: outcome.failed.clone(),
        skipped_results: skipped.collect(),
    }))
}

/// A text of several lines for a terminal.
pub(crate) fn printable_lines(text: &str) -> String {
    text.lines().map(|line| make_printable(line).into_owned() + "\n").collect()
}

#[cfg(test)]
mod tests {
    use swarmc_runtime::{Event, Record};

    use super::*;

    #[test]
    fn what_runs_has_taken_the_time_until_now() {
        let mut ledger = RunReport::default();
        (ledger.rounds, ledger.instances, ledger.total) = (1, 1, 1);
        let step = StepId::new("build", 1, 1);
        let event = Event::AttemptStarted { step, attempt: 1, reserved: None, summarizer: None };
        ledger.apply(&Record { seq: 1, at: 1_000, event });
        let mut text = String::new();
        write_table(&mut text, &ledger, ledger.rows.iter(), 8_500, Stream::Err.paint());
        assert!(text.contains("7.5s"), "{text}");
    }
}
