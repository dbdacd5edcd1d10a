//! `status.json`: how far an agent says that it is.
//!
//! In: the file's text, at each look. Out: a status, or what is wrong with it. Invariant: a state is
//! followed by one that may follow it, `pending → running → completed` or `failed`; between two looks one may be missed.

use schemars::JsonSchema;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::visible_text::shown;

/// The bytes of a status at most.
pub(crate) const LONGEST: u64 = 64 * 1024;

/// The characters of its words that are shown.
const SHOWN: usize = 500;

/// What `status.json` says, all of it: it is written again as it was read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Map<String, Value>")]
pub struct AgentStatus {
    /// The agent's state.
    pub state: AgentState,
    /// When it began, in its words; where it says nothing, at the end, as the run saw it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<String>,
    /// When it was done, in its words; where it says nothing, at the end, as the run saw it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed: Option<String>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Trouble>,
    /// How far it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// What it counts, by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics: Option<Map<String, Value>>,
    /// What else it says, and what it says there is none of.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

impl TryFrom<Map<String, Value>> for AgentStatus {
    type Error = serde_json::Error;

    fn try_from(mut said: Map<String, Value>) -> Result<AgentStatus, serde_json::Error> {
        fn take<T: DeserializeOwned>(said: &mut Map<String, Value>, name: &str) -> serde_json::Result<Option<T>> {
            match said.get(name) {
                None | Some(Value::Null) => Ok(None),
                Some(_) => said.remove(name).map(serde_json::from_value).transpose(),
            }
        }
        let said = &mut said;
        Ok(AgentStatus {
            state: take(said, "state")?.ok_or_else(|| serde_json::Error::custom("missing field `state`"))?,
            started: take(said, "started")?,
            completed: take(said, "completed")?,
            error: take(said, "error")?,
            progress: take(said, "progress")?,
            metrics: take(said, "metrics")?,
            more: std::mem::take(said),
        })
    }
}

/// The state of an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentState {
    /// Created, and not yet at work.
    #[default]
    Pending,
    /// At work.
    Running,
    /// Done.
    Completed,
    /// It cannot go on.
    Failed,
}

/// Why an agent failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Trouble {
    /// As the protocol has it.
    Told {
        /// What kind of error it is.
        #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
        kind: Option<String>,
        /// What happened.
        message: String,
        /// More about it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        details: Option<Value>,
        /// Whether another attempt could succeed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        recoverable: Option<bool>,
    },
    /// In a word.
    Said(String),
}

/// How far an agent is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Progress {
    /// What it does now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_step: Option<String>,
    /// The steps that it has done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps_completed: Option<u64>,
    /// All of its steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_steps: Option<u64>,
    /// What else it says.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

impl Progress {
    /// What cannot be so, where it says how many steps are done of how many.
    pub(crate) fn find_problem(&self) -> Option<String> {
        match (self.steps_completed, self.total_steps?) {
            (_, 0) => Some("that there are 0 steps: leave `total_steps` out".to_owned()),
            (Some(done), total) if done > total => {
                Some(format!("that {done} of {total} steps are done: `total_steps` is all of them"))
            }
            _ => None,
        }
    }
}

impl AgentState {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            AgentState::Pending => "pending",
            AgentState::Running => "running",
            AgentState::Completed => "completed",
            AgentState::Failed => "failed",
        }
    }

    /// Whether an agent in this state can be in that one at the next look.
    pub(crate) fn may_become(self, next: AgentState) -> bool {
        match self {
            AgentState::Pending => true,
            AgentState::Running => next != AgentState::Pending,
            AgentState::Completed | AgentState::Failed => next == self,
        }
    }
}

impl AgentStatus {
    /// Reads the text of a `status.json`.
    ///
    /// # Errors
    /// It is none: says what is wrong.
    pub fn parse_status(text: &str) -> Result<AgentStatus, String> {
        let value: Value = serde_json::from_str(text).map_err(|error| format!("it is no JSON ({error})"))?;
        let Some(state) = value.get("state") else { return Err("it has no `state`".to_owned()) };
        if serde_json::from_value::<AgentState>(state.clone()).is_err() {
            let state = shown(&state.to_string());
            return Err(format!("its `state` is {state}, and none of `pending`, `running`, `completed` and `failed`"));
        }
        serde_json::from_value(value).map_err(|error| format!("it is no status ({})", shown(&error.to_string())))
    }

