//! Operations that an agent asks for by lines of its answer.

use serde_json::Value;

use super::operation::TAG;
use super::{INBOX, Operation};

/// What the lines of one answer may ask for at most: as much as an inbox takes.
const OPERATIONS: usize = INBOX;

/// An operation that a line of an answer asks for.
pub(crate) struct OperationLine<'a> {
    /// The line, trimmed.
    pub line: &'a str,
    /// What it asks for, or what is wrong with it.
    pub operation: Result<Operation, String>,
}

/// What an answer asks for by its lines.
pub(crate) struct AnswerLines<'a> {
    pub operations: Vec<OperationLine<'a>>,
    /// Lines that look like operations and are not taken as such, in sentences for people.
    pub notes: Vec<String>,
    /// The answer without the operations.
    pub rest: String,
}

/// Reads the operations in the lines of an agent's answer. A line that looks like one and is none stays in the answer;
/// so does one that the agent was `told`, and only repeats.
pub(crate) fn read_operation_lines<'a, 't>(
    answer: &'a str,
    told: impl IntoIterator<Item = &'t str>,
) -> AnswerLines<'a> {
    let is_one = |line: &str| line.starts_with('{') && line.contains("\"swarm\"");
    let told = told.into_iter().filter(|text| text.contains("\"swarm\""));
    let mut told: Vec<&str> = told.flat_map(|text| text.lines().map(str::trim).filter(|line| is_one(line))).collect();
    // Of a few lines, of which most differ at once, sorting costs less than hashing.
    told.sort_unstable();
    let (mut operations, mut notes) = (Vec::new(), Vec::new());
    let (mut rest, mut more, mut repeated) = (String::new(), 0, 0);
    for line in answer.split_inclusive('\n') {
        let trimmed = line.trim();
        let value = if is_one(trimmed) { serde_json::from_str::<Value>(trimmed).ok() } else { None };
        match value.filter(|value| value.get(TAG).is_some()) {
            Some(_) if told.binary_search(&trimmed).is_ok() => {
                repeated += 1;
                rest.push_str(line);
            }
            Some(_) if operations.len() >= OPERATIONS => more += 1,
            Some(value) => {
                let operation = Operation::from_value(value);
                if operation.is_err() {
                    rest.push_str(line);
                }
                operations.push(OperationLine { line: trimmed, operation });
            }
            None => rest.push_str(line),
        }
    }
    if more > 0 {
        let most = format!("{more} more lines are operations, but one answer may have at most {OPERATIONS}");
        notes.push(most);
    }
    if repeated > 0 {
        let quoted = format!("lines copied from its prompt are not operations, and its answer has {repeated} of them");
        notes.push(quoted);
    }
    AnswerLines { operations, notes, rest }
}
