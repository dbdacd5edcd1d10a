//! One step of a run with all that is known of it, and the agents of its swarm.
//!
//! In: a run that was read back, and the files beside its journal. Out: the documents of `swarmc inspect RUN STEP --json`,
//! and accessors for those who show the same to people. A file that cannot be read counts as one that is not there; of a text
//! that the journal names, why it cannot be read stands in its place, in parentheses.

mod agent;

use std::borrow::Cow;

use swarmc_runtime::handoff::Report;
use swarmc_runtime::{AgentFiles, Content, Layout, RunFolder, Verdict, agent_status};

use crate::approvals::{OpenRequest, describe_verdict};
use crate::documents::{ApprovalDetails, OpenGate, StepDetails, StepPaths, StepRow, Try, Version};
use crate::node_view::NodeView;
use crate::past::Past;
use crate::run_report::{Row, RowState, RunReport};
use crate::step_history::{AttemptHistory, StepHistory};
use crate::team::Team;
use crate::units::now_ms;

pub use agent::AgentView;

/// A step of a run.
#[derive(Debug)]
pub struct StepView<'r> {
    folder: &'r RunFolder,
    layout: &'r Layout,
    past: &'r Past,
    report: Cow<'r, RunReport>,
    row: usize,
    history: StepHistory<'r>,
}

impl<'r> StepView<'r> {
    /// The step of this row of a report.
    pub(crate) fn new(
        (folder, layout, past): (&'r RunFolder, &'r Layout, &'r Past),
        report: Cow<'r, RunReport>,
        row: usize,
    ) -> StepView<'r> {
        let history = past.read_step(&report.rows[row].step);
        StepView { folder, layout, past, report, row, history }
    }

    /// The folder of its run.
    pub fn folder(&self) -> &'r RunFolder {
        self.folder
    }

    /// The report of its run. It has rows of steps that have not begun where the name of this one means only such steps.
    pub fn report(&self) -> &RunReport {
        &self.report
    }

    /// Where it stands.
    pub fn row(&self) -> &Row {
        &self.report.rows[self.row]
    }

    /// What the journal tells of it.
    pub fn history(&self) -> &StepHistory<'r> {
        &self.history
    }

    /// What its swarm did, where it is one that has begun.
    pub fn team(&self) -> Option<&Team> {
        self.report.teams.get(&self.row().step)
    }

    /// As one names it.
    pub fn label(&self) -> String {
        self.report.label(&self.row().step)
    }

    /// The number of its last attempt, or of the one that comes.
    pub fn last_attempt(&self) -> u32 {
        self.row().attempt.max(1)
    }

    /// What the journal tells of an attempt.
    pub fn attempt(&self, attempt: u32) -> Option<&AttemptHistory<'r>> {
        self.history.attempts.get(&attempt)
    }

    /// What it is as a node.
    pub fn read_node(&self) -> NodeView<'_> {
        let run = (self.folder, self.layout, self.past);
        NodeView::read(run, &self.history, &self.row().step, self.last_attempt())
    }

    /// The files of an attempt, those that there are.
    pub fn attempt_paths(&self, attempt: u32) -> StepPaths {
        StepPaths::find(self.layout, &self.row().step, attempt, attempt == self.last_attempt())
    }

    /// What an agent that works by files left in an attempt; while it is at work, what it says of itself.
    pub fn agent_files(&self, attempt: u32) -> Option<AgentFiles> {
        if let Some(left) = self.attempt(attempt).and_then(|known| known.files) {
            return serde_json::from_str(&self.folder.read_text(left).ok()?).ok();
        }
        let folder = self.layout.agent_folder(&self.row().step, attempt);
        let status = agent_status(&folder)?;
        let name = folder.strip_prefix(&self.folder.path).unwrap_or(&folder).to_string_lossy().into_owned();
        Some(AgentFiles { folder: name, status: Some(status), ..AgentFiles::default() })
    }

    /// What the agent of an attempt reported last.
    pub fn last_report(&self, attempt: u32) -> Option<Report> {
        let report = self.attempt(attempt)?.report?;
        serde_json::from_str(&self.load_text(report)).ok()
    }

    /// The answer to a request; that it waits for one, and what the run does without one.
    pub fn describe_answer(&self, request: &OpenRequest, verdict: Option<&Verdict>) -> String {
        if let Some(verdict) = verdict {
            return describe_verdict(verdict);
        }
        let open = self.report.approvals.get(&request.request.id);
        let expiry = open.and_then(|open| open.describe_expiry(now_ms()));
        expiry.map_or("waits for an answer".to_owned(), |expiry| format!("waits for an answer, {expiry}"))
    }

    /// A text of the journal; why it cannot be read, where it cannot.
    pub fn load_text(&self, content: &Content) -> String {
        self.folder.read_text(content).unwrap_or_else(|error| format!("({error})"))
    }

    /// What `swarmc inspect RUN STEP --json` prints.
    pub fn to_document(&self) -> StepDetails {
        let read = |content: &Content| self.load_text(content);
        let attempts = (1..=self.last_attempt()).map(|attempt| Try {
            attempt,
            summarizer: self.attempt(attempt).and_then(|known| known.summarizer).map(str::to_owned),
            paths: self.attempt_paths(attempt),
            files: self.agent_files(attempt),
            report: self.last_report(attempt),
        });
        let asked = &self.history.requests;
        StepDetails {
            row: StepRow::from(self.row()),
            version: Version,
            run: self.folder.id.clone(),
            tries: attempts.collect(),
            approvals: asked.iter().map(|(open, verdict)| ApprovalDetails::new(open, *verdict, read)).collect(),
            gate: self.open_gate(),
            node: self.read_node().into_document(self.folder),
            swarm: self.team().map(|team| team.to_document(read)),
        }
    }

    /// What a person is asked, while the step waits for that.
    fn open_gate(&self) -> Option<OpenGate> {
        let row = self.row();
        if row.state != RowState::Asking {
            return None;
        }
        let message = row.question.as_ref().map(|message| self.load_text(message)).unwrap_or_default();
        Some(OpenGate::new(message, self.report.gates.get(&*row.step.name)))
    }
}
