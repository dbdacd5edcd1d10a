//! The command line of `swarmc agent`: what a script that takes part in a run may say.

use clap::{Args, Subcommand, ValueEnum};

/// Takes part in a run, as the task that started this process.
///
/// For scripts and for agents that can do no better: a task of a pipeline with `edges` has `SWARM_SOCKET` and
/// `SWARM_TOKEN` in its environment, by which the run knows who asks. Prints the receipt as one JSON document, which is on
/// disk by then. Exit code 2 when the run refuses, with the reason.
#[derive(Debug, Args)]
pub(crate) struct Agent {
    #[command(subcommand)]
    pub(crate) operation: Operation,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Operation {
    SendHandoff(SendHandoff),
    /// Has a further task started, along an edge with `kind=spawn`: what is given is its first payload.
    ///
    /// Where the policy says `spawn human`, somebody has to agree first: the receipt has the number of the request then.
    SpawnNode(SendHandoff),
    ReadInbox(ReadInbox),
    ReadContext(ReadContext),
}

/// Hands something over along an edge.
#[derive(Debug, Args)]
pub(crate) struct SendHandoff {
    /// The receiver: a task that an edge leads to from this one.
    #[arg(long, value_name = "TASK")]
    pub(crate) to: String,
    /// A short summary of what is handed over; `-` reads it from standard input.
    #[arg(long, value_name = "TEXT")]
    pub(crate) message: String,
    /// What a program can read: a JSON object, of the type that the edge carries.
    #[arg(long, value_name = "JSON")]
    pub(crate) structured: Option<String>,
    /// A file of the workspace or a stored artifact, as `REF` or `TYPE=REF`. May be repeated.
    #[arg(long = "artifact", value_name = "REF")]
    pub(crate) artifacts: Vec<String>,
    /// Says that it went well, and why.
    #[arg(long, value_name = "REASON", num_args = 0..=1, default_missing_value = "", conflicts_with = "failed")]
    pub(crate) ok: Option<String>,
    /// Says that it did not go well, and why.
    #[arg(long, value_name = "REASON", num_args = 0..=1, default_missing_value = "")]
    pub(crate) failed: Option<String>,
    /// Whether an answer is expected; the edge's own word, when left out.
    #[arg(long, value_enum)]
    pub(crate) response: Option<Response>,
    /// The id of the envelope that this one answers.
    #[arg(long, value_name = "ID")]
    pub(crate) reply_to: Option<String>,
    /// A stored context pack: `contextpack://pack/ID`.
    #[arg(long, value_name = "REF")]
    pub(crate) context: Option<String>,
    /// Its place in the receiver's inbox.
    #[arg(long, value_enum)]
    pub(crate) priority: Option<Priority>,
    /// Sends news, which wait for the receiver's next turn, rather than work, which wakes it.
    #[arg(long)]
    pub(crate) signal: bool,
}

/// Prints the inputs of this turn, and what waits in the inbox for the next one.
#[derive(Debug, Args)]
pub(crate) struct ReadInbox {}

/// Prints a stored context pack or artifact.
#[derive(Debug, Args)]
pub(crate) struct ReadContext {
    /// What envelopes and packs say of it: `contextpack://pack/ID`, `artifact://KIND/ID`. Without, the pack of this turn.
    #[arg(value_name = "REF")]
    pub(crate) reference: Option<String>,
    /// The byte that is read first: what is long is read in parts of 64 KB, and `next` says where the next one begins.
    #[arg(long, value_name = "BYTE")]
    pub(crate) offset: Option<u64>,
}

/// Serves MCP on standard input and output, for an agent that a run has started.
///
/// The server `swarm` has the tools `send_handoff`, `spawn_node`, `read_inbox` and `read_context`, and speaks for the task
/// whose `SWARM_SOCKET` and `SWARM_TOKEN` stand in its environment. An agent that can use MCP over HTTP needs no process for
/// it: `SWARM_MCP` is the address, and `SWARM_TOKEN` the bearer token. Ends with its input.
#[derive(Debug, Args)]
pub(crate) struct Mcp {}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Response {
    /// Nobody needs to answer.
    None,
    /// The receiver may answer.
    Optional,
    /// The receiver must answer.
    Required,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Priority {
    /// After everything else.
    Low,
    /// In its turn.
    Normal,
    /// Before everything else.
    High,
}
