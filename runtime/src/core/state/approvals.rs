//! The requests of agents that wait for an approval, and the answers.
//!
//! In: requests and verdicts, in order. Out: the open requests and their deadlines, and answers that an attempt may
//! still need: an attempt of a former process starts anew, and a request that it repeats is asked only once. Invariant:
//! requests are numbered in the order in which they come, so that the first open one is the first whose time is over.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use swarmc_plan::{RequestTimeout, Unattended};

use super::State;
use super::frame::Phase;
use crate::core::graph::Key;
use crate::types::approval::{Choice, Request, RequestKind, Verdict};
use crate::types::event::{AnsweredBy, Content, InboxMessage, StepId};

/// A request that waits for an answer, with its origin.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Waiting {
    /// The step.
    pub step: StepId,
    /// The attempt of that step.
    pub attempt: u32,
    /// Who wants what.
    pub request: Request,
    /// Since when, in milliseconds since 1970.
    pub since: u64,
    /// What becomes of it where no person answers in time; none where it waits for ever.
    pub on_timeout: Option<RequestTimeout>,
}

impl Waiting {
    /// When its time is over, in milliseconds since 1970; none where it waits for ever.
    pub fn due(&self) -> Option<u64> {
        self.on_timeout.map(|timeout| self.since.saturating_add(timeout.after_ms))
    }
}

/// The requests of a run.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(crate) struct Approvals {
    /// The number of the last one.
    last: u32,
    /// The number of the last one of the processes before this one.
    before: u32,
    open: BTreeMap<u32, Waiting>,
    /// The number of the last one whose answer was ordered, since its time is over.
    expired: u32,
    /// Those of running tasks that were answered.
    answered: BTreeMap<u32, (Waiting, Verdict)>,
    /// The decided requests for tasks and for help, where the agent that asked does not know the decision yet.
    decided: BTreeMap<u32, (Waiting, Verdict)>,
    /// How many of a step's last requests for help, or for tasks, no person answered in time.
    #[serde(with = "crate::core::snapshot::pairs")]
    unheeded: BTreeMap<StepId, u32>,
    always: BTreeSet<Always>,
}

/// What an agent may have for the rest of the run: the swarm that it belongs to, its name, and what it wants, in words.
type Always = (Option<Arc<str>>, Arc<str>, String);

impl State {
    /// The requests without an answer, in the order in which they came.
    pub fn open_requests(&self) -> impl Iterator<Item = &Waiting> {
        self.approvals.open.values()
    }

    /// The request of this number, where it has no answer.
    pub(crate) fn find_request(&self, id: u32) -> Option<&Waiting> {
        self.approvals.open.get(&id)
    }

    /// What becomes of a request whose time is over.
    pub(crate) fn expiry_policy(&self, id: u32, now: u64) -> Option<Unattended> {
        let waiting =
            self.find_request(id).filter(|waiting| !self.paced && waiting.due().is_some_and(|due| due <= now))?;
        waiting.on_timeout.map(|timeout| timeout.then)
    }

    /// The next request whose time is over, each once.
    pub(crate) fn expire_next(&mut self, now: u64) -> Option<u32> {
        let id = self.next_to_expire().filter(|waiting| waiting.due().is_some_and(|due| due <= now))?.request.id;
        self.approvals.expired = id;
        Some(id)
    }

    /// When the time of a request is over next, in milliseconds since 1970.
    pub(crate) fn requests_due(&self) -> Option<u64> {
        self.next_to_expire().and_then(Waiting::due)
    }

    fn next_to_expire(&self) -> Option<&Waiting> {
        let Approvals { open, expired, .. } = &self.approvals;
        let mut rest = open.range((Bound::Excluded(*expired), Bound::Unbounded));
        rest.next().map(|(_, waiting)| waiting).filter(|_| !self.paced)
    }

    /// Whether a step runs a swarm.
    pub(crate) fn runs_swarm(&self, key: Key) -> bool {
        self.swarms.contains_key(&key)
    }

