//! The requests of an agent to its client, taken off the protocol at once, so that none waits in there.
//!
//! In: a channel to the agent, and what the turn begins with. Out: the dialogue, and every request with the means to
//! answer it. Invariant: a request that is dropped without an answer gets an error.

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use agent_client_protocol::v1::Responder;
use agent_client_protocol::v1::schema::{
    CreateTerminalRequest, CreateTerminalResponse, KillTerminalRequest, KillTerminalResponse, ReadTextFileRequest,
    ReadTextFileResponse, ReleaseTerminalRequest, ReleaseTerminalResponse, RequestId, RequestPermissionRequest,
    RequestPermissionResponse, SessionId, TerminalOutputRequest, TerminalOutputResponse, WaitForTerminalExitRequest,
    WaitForTerminalExitResponse, WriteTextFileRequest, WriteTextFileResponse,
};
use agent_client_protocol::{Channel, Client, Error, JsonRpcResponse, on_receive_request};

use super::dialogue::{self, Opening, Shared};

/// The conversation with an agent.
pub(super) type Dialogue = Pin<Box<dyn Future<Output = Result<(), Error>>>>;

/// A request, and how to answer it.
pub(super) enum Request {
    /// It asks for leave to use a tool of its own.
    Leave(Box<RequestPermissionRequest>, Responder<RequestPermissionResponse>),
    /// It asks for something to be done.
    Errand(ClientRequest),
}

/// Something that is to be done for an agent.
pub(super) enum ClientRequest {
    Read(ReadTextFileRequest, Responder<ReadTextFileResponse>),
    Write(WriteTextFileRequest, Responder<WriteTextFileResponse>),
    Create(CreateTerminalRequest, Responder<CreateTerminalResponse>),
    Output(TerminalOutputRequest, Responder<TerminalOutputResponse>),
    Wait(WaitForTerminalExitRequest, Responder<WaitForTerminalExitResponse>),
    Kill(KillTerminalRequest, Responder<KillTerminalResponse>),
    Release(ReleaseTerminalRequest, Responder<ReleaseTerminalResponse>),
}

impl ClientRequest {
    /// The session that it is said to be of.
    pub(super) fn session_id(&self) -> &SessionId {
        match self {
            ClientRequest::Read(request, _) => &request.session_id,
            ClientRequest::Write(request, _) => &request.session_id,
            ClientRequest::Create(request, _) => &request.session_id,
            ClientRequest::Output(request, _) => &request.session_id,
            ClientRequest::Wait(request, _) => &request.session_id,
            ClientRequest::Kill(request, _) => &request.session_id,
            ClientRequest::Release(request, _) => &request.session_id,
        }
    }

    /// The bytes that it keeps in memory, but for those of a fixed number.
    pub(super) fn held_bytes(&self) -> usize {
        let length = |path: &Path| path.as_os_str().len();
        let (id, said) = match self {
            ClientRequest::Read(request, responder) => (responder.id(), length(&request.path)),
            ClientRequest::Write(request, responder) => (responder.id(), length(&request.path) + request.content.len()),
            ClientRequest::Create(request, responder) => {
                // Empty ones take room, too.
                let args = request.args.iter().map(|word| size_of_val(word) + word.len()).sum::<usize>();
                let env = request.env.iter().map(|pair| size_of_val(pair) + pair.name.len() + pair.value.len());
                let cwd = request.cwd.as_deref().map_or(0, length);
                (responder.id(), request.command.len() + args + env.sum::<usize>() + cwd)
            }
            ClientRequest::Output(request, responder) => (responder.id(), request.terminal_id.0.len()),
            ClientRequest::Wait(request, responder) => (responder.id(), request.terminal_id.0.len()),
            ClientRequest::Kill(request, responder) => (responder.id(), request.terminal_id.0.len()),
            ClientRequest::Release(request, responder) => (responder.id(), request.terminal_id.0.len()),
        };
        count_id_bytes(id) + self.session_id().0.len() + said
    }

    /// Says that it is not done, and why.
    pub(super) fn refuse(self, error: Error) {
        match self {
            ClientRequest::Read(_, responder) => answer_request(responder, Err(error)),
            ClientRequest::Write(_, responder) => answer_request(responder, Err(error)),
            ClientRequest::Create(_, responder) => answer_request(responder, Err(error)),
            ClientRequest::Output(_, responder) => answer_request(responder, Err(error)),
            ClientRequest::Wait(_, responder) => answer_request(responder, Err(error)),
            ClientRequest::Kill(_, responder) => answer_request(responder, Err(error)),
            ClientRequest::Release(_, responder) => answer_request(responder, Err(error)),
        }
    }
}

/// The bytes of the name of a request, which is its agent's to choose.
pub(super) fn count_id_bytes(id: &RequestId) -> usize {
    match id {
        RequestId::Str(name) => name.len(),
        RequestId::Null | RequestId::Number(_) => 0,
    }
}

/// Answers a request. The agent that asked may have gone.
pub(super) fn answer_request<T: JsonRpcResponse>(responder: Responder<T>, outcome: Result<T, Error>) {
    let _ = responder.respond_with_result(outcome);
}

/// The dialogue with the agent at the other end of `channel`, whose requests go to `sender`.
pub(super) fn start_dialogue(
    channel: Channel,
    opening: Opening,
    shared: Arc<Shared>,
    sender: Sender<Request>,
) -> Dialogue {
    // Where the receiver of a request has gone, the request is dropped and answered with an error.
    macro_rules! hand_on {
        ($kind:ty, $request:expr) => {{
            let sender = sender.clone();
            async move |mut asked: $kind, responder, _| {
                // No code reads it, however long it is.
                asked.meta = None;
                let _ = sender.send($request(asked, responder));
                Ok(())
            }
        }};
    }
    let dialogue = Client
        .v1()
        .name("swarmc")
        .on_receive_request(
            hand_on!(RequestPermissionRequest, |it, to| Request::Leave(Box::new(it), to)),
            on_receive_request!(),
        )
        .on_receive_request(
            hand_on!(ReadTextFileRequest, |it, to| Request::Errand(ClientRequest::Read(it, to))),
            on_receive_request!(),
        )
        .on_receive_request(
            hand_on!(WriteTextFileRequest, |it, to| Request::Errand(ClientRequest::Write(it, to))),
            on_receive_request!(),
        )
        .on_receive_request(
            hand_on!(CreateTerminalRequest, |mut it: CreateTerminalRequest, to| {
                it.env.iter_mut().for_each(|pair| pair.meta = None);
                Request::Errand(ClientRequest::Create(it, to))
            }),
            on_receive_request!(),
        )
        .on_receive_request(
            hand_on!(TerminalOutputRequest, |it, to| Request::Errand(ClientRequest::Output(it, to))),
            on_receive_request!(),
        )
        .on_receive_request(
            hand_on!(WaitForTerminalExitRequest, |it, to| Request::Errand(ClientRequest::Wait(it, to))),
            on_receive_request!(),
        )
        .on_receive_request(
            hand_on!(KillTerminalRequest, |it, to| Request::Errand(ClientRequest::Kill(it, to))),
            on_receive_request!(),
        )
        .on_receive_request(
            hand_on!(ReleaseTerminalRequest, |it, to| Request::Errand(ClientRequest::Release(it, to))),
            on_receive_request!(),
        )
        .connect_with(channel, async move |connection| {
            dialogue::run_turn(connection, opening, shared).await;
            Ok(())
        });
    Box::pin(dialogue)
}
