//! Does what an agent asks of its ACP client: reads and writes files, and runs commands, in the working folder.
//!
//! In: the agent's requests. Out: their results, within the rights of the built-in tools that do the same for models:
//! `file_read`, `file_write` and `shell`; the policy knows the requests by these names. Invariants: nothing is done
//! that the grant does not name, nothing is read or written outside of the folder, and no more than [`WAITING`]
//! requests of [`HELD`] bytes wait.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use agent_client_protocol::v1::Responder;
use agent_client_protocol::v1::schema::{
    CreateTerminalRequest, ErrorCode, KillTerminalResponse, ReadTextFileResponse, ReleaseTerminalResponse, RequestId,
    WriteTextFileResponse,
};
use agent_client_protocol::{Error, JsonRpcResponse};
use serde_json::{Value, json};
use swarmc_plan::Approval;
use tokio::sync::oneshot;

use super::begun::{self, Begun};
use super::requests::{ClientRequest, answer_request};
use super::terminals::{Order, TerminalReporter, Terminals};
use crate::io::confine::Folder;
use crate::io::executor::capture::Capture;
use crate::io::executor::pool::Services;
use crate::io::input::Input;
use crate::io::tools::{Grant, Lines, Unread, inside};
use crate::types::approval::{Decision, ToolCallRequest};
use crate::types::event::StepId;

/// The requests of an agent that wait at once, those for an approval included, and their bytes.
const WAITING: usize = 64;
const HELD: usize = 32 << 20;

/// The characters of a text that a log keeps.
const LOGGED: usize = 4_000;

/// The characters that people who watch see of a call and of what came of it.
const SHOWN: usize = 200;

/// The bytes of a text that is to be written which people are shown; of a longer one they are told how long it is.
const READABLE: usize = 64 * 1024;

/// The longest command with its arguments and variables, in bytes, and how many of them there may be: people are shown
/// all.
const LONGEST: usize = 64 * 1024;
const WORDS: usize = 4_096;

/// The names of our own variables begin so; they are no agent's to set.
const OURS: &str = "SWARM_";

/// What is done for an agent in one turn.
pub(super) struct Service {
    grant: Grant,
    step: StepId,
    attempt: u32,
    /// The working folder, by every name that an agent may know it by.
    roots: Vec<PathBuf>,
    /// The requests that wait, and whether each is approved already.
    queue: VecDeque<(ClientRequest, bool)>,
    doing: Option<Doing>,
    asking: Vec<(oneshot::Receiver<Decision>, ClientRequest)>,
    terminals: Terminals,
    begun: Begun,
}

/// A file that is being read or written.
enum Doing {
    Read(oneshot::Receiver<Result<String, Unread>>, Responder<ReadTextFileResponse>),
    Write(oneshot::Receiver<Result<Option<u64>, Unread>>, Responder<WriteTextFileResponse>),
}

/// What the service of a turn needs while it goes on.
pub(super) struct TurnContext<'m, 'w, 'c> {
    pub services: &'m Services,
    pub capture: &'m mut Capture<'c>,
    pub context: &'m mut Context<'w>,
    /// Whether the agent reads what it is told, so that it can be told more.
    pub reads: bool,
}

/// What an agent may have done for it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OfferedCapabilities {
    pub read: bool,
    pub write: bool,
    pub terminal: bool,
}

impl Service {
    pub(super) fn new(grant: Grant, (step, attempt): (StepId, u32), told: &Path, begun: Begun) -> Service {
        let mut roots = vec![told.to_owned()];
        // Programs that ask the system where they are get another name where a link leads there.
        roots.extend(grant.folder.canonicalize());
        let (queue, asking, terminals) = (VecDeque::new(), Vec::new(), Terminals::new());
        Service { grant, step, attempt, roots, queue, doing: None, asking, terminals, begun }
    }

    /// A former runner has answered the request `id`.
    pub(super) fn forget_request(&mut self, id: &str) {
        self.begun.take(id);
    }

    /// What the grant allows.
    pub(super) fn offered_capabilities(grant: &Grant, services: &Services) -> OfferedCapabilities {
        let may = |tool: &str| services.tools.lends(grant, tool).is_ok();
        OfferedCapabilities { read: may("file_read"), write: may("file_write"), terminal: may("shell") }
    }

