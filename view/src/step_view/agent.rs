//! One agent of a swarm: its turns, what its actions led to, and its mailbox.
//!
//! In: the history of the step, and the texts beside the journal. Out: the document of `swarmc inspect RUN STEP AGENT --json`,
//! and accessors for those who show the same to people. It tells of the last attempt.

use swarmc_runtime::swarm::{Action, Answer, TurnId};

use super::StepView;
use crate::documents::{
    self, AgentAction, AgentDetails, MailboxMessage, PromptPaths, TurnResult, Version, encode, parse_json,
};
use crate::problem::{Problem, did_you_mean};
use crate::step_history::{AgentTurn, MailboxEntry, TurnEffect};
use crate::step_names::resolve_agent;
use crate::team::{TeamAgent, is_supervisor};

/// What one agent of a swarm did.
#[derive(Debug)]
pub struct AgentView<'s> {
    /// Its name.
    pub name: &'s str,
    /// What the report of the run says of it; none of a supervisor.
    pub mate: Option<&'s TeamAgent>,
    /// Its turns, in order.
    pub turns: &'s [AgentTurn<'s>],
    /// Its mailbox, in the order in which messages came.
    pub mailbox: Vec<&'s MailboxEntry<'s>>,
    step: &'s StepView<'s>,
}

impl StepView<'_> {
    /// What an agent of its swarm did, by the name that the run knows it by.
    ///
    /// # Errors
    /// The step is no swarm, or has no such agent.
    pub fn find_agent<'s>(&'s self, name: &'s str) -> Result<AgentView<'s>, Problem> {
        let label = self.label();
        let Some(team) = self.team() else {
            return Err(Problem::new(format!("`{label}` is no swarm, or its swarm never began")));
        };
        let mate = team.find_mate(name);
        if mate.is_none() && !is_supervisor(name) {
            let help = did_you_mean(name, team.mates.iter().map(|mate| &*mate.name));
            return Err(Problem::with_help(format!("swarm `{label}` has no agent `{name}`"), help));
        }
        let known = self.history.agent(name);
        let turns = known.map_or(&[][..], |agent| &agent.turns);
        let mailbox = known.into_iter().flat_map(|agent| agent.mailbox.values()).collect();
        Ok(AgentView { name, mate, turns, mailbox, step: self })
    }

    /// What `swarmc inspect RUN STEP AGENT --json` prints of an agent, by the name that its spec gives it.
    ///
    /// # Errors
    /// The step is no swarm, or has no such agent.
    pub fn agent_document(&self, name: &str) -> Result<AgentDetails, Problem> {
        let name = resolve_agent(self.past, &self.row().step.name, name);
        Ok(self.find_agent(name)?.to_document())
    }
}

impl AgentView<'_> {
    /// It for programs.
    pub fn to_document(&self) -> AgentDetails {
        let letters = self.mailbox.iter().map(|letter| MailboxMessage {
            seq: letter.sent.number,
            from: letter.sent.from.to_string(),
            to: letter.sent.to.to_string(),
            kind: letter.sent.kind,
            payload: parse_json(self.step.load_text(&letter.sent.payload)),
            at: letter.at,
            received: letter.received,
        });
        let (version, run, step) = (Version, self.step.folder.id.clone(), self.step.label());
        let (turns, mailbox) = (self.turns.iter().map(|turn| self.turn_document(turn)).collect(), letters.collect());
        match self.mate {
            Some(mate) => {
                let agent = mate.to_document(turns, |content| self.step.load_text(content));
                AgentDetails::Member { agent, version, run, step, mailbox }
            }
            None => AgentDetails::Supervisor { agent: self.name.to_owned(), version, run, step, turns, mailbox },
        }
    }

    /// What an action led to: a word for it, and the text.
    pub fn describe_effect(&self, effect: TurnEffect<'_>) -> (&'static str, String) {
        match effect {
            TurnEffect::Result(result) => ("result", self.step.load_text(result)),
            TurnEffect::Failed(result) => ("failed", self.step.load_text(result)),
            TurnEffect::Refused(reason) => ("refused", reason.to_owned()),
            TurnEffect::Spawned(agent) => ("helper", agent.to_owned()),
            TurnEffect::Requested(id) => {
                let asked = self.step.history.find_request(id);
                let words = asked.map(|(open, verdict)| {
                    format!("{}: {}", open.request.wants.describe(), self.step.describe_answer(open, *verdict))
                });
                ("asked", format!("{id} {}", words.unwrap_or_default()))
            }
        }
    }

    /// What a model answered: an action as models write it, and else in words.
    pub fn describe_answer(&self, answer: &Answer) -> String {
        match answer {
            Answer::Acts(act) => encode(&self.document_action(act)),
            Answer::Split(parts) => {
                let parts: Vec<String> = parts.iter().map(|part| self.step.load_text(&part.task)).collect();
                format!("split into {}", parts.join("; "))
            }
            Answer::Merged(result) => format!("merged: {}", self.step.load_text(result)),
            Answer::Invalid(wrong) => format!("not valid: {wrong}"),
            Answer::Failed { message, .. } => format!("failed: {message}"),
        }
    }

    /// The files of what a turn was told, those that there are.
    pub fn prompt_paths(&self, turn: &TurnId) -> PromptPaths {
        let StepView { layout, .. } = self.step;
        let path = |extension| {
            let path = layout.turn_path(&self.step.row().step, self.step.last_attempt(), turn, extension);
            Some(path).filter(|path| path.exists())
        };
        PromptPaths { prompt: path("txt"), system: path("system.txt"), ..PromptPaths::default() }
    }

    fn turn_document(&self, turn: &AgentTurn<'_>) -> documents::AgentTurn {
        let results = turn.effects.iter().map(|effect| self.describe_effect(*effect));
        let (action, answer) = match turn.end.map(|end| end.answer) {
            Some(Answer::Acts(act)) => (Some(self.document_action(act)), None),
            answer => (None, answer.map(|answer| self.describe_answer(answer))),
        };
        documents::AgentTurn {
            iteration: turn.turn.iteration,
            attempt: turn.turn.attempt,
            purpose: turn.turn.purpose,
            action,
            answer,
            results: results.map(|(kind, text)| TurnResult { kind: kind.to_owned(), text }).collect(),
            usage: turn.end.and_then(|end| end.usage),
            cost_micro_usd: turn.end.and_then(|end| end.cost),
            model: turn.end.and_then(|end| end.model).map(str::to_owned),
            paths: self.prompt_paths(turn.turn),
        }
    }

    /// An action as models write it.
    fn document_action(&self, act: &Action) -> AgentAction {
        let text = |content| self.step.load_text(content);
        match act {
            Action::ToolCall { tool, params } => {
                AgentAction::ToolCall { tool: tool.to_string(), tool_params: parse_json(text(params)) }
            }
            Action::PublishData { topic, data } => {
                AgentAction::PublishData { topic: topic.to_string(), data: text(data) }
            }
            Action::SendMessage { to, message_type, payload } => AgentAction::SendMessage {
                to: to.to_string(),
                message_type: *message_type,
                payload: parse_json(text(payload)),
            },
            Action::RequestHelp { description, skills } => {
                AgentAction::RequestHelp { help_description: text(description), help_skills: skills.clone() }
            }
            Action::Done { response } => AgentAction::Done { response: text(response) },
            Action::Idle => AgentAction::Idle,
            Action::Operate(op) => AgentAction::Operate(op.clone()),
        }
    }
}
