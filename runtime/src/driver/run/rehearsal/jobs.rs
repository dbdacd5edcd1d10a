//! Attempts in a rehearsal: the test answers in the place of agents and commands.
//!
//! In: the jobs that a run would give to its executor. Out: what the executor would report, at the time at which the
//! answers come.

use std::collections::BTreeMap;

use swarmc_plan::{Command as Line, LOG, Schema};

use super::api::{Answer, Asks, Prompted, Turn};
use super::{Due, Rehearsing};
use crate::driver::run::driver::Driver;
use crate::driver::run::eval;
use crate::io::executor::{AgentTurn, Job, Role, Work};
use crate::io::input::Input;
use crate::types::answer::render_repair_prompt;
use crate::types::event::{Content, Failure, Outcome, StepId};
use crate::types::handoff::{Operation, read_operation_lines};

/// Whose answer is asked for.
struct Asker<'t> {
    step: &'t StepId,
    attempt: u32,
    fixing: bool,
    schema: Option<&'t Schema>,
    item: Option<&'t (serde_json::Value, u32)>,
}

impl<'t> Asker<'t> {
    fn turn(&self, repair: u32, asks: Asks<'t>) -> Turn<'t> {
        let Asker { step, attempt, fixing, schema, item } = *self;
        Turn { step, attempt, repair, fixing, schema, item, member: None, asks }
    }
}

/// What an attempt has done so far.
#[derive(Default)]
struct Progress {
    /// How long it took, in milliseconds.
    total: u64,
    /// The longest time without an answer.
    silent: u64,
    /// What its answers asked for, each with its time since the attempt began.
    asked: Vec<(u64, Result<Operation, String>)>,
    /// How often its answer was asked for again.
    repair: u32,
}

impl Progress {
    /// When an attempt is ended for taking too long, and how.
    fn lateness(&self, job: &Job) -> Option<(u64, Failure)> {
        let millis = |limit: std::time::Duration| u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        let over = job.timeout.map(millis).filter(|&limit| self.total > limit);
        let over = over.map(|after_ms| (after_ms, Failure::Timeout { after_ms }));
        let idle = job.idle.map(millis).filter(|&limit| self.silent > limit);
        let idle = idle.map(|after_ms| (after_ms, Failure::Idle { after_ms }));
        // The limit that was reached first has ended it.
        over.into_iter().chain(idle).min_by_key(|(after, _)| *after)
    }

    /// Takes an answer as that of a process. None where its attempt was ended before it came.
    fn take_answer(&mut self, answer: Answer, job: &Job) -> Option<ProcessEnd> {
        let (delay, answer) = answer.timed();
        self.total = self.total.saturating_add(delay);
        self.silent = self.silent.max(delay);
        let end = match answer {
            Answer::Text(text) => ProcessEnd { text, ..ProcessEnd::default() },
            Answer::Json(value) => ProcessEnd { text: value.to_string(), value: Some(value), ..ProcessEnd::default() },
            Answer::Failure { exit, output, stderr } => {
                // With the exit code 0, it would be no failure.
                ProcessEnd { text: output, exit: exit.max(1), stderr, value: None }
            }
            Answer::Choice { .. } | Answer::Unanswered | Answer::After(..) => {
                ProcessEnd { exit: 1, stderr: "no choice is asked for here".to_owned(), ..ProcessEnd::default() }
            }
        };
        self.lateness(job).is_none().then_some(end)
    }
}

/// How a process ended.
#[derive(Default)]
struct ProcessEnd {
    text: String,
    /// What the text says, where the test gave a value.
    value: Option<serde_json::Value>,
    exit: i32,
    stderr: String,
}

impl ProcessEnd {
    /// Both streams.
    fn combine_streams(&self) -> String {
        let streams = [self.text.as_str(), &self.stderr];
        streams.into_iter().filter(|stream| !stream.is_empty()).collect::<Vec<_>>().join("\n")
    }

