//! The inboxes of the steps that edges lead to: what waits in them, which step waits, and when no step can write any
//! more.
//!
//! An activation of a pipeline (an instance, or a call) has one [`Inboxes`]. A step that an edge leads to does not
//! settle with its turn: it waits for as long as a step at work can write to it, directly or by waking others, and what
//! arrives gives it a further turn. Invariant: an envelope is in one inbox, once, until one turn takes it.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use swarmc_plan::{EdgeKind, Response};

use super::State;
use super::frame::{Inner, Phase};
use super::quiescence::Reach;
use crate::core::graph::{Key, StepRef};
use crate::types::event::{INPUTS, InboxMessage, Status, StepId};
use crate::types::handoff::EnvelopeKind;

/// The inboxes of one activation of a pipeline.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(crate) struct Inboxes {
    /// In the order in which a turn reads them.
    #[serde(with = "crate::core::snapshot::pairs")]
    boxes: BTreeMap<StepRef, Vec<InboxMessage>>,
    /// How many envelopes took each way, by its number.
    sent: BTreeMap<usize, u32>,
    /// The envelopes that may or must be answered and are not, the oldest first, by who sent them to whom.
    #[serde(with = "crate::core::snapshot::pairs")]
    asked: BTreeMap<(StepRef, StepRef), VecDeque<OpenQuestion>>,
    /// The same pairs the other way round.
    owed: BTreeSet<(StepRef, StepRef)>,
    /// Who can still be written to.
    pub(super) reach: Reach,
}

/// An answer that is waited for.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct OpenQuestion {
    id: Arc<str>,
    /// Who sent it, which need not be who is answered.
    from: StepRef,
    /// Whether it is owed.
    required: bool,
}

impl State {
    /// The activation that a step belongs to, and the step in it: of an item, the whole for-each.
    pub(crate) fn address(&self, key: Key) -> (u32, StepRef) {
        let frame = self.frame(key.frame);
        let region = self.graph.region(frame.region);
        let spot = match region.parent {
            Some(parent) if region.is_item => parent,
            _ => StepRef { region: frame.region, step: key.step },
        };
        (frame.scope, spot)
    }

    /// What waits for a step.
    pub(crate) fn inbox(&self, key: Key) -> &[InboxMessage] {
        let (scope, spot) = self.address(key);
        self.posts.get(&scope).and_then(|post| post.boxes.get(&spot)).map_or(&[], Vec::as_slice)
    }

    /// What a turn of a step reads: what it has taken, and as much of what waits as one turn takes.
    pub(crate) fn inputs(&self, key: Key) -> impl Iterator<Item = &InboxMessage> {
        let step = self.step(key);
        // What an interrupted conversation has heard is not told again, and takes no room.
        let room = INPUTS.saturating_sub(step.taken.len() - step.heard);
        step.taken.iter().chain(self.inbox(key).iter().take(room))
    }

    /// The ids of what a turn takes from the inbox when it begins.
    pub(crate) fn fresh_inputs(&self, key: Key) -> Vec<Arc<str>> {
        let known = self.step(key).taken.len();
        self.inputs(key).skip(known).map(|letter| Arc::clone(&letter.id)).collect()
    }

    /// How many envelopes have taken a way.
    pub(crate) fn sent_along(&self, scope: u32, way: usize) -> u32 {
        self.posts.get(&scope).and_then(|post| post.sent.get(&way).copied()).unwrap_or(0)
    }

    /// Whether this attempt of a step is under way.
    pub(crate) fn takes_turn(&self, key: Key, attempt: u32) -> bool {
        let step = self.step(key);
        step.phase == Phase::Running && step.attempt == attempt
    }

    /// Whether this attempt of a step may begin.
    pub(crate) fn may_begin(&self, key: Key, attempt: u32) -> bool {
        let step = self.step(key);
        let waits = matches!(step.phase, Phase::Ready | Phase::Listening | Phase::Resting(_));
        waits && step.attempt == attempt && !self.stopping && self.final_status().is_none()
    }

