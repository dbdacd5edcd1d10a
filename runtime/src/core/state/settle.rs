//! Settling: what the end of a step means for its dependants, its round and the run.
//!
//! Each function does work for the edges of one step at most, except the beginning and the early end of a round, which
//! are paid for by the round's own events.

use std::sync::Arc;

use swarmc_plan::{Exhausted, Join, RoundFailure, StopStatus, When};

use super::State;
use super::frame::{End, Ending, Fault, Phase, Reason, Step};
use crate::core::graph::{Edge, Key, Kind};
use crate::types::event::Status;

impl State {
    /// Begins the next round of a frame.
    pub(super) fn begin_round(&mut self, number: u32) {
        let graph = Arc::clone(&self.graph);
        let region = graph.region(self.frame(number).region);
        let fresh = region.nodes.iter().map(|node| Step::new(node.needs.len() as u32)).collect();
        let mut steps = std::mem::replace(&mut self.frame_mut(number).steps, fresh);
        for (step, before) in self.frame_mut(number).steps.iter_mut().zip(&mut steps) {
            // A step that does the same in every round goes in circles, too.
            step.streak = before.streak.take();
        }
        let previous = self.archive_steps(steps);
        // A round that begins after `fail-fast` has cut what is around it starts nothing.
        let cut = self.frame(number).parent.map_or(self.halted, |parent| self.frame(parent.frame).cut);
        let frame = self.frame_mut(number);
        frame.previous = previous;
        frame.iteration += 1;
        frame.unsettled = region.nodes.len() as u32;
        frame.unhandled.clear();
        frame.cut = cut;
        frame.dropped = false;
        let settled = std::mem::take(&mut frame.settled);
        if frame.parent.is_none() {
            for (total, part) in self.settled.iter_mut().zip(settled) {
                *total -= u64::from(part);
            }
        }
        // Nothing would settle, and so nothing would end it.
        if region.nodes.is_empty() {
            return self.finish_frame(number, End::Succeeded);
        }
        self.forget_round(number);
        self.reopen_round(number);
        self.all_stand(number);
        for (step, node) in (0..).zip(&region.nodes) {
            if node.needs.is_empty() {
                self.needs_hold(Key { frame: number, step });
            }
        }
    }

    /// The step failed for good.
    pub(super) fn fail_step(&mut self, key: Key) {
        match self.node(key).lenient {
            true => {
                self.open.remove(&key);
                self.enter_phase(key, Phase::Skipping(Reason::OnFailure));
            }
            false => self.settle_step(key, Status::Failed),
        }
    }

    /// The step ended.
    pub(super) fn settle_step(&mut self, key: Key, status: Status) {
        let graph = Arc::clone(&self.graph);
        let node = &graph.region(self.frame(key.frame).region).nodes[key.step as usize];
        self.enter_phase(key, Phase::Settled(status));
        self.open.remove(&key);
        self.help_over(key);
        if node.spawned {
            // No agent can have it started any more.
            self.spawns_over(self.frame(key.frame).scope, |to| *to == *node.name);
        }
        let frame = self.frame_mut(key.frame);
        frame.unsettled -= 1;
        frame.settled[status as usize] += 1;
        if frame.parent.is_none() {
            self.settled[status as usize] += 1;
        }
        match (status, node.kind) {
            (Status::Failed, _) => self.count_handlers(key, node.forgiven, &node.dependants),
            (Status::Succeeded, Kind::Stop(status)) => self.stop_pipeline(key, status),
            _ => {}
        }
        // A handler that ran has handled the failure, however it ended.
        if !self.step(key).started {
            self.handler_gone(key, &node.needs);
        }
        for edge in &node.dependants {
            self.need_settled(Key { step: edge.other, ..key }, edge, key.step, status);
        }
        if self.frame(key.frame).unsettled == 0 {
            self.round_over(key.frame);
        }
    }

