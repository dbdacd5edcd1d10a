//! Running swarms: the driver carries out what their core decides, and records the results.
//!
//! The driver renders, records and decides; tasks of the reactor wait for models and tools, and report as inputs, as
//! recordings and tests do in their place.
//! Invariant: a turn or a call begins after its record is durable, and the driver drops its result if its attempt has
//! ended.

mod asking;
mod ending;
pub(super) mod files;
mod merging;
mod program_turn;
mod recorded;
mod user_messages;
mod within;

use std::collections::BTreeMap;
use std::sync::Arc;

use swarmc_plan::{Agent, Approval};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::driver::Driver;
use super::eval::{At, render_failure, truncate_to_event};
use super::{Input, store_content};
use crate::core::graph::Key;
use crate::core::swarm::state::AgentStage;
use crate::core::swarm::{Swarm, SwarmCommand};
use crate::io::executor::Role;
use crate::io::input::SwarmInput;
use crate::io::tools::Grant;
use crate::types::approval::{self};
use crate::types::cancel::Cancel;
use crate::types::chat::{Tool, ToolFault};
use crate::types::event::{self, AttemptId, Content, Event, Failure, StepId};
use crate::types::swarm::{Action, Answer, Fault, TurnId};
use crate::types::user_request::StopLevel;
use program_turn::Programs;
use within::SteeredTurn;

/// The swarms that run.
#[derive(Debug, Default)]
pub(super) struct RunningSwarms {
    open: BTreeMap<(StepId, u32), Team>,
    /// What begins when the records of this turn are durable.
    gate: Option<watch::Sender<bool>>,
    /// The turns that programs take.
    programs: Programs,
}

/// What runs for one swarm.
#[derive(Debug, Default)]
struct Team {
    tasks: BTreeMap<TurnId, Task>,
    /// Ends it when the time of its step is over.
    clock: Option<AbortHandle>,
    /// The turns into which texts can be sent.
    steered: BTreeMap<TurnId, SteeredTurn>,
    /// Of a turn that goes on: how many changes of files of its agent are recorded, and told once more by its program.
    known_touches: BTreeMap<TurnId, u32>,
    /// The tools of each agent, once they are known.
    tools: BTreeMap<Arc<str>, Arc<Vec<Tool>>>,
}

/// What carries a turn or a call out.
#[derive(Debug)]
enum Task {
    /// A task of the reactor.
    Reactor(AbortHandle),
    /// A program of the pool.
    Program(Arc<Cancel>),
    /// The test of a rehearsal.
    Rehearsed,
}

impl Task {
    fn stop(&self) {
        match self {
            Task::Reactor(handle) => handle.abort(),
            Task::Program(cancel) => cancel.request_stop(StopLevel::Stop),
            // The driver drops its report.
            Task::Rehearsed => {}
        }
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.tasks.values().for_each(Task::stop);
        self.clock.iter().for_each(AbortHandle::abort);
    }
}

impl RunningSwarms {
    /// Whether no swarm runs.
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// The swarms that run.
    pub(super) fn list_running(&self) -> Vec<(StepId, u32)> {
        self.open.keys().cloned().collect()
    }

    /// Whether the swarm of an attempt runs.
    pub(super) fn is_running(&self, of: &(StepId, u32)) -> bool {
        self.open.contains_key(of)
    }

    /// Ends everything; nothing is recorded of it.
    pub(super) fn clear(&mut self) {
        self.open.clear();
    }

    /// Kills the programs that take turns.
    pub(super) fn kill_programs(&self) {
        for task in self.open.values().flat_map(|team| team.tasks.values()) {
            if let Task::Program(cancel) = task {
                cancel.request_stop(StopLevel::Kill);
            }
        }
    }

    /// What was ordered in this turn of the loop begins.
    pub(super) fn release(&mut self) -> Option<watch::Sender<bool>> {
        self.gate.take()
    }

    /// The tools of an agent, once they are known; none where its swarm does not run.
    fn tools(&self, step: &StepId, attempt: u32, agent: &str) -> Option<Option<Arc<Vec<Tool>>>> {
        self.open.get(&(step.clone(), attempt)).map(|team| team.tools.get(agent).cloned())
    }

