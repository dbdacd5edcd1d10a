//! A run as it happens: task lines with a prefix on standard output, progress on standard error, or JSON lines.
//!
//! In: what the runtime's observer is told. Out: whole lines only, whatever is printed at once. On a terminal a few
//! live lines stand below them: what runs, for how long, and how much is done. A stream that cannot be written any
//! more (`| head`) is given up, and the run goes on.

use std::collections::HashMap;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::json;
use swarmc_plan::Pipeline;
use swarmc_runtime::{Event, Observer, Record, Status, StepId};

use crate::args::Show;
use crate::ledger::{Ledger, Row, RowState};
use crate::live::Live;
use crate::terminal::{Paint, Stream, printable};
use crate::units::duration;

/// A line without an end is passed on in pieces of this many bytes.
const MAX_LINE: usize = 16 * 1024;

/// Names longer than this are not lined up.
const MAX_LABEL: usize = 24;

/// How often the live lines are drawn anew.
const FRAME: Duration = Duration::from_millis(100);

/// The display of one run; clones are the same.
#[derive(Clone)]
pub(crate) struct Display {
    shared: Arc<Mutex<Screen>>,
    done: Arc<AtomicBool>,
    /// How often a person asked to end the run. Apart from the screen, which may be stuck at a slow terminal.
    asked: Arc<AtomicU8>,
    live: bool,
}

struct Screen {
    show: Show,
    ledger: Ledger,
    out: Sink,
    err: Sink,
    /// Where steps stand in the plan: their colour.
    order: HashMap<String, usize>,
    label_width: usize,
    pending: HashMap<(StepId, u32, bool), Vec<u8>>,
    live: Option<Live>,
    asked: Arc<AtomicU8>,
}

/// A stream that may break.
struct Sink {
    writer: Box<dyn Write + Send>,
    terminal: bool,
    paint: Paint,
    broken: bool,
}

impl Display {
    /// A display for a run of `pipeline`, of which `ledger` may hold an earlier part.
    pub(crate) fn new(pipeline: &Pipeline, ledger: Ledger, show: Show) -> Display {
        let live = (!show.quiet && !show.json && Stream::Err.is_live()).then(Live::new);
        let screen = Screen::new(pipeline, ledger, show, [Sink::new(Stream::Out), Sink::new(Stream::Err)], live);
        Display {
            live: screen.live.is_some(),
            done: Arc::default(),
            asked: screen.asked.clone(),
            shared: Arc::new(Mutex::new(screen)),
        }
    }

    /// The observer to hand to the runtime.
    pub(crate) fn observer(&self) -> Box<dyn Observer> {
        Box::new(self.clone())
    }

    /// Draws the live lines ten times a second, until [`Display::finish`].
    pub(crate) fn animate(&self) -> Option<JoinHandle<()>> {
        if !self.live {
            return None;
        }
        let display = self.clone();
        Some(std::thread::spawn(move || {
            while !display.done.load(Ordering::Relaxed) {
                display.screen().frame();
                std::thread::park_timeout(FRAME);
            }
        }))
    }

    /// Says that a person asked for the end, once or more.
    pub(crate) fn ask(&self, times: u8) {
        self.asked.store(times, Ordering::Relaxed);
        if !self.live {
            crate::terminal::eprint(format!("{}\n", asked(times)));
        }
    }

    /// Passes on what is left, takes the live lines away, and gives back what became of the steps.
    pub(crate) fn finish(&self, animation: Option<JoinHandle<()>>) -> Ledger {
        self.done.store(true, Ordering::Relaxed);
        if let Some(animation) = animation {
            animation.thread().unpark();
            // The thread has nothing to say; if it panicked, the hook has said so.
            let _ = animation.join();
        }
        let mut screen = self.screen();
        screen.flush_all();
        screen.live_off();
        screen.live = None;
        std::mem::take(&mut screen.ledger)
    }

    fn screen(&self) -> MutexGuard<'_, Screen> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Display {
    fn recorded(&mut self, record: &Record) {
        self.screen().recorded(record);
    }

