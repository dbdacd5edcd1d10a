//! Ends processes and waits for that: TERM first, and KILL after a while.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getpid, kill_process};

use crate::io::children::list_below;
use crate::io::proc_status::group_ends;

/// Between TERM and KILL.
const GRACE: Duration = Duration::from_secs(5);

/// Ends everything below this process.
pub(crate) fn end_below() {
    let us = getpid().as_raw_nonzero().get();
    end_all(BTreeSet::new(), || {
        let mut below = list_below(&BTreeSet::from([us]));
        below.remove(&us);
        below
    });
}

/// Ends the processes that `found` finds, and the groups that were told to end.
pub(crate) fn end_all(groups: BTreeSet<i32>, found: impl Fn() -> BTreeSet<i32>) -> Option<String> {
    let mut left = found();
    let all: BTreeSet<i32> = groups.union(&left).copied().collect();
    if all.is_empty() {
        return None;
    }
    signal_processes(&left, Signal::TERM);
    for group in groups.into_iter().filter_map(Pid::from_raw) {
        group_ends(group, GRACE);
    }
    let deadline = Instant::now() + GRACE;
    while !left.is_empty() {
        std::thread::sleep(Duration::from_millis(10));
        left = found();
        let late = Instant::now() >= deadline;
        signal_processes(&left, if late { Signal::KILL } else { Signal::TERM });
        if Instant::now() >= deadline + GRACE {
            break;
        }
    }
    describe_count(all.len())
}

/// So many processes, as the subject of a sentence; none where there was none.
pub(crate) fn describe_count(count: usize) -> Option<String> {
    match count {
        0 => None,
        1 => Some("1 process".to_owned()),
        several => Some(format!("{several} processes")),
    }
}

fn signal_processes(processes: &BTreeSet<i32>, signal: Signal) {
    for process in processes.iter().copied().filter_map(Pid::from_raw) {
        // A process that has ended meanwhile needs no signal.
        let _ = kill_process(process, signal);
    }
}
