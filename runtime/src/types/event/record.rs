//! What stands around an event: its place in the run, and the processes that it names.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Event;

/// An event with its place in the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// Its number in the journal, from 1, without gaps.
    pub seq: u64,
    /// When it was recorded, in milliseconds since 1970 (UTC). The core's only clock.
    pub at: u64,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// A process group, told apart from a later one with the same number by its start time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Process {
    /// The process group, which is the process id of its leader.
    pub group: i32,
    /// The leader's start time in clock ticks since boot (field 22 of `/proc/PID/stat`); 0 where unknown.
    pub started: u64,
}
