//! Agents of swarms in a recording: their turns, the calls of their tools, the tools that they have, and when their
//! time was over.
//!
//! Invariant: what an agent knows when it is asked depends on how many answers its swarm had by then. A line is where
//! its answer came, and holds after how many the turn began where that was not at once.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::exchange::{Attempt, CALL, Exchange, Key, RecordedQuestion, TOOLS, TURN, Text, is_one, one};
use super::replay::Replay;
use super::write::{Recorder, Texts};
use super::{Question, words};
use crate::core::swarm::within::{WithinTurn, find_action};
use crate::types::approval::Choice;
use crate::types::chat;
use crate::types::chat::{Call, Reply, Tool, ToolFault};
use crate::types::digest::{digest_bytes, file_name};
use crate::types::divergence::Difference;
use crate::types::error::RunError;
use crate::types::event::{AnsweredBy, Content, Event, Failure, StepId, Usage};
use crate::types::swarm::{Action, Purpose, TurnId};
use crate::types::team::TeamOp;
use crate::types::team_fact::TeamFact;

/// A turn of a swarm.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At<'a> {
    /// The step that the swarm runs as.
    pub step: &'a StepId,
    /// The attempt of that.
    pub attempt: u32,
    pub turn: &'a TurnId,
}

/// A turn, as a line names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Member {
    /// Who takes it.
    pub member: Arc<str>,
    #[serde(default, skip_serializing_if = "acts")]
    pub purpose: Purpose,
    /// Which of its turns, from 1.
    pub turn: u32,
    /// How often it was asked, or the tool called, in this turn: from 1.
    #[serde(rename = "try", default = "one", skip_serializing_if = "is_one")]
    pub attempt: u32,
}

/// What a model said.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct TurnReply {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<Text>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<Called>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Whether it stopped at the limit of its tokens.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// Why it said nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
}

/// A call that a model made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Called {
    pub tool: String,
    /// As JSON.
    pub arguments: Text,
}

/// What a tool gave, or a list of tools.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct ToolResult {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<Text>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
}

/// Why something failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Fault {
    pub message: String,
    /// Whether it might pass.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub transient: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// Whether the program that was to answer went away on its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub crashed: bool,
}

/// What happened to a swarm that no answer brought about; each with its place among all that happened.
#[derive(Debug, Default)]
pub(crate) struct OutsideInputs {
    /// The agents whose time was over.
    pub late: Vec<(usize, Arc<str>)>,
    /// The proposals that the coordinator did not decide in time.
    pub overdue: Vec<(usize, u32)>,
    /// How it was ended itself.
    pub failed: Option<(usize, Failure)>,
}

/// What was asked and has no answer yet.
#[derive(Debug, Default)]
pub(super) struct OpenTurns {
    turns: BTreeMap<(Attempt, Member), RecordedQuestion>,
    calls: BTreeMap<(Attempt, Member), (String, Text)>,
    /// What was said last to an agent, by its digest: most of it is the same in every turn.
    shared: BTreeMap<(Attempt, Arc<str>, &'static str), (String, Text)>,
}

fn acts(purpose: &Purpose) -> bool {
    *purpose == Purpose::Act
}

impl At<'_> {
    fn attempt(&self) -> Attempt {
        (self.step.clone(), self.attempt)
    }
}

impl Member {
    pub(super) fn of(turn: &TurnId) -> Member {
        Member { member: Arc::clone(&turn.agent), purpose: turn.purpose, turn: turn.iteration, attempt: turn.attempt }
    }

    pub(super) fn id(&self) -> TurnId {
        TurnId { agent: Arc::clone(&self.member), purpose: self.purpose, iteration: self.turn, attempt: self.attempt }
    }

    /// The key of an exchange of this kind in the turn.
    pub(super) fn key(&self, kind: u8) -> Key {
        (kind, self.turn, self.attempt, format!("{:?} {}", self.purpose, self.member))
    }

    /// For people.
    pub(super) fn describe(&self, step: &StepId, attempt: u32) -> String {
        let step = words(step, attempt);
        let words = match self.purpose {
            Purpose::Act => format!("turn {} of `{}` in {step}", self.turn, self.member),
            Purpose::Decompose => format!("the decomposition of {step}"),
            Purpose::Synthesize => format!("the merger of {step}"),
        };
        if self.attempt > 1 { format!("try {} of {words}", self.attempt) } else { words }
    }

