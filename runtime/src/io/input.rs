//! The inputs that the driver waits for, and the channel on which it receives them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use serde_json::{Map, Value};
use tokio::sync::oneshot;

use crate::core::swarm::within::WithinTurn;
use crate::io::event_loop::Inbox;
use crate::io::recording::ReplayInput;
use crate::io::steering::Steered;
use crate::types::approval::{Choice, Decision, ToolCallRequest};
use crate::types::artifact::ArtifactMeta;
use crate::types::chat::{Fault, Reply as ModelReply, Tool, ToolFault};
use crate::types::event::{AnsweredBy, Failure, Outcome, Process, StepId};
use crate::types::handoff::Operation;
use crate::types::swarm::TurnId;
use crate::types::team::Touch;
use crate::types::user_request::{GateAnswer, StopLevel, UserMessage};

/// The channel on which a caller waits for the result of an answer or a message.
pub(crate) type Reply = Sender<Result<String, String>>;

/// The channel on which an agent waits for the result of an operation.
pub(crate) type ReplyTo = oneshot::Sender<Result<Value, String>>;

/// Where a task waits.
pub(crate) type Asker = oneshot::Sender<Decision>;

/// An input of the driver.
#[derive(Debug)]
pub(crate) enum Input {
    /// A person stops the run.
    Stop(StopLevel),
    /// A person's answer to a gate or a request, and where to tell what became of it.
    Answer(GateAnswer, Reply),
    /// A person writes to an agent, and where to tell what became of it.
    Message(UserMessage, Reply),
    /// A process has lived for a moment.
    Lives { step: StepId, attempt: u32, process: Process },
    /// A provider has said under which id it keeps the conversation of an attempt.
    Session { step: StepId, attempt: u32, session: String },
    /// An attempt ended.
    Ended { step: StepId, attempt: u32, outcome: Box<Outcome> },
    /// A task waits for an approval.
    Wants { step: StepId, attempt: u32, call: Box<ToolCallRequest>, reply: Asker },
    /// An agent asks for an operation, and may wait for its result.
    Said { step: StepId, attempt: u32, operation: Result<Operation, String>, hearer: Option<ReplyTo> },
    /// A turn that goes on reads what people have written meanwhile, once that is on disk.
    Overhears { step: StepId, attempt: u32, hearer: ReplyTo },
    /// Something that a turn has left is stored.
    Left { step: StepId, attempt: u32, artifact: Box<ArtifactMeta> },
    /// What a turn has changed cannot be told.
    ChangesUnknown { step: StepId },
    /// An agent of a team calls a tool while its turn goes on, and waits for the result.
    Calls { step: StepId, attempt: u32, turn: TurnId, name: String, arguments: Map<String, Value>, hearer: ReplyTo },
    /// A task of a swarm reports.
    Swarm { step: StepId, attempt: u32, word: Box<SwarmInput> },
    /// Something of a recording happens again.
    Replay(Box<ReplayInput>),
    /// The run cannot go on, and why.
    Broken(String),
}

impl SwarmInput {
    /// Whether it is an answer that the swarm waited for, and not what happens while a turn goes on.
    pub(crate) fn is_answer(&self) -> bool {
        !matches!(self, SwarmInput::Touched(..) | SwarmInput::Steered(..) | SwarmInput::Again(..))
    }

    /// The turn or call that it ends.
    pub(crate) fn ended_turn(&self) -> Option<&TurnId> {
        match self {
            SwarmInput::Listed(turn, _) | SwarmInput::Answered(turn, _) | SwarmInput::Called(turn, _) => Some(turn),
            _ => None,
        }
    }
}

/// What a task of a swarm reports.
#[derive(Debug)]
pub(crate) enum SwarmInput {
    /// The tools of the agent that takes this turn.
    Listed(TurnId, Result<Vec<Tool>, ToolFault>),
    /// What a model answered.
    Answered(TurnId, Result<ModelReply, Fault>),
    /// What a tool answered.
    Called(TurnId, Result<String, ToolFault>),
    /// The time of the step is over.
    Late,
    /// The time of an agent is over, in a replay.
    Over(Arc<str>),
    /// The coordinator's time to decide a proposal is over, in a replay.
    Overdue(u32),
    /// The recorded answer to a request, in a replay.
    Agreed {
        /// The number of the request.
        id: u32,
        choice: Choice,
        by: AnsweredBy,
        because: Option<String>,
        /// The arguments that were given in place of others.
        arguments: Option<String>,
    },
    /// An agent of a team has changed a file.
    Touched(TurnId, Touch),
    /// What became of a text for the turn of an agent that goes on.
    Steered(TurnId, Steered),
    /// What an agent did while its turn went on, in a replay.
    Again(TurnId, WithinTurn),
    /// The step failed for what came from outside of the swarm, in a replay.
    Failed(Failure),
}

/// The loop takes no input any more.
#[derive(Debug)]
pub(crate) struct LoopEnded;

/// The sender of inputs to the driver of a run. Clones send to the same driver.
#[derive(Clone, Debug)]
pub(crate) struct Inputs {
    sender: Sender<Input>,
    /// Wakes the run's own thread where it waits for processes.
    inbox: Arc<Inbox>,
    /// Whether an input may have come that was not taken.
    has_come: Arc<AtomicBool>,
}

impl Inputs {
    /// Inputs for the loop whose thread `inbox` wakes, and where it takes them from.
    pub(crate) fn new(inbox: Arc<Inbox>) -> (Inputs, Receiver<Input>) {
        let (sender, receiver) = channel();
        (Inputs { sender, inbox, has_come: Arc::default() }, receiver)
    }

    /// Tells the loop something.
    ///
    /// # Errors
    /// It has ended.
    pub(crate) fn send(&self, input: Input) -> Result<(), LoopEnded> {
        self.sender.send(input).map_err(|_| LoopEnded)?;
        self.wake();
        Ok(())
    }

    /// The same without waking a thread: the caller takes a turn of the driver, or wakes another one that does.
    ///
    /// # Errors
    /// It has ended.
    pub(crate) fn put(&self, input: Input) -> Result<(), LoopEnded> {
        self.sender.send(input).map_err(|_| LoopEnded)?;
        self.has_come.store(true, Ordering::SeqCst);
        Ok(())
    }

    /// Has the run's own thread look at the driver.
    pub(crate) fn wake(&self) {
        self.has_come.store(true, Ordering::SeqCst);
        self.inbox.wake();
    }

    /// Whether an input may have come that the driver has not begun to take.
    pub(crate) fn have_come(&self) -> bool {
        self.has_come.load(Ordering::SeqCst)
    }

    /// The driver is about to take all that have come.
    pub(crate) fn begin_taking(&self) {
        self.has_come.store(false, Ordering::SeqCst);
    }
}
