//! The questions of a run to people: the gates that ask, and the requests of agents.
//!
//! In: a report, and the folder of its run. Out: [`Question`]s, gates first, each kind in the order in which it came. Their
//! lines are for people: characters that cannot be seen are written as their codes.

use swarmc_plan::{GateDefault, GateTimeout};
use swarmc_runtime::{Content, RunFolder};

use crate::approvals::{format_due, list_choices};
use crate::documents::{GateField, OpenGate};
use crate::printable::escape_hidden;
use crate::run_report::{Row, RowState, RunReport};

/// A question to people.
#[derive(Debug)]
pub struct Question {
    /// What an answer names it by: the number of a request, or the id of a gate.
    pub key: String,
    /// The step that asks, by its label.
    pub step: String,
    /// Who wants what, where an agent asks; none for a gate.
    pub request: Option<String>,
    /// The whole text.
    pub lines: Vec<String>,
    /// The words that answer it; none where they are not known.
    pub choices: Vec<String>,
    /// What a gate asks for besides.
    pub fields: Vec<GateField>,
    /// Whether an answer may give other arguments.
    pub takes_arguments: bool,
    /// Since when it waits, in milliseconds since 1970.
    pub since_ms: u64,
    /// What becomes of it without an answer, and when; none where it waits for ever.
    pub expiry: Option<String>,
}

impl Question {
    /// The arguments of `swarmc approve` for its fields, each with a blank before it: ` --ask name=…`.
    pub fn format_asks(&self) -> String {
        self.fields.iter().map(|field| format_ask(&field.name, field.optional)).collect()
    }
}

/// The argument of `swarmc approve` for a field, with a blank before it; in brackets where it may be left out.
pub fn format_ask(name: &str, is_optional: bool) -> String {
    if is_optional { format!(" [--ask {name}=…]") } else { format!(" --ask {name}=…") }
}

/// The questions of a run that wait for an answer, at this time in milliseconds since 1970.
pub fn list_questions(report: &RunReport, folder: &RunFolder, now: u64) -> Vec<Question> {
    let read = |text: &Content| folder.read_text(text).ok();
    let gates = report.rows.iter().filter(|row| row.state == RowState::Asking);
    let gates = gates.map(|row| describe_gate(report, row, read, now));
    let requests = report.approvals.values().map(|open| Question {
        key: open.request.id.to_string(),
        step: report.label(&open.step),
        request: Some(open.describe()),
        lines: open.detail_lines(read),
        choices: list_choices(&open.request.wants),
        fields: Vec::new(),
        takes_arguments: open.request.wants.takes_arguments(),
        since_ms: open.since,
        expiry: open.describe_expiry(now),
    });
    gates.chain(requests).collect()
}

fn describe_gate(report: &RunReport, row: &Row, read: impl Fn(&Content) -> Option<String>, now: u64) -> Question {
    let declared = report.gates.get(&*row.step.name);
    let message = row.question.as_deref().and_then(read).unwrap_or_default();
    let OpenGate { options, asks, .. } = OpenGate::new(String::new(), declared);
    // A failed step that waits for a decision has waited since its end.
    let since_ms = row.started_ms.max(row.ended_ms);
    let timeout = declared.and_then(|gate| gate.on_timeout.as_ref());
    Question {
        key: row.step.to_string(),
        step: report.label(&row.step),
        request: None,
        lines: message.lines().map(escape_hidden).collect(),
        choices: options,
        fields: asks,
        takes_arguments: false,
        since_ms,
        expiry: timeout.map(|timeout| describe_expiry(timeout, since_ms, now)),
    }
}

fn describe_expiry(timeout: &GateTimeout, since: u64, now: u64) -> String {
    let what = match &timeout.then {
        GateDefault::Option(option) => format!("answers `{option}`"),
        GateDefault::Fail => "fails the gate".to_owned(),
    };
    format!("`on-timeout` {what} {}", format_due(since.saturating_add(timeout.after_ms), now))
}
