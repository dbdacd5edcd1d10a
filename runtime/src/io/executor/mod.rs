//! Carries attempts out: tasks that start processes, read them, end them, and report.
//!
//! In: a [`Job`] with everything already rendered. Out: the output, live to the observer and to its logs, and one
//! report to the driver. Invariant: nothing a process does keeps its task from seeing a cancellation.

mod acp;
mod attempt;
mod capture;
pub(crate) mod edits;
mod file_writer;
mod log;
mod model;
mod observer_queue;
mod operation_lines;
mod pool;
mod replay_boundary;
mod tool_log;
mod tool_loop;
mod turn;
mod turn_artifacts;
mod unreachable;
mod waiting;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

use swarmc_plan::{Command, Format, PromptDelivery, Recorded, SchemaFlag};

use crate::io::home::create_private;
use crate::io::shim::Remote;
use crate::io::worktree::Tree;
use crate::types::cancel::Cancel;
use crate::types::usage::Usage;

pub(crate) use acp::{Acp, Tools};
pub(crate) use edits::{locate_edit, read_edit};
pub(crate) use file_writer::{FileWriter, WritingThread};
pub(crate) use model::Model;
pub(crate) use observer_queue::{ObserverHandle, Ticks};
pub(crate) use pool::STACK;
pub(crate) use pool::{Carrier, Jobs, Pool, Services};
pub(crate) use tool_loop::ToolGrant;
pub(crate) use turn::{may_pass, to_argument};

use crate::io::files::FileWorkspaceSpec;
use crate::types::answer::OutputValidator;
use crate::types::effective_prompt::Effective;
use crate::types::event::{Failure, StepId};
use crate::types::swarm::TurnId;

/// One attempt, ready to be carried out.
#[derive(Debug)]
pub(crate) struct Job {
    /// The step.
    pub step: StepId,
    /// The attempt, from 1.
    pub attempt: u32,
    /// The same as people write it: without those in which files were summed up.
    pub counted: u32,
    /// The record that must be durable before anything starts.
    pub after: u64,
    /// What is done.
    pub work: Work,
    /// For what.
    pub role: Role,
    /// Whether lines of the agent's answer may ask for handoffs.
    pub speaks: bool,
    /// Whether what it changes in its tree is kept.
    pub watched: bool,
    /// Whether the end of what its command writes to both streams is kept.
    pub keeps_log: bool,
    /// What its output must be; none is text.
    pub shape: Option<Arc<OutputValidator>>,
    /// Commands that must exit with 0 afterwards.
    pub checks: Vec<Command>,
    /// The whole environment of its processes.
    pub environment: Arc<Vec<(OsString, OsString)>>,
    /// The variables of it that the step and its pipeline set.
    pub stated: Vec<String>,
    /// Where its processes run, unless that is a working tree of its own.
    pub directory: Arc<PathBuf>,
    /// The working tree that they run in; it is made when the first job needs it.
    pub tree: Option<Tree>,
    /// The folder that its agent works in, where it works by files.
    pub file_workspace: Option<Arc<FileWorkspaceSpec>>,
    /// The wall time at most, checks included.
    pub timeout: Option<Duration>,
    /// The time without a byte of output at most.
    pub idle: Option<Duration>,
    /// How long a process may stay after it reported its result.
    pub grace: Duration,
    /// The bytes of output kept.
    pub max_output: usize,
    /// How its processes outlive the runner; none where they end with it.
    pub survival: Option<Survival>,
    /// Ends it early.
    pub cancel: Arc<Cancel>,
}

/// How the processes of an attempt outlive the runner, each held by a shim.
#[derive(Clone, Debug)]
pub(crate) struct Survival {
    /// The folder of the run.
    pub run: PathBuf,
    /// Where they are held, each in a folder called by its number from 0.
    pub folder: PathBuf,
    /// How long they are kept where no runner comes back.
    pub orphan_limit: Duration,
    /// The record that began the attempt in this runner.
    pub epoch: u64,
    /// Whether a former runner began it: those that it had started are read from their first byte.
    pub rejoins: bool,
    /// Where they are held on other machines.
    pub remote: Option<Remote>,
}

/// In the folder of an attempt's processes: the attempt went on in the conversation of one that a crash cut off.
const RESUMED: &str = "resumed";

impl Survival {
    /// Notes whether the attempt goes on in a conversation that a crash cut off, and is to be prepared so by later runners.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn mark_resumed(&self, is_resumed: bool) -> io::Result<()> {
        create_private(&self.folder, true)?;
        let mark = self.folder.join(RESUMED);
        match is_resumed {
            true => fs::write(mark, ""),
            false => fs::remove_file(mark).or_else(|error| match error.kind() {
                io::ErrorKind::NotFound => Ok(()),
                _ => Err(error),
            }),
        }
    }

    /// Whether that is noted of the attempt whose processes lie in `folder`.
    pub(crate) fn is_resumed(folder: &Path) -> bool {
        folder.join(RESUMED).exists()
    }
}

impl Job {
    /// Has it start behind record number `seq`, which says that it does.
    pub(crate) fn begin_after(&mut self, seq: u64) {
        self.after = seq;
        self.survival.iter_mut().for_each(|survival| survival.epoch = seq);
    }

    /// Where its agent works: in its folder of files, unless it is to mend, or has a working tree to work in.
    pub(super) fn working_folder(&self) -> &Path {
        match &self.file_workspace {
            Some(file_workspace) if !file_workspace.mends && self.tree.is_none() => &file_workspace.folder,
            _ => &self.directory,
        }
    }