    /// The number of the next request.
    pub(crate) fn next_request(&self) -> u32 {
        self.approvals.last.saturating_add(1)
    }

    /// Whether a person allowed such a thing for the rest of the run.
    pub(crate) fn is_always(&self, key: Key, agent: &Arc<str>, wants: &RequestKind) -> bool {
        self.approvals.always.contains(&self.always_key(key, agent, wants))
    }

    /// The request that a former process heard from this attempt, and its answer where it has one. Those in `used` were
    /// taken up already.
    pub(crate) fn asked_before(
        &self,
        (step, attempt): (&StepId, u32),
        used: &BTreeSet<u32>,
        is_meant: impl Fn(&Request) -> bool,
    ) -> Option<(&Waiting, Option<&Verdict>)> {
        let Approvals { before, open, answered, .. } = &self.approvals;
        let fits = |waiting: &&Waiting| {
            waiting.request.id <= *before
                && !used.contains(&waiting.request.id)
                && (&waiting.step, waiting.attempt) == (step, attempt)
                && is_meant(&waiting.request)
        };
        let known = answered.values().map(|(waiting, verdict)| (waiting, Some(verdict)));
        known.chain(open.values().map(|waiting| (waiting, None))).find(|(waiting, _)| fits(waiting))
    }

    /// The requests for help of a step that have no answer, by number.
    pub(crate) fn help_requests(&self, step: &StepId) -> impl Iterator<Item = (u32, &Content)> {
        self.approvals.open.values().filter_map(move |waiting| match &waiting.request.wants {
            RequestKind::Help { message } if waiting.step == *step => Some((waiting.request.id, message)),
            _ => None,
        })
    }

    /// How many of a step's last requests for help, or for tasks, no person answered in time.
    pub(crate) fn count_unheeded(&self, step: &StepId) -> u32 {
        self.approvals.unheeded.get(step).copied().unwrap_or(0)
    }

    /// Whether a step waits for a person's help, or has yet to receive the answer.
    pub(crate) fn waits_for_help(&self, key: Key) -> bool {
        let Approvals { open, decided, .. } = &self.approvals;
        !(open.is_empty() && decided.is_empty()) && {
            let step = self.id(key);
            self.asked_for_help().any(|waiting| waiting.step == step)
        }
    }

    /// The steps of an activation that wait for a person's help, and may go on with it.
    pub(super) fn steps_awaiting_help(&self, scope: u32) -> impl Iterator<Item = &StepId> {
        let goes_on = |key: Key| !self.is_ended(key) && !self.frame(key.frame).cut;
        let steps = self.asked_for_help().map(|waiting| &waiting.step);
        steps.filter(move |step| self.scope_of(step) == Some(scope) && self.find_step(step).is_some_and(goes_on))
    }

    fn asked_for_help(&self) -> impl Iterator<Item = &Waiting> {
        let Approvals { open, decided, .. } = &self.approvals;
        let all = open.values().chain(decided.values().map(|(waiting, _)| waiting));
        all.filter(|waiting| waiting.request.wants.is_help())
    }

    /// A step has ended: it needs no help any more.
    pub(super) fn help_over(&mut self, key: Key) {
        if !self.waits_for_help(key) {
            return;
        }
        let step = self.id(key);
        let is_over = |waiting: &Waiting| waiting.step == step && waiting.request.wants.is_help();
        self.approvals.open.retain(|_, waiting| !is_over(waiting));
        self.approvals.decided.retain(|_, (waiting, _)| !is_over(waiting));
    }

