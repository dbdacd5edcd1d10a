//! What becomes of the bytes of one attempt: shown live, logged in full, read for the answer, kept as a tail.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use swarmc_plan::LOG;

use super::Job;
use super::log::Log;
use super::pool::Services;
use super::tool_log::ToolLog;
use super::turn::may_pass;
use super::turn_artifacts::{Logged, Transcript};
use crate::io::input::Input;
use crate::io::process::{Sink, Tail};
use crate::io::stream::{Decoder, Item, Report, ToolResult};
use crate::types::activity::{ActivityReporter, Flow};
use crate::types::cancel::Cancel;
use crate::types::error::RunError;
use crate::types::event::{INLINE, Process, SESSION, StepId, escaped_length};
use crate::types::observer::Stream;

/// The limit of reported conversation ids in one attempt.
const SESSIONS: u32 = 8;

/// What an attempt put out so far.
pub(super) struct Capture<'a> {
    services: &'a Services,
    step: &'a StepId,
    attempt: u32,
    /// Whether it is a turn of a swarm: the events of the swarm tell of it, and its bytes are in the logs alone.
    is_member: bool,
    out: Log,
    err: Log,
    /// What is told once the session of the turn is known, where its agent can go on with that.
    yielding: Option<Arc<Cancel>>,
    /// Reads the agent's format; none for commands.
    decoder: Option<Decoder>,
    /// What was said, while a turn of an agent goes on.
    transcript: Option<Transcript>,
    /// The output, where the stream itself holds it.
    pub output: Tail,
    /// The tail of stderr.
    pub stderr: Tail,
    /// The tail of both, in the order in which they came.
    seen: Tail,
    /// The bytes of output kept.
    max_output: usize,
    /// The tools that it used.
    uses: ToolLog<'a>,
    /// Whether the agent used a tool.
    used_tool: bool,
    /// Whether what was shown last ended its line.
    fresh_line: bool,
    /// Why the run cannot go on.
    broken: Option<RunError>,
    /// What others see of it while it goes on.
    pulse: ActivityReporter,
    /// The id of its conversation that was reported last.
    session: Option<String>,
    /// How many were.
    sessions: u32,
}

