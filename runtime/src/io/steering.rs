//! What a turn that goes on is to read at once: the driver hands texts over, and the transport sends them to the agent.
//!
//! Invariant: a text is handed over only while the transport takes them, and the transport reports what became of each.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

/// The texts for one turn.
#[derive(Debug, Default)]
pub(crate) struct Steering {
    is_open: AtomicBool,
    waiting: Mutex<VecDeque<Notices>>,
    bell: Notify,
}

/// What an agent is to read while its turn goes on.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Notices {
    /// The text for the agent.
    pub text: String,
    /// The number of the last message in it; 0: none.
    pub number: u64,
    /// The version of the plan that it says.
    pub version: u32,
}

/// What a transport reports of a turn.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Steered {
    /// It takes texts from now on.
    Open,
    /// The agent has this text.
    Injected(Notices),
    /// The agent did not take this text.
    Refused(Notices),
}

impl Steering {
    /// Whether the transport takes texts.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open.load(Ordering::SeqCst)
    }

    /// Takes texts from now on. False where it did before.
    pub(crate) fn open(&self) -> bool {
        !self.is_open.swap(true, Ordering::SeqCst)
    }

    /// Hands a text over.
    pub(crate) fn push(&self, notices: Notices) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push_back(notices);
        self.bell.notify_one();
    }

    /// Waits for the next text.
    pub(crate) async fn next(&self) -> Notices {
        loop {
            let next = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            match next {
                Some(notices) => return notices,
                None => self.bell.notified().await,
            }
        }
    }
}
