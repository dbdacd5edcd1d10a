//! Commands that the runner runs for an agent in one turn: each in its own process group, on its own thread.
//!
//! In: a command, and what becomes of it. Out: what it printed and how it ended, whenever that is asked. Invariants: no
//! more than [`OPEN`] are kept at once, each with [`KEPT`] bytes of output at most, the journal holds their groups like
//! that of the agent, and none outlives [`Terminals::close`].

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Waker;
use std::time::{Duration, Instant};

use agent_client_protocol::Error;
use agent_client_protocol::v1::Responder;
use agent_client_protocol::v1::schema::{
    CreateTerminalResponse, TerminalExitStatus, TerminalId, TerminalOutputResponse, WaitForTerminalExitResponse,
};
use rustix::process::Signal;

use super::client_fs::{invalid_params, request_cancelled};
use super::requests::answer_request;
use crate::io::executor::pool::STACK;
use crate::io::input::{Input, Inputs};
use crate::io::process::{End, Launch, Limits, Poller, Sink, Tail, keep_last, run_process};
use crate::types::cancel::Cancel;
use crate::types::event::{Process, StepId};
use crate::types::secrets::Secrets;
use crate::types::user_request::StopLevel;

/// The terminals of a turn that are open at once, whether their commands have ended or not.
const OPEN: usize = 16;

/// Those that are made in one turn.
const MOST: u32 = 1_000;

/// The bytes of a terminal's output that are kept: the last ones.
const KEPT: usize = 1024 * 1024;

/// Those that may wait for the end of one terminal.
const WAITING: usize = 64;

/// How often a wait for ends checks whether the attempt is to end at once.
const LOOK: Duration = Duration::from_millis(50);

/// The terminals of a turn.
pub(super) struct Terminals {
    open: BTreeMap<u32, Terminal>,
    made: u32,
    /// Those that were released, and have not ended yet.
    ending: Vec<Weak<Cancel>>,
    /// Every command that runs holds the one; none holds it any more when they have all ended.
    running: Option<Sender<()>>,
    ended: Receiver<()>,
}

/// What a terminal is to run.
pub(super) struct Order {
    pub argv: Vec<OsString>,
    pub environment: Vec<(OsString, OsString)>,
    pub directory: PathBuf,
    /// The bytes of output that are wanted at most.
    pub limit: Option<u64>,
    /// The bytes of the longest secret: what is kept beyond the limit, so that one at the cut is seen whole.
    pub margin: usize,
    /// What the log says of it.
    pub shown: String,
}

/// Where a terminal reports its processes, and whom it wakes.
pub(super) struct TerminalReporter {
    pub step: StepId,
    pub attempt: u32,
    pub inputs: Inputs,
    pub waker: Waker,
}

struct Terminal {
    shown: String,
    limit: usize,
    screen: Arc<Screen>,
    cancel: Arc<Cancel>,
    /// The request that had it made, until it is known whether it was.
    maker: Option<Responder<CreateTerminalResponse>>,
    waiting: Vec<Responder<WaitForTerminalExitResponse>>,
    /// Whether its end was told to those who watch.
    told: bool,
}

/// What is seen of a command.
struct Screen(Mutex<Seen>);

struct Seen {
    tail: Tail,
    started: bool,
    /// Whether it printed something since that was asked last.
    fresh: bool,
    ended: Option<Result<End, String>>,
}

