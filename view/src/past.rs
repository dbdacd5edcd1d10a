//! A run read back from its folder: its plan as it is now, and its journal.

use std::collections::BTreeMap;
use std::sync::Arc;

use swarmc_plan::{Pipeline, Plan};
use swarmc_runtime::artifact::ArtifactMeta;
use swarmc_runtime::{Event, Graph, GraphError, JournalRead, Record, RunError, RunFolder, StepId, Verdict};

use crate::run_report::RunReport;
use crate::step_history::{StepHistory, stored_artifacts};

/// The name of the snapshots of its report.
const REPORT: &str = "report";

/// Why a run cannot be read back.
#[derive(Debug, thiserror::Error)]
pub enum PastError {
    /// Its folder cannot be read.
    #[error(transparent)]
    Run(#[from] RunError),
    /// Its plan cannot be scheduled.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// The first record names a pipeline that the plan does not have.
    #[error("the journal of run `{run}` does not match its plan")]
    Mismatch {
        /// The run.
        run: String,
    },
    /// The plan that it is to go on with does not have its pipeline.
    #[error("that spec has no pipeline `{pipeline}`, which this run executes")]
    NoPipeline {
        /// The pipeline.
        pipeline: String,
    },
}

/// A run read back from its folder.
#[derive(Clone, Debug)]
pub struct Past {
    /// Its plan, as it is now.
    pub plan: Plan,
    /// Its journal.
    pub records: Vec<Record>,
    /// The one task that runs outside its pipeline.
    pub task: Option<String>,
    /// The parameters that it was started with, where they stand in the journal itself.
    pub params: BTreeMap<String, String>,
    pipeline: String,
}

impl Past {
    /// Reads the plan and the journal of a run.
    ///
    /// # Errors
    /// They cannot be read, or do not match.
    pub fn read(folder: &RunFolder) -> Result<Past, PastError> {
        Past::from_records(folder, folder.read_records()?)
    }

    /// Reads the plan of a run that is to go on, of its records the first alone, and its report, of which a snapshot holds
    /// so many records.
    ///
    /// # Errors
    /// They cannot be read, or do not match.
    pub fn read_report(folder: &RunFolder) -> Result<(Past, RunReport, u64), PastError> {
        let (past, report, read) = Past::fold_report(folder)?;
        // One that has ended goes on with all of its records, if it does.
        let is_kept = report.finished.is_none() && read.is_long() && Past::write_report(folder, &report, &read);
        Ok((past, report, if is_kept { read.last().0 } else { read.folded_records() }))
    }

    /// Makes a snapshot of the report of a run, which may go on meanwhile. False where there will be no more.
    pub fn keep_report(folder: &RunFolder) -> bool {
        Past::fold_report(folder).is_ok_and(|(_, report, read)| Past::write_report(folder, &report, &read))
    }

    fn write_report(folder: &RunFolder, report: &RunReport, read: &JournalRead) -> bool {
        let write = || folder.write_snapshot(REPORT, read, |file| Ok(serde_json::to_writer(file, report)?));
        // A copy is resumed nowhere. Without a snapshot a run goes on as well; its disk may be full.
        !folder.is_copy() && write().unwrap_or(false)
    }

    fn fold_report(folder: &RunFolder) -> Result<(Past, RunReport, JournalRead), PastError> {
        // A snapshot that does not fit is passed over: the whole journal comes to the same report.
        if let Some(read) = folder.read_behind(REPORT).map_err(RunError::from)?
            && let Some(found) = Past::fold_read(folder, read)?
        {
            return Ok(found);
        }
        let found = Past::fold_read(folder, folder.read_journal().map_err(RunError::from)?)?;
        Ok(found.expect("without a snapshot there is none that does not fit"))
    }

