//! The event loop for requests to models and tool servers: it starts with the first request.
//!
//! Threads that carry attempts out block on it; the driver never does.

use std::future::Future;
use std::sync::OnceLock;
use std::time::Duration;

use tokio::runtime::{Builder, Handle, Runtime};

/// Its threads: they read and write sockets, and do not compute.
const THREADS: usize = 2;

/// How long what is still open at the end of a run may take to close.
const CLOSING: Duration = Duration::from_secs(2);

/// An event loop that starts at its first use, and ends with the run.
#[derive(Debug, Default)]
pub(crate) struct Reactor {
    runtime: OnceLock<Result<Runtime, String>>,
}

impl Reactor {
    /// Where tasks are started.
    ///
    /// # Errors
    /// The system has no room for its threads.
    pub(crate) fn handle(&self) -> Result<&Handle, String> {
        let start = || {
            let mut builder = Builder::new_multi_thread();
            let runtime = builder.worker_threads(THREADS).thread_name("reactor").enable_all().build();
            runtime.map_err(|error| format!("no event loop can be started: {error}"))
        };
        self.runtime.get_or_init(start).as_ref().map(Runtime::handle).map_err(Clone::clone)
    }

    /// Whether it has been used.
    pub(crate) fn is_started(&self) -> bool {
        self.runtime.get().is_some()
    }

    /// Runs `future` to its end on this thread, which is none of the loop's own.
    ///
    /// # Errors
    /// The system has no room for its threads.
    pub(crate) fn wait<T>(&self, future: impl Future<Output = T>) -> Result<T, String> {
        Ok(self.handle()?.block_on(future))
    }
}

impl Drop for Reactor {
    fn drop(&mut self) {
        if let Some(Ok(runtime)) = self.runtime.take() {
            match Handle::try_current() {
                Err(_) => runtime.shutdown_timeout(CLOSING),
                // The last task of a loop had it: no thread of a loop may wait.
                Ok(_) => runtime.shutdown_background(),
            }
        }
    }
}
