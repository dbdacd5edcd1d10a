//! The main loop of the language server: it handles messages and results in order, and it alone changes state.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crossbeam_channel::select;
use gen_lsp_types as lsp;
use gen_lsp_types::Notification as _;
use lsp_server::{Connection, ErrorCode, Message, Notification, Request, RequestId, Response};
use serde_json::Value;

use super::Exit;
use super::capabilities::{Client, build_capabilities};
use super::convert;
use super::dispatch::Dispatch;
use super::handlers::tokens::Painted;
use super::handlers::{self, Context};
use super::handshake;
use super::options::Options;
use super::pool::Pool;
use super::watched::{Folders, Watched};
use super::workspaces::Workspaces;
use crate::disk::Disk;
use crate::ide::Document;

/// Threads that answer: two, so that a long analysis holds up no quick answer.
const THREADS: usize = 2;

/// Messages that are taken before what has been worked out is looked at.
const AT_ONCE: usize = 1_000;

/// What comes of a job.
enum Done {
    /// An answer, and the state of the texts that it is about.
    Answer(Response, u64),
    /// What is wrong in that state, by file.
    Problems(Problems, u64),
    /// The job could not compute the problems.
    Unjudged(u64),
    /// The specs on disk.
    Specs(Vec<PathBuf>),
    /// The folders whose files matter in the state that was judged.
    Folders(Folders),
    /// The job stopped, as its texts have changed.
    Outdated,
    /// A job whose end needs no action.
    Nothing,
}

/// Problems as the protocol has them, by the address of their file.
type Problems = BTreeMap<String, Vec<lsp::Diagnostic>>;

/// Serves the other end of a connection until it leaves.
pub(super) fn run(connection: &Connection, disk: Arc<dyn Disk>) -> Exit {
    let Some((id, params)) = handshake::await_initialize(connection) else { return Exit::Abrupt };
    let client = Arc::new(Client::new(&params));
    let answer = serde_json::json!({
        "capabilities": build_capabilities(&client),
        "serverInfo": { "name": "swarmc", "version": env!("CARGO_PKG_VERSION") },
    });
    let mut server = Server {
        connection,
        world: Workspaces::new(Arc::clone(&disk), client.pages),
        disk,
        pool: Pool::new(THREADS),
        revision: 0,
        edits: Arc::default(),
        judged: None,
        judging: false,
        pending: HashMap::new(),
        versions: Arc::default(),
        watched: Watched::default(),
        shown: BTreeMap::new(),
        requests: 0,
        leaving: false,
        gone: false,
        options: params.initialization_options.as_ref().map(Options::read).unwrap_or_default(),
        painted: Arc::default(),
        client,
    };
    server.send(Response::new_ok(id, answer).into());
    server.search_specs(server.client.folders.clone());
    server.serve()
}

struct Server<'c> {
    connection: &'c Connection,
    client: Arc<Client>,
    disk: Arc<dyn Disk>,
    world: Workspaces,
    pool: Pool<Done>,
    /// How often anything has changed, on disk too.
    revision: u64,
    /// How often the editor has changed a text: an answer about another state is about old text.
    edits: Arc<AtomicU64>,
    /// The revision whose problems were told last.
    judged: Option<u64>,
    /// Whether problems are being looked for.
    judging: bool,
    /// Requests without an answer yet, and whether one is still wanted.
    pending: HashMap<RequestId, Arc<AtomicBool>>,
    /// The versions of open documents.
    versions: Arc<HashMap<String, i32>>,
    /// What the editor watches for us.
    watched: Watched,
    /// The problems that the editor shows.
    shown: Problems,
    /// Requests of ours so far.
    requests: i32,
    /// Whether the editor said `shutdown`.
    leaving: bool,
    /// Whether nothing reaches the editor any more.
    gone: bool,
    /// What the person has set.
    options: Options,
    /// The tokens that the editor was given last.
    painted: Arc<Painted>,
}

