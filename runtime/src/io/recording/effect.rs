//! What attempts did beside answering: their handoffs, their changes, when those began that read an inbox, and the
//! decisions on their requests.
//!
//! In: the facts of a journal, or the lines of a recording. Out: lines in the order of the facts, or for a replay what
//! is to be done again and when. Invariant: an envelope has the same id and time in a replay as when it was recorded,
//! for prompts and answers name it by them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::line::{LINES, Line, Place, Text};
use super::member::RecordedVerdict;
use super::replay::Replay;
use super::words;
use crate::types::approval::{Request, RequestKind, Verdict};
use crate::types::artifact::{ArtifactKind, ArtifactMeta};
use crate::types::divergence::Difference;
use crate::types::error::RunError;
use crate::types::event::{AnsweredBy, Content, InboxMessage, StepId};
use crate::types::handoff::{ENVELOPE_LIMIT, Envelope, Handoff, MESSAGE_LIMIT, Report};

/// How many times longer than its limit a text with placeholders may be.
const BLANKED: usize = 8;

/// The characters of an id.
const LONGEST_ID: usize = 20;

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

/// The effects of a run, while its recording is put together.
#[derive(Default)]
pub(super) struct ReplayEffects {
    /// The steps that were sent something, whatever they are within.
    receivers: BTreeSet<(Arc<str>, u32)>,
    /// The attempt of each step that began last, with what it took in.
    attempts: BTreeMap<StepId, (u32, Vec<String>)>,
    /// Those whose attempt goes on.
    running: BTreeSet<StepId>,
    /// What was taken in since.
    taken: BTreeMap<StepId, Vec<String>>,
    /// What is asked for and not answered, by its number, and whether that outlasts the attempt.
    open: BTreeMap<u32, (Line, bool)>,
    /// How often each attempt asked.
    asked: BTreeMap<Place, u32>,
    /// How often each attempt reported, and asked for help.
    said: BTreeMap<(Place, bool), u32>,
    /// The handoffs and requests that wait for a decision, with their lines; the key is the name that the message about
    /// the decision uses.
    payloads: BTreeMap<Arc<str>, usize>,
    left: BTreeSet<(Place, Arc<str>)>,
}

impl ReplayEffects {
    /// Notes a step that is ever sent something.
    pub(super) fn receives(&mut self, to: &Arc<str>, instance: u32) {
        self.receivers.insert((Arc::clone(to), instance));
    }

    /// Envelopes leave an inbox: for the attempt that is about to begin, or for the one that goes on.
    pub(super) fn took(&mut self, step: &StepId, inputs: &[Arc<str>], lines: &mut Vec<Line>) {
        if let Some((attempt, _)) = self.attempts.get(step).filter(|_| self.running.contains(step)) {
            let inputs = inputs.iter().map(|id| id.to_string()).collect();
            return lines.push(Line::Overheard { place: Place::of(step, *attempt), inputs });
        }
        self.taken.entry(step.clone()).or_default().extend(inputs.iter().map(|id| id.to_string()));
    }

    /// An attempt begins, for the first time or once more.
    pub(super) fn began(&mut self, step: &StepId, attempt: u32, lines: &mut Vec<Line>) {
        self.running.insert(step.clone());
        let fresh = self.taken.remove(step).unwrap_or_default();
        let known = self.attempts.entry(step.clone()).or_default();
        let again = known.0 == attempt;
        if !again {
            *known = (attempt, Vec::new());
        }
        known.1.extend(fresh);
        if self.receivers.contains(&(Arc::clone(&step.name), step.instance)) {
            let place = Place::of(step, attempt);
            if again && let Some(line) = lines.iter_mut().find(|line| line.is_beginning_of(&place)) {
                // No line behind it moves.
                *line = Line::Nothing;
            }
            lines.push(Line::Begun { place, inputs: known.1.clone() });
        }
    }

    pub(super) fn ended(&mut self, step: &StepId) {
        self.running.remove(step);
    }

    /// Another runner goes on: whatever was open begins again.
    pub(super) fn resumed(&mut self) {
        self.running.clear();
    }

