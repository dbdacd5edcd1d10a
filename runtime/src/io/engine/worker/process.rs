//! One process of a worker: from its offer to the moment at which the engine knows its end.
//!
//! ```text
//!  offer ─► files ─► shim ─► reports … ─► end, changes ─► engine has all ─► gone
//!     └── refused: another worker may have it
//! ```
//!
//! A worker that starts again goes on at the same place: see `record`.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::Worker;
use super::call_server::Addresses;
use super::launch::{build_environment, check_program, find_directory, find_secret};
use super::record::{Lines, Place, Record, Reported};
use crate::io::home::create_private;
use crate::io::shim::{HeldCommand, Relay, Said, describe_refusal, find_relay, read_line};
use crate::types::engine::{Order, Patch, QueuedStart, Report, ReportEvent, Started, Variable};

/// The reports of a process that wait for the engine, beyond which nothing more is read of it.
const ROOM: usize = 8;

/// How much longer than a driver lets it a process may live, and put out nothing: no driver may be there.
const MARGIN: Duration = Duration::from_secs(10);

/// A process that this worker has.
#[derive(Debug)]
pub(super) struct Process {
    pub of: Started,
    pub record: Record,
    pub lines: RefCell<Lines>,
    pub reports: RefCell<Reports>,
    /// Whether the engine wants nothing more of it.
    pub is_dropped: Cell<bool>,
    /// Wakes its task: lines or room are there, or it is dropped.
    pub wake: Notify,
}

/// What there is to report of a process.
#[derive(Debug, Default)]
pub(super) struct Reports {
    /// What the engine has not acknowledged, each with the bytes of both streams that are reported with it.
    pub waiting: VecDeque<(Report, [u64; 2])>,
    /// The number of the last report.
    pub number: u64,
    /// What is written of it.
    pub written: Reported,
    /// Whether one of them says that it lives.
    pub lives: bool,
}

/// Why a process is not carried out.
enum Stopped {
    /// The engine wants nothing more of it.
    Dropped,
    /// It cannot be started here.
    Refused(String),
}

impl Process {
    /// One that was offered, or that a former worker had.
    pub(super) fn new(of: Started, record: Record) -> Process {
        let written = record.reported();
        let first = written.pending.iter();
        let waiting = first.map(|report| (report.clone(), written.read)).collect();
        let reports = Reports { waiting, number: written.number, lives: written.lives, written };
        Process {
            of,
            lines: RefCell::new(record.lines()),
            record,
            reports: RefCell::new(reports),
            is_dropped: Cell::new(false),
            wake: Notify::new(),
        }
    }

    /// Carries it out to its end, and forgets it.
    pub(super) async fn carry(self: Rc<Process>, worker: Rc<Worker>, offer: QueuedStart) {
        let outcome = self.carry_out(&worker, offer).await;
        if let Some(number) = self.record.place().and_then(|place| place.tree) {
            worker.trees.release(number);
        }
        match &outcome {
            // Until the queue knows of its end, it would be given to a worker that forgets it.
            Ok(()) => self.record.close(),
            Err(_) => self.record.remove(),
        }
        worker.call_server.forget(&self.of);
        worker.processes.borrow_mut().remove(&self.of);
        match outcome {
            // That was told when it was dropped.
            Err(Stopped::Dropped) => {}
            Err(Stopped::Refused(why)) => worker.done.borrow_mut().push((self.of.clone(), Some(why))),
            Ok(()) => worker.done.borrow_mut().push((self.of.clone(), None)),
        }
        worker.changed.notify_one();
    }

    async fn carry_out(&self, worker: &Rc<Worker>, offer: QueuedStart) -> Result<(), Stopped> {
        let ends = |(report, _): &(Report, [u64; 2])| matches!(report.fact, ReportEvent::Ended { .. });
        if !self.reports.borrow().waiting.iter().any(ends) {
            let order = match worker.objects.unpack(offer.order).await {
                Ok(order) => serde_json::from_slice::<Order>(&order).map_err(|error| error.to_string()),
                Err(problem) => Err(problem),
            };
            let order = order.map_err(|problem| Stopped::Refused(format!("its order cannot be read: {problem}")))?;
            let addresses = worker.call_server.admit(&self.of, &order).map_err(Stopped::Refused)?;
            let order = localize_order(order, &addresses);
            let relay = self.find_or_start(worker, &order).await?;
            self.follow(worker, (&order, &addresses), relay).await?;
        }
        worker.report(&self.of);
        while !self.reports.borrow().waiting.is_empty() {
            self.check()?;
            self.wake.notified().await;
        }
        self.check()
    }

    fn check(&self) -> Result<(), Stopped> {
        if self.is_dropped.get() { Err(Stopped::Dropped) } else { Ok(()) }
    }

