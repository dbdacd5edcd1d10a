//! What the system reports about processes: whether they live, are stopped or end, and when they began.
//!
//! Invariant: a process that has ended and is not reaped does not live.

use std::fs::File;
use std::io::Read;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

use crate::types::event::{BootId, Process};

/// More than a `stat` file has: 52 numbers of at most 20 digits, and a name.
const LONGEST_STAT: usize = 2048;

/// Sends a signal to all processes of a group.
pub(crate) fn end_group(group: Pid, signal: Signal) {
    // It fails when the group is empty, which is what is wanted.
    let _ = kill_process_group(group, signal);
}

/// Waits for a group that got TERM to end, and sends KILL after `grace`.
pub(crate) fn group_ends(group: Pid, grace: Duration) {
    let deadline = Instant::now() + grace;
    let mut pause = Duration::from_millis(1);
    while group_lives(group) {
        if Instant::now() >= deadline {
            end_group(group, Signal::KILL);
            return;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

/// Whether a process in `group` is alive: zombies are not.
pub(crate) fn group_lives(group: Pid) -> bool {
    if test_kill_process_group(group).is_err() {
        return false;
    }
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return true;
    };
    processes.flatten().any(|process| {
        let stat = std::fs::read_to_string(process.path().join("stat")).unwrap_or_default();
        let fields = after_name(&stat);
        fields.first() != Some(&"Z")
            && fields.get(2).and_then(|group| group.parse().ok()) == Some(group.as_raw_nonzero().get())
    })
}

/// The living processes, and the variables with which each began.
pub(crate) fn living_environments() -> impl Iterator<Item = (i32, Vec<u8>)> {
    std::fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(|process| {
        let pid = process.file_name().to_str()?.parse().ok()?;
        // Those of other users cannot be read, and are none of ours. A zombie's environment is empty.
        Some((pid, std::fs::read(process.path().join("environ")).unwrap_or_default()))
    })
}

/// What a later runner knows process `pid`, the leader of its group, by.
pub(crate) fn identify_process(pid: i32) -> Process {
    Process { group: pid, started: start_time(pid).unwrap_or(0), boot: boot_id(), host: host_name() }
}

/// The name of this host; none where the system does not say it.
pub(crate) fn host_name() -> Option<Arc<str>> {
    static HOST: OnceLock<Option<Arc<str>>> = OnceLock::new();
    let read = || Some(std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?.trim().into());
    HOST.get_or_init(read).clone()
}

/// When process `pid` started, in clock ticks since boot; none when there is no such process.
pub(crate) fn start_time(pid: i32) -> Option<u64> {
    read_stat(pid, |fields| fields.get(19)?.parse().ok())
}

/// The boot of this machine; none where the system has no number for it.
pub(crate) fn boot_id() -> Option<BootId> {
    static BOOT: OnceLock<Option<BootId>> = OnceLock::new();
    *BOOT.get_or_init(|| std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.try_into().ok())
}

/// Whether a process was stopped, by a signal or by a tracer.
pub(crate) fn is_stopped(pid: i32) -> bool {
    read_stat(pid, |fields| Some(matches!(fields.first(), Some(&("T" | "t"))))).unwrap_or(false)
}

/// Whether a process ends, or will as soon as it gets to it: it was killed.
pub(crate) fn is_ending(pid: i32) -> bool {
    /// Of the flags of a process in the kernel, that it exits.
    const EXITING: u32 = 4;
    let exits = read_stat(pid, |fields| {
        let flags: u32 = fields.get(6)?.parse().ok()?;
        Some(matches!(fields.first(), Some(&("Z" | "X"))) || flags & EXITING != 0)
    });
    exits.is_some_and(|exits| exits || pending_signals(pid) >> (Signal::KILL.as_raw() - 1) & 1 == 1)
}

/// Whether there is no such process, as far as this one can see.
pub(crate) fn is_gone(pid: i32) -> bool {
    read_stat(pid, |_| Some(())).is_none()
}

/// The signals that a process has yet to take, as a set of bits.
fn pending_signals(pid: i32) -> u64 {
    let status = std::fs::read(format!("/proc/{pid}/status")).unwrap_or_default();
    let status = String::from_utf8_lossy(&status);
    let sets = status.lines().filter_map(|line| line.strip_prefix("ShdPnd:").or_else(|| line.strip_prefix("SigPnd:")));
    sets.filter_map(|set| u64::from_str_radix(set.trim(), 16).ok()).fold(0, |all, set| all | set)
}

/// Reads something of the fields of a process's `stat` file, from the third on; none when there is no such process.
pub(crate) fn read_stat<T>(pid: i32, read: impl FnOnce(&[&str]) -> Option<T>) -> Option<T> {
    let mut stat = [0; LONGEST_STAT];
    // The system has all of it ready for the first read.
    let length = File::open(format!("/proc/{pid}/stat")).and_then(|mut file| file.read(&mut stat)).ok()?;
    // Its name may hold anything, also what is no text.
    read(&after_name(&String::from_utf8_lossy(&stat[..length])))
}

/// The fields of a `stat` file from the third on: the name before them may hold anything.
fn after_name(stat: &str) -> Vec<&str> {
    stat.rsplit_once(')').map_or_else(Vec::new, |(_, rest)| rest.split_ascii_whitespace().collect())
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_process_is_seen_to_be_stopped_and_to_end() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let (pid, process) = (i32::try_from(child.id()).unwrap(), Pid::from_child(&child));
        let until = |holds: fn(i32) -> bool| {
            let deadline = Instant::now() + Duration::from_secs(20);
            while !holds(pid) {
                assert!(Instant::now() < deadline);
                std::thread::yield_now();
            }
        };
        assert!(!is_stopped(pid) && !is_ending(pid) && !is_gone(pid));
        rustix::process::kill_process(process, Signal::STOP).unwrap();
        until(is_stopped);
        assert!(!is_ending(pid));
        rustix::process::kill_process(process, Signal::KILL).unwrap();
        // From now on, even before it is reaped, and it may not have noticed.
        until(is_ending);
        child.wait().unwrap();
        assert!(!is_stopped(pid) && !is_ending(pid) && is_gone(pid));
    }
}
