//! Recordings: what a run asked of the world and what came back, and runs that get their answers from one.
//!
//! Every turn of an agent, call of a swarm's agent, command, check and file goes through [`Source`], live, recorded, or
//! replayed. The journal of a recorded run holds each exchange, and its recording is that journal with placeholders.
//! Invariant: a replay starts nothing, and ends where the first thing is asked that the recording does not hold word for
//! word.

mod effect;
mod exchange;
mod export;
mod folder;
mod read;
mod redact;
mod replay;
mod script;
mod swarm_turns;
mod write;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::io::workspace_file::read_file;
use crate::types::event::{Failure, StepId, Usage};

pub use exchange::RECORDING_VERSION;
pub use read::Recording;

pub(crate) use effect::{ReplayEffect, ReplayInput, Sending, Written};
pub(crate) use export::publish;
pub(crate) use redact::Redactions;
pub(crate) use replay::{GateTake, Replay};
pub(crate) use swarm_turns::{At, RecordedVerdict, requests};
pub(crate) use write::{Exchanged, Recorder, is_kept, may_replace};

/// Who answers what a run asks.
#[derive(Clone, Debug, Default)]
pub(crate) enum Source {
    /// Agents, programs and files.
    #[default]
    Live,
    /// They as well, and it is written down.
    Recorded(Arc<Recorder>),
    /// A recording.
    Replayed(Arc<Replay>),
}

/// Which of the things that one attempt asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    /// A turn of an agent: 0 for the step's own, from 1 for fallbacks; and the turn, from 1.
    Turn(u32, u32),
    /// The command.
    Command,
    /// A check, from 1.
    Check(u32),
}

/// What is asked, as far as the workflow says it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Question {
    pub agent: Option<String>,
    pub system: Option<String>,
    pub prompt: Option<String>,
    /// The command, as a person would type it.
    pub command: Option<String>,
    pub stdin: Option<String>,
    /// The variables that the step and its pipeline set.
    pub env: BTreeMap<String, String>,
    /// The conversation that a turn goes on with.
    pub session: Option<String>,
    /// The schema of the answer, where it is not in the prompt.
    pub schema: Option<String>,
}

/// What came back.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Answer {
    pub failure: Option<Failure>,
    pub exit: Option<i32>,
    /// The tail of standard error.
    pub stderr: String,
    pub usage: Option<Usage>,
    pub session: Option<String>,
    /// The end of what was put out; none where nothing was.
    pub text: Option<Vec<u8>>,
    /// The end of both streams of a command, where that is kept.
    pub log: Option<String>,
    /// The whole answer, where that is more than `text`.
    pub whole: Option<String>,
    /// Whether the beginning of `text` was dropped.
    pub is_cut: bool,
    /// Whether the agent used a tool.
    pub used_tool: bool,
    /// The operations in lines of it that were refused, each with why.
    pub refused: Vec<String>,
}

impl Source {
    /// Whether agents and programs start, and files of the workspace are read and changed.
    pub(crate) fn is_real(&self) -> bool {
        !matches!(self, Source::Replayed(_))
    }

    /// Whether the run is recorded.
    pub(crate) fn is_recorded(&self) -> bool {
        matches!(self, Source::Recorded(_))
    }

    /// The exchanges that the journal does not hold yet.
    pub(crate) fn take_exchanges(&self) -> Vec<Exchanged> {
        match self {
            Source::Recorded(recorder) => recorder.take_pending(),
            Source::Live | Source::Replayed(_) => Vec::new(),
        }
    }

    /// The contents of a file of the workspace, for a text of an attempt.
    pub(crate) fn file(&self, of: (&StepId, u32), workspace: &Path, path: &str) -> Result<String, String> {
        self.told(of, path, || read_file(workspace, path))
    }

    /// A text as a recording holds it: what is made from it is the same in every run that is recorded, and in replays.
    pub(crate) fn blank<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self {
            Source::Live => Cow::Borrowed(text),
            Source::Recorded(recorder) => Cow::Owned(recorder.redactions.blank_text(text)),
            Source::Replayed(replay) => Cow::Owned(replay.redactions.blank_text(text)),
        }
    }

    /// What the workspace says to a question of a text of an attempt; `path` names it in a recording.
    pub(crate) fn told(
        &self,
        of: (&StepId, u32),
        path: &str,
        read: impl FnOnce() -> Result<String, String>,
    ) -> Result<String, String> {
        match self {
            Source::Live => read(),
            Source::Recorded(recorder) => {
                let read = read();
                recorder.file(of, path, &read).map_err(|error| error.to_string())?;
                read
            }
            // Beyond what was recorded, files are read: that starts nothing.
            Source::Replayed(replay) => replay.file(of.0, of.1, path).unwrap_or_else(read),
        }
    }
}

impl Answer {
    /// All of the answer that there is, as text; empty where there is none.
    pub(crate) fn read_text(&self) -> String {
        match (&self.whole, &self.text) {
            (Some(whole), _) => whole.clone(),
            (None, Some(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
            (None, None) => String::new(),
        }
    }

    pub(crate) fn failed(failure: Failure) -> Answer {
        Answer { failure: Some(failure), ..Answer::default() }
    }
}

/// Words for a step, its round and its attempt.
pub(crate) fn words(step: &StepId, attempt: u32) -> String {
    let mut words = format!("`{}`", step.label());
    let mut notes = Vec::new();
    if step.instance > 1 {
        notes.push(format!("instance {}", step.instance));
    }
    if step.iteration > 1 {
        notes.push(format!("round {}", step.iteration));
    }
    if attempt > 1 {
        notes.push(format!("attempt {attempt}"));
    }
    if !notes.is_empty() {
        words.push_str(&format!(" ({})", notes.join(", ")));
    }
    words
}