impl<'a> Capture<'a> {
    pub(super) fn new(services: &'a Services, job: &'a Job) -> Capture<'a> {
        let (step, attempt, max_output) = (&job.step, job.attempt, job.max_output);
        let layout = &services.layout;
        let path = |stream, extension| match job.member_turn() {
            Some(turn) => layout.turn_log_path(step, attempt, turn, extension),
            None => layout.log_path(step, attempt, stream),
        };
        let log = |stream, extension| Log::new(path(stream, extension));
        Capture {
            services,
            step,
            attempt,
            is_member: job.member_turn().is_some(),
            out: log(Stream::Stdout, "out"),
            err: log(Stream::Stderr, "err"),
            yielding: None,
            decoder: None,
            transcript: None,
            output: Tail::new(max_output),
            stderr: Tail::new(INLINE),
            seen: Tail::new(LOG),
            max_output,
            uses: ToolLog::new(services, job),
            used_tool: false,
            fresh_line: true,
            broken: None,
            pulse: services.activities.open(step, attempt),
            session: None,
            sessions: 0,
        }
    }

    /// What follows comes from a turn of an agent, in the format that `decoder` reads.
    pub(super) fn begin_turn(&mut self, decoder: Option<Decoder>) {
        self.yielding = None;
        self.uses.begin_turn();
        self.decoder = decoder;
        self.output = Tail::new(self.max_output);
        self.stderr = Tail::new(INLINE);
        self.seen = Tail::new(LOG);
        self.report_reading();
    }

    /// An agent is told something: what comes from now on is its answer.
    pub(super) fn record_prompt(&mut self, prompt: &str) {
        self.transcript.get_or_insert_default().record_prompt(prompt);
    }

    /// What was said. The turns are over: what comes now is of no agent.
    pub(super) fn take_transcript(&mut self) -> Option<Transcript> {
        self.transcript.take()
    }

    /// What was logged.
    pub(super) fn list_logs(&self) -> Vec<Logged<'_>> {
        [self.out.log_content(), self.err.log_content()].into_iter().flatten().collect()
    }

    /// A provider says under which id it keeps the conversation. Reported once, however often the provider repeats it.
    pub(super) fn report_session(&mut self, id: &str) {
        if may_pass(id)
            && let Some(cancel) = self.yielding.take()
        {
            cancel.begin_to_yield();
        }
        if self.is_member
            || id.is_empty()
            || escaped_length(id) > SESSION
            || self.session.as_deref() == Some(id)
            || self.sessions == SESSIONS
        {
            return;
        }
        self.sessions += 1;
        self.session = Some(id.to_owned());
        let (step, attempt) = (self.step.clone(), self.attempt);
        self.services.report(Input::Session { step, attempt, session: id.to_owned() });
    }

    /// What was asked for has been sent, and nothing come yet.
    pub(super) fn report_reading(&self) {
        if self.pulse.mark_reading() {
            self.services.observer_handle.send_flow(self.step, self.attempt, Flow::Reading);
        }
    }

    /// Something has come.
    fn report_writing(&self) {
        if self.pulse.mark_writing() {
            self.services.observer_handle.send_flow(self.step, self.attempt, Flow::Writing);
        }
    }

    /// The turn can be interrupted once its session is known.
    pub(super) fn yield_with_session(&mut self, cancel: &Arc<Cancel>) {
        self.yielding = Some(Arc::clone(cancel));
    }

    /// Whether an agent has used a tool in this attempt.
    pub(super) fn used_tool(&self) -> bool {
        self.used_tool
    }

    /// An agent used a tool.
    pub(super) fn note_tool(&mut self) {
        self.used_tool = true;
    }

    /// A tool is called for an agent; the id under which its result is told.
    pub(super) fn record_call(&mut self, name: &str, arguments: &str) -> String {
        self.uses.record_call(name, arguments)
    }

    /// What came of that, or why it failed.
    pub(super) fn record_result(&mut self, id: &str, outcome: Result<&str, &str>) {
        let failed = outcome.is_err();
        let (Ok(text) | Err(text)) = outcome;
        self.uses.record_result(&ToolResult { id, failed, text });
    }

    /// A model uses a tool, or is given what came of it: `shown` is for those who watch, `logged` for the log.
    pub(super) fn log_tool(&mut self, shown: &str, logged: &str) {
        self.used_tool = true;
        if self.broken.is_none() {
            let written = self.err.push(format!("{logged}\n").as_bytes());
            self.record_error(written);
        }
        let mut show = Show {
            services: self.services,
            step: self.step,
            attempt: self.attempt,
            is_member: self.is_member,
            transcript: &mut self.transcript,
        };
        let break_line = if self.fresh_line { "" } else { "\n" };
        show.show_bytes(format!("{break_line}[{shown}]\n").as_bytes());
        self.fresh_line = true;
    }

    /// Writes down bytes of standard output that are read elsewhere.
    pub(super) fn log_output(&mut self, bytes: &[u8]) {
        self.report_writing();
        if self.broken.is_none() {
            let written = self.out.push(bytes);
            self.record_error(written);
        }
    }

    /// Shows something that an agent told; without, that it tells nothing more.
    pub(super) fn show_item(&mut self, item: Option<Item<'_>>) {
        if item.is_some() {
            self.report_writing();
        }
        let mut show = Show {
            services: self.services,
            step: self.step,
            attempt: self.attempt,
            is_member: self.is_member,
            transcript: &mut self.transcript,
        };
        match item {
            Some(item) => {
                self.used_tool |= matches!(item, Item::Tool(_));
                let is_new = self.uses.record_item(&item);
                show.show_item(&item, is_new, (&mut self.output, &mut self.fresh_line));
            }
            None if !self.fresh_line => {
                show.show_bytes(b"\n");
                self.fresh_line = true;
            }
            None => {}
        }
    }

    /// What follows comes from a check: it is shown and logged, but no longer part of the output.
    pub(super) fn begin_check(&mut self) -> (Tail, Tail) {
        let output = std::mem::replace(&mut self.output, Tail::new(INLINE));
        let stderr = std::mem::replace(&mut self.stderr, Tail::new(INLINE));
        self.seen = Tail::new(LOG);
        (output, stderr)
    }

    /// The end of what a command wrote to both streams, in the order in which it came.
    pub(super) fn last_of_both(&self) -> Vec<u8> {
        self.seen.clone().into_bytes()
    }

    /// What a person would have seen of a command: both streams in the order in which they came, or, where that was
    /// too much, the output and then the tail of stderr.
    pub(super) fn combined_output(&self) -> Vec<u8> {
        if !self.seen.is_cut() {
            return self.seen.clone().into_bytes();
        }
        let mut seen = self.output.clone().into_bytes();
        if seen.last().is_some_and(|&last| last != b'\n') {
            seen.push(b'\n');
        }
        seen.extend(self.stderr.clone().into_bytes());
        seen
    }

    /// Ends the agent's stream.
    pub(super) fn end_stream(&mut self) -> Option<Report> {
        let decoder = self.decoder.take()?;
        let mut show = Show {
            services: self.services,
            step: self.step,
            attempt: self.attempt,
            is_member: self.is_member,
            transcript: &mut self.transcript,
        };
        let mut session = None;
        let report = decoder.finish(&mut |item| {
            self.used_tool |= matches!(item, Item::Tool(_));
            note_session(&item, &mut session);
            let is_new = self.uses.record_item(&item);
            show.show_item(&item, is_new, (&mut self.output, &mut self.fresh_line));
        });
        self.show_item(None);
        session.into_iter().for_each(|id| self.report_session(&id));
        Some(report)
    }

    /// Closes the logs; true when the file writer has some to write.
    pub(super) fn finish(self) -> Result<bool, RunError> {
        let out = self.out.finish(&self.services.file_writer);
        let err = self.err.finish(&self.services.file_writer);
        let uses = self.uses.finish();
        match self.broken {
            Some(error) => Err(error),
            None => Ok(uses? || out || err),
        }
    }

    fn record_error(&mut self, outcome: Result<(), RunError>) {
        if let Err(error) = outcome
            && self.broken.is_none()
        {
            self.broken = Some(error);
        }
    }
}

