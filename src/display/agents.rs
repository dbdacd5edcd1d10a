//! What agents with event streams say and do, as lines: nobody wants to read their JSON as it is.

use std::borrow::Cow;
use std::collections::HashMap;

use swarmc_plan::{Body, Connection, Format, Pipeline, Plan, Step};
use swarmc_runtime::{Decoder, Item, StepId};

/// The readers of the attempts that are at work.
pub(super) struct Agents {
    /// The steps whose output is a stream of events.
    formats: HashMap<String, Format>,
    decoders: HashMap<(StepId, u32), Decoder>,
}

impl Agents {
    pub(super) fn new(plan: &Plan, pipeline: &Pipeline) -> Agents {
        let format = |step: &Step| {
            let Body::Prompt(body) = &step.body else { return None };
            match plan.provider(&plan.agent(&body.agent)?.provider)?.connection {
                Connection::Exec { reads: Format::Text | Format::Json, .. } | Connection::Script { .. } => None,
                Connection::Exec { reads, .. } => Some((step.name.clone(), reads)),
            }
        };
        Agents { formats: pipeline.steps.iter().filter_map(format).collect(), decoders: HashMap::new() }
    }

    /// What there is to read in the next bytes of an attempt's standard output.
    pub(super) fn decode<'a>(&mut self, step: &StepId, attempt: u32, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let Some(&format) = self.formats.get(&*step.name) else { return Cow::Borrowed(bytes) };
        let decoder = self.decoders.entry((step.clone(), attempt)).or_insert_with(|| Decoder::new(format));
        let mut text = Vec::new();
        decoder.feed(bytes, &mut |item| write(&mut text, item, format));
        Cow::Owned(text)
    }

    pub(super) fn ended(&mut self, step: &StepId, attempt: u32) {
        self.decoders.remove(&(step.clone(), attempt));
    }
}

fn write(text: &mut Vec<u8>, item: Item<'_>, format: Format) {
    // Most programs tell whole messages; this one tells pieces of them.
    let pieces = format == Format::GeminiStreamJson;
    match item {
        Item::Output(bytes) => text.extend_from_slice(bytes),
        Item::Said(words) => {
            text.extend_from_slice(words.as_bytes());
            if !pieces && !words.ends_with('\n') {
                text.push(b'\n');
            }
        }
        Item::Tool(name) => {
            let before = if pieces { "\n" } else { "" };
            text.extend_from_slice(format!("{before}[{name}]\n").as_bytes());
        }
        Item::Failed(words) => text.extend_from_slice(format!("{words}\n").as_bytes()),
        _ => {}
    }
}
