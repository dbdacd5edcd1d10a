//! Finds answers in a recording by what asks, compares the question with the recorded one, and gives each answer once.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use super::exchange::{Answered, Attempt, Exchange, Key, RecordedQuestion, Text, describe_part, file_key, part_key};
use super::read::{LINES, Recording};
use super::redact::Redactions;
use super::{Answer, Part, Question, words};
use crate::types::divergence::{Difference, Divergence};
use crate::types::error::RunError;
use crate::types::event::{AnsweredBy, Content, Event, Failure, RunStatus, StepId};
use crate::types::recording_error::RecordingError;
use crate::types::user_request::GateAnswer;

/// The divergences that are told at the end by name.
const TOLD: usize = 5;

/// A recording, for one run.
#[derive(Debug)]
pub(crate) struct Replay {
    pub(super) recording: Arc<Recording>,
    pub(super) redactions: Redactions,
    run: String,
    /// The records that were asked for, by their numbers.
    asked: Mutex<BTreeSet<usize>>,
}

/// What a gate is answered.
#[derive(Clone, Debug)]
pub(crate) enum GateTake {
    /// By a person, so.
    Person(GateAnswer),
    /// By the time, or because no person could answer: the gate's own default.
    Default(AnsweredBy),
}

impl Replay {
    pub(crate) fn new(recording: Arc<Recording>, redactions: Redactions, run: &str) -> Replay {
        Replay { recording, redactions, run: run.to_owned(), asked: Mutex::default() }
    }

    /// The place of an attempt's end among all that happened; beyond the last for one that is not recorded.
    pub(crate) fn rank(&self, step: &StepId, attempt: u32) -> usize {
        self.recording.script.ranks.get(&(step.clone(), attempt)).copied().unwrap_or(usize::MAX)
    }

    /// The attempt that ended next, of those from the `from`th end on that are not `taken`, with its place among all
    /// that happened; and from which end on to look the next time.
    pub(crate) fn next(&self, from: usize, taken: &BTreeSet<(StepId, u32)>) -> (usize, Option<(usize, StepId, u32)>) {
        find_next(&self.recording.script.ends, from, taken)
    }

    /// Why an attempt failed before it asked for anything, where that is recorded.
    pub(crate) fn failed(&self, step: &StepId, attempt: u32) -> Option<Failure> {
        let number = self.recording.script.failures.get(&(step.clone(), attempt))?;
        self.failure_of(*number)
    }

    /// Why an attempt failed whose end is this record.
    pub(super) fn failure_of(&self, number: usize) -> Option<Failure> {
        match self.event(number) {
            Event::AttemptEnded { outcome, .. } => outcome.failure.as_ref().map(|failure| self.filled(failure)),
            _ => None,
        }
    }

    /// The recorded answer to `question`.
    ///
    /// # Errors
    /// The recording does not hold that question, or cannot be read.
    pub(crate) fn answer(
        &self,
        (step, attempt, part): (&StepId, u32, Part),
        question: &Question,
    ) -> Result<Answer, RunError> {
        let place = describe_part((step, attempt), part);
        let diverged = |difference| self.diverged(step, attempt, place.clone(), difference);
        let Some((
            _,
            Exchange::Turn { asked, answer, .. }
            | Exchange::Command { asked, answer }
            | Exchange::Check { asked, answer, .. },
        )) = self.exchange((step.clone(), attempt), part_key(part))
        else {
            return Err(diverged(Difference::Missing));
        };
        match self.compared(asked, question)? {
            Some(difference) => Err(diverged(difference)),
            None => self.taken(answer),
        }
    }

    /// What a text of the step took in from this file; none where that is not recorded.
    pub(crate) fn file(&self, step: &StepId, attempt: u32, path: &str) -> Option<Result<String, String>> {
        let (_, exchange) = self.exchange((step.clone(), attempt), file_key(path))?;
        let Exchange::File { text, problem, .. } = exchange else { return None };
        Some(match (text, problem) {
            (Some(text), _) => self.text(text).map_err(|error| error.to_string()),
            (None, problem) => Err(self.redactions.fill_text(problem.as_deref().unwrap_or("it could not be read"))),
        })
    }