    /// What names of files begin with.
    fn part(&self) -> String {
        let mut part = match self.purpose {
            Purpose::Act => format!("{}.{}.", file_name(&self.member), self.turn),
            Purpose::Decompose => "decompose.".to_owned(),
            Purpose::Synthesize => "synthesize.".to_owned(),
        };
        if self.attempt > 1 {
            part.push_str(&format!("try-{}.", self.attempt));
        }
        part
    }
}

impl TurnReply {
    pub(super) fn texts(&self) -> impl Iterator<Item = &Text> {
        self.text.iter().chain(self.calls.iter().map(|call| &call.arguments))
    }
}

impl Recorder {
    /// The tools of an agent were asked for.
    pub(crate) fn tools(&self, at: At<'_>, listed: &Result<Vec<Tool>, ToolFault>) -> Result<(), RunError> {
        let turn = Member::of(at.turn);
        let answer = match listed {
            Ok(tools) => {
                let tool = |tool: &Tool| json!({ "name": tool.name, "description": tool.description, "parameters": tool.parameters });
                let tools = self.redactions.blank_json(&Value::Array(tools.iter().map(tool).collect()));
                let texts = self.turn_texts(at, &turn);
                let text = texts.blanked("tools", format!("{tools:#}\n").into_bytes())?;
                ToolResult { text: Some(text), fault: None }
            }
            Err(fault) => ToolResult { text: None, fault: Some(self.tool_fault(fault)) },
        };
        self.put((at.step, at.attempt), &Exchange::Tools { turn, answer });
        Ok(())
    }

    /// An agent is asked for a turn.
    pub(crate) fn turn_asked(&self, at: At<'_>, question: &Question) -> Result<(), RunError> {
        let turn = Member::of(at.turn);
        // The system text and the schema hardly change between turns: they share a file, and are written apart.
        let plain = Question { system: None, schema: None, ..question.clone() };
        let mut asked = self.turn_texts(at, &turn).record_question(&plain)?;
        asked.system = self.share_text((at, &turn), "system", question.system.as_deref())?;
        asked.schema = self.share_text((at, &turn), "schema", question.schema.as_deref())?;
        let mut open = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        open.turns.insert((at.attempt(), turn.clone()), asked.clone());
        // Without an answer at first: where none comes, a replay knows that none is to be waited for.
        self.put((at.step, at.attempt), &Exchange::Member { turn, asked, answer: None });
        Ok(())
    }

    /// It answered, or did not.
    pub(crate) fn turn_answered(&self, at: At<'_>, reply: &Result<Reply, chat::Fault>) -> Result<(), RunError> {
        let turn = Member::of(at.turn);
        // The lock is held no longer than this: what follows writes files.
        let asked = {
            let mut open = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
            open.turns.remove(&(at.attempt(), turn.clone()))
        };
        let Some(asked) = asked else { return Ok(()) };
        let texts = self.turn_texts(at, &turn);
        let answer = match reply {
            Ok(Reply { text, calls, usage, model, cut, session: _ }) => TurnReply {
                text: (!text.is_empty()).then(|| texts.text("answer", text.as_bytes())).transpose()?,
                calls: (1..)
                    .zip(calls)
                    .map(|(number, call)| {
                        let arguments = self.redactions.blank_json(&call.arguments).to_string();
                        let arguments = texts.blanked(&format!("call-{number}"), arguments.into_bytes())?;
                        Ok(Called { tool: self.redactions.blank_text(&call.tool), arguments })
                    })
                    .collect::<Result<_, RunError>>()?,
                usage: *usage,
                model: model.as_ref().map(|model| self.redactions.blank_text(model)),
                cut: *cut,
                fault: None,
            },
            Err(chat::Fault { message, transient, retry_after, crashed }) => TurnReply {
                fault: Some(Fault {
                    message: self.redactions.blank_text(message),
                    transient: *transient,
                    retry_after_ms: retry_after.map(|after| u64::try_from(after.as_millis()).unwrap_or(u64::MAX)),
                    crashed: *crashed,
                }),
                ..TurnReply::default()
            },
        };
        self.put((at.step, at.attempt), &Exchange::Member { turn, asked, answer: Some(answer) });
        Ok(())
    }

    /// A tool is called.
    pub(crate) fn called(&self, at: At<'_>, tool: &str, arguments: &Value) -> Result<(), RunError> {
        let turn = Member::of(at.turn);
        let arguments = self.redactions.blank_json(arguments).to_string();
        let arguments = self.turn_texts(at, &turn).blanked("arguments", arguments.into_bytes())?;
        let tool = self.redactions.blank_text(tool);
        let mut open = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        open.calls.insert((at.attempt(), turn.clone()), (tool.clone(), arguments.clone()));
        self.put((at.step, at.attempt), &Exchange::Call { turn, tool, arguments, answer: None });
        Ok(())
    }

