//! `swarmc inspect`: shows a run, a step of it, or an agent of a swarm, with its prompts and its actions.
//!
//! In: a run that was read back. Out: text for people, or one JSON document. People see the text of agents through
//! [`sanitize_line`]; programs get all of it.

mod node;
mod tools;

use std::fmt::Write;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use miette::{IntoDiagnostic, miette};
use serde_json::json;
use swarmc_runtime::swarm::{Purpose, TurnId};
use swarmc_runtime::{AgentFiles, Content, RunFolder};
use swarmc_view::documents::encode;
use swarmc_view::{
    AgentView, ArtifactError, RunView, StepView, TeamAgent, format_size, is_reference, make_printable, resolve_agent,
    sanitize_line, split_agent,
};

use crate::args::Inspect;
use crate::exit::Exit;
use crate::home::{find_home, read_past};
use crate::problem::to_report;
use crate::runs;
use crate::summary::{latest_time, write_table};
use crate::target::{find_target, refuse_more};
use crate::terminal::{self, Paint, Stream};

/// The lines of a prompt and of an output that are shown.
const EXCERPT_LINES: usize = 12;

/// How much of a file is read for them, in bytes.
const EXCERPT_BYTES: u64 = 8 * 1024;

pub(crate) fn exec(args: &Inspect) -> miette::Result<Exit> {
    let words = [&args.run, &args.step, &args.agent];
    let target = find_target(&find_home()?, &words, |_, word| is_reference(word))?;
    refuse_more(&target.rest, 2, "swarmc inspect [RUN] [STEP/AGENT]")?;
    let folder = target.folder;
    let Some(name) = target.rest.first() else {
        return match args.raw {
            true => Err(miette!(help = "swarmc inspect [RUN] STEP --raw", "name the step whose envelopes to print")),
            false => runs::inspect_run(folder, args.json),
        };
    };
    let past = read_past(&folder)?;
    let run = RunView::new(folder, past);
    if is_reference(name) {
        terminal::print(render_artifact(&run, name, args.json)?)?;
        return Ok(Exit::Done);
    }
    let (name, agent) = match target.rest.get(1) {
        Some(agent) => (name.as_str(), Some(resolve_agent(&run.past, name, agent))),
        None => split_agent(&run.past, name),
    };
    if args.raw && agent.is_some() {
        return Err(miette!(
            help = "leave the agent out",
            "envelopes belong to a step, and not to an agent of a swarm"
        ));
    }
    let step = run.find_step(name).map_err(to_report)?;
    if args.raw {
        let raw = node::format_raw(&step.read_node());
        if raw.is_empty() {
            terminal::eprint(format!("`{name}` has neither received nor sent an envelope\n"));
        }
        terminal::print(raw)?;
        return Ok(Exit::Done);
    }
    if args.plan || args.swarm {
        let Some((team, coordination)) = step.team().and_then(|team| Some((team, team.coordination.as_ref()?))) else {
            return Err(miette!(
                help = "leave the option out, or name a step that runs a swarm with a `coordinator`",
                "`{name}` is no swarm with a coordinator, so it has no plan"
            ));
        };
        let lines = if args.plan { coordination.plan_lines() } else { coordination.team_lines(team) };
        terminal::print(lines.join("\n") + "\n")?;
        return Ok(Exit::Done);
    }
    let out = match (agent, args.json) {
        (None, true) => encode(&step.to_document()) + "\n",
        (None, false) => format_step(&step),
        (Some(agent), is_json) => {
            let agent = step.find_agent(agent).map_err(to_report)?;
            if is_json { encode(&agent.to_document()) + "\n" } else { format_agent(&step, &agent) }
        }
    };
    terminal::print(out)?;
    Ok(Exit::Done)
}