    /// Takes a request.
    pub(super) fn take_request(&mut self, errand: ClientRequest) {
        let queue = self.queue.iter().map(|(errand, _)| errand);
        let waiting = queue.chain(self.asking.iter().map(|(_, errand)| errand));
        let (count, bytes) = waiting.fold((0, 0), |(count, bytes), errand| (count + 1, bytes + errand.held_bytes()));
        match count < WAITING && bytes + errand.held_bytes() <= HELD {
            true => self.queue.push_back((errand, false)),
            false => errand.refuse(invalid_request("too many requests at once: wait for the answers".to_owned())),
        }
    }

    /// Goes on with what was asked for as far as it can; why the turn has failed, where it has.
    pub(super) fn go_on(&mut self, poller: &mut TurnContext<'_, '_, '_>) -> Result<(), String> {
        self.tell_terminals(poller.capture);
        self.hear_leaves(poller)?;
        self.finish_doing(poller);
        // One file at a time: an agent may read what it has just asked to have written.
        while self.doing.is_none()
            && let Some((errand, granted)) = self.queue.pop_front_if(|(errand, _)| poller.reads || !is_large(errand))
        {
            let is_last = is_large(&errand);
            match granted {
                true => self.perform(errand, poller),
                false => self.begin_request(errand, poller),
            }
            if is_last {
                // What it is told must be on its way before it is told more.
                poller.context.waker().wake_by_ref();
                break;
            }
        }
        Ok(())
    }

    /// Whether it has to wait for others, so that its silence means nothing.
    pub(super) fn is_waiting(&self) -> bool {
        // Asked in any case: the question also takes the mark away.
        let prints = self.terminals.is_fresh();
        prints || !self.asking.is_empty() || self.doing.is_some()
    }

    /// Whether something waits until the agent has read what it was told.
    pub(super) fn is_held_up(&self) -> bool {
        !self.queue.is_empty()
    }

    /// The turn is to end: nothing more is done.
    pub(super) fn stop(&mut self) {
        let asked = self.asking.drain(..).map(|(_, errand)| errand);
        asked
            .chain(self.queue.drain(..).map(|(errand, _)| errand))
            .for_each(|errand| errand.refuse(request_cancelled()));
        self.terminals.stop();
    }

    /// The turn is over: waits until nothing is done any more; `is_urgent` says whether that is to be at once.
    pub(super) fn close(&mut self, services: &Services, capture: &mut Capture<'_>, is_urgent: impl Fn() -> bool) {
        self.stop();
        // A file is written or not when the turn has ended, and never later.
        let waited = match self.doing.take() {
            Some(Doing::Read(done, _)) => services.reactor.wait(async { drop(done.await) }),
            Some(Doing::Write(done, _)) => services.reactor.wait(async { drop(done.await) }),
            None => Ok(()),
        };
        drop(waited);
        self.terminals.close(is_urgent);
        self.tell_terminals(capture);
    }

    fn tell_terminals(&mut self, capture: &mut Capture<'_>) {
        for ended in self.terminals.answer_waiting() {
            log_line(capture, &format!("= {ended}"));
        }
    }

    /// Takes the approved requests: they are carried out in the order in which the agent sent them.
    fn hear_leaves(&mut self, poller: &mut TurnContext<'_, '_, '_>) -> Result<(), String> {
        let (mut waiting, mut answered) = (VecDeque::new(), VecDeque::new());
        // From the last one on: an answer to an earlier one that came before its own is not overlooked then.
        for (mut heard, errand) in std::mem::take(&mut self.asking).into_iter().rev() {
            match Pin::new(&mut heard).poll(poller.context) {
                Poll::Pending => waiting.push_front((heard, errand)),
                Poll::Ready(leave) => answered.push_front((leave, errand)),
            }
        }
        self.asking = waiting.into();
        let mut failed = Ok(());
        for (leave, errand) in answered {
            match leave {
                // Its turn comes when what goes on, and what was agreed to before it, is done.
                Ok(Decision::Granted(None) | Decision::Always) => {
                    let place = self.queue.iter().take_while(|(_, granted)| *granted).count();
                    self.queue.insert(place, (errand, true));
                }
                // The agent cannot receive other arguments, and the call with its own was not approved.
                Ok(Decision::Granted(Some(_))) => {
                    errand.refuse(invalid_request("not called: it was approved with other arguments only".to_owned()))
                }
                Ok(Decision::Refused(why)) => refuse_request(errand, why, poller.capture),
                Ok(Decision::Failed(message)) => {
                    errand.refuse(request_cancelled());
                    failed = Err(message);
                }
                // No answer comes any more: the attempt is about to be ended.
                Err(_) => errand.refuse(request_cancelled()),
            }
        }
        failed
    }

