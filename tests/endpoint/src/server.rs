//! The server: one thread with its own event loop, on a free port of 127.0.0.1.
//!
//! A request is recorded before it is answered, so a test that has seen an answer also sees its
//! request. Dropping the endpoint ends the thread and every connection, hanging ones included.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use axum::body::{self, Body};
use axum::extract::State;
use axum::http::{HeaderName, Request as HttpRequest, Response, StatusCode, header};
use futures_core::Stream;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::answer::{Ending, Reply, Turn};
use crate::{Protocol, Request, Script, Usage, chat, gemini, messages, responses};

/// A running endpoint.
#[derive(Debug)]
pub struct Endpoint {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Endpoint {
    /// Starts an endpoint that follows `script`; it is ready when this returns.
    pub fn start(script: Script) -> Endpoint {
        Endpoint::start_on(script, 0).expect("a free port on 127.0.0.1")
    }

    /// Starts an endpoint on this port; for trying things by hand.
    ///
    /// # Errors
    /// The port is taken, or no thread or event loop is to be had.
    pub fn start_on(script: Script, port: u16) -> io::Result<Endpoint> {
        let shared = Arc::new(Shared { script, requests: Mutex::new(Vec::new()), arrived: Condvar::new() });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listener = std::net::TcpListener::bind(("127.0.0.1", port))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let router = Router::new().fallback(serve).with_state(shared.clone());
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::Builder::new().name("endpoint".to_owned()).spawn(move || {
            runtime.block_on(async {
                let Ok(listener) = TcpListener::from_std(listener) else { return };
                tokio::select! {
                    _ = axum::serve(listener, router) => {}
                    _ = stopped => {}
                }
            });
        })?;
        Ok(Endpoint { address, shared, stop: Some(stop), thread: Some(thread) })
    }

    /// The address of the server, without a path: `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Every request so far, oldest first.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.requests().clone()
    }

    /// Every request so far that asked the model something.
    pub fn prompts(&self) -> Vec<Request> {
        let mut requests = self.requests();
        requests.retain(|request| request.protocol.is_some());
        requests
    }

    /// Waits until `count` requests have asked the model something; false when `limit` passes.
    pub fn wait_for(&self, count: usize, limit: Duration) -> bool {
        let few = |requests: &mut Vec<Request>| {
            let prompts = requests.iter().filter(|request| request.protocol.is_some());
            prompts.count() < count
        };
        let requests = self.shared.requests();
        let waited = self
            .shared
            .arrived
            .wait_timeout_while(requests, limit, few)
            .expect("no thread panics while it holds the requests");
        !waited.1.timed_out()
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            // A panic of the server shows as the failed request of the client; nothing to add.
            let _ = thread.join();
        }
    }
}

#[derive(Debug)]
struct Shared {
    script: Script,
    requests: Mutex<Vec<Request>>,
    arrived: Condvar,
}

impl Shared {
    fn requests(&self) -> MutexGuard<'_, Vec<Request>> {
        self.requests.lock().expect("no thread panics while it holds the requests")
    }

    /// Keeps the request and returns its number.
    fn record(&self, request: Request) -> usize {
        let mut requests = self.requests();
        requests.push(request);
        self.arrived.notify_all();
        requests.len()
    }
}

async fn serve(State(shared): State<Arc<Shared>>, request: HttpRequest<Body>) -> Response<Body> {
    let (head, body) = request.into_parts();
    let Ok(body) = body::to_bytes(body, usize::MAX).await else {
        return plain(400, "the body broke off");
    };
    let headers = head.headers.iter();
    let headers = headers.map(|(name, value)| {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        (name.as_str().to_owned(), value)
    });
    let request = Request::read(head.method.to_string(), head.uri.path().to_owned(), headers.collect(), &body);
    let number = shared.record(request.clone());
    match (request.method.as_str(), request.path.as_str()) {
        ("POST", "/v1/messages/count_tokens") => whole(200, &json!({ "input_tokens": request.size() / 4 })),
        ("POST", _) if request.protocol.is_some() => answer(&shared.script, &request, number).await,
        ("GET", "/v1/models") => whole(200, &models()),
        ("GET" | "HEAD", "/" | "/health") => whole(200, &json!({ "status": "ok" })),
        _ => plain(404, "no such path"),
    }
}