impl Sink for Capture<'_> {
    fn stdout(&mut self, bytes: &[u8]) -> bool {
        self.log_output(bytes);
        let mut show = Show {
            services: self.services,
            step: self.step,
            attempt: self.attempt,
            is_member: self.is_member,
            transcript: &mut self.transcript,
        };
        match &mut self.decoder {
            None => {
                show.show_bytes(bytes);
                self.output.push(bytes);
                self.seen.push(bytes);
                self.fresh_line = bytes.last().is_none_or(|&last| last == b'\n');
                false
            }
            Some(decoder) => {
                let mut session = None;
                decoder.feed(bytes, &mut |item| {
                    self.used_tool |= matches!(item, Item::Tool(_));
                    note_session(&item, &mut session);
                    let is_new = self.uses.record_item(&item);
                    show.show_item(&item, is_new, (&mut self.output, &mut self.fresh_line));
                });
                let reported = decoder.reported();
                session.into_iter().for_each(|id| self.report_session(&id));
                reported
            }
        }
    }

    fn report_waiting(&mut self, problem: &str, running: usize) {
        if !self.services.is_crowded.swap(true, Ordering::Relaxed) {
            self.services.observer_handle.send_notice(format!(
                "the system has no room for more processes, and {running} of the run go on meanwhile: {problem}"
            ));
        }
    }

    fn gives_up(&mut self, problem: &str) {
        self.broken.get_or_insert(RunError::Request(format!("the system has no room for a process: {problem}")));
    }

    fn stderr(&mut self, bytes: &[u8]) {
        self.report_writing();
        if self.broken.is_none() {
            let written = self.err.push(bytes);
            self.record_error(written);
        }
        if !self.is_member {
            self.services.observer_handle.send_output(self.step, self.attempt, Stream::Stderr, bytes);
        }
        self.stderr.push(bytes);
        self.seen.push(bytes);
    }

    fn report_alive(&mut self, process: Process) {
        self.services.report(Input::Lives { step: self.step.clone(), attempt: self.attempt, process });
    }

    fn due(&self) -> Option<Instant> {
        [self.out.due(), self.err.due(), self.uses.due()].into_iter().flatten().min()
    }

    fn tick(&mut self, now: Instant) {
        let written = self.out.tick(now).and(self.err.tick(now));
        self.record_error(written);
        self.uses.tick(now);
    }
}

/// Keeps the id of a conversation that an item tells.
fn note_session(item: &Item<'_>, session: &mut Option<String>) {
    if let Item::Session(id) = item {
        *session = Some((*id).to_owned());
    }
}

/// Shows what an agent says.
struct Show<'a> {
    services: &'a Services,
    step: &'a StepId,
    attempt: u32,
    is_member: bool,
    transcript: &'a mut Option<Transcript>,
}

impl Show<'_> {
    /// `is_new` says of a tool whether its use was not told before.
    fn show_item(&mut self, item: &Item<'_>, is_new: bool, (output, fresh_line): (&mut Tail, &mut bool)) {
        match item {
            Item::Output(bytes) => {
                output.push(bytes);
                self.show_bytes(bytes);
                *fresh_line = bytes.last().is_none_or(|&last| last == b'\n');
            }
            Item::Said(text) => {
                self.show_bytes(text.as_bytes());
                *fresh_line = text.ends_with('\n');
            }
            Item::Tool(used) if is_new => {
                let (name, break_line) = (used.name, if *fresh_line { "" } else { "\n" });
                self.show_bytes(format!("{break_line}[{name}]\n").as_bytes());
                *fresh_line = true;
            }
            Item::Tool(_)
            | Item::Came(_)
            | Item::Denied(..)
            | Item::Session(_)
            | Item::Usage(_)
            | Item::Reported
            | Item::Continued
            | Item::Failed(_) => {}
        }
    }

    fn show_bytes(&mut self, bytes: &[u8]) {
        if let Some(transcript) = &mut self.transcript {
            transcript.push(bytes);
        }
        if !self.is_member {
            self.services.observer_handle.send_output(self.step, self.attempt, Stream::Stdout, bytes);
        }
    }
}
