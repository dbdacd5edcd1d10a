//! The one loop: takes messages and results in order, and is the only place that changes anything.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use crossbeam_channel::select;
use gen_lsp_types as lsp;
use gen_lsp_types::Notification as _;
use lsp_server::{Connection, ErrorCode, Message, Notification, Request, RequestId, Response};

use super::Exit;
use super::capabilities::{Client, capabilities};
use super::convert;
use super::dispatch::Dispatch;
use super::handlers::tokens::Painted;
use super::handlers::{self, Context};
use super::options::Options;
use super::pool::Pool;
use super::world::World;
use crate::disk::Disk;
use crate::ide::Document;

/// Threads that answer: two, so that a long analysis holds up no quick answer.
const THREADS: usize = 2;

/// What comes of a job.
enum Done {
    /// An answer, and the state of the texts that it is about.
    Answer(Response, u64),
    /// What is wrong in that state, by file.
    Problems(Problems, u64),
    /// The specs on disk.
    Specs(Vec<PathBuf>),
    /// A job that nobody needs to hear of.
    Nothing,
}

/// Problems as the protocol has them, by the address of their file.
type Problems = BTreeMap<String, Vec<lsp::Diagnostic>>;

/// Serves the other end of a connection until it leaves.
pub(super) fn run(connection: &Connection, disk: Arc<dyn Disk>) -> Result<Exit, String> {
    let (id, params) = match connection.initialize_start() {
        Ok(first) => first,
        // An editor that leaves before it has said anything.
        Err(error) if error.channel_is_disconnected() => return Ok(Exit::Abrupt),
        Err(error) => return Err(error.to_string()),
    };
    let params: lsp::InitializeParams = match serde_json::from_value(params) {
        Ok(params) => params,
        Err(error) => {
            let refusal = Response::new_err(id, ErrorCode::InvalidParams as i32, error.to_string());
            let _ = connection.sender.send(refusal.into());
            return Err(format!("the editor's `initialize` cannot be read: {error}"));
        }
    };
    let client = Arc::new(Client::new(&params));
    let answer = serde_json::json!({
        "capabilities": capabilities(&client),
        "serverInfo": { "name": "swarmc", "version": env!("CARGO_PKG_VERSION") },
    });
    if let Err(error) = connection.initialize_finish(id, answer) {
        return if error.channel_is_disconnected() { Ok(Exit::Abrupt) } else { Err(error.to_string()) };
    }
    let mut server = Server {
        connection,
        world: World::new(Arc::clone(&disk)),
        disk,
        pool: Pool::new(THREADS),
        revision: 0,
        judged: None,
        judging: false,
        pending: HashMap::new(),
        shown: BTreeMap::new(),
        requests: 0,
        leaving: false,
        options: params.initialization_options.as_ref().map(Options::read).unwrap_or_default(),
        painted: Arc::default(),
        client,
    };
    server.start();
    Ok(server.serve())
}

struct Server<'c> {
    connection: &'c Connection,
    client: Arc<Client>,
    disk: Arc<dyn Disk>,
    world: World,
    pool: Pool<Done>,
    /// How often anything has changed.
    revision: u64,
    /// The revision whose problems were told last.
    judged: Option<u64>,
    /// Whether problems are being looked for.
    judging: bool,
    /// Requests without an answer yet.
    pending: HashMap<RequestId, &'static str>,
    /// The problems that the editor shows.
    shown: Problems,
    /// Requests of ours so far.
    requests: i32,
    /// Whether the editor said `shutdown`.
    leaving: bool,
    /// What the person has set.
    options: Options,
    /// The tokens that the editor was given last.
    painted: Arc<Painted>,
}