async fn answer(script: &Script, request: &Request, number: usize) -> Response<Body> {
    let answer = script.answer(request);
    if !answer.delay.is_zero() {
        tokio::time::sleep(answer.delay).await;
    }
    let mut response = match answer.reply {
        Reply::Turn { text, calls, usage, ending } => {
            let usage = usage.unwrap_or_else(|| Usage {
                input: request.size() as u64 / 4,
                output: text.len() as u64 / 4,
                ..Usage::default()
            });
            let turn = Turn { number, model: request.model().to_owned(), text, calls, usage, ending };
            send(request, &turn)
        }
        Reply::Status { code, message } => whole(code, &refusal(request.protocol, code, &message)),
        Reply::Hang => std::future::pending().await,
        Reply::Raw { code, body, flood } => {
            let end = if flood { End::Again } else { End::Close };
            let mut response = stream(VecDeque::from([body]), end);
            *response.status_mut() = StatusCode::from_u16(code).expect("scripts give HTTP status codes");
            response
        }
        Reply::Garbage if request.streams() => {
            stream(VecDeque::from(["data: {\"choices\": [\n\n".to_owned()]), End::Close)
        }
        Reply::Garbage => plain(200, "{\"choices\": ["),
    };
    for (name, value) in answer.headers {
        let name = HeaderName::try_from(name).expect("scripts give names of headers");
        response.headers_mut().insert(name, value.parse().expect("scripts give values of headers"));
    }
    response
}

fn send(request: &Request, turn: &Turn) -> Response<Body> {
    let protocol = request.protocol.expect("only prompts are answered");
    let is_broken = matches!(turn.ending, Ending::Cut | Ending::Stall);
    let mut frames = match (protocol, request.streams()) {
        (Protocol::Chat, true) => chat::frames(request, turn),
        (Protocol::Responses, true) => responses::frames(request, turn),
        (Protocol::Messages, true) => messages::frames(turn),
        (Protocol::Gemini, _) => gemini::frames(turn),
        (Protocol::Chat, false) if !is_broken => return whole(200, &chat::whole(turn)),
        (Protocol::Responses, false) if !is_broken => return whole(200, &responses::whole(request, turn)),
        (Protocol::Messages, false) if !is_broken => return whole(200, &messages::whole(turn)),
        (_, false) => vec!["{".to_owned(), String::new()],
    };
    if is_broken {
        frames.truncate(frames.len() / 2);
    }
    let end = match turn.ending {
        Ending::Whole | Ending::Limit => End::Close,
        Ending::Cut => End::BreakAfterFlush,
        Ending::Stall => End::Stay,
    };
    stream(frames.into(), end)
}

fn refusal(protocol: Option<Protocol>, code: u16, message: &str) -> Value {
    let kind = match code {
        401 => "authentication_error",
        429 => "rate_limit_error",
        400..=499 => "invalid_request_error",
        _ => "api_error",
    };
    let error = json!({ "type": kind, "message": message, "code": kind });
    match protocol {
        Some(Protocol::Messages) => json!({ "type": "error", "error": error }),
        _ => json!({ "error": error }),
    }
}

fn models() -> Value {
    // The fields of both vendors: their clients ignore the ones they do not know.
    json!({
        "object": "list",
        "data": [{
            "id": "scripted",
            "object": "model",
            "type": "model",
            "display_name": "Scripted",
            "created": 0,
            "owned_by": "tests",
        }],
    })
}

fn whole(code: u16, body: &Value) -> Response<Body> {
    respond(code, "application/json", Body::from(body.to_string()))
}

fn plain(code: u16, text: &'static str) -> Response<Body> {
    respond(code, "text/plain", Body::from(text))
}

fn stream(frames: VecDeque<String>, end: End) -> Response<Body> {
    let body = Body::from_stream(Frames { frames, end });
    respond(200, "text/event-stream", body)
}

fn respond(code: u16, kind: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(code).expect("scripts give HTTP status codes");
    let kind = header::HeaderValue::from_static(kind);
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// The frames of a streamed body.
struct Frames {
    frames: VecDeque<String>,
    end: End,
}

/// What comes after the last frame.
#[derive(Clone, Copy)]
enum End {
    /// The end of the body.
    Close,
    /// Nothing: the connection stays open.
    Stay,
    /// The frame again.
    Again,
    /// An error, which breaks the connection off. The server sends what it has while it waits for more; an error at once
    /// would take the frames with it.
    BreakAfterFlush,
    Break,
}

impl Stream for Frames {
    type Item = io::Result<String>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let (End::Again, Some(frame)) = (self.end, self.frames.front()) {
            return Poll::Ready(Some(Ok(frame.clone())));
        }
        if let Some(frame) = self.frames.pop_front() {
            return Poll::Ready(Some(Ok(frame)));
        }
        match self.end {
            End::Close | End::Again => Poll::Ready(None),
            End::Stay => Poll::Pending,
            End::BreakAfterFlush => {
                self.end = End::Break;
                context.waker().wake_by_ref();
                Poll::Pending
            }
            End::Break => {
                self.end = End::Close;
                Poll::Ready(Some(Err(io::ErrorKind::BrokenPipe.into())))
            }
        }
    }
}
