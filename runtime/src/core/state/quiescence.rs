//! Tracks which steps of a pipeline's activation can still receive envelopes, and updates this with every change.
//!
//! In: a step whose phase changed. Out: the groups in which a step waits for an envelope and no step at work can
//! write one, directly or by waking others. Cost: the steps and groups for which something changes by it, however many
//! there are. Invariant: what is kept is what the phases say; [`State::quiet`] checks that in builds for debugging.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::State;
use super::frame::{Frame, Inner, Phase};
use super::run_queues::Place;
use crate::core::graph::{Group, Key, Kind, Ways};

/// How a step relates to the steps that wait for envelopes.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(crate) struct NodeStatus {
    stand: Liveness,
    /// How many of its needs cannot settle before a waiting step goes on.
    blocked: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
enum Liveness {
    /// It has settled.
    #[default]
    Gone,
    /// It runs, or can start without a waiting step going on: it can write to others.
    Live,
    /// It waits for an envelope.
    Waits,
    /// It goes on only once a waiting step does.
    Stuck,
}

/// The groups of an activation, by number.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(super) struct Reach {
    groups: Vec<Reached>,
    /// Those in which a step waits in vain.
    quiet: BTreeSet<u32>,
}

/// How far the steps of a [`Group`] are.
#[derive(Debug, Default, Deserialize, Serialize)]
struct Reached {
    live: u32,
    waiting: BTreeSet<Key>,
    /// How many groups with a way to this one are open.
    fed: u32,
    /// Its only step has settled: nothing wakes it.
    gone: bool,
    /// A step in it writes, or can be woken to.
    open: bool,
}

/// What follows when no step writes any more.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Quiescent {
    /// Steps that waited for their first envelope: they begin without.
    pub(crate) begin: Vec<Key>,
    /// Steps that have taken their last turn.
    pub(crate) close: Vec<Key>,
    /// Steps that no agent asked for.
    pub(crate) unspawned: Vec<Key>,
}

impl Liveness {
    fn is_held_up(self) -> bool {
        matches!(self, Liveness::Waits | Liveness::Stuck)
    }
}

impl State {
    /// The status of a step may have changed: updates the steps and groups that depend on it.
    pub(super) fn update_standing(&mut self, key: Key) {
        let graph = Arc::clone(&self.graph);
        // A list and no recursion: the chain of steps that depend on each other is as long as the plan has it. Most changes
        // concern one step alone, and need no list.
        let (mut next, mut open) = (Some(key), Vec::new());
        while let Some(key) = next.take().or_else(|| open.pop()) {
            let scope = self.frame(key.frame).scope;
            let ways = &graph.scope(self.region(scope).scope).ways;
            let now = self.step_liveness(key);
            let before = std::mem::replace(&mut self.step_mut(key).seat.stand, now);
            // Without edges no step waits for an envelope, and nothing depends on this.
            if before == now || ways.is_empty() {
                continue;
            }
            let node = &graph.region(self.frame(key.frame).region).nodes[key.step as usize];
            if before.is_held_up() != now.is_held_up() {
                for edge in &node.dependants {
                    let other = Key { step: edge.other, ..key };
                    adjust_count(&mut self.step_mut(other).seat.blocked, now.is_held_up());
                    open.push(other);
                }
            }
            if (before == Liveness::Live) != (now == Liveness::Live) {
                let frame = self.frame_mut(key.frame);
                let worked = frame.is_working();
                adjust_count(&mut frame.live, now == Liveness::Live);
                // A loop is as alive as what is inside of it.
                open.extend(frame.parent.filter(|_| frame.is_working() != worked));
            }
            if let Some(group) = node.group {
                let is_item = self.region(key.frame).is_item;
                let reach = &mut self.posts.entry(scope).or_default().reach;
                if reach.update_group(&ways.groups, group, (key, is_item), before, now) {
                    self.agenda.posts.insert(scope);
                }
            }
        }
    }

    /// A round of a frame begins, in which every step waits for its needs.
    pub(super) fn all_stand(&mut self, frame: u32) {
        (0..self.frame(frame).steps.len() as u32).for_each(|step| self.update_standing(Key { frame, step }));
    }

    /// Has a step begin that waited for an envelope.
    pub(crate) fn begin_step(&mut self, key: Key) {
        self.enqueue_ready(key);
        self.update_standing(key);
    }

