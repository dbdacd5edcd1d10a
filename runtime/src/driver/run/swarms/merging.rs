//! Worktrees of a team: Git runs beside the driver, and its report becomes an event of the swarm.
//!
//! What Git does is a call of an agent: it begins as one, is recorded and replayed as one, and ends with a fact of the team
//! or a refusal in the place of a result. The test of a rehearsal has no repository: there Git does what it is asked for.

use std::sync::Arc;

use serde_json::json;
use swarmc_plan::{Body, Pipeline, Step};

use super::super::driver::Driver;
use super::super::eval::{render_failure, truncate_to_event};
use super::super::values::View;
use super::super::worktree_names;
use super::{Stuck, Task};
use crate::core::graph::Key;
use crate::core::swarm::Swarm;
use crate::core::swarm::merge::{TreeStage, WorkPlace};
use crate::io::executor::Role;
use crate::io::input::SwarmInput;
use crate::io::worktree::Tree;
use crate::io::worktree::merge::{Came, GitStep, Merge, Report};
use crate::types::cancel::Cancel;
use crate::types::chat::ToolFault;
use crate::types::event::{AttemptId, Event, StepId};
use crate::types::swarm::TurnId;
use crate::types::team::{MergeState, TeamOp};
use crate::types::team_fact::TeamFact;

impl Driver<'_> {
    /// The working tree of an agent, where that is not the workspace.
    pub(super) fn find_member_tree(
        &self,
        key: Key,
        step: &Step,
        pipeline: &Pipeline,
        agent: (&Swarm, &str),
    ) -> Option<Tree> {
        let trees = self.evaluator.trees.as_ref()?;
        let name = match agent.0.place_of(agent.1) {
            WorkPlace::Workspace => return self.find_worktree(key, step, pipeline),
            WorkPlace::Worktree(tree) => worktree_names::member_tree_name(&self.state, key.frame, step, tree),
            WorkPlace::Merges(into) => worktree_names::merge_tree_name(&self.state, key.frame, step, into),
        };
        Some(Tree { trees: Arc::clone(trees), name, working_dir: pipeline.working_dir.clone() })
    }

    /// Has Git do what an agent asks for.
    pub(super) fn begin_git(&mut self, (step, attempt, key): (&StepId, u32, Key), turn: &TurnId) -> Result<(), Stuck> {
        let swarm = self.state.swarm(key, attempt);
        let Some((swarm, op)) = swarm.and_then(|swarm| Some((swarm, swarm.find_git_call(turn)?.clone()))) else {
            return Ok(());
        };
        let asked = to_step(swarm, turn, &op);
        let started =
            Event::ToolStarted { swarm: AttemptId::new(step, attempt), turn: turn.clone(), tool: op.name().into() };
        self.record_swarm_event(started);
        if self.world.is_rehearsed() {
            let report = match &asked {
                Some((_, GitStep::Open | GitStep::Leave)) | None => Report::ready(),
                Some(_) => Report::merge(MergeState::Merged, "merged without conflicts"),
            };
            self.note_task(step, attempt, turn, Task::Rehearsed);
            self.schedule_report(step, attempt, 0, SwarmInput::Called(turn.clone(), Ok(json!(report).to_string())));
            return Ok(());
        }
        if !self.call_recorded(step, attempt, turn, (op.name(), &json!(op))) {
            return Ok(());
        }
        let merge = match asked {
            Some((place, asked)) => self.prepare_merge(step, attempt, key, &place)?.map(|merge| (merge, asked)),
            None => None,
        };
        let (cancel, word) = (Arc::new(Cancel::default()), turn.clone());
        let stop = Arc::clone(&cancel);
        self.launch(step, attempt, turn, async move {
            let Some((merge, asked)) = merge else {
                let report = match op {
                    TeamOp::WorktreeMove { .. } => Report::ready(),
                    _ => Report::refused("there are no worktrees: the workspace is in no Git repository with a commit"),
                };
                return SwarmInput::Called(word, Ok(json!(report).to_string()));
            };
            let done = tokio::task::spawn_blocking(move || merge.carry_out(&asked, &cancel)).await;
            let done = done.unwrap_or_else(|panic| Err(format!("Git broke off: {panic}")));
            let fault = |message| ToolFault { message: format!("not done: {message}"), transient: false };
            SwarmInput::Called(word, done.map(|report| json!(report).to_string()).map_err(fault))
        })?;
        // Dropping its task would leave Git at work.
        self.note_task(step, attempt, turn, Task::Program(stop));
        Ok(())
    }

    /// A merge as Git carries it out; none where the run has no repository.
    fn prepare_merge(&self, id: &StepId, attempt: u32, key: Key, place: &Place) -> Result<Option<Merge>, Stuck> {
        let Place { name, manager, into } = place;
        let step = self.evaluator.step_definition(&self.state, key);
        let pipeline = self.evaluator.pipeline(&self.state, key.frame);
        let Some(trees) = self.evaluator.trees.clone() else { return Ok(None) };
        let view = self
            .evaluator
            .build_view(&self.state, key.frame, Some(step), &self.attempts.made)
            .map_err(render_failure)?;
        let view = View { attempt, ..view };
        let environment = self.build_environment(step, None, &view, (id, attempt, Role::Turn)).map_err(Stuck)?;
        let declared = match &step.body {
            Body::Swarm(call) => self.evaluator.plan.swarm(&call.swarm),
            _ => None,
        };
        let declared = declared.into_iter().flat_map(|swarm| &swarm.worktrees);
        let checks = declared.filter(|declared| declared.name == **name).flat_map(|declared| declared.checks.clone());
        Ok(Some(Merge {
            trees,
            name: name.to_string(),
            manager: manager.to_string(),
            source: worktree_names::member_tree_name(&self.state, key.frame, step, name),
            target: worktree_names::merge_tree_name(&self.state, key.frame, step, into.as_deref()),
            into: into.as_deref().map(str::to_owned),
            checks: checks.collect(),
            environment,
            working_dir: pipeline.working_dir.clone(),
        }))
    }

    /// The event that the report of Git gives; none where the call is one of a tool.
    pub(super) fn end_git(
        &self,
        (step, attempt, key): (&StepId, u32, Key),
        turn: &TurnId,
        result: &Result<String, ToolFault>,
    ) -> Option<Event> {
        let swarm = self.state.swarm(key, attempt)?;
        let op = swarm.find_git_call(turn)?.clone();
        let report: Report = match result {
            Ok(text) => serde_json::from_str(text).unwrap_or_else(|_| Report::refused("Git gave no report")),
            Err(fault) => Report::refused(fault.message.clone()),
        };
        let (id, agent) = (AttemptId::new(step, attempt), Arc::clone(&turn.agent));
        let fact = match (report.came, op) {
            (Came::Merge(to), _) => {
                let (name, _) = swarm.find_managed(&agent)?;
                let (worktree, note) = (Arc::clone(name), truncate_to_event(&report.note));
                TeamFact::Integrated { agent, worktree, to, commit: report.commit, files: report.files, note }
            }
            (Came::Ready, TeamOp::WorktreeOpen { worktree, manager, members, .. }) => {
                TeamFact::WorktreeOpened { agent, worktree, manager, members }
            }
            (Came::Ready, TeamOp::WorktreeMove { agent: moved, to }) => {
                TeamFact::AgentMoved { by: agent, agent: moved, to }
            }
            (Came::Ready | Came::Refused, _) => {
                let authors = swarm.describe_authors(&report.files);
                let reason = truncate_to_event(&format!("{}{authors}", report.note));
                return Some(Event::ActionRefused { swarm: id, agent, reason });
            }
        };
        Some(Event::Team { swarm: id, fact })
    }
}

