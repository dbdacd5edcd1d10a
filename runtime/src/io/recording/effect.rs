//! What attempts did beside answering: their handoffs, their changes, when those began that read an inbox, and what
//! people wrote.
//!
//! In: the events of a recording. Out: what a replay is to do again, and when. Invariant: an envelope has the same id and
//! time in a replay as when it was recorded, for prompts and answers name it by them.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::read::LINES;
use super::replay::{GateTake, Replay, find_next};
use super::script::{Effect, parse_id, parse_moment};
use super::words;
use crate::types::approval::{RequestKind, Verdict};
use crate::types::artifact::ArtifactMeta;
use crate::types::content::Content;
use crate::types::divergence::{Difference, Divergence};
use crate::types::error::RunError;
use crate::types::event::{Event, InboxMessage, StepId};
use crate::types::handoff::{Envelope, Handoff, MESSAGE_LIMIT, Report};
use crate::types::user_request::CONTEXT;

/// What a replay tells the driver, each in its turn.
#[derive(Debug)]
pub(crate) enum ReplayInput {
    /// An attempt begins, as it did in the recording.
    Begin { step: StepId, attempt: u32 },
    /// What an attempt did is done again.
    Effect { step: StepId, attempt: u32, effect: ReplayEffect },
    /// What a person wrote.
    Written(Written),
    /// The answer to what a task asked for.
    Verdict(Verdict),
    /// The answer of a gate.
    Gate { step: StepId, take: GateTake },
    /// An attempt waits to be ended from outside.
    Parked { step: StepId, attempt: u32 },
    /// An attempt asked something that the recording does not hold.
    Diverged { step: StepId, attempt: u32, divergence: Box<Divergence> },
}

/// Something that an attempt did, to be done again.
#[derive(Debug)]
pub(crate) enum ReplayEffect {
    Sent(Box<Sending>),
    /// What it changed, with its text.
    Left(Box<ArtifactMeta>, String),
    /// How far it said it was.
    Reported(String),
    /// What it asked a person to help it with, and the id of the message with the answer.
    Pleaded {
        message: String,
        answer: Option<Arc<str>>,
    },
    /// What people wrote, and it read while its turn went on, by id.
    Overheard(Vec<Arc<str>>),
}

/// What a person wrote to an agent.
#[derive(Debug)]
pub(crate) struct Written {
    pub id: Arc<str>,
    pub to: Arc<str>,
    pub instance: u32,
    pub within: Option<Arc<str>>,
    pub interrupts: bool,
    pub text: String,
    /// Its line.
    line: usize,
}

/// An envelope as it was sent.
#[derive(Debug)]
pub(crate) struct Sending {
    pub envelope: Envelope,
    /// The number that its id was made from, and when it was sent, in milliseconds since 1970.
    pub stamp: (u64, u64),
    /// Whether a person had to approve it first.
    pub asks: bool,
    /// The id of the message that told its sender of a refusal.
    pub refusal: Option<Arc<str>>,
    /// Its line.
    pub line: usize,
}

impl Sending {
    /// What its sender asked for.
    pub(crate) fn handoff(&self) -> Handoff {
        let Envelope { kind, to_node_id, payload, context_ref, meta, .. } = self.envelope.clone();
        let response = payload.response.as_ref();
        Handoff {
            to: to_node_id,
            message: payload.message,
            structured: payload.structured,
            artifacts: payload.artifacts,
            status: payload.status,
            response: Some(response.map(|response| response.expectation).unwrap_or_default()),
            reply_to: response.and_then(|response| response.reply_to.clone()),
            answers_by_name: true,
            context_ref,
            kind: Some(kind),
            message_kind: meta.as_ref().and_then(|meta| meta.message_kind),
            priority: meta.map(|meta| meta.priority),
        }
    }
}

impl Replay {
    /// The place among all that happened at which an attempt began, where that is told.
    pub(crate) fn beginning(&self, step: &StepId, attempt: u32) -> Option<usize> {
        self.recording.script.begins.get(&(step.clone(), attempt)).map(|(number, _)| *number)
    }

