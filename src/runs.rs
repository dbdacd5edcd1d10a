//! `swarmc ps`, `stop`, `inspect` and `prune`: looking at runs and clearing them away.

use std::fmt::Write;
use std::time::{Duration, SystemTime};

use miette::{IntoDiagnostic, miette};
use swarmc_runtime::{Home, LeftProcesses, RunFolder, Runner, end_survivors, request_stop};
use swarmc_view::documents::{RunState, Runs, StepPaths, encode};
use swarmc_view::{
    OpenRequest, Row, RunSummary, RunView, format_count, format_duration, format_moment, format_number, format_size,
    make_printable, now_ms,
};

use crate::args::{Prune, Ps, Stop};
use crate::exit::Exit;
use crate::home::{find_home, read_past};
use crate::nodes;
use crate::summary::{latest_time, write_table};
use crate::terminal::{self, Paint, Stream};

pub(crate) fn list_runs(args: &Ps) -> miette::Result<Exit> {
    let home = find_home()?;
    let mut runs = match &args.run {
        Some(name) => vec![RunSummary::read(&home.find(name).into_diagnostic()?, &LeftProcesses::default())],
        None => swarmc_view::list_runs(&home).into_diagnostic()?,
    };
    let all = runs.len();
    let failed = runs.last().filter(|run| run.state == RunState::Failed).map(|run| run.id.clone());
    if args.run.is_none() && !args.all {
        runs.retain(|run| !run.state.has_ended());
    }
    runs.reverse();
    if args.json {
        terminal::print(encode(&Runs::new(&runs)) + "\n")?;
        return Ok(Exit::Done);
    }
    let paint = Stream::Out.paint();
    let mut out = String::new();
    let width = runs.iter().map(|run| run.id.len()).max().unwrap_or_default();
    if !runs.is_empty() {
        let head = format!("{:<width$}  {:<9}  {:>9}  {:<14}  WORKFLOW", "RUN", "STATE", "STEPS", "STARTED");
        let _ = writeln!(out, "{}", paint.dim(&head));
    }
    for run in &runs {
        let _ = writeln!(out, "{}", format_run(run, width, paint));
        if args.run.is_some() || run.state == RunState::Running {
            out.push_str(&nodes::render_nodes(run, args.run.is_some(), now_ms(), paint));
        }
    }
    terminal::print(out)?;
    if runs.is_empty() && !args.all {
        let more = if all > 0 { "; `swarmc ps --all` lists finished ones" } else { "" };
        let last = failed.map(|id| format!("; the last one failed: `swarmc resume {id} --retry-failed`"));
        terminal::eprint(format!("no run is running or was stopped{}{more}\n", last.unwrap_or_default()));
    } else if runs.is_empty() {
        terminal::eprint("there are no runs\n");
    }
    Ok(Exit::Done)
}

/// The line of a run, its id in `width` columns.
fn format_run(run: &RunSummary, width: usize, paint: Paint) -> String {
    let state = format!("{:<9}", run.state.as_str());
    let state = match run.state {
        RunState::Running => paint.cyan(&state),
        RunState::Resumable => paint.yellow(&state),
        RunState::Succeeded => paint.green(&state),
        RunState::Failed | RunState::Damaged => paint.red(&state),
    };
    let steps = format!("{}/{}", run.done, run.total);
    let age = format!("{} ago", format_duration(Duration::from_millis(now_ms().saturating_sub(run.started_ms))));
    let waits = match run.gates.as_slice() {
        [] => String::new(),
        [gate] => format!(", waits for gate {gate}"),
        gates => format!(", waits for {} gates", gates.len()),
    };
    let expiry = |waiting| OpenRequest::from(waiting).describe_expiry(now_ms());
    let asks = match run.approvals.as_slice() {
        [] => String::new(),
        [waiting] => {
            let expiry = expiry(waiting).map(|expiry| format!(", {expiry}")).unwrap_or_default();
            format!(", {} (approval {}{expiry})", OpenRequest::from(waiting).describe(), waiting.request.id)
        }
        // Their times are over in the order in which they came.
        [first, ..] => {
            let expiry = expiry(first).map(|expiry| format!(" (the first {expiry})")).unwrap_or_default();
            format!(", waits for {} approvals{expiry}", run.approvals.len())
        }
    };
    let plans = run.plans.iter().map(|(step, plan)| format!(", {step}: {plan}"));
    let plans: String = plans.collect();
    let runner = match run.runner {
        Some(Runner { pid, stopped: true }) => format!(", its runner is stopped: `kill -CONT {pid}` lets it go on"),
        _ => String::new(),
    };
    let survivors = match run.survivors {
        0 => String::new(),
        1 => format!(", 1 process of it still runs: `swarmc stop {}` ends it", run.id),
        several => format!(", {several} processes of it still run: `swarmc stop {}` ends them", run.id),
    };
    let what = match (&run.problem, run.workflow == run.pipeline) {
        (Some(problem), _) => make_printable(problem).into_owned(),
        (None, true) => run.workflow.clone(),
        (None, false) => format!("{} ({})", run.workflow, run.pipeline),
    };
    format!("{:<width$}  {state}  {steps:>9}  {age:<14}  {what}{plans}{waits}{asks}{runner}{survivors}", run.id)
}

