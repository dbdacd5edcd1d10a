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

use super::line::{Asked, Line, Place, Text, is_one, one};
use super::replay::Replay;
use super::write::{Recorder, Texts, stem};
use super::{Question, words};
use crate::types::approval::Choice;
use crate::types::chat;
use crate::types::chat::{Call, Reply, Tool, ToolFault};
use crate::types::digest::{digest_bytes, file_name};
use crate::types::divergence::Difference;
use crate::types::error::RunError;
use crate::types::event::{AnsweredBy, Failure, StepId, Usage};
use crate::types::swarm_event::{Purpose, TurnId};

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
pub(super) struct Said {
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
pub(super) struct Gave {
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
}

/// What happened to a swarm that no answer brought about; each with its place among all that happened.
#[derive(Debug, Default)]
pub(crate) struct Outside {
    /// The agents whose time was over.
    pub late: Vec<(usize, Arc<str>)>,
    /// How it was ended itself.
    pub failed: Option<(usize, Failure)>,
}

/// What was asked and has no answer yet.
#[derive(Debug, Default)]
pub(super) struct Open {
    turns: BTreeMap<(Place, Member), Asked>,
    calls: BTreeMap<(Place, Member), (String, Text)>,
    /// What was said last to an agent, by its digest: most of it is the same in every turn.
    shared: BTreeMap<(Place, Arc<str>, &'static str), (String, Text)>,
}

fn acts(purpose: &Purpose) -> bool {
    *purpose == Purpose::Act
}

impl At<'_> {
    fn place(&self) -> Place {
        Place::of(self.step, self.attempt)
    }
}

impl Member {
    pub(super) fn of(turn: &TurnId) -> Member {
        Member {
            member: Arc::clone(&turn.agent),
            purpose: turn.purpose,
            turn: turn.iteration + 1,
            attempt: turn.attempt,
        }
    }

    pub(super) fn id(&self) -> TurnId {
        TurnId {
            agent: Arc::clone(&self.member),
            purpose: self.purpose,
            iteration: self.turn.saturating_sub(1),
            attempt: self.attempt,
        }
    }

    /// Who, and what for.
    pub(super) fn key(&self) -> String {
        format!("{:?} {}", self.purpose, self.member)
    }