    /// A need of the step settled.
    fn need_settled(&mut self, key: Key, edge: &Edge, needed: u32, status: Status) {
        let node = self.node(key);
        let (join, declared) = (node.join, node.declared);
        let step = self.step_mut(key);
        step.waiting -= 1;
        if step.phase != Phase::Waiting {
            return;
        }
        let (holds, broken) = match (edge.declared, join) {
            // A dependency that the plan adds of itself, as by a template that reads a step, is no part of the `join`.
            (false, _) | (true, Join::All) => (true, !is_satisfied(edge.when, status)),
            (true, Join::Any) => (is_satisfied(edge.when, status), false),
            (true, Join::NoneFailed) => (status == Status::Succeeded, status == Status::Failed),
        };
        step.held += u32::from(edge.declared && holds);
        if broken {
            self.enter_phase(key, Phase::Skipping(Reason::Need(needed, status)));
        } else if step.waiting == 0 {
            match declared > 0 && step.held == 0 {
                true => self.enter_phase(key, Phase::Skipping(Reason::Join)),
                false => self.needs_hold(key),
            }
        }
    }

    fn needs_hold(&mut self, key: Key) {
        // What will be skipped in any case needs no judgement.
        let dropped = self.is_ended(key) || self.frame(key.frame).cut;
        match self.node(key).conditional && !dropped {
            true => self.enter_phase(key, Phase::Judging),
            false => self.make_ready(key),
        }
    }

    /// Everything that it needs is there: it may start, or waits for its first envelope.
    pub(super) fn make_ready(&mut self, key: Key) {
        let node = self.node(key);
        match node.heeds && node.wired || node.spawned {
            true => {
                self.enter_phase(key, Phase::Listening);
                self.wake_step(key);
            }
            false if self.find_repetition(key).is_some() => self.enter_phase(key, Phase::Stalled),
            false => self.enter_phase(key, Phase::Ready),
        }
    }

    /// Counts the steps that handle the failure of this one if they run.
    fn count_handlers(&mut self, key: Key, forgiven: bool, dependants: &[Edge]) {
        let stopped = self.frame(key.frame).ending.as_ref().is_some_and(|ending| ending.stop.is_some());
        let handlers = dependants.iter().filter(|edge| edge.handles).map(|edge| Key { step: edge.other, ..key });
        // One that was skipped before the failure will not run any more.
        let left = handlers.filter(|&key| self.step(key).started || self.step(key).status().is_none()).count();
        if forgiven || stopped {
            self.step_mut(key).fault = Fault::Handled;
        } else if left == 0 {
            self.give_up(key);
        } else {
            self.step_mut(key).fault = Fault::Open(left as u32);
        }
    }

    /// A step settled without having run: it handles nothing.
    fn handler_gone(&mut self, key: Key, needs: &[Edge]) {
        for need in needs.iter().filter(|need| need.handles) {
            let failed = Key { step: need.other, ..key };
            if let Fault::Open(left) = &mut self.step_mut(failed).fault {
                *left = left.saturating_sub(1);
                if *left == 0 {
                    self.give_up(failed);
                }
            }
        }
    }

    /// It is certain that nothing handles the step's failure.
    fn give_up(&mut self, key: Key) {
        self.step_mut(key).fault = Fault::Unhandled;
        let region = self.region(key.frame);
        let frame = self.frame(key.frame);
        let goes_on = region.rounds.on_failure == RoundFailure::Continue && frame.iteration < region.rounds.max;
        let fail_fast = self.graph.scope(region.scope).fail_fast;
        let inside = frame.parent.is_some();
        self.frame_mut(key.frame).unhandled.push(key.step);
        if inside && !goes_on {
            let by = Arc::clone(&self.node(key).name);
            self.end_early(key.frame, &Ending { by, stop: None });
        } else if fail_fast {
            match goes_on {
                true => self.cut_frame(key.frame),
                false => self.halt_run(),
            }
        }
    }

    /// A `stop` was reached: its pipeline ends, loops and items included.
    fn stop_pipeline(&mut self, key: Key, status: StopStatus) {
        let by = Arc::clone(&self.node(key).name);
        self.end_early(self.frame(key.frame).scope, &Ending { by, stop: Some(status) });
    }

    /// No step of the frame, or inside of it, starts any more, and running ones are ended.
    pub(super) fn end_early(&mut self, number: u32, ending: &Ending) {
        let frame = self.frame_mut(number);
        let ends = match &frame.ending {
            None => true,
            // What a failure lets run a stop does not.
            Some(earlier) => earlier.stop.is_none() && ending.stop.is_some(),
        };
        if ends && frame.end.is_none() {
            frame.ending = Some(ending.clone());
            // No step of it waits for a person any more.
            let scope = frame.scope;
            self.agenda.posts.insert(scope);
            self.requeue(number);
        }
    }