    fn finish_doing(&mut self, poller: &mut TurnContext<'_, '_, '_>) {
        match self.doing.take() {
            None => {}
            Some(Doing::Read(mut done, responder)) => match Pin::new(&mut done).poll(poller.context) {
                Poll::Pending => self.doing = Some(Doing::Read(done, responder)),
                Poll::Ready(text) => answer_file_request(text, responder, poller.capture, |text| {
                    (truncate_text(&text, LOGGED), ReadTextFileResponse::new(text))
                }),
            },
            Some(Doing::Write(mut done, responder)) => match Pin::new(&mut done).poll(poller.context) {
                Poll::Pending => self.doing = Some(Doing::Write(done, responder)),
                Poll::Ready(before) => answer_file_request(before, responder, poller.capture, |before| {
                    let before = before.map_or(String::new(), |before| format!(", which had {before} bytes"));
                    (format!("written{before}"), WriteTextFileResponse::new())
                }),
            },
        }
    }

    /// Carries out a request, or asks for its approval first.
    fn begin_request(&mut self, errand: ClientRequest, poller: &mut TurnContext<'_, '_, '_>) {
        let Some((tool, arguments)) = equivalent_call(&errand) else { return self.perform(errand, poller) };
        let tools = &poller.services.tools;
        let called = format!("{tool} {arguments}");
        log_line(poller.capture, &called);
        poller.capture.record_call(tool, &arguments.to_string());
        // An agent may ask for what it was not offered.
        if let Err(why) = tools.lends(&self.grant, tool) {
            log_line(poller.capture, &format!("! {why}"));
            return errand.refuse(make_error(ErrorCode::MethodNotFound, why));
        }
        // Before people are asked: they do not decide about what is refused anyway.
        if let Err(why) = self.check_request(&errand, poller) {
            return refuse_request(errand, why, poller.capture);
        }
        let of = tools.gate(&self.grant, tool);
        if of == Approval::Auto {
            return self.perform(errand, poller);
        }
        let agent = Arc::from(&*self.grant.agent);
        let call = Box::new(ToolCallRequest { agent, tool: tool.to_owned(), arguments, schema: None, of, fixed: true });
        let (reply, heard) = oneshot::channel();
        let (step, attempt) = (self.step.clone(), self.attempt);
        poller.services.report(Input::Wants { step, attempt, call, reply });
        self.asking.push((heard, errand));
        // The receiver is to be polled once, so that the answer wakes this turn.
        poller.context.waker().wake_by_ref();
    }

    /// Whether what is asked for lies in the working folder; else why it is not done.
    fn check_request(&self, errand: &ClientRequest, poller: &TurnContext<'_, '_, '_>) -> Result<(), String> {
        let shown = |path: &Path| poller.services.tools.shown(&path.to_string_lossy());
        match errand {
            ClientRequest::Read(request, _) => self.relative_path(&request.path, &shown(&request.path)).map(drop),
            ClientRequest::Write(request, _) => self.relative_path(&request.path, &shown(&request.path)).map(drop),
            ClientRequest::Create(request, _) => {
                if let Some(cwd) = &request.cwd {
                    let inside = self.relative_path(cwd, &shown(cwd))?;
                    // Opened, and not only compared: a link on the way may lead out of the folder.
                    Folder::open(&self.grant.folder)?.folder(&inside)?;
                }
                check_command(request)
            }
            _ => Ok(()),
        }
    }

    /// A path as it counts from the working folder.
    fn relative_path(&self, path: &Path, shown: &str) -> Result<String, String> {
        let root = self.roots[0].display();
        if !path.is_absolute() {
            return Err(format!("`{shown}` is relative: name it from the root, as in `{root}/…`"));
        }
        let rest = self.roots.iter().find_map(|root| path.strip_prefix(root).ok());
        let rest = rest.ok_or_else(|| format!("`{shown}` is outside of the working folder `{root}`"))?;
        let rest = if rest.as_os_str().is_empty() { "." } else { rest.to_str().unwrap_or_default() };
        inside(rest)?;
        Ok(rest.to_owned())
    }

