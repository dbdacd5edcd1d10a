//! Wakes the thread that carries a dialogue on: once, however often the dialogue rings before the thread looks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};

/// Wakes the thread that runs the dialogue.
pub(super) struct ThreadWaker {
    rung: AtomicBool,
    wake: Waker,
}

impl ThreadWaker {
    /// One that has rung, so that the thread looks a first time.
    pub(super) fn new(wake: Waker) -> ThreadWaker {
        ThreadWaker { rung: AtomicBool::new(true), wake }
    }

    /// Whether it has rung since it was taken last.
    pub(super) fn has_rung(&self) -> bool {
        self.rung.load(Ordering::SeqCst)
    }

    /// The same; it can ring again.
    pub(super) fn take_ring(&self) -> bool {
        self.rung.swap(false, Ordering::SeqCst)
    }
}

impl Wake for ThreadWaker {
    fn wake(self: Arc<ThreadWaker>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<ThreadWaker>) {
        if !self.rung.swap(true, Ordering::SeqCst) {
            self.wake.wake_by_ref();
        }
    }
}
