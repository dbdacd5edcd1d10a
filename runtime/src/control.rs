//! How a person's wish reaches a running run: from another thread of this process, or through [`crate::request_stop`].

use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::run::Input;

/// A handle on a run that ends it early. Clones are the same handle.
#[derive(Clone, Debug, Default)]
pub struct Control {
    inner: Arc<Mutex<Wishes>>,
}

#[derive(Debug, Default)]
struct Wishes {
    strongest: Option<Wish>,
    listener: Option<Sender<Input>>,
}

/// What a person wants of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Wish {
    /// End processes with TERM, then KILL after a grace.
    Stop,
    /// End processes with KILL at once.
    Kill,
}

impl Control {
    /// A handle for one run.
    pub fn new() -> Control {
        Control::default()
    }

    /// Asks the run to end: no step starts, processes get TERM and, five seconds later, KILL. It can be resumed.
    pub fn stop(&self) {
        self.wish(Wish::Stop);
    }

    /// Ends the run at once: processes get KILL. It can be resumed.
    pub fn kill(&self) {
        self.wish(Wish::Kill);
    }

    /// From now on wishes go to `listener`; an earlier one goes there at once.
    pub(crate) fn attach(&self, listener: Sender<Input>) {
        let mut wishes = self.lock();
        if let Some(wish) = wishes.strongest {
            // A run that has ended no longer listens.
            let _ = listener.send(Input::Wish(wish));
        }
        wishes.listener = Some(listener);
    }

    fn wish(&self, wish: Wish) {
        let mut wishes = self.lock();
        wishes.strongest = wishes.strongest.max(Some(wish));
        if let Some(listener) = &wishes.listener {
            // A run that has ended no longer listens.
            let _ = listener.send(Input::Wish(wish));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Wishes> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
