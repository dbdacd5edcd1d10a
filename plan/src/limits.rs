//! What a run may use, what people must approve, and what the compiler knows of both before the run.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Command, Origin};

/// Limits of use; none is no limit. The runner refuses a launch that, added to what is used and reserved, could exceed
/// a limit; with `at_most` it refuses one where a limit is used up, and lets what runs finish.
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
    /// The percentage at which the runner warns.
    pub warn: u8,
    /// Whether it stops what goes beyond it, in the place of a proof that nothing does.
    #[serde(default, skip_serializing_if = "crate::is_false")]
    pub at_most: bool,
    /// Where it is declared.
    pub origin: Origin,
}

/// What needs approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// Starting an agent that the spec does not name.
    #[serde(default)]
    pub spawn: Approval,
    /// Using a tool, by name; other tools need no approval.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, Approval>,
    /// Changing the plan items of a swarm.
    #[serde(default = "Policy::default_plan_update")]
    pub plan_update: Approval,
    /// Moving the branch of the repository that the worktree of a swarm names.
    #[serde(default = "Policy::default_integrate")]
    pub integrate: Approval,
    /// The answer to a request to a person in an unattended run.
    #[serde(default)]
    pub unattended: Unattended,
    /// The answer to a request that no person answers in time, and to a proposal that the coordinator of a team does not
    /// decide in time; without it, both wait for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_timeout: Option<RequestTimeout>,
}

impl Policy {
    /// Who accepts changes of a plan, where the spec says nothing: the coordinator (seed 004).
    pub const PLAN_UPDATE: Approval = Approval::Coordinator;

    /// Who agrees that a branch of the repository is moved, where the spec says nothing: a person.
    pub const INTEGRATE: Approval = Approval::Human;

    fn default_plan_update() -> Approval {
        Policy::PLAN_UPDATE
    }

    fn default_integrate() -> Approval {
        Policy::INTEGRATE
    }
}

impl Default for Policy {
    fn default() -> Policy {
        Policy {
            spawn: Approval::default(),
            tools: BTreeMap::new(),
            plan_update: Policy::PLAN_UPDATE,
            integrate: Policy::INTEGRATE,
            unattended: Unattended::default(),
            on_timeout: None,
        }
    }
}

/// The answer to a request, or a proposal, that is not decided in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RequestTimeout {
    /// The answer.
    pub then: Unattended,
    /// After how many milliseconds, counted from the request.
    pub after_ms: u64,
}

/// Who must approve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Approval {
    /// No one: it is granted without a question.
    #[default]
    Auto,
    /// A person.
    Human,
    /// The coordinator of the swarm.
    Coordinator,
}

/// The answer to a request without a person's answer.
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

/// A command that runs after an event, with `SWARM_*` variables. Its failure is reported and changes nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hook {
    /// The event.
    pub event: HookEvent,
    /// The command.
    pub run: Command,
    /// Where it is declared.
    pub origin: Origin,
}

/// The event that a hook waits for.
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
    /// What a run is likely to use, which is far less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub likely: Option<Box<Likely>>,
}

/// What one run of a pipeline or swarm is likely to use. Nothing fails or repeats: each step has one attempt, each loop one
/// round, each turn its own agent; a list that is not written out has 10 items, a member of a swarm takes 4 turns of
/// 2,000 tokens, and a value in a prompt and an answer have 1,000 tokens; each has less where its limit is lower.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Likely {
    /// Processes and turns started.
    pub launches: Bound,
    /// Turns of agents.
    pub turns: Bound,
    /// Tokens read, without what agents read with their own tools.
    pub input_tokens: Bound,
    /// Tokens written.
    pub output_tokens: Bound,
    /// Money in millionths of a dollar.
    pub cost: Bound,
}

impl Likely {
    /// The items of a list that is not written out.
    pub const ITEMS: u64 = 10;
    /// The turns of a member of a swarm.
    pub const TURNS: u32 = 4;
    /// The tokens that a member of a swarm is shown in a turn.
    pub const TURN_TOKENS: u64 = 2_000;
    /// The tokens of a value in a prompt, and of an answer.
    pub const TEXT_TOKENS: u64 = 1_000;
}

/// A number that is known, or the reason why it is not. Unknown is never zero.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// Never more than this.
    Most(u64),
    /// There is no limit, or none is known.
    Unbounded {
        /// The reason: "`triage` runs once for each item of `output.find`".
        because: String,
        /// The place of the reason.
        origin: Origin,
    },
}
