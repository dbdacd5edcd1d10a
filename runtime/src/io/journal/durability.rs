//! Group commit: a task that needs a record on disk makes everything written so far durable, for all tasks that wait.
//!
//! A background thread does the same a few milliseconds after the last write, so that records without a waiting task
//! are not left behind either. Invariant: `durable` never runs ahead of a successful `fdatasync`.

use std::future::poll_fn;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long the background thread lets records gather before it syncs them.
const GATHER: Duration = Duration::from_millis(25);

/// Makes everything that was written durable: by default `fdatasync` does.
pub(crate) type Sync = Box<dyn Fn() -> io::Result<()> + Send + std::marker::Sync>;

/// An engine is called on the journal's thread.
const STACK: usize = 1024 * 1024;

/// What is on disk, and how to get it there.
pub(crate) struct Durability {
    sync: Option<Sync>,
    progress: Mutex<Progress>,
    /// Someone who waits in [`Durability::wait`] may go on.
    synced: Condvar,
    /// The background thread has something to do.
    pending: Condvar,
}

impl std::fmt::Debug for Durability {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Durability").field("progress", &self.progress).finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct Progress {
    written: u64,
    durable: u64,
    syncing: bool,
    resting: bool,
    closed: bool,
    /// Whether a task waits, so that the background thread lets no more records gather.
    is_urgent: bool,
    error: Option<(io::ErrorKind, String)>,
    /// The tasks that wait in [`Durability::reached`].
    waiting: Vec<Waker>,
}

impl Progress {
    /// Whether record `seq` is durable, as far as that is known.
    fn sync_outcome(&self, seq: u64) -> Option<io::Result<()>> {
        let failed = || self.error.as_ref().map(|(kind, message)| Err(io::Error::new(*kind, message.clone())));
        if self.durable >= seq { Some(Ok(())) } else { failed() }
    }
}

impl Durability {
    /// For a journal that `sync` makes durable; without it everything written is.
    pub(super) fn new(sync: Option<Sync>) -> Arc<Durability> {
        Arc::new(Durability { sync, progress: Mutex::default(), synced: Condvar::new(), pending: Condvar::new() })
    }

    /// Waits until record `seq`, which must have been flushed, is durable; syncs it when no other thread does.
    pub(crate) fn wait(&self, seq: u64) -> io::Result<()> {
        let mut progress = self.lock();
        loop {
            if let Some(reached) = progress.sync_outcome(seq) {
                return reached;
            }
            // One `fdatasync` is enough for all that wait: the next one begins when this one has ended, and takes in
            // what came meanwhile.
            if progress.syncing {
                progress = self.synced.wait(progress).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            progress.syncing = true;
            // What is written during the sync may or may not be part of it.
            let target = progress.written;
            drop(progress);
            let outcome = self.sync.as_ref().map_or(Ok(()), |sync| sync());
            progress = self.lock();
            progress.syncing = false;
            match outcome {
                Ok(()) => progress.durable = progress.durable.max(target),
                // For good: after a failed sync the system may drop what it could not write, and call the next one a
                // success.
                Err(error) => progress.error = Some((error.kind(), error.to_string())),
            }
            // All of them: those whose record is not durable yet come back.
            progress.waiting.drain(..).for_each(Waker::wake);
            self.synced.notify_all();
        }
    }

    /// Has the background thread sync at once, where record `seq` is not durable yet: a task is about to wait for it.
    pub(crate) fn request_sync(&self, seq: u64) {
        let mut progress = self.lock();
        if progress.sync_outcome(seq).is_none() {
            progress.is_urgent = true;
            self.pending.notify_one();
        }
    }

    /// The same as [`Durability::wait`] for a task, whose thread goes on meanwhile: the background thread syncs it at once.
    pub(crate) async fn wait_async(&self, seq: u64) -> io::Result<()> {
        self.request_sync(seq);
        self.wait_for_sync(seq).await
    }

    /// Waits until record `seq` is durable, and asks for no sync: the background thread syncs a few milliseconds after
    /// each record.
    pub(crate) async fn wait_for_sync(&self, seq: u64) -> io::Result<()> {
        poll_fn(|context| {
            let mut progress = self.lock();
            if let Some(reached) = progress.sync_outcome(seq) {
                return Poll::Ready(reached);
            }
            // Under the lock, so that no sync ends between the look and this.
            progress.waiting.push(context.waker().clone());
            Poll::Pending
        })
        .await
    }

    /// Everything up to record `seq` has been handed to the system.
    pub(super) fn note_written(&self, seq: u64) {
        let mut progress = self.lock();
        progress.written = seq;
        if self.sync.is_none() {
            progress.durable = seq;
        // A thread that lets records gather looks at `written` by itself when it goes on.
        } else if progress.resting {
            progress.resting = false;
            self.pending.notify_one();
        }
    }

    /// Starts the background thread, which calls `failed` once when a sync fails, and then ends.
    pub(super) fn start(self: &Arc<Durability>, failed: impl FnOnce(io::Error) + Send + 'static) -> JoinHandle<()> {
        let durability = Arc::clone(self);
        std::thread::Builder::new()
            .name("journal".to_owned())
            .stack_size(STACK)
            .spawn(move || {
                while let Some(seq) = durability.wait_for_batch() {
                    if let Err(error) = durability.wait(seq) {
                        return failed(error);
                    }
                }
            })
            .expect("the system has room for one more thread")
    }

    /// Syncs what is left and lets the background thread end.
    pub(super) fn close(&self) -> io::Result<()> {
        let written = {
            let mut progress = self.lock();
            progress.closed = true;
            self.pending.notify_all();
            progress.written
        };
        self.wait(written)
    }

    /// Waits for something to sync and lets more gather; none once the journal is closed.
    fn wait_for_batch(&self) -> Option<u64> {
        let mut progress = self.lock();
        while progress.written == progress.durable && !progress.closed {
            progress.resting = true;
            progress = self.pending.wait(progress).unwrap_or_else(PoisonError::into_inner);
        }
        progress.resting = false;
        if progress.closed {
            return None;
        }
        let (mut progress, _) = self
            .pending
            .wait_timeout_while(progress, GATHER, |progress| !progress.closed && !progress.is_urgent)
            .unwrap_or_else(PoisonError::into_inner);
        progress.is_urgent = false;
        (!progress.closed).then_some(progress.written)
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
