//! Processes that outlive their runner: each is started and held by `swarmc shim`, a small process of its own.
//!
//! ```text
//!  runner ──socket pair──► shim ──pipes──► program       runner is killed: shim and program go on
//!     ▲                     │
//!     └── reads ── out, err ┘ writes                     next runner ── sock ──► shim
//! ```
//!
//! In: what to start, as one line of JSON on the shim's standard input. Out: `out` and `err` in the folder of the process,
//! its messages over ACP in `in`, and at its end `exit`. The runner reads the files; over the connection come only lengths, what
//! the program is to read, and its end. So a later runner reads everything from the beginning, whatever the former one had
//! read of it.
//!
//! The values of secrets reach the shim on its standard input, and are in none of the files.
//!
//! Invariants: a shim holds one process and ends with it; the runner that is connected enforces limits, the shim does so
//! while none is; a process of a run is refused as a runner.

mod attach;
mod find;
mod follow;
mod reader;
mod relay;
mod remote;
mod serve;
mod spool;
mod spools;

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

pub(crate) use attach::run_held_process;
pub(crate) use find::{HeldAttempt, find_held, list_below_shims, stop_all_shims, stop_shims};
pub(crate) use relay::{Relay, Said, describe_refusal, find_relay, read_line};
pub(crate) use remote::{HeldCommand, PASSED, RemoteHolder, RemoteLaunch, SECRET};
pub use serve::serve_shim;
pub(crate) use spool::{Spool, create_spools};

use super::process::Cause;
use crate::types::event::BootId;

/// The program that has this subcommand.
static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Has processes that may outlive this one held by `program shim`, whose `main` calls [`serve_shim`]. Without this, none
/// outlives it.
pub fn hold_processes_with(program: PathBuf) {
    // The first word counts: it is for the whole process.
    let _ = PROGRAM.set(program);
}

/// Where one process of an attempt is held, and for how long without a runner.
#[derive(Clone, Debug)]
pub(crate) struct Hold {
    /// The folder of the run.
    pub run: PathBuf,
    /// `attempts/…/STEP.ATTEMPT/NUMBER`.
    pub folder: PathBuf,
    /// How long it is kept where no runner comes back.
    pub orphan_limit: Duration,
    /// The record that began the attempt in this runner: of two runners the shim listens to the one with the higher.
    pub epoch: u64,
    /// Whether a former runner may have started the process.
    pub rejoins: bool,
    /// Where it is held on another machine: by what, and the pool of workers.
    pub remote: Option<Remote>,
}

/// Where processes are held on other machines.
#[derive(Clone, Debug)]
pub(crate) struct Remote {
    pub holder: Arc<dyn RemoteHolder>,
    pub pool: Arc<str>,
}

impl Hold {
    /// The same for a process that starts again, whatever a former runner had started.
    pub(crate) fn anew(self) -> Hold {
        Hold { rejoins: false, ..self }
    }

    /// The messages that the program received.
    pub(crate) fn input_path(&self) -> PathBuf {
        self.folder.join("in")
    }
}

/// Whether this process has a program that holds others.
pub(crate) fn can_hold() -> bool {
    PROGRAM.get().is_some()
}

/// Opens a file of a shim: what another process put in its place, a link or a pipe, is refused, and never waited for.
fn open_plain(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidData, "it is no plain file")),
    }
}

fn socket_path(folder: &Path) -> PathBuf {
    folder.join("sock")
}

/// What a shim is to start.
#[derive(Debug, Serialize, Deserialize)]
struct Order {
    folder: PathBuf,
    /// The folder of the run: only a process that has its lock is a runner.
    run: PathBuf,
    argv: Vec<Words>,
    environment: Vec<(Words, Words)>,
    directory: PathBuf,
    /// What the program reads; none where it has nothing to read.
    stdin: Option<String>,
    /// Whether more follows that it is to read.
    talks: bool,
    /// How long it may take, put out nothing, and live without a runner.
    timeout_ms: Option<u64>,
    idle_ms: Option<u64>,
    orphan_ms: u64,
    /// How to install the program, for the message when it is missing.
    install: Option<String>,
    epoch: u64,
}

/// Words of the system as JSON: nearly all are text, and are written as such. Each says which: to find that out by a try
/// takes much more code, of which each shim has its part in memory.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Words {
    Text(String),
    Bytes(Vec<u8>),
}

impl From<OsString> for Words {
    fn from(words: OsString) -> Words {
        words.into_string().map_or_else(|words| Words::Bytes(words.into_vec()), Words::Text)
    }
}

impl From<Words> for OsString {
    fn from(words: Words) -> OsString {
        match words {
            Words::Text(text) => text.into(),
            Words::Bytes(bytes) => OsString::from_vec(bytes),
        }
    }
}

/// A line of the runner.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FromRunner {
    /// The first line of a later runner: it takes the process over.
    Hello { epoch: u64 },
    /// The first line of a connection that only asks.
    Ask,
    /// The first line of a connection that has the process end.
    Stop,
    /// The program is to read this.
    Write(String),
    /// It is to read nothing more.
    Close,
    /// The runner has asked it to end its work, for this. Where the runner goes meanwhile, the shim ends it.
    Parting(EndCause),
    /// The runner ends it, for this.
    Ending(EndCause),
    /// So much of both streams has been read.
    Read([u64; 2]),
}

/// A line of the shim.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FromShim {
    /// The program runs.
    Lives(Living),
    /// The bytes of both streams so far.
    Came([u64; 2]),
    /// The bytes that it has read so far of what runners told it, and whether it takes no part in the talk any more.
    Heard { bytes: u64, is_gone: bool },
    /// It has ended, or could not be started.
    Ended(Exit),
}

/// A process that is held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Living {
    /// Its group.
    pub group: i32,
    /// The shim.
    pub shim: i32,
    /// How long it has lived, and how long ago it put something out, in milliseconds.
    pub age_ms: u64,
    pub silent_ms: u64,
    /// The bytes of both streams so far, and those that runners have told it.
    pub came: [u64; 2],
    pub told: u64,
    /// The token and the address of tools that its environment has, where it has any: the next runner opens both again.
    pub token: Option<String>,
    pub tools: Option<String>,
    /// Its host, where that is another one: then its numbers mean nothing here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<Arc<str>>,
}

/// How a process ended that was held: what is in the file `exit`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Exit {
    pub cause: EndCause,
    pub exit: i32,
    pub signal: Option<i32>,
    /// Why it could not be started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// The bytes of both streams.
    pub came: [u64; 2],
    /// The boot in which it ended: after a crash of the machine the streams may not be whole.
    pub boot: Option<BootId>,
}

/// Why it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EndCause {
    /// By itself.
    Exit,
    /// Its time was over while no runner was there.
    Timeout,
    /// It put out nothing for too long while no runner was there.
    Idle,
    /// No runner came back.
    Orphaned,
    /// Its output could not be written.
    Disk,
    /// The run was stopped, or a person ended what it had left.
    Stopped,
    /// Its worker is lost.
    Lost,
}

impl EndCause {
    /// What that is for an attempt; none where nothing of it counts, and the attempt starts again.
    fn as_cause(self) -> Option<Cause> {
        match self {
            EndCause::Exit => Some(Cause::Exit),
            EndCause::Timeout => Some(Cause::Timeout),
            EndCause::Idle => Some(Cause::Idle),
            EndCause::Disk => Some(Cause::Lost("the disk is full: its output could not be written for 60 seconds")),
            EndCause::Orphaned => Some(Cause::Orphaned),
            EndCause::Stopped => None,
            EndCause::Lost => Some(Cause::WorkerLost),
        }
    }
}
