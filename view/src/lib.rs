//! What people and programs see of runs: reports, documents and pictures.
//!
//! In: plans, and the journals of runs. Out: values, and words for people. Nothing here prints, and nothing reads but
//! through the home of the runtime. Only this crate reads the events of a run: [`RunReport`] follows a run with every
//! record, [`RunSummary`] is a run at a glance, [`StepHistory`] and [`RunEnds`] tell of a run that was read back.

mod approvals;
mod change;
pub mod documents;
mod events;
mod follow;
pub mod graph;
mod past;
mod printable;
mod run_ends;
mod run_report;
mod run_summary;
mod step_history;
mod team;
mod team_plan;
mod units;

pub use approvals::{OpenRequest, describe_verdict, format_choices, format_due};
pub use change::{Change, SwarmChange};
pub use events::{EventLine, EventsLine};
pub use follow::FollowedRun;
pub use past::{Past, PastError};
pub use printable::{escape_hidden, make_printable, same_length, sanitize_line};
pub use run_ends::{EndReason, RunEnds, StepEnd};
pub use run_report::{Counts, EnvelopeCounts, Row, RowState, RunReport};
pub use run_summary::{RunSummary, list_runs, list_standings};
pub use step_history::{
    AgentHistory, AgentTurn, AttemptHistory, Envelope, MailboxEntry, StepHistory, TurnEffect, TurnEnd,
};
pub use team::{Spent, Team, TeamAgent, describe_phase, is_supervisor};
pub use team_plan::Coordination;
pub use units::{format_count, format_duration, format_limit, format_moment, format_number, format_size, now_ms};