    /// The shim that a former worker has started, or a new one.
    async fn find_or_start(&self, worker: &Rc<Worker>, order: &Order) -> Result<Relay, Stopped> {
        let behind = self.reports.borrow().written.read;
        let own = &worker.options.environment;
        let environment = build_environment(order, own).map_err(Stopped::Refused);
        if let Some(relay) = find_relay(&self.record.shim(), behind) {
            return Ok(relay);
        }
        let environment = environment?;
        check_program(order, &environment, None).map_err(Stopped::Refused)?;
        let place = match self.record.place() {
            // Its former worker was killed before it was started, and has made its files.
            Some(place) if place.directory.is_dir() => place,
            _ => self.make_files(worker, order).await.map_err(Stopped::Refused)?,
        };
        check_program(order, &environment, Some(&place.directory)).map_err(Stopped::Refused)?;
        self.check()?;
        let stdin = match &order.stdin {
            Some(stdin) => Some(worker.objects.unpack(stdin.clone()).await.map_err(Stopped::Refused)?),
            None => None,
        };
        let command = HeldCommand {
            argv: order.argv.iter().map(Into::into).collect(),
            environment,
            directory: place.directory,
            stdin,
            talks: order.talks,
            timeout_ms: order.timeout_ms,
            idle_ms: order.idle_ms,
            orphan_ms: order.orphan_ms,
            install: order.install.clone(),
        };
        Relay::start(&self.record.shim(), &worker.folder, command).await.map_err(Stopped::Refused)
    }

    /// Makes its files.
    async fn make_files(&self, worker: &Rc<Worker>, order: &Order) -> Result<Place, String> {
        let (tree, base, files) = if order.files.commit.is_some() {
            let (trees, files, objects) = (worker.trees.clone(), order.files.clone(), worker.objects.clone());
            let handle = tokio::runtime::Handle::current();
            let _git = worker.gits.acquire().await.map_err(|error| error.to_string())?;
            let made =
                tokio::task::spawn_blocking(move || trees.make(&files, &|digest| handle.block_on(objects.get(digest))));
            let tree = made.await.map_err(|error| error.to_string())??;
            (Some(tree.number), Some(tree.base), tree.path)
        } else {
            let folder = self.record.empty_folder();
            create_private(&folder, true).map_err(|error| error.to_string())?;
            (None, None, folder)
        };
        let place = find_directory(&files, &order.directory).and_then(|directory| {
            let place = Place { tree, base, directory };
            self.record.write_place(&place).map(|()| place)
        });
        if let (Err(_), Some(number)) = (&place, tree) {
            worker.trees.release(number);
        }
        place
    }

    /// Reports what the process does, until it has ended and everything of it is on its way.
    async fn follow(
        &self,
        worker: &Rc<Worker>,
        (order, addresses): (&Order, &Addresses),
        mut relay: Relay,
    ) -> Result<(), Stopped> {
        let followed = self.follow_to_end(worker, (order, addresses), &mut relay).await;
        let ended = match followed {
            Ok(line) => line,
            Err(Stopped::Refused(why)) => {
                // It was started: that is an end, and no refusal.
                relay.stop().await;
                describe_refusal(&why)
            }
            Err(Stopped::Dropped) => {
                relay.stop().await;
                tokio::task::spawn_local(relay.reap());
                return Err(Stopped::Dropped);
            }
        };
        let read = relay.read();
        tokio::task::spawn_local(relay.reap());
        let (line, patch) = match self.keep_changes(worker, order).await {
            Ok(patch) => (ended, patch),
            Err(problem) => (describe_refusal(&problem), None),
        };
        self.add(ReportEvent::Ended { line, patch }, read);
        Ok(())
    }

