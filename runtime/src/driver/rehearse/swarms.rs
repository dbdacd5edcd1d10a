//! Swarms in a rehearsal: carries out the orders of their core, with given answers instead of models and tools.
//!
//! In: the orders of a swarm. Out: its events, the same as a run would record for these answers. The rehearsal asks
//! only the function that answers, and uses its own time.

use std::path::Path;
use std::sync::Arc;

use swarmc_plan::{Body, Plan, Unattended};

use super::api::{Answer, Asks, Member, Prompted, Turn};
use super::{Due, FakeRun};
use crate::core::graph::Key;
use crate::core::state::budget::Refusal;
use crate::core::swarm::state::AgentStage as Standing;
use crate::core::swarm::{Order, Swarm};
use crate::driver::run::eval::{At, Evaluator, Finished, render_failure, truncate_to_event, unknown_step};
use crate::io::tools::{self, Grant};
use crate::types::approval::{Choice, Request, RequestKind, Verdict};
use crate::types::chat;
use crate::types::event::{AnsweredBy, AttemptId, Content, Event, Failure, Outcome, StepId};
use crate::types::retry::is_transient;
use crate::types::swarm::{Action, Answer as Said, Fault, Phase, Purpose, TurnId};

/// What becomes of a turn or a call.
pub(super) enum MemberInput {
    /// A turn is answered so.
    Answered(TurnId, Result<String, chat::Fault>),
    /// A call is answered so, or fails.
    Called(TurnId, String, Option<Fault>),
    /// The time of the step is over.
    Late(u64),
}

impl MemberInput {
    fn is_of(&self, turn: &TurnId) -> bool {
        matches!(self, MemberInput::Answered(of, _) | MemberInput::Called(of, ..) if of == turn)
    }
}

impl FakeRun<'_, '_> {
    /// The swarm of a step begins.
    pub(super) fn begin_swarm(&mut self, step: StepId, attempt: u32, key: Key) {
        let goal = self.rehearsed(key).and_then(|()| self.evaluator.render_goal(self.at(key, attempt), &self.made));
        self.note_missing(Some(&step));
        let goal = match goal.map(|goal| self.memory.content(goal)) {
            Ok(goal) => goal,
            Err(failure) => return self.end(step, attempt, failed(failure)),
        };
        if let Some(limit) = self.evaluator.step_definition(&self.state, key).timeout_ms {
            self.after(limit, Due::Swarm(step.clone(), attempt, MemberInput::Late(limit)));
        }
        let run = self.evaluator.run.clone();
        self.record(Event::SwarmStarted { swarm: AttemptId::new(&step, attempt), run, goal });
    }

    /// Does what the core of a swarm says, until it says nothing.
    pub(super) fn swarm(&mut self, step: &StepId, attempt: u32) {
        while let Some(key) = self.state.find_step(step)
            && let Some(order) = self.state.swarm_order(key, self.clock)
        {
            let done = match order {
                Order::Record(event) => {
                    self.record(*event);
                    Ok(())
                }
                Order::Spawn { place, name, plays, task } => {
                    let told = self.evaluator.task_of(self.at(key, attempt), place, task, &self.made);
                    told.map(|(task, brief)| {
                        let swarm = AttemptId::new(step, attempt);
                        let spawned =
                            Event::AgentSpawned { swarm, agent: name, plays, task, brief, by: None, tools: None };
                        self.record(spawned);
                    })
                }
                Order::Ask(turn) => self.ask_turn(step, attempt, key, turn),
                Order::Call(turn) => self.call(step, attempt, key, turn),
                Order::Agree { agent, wants } => self.unattended(step, attempt, key, agent, wants),
                Order::Cancel(turn) => {
                    self.due.retain(|_, due| !is_of(due, step, attempt, |word| word.is_of(&turn)));
                    Ok(())
                }
                Order::Conclude { agent, how, error } => {
                    let swarm = self.state.swarm(key, attempt);
                    let agent = swarm.and_then(|swarm| Some((swarm, swarm.agents.get(agent as usize)?)));
                    let ended = agent.map(|agent| self.evaluator.agent_completed(agent, how, error, &self.made));
                    let ended = ended.transpose();
                    ended.map(|ended| ended.into_iter().for_each(|ended| self.record(ended)))
                }
                Order::Finish => self.finish_swarm(step, attempt, key),
                Order::Fail(message) => Err(Failure::Agent { message }),
            };
            self.note_missing(Some(step));
            if let Err(failure) = done {
                self.fail_swarm(step, attempt, failure);
            }
        }
    }

    /// Ends a turn or a call.
    pub(super) fn handle_member_input(&mut self, step: &StepId, attempt: u32, word: MemberInput) {
        let Some(key) = self.state.find_step(step) else { return };
        let done = match word {
            MemberInput::Answered(turn, said) => {
                let reply = said.map(|text| chat::Reply { text, ..chat::Reply::default() });
                self.evaluator.build_end_event(self.at(key, attempt), turn, reply, &self.made)
            }
            MemberInput::Called(turn, text, fault) => {
                let swarm = AttemptId::new(step, attempt);
                Ok(Event::ToolEnded { swarm, turn, result: self.memory.content(text), fault })
            }
            MemberInput::Late(after_ms) => Err(Failure::Timeout { after_ms }),
        };
        match done {
            Ok(fact) => self.record(fact),
            Err(failure) => self.fail_swarm(step, attempt, failure),
        }
    }

