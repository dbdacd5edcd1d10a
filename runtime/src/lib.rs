//! Runs a plan: `plan ─► decide ─► commands ─► executors ─► events ─► journal ─► state`, round and round.
//!
//! The core (`event`, `state`, `decide`) is pure: no I/O, no clock, no randomness, no hash-map order. Around it, `run`
//! is the only loop, `journal` the run's truth on disk, `executor` what starts processes, `render` what fills prompts,
//! and `home` the folder that all of it lies in.

mod activity;
mod agent_api;
mod answer;
mod approval;
pub mod artifact;
mod children;
mod control;
mod decide;
mod error;
mod event;
mod executor;
mod files;
mod graph;
pub mod handoff;
mod home;
mod ignored;
mod journal;
mod llm;
mod load;
mod observer;
pub mod pack;
mod reactor;
mod recording;
mod rehearse;
mod render;
mod reopen;
mod retry;
mod run;
mod secrets;
#[cfg(test)]
mod simulate;
mod socket;
mod socket_peer;
mod state;
mod stream;
pub mod swarm;
mod telemetry;
mod tools;
mod unix;

pub use activity::{Activity, Flow};
pub use agent_api::{MCP, SOCKET, TOKEN, ask, serve_stdio};
pub use answer::typed;
pub use approval::{Choice, Request, RequestKind, Same, Verdict};
pub use children::adopt_orphans;
pub use control::{Control, GateAnswer, UserMessage};
pub use decide::{Command, decide};
pub use error::{JournalError, RunError};
pub use event::*;
pub use files::{AgentFiles, AgentState, AgentStatus, Kept, Progress as AgentProgress, Trouble, agent_status};
pub use graph::{Graph, GraphError, MAX_STEPS};
pub use home::{Home, Layout, Prune, Pruned, PrunedRun, RunFolder, RunSummary, Runner, RunningState, standings};
pub use load::load_plan;
pub use observer::{Observer, Stream};
pub use recording::{Difference, Divergence, RECORDING_VERSION, Recording, RecordingError};
pub use rehearse::{Answer, Asks, Fault, Member, Prompted, Rehearsal, Turn, rehearse};
pub use reopen::{Retry as RetryRun, effective};
pub use run::{Ended, Options, Outcome as RunOutcome, Program, end_survivors, programs, resume, retry, start};
pub use socket::{activities, answer_gate, request_stop, send_message};
pub use state::{Blocked, Counts, End, Link, Open, Pending, Progress, Reading, Standing, State, Waiting};
pub use stream::{ANSWER_LIMIT, Decoder, Item, LINE_LIMIT, Report, ToolResult, ToolUse};
pub use telemetry::{Signal, TOOL_USES, TelemetryKind};