    /// It gave something, or failed.
    pub(crate) fn gave(&self, at: At<'_>, result: &Result<String, ToolFault>) -> Result<(), RunError> {
        let turn = Member::of(at.turn);
        let call = {
            let mut open = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
            open.calls.remove(&(at.attempt(), turn.clone()))
        };
        let Some((tool, arguments)) = call else { return Ok(()) };
        let answer = match result {
            Ok(text) => {
                ToolResult { text: Some(self.turn_texts(at, &turn).text("result", text.as_bytes())?), fault: None }
            }
            Err(fault) => ToolResult { text: None, fault: Some(self.tool_fault(fault)) },
        };
        self.put((at.step, at.attempt), &Exchange::Call { turn, tool, arguments, answer: Some(answer) });
        Ok(())
    }

    fn turn_texts(&self, at: At<'_>, turn: &Member) -> Texts<'_> {
        self.texts((at.step, at.attempt), turn.part().into())
    }

    /// A text of a turn; the file of an earlier one where that says the same.
    fn share_text(
        &self,
        (at, turn): (At<'_>, &Member),
        what: &'static str,
        text: Option<&str>,
    ) -> Result<Option<Text>, RunError> {
        let Some(text) = text else { return Ok(None) };
        let (key, digest) = ((at.attempt(), Arc::clone(&turn.member), what), digest_bytes(text.as_bytes()));
        let mut open = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, said)) = open.shared.get(&key).filter(|(known, _)| *known == digest) {
            return Ok(Some(said.clone()));
        }
        let said = self.turn_texts(at, turn).text(what, text.as_bytes())?;
        open.shared.insert(key, (digest, said.clone()));
        Ok(Some(said))
    }

    fn tool_fault(&self, fault: &ToolFault) -> Fault {
        let message = self.redactions.blank_text(&fault.message);
        Fault { message, transient: fault.transient, retry_after_ms: None, crashed: false }
    }
}

/// What a person said to a request, by the recording.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RecordedVerdict {
    /// No person was asked.
    Nothing,
    /// No person answered.
    Unanswered,
    /// This, at this place among all that happened; with the arguments that were given in place of others.
    Answered(usize, Choice, Option<String>, Option<String>),
}

/// Where an answer came among all that happened, and what it was.
type Taken<T> = Option<(usize, T)>;

impl Replay {
    /// The recorded tools of an agent; none where they were not asked for in this turn.
    pub(crate) fn tools(&self, at: At<'_>) -> Result<Taken<Result<Vec<Tool>, ToolFault>>, RunError> {
        let Some((number, Exchange::Tools { answer, .. })) = self.turn_exchange(TOOLS, at) else { return Ok(None) };
        let listed = match &answer.text {
            None => Err(self.tool_fault(answer.fault.as_ref())),
            Some(text) => {
                let tools = self.redactions.fill_json(&self.raw(text)?);
                let text = |tool: &Value, name: &str| tool[name].as_str().unwrap_or_default().to_owned();
                let tools = tools.as_array().into_iter().flatten().map(|tool| Tool {
                    name: text(tool, "name"),
                    description: text(tool, "description"),
                    parameters: tool["parameters"].clone(),
                });
                Ok(tools.collect())
            }
        };
        Ok(Some((number, listed)))
    }

    /// The recorded answer to a turn; none where it was ended before that.
    ///
    /// # Errors
    /// The recording does not hold that question, or cannot be read.
    pub(crate) fn turn(&self, at: At<'_>, question: &Question) -> Result<Taken<Result<Reply, chat::Fault>>, RunError> {
        let Some((number, Exchange::Member { asked, answer, .. })) = self.turn_exchange(TURN, at) else {
            return Err(self.parts(at, None, Difference::Missing));
        };
        if let Some(difference) = self.compared(asked, question)? {
            return Err(self.parts(at, None, difference));
        }
        let Some(TurnReply { text, calls, usage, model, cut, fault }) = answer else { return Ok(None) };
        if let Some(fault) = fault {
            let retry_after = fault.retry_after_ms.map(Duration::from_millis);
            let message = self.redactions.fill_text(&fault.message);
            let (transient, crashed) = (fault.transient, fault.crashed);
            return Ok(Some((number, Err(chat::Fault { message, transient, retry_after, crashed }))));
        }
        let calls = calls.iter().map(|call| {
            let arguments = self.redactions.fill_json(&self.raw(&call.arguments)?);
            Ok(Call { id: String::new(), tool: self.redactions.fill_text(&call.tool), arguments })
        });
        let reply = Reply {
            text: text.as_ref().map(|text| self.text(text)).transpose()?.unwrap_or_default(),
            calls: calls.collect::<Result<_, RunError>>()?,
            usage: *usage,
            model: model.as_ref().map(|model| self.redactions.fill_text(model)),
            cut: *cut,
            // No provider is asked, so that there is no conversation to go on with.
            session: None,
        };
        Ok(Some((number, Ok(reply))))
    }