    /// An agent handed something over. Where it was approved first, the line exists already.
    pub(super) fn sent(&mut self, step: &StepId, envelope: Envelope, lines: &mut Vec<Line>) {
        if self.payloads.contains_key(&*envelope.id) {
            return;
        }
        let attempt = self.attempts.get(step).map_or(1, |(attempt, _)| *attempt);
        let (place, envelope) = (Place::of(step, attempt), Box::new(envelope));
        lines.push(Line::Sent { place, envelope, asks: false, refusal: None });
    }

    /// Which of its reports, or requests for help, an attempt makes.
    pub(super) fn count(&mut self, place: &Place, pleads: bool) -> u32 {
        let count = self.said.entry((place.clone(), pleads)).or_default();
        *count += 1;
        *count
    }

    /// The agent that asked for something receives the decision.
    pub(super) fn answered(&self, letter: &InboxMessage, lines: &mut [Line]) {
        let line = letter.answers.as_ref().and_then(|payload| self.payloads.get(payload));
        if let Some(Line::Sent { refusal: told, .. } | Line::Pleaded { answer: told, .. }) =
            line.and_then(|&line| lines.get_mut(line))
        {
            *told = Some(letter.id.to_string());
        }
    }

    /// A turn changed something: whether that is to be told.
    pub(super) fn left(&mut self, place: &Place, kept: &ArtifactMeta) -> bool {
        kept.kind == ArtifactKind::Diff && self.left.insert((place.clone(), Arc::clone(&kept.id)))
    }

    /// A task asks for something that is more than its turn. `told` is the line of the handoff that it wants to send,
    /// or of the help that it asks for.
    pub(super) fn wants(&mut self, place: Place, request: &Request, told: Option<Line>, lines: &mut Vec<Line>) {
        if !matches!(request.wants, RequestKind::Node { .. } | RequestKind::GoOn { .. } | RequestKind::Help { .. }) {
            return;
        }
        if let Some(line) = told {
            let name = match &line {
                Line::Sent { envelope, .. } => envelope.id.as_str().into(),
                _ => request.name().into(),
            };
            self.payloads.insert(name, lines.len());
            lines.push(line);
        }
        let asked = self.asked.entry(place.clone()).or_default();
        *asked += 1;
        let (asked, wants, by) = (*asked, request.wants.describe(), AnsweredBy::Person);
        let line = Line::Agreed { place, asked, wants, by, choice: None, because: None };
        self.open.insert(request.id, (line, request.wants.outlasts_attempt()));
    }

    /// A person or a policy decides. What the policy decides at once about a request that outlasts an attempt, it
    /// decides in a replay as well.
    pub(super) fn agreed(&mut self, verdict: &Verdict, blank: impl Fn(&str) -> String) -> Option<Line> {
        let (mut line, outlasts) = self.open.remove(&verdict.id)?;
        let Line::Agreed { by, choice, because, .. } = &mut line else { return None };
        (*by, *choice) = (verdict.by, Some(verdict.choice));
        *because = verdict.because.as_deref().map(blank);
        (verdict.was_awaited() || !outlasts).then_some(line)
    }

    /// The requests that were never answered.
    pub(super) fn rest(self) -> impl Iterator<Item = Line> {
        self.open.into_values().map(|(line, _)| line)
    }
}

impl Line {
    fn is_beginning_of(&self, of: &Place) -> bool {
        matches!(self, Line::Begun { place, .. } if place == of)
    }

    /// What is wrong with a line of this kind, whatever was run.
    pub(super) fn problem(&self, envelopes: &mut BTreeSet<String>) -> Option<String> {
        match self {
            Line::Sent { place, envelope, refusal, .. } => {
                let Envelope { id, from_node_id, created_at, payload, .. } = &**envelope;
                if number(id).is_none() || refusal.as_deref().is_some_and(|id| number(id).is_none()) {
                    return Some("an id of an envelope is `e` and a number".to_owned());
                }
                if !envelopes.insert(id.clone()) {
                    return Some(format!("envelope `{id}` is there twice"));
                }
                if *from_node_id != *place.step {
                    return Some(format!("envelope `{id}` does not name its sender `{}`", place.step));
                }
                if moment(created_at).is_none() {
                    return Some(format!("envelope `{id}` has no valid time"));
                }
                let chars = payload.message.chars().count();
                let bytes = serde_json::to_string(envelope).map_or(0, |text| text.len());
                match (chars, bytes) {
                    (0, _) => Some(format!("envelope `{id}` is empty")),
                    _ if chars > MESSAGE_LIMIT * BLANKED || bytes > ENVELOPE_LIMIT * BLANKED => {
                        Some(format!("envelope `{id}` is too long"))
                    }
                    _ => None,
                }
            }
            Line::Left { id, .. } => {
                let plain = (1..=LONGEST_ID).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_hexdigit());
                (!plain).then(|| "the id of a diff is a digest".to_owned())
            }
            Line::Pleaded { answer: Some(id), .. } if number(id).is_none() => {
                Some("an id of a letter is `e` and a number".to_owned())
            }
            Line::Message { id, .. } if number(id).is_none() => {
                Some("an id of a message is `e` and a number".to_owned())
            }
            Line::Message { id, .. } if !envelopes.insert(id.clone()) => Some(format!("message `{id}` is there twice")),
            Line::Files { told, left, files, .. } => {
                crate::io::files::find_path_problem(told.keys(), left.as_deref(), files.keys())
            }
            _ => None,
        }
    }
}

