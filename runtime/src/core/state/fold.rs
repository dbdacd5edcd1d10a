//! The fold: what each record changes.

use std::sync::Arc;

use super::State;
use super::budget::Spent;
use super::frame::{Detail, Inner, Phase, Reason};
use super::session::Known;
use crate::core::graph::{Key, Kind};
use crate::types::event::{Content, Event, Failure, Outcome, Process, Record, Reserved, SkipReason, Status, StepId};

/// The processes of an attempt that are remembered.
const PROCESSES: usize = 64;

impl State {
    /// Takes one more record into account.
    pub fn apply(&mut self, record: &Record) {
        if self.finished.is_some() {
            return;
        }
        self.seq = record.seq;
        let before = std::mem::replace(&mut self.at, record.at);
        match &record.event {
            Event::RunStarted { .. } => {
                self.began = Some(record.at);
                self.run_started();
            }
            Event::RunResumed => {
                // While no process ran it, its time stood still.
                self.began = self.began.map(|began| began.saturating_add(record.at.saturating_sub(before)));
                self.approvals_resumed();
                self.swarms_resumed(record.at.saturating_sub(before), record.at);
                self.run_resumed(record.at);
            }
            Event::ConditionJudged { step, holds, error } => {
                if let Some(key) = self.find_unsettled(step) {
                    self.condition_judged(key, *holds, error.as_deref());
                }
            }
            Event::StepSkipped { step, reason } => {
                if let Some(key) = self.find_unsettled(step) {
                    self.step_skipped(key, reason);
                }
            }
            Event::AttemptStarted { step, attempt, reserved, summarizer } => {
                if let Some(key) = self.find_unsettled(step) {
                    self.attempt_started(key, *attempt, (*reserved, summarizer.as_ref()), record.at);
                }
            }
            Event::AttemptRejoined { step, attempt } => {
                if let Some(key) = self.find_unsettled(step) {
                    self.attempt_rejoined(key, *attempt);
                }
            }
            Event::ProcessStarted { step, attempt, process } => {
                if let Some(key) = self.find_unsettled(step)
                    && self.step(key).phase == Phase::Running
                    && self.step(key).attempt == *attempt
                {
                    self.add_process(key, process.clone());
                }
            }
            Event::SessionKnown { step, attempt, session } => {
                if let Some(key) = self.find_running(step, *attempt) {
                    self.session_known(key, session);
                }
            }
            Event::AttemptEnded { step, attempt, outcome } => {
                if let Some(key) = self.find_unsettled(step) {
                    outcome.artifacts.iter().for_each(|kept| self.artifact_stored(key, *attempt, kept));
                    self.attempt_ended(key, *attempt, outcome, record.at);
                }
            }
            Event::Opened { step, attempt, items, list, params } => {
                if let Some(key) = self.find_unsettled(step) {
                    self.apply_opening(key, *attempt, items.unwrap_or(0), list.as_ref(), params.as_ref());
                }
            }
            Event::RoundJudged { instance, iteration, holds, within } => {
                if let Some(frame) = self.frame_of(*instance, within.as_ref()) {
                    self.round_judged(frame, *iteration, *holds);
                }
            }
            Event::GateOpened { step, .. } => {
                if let Some(key) = self.find_unsettled(step) {
                    self.gate_opened(key, record.at);
                }
            }
            Event::GateAnswered { step, choice, output, .. } => {
                if let Some(key) = self.find_unsettled(step) {
                    self.gate_answered(key, choice.as_deref(), output.as_ref(), record.at);
                }
            }
            Event::ApprovalAsked { step, attempt, request } => {
                // In a replay an attempt that a killed runner had begun asks, and begins when it did once more.
                let outlasts = request.wants.outlasts_attempt();
                let asks = |key: &Key| {
                    let step = self.step(*key);
                    step.attempt == *attempt && (outlasts || matches!(step.phase, Phase::Running | Phase::Stalled))
                };
                if let Some(key) = self.find_unsettled(step).filter(asks) {
                    self.approval_asked(key, *attempt, request, record.at);
                }
            }
            // Requests for tasks and for help outlast the attempt: the step of such a one may have settled.
            Event::ApprovalAnswered { verdict, .. } if self.decided_beyond(verdict) => {}
            Event::ApprovalAnswered { step, attempt, verdict } => {
                // Also where its attempt is about to begin again.
                if let Some(key) = self.find_unsettled(step).filter(|&key| self.step(key).attempt == *attempt) {
                    self.approval_answered(key, verdict, record.at);
                }
            }
            Event::Sent { from, to, instance, within, way, letter } => {
                if let Some(scope) = self.frame_of(*instance, within.as_ref()) {
                    self.deliver_message(from.as_ref(), scope, (to, *way), letter);
                }
            }
            Event::PackAppended { pack, text } => {
                self.appended.entry(Arc::clone(pack)).or_default().push(text.clone());
            }
            Event::StatusReported { step, attempt, report } => {
                if let Some(key) = self.find_running(step, *attempt) {
                    self.status_reported(key, report);
                }
            }
            Event::InputsTaken { step, inputs } => {
                if let Some(key) = self.find_unsettled(step) {
                    self.inputs_taken(key, inputs);
                }
            }
            Event::ArtifactStored { step, attempt, artifact } => {
                if let Some(key) = self.find_unsettled(step) {
                    self.artifact_stored(key, *attempt, artifact);
                }
            }
            Event::NodeClosed { step, owes } => {
                if let Some(key) = self.find_unsettled(step) {
                    self.node_closed(key, owes);
                }
            }
            // What a run asked is for its recording; what follows from the answer has events of its own.
            Event::Exchanged { .. } | Event::ReuseMissed { .. } => {}
            Event::BudgetSpent { graceful, .. } => self.budget_spent(*graceful),
            Event::StopRequested => self.stop_requested(),
            Event::RunFinished { status } => self.finished = Some(*status),
            Event::StepReopened { step, attempt, inside } => {
                if !inside {
                    self.step_reopened(step, *attempt);
                }
            }
            Event::UsedBefore { agent, calls, tokens, cost, time_ms } => {
                let used = Spent { calls: *calls, tokens: *tokens, cost: *cost, time_ms: *time_ms, ..Spent::default() };
                self.used_before(agent.as_ref(), used);
            }
            Event::RunReopened { ran_ms, requests, .. } => {
                self.began = Some(record.at.saturating_sub(*ran_ms));
                self.requests_before(*requests);
                self.approvals_resumed();
                self.swarms_resumed(record.at.saturating_sub(before), record.at);
                self.run_resumed(record.at);
                self.run_reopened();
            }
            // What is left happened in a swarm.
            event => {
                if let Some(swarm) = event.swarm()
                    && let Some(key) = self.find_unsettled(&swarm.step)
                {
                    self.apply_swarm_event(key, swarm, event, record.at);
                }
            }
        }
    }