impl Screen {
    fn lock_seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Terminals {
    pub(super) fn new() -> Terminals {
        let (running, ended) = mpsc::channel();
        Terminals { open: BTreeMap::new(), made: 0, ending: Vec::new(), running: Some(running), ended }
    }

    /// Runs a command, and answers when it has started, or not. An error where there is no room for it.
    pub(super) fn create_terminal(
        &mut self,
        order: Order,
        reporter: TerminalReporter,
        maker: Responder<CreateTerminalResponse>,
    ) -> Result<(), String> {
        if let Some(why) = self.check_capacity() {
            answer_request(maker, Err(invalid_params(why.clone())));
            return Err(why);
        }
        let limit = order.limit.map_or(KEPT, |limit| usize::try_from(limit).unwrap_or(KEPT).min(KEPT));
        let tail = Tail::new(limit + order.margin);
        let screen = Arc::new(Screen(Mutex::new(Seen { tail, started: false, fresh: false, ended: None })));
        let cancel = Arc::new(Cancel::default());
        let shown = order.shown.clone();
        let (seen, ender, is_over) = (Arc::clone(&screen), Arc::clone(&cancel), self.running.clone());
        let thread = std::thread::Builder::new().name("terminal".to_owned()).stack_size(STACK);
        let started = thread.spawn(move || {
            let waker = reporter.waker.clone();
            let ended = carry_out(&order, reporter, &seen, &ender);
            seen.lock_seen().ended = Some(ended);
            waker.wake();
            // Last: `close` waits for this, and takes the end right after.
            drop(is_over);
        });
        if let Err(error) = started {
            let why = format!("no terminal can be made: {error}");
            answer_request(maker, Err(invalid_params(why.clone())));
            return Err(why);
        }
        self.made += 1;
        let (maker, waiting) = (Some(maker), Vec::new());
        self.open.insert(self.made, Terminal { shown, limit, screen, cancel, maker, waiting, told: false });
        Ok(())
    }

    /// Why there is no room for another one.
    fn check_capacity(&mut self) -> Option<String> {
        // The thread of a command holds its `Cancel` until the command has ended.
        self.ending.retain(|ending| ending.strong_count() > 0);
        match (self.open.len(), self.made, self.ending.len()) {
            (OPEN.., _, _) => Some(format!("{OPEN} terminals are open: release one of them first")),
            (_, MOST.., _) => Some(format!("a turn makes {MOST} terminals at most")),
            (_, _, OPEN..) => Some(format!("{OPEN} terminals that were released have not ended yet: wait for them")),
            _ => None,
        }
    }

    /// Tells those who wait what they wait for; out comes what the log says of those that have ended.
    pub(super) fn answer_waiting(&mut self) -> Vec<String> {
        let mut told = Vec::new();
        let mut unmade = Vec::new();
        for (&number, terminal) in &mut self.open {
            let (started, ended) = {
                let seen = terminal.screen.lock_seen();
                (seen.started, seen.ended.clone())
            };
            if let Some(maker) = terminal.maker.take() {
                match &ended {
                    Some(Err(why)) => {
                        answer_request(maker, Err(invalid_params(why.clone())));
                        // The agent gets no id for it, and so could never release it.
                        unmade.push(number);
                    }
                    _ if started => {
                        answer_request(maker, Ok(CreateTerminalResponse::new(TerminalId::new(terminal_name(number)))))
                    }
                    _ => terminal.maker = Some(maker),
                }
            }
            let Some(ended) = ended else { continue };
            let status = exit_status(&ended);
            for responder in terminal.waiting.drain(..) {
                answer_request(responder, Ok(WaitForTerminalExitResponse::new(status.clone())));
            }
            if !std::mem::replace(&mut terminal.told, true) {
                told.push(format!("{}: {}", terminal.shown, describe_exit(&ended)));
            }
        }
        unmade.iter().for_each(|number| drop(self.open.remove(number)));
        told
    }

    /// What a terminal shows, without the secrets of the run.
    pub(super) fn read_output(&self, id: &TerminalId, secrets: &Secrets) -> Result<TerminalOutputResponse, Error> {
        let terminal = self.find(id)?;
        let (bytes, is_cut, ended) = {
            let seen = terminal.screen.lock_seen();
            // A copy, so that the command can print on while the text is made.
            (seen.tail.clone().into_bytes(), seen.tail.is_cut(), seen.ended.clone())
        };
        // The rest of a character that is cut here may still be printed.
        let whole = if ended.is_some() { &bytes[..] } else { trim_partial_character(&bytes) };
        let (text, is_short) = last_part(&String::from_utf8_lossy(whole), terminal.limit, secrets);
        let is_cut = is_cut || is_short;
        Ok(TerminalOutputResponse::new(text, is_cut).exit_status(ended.map(|ended| exit_status(&ended))))
    }

    /// Answers when a command has ended.
    pub(super) fn wait(&mut self, id: &TerminalId, responder: Responder<WaitForTerminalExitResponse>) {
        match self.find_mut(id) {
            Err(error) => answer_request(responder, Err(error)),
            Ok(terminal) if terminal.waiting.len() == WAITING => {
                answer_request(
                    responder,
                    Err(invalid_params(format!("{WAITING} already wait for the end of this terminal"))),
                );
            }
            Ok(terminal) => terminal.waiting.push(responder),
        }
    }

    /// Ends a command, and keeps what it printed.
    pub(super) fn kill(&mut self, id: &TerminalId) -> Result<(), Error> {
        self.find(id)?.cancel.request_stop(StopLevel::Stop);
        Ok(())
    }

    /// Ends a command, and forgets it.
    pub(super) fn release(&mut self, id: &TerminalId) -> Result<(), Error> {
        self.find(id)?;
        let number = terminal_number(id).unwrap_or_default();
        if let Some(terminal) = self.open.remove(&number) {
            terminal.cancel.request_stop(StopLevel::Stop);
            self.ending.push(Arc::downgrade(&terminal.cancel));
            terminal.waiting.into_iter().for_each(|responder| answer_request(responder, Err(request_cancelled())));
        }
        Ok(())
    }

    /// Whether any of them printed something since that was asked last.
    pub(super) fn is_fresh(&self) -> bool {
        let fresh = self.open.values().map(|terminal| std::mem::take(&mut terminal.screen.lock_seen().fresh));
        // No `any`: it would stop at the first, and leave the marks of the others.
        fresh.fold(false, |one, other| one | other)
    }

    /// Asks all of them to end.
    pub(super) fn stop(&self) {
        self.request_stop(StopLevel::Stop);
    }

    fn request_stop(&self, level: StopLevel) {
        self.open.values().for_each(|terminal| terminal.cancel.request_stop(level));
        self.ending.iter().filter_map(Weak::upgrade).for_each(|ending| ending.request_stop(level));
    }

    /// Ends all of them, and waits for that; `is_urgent` says whether they are to be ended at once.
    pub(super) fn close(&mut self, is_urgent: impl Fn() -> bool) {
        self.stop();
        // Our own sender would keep the channel open for ever.
        self.running = None;
        while let Err(RecvTimeoutError::Timeout) = self.ended.recv_timeout(LOOK) {
            if is_urgent() {
                self.request_stop(StopLevel::Kill);
            }
        }
    }

    fn find(&self, id: &TerminalId) -> Result<&Terminal, Error> {
        terminal_number(id).and_then(|number| self.open.get(&number)).ok_or_else(unknown_terminal)
    }

    fn find_mut(&mut self, id: &TerminalId) -> Result<&mut Terminal, Error> {
        terminal_number(id).and_then(|number| self.open.get_mut(&number)).ok_or_else(unknown_terminal)
    }
}

/// Runs a command to its end.
fn carry_out(order: &Order, reporter: TerminalReporter, screen: &Arc<Screen>, cancel: &Cancel) -> Result<End, String> {
    let poller = Poller::new().map_err(|error| error.to_string())?;
    let Order { argv, environment, directory, .. } = order;
    let launch = Launch { argv, environment, directory, stdin: None, install: None };
    // It has no time of its own: the end of the turn ends it.
    let limits = Limits { deadline: None, idle: None, grace: Duration::ZERO };
    let mut watcher = Watcher { screen: Arc::clone(screen), reporter };
    poller.block_on(run_process(&poller, &launch, limits, cancel, &mut watcher))
}

/// Writes down what a command prints.
struct Watcher {
    screen: Arc<Screen>,
    reporter: TerminalReporter,
}

impl Watcher {
    fn print(&self, bytes: &[u8]) {
        let mut seen = self.screen.lock_seen();
        seen.tail.push(bytes);
        seen.fresh = true;
    }
}

impl Sink for Watcher {
    fn stdout(&mut self, bytes: &[u8]) -> bool {
        self.print(bytes);
        false
    }

