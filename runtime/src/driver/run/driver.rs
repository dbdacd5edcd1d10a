//! The driver, the only loop of a run: await input → append → apply → decide → start.
//!
//! It does everything in a run, one thing after another, on the thread that has it; attempts only report. Invariant: the
//! driver records a change, then applies it; nothing else changes the state.

use std::sync::Arc;

use tokio::sync::watch;

use super::eval::{self, Evaluator};
use super::input_queue::{Alarm, InputQueue};
use super::notices::Notices;
use super::open_attempts::Attempts;
use super::outputs::Outputs;
use super::records::Records;
use super::requests::Requests;
use super::services::Services;
use super::swarms::RunningSwarms;
use super::world::World;
use super::{Ended, FirstRecord, Input, Outcome, store_content};
use crate::core::decide::{Command, decide_commands};
use crate::core::state::State;
use crate::types::error::RunError;
use crate::types::event::{self, Event, Failure, RunStatus, StepId};
use crate::types::user_request::StopLevel;

/// A run in this process.
pub(super) struct Driver<'a> {
    pub evaluator: Evaluator<'a>,
    pub state: State,
    pub records: Records,
    pub queue: InputQueue,
    pub attempts: Attempts,
    pub requests: Requests,
    /// The swarms that run.
    pub teams: RunningSwarms,
    pub outputs: Outputs,
    pub notices: Notices,
    pub services: Services,
    pub world: World<'a>,
}

