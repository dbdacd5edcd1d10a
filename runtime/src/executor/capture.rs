//! What becomes of the bytes of one attempt: shown live, logged in full, read for the answer, kept as a tail.

use std::time::Instant;

use super::log::Log;
use super::pool::Services;
use super::process::Sink;
use super::tail::Tail;
use crate::error::RunError;
use crate::event::{INLINE, Process, StepId};
use crate::observer::Stream;
use crate::run::Input;
use crate::stream::{Decoder, Item, Report};

/// What an attempt put out so far.
pub(super) struct Capture<'a> {
    services: &'a Services,
    step: &'a StepId,
    attempt: u32,
    out: Log,
    err: Log,
    /// Reads the agent's format; none for commands.
    decoder: Option<Decoder>,
    /// The output, as far as it stands in the stream itself.
    pub output: Tail,
    /// The tail of stderr.
    pub stderr: Tail,
    /// The bytes of output kept.
    max_output: usize,
    /// Whether the agent used a tool.
    used_tool: bool,
    /// Whether what was shown last ended its line.
    fresh_line: bool,
    /// Why the run cannot go on.
    broken: Option<RunError>,
}

impl<'a> Capture<'a> {
    pub(super) fn new(services: &'a Services, step: &'a StepId, attempt: u32, max_output: usize) -> Capture<'a> {
        let log = |stream| Log::new(services.layout.log(step, attempt, stream));
        Capture {
            services,
            step,
            attempt,
            out: log(Stream::Stdout),
            err: log(Stream::Stderr),
            decoder: None,
            output: Tail::new(max_output),
            stderr: Tail::new(INLINE),
            max_output,
            used_tool: false,
            fresh_line: true,
            broken: None,
        }
    }

    /// What follows comes from a turn of an agent, in the format that `decoder` reads.
    pub(super) fn begin_turn(&mut self, decoder: Option<Decoder>) {
        self.decoder = decoder;
        self.output = Tail::new(self.max_output);
        self.stderr = Tail::new(INLINE);
    }

    /// Whether an agent has used a tool in this attempt.
    pub(super) fn used_tool(&self) -> bool {
        self.used_tool
    }

    /// An agent used a tool.
    pub(super) fn note_tool(&mut self) {
        self.used_tool = true;
    }

    /// A model uses a tool, or is given what came of it: `shown` is for those who watch, `logged` for the log.
    pub(super) fn tool(&mut self, shown: &str, logged: &str) {
        self.used_tool = true;
        if self.broken.is_none() {
            let written = self.err.push(format!("{logged}\n").as_bytes());
            self.keep(written);
        }
        let mut show = Show { services: self.services, step: self.step, attempt: self.attempt };
        let break_line = if self.fresh_line { "" } else { "\n" };
        show.bytes(format!("{break_line}[{shown}]\n").as_bytes());
        self.fresh_line = true;
    }

    /// Writes down bytes of standard output that are read elsewhere.
    pub(super) fn log(&mut self, bytes: &[u8]) {
        if self.broken.is_none() {
            let written = self.out.push(bytes);
            self.keep(written);
        }
    }

    /// Shows something that an agent told; without, that it tells nothing more.
    pub(super) fn tell(&mut self, item: Option<Item<'_>>) {
        let mut show = Show { services: self.services, step: self.step, attempt: self.attempt };
        match item {
            Some(item) => {
                self.used_tool |= matches!(item, Item::Tool(_));
                show.item(&item, &mut self.output, &mut self.fresh_line);
            }
            None if !self.fresh_line => {
                show.bytes(b"\n");
                self.fresh_line = true;
            }
            None => {}
        }
    }

    /// What follows comes from a check: it is shown and logged, but no longer part of the output.
    pub(super) fn begin_check(&mut self) -> (Tail, Tail) {
        let output = std::mem::replace(&mut self.output, Tail::new(INLINE));
        let stderr = std::mem::replace(&mut self.stderr, Tail::new(INLINE));
        (output, stderr)
    }

    /// Ends the agent's stream.
    pub(super) fn end_stream(&mut self) -> Option<Report> {
        let decoder = self.decoder.take()?;
        let mut show = Show { services: self.services, step: self.step, attempt: self.attempt };
        let report = decoder.finish(&mut |item| {
            self.used_tool |= matches!(item, Item::Tool(_));
            show.item(&item, &mut self.output, &mut self.fresh_line);
        });
        self.tell(None);
        Some(report)
    }

    /// Closes the logs; true when the scribe has some to write.
    pub(super) fn finish(self) -> Result<bool, RunError> {
        let out = self.out.finish(&self.services.scribe);
        let err = self.err.finish(&self.services.scribe);
        self.broken.map_or(Ok(out || err), Err)
    }

    fn keep(&mut self, outcome: Result<(), RunError>) {
        if let Err(error) = outcome
            && self.broken.is_none()
        {
            self.broken = Some(error);
        }
    }
}

impl Sink for Capture<'_> {
    fn stdout(&mut self, bytes: &[u8]) -> bool {
        self.log(bytes);
        let mut show = Show { services: self.services, step: self.step, attempt: self.attempt };
        match &mut self.decoder {
            None => {
                show.bytes(bytes);
                self.output.push(bytes);
                self.fresh_line = bytes.last().is_none_or(|&last| last == b'\n');
                false
            }
            Some(decoder) => {
                decoder.feed(bytes, &mut |item| {
                    self.used_tool |= matches!(item, Item::Tool(_));
                    show.item(&item, &mut self.output, &mut self.fresh_line);
                });
                decoder.reported()
            }
        }
    }

    fn stderr(&mut self, bytes: &[u8]) {
        if self.broken.is_none() {
            let written = self.err.push(bytes);
            self.keep(written);
        }
        self.services.viewer.output(self.step, self.attempt, Stream::Stderr, bytes);
        self.stderr.push(bytes);
    }

    fn lives(&mut self, process: Process) {
        self.services.report(Input::Lives { step: self.step.clone(), attempt: self.attempt, process });
    }

    fn due(&self) -> Option<Instant> {
        [self.out.due(), self.err.due()].into_iter().flatten().min()
    }

    fn tick(&mut self, now: Instant) {
        let written = self.out.tick(now).and(self.err.tick(now));
        self.keep(written);
    }
}

/// Shows what an agent says.
struct Show<'a> {
    services: &'a Services,
    step: &'a StepId,
    attempt: u32,
}

impl Show<'_> {
    fn item(&mut self, item: &Item<'_>, output: &mut Tail, fresh_line: &mut bool) {
        match item {
            Item::Output(bytes) => {
                output.push(bytes);
                self.bytes(bytes);
                *fresh_line = bytes.last().is_none_or(|&last| last == b'\n');
            }
            Item::Said(text) => {
                self.bytes(text.as_bytes());
                *fresh_line = text.ends_with('\n');
            }
            Item::Tool(name) => {
                let break_line = if *fresh_line { "" } else { "\n" };
                self.bytes(format!("{break_line}[{name}]\n").as_bytes());
                *fresh_line = true;
            }
            Item::Session(_) | Item::Usage(_) | Item::Reported | Item::Continued | Item::Failed(_) => {}
        }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.services.viewer.output(self.step, self.attempt, Stream::Stdout, bytes);
    }
}
