//! Serves the runs of a home over HTTP: an API with a document of itself, streams of events, and a page.
//!
//! In: requests of a person's browser and programs. Out: the documents that `swarmc ps` and `swarmc inspect` print, the
//! lines of `swarmc run --json` as server-sent events, and the orders of `swarmc approve`, `send`, `stop`, `resume` and
//! `run`. It shows runs of any process, since it reads their folders; the end of the server ends no run.
//!
//! A request passes `access` (host, origin, token), finds its route in the table of `routes`, and is answered by a function
//! of `handlers` from a run that `store` follows; `stream` sends events, `recording` the files of a run. `documents` holds
//! the answers that only the server has; `queue` starts what was submitted; `peer` finds out whether a client is a process
//! of a run; `audit` writes down what people changed, and who was refused.
//!
//! Invariants: without the token a client learns nothing but that. A process of a run changes nothing: agents are no
//! persons. What agents wrote leaves the server as JSON or as bytes that no browser renders.

mod access;
mod audit;
mod digest;
mod documents;
mod handlers;
mod http;
mod openapi;
mod page;
mod peer;
mod problem;
mod queue;
mod recording;
mod routes;
mod store;
mod stream;

use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use swarmc_runtime::Home;

use crate::access::Access;
use crate::audit::RefusalLog;
use crate::page::Page;
use crate::queue::Queue;
use crate::store::Store;

/// What is served, and to whom.
#[derive(Debug)]
pub struct Options {
    /// The home whose runs are served.
    pub home: Home,
    /// Where the server listens.
    pub listen: SocketAddr,
    /// A Unix socket on which it listens as well.
    pub unix: Option<PathBuf>,
    /// Whether another program, which speaks TLS, stands in front of it: it may then listen where other machines reach it.
    pub behind_tls: bool,
    /// The names of hosts under which it is reached, besides those of this machine.
    pub hosts: Vec<String>,
    /// Whether no request changes anything.
    pub read_only: bool,
    /// The folders whose specs may be run.
    pub specs: Vec<PathBuf>,
    /// The spec that runs what is posted as a task.
    pub tasks: Option<PathBuf>,
    /// Whether plans may be run that come with a submission: a plan holds commands.
    pub allows_plans: bool,
    /// A folder whose files are the page, in place of the built-in one.
    pub page: Option<PathBuf>,
    /// The token that requests must carry; made up where there is none.
    pub token: Option<String>,
    /// The program that runs what is submitted: `swarmc` itself.
    pub program: PathBuf,
    /// How many submitted runs go on at once; further ones wait.
    pub runs: usize,
    /// Takes a line about each request that is refused, without a line break.
    pub log: fn(&str),
}

/// Why the server cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Other machines would reach it, and nothing encrypts what they send.
    #[error("{0} can be reached from other machines, and the token would travel unencrypted")]
    Exposed(IpAddr),
    /// Its port is taken, or it may not listen there.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// Its Unix socket cannot be made.
    #[error("cannot listen on `{}`: {source}", path.display())]
    Socket {
        /// Where.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Another server starts what is submitted to this home.
    #[error("another `swarmc serve` starts the runs of this home")]
    Taken,
    /// A folder of specs, or the folder of its token, cannot be used.
    #[error("cannot use `{}`: {source}", path.display())]
    Folder {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    listener: std::net::TcpListener,
    unix: Option<UnixSocket>,
    service: Arc<Service>,
    /// Holds the token, and goes with the server.
    token_file: PathBuf,
}

/// What all requests share.
#[derive(Debug)]
pub(crate) struct Service {
    pub home: Home,
    pub access: Access,
    pub store: Store,
    pub queue: Arc<Queue>,
    pub page: Page,
    pub read_only: bool,
    pub log: RefusalLog,
    /// How many event streams are open.
    pub streams: AtomicUsize,
}

/// A Unix socket, which goes with its server.
#[derive(Debug)]
struct UnixSocket {
    listener: std::os::unix::net::UnixListener,
    path: PathBuf,
}

impl UnixSocket {
    /// Makes it, for its owner alone. A socket that no server answers on any more makes way.
    fn bind(path: &Path) -> std::io::Result<UnixSocket> {
        let is_socket = std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket());
        if is_socket && std::os::unix::net::UnixStream::connect(path).is_err() {
            std::fs::remove_file(path)?;
        }
        let listener = std::os::unix::net::UnixListener::bind(path)?;
        let socket = UnixSocket { listener, path: path.to_owned() };
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
        socket.listener.set_nonblocking(true)?;
        Ok(socket)
    }
}

