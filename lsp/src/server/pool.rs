//! A pool of a few threads that run slow jobs and send the results to the main loop.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, unbounded};

/// Analyses walk as deep as documents nest.
const STACK: usize = 16 << 20;

type Job<T> = Box<dyn FnOnce() -> T + Send>;

/// Threads that each take one job after the other; `T` is what comes of one.
pub(super) struct Pool<T> {
    jobs: Option<Sender<(Job<T>, Job<T>)>>,
    threads: Vec<JoinHandle<()>>,
    results: Sender<T>,
    /// Whether the pool is ending and skips the waiting jobs.
    ending: Arc<AtomicBool>,
    /// The results of the jobs.
    pub(super) done: Receiver<T>,
}

impl<T: Send + 'static> Pool<T> {
    /// A pool of as many threads.
    pub(super) fn new(threads: usize) -> Pool<T> {
        let (jobs, taken) = unbounded::<(Job<T>, Job<T>)>();
        let (results, done) = unbounded();
        let ending: Arc<AtomicBool> = Arc::default();
        let work = |number: usize| {
            let (taken, results, ending) = (taken.clone(), results.clone(), Arc::clone(&ending));
            let builder = std::thread::Builder::new().name(format!("worker {number}")).stack_size(STACK);
            builder.spawn(move || {
                for (job, otherwise) in taken {
                    if ending.load(Ordering::Relaxed) {
                        return;
                    }
                    let result = catch_unwind(AssertUnwindSafe(job)).unwrap_or_else(|_| otherwise());
                    // When the server ends, the receiver is gone.
                    let _ = results.send(result);
                }
            })
        };
        // With fewer threads than wanted, things take longer.
        let threads = (0..threads).filter_map(|number| work(number).ok()).collect();
        Pool { jobs: Some(jobs), threads, results, ending, done }
    }

    /// Where a job hands back what the loop should know before it is through.
    pub(super) fn early_sender(&self) -> Sender<T> {
        self.results.clone()
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
        self.ending.store(true, Ordering::Relaxed);
        // The threads end when this channel closes, so it must close before they are joined.
        self.jobs = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_one_answer_and_the_pool_goes_on() {
        let pool = Pool::new(1);
        for number in 0..3 {
            pool.run(move || if number == 1 { panic!("as wanted") } else { number }, || 10);
        }
        let done: Vec<i32> = pool.done.iter().take(3).collect();
        assert_eq!(done, [0, 10, 2]);
    }

    #[test]
    fn what_waits_is_left_at_the_end() {
        let (go, wait) = unbounded::<()>();
        let (begin, begun) = unbounded::<()>();
        let pool = Pool::new(1);
        let done = pool.done.clone();
        let first = move || {
            begin.send(()).expect("the other side waits for it");
            wait.recv().map_or(0, |()| 1)
        };
        pool.run(first, || 10);
        pool.run(|| 2, || 10);
        begun.recv().expect("the first job begins");
        let ending = Arc::clone(&pool.ending);
        let closing = std::thread::spawn(move || drop(pool));
        while !ending.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        go.send(()).expect("the first job waits");
        closing.join().expect("it ends");
        assert_eq!(done.iter().collect::<Vec<_>>(), [1]);
    }
}
