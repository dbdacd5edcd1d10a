//! Connections and requests: takes them, finds their route, and sends what a handler answers.
//!
//! Invariants: connections, heads and bodies are bounded in number, size and time; a handler blocks no other request; an
//! answer with bytes of agents is nothing that a browser renders.

use std::convert::Infallible;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    ACCEPT_ENCODING, ACCEPT_RANGES, ALLOW, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_RANGE,
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderName, HeaderValue, IF_NONE_MATCH, LOCATION, REFERRER_POLICY,
    USER_AGENT, VARY, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::Value;
use swarmc_runtime::{Place, Places, living_peer, single_header};
use swarmc_view::documents::encode;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::time::{sleep, timeout};

use crate::Service;
use crate::access::check_json;
use crate::audit::note_change;
use crate::page::{POLICY, PageFile};
use crate::peer::Client;
use crate::problem::Problem;
use crate::recording::Archive;
use crate::routes::{Call, Method, Reply, Route, find_routes};
use crate::store::find_folder;
use crate::stream::{EventBody, MOST};

/// The bytes of a request's body at most.
const BODY: usize = 1024 * 1024;

/// The connections at once.
const CONNECTIONS: usize = 128;

/// How long a head, and a body, may take to come.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long no connection is taken where the system has no file for one more.
const PAUSE: Duration = Duration::from_millis(100);

/// The headers of a request at most, and the bytes of all of them.
const HEADERS: usize = 64;
const HEAD: usize = 64 * 1024;

type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;

/// A connection.
struct Connection {
    client: Client,
    place: Place,
    /// Whether its client is a process of a run, once that was asked.
    is_agent: OnceLock<bool>,
}

/// Room for the connections of a server, over all of its sockets.
pub(crate) fn make_places() -> Arc<Places> {
    Places::new(CONNECTIONS)
}

/// Takes connections over TCP for as long as the server lives.
pub(crate) async fn accept_tcp(listener: TcpListener, places: Arc<Places>, service: Arc<Service>) {
    loop {
        let Ok((stream, peer)) = listener.accept().await else {
            // Too many files are open: one has to be closed first.
            sleep(PAUSE).await;
            continue;
        };
        let Ok(local) = stream.local_addr() else { continue };
        // Answers are small, and a client waits for each.
        let _ = stream.set_nodelay(true);
        accept(stream, Client::Tcp(peer, local), &places, &service).await;
    }
}

/// Takes connections over a Unix socket for as long as the server lives.
pub(crate) async fn accept_unix(listener: UnixListener, places: Arc<Places>, service: Arc<Service>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let client = Client::Unix(living_peer(&stream));
                accept(stream, client, &places, &service).await;
            }
            Err(_) => sleep(PAUSE).await,
        }
    }
}

/// Answers a connection as soon as there is room for it.
async fn accept(stream: impl Socket, client: Client, places: &Arc<Places>, service: &Arc<Service>) {
    let place = places.acquire_place().await;
    let connection = Connection { client, place, is_agent: OnceLock::new() };
    tokio::spawn(serve_connection(stream, Arc::new(connection), Arc::clone(service)));
}

/// A connection of any kind.
trait Socket: AsyncRead + AsyncWrite + Unpin + Send + 'static {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Socket for S {}