/// What is printed of the artifact that a reference names: its text as it is, or on a terminal what of it no terminal
/// obeys.
fn render_artifact(run: &RunView, reference: &str, is_json: bool) -> miette::Result<String> {
    let document = match run.artifact_document(reference) {
        Ok(document) => document,
        Err(ArtifactError::Unknown(problem)) => return Err(to_report(problem)),
        Err(ArtifactError::Lost(error)) => return Err(error).into_diagnostic(),
    };
    if is_json {
        return Ok(encode(&document) + "\n");
    }
    // A program gets it as it is: it may be a patch that is applied.
    if !Stream::Out.is_terminal() {
        return Ok(document.text);
    }
    Ok(document.text.lines().map(|line| format!("{}\n", make_printable(line))).collect())
}

fn format_step(step: &StepView<'_>) -> String {
    let paint = Stream::Out.paint();
    let mut out = String::new();
    let (folder, report, row) = (step.folder(), step.report(), step.row());
    write_table(&mut out, report, std::iter::once(row), latest_time(folder, report), paint);
    runs::write_usage(&mut out, row);
    for attempt in 1..=step.last_attempt() {
        if let Some(agent) = step.attempt(attempt).and_then(|known| known.summarizer) {
            let _ = writeln!(out, "    attempt {attempt}: `{}` sums up files", sanitize_line(agent));
        }
        for (kind, path) in step.attempt_paths(attempt).list() {
            let _ = writeln!(out, "    {}", paint.dim(&format!("{kind:<7} {}", display_path(folder, path))));
            if attempt == step.last_attempt() && matches!(kind, "prompt" | "output") {
                write_excerpt(&mut out, path);
            }
        }
        if let Some(files) = step.agent_files(attempt) {
            write_files(&mut out, &files);
        }
        if let Some(report) = step.last_report(attempt) {
            let _ = writeln!(out, "    report  {}", sanitize_line(&report.summarize()));
        }
    }
    for line in node::format_lines(&step.read_node()) {
        let _ = writeln!(out, "    {line}");
    }
    for (pending, verdict) in &step.history().requests {
        let said = step.describe_answer(pending, *verdict);
        let _ = writeln!(out, "    asked   {} {}: {said}", pending.request.id, pending.describe());
    }
    let Some(team) = step.team() else { return out };
    if let Some(coordination) = &team.coordination {
        let _ = writeln!(out, "\n{}", coordination.plan_lines().join("\n"));
    }
    let width = team.mates.iter().map(|mate| mate.name.len()).max().unwrap_or(0).min(24);
    for mate in &team.mates {
        let works = team.life(mate).map_or("at work", |state| state.as_str());
        write_mate(&mut out, (step, mate, works), width, paint);
    }
    let _ = writeln!(out, "\nturn by turn: swarmc inspect {} {}/AGENT", folder.id, step.label());
    out
}

