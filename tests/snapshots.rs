//! Snapshots of states and reports, for the runs that the other tests leave: whatever they did, both are the same whether a
//! reader folds all records, or those behind a snapshot.
//!
//! The simulator of the runtime cuts at every record; here are swarms, teams, agents and people.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use swarmc_runtime::{Event, Graph, Home, Record, RunFolder, State, effective};
use swarmc_view::Past;

/// How many cuts each run has at most, and the records that are folded for all of them, about.
const CUTS: usize = 12;
const REPORTS: usize = 4;
const RECORDS: usize = 40_000;

/// Checks every run of a home whose journal and plan can be read: some tests damage them.
pub(crate) fn check_home(home: &Path) {
    let folders = Home::new(home.to_owned()).list_folders().unwrap_or_default();
    for folder in folders {
        if let Some((graph, records)) = read(&folder) {
            check_run(&folder.id, &graph, &records);
            check_report(&folder);
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
    for cut in (0..=records.len()).step_by(pace(records.len(), CUTS)) {
        let snapshot = fold(State::new(Arc::clone(graph)), &records[..cut]).snapshot();
        let restored = State::restore(Arc::clone(graph), &snapshot).expect("a snapshot fits its plan");
        let again = fold(restored, &records[cut..]).snapshot();
        assert_eq!(again, whole, "run {run}: a snapshot after {cut} of {} records", records.len());
    }
}

/// The records from one cut to the next.
fn pace(records: usize, cuts: usize) -> usize {
    records.div_ceil((RECORDS / records.max(1)).clamp(1, cuts)).max(1)
}

/// The same of the report, by its files, for a few cuts.
fn check_report(run: &RunFolder) {
    let root = tempfile::tempdir().expect("a temporary folder can be made");
    let folder = RunFolder { path: root.path().to_owned(), ..run.clone() };
    fs::copy(run.plan_path(), folder.plan_path()).expect("there is a plan");
    let journal = fs::read(run.journal_path()).expect("there is a journal");
    let ends: Vec<usize> = memchr::memchr_iter(b'\n', &journal).map(|end| end + 1).collect();
    let write = |end: usize| fs::write(folder.journal_path(), &journal[..end]).expect("it can be written");
    let report = || {
        let (_, report, _) = Past::read_report(&folder).expect("a run that can be read has a report");
        serde_json::to_value(report).expect("a report is JSON")
    };
    let Some(&all) = ends.last() else { return };
    write(all);
    // That of a run that goes on with another plan is among its texts, and no snapshot of such a run is used.
    let Ok(past) = Past::from_records(&folder, run.read_records().expect("they can be read")) else { return };
    let whole = serde_json::to_value(past.build_report()).expect("a report is JSON");
    for &end in ends.iter().step_by(pace(ends.len(), REPORTS)) {
        write(end);
        Past::keep_report(&folder);
        write(all);
        assert_eq!(report(), whole, "run {}: a snapshot of its report after {end} bytes", run.id);
    }
}

fn fold(mut state: State, records: &[Record]) -> State {
    records.iter().for_each(|record| state.apply(record));
    state
}
