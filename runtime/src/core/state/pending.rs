//! Which steps a step waits for, and why: for people who wonder why nothing happens.
//!
//! In: the state. Out: the steps that a step waits for, each with what it is doing, and the steps that have not begun.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Serialize;

use super::State;
use super::frame::Phase;
use super::run_queues::Place;
use crate::core::graph::{Key, Limit, LimitOf};
use crate::types::event::StepId;

/// A step that is waited for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Pending {
    /// Its name.
    pub step: Arc<str>,
    /// What it is doing.
    pub why: Cow<'static, str>,
}

/// A step of a round that is under way, which has not begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// The step.
    pub step: StepId,
    /// What it waits for: `other steps`, `its first envelope`, or room, with the limit that holds it back.
    pub waits: Cow<'static, str>,
    /// Whom it waits for.
    pub pending: Vec<Pending>,
}

impl State {
    /// The steps that have not begun and may yet, each with what it waits for: in the instances of the pipeline, and in
    /// what is inside of their steps, as far as that has begun. None where the run has ended.
    pub fn blocked_steps(&self) -> impl Iterator<Item = (StepId, Cow<'static, str>)> {
        let is_over = self.final_status().is_some();
        let frames = (0..).zip(&self.frames);
        let open = frames.filter(move |(_, frame)| !is_over && frame.iteration > 0 && frame.end.is_none());
        let keys = open.flat_map(|(frame, open)| (0..open.steps.len() as u32).map(move |step| Key { frame, step }));
        keys.filter_map(|key| Some((self.id(key), self.holds_up(key)?)))
    }

    /// The steps that a step waits for: those that it depends on, and once they have ended those that can still write
    /// to it. Empty where it has settled, or waits for nothing of the kind. `is_run` tells whether a process runs the
    /// run.
    pub fn list_pending(&self, id: &StepId, is_run: bool) -> Vec<Pending> {
        let Some(key) = self.find_step(id).filter(|&key| self.step(key).status().is_none()) else { return Vec::new() };
        let mut pending: Vec<Pending> = Vec::new();
        // The reason is none where it has ended; without a key, its parent has not begun.
        let mut add = |name: &Arc<str>, key: Option<Key>| {
            let why = key.map_or(Some("its parent has not begun".into()), |key| self.describe_activity(key, is_run));
            if let Some(why) = why.filter(|_| !pending.iter().any(|known| known.step == *name)) {
                pending.push(Pending { step: Arc::clone(name), why });
            }
        };
        if self.step(key).phase == Phase::Waiting {
            let needs = self.node(key).needs.iter().map(|need| Key { step: need.other, ..key });
            needs.for_each(|need| add(&self.node(need).name, Some(need)));
            return pending;
        }
        let (scope, spot) = self.address(key);
        let ways = &self.graph.scope(self.region(scope).scope).ways;
        for way in ways.list.iter().filter(|way| way.to == spot) {
            let name = &self.graph.region(way.from.region).nodes[way.from.step as usize].name;
            add(name, self.receiver(scope, way.from));
        }
        pending
    }

    /// What a step is doing that others wait for; none where it has ended.
    fn describe_activity(&self, key: Key, is_run: bool) -> Option<Cow<'static, str>> {
        let is_asked = || {
            let id = self.id(key);
            self.open_requests().any(|waiting| waiting.step == id && !waiting.request.wants.is_help())
        };
        let words = match self.step(key).phase {
            Phase::Settled(_) | Phase::Skipping(_) => return None,
            Phase::Waiting => "it waits for other steps",
            Phase::Judging | Phase::Ready => match self.describe_limit(key) {
                Some(limit) => return Some(format!("it waits for a free slot: {limit}").into()),
                None => "it is about to begin",
            },
            Phase::Listening => "it waits for its first envelope",
            Phase::Idle if self.waits_for_help(key) => "it waits for a person's help",
            Phase::Idle => "it waits for envelopes itself",
            Phase::Running if !is_run => "it had begun when the run was ended",
            Phase::Running if is_asked() => "it waits for an approval",
            Phase::Running if self.step(key).turn_attempt() > 1 => "it failed, and is tried again",
            Phase::Running if self.is_node(key) => "its turn goes on",
            Phase::Running => "it runs",
            Phase::Inside | Phase::Concluding => "its inner steps are still running",
            Phase::Asking(_) | Phase::Stalled => "it waits for a person",
            Phase::Resting(_) => "it failed, and is about to be tried again",
        };
        Some(words.into())
    }

    /// What a step waits for that has not begun; none where it has, or never will.
    fn holds_up(&self, key: Key) -> Option<Cow<'static, str>> {
        if self.is_dropped(key) || self.step(key).started {
            return None;
        }
        match self.step(key).phase {
            Phase::Waiting => Some("other steps".into()),
            Phase::Listening => Some("its first envelope".into()),
            Phase::Judging | Phase::Ready => {
                Some(self.describe_limit(key).map_or("its turn".into(), |limit| format!("a free slot: {limit}").into()))
            }
            _ => None,
        }
    }

    /// What limits how many run at once, where it keeps a step that could begin from that.
    fn describe_limit(&self, key: Key) -> Option<String> {
        match self.step(key).place {
            Place::Parked(lane) => {
                let Limit { most, of } = &self.graph.lanes[lane as usize];
                Some(match of {
                    LimitOf::Step => format!("it has `concurrency {most}`"),
                    LimitOf::Pipeline(name) => format!("pipeline `{name}` has `concurrency {most}`"),
                    LimitOf::Provider(name) => format!("provider `{name}` has `concurrency {most}`"),
                    LimitOf::Commands => format!("{} at once, one for each processor", format_count(*most, "command")),
                    LimitOf::Agents => format!("{} at once", format_count(*most, "agent")),
                })
            }
            Place::Task if self.agenda.busy >= self.graph.concurrency => {
                let most = self.graph.concurrency;
                Some(match &self.graph.declared_by {
                    Some(name) => format!("pipeline `{name}` has `concurrency {most}`"),
                    None => format!("{} at once", format_count(most, "step")),
                })
            }
            _ => None,
        }
    }
}

fn format_count(number: u32, what: &str) -> String {
    format!("{number} {what}{} may run", if number == 1 { "" } else { "s" })
}
