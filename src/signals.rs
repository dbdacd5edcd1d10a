//! Ctrl-C and its kin: the first ends the run so that it can be resumed, the second kills it.

use miette::{IntoDiagnostic, WrapErr};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use swarmc_runtime::Control;

use crate::display::Display;
use crate::exit::Exit;

/// Ends the run behind `control` when a signal asks for it.
pub(crate) fn watch(control: Control, display: Display) -> miette::Result<()> {
    let wanted: Vec<i32> = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| !is_ignored(*signal)).collect();
    let mut signals = Signals::new(wanted).into_diagnostic().wrap_err("cannot watch for signals")?;
    std::thread::spawn(move || {
        for (index, _) in signals.forever().enumerate() {
            match index {
                0 => {
                    control.stop();
                    display.ask(1);
                }
                1 => {
                    control.kill();
                    display.ask(2);
                }
                // Whoever asks a third time wants this process gone; the journal is good at any moment.
                _ => std::process::exit(Exit::Stopped as i32),
            }
        }
    });
    Ok(())
}

/// Whether whoever started us had the signal ignored, as `nohup` does: then it stays so.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}
