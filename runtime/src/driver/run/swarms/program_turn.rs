//! Turns of a swarm that a program takes: an `exec` agent or one that speaks the Agent Client Protocol.
//!
//! In: the prompt of a turn. Out: a job of the pool, whose end comes as [`SwarmInput::Answered`](super::SwarmInput), as
//! the answer of a model does. Invariant: no more programs run at once than agents of pipelines may, and of each provider
//! no more than its `concurrency`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use swarmc_plan::{Agent, Provider};

use super::super::agent::{Attempt, Routes};
use super::super::attempts::remove_processes;
use super::super::driver::Driver;
use super::super::eval::{At, Evaluator, render_failure};
use super::super::prepare::explicit_variables;
use super::super::values::View;
use super::asking::is_program;
use super::{Stuck, Task};
use crate::core::graph::{AGENTS, Key};
use crate::core::swarm::prompt::{Prompt, Protocol};
use crate::io::executor::{Candidate, Job, MemberTurn, Role, Session, Transport, Work, may_pass};
use crate::io::home::list_folder_names;
use crate::io::recording::Source;
use crate::types::cancel::Cancel;
use crate::types::chat::Tool;
use crate::types::effective_prompt::{Block, Effective};
use crate::types::event::{AttemptId, Event, StepId};
use crate::types::swarm::{Purpose, TurnId};

/// The turns that programs take.
#[derive(Debug, Default)]
pub(super) struct Programs {
    /// The provider of each that runs.
    running: BTreeMap<(StepId, u32, TurnId), String>,
    waiting: VecDeque<Waiting>,
}

/// A turn that waits until fewer programs run.
#[derive(Debug)]
struct Waiting {
    job: Box<Job>,
    turn: TurnId,
    provider: String,
    /// The programs of its provider at once, at most.
    limit: u32,
}

impl Programs {
    /// The next turn that may begin.
    fn start_next(&mut self) -> Option<Box<Job>> {
        if self.running.len() >= AGENTS as usize {
            return None;
        }
        let count = |provider: &str| self.running.values().filter(|running| *running == provider).count();
        // No turn waits for another one whose provider is busy.
        let next = self.waiting.iter().position(|waiting| count(&waiting.provider) < waiting.limit as usize)?;
        let Waiting { job, turn, provider, .. } = self.waiting.remove(next)?;
        self.running.insert((job.step.clone(), job.attempt, turn), provider);
        Some(job)
    }
}

