//! The lines that steps print: whole ones, with the name of the step in front, or folded.
//!
//! In: pieces of what attempts print. Out: lines above the live ones, or events. `--logs tail` keeps the last lines of each
//! attempt until it is known how it ends.

use std::collections::VecDeque;

use swarmc_runtime::{Event, Failure, StepId};
use swarmc_view::documents::{RunLine, RunLineKind, TaskStream, encode};
use swarmc_view::{format_count, make_printable};

use super::Screen;
use crate::args::LogLines;

/// A line without an end is passed on in pieces of this many bytes.
pub(super) const MAX_LINE: usize = 16 * 1024;

/// How many lines are kept of an attempt.
const LINES: usize = 20;

/// The last lines that an attempt printed, on both streams.
#[derive(Default)]
pub(super) struct Tail {
    /// Each with whether it was on standard error.
    lines: VecDeque<(bool, Vec<u8>)>,
    /// How many lines came before them.
    pub(super) dropped: u64,
}

impl Tail {
    pub(super) fn push(&mut self, is_err: bool, line: &[u8]) {
        if self.lines.len() == LINES {
            self.lines.pop_front();
            self.dropped += 1;
        }
        self.lines.push_back((is_err, line.to_vec()));
    }

    pub(super) fn lines(&self) -> impl Iterator<Item = (bool, &[u8])> {
        self.lines.iter().map(|(is_err, line)| (*is_err, line.as_slice()))
    }
}

impl Screen {
    pub(super) fn write_output(&mut self, step: &StepId, attempt: u32, is_err: bool, bytes: &[u8]) {
        if self.show.log_lines() == LogLines::None {
            return;
        }
        let key = (step.clone(), attempt, is_err);
        let mut out = std::mem::take(&mut self.gathered);
        let mut begun = self.pending.remove(&key).unwrap_or_default();
        let mut rest = bytes;
        // A line that began in an earlier piece is put together. What follows it is not copied: a fast program costs that.
        while !begun.is_empty() && !rest.is_empty() {
            let room = rest.len().min(MAX_LINE - begun.len());
            let end = memchr::memchr(b'\n', &rest[..room]).map_or(room, |at| at + 1);
            begun.extend_from_slice(&rest[..end]);
            rest = &rest[end..];
            let left = self.take_lines(&mut out, (step, attempt, is_err), &begun).len();
            begun.drain(..begun.len() - left);
        }
        begun.extend_from_slice(self.take_lines(&mut out, (step, attempt, is_err), rest));
        if !begun.is_empty() {
            self.pending.insert(key, begun);
        }
        self.write_output_lines(&out);
        out.clear();
        self.gathered = out;
    }

