//! Virtual time of a rehearsal: how long answers take, and the process results that they stand for.

use swarmc_plan::{LOG, Step};

use super::api::Answer;
use crate::types::event::Failure;

/// How long an attempt takes, in milliseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    /// Altogether.
    pub(super) total: u64,
    /// The longest time without an answer.
    pub(super) silent: u64,
}

impl Pace {
    /// When an attempt is ended for taking too long, and how.
    pub(super) fn late(self, step: &Step) -> Option<(u64, Failure)> {
        let over = step.timeout_ms.filter(|&limit| self.total > limit);
        let over = over.map(|after_ms| (after_ms, Failure::Timeout { after_ms }));
        let idle = step.idle_ms.filter(|&limit| self.silent > limit);
        let idle = idle.map(|after_ms| (after_ms, Failure::Idle { after_ms }));
        over.into_iter().chain(idle).min_by_key(|(after, _)| *after)
    }
}

/// What a process said.
pub(super) struct Said {
    pub(super) text: String,
    pub(super) exit: i32,
    pub(super) stderr: String,
}

impl Said {
    /// The end of both streams.
    pub(super) fn log(&self) -> String {
        let streams = [self.text.as_str(), &self.stderr];
        let mut log = streams.into_iter().filter(|stream| !stream.is_empty()).collect::<Vec<_>>().join("\n");
        log.drain(..log.ceil_char_boundary(log.len().saturating_sub(LOG)));
        log
    }
}

/// What an answer is as that of a process, its time added to that of the attempt.
pub(super) fn said(answer: Answer, pace: &mut Pace) -> Said {
    let (delay, answer) = answer.timed();
    pace.total = pace.total.saturating_add(delay);
    pace.silent = pace.silent.max(delay);
    let (text, exit, stderr) = match answer {
        Answer::Text(text) => (text, 0, String::new()),
        Answer::Json(value) => (value.to_string(), 0, String::new()),
        Answer::Failure { exit, output, stderr } => (output, exit.max(1), stderr),
        Answer::Choice { .. } | Answer::Unanswered | Answer::After(..) => {
            (String::new(), 1, "no choice is asked for here".to_owned())
        }
    };
    Said { text, exit, stderr }
}