impl Server<'_> {
    fn start(&mut self) {
        if self.client.watches {
            let watchers = serde_json::json!({ "watchers": [{ "globPattern": "**/*" }] });
            let registration = serde_json::json!({ "registrations": [{
                "id": "files", "method": "workspace/didChangeWatchedFiles", "registerOptions": watchers,
            }] });
            self.ask("client/registerCapability", registration);
        }
        let folders = self.client.folders.clone();
        self.look(folders);
    }

    /// Has the specs beneath some folders found.
    fn look(&self, folders: Vec<PathBuf>) {
        let disk = Arc::clone(&self.disk);
        let find = move || Done::Specs(folders.iter().flat_map(|folder| disk.specs(folder)).collect());
        self.pool.run(find, || Done::Nothing);
    }

    fn serve(&mut self) -> Exit {
        let (messages, done) = (self.connection.receiver.clone(), self.pool.done.clone());
        loop {
            select! {
                recv(messages) -> message => {
                    let Ok(message) = message else { return Exit::Abrupt };
                    if let Some(exit) = self.message(message) {
                        return exit;
                    }
                    // What has come meanwhile is taken before anything is judged.
                    while let Ok(message) = messages.try_recv() {
                        if let Some(exit) = self.message(message) {
                            return exit;
                        }
                    }
                }
                recv(done) -> result => if let Ok(result) = result {
                    self.done(result);
                }
            }
            self.judge();
        }
    }

    fn message(&mut self, message: Message) -> Option<Exit> {
        match message {
            Message::Request(request) => self.request(request),
            Message::Notification(notification) if notification.method == lsp::ExitNotification::METHOD.as_str() => {
                return Some(if self.leaving { Exit::Clean } else { Exit::Abrupt });
            }
            Message::Notification(notification) => self.notification(notification),
            // Whether the client watches files for us changes nothing here.
            Message::Response(_) => {}
        }
        None
    }

    fn request(&mut self, request: Request) {
        if request.method == "shutdown" {
            self.leaving = true;
            self.send(Response::new_ok(request.id, ()).into());
            return;
        }
        if self.leaving {
            let refusal = "the editor has asked the server to shut down";
            self.send(Response::new_err(request.id, ErrorCode::InvalidRequest as i32, refusal.to_owned()).into());
            return;
        }
        let id = request.id.clone();
        let Some(answer) = handlers::dispatch(Dispatch::new(request)).finish() else { return };
        let context = Context {
            moment: self.world.moment(),
            encoding: self.client.encoding,
            client: Arc::clone(&self.client),
            options: self.options,
            painted: Arc::clone(&self.painted),
        };
        self.pending.insert(id.clone(), "");
        let revision = self.revision;
        let panicked = move || {
            let message = "swarmc has a bug: this request made it panic; the others are answered as before";
            Done::Answer(Response::new_err(id, ErrorCode::InternalError as i32, message.to_owned()), revision)
        };
        self.pool.run(move || Done::Answer(answer(&context), revision), panicked);
    }

    fn notification(&mut self, notification: Notification) {
        let Notification { method, params } = notification;
        match method.as_str() {
            "$/cancelRequest" => {
                if let Ok(params) = serde_json::from_value::<Cancelled>(params)
                    && self.pending.remove(&params.id).is_some()
                {
                    let message = "cancelled".to_owned();
                    self.send(Response::new_err(params.id, ErrorCode::RequestCanceled as i32, message).into());
                }
            }
            "workspace/didChangeConfiguration" => self.take(params, Server::configured),
            "textDocument/didOpen" => self.take(params, Server::opened),
            "textDocument/didChange" => self.take(params, Server::edited),
            "textDocument/didClose" => self.take(params, Server::closed),
            "textDocument/didSave" => self.take(params, Server::saved),
            "workspace/didChangeWatchedFiles" => self.take(params, Server::touched),
            "workspace/didChangeWorkspaceFolders" => self.take(params, Server::refoldered),
            _ => {}
        }
    }

    /// Hands the contents of a notification over; one that cannot be read is told, and left out.
    fn take<P: serde::de::DeserializeOwned>(&mut self, params: serde_json::Value, handle: fn(&mut Self, P)) {
        match serde_json::from_value(params) {
            Ok(params) => {
                handle(self, params);
                self.revision += 1;
            }
            Err(error) => self.log(&format!("a notification cannot be read: {error}")),
        }
    }

    fn opened(&mut self, params: lsp::DidOpenTextDocumentParams) {
        let item = params.text_document;
        if let Some((workspace, path)) = self.world.workspace(&item.uri) {
            let document = Document::new(&path, &item.text);
            workspace.open(&path, document);
        }
    }

    fn edited(&mut self, params: lsp::DidChangeTextDocumentParams) {
        let encoding = self.client.encoding;
        let uri = &params.text_document.text_document_identifier.uri;
        let Some((workspace, path)) = self.world.workspace(uri) else { return };
        let changes = params.content_changes;
        workspace.edit(&path, |document| {
            changes.into_iter().fold(document, |document, change| match change {
                lsp::TextDocumentContentChangeEvent::TextDocumentContentChangePartial(change) => {
                    let range = convert::bytes(document.source(), change.range, encoding);
                    document.edited(range, &change.text)
                }
                lsp::TextDocumentContentChangeEvent::TextDocumentContentChangeWholeDocument(change) => {
                    Document::new(&path, &change.text)
                }
            })
        });
    }

    fn closed(&mut self, params: lsp::DidCloseTextDocumentParams) {
        if let Some((workspace, path)) = self.world.workspace(&params.text_document.uri) {
            workspace.close(&path);
        }
    }

    fn saved(&mut self, params: lsp::DidSaveTextDocumentParams) {
        if let Some((workspace, path)) = self.world.workspace(&params.text_document.uri) {
            workspace.touched(&path);
        }
        // What stands in other files may be shown here.
        self.again();
    }

    fn touched(&mut self, params: lsp::DidChangeWatchedFilesParams) {
        for change in params.changes {
            if let Some((workspace, path)) = self.world.workspace(&change.uri) {
                workspace.touched(&path);
            }
        }
    }

    fn configured(&mut self, params: lsp::DidChangeConfigurationParams) {
        let options = Options::read(&params.settings);
        if self.options != options {
            self.options = options;
            self.again();
        }
    }

    /// Has the editor ask again for what it shows beside the text.
    fn again(&mut self) {
        for method in self.client.again.clone() {
            self.ask(method, serde_json::Value::Null);
        }
    }

    fn refoldered(&mut self, params: lsp::DidChangeWorkspaceFoldersParams) {
        // What was found beneath a folder that is gone is still there on disk.
        self.look(params.event.added.iter().filter_map(|folder| convert::path(&folder.uri)).collect());
    }

    fn done(&mut self, done: Done) {
        match done {
            Done::Answer(response, revision) => {
                // Whoever cancelled has had an answer.
                if self.pending.remove(&response.id).is_none() {
                    return;
                }
                let response = match revision == self.revision {
                    true => response,
                    false => {
                        let message = "the text has changed since".to_owned();
                        Response::new_err(response.id, ErrorCode::ContentModified as i32, message)
                    }
                };
                self.send(response.into());
            }
            Done::Problems(problems, revision) => {
                self.judging = false;
                if revision == self.revision {
                    self.judged = Some(revision);
                    self.tell(problems);
                }
            }
            Done::Specs(specs) => {
                for spec in specs {
                    if let Some((workspace, path)) = self.world.at(&spec) {
                        workspace.add_spec(&path);
                    }
                }
                self.revision += 1;
            }
            Done::Nothing => {}
        }
    }

    /// Looks for problems when something has changed, one state at a time.
    fn judge(&mut self) {
        if self.judging || self.judged == Some(self.revision) {
            return;
        }
        self.judging = true;
        let (moment, encoding, revision) = (self.world.moment(), self.client.encoding, self.revision);
        self.pool.run(
            move || Done::Problems(handlers::problems(&moment, encoding), revision),
            move || Done::Problems(BTreeMap::new(), revision),
        );
    }

    /// Tells the editor what has changed about the problems that it shows.
    fn tell(&mut self, problems: Problems) {
        if self.client.pulls {
            if self.client.refreshes && self.shown != problems {
                self.ask("workspace/diagnostic/refresh", serde_json::Value::Null);
            }
            self.shown = problems;
            return;
        }
        let files: BTreeSet<&String> = self.shown.keys().chain(problems.keys()).collect();
        for file in files {
            if self.shown.get(file) != problems.get(file) {
                let diagnostics = problems.get(file).cloned().unwrap_or_default();
                let params = lsp::PublishDiagnosticsParams { uri: lsp::Uri(file.clone()), version: None, diagnostics };
                self.notify::<lsp::PublishDiagnosticsNotification>(params);
            }
        }
        self.shown = problems;
    }

    fn log(&self, message: &str) {
        self.notify::<lsp::LogMessageNotification>(lsp::LogMessageParams {
            kind: lsp::MessageType::Warning,
            message: message.to_owned(),
        });
    }

    fn notify<N: lsp::Notification>(&self, params: N::Params) {
        self.send(Notification::new(N::METHOD.as_str().to_owned(), params).into());
    }

    fn ask(&mut self, method: &str, params: serde_json::Value) {
        self.requests += 1;
        self.send(Request { id: self.requests.into(), method: method.to_owned(), params }.into());
    }

    fn send(&self, message: Message) {
        // An editor that is gone is seen when nothing comes from it.
        let _ = self.connection.sender.send(message);
    }
}

/// What `$/cancelRequest` says.
#[derive(serde::Deserialize)]
struct Cancelled {
    id: RequestId,
}