impl Driver<'_> {
    /// Records `first`, and goes on until the run has ended, was stopped, or cannot go on: all on this thread.
    pub(super) fn run(&mut self, first: FirstRecord) {
        self.begin(first);
        while !self.is_over() {
            self.go_on();
        }
        self.end();
    }

    /// Records `first`, and takes the first turn.
    pub(super) fn begin(&mut self, first: FirstRecord) {
        match first {
            FirstRecord::New(events) => events.into_iter().for_each(|event| self.record(event)),
            FirstRecord::Recorded(record) => {
                self.state.apply(&record);
                self.records.adopt(*record);
            }
        }
        // A former process may have died between a record and what follows from it.
        if self.records.floor > 0 {
            self.outputs.mend(&self.state);
            self.attempts.restarted = self.state.open_steps().map(|open| (open.step, open.attempt)).collect();
            self.deliver_decided();
            self.decide_outlasting();
            self.note_sent();
            self.answer_all_headless();
        }
        self.run_turn();
    }

    /// Waits for an input where all is decided, takes what has come, and takes a turn.
    pub(super) fn go_on(&mut self) {
        if self.queue.may_wait()
            && let Some(input) = self.wait()
        {
            self.receive_input(input);
        }
        self.hear_all();
        self.run_turn();
    }

    /// Takes a turn where something has come, is due, or is still to be decided. False where there was nothing to do.
    pub(super) fn take_turn(&mut self) -> bool {
        if self.is_over() {
            return false;
        }
        let has_heard = self.hear_all();
        let has_work = has_heard || !self.queue.may_wait() || self.queue.is_due() && self.fire_alarm();
        if has_work {
            self.run_turn();
        }
        has_work
    }

    /// Ends what is left, and closes the journal.
    pub(super) fn end(&mut self) {
        // Ahead of the end of the threads and of the journal: this may still record, and run a turn.
        self.close_diverged();
        self.shut_down();
        self.records.close();
    }

    /// Takes what has come: whether there was something.
    fn hear_all(&mut self) -> bool {
        self.services.inputs.begin_taking();
        let mut has_heard = false;
        // What comes beyond that waits in the queue, so that the records of one turn stay few in memory.
        while !self.records.is_full() {
            let Some(input) = self.queue.take_next() else { break };
            has_heard = true;
            if let Some(input) = self.stage(input) {
                self.receive_input(input);
            }
        }
        has_heard
    }

    /// Takes an input. What agents of a swarm know when they are asked depends on the order of answers: where one runs,
    /// everything that follows from an input is decided before the next is taken.
    fn receive_input(&mut self, input: Input) {
        if self.teams.is_empty() && !self.queue.stepwise {
            return self.handle_input(input);
        }
        let follows = matches!(input, Input::Said { .. } | Input::Ended { .. } | Input::Left { .. });
        if self.queue.unfinished
            && (matches!(input, Input::Swarm { .. } | Input::Calls { .. }) || self.queue.stepwise && follows)
        {
            return self.queue.held.push_back(input);
        }
        self.handle_input(input);
        self.run_decisions();
    }

    /// What came of it.
    pub(super) fn outcome(mut self) -> Result<Outcome, RunError> {
        let run = self.outputs.folder.id.clone();
        let divergence = self.divergence();
        if let Some(reason) = self.records.broken {
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
        let values = super::load_values(&self.state, &*self.outputs.texts)?;
        let ends =
            (1..=self.state.graph().instances()).filter_map(|instance| self.state.instance_end(instance)).collect();
        let outcome = Outcome { run, ended, values, ends, failed: self.state.unhandled_steps().collect() };
        self.judge_replay(&outcome)?;
        Ok(outcome)
    }

    /// Whether nothing is left to be waited for.
    pub(super) fn is_over(&self) -> bool {
        let halted = self.records.broken.is_some()
            || self.has_diverged()
            || self.state.is_stopping()
            || self.state.final_status().is_some();
        // What is being ended still reports its end, which is a record as well.
        halted && self.attempts.open.is_empty() && self.teams.is_empty()
    }

    fn wait(&mut self) -> Option<Input> {
        match self.world {
            World::Recorded(_) => self.wait_recorded(),
            World::Rehearsed(_) => self.wait_rehearsed(),
            World::Planned(_) => self.wait_planned(),
            World::Real => self.queue.wait_input(),
        }
    }

    /// The pause that is waited for is over, also where the clock on the wall was put back meanwhile. False when there
    /// is none.
    pub(super) fn fire_alarm(&mut self) -> bool {
        let alarm = self.queue.alarm.take();
        // Where there is no alarm, 0 leaves the clock as it is: it never goes back.
        self.records.advance_clock(alarm.map_or(0, |alarm| alarm.due));
        alarm.is_some()
    }

    fn handle_input(&mut self, input: Input) {
        match input {
            Input::Stop(level) => self.apply_stop(level),
            Input::Answer(answer, reply) => self.take_persons(answer, reply),
            Input::Message(message, reply) => self.take_message(&message, reply),
            Input::Replay(input) => self.take_recorded(*input),
            Input::Lives { step, attempt, process } => {
                // The number of one on another machine is that of any process here.
                if process.started != 0 {
                    self.services.agent_server.register_process(&step, attempt, process.group);
                }
                self.record(Event::ProcessStarted { step, attempt, process });
            }
            Input::Session { step, attempt, session } => self.record_session(step, attempt, session),
            Input::Wants { step, attempt, call, reply } => self.task_wants(step, attempt, *call, reply),
            Input::Ended { step, attempt, outcome } => {
                self.requests.forget_attempt(&step, attempt);
                self.attempts.close(&step, attempt);
                self.end_attempt(step, attempt, *outcome);
            }
            Input::Left { step, attempt, artifact } => {
                self.note_changes(&step, &artifact);
                // A turn that is read once more, because its runner was killed in a check, has left the same.
                if !self.attempts.left.remove(&(step.clone(), attempt)) {
                    self.record(Event::ArtifactStored { step, attempt, artifact });
                }
            }
            Input::ChangesUnknown { step } => self.attempts.reuse.mar(&step, "what its agent changed is not known"),
            Input::Said { step, attempt, operation, hearer } => {
                self.handle_operation(&step, attempt, operation, hearer)
            }
            Input::Calls { step, attempt, turn, name, arguments, hearer } => {
                self.take_call((&step, attempt), &turn, (&name, arguments), hearer);
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

    fn apply_stop(&mut self, level: StopLevel) {
        self.attempts.raise_level(level);
        // A second request only raises the level of the first: the journal needs one request.
        if !self.state.is_stopping() && self.state.final_status().is_none() {
            self.record(Event::StopRequested);
        }
        if level == StopLevel::Kill {
            self.teams.kill_programs();
        }
    }

    /// Nothing can be recorded any more: nothing starts, and what runs is ended.
    pub(super) fn give_up(&mut self, reason: String) {
        if self.records.give_up(reason) {
            self.attempts.give_up();
            self.teams.clear();
            self.requests.forget_tasks();
        }
    }

    /// Decides until there is nothing to decide, or enough was decided, then writes, shows and starts what was decided.
    pub(super) fn run_turn(&mut self) {
        self.run_decisions();
        self.steer_turns();
        if self.records.has_fresh() {
            self.hand_over();
        }
        // After they are written: a person who acts on a record finds it in the journal, even if this process is killed
        // now. Before the jobs: the output of a process is shown after the record that it started.
        self.publish_records();
        if self.world.is_rehearsed() {
            self.perform_jobs();
        }
        if let Some(gate) = self.teams.release() {
            self.open_gate(gate);
        }
        self.deliver_replies();
        self.attempts.submit_jobs();
    }

    /// Decides until there is nothing to decide, or enough was decided.
    fn run_decisions(&mut self) {
        self.queue.unfinished = false;
        while self.records.broken.is_none() && !self.has_diverged() {
            let commands = decide_commands(&mut self.state, self.records.now());
            let mut idle = true;
            for command in commands {
                // An alarm alone changes no state: the next decision would only order it again.
                idle &= matches!(command, Command::WakeAt(_));
                self.carry_out(command);
            }
            if idle {
                break;
            }
            if self.records.is_full() {
                self.queue.unfinished = true;
                break;
            }
        }
    }

    /// Lets the turns and calls of swarms begin that were ordered, once the records so far are durable.
    fn open_gate(&mut self, gate: watch::Sender<bool>) {
        let durable = self.records.durable_later();
        match self.services.reactor.handle() {
            Ok(handle) => {
                // Who could not be waited for reports that by itself.
                handle.spawn_blocking(move || durable() && gate.send(true).is_ok());
            }
            Err(problem) => self.give_up(problem),
        }
    }

    /// Tells people, tasks and agents what became of what they asked for, once that is durable.
    fn deliver_replies(&mut self) {
        // The wait for the disk takes long: a turn without replies goes on without it.
        if !self.requests.replies.is_empty() {
            self.requests.replies.deliver(&self.records.wait_durable());
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
            Command::Swarm { swarm, command } => self.carry_out_swarm(&swarm, *command),
            Command::Overdue => self.expire_run(),
            Command::Ask { step } => self.ask_person(step),
            Command::TimeOut { step } => self.time_out(step),
            Command::Expire { request } => self.expire_request(request),
            Command::AskToGoOn { step, attempt } => self.ask_to_go_on(&step, attempt),
            Command::Skip { step, reason } => self.record(Event::StepSkipped { step, reason }),
            Command::Cancel { step, attempt } => {
                if !self.cancel_swarm(&step, attempt) && !self.cancel_rehearsed(&step, attempt) {
                    self.attempts.stop(step, attempt);
                }
            }
            Command::WakeAt(due) => self.queue.alarm = Some(Alarm::new(due, self.records.clock)),
            Command::Finish { status } => {
                // What was put out belongs to the run: it is over when all of it is on disk.
                self.shut_down();
                self.record(Event::RunFinished { status });
            }
        }
    }

    fn open_step(&mut self, step: StepId, attempt: u32) {
        let opening = match self.state.find_step(&step) {
            Some(key) => self.evaluator.open_step(&self.state, key, &self.attempts.made),
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
        let store = |text: Option<String>| text.map(|text| store_content(&*self.outputs.texts, text)).transpose();
        match (store(opening.list), store(opening.params)) {
            (Ok(list), Ok(params)) => self.record(Event::Opened { step, attempt, items: opening.items, list, params }),
            (Err(error), _) | (_, Err(error)) => self.give_up(error.to_string()),
        }
    }

    fn conclude_step(&mut self, step: StepId, attempt: u32, failure: Option<Failure>) {
        let Some(key) = self.state.find_step(&step) else { return };
        let outcome = self.evaluator.conclude_step(&self.state, key, failure);
        if let Some(output) = &outcome.output
            && let Ok(text) = self.outputs.texts.load_text(output)
        {
            self.outputs.write_output(&step, &text);
        }
        self.end_attempt(step, attempt, outcome);
    }

    fn judge_condition(&mut self, step: StepId) {
        let event = match self.state.find_step(&step) {
            Some(key) => self.evaluator.judge_condition(&self.state, key, &self.attempts.made),
            None => Event::ConditionJudged { error: Some(eval::unknown_step(&step).to_string()), step, holds: false },
        };
        self.record(event);
    }

    fn judge_round(&mut self, instance: u32, iteration: u32, within: Option<Arc<str>>) {
        let frame = self.state.frame_of(instance, within.as_ref());
        let (holds, problems) = frame
            .map_or((false, Vec::new()), |frame| self.evaluator.judge_round(&self.state, frame, &self.attempts.made));
        for problem in problems {
            match self.world.rehearsal() {
                Some(rehearsing) => rehearsing.note_fault(None, problem),
                None => self.notices.send(format!("an `until` counts as false: {problem}")),
            }
        }
        self.record(Event::RoundJudged { instance, iteration, holds, within });
    }

    /// Stores the texts that the event may refer to, and records it. In a run that is recorded, what has been exchanged
    /// with the outside is recorded before it.
    pub(super) fn record(&mut self, event: Event) {
        if let Err(error) = self.outputs.store_texts(self.attempts.made.take_texts()) {
            return self.give_up(error.to_string());
        }
        for exchanged in self.evaluator.source.take_exchanges() {
            match store_content(&*self.outputs.texts, exchanged.exchange) {
                Ok(exchange) => {
                    let (step, attempt) = (exchanged.step, exchanged.attempt);
                    self.append(Event::Exchanged { step, attempt, exchange });
                }
                Err(error) => self.give_up(error.to_string()),
            }
        }
        self.append(event);
    }

    /// Append, then apply.
    fn append(&mut self, event: Event) {
        // Ahead of the record: afterwards the frame of an item may be gone.
        let settling = self.note_event(&event);
        self.attempts.reuse.note_event(&event);
        if let Some(record) = self.records.append(event) {
            self.state.apply(record);
        }
        if let Some(settling) = settling {
            self.note_settled(settling);
        }
    }

    /// Shows this turn's records.
    fn publish_records(&mut self) {
        let fresh = self.records.take_fresh();
        if fresh.is_empty() {
            return;
        }
        if let Some(rehearsing) = self.world.rehearsal() {
            return rehearsing.keep_records(fresh);
        }
        if self.world.is_real() {
            let world = (self.evaluator.plan, &self.services.process_env, &self.outputs);
            self.notices.start_hooks(&fresh, &self.state, world);
        }
        self.notices.show_records(fresh, &self.state);
    }

    /// Hands this turn's records to the system.
    fn hand_over(&mut self) {
        self.write_results(false);
        if let Err(problem) = self.records.flush() {
            self.give_up(problem);
        }
        if self.records.take_intrusion() {
            let path = self.outputs.folder.journal_path();
            self.notices.send(format!(
                "another process wrote into the journal of this run: its records were removed, and have no effect ({})",
                path.display()
            ));
        }
    }

    /// Ends the threads and has every file written.
    fn shut_down(&mut self) {
        self.attempts.end_pool();
        self.write_results(true);
        if let Err(problem) = self.outputs.close() {
            self.give_up(problem);
        }
        // A thread that has just ended may have reported that a file cannot be written.
        while let Some(input) = self.queue.take_received() {
            if let Input::Broken(reason) = input {
                self.give_up(reason);
            }
        }
    }
}
