//! The driver, the only loop of a run: await input → append → apply → decide → start.
//!
//! It does everything in a run, one thing after another; threads only carry attempts out and report. Invariant: the
//! driver records a change, then applies it; nothing else changes the state.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::sync::watch;

use super::approvals::Asking;
use super::eval::file_summaries::Wanted;
use super::eval::{self, Evaluator};
use super::hooks::Hooks;
use super::process_env::ProcessEnv;
use super::replay::Replaying;
use super::swarms::RunningSwarms;
use super::{Ended, FirstRecord, Input, Inputs, Outcome, store_content};
use crate::core::decide::{Command, decide_commands};
use crate::core::state::State;
use crate::io::agent_api::AgentServer;
use crate::io::executor::{FileWriter, Job, ObserverHandle, Pool};
use crate::io::home::{Layout, RunFolder};
use crate::io::input::{Reply, ReplyTo};
use crate::io::journal::{Durability, Journal};
use crate::io::llm::Models;
use crate::io::reactor::Reactor;
use crate::io::tools::Toolbox;
use crate::types::cancel::Cancel;
use crate::types::error::RunError;
use crate::types::event::{self, Event, Failure, Record, RunStatus, StepId};
use crate::types::handoff::Envelope;
use crate::types::telemetry::{Link, Signal, TelemetryKind};
use crate::types::user_request::StopLevel;

/// A run in this process.
pub(super) struct Driver<'a> {
    pub evaluator: Evaluator<'a>,
    pub process_env: ProcessEnv,
    pub state: State,
    pub journal: Option<Box<dyn Journal>>,
    pub inputs: Receiver<Input>,
    pub pool: Option<Pool<'a>>,
    pub scribbling: Option<JoinHandle<()>>,
    pub observer_handle: ObserverHandle,
    pub file_writer: Option<FileWriter>,
    pub folder: RunFolder,
    pub layout: Layout,
    /// The number of the last record.
    pub seq: u64,
    /// The last record of the runners before this one.
    pub floor: u64,
    /// The time of the last record, in milliseconds since 1970: it never goes back.
    pub clock: u64,
    /// Records of this turn, not yet flushed.
    pub fresh: Vec<Record>,
    /// Jobs of this turn, not yet submitted.
    pub jobs: Vec<Job>,
    /// The attempts that threads have.
    pub open: BTreeMap<(StepId, u32), Arc<Cancel>>,
    /// The record of the last end of each step that others may need.
    pub ended: HashMap<Place, u64>,
    /// When to decide again.
    pub alarm: Option<Alarm>,
    /// What a person wants.
    pub wish: Option<StopLevel>,
    /// Why the run cannot go on.
    pub broken: Option<String>,
    /// There was more to decide than one turn takes.
    pub unfinished: bool,
    /// Whether no person can answer gates.
    pub headless: bool,
    /// The budgets of the run whose high use the driver has reported to people.
    pub warned: BTreeSet<usize>,
    pub hooks: Hooks,
    /// The callers that answered a gate or wrote to an agent in this turn, each with its reply.
    pub replies: Vec<(Reply, String)>,
    /// The requests of agents that this process waits with.
    pub asking: Asking,
    /// The agents that asked for something in this turn, each with its receipt.
    pub receipts: Vec<(ReplyTo, serde_json::Value)>,
    /// How much of what attempts asked for was refused.
    pub refused: HashMap<(StepId, u32), u32>,
    /// What attempts had sent that start again, since their runner was killed.
    pub again: HashMap<(StepId, u32), Vec<Envelope>>,
    pub durability: Arc<Durability>,
    /// The files that are summed up in the attempts that do that.
    pub summing: HashMap<(StepId, u32), Vec<Wanted>>,
    /// The recording that the answers come from.
    pub replaying: Option<Replaying>,
    /// Inputs of swarms that wait until the driver has decided all that follows from earlier ones.
    pub held: VecDeque<Input>,
    /// Whether all that follows from an input is decided before the next one is taken: what a turn finds in its inbox
    /// is then what has come before it began.
    pub stepwise: bool,
    /// The swarms that run.
    pub teams: RunningSwarms,
    pub models: Arc<Models>,
    pub tools: Arc<Toolbox>,
    pub reactor: Arc<Reactor>,
    /// The server on which agents call the run.
    pub agent_server: AgentServer,
    /// Where tasks of the reactor report.
    pub reports: Inputs,
}

/// The approximate number of records of one turn: so many are in memory, and the driver takes no input before they go.
const BATCH: usize = 1000;

