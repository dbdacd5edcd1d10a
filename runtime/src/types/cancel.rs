//! How an attempt that runs on another thread is told to end.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::Waker;

use tokio::sync::Notify;

use crate::types::user_request::StopLevel;

/// Ends one attempt early, from any thread.
#[derive(Debug, Default)]
pub(crate) struct Cancel {
    level: AtomicU8,
    /// Whether it can be interrupted: its agent can go on later from where it is.
    yields: AtomicBool,
    /// Whether a person has written what its agent is to read at once.
    urgent: AtomicBool,
    /// Wakes the task of the attempt's process.
    wake: Mutex<Option<Waker>>,
    /// Wakes a task of the reactor that waits for it.
    bell: Notify,
}

impl Cancel {
    /// Asks the attempt to end. A higher stop level replaces a lower one.
    pub(crate) fn request_stop(&self, level: StopLevel) {
        self.level.fetch_max(level as u8 + 1, Ordering::SeqCst);
        self.bell.notify_one();
        let wake = self.wake.lock().unwrap_or_else(PoisonError::into_inner);
        wake.iter().for_each(Waker::wake_by_ref);
    }

    /// A person has written what the attempt's agent is to read at once: ends the attempt, where it can be interrupted.
    /// Whether it can.
    pub(crate) fn interrupt(&self) -> bool {
        self.urgent.store(true, Ordering::SeqCst);
        let yields = self.yields.load(Ordering::SeqCst);
        if yields {
            self.request_stop(StopLevel::Interrupt);
        }
        yields
    }

    /// From now on the attempt can be interrupted, and is at once where a person waits for that.
    pub(crate) fn begin_to_yield(&self) {
        self.yields.store(true, Ordering::SeqCst);
        if self.urgent.load(Ordering::SeqCst) {
            self.request_stop(StopLevel::Interrupt);
        }
    }

    /// Another agent takes the turn, which cannot be interrupted until that is known again.
    pub(crate) fn begin_turn(&self) {
        self.yields.store(false, Ordering::SeqCst);
    }

    /// Whether a person has written meanwhile what the attempt's agent is to read at once; once told, it is not told again.
    pub(crate) fn take_urgent(&self) -> bool {
        self.urgent.swap(false, Ordering::SeqCst)
    }

    /// Waits until something is asked for.
    pub(crate) async fn wait(&self) {
        // A stop level that no task has seen yet is kept for the first that waits.
        while self.requested_level().is_none() {
            self.bell.notified().await;
        }
    }

    /// What was asked for.
    pub(crate) fn requested_level(&self) -> Option<StopLevel> {
        match self.level.load(Ordering::SeqCst) {
            0 => None,
            1 => Some(StopLevel::Interrupt),
            2 => Some(StopLevel::Stop),
            _ => Some(StopLevel::Kill),
        }
    }

    /// From now on `wake` is woken when something is asked for; look at [`Cancel::asked`] after this.
    pub(crate) fn set_waker(&self, wake: Option<Waker>) {
        *self.wake.lock().unwrap_or_else(PoisonError::into_inner) = wake;
    }
}