    /// What a gate that asks for the `asked`th time was answered, and the place of that among all that happened; none
    /// where no person answered.
    ///
    /// # Errors
    /// It asks something else than it did, or the recording cannot be read.
    pub(crate) fn gate(&self, step: &StepId, asked: u32, message: &str) -> Result<Option<(usize, GateTake)>, RunError> {
        let recorded = self.recording.script.gates.get(&(step.clone(), asked));
        let recorded = recorded.map(|&(opened, answered)| (opened, self.event(opened), answered));
        let Some((opened, Event::GateOpened { message: recorded, .. }, answered)) = recorded else {
            return Err(self.diverged(step, 1, words(step, 1), Difference::Missing));
        };
        self.note(opened);
        let recorded = self.recording.load(recorded).map_err(RunError::Recording)?;
        if let Some(difference) = self.differs("the message", Some(recorded), Some(message)) {
            return Err(self.diverged(step, 1, words(step, 1), difference));
        }
        let answered = answered.map(|number| (number, self.event(number)));
        let Some((number, Event::GateAnswered { choice, output, by, .. })) = answered else { return Ok(None) };
        if *by != AnsweredBy::Person {
            return Ok(Some((number, GateTake::Default(*by))));
        }
        let output = output.as_ref().map(|text| self.content(text)).transpose()?;
        let fields: serde_json::Map<String, serde_json::Value> =
            output.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        // The output holds the choice beside the fields, and their values by type; an answer has them as text.
        let fields = fields.into_iter().filter(|(name, _)| name != "choice").map(|(name, value)| match value {
            serde_json::Value::String(text) => (name, text),
            other => (name, other.to_string()),
        });
        let answer = GateAnswer {
            gate: step.to_string(),
            choice: choice.clone().unwrap_or_default(),
            fields: fields.collect(),
            ..GateAnswer::default()
        };
        Ok(Some((number, GateTake::Person(answer))))
    }

    /// Whether the run came to what was recorded.
    ///
    /// # Errors
    /// It did not, or the recording cannot be read.
    pub(crate) fn ended(&self, status: RunStatus, values: &[String]) -> Result<(), RunError> {
        let different = |what: String, recorded: Option<String>, now: Option<String>| {
            RunError::Diverged(Box::new(Divergence {
                run: self.run.clone(),
                step: None,
                attempt: 1,
                place: "the run".to_owned(),
                difference: Difference::Text { what, recorded, now },
            }))
        };
        if status != self.recording.status {
            let word = |status: RunStatus| Some(status.as_str().to_owned());
            return Err(different("its ending".to_owned(), word(self.recording.status), word(status)));
        }
        // Up to the longer list: a result that is missing is a difference as well.
        for number in 0..values.len().max(self.recording.values.len()) {
            let recorded = self.recording.values.get(number);
            let recorded = recorded.map(|value| self.recording.load(value)).transpose().map_err(RunError::Recording)?;
            if let Some(Difference::Text { what, recorded, now }) =
                self.differs("its result", recorded, values.get(number).map(String::as_str))
            {
                return Err(different(what, recorded, now));
            }
        }
        Ok(())
    }

    /// How many answers were given, and what is recorded and was never asked for, in words.
    pub(crate) fn rest(&self) -> (usize, Vec<String>) {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let all = &self.recording.script.asked;
        let given = all.keys().filter(|number| asked.contains(number)).count();
        let rest = all.iter().filter(|(number, _)| !asked.contains(number));
        let mut rest: Vec<String> = rest.map(|(_, question)| question.words.clone()).collect();
        rest.dedup();
        let more = rest.len().saturating_sub(TOLD);
        rest.truncate(TOLD);
        if more > 0 {
            rest.push(format!("{more} more"));
        }
        (given, rest)
    }

    /// The error of a record that no recording can contain.
    pub(super) fn damaged(&self, number: usize, problem: String) -> RunError {
        let path = self.recording.folder.join(LINES);
        RunError::Recording(RecordingError::Damaged { path, line: number + 1, problem })
    }

    /// What the run ends with where a replay and its recording part.
    pub(crate) fn diverged(&self, step: &StepId, attempt: u32, place: String, difference: Difference) -> RunError {
        let (run, step) = (self.run.clone(), Some(step.clone()));
        RunError::Diverged(Box::new(Divergence { run, step, attempt, place, difference }))
    }

    /// What an attempt asked and was answered, with the number of its record.
    pub(super) fn exchange(&self, of: Attempt, key: Key) -> Option<(usize, &Exchange)> {
        let number = *self.recording.script.exchanges.get(&(of, key))?;
        self.note(number);
        Some((number, self.recording.exchanges.get(&number)?))
    }

    /// What happened in a record.
    pub(super) fn event(&self, number: usize) -> &Event {
        &self.recording.records[number].event
    }

