//! `swarmc inspect`: shows a run, a step of it, or an agent of a swarm, with its prompts and its actions.
//!
//! In: the journal, and the files beside it. Out: text for people, or one JSON document. People see the text of agents
//! through [`sanitize_line`]; programs get all of it.

mod artifact;
mod node;
mod tools;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use miette::miette;
use serde_json::json;
use swarmc_runtime::handoff::Report;
use swarmc_runtime::swarm::{Action, Answer, MemberMessage, Purpose, TurnId};
use swarmc_runtime::{AgentFiles, Content, Event, Layout, RunFolder, State, StepId, Verdict, agent_status};

use node::{Node, find_summarizer};
use swarmc_view::documents::{
    AgentAction, AgentDetails, AgentTurn, ApprovalDetails, MailboxMessage, PromptPaths, StepDetails, StepPaths,
    StepRow, Try, TurnResult, Version, encode, parse_json,
};
use swarmc_view::{
    OpenRequest, Past, Row, RunReport, Team, TeamAgent, describe_verdict, format_size, is_supervisor, now_ms,
    sanitize_line,
};

use crate::args::Inspect;
use crate::exit::Exit;
use crate::home::{find_home, find_run, read_past};
use crate::load::did_you_mean;
use crate::runs;
use crate::summary::{latest_time, write_table};
use crate::terminal::{self, Stream};

