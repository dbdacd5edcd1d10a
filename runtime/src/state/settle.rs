//! Settling: what the end of a step means for its dependants, its round and the run.
//!
//! Each function does work for the edges of one step at most, except the beginning of a round, which is paid for by
//! the round's own events.

use std::sync::Arc;

use swarmc_plan::{Exhausted, Join, RoundFailure, StopStatus, When};

use super::State;
use super::round::{End, Fault, Past, Phase, Reason, Step};
use crate::event::Status;
use crate::graph::{Edge, Key, Kind};

impl State {
    /// Begins the next round of an instance.
    pub(super) fn begin_round(&mut self, number: u32) {
        let graph = Arc::clone(&self.graph);
        let halted = self.halted;
        let instance = self.instance_mut(number);
        instance.iteration += 1;
        let past = |step: Step| Past { status: step.status().unwrap_or(Status::Skipped), detail: step.detail };
        let fresh = graph.nodes.iter().map(|node| Step::new(node.needs.len() as u32)).collect();
        instance.previous = std::mem::replace(&mut instance.steps, fresh).into_iter().map(past).collect();
        instance.unsettled = graph.len() as u32;
        instance.unhandled.clear();
        instance.cut = halted;
        instance.dropped = false;
        for (total, part) in self.settled.iter_mut().zip(std::mem::take(&mut self.instances[number as usize].settled)) {
            *total -= u64::from(part);
        }
        if graph.is_empty() {
            return self.finish(number, End::Succeeded);
        }
        for (step, node) in (0..).zip(&graph.nodes) {
            if node.needs.is_empty() {
                self.needs_hold(Key { instance: number, step });
            }
        }
    }

    /// The step failed for good.
    pub(super) fn fail(&mut self, key: Key) {
        match self.graph.node(key.step).lenient {
            true => {
                self.open.remove(&key);
                self.enter(key, Phase::Skipping(Reason::OnFailure));
            }
            false => self.settle(key, Status::Failed),
        }
    }

    /// The step ended.
    pub(super) fn settle(&mut self, key: Key, status: Status) {
        let graph = Arc::clone(&self.graph);
        let node = graph.node(key.step);
        self.enter(key, Phase::Settled(status));
        self.open.remove(&key);
        let instance = self.instance_mut(key.instance);
        instance.unsettled -= 1;
        instance.settled[status as usize] += 1;
        self.settled[status as usize] += 1;
        match (status, node.kind) {
            (Status::Failed, _) => self.count_handlers(key, node.forgiven, &node.dependants),
            (Status::Succeeded, Kind::Stop(_)) => self.stop(key),
            _ => {}
        }
        if !self.step(key).started {
            self.handler_gone(key, &node.needs);
        }
        for edge in &node.dependants {
            self.need_settled(Key { step: edge.other, ..key }, edge, key.step, status);
        }
        if self.instance(key.instance).unsettled == 0 {
            self.round_over(key.instance);
        }
    }

    /// A need of the step settled.
    fn need_settled(&mut self, key: Key, edge: &Edge, needed: u32, status: Status) {
        let graph = Arc::clone(&self.graph);
        let node = graph.node(key.step);
        let step = self.step_mut(key);
        step.waiting -= 1;
        if step.phase != Phase::Waiting {
            return;
        }
        let (holds, broken) = match (edge.declared, node.join) {
            (false, _) | (true, Join::All) => (true, !holds(edge.when, status)),
            (true, Join::Any) => (holds(edge.when, status), false),
            (true, Join::NoneFailed) => (status == Status::Succeeded, status == Status::Failed),
        };
        step.held += u32::from(edge.declared && holds);
        if broken {
            self.enter(key, Phase::Skipping(Reason::Need(needed, status)));
        } else if step.waiting == 0 {
            match node.declared > 0 && step.held == 0 {
                true => self.enter(key, Phase::Skipping(Reason::Join)),
                false => self.needs_hold(key),
            }
        }
    }

