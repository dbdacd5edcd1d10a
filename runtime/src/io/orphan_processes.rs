//! Ends the processes that outlived their attempt: after a run, and before the steps of a killed runner start again.
//!
//! The runner finds them in three ways: by the process group and start time in the journal; by the run's mark in their
//! environment, which also finds processes that left their group or were never recorded; and among its own descendants,
//! which also finds processes without the mark, as long as their runner lives. After its own run, a process that adopts
//! orphans looks only among its descendants: that costs nothing if there are none.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;

use rustix::process::{Pid, Signal, getpid, getppid, kill_process_group};

use crate::io::children::list_descendants;
use crate::io::ending::{describe_count, end_all};
use crate::io::home::{Lock, RunFolder};
use crate::io::proc_status::{boot_id, group_lives, host_name, living_environments, start_time};
use crate::io::shim;
use crate::io::socket_peer::MARK;
use crate::types::error::RunError;
use crate::types::event::{Event, Process};

/// Ends the processes that outlived the runner of `folder`, if no process runs it now. Returns how many there were, as
/// the subject of a sentence; none if there were none.
///
/// # Errors
/// A process runs it, or its journal cannot be read.
pub fn end_survivors(folder: &RunFolder) -> Result<Option<String>, RunError> {
    let _lock = Lock::acquire_lock(folder)?;
    let held = shim::stop_all_shims(&folder.path);
    let records = folder.read_records()?;
    let recorded = records.into_iter().filter_map(|record| match record.event {
        Event::ProcessStarted { process, .. } => Some(process),
        _ => None,
    });
    Ok(end_orphans(&folder.id, recorded, &BTreeSet::new()).or_else(|| describe_count(held)))
}

/// What runs have left of processes. It looks at all processes of this machine once, when the first run is counted.
#[derive(Debug, Default)]
pub struct LeftProcesses(OnceCell<BTreeMap<String, BTreeSet<i32>>>);

impl LeftProcesses {
    /// How many processes of `run` still live: those that carry its mark, and those of its journal, `recorded`.
    pub fn count(&self, run: &str, recorded: impl IntoIterator<Item = Process>) -> u64 {
        let mut living = self.0.get_or_init(all_marked).get(run).cloned().unwrap_or_default();
        living.extend(recorded.into_iter().filter(is_alive).map(|process| process.group));
        living.len() as u64
    }
}

/// The living processes that carry the mark of a run, by run. The runner of that run may be gone.
fn all_marked() -> BTreeMap<String, BTreeSet<i32>> {
    let mut marked: BTreeMap<String, BTreeSet<i32>> = BTreeMap::new();
    for (pid, environment) in living_environments() {
        for entry in environment.split(|&byte| byte == 0) {
            let value = entry.strip_prefix(MARK.as_bytes()).and_then(|rest| rest.strip_prefix(b"="));
            if let Some(run) = value.and_then(|run| std::str::from_utf8(run).ok()) {
                marked.entry(run.to_owned()).or_default().insert(pid);
            }
        }
    }
    marked
}

/// Whether the group of a recorded process still has a living one, and no other process has taken its number.
fn is_alive(process: &Process) -> bool {
    let is_there = start_time(process.group) == Some(process.started) && process.started != 0;
    // Since another boot, or on another machine or in another container, the numbers are those of other processes.
    let is_there = is_there && process.boot.is_none_or(|boot| boot_id() == Some(boot));
    let is_there = is_there && process.host.as_ref().is_none_or(|host| host_name().as_ref() == Some(host));
    is_there && Pid::from_raw(process.group).is_some_and(group_lives)
}

/// Ends what this process has left of the run in `folder`; `has_former` says that processes of former runners went on in
/// it. Says how many processes there were, as the subject of a sentence; none where there was none.
pub(crate) fn end_own(folder: &RunFolder, has_former: bool) -> Option<String> {
    // What a former runner started is below none of ours.
    let held = shim::stop_all_shims(&folder.path);
    let ended = end_all(BTreeSet::new(), || match list_descendants() {
        Some(descendants) if held == 0 && !has_former => descendants,
        descendants => descendants.into_iter().flatten().chain(find_marked(&folder.id)).collect(),
    });
    ended.or_else(|| describe_count(held))
}

/// Ends what another process has left of `run`: `recorded` processes and those that carry its mark, but none of what is
/// held by the `shims` that go on. Says how many there were, as [`end_own`] does.
pub(crate) fn end_orphans(
    run: &str,
    recorded: impl IntoIterator<Item = Process>,
    shims: &BTreeSet<i32>,
) -> Option<String> {
    let mut groups = BTreeSet::new();
    let kept = shim::list_below_shims(shims);
    for process in recorded {
        if kept.contains(&process.group) {
            continue;
        }
        if let (true, Some(group)) = (is_alive(&process), Pid::from_raw(process.group)) {
            // A process that has ended meanwhile needs no signal.
            let _ = kill_process_group(group, Signal::TERM);
            groups.insert(process.group);
        }
    }
    end_all(groups, || {
        let mut found = list_descendants().unwrap_or_default();
        found.extend(find_marked(run));
        // Looked up again, as they may start others meanwhile.
        let kept = shim::list_below_shims(shims);
        found.retain(|process| !kept.contains(process));
        found
    })
}

/// The living processes with the mark of `run`, ourselves and those we run under left out.
fn find_marked(run: &str) -> BTreeSet<i32> {
    let mut marked = all_marked().remove(run).unwrap_or_default();
    let ours = list_ancestors();
    marked.retain(|pid| !ours.contains(pid));
    marked
}

fn list_ancestors() -> BTreeSet<i32> {
    let mut ours = BTreeSet::from([getpid().as_raw_nonzero().get()]);
    let mut next = getppid();
    while let Some(pid) = next {
        let pid = pid.as_raw_nonzero().get();
        if !ours.insert(pid) {
            break;
        }
        let status = std::fs::read(format!("/proc/{pid}/status")).unwrap_or_default();
        let parent = status.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(b"PPid:"));
        let parent = parent.map(|digits| std::ffi::OsStr::from_bytes(digits).to_string_lossy().trim().parse());
        next = parent.and_then(Result::ok).and_then(Pid::from_raw);
    }
    ours
}
