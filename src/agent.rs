//! `swarmc agent`: a script takes part in the run that started it.

use std::ffi::OsString;
use std::io::Read as _;
use std::path::Path;

use miette::{IntoDiagnostic, miette};
use swarmc_runtime::handoff::{Artifact, EnvelopeKind, Handoff, MESSAGE_LIMIT, Operation, Reading, Verdict};
use swarmc_runtime::{SOCKET, TOKEN, ask};

use crate::args;
use crate::exit::Exit;
use crate::terminal;

pub(crate) fn exec(args: &args::Agent) -> miette::Result<Exit> {
    let operation = match &args.operation {
        args::AgentOperation::SendHandoff(args) => Operation::SendHandoff(Box::new(handoff(args)?)),
        args::AgentOperation::SpawnNode(args) => Operation::SpawnNode(Box::new(handoff(args)?)),
        args::AgentOperation::ReadContext(args::ReadContext { reference, offset }) => {
            Operation::ReadContext(Reading { reference: reference.clone(), offset: *offset })
        }
        args::AgentOperation::ReadInbox(args::ReadInbox {}) => Operation::ReadInbox {},
    };
    let (socket, token) = (variable(SOCKET)?, variable(TOKEN)?);
    let receipt =
        ask(Path::new(&socket), &token.to_string_lossy(), &operation).map_err(|problem| miette!("{problem}"))?;
    terminal::print(format!("{receipt}\n"))?;
    Ok(Exit::Done)
}

/// What the run that started this process has told it.
pub(crate) fn variable(name: &str) -> miette::Result<OsString> {
    std::env::var_os(name).ok_or_else(|| {
        miette!(
            help = "it works in the processes of a task whose pipeline has `edges` from it or to it",
            "{name} is not set: no run has started this process"
        )
    })
}

fn handoff(args: &args::SendHandoff) -> miette::Result<Handoff> {
    let message = match args.message.as_str() {
        "-" => {
            let mut text = String::new();
            // One character may take four bytes; the run says what is too long.
            let most = MESSAGE_LIMIT as u64 * 4 + 1;
            std::io::stdin().lock().take(most).read_to_string(&mut text).into_diagnostic()?;
            text.trim_end().to_owned()
        }
        text => text.to_owned(),
    };
    let structured = args.structured.as_deref().map(serde_json::from_str).transpose();
    let structured = structured.map_err(|error| miette!("`--structured` is no JSON: {error}"))?;
    let verdict =
        |ok: bool, reason: &String| Verdict { ok, reason: Some(reason.clone()).filter(|text| !text.is_empty()) };
    let status = args.ok.as_ref().map(|reason| verdict(true, reason));
    Ok(Handoff {
        to: args.to.clone(),
        message,
        structured,
        artifacts: args.artifacts.iter().map(|text| artifact(text)).collect(),
        status: status.or_else(|| args.failed.as_ref().map(|reason| verdict(false, reason))),
        response: args.response.map(|response| match response {
            args::AgentResponse::None => swarmc_plan::Response::None,
            args::AgentResponse::Optional => swarmc_plan::Response::Optional,
            args::AgentResponse::Required => swarmc_plan::Response::Required,
        }),
        reply_to: args.reply_to.clone(),
        context_ref: args.context.clone(),
        kind: args.signal.then_some(EnvelopeKind::Signal),
        priority: args.priority.map(|priority| match priority {
            args::AgentPriority::Low => swarmc_plan::Priority::Low,
            args::AgentPriority::Normal => swarmc_plan::Priority::Normal,
            args::AgentPriority::High => swarmc_plan::Priority::High,
        }),
    })
}

/// `REF`, or `TYPE=REF`.
fn artifact(text: &str) -> Artifact {
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
