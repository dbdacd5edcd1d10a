//! `swarmc inspect`: shows a run, a step of it, or an agent of a swarm, with its prompts and its actions.
//!
//! In: the journal, and the files beside it. Out: text for people, or one JSON document. People see the text of agents
//! through [`sanitize_line`]; programs get all of it.

mod artifact;
mod node;
mod tools;

use std::fmt::Write;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use miette::miette;
use serde_json::json;
use swarmc_runtime::handoff::Report;
use swarmc_runtime::swarm::{Action, Answer, Purpose, TurnId};
use swarmc_runtime::{AgentFiles, Content, Layout, RunFolder, State, StepId, Verdict, agent_status};

use node::Node;
use swarmc_view::documents::{
    self, AgentAction, AgentDetails, ApprovalDetails, MailboxMessage, OpenGate, PromptPaths, StepDetails, StepPaths,
    StepRow, Try, TurnResult, Version, encode, parse_json,
};
use swarmc_view::{
    AgentTurn, AttemptHistory, MailboxEntry, OpenRequest, Past, Row, RowState, RunReport, StepHistory, Team, TeamAgent,
    TurnEffect, describe_verdict, format_size, is_supervisor, make_printable, now_ms, sanitize_line,
};

use crate::args::Inspect;
use crate::exit::Exit;
use crate::home::{find_home, read_past};
use crate::load::did_you_mean;
use crate::runs;
use crate::summary::{latest_time, write_table};
use crate::target::{find_target, matches_step, refuse_more, resolve_agent, split_agent};
use crate::terminal::{self, Stream};

/// The lines of a prompt and of an output that are shown.
const EXCERPT_LINES: usize = 12;

/// How much of a file is read for them, in bytes.
const EXCERPT_BYTES: u64 = 8 * 1024;

pub(crate) fn exec(args: &Inspect) -> miette::Result<Exit> {
    let words = [&args.run, &args.step, &args.agent];
    let target = find_target(&find_home()?, &words, |_, word| artifact::is_reference(word))?;
    refuse_more(&target.rest, 2, "swarmc inspect [RUN] [STEP/AGENT]")?;
    let folder = target.folder;
    let Some(name) = target.rest.first() else {
        return match args.raw {
            true => Err(miette!(help = "swarmc inspect [RUN] STEP --raw", "name the step whose envelopes to print")),
            false => runs::inspect_run(&folder, args.json),
        };
    };
    let past = read_past(&folder)?;
    let mut ledger = past.build_report();
    if artifact::is_reference(name) {
        terminal::print(artifact::render_artifact((&folder, &past, &ledger), name, args.json)?)?;
        return Ok(Exit::Done);
    }
    let (name, agent) = match target.rest.get(1) {
        Some(agent) => (name.as_str(), Some(resolve_agent(&past, name, agent))),
        None => split_agent(&past, name),
    };
    if args.raw && agent.is_some() {
        return Err(miette!(
            help = "leave the agent out",
            "envelopes belong to a step, and not to an agent of a swarm"
        ));
    }
    note_blocked(&mut ledger, (&past, &folder), name);
    let layout = folder.layout(past.pipeline());
    let row = find_row(&ledger, &folder, name)?;
    let history = past.read_step(&row.step);
    let view = View { folder: &folder, layout: &layout, past: &past, ledger: &ledger, row, history: &history };
    if args.raw {
        let raw = view.read_node().format_raw();
        if raw.is_empty() {
            terminal::eprint(format!("`{name}` has neither received nor sent an envelope\n"));
        }
        terminal::print(raw)?;
        return Ok(Exit::Done);
    }
    if args.plan || args.swarm {
        let Some((team, coordination)) = view.team().and_then(|team| Some((team, team.coordination.as_ref()?))) else {
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
        (None, true) => encode(&view.step_document()) + "\n",
        (None, false) => view.step_text(),
        (Some(agent), is_json) => {
            let agent = view.collect_agent(agent)?;
            if is_json { encode(&view.agent_document(&agent)) + "\n" } else { view.agent_text(&agent) }
        }
    };
    terminal::print(out)?;
    Ok(Exit::Done)
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

/// Takes note of the steps that the name means and that have not begun, where it means none that has.
fn note_blocked(ledger: &mut RunReport, (past, folder): (&Past, &RunFolder), name: &str) {
    if ledger.rows.iter().any(|row| matches_step(ledger, &row.step, name)) {
        return;
    }
    let Ok(graph) = past.build_graph(folder) else { return };
    let state = State::replay(graph, &past.records);
    let blocked: Vec<StepId> =
        state.blocked_steps().map(|(step, _)| step).filter(|step| matches_step(ledger, step, name)).collect();
    blocked.iter().for_each(|step| ledger.mark_blocked(step));
}

/// The last of the rows that the name means.
fn find_row<'a>(ledger: &'a RunReport, folder: &RunFolder, name: &str) -> miette::Result<&'a Row> {
    ledger.rows.iter().rev().find(|row| matches_step(ledger, &row.step, name)).ok_or_else(|| {
        let labels: Vec<String> = ledger.rows.iter().map(|row| ledger.label(&row.step)).collect();
        let help = did_you_mean(name, labels.iter().map(String::as_str));
        miette!(help = help, "there is no step `{name}` in run `{}`", folder.id)
    })
}

