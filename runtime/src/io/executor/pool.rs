//! The threads that carry attempts out. Most attempts only wait for processes: a few threads have all of them, each in an
//! event loop. What asks others and waits for them has a thread of its own meanwhile, which is kept for the next one.
//!
//! The run's own thread carries out one command at a time while it waits: what follows from its end is decided and started
//! without waking another thread. More of them would keep it from deciding, as it waits while a program is loaded.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::thread::JoinHandle;
use std::time::Instant;

use super::attempt::{Ended, carry_out, carry_out_member, watch_tree};
use super::replay_boundary::report_divergence;
use super::{FileWriter, Job, ObserverHandle, Role, Work};
use crate::io::artifact::{Watch, Watches};
use crate::io::event_loop::{Inbox, Tasks};
use crate::io::home::{Layout, RunFolder};
use crate::io::input::{Input, Inputs, SwarmInput};
use crate::io::journal::Durability;
use crate::io::llm::Models;
use crate::io::process::Poller;
use crate::io::reactor::Reactor;
use crate::io::recording::Source;
use crate::io::tools::Toolbox;
use crate::types::activity::Activities;
use crate::types::chat::{Fault, Reply};
use crate::types::error::RunError;
use crate::types::event::{Content, Failure, INLINE, StepId};
use crate::types::swarm::TurnId;
use crate::types::user_request::StopLevel;

/// A thread only polls and copies; its buffers are on the heap. What is never touched takes no memory.
pub(crate) const STACK: usize = 1024 * 1024;

/// What every thread needs of the run.
#[derive(Debug)]
pub(crate) struct Services {
    pub folder: RunFolder,
    pub layout: Layout,
    pub observer_handle: ObserverHandle,
    pub file_writer: FileWriter,
    pub durability: Arc<Durability>,
    /// Who answers.
    pub source: Source,
    /// The turns whose trees are watched.
    pub watches: Watches,
    /// The models that it may be.
    pub models: Arc<Models>,
    pub reactor: Arc<Reactor>,
    /// What goes on in the attempts.
    pub activities: Activities,
    /// The tools that models may be lent.
    pub tools: Arc<Toolbox>,
    pub inputs: Inputs,
    /// Whether the warning was sent that the system has no room for as many processes as should run at once.
    pub is_crowded: AtomicBool,
}

impl Services {
    /// Tells the loop something.
    pub(super) fn report(&self, input: Input) {
        // The loop outlives every attempt.
        let _ = self.inputs.send(input);
    }
}

/// The threads with an event loop, beside the run's own. Starting a process takes one of them a moment, in which another
/// one goes on.
const LOOPS: usize = 2;

/// The threads. Dropping the pool waits for them; every job must have ended or been cancelled by then.
pub(crate) struct Pool<'m> {
    shared: Arc<Shared>,
    /// The attempt that the run's own thread carries out.
    own: Tasks<'m>,
    /// With what it does.
    poller: &'m Poller,
    threads: Vec<JoinHandle<()>>,
    /// How many of them have an event loop.
    loops: usize,
    /// The other threads at most: as many attempts as run at once.
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
    /// Those that need a thread of their own.
    blocking: VecDeque<Job>,
    /// The threads of their own that wait for such a job.
    idle: usize,
    /// The others.
    waiting: VecDeque<Job>,
    /// The event loops that look for such a job when they are woken only.
    asleep: Vec<Arc<Inbox>>,
    closed: bool,
}