impl Drop for UnixSocket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Server {
    /// Takes the port, and writes the token to a file that only its owner reads.
    ///
    /// # Errors
    /// It cannot begin.
    pub fn bind(options: Options) -> Result<Server, ServeError> {
        let address = options.listen;
        if !address.ip().is_loopback() && !options.behind_tls {
            return Err(ServeError::Exposed(address.ip()));
        }
        let listen = |source| ServeError::Listen { address, source };
        let listener = std::net::TcpListener::bind(address).map_err(listen)?;
        listener.set_nonblocking(true).map_err(listen)?;
        let bound = listener.local_addr().map_err(listen)?;
        let unix =
            options.unix.map(|path| UnixSocket::bind(&path).map_err(|source| ServeError::Socket { path, source }));
        let unix = unix.transpose()?;
        let mut specs = Vec::new();
        for path in options.specs {
            specs.push(path.canonicalize().map_err(|source| ServeError::Folder { path, source })?);
        }
        let queue = Queue::open(queue::Config {
            folder: options.home.root().join("queue"),
            home: options.home.root().to_owned(),
            program: options.program,
            specs,
            tasks: options.tasks,
            allows_plans: options.allows_plans,
            most: (!options.read_only).then_some(options.runs.max(1)),
        });
        let queue = queue.map_err(|source| match source.kind() {
            std::io::ErrorKind::WouldBlock => ServeError::Taken,
            _ => ServeError::Folder { path: options.home.root().join("queue"), source },
        })?;
        // Last: what fails leaves no token behind.
        let token = options.token.unwrap_or_else(access::make_token);
        let token_file = options.home.root().join("serve").join(format!("{}.token", bound.port()));
        let folder = |source| ServeError::Folder { path: token_file.clone(), source };
        access::write_token(&token_file, &token).map_err(folder)?;
        let service = Service {
            access: Access::new(bound, options.hosts, token),
            store: Store::default(),
            home: options.home,
            queue,
            page: Page::new(options.page),
            read_only: options.read_only,
            log: RefusalLog::new(options.log),
            streams: AtomicUsize::new(0),
        };
        Ok(Server { listener, unix, service: Arc::new(service), token_file })
    }

    /// The address for a browser, with the token where no server and no log gets to see it.
    pub fn url(&self) -> String {
        self.service.access.url()
    }

    /// Writes a file that leads a browser to the page, and that only its owner reads: on a command line other users of this
    /// machine would see the token.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write_opener(&self) -> std::io::Result<PathBuf> {
        let path = self.token_file.with_extension("html");
        let text = format!("<!doctype html><meta http-equiv=\"refresh\" content=\"0; url={}\">\n", self.url());
        access::write_token(&path, &text)?;
        Ok(path)
    }

    /// Answers requests until `stop` is called.
    ///
    /// # Errors
    /// The system has no thread for it.
    pub fn run(self, stop: impl FnOnce() + Send) -> std::io::Result<()> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let places = http::make_places();
        let (service, room) = (Arc::clone(&self.service), Arc::clone(&places));
        let listener = self.listener;
        runtime.spawn(async move {
            if let Ok(listener) = tokio::net::TcpListener::from_std(listener) {
                http::accept_tcp(listener, room, service).await;
            }
        });
        if let Some(socket) = &self.unix {
            let (service, listener) = (Arc::clone(&self.service), socket.listener.try_clone()?);
            runtime.spawn(async move {
                if let Ok(listener) = tokio::net::UnixListener::from_std(listener) {
                    http::accept_unix(listener, places, service).await;
                }
            });
        }
        let queue = Arc::clone(&self.service.queue);
        std::thread::spawn(move || queue.start());
        stop();
        runtime.shutdown_background();
        // The next server of this port has another token.
        let _ = std::fs::remove_file(self.token_file.with_extension("html"));
        let _ = std::fs::remove_file(self.token_file);
        Ok(())
    }
}
