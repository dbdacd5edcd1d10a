//! Runs of an engine as runs of this machine: with a folder, a lock and a socket, so that everything that reads runs and
//! orders them about does so with these.
//!
//! Invariant: one process copies a run; others on this machine read the copy, and reach the run through its socket.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;

use super::{CallError, Client, Copied, Objects, copy_new};
use crate::io::control::Control;
use crate::io::home::{Home, Lock, RunFolder};
use crate::io::input::{Input, Inputs};
use crate::io::process::Poller;
use crate::io::reactor::Reactor;
use crate::io::socket::Socket;
use crate::io::socket_peer::Processes;
use crate::types::activity::Activities;
use crate::types::engine::UserOrder;
use crate::types::user_request::StopLevel;

/// How often the engine is asked for what is new.
pub(crate) const PAUSE: Duration = Duration::from_millis(250);

/// How long a person waits for an engine that does not answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// The runs whose copies are looked at at once: the newest.
const MOST: usize = 200;

/// What a copy is from.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Source {
    url: String,
    copied: Copied,
}

/// An engine, as this machine reaches it.
#[derive(Clone, Debug)]
pub struct Engine {
    pub(crate) client: Client,
    pub(crate) objects: Objects,
    reactor: Arc<Reactor>,
    /// The orders of people that are on their way.
    orders: Arc<AtomicUsize>,
}

impl Engine {
    /// The engine at `url`; its object store is `store`, or where the engine says that it is.
    ///
    /// # Errors
    /// It does not answer, or one of both is no address.
    pub fn connect(url: &str, store: Option<&str>) -> Result<Engine, String> {
        let client = Client::new(url, PATIENCE)?;
        let reactor = Arc::new(Reactor::default());
        let store = match store {
            Some(store) => store.to_owned(),
            None => reactor.wait(client.store_url())?.map_err(|error| error.to_string())?,
        };
        Ok(Engine { client, objects: Objects::open(&store)?, reactor, orders: Arc::default() })
    }

    /// Where its tasks run.
    pub(crate) fn handle(&self) -> Result<&Handle, String> {
        self.reactor.handle()
    }
}

/// The copy of a run, by the process that makes it.
pub(crate) struct LocalRun {
    engine: Engine,
    pub(crate) folder: RunFolder,
    copied: Copied,
    /// The files that grew since this was taken last.
    pub(crate) changed: Vec<PathBuf>,
    /// What ends with the copying, in this order.
    _socket: Socket,
    _lock: Lock,
}

impl LocalRun {
    /// The copy of a run; none where another process makes it, or it is whole.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub(crate) fn open(engine: &Engine, home: &Home, run: &str, control: Control) -> Result<Option<LocalRun>, String> {
        let failed = |error: crate::types::error::RunError| error.to_string();
        let folder = home.create_named(run).map_err(failed)?;
        let Ok(lock) = Lock::acquire_lock(&folder) else { return Ok(None) };
        let known = std::fs::read(folder.engine_path()).ok();
        let known = known.and_then(|text| serde_json::from_slice::<Source>(&text).ok());
        let copied = known.map(|source| source.copied).unwrap_or_default();
        let socket = Socket::listen(&folder, control, Activities::default(), Processes::new(run)).map_err(failed)?;
        Ok(Some(LocalRun { engine: engine.clone(), folder, copied, changed: Vec::new(), _socket: socket, _lock: lock }))
    }

    /// Whether a copy of the run is whole already.
    fn is_whole(home: &Home, run: &str) -> bool {
        let text = std::fs::read(home.run_folder(run.to_owned()).engine_path()).ok();
        text.and_then(|text| serde_json::from_slice::<Source>(&text).ok()).is_some_and(|source| source.copied.is_over)
    }

    /// Copies what is new; whether the run has ended, and all of it is here.
    ///
    /// # Errors
    /// The engine does not answer, or the folder cannot be written.
    pub(crate) async fn copy(&mut self) -> Result<bool, String> {
        let before = self.copied;
        let Engine { client, objects, .. } = &self.engine;
        let outcome = copy_new(client, objects, &self.folder, &mut self.copied, &mut self.changed).await;
        if self.copied != before {
            let source = Source { url: self.engine.client.url().to_owned(), copied: self.copied };
            let text = serde_json::to_string(&source).map_err(|error| error.to_string())?;
            let path: PathBuf = self.folder.engine_path();
            std::fs::write(&path, text).map_err(|error| format!("{} cannot be written: {error}", path.display()))?;
        }
        outcome.map(|()| self.copied.is_over)
    }
}