    /// For people.
    pub(super) fn words(&self, place: &Place) -> String {
        let step = words(&place.id(), place.attempt);
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

impl Said {
    pub(super) fn texts(&self) -> impl Iterator<Item = &Text> {
        self.text.iter().chain(self.calls.iter().map(|call| &call.arguments))
    }
}

impl Recorder {
    /// The tools of an agent were asked for.
    pub(crate) fn tools(&self, at: At<'_>, listed: &Result<Vec<Tool>, ToolFault>) -> Result<(), RunError> {
        let (place, turn) = (at.place(), Member::of(at.turn));
        let answer = match listed {
            Ok(tools) => {
                let tool = |tool: &Tool| json!({ "name": tool.name, "description": tool.description, "parameters": tool.parameters });
                let tools = self.redactions.blank_json(&Value::Array(tools.iter().map(tool).collect()));
                let texts = self.texts(&place, &turn);
                let text = texts.blanked("tools", format!("{tools:#}\n").into_bytes())?;
                Gave { text: Some(text), fault: None }
            }
            Err(fault) => Gave { text: None, fault: Some(self.tool_fault(fault)) },
        };
        self.put(&Line::Tools { place, turn, answer })
    }

    /// An agent is asked for a turn.
    pub(crate) fn turn_asked(&self, at: At<'_>, question: &Question) -> Result<(), RunError> {
        let (place, turn) = (at.place(), Member::of(at.turn));
        let plain = Question { system: None, schema: None, ..question.clone() };
        let mut asked = self.texts(&place, &turn).asked(&plain)?;
        asked.system = self.shared((&place, &turn), "system", question.system.as_deref())?;
        asked.schema = self.shared((&place, &turn), "schema", question.schema.as_deref())?;
        let mut open = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        open.turns.insert((place.clone(), turn.clone()), asked.clone());
        self.put(&Line::Member { place, turn, after: None, asked, answer: None })
    }

    /// It answered, or did not.
    pub(crate) fn turn_answered(&self, at: At<'_>, reply: &Result<Reply, chat::Fault>) -> Result<(), RunError> {
        let (place, turn) = (at.place(), Member::of(at.turn));
        let asked = {
            let mut open = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
            open.turns.remove(&(place.clone(), turn.clone()))
        };
        let Some(asked) = asked else { return Ok(()) };
        let texts = self.texts(&place, &turn);
        let answer = match reply {
            Ok(Reply { text, calls, usage, model, cut, session: _ }) => Said {
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
            Err(chat::Fault { message, transient, retry_after }) => Said {
                fault: Some(Fault {
                    message: self.redactions.blank_text(message),
                    transient: *transient,
                    retry_after_ms: retry_after.map(|after| u64::try_from(after.as_millis()).unwrap_or(u64::MAX)),
                }),
                ..Said::default()
            },
        };
        self.put(&Line::Member { place, turn, after: None, asked, answer: Some(answer) })
    }

    /// A tool is called.
    pub(crate) fn called(&self, at: At<'_>, tool: &str, arguments: &Value) -> Result<(), RunError> {
        let (place, turn) = (at.place(), Member::of(at.turn));
        let arguments = self.redactions.blank_json(arguments).to_string();
        let arguments = self.texts(&place, &turn).blanked("arguments", arguments.into_bytes())?;
        let tool = self.redactions.blank_text(tool);
        let mut open = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        open.calls.insert((place.clone(), turn.clone()), (tool.clone(), arguments.clone()));
        self.put(&Line::Call { place, turn, after: None, tool, arguments, answer: None })
    }

    /// It gave something, or failed.
    pub(crate) fn gave(&self, at: At<'_>, result: &Result<String, ToolFault>) -> Result<(), RunError> {
        let (place, turn) = (at.place(), Member::of(at.turn));
        let call = {
            let mut open = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
            open.calls.remove(&(place.clone(), turn.clone()))
        };
        let Some((tool, arguments)) = call else { return Ok(()) };
        let answer = match result {
            Ok(text) => Gave { text: Some(self.texts(&place, &turn).text("result", text.as_bytes())?), fault: None },
            Err(fault) => Gave { text: None, fault: Some(self.tool_fault(fault)) },
        };
        self.put(&Line::Call { place, turn, after: None, tool, arguments, answer: Some(answer) })
    }

    fn texts(&self, place: &Place, turn: &Member) -> Texts<'_> {
        Texts { folder: &self.folder, redactions: &self.redactions, stem: stem(place, true), part: turn.part().into() }
    }

    /// A text of a turn; the file of an earlier one where that says the same.
    fn shared(
        &self,
        (place, turn): (&Place, &Member),
        what: &'static str,
        text: Option<&str>,
    ) -> Result<Option<Text>, RunError> {
        let Some(text) = text else { return Ok(None) };
        let (key, digest) = ((place.clone(), Arc::clone(&turn.member), what), digest_bytes(text.as_bytes()));
        let mut open = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, said)) = open.shared.get(&key).filter(|(known, _)| *known == digest) {
            return Ok(Some(said.clone()));
        }
        let said = self.texts(place, turn).text(what, text.as_bytes())?;
        open.shared.insert(key, (digest, said.clone()));
        Ok(Some(said))
    }