    /// The attempt that did something next, of those from the `from`th on that are not `known`, and had begun by then;
    /// and from which on to look the next time.
    pub(crate) fn next_beginning(
        &self,
        from: usize,
        known: &BTreeSet<(StepId, u32)>,
    ) -> (usize, Option<(usize, StepId, u32)>) {
        find_next(&self.recording.script.beginnings, from, known)
    }

    /// What an attempt did, each with its place among all that happened.
    ///
    /// # Errors
    /// The recording cannot be read.
    pub(crate) fn effects(&self, step: &StepId, attempt: u32) -> Result<Vec<(usize, ReplayEffect)>, RunError> {
        let effects = self.recording.script.effects.get(&(step.clone(), attempt)).into_iter().flatten();
        let effects = effects.filter_map(|(number, effect)| match self.load_effect(*number, effect) {
            Ok(effect) => Some(Ok((*number, effect?))),
            Err(error) => Some(Err(error)),
        });
        effects.collect()
    }

    fn load_effect(&self, number: usize, effect: &Effect) -> Result<Option<ReplayEffect>, RunError> {
        Ok(Some(match (effect, self.event(number)) {
            (Effect::Sent { asks, refusal }, event) => {
                let Some(letter) = letter_of(event) else { return Ok(None) };
                let envelope = self.load_envelope(number, letter)?;
                let stamp = parse_id(&envelope.id).zip(parse_moment(&envelope.created_at));
                let Some(stamp) = stamp else {
                    return Err(self.damaged(number, "its envelope has no valid id and time".to_owned()));
                };
                let (asks, refusal) = (*asks, refusal.clone());
                ReplayEffect::Sent(Box::new(Sending { envelope, stamp, asks, refusal, line: number + 1 }))
            }
            (Effect::Left, Event::ArtifactStored { artifact, .. }) => {
                let text = self.content(&artifact.content)?;
                // The code that applies it stores the text.
                let content = Content::Text(String::new());
                ReplayEffect::Left(Box::new(ArtifactMeta { content, ..(**artifact).clone() }), text)
            }
            (Effect::Reported, Event::StatusReported { report, .. }) => {
                let report = serde_json::from_str(&self.content(report)?).map_err(|error| error.to_string());
                let report = report.and_then(|report: Report| report.to_json());
                ReplayEffect::Reported(report.map_err(|problem| self.damaged(number, problem))?)
            }
            (Effect::Pleaded { answer }, Event::ApprovalAsked { request, .. }) => {
                let message = self.content(request.wants.content())?;
                // A person may have edited the recording: what no task could say is refused.
                if message.is_empty() || message.chars().count() > MESSAGE_LIMIT {
                    let problem = format!("a request for help must have from 1 to {MESSAGE_LIMIT} characters");
                    return Err(self.damaged(number, problem));
                }
                ReplayEffect::Pleaded { message, answer: answer.clone() }
            }
            (Effect::Overheard, Event::InputsTaken { inputs, .. }) => ReplayEffect::Overheard(inputs.clone()),
            _ => return Ok(None),
        }))
    }

    /// What people wrote, each with its place among all that happened.
    ///
    /// # Errors
    /// The recording cannot be read.
    pub(crate) fn written(&self) -> Result<Vec<(usize, Written)>, RunError> {
        let written = self.recording.script.messages.iter().filter_map(|&number| {
            let line = number + 1;
            if let Event::PackAppended { pack, text } = self.event(number) {
                let to = format!("{CONTEXT}{pack}").into();
                let (id, instance, within, interrupts) = (Arc::from(""), 1, None, false);
                let appended = |text| (number, Written { id, to, instance, within, interrupts, text, line });
                return Some(self.content(text).map(appended));
            }
            let Event::Sent { to, instance, within, letter, .. } = self.event(number) else { return None };
            let text = self.content(&letter.content).map(|text| {
                let (to, within, id) = (Arc::clone(to), within.clone(), Arc::clone(&letter.id));
                let (instance, interrupts) = (*instance, letter.interrupts);
                (number, Written { id, to, instance, within, interrupts, text, line })
            });
            Some(text)
        });
        written.collect()
    }

