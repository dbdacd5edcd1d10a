//! Snapshots of states, for the runs that the other tests leave: whatever they did, the state is the same whether a reader
//! folds all records, or those behind a snapshot.
//!
//! The simulator of the runtime cuts at every record; here are swarms, teams, agents and people.

use std::path::Path;
use std::sync::Arc;

use swarmc_runtime::{Event, Graph, Home, Record, RunFolder, State, effective};

/// How many cuts each run has at most.
const CUTS: usize = 12;

/// Checks every run of a home whose journal and plan can be read: some tests damage them.
pub(crate) fn check_home(home: &Path) {
    let folders = Home::new(home.to_owned()).list_folders().unwrap_or_default();
    for folder in folders {
        if let Some((graph, records)) = read(&folder) {
            check_run(&folder.id, &graph, &records);
        }
    }
}

fn read(folder: &RunFolder) -> Option<(Arc<Graph>, Vec<Record>)> {
    let records = folder.read_records().ok()?;
    let Event::RunStarted { pipeline, task, .. } = &records.first()?.event else { return None };
    let plan = folder.plan_now(&records).ok()?;
    let graph = Graph::new(&plan, pipeline, task.as_deref(), folder.concurrency(&records)).ok()?;
    Some((Arc::new(graph), effective(&records).into_owned()))
}

fn check_run(run: &str, graph: &Arc<Graph>, records: &[Record]) {
    let whole = fold(State::new(Arc::clone(graph)), records).snapshot();
    for cut in (0..=records.len()).step_by(records.len().div_ceil(CUTS).max(1)) {
        let snapshot = fold(State::new(Arc::clone(graph)), &records[..cut]).snapshot();
        let restored = State::restore(Arc::clone(graph), &snapshot).expect("a snapshot fits its plan");
        let again = fold(restored, &records[cut..]).snapshot();
        assert_eq!(again, whole, "run {run}: a snapshot after {cut} of {} records", records.len());
    }
}

fn fold(mut state: State, records: &[Record]) -> State {
    records.iter().for_each(|record| state.apply(record));
    state
}