    /// Drops all further inputs of the swarm of an attempt.
    pub(super) fn silence(&mut self, step: &StepId, attempt: u32) {
        self.due.retain(|_, due| !is_of(due, step, attempt, |_| true));
    }

    /// Whether all that the swarm of a step says is known here.
    fn rehearsed(&self, key: Key) -> Result<(), Failure> {
        let swarm = match &self.evaluator.step_definition(&self.state, key).body {
            Body::Swarm(call) => self.evaluator.plan.swarm(&call.swarm),
            _ => None,
        };
        match swarm.and_then(|swarm| Some((swarm, swarm.unknown_part()?))) {
            None => Ok(()),
            Some((swarm, part)) => {
                Err(render_failure(format!("swarm `{}` has {part}, which tests do not support yet", swarm.name)))
            }
        }
    }

    fn at(&self, key: Key, attempt: u32) -> At<'_> {
        At { state: &self.state, key, attempt }
    }

    fn ask_turn(&mut self, step: &StepId, attempt: u32, key: Key, turn: TurnId) -> Result<(), Failure> {
        let at = At { state: &self.state, key, attempt };
        let Some(swarm) = at.swarm() else { return Ok(()) };
        let player = self.evaluator.player(swarm, &turn)?;
        let provider = self.evaluator.plan.provider(&player.provider);
        let provider =
            provider.ok_or_else(|| render_failure(format!("the plan has no provider for `{}`", player.name)))?;
        let tools = match turn.purpose {
            Purpose::Act => tools::known(self.evaluator.plan, &grant(self.evaluator.plan, swarm, &turn, player)),
            Purpose::Decompose | Purpose::Synthesize => Vec::new(),
        };
        let asked = self.evaluator.build_request(
            at,
            (&turn, player),
            (&tools, Evaluator::protocol(provider)),
            (self.clock, &self.made),
        )?;
        let reserved = self.evaluator.reserved_turn(&self.state, player, provider, asked.bytes());
        let limit = Evaluator::turn_timeout(swarm, turn.purpose);
        let agent = Arc::from(&*player.name);
        let refused = reserved.and_then(|reserved| self.state.admit_turn(key, &agent, &reserved).err());
        match refused {
            Some(Refusal::Run(message)) => {
                self.silence(step, attempt);
                self.record(Event::BudgetSpent { message: truncate_to_event(&message) });
                let outcome = failed(Failure::Cancelled);
                self.record(Event::AttemptEnded { step: step.clone(), attempt, outcome });
                return Ok(());
            }
            Some(Refusal::Step(message)) => {
                let answer = Said::Failed { message: truncate_to_event(&message), fault: Fault::Budget };
                let events = Event::refused_turn(&AttemptId::new(step, attempt), turn, answer);
                events.into_iter().for_each(|event| self.record(event));
                return Ok(());
            }
            None => {}
        }
        let (system, prompt) = (&asked.prompt.system, &asked.prompt.user);
        let (of, name) = (step.clone(), player.name.clone());
        self.story.prompts.push(Prompted { step: of, attempt, agent: name, prompt: prompt.clone() });
        self.story.launches += 1;
        self.story.turns += 1;
        let asks = Asks::Agent { agent: &player.name, system: Some(system), prompt };
        let (delay, answer) = self.member(step, attempt, key, &turn, asks)?.timed();
        self.record(Event::TurnStarted { swarm: AttemptId::new(step, attempt), turn: turn.clone(), reserved });
        let (delay, said) = match said(answer) {
            _ if delay > limit => (limit, Err(format!("timed out after {} seconds", limit / 1000))),
            said => (delay, said),
        };
        let said = said.map_err(|message| {
            let transient = is_transient(&message);
            chat::Fault { message, transient, retry_after: None }
        });
        self.after(delay, Due::Swarm(step.clone(), attempt, MemberInput::Answered(turn, said)));
        Ok(())
    }

    fn call(&mut self, step: &StepId, attempt: u32, key: Key, turn: TurnId) -> Result<(), Failure> {
        let Some(swarm) = self.state.swarm(key, attempt) else { return Ok(()) };
        let Some(agent) = swarm.agent(&turn.agent) else { return Ok(()) };
        let Standing::Calling(Action::ToolCall { tool, params }, _) = &agent.stage else { return Ok(()) };
        let (tool, arguments) = (Arc::clone(tool), self.evaluator.load_text(params)?);
        let grant = grant(self.evaluator.plan, swarm, &turn, self.evaluator.player(swarm, &turn)?);
        let answer = match tools::permitted(self.evaluator.plan, &grant, &tool) {
            Ok(()) => {
                let asks = Asks::Tool { tool: &tool, arguments: &arguments };
                self.member(step, attempt, key, &turn, asks)?
            }
            Err(why) => Answer::Failure { exit: 1, output: String::new(), stderr: why },
        };
        let (delay, answer) = answer.timed();
        self.record(Event::ToolStarted { swarm: AttemptId::new(step, attempt), turn: turn.clone(), tool });
        let (text, fault) = match said(answer) {
            Ok(text) => (text, None),
            Err(why) if is_transient(&why) => (why, Some(Fault::Transient { after_ms: 0 })),
            Err(why) => (why, Some(Fault::Permanent)),
        };
        self.after(delay, Due::Swarm(step.clone(), attempt, MemberInput::Called(turn, text, fault)));
        Ok(())
    }

    /// A rehearsal asks no person: `unattended` of the policy answers the request.
    fn unattended(
        &mut self,
        step: &StepId,
        attempt: u32,
        key: Key,
        agent: u32,
        wants: RequestKind,
    ) -> Result<(), Failure> {
        let asks = self.state.swarm(key, attempt).and_then(|swarm| swarm.agents.get(agent as usize));
        let Some(agent) = asks.map(|agent| Arc::clone(&agent.name)) else { return Ok(()) };
        let id = self.state.next_request();
        let said = self.evaluator.plan.policy.unattended;
        let fails = format!("`{agent}` wants {}, but a test asks no person", wants.describe());
        let request = Request { id, agent, wants };
        self.record(Event::ApprovalAsked { step: step.clone(), attempt, request });
        let choice = if said == Unattended::Approve { Choice::Allow } else { Choice::Deny };
        let verdict = Verdict { id, choice, by: AnsweredBy::Policy, because: None, arguments: None };
        self.record(Event::ApprovalAnswered { step: step.clone(), attempt, verdict });
        if said == Unattended::Fail { Err(Failure::Agent { message: fails }) } else { Ok(()) }
    }

    /// The answer to a turn or a call of a member.
    fn member(
        &mut self,
        step: &StepId,
        attempt: u32,
        key: Key,
        turn: &TurnId,
        asks: Asks<'_>,
    ) -> Result<Answer, Failure> {
        let named = self.evaluator.name_turn(self.at(key, attempt), turn);
        let (name, number) = named.ok_or_else(|| unknown_step(step))?;
        let item = self.evaluator.item(&self.state, key.frame).map_err(render_failure)?;
        let member = Some(Member { name: &name, turn: number, attempt: turn.attempt });
        let (repair, fixing, schema) = (0, false, None);
        Ok((self.answer)(&Turn { step, attempt, repair, fixing, schema, item: item.as_ref(), member, asks }))
    }

    fn finish_swarm(&mut self, step: &StepId, attempt: u32, key: Key) -> Result<(), Failure> {
        let at = self.at(key, attempt);
        let Some(swarm) = at.swarm() else { return Ok(()) };
        let result = match self.evaluator.conclude_swarm(at, swarm)? {
            Finished::Result(result) => result,
            Finished::Merge => {
                self.record(Event::PhaseEntered { swarm: AttemptId::new(step, attempt), phase: Phase::Synthesizing });
                return Ok(());
            }
        };
        let stored = self.memory.content(result.clone());
        self.record(Event::SwarmFinished { swarm: AttemptId::new(step, attempt), result: Some(stored), error: None });
        self.silence(step, attempt);
        let outcome = Outcome { output: Some(Content::Text(result)), ..Outcome::default() };
        self.end(step.clone(), attempt, outcome);
        Ok(())
    }

    fn fail_swarm(&mut self, step: &StepId, attempt: u32, why: Failure) {
        self.silence(step, attempt);
        let error = Some(truncate_to_event(&why.to_string()));
        self.record(Event::SwarmFinished { swarm: AttemptId::new(step, attempt), result: None, error });
        self.end(step.clone(), attempt, failed(why));
    }
}