    fn output(&mut self, step: &StepId, attempt: u32, stream: swarmc_runtime::Stream, bytes: &[u8]) {
        self.screen().output(step, attempt, stream == swarmc_runtime::Stream::Stderr, bytes);
    }

    fn notice(&mut self, text: &str) {
        self.screen().notice(text);
    }
}

impl Screen {
    fn new(pipeline: &Pipeline, ledger: Ledger, show: Show, [out, err]: [Sink; 2], live: Option<Live>) -> Screen {
        let suffix = if ledger.instances > 1 { ledger.instances.to_string().len() + 1 } else { 0 };
        let widest = pipeline.steps.iter().map(|step| step.name.len()).max().unwrap_or(0);
        let order = pipeline.steps.iter().enumerate().map(|(index, step)| (step.name.clone(), index)).collect();
        Screen {
            show,
            ledger,
            out,
            err,
            order,
            label_width: (widest + suffix).min(MAX_LABEL),
            pending: HashMap::new(),
            live,
            asked: Arc::default(),
        }
    }

    fn recorded(&mut self, record: &Record) {
        if self.show.json {
            let mut value = json!({ "version": 1, "type": "record" });
            if let (Ok(serde_json::Value::Object(fields)), Some(object)) =
                (serde_json::to_value(record), value.as_object_mut())
            {
                object.extend(fields);
            }
            self.json(&value);
        }
        if let Event::AttemptEnded { step, attempt, .. } = &record.event {
            self.flush(step, *attempt);
        }
        let row = self.ledger.apply(record).cloned();
        if self.show.json || self.show.quiet {
            return;
        }
        let words = match (&record.event, &row) {
            (Event::RunStarted { run, pipeline, task, .. }, _) => Some(match task {
                Some(task) => format!("run {run}: task {task} of pipeline {pipeline}"),
                None => format!("run {run}: pipeline {pipeline}"),
            }),
            (Event::RunResumed, _) => {
                let counts = self.ledger.counts();
                let settled = counts.succeeded + counts.failed + counts.skipped;
                Some(format!("run {}: resumed, {settled} of {} steps had settled", self.ledger.run, self.ledger.total))
            }
            (Event::RoundJudged { .. }, _) | (_, None) => None,
            (_, Some(row)) => self.words(row),
        };
        if let Some(words) = words {
            self.lines(Stream::Err, (words + "\n").as_bytes());
        }
    }

    /// What there is to say of a row that changed. What runs is seen in the live lines.
    fn words(&self, row: &Row) -> Option<String> {
        let name = self.ledger.label(&row.step);
        let paint = self.err.paint;
        let round = if self.ledger.rounds > 1 { format!(" in round {}", row.step.iteration) } else { String::new() };
        let took = duration(row.elapsed(row.ended_ms));
        let reason = || printable(row.reason().lines().next().unwrap_or_default()).into_owned();
        Some(match row.state {
            RowState::Running if self.live.is_some() => return None,
            RowState::Running if row.attempt > 1 => format!("  {name}: attempt {} started{round}", row.attempt),
            RowState::Running => format!("  {name}: started{round}"),
            RowState::Waiting => {
                let attempt = format!("attempt {} of {} failed", row.attempt, row.attempts);
                format!("{} {name}: {attempt}: {}", paint.yellow("!"), reason())
            }
            RowState::Cancelled => format!("{} {name}: cancelled after {took}", paint.yellow("-")),
            RowState::Ended(Status::Succeeded) => format!("{} {name}: succeeded in {took}{round}", paint.green("✓")),
            RowState::Ended(Status::Failed) => {
                format!("{} {name}: failed after {took}{round}: {}", paint.red("✗"), reason())
            }
            RowState::Ended(Status::Skipped) => format!("{} {name}: skipped{round}: {}", paint.dim("-"), reason()),
        })
    }