/// An agent of a swarm; what it does, while it is at work.
fn write_mate(out: &mut String, (step, mate, works): (&StepView<'_>, &TeamAgent, &str), width: usize, paint: Paint) {
    let how = mate.how.map_or(works, |how| how.as_str()).replace('_', " ");
    let by = mate.by.as_deref().map(|by| format!(", called by {by}")).unwrap_or_default();
    let _ = writeln!(out, "\n{:<width$}  {how} after {}{by}", paint.bold(&mate.name), mate.came_to());
    let text = |content: &Option<Content>| content.as_ref().map(|content| sanitize_line(&step.load_text(content)));
    let parts = [
        ("task", text(&mate.task)),
        ("result", text(&mate.response)),
        ("error", mate.error.as_deref().map(sanitize_line)),
    ];
    for (label, text) in parts.into_iter().filter_map(|(label, text)| Some((label, text?))) {
        let _ = writeln!(out, "    {label:<7} {text}");
    }
}

fn format_agent(step: &StepView<'_>, agent: &AgentView<'_>) -> String {
    let paint = Stream::Out.paint();
    let mut out = paint.bold(agent.name);
    if let Some(mate) = agent.mate {
        let how = mate.how.map_or("at work", |how| how.as_str()).replace('_', " ");
        let _ = write!(out, " (agent {}): {how} after {}", mate.plays, mate.came_to());
        if let Some(task) = &mate.task {
            let _ = write!(out, "\n    task    {}", sanitize_line(&step.load_text(task)));
        }
        if let Some(error) = &mate.error {
            let _ = write!(out, "\n    error   {}", sanitize_line(error));
        }
    }
    out.push('\n');
    for turn in agent.turns {
        let what = turn.end.map_or("not answered".to_owned(), |end| agent.describe_answer(end.answer));
        let _ = writeln!(out, "{}: {}", describe_turn(turn.turn), sanitize_line(&what));
        for (kind, text) in turn.effects.iter().map(|effect| agent.describe_effect(*effect)) {
            let _ = writeln!(out, "    {kind:<7} {}", sanitize_line(&text));
        }
        for (kind, path) in agent.prompt_paths(turn.turn).list() {
            let shown = display_path(step.folder(), path);
            let _ = writeln!(out, "    {}", paint.dim(&format!("{kind:<7} {shown}")));
        }
    }
    if !agent.mailbox.is_empty() {
        let _ = writeln!(out, "mailbox");
    }
    for letter in &agent.mailbox {
        let sent = letter.sent;
        let (kind, payload) = (json!(sent.kind), sanitize_line(&step.load_text(&sent.payload)));
        let read = if letter.received { "" } else { ", not read" };
        let kind = kind.as_str().unwrap_or_default();
        let _ = writeln!(out, "    {} from {} ({kind}{read}): {payload}", sent.number, sent.from);
    }
    out
}

/// A path as one finds it from the run's folder, with its size.
fn display_path(folder: &RunFolder, path: &Path) -> String {
    let shown = path.strip_prefix(&folder.path).unwrap_or(path).display();
    match path.metadata() {
        Ok(metadata) if metadata.is_dir() => format!("{shown}/"),
        metadata => format!("{shown} ({})", format_size(metadata.map_or(0, |metadata| metadata.len()))),
    }
}

/// The first lines of a text, below its path.
fn write_excerpt(out: &mut String, path: &Path) {
    let Ok(file) = File::open(path) else { return };
    let mut bytes = Vec::new();
    if file.take(EXCERPT_BYTES).read_to_end(&mut bytes).is_err() {
        return;
    }
    let text = String::from_utf8_lossy(&bytes);
    let mut lines = text.lines();
    for line in lines.by_ref().take(EXCERPT_LINES) {
        let _ = writeln!(out, "      │ {}", make_printable(line));
    }
    if lines.next().is_some() {
        let _ = writeln!(out, "      │ …");
    }
}

/// What an agent left in its folder, in lines.
fn write_files(out: &mut String, files: &AgentFiles) {
    if let Some(status) = &files.status {
        let _ = writeln!(out, "    status  {}", sanitize_line(&status.summarize()));
    }
    for (kind, kept) in [("inbox", &files.inbox), ("outbox", &files.outbox)] {
        for file in kept {
            let _ = writeln!(out, "    {kind:<7} {} ({})", sanitize_line(&file.path), format_size(file.bytes));
        }
    }
    for copied in &files.copied {
        let _ = writeln!(out, "    copied  {}", sanitize_line(copied));
    }
    for problem in &files.problems {
        let _ = writeln!(out, "    wrong   {}", sanitize_line(problem));
    }
}

/// When a turn was, in words.
fn describe_turn(turn: &TurnId) -> String {
    let again = if turn.attempt > 1 { format!(", turn {}", turn.attempt) } else { String::new() };
    match turn.purpose {
        Purpose::Act => format!("iteration {}{again}", turn.iteration),
        Purpose::Decompose => format!("decomposition{again}"),
        Purpose::Synthesize => format!("synthesis{again}"),
    }
}
