//! The threads that carry attempts out. Most attempts only wait for processes: a few threads have all of them, each in an
//! event loop, and one of them is the run's own. What asks others and waits for them has a thread of its own meanwhile,
//! which is kept for the next one.
//!
//! In: jobs, in a queue that the threads share. Out: inputs of the driver. The threads with an event loop belong to the
//! driver, which has them take its turns.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::thread::{JoinHandle, available_parallelism};
use std::time::Instant;

use super::attempt::{Ended, carry_out, carry_out_member, watch_tree};
use super::replay_boundary::report_divergence;
use super::waiting::Waiting;
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

/// A thread that has one job only polls and copies; its buffers are on the heap. What is never touched takes no memory.
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

/// The threads with an event loop at most, with the run's own; two where there are fewer processors. Starting a process takes
/// one of them a moment, in which another one goes on. On two processors a third one is in the way.
const LOOPS: usize = 3;

/// The jobs of a run, and the threads that have one each. Dropping the pool waits for these; every job must have ended or
/// been cancelled by then.
pub(crate) struct Pool {
    jobs: Arc<Jobs>,
    threads: Vec<JoinHandle<()>>,
    /// Those threads at most: as many attempts as run at once.
    limit: usize,
    /// The threads with an event loop beside the run's own.
    carriers: usize,
    /// Those threads at most.
    most_carriers: usize,
}

/// What the threads of a pool share.
#[derive(Debug)]
pub(crate) struct Jobs {
    services: Services,
    queue: Mutex<Queue>,
    work: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    /// Those that need a thread of their own.
    blocking: VecDeque<Box<Job>>,
    /// The threads of their own that wait for such a job.
    idle: usize,
    /// The others.
    waiting: Waiting<Box<Job>>,
    closed: bool,
    /// Whether the threads end although attempts go on.
    abandoned: bool,
}

impl Pool {
    /// A pool without a thread yet, and never with more than `limit` that have one job each.
    pub(crate) fn new(services: Services, limit: u32) -> Pool {
        let jobs = Arc::new(Jobs { services, queue: Mutex::default(), work: Condvar::new() });
        // One at least beside the run's own, which would otherwise keep the driver from its turns.
        let most_carriers = available_parallelism().map_or(1, NonZero::get).clamp(2, LOOPS) - 1;
        Pool { jobs, threads: Vec::new(), limit: limit.max(1) as usize, carriers: 0, most_carriers }
    }

    /// What a thread with an event loop carries jobs out with.
    pub(crate) fn jobs(&self) -> Arc<Jobs> {
        Arc::clone(&self.jobs)
    }

    /// Has jobs carried out. Their ends come as [`Input::Ended`].
    pub(crate) fn submit(&mut self, jobs: impl Iterator<Item = Box<Job>>) {
        for job in jobs {
            match is_blocking(&job) {
                true => self.submit_blocking(job),
                false => self.jobs.lock().waiting.push(job),
            }
        }
    }

    /// Wakes threads with an event loop for the jobs that wait, as far as `caller` does not begin them. Returns how many such
    /// threads are to be started besides.
    pub(crate) fn wake_carriers(&mut self, caller: Option<&Carrier<'_>>) -> usize {
        let caller = caller.map(|caller| (&caller.inbox, caller.tasks.is_empty()));
        let called = self.jobs.lock().waiting.call_loops(caller, self.most_carriers - self.carriers);
        called.woken.iter().for_each(|inbox| inbox.wake());
        self.carriers += called.missing;
        called.missing
    }

    /// A thread with an event loop cannot be started; without any, no job can be carried out.
    pub(crate) fn lose_carrier(&mut self, caller: Option<&Carrier<'_>>) {
        self.carriers -= 1;
        if self.carriers == 0 && caller.is_none() {
            self.refuse_jobs();
        }
    }

    fn submit_blocking(&mut self, job: Box<Job>) {
        let mut queue = self.jobs.lock();
        queue.blocking.push_back(job);
        // A thread that was notified and has not woken yet still counts as idle: each such thread has a job in the
        // queue.
        let too_few = queue.blocking.len() > queue.idle && self.threads.len() < self.limit;
        drop(queue);
        if too_few && self.spawn_worker().is_err() && self.threads.is_empty() {
            // With other threads the job only waits for one of them.
            self.refuse_jobs();
        }
        self.jobs.work.notify_one();
    }