    /// What a tool gave in the recording; none where the call was ended before that.
    ///
    /// # Errors
    /// The recording does not hold that call, or cannot be read.
    pub(crate) fn called(
        &self,
        at: At<'_>,
        tool: &str,
        arguments: &Value,
    ) -> Result<Taken<Result<String, ToolFault>>, RunError> {
        let Some((number, Exchange::Call { tool: known, arguments: recorded, answer, .. })) =
            self.turn_exchange(CALL, at)
        else {
            return Err(self.parts(at, Some(tool), Difference::Missing));
        };
        let text = |what: &str, recorded: &str, now: String| {
            let (recorded, now) = (Some(recorded.to_owned()), Some(now));
            Err(self.parts(at, Some(tool), Difference::Text { what: what.to_owned(), recorded, now }))
        };
        let now = self.redactions.blank_text(tool);
        if *known != now {
            return text("the tool", known, now);
        }
        // However a person who edited it has formatted it.
        let recorded = self.raw(recorded)?;
        let plain = serde_json::from_str::<Value>(&recorded).map_or_else(|_| recorded, |value| value.to_string());
        let now = self.redactions.blank_json(arguments).to_string();
        if plain != now {
            return text("its argument list", &plain, now);
        }
        let Some(answer) = answer else { return Ok(None) };
        let result = match &answer.text {
            Some(text) => Ok(self.text(text)?),
            None => Err(self.tool_fault(answer.fault.as_ref())),
        };
        Ok(Some((number, result)))
    }

    /// The decision when an agent asked for approval for the `asked`th time, and who made it. A task has no agent here.
    ///
    /// # Errors
    /// It wants something else than it did, or the recording cannot be read.
    pub(crate) fn verdict(
        &self,
        (step, attempt): (&StepId, u32),
        (agent, asked): (&str, u32),
        now: &str,
    ) -> Result<(RecordedVerdict, AnsweredBy), RunError> {
        let key = ((step.clone(), attempt), Arc::from(agent), asked);
        let found = self.recording.script.requests.get(&key).copied();
        let Some((number, answered)) = found else { return Ok((RecordedVerdict::Nothing, AnsweredBy::Person)) };
        self.note(number);
        if let Event::ApprovalAsked { request, .. } = self.event(number)
            && request.wants.describe() != now
        {
            let (recorded, now) = (Some(request.wants.describe()), Some(now.to_owned()));
            let difference = Difference::Text { what: "its request".to_owned(), recorded, now };
            let place = match agent {
                "" => words(step, attempt),
                agent => requests((step, attempt), agent, asked),
            };
            return Err(self.diverged(step, attempt, place, difference));
        }
        let answered = answered.map(|number| (number, self.event(number)));
        let Some((number, Event::ApprovalAnswered { verdict, .. })) = answered else {
            return Ok((RecordedVerdict::Unanswered, AnsweredBy::Person));
        };
        let because = verdict.because.as_deref().map(|because| self.redactions.fill_text(because));
        let arguments = verdict.arguments.as_ref().map(|arguments| self.content(arguments)).transpose()?;
        Ok((RecordedVerdict::Answered(number, verdict.choice, because, arguments), verdict.by))
    }

    /// What an agent did and read while a turn went on, each with its place among all that happened.
    ///
    /// # Errors
    /// The recording cannot be read.
    pub(crate) fn within(&self, at: At<'_>) -> Result<Vec<(usize, WithinTurn)>, RunError> {
        let found = self.recording.script.within.get(&(at.attempt(), Member::of(at.turn)));
        let filled = found.into_iter().flatten().map(|number| Ok((*number, self.read_within(*number)?)));
        filled.collect()
    }

