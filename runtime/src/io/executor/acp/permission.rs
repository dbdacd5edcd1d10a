//! Permission requests of an agent: the run asks people or the policy, and the answer picks an option by its kind.
//!
//! Invariants: only exactly what was approved is allowed; every request is answered, at the end of the turn at
//! the latest; and of those that wait no more than [`HELD`] bytes of its agent's choosing are kept.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use agent_client_protocol::v1::Responder;
use agent_client_protocol::v1::schema::{
    PermissionOption, PermissionOptionId, PermissionOptionKind, RequestPermissionOutcome, RequestPermissionRequest,
    RequestPermissionResponse, SelectedPermissionOutcome, ToolKind,
};
use serde_json::{Map, Value, json};
use swarmc_plan::{Approval, Permissions};
use tokio::sync::oneshot;

use super::requests::count_id_bytes;
use super::turn_log::tool_title;
use crate::io::agent_api::ToolSpec;
use crate::io::executor::pool::Services;
use crate::io::input::Input;
use crate::types::approval::{Decision, ToolCallRequest};
use crate::types::event::StepId;

/// The requests of one turn at most: an agent that asks more often has lost its way.
pub(super) const MOST: usize = 1_000;

/// The bytes that may be kept at once to answer them with.
pub(super) const HELD: usize = 1 << 20;

/// The bytes of what a call is about that people are shown; more is left out.
const SHOWN: usize = 64 * 1024;

/// Who asks.
#[derive(Debug)]
pub(super) struct Asker {
    pub agent: Arc<str>,
    pub permissions: Permissions,
    /// The tools of the run's own server, which its agents may call.
    pub own: Arc<[ToolSpec]>,
    pub step: StepId,
    pub attempt: u32,
}

/// The first option of each kind, by its name: no other is ever chosen.
type Choices = Vec<(PermissionOptionKind, PermissionOptionId)>;

/// A request that waits for an approval.
pub(super) struct Pending {
    heard: oneshot::Receiver<Decision>,
    options: Choices,
    responder: Responder<RequestPermissionResponse>,
}

impl Asker {
    /// Takes a request; returns a text about it for people, and the pending request unless it is answered at once.
    pub(super) fn take_request(
        &self,
        request: &RequestPermissionRequest,
        responder: Responder<RequestPermissionResponse>,
        services: &Services,
    ) -> (String, Option<Pending>) {
        let fields = &request.tool_call.fields;
        let shown = tool_title(fields.name.as_deref(), fields.title.as_deref().unwrap_or_default());
        let tool = services.tools.name(fields.name.as_deref().unwrap_or_else(|| describe_tool_kind(fields.kind)));
        let of = match self.permissions {
            Permissions::Skip => Approval::Auto,
            Permissions::Gated if is_own_tool(fields.name.as_deref(), &self.own) => Approval::Auto,
            // A person decides about tools that the policy does not name.
            Permissions::Gated => services.tools.said(&tool).unwrap_or(Approval::Human),
        };
        let options = collect_choices(&request.options);
        if of == Approval::Auto {
            // For this call alone, where that is offered: an agent that is allowed for ever does not ask again.
            answer_permission(
                responder,
                &options,
                &[PermissionOptionKind::AllowOnce, PermissionOptionKind::AllowAlways],
            );
            return (shown, None);
        }
        let agent = Arc::clone(&self.agent);
        let call = ToolCallRequest { agent, tool, arguments: describe_request(request), schema: None, of, fixed: true };
        let (reply, heard) = oneshot::channel();
        let (step, attempt) = (self.step.clone(), self.attempt);
        services.report(Input::Wants { step, attempt, call: Box::new(call), reply });
        (shown, Some(Pending { heard, options, responder }))
    }
}

impl Pending {
    /// Answers the request, if there is a decision; returns the request otherwise. An error where the turn fails for
    /// it.
    pub(super) fn poll(mut self, context: &mut Context<'_>) -> Result<Option<Pending>, String> {
        let leave = match Pin::new(&mut self.heard).poll(context) {
            Poll::Pending => return Ok(Some(self)),
            Poll::Ready(leave) => leave,
        };
        use PermissionOptionKind::{AllowAlways, AllowOnce, RejectAlways, RejectOnce};
        match leave {
            Ok(Decision::Granted(None)) => answer_permission(self.responder, &self.options, &[AllowOnce, AllowAlways]),
            Ok(Decision::Always) => answer_permission(self.responder, &self.options, &[AllowAlways, AllowOnce]),
            // The agent cannot receive other arguments, and the call with its own was not approved.
            Ok(Decision::Granted(Some(_)) | Decision::Refused(_)) => {
                answer_permission(self.responder, &self.options, &[RejectOnce, RejectAlways]);
            }
            Ok(Decision::Failed(message)) => {
                cancel_request(self.responder);
                return Err(message);
            }
            // No answer comes any more: the attempt is about to be ended.
            Err(_) => cancel_request(self.responder),
        }
        Ok(None)
    }

