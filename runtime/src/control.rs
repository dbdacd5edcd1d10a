//! How a person controls a running run: from another thread of this process, or through [`crate::request_stop`].

use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use crate::run::{Input, Inputs};

/// A handle on a run that ends it early, or answers its gates and what its agents ask for. Clones are the same handle.
#[derive(Clone, Debug, Default)]
pub struct Control {
    inner: Arc<Mutex<Wishes>>,
}

/// A person's answer to a gate, or to an agent's request for approval.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateAnswer {
    /// The gate: its name, with what it is inside of where several have that name; or the number of a request.
    pub gate: String,
    /// The option that is chosen; of a request a word of [`crate::Choice`].
    pub choice: String,
    /// The fields that the gate asks for, as they were typed.
    #[serde(default)]
    pub fields: Vec<(String, String)>,
    /// Why, for the agent that made the request.
    #[serde(default)]
    pub because: Option<String>,
    /// The arguments that its tool is called with in place of its own: a JSON object.
    #[serde(default)]
    pub arguments: Option<String>,
}

/// What a person writes to an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserMessage {
    /// The task whose agent reads it: its name, with what it is inside of where several have that name.
    pub to: String,
    /// What it says.
    pub text: String,
    /// Whether a turn that is under way is to be ended for it, where its agent can go on from there.
    #[serde(default)]
    pub interrupt: bool,
}

#[derive(Debug, Default)]
struct Wishes {
    strongest: Option<StopLevel>,
    listener: Option<Inputs>,
}

/// What a person wants of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum StopLevel {
    /// End one attempt as [`ToolCallRequest::Stop`] does; its agent goes on with what a person wrote.
    Interrupt,
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
        self.wish(StopLevel::Stop);
    }

    /// Ends the run at once: processes get KILL. It can be resumed.
    pub fn kill(&self) {
        self.wish(StopLevel::Kill);
    }

    /// Answers a gate or a request, and waits until that is on disk.
    ///
    /// # Errors
    /// It does not fit a gate that asks, or the run is ending: says what to do, for a person.
    pub fn answer(&self, answer: GateAnswer) -> Result<(), String> {
        self.ask(|reply| Input::Answer(answer, reply)).map(drop)
    }

    /// Writes to an agent, and waits until that is on disk: what becomes of it, for a person.
    ///
    /// # Errors
    /// No agent of the run reads it, or the run is ending: says what to do, for a person.
    pub fn send(&self, message: UserMessage) -> Result<String, String> {
        self.ask(|reply| Input::Message(message, reply))
    }

    fn ask(&self, input: impl FnOnce(Sender<Result<String, String>>) -> Input) -> Result<String, String> {
        let (reply, receiver) = mpsc::channel();
        let listener = self.lock().listener.clone();
        let sent = listener.and_then(|listener| listener.send(input(reply)).ok());
        let ending = || "the run is about to begin, or to end: look at it with `swarmc ps`".to_owned();
        sent.ok_or_else(ending)?;
        receiver.recv().map_err(|_| ending())?
    }

    /// From now on `listener` receives the stop levels; it receives an earlier one at once.
    pub(crate) fn attach(&self, listener: Inputs) {
        let mut wishes = self.lock();
        if let Some(wish) = wishes.strongest {
            // A run that has ended no longer listens.
            let _ = listener.send(Input::Wish(wish));
        }
        wishes.listener = Some(listener);
    }

    fn wish(&self, wish: StopLevel) {
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
