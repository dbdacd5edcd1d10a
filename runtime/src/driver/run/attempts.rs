//! Attempts, from the order to start one to the record of its end.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::driver::Driver;
use super::eval::{self, file_summaries};
use super::prepare::Prepared;
use super::reuse::{Decision, SWARM};
use crate::core::state::budget::Refusal;
use crate::io::executor::{Job, Survival};
use crate::io::home::Layout;
use crate::io::shim::stop_shims;
use crate::types::event::{self, Content, Event, Failure, StepId};
use crate::types::usage::compute_cost;

/// Makes room for the processes of an attempt that starts: what an earlier start of it left is ended and removed.
pub(super) fn begin_folder(job: &Job) -> Result<(), String> {
    let Some(survival) = &job.survival else { return Ok(()) };
    let failed = |error: std::io::Error| format!("`{}` cannot be cleared: {error}", survival.folder.display());
    remove_processes(&survival.folder).map_err(failed)?;
    match job.work.candidates().iter().any(|taker| taker.fresh.is_some()) {
        true => survival.mark_resumed(true).map_err(failed),
        false => Ok(()),
    }
}

/// Ends what is held in the folder of an attempt, and removes the folder.
pub(super) fn remove_processes(folder: &Path) -> std::io::Result<()> {
    stop_shims(folder);
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

impl Driver<'_> {
    /// Starts an attempt. Where files of its packs are to be summed up first, that is what this attempt does, and the one
    /// after it is the turn.
    pub(super) fn start_attempt(&mut self, step: StepId, attempt: u32) {
        if self.attempts.take_held(&step, attempt) && self.rejoin_attempt(&step, attempt) {
            return;
        }
        self.attempts.made.allow_summaries(!self.world.is_rehearsed() && !self.world.is_planned());
        let mut prepared = self.prepare_attempt(&step, attempt, &[]);
        // Whatever else reads a pack in this attempt takes the summaries that there are.
        self.attempts.made.allow_summaries(false);
        let wanted = self.attempts.made.take_wanted();
        if !wanted.is_empty() {
            // The packs of the attempt are put together when it comes, behind this one.
            self.attempts.made.take_packs();
            prepared = self.prepare_attempt(&step, attempt, &wanted);
        }
        let inputs = match self.inputs_of(&step, attempt, wanted.is_empty()) {
            Ok(inputs) => inputs,
            Err(error) => return self.handle_replay_error(error),
        };
        // Ahead of the budgets: what does not run uses nothing of them.
        let decision = match &prepared {
            Ok(Prepared::Job(job)) => self.weigh_reuse(job),
            Ok(Prepared::Swarm(_)) => Decision::Run(Some(SWARM.to_owned())),
            _ => Decision::Run(None),
        };
        if self.world.is_planned() {
            self.attempts.made.take_packs();
            self.record(Event::AttemptStarted { step: step.clone(), attempt, reserved: None, summarizer: None });
            return self.look_at_attempt((step, attempt), prepared, decision);
        }
        // Ahead of the record of the start, which holds what is reserved.
        let mut reserved = None;
        if matches!(decision, Decision::Run(_))
            && let Ok(Prepared::Job(job)) = &mut prepared
        {
            match self.reserve_budget(job) {
                Ok(admitted) => reserved = admitted,
                Err(Refusal::Run { message, graceful: false }) => {
                    return self.end_over_budget(step, attempt, message);
                }
                // The others go on: the attempt fails as one that its own budget refuses.
                Err(Refusal::Run { message, graceful: true }) => {
                    prepared = Err(Failure::Budget { message: self.spend_budget(message, true) });
                }
                Err(Refusal::Step(message)) => prepared = Err(Failure::Budget { message }),
            }
        }
        let summarizer = wanted.first().map(|first| Arc::from(first.agent.as_str()));
        // Ahead of the start: by this order a replay tells what the attempt began with.
        if !inputs.is_empty() {
            self.record(Event::InputsTaken { step: step.clone(), inputs });
        }
        self.attempts.made.take_packs().into_iter().for_each(|event| self.record(event));
        if let Decision::Run(Some(reason)) = &decision {
            self.record_miss(&step, attempt, reason.clone());
        }
        if let Ok(Prepared::Job(job)) = &prepared
            && let Err(error) = begin_folder(job)
        {
            return self.give_up(error);
        }
        self.record(Event::AttemptStarted { step: step.clone(), attempt, reserved, summarizer });
        self.notices.warn_of_usage(&self.state);
        if !wanted.is_empty() {
            self.attempts.summing.insert((step.clone(), attempt), wanted);
        }
        if let Decision::Take(taken) = decision {
            return self.take_result(step, attempt, *taken);
        }
        let outcome = match prepared {
            Ok(Prepared::Job(mut job)) => {
                let started = self.records.seq;
                match &mut job.survival {
                    // Another driver, in a folder of its own, finds its process by this record alone.
                    Some(Survival { remote: Some(_), .. }) => job.begin_after(started),
                    Some(survival) => survival.epoch = started,
                    None => {}
                }
                return self.attempts.start(job);
            }
            Ok(Prepared::Text(text)) => {
                self.outputs.write_output(&step, &text);
                event::Outcome { output: Some(Content::Text(text)), ..event::Outcome::default() }
            }
            Ok(Prepared::Swarm(goal)) => return self.begin_swarm(step, attempt, goal),
            Err(failure) => event::Outcome { failure: Some(failure), ..event::Outcome::default() },
        };
        self.end_attempt(step, attempt, outcome);
    }

    /// Goes on with an attempt that a former runner has begun. False where it cannot: it starts again.
    fn rejoin_attempt(&mut self, step: &StepId, attempt: u32) -> bool {
        // It goes on in the conversation in which it began.
        let folder = self.outputs.layout.processes_folder(step, attempt);
        if !Survival::is_resumed(&folder) {
            self.attempts.restarted.remove(&(step.clone(), attempt));
        }
        let prepared = self.prepare_attempt(step, attempt, &[]);
        // The former runner has recorded what the attempt reads.
        self.attempts.made.take_packs();
        let Ok(Prepared::Job(mut job)) = prepared else { return false };
        let Some(survival) = &mut job.survival else { return false };
        if self.state.find_step(step).is_some_and(|key| self.state.has_changes(key, attempt)) {
            self.attempts.left.insert((step.clone(), attempt));
        }
        self.record(Event::AttemptRejoined { step: step.clone(), attempt });
        (survival.rejoins, survival.epoch) = (true, self.records.seq);
        self.attempts.start(job);
        true
    }

    /// Removes what lies in `folder` of the processes of an attempt or a turn, once the record of its end is on disk: until
    /// then another runner may need it.
    pub(super) fn forget_processes(&mut self, folder: impl FnOnce(&Layout) -> PathBuf) {
        if !self.world.is_real() || !self.attempts.has_held {
            return;
        }
        let folder = folder(&self.outputs.layout);
        let remote = self.services.remote.clone();
        if remote.is_none() && !folder.exists() {
            return;
        }
        let durable = self.records.durable_in_time();
        match self.services.reactor.handle() {
            Ok(handle) => {
                // Nothing waits for it, and what stays behind is removed with the run.
                let blocking = handle.clone();
                handle.spawn(async move {
                    if durable.await {
                        if let Some(remote) = remote {
                            remote.forget(&folder);
                        }
                        blocking.spawn_blocking(move || remove_processes(&folder));
                    }
                });
            }
            Err(problem) => self.give_up(problem),
        }
    }

    /// An attempt has ended.
    pub(super) fn end_attempt(&mut self, step: StepId, attempt: u32, mut outcome: event::Outcome) {
        // First: the summaries take the place of the output, which is limited and stored below.
        self.store_file_summaries(&step, attempt, &mut outcome);
        self.apply_price(&step, &mut outcome);
        outcome.limit_size();
        for text in [&mut outcome.output, &mut outcome.errors] {
            match text.take().map(|text| self.outputs.store_content(text)).transpose() {
                Ok(stored) => *text = stored,
                Err(error) => return self.give_up(error.to_string()),
            }
        }
        self.services.agent_server.close_session(&step, attempt);
        self.keep_result(&step, attempt, &outcome);
        // Ahead of the record, whose number it notes.
        self.note_end(&step);
        self.record(Event::AttemptEnded { step: step.clone(), attempt, outcome });
        self.forget_processes(|layout| layout.processes_folder(&step, attempt));
        self.notices.warn_of_usage(&self.state);
        if self.state.is_asking(&step) {
            self.escalate(step);
        }
    }

    /// What an attempt cost by the `price` of its provider, where that has not said it itself.
    fn apply_price(&self, step: &StepId, outcome: &mut event::Outcome) {
        let Some(usage) = outcome.usage.as_mut().filter(|usage| usage.cost.is_none()) else { return };
        let asked = self.state.find_step(step).and_then(|key| self.state.acting_agent(key)).map(|agent| &**agent);
        // A fallback that answered has a price of its own.
        let agent = outcome.fallback.as_deref().or(asked).and_then(|agent| self.evaluator.plan.agent(agent));
        let price = agent.and_then(|agent| self.evaluator.plan.provider(&agent.provider)?.price);
        usage.cost = compute_cost(usage, price).map(|millionths| millionths as f64 / 1e6);
    }

    /// Of an attempt in which files were to be summed up: what was written of them, as the ones after it read it.
    fn store_file_summaries(&mut self, step: &StepId, attempt: u32, outcome: &mut event::Outcome) {
        // Most runs have none: their ends need no key.
        if self.attempts.summing.is_empty() {
            return;
        }
        let Some(wanted) = self.attempts.summing.remove(&(step.clone(), attempt)) else { return };
        let answer = outcome.output.take().map(|output| self.evaluator.texts.load_text(&output)).transpose();
        let answer = answer.unwrap_or_else(|message| {
            outcome.failure.get_or_insert(eval::render_failure(message));
            None
        });
        match &outcome.failure {
            None => {
                // Redacted before it is stored: the attempts behind this one read it in their context.
                let answer = self.evaluator.secrets.redact(answer.as_deref().unwrap_or_default());
                outcome.output = Some(Content::Text(file_summaries::summaries_from_answer(&wanted, &answer)));
            }
            // The run ended it itself, so that there is nothing to warn of.
            Some(Failure::Cancelled) => {}
            Some(failure) => {
                let step = step.label();
                self.notices.send(format!("`{step}`: a rule sums up the files of its context: {failure}"));
            }
        }
    }

    /// The next record ends a step: others may start behind it.
    pub(super) fn note_end(&mut self, step: &StepId) {
        // No step waits for a single item, only for its for-each.
        let is_item = self.state.find_step(step).is_some_and(|key| self.state.frame(key.frame).item.is_some());
        if !is_item {
            self.attempts.note_end(step, self.records.seq + 1);
        }
    }
}