    /// The step of a record, if it belongs to a round that is under way and has not settled.
    fn find_unsettled(&self, id: &StepId) -> Option<Key> {
        self.find_step(id).filter(|&key| self.step(key).status().is_none())
    }

    /// The step of an attempt that runs.
    fn find_running(&self, id: &StepId, attempt: u32) -> Option<Key> {
        let runs = |key: &Key| self.step(*key).phase == Phase::Running && self.step(*key).attempt == attempt;
        self.find_unsettled(id).filter(runs)
    }

    fn run_started(&mut self) {
        for instance in 0..self.graph.instances {
            if self.frame(instance).iteration == 0 {
                self.begin_round(instance);
            }
        }
    }

    /// Open attempts have no outcome and start again; everything else that was ordered is ordered again.
    fn run_resumed(&mut self, at: u64) {
        self.stopping = false;
        self.agenda.alarm = None;
        self.agenda.finishing = false;
        self.agenda.overdue = false;
        for frame in 0..self.frames.len() as u32 {
            if self.frame(frame).judging {
                self.agenda.rounds.insert(frame);
            }
            for step in 0..self.frame(frame).steps.len() as u32 {
                let key = Key { frame, step };
                match self.step(key).phase {
                    Phase::Waiting | Phase::Inside | Phase::Settled(_) => {}
                    Phase::Running => {
                        self.open.insert(key, Vec::new());
                        self.enter_phase(key, Phase::Ready);
                    }
                    // A clock that was wrong must not make the run wait longer than it was told to.
                    Phase::Resting(due) => {
                        let latest = at.saturating_add(self.backoff(key));
                        self.enter_phase(key, Phase::Resting(due.min(latest)));
                    }
                    Phase::Asking(due) => self.enter_phase(key, Phase::Asking(due.min(self.gate_deadline(key, at)))),
                    phase => self.enter_phase(key, phase),
                }
            }
        }
    }

