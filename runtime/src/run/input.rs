//! The inputs that the driver waits for, and the channel on which it receives them.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use super::gates::Reply;
use super::{approvals, handoffs, swarms};
use crate::approval::Verdict;
use crate::artifact::ArtifactMeta;
use crate::control::{GateAnswer, StopLevel, UserMessage};
use crate::event::{Outcome, Process, StepId};
use crate::executor::Inbox;
use crate::handoff::Operation;
use crate::recording::{Divergence, GateTake, ReplayEffect, Written};

/// An input of the driver.
#[derive(Debug)]
pub(crate) enum Input {
    /// A person's wish.
    Wish(StopLevel),
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
    /// A replayed attempt waits to be ended from outside.
    Parked { step: StepId, attempt: u32 },
    /// A replayed attempt asked something that the recording does not hold.
    Diverged { step: StepId, attempt: u32, divergence: Box<Divergence> },
    /// A task waits for an approval.
    Wants { step: StepId, attempt: u32, wish: Box<approvals::ToolCallRequest>, reply: approvals::Asker },
    /// An agent asks for an operation, and may wait for its result.
    Said { step: StepId, attempt: u32, operation: Result<Operation, String>, hearer: Option<handoffs::ReplyTo> },
    /// A turn that goes on reads what people have written meanwhile, once that is on disk.
    Overhears { step: StepId, attempt: u32, hearer: handoffs::ReplyTo },
    /// Something that a turn has left is stored.
    Left { step: StepId, attempt: u32, artifact: Box<ArtifactMeta> },
    /// A task of a swarm reports.
    Swarm { step: StepId, attempt: u32, word: Box<swarms::SwarmInput> },
    /// An attempt begins in a replay, as it did in the recording.
    Begins { step: StepId, attempt: u32 },
    /// What an attempt did in the recording is done again.
    Does { step: StepId, attempt: u32, deed: ReplayEffect },
    /// What a person wrote in the recording.
    Written(Box<Written>),
    /// The recorded answer to what a task asked for.
    Agreed { verdict: Verdict },
    /// The recorded answer of a gate.
    Replayed { step: StepId, take: GateTake },
    /// The run cannot go on, and why.
    Broken(String),
}

/// The loop takes no input any more.
#[derive(Debug)]
pub(crate) struct LoopEnded;

/// The sender of inputs to the driver of a run. Clones send to the same driver.
#[derive(Clone, Debug)]
pub(crate) struct Inputs {
    sender: Sender<Input>,
    /// Wakes the loop where it waits for processes of its own thread.
    inbox: Arc<Inbox>,
}

impl Inputs {
    /// Inputs for the loop whose thread `inbox` wakes, and where it takes them from.
    pub(crate) fn new(inbox: Arc<Inbox>) -> (Inputs, Receiver<Input>) {
        let (sender, receiver) = channel();
        (Inputs { sender, inbox }, receiver)
    }

    /// Tells the loop something.
    ///
    /// # Errors
    /// It has ended.
    pub(crate) fn send(&self, input: Input) -> Result<(), LoopEnded> {
        self.sender.send(input).map_err(|_| LoopEnded)?;
        self.inbox.wake();
        Ok(())
    }
}
