//! Shows people the records, signals and notices of a run while it goes on, and starts its hooks.

use std::collections::{BTreeMap, BTreeSet};

use swarmc_plan::Plan;

use super::hooks::Hooks;
use super::outputs::Outputs;
use super::process_env::ProcessEnv;
use crate::core::state::State;
use crate::io::executor::ObserverHandle;
use crate::types::event::{Record, StepId};
use crate::types::telemetry::{Link, Signal, TelemetryKind};

/// The observer of a run, and what it was told once.
pub(super) struct Notices {
    observer_handle: ObserverHandle,
    hooks: Hooks,
    /// The budgets of the run whose high use was reported.
    warned: BTreeSet<usize>,
}

impl Notices {
    /// Notices for an observer.
    pub(super) fn new(observer_handle: ObserverHandle) -> Notices {
        Notices { hooks: Hooks::new(observer_handle.clone()), observer_handle, warned: BTreeSet::new() }
    }

    /// The observer, for threads.
    pub(super) fn observer(&self) -> ObserverHandle {
        self.observer_handle.clone()
    }

    /// Sends a notice.
    pub(super) fn send(&self, text: impl Into<String>) {
        self.observer_handle.send_notice(text);
    }

    /// Shows the records of a turn, and how the nodes stand now.
    pub(super) fn show_records(&self, fresh: Vec<Record>, state: &State) {
        let signals = if self.observer_handle.wants_signals() { connection_signals(&fresh, state) } else { Vec::new() };
        self.observer_handle.send_records(fresh);
        signals.into_iter().for_each(|signal| self.observer_handle.send_signal(signal));
    }

    /// Starts the hooks that wait for one of the records.
    pub(super) fn start_hooks(
        &mut self,
        fresh: &[Record],
        state: &State,
        (plan, process_env, outputs): (&Plan, &ProcessEnv, &Outputs),
    ) {
        for record in fresh.iter().filter(|_| !plan.hooks.is_empty()) {
            self.hooks.start(&record.event, state, (plan, process_env, &outputs.folder));
        }
    }

    /// Waits for the hooks that still run.
    pub(super) fn await_hooks(&mut self) {
        self.hooks.wait();
    }

    /// Tells people once when much of a budget is used.
    pub(super) fn warn_of_usage(&mut self, state: &State) {
        if state.graph.budgets.is_empty() {
            return;
        }
        let (spent, budgets) = state.usage();
        for (number, (what, budget)) in budgets.iter().enumerate() {
            let percent = spent.percent(budget);
            if percent >= u64::from(budget.warn) && budget.warn > 0 && self.warned.insert(number) {
                self.send(format!("{percent} % of the budget of {what} are used or reserved"));
            }
        }
    }
}

/// How the nodes stand now that these records are about.
fn connection_signals(fresh: &[Record], state: &State) -> Vec<Signal> {
    let changed: BTreeMap<&StepId, u64> =
        fresh.iter().filter_map(|record| Some((record.event.step()?, record.at))).collect();
    let signal = |(step, at): (&StepId, u64)| {
        // What is inside of a step is forgotten with it.
        let gone =
            || (0, TelemetryKind::Connection { state: Link::Disconnected, stream: None, session: None, waits: None });
        let (attempt, sign) = match state.find_step(step) {
            Some(_) => state.find_connection(step)?,
            None => gone(),
        };
        Some(Signal { at, step: step.clone(), attempt, sign })
    };
    changed.into_iter().filter_map(signal).collect()
}