    /// The steps of an activation that need not wait any longer, since no step at work can write to them.
    pub(crate) fn find_quiescent(&self, scope: u32) -> Quiescent {
        let Some(post) = self.posts.get(&scope) else { return Quiescent::default() };
        debug_assert!(self.reach_is_right(scope), "what is kept is what the phases say");
        let asked_for = self.asked_for(scope);
        // A person's decision can still bring an envelope there.
        let quiet = post.reach.quiet.iter().filter(|group| !asked_for.contains(group));
        let mut left: Vec<Key> = quiet.flat_map(|&group| &post.reach.groups[group as usize].waiting).copied().collect();
        // As they are declared.
        left.sort_unstable();
        let (listening, idle): (Vec<Key>, Vec<Key>) =
            left.into_iter().partition(|&key| self.step(key).phase == Phase::Listening);
        let (unspawned, begin): (Vec<Key>, Vec<Key>) = listening.into_iter().partition(|&key| self.node(key).spawned);
        let begin = self.keep_unreachable(scope, begin);
        // A step that begins may write to the others.
        let (unspawned, close) = if begin.is_empty() { (unspawned, idle) } else { (Vec::new(), Vec::new()) };
        Quiescent { begin, close, unspawned }
    }

    /// Of steps that wait for their first envelope, those to which none of the others can write once it begins: what could
    /// still write to a step goes first. Of several that can write to each other, the one that is declared first.
    fn keep_unreachable(&self, scope: u32, waiting: Vec<Key>) -> Vec<Key> {
        let Some(post) = self.posts.get(&scope).filter(|_| waiting.len() > 1) else { return waiting };
        let groups = &self.graph.scope(self.region(scope).scope).ways.groups;
        let group_of = |key: &Key| self.node(*key).group;
        let mut open: Vec<u32> =
            waiting.iter().filter_map(group_of).flat_map(|group| &groups[group as usize].next).copied().collect();
        let mut reached = BTreeSet::new();
        while let Some(group) = open.pop() {
            // What has settled is not woken, and writes to no step.
            if !post.reach.groups[group as usize].gone && reached.insert(group) {
                open.extend(&groups[group as usize].next);
            }
        }
        let mut first = BTreeSet::new();
        let goes = |key: &Key| group_of(key).is_none_or(|group| !reached.contains(&group) && first.insert(group));
        let mut kept = waiting;
        kept.retain(goes);
        kept
    }

    /// The groups whose steps wait for a decision on a task, or for help, and the groups that those can reach.
    fn asked_for(&self, scope: u32) -> BTreeSet<u32> {
        let found = self.graph.scope(self.region(scope).scope);
        // A step that has ended early waits for no decision.
        let ended = |step| self.find_step(step).is_some_and(|key| self.is_ended(key));
        let spawns = self.possible_spawns(scope).filter(|(waiting, _)| !ended(&waiting.step));
        let names = spawns.flat_map(|(waiting, to)| [&waiting.step.name, to]);
        let names = names.chain(self.steps_awaiting_help(scope).map(|step| &step.name));
        let spots = names.filter_map(|name| found.find(name));
        let groups = spots.filter_map(|spot| self.graph.region(spot.region).nodes[spot.step as usize].group);
        let mut open: Vec<u32> = groups.collect();
        let mut reached = BTreeSet::new();
        while let Some(group) = open.pop() {
            if reached.insert(group) {
                open.extend(&found.ways.groups[group as usize].next);
            }
        }
        reached
    }

    fn step_liveness(&self, key: Key) -> Liveness {
        let step = self.step(key);
        match step.phase {
            Phase::Settled(_) => Liveness::Gone,
            Phase::Idle => Liveness::Waits,
            // One that is in a queue is about to begin, or to be skipped.
            Phase::Listening if step.place == Place::Nowhere && !self.is_dropped(key) => Liveness::Waits,
            Phase::Waiting if step.seat.blocked > 0 => Liveness::Stuck,
            Phase::Inside if !self.works_inside(key) => Liveness::Stuck,
            _ => Liveness::Live,
        }
    }

    fn works_inside(&self, key: Key) -> bool {
        match (self.node(key).kind, self.step(key).inner.as_deref()) {
            // Another pipeline, whose steps have edges of their own.
            (Kind::Call(_), _) | (_, None | Some(Inner::Closed(_))) => true,
            (_, Some(Inner::Frame(inner))) => self.frame(*inner).is_working(),
            (_, Some(Inner::Each(each))) => each.open.values().any(|&item| self.frame(item).is_working()),
        }
    }

