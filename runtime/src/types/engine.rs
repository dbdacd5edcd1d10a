//! What driver, engine and workers tell each other in a run on several machines. All of it is JSON over HTTP, through the
//! services of the engine.
//!
//! ```text
//!             Inbox/RUN start, say                     Pull deliveries (long poll)
//!  driver ──────────────────────────► Queue/POOL ◄──────────────────────────────── worker
//!    ▲  │ View/RUN append                                                            │
//!    │  └────────────► View/RUN ──► followers                                        │
//!    └──── Pull items (long poll) ◄──────────────── Inbox/RUN push ◄─────────────────┘
//! ```
//!
//! A *process* is one program that an attempt needs: `RUN/STEP.ATTEMPT/NUMBER`. It is started as often as its worker is
//! lost, and each start has a number. Reports of a start that is over are refused: that fences a worker that comes back.
//!
//! A *driver* is one process that carries a run on. Each has a number, too: what a former one writes is refused.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::user_request::{GateAnswer, UserMessage};

/// The bytes of a text beyond which it goes through the object store, and its digest in its place.
pub const INLINE_BYTES: usize = 32 * 1024;

/// One start of a process.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Started {
    /// `RUN/STEP.ATTEMPT/NUMBER`.
    pub process: String,
    /// Which start of it, counted in its run.
    pub start: u64,
}

impl Started {
    /// The run that it is part of.
    pub fn run(&self) -> &str {
        self.process.split('/').next().unwrap_or_default()
    }
}

/// Bytes that are here, or in the object store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bytes {
    /// A text.
    Text(String),
    /// Bytes that are no text, in Base64.
    Base64(String),
    /// The digest of an object, and its length.
    Object {
        /// SHA-256, in hexadecimal digits.
        digest: String,
        /// In bytes.
        length: u64,
    },
}

/// The value of a variable of a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Variable {
    /// This text.
    Set(String),
    /// What the worker has in its own variable of this name; without one, the process has none.
    Passed,
    /// The same of a secret: a worker without it takes no such process.
    Secret,
}

/// The files that a process finds: those of a commit, and the changes of the run since.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Files {
    /// The commit that the run began with; none where the run has no repository: then the folder is empty.
    pub commit: Option<String>,
    /// The digests of the patches that the run has applied since, in order.
    pub patches: Vec<String>,
}

/// What a worker is to start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Behind the variables that every process of the worker has; of two with one name the later counts.
    pub environment: Vec<(String, Variable)>,
    /// The folder that it runs in, within those files.
    pub directory: String,
    /// What it reads; none where it has nothing to read.
    pub stdin: Option<Bytes>,
    /// Whether more follows that it is to read.
    pub talks: bool,
    /// How long it may take, and put out nothing, in milliseconds, where no driver says so.
    pub timeout_ms: Option<u64>,
    /// See `timeout_ms`.
    pub idle_ms: Option<u64>,
    /// How long it lives without a worker, in milliseconds.
    pub orphan_ms: u64,
    /// How to install the program, for the message when it is missing.
    pub install: Option<String>,
    /// The files that it finds.
    pub files: Files,
    /// Whether what it changes of them is part of the run.
    pub keeps_changes: bool,
}

/// What the driver offers to a pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewProcess {
    /// `RUN/STEP.ATTEMPT/NUMBER`.
    pub process: String,
    /// The pool.
    pub pool: String,
    /// Whether it is talked with: another driver cannot go on with that.
    #[serde(default)]
    pub talks: bool,
    /// An [`Order`].
    pub order: Bytes,
}

/// Processes to start, for `Inbox/RUN start`. The answer has the number of each start, in the same order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// The number of the driver.
    pub driver: u64,
    /// What is started. What was known of former starts of these processes is forgotten.
    pub processes: Vec<NewProcess>,
}

/// A process in the queue of a pool, for `Queue/POOL offer`, and for the worker that takes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuedStart {
    /// Which start of which process.
    #[serde(flatten)]
    pub of: Started,
    /// An [`Order`].
    pub order: Bytes,
}

/// Lines for the shim of a process, for `Inbox/RUN say`: what the driver says to a shim of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Say {
    /// To which.
    #[serde(flatten)]
    pub of: Started,
    /// The number of the first of these lines, from 0: a line that comes again changes nothing.
    pub from: u64,
    /// JSON, one line each.
    pub lines: Vec<Bytes>,
}

/// The same of several processes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Says {
    /// The number of the driver.
    pub driver: u64,
    /// To each.
    pub says: Vec<Say>,
}

/// A worker asks for work, for `Pull deliveries`. It asks at least every 25 seconds, or twice within the lease of the
/// engine: one that does not ask for so long is lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    /// The pool.
    pub pool: String,
    /// The id of the worker: that of its host and home, so that one that starts again is the same.
    pub worker: String,
    /// How many more processes it can start.
    pub free: u32,
    /// What it has, and how many lines for each have come: what it does not name never came, and is sent again.
    pub has: Vec<(Started, u64)>,
    /// What has ended since it asked last, or cannot be started, and then why. The inbox of the run knows the ends.
    pub done: Vec<(Started, Option<String>)>,
}