    /// How many envelopes wait for a step.
    pub(crate) fn waiting_for(&self, scope: u32, spot: StepRef) -> usize {
        self.posts.get(&scope).and_then(|post| post.boxes.get(&spot)).map_or(0, Vec::len)
    }

    /// Whether one step can send another one something, and not only have it started.
    pub(crate) fn leads_to(&self, scope: u32, from: StepRef, to: StepRef) -> bool {
        let ways = &self.graph.scope(self.region(scope).scope).ways;
        ways.edges_from(from).any(|(_, way)| way.to == to && way.kind != EdgeKind::Spawn)
    }

    /// Whether a step of an activation will take another turn if something is sent to it: it has not settled, or there
    /// is a further round around it. One that is only there when it is spawned is not there in that round.
    pub(crate) fn may_receive(&self, scope: u32, spot: StepRef) -> bool {
        let spawned = self.graph.region(spot.region).nodes[spot.step as usize].spawned;
        let loops = self.loops_around(spot);
        let (mut frame, mut again) = (scope, false);
        for around in loops.iter().rev().chain([&spot]) {
            let found = self.frame(frame);
            // An inbox outlives the round: what comes late is read in the next one.
            again |= self.graph.region(found.region).rounds.max > found.iteration;
            let Some(step) = found.steps.get(around.step as usize) else { return false };
            match step.inner.as_deref() {
                _ if step.status().is_some() => return again && !spawned,
                Some(Inner::Frame(inner)) => frame = *inner,
                _ => return true,
            }
        }
        true
    }

    /// The oldest envelope from `of` that `by` has not answered; with an id, that one.
    pub(crate) fn find_unanswered(&self, scope: u32, by: StepRef, of: StepRef, id: Option<&str>) -> Option<Arc<str>> {
        let asked = self.posts.get(&scope)?.asked.get(&(of, by))?;
        let fitting = asked.iter().find(|asked| id.is_none_or(|id| asked.id.as_ref() == id));
        fitting.map(|asked| Arc::clone(&asked.id))
    }

    /// The step that receives what is sent to a name in an activation, where it is under way.
    pub(crate) fn receiver(&self, scope: u32, spot: StepRef) -> Option<Key> {
        let mut frame = scope;
        for around in self.loops_around(spot).iter().rev() {
            match self.frame(frame).steps.get(around.step as usize)?.inner.as_deref() {
                Some(Inner::Frame(inner)) => frame = *inner,
                _ => return None,
            }
        }
        Some(Key { frame, step: spot.step })
    }

    /// The loops around a step, the innermost first.
    fn loops_around(&self, spot: StepRef) -> Vec<StepRef> {
        let around = |spot: StepRef| self.graph.region(spot.region).parent;
        std::iter::successors(around(spot), |&parent| around(parent)).collect()
    }

    pub(super) fn deliver_message(
        &mut self,
        from: Option<&StepId>,
        scope: u32,
        (to, way): (&str, Option<usize>),
        letter: &InboxMessage,
    ) {
        let Some(spot) = self.graph.scope(self.region(scope).scope).find(to) else { return };
        let sender = from.and_then(|from| self.find_step(from));
        if let Some(key) = sender {
            self.step_mut(key).sent.push(letter.clone());
        }
        let sender = sender.map(|key| self.address(key).1);
        // Before it is delivered: the step that it wakes must not wait for the decision any more.
        self.decision_told(scope, letter);
        let answered_to = letter.answered_to.as_deref();
        let answered_to = answered_to.and_then(|name| self.graph.scope(self.region(scope).scope).find(name));
        let post = self.posts.entry(scope).or_default();
        if let Some(way) = way {
            *post.sent.entry(way).or_default() += 1;
        }
        if let (Some(answered), Some(by)) = (&letter.answers, sender)
            && let Entry::Occupied(mut asked) = post.asked.entry((spot, by))
        {
            asked.get_mut().retain(|asked| asked.id != *answered);
            if asked.get().is_empty() {
                asked.remove();
                post.owed.remove(&(by, spot));
            }
        }
        if let Some(from) = sender.filter(|_| letter.response != Response::None) {
            // The answer may go to another step than the one that asked.
            let by = answered_to.unwrap_or(from);
            let required = letter.response == Response::Required;
            post.asked.entry((by, spot)).or_default().push_back(OpenQuestion {
                id: Arc::clone(&letter.id),
                from,
                required,
            });
            post.owed.insert((spot, by));
        }
        let inbox = post.boxes.entry(spot).or_default();
        // Behind those of its own priority: among equals the order is that in which they came.
        let place = inbox.iter().rposition(|other| other.priority >= letter.priority).map_or(0, |place| place + 1);
        inbox.insert(place, letter.clone());
        if let Some(key) = self.receiver(scope, spot) {
            self.wake_step(key);
        }
    }

