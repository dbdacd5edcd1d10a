//! The socket and the port on which processes of this machine call their run, whose server is on another one.
//!
//! In: a line on the socket, or a request of HTTP on the port, with the token of an attempt. Out: what the run answers,
//! through the engine. Invariant: only the tokens of the processes that this worker has are passed on, and each as a call of
//! that process. A worker that starts again has the same addresses, which its processes know.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes as HttpBytes, Incoming};
use hyper::header::{AUTHORIZATION, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use reqwest::Url;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::time::{sleep, timeout};

use crate::io::agent_api::{MCP, Place, Places, SOCKET, TOKEN, WORKER_PORT, bearer_token, single_header};
use crate::io::engine::{Client, Objects};
use crate::io::unix::through;
use crate::types::engine::{HttpRequest, Order, Started, Variable};

/// The bytes of a request, or of a line, at most.
const BODY: usize = 1 << 20;

/// The connections of each kind at once.
const CONNECTIONS: usize = 128;

/// How long a connection may be silent.
const SILENCE: Duration = Duration::from_secs(60);

/// How long a call is made again while the engine does not answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long nothing is accepted where the system has no file for one more connection.
const PAUSE: Duration = Duration::from_millis(100);

/// The socket and the port of a worker on which its processes call their runs. They open with the first process that needs
/// them.
pub(super) struct CallServer {
    engine: String,
    objects: Objects,
    socket: PathBuf,
    /// Where the port is kept for the next worker.
    port_path: PathBuf,
    open: RefCell<Option<Open>>,
    /// Whose token it is.
    tokens: RefCell<BTreeMap<String, Started>>,
}

/// The addresses of a run, each as its driver knows it and as it is on this machine. They stand in the environment, in
/// the configuration of an agent, and in its prompts.
#[derive(Clone, Debug, Default)]
pub(super) struct Addresses(Vec<(String, String)>);

impl Addresses {
    /// A text with the addresses of this machine.
    pub(super) fn localize(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (there, here)| text.replace(there, here))
    }

    /// A line of JSON with them.
    pub(super) fn localize_line(&self, line: Vec<u8>) -> Vec<u8> {
        match std::str::from_utf8(&line) {
            Ok(text) if !self.0.is_empty() => self.localize(text).into_bytes(),
            _ => line,
        }
    }
}

/// The socket and the port, open.
struct Open {
    client: Client,
    port: u16,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.tasks.iter().for_each(tokio::task::JoinHandle::abort);
    }
}

impl CallServer {
    pub(super) fn new(engine: String, objects: Objects, folder: &std::path::Path) -> CallServer {
        CallServer {
            engine,
            objects,
            socket: folder.join("agents.sock"),
            port_path: folder.join(WORKER_PORT),
            open: RefCell::default(),
            tokens: RefCell::default(),
        }
    }

    /// Lets a process in whose order has a token; what it calls its run by on this machine.
    ///
    /// # Errors
    /// The socket or the port cannot be opened.
    pub(super) fn admit(self: &Rc<CallServer>, of: &Started, order: &Order) -> Result<Addresses, String> {
        let find = |wanted: &str| {
            order.environment.iter().rev().find_map(|(name, variable)| match variable {
                Variable::Set(value) if name == wanted && !value.is_empty() => Some(value.clone()),
                _ => None,
            })
        };
        let Some(token) = find(TOKEN) else { return Ok(Addresses::default()) };
        if self.open.borrow().is_none() {
            let open = self.open_both().map_err(|error| format!("it cannot reach its run: {error}"))?;
            *self.open.borrow_mut() = Some(open);
        }
        let port = self.open.borrow().as_ref().map(|open| open.port);
        self.tokens.borrow_mut().insert(token, of.clone());
        let here = |url: &str| {
            let mut here = Url::parse(url).ok()?;
            here.set_scheme("http").ok()?;
            here.set_host(Some("127.0.0.1")).ok()?;
            here.set_port(port).ok()?;
            Some(here.to_string())
        };
        let tools = find(MCP).and_then(|url| Some((here(&url)?, url)));
        let socket = find(SOCKET).map(|there| (self.socket.to_string_lossy().into_owned(), there));
        let pairs = [tools, socket].into_iter().flatten();
        Ok(Addresses(pairs.map(|(here, there)| (there, here)).collect()))
    }

