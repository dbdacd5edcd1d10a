//! What stands around an event: its place in the run, and the processes that it names.

use std::sync::Arc;

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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Process {
    /// The process group, which is the process id of its leader.
    pub group: i32,
    /// The leader's start time in clock ticks since boot (field 22 of `/proc/PID/stat`); 0 where unknown.
    pub started: u64,
    /// The boot since which it lives: another machine has another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<BootId>,
    /// The name of its host. Containers on one machine share its boot and count their processes apart: their names differ,
    /// while the machine id is the same in all containers of an image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<Arc<str>>,
}

/// What a Linux kernel calls itself from one start of the machine to the next, `/proc/sys/kernel/random/boot_id`: no two
/// machines have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BootId(u128);

impl TryFrom<String> for BootId {
    type Error = String;

    fn try_from(text: String) -> Result<BootId, String> {
        let digits: String = text.trim().chars().filter(|&character| character != '-').collect();
        u128::from_str_radix(&digits, 16).map(BootId).map_err(|_| "a boot id has 32 hexadecimal digits".to_owned())
    }
}

impl From<BootId> for String {
    fn from(id: BootId) -> String {
        format!("{:032x}", id.0)
    }
}

impl JsonSchema for BootId {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "BootId".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        String::json_schema(generator)
    }
}

pub(super) fn one() -> u64 {
    1
}

pub(super) fn is_one(number: &u64) -> bool {
    *number == 1
}

pub(super) fn is_zero(number: &u32) -> bool {
    *number == 0
}