    /// Does what is asked for.
    fn perform(&mut self, errand: ClientRequest, poller: &mut TurnContext<'_, '_, '_>) {
        let (services, grant) = (poller.services, self.grant.clone());
        match errand {
            ClientRequest::Read(request, responder) => {
                // `check_request` has refused what lies outside.
                let path = self.relative_path(&request.path, "it").unwrap_or_default();
                let lines = Lines { from: request.line.unwrap_or(1), most: request.limit };
                let tools = Arc::clone(&services.tools);
                let done =
                    spawn_work(services, poller.context, async move { tools.text_of(&grant, path, lines).await });
                self.doing = Some(Doing::Read(done, responder));
            }
            ClientRequest::Write(request, responder) => {
                let path = self.relative_path(&request.path, "it").unwrap_or_default();
                let tools = Arc::clone(&services.tools);
                let work = async move { tools.put_text(&grant, path, request.content).await };
                self.doing = Some(Doing::Write(spawn_work(services, poller.context, work), responder));
            }
            ClientRequest::Create(request, responder) => {
                if let Err(why) = self.note_command(responder.id()) {
                    log_line(poller.capture, &format!("! {why}"));
                    return answer_request(responder, Err(invalid_request(why)));
                }
                let reporter = TerminalReporter {
                    step: self.step.clone(),
                    attempt: self.attempt,
                    inputs: services.inputs.clone(),
                    waker: poller.context.waker().clone(),
                };
                let order = self.order(request, services.tools.secrets().longest());
                if let Err(why) = self.terminals.create_terminal(order, reporter, responder) {
                    log_line(poller.capture, &format!("! {why}"));
                }
            }
            ClientRequest::Output(request, responder) => {
                let secrets = services.tools.secrets();
                answer_request(responder, self.terminals.read_output(&request.terminal_id, secrets));
            }
            ClientRequest::Wait(request, responder) => {
                self.terminals.wait(&request.terminal_id, responder);
                // It may have ended long ago.
                self.tell_terminals(poller.capture);
            }
            ClientRequest::Kill(request, responder) => {
                let killed = self.terminals.kill(&request.terminal_id);
                answer_request(responder, killed.map(|()| KillTerminalResponse::new()));
            }
            ClientRequest::Release(request, responder) => {
                let released = self.terminals.release(&request.terminal_id);
                answer_request(responder, released.map(|()| ReleaseTerminalResponse::new()));
            }
        }
    }

    /// Notes that the command which the request `id` asks for begins; why it does not, else.
    fn note_command(&mut self, id: &RequestId) -> Result<(), String> {
        let id = serde_json::to_string(id).expect("numbers and texts are JSON");
        if self.begun.take(&id) {
            return Err(begun::UNKNOWN.to_owned());
        }
        self.begun.note(&id).map_err(|error| format!("the command cannot be noted, and does not begin: {error}"))
    }

    /// What a terminal is to run: a command with arguments as it is, and one without as a line of `sh` where it is one.
    fn order(&self, request: CreateTerminalRequest, margin: usize) -> Order {
        let shown = describe_command(&request);
        let argv = match request.args.is_empty() && is_line(&request.command) {
            true => vec!["/bin/sh".to_owned(), "-c".to_owned(), request.command],
            false => [request.command].into_iter().chain(request.args).collect(),
        };
        let own = request.env.into_iter().filter(|pair| !pair.name.starts_with(OURS));
        let own = own.map(|pair| (OsString::from(pair.name), OsString::from(pair.value)));
        let inside = request.cwd.and_then(|cwd| self.relative_path(&cwd, "it").ok()).unwrap_or_default();
        Order {
            argv: argv.into_iter().map(OsString::from).collect(),
            environment: self.grant.environment.iter().cloned().chain(own).collect(),
            directory: self.grant.folder.join(inside),
            limit: request.output_byte_limit,
            margin,
            shown,
        }
    }
}

/// Has something done where it may take its time.
fn spawn_work<T: Send + 'static>(
    services: &Services,
    context: &Context<'_>,
    work: impl Future<Output = T> + Send + 'static,
) -> oneshot::Receiver<T> {
    let (sender, done) = oneshot::channel();
    // Without it the sender is dropped, which is an end, too.
    if let Ok(reactor) = services.reactor.handle() {
        reactor.spawn(async move { drop(sender.send(work.await)) });
    }
    // The task that waits is to be polled once.
    context.waker().wake_by_ref();
    done
}

/// Answers with what came of a file, and writes that down.
fn answer_file_request<T, R: JsonRpcResponse>(
    done: Result<Result<T, Unread>, oneshot::error::RecvError>,
    responder: Responder<R>,
    capture: &mut Capture<'_>,
    response: impl FnOnce(T) -> (String, R),
) {
    match done {
        Ok(Ok(value)) => {
            let (logged, response) = response(value);
            log_line(capture, &format!("= {logged}"));
            answer_request(responder, Ok(response));
        }
        Ok(Err(Unread { message, missing })) => {
            log_line(capture, &format!("! {message}"));
            let code = if missing { ErrorCode::ResourceNotFound } else { ErrorCode::InvalidParams };
            answer_request(responder, Err(make_error(code, message)));
        }
        Err(_) => answer_request(responder, Err(request_cancelled())),
    }
}

