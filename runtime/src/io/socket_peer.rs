//! Finds out who is at the other end of a Unix socket: which attempt of this run, or a process outside of it.
//!
//! In: a connection, and the process groups of the attempts under way. Out: a [`PeerCredentials`]. The kernel names the
//! process that connected, and `/proc` its ancestors; orphans stay below the runner, see [`crate::adopt_orphans`].
//! Invariant: only a process that is known to be of this run counts as one; one that has ended meanwhile is untraced.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nix::errno::Errno;
use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerPidfd;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::socket_peercred;
use rustix::process::getpid;

use crate::io::proc_status::read_stat;
use crate::types::event::StepId;

/// The variable by which a process of a run is known, whatever became of its process group.
pub(crate) const MARK: &str = "SWARM_RUN";

/// What the variables begin with by which a run marks its processes.
pub(crate) const MARKS: &str = "SWARM_";

/// The first argument of a program that holds processes of runs.
pub(crate) const SHIM: &str = "shim";

/// How many ancestors of a process are looked at: only a process that hides has more.
const DEEPEST: usize = 4096;

/// How often a walk upwards begins again: who ends on the way leaves its children to another process.
const WALKS: usize = 16;

/// A step, and an attempt at it.
pub(crate) type Owner = (StepId, u32);

/// Who is at the other end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PeerCredentials {
    /// A process of this run, and the attempt that it belongs to, where that is known.
    Within(Option<Owner>),
    /// A process outside this run.
    Outside,
    /// It has ended, or hides behind processes without end.
    Untraced,
}

/// The processes of a run. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct Processes {
    run: Arc<str>,
    groups: Arc<Mutex<Groups>>,
}

/// The process groups of the attempts that are under way.
#[derive(Debug, Default)]
struct Groups {
    /// Whose each is: that of the last one that has started it.
    owners: HashMap<i32, Owner>,
    /// What each has started.
    started: HashMap<Owner, Vec<i32>>,
}

impl Processes {
    /// Those of `run`, which this process runs.
    pub(crate) fn new(run: &str) -> Processes {
        Processes { run: run.into(), groups: Arc::default() }
    }

    /// An attempt has started this process group.
    pub(crate) fn add(&self, group: i32, owner: Owner) {
        let Groups { owners, started } = &mut *self.groups();
        started.entry(owner.clone()).or_default().push(group);
        owners.insert(group, owner);
    }

    /// An attempt is over.
    pub(crate) fn remove(&self, step: &StepId, attempt: u32) {
        let owner = (step.clone(), attempt);
        let Groups { owners, started } = &mut *self.groups();
        for group in started.remove(&owner).unwrap_or_default() {
            if owners.get(&group) == Some(&owner) {
                owners.remove(&group);
            }
        }
    }

    /// Who has opened a connection.
    pub(crate) fn peer(&self, connection: impl AsFd) -> PeerCredentials {
        // The kernel has no number for it that means anything here: it lives in another container.
        let Ok(credentials) = socket_peercred(&connection) else { return PeerCredentials::Outside };
        // Where it has ended, its number may belong to another process by now, which would be let in.
        let process = match getsockopt(&connection, PeerPidfd) {
            Ok(process) => Some(process),
            // A kernel before 6.5 does not know it.
            Err(Errno::ENOPROTOOPT) => None,
            Err(_) => return PeerCredentials::Untraced,
        };
        let peer = self.place(credentials.pid.as_raw_nonzero().get());
        match process.is_none_or(|process| lives(&process)) {
            true => peer,
            false => PeerCredentials::Untraced,
        }
    }

    fn place(&self, process: i32) -> PeerCredentials {
        let us = getpid().as_raw_nonzero().get();
        if process == us {
            return PeerCredentials::Outside;
        }
        let Some(above) = (0..WALKS).find_map(|_| upwards(process, us)).filter(|above| !above.is_empty()) else {
            return PeerCredentials::Untraced;
        };
        let owner = {
            let groups = self.groups();
            above.iter().find_map(|standing| groups.owners.get(&standing.group)).cloned()
        };
        let is_ours = owner.is_some()
            || above.last().is_some_and(|topmost| topmost.parent == us)
            || above.iter().any(|standing| self.marks(standing.process));
        if is_ours { PeerCredentials::Within(owner) } else { PeerCredentials::Outside }
    }

    /// Whether a process was started with the mark of this run, as one is whose parent has ended.
    fn marks(&self, process: i32) -> bool {
        let environment = std::fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
        let value = |entry: &[u8]| entry.strip_prefix(MARK.as_bytes())?.strip_prefix(b"=").map(<[u8]>::to_owned);
        environment.split(|&byte| byte == 0).filter_map(value).any(|value| value == self.run.as_bytes())
    }