    /// None where the snapshot does not fit.
    fn fold_read(folder: &RunFolder, read: JournalRead) -> Result<Option<(Past, RunReport, JournalRead)>, PastError> {
        let past = Past::new(folder, folder.plan_now(read.headers())?, vec![read.first.clone()])?;
        let empty = RunReport::new(&past.plan, past.pipeline(), past.task.as_deref());
        let restored = match &read.folded {
            None => Some(empty),
            Some(folded) => empty.restore(folded),
        };
        let Some(mut report) = restored else { return Ok(None) };
        for record in &read.records {
            report.apply(record);
        }
        Ok(Some((past, report, read)))
    }

    /// A run whose records are read already.
    ///
    /// # Errors
    /// Its plan cannot be read, or does not match them.
    pub fn from_records(folder: &RunFolder, records: Vec<Record>) -> Result<Past, PastError> {
        let plan = folder.plan_now(&records)?;
        Past::new(folder, plan, records)
    }

    /// A run whose records and plan are read already.
    ///
    /// # Errors
    /// They do not match.
    pub(crate) fn new(folder: &RunFolder, plan: Plan, records: Vec<Record>) -> Result<Past, PastError> {
        match records.first().map(|record| &record.event) {
            Some(Event::RunStarted { pipeline, task, params, .. }) if plan.pipeline(pipeline).is_some() => {
                let (pipeline, task, params) = (pipeline.clone(), task.clone(), params.clone());
                Ok(Past { plan, records, task, params, pipeline })
            }
            _ => Err(PastError::Mismatch { run: folder.id.clone() }),
        }
    }

    /// The same run, as it was after so many of its records.
    pub(crate) fn until(&self, records: usize) -> Past {
        let records = self.records[..records.min(self.records.len())].to_vec();
        let (plan, task, params) = (self.plan.clone(), self.task.clone(), self.params.clone());
        Past { plan, records, task, params, pipeline: self.pipeline.clone() }
    }

    /// The same run, as it goes on with another plan.
    ///
    /// # Errors
    /// The plan does not have its pipeline.
    pub fn with_plan(self, plan: Plan) -> Result<Past, PastError> {
        match plan.pipeline(&self.pipeline) {
            Some(_) => Ok(Past { plan, ..self }),
            None => Err(PastError::NoPipeline { pipeline: self.pipeline }),
        }
    }

    /// The pipeline that it executes.
    pub fn pipeline(&self) -> &Pipeline {
        self.plan.pipeline(&self.pipeline).expect("it was looked up when this was read")
    }

    /// The graph of its steps, as in the run itself.
    ///
    /// # Errors
    /// Its plan cannot be scheduled.
    pub fn build_graph(&self, folder: &RunFolder) -> Result<Arc<Graph>, GraphError> {
        Graph::new(&self.plan, &self.pipeline, self.task.as_deref(), folder.concurrency(&self.records)).map(Arc::new)
    }

    /// The report of it, folded from its journal.
    pub fn build_report(&self) -> RunReport {
        let mut report = RunReport::new(&self.plan, self.pipeline(), self.task.as_deref());
        for record in &self.records {
            report.apply(record);
        }
        report
    }

    /// What its journal tells of a step.
    pub fn read_step(&self, step: &StepId) -> StepHistory<'_> {
        StepHistory::collect(&self.records, step, self.plan.policy.on_timeout)
    }

    /// The artifacts of its steps, each with the step and the attempt that it belongs to.
    pub fn artifacts(&self) -> impl Iterator<Item = (&StepId, u32, &ArtifactMeta)> {
        let stored = self.records.iter().filter_map(|record| stored_artifacts(&record.event));
        stored.flat_map(|(step, attempt, artifacts)| artifacts.iter().map(move |artifact| (step, attempt, artifact)))
    }

    /// The answer to the request for approval of this number, with the step of it; none where it has none.
    pub fn find_verdict(&self, id: u32) -> Option<(&StepId, &Verdict)> {
        self.records.iter().rev().find_map(|record| match &record.event {
            Event::ApprovalAnswered { step, verdict, .. } if verdict.id == id => Some((step, verdict)),
            _ => None,
        })
    }
}