    /// Why what a person wrote is not sent again.
    pub(crate) fn unwritten(&self, written: &Written, problem: &str) -> RunError {
        let step = StepId {
            name: Arc::clone(&written.to),
            iteration: 1,
            instance: written.instance,
            within: written.within.clone(),
        };
        let place = format!("the message of a person to {}", words(&step, 1));
        let at = format!("{LINES}:{}", written.line);
        self.diverged(&step, 1, place, Difference::Unsent { problem: problem.to_owned(), at })
    }

    /// What an attempt read when it began, where that differs from what it reads now.
    ///
    /// # Errors
    /// It does.
    pub(crate) fn reads(&self, step: &StepId, attempt: u32, now: &[Arc<str>]) -> Result<(), RunError> {
        let Some((_, inputs)) = self.recording.script.begins.get(&(step.clone(), attempt)) else { return Ok(()) };
        // As sets: the order in which the messages arrived is no difference.
        let told = |ids: BTreeSet<&str>| ids.into_iter().map(|id| format!("{id}\n")).collect::<String>();
        let recorded = told(inputs.iter().map(|id| &**id).collect());
        let now = told(now.iter().map(|id| &**id).collect());
        if recorded == now {
            return Ok(());
        }
        let what = "the content of its inbox".to_owned();
        let difference = Difference::Text { what, recorded: Some(recorded), now: Some(now) };
        Err(self.diverged(step, attempt, words(step, attempt), difference))
    }

    /// What an envelope that is sent again has become.
    ///
    /// # Errors
    /// Something else than it was.
    pub(crate) fn compare(
        &self,
        (step, attempt): (&StepId, u32),
        sending: &Sending,
        now: &Envelope,
    ) -> Result<(), RunError> {
        if sending.envelope == *now {
            return Ok(());
        }
        // The recorded envelope was filled in: both are blanked, so that only the difference shows.
        let told = |envelope| {
            serde_json::to_value(envelope).map(|value| format!("{:#}\n", self.redactions.blank_json(&value)))
        };
        let what = format!("its envelope to `{}`", sending.envelope.to_node_id);
        let (recorded, now) = (told(&sending.envelope).ok(), told(now).ok());
        Err(self.diverged(step, attempt, words(step, attempt), Difference::Text { what, recorded, now }))
    }

    /// Why an envelope is not sent again.
    pub(crate) fn unsent(&self, (step, attempt): (&StepId, u32), sending: &Sending, problem: String) -> RunError {
        let place = format!("the envelope of {} to `{}`", words(step, attempt), sending.envelope.to_node_id);
        let at = format!("{LINES}:{}", sending.line);
        self.diverged(step, attempt, place, Difference::Unsent { problem: self.redactions.blank_text(&problem), at })
    }

    fn load_envelope(&self, number: usize, letter: &InboxMessage) -> Result<Envelope, RunError> {
        let text =
            String::from_utf8_lossy(&self.recording.load(&letter.content).map_err(RunError::Recording)?).into_owned();
        // Filled in text by text: in the JSON as it stands, a value with a quote would break it.
        let envelope = serde_json::from_value(self.redactions.fill_json(&text));
        envelope.map_err(|error| self.damaged(number, error.to_string()))
    }
}

/// The letter of an event with a handoff.
fn letter_of(event: &Event) -> Option<&InboxMessage> {
    match event {
        Event::Sent { letter, .. } => Some(letter),
        Event::ApprovalAsked { request, .. } => match &request.wants {
            RequestKind::Node { letter, .. } => Some(letter),
            _ => None,
        },
        _ => None,
    }
}
