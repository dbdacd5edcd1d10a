//! The threads that carry attempts out: as many as attempts run at once, kept for the next ones.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use super::attempt::{Ended, carry_out};
use super::process::Means;
use super::{Job, Role, Scribe, Viewer};
use crate::artifact::Watches;
use crate::control::Wish;
use crate::error::RunError;
use crate::event::{Content, Failure, INLINE};
use crate::home::{Layout, RunFolder};
use crate::journal::Durability;
use crate::llm::Models;
use crate::pulse::Pulses;
use crate::reactor::Reactor;
use crate::recording::Source;
use crate::run::Input;
use crate::tools::Toolbox;

/// A thread only polls and copies; its buffers are on the heap.
pub(crate) const STACK: usize = 512 * 1024;

/// What every thread needs of the run.
#[derive(Debug)]
pub(crate) struct Services {
    pub folder: RunFolder,
    pub layout: Layout,
    pub viewer: Viewer,
    pub scribe: Scribe,
    pub durability: Arc<Durability>,
    /// Who answers.
    pub source: Source,
    /// The turns whose trees are watched.
    pub watches: Watches,
    /// The models that it may be.
    pub models: Arc<Models>,
    pub reactor: Arc<Reactor>,
    /// What goes on in the attempts.
    pub pulses: Pulses,
    /// The tools that models may be lent.
    pub tools: Arc<Toolbox>,
    pub inputs: Sender<Input>,
    /// Whether it was told already that there is no room for as many processes as should run at once.
    pub is_crowded: AtomicBool,
}

impl Services {
    /// Tells the loop something.
    pub(super) fn report(&self, input: Input) {
        // The loop outlives every attempt.
        let _ = self.inputs.send(input);
    }
}

/// The threads. Dropping the pool waits for them; every job must have ended or been cancelled by then.
#[derive(Debug)]
pub(crate) struct Pool {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    /// The threads at most: as many attempts as run at once.
    limit: usize,
}

#[derive(Debug)]
struct Shared {
    services: Services,
    queue: Mutex<Queue>,
    work: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    jobs: VecDeque<Job>,
    idle: usize,
    closed: bool,
}

impl Pool {
    /// A pool without a thread yet, and never with more than `limit`.
    pub(crate) fn new(services: Services, limit: u32) -> Pool {
        let shared = Shared { services, queue: Mutex::default(), work: Condvar::new() };
        Pool { shared: Arc::new(shared), threads: Vec::new(), limit: limit.max(1) as usize }
    }

    /// Has `job` carried out. Its end comes as [`Input::Ended`].
    pub(crate) fn submit(&mut self, job: Job) {
        let mut queue = self.shared.lock();
        queue.jobs.push_back(job);
        let too_few = queue.jobs.len() > queue.idle && self.threads.len() < self.limit;
        drop(queue);
        if too_few && self.grow().is_err() && self.threads.is_empty() {
            // With other threads the job only waits for one of them.
            self.refuse();
        }
        self.shared.work.notify_one();
    }

    fn grow(&mut self) -> std::io::Result<()> {
        let shared = Arc::clone(&self.shared);
        let means = Means::new()?;
        let thread = std::thread::Builder::new()
            .name("attempt".to_owned())
            .stack_size(STACK)
            .spawn(move || work(&shared, means))?;
        self.threads.push(thread);
        Ok(())
    }

