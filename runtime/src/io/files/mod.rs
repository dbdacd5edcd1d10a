//! The file protocol (seed 003): an agent finds its task in a folder of its own, and leaves its work there.
//!
//! In: a [`FileWorkspaceSpec`], everything about the folder rendered and nothing made. Out: the folder laid out before a turn, looked
//! at while the turn goes on, and collected after it. Invariants: what an agent left is data, no link of it is followed
//! and nothing outside of its outbox is taken; its inbox is as it was given, or the turn has failed.

mod collect;
mod instructions;
mod manifest;
pub(crate) mod messages;
mod paths;
mod replay;
mod status;
mod tree;
mod watch;
mod workspace;

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::types::agent_status::AgentStatus;

pub use manifest::{AgentFiles, KeptFile};

pub(crate) use collect::Collected;
pub(crate) use instructions::{Brief, describe_folder};
pub(crate) use replay::{Given as Provided, Laying, Remains, find_path_problem};
pub(crate) use tree::remove_all;
pub(crate) use workspace::FileWorkspace;

use crate::types::answer::OutputValidator;

/// The variable that names the folder of the agent.
pub(crate) const WORKSPACE: &str = "SWARM_WORKSPACE";

/// The files and folders of an outbox.
pub(crate) const MOST_OUTPUTS: usize = 10_000;

/// The bytes of a file that is read as JSON, or as text for people.
pub(crate) const READ: u64 = 16 * 1024 * 1024;

/// The summary that every agent leaves.
pub(crate) const SUMMARY: &str = "summary.md";

/// What the agent that works in `folder` says of itself now; none while it says nothing that can be read.
pub fn agent_status(folder: &Path) -> Option<AgentStatus> {
    let root = tree::open_root(folder).ok()?;
    status::read_status(root.as_fd()).ok()
}

/// The folder of one attempt, as it is to be.
#[derive(Debug)]
pub(crate) struct FileWorkspaceSpec {
    /// The folder.
    pub folder: PathBuf,
    /// The same from the run's folder.
    pub name: String,
    /// The run's folder.
    pub run: PathBuf,
    /// Where files of the workspace lie and are copied to, unless the job has a working tree.
    pub workspace: PathBuf,
    /// The text of `SKILL.md`.
    pub skill: Option<String>,
    /// What `inbox/instructions.md` says.
    pub brief: Brief,
    pub inputs: Vec<Given>,
    /// The bytes of an input that are copied at most: of a larger one the agent is told where it lies.
    pub copied: u64,
    pub outputs: Vec<Wanted>,
    pub wait_for: Vec<String>,
    /// What it reads of others, as files by name; none where no edge leads to it or away from it.
    pub messages: Option<messages::TurnMessages>,
    /// What the first output must be, because it is the step's.
    pub primary: Option<Arc<OutputValidator>>,
    /// Whether the turn is to mend what made the step fail: it may correct the inbox, and owes no outputs.
    pub mends: bool,
    /// The folder of the turn before, where that was to mend.
    pub mended: Option<PathBuf>,
}

/// Something for the inbox.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    /// Its path; with a final `/` a folder.
    pub path: String,
    pub description: Option<String>,
    /// The folder of the inbox for it; empty: the inbox itself.
    pub folder: String,
    /// Whether it is not to be copied.
    pub reference: bool,
    /// Whether it may be absent.
    pub optional: bool,
    /// Who made it; none: it lies in the workspace.
    pub from: Option<Maker>,
}

/// A step that left files.
#[derive(Clone, Debug)]
pub(crate) struct Maker {
    pub agent: String,
    /// What was collected of it.
    pub left: Arc<AgentFiles>,
}

/// Something for the outbox.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// Its path; with a final `/` a folder.
    pub path: String,
    pub description: Option<String>,
    pub required: bool,
    /// What its JSON must be.
    pub shape: Option<Arc<OutputValidator>>,
    /// Where in the workspace it is copied to.
    pub copy_to: Option<String>,
}
