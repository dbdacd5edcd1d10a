//! A few threads that do what may take a moment, and hand back what the loop should know.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, unbounded};

/// Analyses walk as deep as documents nest.
const STACK: usize = 16 << 20;

type Job<T> = Box<dyn FnOnce() -> T + Send>;

/// Threads that each take one job after the other; `T` is what comes of one.
pub(super) struct Pool<T> {
    jobs: Option<Sender<(Job<T>, Job<T>)>>,
    threads: Vec<JoinHandle<()>>,
    /// What has come of the jobs.
    pub(super) done: Receiver<T>,
}

impl<T: Send + 'static> Pool<T> {
    /// A pool of as many threads.
    pub(super) fn new(threads: usize) -> Pool<T> {
        let (jobs, taken) = unbounded::<(Job<T>, Job<T>)>();
        let (results, done) = unbounded();
        let work = |number: usize| {
            let (taken, results) = (taken.clone(), results.clone());
            let builder = std::thread::Builder::new().name(format!("worker {number}")).stack_size(STACK);
            builder.spawn(move || {
                for (job, otherwise) in taken {
                    let result = catch_unwind(AssertUnwindSafe(job)).unwrap_or_else(|_| otherwise());
                    // Nobody listens any more at the end.
                    let _ = results.send(result);
                }
            })
        };
        // With fewer threads than wanted, things take longer.
        let threads = (0..threads).filter_map(|number| work(number).ok()).collect();
        Pool { jobs: Some(jobs), threads, done }
    }

    /// Has a job done; what `otherwise` says comes of one that panics.
    pub(super) fn run(&self, job: impl FnOnce() -> T + Send + 'static, otherwise: impl FnOnce() -> T + Send + 'static) {
        if let Some(jobs) = &self.jobs {
            let _ = jobs.send((Box::new(job), Box::new(otherwise)));
        }
    }
}

impl<T> Drop for Pool<T> {
    fn drop(&mut self) {
        self.jobs = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