    fn condition_judged(&mut self, key: Key, holds: bool, error: Option<&str>) {
        if self.step(key).phase != Phase::Judging {
            return;
        }
        match error {
            None if holds => self.make_ready(key),
            None => self.enter_phase(key, Phase::Skipping(Reason::When)),
            Some(_) if self.is_ended(key) => self.enter_phase(key, Phase::Skipping(Reason::Ended)),
            Some(error) => {
                self.step_mut(key).detail = Some(Box::new(Detail { error: Some(error.into()), ..Detail::default() }));
                self.fail_step(key);
            }
        }
    }

    fn step_skipped(&mut self, key: Key, reason: &SkipReason) {
        if self.step(key).phase == Phase::Inside {
            return;
        }
        if *reason == SkipReason::FailFast {
            self.frame_mut(key.frame).dropped = true;
        }
        self.approvals_over(key);
        self.settle_step(key, Status::Skipped);
    }

    fn attempt_started(
        &mut self,
        key: Key,
        attempt: u32,
        (reserved, summarizer): (Option<Reserved>, Option<&Arc<str>>),
        at: u64,
    ) {
        let step = self.step(key);
        let begun = matches!(step.phase, Phase::Running | Phase::Inside | Phase::Concluding | Phase::Asking(_));
        // A record that came late, or was written twice around a crash, changes nothing.
        if step.attempt != attempt || begun {
            return;
        }
        self.step_mut(key).has_changes = false;
        self.begin_summing(key, summarizer);
        self.reserve_attempt(key, reserved, at);
        self.mark_started(key);
        self.enter_phase(key, Phase::Running);
        // One that was begun before the runner ended goes on.
        self.look_at(key);
    }

    /// What it reserved is still reserved, and what it read it has read.
    fn attempt_rejoined(&mut self, key: Key, attempt: u32) {
        let step = self.step(key);
        if step.attempt != attempt || step.phase != Phase::Ready {
            return;
        }
        self.mark_started(key);
        self.enter_phase(key, Phase::Running);
        self.look_at(key);
    }

    fn apply_opening(&mut self, key: Key, attempt: u32, items: u32, list: Option<&Content>, params: Option<&Content>) {
        let step = self.step(key);
        let possible = matches!(step.phase, Phase::Ready | Phase::Resting(_));
        if step.attempt != attempt || !possible || !self.node(key).kind.is_container() {
            return;
        }
        self.mark_started(key);
        self.open_inside(key, items, list, params);
    }

    fn gate_opened(&mut self, key: Key, at: u64) {
        if self.step(key).phase == Phase::Ready && matches!(self.node(key).kind, Kind::Gate(_)) {
            self.mark_started(key);
            self.enter_phase(key, Phase::Asking(self.gate_deadline(key, at)));
        }
    }

    fn gate_answered(&mut self, key: Key, choice: Option<&str>, output: Option<&Content>, at: u64) {
        if !matches!(self.step(key).phase, Phase::Asking(_)) {
            return;
        }
        if self.node(key).escalates {
            return self.apply_choice(key, choice, at);
        }
        let chosen = choice.is_some();
        let error = (!chosen).then(|| Failure::Refused.to_string().into());
        self.step_mut(key).detail = Some(Box::new(Detail { output: output.cloned(), error, ..Detail::default() }));
        match chosen {
            true => self.settle_step(key, Status::Succeeded),
            false => self.fail_step(key),
        }
    }

    /// A process of an attempt. Of very many the first is kept, which is that of the attempt itself, and the latest.
    fn add_process(&mut self, key: Key, process: Process) {
        let processes = self.open.entry(key).or_default();
        if processes.len() == PROCESSES {
            processes.remove(1);
        }
        processes.push(process);
    }

