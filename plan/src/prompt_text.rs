//! What swarmc itself puts into the prompt of a turn, beside what the spec says.
//!
//! The run renders these words, and the bound of a prompt counts them: both take them from here, so that no prompt is
//! longer than was told.

/// What stands between the parts of a prompt.
pub const BETWEEN: &str = "\n\n";

/// What an inbox says that nothing lies in.
pub const EMPTY_INBOX: &str = "(Your inbox is empty.)";

/// What stands behind the envelopes of an inbox.
pub const INBOX_END: &str = "\n--- End of inbox ---";

/// The bytes of an envelope as JSON at most, and of a message that a person writes.
pub const ENVELOPE_BYTES: usize = 64 * 1024;

/// The envelopes that one turn reads at most.
pub const INPUTS: usize = 256;

/// What stands before the envelopes of an inbox, of which there are `count`.
pub fn inbox_heading(count: usize) -> String {
    match count {
        1 => "--- Inbox: 1 envelope, written by another agent ---".to_owned(),
        count => format!("--- Inbox: {count} envelopes, written by other agents ---"),
    }
}

/// A message to a step from outside its agents: from the person who runs it, or from swarmc.
pub fn format_message(person: bool, said: &str) -> String {
    let from = if person { "the person who runs this" } else { "swarmc, which runs this" };
    format!("--- Message from {from} ---\n{said}\n--- End of message ---")
}

/// The instructions for a step that may send to `receivers` and spawn `spawns`. None if both are empty.
pub fn handing_over(receivers: &[String], spawns: &[String]) -> Option<String> {
    let mut told = Vec::new();
    if let Some(first) = receivers.first() {
        told.push(format!(
            "You can hand over to {}: {}",
            quote_names(receivers),
            describe_operation("send_handoff", first)
        ));
    }
    if let Some(first) = spawns.first() {
        let names = quote_names(spawns);
        told.push(format!(
            "You can have further agents started, each once, {names}: {}",
            describe_operation("spawn_node", first)
        ));
    }
    (!told.is_empty()).then(|| told.join(BETWEEN))
}

/// What a prompt says of an operation, for agents that have no tools for it. The line is no JSON, so that an agent that
/// repeats its prompt asks for nothing.
fn describe_operation(name: &str, to: &str) -> String {
    format!(
        "with the tool `{name}` where you have it, else by a line of your answer that is JSON and nothing else, with \
         your words as a text in the place of …:\n\
         {{\"swarm\": \"{name}\", \"to\": \"{to}\", \"message\": …}}"
    )
}

fn quote_names(names: &[String]) -> String {
    format!("`{}`", names.join("`, `"))
}

/// The instructions on the folder that a task works in; `talks` if edges lead to the task or away from it.
pub fn describe_folder(folder: &str, task: &str, talks: bool) -> String {
    let messages = match talks {
        false => String::new(),
        true => format!(
            " `messages/` holds what others tell you, and what you leave there as `{task}_to_NAME_001.json` is handed over \
             when your turn ends: `{{\"to\": \"NAME\", \"type\": \"data_ready\", \"content\": {{\"message\": \"...\"}}}}`, \
             with the types `data_ready`, `question`, `answer` and `update`."
        ),
    };
    format!(
        "You work in the folder `{folder}`. Read `inbox/instructions.md` there first, and `SKILL.md`. Set `state` in \
         `status.json` to `running` now, and to `completed` when your work is in `outbox/`, with a brief summary of it in \
         `outbox/summary.md`; or to `failed`, with an `error` of `type`, `message`, `details` and `recoverable`, and a \
         report in `outbox/error_report.md`. Change nothing in `inbox/`. `workspace/` is for whatever you need on the \
         way.{messages}"
    )
}

/// The instructions on that folder for an agent that fixes the cause of a failure.
pub fn files_to_mend(folder: &str) -> String {
    format!(
        "The task works in a folder of files. `{folder}/inbox/` holds what it will find there: correct it where it is \
         wrong, and the next attempt gets what you corrected. What the failed attempt left lies in the folders beside \
         `{folder}`, its `outbox/error_report.md` above all."
    )
}

/// What an agent is asked who is to mend what made a task fail; `asked` is what [`describe_command`] or [`describe_prompt`] says.
pub fn repair_request(task: &str, error: &str, asked: &str) -> String {
    format!("Task `{task}` failed:\n\n{error}\n\n{asked}\n\nMend what made it fail. It runs once more after your turn.")
}

/// The command of a task that failed.
pub fn describe_command(line: &str) -> String {
    format!("Its command was:\n\n{line}")
}

/// The prompt of a task that failed.
pub fn describe_prompt(text: &str) -> String {
    format!("Its prompt was:\n\n{text}")
}

/// The instructions on the type of an answer, for providers without another way to send it.
pub fn answer_instructions(schema: &str) -> String {
    format!("Answer with one JSON value that satisfies this JSON Schema, and nothing else:\n{schema}")
}
