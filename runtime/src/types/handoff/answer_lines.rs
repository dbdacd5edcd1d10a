//! Operations that an agent asks for by lines of its answer.

use serde_json::Value;

use super::operation::TAG;
use super::{INBOX, Operation};

/// What the lines of one answer may ask for at most: as much as an inbox takes.
const OPERATIONS: usize = INBOX;

/// What the answer of an agent asks for by lines of JSON, and the answer without them. A line that looks like one and
/// is none stays, with what is wrong with it; so does one that the agent was `told`, and only repeats.
pub(crate) fn asked_for<'t>(
    answer: &str,
    told: impl IntoIterator<Item = &'t str>,
) -> (Vec<Result<Operation, String>>, String) {
    let is_one = |line: &str| line.starts_with('{') && line.contains("\"swarm\"");
    let told = told.into_iter().filter(|text| text.contains("\"swarm\""));
    let mut told: Vec<&str> = told.flat_map(|text| text.lines().map(str::trim).filter(|line| is_one(line))).collect();
    // Of a few lines, of which most differ at once, sorting costs less than hashing.
    told.sort_unstable();
    let mut operations = Vec::new();
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
                operations.push(operation);
            }
            None => rest.push_str(line),
        }
    }
    if more > 0 {
        let most = format!("{more} more lines are operations, but one answer may have at most {OPERATIONS}");
        operations.push(Err(most));
    }
    if repeated > 0 {
        let quoted = format!("lines copied from its prompt are not operations, and its answer has {repeated} of them");
        operations.push(Err(quoted));
    }
    (operations, rest)
}
