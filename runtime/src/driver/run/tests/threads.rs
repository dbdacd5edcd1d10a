//! The threads that take the turns of a run: its own carries out the first job, and another one the second.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use swarmc_plan::Retry;

use super::super::Ended;
use super::world::*;
use crate::io::journal::{CountingJournal, Durability, Journal};
use crate::types::event::{Event, Record};

/// Both orders of two steps: in one, the run's own thread has the first of them, and in the other one, it has the second.
fn both_orders(steps: [swarmc_plan::Step; 2]) -> [Vec<swarmc_plan::Step>; 2] {
    let forward = Vec::from(steps);
    let backward = forward.iter().rev().cloned().collect();
    [forward, backward]
}

#[test]
fn a_pause_ends_in_time_whichever_thread_begins_it() {
    let waiting = step("waiting", sh("until test -e done; do sleep 0.01; done"), &[]);
    let mut retried = step("retried", sh("test -e tried && touch done || { touch tried; exit 1; }"), &[]);
    retried.retry = Retry { times: 1, backoff_ms: 20, max_backoff_ms: 20, fresh: false };
    for steps in both_orders([waiting, retried]) {
        let world = World::new();
        let mut plan = plan(steps);
        // Where the pause did not end, the other one would wait for ever.
        plan.pipelines[0].steps.iter_mut().for_each(|step| step.timeout_ms = Some(30_000));
        assert_eq!(world.start(&plan).ended, Ended::Succeeded);
        assert_eq!(world.ends().len(), 3);
    }
}

/// A journal that cannot take the end of one step.
struct Panicking(CountingJournal);

impl Journal for Panicking {
    fn append(&mut self, record: &Record) {
        if let Event::AttemptEnded { step, .. } = &record.event {
            assert_ne!(&*step.name, "short", "this journal takes no such end");
        }
        self.0.append(record);
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }

    fn durability(&self) -> Arc<Durability> {
        self.0.durability()
    }

    fn close(self: Box<Self>) -> io::Result<()> {
        Box::new(self.0).close()
    }
}

#[test]
fn a_turn_that_panics_ends_the_run_whichever_thread_takes_it() {
    for steps in both_orders([step("long", sh("sleep 1; touch ended"), &[]), step("short", sh(":"), &[])]) {
        let world = World::new();
        let journal = Box::new(Panicking(CountingJournal::new(100)));
        let panicked = catch_unwind(AssertUnwindSafe(|| world.start_in(&plan(steps), journal))).is_err();
        assert!(panicked);
        // The runner that resumes the run ends what goes on.
        assert!(!world.workspace().join("ended").exists(), "nothing has waited for the other step");
    }
}
