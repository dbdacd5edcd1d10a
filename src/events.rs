//! `swarmc events`: the records of a run, as they come, for programs.

use std::time::Duration;

use miette::IntoDiagnostic;
use swarmc_view::documents::{RunLine, RunLineKind, Version, encode};

use crate::args::Events;
use crate::exit::Exit;
use crate::home::{find_home, find_run};
use crate::terminal;

/// How often a running run is looked at.
const LOOK: Duration = Duration::from_millis(100);

pub(crate) fn exec(args: &Events) -> miette::Result<Exit> {
    let run = args.run.as_deref().filter(|run| *run != "last");
    let folder = find_run(&find_home()?, run, "is there", |_| true)?;
    if args.follow {
        terminal::exit_without_reader();
    }
    let mut journal = folder.follow_journal();
    loop {
        // Asked before the journal is read: what a runner wrote before it ended is then read as well.
        let runs = folder.is_running();
        let records = journal.poll().into_diagnostic()?;
        let is_new = !records.is_empty();
        for record in records {
            if record.seq > args.from {
                let line = RunLine { version: Version, line: RunLineKind::Record(Box::new(record)) };
                terminal::print(encode(&line) + "\n")?;
            }
        }
        match (is_new, args.follow && runs) {
            (true, _) => {}
            (false, true) => std::thread::sleep(LOOK),
            (false, false) => return Ok(Exit::Done),
        }
    }
}
