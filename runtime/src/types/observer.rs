//! The interface of programs that watch a run: called from a thread of its own, so that a slow terminal stalls neither
//! the run nor its pipes.

use std::time::Duration;

use crate::types::event::{Record, StepId};
use crate::types::telemetry::Signal;

/// Watches a run as it happens.
///
/// The calls come one after another from one thread. A slow observer delays nothing: records wait for it, and output
/// that it cannot keep up with is left out with a [`Observer::notice`]; the full log on disk is complete either way.
pub trait Observer: Send {
    /// Something was recorded.
    fn recorded(&mut self, record: &Record);

    /// A process put out some bytes: any bytes, cut anywhere.
    fn output(&mut self, step: &StepId, attempt: u32, stream: Stream, bytes: &[u8]);

    /// Whether [`Observer::output`] is to be called at all; asked once. Copying a gigabyte that is never read takes
    /// time.
    fn wants_output(&self) -> bool {
        true
    }

    /// The state of a node's connection changes, or its agent uses a tool. The journal holds neither.
    fn signal(&mut self, _signal: &Signal) {}

    /// Whether [`Observer::signal`] is to be called at all; asked once.
    fn wants_signals(&self) -> bool {
        false
    }

    /// How often [`Observer::tick`] is to be called, between two other calls; never without one. Asked once.
    fn tick_interval(&self) -> Option<Duration> {
        None
    }

    /// Time has passed.
    fn tick(&mut self) {}

    /// Something a person should know that is no event of the workflow, as one line without a full stop.
    fn notice(&mut self, text: &str);
}

/// Where a process put out its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Its standard output.
    Stdout,
    /// Its standard error.
    Stderr,
}