    fn tool_fault(&self, fault: &ToolFault) -> Fault {
        Fault { message: self.redactions.blank_text(&fault.message), transient: fault.transient, retry_after_ms: None }
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
    Said(usize, Choice, Option<String>, Option<String>),
}

/// Where an answer came among all that happened, and what it was.
type Taken<T> = Option<(usize, T)>;

impl Replay {
    /// The recorded tools of an agent; none where they were not asked for in this turn.
    pub(crate) fn tools(&self, at: At<'_>) -> Result<Taken<Result<Vec<Tool>, ToolFault>>, RunError> {
        let Some((number, Line::Tools { answer, .. })) = self.line(6, at) else { return Ok(None) };
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
        let Some((number, Line::Member { asked, answer, .. })) = self.line(7, at) else {
            return Err(self.parts(at, None, Difference::Missing));
        };
        if let Some(difference) = self.compared(asked, question)? {
            return Err(self.parts(at, None, difference));
        }
        let Some(Said { text, calls, usage, model, cut, fault }) = answer else { return Ok(None) };
        if let Some(fault) = fault {
            let retry_after = fault.retry_after_ms.map(Duration::from_millis);
            let message = self.redactions.fill_text(&fault.message);
            return Ok(Some((number, Err(chat::Fault { message, transient: fault.transient, retry_after }))));
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
        let Some((number, Line::Call { tool: known, arguments: recorded, answer, .. })) = self.line(8, at) else {
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

    /// The decision when an agent asked for approval for the `asked`th time, and who made it.
    ///
    /// # Errors
    /// It wants something else than it did, or the recording cannot be read.
    pub(crate) fn agreed(
        &self,
        (step, attempt): (&StepId, u32),
        agent: &str,
        asked: u32,
        now: &str,
    ) -> Result<(RecordedVerdict, AnsweredBy), RunError> {
        let key = (Place::of(step, attempt), 10, asked, 0, agent.to_owned());
        let line = self.index.get(&key).map(|&number| (number, &self.recording.lines[number]));
        let Some((number, Line::Approval { wants, by, choice, because, arguments, .. })) = line else {
            return Ok((RecordedVerdict::Nothing, AnsweredBy::Person));
        };
        self.note(number);
        if wants != now {
            let (recorded, now) = (Some(wants.clone()), Some(now.to_owned()));
            let difference = Difference::Text { what: "its request".to_owned(), recorded, now };
            return Err(self.diverged(step, attempt, requests((step, attempt), agent, asked), difference));
        }
        let Some(choice) = choice else { return Ok((RecordedVerdict::Unanswered, *by)) };
        let because = because.as_deref().map(|because| self.redactions.fill_text(because));
        let arguments = arguments.as_ref().map(|arguments| self.text(arguments)).transpose()?;
        Ok((RecordedVerdict::Said(number, *choice, because, arguments), *by))
    }

    /// How many answers its swarm had when a turn began; 0 where nothing else than the last of them made it begin.
    pub(crate) fn after(&self, at: At<'_>) -> u32 {
        match self.index.get(&key(7, at)).map(|&number| &self.recording.lines[number]) {
            Some(Line::Member { after, .. }) => after.unwrap_or(0),
            _ => 0,
        }
    }

    /// The turns and calls that began when the swarm of an attempt had so many answers, and not at once.
    pub(crate) fn paused(&self, step: &StepId, attempt: u32, answers: u32) -> Vec<TurnId> {
        self.paused.get(&(Place::of(step, attempt), answers)).cloned().unwrap_or_default()
    }

    /// What happened to a swarm that no answer brought about.
    pub(crate) fn outside(&self, step: &StepId, attempt: u32) -> Outside {
        let mut outside = Outside::default();
        for &number in self.attempts.get(&Place::of(step, attempt)).into_iter().flatten() {
            match &self.recording.lines[number] {
                Line::Late { member, .. } => outside.late.push((number, Arc::clone(member))),
                Line::Failed { failure, .. } => outside.failed = Some((number, self.filled(failure))),
                _ => {}
            }
        }
        outside
    }

    /// What the run ends with where a turn or a call is not as it was recorded.
    pub(crate) fn parts(&self, at: At<'_>, tool: Option<&str>, difference: Difference) -> RunError {
        let words = Member::of(at.turn).words(&at.place());
        let words = tool.map_or_else(|| words.clone(), |tool| format!("the call of `{tool}` in {words}"));
        self.diverged(at.step, at.attempt, words, difference)
    }

    fn line(&self, kind: u8, at: At<'_>) -> Option<(usize, &Line)> {
        let &number = self.index.get(&key(kind, at))?;
        self.note(number);
        Some((number, &self.recording.lines[number]))
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

/// A request of an agent, for people.
pub(crate) fn requests((step, attempt): (&StepId, u32), agent: &str, asked: u32) -> String {
    format!("request {asked} of `{agent}` in {}", words(step, attempt))
}

/// Which line is of a turn, as [`Line::key`] says it.
fn key(kind: u8, at: At<'_>) -> (Place, u8, u32, u32, String) {
    let turn = Member::of(at.turn);
    (at.place(), kind, turn.turn, turn.attempt, turn.key())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_named_for_people() {
        let words = |purpose, attempt| {
            Member { member: "takao".into(), purpose, turn: 3, attempt }
                .words(&Place::of(&StepId { name: "team".into(), iteration: 2, instance: 1, within: None }, 1))
        };
        assert_eq!(words(Purpose::Act, 1), "turn 3 of `takao` in `team` (round 2)");
        assert_eq!(words(Purpose::Act, 2), "try 2 of turn 3 of `takao` in `team` (round 2)");
        assert_eq!(words(Purpose::Decompose, 1), "the decomposition of `team` (round 2)");
        assert_eq!(words(Purpose::Synthesize, 1), "the merger of `team` (round 2)");
    }
}