/// The worktree that Git is asked about.
struct Place {
    name: Arc<str>,
    manager: Arc<str>,
    into: Option<Arc<str>>,
}

/// What Git is to do; none where that is nothing. To merge a worktree that is merged is to move its branch.
fn to_step(swarm: &Swarm, turn: &TurnId, op: &TeamOp) -> Option<(Place, GitStep)> {
    let managed = swarm.find_managed(&turn.agent);
    let step = match (op, managed.map(|(_, tree)| &tree.stage)) {
        (TeamOp::WorktreeOpen { worktree, manager, .. }, _) => {
            let place = Place { name: Arc::clone(worktree), manager: Arc::clone(manager), into: None };
            return Some((place, GitStep::Open));
        }
        (TeamOp::WorktreeMove { agent, .. }, _) => {
            let WorkPlace::Worktree(name) = swarm.place_of(agent) else { return None };
            return Some((Place { name: name.into(), manager: Arc::clone(agent), into: None }, GitStep::Leave));
        }
        (_, Some(TreeStage::Committed(commit))) => GitStep::Move { commit: commit.clone() },
        (TeamOp::IntegrateContinue { dropped }, _) => GitStep::Continue { dropped: dropped.clone() },
        (TeamOp::IntegrateAbort { why }, _) => GitStep::Abort { why: why.clone() },
        (TeamOp::Integrate { summary, commit_rest, .. }, _) => {
            GitStep::Begin { summary: summary.clone(), commit_rest: commit_rest.clone() }
        }
        _ => return None,
    };
    let (name, tree) = managed?;
    Some((Place { name: Arc::clone(name), manager: Arc::clone(&tree.manager), into: tree.into.clone() }, step))
}
