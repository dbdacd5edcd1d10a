//! What people and programs see of runs: reports, documents and pictures.
//!
//! In: plans, the journals of runs, and the files beside them. Out: values, and words for people. Nothing here prints, and
//! nothing but runs is read. Only this crate reads the events of a run: [`RunReport`] follows a run with every record,
//! [`RunSummary`] is a run at a glance, [`StepHistory`] and [`RunEnds`] tell of a run that was read back. [`RunView`] is such
//! a run whole: it finds steps by their names, and builds the documents of `swarmc inspect`.

mod answers;
mod approvals;
mod change;
pub mod documents;
mod events;
mod follow;
pub mod graph;
mod node_view;
mod past;
mod printable;
mod problem;
mod questions;
mod run_ends;
mod run_report;
mod run_summary;
mod run_view;
mod step_history;
mod step_names;
mod step_view;
mod step_words;
mod team;
mod team_plan;
mod tool_uses;
mod units;

pub use answers::{
    OpenQuestion, check_receiver, check_running, check_unfinished, describe_answer, find_question, has_request,
    resolve_answer,
};
pub use approvals::{OpenRequest, describe_verdict, format_choices, format_due, list_choices};
pub use change::{Change, SwarmChange};
pub use events::{EventLine, EventsLine};
pub use follow::FollowedRun;
pub use node_view::{NodeView, ReadEnvelope};
pub use past::{Past, PastError};
pub use printable::{escape_hidden, make_printable, same_length, sanitize_line};
pub use problem::{Problem, did_you_mean};
pub use questions::{Question, format_ask, list_questions};
pub use run_ends::{EndReason, RunEnds, StepEnd};
pub use run_report::{Counts, EnvelopeCounts, Row, RowState, RunReport, describe_saving};
pub use run_summary::{RunSummary, list_runs, list_standings};
pub use run_view::{ArtifactError, RunView, is_reference};
pub use step_history::{
    AgentHistory, AgentTurn, AttemptHistory, Envelope, MailboxEntry, StepHistory, TurnEffect, TurnEnd,
};
pub use step_names::{has_step, list_steps, matches_step, resolve_agent, split_agent};
pub use step_view::{AgentView, StepView};
pub use step_words::{describe_step, describe_template, format_command, quote_word};
pub use team::{Spent, Team, TeamAgent, Traffic, describe_phase, is_supervisor};
pub use team_plan::Coordination;
pub use tool_uses::{UsedTool, read_tool_log};
pub use units::{format_count, format_duration, format_limit, format_moment, format_number, format_size, now_ms};
