//! The process of a tool server: in a group of its own, and ended with all that it started.
//!
//! Invariant: the process is not reaped before its group has been ended, so that no other group has its number.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Child;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;

use super::guard::{Guard, Heard};
use crate::io::children::reap_child;
use crate::io::proc_status::group_ends;
use crate::io::process::{Finder, Launch};

/// How long a server may take to go by itself when nothing more comes on its standard input.
const LEAVE: Duration = Duration::from_millis(500);

/// Between TERM and KILL.
const GRACE: Duration = Duration::from_secs(3);

/// A running server.
#[derive(Debug)]
pub(super) struct Process {
    child: Option<Child>,
    group: Pid,
    pub heard: Heard,
}

/// The two ends that messages pass.
pub(super) type Pipes = (Guard<pipe::Receiver>, pipe::Sender);

impl Process {
    /// Starts a server.
    ///
    /// # Errors
    /// Why it cannot be started.
    pub(super) fn start(
        argv: &[OsString],
        environment: &[(OsString, OsString)],
        directory: &Path,
    ) -> Result<(Process, Pipes), String> {
        let launch = Launch { argv, environment, directory, stdin: Some(&[]), install: None };
        let mut child = Finder::default().start(&launch).map_err(|refused| refused.message)?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let heard = Heard::default();
        let process = Process { group: Pid::from_child(&child), child: Some(child), heard: heard.clone() };
        let (Some(stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else {
            return Err("its pipes cannot be opened".to_owned());
        };
        let broken = |error: std::io::Error| format!("its pipes cannot be read: {error}");
        let stdin = pipe::Sender::from_owned_fd(OwnedFd::from(stdin)).map_err(broken)?;
        let stdout = pipe::Receiver::from_owned_fd(OwnedFd::from(stdout)).map_err(broken)?;
        let mut stderr = pipe::Receiver::from_owned_fd(OwnedFd::from(stderr)).map_err(broken)?;
        let complaints = heard.clone();
        tokio::spawn(async move {
            let mut buffer = vec![0; 4096];
            while let Ok(count @ 1..) = stderr.read(&mut buffer).await {
                complaints.complains(&buffer[..count]);
            }
        });
        Ok((process, (Guard::new(stdout, heard), stdin)))
    }

    /// Ends it; says how it ended if it did so by itself. Blocks for a few seconds at most.
    pub(super) fn end(mut self) -> Option<String> {
        let child = self.child.take()?;
        let left = exits(self.group, LEAVE);
        // It fails when the group is empty, which is what is wanted.
        let _ = kill_process_group(self.group, Signal::TERM);
        if !left {
            exits(self.group, GRACE);
        }
        group_ends(self.group, if left { GRACE } else { Duration::ZERO });
        let status = reap_child(child)?;
        let how = match (status.code(), status.signal()) {
            (Some(code), _) => format!("it ended with exit code {code}"),
            (_, Some(signal)) => format!("signal {signal} ended it"),
            _ => "it ended".to_owned(),
        };
        left.then_some(how)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Even where there is no time to end it in order, nothing is left behind.
        if let Some(child) = self.child.take() {
            let _ = kill_process_group(self.group, Signal::KILL);
            let _ = reap_child(child);
        }
    }
}

/// Waits for a process to end, without reaping it.
fn exits(process: Pid, most: Duration) -> bool {
    let Ok(pidfd) = pidfd_open(process, PidfdFlags::empty()) else {
        return true;
    };
    let most = Timespec { tv_sec: most.as_secs() as i64, tv_nsec: i64::from(most.subsec_nanos()) };
    poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&most)).is_ok_and(|ready| ready > 0)
}
