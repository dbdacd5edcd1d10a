//! The services that Restate calls: each locks its object, loads its state, has the pure core decide, and stores it.
//!
//! ```text
//! swarmc.Queue/POOL   the processes of a pool that wait, and their workers     (crate::queue)
//! swarmc.Inbox/RUN    what the driver of a run still has to take               (crate::inbox)
//! swarmc.View/RUN     records and files of a run, in pages
//! swarmc.Run/RUN      has a driver carry the run on, until it has ended
//! swarmc.Runs/all     the ids of all runs
//! swarmc.Pull         long polls of drivers and workers, and what waits for an answer
//! ```
//!
//! Times are those of Restate alone: who is lost is found by a delayed call, never by a clock.

mod inbox;
mod pull;
mod queue;
mod run;
mod view;

use std::time::Duration;

use restate_sdk::prelude::*;

pub(crate) use inbox::InboxObject;
pub(crate) use pull::PullService;
pub(crate) use queue::QueueObject;
pub(crate) use run::{RunWorkflow, RunsObject};
pub(crate) use view::ViewObject;

/// How long a question may wait for its answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// How long a worker may be silent before what it has is lost: longer than an outage that it is to survive.
    pub(crate) lease: Duration,
}

impl Times {
    /// How long a question may wait for its answer: one that gets none is asked again within the lease, even where the next
    /// answer is late.
    fn poll(self) -> Duration {
        LONGEST_POLL.min(self.lease / 2)
    }
}

/// See [`Times::poll`]: less than proxies let a request wait, which is 30 seconds with some.
const LONGEST_POLL: Duration = Duration::from_secs(25);

/// Another driver has the run: the call would fail again.
fn fenced() -> HandlerError {
    TerminalError::new_with_code(409, "another driver has this run").into()
}
