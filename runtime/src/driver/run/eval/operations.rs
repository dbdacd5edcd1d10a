//! Admits what agents ask for during their turns: reports, requests for help, broadcasts, and the answers to requests.
//!
//! In: an operation, and the state. Out: what is to be recorded, or the reason for a refusal. A run and a rehearsal admit
//! operations here, with the same checks and limits. Invariant: what a turn repeats, by mistake or after its runner was
//! killed, counts once.

use std::sync::Arc;

use super::{Evaluator, Made};
use crate::core::graph::Key;
use crate::core::state::{State, Waiting};
use crate::types::approval::{RequestKind, Verdict};
use crate::types::event::{AnsweredBy, Content, Event, InboxMessage, StepId, truncate_message};
use crate::types::handoff::{Broadcast, EnvelopeKind, Handoff, HelpRequest, MESSAGE_LIMIT, Report};

/// How often one turn reports at most.
const REPORTS: u32 = 1_000;

/// How often one turn asks for help at most, and how many requests of a task wait at once.
const PLEAS: u32 = 20;
const WAITING: usize = 3;

/// How many requests of a step in a row may go unanswered before further ones are refused.
const UNANSWERED: u32 = 3;

/// The characters of a request for help that its answer repeats.
const REPEATED: usize = 200;

/// The refusals that the answer to a broadcast says at most.
pub(crate) const REASONS: usize = 20;

/// A report that may be recorded.
pub(crate) struct AdmittedReport {
    /// How many reports the turn has made, with this one.
    pub count: u32,
    /// What is to be recorded; none if the turn has just reported the same.
    pub report: Option<Content>,
}

/// A receiver of a broadcast, and the handoff to it or why there is none.
type Addressed = (String, Result<Handoff, String>);

/// A request for help that may be made.
pub(crate) enum AdmittedHelp {
    /// The step has made an equal one, with this number.
    Made(u32),
    /// It is to be made.
    New(RequestKind),
}