    /// A person has said what becomes of a failure; that failure is still what is known of the step.
    fn apply_choice(&mut self, key: Key, choice: Option<&str>, at: u64) {
        match choice {
            Some("retry") => {
                self.step_mut(key).attempt += 1;
                self.enter_phase(key, Phase::Resting(at));
            }
            Some("skip") => {
                self.open.remove(&key);
                self.enter_phase(key, Phase::Skipping(Reason::OnFailure));
            }
            _ => self.fail_step(key),
        }
    }

    /// Until when a gate that opens at `at` waits, or a step whose failure a person decides on.
    fn gate_deadline(&self, key: Key, at: u64) -> u64 {
        let after = match self.node(key).kind {
            Kind::Gate(after) => after,
            _ => self.graph.on_timeout.map(|timeout| timeout.after_ms),
        };
        // The greatest number stands for a gate that waits for ever.
        after.map_or(u64::MAX, |after| at.saturating_add(after).min(u64::MAX - 1))
    }

    fn attempt_ended(&mut self, key: Key, attempt: u32, outcome: &Outcome, at: u64) {
        let step = self.step(key);
        let possible = matches!(step.phase, Phase::Ready | Phase::Resting(_) | Phase::Running | Phase::Concluding);
        if step.attempt != attempt || !possible {
            return;
        }
        self.account_for(key, outcome, at);
        let mut sent = Vec::new();
        if outcome.failure != Some(Failure::Cancelled) {
            // An attempt that was stopped begins anew, with what it had sent: that must count for its turn.
            sent = std::mem::take(&mut self.step_mut(key).sent);
        }
        if outcome.failure != Some(Failure::Cancelled) || self.is_ended(key) {
            self.swarms.remove(&key);
            self.approvals_over(key);
            self.voice_over(key);
        }
        let summed = self.summing_over(key);
        if outcome.failure == Some(Failure::Cancelled) {
            return self.attempt_cancelled(key);
        }
        self.mark_started(key);
        if let Some(by) = summed {
            return self.end_summing(key, by, outcome);
        }
        self.reset_summings(key);
        self.update_session(key, outcome);
        self.open.insert(key, Vec::new());
        let before = self.step_mut(key).interrupted.take();
        if outcome.failure == Some(Failure::Interrupted) {
            return self.attempt_interrupted(key, outcome, before);
        }
        let tries = self.step(key).turn_attempt();
        self.note_attempt(key, outcome, &sent);
        if self.node(key).fix_attempt() == Some(tries) {
            return self.finish_fix(key, outcome.failure.is_none(), at);
        }
        self.step_mut(key).detail = Some(Box::new(Detail {
            output: outcome.output.clone(),
            exit: outcome.exit,
            error: outcome.error().map(Into::into),
            errors: outcome.errors.clone(),
            log: outcome.log.clone(),
            files: outcome.files.clone(),
        }));
        let lasts = matches!(outcome.failure, Some(Failure::Files { lasting: true, .. }));
        let node = self.node(key);
        let (times, closed) = (node.retry.times, matches!(node.kind, Kind::Call(_) | Kind::Each { .. }));
        if closed {
            // No step outside reads what is inside of it.
            let size = self.size(key);
            self.close_inside(key);
            self.step_mut(key).inner = Some(Box::new(Inner::Closed(size)));
        }
        let goes_on = self.node(key).wired || self.is_written_to(key) || self.waits_for_help(key);
        if outcome.failure.is_none() && goes_on {
            self.turn_over(key);
        } else if outcome.failure.is_none() {
            self.settle_step(key, Status::Succeeded);
        } else if self.node(key).fix_attempt() == Some(tries.saturating_add(1)) && !self.is_ended(key) {
            self.step_mut(key).attempt += 1;
            self.enter_phase(key, Phase::Resting(at));
        } else if lasts && self.node(key).fix.is_some() && tries <= times && !self.is_ended(key) {
            // What would fail again is mended at once.
            self.step_mut(key).attempt += times + 2 - tries;
            self.enter_phase(key, Phase::Resting(at));
        } else if tries <= times && !lasts && !self.is_ended(key) {
            match self.find_repetition(key) {
                Some(_) => self.enter_phase(key, Phase::Stalled),
                None => self.try_again(key, at),
            }
        } else if self.node(key).asks_after().is_some_and(|after| after == tries || lasts && tries < after)
            && !self.is_ended(key)
        {
            self.enter_phase(key, Phase::Asking(self.gate_deadline(key, at)));
        } else {
            self.fail_step(key);
        }
    }