    /// The end of both.
    fn log(&self) -> String {
        let mut log = self.combine_streams();
        log.drain(..log.ceil_char_boundary(log.len().saturating_sub(LOG)));
        log
    }
}

impl Driver<'_> {
    /// Asks the test for what the attempts do that begin now.
    pub(in crate::driver::run) fn perform_jobs(&mut self) {
        for job in self.attempts.take_jobs() {
            let mut progress = Progress::default();
            let outcome = match job.cancel.requested_level() {
                Some(_) => Err(Failure::Cancelled),
                None => self.perform_job(&job, &mut progress),
            };
            let (delay, outcome) = match progress.lateness(&job) {
                Some((delay, failure)) => (delay, Outcome::from_failure(failure)),
                None => (progress.total, outcome.unwrap_or_else(Outcome::from_failure)),
            };
            let (step, attempt) = (job.step, job.attempt);
            // What comes at once is taken at once: a receiver reads all of it in one turn.
            let mut reports: BTreeMap<u64, Vec<Input>> = BTreeMap::new();
            for (time, operation) in progress.asked {
                let said = Input::Said { step: step.clone(), attempt, operation, hearer: None };
                reports.entry(time).or_default().push(said);
            }
            let ended = Input::Ended { step, attempt, outcome: Box::new(outcome) };
            reports.entry(delay).or_default().push(ended);
            reports.into_iter().for_each(|(time, inputs)| self.schedule(time, Due::Inputs(inputs)));
        }
    }

    /// Performs the body of an attempt, then its checks.
    fn perform_job(&mut self, job: &Job, progress: &mut Progress) -> Result<Outcome, Failure> {
        let key = self.state.find_step(&job.step).ok_or_else(|| eval::unknown_step(&job.step))?;
        let definition = self.evaluator.step_definition(&self.state, key);
        let item = self.evaluator.item(&self.state, key.frame).map_err(eval::render_failure)?;
        let asker = Asker {
            step: &job.step,
            attempt: job.attempt,
            fixing: job.role == Role::Mends,
            schema: definition.output.schema.as_ref().filter(|_| job.role == Role::Turn),
            item: item.as_ref(),
        };
        let Some(rehearsing) = self.world.rehearsal() else { return Err(Failure::Cancelled) };
        let outcome = match &job.work {
            Work::Agent(asked) => rehearsing.perform_turn(job, asked, &asker, progress)?,
            Work::Command { command, stdin } => {
                let stdin = stdin.as_deref().map(String::from_utf8_lossy);
                let asks = Asks::Command { command, stdin: stdin.as_deref() };
                rehearsing.perform_command(job, &asker.turn(0, asks), progress)?
            }
            Work::Text(text) => succeed(text.clone()),
            // The driver answers the turns of members itself.
            Work::Member(_) => return Err(Failure::Cancelled),
        };
        // What was ended before it answered is not checked.
        let is_whole = outcome.failure.is_none() && progress.lateness(job).is_none();
        let checked = if is_whole { rehearsing.perform_checks(job, &asker, progress) } else { None };
        let keeps_text = !matches!(job.work, Work::Agent(_)) && job.shape.is_none();
        let mut outcome = match checked {
            Some(failed) => Outcome { output: outcome.output.filter(|_| keeps_text), log: outcome.log, ..failed },
            None => outcome,
        };
        let log = outcome.log.take().map(|log| self.outputs.store_content(log)).transpose();
        outcome.log = log.map_err(|error| eval::render_failure(error.to_string()))?;
        Ok(outcome)
    }
}

