//! Processes that are held on other machines, by the same talk as those of a shim.

use std::ffi::OsString;
use std::fmt::Debug;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::HeldAttempt;

/// What holds processes elsewhere. It is a shim to its runner: it tells lines on a connection, and keeps the streams of a
/// process in its folder.
pub(crate) trait RemoteHolder: Send + Sync + Debug {
    /// Has a process started; what there is to say of it goes through `stream`. Where it cannot be, that is said as its end.
    fn start(&self, launch: RemoteLaunch, stream: UnixStream);

    /// Comes back to a process that a former driver has had started; none where it has not.
    fn rejoin(&self, folder: &Path) -> Option<UnixStream>;

    /// What a former driver has left below `folder`, where this one can go on with it.
    fn find_held(&self, folder: &Path) -> Option<HeldAttempt>;

    /// Processes call the tools of the run at this address, as it is here.
    fn serve_tools(&self, url: &str);

    /// Forgets, and ends, all processes below `folder`.
    fn forget(&self, folder: &Path);
}

/// What is to be started elsewhere.
#[derive(Debug)]
pub(crate) struct RemoteLaunch {
    /// Its folder here.
    pub folder: PathBuf,
    /// The pool of workers.
    pub pool: Arc<str>,
    /// As it would be started here.
    pub command: HeldCommand,
}

/// A program that a shim is to start and hold.
#[derive(Debug)]
pub(crate) struct HeldCommand {
    pub argv: Vec<OsString>,
    pub environment: Vec<(OsString, OsString)>,
    pub directory: PathBuf,
    pub stdin: Option<Vec<u8>>,
    /// Whether its stdin stays open for more.
    pub talks: bool,
    /// How long it may live, and how long it may put out nothing.
    pub timeout_ms: Option<u64>,
    pub idle_ms: Option<u64>,
    /// How long it may live without a runner.
    pub orphan_ms: u64,
    /// How its program is installed, for the message where it is missing.
    pub install: Option<String>,
}

/// In the environment of a process that starts elsewhere: the variable whose value is the name behind this is passed
/// from the environment of its worker. No variable of a spec is called so.
pub(crate) const PASSED: &str = "?passed";

/// The same of a secret, which the worker must have.
pub(crate) const SECRET: &str = "?secret";
