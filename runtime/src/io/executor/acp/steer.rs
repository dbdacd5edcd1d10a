//! Sends a text into the turn of an agent that goes on, by the request `_session/steering`.
//!
//! The request is an extension that claude-agent-acp 0.101 and codex-acp 2.6 have; `session/inject` of the protocol itself
//! is not decided yet. What is known of it stands in this file alone.

use std::convert::Infallible;

use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{InitializeResponse, SessionId};
use agent_client_protocol::{Agent, UntypedMessage};
use serde_json::{Value, json};

use super::dialogue::Shared;
use crate::io::steering::{Steered, Steering};

const METHOD: &str = "_session/steering";

/// Whether an agent takes texts while its turn goes on.
pub(super) fn is_supported(hello: &InitializeResponse) -> bool {
    let steering = hello.meta.as_ref().and_then(|meta| meta.get("steering"));
    steering.is_some_and(|steering| steering["supported"] == true)
}

/// Sends each text to the agent, until the turn is over and this future is dropped.
pub(super) async fn deliver_notices(
    connection: &ConnectionTo<Agent>,
    session: &SessionId,
    steering: &Steering,
    shared: &Shared,
) -> Infallible {
    loop {
        let notices = steering.next().await;
        // Without a turn that goes on, the agent is to begin none: the next turn reads it.
        let params = json!({
            "sessionId": session,
            "prompt": [{ "type": "text", "text": notices.text }],
            "_meta": { "steering": { "idleBehavior": "promptRequired" } },
        });
        let request = UntypedMessage { method: METHOD.to_owned(), params };
        let answer: Result<Value, _> = connection.send_request(request).block_task().await;
        let is_injected = answer.is_ok_and(|answer| answer["outcome"] == "injected");
        let steered = if is_injected { Steered::Injected(notices) } else { Steered::Refused(notices) };
        shared.lock_progress().steered.push(steered);
    }
}
