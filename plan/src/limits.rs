//! What a run may use, what people must agree to, and what the compiler knows of either before anything starts.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Command, Origin};

/// What may be used at most. A launch is refused when what it may use, added to what is used and reserved, would exceed
/// one of these; none is no limit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Tokens, read and written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Money, in millionths of a dollar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<u64>,
    /// Wall time in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<u64>,
    /// Turns of agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
    /// The percentage at which people are told.
    pub warn: u8,
    /// Where it is declared.
    pub origin: Origin,
}

/// What needs somebody's agreement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// Starting an agent that the spec does not name.
    #[serde(default)]
    pub spawn: Approval,
    /// Using a tool, by name; others need nothing.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, Approval>,
    /// Changing the plan items of a swarm.
    #[serde(default)]
    pub plan_update: Approval,
    /// What happens to a request when nobody can be asked.
    #[serde(default)]
    pub unattended: Unattended,
    /// What happens to a request that nobody answers in time; none waits for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_timeout: Option<RequestTimeout>,
}

/// What happens to a request that nobody answers in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RequestTimeout {
    /// What then holds.
    pub then: Unattended,
    /// After how many milliseconds, from the moment on at which it was asked.
    pub after_ms: u64,
}

/// Whose agreement is needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Approval {
    /// Nobody's.
    #[default]
    Auto,
    /// A person's.
    Human,
    /// The swarm's coordinator's.
    Coordinator,
}

/// What happens to a request that nobody answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unattended {
    /// It is refused.
    #[default]
    Deny,
    /// It is granted.
    Approve,
    /// The run fails.
    Fail,
}

/// A command that runs when something happens, with `SWARM_*` variables. Its failure is told and changes nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hook {
    /// What must happen.
    pub event: HookEvent,
    /// What then runs.
    pub run: Command,
    /// Where it is declared.
    pub origin: Origin,
}

/// What a hook waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HookEvent {
    /// The run began.
    Start,
    /// The run succeeded.
    Complete,
    /// The run failed.
    Failure,
    /// A gate waits for an answer.
    Gate,
    /// A person stopped the run.
    Stop,
}

/// What one run of a pipeline or swarm uses at most.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    /// Processes and turns started, retries and repairs included.
    pub launches: Bound,
    /// Turns of agents, retries and repairs included.
    pub turns: Bound,
    /// Tokens read, an estimate outside the tokenizer's own family.
    pub input_tokens: Bound,
    /// Tokens written.
    pub output_tokens: Bound,
    /// Money in millionths of a dollar.
    pub cost: Bound,
    /// The longest chain of time limits, in milliseconds, when nothing waits for a slot.
    pub critical_path_ms: Bound,
}

/// A number that is known, or the reason why it is not. Unknown is never zero.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// Never more than this.
    Most(u64),
    /// There is no limit, or none is known.
    Unbounded {
        /// Because of what: "`triage` runs once for each item of `output.find`".
        because: String,
        /// Where that stands.
        origin: Origin,
    },
}
