//! The command line of what follows a run: `swarmc top` and `swarmc events`.

use clap::Args;

use super::Engine;

/// Shows a run on the whole screen while it goes on: its steps and their logs, its teams, and what waits for an answer.
///
/// The run may be started by another process; leaving ends nothing. `?` shows the keys. Without a terminal it prints one
/// frame, and with `-n 0` a frame each `-d` until the run ends.
#[derive(Debug, Args)]
pub(crate) struct Top {
    /// The run: its id, the beginning of it, or `last`. May be left out: the last run.
    pub(crate) run: Option<String>,
    /// Without a terminal: how many frames are printed; 0 for as many as the run takes.
    #[arg(short = 'n', long, default_value_t = 1)]
    pub(crate) frames: u64,
    /// Without a terminal: the seconds between two frames.
    #[arg(short, long, default_value_t = 1.0, value_parser = parse_seconds)]
    pub(crate) delay: f64,
    #[command(flatten)]
    pub(crate) engine: Engine,
}

/// A time in seconds that a person can wait for.
fn parse_seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "it is no number".to_owned())?;
    (0.1..=3_600.0).contains(&seconds).then_some(seconds).ok_or_else(|| "write 0.1 to 3600".to_owned())
}

/// Prints the records of a run, each as the line of JSON that `swarmc run --json` prints.
///
/// Reads the journal, so that it works for runs that other processes run, and for those that are over.
#[derive(Debug, Args)]
pub(crate) struct Events {
    /// The run: its id, the beginning of it, or `last`. May be left out: the last run.
    pub(crate) run: Option<String>,
    /// Prints further records until the run ends, or no process runs it any more.
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Begins behind the record of this number; 0 prints all.
    #[arg(long, value_name = "SEQ", default_value_t = 0)]
    pub(crate) from: u64,
    #[command(flatten)]
    pub(crate) engine: Engine,
}
