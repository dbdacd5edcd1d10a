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
    SendMessage(SendMessage),
    Broadcast(Broadcast),
    ReportStatus(ReportStatus),
    RequestHelp(RequestHelp),
    ReadInbox(ReadInbox),
    ReadContext(ReadContext),
}

/// Writes to another task along an edge, in the words of the file protocol: a handoff like any other.
#[derive(Debug, Args)]
pub(crate) struct SendMessage {
    /// The receiver: a task that an edge leads to from this one.
    #[arg(long, value_name = "TASK")]
    pub(crate) to: String,
    #[command(flatten)]
    pub(crate) said: Said,
    /// The id of the message that this one answers; the oldest that waits for one, when left out.
    #[arg(long, value_name = "ID")]
    pub(crate) reply_to: Option<String>,
}

/// Writes the same to every task that an edge leads to from this one.
///
/// The receipt says who got it, and why others did not.
#[derive(Debug, Args)]
pub(crate) struct Broadcast {
    #[command(flatten)]
    pub(crate) said: Said,
}

#[derive(Debug, Args)]
pub(crate) struct Said {
    /// What it is for.
    #[arg(long = "type", value_enum)]
    pub(crate) kind: MessageType,
    /// What is said: a JSON object, whose `message` is what people read of it, or a text; `-` reads it from standard input.
    #[arg(long, value_name = "TEXT")]
    pub(crate) content: String,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum MessageType {
    /// Work: something is there for the receiver.
    #[value(name = "data_ready")]
    DataReady,
    /// Work that wants an answer.
    Question,
    /// The answer to a question.
    Answer,
    /// News, which wait for the receiver's next turn.
    Update,
}

/// Says how far this task is, for `swarmc ps` and `swarmc inspect`.
#[derive(Debug, Args)]
pub(crate) struct ReportStatus {
    /// What is being done now.
    #[arg(long, value_name = "TEXT")]
    pub(crate) step: Option<String>,
    /// The steps that are done.
    #[arg(long, value_name = "COUNT")]
    pub(crate) done: Option<u64>,
    /// All steps.
    #[arg(long, value_name = "COUNT")]
    pub(crate) total: Option<u64>,
    /// What people should know, in a sentence.
    #[arg(long, value_name = "TEXT")]
    pub(crate) message: Option<String>,
    /// Something that is counted. May be repeated.
    #[arg(long = "metric", value_name = "NAME=VALUE", value_parser = metric)]
    pub(crate) metrics: Vec<(String, String)>,
}

/// Asks a person for help; the answer comes to the inbox.
///
/// The receipt has the number of the request, which `swarmc approve` lists and answers.
#[derive(Debug, Args)]
pub(crate) struct RequestHelp {
    /// What has to be known or done; `-` reads it from standard input.
    #[arg(long, value_name = "TEXT")]
    pub(crate) message: String,
}

fn metric(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
    pair.map(|(name, value)| (name.to_owned(), value.to_owned())).ok_or_else(|| "it is no NAME=VALUE".to_owned())
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
    /// The id of the envelope that this one answers; or, where an answer is expected, the task that it goes to.
    #[arg(long, value_name = "ID|TASK")]
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
/// The server `swarm` has the tools `send_handoff`, `spawn_node`, `send_message`, `broadcast`, `report_status`,
/// `request_help`, `read_inbox` and `read_context`, as far as the task's edges allow them, and speaks for the task whose `SWARM_SOCKET` and `SWARM_TOKEN` stand in its environment. An agent that can use MCP over HTTP needs no process for
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
