//! `aider --message-file … --no-pretty`: plain lines. A header ends with its line `Repo-map: …` and an empty one; then
//! come the model's words as they are, a line `Tokens: …` behind each of its turns, and what aider did with them. It
//! exits with 0 whatever happened.

use super::turn::{Sink, cut_seldom, price};
use crate::types::usage::Usage;

/// The bytes of a reason that are kept, from its end.
const REASON_BYTES: usize = 2_000;

#[derive(Debug, Default)]
pub(super) struct Aider {
    part: Part,
    /// What was said since the header, the lines about tokens left out; before its end, the header.
    text: String,
    /// What was said since the last line about tokens, where that tells of an error.
    error: Option<String>,
    turns: u64,
}

#[derive(Debug, Default)]
enum Part {
    #[default]
    Header,
    HeaderEnds,
    Body,
}

impl Aider {
    pub(super) fn read(&mut self, line: &str, sink: &mut Sink<'_>) {
        match self.part {
            Part::HeaderEnds if line.is_empty() => {
                self.part = Part::Body;
                self.text.clear();
            }
            Part::Header | Part::HeaderEnds => {
                if line.starts_with("Repo-map: ") {
                    self.part = Part::HeaderEnds;
                }
                add(&mut self.text, line);
            }
            Part::Body => match read_usage(line) {
                Some(usage) => self.end_turn(usage, sink),
                None => self.add_line(line, sink),
            },
        }
    }

    /// The end of the output, which is the end of the last turn.
    pub(super) fn finish(self, sink: &mut Sink<'_>) {
        let error = self.error.map(|error| keep_end(error.trim_end()).to_owned());
        match self.turns {
            0 => sink.failed(error.or_else(|| Some(keep_end(self.text.trim()).to_owned()))),
            _ if error.is_some() => sink.failed(error),
            _ => sink.done(),
        }
    }

    fn end_turn(&mut self, usage: Usage, sink: &mut Sink<'_>) {
        self.turns += 1;
        self.error = None;
        sink.usage_more(usage);
        sink.settle(self.text.trim().to_owned());
    }

    fn add_line(&mut self, line: &str, sink: &mut Sink<'_>) {
        sink.piece(line);
        sink.piece("\n");
        // LiteLLM, by which aider asks its models, begins each of its errors so.
        if self.error.is_none() && line.starts_with("litellm.") {
            self.error = Some(String::new());
        }
        self.error.iter_mut().chain([&mut self.text]).for_each(|text| add(text, line));
    }
}

/// The end of a text that says why a turn failed.
fn keep_end(text: &str) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(REASON_BYTES))..]
}

fn add(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
    cut_seldom(text);
}

/// The tokens and the cost of `Tokens: 12k sent, 1.5k cache hit, 310 received. Cost: $0.04 message, $0.09 session.`;
/// aider rounds thousands.
fn read_usage(line: &str) -> Option<Usage> {
    let (tokens, cost) = line.strip_prefix("Tokens: ")?.split_once(" received.")?;
    let mut usage = Usage::default();
    let (parts, output) = tokens.rsplit_once(", ")?;
    usage.output = read_count(output)?;
    for part in parts.split(", ") {
        let (count, kind) = part.split_once(' ')?;
        let field = match kind {
            "sent" => &mut usage.input,
            "cache write" => &mut usage.cache_write,
            "cache hit" => &mut usage.cache_read,
            _ => return None,
        };
        *field = read_count(count)?;
    }
    let dollars = cost.trim_start().strip_prefix("Cost: $").and_then(|cost| cost.split_once(" message"));
    usage.cost = price(dollars.and_then(|(dollars, _)| dollars.parse().ok()));
    Some(usage)
}

/// `999`, `1.2k` or `12k`.
fn read_count(text: &str) -> Option<u64> {
    let (digits, scale) = text.strip_suffix('k').map_or((text, 1.0), |digits| (digits, 1000.0));
    let count = digits.parse::<f64>().ok().filter(|count| *count >= 0.0)?;
    Some((count * scale).round() as u64)
}
