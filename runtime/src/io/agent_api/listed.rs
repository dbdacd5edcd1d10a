//! Records whether an MCP client has listed the tools of an attempt: an agent that is prompted before does without
//! them.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// Set once, by any of an attempt's clients. Several tasks may wait for it.
#[derive(Debug, Default)]
pub(crate) struct ToolsListed {
    is_done: AtomicBool,
    bell: Notify,
}

impl ToolsListed {
    /// A client has listed the tools.
    pub(super) fn mark_listed(&self) {
        self.is_done.store(true, Ordering::SeqCst);
        self.bell.notify_waiters();
    }

    /// Waits until a client has.
    pub(crate) async fn wait(&self) {
        let mut told = std::pin::pin!(self.bell.notified());
        // From here on it is heard, so that it cannot be missed between the look and the wait.
        told.as_mut().enable();
        if !self.is_done.load(Ordering::SeqCst) {
            told.await;
        }
    }
}