impl<'m> Pool<'m> {
    /// A pool of the thread that `poller` are for, without another one yet, and never with more than `limit` beside the event
    /// loops.
    pub(crate) fn new(services: Services, limit: u32, poller: &'m Poller) -> Pool<'m> {
        let shared = Arc::new(Shared { services, queue: Mutex::default(), work: Condvar::new() });
        let own = Tasks::new(&poller.events);
        Pool { shared, own, poller, threads: Vec::new(), loops: 0, limit: limit.max(1) as usize }
    }

    /// Has `job` carried out. Its end comes as [`Input::Ended`].
    pub(crate) fn submit(&mut self, job: Job) {
        // Where nothing starts, the run's thread waits for other things than processes.
        let is_live = self.shared.services.source.is_real();
        if is_blocking(&job) {
            self.submit_blocking(job);
        } else if is_live && self.own.is_empty() && job.work.candidates().is_empty() {
            self.own.spawn(run_when_durable(Arc::clone(&self.shared), job, self.poller, true));
        } else {
            self.submit_waiting(job);
        }
    }

    /// Whether the run's own thread carries an attempt out.
    pub(crate) fn has_own(&self) -> bool {
        !self.own.is_empty()
    }

    /// Goes on with the attempt of the run's own thread: waits until something happens to it, an input comes, or `latest`
    /// has passed.
    pub(crate) fn run_once(&mut self, latest: Option<Instant>) {
        self.own.run_once(latest);
    }

    fn submit_blocking(&mut self, job: Job) {
        let mut queue = self.shared.lock();
        queue.blocking.push_back(job);
        // A thread that was notified and has not woken yet still counts as idle: each such thread has a job in the
        // queue.
        let too_few = queue.blocking.len() > queue.idle && self.threads.len() - self.loops < self.limit;
        drop(queue);
        if too_few && self.spawn_thread(run_worker).is_err() && self.threads.len() == self.loops {
            // With other threads the job only waits for one of them.
            self.refuse_jobs();
        }
        self.shared.work.notify_one();
    }

    fn submit_waiting(&mut self, job: Job) {
        let mut queue = self.shared.lock();
        queue.waiting.push_back(job);
        let asleep = queue.asleep.pop();
        drop(queue);
        match asleep {
            Some(asleep) => asleep.wake(),
            // Every loop is between two looks at the queue, so that one of them finds the job.
            None if self.loops == LOOPS => {}
            None => match self.spawn_thread(work_in_loop) {
                Ok(()) => self.loops += 1,
                Err(_) if self.loops > 0 => {}
                Err(_) => self.refuse_jobs(),
            },
        }
    }

    fn spawn_thread(&mut self, work: fn(&Arc<Shared>, Poller)) -> std::io::Result<()> {
        let shared = Arc::clone(&self.shared);
        let poller = Poller::new()?;
        let thread = std::thread::Builder::new()
            .name("attempt".to_owned())
            .stack_size(STACK)
            .spawn(move || work(&shared, poller))?;
        self.threads.push(thread);
        Ok(())
    }

    fn refuse_jobs(&self) {
        let mut queue = self.shared.lock();
        let mut jobs = std::mem::take(&mut queue.blocking);
        jobs.append(&mut queue.waiting);
        drop(queue);
        // That is no failure of theirs.
        let reason = "the system has no room for one more thread".to_owned();
        self.shared.services.report(Input::Broken(reason));
        for job in jobs {
            report_cancelled(job, &self.shared.services);
        }
    }
}

impl Drop for Pool<'_> {
    fn drop(&mut self) {
        let mut queue = self.shared.lock();
        queue.closed = true;
        // A loop that sleeps does not see that the pool is closed.
        queue.asleep.drain(..).for_each(|asleep| asleep.wake());
        drop(queue);
        self.shared.work.notify_all();
        if std::thread::panicking() {
            // Attempts go on that the driver has not cancelled: the runner that resumes the run ends them.
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
            if let Some(job) = queue.blocking.pop_front() {
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

    /// A job for an event loop, and whether there will be no more; without one the loop of `inbox` is woken for the next.
    fn next_waiting(&self, inbox: &Arc<Inbox>) -> (Option<Job>, bool) {
        let mut queue = self.lock();
        // Something else may have woken it: then it is still in the list.
        queue.asleep.retain(|asleep| !Arc::ptr_eq(asleep, inbox));
        let job = queue.waiting.pop_front();
        if job.is_none() && !queue.closed {
            queue.asleep.push(Arc::clone(inbox));
        }
        (job, queue.closed)
    }
}

/// Whether a job keeps its thread waiting for anything but processes and pauses: Git, models, tools, files of others.
fn is_blocking(job: &Job) -> bool {
    let asks = job.work.candidates().iter().any(|candidate| candidate.door.is_blocking());
    asks || job.tree.is_some() || job.file_workspace.is_some() || job.watched
}

fn run_worker(shared: &Arc<Shared>, mut poller: Poller) {
    while let Some(job) = shared.next() {
        let services = &shared.services;
        // Looking at the tree takes as long as syncing does, and changes nothing.
        services.durability.request_sync(job.after);
        let early = catch_panic(async {
            (job.tree.is_none() && job.file_workspace.is_none()).then(|| watch_tree(&job, services))
        });
        let watch = poller.block_on(early).ok().flatten().flatten();
        // Nothing may start whose beginning a crash of the machine could take back.
        let is_whole = match services.durability.wait(job.after) {
            Ok(()) => poller.block_on(run_attempt(job, watch, &poller, services)),
            Err(error) => report_undurable(job, &error, services),
        };
        // What a panic left half done must not reach the next attempt.
        if !is_whole && let Ok(fresh) = Poller::new() {
            poller = fresh;
        }
    }
}

fn work_in_loop(shared: &Arc<Shared>, poller: Poller) {
    let inbox = poller.events.inbox();
    let mut tasks = Tasks::new(&poller.events);
    loop {
        let (job, is_closed) = shared.next_waiting(&inbox);
        let is_idle = job.is_none();
        if let Some(job) = job {
            let is_alone = tasks.is_empty();
            tasks.spawn(run_when_durable(Arc::clone(shared), job, &poller, is_alone));
        } else if is_closed && tasks.is_empty() {
            return;
        }
        // After a job it looks for the next one before it waits.
        tasks.run_once(if is_idle { None } else { Some(Instant::now()) });
    }
}

/// Carries a job out, once what must be durable before is. A thread that has nothing else to do is `is_alone`.
async fn run_when_durable(shared: Arc<Shared>, job: Job, poller: &Poller, is_alone: bool) {
    let services = &shared.services;
    // With nothing else to do, syncing here is quicker than waking another thread for that.
    let durable = match is_alone {
        true => services.durability.wait(job.after),
        false => services.durability.wait_async(job.after).await,
    };
    match durable {
        Ok(()) => run_attempt(job, None, poller, services).await,
        Err(error) => report_undurable(job, &error, services),
    };
}

/// Reports the end of a job whose beginning is not on disk.
fn report_undurable(job: Job, error: &std::io::Error, services: &Services) -> bool {
    services.report(Input::Broken(format!("the journal cannot be made durable: {error}")));
    report_cancelled(job, services);
    true
}

/// Reports the end of a job that was not carried out.
fn report_cancelled(job: Job, services: &Services) {
    let (step, attempt) = (job.step, job.attempt);
    services.report(match job.work {
        Work::Member(member) => report_turn(step, attempt, member.turn, Err(no_reply(&Failure::Cancelled))),
        _ => {
            let outcome = Box::new(Ended::from_failure(Failure::Cancelled).outcome);
            Input::Ended { step, attempt, outcome }
        }
    });
}

/// What came of the turn of a swarm's member.
fn report_turn(step: StepId, attempt: u32, turn: TurnId, reply: Result<Reply, Fault>) -> Input {
    Input::Swarm { step, attempt, word: Box::new(SwarmInput::Answered(turn, reply)) }
}

/// Why there is no reply, where asking again does not help.
fn no_reply(failure: &Failure) -> Fault {
    Fault { message: failure.to_string(), transient: false, retry_after: None, crashed: false }
}

/// Has a program take the turn of a swarm's member, and reports what came of it; false where that panicked.
async fn run_member_turn(mut job: Job, poller: &Poller, services: &Services) -> bool {
    let entered = enter_tree(&mut job);
    let Work::Member(member) = &job.work else { return true };
    let done = catch_panic(async {
        match entered {
            Ok(()) => carry_out_member(&job, &member.taker, poller, services).await,
            Err(failure) => Ok(Err(no_reply(&failure))),
        }
    })
    .await;
    let is_whole = done.is_ok();
    let reply = match done {
        Ok(Ok(reply)) => reply,
        Ok(Err(error)) => {
            services.report(Input::Broken(error.to_string()));
            Err(no_reply(&Failure::Cancelled))
        }
        Err(panic) => {
            let label = job.step.label();
            services.report(Input::Broken(format!("swarmc itself failed in a turn of `{label}`: {panic}")));
            Err(no_reply(&Failure::Cancelled))
        }
    };
    services.report(report_turn(job.step.clone(), job.attempt, member.turn.clone(), reply));
    is_whole
}

/// Carries a job out, whose tree is watched already where `watch` is there, and reports its end; false where that panicked.
async fn run_attempt(mut job: Job, watch: Option<Watch>, poller: &Poller, services: &Services) -> bool {
    if job.member_turn().is_some() {
        // Boxed, as every attempt would otherwise be as large in memory as such a turn.
        return Box::pin(run_member_turn(job, poller, services)).await;
    }
    let done: Result<Result<_, RunError>, String> = catch_panic(async {
        let ended = match enter_tree(&mut job) {
            Ok(()) => carry_out(&job, watch, poller, services).await?,
            Err(failure) => Ended::from_failure(failure),
        };
        // What printed nothing has no files to wait for.
        let quiet = ended.captured.is_none() && !ended.logs && ended.outcome.artifacts.is_empty();
        Ok((store_outputs(&job, ended, services)?, quiet))
    })
    .await;
    let is_whole = done.is_ok();
    let (outcome, quiet) = match done {
        Ok(Ok(done)) => done,
        Ok(Err(RunError::Diverged(divergence))) => {
            report_divergence(job, divergence, services);
            return true;
        }
        Ok(Err(error)) => {
            services.report(Input::Broken(error.to_string()));
            (Ended::from_failure(Failure::Cancelled).outcome, false)
        }
        Err(panic) => {
            let label = job.step.label();
            services.report(Input::Broken(format!("swarmc itself failed in an attempt of `{label}`: {panic}")));
            (Ended::from_failure(Failure::Cancelled).outcome, false)
        }
    };
    let inputs = services.inputs.clone();
    let ended = Input::Ended { step: job.step, attempt: job.attempt, outcome: Box::new(outcome) };
    // The loop outlives every attempt.
    let report = move || _ = inputs.send(ended);
    if quiet {
        report()
    } else {
        services.file_writer.report_when_written(report)
    }
    is_whole
}

/// Does `work`, and returns the message of a panic: the driver would wait for ever for an attempt that reports no end.
async fn catch_panic<T>(work: impl Future<Output = T>) -> Result<T, String> {
    // A future that is passed on is in memory as often as that happens.
    let mut work = Box::pin(work);
    poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(done)) => Poll::Ready(Ok(done)),
        Err(panic) => {
            let words =
                panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
            let words = words.unwrap_or("it does not say why").lines().next().unwrap_or_default();
            Poll::Ready(Err(words.to_owned()))
        }
    })
    .await
}

