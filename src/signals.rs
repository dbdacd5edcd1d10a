//! Handles Ctrl-C and other signals: the first one stops the run so that it can be resumed, the second one kills it.
//! Every signal that would end this process does so, as the processes that it has started would outlive it.

use miette::{IntoDiagnostic, WrapErr};
use signal_hook::consts::{SIGALRM, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU};
use signal_hook::iterator::Signals;
use swarmc_runtime::Control;

use crate::display::Display;
use crate::exit::Exit;

/// The signals that end a run.
const ENDS: [i32; 8] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGXCPU];

/// Ends the run behind `control` when a signal asks for it.
pub(crate) fn watch_signals(control: Control, display: Display) -> miette::Result<()> {
    let ignored = ignored_signals();
    let wanted: Vec<i32> = ENDS.into_iter().filter(|signal| ignored >> (signal - 1) & 1 == 0).collect();
    let mut signals = Signals::new(wanted).into_diagnostic().wrap_err("cannot watch for signals")?;
    std::thread::spawn(move || {
        let mut times = 0;
        for signal in signals.forever() {
            // Ctrl-\ asks for an end at once.
            times += if signal == SIGQUIT && times == 0 { 2 } else { 1 };
            match times {
                1 => {
                    control.stop();
                    display.request_stop(1);
                }
                2 => {
                    control.kill();
                    display.request_stop(2);
                }
                // A third signal ends this process at once; the journal is always complete.
                _ => std::process::exit(Exit::Stopped as i32),
            }
        }
    });
    Ok(())
}

/// The signals that this process was started with as ignored, as `nohup` does: they stay so. Signal N is bit N - 1.
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
