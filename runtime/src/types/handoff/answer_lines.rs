//! Operations that an agent asks for by lines of its answer.

use memchr::{memchr, memmem, memrchr};
use serde_json::Value;

use super::operation::TAG;
use super::{INBOX, Operation};

/// What the lines of one answer may ask for at most: as much as an inbox takes.
const OPERATIONS: usize = INBOX;

/// What every operation has: its tag.
const NAMED: &str = "\"swarm\"";

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
    let is_one = |line: &str| line.starts_with('{') && line.contains(NAMED);
    let mut told: Vec<&str> = told.into_iter().flat_map(lines_that_name_it).filter(|line| is_one(line)).collect();
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

/// The lines of a text, trimmed, that name an operation. A prompt has many lines that do not.
fn lines_that_name_it(text: &str) -> impl Iterator<Item = &str> {
    let finder = memmem::Finder::new(NAMED);
    let mut rest = text;
    std::iter::from_fn(move || {
        let place = finder.find(rest.as_bytes())?;
        let begin = memrchr(b'\n', &rest.as_bytes()[..place]).map_or(0, |end| end + 1);
        let end = memchr(b'\n', &rest.as_bytes()[place..]).map_or(rest.len(), |length| place + length);
        let line = rest[begin..end].trim();
        // Behind its line: of a line that names it often, this is linear.
        rest = &rest[end..];
        Some(line)
    })
}
