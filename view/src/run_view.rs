//! A run that was read back whole, and what one looks at in it: the run, its steps, its artifacts.
//!
//! In: the folder of a run. Out: the documents of `swarmc inspect --json`, and the steps that words mean. It is what the run
//! was when it was opened: records that come later do not show, though files beside the journal do.

use std::borrow::Cow;

use swarmc_runtime::artifact::ArtifactMeta;
use swarmc_runtime::{Layout, LeftProcesses, RunError, RunFolder, State, StepId};

use crate::documents::{
    ArtifactText, ArtifactTurn, Run, RunDetails, StepFiles, StepPaths, StepRow, Version, content_digest,
};
use crate::follow::FollowedRun;
use crate::past::{Past, PastError};
use crate::printable::make_printable;
use crate::problem::{Problem, did_you_mean};
use crate::run_report::{Row, RunReport};
use crate::run_summary::RunSummary;
use crate::step_names::{list_steps, matches_step};
use crate::step_view::StepView;

/// The references that are listed where one is not known.
const LISTED: usize = 20;

/// A run that was read back whole.
#[derive(Debug)]
pub struct RunView {
    /// Its folder.
    pub folder: RunFolder,
    /// Its plan and its journal.
    pub past: Past,
    /// How far it is.
    pub report: RunReport,
    layout: Layout,
}

/// Why an artifact cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum ArtifactError {
    /// The run has no artifact of this reference.
    #[error(transparent)]
    Unknown(Problem),
    /// Its text cannot be read.
    #[error(transparent)]
    Lost(#[from] RunError),
}

impl RunView {
    /// Reads a run from its folder.
    ///
    /// # Errors
    /// Its plan or its journal cannot be read, or they do not match.
    pub fn open(folder: RunFolder) -> Result<RunView, PastError> {
        let past = Past::read(&folder)?;
        Ok(RunView::new(folder, past))
    }

    /// A run that is read already.
    pub fn new(folder: RunFolder, past: Past) -> RunView {
        let (report, layout) = (past.build_report(), folder.layout(past.pipeline()));
        RunView { folder, past, report, layout }
    }

    /// A run that is followed, as it is now.
    pub fn of_followed(run: &FollowedRun) -> RunView {
        let (folder, past, report) = (run.folder.clone(), run.past.clone(), run.report.clone());
        let layout = folder.layout(past.pipeline());
        RunView { folder, past, report, layout }
    }

    /// The last of the steps that a word means; one that has not begun, where it means none that has.
    ///
    /// # Errors
    /// It means no step.
    pub fn find_step(&self, word: &str) -> Result<StepView<'_>, Problem> {
        let report = self.note_blocked(word);
        let Some(row) = report.rows.iter().rposition(|row| matches_step(&report, &row.step, word)) else {
            let labels = list_steps(&self.past);
            let help = did_you_mean(word, labels.iter().map(String::as_str));
            return Err(Problem::with_help(format!("there is no step `{word}` in run `{}`", self.folder.id), help));
        };
        Ok(StepView::new((&self.folder, &self.layout, &self.past), report, row))
    }

    /// The report; with the steps that a word means and that have not begun, where it means none that has.
    fn note_blocked(&self, word: &str) -> Cow<'_, RunReport> {
        let report = &self.report;
        if report.rows.iter().any(|row| matches_step(report, &row.step, word)) {
            return Cow::Borrowed(report);
        }
        let Ok(graph) = self.past.build_graph(&self.folder) else { return Cow::Borrowed(report) };
        let state = State::replay(graph, &self.past.records);
        let blocked = state.blocked_steps().map(|(step, _)| step).filter(|step| matches_step(report, step, word));
        let blocked: Vec<StepId> = blocked.collect();
        if blocked.is_empty() {
            return Cow::Borrowed(report);
        }
        let mut report = report.clone();
        blocked.iter().for_each(|step| report.mark_blocked(step));
        Cow::Owned(report)
    }

    /// What `swarmc inspect RUN --json` prints.
    pub fn run_document(&self) -> RunDetails {
        let rows = self.report.rows.iter();
        RunDetails {
            version: Version,
            run: Run::from(&RunSummary::read(&self.folder, &LeftProcesses::default())),
            folder: self.folder.path.clone(),
            outputs: self.folder.outputs.clone(),
            steps: rows.map(|row| StepFiles { row: StepRow::from(row), paths: self.step_paths(row) }).collect(),
        }
    }

    /// The files of the last attempt of a step, without those that only the step says of itself.
    pub fn step_paths(&self, row: &Row) -> StepPaths {
        // What a step says of itself holds the system text as well.
        let found = StepPaths::find(&self.layout, &row.step, row.attempt.max(1), true);
        StepPaths { system: None, ..found }
    }

    /// What `swarmc inspect RUN REFERENCE --json` prints.
    ///
    /// # Errors
    /// The run has no such artifact, or its text cannot be read.
    pub fn artifact_document(&self, reference: &str) -> Result<ArtifactText, ArtifactError> {
        let mut known: Vec<String> = Vec::new();
        let mut found: Vec<(String, u32, &ArtifactMeta)> = Vec::new();
        for (step, attempt, kept) in self.past.artifacts() {
            let name = kept.reference();
            if name == reference {
                found.push((self.report.label(step), attempt, kept));
            } else if !known.contains(&name) {
                known.push(name);
            }
        }
        let Some((_, _, kept)) = found.first() else {
            return Err(ArtifactError::Unknown(self.refuse_reference(reference, &known)));
        };
        let text = self.folder.read_text(&kept.content)?;
        let of = found.iter().map(|(step, turn, _)| ArtifactTurn { step: step.clone(), turn: *turn });
        Ok(ArtifactText {
            version: Version,
            run: self.folder.id.clone(),
            reference: reference.to_owned(),
            kind: kept.kind,
            id: kept.id.to_string(),
            bytes: text.len(),
            digest: content_digest(&kept.content).map(str::to_owned),
            of: of.collect(),
            text,
        })
    }

    fn refuse_reference(&self, reference: &str, known: &[String]) -> Problem {
        let id = &self.folder.id;
        let first = known.iter().take(LISTED).cloned().collect::<Vec<_>>().join("\n");
        let help = match known.len() {
            0 => "it has none".to_owned(),
            1..=LISTED => format!("it has\n{first}"),
            all => {
                let left = all - LISTED;
                format!("it has\n{first}\nand {left} more: `swarmc inspect {id} STEP` lists those of a step")
            }
        };
        Problem::with_help(format!("run `{id}` has no artifact `{}`", make_printable(reference)), help)
    }
}

/// Whether a word is the reference of an artifact, and no step.
pub fn is_reference(word: &str) -> bool {
    word.contains("://")
}