/// Whether something is due of the swarm of an attempt, and such.
fn is_of(due: &Due, step: &StepId, attempt: u32, such: impl Fn(&MemberInput) -> bool) -> bool {
    matches!(due, Due::Swarm(of, number, word) if of == step && *number == attempt && such(word))
}

/// What the agent of a turn may use. Nothing is started, so it is no matter where.
fn grant(plan: &Plan, swarm: &Swarm, turn: &TurnId, player: &swarmc_plan::Agent) -> Grant {
    let mut grant = Grant::new(&turn.agent, player, Path::new(""), &Arc::default());
    if let Some(skills) = swarm.agent(&turn.agent).and_then(|agent| agent.tools.as_ref()) {
        grant.narrow(skills, plan);
    }
    grant
}

/// What was said, or why nothing was.
fn said(answer: Answer) -> Result<String, String> {
    match answer {
        Answer::Text(text) => Ok(text),
        Answer::Json(value) => Ok(value.to_string()),
        Answer::Failure { output, stderr, .. } => Err(if stderr.is_empty() { output } else { stderr }),
        Answer::Choice { .. } | Answer::Unanswered | Answer::After(..) => Err("no choice is asked for here".to_owned()),
    }
}

fn failed(failure: Failure) -> Outcome {
    Outcome { failure: Some(failure), ..Outcome::default() }
}
