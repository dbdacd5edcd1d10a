//! The last run of a pipeline, for editors: read from the home of the runs, a few lines of it.
//!
//! A run that has been read is read again only when its journal has changed. What cannot be read is passed over.

use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use swarmc_lsp::{LastRun, LastStep, RunState};
use swarmc_plan::{Body, Pipeline};
use swarmc_runtime::{Content, RunFolder, RunStatus, StepId};
use swarmc_view::{Row, RowState, RunEnds, now_ms};

use crate::home::{find_home, read_past};

/// How many runs are looked at, the newest first.
const RUNS: usize = 100;

/// The bytes of an output that are kept.
const BYTES: u64 = 4096;

/// The runs of a workspace.
pub(crate) struct LastRuns {
    /// The workspace.
    pub(crate) root: PathBuf,
    /// What has been read.
    pub(crate) known: Arc<Known>,
}

/// What has been read of runs, by id.
#[derive(Debug, Default)]
pub(crate) struct Known(Mutex<HashMap<String, Seen>>);

#[derive(Clone, Debug)]
struct Seen {
    /// When its journal was written last.
    changed: Option<SystemTime>,
    /// Nothing of one that could not be read.
    run: Option<Arc<Told>>,
}

/// A run with what it is a run of.
#[derive(Debug)]
struct Told {
    workspace: PathBuf,
    workflow: String,
    pipeline: String,
    changed_ms: u64,
    run: LastRun,
}

impl swarmc_lsp::Runs for LastRuns {
    fn last_run(&self, workflow: &str, pipeline: &str) -> Option<Arc<LastRun>> {
        let folders = find_home().ok()?.list_folders().ok()?;
        let fits = |told: &Told| told.workflow == workflow && told.pipeline == pipeline && told.workspace == self.root;
        let known = folders.iter().take(RUNS).filter_map(|folder| Some((folder, self.known.read_cached(folder)?)));
        let (folder, told) = known.into_iter().find(|(_, told)| fits(told))?;
        let age = Duration::from_millis(now_ms().saturating_sub(told.changed_ms));
        // A process that is killed leaves its journal as it is.
        let state = match told.run.state {
            RunState::Running | RunState::Resumable if folder.is_running() => RunState::Running,
            RunState::Running => RunState::Resumable,
            state => state,
        };
        Some(Arc::new(LastRun { age, state, ..told.run.clone() }))
    }
}

impl Known {
    fn read_cached(&self, folder: &RunFolder) -> Option<Arc<Told>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Ahead of the read: a record that is written in between makes the next look read again.
        let changed = std::fs::metadata(folder.journal_path()).and_then(|data| data.modified()).ok();
        if let Some(seen) = known.get(&folder.id).filter(|seen| seen.changed == changed) {
            return seen.run.clone();
        }
        let run = read_run(folder).map(Arc::new);
        // Runs come and go while the server lives on: this bounds the memory, at the cost of one more read of each.
        if known.len() >= 4 * RUNS {
            known.clear();
        }
        known.insert(folder.id.clone(), Seen { changed, run: run.clone() });
        run
    }
}

fn read_run(folder: &RunFolder) -> Option<Told> {
    let past = read_past(folder).ok()?;
    let pipeline = past.pipeline();
    let report = past.build_report();
    let own = report.rows.iter().filter(|row| matches!(row.state, RowState::Ended(_)) && is_own(&row.step, pipeline));
    // Of the rounds of a step, the last one that ended.
    let last: BTreeMap<&str, &Row> = own.map(|row| (&*row.step.name, row)).collect();
    let ends = RunEnds::collect(&past.records);
    let read_step = |row: &Row| {
        let output = ends.steps.get(&row.step).and_then(|end| end.output);
        let took = row.ended_ms.checked_sub(row.started_ms).filter(|_| row.started_ms > 0);
        LastStep {
            status: row.state.as_str(),
            output: output.and_then(|content| read_text(folder, content)),
            took: took.map(Duration::from_millis),
        }
    };
    let steps = last.into_iter().map(|(name, row)| (name.to_owned(), read_step(row))).collect();
    let state = match report.finished {
        _ if folder.is_running() => RunState::Running,
        Some(RunStatus::Succeeded) => RunState::Succeeded,
        Some(RunStatus::Failed | RunStatus::OverBudget) => RunState::Failed,
        None => RunState::Resumable,
    };
    Some(Told {
        workspace: folder.read_workspace().ok()?,
        workflow: past.plan.workflow.clone(),
        pipeline: pipeline.name.clone(),
        changed_ms: report.changed_ms,
        run: LastRun { id: folder.id.clone(), state, age: Duration::ZERO, params: past.params.clone(), steps },
    })
}

/// Whether a step stands in the pipeline itself or in a loop of it, in its first instance.
fn is_own(step: &StepId, pipeline: &Pipeline) -> bool {
    let is_loop = |name: &str| {
        let mut steps = pipeline.all_steps();
        steps.any(|step| step.name == name && matches!(step.body, Body::Loop(_)))
    };
    let frames = || step.within.iter().flat_map(|within| within.split('/'));
    step.instance == 1 && frames().all(|frame| is_loop(frame.split(['.', '~']).next().unwrap_or_default()))
}

/// The beginning of a text.
fn read_text(folder: &RunFolder, content: &Content) -> Option<String> {
    match content {
        Content::Text(text) => Some(text.clone()),
        Content::Artifact { digest, .. } => read_beginning(&folder.artifact_path(digest)),
    }
}

fn read_beginning(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    std::fs::File::open(path).ok()?.take(BYTES).read_to_end(&mut bytes).ok()?;
    // A character that was cut is left out.
    let whole = std::str::from_utf8(&bytes).map_or_else(|error| error.valid_up_to(), str::len);
    bytes.truncate(whole);
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use swarmc_compiler::compile;

    use super::*;

    fn plan() -> swarmc_plan::Plan {
        let spec = "pipeline p {\n    task a { run ls }\n    loop again max=2 { task b { run ls } }\n    \
                    task c { run ls }\n}\n";
        let files = BTreeMap::from([("flow.kdl".to_owned(), spec.to_owned())]);
        compile("flow.kdl", &files).plan.expect("the spec is right")
    }

    #[test]
    fn steps_of_the_pipeline_and_of_its_loops_are_its_own() {
        let plan = plan();
        let pipeline = plan.pipeline("p").expect("it is there");
        let check = |within: Option<&str>, instance: u32, expected: bool| {
            let step = StepId { within: within.map(Arc::from), ..StepId::new("b", 1, instance) };
            assert_eq!(is_own(&step, pipeline), expected, "{within:?} {instance}");
        };
        check(None, 1, true);
        check(Some("again.2"), 1, true);
        check(Some("again~1"), 1, true);
        check(Some("a"), 1, false);
        check(Some("again.1/elsewhere"), 1, false);
        check(None, 2, false);
    }

    #[test]
    fn the_beginning_of_an_output_ends_with_a_whole_character() {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let path = folder.path().join("output");
        let check = |text: &str, expected: usize| {
            std::fs::write(&path, text).expect("it can be written");
            assert_eq!(read_beginning(&path).as_deref(), Some(&text[..expected]));
        };
        check("", 0);
        check("short", 5);
        check(&"x".repeat(5000), 4096);
        check(&"é".repeat(5000), 4096);
        check(&format!("x{}", "é".repeat(5000)), 4095);
        check(&"\u{1F600}".repeat(2000), 4096);
        assert_eq!(read_beginning(&folder.path().join("none")), None);
    }
}
