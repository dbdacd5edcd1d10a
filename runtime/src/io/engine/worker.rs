//! A worker: takes processes of a pool, has shims hold them, and reports what they do.
//!
//! ```text
//!  engine ──deliveries──► worker ──order, lines──► shim ──► program
//!     ▲                     │  ▲                     │
//!     └──────reports────────┘  └──bytes, lines, end──┘
//! ```
//!
//! One thread for all of them, which waits for sockets; Git has a few more for as long as it works. Invariants: whatever the
//! engine is sent, a worker that starts again sends the same, or goes on behind it; a process is started once, and ends with
//! its shim; what the engine wants no more is ended.

mod call_server;
mod launch;
mod process;
mod record;
mod reports;
mod worktrees;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use tokio::sync::{Notify, Semaphore};
use tokio::task::LocalSet;

use super::{CallError, Client, Objects};
use crate::io::home::{Home, Lock, RunFolder, create_private};
use crate::io::proc_status::host_name;
use crate::io::process::is_allowed;
use crate::types::digest::{file_name, format_hex};
use crate::types::engine::{Ask, Delivery, QueuedStart, Started};
use crate::types::error::RunError;
use call_server::CallServer;
use process::Process;
use record::Record;
use reports::Pushing;
use worktrees::CloneWorktrees;

/// How often Git is at work at once: more would wait for each other at the disk.
const GITS: usize = 4;

/// Threads for Git, and as many for the store of objects, which Git waits for.
const THREADS: usize = 2 * GITS;

/// Between two calls of an engine that does not answer, the first time and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// What a worker is to do.
pub struct WorkerOptions {
    /// The address of the engine, as in `http://127.0.0.1:8080`.
    pub engine: String,
    /// The pool whose processes it takes.
    pub pool: String,
    /// How many processes it has at once.
    pub slots: u32,
    /// A clone of the repository of the runs; without one it takes no process that needs files.
    pub workspace: Option<PathBuf>,
    /// Where it keeps what it has, under `worker/`.
    pub home: Home,
    /// Its environment: processes get what they are meant to get of it.
    pub environment: BTreeMap<OsString, OsString>,
    /// Is given each line for a person.
    pub notice: Box<dyn Fn(&str)>,
}

impl WorkerOptions {
    fn notify(&self, line: &str) {
        (self.notice)(line);
    }
}

/// Ends a worker, from any thread. Clones end the same one.
#[derive(Clone, Debug, Default)]
pub struct WorkerStop(Arc<Notify>);

impl WorkerStop {
    /// Ends it at once. Its processes go on, held by their shims, until one with the same home and pool starts.
    pub fn stop(&self) {
        self.0.notify_one();
    }
}

/// What all parts of a worker have.
struct Worker {
    options: WorkerOptions,
    client: Client,
    objects: Objects,
    trees: Arc<CloneWorktrees>,
    /// Held while Git is at work.
    gits: Semaphore,
    call_server: Rc<CallServer>,
    /// Its id, and the name of its host.
    id: String,
    host: String,
    /// The folder of its pool, whose lock it holds.
    folder: PathBuf,
    processes: RefCell<BTreeMap<Started, Rc<Process>>>,
    /// What has ended, or cannot be started, until the engine knows.
    done: RefCell<Vec<(Started, Option<String>)>>,
    /// There is something to ask at once.
    changed: Notify,
    pushing: RefCell<Pushing>,
    reach: Reach,
}

/// Whether the engine answers.
#[derive(Debug)]
struct Reach {
    /// When it failed to answer last; none where it has answered since.
    lost: Cell<Option<Instant>>,
    pause: Cell<Duration>,
}

impl Default for Reach {
    fn default() -> Reach {
        Reach { lost: Cell::new(None), pause: Cell::new(FIRST_PAUSE) }
    }
}

impl Reach {
    /// A call failed: says so once, and waits a moment.
    async fn failed(&self, options: &WorkerOptions, error: &CallError) {
        if self.lost.replace(Some(Instant::now())).is_none() {
            options.notify(&format!("{error}: its processes go on meanwhile"));
        }
        let pause = self.pause.get();
        self.pause.set((pause * 2).min(LONGEST_PAUSE));
        tokio::time::sleep(pause).await;
    }

    /// A call was answered that began at this moment. One that began before another one failed says nothing.
    fn answered(&self, options: &WorkerOptions, began: Instant) {
        if self.lost.get().is_some_and(|lost| began < lost) {
            return;
        }
        self.pause.set(FIRST_PAUSE);
        if self.lost.take().is_some() {
            options.notify("the engine answers again");
        }
    }
}

