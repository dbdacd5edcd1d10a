//! The driver's end of processes that workers hold: to its runner a shim, to the engine a driver.
//!
//! ```text
//!  runner ◄─ lines, streams in files ─► stand-in ◄─ facts ── receive ◄── Pull items
//!                                          │
//!                                          └─ starts, lines ─► courier ──► Inbox start, say
//! ```
//!
//! Invariants: the holder takes the reports of a worker in their order, and from the first byte where a driver comes back.
//! It applies the changes of a process before it reports the end of the process.

mod stand_in;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::tree::RunTree;
use super::{CallError, Client, Objects, relay};
use crate::io::control::Control;
use crate::io::shim::{HeldAttempt, HeldCommand, Living, PASSED, RemoteHolder, RemoteLaunch, SECRET};
use crate::types::engine::{
    Files, Forget, HttpRequest, HttpResponse, Item, NewProcess, Order, Report, ReportEvent, Say, Says, Start, Started,
    Take, UserOrder, Variable,
};
use stand_in::StandIn;

/// How long a driver waits before it asks again, where the engine refuses.
const PAUSE: Duration = Duration::from_secs(1);

/// In the folder of a run: the numbers of the items of people and processes that were begun. It is kept with the records
/// that follow from them.
pub(crate) const HANDLED: &str = "handled";

/// The processes of a run from which on its driver takes reports and starts more of them less often, and how long it waits
/// then. Each time costs Restate about six calls, of some milliseconds each.
const MANY: usize = 32;
const GATHER: Duration = Duration::from_millis(50);

/// How long what is to be forgotten is gathered.
const FORGETTING: Duration = Duration::from_millis(250);

/// What a driver has of its run in the engine.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub client: Client,
    pub objects: Objects,
    pub run: String,
    /// The number of the driver.
    pub driver: u64,
    /// Where its tasks run.
    pub handle: Handle,
}

/// The processes of a run.
#[derive(Debug)]
pub(crate) struct Holder {
    place: Place,
    /// The folder of the run; processes have theirs in `attempts` below it.
    folder: PathBuf,
    tree: Arc<RunTree>,
    control: Control,
    outbox: UnboundedSender<Outgoing>,
    known: Mutex<Known>,
    /// What people are to hear.
    notices: Box<dyn Notices>,
    /// Where processes call the tools of the run.
    tools: Mutex<Option<String>>,
    /// What the engine is about to forget.
    forget: Mutex<Forget>,
}

/// Where notices go.
pub(crate) trait Notices: Send + Sync + std::fmt::Debug {
    /// Says something to people.
    fn notice(&self, text: String);

    /// The run has another driver, or cannot go on.
    fn give_up(&self, why: String);
}

#[derive(Debug, Default)]
struct Known {
    /// By process.
    processes: HashMap<String, Process>,
    /// The number of the last item.
    last: u64,
    /// The processes that workers could not start.
    refused: HashSet<(String, String)>,
}

#[derive(Debug)]
struct Process {
    start: u64,
    /// What was reported, where no stand-in takes it.
    reported: Vec<ReportEvent>,
    /// The stand-in that takes it.
    stand_in: Option<UnboundedSender<ReportEvent>>,
    /// What its shim has said of it.
    living: Option<Living>,
    /// Whether it is talked with: then it cannot go on with another driver.
    talks: bool,
}

impl Process {
    fn new(start: u64) -> Process {
        Process { start, reported: Vec::new(), stand_in: None, living: None, talks: false }
    }
}

/// What the courier brings to the engine.
#[derive(Debug)]
enum Outgoing {
    /// A process, and its stand-in, which waits to hear the number of its start.
    Start(NewProcess, StandIn),
    /// Lines for a shim.
    Say(Say),
    Forget(Forget),
}

impl Holder {
    /// The processes of a run as its former drivers have left them.
    ///
    /// # Errors
    /// The engine does not answer, or another driver has the run.
    pub(crate) async fn begin(
        place: Place,
        folder: PathBuf,
        tree: Arc<RunTree>,
        control: Control,
        notices: Box<dyn Notices>,
    ) -> Result<Arc<Holder>, CallError> {
        let (outbox, outgoing) = unbounded_channel();
        let handle = place.handle.clone();
        let holder = Arc::new(Holder {
            place,
            folder,
            tree,
            control,
            outbox,
            known: Mutex::default(),
            notices,
            tools: Mutex::default(),
            forget: Mutex::default(),
        });
        // What former drivers had not done with is there at once, also where nothing of it was reported.
        for (of, talks) in holder.place.client.list(&holder.place.run, holder.place.driver).await? {
            holder.lock().processes.insert(of.process, Process { talks, ..Process::new(of.start) });
        }
        let items = holder.place.client.items(&holder.take(0, true)).await?;
        let mut more = !items.is_empty();
        holder.receive_items(items);
        while more {
            let after = holder.lock().last;
            let items = holder.place.client.items(&holder.take(after, true)).await?;
            more = !items.is_empty();
            holder.receive_items(items);
        }
        handle.spawn(Arc::clone(&holder).receive());
        handle.spawn(Arc::clone(&holder).carry(outgoing));
        Ok(holder)
    }