    /// A process has ended: its token is nothing any more.
    pub(super) fn forget(&self, of: &Started) {
        self.tokens.borrow_mut().retain(|_, holder| holder != of);
    }

    fn open_both(self: &Rc<CallServer>) -> std::io::Result<Open> {
        let _ = fs::remove_file(&self.socket);
        let socket = through(&self.socket, std::os::unix::net::UnixListener::bind)?;
        fs::set_permissions(&self.socket, fs::Permissions::from_mode(0o600))?;
        socket.set_nonblocking(true)?;
        let socket = UnixListener::from_std(socket)?;
        let former = fs::read_to_string(&self.port_path).ok().and_then(|port| port.trim().parse().ok());
        let bind = |port: u16| std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port));
        // Where another program has the port meanwhile, processes of a former worker do not reach their run.
        let listener = bind(former.unwrap_or(0)).or_else(|_| bind(0))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        fs::write(&self.port_path, port.to_string())?;
        let listener = TcpListener::from_std(listener)?;
        let client = Client::new(&self.engine, PATIENCE).map_err(std::io::Error::other)?;
        let lines = tokio::task::spawn_local(Rc::clone(self).serve_lines(socket));
        let http = tokio::task::spawn_local(Rc::clone(self).serve_http(listener));
        Ok(Open { client, port, tasks: vec![lines, http] })
    }

    async fn serve_lines(self: Rc<CallServer>, listener: UnixListener) {
        let places = Places::new(CONNECTIONS);
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                sleep(PAUSE).await;
                continue;
            };
            let (call_server, place) = (Rc::clone(&self), places.acquire_place().await);
            tokio::task::spawn_local(async move {
                tokio::select! {
                    // A client that goes away early reads no error.
                    _ = call_server.answer_lines(stream, &place) => {}
                    () = place.wait_for_eviction() => {}
                }
            });
        }
    }

    async fn answer_lines(&self, stream: UnixStream, place: &Place) -> std::io::Result<()> {
        let (reader, mut writer) = stream.into_split();
        let mut reader = BufReader::new(reader);
        loop {
            let mut line = Vec::new();
            let mut limited = (&mut reader).take(BODY as u64);
            let Ok(count) = timeout(SILENCE, limited.read_until(b'\n', &mut line)).await else { return Ok(()) };
            if count? == 0 {
                return Ok(());
            }
            let is_whole = line.ends_with(b"\n");
            let answer = match is_whole {
                true => self.answer_line(&line, place).await,
                false => Err(format!("a line has {} KB at most, and an end", BODY / 1024)),
            };
            let answer = answer.unwrap_or_else(|problem| format!("{}\n", json!({ "error": problem })).into_bytes());
            match timeout(SILENCE, writer.write_all(&answer)).await {
                Ok(written) if is_whole => written?,
                _ => return Ok(()),
            }
        }
    }

    async fn answer_line(&self, line: &[u8], place: &Place) -> Result<Vec<u8>, String> {
        let said: Value = serde_json::from_slice(line).map_err(|error| format!("not an operation: {error}"))?;
        let token = said.get("token").and_then(Value::as_str).unwrap_or_default();
        let of = self.find_holder(token).ok_or("the token does not belong to a running turn")?;
        place.mark_authenticated();
        let request = HttpRequest {
            is_tools: false,
            method: "POST".to_owned(),
            path: "/".to_owned(),
            headers: BTreeMap::new(),
            body: self.objects.pack(line.trim_ascii_end()).await?,
        };
        let (_, _, mut answer) = self.call(&of, &request).await?;
        if !answer.ends_with(b"\n") {
            answer.push(b'\n');
        }
        Ok(answer)
    }

    fn find_holder(&self, token: &str) -> Option<Started> {
        self.tokens.borrow().get(token).cloned()
    }

    /// What the run answers: the status, the headers and the body.
    async fn call(
        &self,
        of: &Started,
        request: &HttpRequest,
    ) -> Result<(u16, BTreeMap<String, String>, Vec<u8>), String> {
        let client = self.open.borrow().as_ref().map(|open| open.client.clone());
        let client = client.ok_or("the worker is ending")?;
        let answer = client.request(of, request).await.map_err(|error| error.to_string())?;
        Ok((answer.status, answer.headers, self.objects.unpack(answer.body).await?))
    }

    async fn serve_http(self: Rc<CallServer>, listener: TcpListener) {
        let places = Places::new(CONNECTIONS);
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                sleep(PAUSE).await;
                continue;
            };
            let (call_server, place) = (Rc::clone(&self), Rc::new(places.acquire_place().await));
            tokio::task::spawn_local(call_server.answer_connection(stream, place));
        }
    }

    async fn answer_connection(self: Rc<CallServer>, stream: TcpStream, place: Rc<Place>) {
        // Answers are small, and a client waits for each.
        let _ = stream.set_nodelay(true);
        let holder = Rc::clone(&place);
        let service = service_fn(move |request| {
            let (call_server, place) = (Rc::clone(&self), Rc::clone(&holder));
            async move {
                let answer = call_server.answer_http(request, &place).await;
                Ok::<_, Infallible>(answer.unwrap_or_else(|(status, why)| build_answer(status, Vec::new(), why + "\n")))
            }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(SILENCE)
            .serve_connection(TokioIo::new(stream), service);
        tokio::select! {
            _ = connection => {}
            () = place.wait_for_eviction() => {}
        }
    }

    async fn answer_http(
        &self,
        request: Request<Incoming>,
        place: &Place,
    ) -> Result<Response<Full<HttpBytes>>, (StatusCode, String)> {
        let (head, body) = request.into_parts();
        let token = single_header(&head.headers, &AUTHORIZATION).and_then(bearer_token);
        let of = token.and_then(|token| self.find_holder(token));
        let unknown = || (StatusCode::UNAUTHORIZED, "the token does not belong to a running turn".to_owned());
        let of = of.ok_or_else(unknown)?;
        place.mark_authenticated();
        let late = |_| (StatusCode::REQUEST_TIMEOUT, "the request took too long".to_owned());
        let body = timeout(SILENCE, Limited::new(body, BODY).collect()).await.map_err(late)?;
        let long = |_| (StatusCode::PAYLOAD_TOO_LARGE, format!("a request has {} KB at most", BODY / 1024));
        let body = body.map_err(long)?.to_bytes();
        let failed = |problem: String| (StatusCode::BAD_GATEWAY, problem);
        let headers = head.headers.iter();
        let headers = headers.filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())));
        let request = HttpRequest {
            is_tools: true,
            method: head.method.to_string(),
            path: head.uri.path_and_query().map_or_else(|| "/".to_owned(), ToString::to_string),
            headers: headers.collect(),
            body: self.objects.pack(&body).await.map_err(failed)?,
        };
        let (status, headers, body) = self.call(&of, &request).await.map_err(failed)?;
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
        Ok(build_answer(status, headers.into_iter().collect(), body))
    }
}

/// An answer without the headers that are about one connection.
fn build_answer(
    status: StatusCode,
    headers: Vec<(String, String)>,
    body: impl Into<HttpBytes>,
) -> Response<Full<HttpBytes>> {
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = status;
    for (name, value) in headers {
        let is_ours = matches!(&*name, "connection" | "content-length" | "keep-alive" | "transfer-encoding");
        if let (false, Ok(name), Ok(value)) = (is_ours, name.parse::<HeaderName>(), value.parse::<HeaderValue>()) {
            answer.headers_mut().insert(name, value);
        }
    }
    answer
}
