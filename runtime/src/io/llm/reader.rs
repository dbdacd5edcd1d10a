//! The thread on which answers are read, one for all models of a run; started when the first of them is asked.
//!
//! In: a future that asks. Out: a task that can be waited for from anywhere. Invariant: the reader of a connection and
//! the connection itself take turns on it, so that a server that never stops sending cannot keep a reader reading.

use std::future::Future;
use std::sync::OnceLock;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// The thread; it ends when its last owner drops it.
#[derive(Debug, Default)]
pub(super) struct Reader {
    started: OnceLock<Result<Started, String>>,
}

#[derive(Debug)]
struct Started {
    handle: Handle,
    /// Dropped, it ends the thread.
    _stop: oneshot::Sender<()>,
}

impl Reader {
    /// Starts a task on it.
    ///
    /// # Errors
    /// The system has no room for the thread.
    pub(super) fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<JoinHandle<T>, String> {
        let started = self.started.get_or_init(|| start().map_err(|error| format!("no model can be asked: {error}")));
        started.as_ref().map(|started| started.handle.spawn(work)).map_err(Clone::clone)
    }
}

fn start() -> std::io::Result<Started> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    let (stop, stopped) = oneshot::channel::<()>();
    std::thread::Builder::new().name("models".to_owned()).spawn(move || {
        // The other side says nothing, and goes.
        let _ = runtime.block_on(stopped);
        // A name that is being looked up is not waited for.
        runtime.shutdown_background();
    })?;
    Ok(Started { handle, _stop: stop })
}