/// Goes to the working tree that the job runs in, and makes it where it is not there yet.
fn enter_tree(job: &mut Job) -> Result<(), Failure> {
    let Some(tree) = &job.tree else { return Ok(()) };
    job.directory = tree.enter(&job.cancel).map_err(|message| match job.cancel.requested_level() {
        Some(_) => Failure::Cancelled,
        None => Failure::Spawn { message },
    })?;
    Ok(())
}

/// Puts what the attempt put out where it belongs.
fn store_outputs(job: &Job, ended: Ended, services: &Services) -> Result<crate::types::event::Outcome, RunError> {
    let Ended { mut outcome, output, captured, .. } = ended;
    // A stop that came after the interruption has a higher level, and counts.
    if outcome.failure == Some(Failure::Cancelled) && job.cancel.requested_level() == Some(StopLevel::Interrupt) {
        outcome.failure = Some(Failure::Interrupted);
    }
    // What was ended early, and a summary of files, is not the output of the step.
    if outcome.failure != Some(Failure::Cancelled) && job.role != Role::SumsUp {
        let path = services.layout.output_path(&job.step);
        match captured {
            Some(bytes) => services.file_writer.write(path, bytes),
            // What an earlier attempt or round left there is no longer the latest.
            None if job.attempt > 1 || job.step.iteration > 1 => services.file_writer.remove(path),
            None => {}
        }
    }
    // A record has room for one text.
    if let Some(Content::Text(log)) = &outcome.log {
        outcome.log = Some(services.folder.store_text(log)?);
    }
    outcome.output = match output {
        Some(text) if text.len() > INLINE => Some(services.folder.store_text(&text)?),
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
        let poller = Poller::new().unwrap();
        let check = |work: fn() -> u8, expected: Result<u8, &str>| {
            assert_eq!(poller.block_on(catch_panic(async { work() })), expected.map_err(str::to_owned));
        };
        check(|| 7, Ok(7));
        check(|| panic!("one\ntwo"), Err("one"));
        check(|| panic!("{} bytes", u8::MAX), Err("255 bytes"));
        check(|| std::panic::panic_any(7), Err("it does not say why"));
    }
}
