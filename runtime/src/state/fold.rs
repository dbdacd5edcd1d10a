//! The fold: what each record changes.

use super::State;
use super::round::{Detail, Phase, Reason};
use crate::event::{Event, Failure, Outcome, Record, SkipReason, Status, StepId};
use crate::graph::Key;

impl State {
    /// Takes one more record into account.
    pub fn apply(&mut self, record: &Record) {
        if self.finished.is_some() {
            return;
        }
        match &record.event {
            Event::RunStarted { .. } => self.run_started(),
            Event::RunResumed => self.run_resumed(record.at),
            Event::ConditionJudged { step, holds, error } => {
                if let Some(key) = self.key(step) {
                    self.condition_judged(key, *holds, error.as_deref());
                }
            }
            Event::StepSkipped { step, reason } => {
                if let Some(key) = self.key(step) {
                    self.step_skipped(key, reason);
                }
            }
            Event::AttemptStarted { step, attempt } => {
                if let Some(key) = self.key(step) {
                    self.attempt_started(key, *attempt);
                }
            }
            Event::ProcessStarted { step, attempt, process } => {
                if let Some(key) = self.key(step)
                    && self.step(key).phase == Phase::Running
                    && self.step(key).attempt == *attempt
                {
                    self.open.insert(key, Some(*process));
                }
            }
            Event::AttemptEnded { step, attempt, outcome } => {
                if let Some(key) = self.key(step) {
                    self.attempt_ended(key, *attempt, outcome, record.at);
                }
            }
            Event::RoundJudged { instance, iteration, holds } => self.round_judged(*instance, *iteration, *holds),
            Event::StopRequested => self.stop_requested(),
            Event::RunFinished { status } => self.finished = Some(*status),
        }
    }

    /// The step of a record, if it belongs to a round that is under way and has not settled.
    fn key(&self, id: &StepId) -> Option<Key> {
        let key = Key { instance: id.instance.checked_sub(1)?, step: self.graph.find(&id.name)? };
        let instance = self.instances.get(key.instance as usize)?;
        let current = instance.iteration == id.iteration && id.iteration > 0 && instance.end.is_none();
        (current && self.step(key).status().is_none()).then_some(key)
    }

    fn run_started(&mut self) {
        for instance in 0..self.graph.instances {
            if self.instance(instance).iteration == 0 {
                self.begin_round(instance);
            }
        }
    }

    /// Open attempts have no outcome and start again; everything else that was ordered is ordered again.
    fn run_resumed(&mut self, at: u64) {
        self.stopping = false;
        self.agenda.alarm = None;
        self.agenda.finishing = false;
        for instance in 0..self.graph.instances {
            if self.instance(instance).judging {
                self.agenda.rounds.insert(instance);
            }
            for step in 0..self.instance(instance).steps.len() as u32 {
                let key = Key { instance, step };
                match self.step(key).phase {
                    Phase::Waiting | Phase::Settled(_) => {}
                    Phase::Running => {
                        self.open.insert(key, None);
                        self.enter(key, Phase::Ready);
                    }
                    // A clock that was wrong must not make the run wait longer than its backoff.
                    Phase::Resting(due) => {
                        let latest = at.saturating_add(self.backoff(key));
                        self.enter(key, Phase::Resting(due.min(latest)));
                    }
                    phase => self.enter(key, phase),
                }
            }
        }
    }

    fn condition_judged(&mut self, key: Key, holds: bool, error: Option<&str>) {
        if self.step(key).phase != Phase::Judging {
            return;
        }
        match error {
            None if holds => self.enter(key, Phase::Ready),
            None => self.enter(key, Phase::Skipping(Reason::When)),
            Some(_) if self.instance(key.instance).stopped.is_some() => {
                self.enter(key, Phase::Skipping(Reason::Stopped));
            }
            Some(error) => {
                self.step_mut(key).detail = Some(Box::new(Detail { error: Some(error.into()), ..Detail::default() }));
                self.fail(key);
            }
        }
    }

    fn step_skipped(&mut self, key: Key, reason: &SkipReason) {
        if *reason == SkipReason::FailFast {
            self.instance_mut(key.instance).dropped = true;
        }
        self.settle(key, Status::Skipped);
    }

    fn attempt_started(&mut self, key: Key, attempt: u32) {
        let step = self.step(key);
        if step.attempt != attempt || step.phase == Phase::Running {
            return;
        }
        self.started(key);
        self.enter(key, Phase::Running);
    }

    fn attempt_ended(&mut self, key: Key, attempt: u32, outcome: &Outcome, at: u64) {
        let step = self.step(key);
        let possible = matches!(step.phase, Phase::Ready | Phase::Resting(_) | Phase::Running);
        if step.attempt != attempt || !possible {
            return;
        }
        if outcome.failure == Some(Failure::Cancelled) {
            return self.attempt_cancelled(key);
        }
        self.started(key);
        self.open.insert(key, None);
        self.step_mut(key).detail = Some(Box::new(Detail {
            output: outcome.output.clone(),
            exit: outcome.exit,
            error: outcome.error().map(Into::into),
        }));
        let stopped = self.instance(key.instance).stopped.is_some();
        if outcome.failure.is_none() {
            self.settle(key, Status::Succeeded);
        } else if attempt <= self.graph.node(key.step).retry.times && !stopped {
            self.step_mut(key).attempt += 1;
            let due = at.saturating_add(self.backoff(key));
            self.enter(key, Phase::Resting(due));
        } else {
            self.fail(key);
        }
    }

    /// A `stop` of the pipeline ends the step; a person's stop, or the runner's own trouble, leaves it to be resumed.
    fn attempt_cancelled(&mut self, key: Key) {
        if self.instance(key.instance).stopped.is_some() {
            self.open.remove(&key);
            return self.enter(key, Phase::Skipping(Reason::Stopped));
        }
        let phase = match self.step(key).phase {
            Phase::Running => {
                self.open.insert(key, None);
                Phase::Ready
            }
            phase => phase,
        };
        self.enter(key, phase);
        self.stop_requested();
    }

    fn round_judged(&mut self, instance: u32, iteration: u32, holds: bool) {
        let Some(number) = instance.checked_sub(1) else { return };
        match self.instances.get(number as usize) {
            Some(instance) if instance.judging && instance.iteration == iteration => {}
            _ => return,
        }
        self.instance_mut(number).judging = false;
        self.agenda.rounds.remove(&number);
        self.conclude(number, Some(holds));
    }

    fn stop_requested(&mut self) {
        if std::mem::replace(&mut self.stopping, true) {
            return;
        }
        let running = self.open.keys().filter(|&&key| self.step(key).phase == Phase::Running);
        let keys: Vec<Key> = running.chain(&self.agenda.ordered).copied().collect();
        keys.into_iter().for_each(|key| self.cancel(key));
    }

    /// The step ran, so that it handles what it declares to handle.
    fn started(&mut self, key: Key) {
        if !std::mem::replace(&mut self.step_mut(key).started, true) {
            self.open.insert(key, None);
        }
    }

    /// The wait before the attempt that comes next, in milliseconds: doubled each time, up to its limit.
    fn backoff(&self, key: Key) -> u64 {
        let retry = &self.graph.node(key.step).retry;
        let failed = self.step(key).attempt.saturating_sub(1);
        let doubled = 1_u64.checked_shl(failed.saturating_sub(1)).unwrap_or(u64::MAX);
        retry.backoff_ms.saturating_mul(doubled).min(retry.max_backoff_ms)
    }
}