    pub(super) fn approval_asked(&mut self, key: Key, attempt: u32, request: &Request, at: u64) {
        let approvals = &mut self.approvals;
        if request.id <= approvals.last {
            return;
        }
        approvals.last = request.id;
        let on_timeout = self.graph.on_timeout;
        let waiting = Waiting { step: self.id(key), attempt, request: request.clone(), since: at, on_timeout };
        self.approvals.open.insert(request.id, waiting);
        match &request.wants {
            RequestKind::Help { message } => self.help_asked(key, request.id, message),
            RequestKind::Node { .. } => self.spawn_asked(key),
            RequestKind::Tool { .. }
            | RequestKind::Spawn { .. }
            | RequestKind::Plan { .. }
            | RequestKind::Merge { .. }
            | RequestKind::GoOn { .. } => {}
        }
        if let Some(swarm_state) = self.swarms.get_mut(&key) {
            swarm_state.swarm.pause_for_approval(request, at);
            self.look_at(key);
        }
    }

    pub(super) fn approval_answered(&mut self, key: Key, verdict: &Verdict, at: u64) {
        let Some(waiting) = self.approvals.open.remove(&verdict.id) else { return };
        if let wants @ RequestKind::GoOn { .. } = &waiting.request.wants {
            return self.went_on(key, wants, verdict, at);
        }
        let agent = Arc::clone(&waiting.request.agent);
        if verdict.choice == Choice::Always {
            let always = self.always_key(key, &agent, &waiting.request.wants);
            self.approvals.always.insert(always);
        }
        let swarm_state = self.swarms.get_mut(&key);
        match swarm_state.is_some_and(|swarm_state| swarm_state.swarm.apply_verdict(&agent, verdict, at)) {
            true => self.look_at(key),
            // The task that carries the turn out waits for it.
            false => _ = self.approvals.answered.insert(verdict.id, (waiting, verdict.clone())),
        }
    }

    /// An attempt is over: its requests wait for no answer any more.
    pub(super) fn approvals_over(&mut self, key: Key) {
        if self.approvals.open.is_empty() && self.approvals.answered.is_empty() {
            return;
        }
        let step = self.id(key);
        let Approvals { open, answered, .. } = &mut self.approvals;
        open.retain(|_, waiting| waiting.step != step || waiting.request.wants.outlasts_attempt());
        answered.retain(|_, (waiting, _)| waiting.step != step);
    }

    /// A request for a task, or for help, is decided, whatever has become of the agent that asked. False where the
    /// request is about something else.
    pub(super) fn decided_beyond(&mut self, verdict: &Verdict) -> bool {
        let outlasts = |waiting: &Waiting| waiting.request.wants.outlasts_attempt();
        if !self.approvals.open.get(&verdict.id).is_some_and(outlasts) {
            return false;
        }
        let Some(waiting) = self.approvals.open.remove(&verdict.id) else { return false };
        // A message to the agent that asked wakes its step; a task that starts does not.
        let wakes = waiting.request.wants.is_help() || !verdict.is_allowed();
        match verdict.by {
            AnsweredBy::Timeout if wakes => *self.approvals.unheeded.entry(waiting.step.clone()).or_default() += 1,
            AnsweredBy::Person => _ = self.approvals.unheeded.remove(&waiting.step),
            AnsweredBy::Timeout | AnsweredBy::Earlier | AnsweredBy::Policy | AnsweredBy::Headless => {}
        }
        if verdict.by == AnsweredBy::Policy && (waiting.request.wants.is_help() || !verdict.is_allowed()) {
            // The agent that asked receives this at once, or waits for nothing any more: a message would wake it to ask
            // again.
            self.help_refused(&waiting.step, verdict.id);
            if let Some(scope) = self.scope_of(&waiting.step) {
                self.agenda.posts.insert(scope);
            }
            return true;
        }
        if verdict.choice == Choice::Always {
            let Request { agent, wants, .. } = &waiting.request;
            self.approvals.always.insert((None, Arc::clone(agent), wants.describe()));
        }
        if let Some(scope) = self.scope_of(&waiting.step) {
            self.agenda.posts.insert(scope);
        }
        if waiting.request.wants.is_node() && !verdict.is_allowed() && self.goes_on(&waiting) {
            self.approvals.answered.insert(verdict.id, (waiting.clone(), verdict.clone()));
        }
        self.approvals.decided.insert(verdict.id, (waiting, verdict.clone()));
        true
    }