    fn stderr(&mut self, bytes: &[u8]) {
        self.print(bytes);
    }

    fn report_start(&mut self, _: rustix::process::Pid) {
        self.screen.lock_seen().started = true;
        self.reporter.waker.wake_by_ref();
    }

    fn report_alive(&mut self, process: Process) {
        let TerminalReporter { step, attempt, inputs, .. } = &self.reporter;
        // The loop outlives every attempt.
        let _ = inputs.send(Input::Lives { step: step.clone(), attempt: *attempt, process });
    }

    fn due(&self) -> Option<Instant> {
        None
    }

    fn tick(&mut self, _: Instant) {}
}

fn terminal_name(number: u32) -> String {
    format!("terminal-{number}")
}

fn terminal_number(id: &TerminalId) -> Option<u32> {
    let number = id.0.strip_prefix("terminal-")?.parse().ok()?;
    // Otherwise a terminal would have several names, as `terminal-1` and `terminal-01`.
    (terminal_name(number) == *id.0).then_some(number)
}

fn unknown_terminal() -> Error {
    invalid_params("there is no such terminal: it was never made, or is released".to_owned())
}

/// How a command ended, as the protocol has it.
fn exit_status(ended: &Result<End, String>) -> TerminalExitStatus {
    match ended {
        Ok(End { signal: Some(signal), .. }) => TerminalExitStatus::new().signal(signal_name(*signal)),
        Ok(End { exit, .. }) => TerminalExitStatus::new().exit_code(u32::try_from(*exit).ok()),
        Err(_) => TerminalExitStatus::new(),
    }
}

fn signal_name(number: i32) -> String {
    let named = [
        (Signal::TERM, "SIGTERM"),
        (Signal::KILL, "SIGKILL"),
        (Signal::INT, "SIGINT"),
        (Signal::HUP, "SIGHUP"),
        (Signal::PIPE, "SIGPIPE"),
        (Signal::SEGV, "SIGSEGV"),
        (Signal::ABORT, "SIGABRT"),
    ];
    let found = named.iter().find(|(signal, _)| signal.as_raw() == number);
    found.map_or_else(|| format!("SIG{number}"), |(_, name)| (*name).to_owned())
}

/// How a command ended, in words.
fn describe_exit(ended: &Result<End, String>) -> String {
    match ended {
        Ok(End { signal: Some(signal), .. }) => format!("ended by {}", signal_name(*signal)),
        Ok(End { exit, .. }) => format!("exit code {exit}"),
        Err(why) => why.clone(),
    }
}

/// The end of a text, of at most `limit` bytes and without secrets, and whether anything was left out before it.
///
/// The text is cut before it is redacted, so that what is left out does not depend on how long its secrets are;
/// placeholders that are longer than what they replace may then still be too long.
fn last_part(text: &str, limit: usize, secrets: &Secrets) -> (String, bool) {
    let cut = text.ceil_char_boundary(text.len().saturating_sub(limit));
    let mut part = secrets.redact_part(text, cut..text.len()).into_owned();
    let is_cut = cut > 0 || part.len() > limit;
    keep_last(&mut part, limit);
    (part, is_cut)
}

/// As much of a text that goes on as ends with a character.
fn trim_partial_character(bytes: &[u8]) -> &[u8] {
    // A character has four bytes at most: of one that is incomplete, the first is among the last three.
    let ends = bytes.len().saturating_sub(3);
    let lead = bytes[ends..].iter().rposition(|byte| byte & 0b1100_0000 != 0b1000_0000).map(|at| ends + at);
    let Some(lead) = lead else { return bytes };
    let length = match bytes[lead] {
        0b1100_0000..=0b1101_1111 => 2,
        0b1110_0000..=0b1110_1111 => 3,
        0b1111_0000..=0b1111_0111 => 4,
        _ => 1,
    };
    if bytes.len() - lead < length { &bytes[..lead] } else { bytes }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_goes_on_ends_with_a_character() {
        let text = "aé漢😀".as_bytes();
        for end in 0..=text.len() {
            let whole = trim_partial_character(&text[..end]);
            assert!(std::str::from_utf8(whole).is_ok() && end - whole.len() < 4, "{end}");
        }
        assert_eq!(trim_partial_character(b"\x80\x80\x80\x80"), b"\x80\x80\x80\x80");
        assert_eq!(trim_partial_character(b"a\xff"), b"a\xff");
    }

    #[test]
    fn of_a_secret_where_the_output_is_cut_nothing_is_told() {
        let environment = BTreeMap::from([(OsString::from("KEY"), OsString::from("a-secret-of-many-bytes"))]);
        let secrets = Secrets::new(&environment, &["KEY"].into());
        let check = |text: &str, limit: usize, expected: (&str, bool)| {
            assert_eq!(last_part(text, limit, &secrets), (expected.0.to_owned(), expected.1), "{text}, {limit}");
        };
        check("one a-secret-of-many-bytes two", 64, ("one ⟦secret:KEY⟧ two", false));
        check("one a-secret-of-many-bytes two", 20, ("⟦secret:KEY⟧ two", true));
        // The placeholder of one makes room, in which the end of the one before does not appear.
        check("a-secret-of-many-bytes, a-secret-of-many-bytes", 24, (", ⟦secret:KEY⟧", true));
        check("a-secret-of-many-bytes", 5, ("EY⟧", true));
    }

    #[test]
    fn a_terminal_has_one_name() {
        assert_eq!(terminal_number(&TerminalId::new("terminal-7")), Some(7));
        for wrong in ["terminal-07", "terminal-+7", "terminal-", "7", "", "terminal-99999999999"] {
            assert_eq!(terminal_number(&TerminalId::new(wrong)), None, "{wrong}");
        }
    }
}