    /// Whether the frame of a step has ended early, for this step too: one with `when=always` ends with a stop only.
    pub(crate) fn is_ended(&self, key: Key) -> bool {
        let ending = self.frame(key.frame).ending.as_ref();
        ending.is_some_and(|ending| ending.stop.is_some() || !self.node(key).is_finally)
    }

    /// Whether a step does not begin any more, though everything that it needs is there.
    pub(super) fn is_dropped(&self, key: Key) -> bool {
        self.is_ended(key) || self.frame(key.frame).cut && !self.step(key).started
    }

    /// No further step of the frame's round starts.
    pub(super) fn cut_frame(&mut self, frame: u32) {
        if !std::mem::replace(&mut self.frame_mut(frame).cut, true) {
            let scope = self.frame(frame).scope;
            self.agenda.posts.insert(scope);
            self.requeue(frame);
        }
    }

    /// No further step of the run starts.
    pub(super) fn halt_run(&mut self) {
        if !std::mem::replace(&mut self.halted, true) {
            (0..self.graph.instances).for_each(|instance| self.cut_frame(instance));
        }
    }

    fn round_over(&mut self, number: u32) {
        let frame = self.frame(number);
        let region = self.region(number);
        let failed = !frame.unhandled.is_empty();
        if region.is_item {
            return self.finish_frame(
                number,
                match frame.steps[0].status() {
                    Some(Status::Succeeded) => End::Succeeded,
                    Some(Status::Failed) => End::Unhandled,
                    Some(Status::Skipped) | None => End::Cut,
                },
            );
        }
        match frame.ending.as_ref().map(|ending| ending.stop) {
            Some(_) if failed => self.finish_frame(number, End::Unhandled),
            Some(Some(StopStatus::Failure)) => self.finish_frame(number, End::Stopped),
            Some(Some(StopStatus::Success)) => self.finish_frame(number, End::Succeeded),
            // A failure around it ended it.
            Some(None) => self.finish_frame(number, End::Cut),
            None if region.rounds.until => {
                self.frame_mut(number).judging = true;
                self.agenda.rounds.insert(number);
                // Until the round is judged the loop may begin another one, whose steps write to others.
                self.frame(number).parent.into_iter().for_each(|around| self.update_standing(around));
            }
            None => self.conclude_frame(number, None),
        }
    }

    /// Ends the frame or begins its next round; `held` says whether an `until` held, where there is one.
    pub(super) fn conclude_frame(&mut self, number: u32, held: Option<bool>) {
        let frame = self.frame(number);
        let failed = !frame.unhandled.is_empty();
        let rounds = &self.region(number).rounds;
        let last = frame.iteration >= rounds.max;
        let halted = if frame.parent.is_some() { frame.cut } else { self.halted };
        let end = if failed && (last || held == Some(true) || rounds.on_failure == RoundFailure::Stop) {
            End::Unhandled
        } else if frame.dropped && halted {
            End::Cut
        } else if held == Some(true) || held.is_none() && last {
            End::Succeeded
        } else if last {
            match rounds.exhausted {
                Exhausted::Fail => End::Exhausted,
                Exhausted::Success => End::Succeeded,
            }
        } else if halted {
            if failed { End::Unhandled } else { End::Cut }
        } else {
            return self.begin_round(number);
        };
        self.finish_frame(number, end);
    }

    fn finish_frame(&mut self, number: u32, end: End) {
        self.frame_mut(number).end = Some(end);
        match self.frame(number).parent {
            Some(parent) => self.inside_ended(parent, number, end),
            None => {
                self.ended += 1;
                if end != End::Succeeded && self.graph.fail_fast {
                    self.halt_run();
                }
            }
        }
    }
}

fn is_satisfied(when: When, status: Status) -> bool {
    match when {
        When::Success => status == Status::Succeeded,
        When::Failure => status == Status::Failed,
        When::Any => status != Status::Skipped,
        When::Always => true,
    }
}