    fn needs_hold(&mut self, key: Key) {
        let instance = self.instance(key.instance);
        // What will be skipped in any case needs no judgement.
        let dropped = instance.stopped.is_some() || instance.cut;
        match self.graph.node(key.step).conditional && !dropped {
            true => self.enter(key, Phase::Judging),
            false => self.enter(key, Phase::Ready),
        }
    }

    /// Counts the steps that handle the failure of this one if they run.
    fn count_handlers(&mut self, key: Key, forgiven: bool, dependants: &[Edge]) {
        let forgiven = forgiven || self.instance(key.instance).stopped.is_some();
        let handlers = dependants.iter().filter(|edge| edge.handles).map(|edge| Key { step: edge.other, ..key });
        let left = handlers.filter(|&key| self.step(key).started || self.step(key).status().is_none()).count();
        if forgiven {
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
        let rounds = &self.graph.rounds;
        let instance = &mut self.instances[key.instance as usize];
        instance.unhandled.push(key.step);
        if self.graph.fail_fast {
            match rounds.on_failure == RoundFailure::Continue && instance.iteration < rounds.max {
                true => self.cut(key.instance),
                false => self.halt(),
            }
        }
    }

    /// A `stop` was reached.
    fn stop(&mut self, key: Key) {
        let instance = self.instance_mut(key.instance);
        if instance.stopped.is_none() {
            instance.stopped = Some(key.step);
            self.requeue(key.instance);
        }
    }

    /// No further step of the instance's round starts.
    fn cut(&mut self, instance: u32) {
        if !std::mem::replace(&mut self.instance_mut(instance).cut, true) {
            self.requeue(instance);
        }
    }

    /// No further step of the run starts.
    fn halt(&mut self) {
        if !std::mem::replace(&mut self.halted, true) {
            (0..self.graph.instances).for_each(|instance| self.cut(instance));
        }
    }

    fn round_over(&mut self, number: u32) {
        let instance = self.instance(number);
        let failed = !instance.unhandled.is_empty();
        match instance.stopped.map(|step| self.graph.node(step).kind) {
            Some(_) if failed => self.finish(number, End::Unhandled),
            Some(Kind::Stop(StopStatus::Failure)) => self.finish(number, End::Stopped),
            Some(_) => self.finish(number, End::Succeeded),
            None if self.graph.rounds.until => {
                self.instance_mut(number).judging = true;
                self.agenda.rounds.insert(number);
            }
            None => self.conclude(number, None),
        }
    }

    /// Ends the instance or begins its next round; `held` says whether an `until` held, where there is one.
    pub(super) fn conclude(&mut self, number: u32, held: Option<bool>) {
        let instance = self.instance(number);
        let failed = !instance.unhandled.is_empty();
        let rounds = &self.graph.rounds;
        let last = instance.iteration >= rounds.max;
        let end = if failed && (last || held == Some(true) || rounds.on_failure == RoundFailure::Stop) {
            End::Unhandled
        } else if instance.dropped && self.halted {
            End::Cut
        } else if held == Some(true) || held.is_none() && last {
            End::Succeeded
        } else if last {
            match rounds.exhausted {
                Exhausted::Fail => End::Exhausted,
                Exhausted::Success => End::Succeeded,
            }
        } else if self.halted {
            if failed { End::Unhandled } else { End::Cut }
        } else {
            return self.begin_round(number);
        };
        self.finish(number, end);
    }

    fn finish(&mut self, number: u32, end: End) {
        self.instance_mut(number).end = Some(end);
        self.ended += 1;
        if end != End::Succeeded && self.graph.fail_fast {
            self.halt();
        }
    }
}

fn holds(when: When, status: Status) -> bool {
    match when {
        When::Success => status == Status::Succeeded,
        When::Failure => status == Status::Failed,
        When::Any => status != Status::Skipped,
        When::Always => true,
    }
}