impl Server<'_> {
    /// The editor is ready for requests of ours.
    fn handle_initialized(&mut self) {
        // The specs may be known by now, and their folders watched.
        if !self.watched.is_registered() {
            self.watch_folders(Folders::new());
        }
    }

    /// Has the editor watch these folders, if it can.
    fn watch_folders(&mut self, folders: Folders) {
        if self.client.watches {
            for (method, params) in self.watched.watch(folders, self.client.relative) {
                self.send_request(method, params);
            }
        }
    }

    /// Has the specs beneath some folders found.
    fn search_specs(&self, folders: Vec<PathBuf>) {
        let disk = Arc::clone(&self.disk);
        let find = move || Done::Specs(folders.iter().flat_map(|folder| disk.list_specs(folder)).collect());
        self.pool.run(find, || Done::Nothing);
    }

    fn serve(&mut self) -> Exit {
        let (messages, done) = (self.connection.receiver.clone(), self.pool.done.clone());
        while !self.gone {
            select! {
                recv(messages) -> message => {
                    let Ok(message) = message else { return Exit::Abrupt };
                    if let Some(exit) = self.handle_message(message) {
                        return exit;
                    }
                    // What has come meanwhile is taken before anything is judged, but answers do not wait for ever.
                    for message in messages.try_iter().take(AT_ONCE) {
                        if let Some(exit) = self.handle_message(message) {
                            return exit;
                        }
                    }
                }
                // The pool keeps a sender, so this channel never closes.
                recv(done) -> result => if let Ok(result) = result {
                    self.handle_done(result);
                }
            }
            self.check_workspaces();
        }
        Exit::Abrupt
    }

    fn handle_message(&mut self, message: Message) -> Option<Exit> {
        match message {
            Message::Request(request) => self.handle_request(request),
            Message::Notification(notification) if notification.method == lsp::ExitNotification::METHOD.as_str() => {
                return Some(if self.leaving { Exit::Clean } else { Exit::Abrupt });
            }
            Message::Notification(notification) => self.handle_notification(notification),
            // Whether the client watches files for us changes nothing here.
            Message::Response(_) => {}
        }
        None
    }

    fn handle_request(&mut self, request: Request) {
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
        if request.method == "initialize" {
            let refusal = "the server has been initialized".to_owned();
            self.send(Response::new_err(request.id, ErrorCode::InvalidRequest as i32, refusal).into());
            return;
        }
        let id = request.id.clone();
        let Some(answer) = handlers::register_handlers(Dispatch::new(request)).finish() else { return };
        let context = Context {
            moment: self.world.take_snapshot(),
            encoding: self.client.encoding,
            client: Arc::clone(&self.client),
            options: self.options,
            painted: Arc::clone(&self.painted),
            versions: Arc::clone(&self.versions),
        };
        let (wanted, edits) = (Arc::new(AtomicBool::new(true)), Arc::clone(&self.edits));
        self.pending.insert(id.clone(), Arc::clone(&wanted));
        let asked = edits.load(Ordering::Relaxed);
        let refused = id.clone();
        let work = move || {
            // The client has cancelled the request, or the text has changed.
            if !wanted.load(Ordering::Relaxed) || edits.load(Ordering::Relaxed) != asked {
                return Done::Answer(refuse_modified(refused), asked);
            }
            let response = answer(&context);
            // If a file on disk changes during the work, the answer is incomplete.
            Done::Answer(if context.moment.is_cut() { refuse_modified(refused) } else { response }, asked)
        };
        let panicked = move || {
            let message = "swarmc has a bug: this request made it panic; the others are answered as before";
            Done::Answer(Response::new_err(id, ErrorCode::InternalError as i32, message.to_owned()), asked)
        };
        self.pool.run(work, panicked);
    }

    fn handle_notification(&mut self, notification: Notification) {
        let Notification { method, params } = notification;
        match method.as_str() {
            "$/cancelRequest" => {
                if let Ok(params) = serde_json::from_value::<Cancelled>(params)
                    && let Some(wanted) = self.pending.remove(&params.id)
                {
                    // The answer goes out now: the job stops when it looks, or its result finds no request that waits.
                    wanted.store(false, Ordering::Relaxed);
                    let message = "cancelled".to_owned();
                    self.send(Response::new_err(params.id, ErrorCode::RequestCanceled as i32, message).into());
                }
            }
            "initialized" => self.handle_initialized(),
            "workspace/didChangeConfiguration" => self.dispatch_params(&method, params, Server::handle_configuration),
            "textDocument/didOpen" => self.dispatch_params(&method, params, Server::handle_open),
            "textDocument/didChange" => self.handle_change(params),
            "textDocument/didClose" => self.dispatch_params(&method, params, Server::handle_close),
            "textDocument/didSave" => self.dispatch_params(&method, params, Server::handle_save),
            "workspace/didChangeWatchedFiles" => self.dispatch_params(&method, params, Server::handle_file_change),
            "workspace/didChangeWorkspaceFolders" => self.dispatch_params(&method, params, Server::handle_folders),
            _ => {}
        }
    }

    /// Passes the contents of a notification to its handler; logs and ignores an unreadable one.
    fn dispatch_params<P: serde::de::DeserializeOwned>(
        &mut self,
        method: &str,
        params: Value,
        handle: fn(&mut Self, P),
    ) {
        match serde_json::from_value(params) {
            Ok(params) => handle(self, params),
            Err(error) => self.log_warning(&format!("`{method}` cannot be read: {error}")),
        }
    }

    /// Notes that a text is another now.
    fn text_changed(&mut self) {
        self.edits.fetch_add(1, Ordering::Relaxed);
        self.revision += 1;
    }

    fn handle_open(&mut self, params: lsp::DidOpenTextDocumentParams) {
        let item = params.text_document;
        if self.world.open(&item.uri, &item.text) {
            self.text_changed();
        }
        Arc::make_mut(&mut self.versions).insert(item.uri.0, item.version);
        self.look_again();
    }

    /// Changes a text. After an unreadable change the server does not know the text: it uses the file on disk until the
    /// editor opens the text again.
    fn handle_change(&mut self, params: Value) {
        // A change that cannot be read may still say which text it is about.
        let uri = params["textDocument"]["uri"].as_str().map(|uri| lsp::Uri(uri.to_owned()));
        match serde_json::from_value(params) {
            Ok(params) => self.apply_changes(params),
            Err(error) => {
                self.log_warning(&format!("a change cannot be read, open the file again: {error}"));
                if let Some(uri) = uri {
                    self.forget_text(&uri);
                }
            }
        }
    }

    fn apply_changes(&mut self, params: Changed) {
        let encoding = self.client.encoding;
        let (uri, version) = (params.text_document.text_document_identifier.uri, params.text_document.version);
        let Some(known) = Arc::make_mut(&mut self.versions).insert(uri.0.clone(), version) else {
            Arc::make_mut(&mut self.versions).remove(&uri.0);
            return self.log_warning(&format!("`{}` was changed, but is not open", uri.0));
        };
        // The pipe keeps the order, so that what comes later is later, whatever its number.
        if version <= known {
            self.log_warning(&format!(
                "version {version} of `{}` came after version {known}; it is taken as newer",
                uri.0
            ));
        }
        self.text_changed();
        let Some((workspace, path)) = self.world.find_workspace(&uri) else { return };
        let changes = params.content_changes;
        workspace.edit(&path, |document| {
            // By the protocol, each range is about the text that the change before it left.
            changes.into_iter().fold(document, |document, change| match change.range {
                Some(range) => {
                    let range = convert::to_bytes(document.source(), range, encoding);
                    document.apply_edit(range, &change.text)
                }
                None => Document::new(&path, &change.text),
            })
        });
    }

    fn handle_close(&mut self, params: lsp::DidCloseTextDocumentParams) {
        self.forget_text(&params.text_document.uri);
    }

    fn forget_text(&mut self, uri: &lsp::Uri) {
        self.text_changed();
        Arc::make_mut(&mut self.versions).remove(&uri.0);
        self.world.close(uri);
    }

    fn handle_save(&mut self, params: lsp::DidSaveTextDocumentParams) {
        if let Some((workspace, path)) = self.world.find_workspace(&params.text_document.uri) {
            workspace.invalidate_path(&path);
        }
        self.revision += 1;
        self.look_again();
        // What stands in other files may be shown here.
        self.refresh_editor();
    }

    /// Reads the files on disk again, if the editor does not report their changes.
    fn look_again(&mut self) {
        if !self.client.watches && self.world.refresh() {
            self.revision += 1;
        }
    }

    fn handle_file_change(&mut self, params: lsp::DidChangeWatchedFilesParams) {
        for change in params.changes {
            if let Some((workspace, path)) = self.world.find_workspace(&change.uri) {
                workspace.invalidate_path(&path);
            }
        }
        self.revision += 1;
    }

    fn handle_configuration(&mut self, params: lsp::DidChangeConfigurationParams) {
        let options = Options::read(&params.settings);
        if self.options != options {
            self.options = options;
            self.refresh_editor();
        }
    }

    /// Has the editor ask again for what it shows beside the text.
    fn refresh_editor(&mut self) {
        for method in self.client.again.clone() {
            self.send_request(method, serde_json::Value::Null);
        }
    }

    fn handle_folders(&mut self, params: lsp::DidChangeWorkspaceFoldersParams) {
        // What was found beneath a folder that is gone is still there on disk.
        self.search_specs(params.event.added.iter().filter_map(|folder| convert::to_path(&folder.uri)).collect());
    }

    fn handle_done(&mut self, done: Done) {
        match done {
            Done::Answer(response, edits) => {
                // A cancelled request already has its answer.
                if self.pending.remove(&response.id).is_none() {
                    return;
                }
                let response = match edits == self.edits.load(Ordering::Relaxed) {
                    true => response,
                    false => refuse_modified(response.id),
                };
                self.send(response.into());
            }
            Done::Problems(problems, revision) => {
                self.judging = false;
                // The loop drops problems of an older state, and `check_workspaces` starts on the present one.
                if revision == self.revision {
                    self.judged = Some(revision);
                    self.publish_problems(problems);
                }
            }
            Done::Outdated => self.judging = false,
            // A bug; what the editor shows of the state before stays until the next change.
            Done::Unjudged(revision) => {
                self.judging = false;
                self.judged = Some(revision);
            }
            Done::Specs(specs) => {
                for spec in specs {
                    if let Some((workspace, path)) = self.world.find_by_path(&spec)
                        && workspace.add_spec(&path)
                    {
                        self.revision += 1;
                    }
                }
            }
            Done::Folders(folders) => self.watch_folders(folders),
            Done::Nothing => {}
        }
    }

    /// Looks for problems when something has changed, one state at a time.
    fn check_workspaces(&mut self) {
        if self.judging || self.judged == Some(self.revision) {
            return;
        }
        self.judging = true;
        let (moment, encoding, revision) = (self.world.take_snapshot(), self.client.encoding, self.revision);
        let early = self.pool.early_sender();
        let judge = move || {
            let mut told = false;
            handlers::report_problems(&moment, encoding, |problems| {
                told = true;
                // When the server ends, the receiver is gone.
                let _ = early.send(Done::Problems(problems, revision));
            });
            // Without a word to the loop, an edit has cut the analysis short.
            match told {
                // Of a state that has been left, not all folders are known.
                true if moment.is_cut() => Done::Nothing,
                true => Done::Folders(moment.list_folders()),
                false => Done::Outdated,
            }
        };
        self.pool.run(judge, move || Done::Unjudged(revision));
    }

    /// Tells the editor what has changed about the problems that it shows.
    fn publish_problems(&mut self, problems: Problems) {
        if self.client.pulls {
            if self.shown != problems {
                self.send_request("workspace/diagnostic/refresh", Value::Null);
            }
            self.shown = problems;
            return;
        }
        let shown = std::mem::take(&mut self.shown);
        // A file that has no problems any more must hear so, or the editor keeps showing the old ones.
        let files: BTreeSet<&String> = shown.keys().chain(problems.keys()).collect();
        for file in files {
            if shown.get(file) != problems.get(file) {
                let diagnostics = problems.get(file).cloned().unwrap_or_default();
                let version = self.versions.get(file).copied().filter(|_| self.client.versions);
                let params = lsp::PublishDiagnosticsParams { uri: lsp::Uri(file.clone()), version, diagnostics };
                self.notify::<lsp::PublishDiagnosticsNotification>(params);
            }
        }
        self.shown = problems;
    }

    fn log_warning(&mut self, message: &str) {
        self.notify::<lsp::LogMessageNotification>(lsp::LogMessageParams {
            kind: lsp::MessageType::Warning,
            message: message.to_owned(),
        });
    }

    fn notify<N: lsp::Notification>(&mut self, params: N::Params) {
        self.send(Notification::new(N::METHOD.as_str().to_owned(), params).into());
    }

    fn send_request(&mut self, method: &str, params: Value) {
        self.requests += 1;
        self.send(Request { id: self.requests.into(), method: method.to_owned(), params }.into());
    }

    fn send(&mut self, message: Message) {
        // The writer ends when the editor's end of the pipe does, and the channel with it.
        self.gone |= self.connection.sender.send(message).is_err();
    }
}

/// The refusal of what is about old text.
fn refuse_modified(id: RequestId) -> Response {
    Response::new_err(id, ErrorCode::ContentModified as i32, "the text has changed since".to_owned())
}

/// What `$/cancelRequest` says.
#[derive(serde::Deserialize)]
struct Cancelled {
    id: RequestId,
}

/// What `textDocument/didChange` says.
#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Changed {
    text_document: lsp::VersionedTextDocumentIdentifier,
    content_changes: Vec<Change>,
}

/// One change; the whole text where there is no range. A range that cannot be read is an error, not the whole text.
#[derive(serde::Deserialize)]
struct Change {
    range: Option<lsp::Range>,
    text: String,
}