async fn serve_connection(stream: impl Socket, connection: Arc<Connection>, service: Arc<Service>) {
    let holder = Arc::clone(&connection);
    let answer = service_fn(move |request| {
        let (connection, service) = (Arc::clone(&holder), Arc::clone(&service));
        async move { Ok::<_, Infallible>(answer_request(request, connection, service).await) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .max_headers(HEADERS)
        .max_buf_size(HEAD)
        .serve_connection(TokioIo::new(stream), answer);
    tokio::select! {
        // A client that goes away early reads no error.
        _ = served => {}
        () = connection.place.wait_for_eviction() => {}
    }
}

async fn answer_request(request: Request<Incoming>, connection: Arc<Connection>, service: Arc<Service>) -> Answer {
    let asked = format!("{} {}", request.method(), request.uri().path());
    let is_api = request.uri().path().starts_with("/api/") || request.uri().path() == "/metrics";
    let answered = match service.access.check_site(request.headers(), !is_api, connection.client.is_unix()) {
        Err(problem) => Err(problem),
        Ok(()) if is_api => answer_call(request, &connection, &service).await,
        Ok(()) => answer_page(&service, request.uri().path(), &request),
    };
    let mut answer = answered.unwrap_or_else(|problem| {
        if matches!(problem.status, 401 | 403) {
            service.log.note(&asked, connection.client, &problem);
        }
        build_problem(&problem)
    });
    let headers = answer.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    if !headers.contains_key(CACHE_CONTROL) {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    answer
}

/// The page needs no token: it holds nothing, and asks for all it shows.
fn answer_page(service: &Service, path: &str, request: &Request<Incoming>) -> Result<Answer, Problem> {
    let headers = request.headers();
    if ![hyper::Method::GET, hyper::Method::HEAD].contains(request.method()) {
        let problem = Problem::new(StatusCode::METHOD_NOT_ALLOWED, "the page is only read");
        return Err(Problem { allow: vec!["GET", "HEAD"], ..problem });
    }
    let takes_zipped = headers.get_all(ACCEPT_ENCODING).iter().any(|value| {
        value
            .to_str()
            .is_ok_and(|value| value.split(',').any(|one| one.split(';').next().unwrap_or("").trim() == "gzip"))
    });
    let Some(file) = service.page.find_file(path, takes_zipped) else {
        return Err(Problem::not_found("there is no such page: the page is at `/`, the API at `/api/v1`"));
    };
    let PageFile { kind, bytes, is_zipped, tag } = file;
    let is_known = single_header(headers, &IF_NONE_MATCH) == Some(&*tag);
    let (status, bytes) = if is_known { (StatusCode::NOT_MODIFIED, Vec::new()) } else { (StatusCode::OK, bytes) };
    let mut answer = build_answer(status, kind, bytes);
    let headers = answer.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    insert(headers, ETAG, &tag);
    if is_zipped && !is_known {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    Ok(answer)
}

async fn answer_call(
    request: Request<Incoming>,
    connection: &Arc<Connection>,
    service: &Arc<Service>,
) -> Result<Answer, Problem> {
    service.access.check_token(request.headers())?;
    connection.place.mark_authenticated();
    let (route, parts) = find_route(service, request.method(), request.uri().path())?;
    let query = parse_query(request.uri().query().unwrap_or_default())?;
    route.check_query(&query)?;
    let headers = request.headers().clone();
    let mut body = Value::Null;
    if route.method == Method::Post {
        check_json(&headers)?;
        body = read_body(request.into_body()).await?;
    }
    let (held, served) = (Arc::clone(connection), Arc::clone(service));
    let call = Call { parts, query, headers, body };
    let handled = tokio::task::spawn_blocking(move || {
        let mut call = call;
        if route.method == Method::Post {
            held.check_person()?;
            // By its id: `last` may be another run when the request is carried out.
            if route.path.starts_with("/api/v1/runs/{run}/") {
                call.parts[0] = find_folder(&served.home, call.part(0))?.id;
            }
        }
        let reply = (route.run)(&served, &call)?;
        if route.method == Method::Post
            && route.path.starts_with("/api/v1/runs/{run}/")
            && let Ok(folder) = find_folder(&served.home, call.part(0))
        {
            let client = single_header(&call.headers, &USER_AGENT).unwrap_or_default();
            note_change(&folder, route.id, held.client, client);
        }
        Ok(reply)
    });
    let reply =
        handled.await.unwrap_or_else(|_| Err(Problem::internal("this request is not answered: a bug of swarmc")))?;
    build_reply(reply, service)
}

/// The route of a request.
///
/// # Errors
/// There is none of that path, or none of that method.
fn find_route(service: &Service, method: &hyper::Method, path: &str) -> Result<(&'static Route, Vec<String>), Problem> {
    let is_there = |route: &Route| !service.read_only || route.method == Method::Get;
    let found: Vec<_> = find_routes(path).filter(|(route, _)| is_there(route)).collect();
    if found.is_empty() {
        return Err(Problem::not_found("there is no such route: `/api/v1/openapi.json` has all of them"));
    }
    let allow: Vec<&str> = found.iter().map(|(route, _)| route.method.as_str()).collect();
    found.into_iter().find(|(route, _)| route.method.as_str() == method.as_str()).ok_or_else(|| {
        let detail = format!("this route has {}", allow.join(", "));
        Problem { allow, ..Problem::new(StatusCode::METHOD_NOT_ALLOWED, detail) }
    })
}

impl Method {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Post => "POST",
        }
    }
}

impl Connection {
    /// Whether a person can have sent what comes from it: an agent could allow itself what a person is to decide.
    ///
    /// # Errors
    /// Its client is a process of a run.
    fn check_person(&self) -> Result<(), Problem> {
        match self.is_agent.get_or_init(|| self.client.is_run_process()) {
            false => Ok(()),
            true => Err(Problem::new(
                StatusCode::FORBIDDEN,
                "this is a process of a run, and its agents cannot approve or write as a person, nor start or stop runs: \
                 `swarmc agent request-help` asks a person",
            )),
        }
    }
}

async fn read_body(body: Incoming) -> Result<Value, Problem> {
    let collected = timeout(PATIENCE, Limited::new(body, BODY).collect()).await;
    let Ok(collected) = collected else {
        return Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "the body took too long"));
    };
    let bytes = match collected {
        Ok(collected) => collected.to_bytes(),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => {
            return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, format!("a body has {} KB at most", BODY / 1024)));
        }
        Err(_) => return Err(Problem::bad_request("the body is cut short")),
    };
    serde_json::from_slice(&bytes).map_err(|error| Problem::bad_request(format!("the body is no JSON: {error}")))
}

