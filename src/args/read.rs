//! Reads the command line.

use std::ffi::OsStr;

use clap::{CommandFactory, FromArgMatches};

use super::CommandLine;
use super::habits::propose_command;

impl CommandLine {
    /// The command line of this process. Ends the process where it asks for help, or cannot be read.
    ///
    /// Of the commands only the one that it names gets its options: those of all take a tenth of a short check.
    pub(crate) fn read() -> CommandLine {
        let mut known = CommandLine::command();
        let named = std::env::args_os().nth(1);
        let is_named = |command: &clap::Command| named.as_deref() == Some(OsStr::new(command.get_name()));
        if !known.get_subcommands().any(is_named) {
            // The help of the whole describes each of them.
            known.build();
        }
        let matches = known.try_get_matches_from_mut(std::env::args_os());
        let read = matches.and_then(|matches| CommandLine::from_arg_matches(&matches));
        read.unwrap_or_else(|error| propose_command(error.format(&mut known)).exit())
    }
}