    fn output(&mut self, step: &StepId, attempt: u32, is_err: bool, bytes: &[u8]) {
        if self.show.quiet {
            return;
        }
        let key = (step.clone(), attempt, is_err);
        let mut buffer = self.pending.remove(&key).unwrap_or_default();
        buffer.extend_from_slice(bytes);
        let mut out = Vec::new();
        let mut rest = &buffer[..];
        while let Some(at) = memchr::memchr(b'\n', rest) {
            self.line(&mut out, step, attempt, is_err, &rest[..at]);
            rest = &rest[at + 1..];
        }
        while rest.len() >= MAX_LINE {
            let (piece, later) = rest.split_at(boundary(rest, MAX_LINE));
            self.line(&mut out, step, attempt, is_err, piece);
            rest = later;
        }
        if !rest.is_empty() {
            self.pending.insert(key, rest.to_vec());
        }
        self.lines(target(is_err, self.show.json), &out);
    }

    /// One line of a task, made ready for where it goes.
    fn line(&self, out: &mut Vec<u8>, step: &StepId, attempt: u32, is_err: bool, line: &[u8]) {
        if self.show.json {
            let value = json!({
                "version": 1, "type": "output", "step": &*step.name, "iteration": step.iteration,
                "instance": step.instance, "attempt": attempt, "stream": if is_err { "stderr" } else { "stdout" },
                "text": String::from_utf8_lossy(line),
            });
            out.extend_from_slice(value.to_string().as_bytes());
            out.push(b'\n');
            return;
        }
        let sink = if is_err { &self.err } else { &self.out };
        let width = self.label_width;
        let label = format!("{:<width$} │", self.ledger.label(step));
        let index = self.order.get(&*step.name).copied().unwrap_or(0);
        out.extend_from_slice(sink.paint.nth(index, &label).as_bytes());
        out.push(b' ');
        match sink.terminal {
            true => {
                let text = String::from_utf8_lossy(line);
                let text = printable(&text);
                let shown = if is_err { sink.paint.dim(&text) } else { text.into_owned() };
                out.extend_from_slice(shown.as_bytes());
            }
            false => out.extend_from_slice(line),
        }
        out.push(b'\n');
    }

    fn notice(&mut self, text: &str) {
        if self.show.json {
            self.json(&json!({ "version": 1, "type": "notice", "text": text }));
        } else {
            let line = format!("{} {}\n", self.err.paint.yellow("note:"), printable(text));
            self.lines(Stream::Err, line.as_bytes());
        }
    }

    /// Passes on the lines that an attempt did not end.
    fn flush(&mut self, step: &StepId, attempt: u32) {
        for is_err in [false, true] {
            let Some(rest) = self.pending.remove(&(step.clone(), attempt, is_err)) else { continue };
            let mut out = Vec::new();
            self.line(&mut out, step, attempt, is_err, &rest);
            self.lines(target(is_err, self.show.json), &out);
        }
    }

    fn flush_all(&mut self) {
        let mut open: Vec<(StepId, u32)> =
            self.pending.keys().map(|(step, attempt, _)| (step.clone(), *attempt)).collect();
        open.sort();
        for (step, attempt) in open {
            self.flush(&step, attempt);
        }
    }

    fn json(&mut self, value: &serde_json::Value) {
        self.out.write(format!("{value}\n").as_bytes());
    }

    /// Writes whole lines above the live ones.
    fn lines(&mut self, stream: Stream, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let above = self.live.is_some() && (stream == Stream::Err || self.out.terminal);
        if above {
            self.live_off();
        }
        match stream {
            Stream::Out => self.out.write(bytes),
            Stream::Err => self.err.write(bytes),
        }
        if above {
            self.frame();
        }
    }

    fn frame(&mut self) {
        let Some(live) = &mut self.live else { return };
        let note = match self.asked.load(Ordering::Relaxed) {
            0 => None,
            times => Some(asked(times)),
        };
        let bytes = live.draw(&self.ledger, self.err.paint, Stream::Err.size(), note, crate::units::now());
        self.err.write(bytes.as_bytes());
    }

    fn live_off(&mut self) {
        if let Some(live) = &mut self.live {
            let bytes = live.clear(Stream::Err.size().0);
            self.err.write(bytes.as_bytes());
        }
    }
}

impl Sink {
    fn new(stream: Stream) -> Sink {
        Sink { writer: Box::new(stream), terminal: stream.is_terminal(), paint: stream.paint(), broken: false }
    }