impl Evaluator<'_> {
    /// Admits a report of how far an agent is.
    ///
    /// # Errors
    /// Says why it is refused.
    pub(crate) fn admit_report(
        &self,
        (state, key): (&State, Key),
        report: &Report,
        made: &Made,
    ) -> Result<AdmittedReport, String> {
        let text = report.to_json()?;
        let counters = state.turn_counters(key);
        let count = counters.map_or(0, |counters| counters.reports);
        let before = counters.and_then(|counters| counters.report.as_ref());
        // An equal report takes neither a record nor a part of the limit.
        if before.is_some_and(|before| self.texts.load_text(before).is_ok_and(|before| before == text)) {
            return Ok(AdmittedReport { count, report: None });
        }
        if count >= REPORTS {
            return Err(format!("you have reported {REPORTS} times in this turn, which is the limit"));
        }
        Ok(AdmittedReport { count: count + 1, report: Some(made.content(text)) })
    }

    /// Admits a request for help by a person, who answers in the inbox of the step.
    ///
    /// # Errors
    /// Says why it is refused.
    pub(crate) fn admit_help(
        &self,
        (state, key): (&State, Key),
        step: &StepId,
        request: &HelpRequest,
        made: &Made,
    ) -> Result<AdmittedHelp, String> {
        let message = request.message.trim();
        match message.chars().count() {
            0 => return Err("`message` is empty: say what you need to know, or what a person should do".to_owned()),
            chars if chars > MESSAGE_LIMIT => {
                return Err(format!("`message` has {chars} characters, but at most {MESSAGE_LIMIT} are allowed"));
            }
            _ => {}
        }
        if !self.hears_persons(state, key) {
            return Err(format!("you cannot receive an answer: `{}` reads no inbox (`<<inbox>>`)", step.name));
        }
        // Ahead of the limits: a turn that begins again after a crash repeats its requests, which count once.
        if let Some(id) = self.find_equal_request((state, key), step, message) {
            return Ok(AdmittedHelp::Made(id));
        }
        let open: Vec<String> = state.help_requests(step).map(|(id, _)| id.to_string()).collect();
        if open.len() >= WAITING {
            return Err(format!(
                "{WAITING} of your requests wait for a person, which is the limit: {}",
                open.join(", ")
            ));
        }
        if state.turn_counters(key).is_some_and(|counters| counters.pleas >= PLEAS) {
            return Err(format!("you have asked for help {PLEAS} times in this turn, which is the limit"));
        }
        check_unanswered_limit(state, step)?;
        Ok(AdmittedHelp::New(RequestKind::Help { message: made.content(message.to_owned()) }))
    }

    /// The number of an equal request of a step: one of this turn, or an unanswered one of an earlier turn.
    fn find_equal_request(&self, (state, key): (&State, Key), step: &StepId, message: &str) -> Option<u32> {
        let counters = state.turn_counters(key).into_iter();
        let asked = counters.flat_map(|counters| &counters.asked).map(|(id, message)| (*id, message));
        let is_same = |before: &Content| self.texts.load_text(before).is_ok_and(|before| before == message);
        asked.chain(state.help_requests(step)).find(|(_, before)| is_same(before)).map(|(id, _)| id)
    }

    /// The handoffs of a message to every task that an edge leads to, each with its receiver.
    ///
    /// # Errors
    /// There is no receiver.
    pub(crate) fn split_broadcast(
        &self,
        (state, key): (&State, Key),
        broadcast: &Broadcast,
    ) -> Result<Vec<Addressed>, String> {
        let reached = self.resolve_reach(state, key).receivers;
        if reached.is_empty() {
            let name = &state.id(key).name;
            return Err(format!("there is no receiver: no edge leads from `{name}` to a task that has not ended"));
        }
        let receivers = self.message_receivers(state, key);
        let handoff = |to: &String| broadcast.message_to(to).into_handoff(&receivers);
        Ok(reached.into_iter().map(|to| (to.clone(), handoff(&to))).collect())
    }

    /// The event that a decision leads to: the envelope that starts a task, or the answer in the inbox of the step that
    /// asked. `message_id` gives the id of that answer, by what it answers.
    pub(crate) fn decision_event(
        &self,
        state: &State,
        (waiting, verdict): (&Waiting, &Verdict),
        message_id: impl FnOnce(&Arc<str>) -> Arc<str>,
    ) -> Option<Event> {
        let frame = state.frame_of(waiting.step.instance, waiting.step.within.as_ref())?;
        let activation = state.frame(state.frame(frame).scope);
        let (instance, within) = (activation.instance, activation.path.clone());
        let (words, answers) = match &waiting.request.wants {
            RequestKind::Node { to, way, letter, .. } if verdict.is_allowed() => {
                let (from, to, way) = (Some(waiting.step.clone()), Arc::clone(to), Some(*way));
                return Some(Event::Sent { from, to, instance, within, way, letter: (**letter).clone() });
            }
            RequestKind::Node { to, letter, .. } => {
                (format!("`{to}` was not started: {}", verdict.refusal()), Arc::clone(&letter.id))
            }
            RequestKind::Help { message } => (self.format_help_answer(message, verdict), waiting.request.name().into()),
            RequestKind::Tool { .. }
            | RequestKind::Spawn { .. }
            | RequestKind::Plan { .. }
            | RequestKind::Merge { .. }
            | RequestKind::GoOn { .. } => return None,
        };
        let letter = decision_message(message_id(&answers), words, answers, verdict.by);
        let to = Arc::clone(&waiting.step.name);
        Some(Event::Sent { from: None, to, instance, within, way: None, letter })
    }

    /// The answer to a request for help, as the step that asked receives it.
    fn format_help_answer(&self, message: &Content, verdict: &Verdict) -> String {
        let message = self.texts.load_text(message).unwrap_or_default();
        let mut repeated: String = message.chars().take(REPEATED).collect();
        if repeated.len() < message.len() {
            repeated.push('…');
        }
        let answer = match (verdict.is_allowed(), &verdict.because) {
            (true, _) if verdict.by == AnsweredBy::Timeout => "no person answered in time: go on".to_owned(),
            (false, _) if verdict.by == AnsweredBy::Timeout => {
                "no person answered in time: go on without help, or say in your answer what is missing".to_owned()
            }
            (true, None) => "a person has read it: go on".to_owned(),
            (true, Some(because)) => format!("a person says: {because}"),
            (false, _) => verdict.refusal(),
        };
        format!("To your request for help ({repeated}): {answer}")
    }
}

/// Why no message of a broadcast was sent, by receiver.
pub(crate) fn describe_refusals(refused: &[(String, String)]) -> String {
    match refused.first() {
        Some((_, why)) if refused.iter().all(|(_, other)| other == why) => why.clone(),
        _ => {
            let more = refused.len().saturating_sub(REASONS);
            let reasons = refused.iter().take(REASONS).map(|(to, why)| format!("to `{to}`: {why}"));
            let reasons: Vec<String> = reasons.chain((more > 0).then(|| format!("and {more} more"))).collect();
            format!("no message was sent: {}", reasons.join("; "))
        }
    }
}

/// Refuses a further request after several unanswered ones: each timeout wakes the step, which would ask for ever.
///
/// # Errors
/// Says that it is refused.
pub(crate) fn check_unanswered_limit(state: &State, step: &StepId) -> Result<(), String> {
    match state.count_unheeded(step) {
        UNANSWERED.. => Err(format!(
            "no person answered your last {UNANSWERED} requests in time: go on without an answer, or say in your answer what is missing"
        )),
        _ => Ok(()),
    }
}

/// A decision as an inbox message to the step that asked; its author is a person or the run.
fn decision_message(id: Arc<str>, mut words: String, answers: Arc<str>, by: AnsweredBy) -> InboxMessage {
    truncate_message(&mut words);
    InboxMessage {
        id,
        kind: EnvelopeKind::Handoff,
        priority: swarmc_plan::Priority::Normal,
        response: swarmc_plan::Response::None,
        answers: Some(answers),
        answered_to: None,
        person: by == AnsweredBy::Person,
        run: by != AnsweredBy::Person,
        interrupts: false,
        said: None,
        content: Content::Text(words),
    }
}