/// Takes processes of a pool until `stop` says so.
///
/// # Errors
/// Another worker of this pool runs in this home, the engine refuses it, or its folders cannot be used: says what to type.
pub fn serve_worker(options: WorkerOptions, stop: &WorkerStop) -> Result<(), String> {
    // Its environment has the values of secrets: no process of the same user may read it.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(|error| error.to_string())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(THREADS).build();
    let runtime = runtime.map_err(|error| format!("no event loop can be started: {error}"))?;
    let served = LocalSet::new().block_on(&runtime, async {
        tokio::select! {
            served = serve(options) => served,
            () = stop.0.notified() => Ok(()),
        }
    });
    // What Git is doing goes on to its end, and is done again.
    runtime.shutdown_background();
    served
}

async fn serve(options: WorkerOptions) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("a worker cannot use {}: {error}", options.home.root().display());
    let folder = options.home.root().join("worker").join(file_name(&options.pool));
    create_private(&folder, true).map_err(failed)?;
    let _lock = acquire_lock(&folder, &options.pool)?;
    let host = host_name().map_or_else(|| "unknown".to_owned(), |host| host.to_string());
    let id = format!("{host}-{}-{}", find_id(options.home.root()).map_err(failed)?, options.pool);
    // Each call says itself what it does where the engine does not answer.
    let client = Client::new(&options.engine, Duration::ZERO)?;
    let workspace = options.workspace.as_ref().map(|workspace| workspace.canonicalize());
    let workspace = workspace.transpose().map_err(|error| format!("the workspace cannot be used: {error}"))?;
    let reach = Reach::default();
    let objects = find_store(&client, &folder, &options, &reach).await?;
    let former = Record::list(&folder);
    let taken: BTreeSet<u32> =
        former.iter().filter_map(|(record, _)| record.place().and_then(|place| place.tree)).collect();
    let is_plain = |name: &OsString| !name.to_string_lossy().starts_with("GIT_");
    let credentials: Vec<(OsString, OsString)> = options
        .environment
        .iter()
        .filter(|(name, _)| is_plain(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let environment = credentials.iter().filter(|(name, _)| is_allowed(name)).cloned().collect();
    let trees = Arc::new(CloneWorktrees::new(folder.join("trees"), workspace, environment, credentials, &taken));
    let call_server = Rc::new(CallServer::new(options.engine.clone(), objects.clone(), &folder));
    let worker = Rc::new(Worker {
        options,
        client,
        objects,
        trees,
        gits: Semaphore::new(GITS),
        call_server,
        id,
        host,
        folder,
        processes: RefCell::default(),
        done: RefCell::default(),
        changed: Notify::new(),
        pushing: RefCell::default(),
        reach,
    });
    let living = former.iter().filter(|(record, _)| !record.is_closed()).count();
    if living > 0 {
        worker.options.notify(&format!("goes on with {} of a former worker", count_processes(living)));
    }
    for (record, offer) in former {
        match record.is_closed() {
            true => worker.done.borrow_mut().push((offer.of, None)),
            false => worker.begin(record, offer),
        }
    }
    worker.ask_for_ever().await
}

/// So many, in words.
fn count_processes(count: usize) -> String {
    if count == 1 { "1 process".to_owned() } else { format!("{count} processes") }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let left = self.processes.borrow().len();
        if left > 0 {
            let (left, pool) = (count_processes(left), &self.options.pool);
            self.options.notify(&format!("{left} of pool `{pool}` go on; a worker that starts soon takes them over"));
        }
    }
}

/// Has the folder of a pool for this worker alone: its shims listen to who holds this lock.
fn acquire_lock(folder: &Path, pool: &str) -> Result<Lock, String> {
    let locked = RunFolder { id: pool.to_owned(), path: folder.to_owned(), outputs: folder.to_owned() };
    Lock::acquire_lock(&locked).map_err(|error| match error {
        RunError::Busy { .. } => format!(
            "another worker of pool `{pool}` runs in this home: end it, give it more `--slots`, or set SWARM_HOME to another folder"
        ),
        error => error.to_string(),
    })
}

