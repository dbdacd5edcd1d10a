//! Processes: starts one in a session of its own, reads what it writes, and ends it with everything below it.

mod run;
mod side_command;
mod spawn;
mod stdin;
mod tail;

pub(crate) use run::{Cause, End, Limits, Poller, Sink, run};
pub(crate) use side_command::{bytes, output, printed, run_side_command};
pub(crate) use spawn::{DEFAULT_PATH, Finder, Launch, argv, find as find_program};
pub(crate) use stdin::Talk;
pub(crate) use tail::{Tail, keep_last, text};