/// What a worker is given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// To be started.
    Start(QueuedStart),
    /// For the shim.
    Say(Say),
    /// To be ended: another start has its place, or its run is over.
    End(Started),
}

/// What a worker reports of a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Of which.
    #[serde(flatten)]
    pub of: Started,
    /// The number of the report, from 1, without gaps: one that comes again changes nothing.
    pub number: u64,
    /// What.
    pub fact: ReportEvent,
}

/// What a driver wants of its inbox, for `Pull items`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Take {
    /// The run.
    pub run: String,
    /// The number of the driver.
    pub driver: u64,
    /// The items behind this number.
    pub after: u64,
    /// Whether it does not wait where there is nothing.
    #[serde(default)]
    pub at_once: bool,
}

/// What a driver needs no more, for `Inbox/RUN forget`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forget {
    /// Processes whose names begin so, with all their reports.
    pub processes: Vec<String>,
    /// Items.
    pub items: Vec<u64>,
}

/// What there is to report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReportEvent {
    /// A line of its shim, except for those that say how much came: JSON.
    Line(String),
    /// It lives, on this host.
    Lives {
        /// The name of the host.
        host: String,
        /// The line of the shim.
        line: String,
    },
    /// Bytes of a stream: 0 is standard output, 1 standard error.
    Output {
        /// Which.
        stream: u8,
        /// What.
        bytes: Bytes,
    },
    /// It has ended.
    Ended {
        /// The line of the shim.
        line: String,
        /// What it changed, as a patch of Git against the files that it found; none where it changed nothing.
        patch: Option<Patch>,
    },
    /// Its worker is lost. The engine reports this, without a number.
    Lost,
    /// A worker cannot start it. The engine reports this, without a number.
    Refused {
        /// The worker.
        worker: String,
        /// Why.
        why: String,
    },
}

/// What a process changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Patch {
    /// The digest of the patch, in the object store.
    pub digest: String,
    /// The paths that it changes, within the repository.
    pub paths: Vec<String>,
}

/// What people want of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UserOrder {
    /// It is to stop; at once, where that is true.
    Stop(bool),
    /// The answer to a gate.
    Answer(GateAnswer),
    /// A message.
    Message(UserMessage),
}

/// What the driver receives, for `Pull items`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Item {
    /// Of a worker.
    Report(Report),
    /// Of a person, who waits for an answer.
    User {
        /// What.
        order: UserOrder,
        /// Where the answer goes: `Answers answer`.
        reply: String,
    },
    /// Of a process that calls the run, and waits for the answer.
    Call {
        /// Which.
        #[serde(flatten)]
        of: Started,
        /// The request.
        request: HttpRequest,
        /// Where the answer goes.
        reply: String,
    },
}

/// A request of a process to the server of its run, as it is passed on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpRequest {
    /// Whether it came on the port for tools, and not on the socket.
    pub is_tools: bool,
    /// `POST`.
    pub method: String,
    /// With the query.
    pub path: String,
    /// Names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The whole body.
    pub body: Bytes,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpResponse {
    /// The status.
    pub status: u16,
    /// Names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The whole body.
    pub body: Bytes,
}

/// A file of the folder of a run that is not its journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptFile {
    /// Below the folder of the run, or behind `outputs/` below that of its outputs.
    pub path: String,
    /// Where in the file these bytes begin; 0 replaces it.
    pub from: u64,
    /// The bytes.
    pub bytes: Bytes,
}

/// New records of a run, for `View/RUN append`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Append {
    /// The number of the driver.
    pub driver: u64,
    /// The number of the first of these records, from 1.
    pub from: u64,
    /// Lines of the journal, without their ends.
    pub lines: Vec<String>,
    /// Files that were written.
    pub files: Vec<KeptFile>,
    /// Whether it has ended.
    pub is_over: bool,
}

/// What a follower wants of a run, for `View/RUN read`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Read {
    /// The records behind this number.
    pub after: u64,
    /// The files behind so many.
    pub files_after: u64,
}

/// A part of a run, for its followers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    /// Lines of the journal.
    pub lines: Vec<String>,
    /// Files.
    pub files: Vec<KeptFile>,
    /// How many records and files there are in all.
    pub records: u64,
    /// See `records`.
    pub all_files: u64,
    /// Whether the run has ended.
    pub is_over: bool,
}

/// A run to carry out, for `Run/RUN run`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Submission {
    /// The digest of the plan, in the object store.
    pub plan: String,
    /// As in [`Options`](crate::Options).
    pub pipeline: Option<String>,
    /// See `pipeline`.
    pub task: Option<String>,
    /// See `pipeline`.
    pub params: BTreeMap<String, String>,
    /// The digest of what was piped into `swarmc run`.
    pub stdin: Option<String>,
    /// Whether no person can answer.
    pub headless: bool,
    /// The commit that it works on.
    pub commit: Option<String>,
    /// The version of swarmc that made the plan.
    pub version: String,
}