    /// The next attempt of the same turn begins after a wait.
    pub(super) fn try_again(&mut self, key: Key, at: u64) {
        self.step_mut(key).attempt += 1;
        let due = at.saturating_add(self.backoff(key));
        self.enter_phase(key, Phase::Resting(due));
    }

    /// The agent that was to mend what failed has had its turn; the step's own failure is still what is known of it.
    fn finish_fix(&mut self, key: Key, mended: bool, at: u64) {
        match mended && !self.is_ended(key) {
            true => {
                self.step_mut(key).attempt += 1;
                self.enter_phase(key, Phase::Resting(at));
            }
            false => self.fail_step(key),
        }
    }

    /// What ends a frame early ends the step; a person's stop, or the runner's own trouble, leaves it to be resumed.
    fn attempt_cancelled(&mut self, key: Key) {
        if self.is_ended(key) {
            self.open.remove(&key);
            return self.enter_phase(key, Phase::Skipping(Reason::Ended));
        }
        let phase = match self.step(key).phase {
            Phase::Running => {
                self.open.insert(key, Vec::new());
                Phase::Ready
            }
            phase => phase,
        };
        self.enter_phase(key, phase);
        self.stop_requested();
    }

    /// Its agent takes another turn, which reads what a person wrote.
    fn attempt_interrupted(&mut self, key: Key, outcome: &Outcome, before: Option<Box<Known>>) {
        if self.is_ended(key) {
            self.open.remove(&key);
            return self.enter_phase(key, Phase::Skipping(Reason::Ended));
        }
        let known = self.turn_session(key, outcome).map(|known| known.continue_from(before.as_deref()));
        let step = self.step_mut(key);
        // In a conversation that goes on, what the turn had read has been said. Another one is told all of it.
        step.heard = if known.is_some() { step.taken.len() } else { 0 };
        step.interrupted = known.map(Box::new);
        step.earlier = step.attempt;
        step.attempt += 1;
        self.enter_phase(key, Phase::Ready);
    }

    fn round_judged(&mut self, number: u32, iteration: u32, holds: bool) {
        let frame = self.frame_mut(number);
        if !frame.judging || frame.iteration != iteration {
            return;
        }
        frame.judging = false;
        self.agenda.rounds.remove(&number);
        self.conclude_frame(number, Some(holds));
    }

    fn stop_requested(&mut self) {
        if std::mem::replace(&mut self.stopping, true) {
            return;
        }
        let running = self.open.keys().filter(|&&key| self.step(key).phase == Phase::Running);
        let running: Vec<Key> = running.copied().collect();
        running.into_iter().for_each(|key| self.cancel(key));
        // Their attempts may have begun outside, although no event says so yet.
        let ordered: Vec<Key> = self.agenda.ordered.iter().copied().collect();
        ordered.into_iter().for_each(|key| self.cancel_ordered(key));
    }

    /// The step ran, so that it handles what it declares to handle.
    fn mark_started(&mut self, key: Key) {
        if !std::mem::replace(&mut self.step_mut(key).started, true) {
            self.open.insert(key, Vec::new());
        }
    }

    /// The wait before the attempt that comes next, in milliseconds: doubled each time, up to its limit.
    fn backoff(&self, key: Key) -> u64 {
        let retry = &self.node(key).retry;
        let failed = self.step(key).turn_attempt().saturating_sub(1);
        let doubled = 1_u64.checked_shl(failed.saturating_sub(1)).unwrap_or(u64::MAX);
        retry.backoff_ms.saturating_mul(doubled).min(retry.max_backoff_ms)
    }
}