/// What a worker of this home is known by, whatever its pool.
fn find_id(home: &Path) -> std::io::Result<String> {
    let path = home.join("worker-id");
    let read = |path: &Path| {
        let id = fs::read_to_string(path).ok()?.trim().to_owned();
        (id.len() == 16 && id.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(id)
    };
    if let Some(id) = read(&path) {
        return Ok(id);
    }
    let mut random = [0; 8];
    std::io::Read::read_exact(&mut fs::File::open("/dev/urandom")?, &mut random)?;
    let id = format_hex(&random);
    let draft = home.join(format!("worker-id.{}", std::process::id()));
    fs::write(&draft, &id)?;
    // Of two that start at once, the first one decides; one that is damaged is replaced.
    let linked = fs::hard_link(&draft, &path);
    if linked.is_err() && read(&path).is_none() {
        fs::rename(&draft, &path)?;
        return Ok(id);
    }
    let _ = fs::remove_file(&draft);
    Ok(read(&path).unwrap_or(id))
}

/// The object store of the engine. A worker that starts again while the engine is away takes that of the former one: its
/// processes do not wait.
async fn find_store(client: &Client, folder: &Path, options: &WorkerOptions, reach: &Reach) -> Result<Objects, String> {
    let path = folder.join("store");
    loop {
        let began = Instant::now();
        match client.store_url().await {
            Ok(url) => {
                reach.answered(options, began);
                fs::write(&path, &url).map_err(|error| format!("{} cannot be written: {error}", path.display()))?;
                return Objects::open(&url);
            }
            Err(error @ CallError::Refused { .. }) => return Err(error.to_string()),
            Err(error) => {
                if let Ok(url) = fs::read_to_string(&path) {
                    return Objects::open(&url);
                }
                reach.failed(options, &error).await;
            }
        }
    }
}

/// How long what ends is gathered before the engine hears of it.
const GATHER: Duration = Duration::from_millis(3);

/// Whether nothing is called so: the services of the engine are not registered.
fn is_missing(error: &CallError) -> bool {
    matches!(error, CallError::Refused { status: 404, .. })
}

impl Worker {
    /// Asks for work, and does it.
    async fn ask_for_ever(self: &Rc<Worker>) -> Result<(), String> {
        let mut is_known = false;
        loop {
            let ask = self.build_ask();
            let told = ask.done.len();
            let began = Instant::now();
            let answer = tokio::select! {
                answer = self.client.deliveries(&ask) => answer,
                // The engine answers the later question.
                () = self.changed.notified() => {
                    // Processes that end within this time go into one question.
                    tokio::time::sleep(GATHER).await;
                    continue;
                }
            };
            match answer {
                Ok(deliveries) => {
                    self.reach.answered(&self.options, began);
                    is_known = true;
                    // Now the queue knows of their ends.
                    for (of, _) in self.done.borrow_mut().drain(..told) {
                        Record::new(&self.folder, &of).remove();
                    }
                    for delivery in deliveries {
                        self.take(delivery).await;
                    }
                }
                // Before the first answer a person is there to read it; an engine may be about to register.
                Err(error @ CallError::Refused { .. }) if !is_known && !is_missing(&error) => {
                    return Err(error.to_string());
                }
                Err(error) => self.reach.failed(&self.options, &error).await,
            }
        }
    }

    fn build_ask(&self) -> Ask {
        let processes = self.processes.borrow();
        let living = u32::try_from(processes.len()).unwrap_or(u32::MAX);
        let has = processes.iter().filter(|(_, process)| !process.is_dropped.get());
        let count = |process: &Process| process.lines.borrow().before + process.lines.borrow().count;
        Ask {
            pool: self.options.pool.clone(),
            worker: self.id.clone(),
            free: self.options.slots.saturating_sub(living),
            has: has.map(|(of, process)| (of.clone(), count(process))).collect(),
            done: self.done.borrow().clone(),
        }
    }

    async fn take(self: &Rc<Worker>, delivery: Delivery) {
        match delivery {
            Delivery::Start(offer) => {
                let is_done = self.done.borrow().iter().any(|(of, _)| *of == offer.of);
                if is_done || self.processes.borrow().contains_key(&offer.of) {
                    return;
                }
                let record = Record::new(&self.folder, &offer.of);
                match record.create(&offer) {
                    Ok(()) => self.begin(record, offer),
                    Err(problem) => self.done.borrow_mut().push((offer.of, Some(problem))),
                }
            }
            Delivery::Say(say) => {
                let process = self.processes.borrow().get(&say.of).cloned();
                let Some(process) = process.filter(|process| !process.is_dropped.get()) else { return };
                let added = process.record.add_lines(&mut process.lines.borrow_mut(), say.from, say.lines);
                match added {
                    Ok(()) => process.wake.notify_one(),
                    Err(problem) => {
                        self.options.notify(&problem);
                        // The engine says it again.
                        tokio::time::sleep(LONGEST_PAUSE).await;
                    }
                }
            }
            Delivery::End(of) => self.drop_process(&of),
        }
    }

    fn begin(self: &Rc<Worker>, record: Record, offer: QueuedStart) {
        let process = Rc::new(Process::new(offer.of.clone(), record));
        self.processes.borrow_mut().insert(offer.of.clone(), Rc::clone(&process));
        tokio::task::spawn_local(process.carry(Rc::clone(self), offer));
    }

    /// The engine wants nothing more of a process: it is ended, and its place is free then.
    fn drop_process(&self, of: &Started) {
        let process = self.processes.borrow().get(of).cloned();
        let Some(process) = process.filter(|process| !process.is_dropped.replace(true)) else { return };
        // At once: until it has ended the engine would say so again and again.
        self.done.borrow_mut().push((of.clone(), None));
        process.wake.notify_one();
        self.changed.notify_one();
    }
}
