//! The processes below this one: those that it has started, and the orphans that it has adopted.
//!
//! Invariant: the code that started a process reaps it, and any other code reaps only orphans.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::process::{Child, ExitStatus};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, Pid, WaitId, WaitIdOptions, WaitOptions, getpid, set_child_subreaper, set_dumpable_behavior,
    waitid, waitpid,
};

use crate::io::proc_status::{read_stat, start_time};

/// How often orphans that have ended are reaped.
const SWEEP: Duration = Duration::from_secs(1);

/// How long as many processes as there is room for run at once before one more is tried.
const AGAIN: Duration = Duration::from_secs(1);

/// The processes that were started here and are not yet reaped.
static STARTED: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// How many of them there may be at once.
static ROOM: Mutex<ProcessLimit> = Mutex::new(ProcessLimit { most: usize::MAX, lowered: None });

/// Held shared while a process is started: no thread may take it for an orphan until it is in [`STARTED`].
static STARTING: RwLock<()> = RwLock::new(());

/// When [`sweep_orphans`] reaps next.
static NEXT_SWEEP: Mutex<Option<Instant>> = Mutex::new(None);

/// The children that this process had before it adopted any, with the moments at which they started.
static BEFORE: OnceLock<BTreeSet<(i32, u64)>> = OnceLock::new();

/// Makes this process the one to which every process below it falls when its parent ends, whatever it does to its
/// environment, its group and its session: who descends from a run stays below its runner. From now on no process of
/// the same user reads or changes the memory of this one either.
///
/// It is for the whole process, which must start others with this crate alone.
///
/// # Errors
/// The system has no such thing.
pub fn adopt_orphans() -> io::Result<()> {
    let known = list_children().into_iter().filter_map(|child| Some((child, start_time(child)?)));
    if BEFORE.set(known.collect()).is_err() {
        return Ok(());
    }
    set_child_subreaper(Some(getpid()))?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    *NEXT_SWEEP.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now() + SWEEP);
    Ok(())
}

/// The processes that run at once at most.
#[derive(Clone, Copy, Debug)]
struct ProcessLimit {
    most: usize,
    /// When it was found to be no more; none where it was known before.
    lowered: Option<Instant>,
}

impl ProcessLimit {
    /// Whether there is room for one more beside those that run. What was found once is tried again after a while.
    fn has_more(&mut self, running: usize, now: Instant) -> bool {
        if running >= self.most && self.lowered.is_some_and(|lowered| lowered + AGAIN <= now) {
            *self = ProcessLimit { most: running + 1, lowered: Some(now) };
        }
        running < self.most
    }
}

/// From now on so many processes run at once at most.
pub(crate) fn set_limit(most: usize) {
    *lock_room() = ProcessLimit { most: most.max(1), lowered: None };
}

/// So many, or as many as may run at once where those are fewer.
pub(crate) fn at_most(many: u32) -> u32 {
    u32::try_from(lock_room().most).map_or(many, |most| most.min(many))
}

/// Whether there is room for one more process; how many there are.
pub(crate) fn has_room() -> (bool, usize) {
    let running = lock_started().len();
    (lock_room().has_more(running, Instant::now()), running)
}

/// There was no room for one more.
pub(crate) fn lower_limit() {
    let running = lock_started().len();
    *lock_room() = ProcessLimit { most: running.max(1), lowered: Some(Instant::now()) };
}

/// Starts a process by `spawn`; it is reaped by [`reap`].
pub(crate) fn start_child(spawn: impl FnOnce() -> io::Result<Child>) -> io::Result<Child> {
    let _starting = STARTING.read().unwrap_or_else(PoisonError::into_inner);
    let child = spawn()?;
    lock_started().insert(Pid::from_child(&child).as_raw_nonzero().get());
    Ok(child)
}

/// Waits for a process that [`start`] has started; how it ended.
pub(crate) fn reap_child(mut child: Child) -> Option<ExitStatus> {
    // It fails only when other code in this process has reaped it already.
    let status = child.wait().ok();
    lock_started().remove(&Pid::from_child(&child).as_raw_nonzero().get());
    status
}

