//! What an agent says of itself while its turn goes on: what `status.json` of seed 003 says, but for its state, which
//! the run knows.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::envelope::MESSAGE_LIMIT;
use crate::types::agent_status::{AgentState, AgentStatus, LONGEST as STATUS_LIMIT, Progress, summarize_progress};

/// The name of a report's words in a status.
const MESSAGE: &str = "message";

/// How far an agent is, in its words.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// How far you are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// What people should know, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What you count, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<Map<String, Value>>,
}

impl Report {
    /// It as JSON, within the bounds of a `status.json`.
    ///
    /// # Errors
    /// It says nothing, too much, or that more is done than there is.
    pub(crate) fn to_json(&self) -> Result<String, String> {
        if *self == Report::default() {
            return Err("the report is empty: give `progress`, `message` or `metrics`".to_owned());
        }
        if let Some(problem) = self.progress.as_ref().and_then(Progress::find_problem) {
            return Err(format!("`progress` says {problem}"));
        }
        let chars = self.message.as_deref().map_or(0, |message| message.chars().count());
        if chars > MESSAGE_LIMIT {
            return Err(format!("`message` has {chars} characters, but at most {MESSAGE_LIMIT} are allowed"));
        }
        let text = serde_json::to_string(self).map_err(|error| error.to_string())?;
        match text.len() as u64 {
            0..=STATUS_LIMIT => Ok(text),
            bytes => Err(format!("the report has {bytes} bytes, but at most {STATUS_LIMIT} are allowed")),
        }
    }

    /// How far the agent is, in a few words: `2/5 analyzing_data`.
    pub fn summarize(&self) -> String {
        summarize_progress(self.progress.as_ref(), self.metrics.as_ref(), self.message.as_deref())
            .trim_start()
            .to_owned()
    }

    /// What the agent says of itself in all: in its `status.json`, where it has one, and here.
    pub fn merge_into(self, status: Option<AgentStatus>) -> AgentStatus {
        let mut status = status.unwrap_or_else(|| AgentStatus { state: AgentState::Running, ..AgentStatus::default() });
        status.progress = self.progress.or(status.progress);
        status.metrics = self.metrics.or(status.metrics);
        if let Some(message) = self.message {
            status.more.insert(MESSAGE.to_owned(), Value::String(message));
        }
        status
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report(said: Value) -> Report {
        serde_json::from_value(said).unwrap()
    }

    #[test]
    fn a_report_is_shown_as_a_status_is() {
        let progress = json!({ "current_step": "analyzing", "steps_completed": 2, "total_steps": 5 });
        let said = report(json!({ "progress": progress, "message": "Half way", "metrics": { "files": 12 } }));
        assert_eq!(said.summarize(), "2/5 analyzing (files 12): Half way");
        assert_eq!(said.clone().merge_into(None).summarize(), "running 2/5 analyzing (files 12): Half way");
        let status = AgentStatus::parse_status(r#"{"state": "pending", "metrics": {"rows": 1}}"#).unwrap();
        let both = report(json!({ "progress": { "current_step": "reading" } })).merge_into(Some(status));
        assert_eq!(both.summarize(), "pending reading (rows 1)");
        assert_eq!(report(json!({ "message": "Done" })).summarize(), "Done");
    }

    #[test]
    fn a_report_says_something_and_not_too_much() {
        assert!(Report::default().to_json().unwrap_err().starts_with("the report is empty"));
        let progress = |done: u64, total: u64| {
            report(json!({ "progress": { "steps_completed": done, "total_steps": total } })).to_json()
        };
        assert!(progress(5, 5).is_ok() && progress(0, 1).is_ok());
        assert_eq!(
            progress(6, 5).unwrap_err(),
            "`progress` says that 6 of 5 steps are done: `total_steps` is all of them"
        );
        assert_eq!(progress(0, 0).unwrap_err(), "`progress` says that there are 0 steps: leave `total_steps` out");
        assert!(
            report(json!({ "message": "x".repeat(4001) })).to_json().unwrap_err().ends_with("at most 4000 are allowed")
        );
        assert!(report(json!({ "metrics": { "a": "x".repeat(70_000) } })).to_json().unwrap_err().contains("65536"));
        let wrong: Result<Report, _> = serde_json::from_value(json!({ "state": "completed" }));
        assert!(wrong.unwrap_err().to_string().contains("unknown field `state`"));
    }
}
