//! Folds the requests of agents for approval, and their answers, into the report of a run.

use std::sync::Arc;

use swarmc_runtime::{Choice, Event, Failure, Record, Request, RequestKind, Status, StepId, Verdict};

use super::{RowState, RunReport};
use crate::approvals::OpenRequest;
use crate::change::Change;

impl RunReport {
    /// Applies what a record says of requests; what people are told of it.
    pub(super) fn apply_approval<'r>(&mut self, record: &'r Record) -> Option<Change<'r>> {
        match &record.event {
            Event::ApprovalAsked { step, request, .. } => {
                if let Some(team) = self.teams.get_mut(step) {
                    team.set_doing(&request.agent, "waits for agreement");
                    team.set_asking(&request.agent, true);
                }
                if let RequestKind::GoOn { .. } = request.wants {
                    let row = self.ensure_row(step, record.at);
                    self.rows[row].state = RowState::Stalled;
                }
                let (since, on_timeout) = (record.at, self.on_timeout);
                let open = OpenRequest { step: step.clone(), request: request.clone(), since, on_timeout };
                self.approvals.insert(request.id, open);
                return Some(Change::RequestAsked { step, request });
            }
            Event::ApprovalAnswered { step, verdict, .. } => {
                let pending = self.approvals.remove(&verdict.id)?;
                let Request { agent, wants, .. } = &pending.request;
                if let RequestKind::GoOn { .. } = wants {
                    self.went_on(step, wants, verdict);
                } else {
                    if let Some(team) = self.teams.get_mut(step) {
                        team.set_asking(agent, false);
                        team.set_doing(agent, if verdict.is_allowed() { "may go on" } else { "was refused" });
                    }
                    if verdict.choice == Choice::Always {
                        self.always.insert(self.permission_key(step, agent, wants));
                    }
                }
                return Some(Change::RequestAnswered { request: Box::new(pending), verdict });
            }
            // A stop leaves the request open: the resumed run asks again.
            Event::AttemptEnded { step, outcome, .. } if outcome.failure != Some(Failure::Cancelled) => {
                self.approvals.retain(|_, pending| pending.step != *step || pending.request.wants.outlasts_attempt());
            }
            Event::StepSkipped { step, .. } => self.approvals.retain(|_, pending| pending.step != *step),
            Event::RunFinished { .. } => self.approvals.clear(),
            _ => {}
        }
        None
    }

    /// Applies the decision whether a step that repeats itself goes on.
    fn went_on(&mut self, step: &StepId, wants: &RequestKind, verdict: &Verdict) {
        let lenient = self.rules.get(&*step.name).is_some_and(|rule| rule.1);
        let Some(row) = self.index.get(step).map(|&index| &mut self.rows[index]) else { return };
        row.state = match (verdict.is_allowed(), &row.failure) {
            (true, None) => RowState::Idle,
            (true, Some(_)) => RowState::Waiting,
            (false, _) if lenient => RowState::Ended(Status::Skipped),
            (false, _) => RowState::Ended(Status::Failed),
        };
        if !verdict.is_allowed() {
            row.failure = Some(wants.describe_denial(verdict));
        }
    }

    /// Whether an earlier `always` of a person answers the request.
    pub fn is_always(&self, step: &StepId, request: &Request) -> bool {
        !self.always.is_empty() && self.always.contains(&self.permission_key(step, &request.agent, &request.wants))
    }

    fn permission_key(
        &self,
        step: &StepId,
        agent: &Arc<str>,
        wants: &RequestKind,
    ) -> (Option<Arc<str>>, Arc<str>, String) {
        let swarm = self.swarms.contains_key(&*step.name).then(|| Arc::clone(&step.name));
        (swarm, Arc::clone(agent), wants.describe())
    }
}
