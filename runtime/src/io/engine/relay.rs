//! Passes requests of processes on to the server of their run, where its driver is. A driver that takes over a run from a
//! former one has requests before it has a server: they wait for that.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use reqwest::Url;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::time::sleep;

use super::Objects;
use crate::io::llm::build_client;
use crate::types::engine::{HttpRequest, HttpResponse};

/// The socket of the server, in the folder of the run.
const SOCKET: &str = "agents.sock";

/// The headers that are about one connection alone.
const OF_CONNECTION: [&str; 4] = ["connection", "content-length", "host", "transfer-encoding"];

/// The longest answer, and how long it may take.
const LONGEST: u64 = 16 << 20;
pub(super) const PATIENCE: Duration = Duration::from_secs(45);

/// Between two looks for what a driver does not have yet.
const LOOK: Duration = Duration::from_millis(20);

/// Waits until there is something, without end.
pub(super) async fn await_some<T>(mut find: impl FnMut() -> Option<T>) -> T {
    loop {
        match find() {
            Some(found) => return found,
            None => sleep(LOOK).await,
        }
    }
}

/// Passes a request on to the run in `folder`: a line of a script to its socket, or a request to the address of its tools
/// that `tools` finds.
///
/// # Errors
/// The server is not there, or does not answer.
pub(super) async fn pass_request(
    (folder, tools): (&Path, impl Fn() -> Option<String>),
    request: HttpRequest,
    objects: &Objects,
) -> Result<HttpResponse, String> {
    let exchange = async {
        match request.is_tools {
            true => call_tools(&await_some(tools).await, request, objects).await,
            false => send_line(folder, request, objects).await,
        }
    };
    tokio::time::timeout(PATIENCE, exchange).await.unwrap_or_else(|_| Err("the run does not answer".to_owned()))
}

/// The answer of the socket is a line.
async fn send_line(folder: &Path, request: HttpRequest, objects: &Objects) -> Result<HttpResponse, String> {
    let body = objects.unpack(request.body).await?;
    let exchange = async {
        let mut stream = loop {
            match UnixStream::connect(folder.join(SOCKET)).await {
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
                    sleep(LOOK).await;
                }
                connected => break connected?,
            }
        };
        stream.write_all(&body).await?;
        stream.write_all(b"\n").await?;
        let mut line = Vec::new();
        BufReader::new(stream.take(LONGEST)).read_until(b'\n', &mut line).await?;
        Ok::<_, std::io::Error>(line)
    };
    let line = exchange.await.map_err(|error| format!("the run cannot be reached: {error}"))?;
    Ok(HttpResponse { status: 200, headers: BTreeMap::new(), body: objects.pack(&line).await? })
}

async fn call_tools(tools: &str, request: HttpRequest, objects: &Objects) -> Result<HttpResponse, String> {
    let failed = |error: &dyn std::fmt::Display| format!("the tools of the run cannot be reached: {error}");
    let mut url = Url::parse(tools).map_err(|error| failed(&error))?;
    let (path, query) =
        request.path.split_once('?').map_or((&*request.path, None), |(path, query)| (path, Some(query)));
    url.set_path(path);
    url.set_query(query);
    let client = build_client(&url).map_err(|error| failed(&error))?;
    let method = request.method.parse().map_err(|_| failed(&"it is no method of HTTP"))?;
    let mut call = client.request(method, url).body(objects.unpack(request.body).await?);
    for (name, value) in request.headers.iter().filter(|(name, _)| !OF_CONNECTION.contains(&name.as_str())) {
        call = call.header(name, value);
    }
    let response = call.send().await.map_err(|error| failed(&error))?;
    let status = response.status().as_u16();
    let headers = response
        .headers()
        .iter()
        .filter_map(|(name, value)| Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned())));
    let headers = headers.filter(|(name, _)| !OF_CONNECTION.contains(&name.as_str())).collect();
    if response.content_length().is_some_and(|length| length > LONGEST) {
        return Err(failed(&"the answer is too long"));
    }
    let body = response.bytes().await.map_err(|error| failed(&error))?;
    Ok(HttpResponse { status, headers, body: objects.pack(&body).await? })
}