/// The built-in tool that does the same, and its arguments, for people and logs; none for what needs no right of its
/// own.
fn equivalent_call(errand: &ClientRequest) -> Option<(&'static str, Value)> {
    match errand {
        ClientRequest::Read(request, _) => {
            let mut arguments = json!({ "path": request.path });
            let given = [("line", request.line), ("limit", request.limit)];
            given.into_iter().for_each(|(name, value)| {
                if let Some(value) = value {
                    arguments[name] = json!(value);
                }
            });
            Some(("file_read", arguments))
        }
        ClientRequest::Write(request, _) => {
            let content = match request.content.len() {
                ..=READABLE => json!(request.content),
                bytes => json!(format!("(too long to be shown: {bytes} bytes)")),
            };
            Some(("file_write", json!({ "path": request.path, "content": content })))
        }
        ClientRequest::Create(request, _) => {
            let mut arguments = json!({ "command": request.command, "args": request.args });
            if let Some(cwd) = &request.cwd {
                arguments["cwd"] = json!(cwd);
            }
            if !request.env.is_empty() {
                let pairs = request.env.iter().map(|pair| json!(format!("{}={}", pair.name, pair.value)));
                arguments["env"] = pairs.collect();
            }
            Some(("shell", arguments))
        }
        _ => None,
    }
}

/// A command as a person would read it.
fn describe_command(request: &CreateTerminalRequest) -> String {
    let words = [&request.command].into_iter().chain(&request.args).take(WORDS);
    truncate_text(&words.map(String::as_str).collect::<Vec<_>>().join(" "), SHOWN)
}

/// Whether a command can be started; else why not.
fn check_command(request: &CreateTerminalRequest) -> Result<(), String> {
    let env = request.env.iter().flat_map(|pair| [&pair.name, &pair.value]);
    let texts = || [&request.command].into_iter().chain(&request.args).chain(env.clone());
    if request.command.trim().is_empty() {
        return Err("the command is empty".to_owned());
    }
    if texts().count() > WORDS || texts().map(String::len).sum::<usize>() > LONGEST {
        return Err(format!("a command with all that belongs to it has {WORDS} words and {LONGEST} bytes at most"));
    }
    if texts().any(|text| text.contains('\0')) {
        return Err("a command holds no zero bytes".to_owned());
    }
    match request.env.iter().find(|pair| pair.name.is_empty() || pair.name.contains('=')) {
        Some(pair) => Err(format!("`{}` is no name of a variable", truncate_text(&pair.name, SHOWN))),
        None => Ok(()),
    }
}

/// Whether a command without arguments is a line that needs `sh`.
fn is_line(command: &str) -> bool {
    command.bytes().any(|byte| byte.is_ascii_whitespace() || b"|&;<>()$`\\\"'*?[]#~!{}".contains(&byte))
}

/// Whether the answer may be long, or takes a while.
fn is_large(errand: &ClientRequest) -> bool {
    matches!(errand, ClientRequest::Read(..) | ClientRequest::Write(..) | ClientRequest::Output(..))
}

fn refuse_request(errand: ClientRequest, why: String, capture: &mut Capture<'_>) {
    log_line(capture, &format!("! {why}"));
    errand.refuse(invalid_request(why));
}

/// Writes down a call, or what came of one.
fn log_line(capture: &mut Capture<'_>, text: &str) {
    let line = text.lines().next().unwrap_or_default();
    // Control characters of an agent must not reach a person's terminal.
    let shown: String = line.chars().filter(|character| !character.is_control()).take(SHOWN + 1).collect();
    capture.log_tool(&truncate_text(&shown, SHOWN), text);
}

fn truncate_text(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn make_error(code: ErrorCode, message: String) -> Error {
    Error::new(code, message)
}

/// What was asked for cannot be had.
pub(super) fn invalid_params(message: String) -> Error {
    make_error(ErrorCode::InvalidParams, message)
}

/// What was asked for is not allowed.
fn invalid_request(message: String) -> Error {
    make_error(ErrorCode::InvalidRequest, message)
}

/// The turn is over.
pub(super) fn request_cancelled() -> Error {
    make_error(ErrorCode::RequestCancelled, "the turn is over".to_owned())
}