    /// Takes the whole lines of what a step printed, and gives what is left: the beginning of a line, shorter than
    /// [`MAX_LINE`].
    fn take_lines<'b>(
        &mut self,
        out: &mut Vec<u8>,
        (step, attempt, is_err): (&StepId, u32, bool),
        mut bytes: &'b [u8],
    ) -> &'b [u8] {
        while let Some(at) = memchr::memchr(b'\n', bytes) {
            self.take_line(out, step, attempt, is_err, &bytes[..at]);
            bytes = &bytes[at + 1..];
        }
        // A program that never ends its line must neither fill the memory nor stay silent.
        while bytes.len() >= MAX_LINE {
            let (piece, later) = bytes.split_at(char_boundary(bytes, MAX_LINE));
            self.take_line(out, step, attempt, is_err, piece);
            bytes = later;
        }
        bytes
    }

    /// Passes on lines of tasks: to a program as events, else as progress.
    fn write_output_lines(&mut self, lines: &[u8]) {
        match self.show.json {
            true => self.out.write(lines),
            false => self.write_lines(lines),
        }
    }

    /// Makes one line of a task ready to be shown, or keeps it until it is known how the attempt ends.
    fn take_line(&mut self, out: &mut Vec<u8>, step: &StepId, attempt: u32, is_err: bool, line: &[u8]) {
        match self.show.log_lines() {
            LogLines::None => {}
            LogLines::Tail => self.tails.entry((step.clone(), attempt)).or_default().push(is_err, line),
            LogLines::Full => self.format_line(out, step, attempt, is_err, line),
        }
    }

    /// Shows the last lines of an attempt that has failed, and forgets those of any other.
    pub(super) fn end_tail(&mut self, step: &StepId, attempt: u32, failed: bool) {
        let Some(tail) = self.tails.remove(&(step.clone(), attempt)).filter(|_| failed) else { return };
        let mut out = Vec::new();
        if tail.dropped > 0 {
            let (label, count) = (self.ledger.label(step), format_count(tail.dropped, "line"));
            let note = format!("({count} before: swarmc logs {} {label})", self.ledger.run);
            self.format_line(&mut out, step, attempt, true, note.as_bytes());
        }
        tail.lines().for_each(|(is_err, line)| self.format_line(&mut out, step, attempt, is_err, line));
        self.write_lines(&out);
    }

    /// One line of a task, made ready for where it goes.
    fn format_line(&self, out: &mut Vec<u8>, step: &StepId, attempt: u32, is_err: bool, line: &[u8]) {
        if self.show.json {
            let line = RunLineKind::Output {
                step: step.name.to_string(),
                iteration: step.iteration,
                instance: step.instance,
                within: step.within.as_deref().map(str::to_owned),
                attempt,
                stream: if is_err { TaskStream::Stderr } else { TaskStream::Stdout },
                text: String::from_utf8_lossy(line).into_owned(),
            };
            out.extend_from_slice(encode(&RunLine::from(line)).as_bytes());
            out.push(b'\n');
            return;
        }
        let sink = &self.err;
        let width = self.label_width;
        let label = format!("{:<width$} │", self.ledger.label(step));
        let index = self.order.get(&*step.name).copied().unwrap_or(0);
        out.extend_from_slice(sink.paint.nth_colour(index, &label).as_bytes());
        out.push(b' ');
        match sink.terminal {
            true => {
                let text = String::from_utf8_lossy(line);
                let text = make_printable(&text);
                let shown = if is_err { sink.paint.dim(&text) } else { text.into_owned() };
                out.extend_from_slice(shown.as_bytes());
            }
            false => out.extend_from_slice(line),
        }
        out.push(b'\n');
    }

    /// Passes on the lines that an attempt did not end.
    pub(super) fn flush_attempt(&mut self, step: &StepId, attempt: u32) {
        for is_err in [false, true] {
            let Some(rest) = self.pending.remove(&(step.clone(), attempt, is_err)) else { continue };
            let mut out = Vec::new();
            self.take_line(&mut out, step, attempt, is_err, &rest);
            self.write_output_lines(&out);
        }
    }

    pub(super) fn flush_all(&mut self) {
        let mut open: Vec<(StepId, u32)> =
            self.pending.keys().map(|(step, attempt, _)| (step.clone(), *attempt)).collect();
        // The map has no order, and the same run must print the same text.
        open.sort();
        for (step, attempt) in open {
            self.flush_attempt(&step, attempt);
        }
    }
}

/// Whether an attempt has failed by itself: no person and no other step ended it.
pub(super) fn has_failed(event: &Event) -> bool {
    let Event::AttemptEnded { outcome, .. } = event else { return false };
    !matches!(outcome.failure, None | Some(Failure::Cancelled | Failure::Interrupted))
}

/// The last place up to `limit` that is not inside a character.
fn char_boundary(bytes: &[u8], limit: usize) -> usize {
    let inside = |at: usize| bytes.get(at).is_some_and(|byte| byte & 0xC0 == 0x80);
    // A character has at most four bytes, so one of these begins one.
    (limit.saturating_sub(3)..=limit).rev().find(|&at| !inside(at)).unwrap_or(limit)
}
