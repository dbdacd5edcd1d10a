//! The texts for an agent about the type of its answer: with its prompt, and when the answer does not fit.

use swarmc_plan::prompt_text;

use super::OutputValidator;

/// The bytes of an answer that are shown to the agent again, from its beginning.
const SHOWN: usize = 32 * 1024;

/// The request to an agent that must write refused operations again.
const WRITE_AGAIN: &str = "Write each of them again, corrected, as a JSON object on a line of its own, and nothing else. The \
                           rest of your answer is kept, and so are the operations that were accepted.";

/// `prompt`, and how to answer it.
pub(crate) fn append_instruction(prompt: &str, shape: &OutputValidator) -> String {
    format!("{prompt}{}{}", prompt_text::BETWEEN, render_instruction(shape))
}

/// The words of it.
pub(crate) fn render_instruction(shape: &OutputValidator) -> String {
    prompt_text::answer_instructions(shape.schema_text())
}

/// What an agent that still knows the conversation is told about its answer.
pub(crate) fn render_repair_message(violations: &[String], shape: &OutputValidator) -> String {
    format!(
        "Your last answer does not fit what was asked for:\n{}\n\nAnswer again, with one JSON value that satisfies this \
         JSON Schema, and nothing else:\n{}",
        render_list(violations),
        shape.schema_text()
    )
}

/// What an agent that starts afresh is told: the prompt, what it answered last time, and what is wrong with that.
pub(crate) fn render_repair_prompt(
    prompt: &str,
    answer: &str,
    violations: &[String],
    shape: &OutputValidator,
) -> String {
    format!(
        "{}That answer does not fit what was asked for:\n{}\n\nAnswer again, with one JSON value that satisfies this JSON \
         Schema, and nothing else:\n{}",
        quote_last_answer(prompt, answer),
        render_list(violations),
        shape.schema_text()
    )
}

/// What an agent that still knows the conversation is asked where operations in its answer were refused.
pub(crate) fn render_refusal_message(refused: &[String]) -> String {
    format!("Operations in your last answer were refused:\n{}\n\n{WRITE_AGAIN}", render_list(refused))
}

/// What an agent that starts afresh is asked there: the prompt, what it answered last time, and what was refused.
pub(crate) fn render_refusal_prompt(prompt: &str, answer: &str, refused: &[String]) -> String {
    format!(
        "{}Operations in that answer were refused:\n{}\n\n{WRITE_AGAIN}",
        quote_last_answer(prompt, answer),
        render_list(refused)
    )
}

/// A prompt, and the beginning of the answer to it.
fn quote_last_answer(prompt: &str, answer: &str) -> String {
    let shown = &answer[..answer.floor_char_boundary(SHOWN)];
    let cut = if shown.len() < answer.len() { "\n…" } else { "" };
    format!("{prompt}\n\n--- Your last answer to this ---\n{shown}{cut}\n--- End of your last answer ---\n\n")
}

fn render_list(violations: &[String]) -> String {
    let lines: Vec<String> = violations.iter().map(|violation| format!("- {violation}")).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;
    use swarmc_plan::Schema;

    use super::*;

    #[test]
    fn the_docs_show_what_agents_are_told() {
        let schema = json!({
            "type": "object",
            "properties": { "approved": { "type": "boolean" }, "severity": { "type": "string", "enum": ["low", "medium", "high"] } },
            "required": ["approved", "severity"],
            "additionalProperties": false,
        });
        let shape = OutputValidator::new(&Schema(schema), &BTreeMap::new()).unwrap();
        let violations = shape.parse_answer(r#"{"approved":true,"severity":"hgih"}"#).unwrap_err();
        let docs = include_str!("../../../../docs/agents.md");
        for told in [append_instruction("", &shape), render_repair_message(&violations, &shape)] {
            assert!(docs.contains(&format!("```text\n{}\n```", told.trim())), "docs/agents.md does not show:\n{told}");
        }
    }

    #[test]
    fn a_long_answer_is_shown_from_its_beginning_and_cut_at_a_character() {
        let shape = OutputValidator::new(&Schema(json!({ "type": "integer" })), &BTreeMap::new()).unwrap();
        let told = render_repair_prompt("Count.", &"é".repeat(SHOWN), &["it is no number".to_owned()], &shape);
        assert!(told.starts_with("Count.\n\n--- Your last answer to this ---\néé"), "{}", &told[..80]);
        assert!(told.len() < SHOWN + 500 && told.contains("é\n…\n--- End of your last answer ---\n\n"));
    }
}
