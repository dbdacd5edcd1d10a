//! Finds answers in a recording by what asks, compares the question with the recorded one, and gives each answer once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use super::line::{Answered, Asked, LINES, Line, Place, Text};
use super::member::requests;
use super::read::Recording;
use super::redact::Redactions;
use super::{Answer, Part, Question, words};
use crate::types::divergence::{Difference, Divergence};
use crate::types::error::RunError;
use crate::types::event::{AnsweredBy, Failure, RunStatus, StepId};
use crate::types::recording_error::RecordingError;
use crate::types::swarm_event::TurnId;
use crate::types::user_request::GateAnswer;

/// The divergences that are told at the end by name.
const TOLD: usize = 5;

/// A recording, for one run.
#[derive(Debug)]
pub(crate) struct Replay {
    pub(super) recording: Arc<Recording>,
    pub(super) redactions: Redactions,
    run: String,
    /// The lines of each attempt, by their number.
    pub(super) attempts: BTreeMap<Place, Vec<usize>>,
    /// The lines of swarms, by what they are about.
    pub(super) index: BTreeMap<(Place, u8, u32, u32, String), usize>,
    /// The turns and calls of swarms that did not begin at once, by how many answers there were when they did.
    pub(super) paused: BTreeMap<(Place, u32), Vec<TurnId>>,
    /// The attempts in the order in which they ended, by their last line; and the other way round.
    ends: Vec<(usize, Place)>,
    ranks: BTreeMap<Place, usize>,
    /// Where attempts began, of those that say so; and by what line at the latest those had that did something, in
    /// order.
    pub(super) begins: BTreeMap<Place, usize>,
    pub(super) beginnings: Vec<(usize, Place)>,
    /// The lines that were asked for.
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
        let mut attempts: BTreeMap<Place, Vec<usize>> = BTreeMap::new();
        for (number, line) in recording.lines.iter().enumerate() {
            if let Some(place) = line.place() {
                attempts.entry(place.clone()).or_default().push(number);
            }
        }
        let swarms = recording.lines.iter().enumerate().filter(|(_, line)| line.is_of_swarm());
        let index = swarms.filter_map(|(number, line)| Some((line.key()?, number))).collect();
        let mut paused: BTreeMap<(Place, u32), Vec<TurnId>> = BTreeMap::new();
        for line in &recording.lines {
            if let Line::Member { place, turn, after: Some(after), .. }
            | Line::Call { place, turn, after: Some(after), .. } = line
            {
                paused.entry((place.clone(), *after)).or_default().push(turn.id());
            }
        }
        let last = |lines: &[usize]| {
            let ends = |line: &Line| !matches!(line, Line::Gate { .. } | Line::File { .. }) && !line.is_deed();
            // The answers of a swarm are taken one by one from its first.
            if let Some(&first) = lines.iter().find(|&&number| recording.lines[number].is_of_swarm()) {
                return Some(first);
            }
            lines.iter().rev().find(|&&number| ends(&recording.lines[number])).copied()
        };
        let mut ends: Vec<(usize, Place)> =
            attempts.iter().filter_map(|(place, lines)| Some((last(lines)?, place.clone()))).collect();
        ends.sort_unstable();
        let ranks = ends.iter().map(|(rank, place)| (place.clone(), *rank)).collect();
        let (begins, beginnings) = beginnings(&recording.lines);
        let (run, asked) = (run.to_owned(), Mutex::default());
        Replay { recording, redactions, run, attempts, index, paused, ends, ranks, begins, beginnings, asked }
    }

    /// The place of an attempt's end among all that happened; beyond the last for one that is not recorded.
    pub(crate) fn rank(&self, step: &StepId, attempt: u32) -> usize {
        self.ranks.get(&Place::of(step, attempt)).copied().unwrap_or(usize::MAX)
    }

    /// The attempt that ended next, of those from the `from`th end on that are not `taken`, with its place among all
    /// that happened; and from which end on to look the next time.
    pub(crate) fn next(
        &self,
        mut from: usize,
        taken: &BTreeSet<(StepId, u32)>,
    ) -> (usize, Option<(usize, StepId, u32)>) {
        while let Some((rank, place)) = self.ends.get(from) {
            let (step, attempt) = (place.id(), place.attempt);
            if !taken.contains(&(step.clone(), attempt)) {
                return (from, Some((*rank, step, attempt)));
            }
            from += 1;
        }
        (from, None)
    }

    /// Why an attempt failed before it asked for anything, where that is recorded.
    pub(crate) fn failed(&self, step: &StepId, attempt: u32) -> Option<Failure> {
        self.find(step, attempt, |line| match line {
            Line::Failed { failure, .. } => Some(self.filled(failure)),
            _ => None,
        })
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
        let recorded = self.find(step, attempt, |line| match line {
            Line::Turn { turn, fallback, asked, answer, .. } if part == Part::Turn(*fallback, *turn) => {
                Some((asked, answer))
            }
            Line::Command { asked, answer, .. } if part == Part::Command => Some((asked, answer)),
            Line::Check { check, asked, answer, .. } if part == Part::Check(*check) => Some((asked, answer)),
            _ => None,
        });
        let place = told(step, attempt, part);
        let diverged = |difference| self.diverged(step, attempt, place.clone(), difference);
        let Some((asked, answer)) = recorded else {
            return Err(diverged(Difference::Missing));
        };
        match self.compared(asked, question)? {
            Some(difference) => Err(diverged(difference)),
            None => self.taken(answer),
        }
    }

    /// What a text of the step took in from this file; none where that is not recorded.
    pub(crate) fn file(&self, step: &StepId, attempt: u32, path: &str) -> Option<Result<String, String>> {
        let (text, problem) = self.find(step, attempt, |line| match line {
            Line::File { path: recorded, text, problem, .. } if recorded == path => Some((text, problem)),
            _ => None,
        })?;
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
        let recorded = self.attempts.get(&Place::of(step, 1)).into_iter().flatten().find_map(|&number| {
            match &self.recording.lines[number] {
                Line::Gate { asked: recorded, message, by, choice, output, .. } if *recorded == asked => {
                    Some((number, message, *by, choice, output))
                }
                _ => None,
            }
        });
        let Some((number, recorded, by, choice, output)) = recorded else {
            return Err(self.diverged(step, 1, words(step, 1), Difference::Missing));
        };
        self.note(number);
        if let Some(difference) = self.differs("the message", Some(recorded), Some(message))? {
            return Err(self.diverged(step, 1, words(step, 1), difference));
        }
        let Some(by) = by else { return Ok(None) };
        if by != AnsweredBy::Person {
            return Ok(Some((number, GateTake::Default(by))));
        }
        let output = output.as_ref().map(|text| self.text(text)).transpose()?;
        let fields: serde_json::Map<String, serde_json::Value> =
            output.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
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
        for number in 0..values.len().max(self.recording.values.len()) {
            let (recorded, now) = (self.recording.values.get(number), values.get(number));
            if let Some(Difference::Text { what, recorded, now }) =
                self.differs("its result", recorded, now.map(String::as_str))?
            {
                return Err(different(what, recorded, now));
            }
        }
        Ok(())
    }

    /// How many answers were given, and what is recorded and was never asked for, in words.
    pub(crate) fn rest(&self) -> (usize, Vec<String>) {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let counts = |line: &Line| {
            !matches!(line, Line::File { .. } | Line::Failed { .. } | Line::Tools { .. } | Line::Late { .. })
                && !matches!(line, Line::Files { .. })
                && !line.is_deed()
        };
        let lines = || self.recording.lines.iter().enumerate().filter(|(_, line)| counts(line));
        let given = lines().filter(|(number, _)| asked.contains(number)).count();
        let mut rest: Vec<String> =
            lines().filter(|(number, _)| !asked.contains(number)).map(|(_, line)| name(line)).collect();
        rest.dedup();
        let more = rest.len().saturating_sub(TOLD);
        rest.truncate(TOLD);
        if more > 0 {
            rest.push(format!("{more} more"));
        }
        (given, rest)
    }

    /// The error of a line that no recording can contain.
    pub(super) fn damaged(&self, line: usize, problem: String) -> RunError {
        let path = self.recording.folder.join(LINES);
        RunError::Recording(RecordingError::Damaged { path, line: line + 2, problem })
    }

    /// What the run ends with where a replay and its recording part.
    pub(crate) fn diverged(&self, step: &StepId, attempt: u32, place: String, difference: Difference) -> RunError {
        let (run, step) = (self.run.clone(), Some(step.clone()));
        RunError::Diverged(Box::new(Divergence { run, step, attempt, place, difference }))
    }

    fn find<'r, T>(&'r self, step: &StepId, attempt: u32, fits: impl Fn(&'r Line) -> Option<T>) -> Option<T> {
        let lines = self.attempts.get(&Place::of(step, attempt))?;
        let (number, found) = lines.iter().find_map(|&number| Some((number, fits(&self.recording.lines[number])?)))?;
        self.note(number);
        Some(found)
    }

    pub(super) fn note(&self, line: usize) {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).insert(line);
    }

    /// The first thing that is asked otherwise than it was.
    pub(super) fn compared(&self, asked: &Asked, now: &Question) -> Result<Option<Difference>, RunError> {
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
        for (what, recorded, now) in texts {
            if let Some(difference) = self.differs(what, recorded.as_ref(), now.as_deref())? {
                return Ok(Some(difference));
            }
        }
        let names: BTreeSet<&String> = asked.env.keys().chain(now.env.keys()).collect();
        for name in names {
            let (recorded, now) = (asked.env.get(name), now.env.get(name));
            let what = format!("the variable `{name}`");
            if let Some(difference) = self.differs(&what, recorded, now.map(String::as_str))? {
                return Ok(Some(difference));
            }
        }
        Ok(None)
    }

    fn differs(&self, what: &str, recorded: Option<&Text>, now: Option<&str>) -> Result<Option<Difference>, RunError> {
        let recorded = recorded.map(|text| self.recording.bytes(text)).transpose().map_err(broken)?;
        let now = now.map(|now| self.redactions.blank(now.as_bytes()));
        if recorded == now {
            return Ok(None);
        }
        let text = |bytes: Option<Vec<u8>>| bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        Ok(Some(Difference::Text { what: what.to_owned(), recorded: text(recorded), now: text(now) }))
    }

    fn taken(&self, answer: &Answered) -> Result<Answer, RunError> {
        let Answered { text, whole, cut, exit, failure, stderr, log, usage, session, tools } = answer;
        let bytes = |text: &Text| -> Result<Vec<u8>, RunError> {
            Ok(self.redactions.fill(&self.recording.bytes(text).map_err(broken)?))
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
        })
    }

    pub(super) fn text(&self, text: &Text) -> Result<String, RunError> {
        let bytes = self.redactions.fill(&self.recording.bytes(text).map_err(broken)?);
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

/// Where attempts began, of those that say so; and the first thing that each did, in order.
fn beginnings(lines: &[Line]) -> (BTreeMap<Place, usize>, Vec<(usize, Place)>) {
    let (mut begins, mut first) = (BTreeMap::new(), BTreeMap::new());
    for (number, line) in lines.iter().enumerate().filter(|(_, line)| line.is_deed()) {
        let Some(place) = line.place() else { continue };
        first.entry(place).or_insert(number);
        if matches!(line, Line::Begun { .. }) {
            begins.insert(place.clone(), number);
        }
    }
    let mut first: Vec<(usize, Place)> = first.into_iter().map(|(place, number)| (number, place.clone())).collect();
    first.sort_unstable();
    (begins, first)
}

fn broken(error: RecordingError) -> RunError {
    RunError::Recording(error)
}

/// A line for people.
fn name(line: &Line) -> String {
    let Some(place) = line.place() else { return String::new() };
    match line {
        Line::Turn { turn, fallback, .. } => told(&place.id(), place.attempt, Part::Turn(*fallback, *turn)),
        Line::Check { check, .. } => told(&place.id(), place.attempt, Part::Check(*check)),
        Line::Member { turn, .. } => turn.words(place),
        Line::Approval { member, asked, .. } => requests((&place.id(), place.attempt), member, *asked),
        Line::Call { turn, tool, .. } => format!("the call of `{tool}` in {}", turn.words(place)),
        _ => words(&place.id(), place.attempt),
    }
}

/// What asks, for people.
fn told(step: &StepId, attempt: u32, part: Part) -> String {
    let words = words(step, attempt);
    match part {
        Part::Turn(0, 1) | Part::Command => words,
        Part::Turn(0, turn) => format!("turn {turn} of {words}"),
        Part::Turn(fallback, 1) => format!("fallback {fallback} of {words}"),
        Part::Turn(fallback, turn) => format!("turn {turn} of fallback {fallback} of {words}"),
        Part::Check(check) => format!("check {check} of {words}"),
    }
}