pub(crate) fn stop_runs(args: &Stop) -> miette::Result<Exit> {
    let home = find_home()?;
    let folder = match &args.run {
        Some(name) => home.find(name).into_diagnostic()?,
        None => only_running(&home)?,
    };
    // A living runner ends its own processes when it stops: only one that is gone leaves any to end from here.
    if !folder.is_running()
        && let Some(survivors) = end_survivors(&folder).into_diagnostic()?
    {
        terminal::eprint(format!("{survivors} that outlived the runner of {}: ended\n", folder.id));
        return Ok(Exit::Done);
    }
    request_stop(&folder).into_diagnostic()?;
    let hint = if folder.is_copy() { String::new() } else { format!("; resume with: swarmc resume {}", folder.id) };
    terminal::eprint(format!("run {} is stopping{hint}\n", folder.id));
    Ok(Exit::Done)
}

fn only_running(home: &Home) -> miette::Result<RunFolder> {
    let running = home.list_folders().into_diagnostic()?.into_iter().rev().filter(RunFolder::is_running);
    let mut running: Vec<RunFolder> = running.collect();
    match running.len() {
        0 => Err(miette!("no run is running")),
        1 => Ok(running.remove(0)),
        _ => {
            let ids: Vec<&str> = running.iter().map(|folder| folder.id.as_str()).collect();
            Err(miette!(help = "name one: `swarmc stop RUN`", "several runs are running: {}", ids.join(", ")))
        }
    }
}

pub(crate) fn inspect_run(folder: RunFolder, is_json: bool) -> miette::Result<Exit> {
    let past = read_past(&folder)?;
    let view = RunView::new(folder, past);
    if is_json {
        terminal::print(encode(&view.run_document()) + "\n")?;
        return Ok(Exit::Done);
    }
    let RunView { folder, report: ledger, .. } = &view;
    let run = &RunSummary::read(folder, &LeftProcesses::default());
    let paint = Stream::Out.paint();
    let mut out = String::new();
    let _ = writeln!(out, "run      {} ({})", paint.bold(&run.id), run.state.as_str());
    let _ = writeln!(out, "workflow {}, pipeline {}", run.workflow, run.pipeline);
    let took = format_duration(Duration::from_millis(run.changed_ms.saturating_sub(run.started_ms)));
    let _ = writeln!(out, "started  {}, changed last after {took}", format_moment(run.started_ms));
    let _ = writeln!(out, "folder   {}", folder.path.display());
    let _ = writeln!(out, "outputs  {}\n", folder.outputs.display());
    for row in &ledger.rows {
        write_table(&mut out, ledger, std::iter::once(row), latest_time(folder, ledger), paint);
        write_details(&mut out, row, &view.step_paths(row), folder, paint);
    }
    out.push_str(&nodes::render_blocked(run, nodes::FEW, paint));
    let left = run.total.saturating_sub(run.done);
    if left > 0 {
        let _ = writeln!(out, "{} of {} not done", format_number(left), format_count(run.total, "step"));
    }
    if run.state == RunState::Resumable && !folder.is_copy() {
        let _ = writeln!(out, "resume with: swarmc resume {}", run.id);
    }
    terminal::print(out)?;
    Ok(Exit::Done)
}

fn write_details(out: &mut String, row: &Row, paths: &StepPaths, folder: &RunFolder, paint: Paint) {
    write_usage(out, row);
    for (kind, path) in paths.list() {
        let bytes = path.metadata().map_or(0, |metadata| metadata.len());
        let shown = path.strip_prefix(&folder.path).unwrap_or(path);
        let _ = writeln!(out, "    {}", paint.dim(&format!("{kind:<7} {} ({})", shown.display(), format_size(bytes))));
    }
}

/// What the turns of a step took, and who took them.
pub(crate) fn write_usage(out: &mut String, row: &Row) {
    if let Some(usage) = &row.usage {
        let cost = usage.cost.map(|cost| format!(", ${cost:.4}")).unwrap_or_default();
        let at_least = if usage.at_least { "at least " } else { "" };
        let tokens =
            format!("{at_least}{} tokens in, {} out{cost}", format_number(usage.input), format_number(usage.output));
        let _ = writeln!(out, "    usage   {tokens}");
    }
    if let Some(session) = &row.session {
        let _ = writeln!(out, "    session {}", make_printable(session));
    }
    if let Some(agent) = &row.fallback {
        let _ = writeln!(out, "    agent   {}, in place of its own", make_printable(agent));
    }
    if row.repairs > 0 {
        let _ = writeln!(out, "    repairs {}", format_count(u64::from(row.repairs), "further turn"));
    }
}

pub(crate) fn prune_runs(args: &Prune) -> miette::Result<Exit> {
    let options = swarmc_runtime::Prune {
        runs: args.runs.clone(),
        older_than: args.older_than,
        outputs: args.outputs,
        dry_run: args.dry_run,
    };
    let left = LeftProcesses::default();
    let read_age = |folder: &RunFolder| RunSummary::read(folder, &left).age();
    let pruned = find_home()?.prune(&options, SystemTime::now(), read_age).into_diagnostic()?;
    let mut out = String::new();
    let verb = if args.dry_run { "would delete" } else { "deleted" };
    for run in &pruned.runs {
        let _ = writeln!(out, "{verb} {} ({})", run.id, format_size(run.bytes));
    }
    let bytes = pruned.runs.iter().map(|run| run.bytes).sum();
    let what = if args.outputs { "outputs of " } else { "" };
    let _ = writeln!(out, "{verb} {what}{}, {}", format_count(pruned.runs.len() as u64, "run"), format_size(bytes));
    if pruned.results > 0 {
        let results = format_count(pruned.results, "result");
        let _ = writeln!(out, "{verb} {results} for `--reuse`, {}", format_size(pruned.result_bytes));
    }
    if !pruned.kept.is_empty() {
        let kept = format_count(pruned.kept.len() as u64, "older run");
        let _ = writeln!(out, "kept {kept} that can still be resumed, or keep worktrees; name them to delete them");
    }
    terminal::print(out)?;
    Ok(Exit::Done)
}
