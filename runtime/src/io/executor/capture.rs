//! What becomes of the bytes of one attempt: shown live, logged in full, read for the answer, kept as a tail.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use swarmc_plan::LOG;

use super::Job;
use super::edits::{EditLog, locate_edit};
use super::log::Log;
use super::pool::Services;
use super::tool_log::ToolLog;
use super::turn::may_pass;
use super::turn_artifacts::{Logged, Transcript};
use crate::io::generated_files::is_generated;
use crate::io::input::{Input, SwarmInput};
use crate::io::process::{Sink, Tail};
use crate::io::stream::{Decoder, Item, Report, ToolResult};
use crate::types::activity::{ActivityReporter, Flow};
use crate::types::cancel::Cancel;
use crate::types::error::RunError;
use crate::types::event::{INLINE, Process, SESSION, StepId, escaped_length};
use crate::types::observer::Stream;
use crate::types::swarm::TurnId;

/// The limit of reported conversation ids in one attempt.
const SESSIONS: u32 = 8;

/// What an attempt put out so far.
pub(super) struct Capture<'a> {
    shown: Shown<'a>,
    out: Log,
    err: Log,
    /// What is told once the session of the turn is known, where its agent can go on with that.
    yielding: Option<Arc<Cancel>>,
    /// Reads the agent's format; none for commands.
    decoder: Option<Decoder>,
    /// The tail of stderr.
    pub stderr: Tail,
    /// The tail of both, in the order in which they came.
    seen: Tail,
    /// The bytes of output kept.
    max_output: usize,
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
        let out = match job.member_turn() {
            Some(turn) => layout.turn_log_path(step, attempt, turn, "out"),
            None => layout.log_path(step, attempt, Stream::Stdout),
        };
        let err = out.with_extension("err");
        let shown = Shown {
            services,
            step,
            attempt,
            is_member: job.member_turn().is_some(),
            edits: job.team_turn().map(|turn| (job.directory.to_path_buf(), turn.clone(), EditLog::default())),
            transcript: None,
            output: Tail::new(max_output),
            fresh_line: true,
            uses: ToolLog::new(services, job),
            used_tool: false,
            session: None,
        };
        Capture {
            shown,
            out: Log::new(out),
            err: Log::new(err),
            yielding: None,
            decoder: None,
            stderr: Tail::new(INLINE),
            seen: Tail::new(LOG),
            max_output,
            broken: None,
            pulse: services.activities.open(step, attempt),
            session: None,
            sessions: 0,
        }
    }

    /// What follows comes from a turn of an agent, in the format that `decoder` reads.
    pub(super) fn begin_turn(&mut self, decoder: Option<Decoder>) {
        self.yielding = None;
        self.shown.uses.begin_turn();
        if let Some((_, _, edits)) = &mut self.shown.edits {
            // Over ACP an agent says what it changes.
            edits.reads_arguments = decoder.is_some();
        }
        self.decoder = decoder;
        self.shown.output = Tail::new(self.max_output);
        self.stderr = Tail::new(INLINE);
        self.seen = Tail::new(LOG);
        self.report_reading();
    }

    /// An agent is told something: what comes from now on is its answer.
    pub(super) fn record_prompt(&mut self, prompt: &str) {
        self.shown.transcript.get_or_insert_default().record_prompt(prompt);
    }

    /// What was said. The turns are over: what comes now is of no agent.
    pub(super) fn take_transcript(&mut self) -> Option<Transcript> {
        self.shown.transcript.take()
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
        if self.shown.is_member
            || id.is_empty()
            || escaped_length(id) > SESSION
            || self.session.as_deref() == Some(id)
            || self.sessions == SESSIONS
        {
            return;
        }
        self.sessions += 1;
        self.session = Some(id.to_owned());
        let Shown { services, step, attempt, .. } = self.shown;
        services.report(Input::Session { step: step.clone(), attempt, session: id.to_owned() });
    }

    /// What was asked for has been sent, and nothing come yet.
    pub(super) fn report_reading(&self) {
        if self.pulse.mark_reading() {
            self.shown.send_flow(Flow::Reading);
        }
    }

    /// Something has come.
    fn report_writing(&self) {
        if self.pulse.mark_writing() {
            self.shown.send_flow(Flow::Writing);
        }
    }

    /// The turn can be interrupted once its session is known.
    pub(super) fn yield_with_session(&mut self, cancel: &Arc<Cancel>) {
        self.yielding = Some(Arc::clone(cancel));
    }

    /// Whether an agent has used a tool in this attempt.
    pub(super) fn used_tool(&self) -> bool {
        self.shown.used_tool
    }

    /// An agent used a tool.
    pub(super) fn note_tool(&mut self) {
        self.shown.used_tool = true;
    }

    /// A tool is called for an agent; the id under which its result is told.
    pub(super) fn record_call(&mut self, name: &str, arguments: &str) -> String {
        self.shown.uses.record_call(name, arguments)
    }

    /// Reports something that a person should know of the attempt.
    pub(super) fn report_notice(&mut self, text: &str) {
        self.shown.uses.report_notice(text);
    }

    /// What came of that, or why it failed.
    pub(super) fn record_result(&mut self, id: &str, outcome: Result<&str, &str>) {
        let failed = outcome.is_err();
        let (Ok(text) | Err(text)) = outcome;
        self.shown.uses.record_result(&ToolResult { id, failed, text });
    }

    /// A model uses a tool, or is given what came of it: `shown` is for those who watch, `logged` for the log.
    pub(super) fn log_tool(&mut self, shown: &str, logged: &str) {
        self.shown.used_tool = true;
        if self.broken.is_none() {
            let written = self.err.push(format!("{logged}\n").as_bytes());
            self.record_error(written);
        }
        self.shown.show_tool(shown);
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
        match item {
            Some(item) => {
                self.report_writing();
                self.shown.take_item(&item);
            }
            None if !self.shown.fresh_line => self.shown.show_bytes(b"\n"),
            None => {}
        }
    }

    /// What follows comes from a check: it is shown and logged, but no longer part of the output.
    pub(super) fn begin_check(&mut self) -> (Tail, Tail) {
        let output = std::mem::replace(&mut self.shown.output, Tail::new(INLINE));
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
        let mut seen = self.shown.output.clone().into_bytes();
        if seen.last().is_some_and(|&last| last != b'\n') {
            seen.push(b'\n');
        }
        seen.extend(self.stderr.clone().into_bytes());
        seen
    }

    /// Ends the agent's stream.
    pub(super) fn end_stream(&mut self) -> Option<Report> {
        let decoder = self.decoder.take()?;
        let report = decoder.finish(&mut |item| self.shown.take_item(&item));
        self.show_item(None);
        self.report_noted_session();
        Some(report)
    }

    /// Reports the conversation that the stream named last, now that nothing reads the stream.
    fn report_noted_session(&mut self) {
        if let Some(id) = self.shown.session.take() {
            self.report_session(&id);
        }
    }

    /// Closes the logs; true when the file writer has some to write.
    pub(super) fn finish(self) -> Result<bool, RunError> {
        let out = self.out.finish(&self.shown.services.file_writer);
        let err = self.err.finish(&self.shown.services.file_writer);
        let uses = self.shown.uses.finish();
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
        // The log gets the bytes before the decoder, which may make nothing of them.
        self.log_output(bytes);
        match &mut self.decoder {
            None => {
                self.shown.take_item(&Item::Output(bytes));
                self.seen.push(bytes);
                false
            }
            Some(decoder) => {
                decoder.feed(bytes, &mut |item| self.shown.take_item(&item));
                let reported = decoder.reported();
                self.report_noted_session();
                reported
            }
        }
    }

    fn report_waiting(&mut self, problem: &str, running: usize) {
        // Once for a run, however many attempts wait for room.
        if !self.shown.services.is_crowded.swap(true, Ordering::Relaxed) {
            self.shown.services.observer_handle.send_notice(format!(
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
        self.shown.send_output(Stream::Stderr, bytes);
        self.stderr.push(bytes);
        self.seen.push(bytes);
    }

    fn report_alive(&mut self, process: Process) {
        let Shown { services, step, attempt, .. } = self.shown;
        services.report(Input::Lives { step: step.clone(), attempt, process });
    }

    fn due(&self) -> Option<Instant> {
        [self.out.due(), self.err.due(), self.shown.uses.due()].into_iter().flatten().min()
    }

    fn tick(&mut self, now: Instant) {
        let written = self.out.tick(now).and(self.err.tick(now));
        self.record_error(written);
        self.shown.uses.tick(now);
    }
}

/// What an attempt shows while it goes on, and what of that is kept. Apart from the rest, as a decoder that is being fed
/// passes its items on.
struct Shown<'a> {
    services: &'a Services,
    step: &'a StepId,
    attempt: u32,
    /// Whether it is a turn of a swarm: the events of the swarm tell of it, and its bytes are in the logs alone.
    is_member: bool,
    /// Where the agent of a team works, in which turn, and its edits.
    edits: Option<(PathBuf, TurnId, EditLog)>,
    /// What was said, while a turn of an agent goes on.
    transcript: Option<Transcript>,
    /// The output, where the stream itself holds it.
    output: Tail,
    /// Whether what was shown last ended its line.
    fresh_line: bool,
    /// The tools that it used.
    uses: ToolLog<'a>,
    /// Whether the agent used a tool.
    used_tool: bool,
    /// The id of a conversation that the stream named, and that is not reported yet.
    session: Option<String>,
}

impl Shown<'_> {
    /// Takes something that an agent told, or that a command put out.
    fn take_item(&mut self, item: &Item<'_>) {
        let is_new = self.uses.record_item(item);
        self.report_edit(item);
        match item {
            Item::Output(bytes) => {
                self.output.push(bytes);
                self.show_bytes(bytes);
            }
            Item::Said(text) => self.show_bytes(text.as_bytes()),
            Item::Tool(used) => {
                self.used_tool = true;
                // An agent may tell of one use several times.
                if is_new {
                    self.show_tool(used.name);
                }
            }
            Item::Session(id) => self.session = Some((*id).to_owned()),
            Item::Came(_)
            | Item::Edited(_)
            | Item::Denied(..)
            | Item::Usage(_)
            | Item::Reported
            | Item::Continued
            | Item::Failed(_) => {}
        }
    }

    /// Reports a file that the agent has changed, where others of its team are to hear of it.
    fn report_edit(&mut self, item: &Item<'_>) {
        let Some((folder, turn, edits)) = &mut self.edits else { return };
        let Some(mut touch) = edits.record_item(item).and_then(|edit| locate_edit(&edit, folder)) else { return };
        if is_generated(folder, &touch.path) {
            return;
        }
        touch.diff = self.services.tools.beginning(&touch.diff, touch.diff.len());
        let word = Box::new(SwarmInput::Touched(turn.clone(), touch));
        self.services.report(Input::Swarm { step: self.step.clone(), attempt: self.attempt, word });
    }

    /// Shows the use of a tool on a line of its own.
    fn show_tool(&mut self, words: &str) {
        let break_line = if self.fresh_line { "" } else { "\n" };
        self.show_bytes(format!("{break_line}[{words}]\n").as_bytes());
    }

    fn show_bytes(&mut self, bytes: &[u8]) {
        if let Some(transcript) = &mut self.transcript {
            transcript.push(bytes);
        }
        self.send_output(Stream::Stdout, bytes);
        self.fresh_line = bytes.last().map_or(self.fresh_line, |&last| last == b'\n');
    }

    fn send_output(&self, stream: Stream, bytes: &[u8]) {
        if !self.is_member {
            self.services.observer_handle.send_output(self.step, self.attempt, stream, bytes);
        }
    }

    fn send_flow(&self, flow: Flow) {
        self.services.observer_handle.send_flow(self.step, self.attempt, flow);
    }
}
