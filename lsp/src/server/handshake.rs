//! The first messages: nothing is answered before the editor has said what it is.

use gen_lsp_types::InitializeParams;
use lsp_server::{Connection, ErrorCode, Message, RequestId, Response};

/// Waits for an `initialize` that can be read; none when the editor leaves before.
pub(super) fn await_initialize(connection: &Connection) -> Option<(RequestId, InitializeParams)> {
    for message in &connection.receiver {
        let request = match message {
            Message::Request(request) => request,
            Message::Notification(notification) if notification.method == "exit" => return None,
            Message::Notification(_) | Message::Response(_) => continue,
        };
        let (code, refusal) = if request.method == "initialize" {
            match serde_json::from_value(request.params) {
                Ok(params) => return Some((request.id, params)),
                Err(error) => (ErrorCode::InvalidParams, error.to_string()),
            }
        } else {
            (ErrorCode::ServerNotInitialized, format!("`{}` came before `initialize`", request.method))
        };
        let refusal = Response::new_err(request.id, code as i32, refusal);
        if connection.sender.send(refusal.into()).is_err() {
            return None;
        }
    }
    None
}