/// These processes, as far as they live, and the living ones below them.
pub(crate) fn list_below(processes: &BTreeSet<i32>) -> BTreeSet<i32> {
    let mut below = group_by_parent();
    let living: BTreeSet<i32> =
        below.values().flatten().copied().filter(|process| processes.contains(process)).collect();
    let mut found = living.clone();
    let mut next: Vec<i32> = living.into_iter().collect();
    while let Some(process) = next.pop() {
        for child in below.remove(&process).unwrap_or_default() {
            if found.insert(child) {
                next.push(child);
            }
        }
    }
    found
}

/// The living processes of this machine by their parents.
fn group_by_parent() -> BTreeMap<i32, Vec<i32>> {
    let mut below: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(process) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let parent = read_stat(process, |fields| match fields {
            ["Z", ..] => None,
            [_, parent, ..] => parent.parse().ok(),
            _ => None,
        });
        below.entry(parent.unwrap_or(0)).or_default().push(process);
    }
    below
}

/// The living processes below this one. None where it does not adopt orphans, since their owner is then unknown.
pub(crate) fn list_descendants() -> Option<BTreeSet<i32>> {
    let before = BEFORE.get()?;
    let is_new = |child: &i32| !start_time(*child).is_some_and(|started| before.contains(&(*child, started)));
    // Without a child there is nothing below it: all processes of a machine need not be looked at for that.
    if !has_children() {
        return Some(BTreeSet::new());
    }
    let mut below = group_by_parent();
    let mut found = BTreeSet::new();
    let mut next = vec![getpid().as_raw_nonzero().get()];
    while let Some(process) = next.pop() {
        for child in below.remove(&process).unwrap_or_default() {
            if is_new(&child) {
                found.insert(child);
                next.push(child);
            }
        }
    }
    Some(found)
}

/// Reaps the orphans that have ended, where the time for that has come; when it comes next. None where this process adopts
/// none.
pub(crate) fn sweep_orphans() -> Option<Instant> {
    let mut next = NEXT_SWEEP.lock().unwrap_or_else(PoisonError::into_inner);
    let now = Instant::now();
    if (*next)? <= now {
        reap_orphans();
        *next = Some(now + SWEEP);
    }
    *next
}

/// Reaps the orphans that have ended.
pub(crate) fn reap_orphans() {
    let orphans = || list_children().into_iter().filter(|child| !lock_started().contains(child));
    if orphans().next().is_none() {
        return;
    }
    let _no_process_starts = STARTING.write().unwrap_or_else(PoisonError::into_inner);
    for orphan in orphans().filter_map(Pid::from_raw) {
        // One that lives is looked at again.
        let _ = waitpid(Some(orphan), WaitOptions::NOHANG);
    }
}

/// The children of this process that its first thread has, among them every orphan.
fn list_children() -> Vec<i32> {
    let process = getpid().as_raw_nonzero();
    let children = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    children.split_ascii_whitespace().filter_map(|child| child.parse().ok()).collect()
}

fn lock_room() -> MutexGuard<'static, ProcessLimit> {
    ROOM.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether this process has a child, whichever of its threads has started it; one that is not yet reaped counts.
fn has_children() -> bool {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(waitid(WaitId::All, look), Err(Errno::CHILD))
}

fn lock_started() -> MutexGuard<'static, BTreeSet<i32>> {
    STARTED.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_to_be_full_is_tried_again_and_what_was_known_is_not() {
        let now = Instant::now();
        let mut known = ProcessLimit { most: 2, lowered: None };
        assert_eq!([1, 2].map(|running| known.has_more(running, now + AGAIN * 9)), [true, false]);
        let mut found = ProcessLimit { most: 2, lowered: Some(now) };
        assert_eq!([1, 2].map(|running| found.has_more(running, now)), [true, false]);
        assert!(found.has_more(2, now + AGAIN));
        assert!(!found.has_more(3, now + AGAIN), "one at a time");
        assert!(found.has_more(3, now + AGAIN * 2));
    }
}