    /// Whether the attempt that asked goes on, or is about to begin again.
    fn goes_on(&self, waiting: &Waiting) -> bool {
        self.find_step(&waiting.step)
            .map(|key| self.step(key))
            .is_some_and(|step| step.attempt == waiting.attempt && matches!(step.phase, Phase::Running | Phase::Ready))
    }

    /// The decided requests for tasks and for help whose decisions were not passed on yet.
    pub(crate) fn decisions(&self) -> impl Iterator<Item = (&Waiting, &Verdict)> {
        self.approvals.decided.values().map(|(waiting, verdict)| (waiting, verdict))
    }

    /// What was sent may be what a decision led to.
    pub(super) fn decision_told(&mut self, scope: u32, letter: &InboxMessage) {
        let is_told = |waiting: &Waiting| match &waiting.request.wants {
            RequestKind::Node { letter: first, .. } => {
                first.id == letter.id || letter.answers.as_ref() == Some(&first.id)
            }
            RequestKind::Help { .. } => letter.answers.as_deref() == Some(&*waiting.request.name()),
            RequestKind::Tool { .. }
            | RequestKind::Spawn { .. }
            | RequestKind::Plan { .. }
            | RequestKind::Merge { .. }
            | RequestKind::GoOn { .. } => false,
        };
        let before = self.approvals.decided.len();
        self.approvals.decided.retain(|_, (waiting, _)| !is_told(waiting));
        if self.approvals.decided.len() != before {
            self.agenda.posts.insert(scope);
        }
    }

    /// The tasks of an activation that may still come to be started: who asked for them, and which.
    pub(super) fn possible_spawns(&self, scope: u32) -> impl Iterator<Item = (&Waiting, &Arc<str>)> {
        let decided = self.approvals.decided.values().filter(|(_, verdict)| verdict.is_allowed());
        let all = self.approvals.open.values().chain(decided.map(|(waiting, _)| waiting));
        let nodes = all.filter_map(|waiting| match &waiting.request.wants {
            RequestKind::Node { to, .. } => Some((waiting, to)),
            RequestKind::Tool { .. }
            | RequestKind::Spawn { .. }
            | RequestKind::Plan { .. }
            | RequestKind::Merge { .. }
            | RequestKind::GoOn { .. }
            | RequestKind::Help { .. } => None,
        });
        nodes.filter(move |(waiting, _)| self.scope_of(&waiting.step) == Some(scope))
    }

    /// Drops the requests for tasks of an activation that `is_over`: no answer can start them any more.
    pub(super) fn spawns_over(&mut self, scope: u32, is_over: impl Fn(&str) -> bool) {
        let all =
            self.approvals.open.iter().chain(self.approvals.decided.iter().map(|(id, (waiting, _))| (id, waiting)));
        let over = all.filter(|(_, waiting)| {
            matches!(&waiting.request.wants, RequestKind::Node { to, .. } if is_over(to))
                && self.scope_of(&waiting.step) == Some(scope)
        });
        let over: Vec<u32> = over.map(|(id, _)| *id).collect();
        for id in over {
            self.approvals.open.remove(&id);
            self.approvals.decided.remove(&id);
        }
    }

    /// The activation of the pipeline that a step belongs to.
    fn scope_of(&self, step: &StepId) -> Option<u32> {
        self.frame_of(step.instance, step.within.as_ref()).map(|frame| self.frame(frame).scope)
    }

    /// So many requests were made, whose steps run again.
    pub(super) fn requests_before(&mut self, last: u32) {
        self.approvals.last = self.approvals.last.max(last);
    }

    pub(super) fn approvals_resumed(&mut self) {
        self.approvals.before = self.approvals.last;
        self.approvals.expired = 0;
    }

    fn always_key(&self, key: Key, agent: &Arc<str>, wants: &RequestKind) -> Always {
        let swarm = self.runs_swarm(key).then(|| Arc::clone(&self.node(key).name));
        (swarm, Arc::clone(agent), wants.describe())
    }
}