    fn groups(&self) -> MutexGuard<'_, Groups> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The process at the other end of a connection, where it still lives.
pub fn living_peer(connection: impl AsFd) -> Option<i32> {
    let pid = socket_peercred(&connection).ok()?.pid.as_raw_nonzero().get();
    match getsockopt(&connection, PeerPidfd) {
        Ok(process) => lives(&process).then_some(pid),
        // A kernel before 6.5 does not know it.
        Err(Errno::ENOPROTOOPT) => Some(pid),
        Err(_) => None,
    }
}

/// Whether a process of this machine belongs to any run: it, or an ancestor, was started with the mark of one.
pub fn belongs_to_run(process: i32) -> bool {
    let marked = |process: i32| {
        let environment = std::fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
        environment
            .split(|&byte| byte == 0)
            .any(|entry| entry.strip_prefix(MARK.as_bytes()).is_some_and(|value| value.len() > 1 && value[0] == b'='))
    };
    // One that hides behind processes without end is no person either.
    let above = (0..WALKS).find_map(|_| upwards(process, 0)).unwrap_or_default();
    above.is_empty() || above.iter().any(|standing| marked(standing.process) || is_shim(standing.process))
}

/// Whether a process holds one of a run: orphans of that are below it.
fn is_shim(process: i32) -> bool {
    let line = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    line.split(|&byte| byte == 0).nth(1) == Some(SHIM.as_bytes())
}

/// Whether the process behind a handle has not ended.
fn lives(process: &OwnedFd) -> bool {
    let ended = poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&Timespec::default()));
    ended.is_ok_and(|ended| ended == 0)
}

/// A process with its parent and its group.
struct Standing {
    process: i32,
    parent: i32,
    group: i32,
}

/// A process and its ancestors, up to a child of `us` or the first of all. Empty where they are too many; none where
/// one of them has ended meanwhile.
fn upwards(process: i32, us: i32) -> Option<Vec<Standing>> {
    let mut above = Vec::new();
    let mut next = process;
    while next > 0 && next != us {
        if above.len() == DEEPEST {
            return Some(Vec::new());
        }
        let (parent, group) =
            read_stat(next, |fields| Some((fields.get(1)?.parse().ok()?, fields.get(2)?.parse().ok()?)))?;
        above.push(Standing { process: next, parent, group });
        next = parent;
    }
    Some(above)
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::{ChildStdin, Command, Stdio};

    use rustix::process::getppid;

    use super::*;

    /// An orphan that no process of this run started, with its group; it ends with its input.
    fn orphan(mark: &str) -> (ChildStdin, i32, i32) {
        let mut parent = Command::new("sh");
        parent.args(["-c", "exec 3<&0; cat <&3 >/dev/null 2>&1 & echo $!"]).env(MARK, mark).process_group(0);
        let mut parent = parent.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, group) = (parent.stdin.take().unwrap(), number(parent.id()));
        let said = String::from_utf8(parent.wait_with_output().unwrap().stdout).unwrap();
        (input, group, said.trim().parse().unwrap())
    }

    fn number(id: u32) -> i32 {
        i32::try_from(id).unwrap()
    }

    #[test]
    fn a_process_is_placed_by_its_parents_by_its_group_and_by_its_mark() {
        let processes = Processes::new("run-1");
        let owner = (StepId::new("coder", 1, 1), 2);
        for person in [getpid(), getppid().unwrap()] {
            assert_eq!(processes.place(person.as_raw_nonzero().get()), PeerCredentials::Outside);
        }
        let mut child = Command::new("cat").stdin(Stdio::piped()).process_group(0).spawn().unwrap();
        let pid = number(child.id());
        assert_eq!(processes.place(pid), PeerCredentials::Within(None));
        processes.add(pid, owner.clone());
        assert_eq!(processes.place(pid), PeerCredentials::Within(Some(owner.clone())));
        processes.remove(&owner.0, 1);
        assert_eq!(processes.place(pid), PeerCredentials::Within(Some(owner.clone())));
        processes.remove(&owner.0, 2);
        assert_eq!(processes.place(pid), PeerCredentials::Within(None));
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!(processes.place(pid), PeerCredentials::Untraced);

        let (_input, group, pid) = orphan("run-12");
        assert_eq!(processes.place(pid), PeerCredentials::Outside, "it is of another run");
        processes.add(group, owner.clone());
        assert_eq!(processes.place(pid), PeerCredentials::Within(Some(owner)));
        let (_input, _, pid) = orphan("run-1");
        assert_eq!(processes.place(pid), PeerCredentials::Within(None));
    }
}
