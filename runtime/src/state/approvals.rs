//! What agents wait for somebody to agree to, and what was said.
//!
//! In: requests and verdicts, in order. Out: what is open, and answers that an attempt may still need: one that a former
//! process began starts anew, and what it asks again is not asked anybody twice.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::State;
use crate::approval::{Choice, Request, Verdict, Wants};
use crate::event::StepId;
use crate::graph::Key;

/// A request that somebody is to answer, with where it comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct Waiting {
    /// The step.
    pub step: StepId,
    /// The attempt of that step.
    pub attempt: u32,
    /// Who wants what.
    pub request: Request,
    /// Since when, in milliseconds since 1970.
    pub since: u64,
}

/// The requests of a run.
#[derive(Debug, Default)]
pub(crate) struct Approvals {
    /// The number of the last one.
    last: u32,
    /// The number of the last one of the processes before this one.
    before: u32,
    open: BTreeMap<u32, Waiting>,
    /// Those of running tasks that were answered.
    answered: BTreeMap<u32, (Waiting, Verdict)>,
    always: BTreeSet<Always>,
}

/// What an agent may have for the rest of the run: the swarm that it belongs to, its name, and the tool, none for helpers.
type Always = (Option<Arc<str>>, Arc<str>, Option<Arc<str>>);

impl State {
    /// The requests that nobody has answered, in the order in which they came.
    pub fn waiting(&self) -> impl Iterator<Item = &Waiting> {
        self.approvals.open.values()
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
    pub(crate) fn is_always(&self, key: Key, agent: &Arc<str>, wants: &Wants) -> bool {
        self.approvals.always.contains(&self.always(key, agent, wants))
    }

    /// The request that a former process heard from this attempt, and its answer where it has one. Those in `used` were
    /// taken up already.
    pub(crate) fn asked_before(
        &self,
        (step, attempt): (&StepId, u32),
        agent: &str,
        wants: &Wants,
        used: &BTreeSet<u32>,
    ) -> Option<(&Waiting, Option<&Verdict>)> {
        let Approvals { before, open, answered, .. } = &self.approvals;
        let fits = |waiting: &&Waiting| {
            waiting.request.id <= *before
                && !used.contains(&waiting.request.id)
                && (&waiting.step, waiting.attempt) == (step, attempt)
                && *waiting.request.agent == *agent
                && waiting.request.wants.is_like(wants)
        };
        let known = answered.values().map(|(waiting, verdict)| (waiting, Some(verdict)));
        known.chain(open.values().map(|waiting| (waiting, None))).find(|(waiting, _)| fits(waiting))
    }

    pub(super) fn approval_asked(&mut self, key: Key, attempt: u32, request: &Request, at: u64) {
        let approvals = &mut self.approvals;
        if request.id <= approvals.last {
            return;
        }
        approvals.last = request.id;
        let waiting = Waiting { step: self.id(key), attempt, request: request.clone(), since: at };
        self.approvals.open.insert(request.id, waiting);
        if let Some(hive) = self.swarms.get_mut(&key) {
            hive.swarm.asked(request, at);
            self.look_at(key);
        }
    }

    pub(super) fn approval_answered(&mut self, key: Key, verdict: &Verdict, at: u64) {
        let Some(waiting) = self.approvals.open.remove(&verdict.id) else { return };
        if let wants @ Wants::GoOn { .. } = &waiting.request.wants {
            return self.went_on(key, wants, verdict, at);
        }
        let agent = Arc::clone(&waiting.request.agent);
        if verdict.choice == Choice::Always {
            let always = self.always(key, &agent, &waiting.request.wants);
            self.approvals.always.insert(always);
        }
        match self.swarms.get_mut(&key) {
            Some(hive) => {
                hive.swarm.answered(&agent, verdict, at);
                self.look_at(key);
            }
            None => _ = self.approvals.answered.insert(verdict.id, (waiting, verdict.clone())),
        }
    }

    /// An attempt is over: nobody waits in it any more.
    pub(super) fn approvals_over(&mut self, key: Key) {
        if self.approvals.open.is_empty() && self.approvals.answered.is_empty() {
            return;
        }
        let step = self.id(key);
        let Approvals { open, answered, .. } = &mut self.approvals;
        open.retain(|_, waiting| waiting.step != step);
        answered.retain(|_, (waiting, _)| waiting.step != step);
    }

    pub(super) fn approvals_resumed(&mut self) {
        self.approvals.before = self.approvals.last;
    }

    fn always(&self, key: Key, agent: &Arc<str>, wants: &Wants) -> Always {
        let swarm = self.runs_swarm(key).then(|| Arc::clone(&self.node(key).name));
        (swarm, Arc::clone(agent), wants.tool().cloned())
    }
}