    /// The pipelines that are under way: the instances, and those behind calls.
    pub(crate) fn activations(&self) -> impl Iterator<Item = u32> {
        let frames = (0..).zip(&self.frames);
        frames.filter(|(number, frame)| frame.scope == *number && frame.end.is_none()).map(|(number, _)| number)
    }

    /// The call whose pipeline a step belongs to, as [`Event::Sent`](crate::Event::Sent) names it in `within`; an inner
    /// none is the pipeline that runs. None while what is around the step is not under way.
    pub fn call_around(&self, step: &StepId) -> Option<Option<Arc<str>>> {
        let frame = self.frame_of(step.instance, step.within.as_ref())?;
        Some(self.frame(self.frame(frame).scope).path.clone())
    }

    /// Whether an attempt of a step is under way.
    pub(crate) fn is_running(&self, key: Key) -> bool {
        self.step(key).phase == Phase::Running
    }

    /// Whether a person has written what the next turn of a step reads.
    pub(super) fn is_written_to(&self, key: Key) -> bool {
        self.inbox(key).iter().any(|letter| letter.person) && self.node(key).reads_inbox
    }

    /// A step that waits for an envelope takes a turn if there is one.
    pub(super) fn wake_step(&mut self, key: Key) {
        let wakes =
            self.node(key).reads_inbox && self.inbox(key).iter().any(|letter| letter.kind == EnvelopeKind::Handoff);
        match self.step(key).phase {
            Phase::Listening | Phase::Idle
                if wakes && self.find_repetition(key).is_some() && !self.is_written_to(key) =>
            {
                self.enter_phase(key, Phase::Stalled);
            }
            Phase::Listening if wakes => self.enter_phase(key, Phase::Ready),
            Phase::Idle if wakes => {
                let step = self.step_mut(key);
                step.earlier = step.attempt;
                step.attempt += 1;
                step.taken.clear();
                step.heard = 0;
                self.may_sum_up_again(key);
                self.enter_phase(key, Phase::Ready);
            }
            // What a person wrote breaks the circle, also where a person was asked about it.
            Phase::Stalled if self.is_written_to(key) => self.circle_broken(key),
            _ => {}
        }
    }

    /// A round begins: its steps owe no answers to requests of earlier rounds. Tasks that those asked for do not start
    /// any more, and the inboxes of tasks that they started are empty.
    pub(super) fn forget_round(&mut self, number: u32) {
        let frame = self.frame(number);
        // Before the first round there is nothing to forget.
        if frame.iteration < 2 {
            return;
        }
        let (scope, region, graph) = (frame.scope, frame.region, Arc::clone(&self.graph));
        if let Some(post) = self.posts.get_mut(&scope) {
            post.asked.retain(|(_, debtor), _| !graph.contains_region(region, debtor.region));
            post.owed.retain(|(debtor, _)| !graph.contains_region(region, debtor.region));
            let spawned = |spot: &StepRef| graph.region(spot.region).nodes[spot.step as usize].spawned;
            post.boxes.retain(|spot, _| !(spawned(spot) && graph.contains_region(region, spot.region)));
        }
        let found = graph.scope(self.region(scope).scope);
        self.spawns_over(scope, |to| found.find(to).is_some_and(|spot| graph.contains_region(region, spot.region)));
    }