    fn refuse(&self) {
        let jobs: Vec<Job> = self.shared.lock().jobs.drain(..).collect();
        // That is no failure of theirs.
        let reason = "the system has no room for one more thread".to_owned();
        self.shared.services.report(Input::Broken(reason));
        for job in jobs {
            let ended = Ended::failed(Failure::Cancelled);
            self.shared.services.report(Input::Ended {
                step: job.step,
                attempt: job.attempt,
                outcome: Box::new(ended.outcome),
            });
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.work.notify_all();
        if std::thread::panicking() {
            // Attempts go on that nobody has cancelled: whoever resumes the run ends them.
            return;
        }
        for thread in self.threads.drain(..) {
            // A thread that panicked has reported so by the panic itself.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self) -> Option<Job> {
        let mut queue = self.lock();
        loop {
            if let Some(job) = queue.jobs.pop_front() {
                return Some(job);
            }
            if queue.closed {
                return None;
            }
            queue.idle += 1;
            queue = self.work.wait(queue).unwrap_or_else(PoisonError::into_inner);
            queue.idle -= 1;
        }
    }
}

fn work(shared: &Shared, mut means: Means) {
    let services = &shared.services;
    while let Some(mut job) = shared.next() {
        if let Err(error) = services.durability.wait(job.after) {
            services.report(Input::Broken(format!("the journal cannot be made durable: {error}")));
            let outcome = Box::new(Ended::failed(Failure::Cancelled).outcome);
            services.report(Input::Ended { step: job.step, attempt: job.attempt, outcome });
            continue;
        }
        let done = survived(|| {
            let ended = match enter(&mut job) {
                Ok(()) => carry_out(&job, &mut means, services)?,
                Err(failure) => Ended::failed(failure),
            };
            // What printed nothing has no files to wait for.
            let quiet = ended.captured.is_none() && !ended.logs && ended.outcome.artifacts.is_empty();
            Ok((store(&job, ended, services)?, quiet))
        });
        let (outcome, quiet) = match done {
            Ok(Ok(done)) => done,
            Ok(Err(RunError::Diverged(divergence))) => {
                services.report(Input::Diverged { step: job.step, attempt: job.attempt, divergence });
                continue;
            }
            Ok(Err(error)) => {
                services.report(Input::Broken(error.to_string()));
                (Ended::failed(Failure::Cancelled).outcome, false)
            }
            Err(panic) => {
                let label = job.step.label();
                services.report(Input::Broken(format!("swarmc itself failed in an attempt of `{label}`: {panic}")));
                // What it left half done must not reach the next attempt.
                if let Ok(fresh) = Means::new() {
                    means = fresh;
                }
                (Ended::failed(Failure::Cancelled).outcome, false)
            }
        };
        let inputs = services.inputs.clone();
        let ended = Input::Ended { step: job.step, attempt: job.attempt, outcome: Box::new(outcome) };
        // The loop outlives every attempt.
        let report = move || _ = inputs.send(ended);
        if quiet { report() } else { services.scribe.then(report) }
    }
}

/// Does `work`, and says in what words it panicked where it did: an attempt whose end nobody hears of is waited for for ever.
fn survived<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let words =
            panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        words.unwrap_or("it does not say why").lines().next().unwrap_or_default().to_owned()
    })
}

/// Goes to the working tree that the job runs in, and makes it where it is not there yet.
fn enter(job: &mut Job) -> Result<(), Failure> {
    let Some(tree) = &job.tree else { return Ok(()) };
    job.directory = tree.enter(&job.cancel).map_err(|message| match job.cancel.asked() {
        Some(_) => Failure::Cancelled,
        None => Failure::Spawn { message },
    })?;
    Ok(())
}

/// Puts what the attempt put out where it belongs.
fn store(job: &Job, ended: Ended, services: &Services) -> Result<crate::event::Outcome, RunError> {
    let Ended { mut outcome, output, captured, .. } = ended;
    if outcome.failure == Some(Failure::Cancelled) && job.cancel.asked() == Some(Wish::Interrupt) {
        outcome.failure = Some(Failure::Interrupted);
    }
    if outcome.failure != Some(Failure::Cancelled) && job.role != Role::SumsUp {
        let path = services.layout.output(&job.step);
        match captured {
            Some(bytes) => services.scribe.write(path, bytes),
            // What an earlier attempt or round left there is no longer the latest.
            None if job.attempt > 1 || job.step.iteration > 1 => services.scribe.remove(path),
            None => {}
        }
    }
    outcome.output = match output {
        Some(text) if text.len() > INLINE => Some(services.folder.store(&text)?),
        Some(text) => Some(Content::Text(text)),
        None => None,
    };
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_told_in_its_first_line() {
        let check = |work: fn() -> u8, expected: Result<u8, &str>| {
            assert_eq!(survived(work), expected.map_err(str::to_owned));
        };
        check(|| 7, Ok(7));
        check(|| panic!("one\ntwo"), Err("one"));
        check(|| panic!("{} bytes", u8::MAX), Err("255 bytes"));
        check(|| std::panic::panic_any(7), Err("it does not say why"));
    }
}