    /// The line that says how it has ended. All that comes before is reported then.
    async fn follow_to_end(
        &self,
        worker: &Rc<Worker>,
        (order, addresses): (&Order, &Addresses),
        relay: &mut Relay,
    ) -> Result<String, Stopped> {
        let cut = |error: std::io::Error| Stopped::Refused(format!("its output cannot be read: {error}"));
        let has_former = relay.is_found();
        let mut ended = None;
        // What the shim has of the lines that are passed on now.
        let (mut known, mut passed) = (None, 0);
        let (mut deadline, mut idle) = (None, None);
        let later =
            |now: Instant, ms: Option<u64>| ms.and_then(|ms| now.checked_add(Duration::from_millis(ms) + MARGIN));
        loop {
            self.check()?;
            if known.is_none() {
                let before = self.lines.borrow().bytes_before;
                known = match has_former {
                    true => relay.told_before().map(|told| told.saturating_sub(before)),
                    false => Some(0),
                };
            }
            if let (Some(known), None) = (&mut known, &ended) {
                self.pass_lines((worker, addresses), relay, known, &mut passed).await?;
            }
            let mut has_new = false;
            while self.has_room() {
                let Some((stream, bytes)) = relay.read_piece().map_err(cut)? else { break };
                let bytes = match bytes.is_empty() {
                    true => continue,
                    false => worker.objects.pack(bytes).await.map_err(Stopped::Refused)?,
                };
                self.add(ReportEvent::Output { stream, bytes }, relay.read());
                worker.report(&self.of);
                has_new = true;
            }
            if has_new {
                idle = later(Instant::now(), order.idle_ms.filter(|_| !order.talks));
            }
            if let Some(line) = ended.take() {
                if self.has_room() {
                    return Ok(line);
                }
                ended = Some(line);
            }
            let due = [deadline, idle].into_iter().flatten().min();
            let waits = async {
                match due {
                    Some(due) => sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                said = relay.next(), if ended.is_none() => match said {
                    Said::Lives(line, age) => {
                        let now = Instant::now();
                        let age = Duration::from_millis(age);
                        deadline = later(now, order.timeout_ms).map(|due| due.checked_sub(age).unwrap_or(now));
                        idle = later(now, order.idle_ms.filter(|_| !order.talks));
                        // A driver that knows it already takes no second one for a start.
                        if !std::mem::replace(&mut self.reports.borrow_mut().lives, true) {
                            self.add(ReportEvent::Lives { host: worker.host.clone(), line }, relay.read());
                        }
                    }
                    Said::Came => {}
                    Said::Line(line) => self.add(ReportEvent::Line(line), relay.read()),
                    Said::Ended(line) => ended = Some(line),
                },
                () = self.wake.notified() => {}
                () = waits, if ended.is_none() => {
                    relay.end_for_time(deadline.is_none_or(|deadline| Some(deadline) != due));
                    (deadline, idle) = (None, None);
                }
            }
            worker.report(&self.of);
        }
    }

    /// Passes on the lines that came; the shim has the first `known` bytes of what they hold for the program.
    async fn pass_lines(
        &self,
        (worker, addresses): (&Rc<Worker>, &Addresses),
        relay: &mut Relay,
        known: &mut u64,
        passed: &mut u64,
    ) -> Result<(), Stopped> {
        loop {
            let next = self.lines.borrow_mut().waiting.pop_front();
            let Some(line) = next else { break };
            let line = worker.objects.unpack(line).await;
            let line =
                line.map_err(|problem| Stopped::Refused(format!("what it is to hear cannot be read: {problem}")))?;
            let Some((line, bytes)) = read_line(&addresses.localize_line(line)) else { continue };
            *passed += bytes;
            match bytes > 0 && bytes <= *known {
                true => *known -= bytes,
                false => relay.send(&line),
            }
        }
        if relay.has_sent() {
            *passed = self.record.drop_lines(&mut self.lines.borrow_mut(), *passed);
        }
        Ok(())
    }

    fn has_room(&self) -> bool {
        self.reports.borrow().waiting.len() < ROOM
    }

    /// Adds a report, after which so many bytes of both streams are reported.
    fn add(&self, fact: ReportEvent, read: [u64; 2]) {
        let mut reports = self.reports.borrow_mut();
        reports.number += 1;
        let report = Report { of: self.of.clone(), number: reports.number, fact };
        reports.waiting.push_back((report, read));
    }

    /// What it changed, in the object store.
    ///
    /// # Errors
    /// It cannot be kept: says why.
    async fn keep_changes(&self, worker: &Rc<Worker>, order: &Order) -> Result<Option<Patch>, String> {
        let place = self.record.place().filter(|_| order.keeps_changes);
        let Some((number, base)) = place.and_then(|place| place.tree.zip(place.base)) else { return Ok(None) };
        let trees = worker.trees.clone();
        let git = worker.gits.acquire().await.map_err(|error| error.to_string())?;
        let found = tokio::task::spawn_blocking(move || trees.find_changes(number, &base));
        let found = found.await.map_err(|error| error.to_string())?;
        drop(git);
        let found = found.map_err(|problem| format!("what it changed cannot be kept: {problem}"))?;
        let Some(changes) = found else { return Ok(None) };
        if let Some(name) = find_secret(order, &worker.options.environment, &changes.patch) {
            return Err(format!(
                "it wrote the value of the secret variable `{name}` into a file: nothing that it changed is kept"
            ));
        }
        let digest = worker.objects.put(&changes.patch).await?;
        Ok(Some(Patch { digest, paths: changes.paths }))
    }
}

/// An order with the addresses of this machine.
fn localize_order(order: Order, addresses: &Addresses) -> Order {
    let argv = order.argv.iter().map(|word| addresses.localize(word)).collect();
    let environment = order.environment.into_iter().map(|(name, variable)| match variable {
        Variable::Set(value) => (name, Variable::Set(addresses.localize(&value))),
        variable => (name, variable),
    });
    Order { argv, environment: environment.collect(), ..order }
}