    /// How far the agent is, in a few words: `2/5 analyzing_data`.
    pub fn summarize(&self) -> String {
        let message = self.more.get("message").and_then(Value::as_str);
        format!("{}{}", self.state.as_str(), summarize_progress(self.progress.as_ref(), self.metrics.as_ref(), message))
    }

    /// Why the agent failed, in its words.
    pub(crate) fn describe_trouble(&self) -> String {
        let cut = |text: &str| -> String { text.chars().take(SHOWN).collect() };
        match &self.error {
            None => "the agent does not say why".to_owned(),
            Some(Trouble::Said(message)) => cut(message),
            Some(Trouble::Told { kind, message, details, .. }) => {
                let mut words = match kind {
                    Some(kind) => format!("{}: {}", cut(kind), cut(message)),
                    None => cut(message),
                };
                if let Some(details) = details.as_ref().filter(|details| !details.is_null()) {
                    let details = details.as_str().map_or_else(|| details.to_string(), str::to_owned);
                    words.push_str(&format!(" ({})", cut(&details)));
                }
                words
            }
        }
    }

    /// Whether the agent says that another attempt would fail as well.
    pub(crate) fn is_lasting(&self) -> bool {
        matches!(self.error, Some(Trouble::Told { recoverable: Some(false), .. }))
    }
}

/// How far an agent is, in a few words, behind its state.
pub(crate) fn summarize_progress(
    progress: Option<&Progress>,
    metrics: Option<&Map<String, Value>>,
    message: Option<&str>,
) -> String {
    let mut sum = String::new();
    if let Some(progress) = progress {
        let Progress { current_step, steps_completed, total_steps, .. } = progress;
        match (steps_completed, total_steps) {
            // What a file says cannot be refused, and its state counts whatever its numbers are.
            (Some(done), Some(total)) if progress.find_problem().is_some() => {
                sum.push_str(&format!(" {done} (it says of {total})"));
            }
            (Some(done), Some(total)) => sum.push_str(&format!(" {done}/{total}")),
            (Some(done), None) => sum.push_str(&format!(" {done}")),
            (None, _) => {}
        }
        if let Some(step) = current_step {
            sum.push_str(&format!(" {}", shown(step)));
        }
    }
    let counted = metrics.into_iter().flatten().take(5).map(|(name, value)| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        format!("{} {}", shown(name), shown(&value))
    });
    let counted: Vec<String> = counted.collect();
    if !counted.is_empty() {
        sum.push_str(&format!(" ({})", counted.join(", ")));
    }
    if let Some(message) = message.filter(|message| !message.is_empty()) {
        sum.push_str(if sum.is_empty() { " " } else { ": " });
        sum.push_str(&shown(message));
    }
    sum
}

/// What `status.json` says before the agent begins.
pub(crate) fn render_pending() -> String {
    let status = json!({
        "state": "pending", "started": null, "completed": null, "error": null,
        "progress": { "current_step": null, "steps_completed": 0, "total_steps": null }, "metrics": {},
    });
    format!("{status:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_followed_by_one_that_may_follow_it() {
        use AgentState::{Completed, Failed, Pending, Running};
        for (from, to, holds) in [
            (Pending, Running, true),
            (Running, Completed, true),
            (Running, Failed, true),
            (Pending, Completed, true),
            (Running, Running, true),
            (Running, Pending, false),
            (Completed, Running, false),
            (Completed, Failed, false),
            (Failed, Completed, false),
            (Failed, Pending, false),
        ] {
            assert_eq!(from.may_become(to), holds, "{from:?} {to:?}");
        }
    }

    #[test]
    fn what_is_no_status_is_named() {
        let problem = |text: &str| AgentStatus::parse_status(text).unwrap_err();
        assert!(problem("{\"state\": \"runn").starts_with("it is no JSON"));
        assert_eq!(problem("{}"), "it has no `state`");
        assert!(problem("{\"state\": \"done\"}").contains("is \"done\", and none of"));
        assert!(problem("{\"state\": \"running\", \"progress\": 3}").starts_with("it is no status"));
        assert!(problem("[]").contains("no `state`"));
        assert_eq!(AgentStatus::parse_status(&render_pending()).unwrap().summarize(), "pending 0");
        let progress = |done: u64, total: u64| {
            let status = json!({ "state": "running", "progress": { "steps_completed": done, "total_steps": total } });
            AgentStatus::parse_status(&status.to_string()).unwrap().summarize()
        };
        assert_eq!([progress(3, 5), progress(7, 5)], ["running 3/5", "running 7 (it says of 5)"]);
    }
}