    /// The tools of an agent are known.
    fn store_tools(&mut self, step: &StepId, attempt: u32, agent: &Arc<str>, tools: Arc<Vec<Tool>>) {
        if let Some(team) = self.open.get_mut(&(step.clone(), attempt)) {
            team.tools.insert(Arc::clone(agent), tools);
        }
    }

    fn subscribe_gate(&mut self) -> watch::Receiver<bool> {
        // One gate for all that is ordered in a turn of the loop: one wait for the disk opens it.
        self.gate.get_or_insert_with(|| watch::channel(false).0).subscribe()
    }
}

/// Why a swarm cannot go on.
struct Stuck(Failure);

impl From<Failure> for Stuck {
    fn from(failure: Failure) -> Stuck {
        Stuck(failure)
    }
}

impl Driver<'_> {
    /// The swarm of a step begins, or goes on.
    pub(super) fn begin_swarm(&mut self, step: StepId, attempt: u32, goal: String) {
        let mut team = Team::default();
        let key = self.state.find_step(&step);
        let definition = key.map(|key| self.evaluator.step_definition(&self.state, key));
        let limit = definition.and_then(|step| step.timeout_ms);
        if let Some(limit) = limit
            && self.world.is_real()
            && let Ok(handle) = self.services.reactor.handle()
        {
            let (inputs, late) = (self.services.inputs.clone(), (step.clone(), attempt));
            let clock = handle.spawn(async move {
                tokio::time::sleep(std::time::Duration::from_millis(limit)).await;
                let _ = inputs.send(Input::Swarm { step: late.0, attempt: late.1, word: Box::new(SwarmInput::Late) });
            });
            team.clock = Some(clock.abort_handle());
        }
        self.teams.open.insert((step.clone(), attempt), team);
        // The time of a rehearsal is virtual: a timer of the reactor would wait for real.
        if let Some(limit) = limit.filter(|_| self.world.is_rehearsed()) {
            self.schedule_report(&step, attempt, limit, SwarmInput::Late);
        }
        self.queue_recorded_inputs(&step, attempt);
        if let Some(key) = key
            && let Err(failure) = self.decide_open(&step, attempt, key)
        {
            return self.fail_swarm(&step, attempt, failure);
        }
        // A swarm that goes on has its start in the journal already.
        if let Some(key) = key.filter(|&key| self.state.swarm(key, attempt).is_some()) {
            // Ahead of its decisions, which would have these turns begin again.
            if let Err(Stuck(failure)) = self.rejoin_turns(&step, attempt, key) {
                self.fail_swarm(&step, attempt, failure);
            }
        } else {
            match self.outputs.keep_text(goal) {
                Ok(goal) => {
                    let run = self.name_seed();
                    self.record_swarm_event(Event::SwarmStarted { swarm: AttemptId::new(&step, attempt), run, goal });
                }
                Err(error) => self.give_up(error.to_string()),
            }
        }
    }

    /// Carries out what a swarm needs done.
    pub(super) fn carry_out_swarm(&mut self, swarm: &AttemptId, command: SwarmCommand) {
        let AttemptId { step, attempt } = swarm;
        let attempt = *attempt;
        let Some(key) = self.state.find_step(step).filter(|_| self.find_team(step, attempt).is_some()) else { return };
        // What was ordered together with this may have ended the run, or the swarm.
        if !self.state.swarm_may_act(key) {
            return;
        }
        let done = match command {
            SwarmCommand::Record(event) => {
                self.record_swarm_event(*event);
                Ok(())
            }
            SwarmCommand::Spawn { place, name, plays, task } => {
                self.spawn_agent(step, attempt, key, (place, name, plays, task))
            }
            SwarmCommand::Ask(turn) => self.ask_turn(step, attempt, key, turn),
            SwarmCommand::Call(turn) => self.call_tool(step, attempt, key, turn),
            SwarmCommand::Agree { agent, wants } => {
                let agents = self.state.swarm(key, attempt).map(|swarm| &swarm.agents);
                match agents.and_then(|agents| agents.get(agent as usize)).map(|agent| Arc::clone(&agent.name)) {
                    Some(name) => {
                        self.agent_wants((step, attempt), key, &name, wants, Approval::Human).map_err(Stuck::from)
                    }
                    None => Ok(()),
                }
            }
            SwarmCommand::Read { agent, what } => {
                let swarm = self.state.swarm(key, attempt);
                let name =
                    swarm.and_then(|swarm| swarm.agents.get(agent as usize)).map(|agent| Arc::clone(&agent.name));
                let read = name.map(|name| self.read_team((step, attempt, key), &name, what));
                read.transpose().map(drop).map_err(Stuck::from)
            }
            SwarmCommand::Cancel(turn) => {
                if let Some(task) = self.find_team(step, attempt).and_then(|team| team.tasks.remove(&turn)) {
                    task.stop();
                }
                Ok(())
            }
            SwarmCommand::Conclude { agent, how, error } => self.conclude_agent(attempt, key, (agent, how, error)),
            SwarmCommand::Finish => self.finish_swarm(step, attempt, key),
            SwarmCommand::Fail(why) => Err(Stuck(Failure::Agent { message: why })),
        };
        if let Err(Stuck(failure)) = done {
            self.fail_swarm(step, attempt, failure);
        }
    }

    /// A step that is a swarm is to end early. False when it is none.
    pub(super) fn cancel_swarm(&mut self, step: &StepId, attempt: u32) -> bool {
        if !self.close_team(step, attempt) {
            return false;
        }
        self.end_attempt(step.clone(), attempt, failure_outcome(Failure::Cancelled));
        true
    }

    /// A task of a swarm reports.
    pub(super) fn handle_report(&mut self, step: &StepId, attempt: u32, word: SwarmInput) {
        let Some(key) = self.state.find_step(step) else { return };
        let turn = word.ended_turn().cloned();
        // Also where the swarm has ended since: another program may take the place.
        if let SwarmInput::Answered(turn, _) = &word {
            self.services.agent_server.close_turn(step, attempt, turn);
            self.program_ended(step, attempt, turn);
        }
        // The driver drops the report of a turn that it has ended.
        let is_replay = self.world.recording().is_some();
        let Some(team) = self.find_team(step, attempt) else { return };
        if let Some(turn) = &turn {
            team.steered.remove(turn);
            if team.tasks.remove(turn).is_none() && !is_replay {
                return;
            }
        }
        // Behind the check: a recording must not hold what the driver drops.
        self.write_down(step, attempt, &word);
        let done = match word {
            SwarmInput::Listed(turn, Ok(tools)) => {
                self.teams.store_tools(step, attempt, &turn.agent, Arc::new(tools));
                // What has come meanwhile is read first.
                self.state.swarm_again(key, &turn);
                Ok(())
            }
            SwarmInput::Listed(turn, Err(fault)) => {
                let answer = Answer::Failed {
                    message: truncate_to_event(&fault.message),
                    fault: classify_fault(fault.transient),
                };
                let events = Event::refused_turn(&AttemptId::new(step, attempt), turn, answer);
                events.into_iter().for_each(|event| self.record_swarm_event(event));
                Ok(())
            }
            SwarmInput::Answered(turn, reply) => {
                let done = self.handle_reply(attempt, key, turn.clone(), reply);
                self.forget_processes(|layout| layout.turn_processes_folder(step, attempt, &turn));
                done
            }
            SwarmInput::Called(turn, result)
                if let Some(event) = self.end_git((step, attempt, key), &turn, &result) =>
            {
                self.record_swarm_event(event);
                Ok(())
            }
            SwarmInput::Called(turn, result) => {
                let fault = result.as_ref().err().map(|fault| classify_fault(fault.transient));
                let touch = self.find_written_file((attempt, key), &turn).filter(|_| fault.is_none());
                let text = result.unwrap_or_else(|fault| fault.message);
                match store_content(&*self.outputs.texts, text) {
                    Ok(result) => {
                        let swarm = AttemptId::new(step, attempt);
                        self.record_swarm_event(Event::ToolEnded { swarm, turn: turn.clone(), result, fault });
                        touch.into_iter().for_each(|touch| self.note_touch((step, attempt, key), &turn, touch));
                    }
                    Err(error) => self.give_up(error.to_string()),
                }
                Ok(())
            }
            SwarmInput::Late => {
                let after_ms = self.evaluator.step_definition(&self.state, key).timeout_ms.unwrap_or(0);
                Err(Stuck(Failure::Timeout { after_ms }))
            }
            SwarmInput::Over(agent) => {
                self.end_late(key, &agent);
                Ok(())
            }
            SwarmInput::Overdue(proposal) => {
                self.state.proposal_overdue(key, proposal);
                Ok(())
            }
            SwarmInput::Agreed { id, choice, by, because, arguments } => {
                self.apply_recorded_verdict((id, choice, by), because, arguments).map_err(Stuck::from)
            }
            SwarmInput::Again(turn, within) => {
                self.repeat_within((step, attempt, key), &turn, within);
                Ok(())
            }
            SwarmInput::Touched(turn, _) if self.is_known_touch(step, attempt, &turn) => Ok(()),
            SwarmInput::Touched(turn, touch) => {
                self.note_touch((step, attempt, key), &turn, touch);
                Ok(())
            }
            SwarmInput::Steered(turn, steered) => {
                self.note_steered((step, attempt), &turn, steered);
                Ok(())
            }
            SwarmInput::Failed(failure) => Err(Stuck(failure)),
        };
        if let Err(Stuck(failure)) = done {
            self.fail_swarm(step, attempt, failure);
        }
    }

    /// What still runs for a swarm is ended. False where it does not run.
    fn close_team(&mut self, step: &StepId, attempt: u32) -> bool {
        if self.teams.open.remove(&(step.clone(), attempt)).is_none() {
            return false;
        }
        if let Some(rehearsing) = self.world.rehearsal() {
            rehearsing.drop_attempt(step, attempt);
        }
        true
    }

    fn find_team(&mut self, step: &StepId, attempt: u32) -> Option<&mut Team> {
        self.teams.open.get_mut(&(step.clone(), attempt))
    }

    fn spawn_agent(
        &mut self,
        step: &StepId,
        attempt: u32,
        key: Key,
        (place, name, plays, task): (u32, Arc<str>, Arc<str>, Option<Content>),
    ) -> Result<(), Stuck> {
        let (task, brief) =
            self.evaluator.task_of(At { state: &self.state, key, attempt }, place, task, &self.attempts.made)?;
        let swarm = AttemptId::new(step, attempt);
        let (by, tools, items, replaces, worktree) = (None, None, Vec::new(), None, None);
        let spawned =
            Event::AgentSpawned { swarm, agent: name, plays, task, brief, by, tools, items, replaces, worktree };
        self.record_swarm_event(spawned);
        Ok(())
    }

    /// What an agent of a swarm may use, and where.
    fn build_grant(
        &self,
        key: Key,
        attempt: u32,
        swarm: &Swarm,
        turn: &TurnId,
        player: &Agent,
    ) -> Result<Grant, Stuck> {
        let step = self.evaluator.step_definition(&self.state, key);
        let view = self
            .evaluator
            .build_view(&self.state, key.frame, Some(step), &self.attempts.made)
            .map_err(render_failure)?;
        let provider = self.evaluator.plan.provider(&player.provider);
        let environment =
            self.build_environment(step, provider, &view, (&self.state.id(key), attempt, Role::Turn)).map_err(Stuck)?;
        let pipeline = self.evaluator.pipeline(&self.state, key.frame);
        let folder = self.services.process_env.pipeline_directory(&pipeline.name);
        let mut grant = Grant::new(&turn.agent, player, &folder, &environment);
        if let Some(skills) = swarm.agent(&turn.agent).and_then(|agent| agent.tools.as_ref()) {
            grant.narrow(skills, self.evaluator.plan);
        }
        Ok(grant)
    }

    /// Has a task of the reactor report; it begins when the records so far are durable.
    fn launch(
        &mut self,
        step: &StepId,
        attempt: u32,
        turn: &TurnId,
        work: impl Future<Output = SwarmInput> + Send + 'static,
    ) -> Result<(), Stuck> {
        let mut gate = self.teams.subscribe_gate();
        let (inputs, of) = (self.services.inputs.clone(), (step.clone(), attempt));
        let handle = self.services.reactor.handle().map_err(|message| Stuck(Failure::Spawn { message }))?;
        let task = handle.spawn(async move {
            // The other side goes away only when the run cannot go on.
            if gate.wait_for(|open| *open).await.is_err() {
                return;
            }
            let word = Box::new(work.await);
            let _ = inputs.send(Input::Swarm { step: of.0, attempt: of.1, word });
        });
        self.note_task(step, attempt, turn, Task::Reactor(task.abort_handle()));
        Ok(())
    }

    /// Notes what carries a turn or a call out.
    fn note_task(&mut self, step: &StepId, attempt: u32, turn: &TurnId, task: Task) {
        if let Some(team) = self.find_team(step, attempt) {
            team.tasks.insert(turn.clone(), task);
        }
    }

    fn call_tool(&mut self, step: &StepId, attempt: u32, key: Key, turn: TurnId) -> Result<(), Stuck> {
        let Some(swarm) = self.state.swarm(key, attempt) else { return Ok(()) };
        let Some(agent) = swarm.agent(&turn.agent) else { return Ok(()) };
        if swarm.find_git_call(&turn).is_some() {
            return self.begin_git((step, attempt, key), &turn);
        }
        let AgentStage::Calling(act, _) = &agent.stage else { return Ok(()) };
        let Action::ToolCall { tool, params } = &**act else { return Ok(()) };
        let (tool, params) = (Arc::clone(tool), params.clone());
        let player = self.evaluator.player(swarm, &turn)?;
        let mut grant = self.build_grant(key, attempt, swarm, &turn, player)?;
        let (definition, pipeline) =
            (self.evaluator.step_definition(&self.state, key), self.evaluator.pipeline(&self.state, key.frame));
        let tree = self.find_member_tree(key, definition, pipeline, (swarm, &turn.agent));
        let told = self.evaluator.load_text(&params)?;
        let arguments = serde_json::from_str(&told).unwrap_or_default();
        let tools = Arc::clone(&self.services.tools);
        let gate = tools.gate(&grant, &tool);
        // In a rehearsal a tool answers as its test says.
        if gate != Approval::Auto && agent.agreed.is_none() && !self.world.is_rehearsed() {
            let name = tools.name(&tool);
            let offered = self.teams.tools(step, attempt, &turn.agent).flatten();
            let schema = offered.and_then(|tools| {
                tools.iter().find(|offered| offered.name == name).map(|offered| offered.parameters.clone())
            });
            let wants = self.build_tool_request(name, told, schema, false)?;
            return self.agent_wants((step, attempt), key, &turn.agent, wants, gate).map_err(Stuck::from);
        }
        let changed = agent.agreed.is_some_and(|agreed| agreed.changed);
        self.record_swarm_event(Event::ToolStarted {
            swarm: AttemptId::new(step, attempt),
            turn: turn.clone(),
            tool: Arc::clone(&tool),
        });
        if self.world.is_rehearsed() {
            self.note_task(step, attempt, &turn, Task::Rehearsed);
            return Ok(self.rehearse_call((step, attempt, key), turn, &grant, (&tool, &told))?);
        }
        if !self.call_recorded(step, attempt, &turn, (&tool, &arguments)) {
            return Ok(());
        }
        let word = turn.clone();
        self.launch(step, attempt, &turn, async move {
            if let Some(tree) = tree {
                let entered = tokio::task::spawn_blocking(move || tree.enter(&Cancel::default())).await;
                match entered.unwrap_or_else(|panic| Err(panic.to_string())) {
                    Ok(folder) => grant.folder = folder.to_path_buf(),
                    Err(message) => return SwarmInput::Called(word, Err(ToolFault { message, transient: false })),
                }
            }
            let result = tools.call(&grant, &tool, &arguments).await;
            SwarmInput::Called(
                word,
                if changed { result.map(|text| approval::describe_changed_call(&told, &text)) } else { result },
            )
        })
    }
}

/// How something failed, as the swarm counts it.
fn classify_fault(transient: bool) -> Fault {
    if transient { Fault::Transient { after_ms: 0 } } else { Fault::Permanent }
}

fn failure_outcome(failure: Failure) -> event::Outcome {
    event::Outcome { failure: Some(failure), ..event::Outcome::default() }
}