    /// The turn that it is of an agent of a team, where it is one.
    pub(super) fn team_turn(&self) -> Option<&TurnId> {
        match &self.work {
            Work::Member(member) if member.is_team => Some(&member.turn),
            _ => None,
        }
    }

    /// The turn of a swarm that it is, where it is one.
    pub(super) fn member_turn(&self) -> Option<&TurnId> {
        match &self.work {
            Work::Member(member) => Some(&member.turn),
            _ => None,
        }
    }
}

impl Work {
    /// The agents that may take its turns; none where it asks no agent.
    pub(crate) fn candidates(&self) -> &[Candidate] {
        match self {
            Work::Agent(asked) => &asked.takers,
            Work::Member(member) => std::slice::from_ref(&member.taker),
            _ => &[],
        }
    }
}

/// What an attempt of a step is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// It is a try of the step's turn.
    Turn,
    /// An agent mends what made the step fail.
    Mends,
    /// An agent sums up files for the attempt after it.
    SumsUp,
}

/// What an attempt does before its checks.
#[derive(Debug)]
pub(crate) enum Work {
    /// A command of the spec: what it prints is its output, also when it fails.
    Command {
        /// What is started.
        command: Command,
        /// What it reads.
        stdin: Option<Vec<u8>>,
    },
    /// A turn of an agent.
    Agent(Box<AgentTurn>),
    /// A text that is there already, to be checked.
    Text(String),
    /// A turn of a member of a swarm that is a program.
    Member(Box<MemberTurn>),
}

/// A turn of a member of a swarm, which a program takes.
#[derive(Debug)]
pub(crate) struct MemberTurn {
    /// Which.
    pub turn: TurnId,
    /// Whether it is one of a team, whose agents hear of each other's changes of files.
    pub is_team: bool,
    /// The agent that takes it: its transport is a program, an ACP agent or closed.
    pub taker: Candidate,
}

/// A turn that an agent is asked for.
#[derive(Debug)]
pub(crate) struct AgentTurn {
    /// Who may take it: the step's own agent, then the fallbacks, each for when those before cannot be reached.
    pub takers: Vec<Candidate>,
    /// The further turns in which an answer may be mended.
    pub repair: u32,
}

/// An agent, with what it is told and how.
#[derive(Debug)]
pub(crate) struct Candidate {
    /// Its name.
    pub agent: String,
    /// The name of its provider.
    pub provider: String,
    /// What it is sent: all that it is told, or in a conversation that goes on what is new.
    pub prompt: String,
    /// What it is sent in a new conversation, where the one that a crash cut off cannot go on.
    pub fresh: Option<String>,
    /// Where its process of a former runner has to start again: the conversation that this cuts off, and what it is sent
    /// there.
    pub cut: Option<(Session, String)>,
    /// All that it is told, block by block.
    pub effective: Effective,
    /// What it is told apart from that.
    pub system: Option<String>,
    /// The whole environment of its process.
    pub environment: Arc<Vec<(OsString, OsString)>>,
    /// How a person logs in to it.
    pub login: Option<String>,
    /// How it is reached.
    pub door: Transport,
}

/// How an agent is reached.
#[derive(Debug)]
pub(crate) enum Transport {
    /// As a program.
    Program(Box<Program>),
    /// As a model behind HTTP.
    Llm(Box<Model>),
    /// As a program that speaks the Agent Client Protocol.
    Acp(Box<Acp>),
    /// Not at all: these answers are recorded, for this task and attempt. The first that fits the turn is taken.
    Recorded(Vec<Recorded>),
    /// It cannot be: why.
    Closed(Failure),
}

impl Transport {
    /// The session that the first turn continues.
    pub(crate) fn session(&self) -> Option<&Session> {
        match self {
            Transport::Program(program) => program.session.as_ref(),
            Transport::Acp(acp) => acp.session.as_ref(),
            _ => None,
        }
    }

    /// Whether a program of ours takes the turns.
    pub(crate) fn is_program(&self) -> bool {
        match self {
            Transport::Program(_) | Transport::Acp(_) => true,
            Transport::Llm(_) | Transport::Recorded(_) | Transport::Closed(_) => false,
        }
    }

    /// Whether a turn keeps its thread waiting for anything but processes and pauses.
    pub(crate) fn is_blocking(&self) -> bool {
        match self {
            Transport::Llm(_) | Transport::Acp(_) => true,
            Transport::Program(_) | Transport::Recorded(_) | Transport::Closed(_) => false,
        }
    }

    /// Whether a later turn can continue the session of an earlier one. An agent over ACP that cannot reports no session.
    pub(crate) fn can_resume(&self) -> bool {
        match self {
            Transport::Program(program) => program.resume.is_some(),
            Transport::Acp(_) => true,
            _ => false,
        }
    }
}

/// A command-line agent.
#[derive(Debug)]
pub(crate) struct Program {
    /// What is started, without the options below.
    pub argv: Vec<OsString>,
    /// What is started in its place to go on with a session.
    pub resume: Option<Vec<String>>,
    /// What follows: the model, the system text.
    pub options: Vec<OsString>,
    /// How it takes the schema of its answer, where it is given one.
    pub schema: Option<SchemaFlag>,
    /// How it gets its prompt.
    pub delivery: PromptDelivery,
    /// What it reads on standard input, where that is not the prompt.
    pub stdin: Option<String>,
    /// What it prints.
    pub reads: Format,
    /// How to install it.
    pub install: Option<String>,
    /// The conversation that it goes on with.
    pub session: Option<Session>,
}

/// A conversation that a provider keeps.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Session {
    /// Its id, as the provider told it.
    pub id: String,
    /// What its turns have used so far, all together: some providers count on from there.
    pub used: Usage,
}
