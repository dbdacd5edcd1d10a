//! The command line of `swarmc agent`: the operations of a script that takes part in a run.

use clap::{Args, Subcommand, ValueEnum};

/// Takes part in a run, as the task that started this process.
///
/// For scripts, and for agents without MCP: a task of a pipeline with `edges` has `SWARM_SOCKET` and `SWARM_TOKEN` in
/// its environment, which identify the task. Prints the receipt as one JSON document, after the operation is on disk.
/// Exit code 2 when the run refuses, with the reason.
#[derive(Debug, Args)]
pub(crate) struct Agent {
    #[command(subcommand)]
    pub(crate) operation: Operation,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Operation {
    SendHandoff(SendHandoff),
    /// Starts a further task along an edge with `kind=spawn`; the arguments are its first payload.
    ///
    /// If the policy says `spawn human`, a person has to approve first: the receipt then has the number of the request.
    SpawnNode(SendHandoff),
    SendMessage(SendMessage),
    Broadcast(Broadcast),
    ReportStatus(ReportStatus),
    RequestHelp(RequestHelp),
    ReadInbox(ReadInbox),
    ReadContext(ReadContext),
}

/// Writes to another task along an edge, with the message types of the file protocol; it is sent as a handoff.
#[derive(Debug, Args)]
pub(crate) struct SendMessage {
    /// The receiver: a task that an edge leads to from this one.
    #[arg(long, value_name = "TASK")]
    pub(crate) to: String,
    #[command(flatten)]
    pub(crate) said: Said,
    /// The id of the message that this one answers; when left out, the oldest that waits for an answer.
    #[arg(long, value_name = "ID")]
    pub(crate) reply_to: Option<String>,
}

/// Sends the same message to every task that an edge leads to from this one.
///
/// The receipt lists the receivers, and why other tasks did not receive it.
#[derive(Debug, Args)]
pub(crate) struct Broadcast {
    #[command(flatten)]
    pub(crate) said: Said,
}

#[derive(Debug, Args)]
pub(crate) struct Said {
    /// The purpose of the message.
    #[arg(long = "type", value_enum)]
    pub(crate) kind: MessageType,
    /// The content: a JSON object, whose `message` is the text for people, or a text; `-` reads it from standard input.
    #[arg(long, value_name = "TEXT")]
    pub(crate) content: String,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum MessageType {
    /// Work for the receiver.
    #[value(name = "data_ready")]
    DataReady,
    /// Work that expects an answer.
    Question,
    /// The answer to a question.
    Answer,
    /// News, which waits for the receiver's next turn.
    Update,
}

/// Reports the progress of this task, for `swarmc ps` and `swarmc inspect`.
#[derive(Debug, Args)]
pub(crate) struct ReportStatus {
    /// The current work.
    #[arg(long, value_name = "TEXT")]
    pub(crate) step: Option<String>,
    /// The number of finished steps.
    #[arg(long, value_name = "COUNT")]
    pub(crate) done: Option<u64>,
    /// The number of all steps.
    #[arg(long, value_name = "COUNT")]
    pub(crate) total: Option<u64>,
    /// A sentence for people.
    #[arg(long, value_name = "TEXT")]
    pub(crate) message: Option<String>,
    /// A metric. May be repeated.
    #[arg(long = "metric", value_name = "NAME=VALUE", value_parser = parse_metric)]
    pub(crate) metrics: Vec<(String, String)>,
}

/// Asks a person for help; the inbox receives the answer.
///
/// The receipt has the number of the request, which `swarmc approve` lists and answers.
#[derive(Debug, Args)]
pub(crate) struct RequestHelp {
    /// The question or request; `-` reads it from standard input.
    #[arg(long, value_name = "TEXT")]
    pub(crate) message: String,
}

fn parse_metric(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
    pair.map(|(name, value)| (name.to_owned(), value.to_owned())).ok_or_else(|| "it is not NAME=VALUE".to_owned())
}

/// Sends a handoff along an edge.
#[derive(Debug, Args)]
pub(crate) struct SendHandoff {
    /// The receiver: a task that an edge leads to from this one.
    #[arg(long, value_name = "TASK")]
    pub(crate) to: String,
    /// A short summary of the handoff; `-` reads it from standard input.
    #[arg(long, value_name = "TEXT")]
    pub(crate) message: String,
    /// The data: a JSON object of the type that the edge carries.
    #[arg(long, value_name = "JSON")]
    pub(crate) structured: Option<String>,
    /// A file of the workspace or a stored artifact, as `REF` or `TYPE=REF`. May be repeated.
    #[arg(long = "artifact", value_name = "REF")]
    pub(crate) artifacts: Vec<String>,
    /// Reports success, with a reason.
    #[arg(long, value_name = "REASON", num_args = 0..=1, default_missing_value = "", conflicts_with = "failed")]
    pub(crate) ok: Option<String>,
    /// Reports failure, with a reason.
    #[arg(long, value_name = "REASON", num_args = 0..=1, default_missing_value = "")]
    pub(crate) failed: Option<String>,
    /// Whether an answer is expected; as the edge declares, when left out.
    #[arg(long, value_enum)]
    pub(crate) response: Option<Response>,
    /// The id of the envelope that this one answers; or, if an answer is expected, the task that receives it.
    #[arg(long, value_name = "ID|TASK")]
    pub(crate) reply_to: Option<String>,
    /// A stored context pack: `contextpack://pack/ID`.
    #[arg(long, value_name = "REF")]
    pub(crate) context: Option<String>,
    /// The priority in the receiver's inbox.
    #[arg(long, value_enum)]
    pub(crate) priority: Option<Priority>,
    /// Sends news, which waits for the receiver's next turn, instead of work, which wakes the receiver.
    #[arg(long)]
    pub(crate) signal: bool,
}

/// Prints the inputs of this turn, and the messages that wait for the next one.
#[derive(Debug, Args)]
pub(crate) struct ReadInbox {}

/// Prints a stored context pack or artifact.
#[derive(Debug, Args)]
pub(crate) struct ReadContext {
    /// Its reference in envelopes and packs: `contextpack://pack/ID`, `artifact://KIND/ID`. Without it, the pack of
    /// this turn.
    #[arg(value_name = "REF")]
    pub(crate) reference: Option<String>,
    /// The first byte to read: long texts come in parts of 64 KB, and `next` is the offset of the next part.
    #[arg(long, value_name = "BYTE")]
    pub(crate) offset: Option<u64>,
}

/// Serves MCP on standard input and output, for an agent that a run has started.
///
/// The server `swarm` has the tools `send_handoff`, `spawn_node`, `send_message`, `broadcast`, `report_status`,
/// `request_help`, `read_inbox` and `read_context`, as far as the task's edges allow them, and acts for the task whose
/// `SWARM_SOCKET` and `SWARM_TOKEN` are in its environment. An agent that can use MCP over HTTP does not need this
/// process: `SWARM_MCP` is the address, and `SWARM_TOKEN` the bearer token. Ends at the end of its input.
#[derive(Debug, Args)]
pub(crate) struct Mcp {}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Response {
    /// No answer is needed.
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
    /// In order of arrival.
    Normal,
    /// Before everything else.
    High,
}
