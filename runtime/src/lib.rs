//! Runs a plan: `plan ─► decide ─► commands ─► executors ─► events ─► journal ─► state`, round and round.
//!
//! The layers, from below. A module imports from its own layer and from those below it, never from one above:
//!
//! - `types`: the data that all of them share
//! - `core`: decides what happens next, and is pure
//! - `io`: the journal, the home, processes, agents, models and tools
//! - `eval`: expressions, templates, prompts and context packs
//! - `driver`: the loop of a run, rehearsals and the simulation

mod core;
mod driver;
mod eval;
mod io;
mod types;

pub use core::decide::{Command, decide_commands};
pub use core::graph::{Graph, GraphError, MAX_STEPS};
pub use core::reopen::Retry as RetryRun;
pub use core::reopened_records::effective;
pub use core::snapshot::{SnapshotError, pairs};
pub use core::state::{Blocked, Counts, End, Open, Pending, Progress, Reading, Standing, State, Waiting};
pub use core::swarm;
pub use driver::run::engine::{EngineRun, drive_run};
pub use driver::run::engine_client::run_on_engine;
pub use driver::run::rehearsal::{Answer, Asks, Fault, Member, Prompted, Rehearsal, Turn, rehearse};
pub use driver::run::{
    Ended, Fate, Options, Outcome as RunOutcome, PlannedStep, Program, find_programs, plan_reuse, resume_run,
    retry_run, start_run,
};
pub use driver::{Prune, Pruned, PrunedRun, RunAge};
pub use eval::load::load_plan;
pub use eval::pack;
pub use io::agent_api::{
    MCP, NOTICES, Place, Places, SOCKET, TOKEN, bearer_token, send_operation, serve_stdio, single_header,
};
pub use io::children::adopt_orphans;
pub use io::control::Control;
pub use io::engine::{Engine, Mirror};
pub use io::engine::{WorkerOptions, WorkerStop, serve_worker};
pub use io::files::{AgentFiles, KeptFile, agent_status};
pub use io::home::{Home, JournalRead, Layout, RunFolder, Runner, SNAPSHOTS, SnapshotWriter};
pub use io::journal::JournalFollower;
pub use io::orphan_processes::{LeftProcesses, end_survivors};
pub use io::recording::{RECORDING_VERSION, Recording};
pub use io::shim::{hold_processes_with, serve_shim};
pub use io::socket::{activities, answer_gate, request_stop, send_message};
pub use io::socket_peer::{belongs_to_run, living_peer};
pub use io::stream::{ANSWER_LIMIT, Decoder, Item, LINE_LIMIT, Report, ToolResult, ToolUse};
pub use types::activity::{Activity, Flow};
pub use types::agent_status::{AgentState, AgentStatus, Progress as AgentProgress, Trouble};
pub use types::answer::parse_typed;
pub use types::approval::{Choice, Request, RequestKind, Same, Verdict};
pub use types::artifact;
pub use types::divergence::{Difference, Divergence};
pub use types::engine;
pub use types::error::{JournalError, RunError};
pub use types::event::*;
pub use types::handoff;
pub use types::observer::{Observer, Stream};
pub use types::recording_error::RecordingError;
pub use types::reuse::{Reuse, ReuseFrom};
pub use types::team;
pub use types::team_fact::TeamFact;
pub use types::telemetry::{Link, Signal, TOOL_USES, TelemetryKind};
pub use types::user_request::{GateAnswer, UserMessage};