    pub(super) fn inputs_taken(&mut self, key: Key, inputs: &[Arc<str>]) {
        let (scope, spot) = self.address(key);
        let Some(inbox) = self.posts.get_mut(&scope).and_then(|post| post.boxes.get_mut(&spot)) else { return };
        let inputs: BTreeSet<&Arc<str>> = inputs.iter().collect();
        let (taken, left) = std::mem::take(inbox).into_iter().partition(|letter| inputs.contains(&letter.id));
        *inbox = left;
        let taken: Vec<InboxMessage> = taken;
        self.step_mut(key).taken.extend(taken);
    }

    /// A step that may have further turns has taken one.
    pub(super) fn turn_over(&mut self, key: Key) {
        self.enter_phase(key, Phase::Idle);
        self.wake_step(key);
    }

    pub(super) fn node_closed(&mut self, key: Key, owes: &[String]) {
        if self.step(key).phase != Phase::Idle {
            return;
        }
        match owes {
            [] => self.settle_step(key, Status::Succeeded),
            owes => {
                let error = owes.join("; ");
                let mut detail = self.step_mut(key).detail.take().unwrap_or_default();
                detail.error = Some(error.into());
                self.step_mut(key).detail = Some(detail);
                self.fail_step(key);
            }
        }
    }

    /// To whom a step that ends owes an answer, and who never answered it, in words.
    pub(crate) fn describe_owed_answers(&self, key: Key) -> Vec<String> {
        let (scope, spot) = self.address(key);
        let Some(post) = self.posts.get(&scope) else { return Vec::new() };
        let name = |spot: StepRef| &self.graph.region(spot.region).nodes[spot.step as usize].name;
        fn required_answers(asked: &VecDeque<OpenQuestion>) -> impl Iterator<Item = &OpenQuestion> {
            asked.iter().filter(|asked| asked.required)
        }
        let all = (spot, StepRef { region: 0, step: 0 })..=(spot, StepRef { region: u32::MAX, step: u32::MAX });
        let mut debts = Vec::new();
        for &(_, by) in post.owed.range(all.clone()) {
            // All its answers were refused: no step was there to read them.
            let is_late = self
                .graph
                .scope(self.region(scope).scope)
                .ways
                .edges_from(spot)
                .any(|(_, way)| way.to == by && way.late);
            let late = if is_late { ", which ended first, so every answer was refused" } else { "" };
            let owed = post.asked.get(&(by, spot)).into_iter().flat_map(required_answers);
            debts.extend(owed.map(|asked| format!("it never answered {} from `{}`{late}", asked.id, name(asked.from))));
        }
        for (&(_, of), asked) in post.asked.range(all) {
            let debtor = self.receiver(scope, of).map(|key| self.step(key).status());
            if !matches!(debtor, Some(None | Some(Status::Failed))) {
                let whose = |asked: &OpenQuestion| match asked.from == spot {
                    true => format!("its {}", asked.id),
                    false => format!("{} from `{}`", asked.id, name(asked.from)),
                };
                debts.extend(
                    required_answers(asked).map(|asked| format!("`{}` never answered {}", name(of), whose(asked))),
                );
            }
        }
        debts
    }

    /// Whether a step starts only when an agent asks for it, and none has.
    pub(crate) fn is_dormant(&self, scope: u32, spot: StepRef) -> bool {
        let dormant = |key: Key| {
            let phase = self.step(key).phase;
            matches!(phase, Phase::Waiting | Phase::Judging | Phase::Listening) && self.inbox(key).is_empty()
        };
        let node = &self.graph.region(spot.region).nodes[spot.step as usize];
        node.spawned && self.receiver(scope, spot).is_none_or(dormant)
    }

    /// Whether a request to start a step of this name waits for approval.
    pub(crate) fn is_asked_for(&self, scope: u32, name: &str) -> bool {
        self.possible_spawns(scope).any(|(_, to)| **to == *name)
    }
}
