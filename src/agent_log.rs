//! The log of an agent's program, as a person reads it.
//!
//! In: the bytes that the program wrote, in any pieces, and their format. Out: what the agent said, and a line for each
//! use of a tool. Programs that write plain text have no such reader: their logs are shown as they are.

use std::collections::HashSet;

use swarmc_plan::{Body, Format, Plan};
use swarmc_runtime::{Decoder, Item};

/// The characters of a tool's arguments that are shown.
const ARGUMENTS: usize = 200;

/// What one program wrote, so far.
pub(crate) struct AgentLog {
    decoder: Decoder,
    shown: Shown,
}

#[derive(Default)]
struct Shown {
    text: String,
    /// The uses of tools that have their line.
    uses: HashSet<String>,
    /// Whether the last line has no end yet.
    in_line: bool,
}

impl AgentLog {
    pub(crate) fn new(format: Format) -> AgentLog {
        AgentLog { decoder: Decoder::new(format), shown: Shown::default() }
    }

    /// Takes the next bytes; the text that they come to.
    pub(crate) fn read_bytes(&mut self, bytes: &[u8]) -> String {
        let AgentLog { decoder, shown } = self;
        decoder.feed(bytes, &mut |item| shown.take_item(&item));
        std::mem::take(&mut shown.text)
    }

    /// The text of a last line that has no end.
    pub(crate) fn finish(self) -> String {
        let AgentLog { decoder, mut shown } = self;
        decoder.finish(&mut |item| shown.take_item(&item));
        shown.text
    }
}

impl Shown {
    fn take_item(&mut self, item: &Item<'_>) {
        match *item {
            Item::Said(text) => {
                self.text.push_str(text);
                self.in_line = text.chars().next_back().map_or(self.in_line, |last| last != '\n');
            }
            // A use can be told several times.
            Item::Tool(used) if used.id.is_empty() || self.uses.insert(used.id.to_owned()) => {
                let arguments = shorten_line(used.arguments);
                self.add_line(&format!("{} {arguments}", used.name));
            }
            Item::Came(came) if came.failed => self.add_line(&format!("failed: {}", shorten_line(came.text))),
            Item::Denied(_, tool) => self.add_line(&format!("{tool} refused")),
            Item::Failed(why) => self.add_line(&format!("the turn failed: {}", shorten_line(why))),
            // The next turn may count its uses from the beginning.
            Item::Reported => self.uses.clear(),
            _ => {}
        }
    }

    fn add_line(&mut self, words: &str) {
        let break_line = if self.in_line { "\n" } else { "" };
        self.text.push_str(&format!("{break_line}[{}]\n", words.trim_end()));
        self.in_line = false;
    }
}

/// The beginning of a text, in one line.
fn shorten_line(text: &str) -> String {
    let mut words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = words.char_indices().nth(ARGUMENTS) {
        words.truncate(end);
        words.push('…');
    }
    words
}

/// The format of what the program of an agent writes; none where its log is read as it is.
pub(crate) fn find_agent_format(plan: &Plan, agent: &str) -> Option<Format> {
    let format = plan.provider(&plan.agent(agent)?.provider)?.connection.output_format()?;
    (!matches!(format, Format::Text | Format::Json)).then_some(format)
}

/// As [`find_agent_format`] for the agent of a step; none where steps of this name differ.
pub(crate) fn find_step_format(plan: &Plan, step: &str) -> Option<Format> {
    let steps = plan.pipelines.iter().flat_map(|pipeline| pipeline.all_steps()).filter(|found| found.name == step);
    let mut formats = steps.map(|step| match &step.body {
        Body::Prompt(body) => find_agent_format(plan, &body.agent),
        _ => None,
    });
    let first = formats.next()??;
    formats.all(|other| other == Some(first)).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODEX: &str = concat!(
        "{\"type\":\"thread.started\",\"thread_id\":\"t1\"}\n",
        "warning: no JSON\n",
        "{\"type\":\"item.completed\",\"item\":{\"id\":\"i0\",\"type\":\"agent_message\",\"text\":\"I look.\"}}\n",
        "{\"type\":\"item.started\",\"item\":{\"id\":\"i1\",\"type\":\"command_execution\",\"command\":\"ls\\n-l\"}}\n",
        "{\"type\":\"item.completed\",\"item\":{\"id\":\"i1\",\"type\":\"command_execution\",\"command\":\"ls\\n-l\",\"exit_code\":0,\"status\":\"completed\"}}\n",
        "{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}\n",
    );

    #[test]
    fn what_was_said_and_used_is_shown_however_the_bytes_come() {
        for piece in [1, 7, CODEX.len()] {
            let mut log = AgentLog::new(Format::CodexJsonl);
            let mut shown: String =
                CODEX.trim_end().as_bytes().chunks(piece).map(|bytes| log.read_bytes(bytes)).collect();
            shown += &log.finish();
            assert_eq!(shown, "I look.\n[command_execution ls -l]\n", "pieces of {piece}");
        }
    }
}