/// What people want of a run, passed on to its driver: while it lives, `control` is answered by that.
/// What is returned becomes true once a stop could not be passed on.
pub(crate) fn pass_orders_on(engine: &Engine, run: &str, control: &Control) -> Result<Arc<AtomicBool>, String> {
    let poller = Poller::new().map_err(|error| error.to_string())?;
    let (inputs, receiver) = Inputs::new(poller.inbox());
    control.attach(inputs);
    let (client, run, handle) = (engine.client.clone(), run.to_owned(), engine.handle()?.clone());
    let is_in_vain = Arc::new(AtomicBool::new(false));
    let tell = Arc::clone(&is_in_vain);
    let orders = Arc::clone(&engine.orders);
    let pass = move || pass_all(&client, &run, &receiver, &handle, (&tell, &orders));
    std::thread::Builder::new().name("orders".to_owned()).spawn(pass).map_err(|error| error.to_string())?;
    Ok(is_in_vain)
}

fn pass_all(
    client: &Client,
    run: &str,
    receiver: &Receiver<Input>,
    handle: &Handle,
    (is_in_vain, orders): (&AtomicBool, &AtomicUsize),
) {
    let order = |order: UserOrder| match handle.block_on(client.order(run, &order)) {
        Ok(answer) => answer,
        Err(CallError::Refused { message, .. }) => Err(message),
        Err(error) => Err(error.to_string()),
    };
    while let Ok(input) = receiver.recv() {
        orders.fetch_add(1, Ordering::AcqRel);
        match input {
            // Where it does not arrive, the run goes on, as the person sees.
            Input::Stop(level) => {
                let answer = order(UserOrder::Stop(level == StopLevel::Kill));
                is_in_vain.fetch_or(answer.is_err(), Ordering::Relaxed);
            }
            Input::Answer(answer, reply) => drop(reply.send(order(UserOrder::Answer(answer)))),
            Input::Message(message, reply) => drop(reply.send(order(UserOrder::Message(message)))),
            _ => {}
        }
        orders.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Copies the runs of an engine into a home, until it is dropped.
#[derive(Debug)]
pub struct Mirror {
    stop: tokio::task::AbortHandle,
    orders: Arc<AtomicUsize>,
}

impl Drop for Mirror {
    fn drop(&mut self) {
        // An order that was given last may still be on its way: nothing waits for the answer to a stop.
        let until = Instant::now() + PATIENCE;
        std::thread::sleep(Duration::from_millis(20));
        while self.orders.load(Ordering::Acquire) > 0 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.stop.abort();
    }
}

impl Mirror {
    /// Copies what there is, then what follows in the background.
    ///
    /// # Errors
    /// The engine does not answer, or the home cannot be written.
    pub fn start(engine: &Engine, home: &Home) -> Result<Mirror, String> {
        let handle = engine.handle()?.clone();
        let open: Arc<Mutex<Vec<LocalRun>>> = Arc::default();
        handle.block_on(copy_runs(engine, home, &open))?;
        let (engine, home, orders) = (engine.clone(), home.clone(), Arc::clone(&engine.orders));
        let task = handle.spawn(async move {
            loop {
                tokio::time::sleep(PAUSE).await;
                // What fails now may succeed later: the engine may be away for a while.
                let _ = copy_runs(&engine, &home, &open).await;
            }
        });
        Ok(Mirror { stop: task.abort_handle(), orders })
    }
}

async fn copy_runs(engine: &Engine, home: &Home, open: &Arc<Mutex<Vec<LocalRun>>>) -> Result<(), String> {
    let runs = engine.client.runs().await.map_err(|error| error.to_string())?;
    let mut copies = std::mem::take(&mut *open.lock().unwrap_or_else(PoisonError::into_inner));
    for run in runs.iter().rev().take(MOST) {
        if copies.iter().any(|copy| copy.folder.id == *run) || LocalRun::is_whole(home, run) {
            continue;
        }
        let control = Control::new();
        if let Some(copy) = LocalRun::open(engine, home, run, control.clone())? {
            pass_orders_on(engine, run, &control)?;
            copies.push(copy);
        }
    }
    let mut rest = Vec::new();
    let mut problem = None;
    for mut copy in copies {
        let copied = copy.copy().await;
        copy.changed.clear();
        match copied {
            Ok(true) => {}
            Ok(false) => rest.push(copy),
            Err(error) => {
                problem = Some(error);
                rest.push(copy);
            }
        }
    }
    *open.lock().unwrap_or_else(PoisonError::into_inner) = rest;
    problem.map_or(Ok(()), Err)
}