    fn spawn_worker(&mut self) -> std::io::Result<()> {
        let jobs = Arc::clone(&self.jobs);
        let poller = Poller::new()?;
        let thread = std::thread::Builder::new()
            .name("attempt".to_owned())
            .stack_size(STACK)
            .spawn(move || run_worker(&jobs, poller))?;
        self.threads.push(thread);
        Ok(())
    }

    fn refuse_jobs(&self) {
        let mut queue = self.jobs.lock();
        let mut refused = std::mem::take(&mut queue.blocking);
        refused.append(&mut queue.waiting.take_all());
        drop(queue);
        // That is no failure of theirs.
        let reason = "the system has no room for one more thread".to_owned();
        self.jobs.services.report(Input::Broken(reason));
        for job in refused {
            report_cancelled(job, &self.jobs.services);
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.jobs.close();
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

impl Jobs {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self) -> Option<Box<Job>> {
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

    /// There will be no more jobs: each thread ends when it has ended its own.
    fn close(&self) {
        self.close_queue(self.lock());
    }

    /// The threads with an event loop end at once, and their attempts go on.
    pub(crate) fn abandon(&self) {
        let mut queue = self.lock();
        queue.abandoned = true;
        self.close_queue(queue);
    }

    /// Whether that was done.
    pub(crate) fn are_abandoned(&self) -> bool {
        self.lock().abandoned
    }

    fn close_queue(&self, mut queue: MutexGuard<'_, Queue>) {
        queue.closed = true;
        // A loop that sleeps does not see that.
        queue.waiting.wake_all();
        drop(queue);
        self.work.notify_all();
    }

    /// A job for an event loop, which has no attempt where it `is_idle`. Without one the loop of `inbox` is woken for the
    /// next, until [`Jobs::stay_awake`].
    fn next_waiting(&self, inbox: &Arc<Inbox>, is_idle: bool) -> Next {
        let mut queue = self.lock();
        if queue.abandoned {
            return Next::Abandoned;
        }
        match queue.waiting.take(inbox, is_idle) {
            Some((job, is_last)) => Next::Job { job, is_last },
            None if queue.closed => Next::Closed,
            None => {
                queue.waiting.fall_asleep(inbox, is_idle);
                Next::Nothing
            }
        }
    }

    /// The loop of `inbox` looks at the queue by itself.
    fn stay_awake(&self, inbox: &Arc<Inbox>) {
        self.lock().waiting.stay_awake(inbox);
    }
}

/// What an event loop finds in the queue.
enum Next {
    Job {
        job: Box<Job>,
        is_last: bool,
    },
    Nothing,
    /// Nothing, now and later.
    Closed,
    /// Nothing is to be done any more.
    Abandoned,
}

/// Carries out, in the event loop of one thread, those attempts that only wait for processes.
pub(crate) struct Carrier<'p> {
    jobs: Arc<Jobs>,
    tasks: Tasks<'p>,
    poller: &'p Poller,
    inbox: Arc<Inbox>,
}

impl<'p> Carrier<'p> {
    /// What carries jobs of a pool out by the event loop of `poller`.
    pub(crate) fn new(jobs: Arc<Jobs>, poller: &'p Poller) -> Carrier<'p> {
        let (tasks, inbox) = (Tasks::new(&poller.events), poller.inbox());
        Carrier { jobs, tasks, poller, inbox }
    }

    /// Begins a job that waits; without one it waits until something happens to an attempt, another thread wakes it or
    /// `latest` has passed. False when there is nothing to do any more.
    pub(crate) fn run_once(&mut self, latest: Option<Instant>) -> bool {
        let is_alone = self.tasks.is_empty();
        match self.jobs.next_waiting(&self.inbox, is_alone) {
            Next::Job { job, is_last } => {
                self.tasks.start(run_when_durable(Arc::clone(&self.jobs), job, self.poller, is_alone));
                if !is_last {
                    // The attempts that it has have their turn between two that begin.
                    self.tasks.run_once(Some(Instant::now()));
                }
            }
            Next::Nothing => {
                self.tasks.run_once(latest);
                self.jobs.stay_awake(&self.inbox);
            }
            Next::Abandoned => return false,
            Next::Closed if is_alone => return false,
            Next::Closed => self.tasks.run_once(latest),
        }
        true
    }
}

/// Whether a job keeps its thread waiting for anything but processes and pauses: Git, models, tools, files of others. The
/// turn of a swarm's member has a thread as well: the end of the run, which waits for these threads, may come before its.
fn is_blocking(job: &Job) -> bool {
    if job.member_turn().is_some() {
        return true;
    }
    let asks = job.work.candidates().iter().any(|candidate| candidate.door.is_blocking());
    asks || job.tree.is_some() || job.file_workspace.is_some() || job.watched
}

fn run_worker(jobs: &Arc<Jobs>, mut poller: Poller) {
    while let Some(job) = jobs.next() {
        let services = &jobs.services;
        // Looking at the tree takes as long as syncing does, and changes nothing.
        services.durability.request_sync(job.after);
        let early = catch_panic(Box::pin(async {
            (job.tree.is_none() && job.file_workspace.is_none()).then(|| watch_tree(&job, services))
        }));
        let watch = poller.block_on(early).ok().flatten().flatten();
        // Nothing may start whose beginning a crash of the machine could take back.
        let is_whole = match services.durability.wait(job.after) {
            Ok(()) => poller.block_on(run_attempt(job, watch, &poller, services)),
            Err(error) => report_undurable(job, &error, services),
        };
        services.inputs.wake();
        // What a panic left half done must not reach the next attempt.
        if !is_whole && let Ok(fresh) = Poller::new() {
            poller = fresh;
        }
    }
}

/// Carries a job out, once what must be durable before is. A thread that has nothing else to do is `is_alone`.
async fn run_when_durable(jobs: Arc<Jobs>, job: Box<Job>, poller: &Poller, is_alone: bool) {
    let services = &jobs.services;
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
fn report_undurable(job: Box<Job>, error: &std::io::Error, services: &Services) -> bool {
    services.report(Input::Broken(format!("the journal cannot be made durable: {error}")));
    report_cancelled(job, services);
    true
}

/// Reports the end of a job that was not carried out.
fn report_cancelled(job: Box<Job>, services: &Services) {
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
async fn run_member_turn(mut job: Box<Job>, poller: &Poller, services: &Services) -> bool {
    let entered = enter_tree(&mut job);
    let Work::Member(member) = &job.work else { return true };
    let done = catch_panic(Box::pin(async {
        match entered {
            Ok(()) => carry_out_member(&job, &member.taker, poller, services).await,
            Err(failure) => Ok(Err(no_reply(&failure))),
        }
    }))
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
async fn run_attempt(mut job: Box<Job>, watch: Option<Watch>, poller: &Poller, services: &Services) -> bool {
    if job.member_turn().is_some() {
        // Boxed, as every attempt would otherwise be as large in memory as such a turn.
        return Box::pin(run_member_turn(job, poller, services)).await;
    }
    let done: Result<Result<_, RunError>, String> = catch_panic(Box::pin(async {
        let ended = match enter_tree(&mut job) {
            Ok(()) => carry_out(&job, watch, poller, services).await?,
            Err(failure) => Ended::from_failure(failure),
        };
        // What printed nothing has no files to wait for.
        let quiet = ended.captured.is_none() && !ended.logs && ended.outcome.artifacts.is_empty();
        Ok((store_outputs(&job, ended, services)?, quiet))
    }))
    .await;
    let is_whole = done.is_ok();
    let (outcome, quiet) = match done {
        Ok(Ok(done)) => done,
        Ok(Err(RunError::Diverged(divergence))) => {
            report_divergence(*job, divergence, services);
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
    match quiet {
        // The thread takes a turn itself.
        true => _ = inputs.put(ended),
        false => services.file_writer.report_when_written(move || _ = inputs.send(ended)),
    }
    is_whole
}

/// Does `work`, and returns the message of a panic: the driver would wait for ever for an attempt that reports no end. It is
/// in a box, since a future that is passed on is in memory as often as that happens.
async fn catch_panic<T>(mut work: Pin<Box<impl Future<Output = T>>>) -> Result<T, String> {
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
        let path = || services.layout.output_path(&job.step);
        match captured {
            Some(bytes) => services.file_writer.write(path(), bytes),
            // What an earlier attempt or round left there is no longer the latest.
            None if job.attempt > 1 || job.step.iteration > 1 => services.file_writer.remove(path()),
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
            assert_eq!(poller.block_on(catch_panic(Box::pin(async { work() }))), expected.map_err(str::to_owned));
        };
        check(|| 7, Ok(7));
        check(|| panic!("one\ntwo"), Err("one"));
        check(|| panic!("{} bytes", u8::MAX), Err("255 bytes"));
        check(|| std::panic::panic_any(7), Err("it does not say why"));
    }
}