/// A step of a run.
struct View<'a> {
    folder: &'a RunFolder,
    layout: &'a Layout,
    past: &'a Past,
    ledger: &'a RunReport,
    row: &'a Row,
    history: &'a StepHistory<'a>,
}

/// What one agent did.
struct AgentView<'a> {
    name: &'a str,
    mate: Option<&'a TeamAgent>,
    turns: &'a [AgentTurn<'a>],
    mailbox: Vec<&'a MailboxEntry<'a>>,
}

impl<'a> View<'a> {
    fn team(&self) -> Option<&'a Team> {
        self.ledger.teams.get(&self.row.step)
    }

    fn step_text(&self) -> String {
        let paint = Stream::Out.paint();
        let mut out = String::new();
        write_table(&mut out, self.ledger, std::iter::once(self.row), latest_time(self.folder, self.ledger), paint);
        runs::write_usage(&mut out, self.row);
        for attempt in 1..=self.row.attempt.max(1) {
            if let Some(agent) = self.attempt(attempt).and_then(|known| known.summarizer) {
                let _ = writeln!(out, "    attempt {attempt}: `{}` sums up files", sanitize_line(agent));
            }
            for (kind, path) in self.attempt_paths(attempt).list() {
                let _ = writeln!(out, "    {}", paint.dim(&format!("{kind:<7} {}", self.display_path(path))));
                if attempt == self.row.attempt.max(1) && matches!(kind, "prompt" | "output") {
                    write_excerpt(&mut out, path);
                }
            }
            if let Some(files) = self.agent_files(attempt) {
                write_files(&mut out, &files);
            }
            if let Some(report) = self.last_report(attempt) {
                let _ = writeln!(out, "    report  {}", sanitize_line(&report.summarize()));
            }
        }
        for line in self.read_node().format_lines() {
            let _ = writeln!(out, "    {line}");
        }
        for (pending, verdict) in &self.history.requests {
            let said = self.describe_answer(pending, *verdict);
            let _ = writeln!(out, "    asked   {} {}: {said}", pending.request.id, pending.describe());
        }
        let Some(team) = self.team() else { return out };
        if let Some(coordination) = &team.coordination {
            let _ = writeln!(out, "\n{}", coordination.plan_lines().join("\n"));
        }
        let width = team.mates.iter().map(|mate| mate.name.len()).max().unwrap_or(0).min(24);
        for mate in &team.mates {
            let works = team.life(mate).map_or("at work", |state| state.as_str());
            let how = mate.how.map_or(works, |how| how.as_str()).replace('_', " ");
            let by = mate.by.as_deref().map(|by| format!(", called by {by}")).unwrap_or_default();
            let _ = writeln!(out, "\n{:<width$}  {how} after {}{by}", paint.bold(&mate.name), mate.came_to());
            let text =
                |content: &Option<Content>| content.as_ref().map(|content| sanitize_line(&self.load_text(content)));
            let parts = [
                ("task", text(&mate.task)),
                ("result", text(&mate.response)),
                ("error", mate.error.as_deref().map(sanitize_line)),
            ];
            for (label, text) in parts.into_iter().filter_map(|(label, text)| Some((label, text?))) {
                let _ = writeln!(out, "    {label:<7} {text}");
            }
        }
        let label = self.ledger.label(&self.row.step);
        let _ = writeln!(out, "\nturn by turn: swarmc inspect {} {label}/AGENT", self.folder.id);
        out
    }

    fn read_node(&self) -> Node<'a> {
        Node::read((self.folder, self.layout, self.past), self.history, &self.row.step, self.row.attempt.max(1))
    }

    fn attempt(&self, attempt: u32) -> Option<&'a AttemptHistory<'a>> {
        self.history.attempts.get(&attempt)
    }

    /// The answer to a request; that it waits for one, and what the run does without one.
    fn describe_answer(&self, request: &OpenRequest, verdict: Option<&Verdict>) -> String {
        if let Some(verdict) = verdict {
            return describe_verdict(verdict);
        }
        let open = self.ledger.approvals.get(&request.request.id);
        let expiry = open.and_then(|open| open.describe_expiry(now_ms()));
        expiry.map_or("waits for an answer".to_owned(), |expiry| format!("waits for an answer, {expiry}"))
    }

    fn step_document(&self) -> StepDetails {
        let read = |content: &Content| self.load_text(content);
        let attempts = (1..=self.row.attempt.max(1)).map(|attempt| Try {
            attempt,
            summarizer: self.attempt(attempt).and_then(|known| known.summarizer).map(str::to_owned),
            paths: self.attempt_paths(attempt),
            files: self.agent_files(attempt),
            report: self.last_report(attempt),
        });
        let asked = &self.history.requests;
        StepDetails {
            row: StepRow::from(self.row),
            version: Version,
            run: self.folder.id.clone(),
            tries: attempts.collect(),
            approvals: asked.iter().map(|(open, verdict)| ApprovalDetails::new(open, *verdict, read)).collect(),
            gate: self.open_gate(),
            node: self.read_node().to_document(self.folder),
            swarm: self.team().map(|team| team.to_document(read)),
        }
    }

    /// What a person is asked, while the step waits for that.
    fn open_gate(&self) -> Option<OpenGate> {
        if self.row.state != RowState::Asking {
            return None;
        }
        let message = self.row.question.as_ref().map(|message| self.load_text(message)).unwrap_or_default();
        Some(OpenGate::new(message, self.ledger.gates.get(&*self.row.step.name)))
    }

    /// The files of an attempt, those that there are.
    fn attempt_paths(&self, attempt: u32) -> StepPaths {
        StepPaths::find(self.layout, &self.row.step, attempt, attempt == self.row.attempt.max(1))
    }

    /// What an agent that works by files left in an attempt; while it is at work, what it says of itself.
    fn agent_files(&self, attempt: u32) -> Option<AgentFiles> {
        if let Some(left) = self.attempt(attempt).and_then(|known| known.files) {
            return serde_json::from_str(&self.folder.read_text(left).ok()?).ok();
        }
        let folder = self.layout.agent_folder(&self.row.step, attempt);
        let status = agent_status(&folder)?;
        let name = folder.strip_prefix(&self.folder.path).unwrap_or(&folder).to_string_lossy().into_owned();
        Some(AgentFiles { folder: name, status: Some(status), ..AgentFiles::default() })
    }

    /// What the agent of an attempt reported last.
    fn last_report(&self, attempt: u32) -> Option<Report> {
        let report = self.attempt(attempt)?.report?;
        serde_json::from_str(&self.load_text(report)).ok()
    }

    /// A path as one finds it from the run's folder, with its size.
    fn display_path(&self, path: &Path) -> String {
        let shown = path.strip_prefix(&self.folder.path).unwrap_or(path).display();
        match path.metadata() {
            Ok(metadata) if metadata.is_dir() => format!("{shown}/"),
            metadata => format!("{shown} ({})", format_size(metadata.map_or(0, |metadata| metadata.len()))),
        }
    }

    fn load_text(&self, content: &Content) -> String {
        self.folder.read_text(content).unwrap_or_else(|error| format!("({error})"))
    }

    /// What an agent did in the last attempt.
    fn collect_agent(&self, name: &'a str) -> miette::Result<AgentView<'a>> {
        let label = self.ledger.label(&self.row.step);
        let Some(team) = self.team() else { return Err(miette!("`{label}` is no swarm, or its swarm never began")) };
        let mate = team.find_mate(name);
        if mate.is_none() && !is_supervisor(name) {
            let help = did_you_mean(name, team.mates.iter().map(|mate| &*mate.name));
            return Err(miette!(help = help, "swarm `{label}` has no agent `{name}`"));
        }
        let known = self.history.agent(name);
        let turns = known.map_or(&[][..], |agent| &agent.turns);
        let mailbox = known.into_iter().flat_map(|agent| agent.mailbox.values()).collect();
        Ok(AgentView { name, mate, turns, mailbox })
    }

    fn agent_text(&self, agent: &AgentView<'_>) -> String {
        let paint = Stream::Out.paint();
        let mut out = paint.bold(agent.name);
        if let Some(mate) = agent.mate {
            let how = mate.how.map_or("at work", |how| how.as_str()).replace('_', " ");
            let _ = write!(out, " (agent {}): {how} after {}", mate.plays, mate.came_to());
            if let Some(task) = &mate.task {
                let _ = write!(out, "\n    task    {}", sanitize_line(&self.load_text(task)));
            }
            if let Some(error) = &mate.error {
                let _ = write!(out, "\n    error   {}", sanitize_line(error));
            }
        }
        out.push('\n');
        for turn in agent.turns {
            let what = turn.end.map_or("not answered".to_owned(), |end| self.format_answer(end.answer));
            let _ = writeln!(out, "{}: {}", describe_turn(turn.turn), sanitize_line(&what));
            for (kind, text) in turn.effects.iter().map(|effect| self.describe_effect(*effect)) {
                let _ = writeln!(out, "    {kind:<7} {}", sanitize_line(&text));
            }
            for (kind, path) in self.prompt_paths(turn.turn).list() {
                let _ = writeln!(out, "    {}", paint.dim(&format!("{kind:<7} {}", self.display_path(path))));
            }
        }
        if !agent.mailbox.is_empty() {
            let _ = writeln!(out, "mailbox");
        }
        for letter in &agent.mailbox {
            let sent = letter.sent;
            let (kind, payload) = (json!(sent.kind), sanitize_line(&self.load_text(&sent.payload)));
            let read = if letter.received { "" } else { ", not read" };
            let kind = kind.as_str().unwrap_or_default();
            let _ = writeln!(out, "    {} from {} ({kind}{read}): {payload}", sent.number, sent.from);
        }
        out
    }

    fn agent_document(&self, agent: &AgentView<'_>) -> AgentDetails {
        let letters = agent.mailbox.iter().map(|letter| MailboxMessage {
            seq: letter.sent.number,
            from: letter.sent.from.to_string(),
            to: letter.sent.to.to_string(),
            kind: letter.sent.kind,
            payload: parse_json(self.load_text(&letter.sent.payload)),
            at: letter.at,
            received: letter.received,
        });
        let (version, run, step) = (Version, self.folder.id.clone(), self.ledger.label(&self.row.step));
        let (turns, mailbox) = (agent.turns.iter().map(|turn| self.turn_document(turn)).collect(), letters.collect());
        match agent.mate {
            Some(mate) => {
                let agent = mate.to_document(turns, |content| self.load_text(content));
                AgentDetails::Member { agent, version, run, step, mailbox }
            }
            None => AgentDetails::Supervisor { agent: agent.name.to_owned(), version, run, step, turns, mailbox },
        }
    }

    fn turn_document(&self, turn: &AgentTurn<'_>) -> documents::AgentTurn {
        let results = turn.effects.iter().map(|effect| self.describe_effect(*effect));
        let (action, answer) = match turn.end.map(|end| end.answer) {
            Some(Answer::Acts(act)) => (Some(self.document_action(act)), None),
            answer => (None, answer.map(|answer| self.format_answer(answer))),
        };
        documents::AgentTurn {
            iteration: turn.turn.iteration,
            attempt: turn.turn.attempt,
            purpose: turn.turn.purpose,
            action,
            answer,
            results: results.map(|(kind, text)| TurnResult { kind: kind.to_owned(), text }).collect(),
            usage: turn.end.and_then(|end| end.usage),
            cost_micro_usd: turn.end.and_then(|end| end.cost),
            model: turn.end.and_then(|end| end.model).map(str::to_owned),
            paths: self.prompt_paths(turn.turn),
        }
    }

    /// What an action led to: a word for it, and the text.
    fn describe_effect(&self, effect: TurnEffect<'_>) -> (&'static str, String) {
        match effect {
            TurnEffect::Result(result) => ("result", self.load_text(result)),
            TurnEffect::Failed(result) => ("failed", self.load_text(result)),
            TurnEffect::Refused(reason) => ("refused", reason.to_owned()),
            TurnEffect::Spawned(agent) => ("helper", agent.to_owned()),
            TurnEffect::Requested(id) => {
                let asked = self.history.find_request(id);
                let words = asked.map(|(open, verdict)| {
                    format!("{}: {}", open.request.wants.describe(), self.describe_answer(open, *verdict))
                });
                ("asked", format!("{id} {}", words.unwrap_or_default()))
            }
        }
    }

    fn prompt_paths(&self, turn: &TurnId) -> PromptPaths {
        let attempt = self.row.attempt.max(1);
        let path = |extension| {
            let path = self.layout.turn_path(&self.row.step, attempt, turn, extension);
            Some(path).filter(|path| path.exists())
        };
        PromptPaths { prompt: path("txt"), system: path("system.txt"), ..PromptPaths::default() }
    }

    fn format_answer(&self, answer: &Answer) -> String {
        match answer {
            Answer::Acts(act) => encode(&self.document_action(act)),
            Answer::Split(parts) => {
                let parts: Vec<String> = parts.iter().map(|part| self.load_text(&part.task)).collect();
                format!("split into {}", parts.join("; "))
            }
            Answer::Merged(result) => format!("merged: {}", self.load_text(result)),
            Answer::Invalid(wrong) => format!("not valid: {wrong}"),
            Answer::Failed { message, .. } => format!("failed: {message}"),
        }
    }

    /// An action as models write it.
    fn document_action(&self, act: &Action) -> AgentAction {
        match act {
            Action::ToolCall { tool, params } => {
                AgentAction::ToolCall { tool: tool.to_string(), tool_params: parse_json(self.load_text(params)) }
            }
            Action::PublishData { topic, data } => {
                AgentAction::PublishData { topic: topic.to_string(), data: self.load_text(data) }
            }
            Action::SendMessage { to, message_type, payload } => AgentAction::SendMessage {
                to: to.to_string(),
                message_type: *message_type,
                payload: parse_json(self.load_text(payload)),
            },
            Action::RequestHelp { description, skills } => {
                AgentAction::RequestHelp { help_description: self.load_text(description), help_skills: skills.clone() }
            }
            Action::Done { response } => AgentAction::Done { response: self.load_text(response) },
            Action::Idle => AgentAction::Idle,
            Action::Operate(op) => AgentAction::Operate(op.clone()),
        }
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