    fn read_within(&self, number: usize) -> Result<WithinTurn, RunError> {
        let event = self.event(number);
        let (number, version) = match event {
            Event::Team { fact: TeamFact::Noticed { number, version, .. }, .. } => (*number, *version),
            _ => (0, 0),
        };
        if let Event::Team { fact: TeamFact::Touched { touch, .. }, .. } = event {
            let mut touch = touch.clone();
            touch.diff = self.redactions.fill_text(&touch.diff);
            return Ok(WithinTurn::Touches(touch));
        }
        let Some((_, action)) = find_action(event) else { return Ok(WithinTurn::Reads { number, version }) };
        // Placeholders stand in texts alone: what they replace makes no other action of it.
        let filled = serde_json::to_string(&action).map(|text| self.redactions.fill_json(&text));
        let mut action = filled.and_then(serde_json::from_value).unwrap_or(action);
        if let Some(content) = long_text(&mut action) {
            *content = Content::Text(self.content(content)?);
        }
        Ok(WithinTurn::Act(action))
    }

    /// How many answers its swarm had when a turn began; 0 where nothing else than the last of them made it begin.
    pub(crate) fn after(&self, at: At<'_>) -> u32 {
        let key = (at.attempt(), Member::of(at.turn).key(TURN));
        self.recording.script.after.get(&key).copied().unwrap_or(0)
    }

    /// The turns and calls that began when the swarm of an attempt had so many answers, and not at once.
    pub(crate) fn paused(&self, step: &StepId, attempt: u32, answers: u32) -> Vec<TurnId> {
        self.recording.script.paused.get(&((step.clone(), attempt), answers)).cloned().unwrap_or_default()
    }

    /// What happened to a swarm that no answer brought about.
    pub(crate) fn outside(&self, step: &StepId, attempt: u32) -> OutsideInputs {
        let of = (step.clone(), attempt);
        let late = self.recording.script.late.get(&of).cloned().unwrap_or_default();
        let overdue = self.recording.script.overdue.get(&of).cloned().unwrap_or_default();
        let failed = self.recording.script.failures.get(&of);
        OutsideInputs { late, overdue, failed: failed.and_then(|&number| Some((number, self.failure_of(number)?))) }
    }

    /// What the run ends with where a turn or a call is not as it was recorded.
    pub(crate) fn parts(&self, at: At<'_>, tool: Option<&str>, difference: Difference) -> RunError {
        let words = Member::of(at.turn).describe(at.step, at.attempt);
        let words = tool.map_or_else(|| words.clone(), |tool| format!("the call of `{tool}` in {words}"));
        self.diverged(at.step, at.attempt, words, difference)
    }

    fn turn_exchange(&self, kind: u8, at: At<'_>) -> Option<(usize, &Exchange)> {
        self.exchange(at.attempt(), Member::of(at.turn).key(kind))
    }

    fn tool_fault(&self, fault: Option<&Fault>) -> ToolFault {
        let message = fault.map_or_else(String::new, |fault| self.redactions.fill_text(&fault.message));
        ToolFault { message, transient: fault.is_some_and(|fault| fault.transient) }
    }

    fn raw(&self, text: &Text) -> Result<String, RunError> {
        let bytes = self.recording.bytes(text).map_err(RunError::Recording)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// The text of an action that may be too long for an event.
fn long_text(action: &mut Action) -> Option<&mut Content> {
    match action {
        Action::PublishData { data: text, .. }
        | Action::SendMessage { payload: text, .. }
        | Action::Operate(
            TeamOp::Post { message: text, .. }
            | TeamOp::TellUser { message: text }
            | TeamOp::SpawnAgent { task: text, .. },
        ) => Some(text),
        _ => None,
    }
}

/// A request of an agent, for people.
pub(crate) fn requests((step, attempt): (&StepId, u32), agent: &str, asked: u32) -> String {
    format!("request {asked} of `{agent}` in {}", words(step, attempt))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_named_for_people() {
        let words = |purpose, attempt| {
            Member { member: "takao".into(), purpose, turn: 3, attempt }
                .describe(&StepId { name: "team".into(), iteration: 2, instance: 1, within: None }, 1)
        };
        assert_eq!(words(Purpose::Act, 1), "turn 3 of `takao` in `team` (round 2)");
        assert_eq!(words(Purpose::Act, 2), "try 2 of turn 3 of `takao` in `team` (round 2)");
        assert_eq!(words(Purpose::Decompose, 1), "the decomposition of `team` (round 2)");
        assert_eq!(words(Purpose::Synthesize, 1), "the merger of `team` (round 2)");
    }
}
