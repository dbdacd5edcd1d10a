//! `swarmc worker`: takes processes of runs on several machines.

use std::thread::available_parallelism;

use miette::{IntoDiagnostic, miette};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use swarmc_runtime::{WorkerOptions, WorkerStop, hold_processes_with, serve_worker};

use crate::args::Worker;
use crate::exit::Exit;
use crate::home::find_home;
use crate::run::open_shim;
use crate::{summary, terminal};

pub(crate) fn exec(args: &Worker) -> miette::Result<Exit> {
    hold_processes_with(open_shim());
    let all = available_parallelism().map_or(1, |all| u32::try_from(all.get()).unwrap_or(u32::MAX));
    let options = WorkerOptions {
        engine: args.engine.clone(),
        pool: args.pool.clone(),
        slots: args.slots.unwrap_or(all),
        workspace: args.workspace.clone(),
        home: find_home()?,
        environment: std::env::vars_os().collect(),
        notice: Box::new(|line| terminal::eprint(format!("worker: {}\n", summary::printable_lines(line).trim_end()))),
    };
    let stop = WorkerStop::default();
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).into_diagnostic()?;
    let stopping = stop.clone();
    std::thread::spawn(move || {
        // A second signal finds it on its way to the end.
        for _ in signals.forever() {
            stopping.stop();
        }
    });
    serve_worker(options, &stop).map_err(|problem| miette!("{problem}"))?;
    Ok(Exit::Done)
}
