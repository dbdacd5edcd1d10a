//! What an agent is told about the type of its answer: with its prompt, and when the answer does not fit.

use super::Shape;

/// The bytes of an answer that are shown to the agent again, from its beginning.
const SHOWN: usize = 32 * 1024;

/// `prompt`, and how to answer it.
pub(crate) fn instructed(prompt: &str, shape: &Shape) -> String {
    format!(
        "{prompt}\n\nAnswer with one JSON value that satisfies this JSON Schema, and nothing else:\n{}",
        shape.text()
    )
}

/// What an agent that still knows the conversation is told about its answer.
pub(crate) fn again(violations: &[String], shape: &Shape) -> String {
    format!(
        "Your last answer does not fit what was asked for:\n{}\n\nAnswer again, with one JSON value that satisfies this \
         JSON Schema, and nothing else:\n{}",
        listed(violations),
        shape.text()
    )
}

/// What an agent that starts afresh is told: the prompt, what it answered last time, and what is wrong with that.
pub(crate) fn afresh(prompt: &str, answer: &str, violations: &[String], shape: &Shape) -> String {
    let shown = &answer[..answer.floor_char_boundary(SHOWN)];
    let cut = if shown.len() < answer.len() { "\n…" } else { "" };
    format!(
        "{prompt}\n\n--- Your last answer to this ---\n{shown}{cut}\n--- End of your last answer ---\n\nThat answer does \
         not fit what was asked for:\n{}\n\nAnswer again, with one JSON value that satisfies this JSON Schema, and \
         nothing else:\n{}",
        listed(violations),
        shape.text()
    )
}

fn listed(violations: &[String]) -> String {
    let lines: Vec<String> = violations.iter().map(|violation| format!("- {violation}")).collect();
    lines.join("\n")
}
