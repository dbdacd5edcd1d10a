//! The ids of a step of a run and of its attempts: its name, its round, and what it is inside of.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A step of one instance in one round: deterministic, the same in every replay.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct StepId {
    /// The step's name.
    pub name: Arc<str>,
    /// The round, from 1.
    pub iteration: u32,
    /// The instance of the pipeline, from 1.
    pub instance: u32,
    /// The loop, item or call that it is inside of: `polish`, `triage[3]`, `build.2/polish`; none where it is a step of
    /// the pipeline itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<Arc<str>>,
}

impl StepId {
    /// A step of the pipeline itself.
    pub fn new(name: &str, iteration: u32, instance: u32) -> StepId {
        StepId { name: Arc::from(name), iteration, instance, within: None }
    }

    /// The item of a for-each that it is, or that it is inside of, as in `deploy[3]/build`: the innermost one.
    pub fn item(&self) -> Option<u32> {
        self.within.as_ref()?.rsplit('/').find_map(|part| part.strip_suffix(']')?.rsplit_once('[')?.1.parse().ok())
    }

    /// Its name with what it is inside of: `polish/draft`; an item has the name of its for-each, `triage[3]`.
    pub fn label(&self) -> String {
        let Some(within) = &self.within else { return self.name.to_string() };
        let last = within.rsplit('/').next().unwrap_or_default();
        match last.strip_suffix(']').and_then(|item| item.rsplit_once('[')) {
            Some((each, _)) if each.split(['.', '~']).next() == Some(&*self.name) => within.to_string(),
            _ => format!("{within}/{}", self.name),
        }
    }
}

impl std::fmt::Display for StepId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(within) = &self.within {
            write!(f, "{within}/")?;
        }
        write!(f, "{}/{}/{}", self.name, self.iteration, self.instance)
    }
}

/// An attempt of a step.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct AttemptId {
    /// The step.
    pub step: StepId,
    /// The attempt, from 1.
    pub attempt: u32,
}

impl AttemptId {
    /// An attempt of `step`.
    pub fn new(step: &StepId, attempt: u32) -> AttemptId {
        AttemptId { step: step.clone(), attempt }
    }
}