    pub(super) fn note(&self, number: usize) {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).insert(number);
    }

    /// The first thing that is asked otherwise than it was.
    pub(super) fn compared(&self, asked: &RecordedQuestion, now: &Question) -> Result<Option<Difference>, RunError> {
        let here = |text: &Option<String>| text.clone().map(Text::Here);
        let texts = [
            ("the agent", here(&asked.agent), &now.agent),
            ("the system text", asked.system.clone(), &now.system),
            ("the prompt", asked.prompt.clone(), &now.prompt),
            ("the command", asked.command.clone(), &now.command),
            ("the standard input", asked.stdin.clone(), &now.stdin),
            ("the schema of the answer", asked.schema.clone(), &now.schema),
            ("the session that it continues", here(&asked.session), &now.session),
        ];
        let load =
            |text: Option<&Text>| text.map(|text| self.recording.bytes(text)).transpose().map_err(RunError::Recording);
        for (what, recorded, now) in texts {
            if let Some(difference) = self.differs(what, load(recorded.as_ref())?, now.as_deref()) {
                return Ok(Some(difference));
            }
        }
        // A variable that is new counts as well as one that is gone.
        let names: BTreeSet<&String> = asked.env.keys().chain(now.env.keys()).collect();
        for name in names {
            let (recorded, now) = (load(asked.env.get(name))?, now.env.get(name));
            if let Some(difference) = self.differs(&format!("the variable `{name}`"), recorded, now.map(String::as_str))
            {
                return Ok(Some(difference));
            }
        }
        Ok(None)
    }

    fn differs(&self, what: &str, recorded: Option<Vec<u8>>, now: Option<&str>) -> Option<Difference> {
        // This blanks secrets in the new question: the recording does not hold their values, so they cannot be filled in
        // there.
        let now = now.map(|now| self.redactions.blank(now.as_bytes()));
        if recorded == now {
            return None;
        }
        let text = |bytes: Option<Vec<u8>>| bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        Some(Difference::Text { what: what.to_owned(), recorded: text(recorded), now: text(now) })
    }

    fn taken(&self, answer: &Answered) -> Result<Answer, RunError> {
        let Answered { text, whole, cut, exit, failure, stderr, log, usage, session, tools, refused } = answer;
        let bytes = |text: &Text| -> Result<Vec<u8>, RunError> {
            Ok(self.redactions.fill(&self.recording.bytes(text).map_err(RunError::Recording)?))
        };
        Ok(Answer {
            failure: failure.as_ref().map(|failure| self.filled(failure)),
            exit: *exit,
            stderr: stderr.as_ref().map(|text| self.text(text)).transpose()?.unwrap_or_default(),
            log: log.as_ref().map(|text| self.text(text)).transpose()?,
            usage: *usage,
            session: session.as_ref().map(|session| self.redactions.fill_text(session)),
            text: text.as_ref().map(bytes).transpose()?,
            whole: whole.as_ref().map(|text| self.text(text)).transpose()?,
            is_cut: *cut,
            used_tool: *tools,
            refused: refused.iter().map(|text| self.text(text)).collect::<Result<_, _>>()?,
        })
    }

    pub(super) fn text(&self, text: &Text) -> Result<String, RunError> {
        let bytes = self.redactions.fill(&self.recording.bytes(text).map_err(RunError::Recording)?);
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// A text of an event, filled in.
    pub(super) fn content(&self, content: &Content) -> Result<String, RunError> {
        let bytes = self.redactions.fill(&self.recording.load(content).map_err(RunError::Recording)?);
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    pub(super) fn filled(&self, failure: &Failure) -> Failure {
        let mut failure = failure.clone();
        if let Failure::Spawn { message }
        | Failure::Agent { message }
        | Failure::Render { message }
        | Failure::Files { message, .. } = &mut failure
        {
            *message = self.redactions.fill_text(message);
        }
        failure
    }
}

/// The first of these attempts, from the `from`th on, that is not `known`; and from which on to look the next time.
pub(super) fn find_next(
    attempts: &[(usize, Attempt)],
    mut from: usize,
    known: &BTreeSet<Attempt>,
) -> (usize, Option<(usize, StepId, u32)>) {
    while let Some((rank, attempt)) = attempts.get(from) {
        if !known.contains(attempt) {
            return (from, Some((*rank, attempt.0.clone(), attempt.1)));
        }
        // What is known stays known: the next search begins behind it.
        from += 1;
    }
    (from, None)
}