impl Rehearsing<'_> {
    /// Asks an agent, until its answer is of the declared type.
    fn perform_turn(
        &mut self,
        job: &Job,
        asked: &AgentTurn,
        asker: &Asker<'_>,
        progress: &mut Progress,
    ) -> Result<Outcome, Failure> {
        // A rehearsal reaches every agent, so that no fallback takes the turn.
        let taker = &asked.takers[0];
        let prompt = &taker.prompt;
        let (step, agent) = (job.step.clone(), taker.agent.clone());
        self.report.prompts.push(Prompted { step, attempt: job.attempt, agent, prompt: prompt.clone() });
        let mut again: Option<String> = None;
        loop {
            let system = taker.system.as_deref();
            let asks = Asks::Agent { agent: &taker.agent, system, prompt: again.as_deref().unwrap_or(prompt) };
            let turn = asker.turn(progress.repair, asks);
            // It came too late: in its place `perform_jobs` takes the time limit.
            let Some(mut end) = progress.take_answer(self.ask(&turn), job) else { return Ok(Outcome::default()) };
            if end.exit != 0 {
                return Ok(Outcome {
                    exit: Some(end.exit),
                    stderr: end.stderr,
                    ..Outcome::from_failure(Failure::Exit)
                });
            }
            if job.speaks {
                let lines =
                    read_operation_lines(&end.text, [Some(&**prompt), again.as_deref(), system].into_iter().flatten());
                let asked = lines.operations.into_iter().map(|line| line.operation);
                let asked = asked.chain(lines.notes.into_iter().map(Err));
                progress.asked.extend(asked.map(|operation| (progress.total, operation)));
                end.text = lines.rest;
            }
            let Some(shape) = &job.shape else { return Ok(succeed(end.text)) };
            match shape.parse_answer(&end.text) {
                Ok(value) => return Ok(succeed(value)),
                Err(violations) if progress.repair < asked.repair => {
                    again = Some(render_repair_prompt(prompt, &end.text, &violations, shape));
                    progress.repair += 1;
                }
                Err(violations) => return Err(Failure::Invalid { violations }),
            }
        }
    }

    fn perform_command(&mut self, job: &Job, turn: &Turn<'_>, progress: &mut Progress) -> Result<Outcome, Failure> {
        let Some(end) = progress.take_answer(self.ask(turn), job) else { return Ok(Outcome::default()) };
        let log = Some(end.log()).filter(|log| job.keeps_log && !log.is_empty()).map(Content::Text);
        if end.exit != 0 {
            // What failed keeps both streams, as a person would have seen them.
            let output = job.shape.is_none().then(|| Content::Text(end.combine_streams()));
            let failed = Outcome::from_failure(Failure::Exit);
            return Ok(Outcome { exit: Some(end.exit), stderr: end.stderr, output, log, ..failed });
        }
        let text = match &job.shape {
            Some(shape) => {
                let printed = end.value.unwrap_or_else(|| end.text.into());
                shape.parse_computed(printed).map_err(|violations| Failure::Invalid { violations })?
            }
            None => end.text,
        };
        Ok(Outcome { log, ..succeed(text) })
    }

    /// Runs the checks of an attempt until one fails.
    fn perform_checks(&mut self, job: &Job, asker: &Asker<'_>, progress: &mut Progress) -> Option<Outcome> {
        for (command, number) in job.checks.iter().zip(1..) {
            let turn = Turn { schema: None, ..asker.turn(progress.repair, Asks::Check { command, number }) };
            let end = progress.take_answer(self.ask(&turn), job)?;
            if end.exit != 0 {
                let line = match command {
                    Line::Argv(words) | Line::Script { argv: words, .. } => words.join(" "),
                    Line::Shell(line) => line.clone(),
                };
                let stderr = if end.stderr.is_empty() { end.text } else { end.stderr };
                let failure = Failure::Check { line, exit: Some(end.exit) };
                // The step itself has succeeded.
                return Some(Outcome { exit: Some(0), stderr, ..Outcome::from_failure(failure) });
            }
        }
        None
    }
}

fn succeed(text: String) -> Outcome {
    Outcome { output: Some(Content::Text(text)), exit: Some(0), ..Outcome::default() }
}
