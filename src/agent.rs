//! `swarmc agent`: a script takes part in the run that started it.

use std::ffi::OsString;
use std::io::Read as _;
use std::path::Path;

use miette::{IntoDiagnostic, miette};
use serde_json::{Map, Value};
use swarmc_runtime::handoff::{
    Artifact, Broadcast, ENVELOPE_LIMIT, EnvelopeKind, Handoff, HelpRequest, MESSAGE_LIMIT, Message, MessageKind,
    Operation, Reading, Report, Verdict,
};
use swarmc_runtime::{AgentProgress, SOCKET, TOKEN, send_operation};

use crate::args;
use crate::exit::Exit;
use crate::terminal;

pub(crate) fn exec(args: &args::Agent) -> miette::Result<Exit> {
    let operation = match &args.operation {
        args::AgentOperation::SendHandoff(args) => Operation::SendHandoff(Box::new(build_handoff(args)?)),
        args::AgentOperation::SpawnNode(args) => Operation::SpawnNode(Box::new(build_handoff(args)?)),
        args::AgentOperation::SendMessage(args::SendMessage { to, said, reply_to }) => {
            let (kind, content) = said_by(said)?;
            Operation::SendMessage(Message { to: to.clone(), kind, content, reply_to: reply_to.clone() })
        }
        args::AgentOperation::Broadcast(args::Broadcast { said }) => {
            let (kind, content) = said_by(said)?;
            Operation::Broadcast(Broadcast { kind, content })
        }
        args::AgentOperation::ReportStatus(args) => Operation::ReportStatus(Box::new(build_report(args))),
        args::AgentOperation::RequestHelp(args::RequestHelp { message }) => {
            Operation::RequestHelp(HelpRequest { message: read_argument(message, MESSAGE_LIMIT)? })
        }
        args::AgentOperation::ReadContext(args::ReadContext { reference, offset }) => {
            Operation::ReadContext(Reading { reference: reference.clone(), offset: *offset })
        }
        args::AgentOperation::ReadInbox(args::ReadInbox {}) => Operation::ReadInbox {},
    };
    let (socket, token) = (require_variable(SOCKET)?, require_variable(TOKEN)?);
    let receipt = send_operation(Path::new(&socket), &token.to_string_lossy(), &operation)
        .map_err(|problem| miette!("{problem}"))?;
    terminal::print(format!("{receipt}\n"))?;
    Ok(Exit::Done)
}

/// What the run that started this process has told it.
pub(crate) fn require_variable(name: &str) -> miette::Result<OsString> {
    std::env::var_os(name).ok_or_else(|| {
        miette!(
            help = "it works in the processes of a task whose pipeline has `edges` from it or to it",
            "{name} is not set: no run has started this process"
        )
    })
}

fn build_handoff(args: &args::SendHandoff) -> miette::Result<Handoff> {
    let message = read_argument(&args.message, MESSAGE_LIMIT)?;
    let structured = args.structured.as_deref().map(serde_json::from_str).transpose();
    let structured = structured.map_err(|error| miette!("`--structured` is no JSON: {error}"))?;
    let verdict =
        |ok: bool, reason: &String| Verdict { ok, reason: Some(reason.clone()).filter(|text| !text.is_empty()) };
    let status = args.ok.as_ref().map(|reason| verdict(true, reason));
    Ok(Handoff {
        to: args.to.clone(),
        message,
        structured,
        artifacts: args.artifacts.iter().map(|text| parse_artifact(text)).collect(),
        status: status.or_else(|| args.failed.as_ref().map(|reason| verdict(false, reason))),
        response: args.response.map(|response| match response {
            args::AgentResponse::None => swarmc_plan::Response::None,
            args::AgentResponse::Optional => swarmc_plan::Response::Optional,
            args::AgentResponse::Required => swarmc_plan::Response::Required,
        }),
        reply_to: args.reply_to.clone(),
        answers_by_name: false,
        message_kind: None,
        context_ref: args.context.clone(),
        kind: args.signal.then_some(EnvelopeKind::Signal),
        priority: args.priority.map(|priority| match priority {
            args::AgentPriority::Low => swarmc_plan::Priority::Low,
            args::AgentPriority::Normal => swarmc_plan::Priority::Normal,
            args::AgentPriority::High => swarmc_plan::Priority::High,
        }),
    })
}

/// An argument, or for `-` what stands on standard input: so many characters, and one more, as the run says what is too
/// long.
fn read_argument(argument: &str, most: usize) -> miette::Result<String> {
    if argument != "-" {
        return Ok(argument.to_owned());
    }
    let mut text = String::new();
    // One character may take four bytes.
    std::io::stdin().lock().take(most as u64 * 4 + 1).read_to_string(&mut text).into_diagnostic()?;
    Ok(text.trim_end().to_owned())
}

/// What a message is for and says: JSON where it is an object.
fn said_by(said: &args::Said) -> miette::Result<(MessageKind, Value)> {
    let content = read_argument(&said.content, ENVELOPE_LIMIT)?;
    let object = serde_json::from_str::<Value>(&content).ok().filter(Value::is_object);
    let kind = match said.kind {
        args::MessageType::DataReady => MessageKind::DataReady,
        args::MessageType::Question => MessageKind::Question,
        args::MessageType::Answer => MessageKind::Answer,
        args::MessageType::Update => MessageKind::Update,
    };
    Ok((kind, object.unwrap_or(Value::String(content))))
}

fn build_report(args: &args::ReportStatus) -> Report {
    let args::ReportStatus { step, done, total, message, metrics } = args;
    let progress = AgentProgress {
        current_step: step.clone(),
        steps_completed: *done,
        total_steps: *total,
        ..AgentProgress::default()
    };
    // What is a number is one.
    let value = |text: &String| {
        let number = serde_json::from_str::<Value>(text).ok().filter(Value::is_number);
        number.unwrap_or_else(|| Value::String(text.clone()))
    };
    let metrics: Map<String, Value> = metrics.iter().map(|(name, text)| (name.clone(), value(text))).collect();
    Report {
        progress: Some(progress).filter(|progress| *progress != AgentProgress::default()),
        message: message.clone(),
        metrics: Some(metrics).filter(|metrics| !metrics.is_empty()),
    }
}

/// `REF`, or `TYPE=REF`.
fn parse_artifact(text: &str) -> Artifact {
    let is_kind = |kind: &str| !kind.is_empty() && kind.bytes().all(|byte| byte.is_ascii_lowercase());
    match text.split_once('=').filter(|(kind, _)| is_kind(kind)) {
        Some((kind, reference)) => Artifact { kind: kind.to_owned(), reference: reference.to_owned() },
        None => {
            let stored = text.strip_prefix("artifact://").and_then(|rest| rest.split_once('/'));
            let kind = stored.map_or("file", |(kind, _)| kind);
            Artifact { kind: kind.to_owned(), reference: text.to_owned() }
        }
    }
}
