//! Ends processes and waits for that: TERM first, and KILL after a while.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getpid, kill_process};

use crate::io::children::list_below;
use crate::io::proc_status::{group_ends, living_environments};
use crate::io::socket_peer::{MARK, MARKS};

/// Between TERM and KILL.
const GRACE: Duration = Duration::from_secs(5);

/// How often the processes of an attempt are looked up to be killed.
const KILL_ROUNDS: u32 = 20;

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
        sleep(Duration::from_millis(10));
        left = found();
        let late = Instant::now() >= deadline;
        signal_processes(&left, if late { Signal::KILL } else { Signal::TERM });
        if Instant::now() >= deadline + GRACE {
            break;
        }
    }
    describe_count(all.len())
}

/// Kills the processes that began with the variables of `environment` that name an attempt, and waits for that a moment:
/// those of a shim that was killed before it said which process it had started.
pub(crate) fn kill_attempt(environment: &[(OsString, OsString)]) {
    let is_mark = |name: &[u8]| name.starts_with(MARKS.as_bytes());
    let marks = environment.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    // Of two variables with one name, a process has the last.
    let marks: BTreeMap<&[u8], &[u8]> = marks.filter(|(name, _)| is_mark(name)).collect();
    if !marks.contains_key(MARK.as_bytes()) {
        return;
    }
    let marks: BTreeSet<Vec<u8>> = marks.iter().map(|(name, value)| [name, &b"="[..], value].concat()).collect();
    // No others either: a step of a called pipeline has all those of a step with its name, and says where it is.
    let is_of_attempt = |environment: &[u8]| {
        let found: BTreeSet<&[u8]> = environment.split(|&byte| byte == 0).filter(|entry| is_mark(entry)).collect();
        found.into_iter().eq(marks.iter().map(Vec::as_slice))
    };
    // Looked up again, as they may start others meanwhile.
    for _ in 0..KILL_ROUNDS {
        let left = living_environments().filter(|(_, environment)| is_of_attempt(environment));
        let left: Vec<Pid> = left.filter_map(|(pid, _)| Pid::from_raw(pid)).collect();
        if left.is_empty() {
            return;
        }
        for process in left {
            // One that has ended meanwhile needs no signal.
            let _ = kill_process(process, Signal::KILL);
        }
        sleep(Duration::from_millis(1));
    }
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
