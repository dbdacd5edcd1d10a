//! The threads that take the turns of a driver: the run's own, and those that carry attempts out beside it.
//!
//! The thread whose attempt has ended takes a turn itself, and begins what follows: to wake another thread would take as long
//! as the turn. The driver is behind a lock: one thread has it at a time. Invariant: an input that has come is taken by the
//! thread that has the driver, or by the next one that gets it. Who finds the driver taken goes on with its attempts.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, Scope};
use std::time::Instant;

use super::driver::Driver;
use super::{FirstRecord, Inputs};
use crate::io::children::sweep_orphans;
use crate::io::executor::{Carrier, Jobs};
use crate::io::process::Poller;

/// The stack of a thread that takes turns: as much as the first thread of a process usually has. What is never touched takes
/// no memory.
const STACK: usize = 8 * 1024 * 1024;

/// Has `driver` record `first`, and go on until the run has ended, was stopped, or cannot go on. `jobs` are those of its pool;
/// this thread waits by `poller`.
///
/// # Panics
/// Where a turn panicked, also on another thread. The attempts of the others go on: the runner that resumes the run ends
/// them.
pub(super) fn run_driver<'a>(driver: Driver<'a>, jobs: Arc<Jobs>, first: FirstRecord, poller: &Poller) -> Driver<'a> {
    let (inputs, is_real) = (driver.services.inputs.clone(), driver.world.is_real());
    let threads = Threads { driver: Mutex::new(driver), inputs, jobs, is_real };
    std::thread::scope(|scope| threads.run_own(scope, first, poller));
    threads.driver.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// What the threads share.
struct Threads<'a> {
    driver: Mutex<Driver<'a>>,
    inputs: Inputs,
    jobs: Arc<Jobs>,
    /// Whether each thread takes turns. Elsewhere the run's own takes all of them, and carries nothing out.
    is_real: bool,
}

impl<'a> Threads<'a> {
    /// What the run's own thread does.
    fn run_own<'s>(&'s self, scope: &'s Scope<'s, '_>, first: FirstRecord, poller: &Poller) {
        let _abandoning = AbandonOnPanic(self);
        let mut carrier = Carrier::new(Arc::clone(&self.jobs), poller);
        let mut driver = self.lock();
        driver.begin(first);
        match self.is_real {
            // What the first turn did not decide.
            true => self.take_turns(scope, &mut driver, &carrier),
            false => self.start_carriers(scope, &mut driver, None),
        }
        while !driver.is_over() {
            if self.is_real {
                driver = self.wait(driver, &mut carrier);
                self.take_turns(scope, &mut driver, &carrier);
            } else {
                driver.go_on();
                self.start_carriers(scope, &mut driver, None);
            }
        }
        driver.end();
    }

    /// Carries attempts out until there is something to do with the driver.
    fn wait<'s>(
        &'s self,
        mut driver: MutexGuard<'s, Driver<'a>>,
        carrier: &mut Carrier<'_>,
    ) -> MutexGuard<'s, Driver<'a>> {
        let due = driver.queue.begin_wait();
        drop(driver);
        // The attempts have their turn also where one input follows another.
        let mut latest = Some(Instant::now()).filter(|_| self.inputs.have_come());
        loop {
            latest = latest.or_else(|| [due, sweep_orphans()].into_iter().flatten().min());
            let is_open = carrier.run_once(latest.take());
            if !is_open || due.is_some_and(|due| due <= Instant::now()) {
                return self.lock();
            }
            if self.inputs.have_come()
                && let Ok(driver) = self.driver.try_lock()
            {
                return driver;
            }
        }
    }

    /// What a thread does that carries attempts out beside the run's own.
    fn carry<'s>(&'s self, scope: &'s Scope<'s, '_>, poller: &Poller) {
        let _abandoning = AbandonOnPanic(self);
        let mut carrier = Carrier::new(Arc::clone(&self.jobs), poller);
        while carrier.run_once(None) {
            if self.is_real {
                self.take_over(scope, &carrier);
            }
        }
        if self.jobs.are_abandoned() {
            // What runs goes on: nothing is to be done about it, not even what ends a future.
            std::mem::forget(carrier);
        }
    }

    /// Takes what has come, where no other thread does.
    fn take_over<'s>(&'s self, scope: &'s Scope<'s, '_>, carrier: &Carrier<'_>) {
        // Again after each time: who has put something in meanwhile found the driver taken.
        while self.inputs.have_come() {
            let Ok(mut driver) = self.driver.try_lock() else { return };
            self.take_turns(scope, &mut driver, carrier);
            let needs_own = driver.is_over() || driver.queue.waits_too_long();
            // Ahead of the call: the run's own thread does not wait for the driver.
            drop(driver);
            if needs_own {
                return self.inputs.wake();
            }
        }
    }

    /// Takes turns until there is nothing to do, and has the jobs of all of them begin.
    fn take_turns<'s>(&'s self, scope: &'s Scope<'s, '_>, driver: &mut Driver<'a>, carrier: &Carrier<'_>) {
        while driver.take_turn() {}
        self.start_carriers(scope, driver, Some(carrier));
    }

    /// Has threads begin the jobs of the last turns: `carrier` is that of this thread, where all threads take turns.
    fn start_carriers<'s>(&'s self, scope: &'s Scope<'s, '_>, driver: &mut Driver<'a>, carrier: Option<&Carrier<'_>>) {
        let Some(pool) = driver.attempts.pool() else { return };
        for _ in 0..pool.wake_carriers(carrier) {
            let thread = Builder::new().name("attempt".to_owned()).stack_size(STACK);
            let started =
                Poller::new().and_then(|poller| thread.spawn_scoped(scope, move || self.carry(scope, &poller)));
            if started.is_err() {
                pool.lose_carrier(carrier);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Driver<'a>> {
        assert!(!self.jobs.are_abandoned(), "another thread of the run panicked");
        self.driver.lock().expect("no turn has failed")
    }
}

/// Ends the threads where one of them panics.
struct AbandonOnPanic<'t, 'a>(&'t Threads<'a>);

impl Drop for AbandonOnPanic<'_, '_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.jobs.abandon();
            self.0.inputs.wake();
        }
    }
}