    fn write(&mut self, bytes: &[u8]) {
        if !self.broken && !bytes.is_empty() {
            self.broken = self.writer.write_all(bytes).is_err();
        }
    }
}

fn target(is_err: bool, json: bool) -> Stream {
    if is_err && !json { Stream::Err } else { Stream::Out }
}

fn asked(times: u8) -> &'static str {
    match times {
        1 => "stopping: running tasks are being ended; Ctrl-C again kills them",
        _ => "killing running tasks",
    }
}

/// The last place up to `limit` that is not inside a character.
fn boundary(bytes: &[u8], limit: usize) -> usize {
    let inside = |at: usize| bytes.get(at).is_some_and(|byte| byte & 0xC0 == 0x80);
    (limit.saturating_sub(3)..=limit).rev().find(|&at| !inside(at)).unwrap_or(limit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use swarmc_runtime::{Failure, Outcome};

    /// What was written, by whomever.
    #[derive(Clone, Default)]
    struct Memory(Arc<Mutex<Vec<u8>>>);

    impl Write for Memory {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl Memory {
        fn take(&self) -> String {
            String::from_utf8_lossy(&std::mem::take(&mut *self.0.lock().unwrap())).into_owned()
        }
    }

    struct Closed;

    impl Write for Closed {
        fn write(&mut self, _bytes: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn plan() -> swarmc_plan::Plan {
        let step = |name: &str| {
            format!(
                r#"{{ "name": "{name}", "body": {{ "run": {{ "argv": ["true"] }} }}, "output": {{ "max_bytes": 1 }},
                "retry": {{ "times": 1, "backoff_ms": 0, "max_backoff_ms": 0 }}, "grace_ms": 0,
                "origin": {{ "file": "f", "line": 1, "column": 1 }} }}"#
            )
        };
        let text = format!(
            r#"{{ "version": 1, "workflow": "w", "default": "p", "sources": [], "pipelines": [{{ "name": "p",
            "iteration": {{ "max": 1, "on_failure": "stop", "exhausted": "fail" }}, "parallelism": 1,
            "steps": [{}, {}], "origin": {{ "file": "f", "line": 1, "column": 1 }} }}] }}"#,
            step("draft"),
            step("review")
        );
        swarmc_plan::read(&text).unwrap()
    }

    fn screen(terminal: bool, json: bool) -> (Screen, Memory, Memory) {
        let (out, err) = (Memory::default(), Memory::default());
        let sink = |memory: &Memory| Sink {
            writer: Box::new(memory.clone()),
            terminal,
            paint: Paint { colour: false },
            broken: false,
        };
        let plan = plan();
        let ledger = Ledger::new(&plan.pipelines[0], None);
        let live = terminal.then(Live::new);
        let show = Show { json, quiet: false };
        (Screen::new(&plan.pipelines[0], ledger, show, [sink(&out), sink(&err)], live), out, err)
    }

    fn id(name: &str) -> StepId {
        StepId { name: name.into(), iteration: 1, instance: 1 }
    }

    fn record(event: Event) -> Record {
        Record { seq: 1, at: 1000, event }
    }

    #[test]
    fn lines_of_tasks_at_once_are_never_torn() {
        let (mut screen, out, _) = screen(false, false);
        let (draft, review) = (id("draft"), id("review"));
        screen.output(&draft, 1, false, b"one, begun");
        screen.output(&review, 1, false, b"other\nand");
        screen.output(&draft, 1, false, b" and ended\n\nraw \x1b[31m\xff\n");
        screen.recorded(&record(Event::AttemptEnded { step: review, attempt: 1, outcome: Outcome::default() }));
        screen.output(&draft, 1, false, b"last");
        screen.flush_all();
        let expected = "review │ other\ndraft  │ one, begun and ended\ndraft  │ \ndraft  │ raw \x1b[31m\u{FFFD}\n\
                        review │ and\ndraft  │ last\n";
        assert_eq!(out.take(), expected);
    }

    #[test]
    fn a_line_without_an_end_is_passed_on_in_pieces() {
        let (mut screen, out, _) = screen(false, false);
        for _ in 0..100 {
            screen.output(&id("draft"), 1, false, "é".repeat(5001).as_bytes());
        }
        screen.flush_all();
        let text = out.take();
        assert_eq!(text.matches('é').count(), 500_100);
        assert!(!text.contains('\u{FFFD}'), "a character was torn");
        assert!(text.lines().all(|line| line.len() < MAX_LINE + 20));
    }

    #[test]
    fn a_terminal_obeys_nobody_but_us() {
        let (mut screen, out, _) = screen(true, false);
        screen.output(&id("draft"), 1, false, b"\x1b[2J\x1b]0;title\x07 10%\r 20%\x08\n");
        assert_eq!(out.take(), "draft  │  20%\u{FFFD}\n");
    }

    #[test]
    fn a_reader_that_went_away_is_given_up() {
        let (mut screen, _, err) = screen(false, false);
        screen.out.writer = Box::new(Closed);
        screen.output(&id("draft"), 1, false, b"line\n");
        screen.output(&id("draft"), 1, false, b"line\n");
        assert!(screen.out.broken);
        screen.notice("still here");
        assert_eq!(err.take(), "note: still here\n");
    }

    #[test]
    fn a_pipe_gets_one_plain_line_for_each_change() {
        let (mut screen, _, err) = screen(false, false);
        let failed = Outcome { failure: Some(Failure::Exit), exit: Some(3), ..Outcome::default() };
        let ended =
            |attempt, outcome: &Outcome| Event::AttemptEnded { step: id("draft"), attempt, outcome: outcome.clone() };
        screen.recorded(&record(Event::AttemptStarted { step: id("draft"), attempt: 1 }));
        screen.recorded(&record(ended(1, &failed)));
        screen.recorded(&record(Event::AttemptStarted { step: id("draft"), attempt: 2 }));
        screen.recorded(&record(ended(2, &failed)));
        let need = swarmc_runtime::SkipReason::Need { step: "draft".to_owned(), status: Status::Failed };
        screen.recorded(&record(Event::StepSkipped { step: id("review"), reason: need }));
        insta::assert_snapshot!(err.take(), @r"
          draft: started
        ! draft: attempt 1 of 2 failed: exit 3
          draft: attempt 2 started
        ✗ draft: failed after 0.0s: exit 3
        - review: skipped: `draft` failed
        ");
    }

    #[test]
    fn json_lines_are_versioned() {
        let (mut screen, out, err) = screen(false, true);
        screen.recorded(&record(Event::AttemptStarted { step: id("draft"), attempt: 1 }));
        screen.output(&id("draft"), 1, true, b"a \"line\"\n");
        screen.notice("careful");
        let text = out.take();
        let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(lines.iter().all(|line| line["version"] == 1));
        assert_eq!(lines[0]["event"], "attempt_started");
        assert_eq!((&lines[1]["text"], &lines[1]["stream"]), (&json!("a \"line\""), &json!("stderr")));
        assert_eq!(lines[2]["type"], "notice");
        assert_eq!(err.take(), "");
    }

    #[test]
    fn live_lines_are_taken_away_before_others_come() {
        let (mut screen, out, err) = screen(true, false);
        let started = Event::RunStarted {
            version: 1,
            run: "r".to_owned(),
            plan: String::new(),
            pipeline: "p".to_owned(),
            task: None,
            params: std::collections::BTreeMap::new(),
            stdin: None,
        };
        screen.recorded(&record(started));
        screen.recorded(&record(Event::AttemptStarted { step: id("draft"), attempt: 1 }));
        err.take();
        screen.frame();
        let frame = err.take();
        assert!(frame.contains("draft") && frame.contains("0 done, 1 running of 2"), "{frame:?}");
        screen.output(&id("draft"), 1, false, b"line\n");
        assert_eq!(out.take(), "draft  │ line\n");
        let around = err.take();
        assert!(around.starts_with("\x1b[2A\r\x1b[J"), "{around:?}");
        screen.live_off();
        assert_eq!(err.take(), "\x1b[2A\r\x1b[J");
    }
}
