//! Approvals: an agent waits for one, and goes on with what was decided.

use std::sync::Arc;

use super::{AgentStage, Agreed, Swarm, Timer};
use crate::types::approval::{Request, RequestKind, Verdict};
use crate::types::swarm::Action;
use crate::types::team::TeamOp;

impl Swarm {
    /// An agent requests an approval: its time stands still until the answer.
    pub(crate) fn pause_for_approval(&mut self, request: &Request, at: u64) {
        let waits = |stage: &AgentStage| match request.wants {
            RequestKind::Tool { .. } => {
                matches!(stage, AgentStage::Calling(..))
                    || matches!(stage.acting(), Some(Action::Operate(TeamOp::Read { .. })))
            }
            RequestKind::Spawn { .. } => {
                matches!(stage, AgentStage::Helping(..))
                    || matches!(stage.acting(), Some(Action::Operate(TeamOp::SpawnAgent { .. })))
            }
            RequestKind::Plan { .. } | RequestKind::Merge { .. } => {
                stage.acting().and_then(Action::operation).is_some()
            }
            // Members start no tasks and do not stall, and agents help them, not people.
            RequestKind::Node { .. } | RequestKind::GoOn { .. } | RequestKind::Help { .. } => false,
        };
        let Some(index) = self.find_in_stage(&request.agent, waits).filter(|_| !self.is_over) else { return };
        let agent = &self.agents[index as usize];
        let act = match agent.stage.clone() {
            AgentStage::Calling(act, _) => act,
            AgentStage::Helping(description, skills) => Action::RequestHelp { description, skills }.into(),
            AgentStage::Acting(act) => act,
            _ => return,
        };
        if let Some(began) = agent.began {
            let deadline = began.saturating_add(self.rules.limits.timeout_ms);
            self.agenda.timers.remove(&(deadline, Timer::Deadline(index)));
        }
        self.enter_stage(index, AgentStage::Pending(act, request.id, at));
    }

    /// A request of an agent is answered; false where the swarm itself does not wait for it.
    pub(crate) fn apply_verdict(&mut self, agent: &str, verdict: &Verdict, at: u64) -> bool {
        let waits = |stage: &AgentStage| matches!(stage, AgentStage::Pending(_, id, _) if *id == verdict.id);
        let Some(index) = self.find_in_stage(agent, waits).filter(|_| !self.is_over) else { return false };
        let agent = &mut self.agents[index as usize];
        let AgentStage::Pending(act, _, since) = agent.stage.clone() else { return false };
        if let Some(began) = &mut agent.began {
            // Its time stood still: the beginning moves by the pause, and the deadline with it.
            *began = began.saturating_add(at.saturating_sub(since));
            let deadline = began.saturating_add(self.rules.limits.timeout_ms);
            self.agenda.timers.insert((deadline, Timer::Deadline(index)));
        }
        if !verdict.is_allowed() {
            self.enter_stage(index, AgentStage::Denied(act, verdict.refusal()));
            return true;
        }
        agent.agreed = Some(Agreed { changed: verdict.arguments.is_some() });
        let stage = match (&*act, &verdict.arguments) {
            (Action::ToolCall { tool, .. }, Some(params)) => {
                let call = Action::ToolCall { tool: Arc::clone(tool), params: params.clone() };
                AgentStage::Calling(call.into(), false)
            }
            (Action::ToolCall { .. }, None) => AgentStage::Calling(act, false),
            (Action::RequestHelp { description, skills }, _) => {
                AgentStage::Helping(description.clone(), skills.clone())
            }
            _ => AgentStage::Acting(act),
        };
        self.enter_stage(index, stage);
        true
    }
}
