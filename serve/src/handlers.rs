//! The functions that answer: each reads what it needs of a run, and builds one document.

pub(crate) mod actions;
pub(crate) mod files;
pub(crate) mod general;
pub(crate) mod graph;
pub(crate) mod runs;
pub(crate) mod steps;
pub(crate) mod tasks;
pub(crate) mod timeline;
pub(crate) mod waits;

use std::collections::BTreeMap;

use swarmc_view::documents::{StepStatus, encode};
use swarmc_view::{FollowedRun, Row};

use crate::problem::Problem;
use crate::routes::Reply;
use crate::stream::EventId;

/// What a step that waits for others counts as, apart from a gate that waits for a person.
const BLOCKED: &str = "blocked";

/// A document as an answer.
fn reply(document: &impl serde::Serialize) -> Result<Reply, Problem> {
    Ok(Reply::Json(encode(document)))
}

/// The last event of a run that counts in it.
fn last_event(run: &FollowedRun) -> Option<String> {
    let (seq, sum) = run.last_line()?;
    Some(EventId { seq, sum }.to_string())
}

/// How a step that has begun stands.
fn state_of(row: &Row) -> &'static str {
    StepStatus::from(row.state).as_str()
}

/// How many steps stand where; those that have not begun count as [`BLOCKED`].
fn count_states(run: &FollowedRun) -> BTreeMap<String, u64> {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    let begun = run.report.rows.iter().map(state_of);
    for state in begun.chain(run.blocked_steps().map(|_| BLOCKED)) {
        *counts.entry(state.to_owned()).or_default() += 1;
    }
    counts
}

impl From<swarmc_view::Problem> for Problem {
    fn from(problem: swarmc_view::Problem) -> Problem {
        let words = match problem.help {
            Some(help) => format!("{}; {help}", problem.message),
            None => problem.message,
        };
        Problem::not_found(words)
    }
}