impl Replay {
    /// The place among all that happened at which an attempt began, where that is told.
    pub(crate) fn beginning(&self, step: &StepId, attempt: u32) -> Option<usize> {
        self.begins.get(&Place::of(step, attempt)).copied()
    }

    /// The attempt that did something next, of those from the `from`th on that are not `known`, and had begun by then;
    /// and from which on to look the next time.
    pub(crate) fn next_beginning(
        &self,
        mut from: usize,
        known: &BTreeSet<(StepId, u32)>,
    ) -> (usize, Option<(usize, StepId, u32)>) {
        while let Some((rank, place)) = self.beginnings.get(from) {
            let (step, attempt) = (place.id(), place.attempt);
            if !known.contains(&(step.clone(), attempt)) {
                return (from, Some((*rank, step, attempt)));
            }
            from += 1;
        }
        (from, None)
    }

    /// What an attempt did, each with its place among all that happened.
    ///
    /// # Errors
    /// The recording cannot be read.
    pub(crate) fn deeds(&self, step: &StepId, attempt: u32) -> Result<Vec<(usize, ReplayEffect)>, RunError> {
        let mut deeds = Vec::new();
        for &number in self.attempts.get(&Place::of(step, attempt)).into_iter().flatten() {
            match &self.recording.lines[number] {
                Line::Sent { envelope, asks, refusal, .. } => {
                    self.note(number);
                    let (asks, refusal) = (*asks, refusal.as_deref().map(Arc::from));
                    let stamp = self::number(&envelope.id).zip(moment(&envelope.created_at));
                    let stamp = stamp.expect("it was looked at when the recording was read");
                    let envelope = self.filled_envelope(envelope);
                    let sending = Sending { envelope, stamp, asks, refusal, line: number + 2 };
                    deeds.push((number, ReplayEffect::Sent(Box::new(sending))));
                }
                Line::Left { id, text, files, added, removed, with, omitted, .. } => {
                    self.note(number);
                    let text = self.text(text)?;
                    // The code that applies it stores the text.
                    let kept = ArtifactMeta::new(ArtifactKind::Diff, "", Content::Text(String::new()));
                    let (id, with, omitted) = (id.as_str().into(), with.clone(), omitted.clone());
                    let (files, added, removed) = (*files, *added, *removed);
                    let kept = ArtifactMeta { id, files, added, removed, with, omitted, ..kept };
                    deeds.push((number, ReplayEffect::Left(Box::new(kept), text)));
                }
                Line::Reported { text, .. } => {
                    self.note(number);
                    let report = serde_json::from_str(&self.text(text)?).map_err(|error| error.to_string());
                    let report = report.and_then(|report: Report| report.to_json());
                    deeds.push((
                        number,
                        ReplayEffect::Reported(report.map_err(|problem| self.damaged(number, problem))?),
                    ));
                }
                Line::Pleaded { message, answer, .. } => {
                    self.note(number);
                    let (message, answer) = (self.text(message)?, answer.as_deref().map(Arc::from));
                    if message.is_empty() || message.chars().count() > MESSAGE_LIMIT {
                        let problem = format!("a request for help must have from 1 to {MESSAGE_LIMIT} characters");
                        return Err(self.damaged(number, problem));
                    }
                    deeds.push((number, ReplayEffect::Pleaded { message, answer }));
                }
                Line::Overheard { inputs, .. } => {
                    self.note(number);
                    deeds.push((number, ReplayEffect::Overheard(inputs.iter().map(|id| id.as_str().into()).collect())));
                }
                _ => {}
            }
        }
        Ok(deeds)
    }

