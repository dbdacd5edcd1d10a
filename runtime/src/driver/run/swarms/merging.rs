//! Merges of the worktrees of a team: Git runs beside the driver, and its report becomes an event of the swarm.
//!
//! A merge is a call of its manager: it begins as one, is recorded and replayed as one, and ends with
//! [`TeamFact::Integrated`] or a refusal in the place of a result. The test of a rehearsal has no repository: there each
//! merge goes well.

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
use crate::core::swarm::merge::{TreeStage, WorkPlace, Worktree};
use crate::io::executor::Role;
use crate::io::input::SwarmInput;
use crate::io::worktree::Tree;
use crate::io::worktree::merge::{Merge, Report, Step as MergeStep};
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

    /// Has Git do what a manager asks for.
    pub(super) fn begin_merge(
        &mut self,
        (step, attempt, key): (&StepId, u32, Key),
        turn: &TurnId,
    ) -> Result<(), Stuck> {
        let Some((name, tree, op)) = self.state.swarm(key, attempt).and_then(|swarm| swarm.open_merge(turn)) else {
            return Ok(());
        };
        let (name, tree, op) = (name.to_string(), tree.clone(), op.clone());
        let started =
            Event::ToolStarted { swarm: AttemptId::new(step, attempt), turn: turn.clone(), tool: op.name().into() };
        self.record_swarm_event(started);
        if self.world.is_rehearsed() {
            let report = Report {
                to: Some(MergeState::Merged),
                commit: None,
                files: Vec::new(),
                note: "merged without conflicts".to_owned(),
            };
            self.note_task(step, attempt, turn, Task::Rehearsed);
            self.schedule_report(step, attempt, 0, SwarmInput::Called(turn.clone(), Ok(json!(report).to_string())));
            return Ok(());
        }
        if !self.call_recorded(step, attempt, turn, (op.name(), &json!(op))) {
            return Ok(());
        }
        let (merge, asked) = (self.prepare_merge(step, attempt, key, (&name, &tree))?, to_step(&tree, op));
        let (cancel, word) = (Arc::new(Cancel::default()), turn.clone());
        let stop = Arc::clone(&cancel);
        self.launch(step, attempt, turn, async move {
            let done = tokio::task::spawn_blocking(move || merge.carry_out(&asked, &cancel)).await;
            let done = done.unwrap_or_else(|panic| Err(format!("the merge broke off: {panic}")));
            let fault = |message| ToolFault { message: format!("not merged: {message}"), transient: false };
            SwarmInput::Called(word, done.map(|report| json!(report).to_string()).map_err(fault))
        })?;
        // Dropping its task would leave Git at work.
        self.note_task(step, attempt, turn, Task::Program(stop));
        Ok(())
    }

    fn prepare_merge(
        &self,
        id: &StepId,
        attempt: u32,
        key: Key,
        (name, tree): (&str, &Worktree),
    ) -> Result<Merge, Stuck> {
        let step = self.evaluator.step_definition(&self.state, key);
        let pipeline = self.evaluator.pipeline(&self.state, key.frame);
        let trees = self.evaluator.trees.clone();
        let trees = trees.ok_or_else(|| Stuck(render_failure("the run has no working trees".to_owned())))?;
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
        let checks = declared.filter(|declared| declared.name == *name).flat_map(|declared| declared.checks.clone());
        Ok(Merge {
            trees,
            name: name.to_owned(),
            manager: tree.manager.to_string(),
            source: worktree_names::member_tree_name(&self.state, key.frame, step, name),
            target: worktree_names::merge_tree_name(&self.state, key.frame, step, tree.into.as_deref()),
            into: tree.into.as_deref().map(str::to_owned),
            checks: checks.collect(),
            environment,
            working_dir: pipeline.working_dir.clone(),
        })
    }

    /// The event that the report of Git gives; none where the turn is no merge.
    pub(super) fn end_merge(
        &self,
        (step, attempt, key): (&StepId, u32, Key),
        turn: &TurnId,
        result: &Result<String, ToolFault>,
    ) -> Option<Event> {
        let swarm = self.state.swarm(key, attempt)?;
        let (name, ..) = swarm.open_merge(turn)?;
        let report: Report = match result {
            Ok(text) => serde_json::from_str(text).unwrap_or_else(|_| Report::refused("Git gave no report")),
            Err(fault) => Report::refused(fault.message.clone()),
        };
        let (id, agent) = (AttemptId::new(step, attempt), Arc::clone(&turn.agent));
        let Some(to) = report.to else {
            let authors = swarm.describe_authors(&report.files);
            let reason = truncate_to_event(&format!("{}{authors}", report.note));
            return Some(Event::ActionRefused { swarm: id, agent, reason });
        };
        let note = truncate_to_event(&report.note);
        let (worktree, commit, files) = (Arc::clone(name), report.commit, report.files);
        Some(Event::Team { swarm: id, fact: TeamFact::Integrated { agent, worktree, to, commit, files, note } })
    }
}

/// What Git is to do: to merge a worktree that is merged is to move its branch.
fn to_step(tree: &Worktree, op: TeamOp) -> MergeStep {
    match (op, &tree.stage) {
        (TeamOp::IntegrateContinue { dropped }, _) => MergeStep::Continue { dropped },
        (TeamOp::IntegrateAbort { why }, _) => MergeStep::Abort { why },
        (_, TreeStage::Committed(commit)) => MergeStep::Move { commit: commit.clone() },
        (TeamOp::Integrate { summary, commit_rest, .. }, _) => MergeStep::Begin { summary, commit_rest },
        (other, _) => MergeStep::Abort { why: other.name().to_owned() },
    }
}