    fn take(&self, after: u64, at_once: bool) -> Take {
        Take { run: self.place.run.clone(), driver: self.place.driver, after, at_once }
    }

    /// Nothing of the run goes on.
    pub(crate) async fn forget_all(&self) {
        let forget = Forget { processes: vec![format!("{}/", self.place.run)], items: Vec::new() };
        // Where it fails, workers end what is left in their own time.
        let _ = self.place.client.forget(&self.place.run, &forget).await;
    }

    /// Takes items, until the run has another driver.
    async fn receive(self: Arc<Holder>) {
        loop {
            let after = self.lock().last;
            match self.place.client.items(&self.take(after, false)).await {
                Ok(items) => {
                    self.receive_items(items);
                    // Workers have enough to do: what they report meanwhile is taken, recorded and followed up together.
                    if self.lock().processes.len() > MANY {
                        tokio::time::sleep(GATHER).await;
                    }
                }
                Err(CallError::Refused { message, status: 409, .. }) => return self.notices.give_up(message),
                Err(error) => {
                    self.notices.notice(error.to_string());
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    fn receive_items(self: &Arc<Holder>, items: Vec<(u64, Item)>) {
        let mut done = Vec::new();
        for (number, item) in items {
            {
                let mut known = self.lock();
                if number <= known.last {
                    continue;
                }
                known.last = number;
            }
            match item {
                Item::Report(report) => self.receive_report(report),
                Item::User { .. } | Item::Call { .. } if self.is_handled(number) => done.push(number),
                Item::User { order, reply } => {
                    done.push(number);
                    let holder = Arc::clone(self);
                    self.place.handle.spawn(async move { holder.obey(order, reply).await });
                }
                Item::Call { of, request, reply } => {
                    done.push(number);
                    let holder = Arc::clone(self);
                    self.place.handle.spawn(async move { holder.relay(of, request, reply).await });
                }
            }
        }
        if !done.is_empty() {
            let _ = self.outbox.send(Outgoing::Forget(Forget { processes: Vec::new(), items: done }));
        }
    }

    /// Whether a former driver has begun to do what this item wants, and may have done it; notes it as begun otherwise. So
    /// it is done once at most: where a driver is lost meanwhile, the one who waits gets no answer.
    fn is_handled(&self, number: u64) -> bool {
        let path = self.folder.join(HANDLED);
        let known = std::fs::read_to_string(&path).unwrap_or_default();
        if known.lines().any(|line| line.parse() == Ok(number)) {
            return true;
        }
        let file = std::fs::File::options().create(true).append(true).open(&path);
        let noted = file.and_then(|mut file| writeln!(file, "{number}"));
        if let Err(error) = noted {
            self.notices.give_up(format!("{} cannot be written: {error}", path.display()));
        }
        false
    }

    fn receive_report(&self, report: Report) {
        if let ReportEvent::Refused { worker, why } = &report.fact {
            // It is asked again and again, and people hear of it once.
            if !self.lock().refused.insert((report.of.process.clone(), worker.clone())) {
                return;
            }
            let step = super::tree::step_name(&report.of.process);
            self.notices.notice(format!("`{step}` waits for another worker: `{worker}` cannot start it: {why}"));
            return;
        }
        let mut known = self.lock();
        let start = report.of.start;
        let process = known.processes.entry(report.of.process).or_insert_with(|| Process::new(start));
        if process.start > start {
            return;
        }
        if process.start < start {
            *process = Process::new(start);
        }
        if let ReportEvent::Lives { host, line } = &report.fact {
            process.living = stand_in::read_living(host, line);
        }
        process.talks |= matches!(report.fact, ReportEvent::Line(_));
        match &process.stand_in {
            // One that is gone has told the end.
            Some(stand_in) => _ = stand_in.send(report.fact),
            None => process.reported.push(report.fact),
        }
    }

    /// Brings starts and lines to the engine, in their order; what comes meanwhile goes together.
    async fn carry(self: Arc<Holder>, mut outgoing: UnboundedReceiver<Outgoing>) {
        let mut waiting = Vec::new();
        while outgoing.recv_many(&mut waiting, 1024).await > 0 {
            let is_said = |out: &Outgoing| matches!(out, Outgoing::Say(_));
            if self.lock().processes.len() > MANY && !waiting.iter().any(is_said) {
                tokio::time::sleep(GATHER).await;
                waiting.extend(std::iter::from_fn(|| outgoing.try_recv().ok()));
            }
            let (mut starts, mut stand_ins) = (Vec::new(), Vec::new());
            let (mut says, mut forget) = (Vec::new(), Forget::default());
            for out in waiting.drain(..) {
                match out {
                    Outgoing::Start(process, stand_in) => {
                        starts.push(process);
                        stand_ins.push(stand_in);
                    }
                    Outgoing::Say(say) => says.push(say),
                    Outgoing::Forget(more) => {
                        forget.processes.extend(more.processes);
                        forget.items.extend(more.items);
                    }
                }
            }
            let (client, run) = (&self.place.client, &self.place.run);
            if !starts.is_empty() {
                self.start_all(starts, stand_ins).await;
            }
            if !says.is_empty()
                && let Err(error) = client.say(run, &Says { driver: self.place.driver, says }).await
            {
                self.notices.give_up(error.to_string());
            }
            // Nothing waits for it: what comes within a while goes together.
            if forget != Forget::default() && self.add_forget(forget) {
                let holder = Arc::clone(&self);
                self.place.handle.spawn(async move { holder.send_forget().await });
            }
        }
    }

    /// Keeps what is to be forgotten; whether it is the first of it.
    fn add_forget(&self, more: Forget) -> bool {
        let mut forget = self.forget.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = *forget == Forget::default();
        forget.processes.extend(more.processes);
        forget.items.extend(more.items);
        is_first
    }

    async fn send_forget(&self) {
        tokio::time::sleep(FORGETTING).await;
        let forget = std::mem::take(&mut *self.forget.lock().unwrap_or_else(PoisonError::into_inner));
        if let Err(error) = self.place.client.forget(&self.place.run, &forget).await {
            self.notices.notice(error.to_string());
        }
    }

    async fn start_all(self: &Arc<Holder>, processes: Vec<NewProcess>, stand_ins: Vec<StandIn>) {
        let names: Vec<String> = processes.iter().map(|process| process.process.clone()).collect();
        let start = Start { driver: self.place.driver, processes };
        let numbers = match self.place.client.start(&self.place.run, &start).await {
            Ok(numbers) => numbers,
            Err(error) => return self.notices.give_up(error.to_string()),
        };
        for ((process, start), stand_in) in names.into_iter().zip(numbers).zip(stand_ins) {
            let of = Started { process, start };
            let facts = self.attach_stand_in(&of);
            self.place.handle.spawn(stand_in.run(Arc::clone(self), of, facts));
        }
    }

    /// Has the reports of a start go to a stand-in, those that have come already first.
    fn attach_stand_in(&self, of: &Started) -> UnboundedReceiver<ReportEvent> {
        let (tell, facts) = unbounded_channel();
        let mut known = self.lock();
        let process = known.processes.entry(of.process.clone()).or_insert_with(|| Process::new(of.start));
        if process.start != of.start {
            *process = Process::new(of.start);
        }
        // It is kept: the runner may come back once more.
        process.reported.iter().for_each(|fact| _ = tell.send(fact.clone()));
        process.stand_in = Some(tell);
        facts
    }

    /// Does what a person wants.
    async fn obey(self: Arc<Holder>, order: UserOrder, reply: String) {
        let control = self.control.clone();
        // A driver that takes over a run hears people before the run goes on. A stop is kept until then.
        if !matches!(order, UserOrder::Stop(_)) {
            let attached = relay::await_some(|| control.is_attached().then_some(()));
            // Where it does not begin in time, the person hears so.
            let _ = tokio::time::timeout(relay::PATIENCE, attached).await;
        }
        let answered = tokio::task::spawn_blocking(move || match order {
            UserOrder::Stop(at_once) => {
                if at_once {
                    control.kill()
                } else {
                    control.stop()
                }
                Ok(String::new())
            }
            UserOrder::Answer(answer) => control.answer(answer).map(|()| String::new()),
            UserOrder::Message(message) => control.send(message),
        });
        let answer = answered.await.unwrap_or_else(|_| Err("its driver has failed".to_owned()));
        if let Err(error) = self.place.client.answer(&reply, &answer).await {
            self.notices.notice(error.to_string());
        }
    }

    /// Passes on what a process asks of its run.
    async fn relay(self: Arc<Holder>, of: Started, request: HttpRequest, reply: String) {
        // What another start has the place of says nothing to the run any more.
        let is_last = self.lock().processes.get(&of.process).is_some_and(|process| process.start == of.start);
        let tools = || self.tools.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let response = match is_last {
            true => relay::pass_request((&self.folder, tools), request, &self.place.objects).await,
            false => Err("the run does not know this process any more".to_owned()),
        };
        let response = response.unwrap_or_else(|problem| HttpResponse {
            status: 502,
            headers: BTreeMap::new(),
            body: crate::types::engine::Bytes::Text(problem),
        });
        if let Err(error) = self.place.client.answer(&reply, &response).await {
            self.notices.notice(error.to_string());
        }
    }

    /// What a process is called.
    fn name(&self, folder: &Path) -> String {
        let inside = folder.strip_prefix(self.folder.join(crate::io::home::ATTEMPTS)).unwrap_or(folder);
        format!("{}/{}", self.place.run, inside.display())
    }

    /// The order for a worker.
    async fn order(&self, command: &HeldCommand, files: Files) -> Result<Order, String> {
        let text = |words: &std::ffi::OsString| words.to_string_lossy().into_owned();
        let directory = command.directory.strip_prefix(&self.tree.folder).map_err(|_| {
            format!("`{}` lies outside of the workspace: no worker has it", command.directory.display())
        })?;
        let mut argv: Vec<String> = command.argv.iter().map(text).collect();
        // A program of the project is named as it counts from its folder.
        if let Some(program) = argv.first_mut()
            && let Ok(inside) = Path::new(&*program).strip_prefix(&command.directory)
        {
            *program = format!("./{}", inside.display());
        }
        let environment = command.environment.iter().map(|(name, value)| {
            let value = text(value);
            match name.to_str() {
                Some(PASSED) => (value, Variable::Passed),
                Some(SECRET) => (value, Variable::Secret),
                _ => (text(name), Variable::Set(value)),
            }
        });
        let environment = environment.collect();
        let stdin = match &command.stdin {
            Some(stdin) if !command.talks => Some(self.place.objects.pack(stdin).await?),
            _ => None,
        };
        Ok(Order {
            argv,
            environment,
            directory: directory.to_string_lossy().into_owned(),
            stdin,
            talks: command.talks,
            timeout_ms: command.timeout_ms,
            idle_ms: command.idle_ms,
            orphan_ms: command.orphan_ms,
            install: command.install.clone(),
            keeps_changes: files.commit.is_some(),
            files,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The holder of a run, as its runner has it.
#[derive(Clone, Debug)]
pub(crate) struct RunHolder(pub Arc<Holder>);

impl RemoteHolder for RunHolder {
    fn start(&self, launch: RemoteLaunch, stream: UnixStream) {
        let holder = Arc::clone(&self.0);
        self.0.place.handle.spawn(async move {
            let (process, pool, talks) = (holder.name(&launch.folder), launch.pool.to_string(), launch.command.talks);
            let stand_in = StandIn::new(launch.folder.clone(), stream, holder.tree.lock_count(), false);
            let files = holder.tree.files();
            let order = match holder.order(&launch.command, files).await {
                Ok(order) => serde_json::to_vec(&order).map_err(|error| error.to_string()),
                Err(problem) => Err(problem),
            };
            let packed = match order {
                Ok(order) => holder.place.objects.pack(&order).await,
                Err(problem) => Err(problem),
            };
            match packed {
                Ok(order) => {
                    let _ = holder.outbox.send(Outgoing::Start(NewProcess { process, pool, talks, order }, stand_in));
                }
                Err(problem) => stand_in.refuse(problem).await,
            }
        });
    }

    fn rejoin(&self, folder: &Path) -> Option<UnixStream> {
        let holder = &self.0;
        let process = holder.name(folder);
        let start = holder.lock().processes.get(&process).filter(|process| !process.talks)?.start;
        let (ours, other) = UnixStream::pair().ok()?;
        let stand_in = StandIn::new(folder.to_owned(), other, 0, true);
        let of = Started { process, start };
        let facts = holder.attach_stand_in(&of);
        holder.place.handle.spawn(stand_in.run(Arc::clone(holder), of, facts));
        Some(ours)
    }

    fn find_held(&self, folder: &Path) -> Option<HeldAttempt> {
        let prefix = self.0.name(folder);
        let known = self.0.lock();
        let below: Vec<&Process> =
            known.processes.iter().filter(|(name, _)| is_below(name, &prefix)).map(|(_, process)| process).collect();
        let goes_on = !below.is_empty() && below.iter().all(|process| !process.talks);
        let living = below.into_iter().filter_map(|process| process.living.clone()).next_back();
        goes_on.then_some(HeldAttempt { living })
    }

    fn serve_tools(&self, url: &str) {
        *self.0.tools.lock().unwrap_or_else(PoisonError::into_inner) = Some(url.to_owned());
    }

    fn forget(&self, folder: &Path) {
        let prefix = self.0.name(folder);
        self.0.lock().processes.retain(|name, _| !is_below(name, &prefix));
        let forget = Forget { processes: vec![format!("{prefix}/")], items: Vec::new() };
        let _ = self.0.outbox.send(Outgoing::Forget(forget));
    }
}

fn is_below(name: &str, prefix: &str) -> bool {
    name == prefix || name.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('/'))
}
