//! The arguments that say how `swarmc run` and `swarmc resume` show a run.

use clap::{Args, ValueEnum};

#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Show {
    /// Prints all events as JSON lines, versioned, on standard output.
    #[arg(long, conflicts_with = "quiet")]
    pub(crate) json: bool,
    /// Prints the events of steps and of the agents of swarms as JSON lines, versioned, on standard output; also the
    /// connection states of agents, and the tools that they use.
    #[arg(long, conflicts_with_all = ["quiet", "json"])]
    pub(crate) events: bool,
    /// Prints only the result, and failures on standard error.
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// How much is shown of what steps print. `swarmc logs` prints all of it, also while the run goes on.
    #[arg(long, value_enum, default_value_t = LogLines::Full, conflicts_with_all = ["quiet", "json", "events"])]
    pub(crate) logs: LogLines,
}

/// How much is shown of what steps print.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogLines {
    /// Every line, as soon as it is printed.
    Full,
    /// For an attempt that fails its last 20 lines, and how many came before them; otherwise nothing.
    Tail,
    /// Nothing; for a failure, the reason and the place of the log.
    None,
}

impl Show {
    /// Whether a program reads standard output, so that no text for people may be on it.
    pub(crate) fn is_machine(self) -> bool {
        self.json || self.events
    }

    /// How much is shown of what steps print, beside all other flags.
    pub(crate) fn log_lines(self) -> LogLines {
        if self.quiet || self.events { LogLines::None } else { self.logs }
    }
}