/// The parts of a query, decoded.
fn parse_query(query: &str) -> Result<Vec<(String, String)>, Problem> {
    let decode = |text: &str| {
        let text = text.replace('+', " ");
        let decoded = percent_encoding::percent_decode_str(&text).decode_utf8();
        decoded.map(String::from).map_err(|_| Problem::bad_request("the query is no UTF-8"))
    };
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((decode(name)?, decode(value)?))
        })
        .collect()
}

fn build_reply(reply: Reply, service: &Arc<Service>) -> Result<Answer, Problem> {
    const JSON: &str = "application/json";
    Ok(match reply {
        Reply::Json(json) => build_answer(StatusCode::OK, JSON, json.into_bytes()),
        Reply::Tagged { json, tag } => {
            // Without a text the client has the current one.
            let status = if json.is_some() { StatusCode::OK } else { StatusCode::NOT_MODIFIED };
            let mut answer = build_answer(status, JSON, json.unwrap_or_default().into_bytes());
            insert(answer.headers_mut(), ETAG, &tag);
            answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
            answer
        }
        Reply::Accepted { json, location } => {
            let mut answer = build_answer(StatusCode::ACCEPTED, JSON, json.into_bytes());
            if let Some(location) = location {
                insert(answer.headers_mut(), LOCATION, &location);
            }
            answer
        }
        Reply::Text(text) => build_answer(StatusCode::OK, "text/plain; charset=utf-8", text.into_bytes()),
        Reply::Nothing => build_answer(StatusCode::NO_CONTENT, JSON, Vec::new()),
        Reply::Bytes { bytes, from, total } => {
            // The client asked for a part by its query, and not by `Range`: which part it is stands in the header.
            let range = match bytes.len() as u64 {
                0 => format!("bytes */{total}"),
                length => format!("bytes {from}-{}/{total}", from + length - 1),
            };
            let mut answer = build_answer(StatusCode::OK, "application/octet-stream", bytes);
            let headers = answer.headers_mut();
            insert(headers, CONTENT_RANGE, &range);
            headers.insert(ACCEPT_RANGES, HeaderValue::from_static("none"));
            headers.insert(CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
            headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox"));
            answer
        }
        Reply::Archive(folder) => {
            let name = format!("attachment; filename=\"{}.tar\"", folder.id);
            let mut answer = Response::new(Archive::open(folder).boxed_unsync());
            let headers = answer.headers_mut();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-tar"));
            insert(headers, CONTENT_DISPOSITION, &name);
            headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox"));
            answer
        }
        Reply::Events(subscription) => {
            let Some(body) = EventBody::open(service, subscription) else {
                let detail = format!("{MOST} streams are open, which is the limit: close one");
                return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail));
            };
            let mut answer = Response::new(body.boxed_unsync());
            let headers = answer.headers_mut();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
            // A proxy that collects an answer would never send it on.
            headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
            answer
        }
    })
}

fn build_problem(problem: &Problem) -> Answer {
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut answer = build_answer(status, "application/problem+json", encode(problem).into_bytes());
    if !problem.allow.is_empty() {
        insert(answer.headers_mut(), ALLOW, &problem.allow.join(", "));
    }
    if status == StatusCode::UNAUTHORIZED {
        answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    answer
}

fn build_answer(status: StatusCode, kind: &'static str, bytes: Vec<u8>) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from(bytes)).boxed_unsync());
    *answer.status_mut() = status;
    if status != StatusCode::NO_CONTENT && status != StatusCode::NOT_MODIFIED {
        answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    }
    answer
}

/// Sets a header; one that cannot be sent is left out.
fn insert(headers: &mut hyper::HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}
