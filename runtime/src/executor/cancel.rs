//! How an attempt that runs on another thread is told to end.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

use crate::control::Wish;

/// Ends one attempt early, from any thread.
#[derive(Debug, Default)]
pub(crate) struct Cancel {
    wish: AtomicU8,
    /// An event counter that the attempt's thread polls.
    wake: Mutex<Option<Arc<OwnedFd>>>,
    /// Wakes the task that waits for it.
    bell: Notify,
}

impl Cancel {
    /// Asks the attempt to end. A stronger wish replaces a weaker one.
    pub(crate) fn ask(&self, wish: Wish) {
        self.wish.fetch_max(wish as u8 + 1, Ordering::SeqCst);
        self.bell.notify_one();
        let wake = self.wake.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(wake) = &*wake {
            // It fails only when the counter is full, and then the thread is awake anyway.
            let _ = rustix::io::write(wake, &1_u64.to_ne_bytes());
        }
    }

    /// Waits until something is asked for.
    pub(super) async fn wait(&self) {
        // A wish of which nobody had heard yet is kept for the first who waits.
        while self.asked().is_none() {
            self.bell.notified().await;
        }
    }

    /// What was asked for.
    pub(crate) fn asked(&self) -> Option<Wish> {
        match self.wish.load(Ordering::SeqCst) {
            0 => None,
            1 => Some(Wish::Stop),
            _ => Some(Wish::Kill),
        }
    }

    /// From now on `wake` is written to when something is asked for; look at [`Cancel::asked`] after this.
    pub(super) fn watch(&self, wake: Option<Arc<OwnedFd>>) {
        *self.wake.lock().unwrap_or_else(PoisonError::into_inner) = wake;
    }
}
