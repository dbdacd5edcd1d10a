//! How an attempt ended.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::types::artifact::ArtifactMeta;

use super::room::{count_fitting_bytes, escaped_length, truncate_message};
use super::{Content, Failure, QUOTES, ROOM, SESSION, Usage};

/// How an attempt ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Outcome {
    /// Why it failed; none when it succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// What it put out. A failed command keeps its text, a failed agent has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Content>,
    /// The exit code of its process; 128 + N when signal N ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
    /// The tail of its stderr, at most [`INLINE`](super::INLINE) bytes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stderr: String,
    /// The end of what its command wrote to both streams, where something reads it; at most [`LOG`](swarmc_plan::LOG) bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<Content>,
    /// The tokens that the agent reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The agent's session, which a later turn could resume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The items of a for-each that failed: a JSON list of `{"index":…,"item":…,"message":…}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errors: Option<Content>,
    /// The agent that took the turn in place of the step's own, whose provider could not be reached (`fallback`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<String>,
    /// The further turns that the agent was given to mend its answer.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub repairs: u32,
    /// What its agent left in its folder (`files`): an [`AgentFiles`](crate::AgentFiles) as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<Box<Content>>,
    /// What else the turn of an agent left: what it was told, what it put out, what was said, and its answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<ArtifactMeta>,
    /// The earlier result that it took in the place of running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reused: Option<Box<Reused>>,
}

/// The earlier result that an attempt took in the place of running.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reused {
    /// The run whose attempt gave the result.
    pub run: String,
    /// That attempt.
    pub attempt: u32,
    /// The key under which the cache holds it.
    pub key: String,
    /// The tokens that it took then, and that this attempt did not take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

impl Outcome {
    /// That of an attempt that failed before it put anything out.
    pub(crate) fn from_failure(failure: Failure) -> Outcome {
        Outcome { failure: Some(failure), ..Outcome::default() }
    }

    /// Cuts the words about a failure so that the event stays below [`LARGEST`](super::LARGEST). The output is for the caller.
    pub(crate) fn limit_size(&mut self) {
        let cut = count_fitting_bytes(self.stderr.chars().rev());
        self.stderr.drain(..self.stderr.len() - cut);
        self.session.take_if(|session| escaped_length(session) > SESSION);
        match &mut self.failure {
            Some(
                Failure::Spawn { message }
                | Failure::Agent { message }
                | Failure::Render { message }
                | Failure::Inside { message }
                | Failure::Budget { message }
                | Failure::Files { message, .. },
            ) => {
                truncate_message(message);
            }
            Some(Failure::Check { line, .. }) => truncate_message(line),
            Some(Failure::Invalid { violations }) => {
                let mut room = ROOM;
                violations.iter_mut().for_each(truncate_message);
                violations.retain(|violation| {
                    let left = room.checked_sub(escaped_length(violation) + QUOTES);
                    room = left.unwrap_or(0);
                    left.is_some()
                });
            }
            Some(
                Failure::Exit
                | Failure::Timeout { .. }
                | Failure::Idle { .. }
                | Failure::Refused
                | Failure::Interrupted
                | Failure::Cancelled,
            )
            | None => {}
        }
    }

    /// Why the attempt failed, for people and for `error`: the tail of its stderr, or the runner's words.
    pub fn error(&self) -> Option<String> {
        let failure = self.failure.as_ref()?;
        let words = match (failure, self.exit) {
            (Failure::Exit, _) if !self.stderr.is_empty() => return Some(self.stderr.clone()),
            (Failure::Exit, Some(exit)) => format!("it exited with {exit}"),
            _ => failure.to_string(),
        };
        Some(words)
    }
}