pub(crate) fn exec(args: &Inspect) -> miette::Result<Exit> {
    let Some(name) = &args.step else { return runs::inspect_run(args) };
    let folder = find_run(&find_home()?, args.run.as_deref(), "to look at: there are none", |_| true)?;
    let past = read_past(&folder)?;
    let mut ledger = past.build_report();
    if artifact::is_reference(name) {
        terminal::print(artifact::render_artifact((&folder, &past, &ledger), name, args.json)?)?;
        return Ok(Exit::Done);
    }
    note_blocked(&mut ledger, (&past, &folder), name);
    let layout = folder.layout(past.pipeline());
    let row = find_row(&ledger, &folder, name)?;
    let view = View { folder: &folder, layout: &layout, past: &past, ledger: &ledger, row };
    if args.raw {
        let raw = view.read_node().format_raw();
        if raw.is_empty() {
            terminal::eprint(format!("`{name}` has neither received nor sent an envelope\n"));
        }
        terminal::print(raw)?;
        return Ok(Exit::Done);
    }
    let out = match (&args.agent, args.json) {
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

/// Takes note of the steps that the name means and that have not begun, where it means none that has.
fn note_blocked(ledger: &mut RunReport, (past, folder): (&Past, &RunFolder), name: &str) {
    if ledger.rows.iter().any(|row| matches_name(ledger, &row.step, name)) {
        return;
    }
    let Some(graph) = past.build_graph(folder) else { return };
    let state = State::replay(graph, &past.records);
    let blocked: Vec<StepId> =
        state.blocked_steps().map(|(step, _)| step).filter(|step| matches_name(ledger, step, name)).collect();
    blocked.iter().for_each(|step| ledger.mark_blocked(step));
}

fn matches_name(ledger: &RunReport, step: &StepId, name: &str) -> bool {
    *step.name == *name || step.label() == name || ledger.label(step) == name
}

/// The last of the rows that the name means.
fn find_row<'a>(ledger: &'a RunReport, folder: &RunFolder, name: &str) -> miette::Result<&'a Row> {
    ledger.rows.iter().rev().find(|row| matches_name(ledger, &row.step, name)).ok_or_else(|| {
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
}

/// What one agent did.
struct Told<'a> {
    name: &'a str,
    mate: Option<&'a TeamAgent>,
    turns: Vec<Turn<'a>>,
    mailbox: BTreeMap<u64, MessageRow<'a>>,
}

/// One turn of a model.
struct Turn<'a> {
    turn: &'a TurnId,
    end: Option<&'a Event>,
    /// The results of its actions, where they are not obvious.
    results: Vec<(&'static str, Result<&'a Content, Cow<'a, str>>)>,
    /// The number of its request for approval, and the index of that request's result in `results`.
    request: Option<(u32, usize)>,
}

struct MessageRow<'a> {
    sent: &'a MemberMessage,
    at: u64,
    received: bool,
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
            if let Some(agent) = find_summarizer(self.past, &self.row.step, attempt) {
                let _ = writeln!(out, "    attempt {attempt}: `{}` sums up files", sanitize_line(agent));
            }
            for (kind, path) in self.attempt_paths(attempt).list() {
                let _ = writeln!(out, "    {}", paint.dim(&format!("{kind:<7} {}", self.display_path(path))));
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
        for (pending, verdict) in self.list_requests() {
            let said = verdict.map_or_else(|| self.describe_wait(pending.request.id), describe_verdict);
            let _ = writeln!(out, "    asked   {} {}: {said}", pending.request.id, pending.describe());
        }
        let Some(team) = self.team() else { return out };
        let width = team.mates.iter().map(|mate| mate.name.len()).max().unwrap_or(0).min(24);
        for mate in &team.mates {
            let how = mate.how.map_or("at work", |how| how.as_str()).replace('_', " ");
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
        let _ = writeln!(out, "\nturn by turn: swarmc inspect {} {label} AGENT", self.folder.id);
        out
    }

    fn read_node(&self) -> Node {
        Node::read((self.folder, self.layout, self.past), &self.row.step, self.row.attempt.max(1))
    }

    /// The requests for approval of the step's agents, with their answers.
    fn list_requests(&self) -> Vec<(OpenRequest, Option<&'a Verdict>)> {
        let mut asked: Vec<(OpenRequest, Option<&Verdict>)> = Vec::new();
        for record in &self.past.records {
            match &record.event {
                Event::ApprovalAsked { step, request, .. } if *step == self.row.step => {
                    let (step, request, since) = (step.clone(), request.clone(), record.at);
                    let on_timeout = self.past.plan.policy.on_timeout;
                    asked.push((OpenRequest { step, request, since, on_timeout }, None));
                }
                Event::ApprovalAnswered { step, verdict, .. } if *step == self.row.step => {
                    let of = asked.iter_mut().rev().find(|(pending, _)| pending.request.id == verdict.id);
                    if let Some((_, said)) = of {
                        *said = Some(verdict);
                    }
                }
                _ => {}
            }
        }
        asked
    }

    /// Tells that a request waits for an answer, and what the run does without one.
    fn describe_wait(&self, id: u32) -> String {
        let expiry = self.ledger.approvals.get(&id).and_then(|pending| pending.describe_expiry(now_ms()));
        expiry.map_or("waits for an answer".to_owned(), |expiry| format!("waits for an answer, {expiry}"))
    }

    fn step_document(&self) -> StepDetails {
        let read = |content: &Content| self.load_text(content);
        let attempts = (1..=self.row.attempt.max(1)).map(|attempt| Try {
            attempt,
            summarizer: find_summarizer(self.past, &self.row.step, attempt).map(str::to_owned),
            paths: self.attempt_paths(attempt),
            files: self.agent_files(attempt),
            report: self.last_report(attempt),
        });
        let asked = self.list_requests();
        StepDetails {
            row: StepRow::from(self.row),
            version: Version,
            run: self.folder.id.clone(),
            tries: attempts.collect(),
            approvals: asked.iter().map(|(open, verdict)| ApprovalDetails::new(open, *verdict, read)).collect(),
            node: self.read_node().to_document(self.folder),
            swarm: self.team().map(|team| team.to_document(read)),
        }
    }

    /// The files of an attempt, those that there are.
    fn attempt_paths(&self, attempt: u32) -> StepPaths {
        StepPaths::find(self.layout, &self.row.step, attempt, attempt == self.row.attempt.max(1))
    }

    /// What an agent that works by files left in an attempt; while it is at work, what it says of itself.
    fn agent_files(&self, attempt: u32) -> Option<AgentFiles> {
        let ended = self.past.records.iter().rev().find_map(|record| match &record.event {
            Event::AttemptEnded { step, attempt: ended, outcome } if *step == self.row.step && *ended == attempt => {
                outcome.files.as_deref()
            }
            _ => None,
        });
        if let Some(left) = ended {
            return serde_json::from_str(&self.folder.read_text(left).ok()?).ok();
        }
        let folder = self.layout.agent_folder(&self.row.step, attempt);
        let status = agent_status(&folder)?;
        let name = folder.strip_prefix(&self.folder.path).unwrap_or(&folder).to_string_lossy().into_owned();
        Some(AgentFiles { folder: name, status: Some(status), ..AgentFiles::default() })
    }

    /// What the agent of an attempt reported last.
    fn last_report(&self, attempt: u32) -> Option<Report> {
        let text = self.past.records.iter().rev().find_map(|record| match &record.event {
            Event::StatusReported { step, attempt: number, report } if *step == self.row.step && *number == attempt => {
                Some(self.load_text(report))
            }
            _ => None,
        });
        serde_json::from_str(&text?).ok()
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

    /// What an agent did, from the events of the last attempt.
    fn collect_agent<'n>(&self, name: &'n str) -> miette::Result<Told<'n>>
    where
        'a: 'n,
    {
        let label = self.ledger.label(&self.row.step);
        let Some(team) = self.team() else { return Err(miette!("`{label}` is no swarm, or its swarm never began")) };
        let mate = team.find_mate(name);
        if mate.is_none() && !is_supervisor(name) {
            let help = did_you_mean(name, team.mates.iter().map(|mate| &*mate.name));
            return Err(miette!(help = help, "swarm `{label}` has no agent `{name}`"));
        }
        let mut told = Told { name, mate, turns: Vec::new(), mailbox: BTreeMap::new() };
        for record in &self.past.records {
            match &record.event {
                Event::ApprovalAsked { step, request, .. } if *step == self.row.step && *request.agent == *name => {
                    let (id, waits) = (request.id, self.describe_wait(request.id));
                    told.add_request(id, format!("{id} {}: {waits}", request.wants.describe()));
                }
                Event::ApprovalAnswered { step, verdict, .. } if *step == self.row.step => {
                    told.set_verdict(verdict.id, &describe_verdict(verdict));
                }
                event if event.swarm().is_some_and(|swarm| swarm.step == self.row.step) => {
                    told.apply(event, record.at);
                }
                _ => {}
            }
        }
        Ok(told)
    }

    fn agent_text(&self, agent: &Told<'_>) -> String {
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
        for turn in &agent.turns {
            let what = match turn.end {
                Some(Event::TurnEnded { answer, .. }) => self.format_answer(answer),
                _ => "not answered".to_owned(),
            };
            let _ = writeln!(out, "{}: {}", describe_turn(turn.turn), sanitize_line(&what));
            for (kind, result) in &turn.results {
                let text = match result {
                    Ok(content) => self.load_text(content),
                    Err(words) => words.clone().into_owned(),
                };
                let _ = writeln!(out, "    {kind:<7} {}", sanitize_line(&text));
            }
            for (kind, path) in self.prompt_paths(turn.turn).list() {
                let _ = writeln!(out, "    {}", paint.dim(&format!("{kind:<7} {}", self.display_path(path))));
            }
        }
        if !agent.mailbox.is_empty() {
            let _ = writeln!(out, "mailbox");
        }
        for letter in agent.mailbox.values() {
            let sent = letter.sent;
            let (kind, payload) = (json!(sent.kind), sanitize_line(&self.load_text(&sent.payload)));
            let read = if letter.received { "" } else { ", not read" };
            let kind = kind.as_str().unwrap_or_default();
            let _ = writeln!(out, "    {} from {} ({kind}{read}): {payload}", sent.number, sent.from);
        }
        out
    }

    fn agent_document(&self, agent: &Told<'_>) -> AgentDetails {
        let letters = agent.mailbox.values().map(|letter| MailboxMessage {
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

    fn turn_document(&self, turn: &Turn<'_>) -> AgentTurn {
        let results = turn.results.iter().map(|(kind, result)| TurnResult {
            kind: (*kind).to_owned(),
            text: match result {
                Ok(content) => self.load_text(content),
                Err(words) => words.clone().into_owned(),
            },
        });
        let mut document = AgentTurn {
            iteration: turn.turn.iteration,
            attempt: turn.turn.attempt,
            purpose: turn.turn.purpose,
            action: None,
            answer: None,
            results: results.collect(),
            usage: None,
            cost_micro_usd: None,
            model: None,
            paths: self.prompt_paths(turn.turn),
        };
        if let Some(Event::TurnEnded { answer, usage, cost, model, .. }) = turn.end {
            match answer {
                Answer::Acts(act) => document.action = Some(self.document_action(act)),
                answer => document.answer = Some(self.format_answer(answer)),
            }
            (document.usage, document.cost_micro_usd, document.model) = (*usage, *cost, model.clone());
        }
        document
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

impl<'a> Told<'a> {
    fn apply(&mut self, event: &'a Event, at: u64) {
        match event {
            Event::SwarmStarted { .. } => (self.turns, self.mailbox) = (Vec::new(), BTreeMap::new()),
            Event::TurnStarted { turn, .. } if *turn.agent == *self.name => {
                // One that a killed run left open is taken again.
                self.turns.retain(|known| known.turn != turn || known.end.is_some());
                self.turns.push(Turn { turn, end: None, results: Vec::new(), request: None });
            }
            Event::TurnEnded { turn, .. } if *turn.agent == *self.name => {
                if let Some(known) = self.turns.iter_mut().rev().find(|known| known.turn == turn) {
                    known.end = Some(event);
                }
            }
            Event::ToolEnded { turn, result, fault, .. } if *turn.agent == *self.name => {
                let kind = if fault.is_some() { "failed" } else { "result" };
                self.came_to(kind, Ok(result));
            }
            Event::ActionRefused { agent, reason, .. } if **agent == *self.name => {
                self.came_to("refused", Err(reason.into()))
            }
            Event::AgentSpawned { agent, by: Some(by), .. } if **by == *self.name => {
                self.came_to("helper", Err(Cow::Borrowed(agent)))
            }
            Event::MessageSent { message: sent, .. } if *sent.to == *self.name => {
                self.mailbox.insert(sent.number, MessageRow { sent, at, received: false });
            }
            Event::MessageReceived { agent, number, .. } if **agent == *self.name => {
                if let Some(letter) = self.mailbox.get_mut(number) {
                    letter.received = true;
                }
            }
            _ => {}
        }
    }

    fn add_request(&mut self, id: u32, words: String) {
        if let Some(turn) = self.turns.last_mut() {
            turn.request = Some((id, turn.results.len()));
            turn.results.push(("asked", Err(Cow::Owned(words))));
        }
    }

    fn set_verdict(&mut self, id: u32, words: &str) {
        let asked = self.turns.iter_mut().rev().find_map(|turn| match turn.request {
            Some((request, at)) if request == id => turn.results.get_mut(at),
            _ => None,
        });
        if let Some((_, Err(told))) = asked {
            let wanted = told.split(": ").next().unwrap_or_default();
            *told = Cow::Owned(format!("{wanted}: {words}"));
        }
    }

    fn came_to(&mut self, kind: &'static str, result: Result<&'a Content, Cow<'a, str>>) {
        if let Some(turn) = self.turns.last_mut() {
            turn.results.push((kind, result));
        }
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
