//! What a swarm with a coordinator declares: its plan, its channels, its worktrees, and the agents that may be added.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Command;

/// The agents that the coordinator may add.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Spawns {
    /// The declared agents, in declaration order.
    pub agents: Vec<String>,
    /// How many it may add in all.
    pub max: u32,
}

/// A named group of members.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// Its members, by name.
    pub members: Vec<String>,
    /// Whether other agents of the swarm may join it.
    #[serde(default, skip_serializing_if = "crate::is_false")]
    pub open: bool,
}

/// When agents hear that others change their files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Conflicts {
    /// How often one agent hears of changes in one turn at most.
    pub notices: u32,
    /// How long a change counts, in milliseconds.
    pub window_ms: u64,
}

impl Default for Conflicts {
    fn default() -> Conflicts {
        Conflicts { notices: 20, window_ms: 30 * 60 * 1_000 }
    }
}

/// A working tree that members share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Worktree {
    /// Its name.
    pub name: String,
    /// The member that merges the work of the others.
    pub manager: String,
    /// Its members, by name.
    pub members: Vec<String>,
    /// The branch of the repository that is moved on to what was merged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub into: Option<String>,
    /// The commands that must exit with 0 before a merge is committed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Command>,
}

impl Worktree {
    /// Whether Git can call a branch so: the rules of `git check-ref-format`, and no name that reads as an option.
    pub fn is_branch_name(name: &str) -> bool {
        let is_plain = |sign: char| !sign.is_control() && !" ~^:?*[\\\u{7f}".contains(sign);
        let is_part = |part: &str| {
            !part.is_empty() && !part.starts_with(['.', '-']) && !part.ends_with('.') && !part.ends_with(".lock")
        };
        name.len() <= LONGEST_BRANCH
            && name != "HEAD"
            && name != "@"
            && !name.contains("..")
            && !name.contains("@{")
            && name.chars().all(is_plain)
            && name.split('/').all(is_part)
    }
}

/// The bytes of a branch's name at most: a file is called so.
const LONGEST_BRANCH: usize = 200;

/// A piece of a swarm's plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanItem {
    /// Its name.
    pub name: String,
    /// What is to be done.
    pub text: String,
    /// The member that does it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// How urgent it is.
    #[serde(default)]
    pub priority: Priority,
    /// The items that must be done first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    /// What is to be reached on the way, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checkpoints: Vec<String>,
    /// Patterns of the paths that it touches, relative to the workspace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scope: Vec<String>,
}

impl PlanItem {
    /// The characters of its text at most, and of a checkpoint: an event of a run holds a whole change of a plan.
    pub const TEXT_CHARS: usize = 500;
    /// The checkpoints at most, the patterns of its scope, and the items that it waits for.
    pub const PARTS: usize = 20;
}

/// How urgent something is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// After everything else.
    Low,
    /// In order.
    #[default]
    Normal,
    /// Before everything else.
    High,
}