    /// The bytes that are kept to answer it with.
    pub(super) fn held_bytes(&self) -> usize {
        count_id_bytes(self.responder.id()) + self.options.iter().map(|(_, id)| id.0.len()).sum::<usize>()
    }

    /// Reports that the turn ends before an answer.
    pub(super) fn cancel(self) {
        cancel_request(self.responder);
    }
}

/// Whether a call is one of the run's own server, by the names that programs give to the tools of the server `swarm`. The run
/// checks each call to that server.
fn is_own_tool(name: Option<&str>, own: &[ToolSpec]) -> bool {
    let is_server =
        |rest: &str| ["mcp__swarm__", "mcp.swarm.", "swarm__", "swarm_", "swarm.", "swarm/"].contains(&rest);
    let server = |name: &str| own.iter().any(|tool| name.strip_suffix(&*tool.name).is_some_and(is_server));
    name.is_some_and(server)
}

fn collect_choices(options: &[PermissionOption]) -> Choices {
    use PermissionOptionKind::{AllowAlways, AllowOnce, RejectAlways, RejectOnce};
    let first = |kind| options.iter().find(|option| option.kind == kind);
    let kinds = [AllowOnce, AllowAlways, RejectOnce, RejectAlways].into_iter();
    kinds.filter_map(first).map(|option| (option.kind, option.option_id.clone())).collect()
}

/// Answers with the option of the first of these kinds that there is; that the turn is over, where there is none.
fn answer_permission(
    responder: Responder<RequestPermissionResponse>,
    options: &[(PermissionOptionKind, PermissionOptionId)],
    kinds: &[PermissionOptionKind],
) {
    let option = kinds.iter().find_map(|kind| options.iter().find(|(of, _)| of == kind));
    let outcome = option.map_or(RequestPermissionOutcome::Cancelled, |(_, id)| {
        RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(id.clone()))
    });
    // The agent that asked may have gone.
    let _ = responder.respond(RequestPermissionResponse::new(outcome));
}

pub(super) fn cancel_request(responder: Responder<RequestPermissionResponse>) {
    let _ = responder.respond(RequestPermissionResponse::new(RequestPermissionOutcome::Cancelled));
}

/// What a tool without a name is called.
fn describe_tool_kind(kind: Option<ToolKind>) -> &'static str {
    match kind {
        Some(ToolKind::Read) => "read",
        Some(ToolKind::Edit) => "edit",
        Some(ToolKind::Delete) => "delete",
        Some(ToolKind::Move) => "move",
        Some(ToolKind::Search) => "search",
        Some(ToolKind::Execute) => "execute",
        Some(ToolKind::Think) => "think",
        Some(ToolKind::Fetch) => "fetch",
        Some(ToolKind::SwitchMode) => "switch_mode",
        _ => "other",
    }
}

/// What a request is about, for people: what it says of itself, as far as that fits.
fn describe_request(request: &RequestPermissionRequest) -> Value {
    let fields = &request.tool_call.fields;
    let mut said = Map::new();
    let mut say = |key: &str, value: Value| {
        let is_short = serde_json::to_string(&value).is_ok_and(|text| text.len() <= SHOWN);
        let value = if is_short { value } else { json!("(too long to be shown)") };
        said.insert(key.to_owned(), value);
    };
    if let Some(title) = &fields.title {
        say("title", json!(title));
    }
    if let Some(locations) = fields.locations.as_ref().filter(|locations| !locations.is_empty()) {
        say("paths", locations.iter().map(|location| json!(location.path)).collect());
    }
    if let Some(input) = &fields.raw_input {
        say("input", input.clone());
    }
    if let Some(content) = fields.content.as_ref().filter(|content| !content.is_empty()) {
        say("content", serde_json::to_value(content).unwrap_or_default());
    }
    Value::Object(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_of_the_run_need_no_approval_and_no_others_pass_for_them() {
        let tool =
            ToolSpec { name: "item_done".to_owned(), description: String::new(), parameters: json!({}), reads: false };
        for (name, is_own) in [
            ("mcp__swarm__item_done", true),
            ("swarm_item_done", true),
            ("swarm.item_done", true),
            ("item_done", false),
            ("mcp__other__item_done", false),
            ("mcp__swarm__other_item_done", false),
            ("mcp__swarm__item_done2", false),
            ("mcp__swarm__shell", false),
        ] {
            assert_eq!(is_own_tool(Some(name), std::slice::from_ref(&tool)), is_own, "{name}");
        }
        assert!(!is_own_tool(None, &[tool]));
    }
}
