//! Processes: starts one in a session of its own, reads what it writes, and ends it with everything below it.

mod run;
mod side_command;
mod spawn;
mod stdin;
mod tail;
mod watchdog;

pub(crate) use run::{ANNOUNCE, Cause, End, Limits, Poller, Sink, run_process, start_process};
pub(crate) use side_command::{capture_output, read_stdout, read_stdout_bytes, run_side_command};
pub(crate) use spawn::{
    DEFAULT_PATH, Finder, Launch, Refused, argv, describe_command, find_program, is_allowed, note_new_session,
};
pub(crate) use stdin::StdinDialogue;
pub(crate) use tail::{Tail, decode_text, keep_last};
pub(crate) use watchdog::{TERM_GRACE, Watchdog};
