//! How a person controls a running run: from another thread of this process, or through [`crate::request_stop`].

use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::io::input::{Input, Inputs};
use crate::types::user_request::{GateAnswer, StopLevel, UserMessage};

/// A handle on a run that ends it early, or answers its gates and what its agents ask for. Clones are the same handle.
#[derive(Clone, Debug, Default)]
pub struct Control {
    inner: Arc<Mutex<StopRequests>>,
}

#[derive(Debug, Default)]
struct StopRequests {
    strongest: Option<StopLevel>,
    listener: Option<Inputs>,
}

impl Control {
    /// A handle for one run.
    pub fn new() -> Control {
        Control::default()
    }

    /// Asks the run to end: no step starts, processes get TERM and, five seconds later, KILL. It can be resumed.
    pub fn stop(&self) {
        self.request_stop(StopLevel::Stop);
    }

    /// Ends the run at once: processes get KILL. It can be resumed.
    pub fn kill(&self) {
        self.request_stop(StopLevel::Kill);
    }

    /// Answers a gate or a request, and waits until that is on disk.
    ///
    /// # Errors
    /// It does not fit a gate that asks, or the run is ending: says what to do, for a person.
    pub fn answer(&self, answer: GateAnswer) -> Result<(), String> {
        self.await_reply(|reply| Input::Answer(answer, reply)).map(drop)
    }

    /// Writes to an agent, and waits until that is on disk: what becomes of it, for a person.
    ///
    /// # Errors
    /// No agent of the run reads it, or the run is ending: says what to do, for a person.
    pub fn send(&self, message: UserMessage) -> Result<String, String> {
        self.await_reply(|reply| Input::Message(message, reply))
    }

    fn await_reply(&self, input: impl FnOnce(Sender<Result<String, String>>) -> Input) -> Result<String, String> {
        let (reply, receiver) = mpsc::channel();
        let listener = self.lock().listener.clone();
        let sent = listener.and_then(|listener| listener.send(input(reply)).ok());
        let ending = || "the run is about to begin, or to end: look at it with `swarmc ps`".to_owned();
        sent.ok_or_else(ending)?;
        receiver.recv().map_err(|_| ending())?
    }

    /// Whether the run listens, or has.
    pub(crate) fn is_attached(&self) -> bool {
        self.lock().listener.is_some()
    }

    /// The run cannot go on in this process, and why.
    pub(crate) fn give_up(&self, why: String) {
        if let Some(listener) = &self.lock().listener {
            let _ = listener.send(Input::Broken(why));
        }
    }

    /// From now on `listener` receives the stop levels; it receives an earlier one at once.
    pub(crate) fn attach(&self, listener: Inputs) {
        let mut requests = self.lock();
        if let Some(level) = requests.strongest {
            // A run that has ended no longer listens.
            let _ = listener.send(Input::Stop(level));
        }
        requests.listener = Some(listener);
    }

    fn request_stop(&self, level: StopLevel) {
        let mut requests = self.lock();
        requests.strongest = requests.strongest.max(Some(level));
        if let Some(listener) = &requests.listener {
            // A run that has ended no longer listens.
            let _ = listener.send(Input::Stop(level));
        }
    }

    fn lock(&self) -> MutexGuard<'_, StopRequests> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