/// A step in whatever round, or with an empty name the frame of a step: its instance, path and name.
pub(super) type Place = (u32, Option<Arc<str>>, Arc<str>);

/// A moment to decide at.
#[derive(Clone, Copy)]
pub(super) struct Alarm {
    /// In milliseconds since 1970.
    pub due: u64,
    /// The same moment on the monotonic clock.
    moment: Instant,
}

impl Alarm {
    /// An alarm at `due`, seen from a run whose last record is from `clock`.
    fn new(due: u64, clock: u64) -> Alarm {
        let rest = due.saturating_sub(now_millis().max(clock));
        // A year at most: an instant cannot hold every moment.
        let far = Duration::from_secs(365 * 24 * 3600);
        Alarm { due, moment: Instant::now() + Duration::from_millis(rest).min(far) }
    }
}

impl Driver<'_> {
    /// Records `first`, and goes on until the run has ended, was stopped, or cannot go on.
    pub(super) fn run(&mut self, first: FirstRecord) {
        match first {
            FirstRecord::New(events) => events.into_iter().for_each(|event| self.record(event)),
            FirstRecord::Recorded(record) => {
                (self.seq, self.clock) = (record.seq, record.at);
                self.state.apply(&record);
                self.fresh.push(*record);
            }
        }
        if self.floor > 0 {
            self.mend_outputs();
            self.deliver_decided();
            self.decide_outlasting();
            self.note_sent();
            self.answer_all_headless();
        }
        self.run_turn();
        while !self.is_over() {
            if !self.unfinished
                && self.held.is_empty()
                && let Some(input) = self.wait()
            {
                self.receive_input(input);
            }
            self.hear_all();
            self.run_turn();
        }
        self.close_diverged();
        self.shut_down();
        if let Some(journal) = self.journal.take()
            && let Err(error) = journal.close()
        {
            self.broken.get_or_insert(format!("the journal cannot be written: {error}"));
        }
    }

    /// Takes what has come.
    fn hear_all(&mut self) {
        while self.fresh.len() < BATCH {
            let held = if self.unfinished { None } else { self.held.pop_front() };
            let Some(input) = held.or_else(|| self.inputs.try_recv().ok()) else { return };
            if let Some(input) = self.stage(input) {
                self.receive_input(input);
            }
        }
    }

    /// Takes an input. What agents of a swarm know when they are asked depends on the order of answers: where one runs,
    /// everything that follows from an input is decided before the next is taken.
    fn receive_input(&mut self, input: Input) {
        if self.teams.is_empty() && !self.stepwise {
            return self.handle_input(input);
        }
        let follows = matches!(input, Input::Said { .. } | Input::Ended { .. } | Input::Left { .. });
        if self.unfinished && (matches!(input, Input::Swarm { .. }) || self.stepwise && follows) {
            return self.held.push_back(input);
        }
        self.handle_input(input);
        self.run_decisions();
    }

    /// What came of it.
    pub(super) fn outcome(mut self) -> Result<Outcome, RunError> {
        let run = self.folder.id.clone();
        let divergence = self.divergence();
        if let Some(reason) = self.broken {
            return Err(RunError::Interrupted { run, reason });
        }
        if let Some(divergence) = divergence {
            return Err(RunError::Diverged(divergence));
        }
        let ended = match self.state.final_status() {
            Some(RunStatus::Succeeded) => Ended::Succeeded,
            Some(RunStatus::Failed) => Ended::Failed,
            Some(RunStatus::OverBudget) => Ended::OverBudget,
            None => Ended::Stopped,
        };
        let values = super::load_values(&self.state, &self.folder)?;
        let ends =
            (1..=self.state.graph().instances()).filter_map(|instance| self.state.instance_end(instance)).collect();
        let outcome = Outcome { run, ended, values, ends, failed: self.state.unhandled_steps().collect() };
        self.judge_replay(&outcome)?;
        Ok(outcome)
    }

    fn is_over(&self) -> bool {
        let halted = self.broken.is_some()
            || self.has_diverged()
            || self.state.is_stopping()
            || self.state.final_status().is_some();
        halted && self.open.is_empty() && self.teams.is_empty()
    }

    fn wait(&mut self) -> Option<Input> {
        if self.replaying.is_some() {
            return self.wait_replayed();
        }
        // The loop holds the other end itself: there is always one.
        let Some(pool) = &mut self.pool else { return self.inputs.recv().ok() };
        // They have their turn also where one input follows another.
        if pool.has_own() {
            pool.run_once(Some(Instant::now()));
        }
        let due = self.alarm.map(|alarm| alarm.moment);
        loop {
            if let Ok(input) = self.inputs.try_recv() {
                return Some(input);
            }
            if due.is_some_and(|due| due <= Instant::now()) {
                self.fire_alarm();
                return None;
            }
            pool.run_once(due);
        }
    }

    /// The pause that is waited for is over, also where the clock on the wall was put back meanwhile. False when there
    /// is none.
    pub(super) fn fire_alarm(&mut self) -> bool {
        let alarm = self.alarm.take();
        self.clock = self.clock.max(alarm.map_or(0, |alarm| alarm.due));
        alarm.is_some()
    }

    fn handle_input(&mut self, input: Input) {
        match input {
            Input::Wish(wish) => self.apply_stop(wish),
            Input::Answer(answer, reply) => self.take_persons(answer, reply),
            Input::Message(message, reply) => self.take_message(&message, reply),
            Input::Replayed { step, take } => self.take_replayed(step, take),
            Input::Begins { step, attempt } => self.begin_replayed(step, attempt),
            Input::Does { step, attempt, deed } => self.apply_effect(&step, attempt, deed),
            Input::Written(written) => self.write_again(&written),
            Input::Agreed { verdict } => self.agree_replayed(verdict),
            Input::Diverged { step, attempt, divergence } => self.end_diverged(step, attempt, divergence),
            // Only a replay hears of it.
            Input::Parked { .. } => {}
            Input::Lives { step, attempt, process } => {
                self.agent_server.register_process(&step, attempt, process.group);
                self.record(Event::ProcessStarted { step, attempt, process });
            }
            Input::Session { step, attempt, session } => self.record_session(step, attempt, session),
            Input::Wants { step, attempt, wish, reply } => self.task_wants(step, attempt, *wish, reply),
            Input::Ended { step, attempt, outcome } => {
                self.asking.forget_attempt(&step, attempt);
                self.open.remove(&(step.clone(), attempt));
                self.refused.remove(&(step.clone(), attempt));
                self.end_attempt(step, attempt, *outcome);
            }
            Input::Left { step, attempt, artifact } => {
                self.record(Event::ArtifactStored { step, attempt, artifact });
            }
            Input::Said { step, attempt, operation, hearer } => {
                self.handle_operation(&step, attempt, operation, hearer)
            }
            Input::Overhears { step, attempt, hearer } => self.relay_messages(&step, attempt, hearer),
            Input::Swarm { step, attempt, word } => self.handle_report(&step, attempt, *word),
            Input::Broken(reason) => self.give_up(reason),
        }
    }

    /// Records the session id of an attempt's conversation, if the state does not hold it yet.
    fn record_session(&mut self, step: StepId, attempt: u32, session: String) {
        let key = self.state.find_step(&step).filter(|&key| self.state.takes_turn(key, attempt));
        if key.is_some_and(|key| self.state.talk_of(key) != Some(&session)) {
            self.record(Event::SessionKnown { step, attempt, session });
        }
    }

    fn apply_stop(&mut self, wish: StopLevel) {
        self.wish = self.wish.max(Some(wish));
        if !self.state.is_stopping() && self.state.final_status().is_none() {
            self.record(Event::StopRequested);
        }
        if wish == StopLevel::Kill {
            self.open.values().for_each(|cancel| cancel.request_stop(StopLevel::Kill));
            self.teams.kill_programs();
        }
    }

    /// Nothing can be recorded any more: nothing starts, and what runs is ended.
    pub(super) fn give_up(&mut self, reason: String) {
        if self.broken.is_none() {
            self.broken = Some(reason);
            self.fresh.clear();
            for job in self.jobs.drain(..) {
                self.open.remove(&(job.step, job.attempt));
            }
            let wish = self.wish.unwrap_or(StopLevel::Stop);
            self.open.values().for_each(|cancel| cancel.request_stop(wish));
            self.teams.clear();
            self.asking.clear();
        }
    }

    /// Decides until there is nothing to decide, or enough was decided, then makes known what was decided, and starts
    /// it.
    pub(super) fn run_turn(&mut self) {
        let handed_over = self.seq - self.fresh.len() as u64;
        self.run_decisions();
        let written = self.fresh.is_empty();
        // What a process puts out is shown after the record that it started.
        self.publish_records();
        // What waits for none of this turn's records need not wait for them to be written either.
        let (ready, waiting) = std::mem::take(&mut self.jobs).into_iter().partition(|job| job.after <= handed_over);
        self.submit(ready);
        self.jobs = waiting;
        if !written {
            self.hand_over();
        }
        if let Some(gate) = self.teams.release() {
            self.open_gate(gate);
        }
        self.acknowledge();
        self.hand_receipts();
        let waiting = std::mem::take(&mut self.jobs);
        self.submit(waiting);
    }

    /// Decides until there is nothing to decide, or enough was decided.
    fn run_decisions(&mut self) {
        self.unfinished = false;
        while self.broken.is_none() && !self.has_diverged() {
            let commands = decide_commands(&mut self.state, now_millis().max(self.clock));
            let mut idle = true;
            for command in commands {
                idle &= matches!(command, Command::WakeAt(_));
                self.carry_out(command);
            }
            if idle {
                break;
            }
            if self.fresh.len() >= BATCH {
                self.unfinished = true;
                break;
            }
        }
    }

    /// Lets the turns and calls of swarms begin that were ordered, once the records so far are durable.
    fn open_gate(&mut self, gate: watch::Sender<bool>) {
        let (durability, last) = (Arc::clone(&self.durability), self.seq);
        match self.reactor.handle() {
            Ok(handle) => {
                // Who could not be waited for reports that by itself.
                handle.spawn_blocking(move || durability.wait(last).is_ok() && gate.send(true).is_ok());
            }
            Err(problem) => self.give_up(problem),
        }
    }

    fn submit(&mut self, jobs: Vec<Job>) {
        if let Some(pool) = &mut self.pool {
            jobs.into_iter().for_each(|job| pool.submit(job));
        }
    }

    fn carry_out(&mut self, command: Command) {
        match command {
            Command::Start { step, attempt } if self.begins_later(&step, attempt) => {}
            Command::Start { step, attempt } => self.start_attempt(step, attempt),
            Command::Judge { step } => self.judge_condition(step),
            Command::JudgeRound { instance, iteration, within } => self.judge_round(instance, iteration, within),
            Command::Open { step, attempt } => self.open_step(step, attempt),
            Command::Conclude { step, attempt, failure } => self.conclude_step(step, attempt, failure),
            Command::Close { step, owes } => self.record(Event::NodeClosed { step, owes }),
            Command::Swarm { step, attempt } => self.advance_swarm(&step, attempt),
            Command::Overdue => self.expire_run(),
            Command::Ask { step } => self.ask_person(step),
            Command::TimeOut { step } => self.time_out(step),
            Command::Expire { request } => self.expire_request(request),
            Command::AskToGoOn { step, attempt } => self.ask_to_go_on(&step, attempt),
            Command::Skip { step, reason } => self.record(Event::StepSkipped { step, reason }),
            Command::Cancel { step, attempt } => {
                if self.cancel_swarm(&step, attempt) {
                    return;
                }
                if let Some(cancel) = self.open.get(&(step, attempt)) {
                    cancel.request_stop(self.wish.unwrap_or(StopLevel::Stop));
                }
            }
            Command::WakeAt(due) => self.alarm = Some(Alarm::new(due, self.clock)),
            Command::Finish { status } => {
                // What was put out belongs to the run: it is over when all of it is on disk.
                self.shut_down();
                self.record(Event::RunFinished { status });
            }
        }
    }

    fn open_step(&mut self, step: StepId, attempt: u32) {
        let opening = match self.state.find_step(&step) {
            Some(key) => self.evaluator.open_step(&self.state, key),
            None => Err(eval::unknown_step(&step)),
        };
        let opening = match opening {
            Ok(opening) => opening,
            Err(failure) => {
                self.record(Event::AttemptStarted { step: step.clone(), attempt, reserved: None, summarizer: None });
                return self.end_attempt(
                    step,
                    attempt,
                    event::Outcome { failure: Some(failure), ..Default::default() },
                );
            }
        };
        let store = |text: Option<String>| text.map(|text| store_content(&self.folder, text)).transpose();
        match (store(opening.list), store(opening.params)) {
            (Ok(list), Ok(params)) => self.record(Event::Opened { step, attempt, items: opening.items, list, params }),
            (Err(error), _) | (_, Err(error)) => self.give_up(error.to_string()),
        }
    }

    fn conclude_step(&mut self, step: StepId, attempt: u32, failure: Option<Failure>) {
        let Some(key) = self.state.find_step(&step) else { return };
        let outcome = self.evaluator.conclude_step(&self.state, key, failure);
        if let Some(output) = &outcome.output
            && let Ok(text) = self.folder.read_text(output)
        {
            self.write_output(&step, &text);
        }
        self.end_attempt(step, attempt, outcome);
    }

    fn judge_condition(&mut self, step: StepId) {
        let event = match self.state.find_step(&step) {
            Some(key) => self.evaluator.judge_condition(&self.state, key),
            None => Event::ConditionJudged { error: Some(eval::unknown_step(&step).to_string()), step, holds: false },
        };
        self.record(event);
    }

    fn judge_round(&mut self, instance: u32, iteration: u32, within: Option<Arc<str>>) {
        let frame = self.state.frame_of(instance, within.as_ref());
        let (holds, problems) =
            frame.map_or((false, Vec::new()), |frame| self.evaluator.judge_round(&self.state, frame));
        for problem in problems {
            self.observer_handle.send_notice(format!("an `until` counts as false: {problem}"));
        }
        self.record(Event::RoundJudged { instance, iteration, holds, within });
    }

    /// Writes an output for people.
    pub(super) fn write_output(&self, step: &StepId, text: &str) {
        if let Some(file_writer) = &self.file_writer {
            file_writer.write(self.layout.output_path(step), text.as_bytes().to_vec());
        }
    }

    /// Writes the outputs that a killed runner had recorded, but not yet written for people.
    fn mend_outputs(&self) {
        for (step, output) in self.state.outputs() {
            // An artifact that cannot be read is reported where it is needed.
            let Ok(text) = self.folder.read_text(output) else { continue };
            let written = std::fs::read(self.layout.output_path(&step)).unwrap_or_default();
            let written = String::from_utf8_lossy(&written);
            if written.strip_suffix('\n').unwrap_or(&written) != text {
                self.write_output(&step, &text);
            }
        }
    }

    /// Append, then apply.
    pub(super) fn record(&mut self, event: Event) {
        let Some(journal) = self.journal.as_mut().filter(|_| self.broken.is_none()) else {
            return;
        };
        self.seq += 1;
        self.clock = now_millis().max(self.clock);
        let record = Record { seq: self.seq, at: self.clock, event };
        journal.append(&record);
        self.state.apply(&record);
        self.fresh.push(record);
    }

    /// Shows this turn's records.
    fn publish_records(&mut self) {
        let fresh = std::mem::take(&mut self.fresh);
        if self.broken.is_some() || fresh.is_empty() {
            return;
        }
        if !self.evaluator.plan.hooks.is_empty() && self.replaying.is_none() {
            fresh.iter().for_each(|record| self.start_hooks(&record.event));
        }
        let signals = if self.observer_handle.wants_signals() { self.connection_signals(&fresh) } else { Vec::new() };
        self.observer_handle.send_records(fresh);
        signals.into_iter().for_each(|signal| self.observer_handle.send_signal(signal));
    }

    /// How the nodes stand now that these records are about.
    fn connection_signals(&self, fresh: &[Record]) -> Vec<Signal> {
        let changed: BTreeMap<&StepId, u64> =
            fresh.iter().filter_map(|record| Some((record.event.step()?, record.at))).collect();
        let signal = |(step, at): (&StepId, u64)| {
            // What is inside of a step is forgotten with it.
            let gone = || {
                (0, TelemetryKind::Connection { state: Link::Disconnected, stream: None, session: None, waits: None })
            };
            let (attempt, sign) = match self.state.find_step(step) {
                Some(_) => self.state.find_connection(step)?,
                None => gone(),
            };
            Some(Signal { at, step: step.clone(), attempt, sign })
        };
        changed.into_iter().filter_map(signal).collect()
    }

    /// Hands this turn's records to the system.
    fn hand_over(&mut self) {
        if let Some(Err(error)) = self.journal.as_mut().map(|journal| journal.flush()) {
            self.give_up(format!("the journal cannot be written: {error}"));
        }
        if self.journal.as_mut().is_some_and(|journal| journal.take_intrusions() > 0) {
            let path = self.folder.journal_path();
            self.observer_handle.send_notice(format!(
                "another process wrote into the journal of this run: its records were removed, and have no effect ({})",
                path.display()
            ));
        }
    }

    /// Ends the threads and has every file written.
    fn shut_down(&mut self) {
        self.pool = None;
        self.file_writer = None;
        if let Some(thread) = self.scribbling.take()
            && thread.join().is_err()
        {
            self.give_up("the thread that writes outputs panicked".to_owned());
        }
        while let Ok(input) = self.inputs.try_recv() {
            if let Input::Broken(reason) = input {
                self.give_up(reason);
            }
        }
    }
}

/// The time in milliseconds since 1970.
pub(super) fn now_millis() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
