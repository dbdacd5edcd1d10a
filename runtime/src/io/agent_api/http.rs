//! Serves MCP clients over HTTP: `http://127.0.0.1:PORT/agents/NODE/mcp`, streamable HTTP without sessions.
//!
//! Every request carries a token that identifies its attempt, so the server keeps nothing between requests. A client
//! without a token learns nothing and holds a connection for seconds at most. The server checks `Host` and `Origin` to
//! keep out pages in a browser. Invariant: requests, their bodies and connections are bounded.

use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, CONNECTION, CONTENT_LENGTH, HOST, HeaderMap, HeaderName, ORIGIN, WWW_AUTHENTICATE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

use super::connection_limit::{Place, Places};
use super::mcp::{Run, Tools};
use super::{PAUSE, Sessions};

/// The bytes of a request's body at most.
const BODY: usize = 256 * 1024;

/// The connections at once.
const CONNECTIONS: usize = 128;

/// How long a connection may be silent, and a request may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// The headers of a request at most, and the bytes of all of them.
const HEADERS: usize = 64;
const HEAD: usize = 64 * 1024;

type Answer = Response<BoxBody<Bytes, Infallible>>;

/// Binds a port of this machine that other machines cannot reach: this one, or any where it is 0.
pub(super) fn bind(port: u16) -> std::io::Result<(std::net::TcpListener, u16)> {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    listener.set_nonblocking(true)?;
    let port = listener.local_addr()?.port();
    Ok((listener, port))
}

/// The address of a node's tools.
pub(super) fn tools_url(port: u16, node: &str) -> String {
    format!("http://127.0.0.1:{port}/agents/{node}/mcp")
}

/// The port of an address that [`tools_url`] made.
pub(super) fn port_of(url: &str) -> Option<u16> {
    url.strip_prefix("http://127.0.0.1:")?.split_once('/')?.0.parse().ok()
}

/// Takes what agents ask for, until the run has ended.
pub(super) async fn serve(listener: TcpListener, port: u16, reception: Arc<Sessions>) {
    let places = Places::new(CONNECTIONS);
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Too many files are open: one has to be closed first.
            sleep(PAUSE).await;
            continue;
        };
        let (place, reception) = (places.acquire_place().await, Arc::clone(&reception));
        tokio::spawn(serve_connection(stream, port, reception, Arc::new(place)));
    }
}

async fn serve_connection(stream: TcpStream, port: u16, reception: Arc<Sessions>, place: Arc<Place>) {
    // Answers are small, and a client waits for each.
    let _ = stream.set_nodelay(true);
    let holder = Arc::clone(&place);
    let service = service_fn(move |request| {
        let (reception, place) = (Arc::clone(&reception), Arc::clone(&holder));
        async move { Ok::<_, Infallible>(answer_request(request, port, reception, &place).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .max_headers(HEADERS)
        .max_buf_size(HEAD)
        .serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        // A client that goes away early reads no error.
        _ = connection => {}
        () = place.wait_for_eviction() => {}
    }
}

async fn answer_request(request: Request<Incoming>, port: u16, reception: Arc<Sessions>, place: &Place) -> Answer {
    let tools = match admit_request(&request, port, &reception) {
        Ok(tools) => tools,
        Err((status, why)) => return build_refusal(status, why),
    };
    place.mark_authenticated();
    if content_length(request.headers()).is_some_and(|length| length > BODY as u64) {
        return build_refusal(StatusCode::PAYLOAD_TOO_LARGE, &format!("a request has {} KB at most", BODY / 1024));
    }
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(BODY);
    let service =
        StreamableHttpService::new(move || Ok(tools.clone()), Arc::new(NeverSessionManager::default()), config);
    match timeout(PATIENCE, service.handle(request)).await {
        Ok(answer) => answer,
        Err(_) => build_refusal(StatusCode::REQUEST_TIMEOUT, "the request took too long"),
    }
}

/// The tools of the attempt that sends a request; else the status of the refusal, and why.
fn admit_request(
    request: &Request<Incoming>,
    port: u16,
    reception: &Arc<Sessions>,
) -> Result<Tools, (StatusCode, &'static str)> {
    let headers = request.headers();
    if !is_own(single_header(headers, &HOST).unwrap_or_default(), port) {
        return Err((StatusCode::FORBIDDEN, "this is not the host that you asked for"));
    }
    // Agents send none; a page that a browser shows sends that of its site.
    let origin = single_header(headers, &ORIGIN).map(|origin| origin.strip_prefix("http://").unwrap_or_default());
    if headers.contains_key(ORIGIN) && !origin.is_some_and(|origin| is_own(origin, port)) {
        return Err((StatusCode::FORBIDDEN, "pages of other sites are not answered"));
    }
    let token = single_header(headers, &AUTHORIZATION).and_then(bearer_token);
    let Some((token, guest)) = token.and_then(|token| Some((token, reception.find_session(token)?))) else {
        return Err((StatusCode::UNAUTHORIZED, "the token does not belong to a running turn"));
    };
    let node = request.uri().path().strip_prefix("/agents/").and_then(|rest| rest.strip_suffix("/mcp"));
    match node {
        Some(node) if node == &*guest.step.name => {}
        Some(_) => return Err((StatusCode::FORBIDDEN, "this is the token of another node")),
        None => return Err((StatusCode::NOT_FOUND, "there is only /agents/NODE/mcp")),
    }
    Ok(Tools::new(Arc::clone(&guest.offers), token, Run::Here(Arc::clone(reception))))
}

/// Whether `HOST:PORT` is ours, by a name that no other machine's page can have.
fn is_own(authority: &str, port: u16) -> bool {
    let name = authority.strip_suffix(&port.to_string()).and_then(|rest| rest.strip_suffix(':'));
    matches!(name, Some("127.0.0.1" | "localhost"))
}

/// The token of an `Authorization` header; none where it is of another scheme.
pub fn bearer_token(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// A header that appears once.
pub fn single_header<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

fn content_length(headers: &HeaderMap) -> Option<u64> {
    single_header(headers, &CONTENT_LENGTH)?.parse().ok()
}

fn build_refusal(status: StatusCode, why: &str) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from(format!("{why}\n"))).boxed());
    *answer.status_mut() = status;
    // What is left of the request is not read.
    answer.headers_mut().insert(CONNECTION, hyper::header::HeaderValue::from_static("close"));
    if status == StatusCode::UNAUTHORIZED {
        answer.headers_mut().insert(WWW_AUTHENTICATE, hyper::header::HeaderValue::from_static("Bearer"));
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_names_are_ours() {
        for own in ["127.0.0.1:4711", "localhost:4711"] {
            assert!(is_own(own, 4711), "{own}");
        }
        for foreign in [
            "",
            "127.0.0.1",
            "localhost",
            "127.0.0.1:4712",
            "127.0.0.14711",
            "evil.example:4711",
            "127.0.0.1.evil.example:4711",
            "localhost.evil:4711",
            "evil@127.0.0.1:4711",
            "0.0.0.0:4711",
        ] {
            assert!(!is_own(foreign, 4711), "{foreign}");
        }
    }

    #[test]
    fn a_token_is_read_from_its_header() {
        assert_eq!(bearer_token("Bearer 0af3"), Some("0af3"));
        assert_eq!(bearer_token("bearer 0af3"), Some("0af3"));
        for wrong in ["0af3", "Basic 0af3", "Bearer0af3", ""] {
            assert_eq!(bearer_token(wrong), None, "{wrong}");
        }
    }
}