    /// Whether everything that is kept of an activation is what it would be if it were found anew.
    fn reach_is_right(&self, scope: u32) -> bool {
        let ways: &Ways = &self.graph.scope(self.region(scope).scope).ways;
        let mut live = vec![0; ways.groups.len()];
        let mut waiting = vec![BTreeSet::new(); ways.groups.len()];
        for (number, frame) in (0..).zip(&self.frames).filter(|(_, frame)| frame.scope == scope) {
            let stand = |step: u32| frame.steps[step as usize].seat.stand;
            for (key, step) in (0..).map(|step| Key { frame: number, step }).zip(&frame.steps) {
                let held_up = self.node(key).needs.iter().filter(|need| stand(need.other).is_held_up()).count();
                if step.seat.stand != self.step_liveness(key) || step.seat.blocked != held_up as u32 {
                    return false;
                }
                let Some(group) = self.node(key).group else { continue };
                live[group as usize] += u32::from(step.seat.stand == Liveness::Live);
                if step.seat.stand == Liveness::Waits {
                    waiting[group as usize].insert(key);
                }
            }
            if frame.live as usize != frame.steps.iter().filter(|step| step.seat.stand == Liveness::Live).count() {
                return false;
            }
        }
        let Some(reach) = self.posts.get(&scope).map(|post| &post.reach) else { return true };
        let mut fed = vec![0; ways.groups.len()];
        let open = ways.groups.iter().zip(&reach.groups).filter(|(_, reached)| reached.open);
        open.flat_map(|(group, _)| &group.next).for_each(|&to| fed[to as usize] += 1);
        (0..).zip(&reach.groups).all(|(number, reached): (u32, &Reached)| {
            let at = number as usize;
            reached.live == live[at]
                && reached.waiting == waiting[at]
                && reached.fed == fed[at]
                && reached.open == reached.is_open()
                && reach.quiet.contains(&number) == reached.is_quiet()
        })
    }
}

impl Reach {
    /// The status of a step in a group changes. Whether a step waits in vain by it.
    fn update_group(
        &mut self,
        groups: &[Group],
        number: u32,
        (key, is_item): (Key, bool),
        before: Liveness,
        now: Liveness,
    ) -> bool {
        if self.groups.is_empty() {
            self.groups.resize_with(groups.len(), Reached::default);
        }
        let group = &mut self.groups[number as usize];
        if (before == Liveness::Live) != (now == Liveness::Live) {
            adjust_count(&mut group.live, now == Liveness::Live);
        }
        match now {
            Liveness::Waits => _ = group.waiting.insert(key),
            _ => _ = group.waiting.remove(&key),
        }
        // When its items settle, a for-each has not.
        if groups[number as usize].steps.len() == 1 && !is_item {
            group.gone = now == Liveness::Gone;
        }
        // Who comes to wait in a group that is quiet waits in vain as well.
        let mut found = now == Liveness::Waits && group.is_quiet();
        let mut changed = vec![number];
        while let Some(number) = changed.pop() {
            let group = &mut self.groups[number as usize];
            let (opens, is_quiet) = (group.is_open(), group.is_quiet());
            // Only a group that changes sides is passed on, so that each group is looked at a few times at most.
            if std::mem::replace(&mut group.open, opens) != opens {
                for &next in &groups[number as usize].next {
                    adjust_count(&mut self.groups[next as usize].fed, opens);
                    changed.push(next);
                }
            }
            if is_quiet {
                found |= self.quiet.insert(number);
            } else {
                self.quiet.remove(&number);
            }
        }
        found
    }
}

impl Reached {
    fn is_open(&self) -> bool {
        // A group that is fed can be woken, unless there is none in it to wake.
        self.live > 0 || self.fed > 0 && !self.gone
    }

    /// Whether a step in it waits in vain.
    fn is_quiet(&self) -> bool {
        self.live == 0 && self.fed == 0 && !self.waiting.is_empty()
    }
}

impl Frame {
    /// Whether a step in it runs, or can start without a waiting step going on.
    fn is_working(&self) -> bool {
        // A round whose `until` is to be judged may be followed by another one.
        self.live > 0 || self.judging
    }
}

fn adjust_count(number: &mut u32, more: bool) {
    match more {
        true => *number += 1,
        false => *number -= 1,
    }
}