    /// What people wrote, each with its place among all that happened.
    ///
    /// # Errors
    /// The recording cannot be read.
    pub(crate) fn written(&self) -> Result<Vec<(usize, Written)>, RunError> {
        let lines = self.recording.lines.iter().enumerate();
        let written = lines.filter_map(|(number, line)| {
            let Line::Message { id, to, instance, within, interrupts, text } = line else { return None };
            let text = self.text(text).map(|text| {
                let (to, within) = (Arc::clone(to), within.clone());
                let (id, instance, interrupts) = (id.as_str().into(), *instance, *interrupts);
                (number, Written { id, to, instance, within, interrupts, text, line: number + 2 })
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
        let Some(Line::Begun { inputs, .. }) =
            self.beginning(step, attempt).map(|number| &self.recording.lines[number])
        else {
            return Ok(());
        };
        let told = |ids: BTreeSet<&str>| ids.into_iter().map(|id| format!("{id}\n")).collect::<String>();
        let recorded = told(inputs.iter().map(String::as_str).collect());
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

    /// The decision when a task asked for something for the `asked`th time, and who made it.
    ///
    /// # Errors
    /// It wants something else than it did.
    pub(crate) fn verdict(
        &self,
        (step, attempt): (&StepId, u32),
        asked: u32,
        now: &str,
    ) -> Result<(RecordedVerdict, AnsweredBy), RunError> {
        let place = Place::of(step, attempt);
        let found =
            self.attempts.get(&place).into_iter().flatten().find_map(|&number| match &self.recording.lines[number] {
                Line::Agreed { asked: known, wants, by, choice, because, .. } if *known == asked => {
                    Some((number, wants, *by, *choice, because))
                }
                _ => None,
            });
        let Some((number, wants, by, choice, because)) = found else {
            return Ok((RecordedVerdict::Nothing, AnsweredBy::Person));
        };
        self.note(number);
        if wants != now {
            let (recorded, now) = (Some(wants.clone()), Some(now.to_owned()));
            let difference = Difference::Text { what: "its request".to_owned(), recorded, now };
            return Err(self.diverged(step, attempt, words(step, attempt), difference));
        }
        let because = because.as_deref().map(|because| self.redactions.fill_text(because));
        let foretold =
            choice.map_or(RecordedVerdict::Unanswered, |choice| RecordedVerdict::Said(number, choice, because, None));
        Ok((foretold, by))
    }

    fn filled_envelope(&self, envelope: &Envelope) -> Envelope {
        let text = serde_json::to_string(envelope).unwrap_or_default();
        serde_json::from_value(self.redactions.fill_json(&text)).unwrap_or_else(|_| envelope.clone())
    }
}

/// An envelope as its line has it.
pub(super) fn blanked(text: &str, blank: impl Fn(&Value) -> Value) -> Option<Envelope> {
    serde_json::from_value(blank(&serde_json::from_str(text).ok()?)).ok()
}

/// A diff as its line has it.
pub(super) fn left(place: Place, kept: &ArtifactMeta, text: Text) -> Line {
    let ArtifactMeta { id, files, added, removed, with, omitted, .. } = kept.clone();
    Line::Left { place, id: id.to_string(), text, files, added, removed, with, omitted }
}

/// The number of an envelope's id.
fn number(id: &str) -> Option<u64> {
    let digits = id.strip_prefix('e').filter(|digits| digits.len() < LONGEST_ID)?;
    digits.parse().ok().filter(|number: &u64| number.to_string() == digits)
}

/// A time as envelopes say it, in milliseconds since 1970.
fn moment(stamp: &str) -> Option<u64> {
    let stamp: jiff::Timestamp = stamp.parse().ok()?;
    u64::try_from(stamp.as_millisecond()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_number_and_a_time_a_moment() {
        assert_eq!(number("e14"), Some(14));
        for id in ["e", "e014", "e-1", "14", "f1", "e1 ", "e99999999999999999999", "../e1"] {
            assert_eq!(number(id), None, "{id}");
        }
        assert_eq!(moment("2026-11-22T16:26:08.25Z"), Some(1_795_364_768_250));
        assert_eq!(moment("yesterday"), None);
    }
}