impl Driver<'_> {
    /// The job in which a program takes a turn.
    pub(super) fn build_member_job(
        &self,
        key: Key,
        attempt: u32,
        turn: &TurnId,
        (player, provider): (&Agent, &Provider),
        (prompt, operations): (Prompt, &[Tool]),
    ) -> Result<Job, Stuck> {
        let at = At { state: &self.state, key, attempt };
        let (id, step) = (self.state.id(key), self.evaluator.step_definition(&self.state, key));
        let pipeline = self.evaluator.pipeline(&self.state, key.frame);
        let view = self
            .evaluator
            .build_view(&self.state, key.frame, Some(step), &self.attempts.made)
            .map_err(render_failure)?;
        let view = View { attempt, ..view };
        let role = Role::Turn;
        let member = Some((turn, operations));
        let (number, view) = (attempt, &view);
        let of = Attempt { id: &id, number, step, view, stdin: None, shape: None, files: None, role, member };
        let task = Effective(vec![Block::new("task", prompt.user)]);
        let effective = Routes::of_provider(provider).place_blocks(task, Some(prompt.system), None, None);
        let mut taker = self.reach_candidate((player, provider), effective, None, &of)?;
        continue_session(&mut taker, at, turn);
        let is_team = at.swarm().is_some_and(|swarm| swarm.team.is_some());
        let work = Work::Member(Box::new(MemberTurn { turn: turn.clone(), is_team, taker }));
        // The prompt of a turn that goes on is rendered anew, and what others did since stands in it: no recording may say
        // that its program answered that one.
        let is_live = matches!(self.evaluator.source, Source::Live);
        let survival = self
            .find_survival(step, &work, |layout| layout.turn_processes_folder(&id, attempt, turn))
            .filter(|_| is_live);
        let limit = |purpose| at.swarm().map(|swarm| Duration::from_millis(Evaluator::turn_timeout(swarm, purpose)));
        Ok(Job {
            attempt,
            counted: self.state.attempt_number(key, attempt),
            after: self.records.seq,
            role,
            speaks: false,
            watched: false,
            keeps_log: false,
            shape: None,
            checks: Vec::new(),
            environment: work.candidates().first().map_or_else(Arc::default, |taker| Arc::clone(&taker.environment)),
            stated: explicit_variables(&pipeline.env, &step.env),
            directory: self.services.process_env.pipeline_directory(&pipeline.name),
            tree: at.swarm().and_then(|swarm| self.find_member_tree(key, step, pipeline, (swarm, &turn.agent))),
            file_workspace: None,
            // The time of an agent is that of all its turns, and the swarm ends its turn with it.
            timeout: (turn.purpose != Purpose::Act).then(|| limit(turn.purpose)).flatten(),
            idle: step.idle_ms.map(Duration::from_millis),
            grace: Duration::from_millis(step.grace_ms),
            max_output: usize::try_from(step.output.max_bytes).unwrap_or(usize::MAX).max(1),
            survival,
            cancel: Arc::new(Cancel::default()),
            work,
            step: id,
        })
    }

    /// Goes on with the turns of a swarm that a former runner has begun, and ends what else that has left of the swarm.
    pub(super) fn rejoin_turns(&mut self, step: &StepId, attempt: u32, key: Key) -> Result<(), Stuck> {
        let mut rejoined = BTreeSet::new();
        for turn in self.attempts.take_held_turns(step, attempt) {
            if self.rejoin_turn(step, attempt, key, &turn)? {
                rejoined.insert(self.outputs.layout.turn_processes_folder(step, attempt, &turn));
            }
        }
        let folder = self.outputs.layout.processes_folder(step, attempt);
        if self.world.is_real() {
            let left = list_folder_names(&folder).unwrap_or_default().into_iter().map(|name| folder.join(name));
            // What stays behind is removed when the swarm ends.
            left.filter(|folder| !rejoined.contains(folder)).for_each(|folder| drop(remove_processes(&folder)));
        }
        Ok(())
    }

    /// Goes on with a turn that a former runner has begun. False where it cannot: it begins again.
    fn rejoin_turn(&mut self, step: &StepId, attempt: u32, key: Key, turn: &TurnId) -> Result<bool, Stuck> {
        let Some(swarm) = self.state.swarm(key, attempt) else { return Ok(false) };
        let touched = swarm.agent(&turn.agent).map_or(0, |agent| agent.touched);
        let player = self.evaluator.player(swarm, turn)?;
        let Some(provider) = self.evaluator.plan.provider(&player.provider).filter(|provider| is_program(provider))
        else {
            return Ok(false);
        };
        // Only a program that starts again receives this.
        let asked = self.evaluator.build_request(
            At { state: &self.state, key, attempt },
            (turn, player),
            (&[], Protocol::Program),
            (self.records.clock, &self.attempts.made),
        )?;
        let mut job = self.build_member_job(key, attempt, turn, (player, provider), (asked.prompt, &asked.tools))?;
        let Some(survival) = &mut job.survival else { return Ok(false) };
        survival.rejoins = true;
        self.record_swarm_event(Event::TurnRejoined { swarm: AttemptId::new(step, attempt), turn: turn.clone() });
        job.begin_after(self.records.seq);
        self.submit_program(Box::new(job), provider);
        self.skip_touches(step, attempt, turn, touched);
        Ok(true)
    }

    /// Has a program take a turn, as soon as there is room for it.
    pub(super) fn submit_program(&mut self, job: Box<Job>, provider: &Provider) {
        let Work::Member(member) = &job.work else { return };
        let turn = member.turn.clone();
        self.note_task(&job.step, job.attempt, &turn, Task::Program(Arc::clone(&job.cancel)));
        if let Transport::Acp(acp) = &member.taker.door
            && let Some(steering) = acp.steering.clone()
        {
            self.note_steering((&job.step, job.attempt), &turn, steering);
        }
        let limit = provider.concurrency.unwrap_or(AGENTS);
        self.teams.programs.waiting.push_back(Waiting { job, turn, provider: provider.name.clone(), limit });
        self.start_programs();
    }

    /// A turn has ended: where a program took it, there is room for another one.
    pub(super) fn program_ended(&mut self, step: &StepId, attempt: u32, turn: &TurnId) {
        if self.teams.programs.running.remove(&(step.clone(), attempt, turn.clone())).is_some() {
            self.start_programs();
        }
    }

    fn start_programs(&mut self) {
        while let Some(job) = self.teams.programs.start_next() {
            self.attempts.start_member(job);
        }
    }
}

/// Has the program of an agent go on with the conversation of its last turn, where it can.
fn continue_session(taker: &mut Candidate, at: At<'_>, turn: &TurnId) {
    let agent = at.swarm().and_then(|swarm| swarm.agent(&turn.agent)).filter(|_| turn.purpose == Purpose::Act);
    let talk = agent.and_then(|agent| agent.conversation.as_ref().filter(|talk| talk.taker == agent.taker));
    let session = talk.filter(|talk| may_pass(&talk.id));
    let session = session.map(|talk| Session { id: talk.id.clone(), used: talk.used });
    match &mut taker.door {
        Transport::Program(program) => program.session = session.filter(|_| program.resume.is_some()),
        Transport::Acp(acp) => {
            acp.session = session;
            acp.keeps = turn.purpose == Purpose::Act;
        }
        _ => {}
    }
}
