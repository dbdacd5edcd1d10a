//! What people and programs see of runs: reports, documents and pictures.
//!
//! In: plans, and the journals of runs. Out: values, and words for people. Nothing here prints, and nothing reads but
//! through the home of the runtime. [`RunReport`] is the one reader of the events of a run.

mod approvals;
pub mod documents;
mod events;
pub mod graph;
mod past;
mod printable;
mod run_report;
mod team;
mod units;

pub use approvals::{OpenRequest, describe_verdict, format_choices, format_due};
pub use events::{EventLine, EventsLine};
pub use past::{Past, PastError};
pub use printable::{escape_hidden, make_printable, same_length, sanitize_line};
pub use run_report::{Counts, EnvelopeCounts, Row, RowState, RunReport};
pub use team::{Spent, Team, TeamAgent, describe_phase, is_supervisor};
pub use units::{format_count, format_duration, format_limit, format_moment, format_number, format_size, now_ms};
