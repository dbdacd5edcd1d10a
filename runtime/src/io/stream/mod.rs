//! Reads what an agent's program prints: bytes in, [`Item`]s out, and at the end the [`Report`] of the turn.
//!
//! A line that is no JSON, or an unknown event, is skipped: programs print warnings among their events and
//! grow new kinds of them. However the bytes are cut into chunks, the same items come out, and no bytes make it panic,
//! recurse or keep more than a line of [`LINE_LIMIT`] and an answer of [`ANSWER_LIMIT`].

mod aider;
mod claude;
mod codex;
mod copilot;
mod denial;
mod gemini;
mod json;
mod lines;
mod opencode;
mod pi;
mod turn;

#[cfg(test)]
mod tests;

use swarmc_plan::Format;

use crate::types::usage::Usage;
pub(crate) use denial::is_denial;
use json::Json;
pub(crate) use lines::Lines;
pub(crate) use turn::cut;
use turn::{Sink, Turn};

/// The longest line that is read, in bytes; a longer one is skipped, whatever it says. Events that matter are a few
/// kilobytes, tool results with pictures in them and whole conversations, which some programs repeat, megabytes.
pub const LINE_LIMIT: usize = 64 << 20;

/// The bytes of an answer that are kept, from its end.
pub const ANSWER_LIMIT: usize = 16 << 20;

/// Something that an agent's stream told, as it told it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Item<'a> {
    /// Bytes of the answer itself; of the formats `text` and `json` only, whose output is exactly these.
    Output(&'a [u8]),
    /// A piece of what the agent says on its way, for display: one after the other they are whole lines, and every
    /// message ends with a newline.
    Said(&'a str),
    /// The agent uses a tool. Told again where more of a use becomes known.
    Tool(ToolUse<'a>),
    /// What came of a use.
    Came(ToolResult<'a>),
    /// The agent has changed a file.
    Edited(&'a Edit),
    /// The program refused the agent the use of a tool, since no person can approve it: the id of the use, and the
    /// tool.
    Denied(&'a str, &'a str),
    /// The id under which the program keeps this conversation.
    Session(&'a str),
    /// The tokens of the turn so far, those of earlier items included.
    Usage(Usage),
    /// The turn is over, well or not: the program has nothing left to do but to exit.
    Reported,
    /// The agent works on after a [`Item::Reported`], which no longer holds.
    Continued,
    /// The turn failed, in the program's words, whatever its exit code will say; an [`Item::Reported`] follows.
    Failed(&'a str),
}

/// A change of a file, as an agent tells it.
#[derive(Clone, Debug, PartialEq)]
pub struct Edit {
    /// The path, as it was written.
    pub path: String,
    /// What stood there; none: the whole file is new.
    pub old: Option<String>,
    /// What stands there now.
    pub new: String,
}

/// The use of a tool, as an agent tells it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ToolUse<'a> {
    /// What its result is told under; empty where it tells of none.
    pub id: &'a str,
    /// The tool, in the words of the program.
    pub name: &'a str,
    /// Its arguments: JSON as it was written, or a command; empty where they are not told.
    pub arguments: &'a str,
}

/// What came of the use of a tool.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ToolResult<'a> {
    /// That of the use.
    pub id: &'a str,
    /// Whether it failed.
    pub failed: bool,
    /// What the agent was given, or why it failed.
    pub text: &'a str,
}

/// What a whole stream came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// The answer. None for the formats `text` and `json`, whose answer went out as [`Item::Output`], and where the
    /// agent never said anything.
    pub text: Option<String>,
    /// The tokens of the turn; none where the stream did not say, which is not zero.
    pub usage: Option<Usage>,
    /// The id under which the program keeps this conversation.
    pub session: Option<String>,
    /// Why the turn failed as far as the stream tells: it said so, or it ended before it said how the turn went.
    pub failure: Option<String>,
}

/// A reader of one agent's standard output.
#[derive(Debug)]
pub struct Decoder {
    dialect: Dialect,
    lines: Lines,
    turn: Turn,
}

#[derive(Debug)]
enum Dialect {
    Text,
    Json(Document),
    Claude(claude::Claude),
    Codex(codex::Codex),
    Opencode(opencode::Opencode),
    Gemini(gemini::Gemini),
    Pi(pi::Pi),
    Copilot(copilot::Copilot),
    Aider(aider::Aider),
}

/// The one document of a program that prints JSON.
#[derive(Debug, Default)]
struct Document {
    bytes: Vec<u8>,
    too_long: bool,
}

impl Decoder {
    /// A reader of this format, at the beginning of a conversation.
    pub fn new(format: Format) -> Decoder {
        let dialect = match format {
            Format::Text => Dialect::Text,
            Format::Json => Dialect::Json(Document::default()),
            Format::ClaudeStreamJson => Dialect::Claude(claude::Claude::default()),
            Format::CodexJsonl => Dialect::Codex(codex::Codex::default()),
            Format::OpencodeJson => Dialect::Opencode(opencode::Opencode::default()),
            Format::GeminiStreamJson => Dialect::Gemini(gemini::Gemini::default()),
            Format::PiJson => Dialect::Pi(pi::Pi::default()),
            Format::CopilotJsonl => Dialect::Copilot(copilot::Copilot::default()),
            Format::AiderText => Dialect::Aider(aider::Aider::default()),
        };
        Decoder { dialect, lines: Lines::new(LINE_LIMIT), turn: Turn::default() }
    }

    /// Says what the same conversation had used before this turn: some programs count on from there.
    #[must_use]
    pub fn resuming(mut self, earlier: Usage) -> Decoder {
        if let Dialect::Codex(codex) = &mut self.dialect {
            codex.earlier = earlier;
        }
        self
    }

    /// Takes the next bytes and hands out what they tell.
    pub fn feed(&mut self, bytes: &[u8], emit: &mut impl FnMut(Item<'_>)) {
        match &mut self.dialect {
            Dialect::Text => pass(bytes, emit),
            Dialect::Json(document) => {
                document.add(bytes);
                pass(bytes, emit);
            }
            dialect => {
                let sink = &mut Sink { turn: &mut self.turn, emit };
                self.lines.feed(bytes, &mut |line| dialect.read(line, sink));
            }
        }
    }

    /// Whether the stream has said how the turn ended and nothing has gone on since.
    pub fn reported(&self) -> bool {
        self.turn.reported
    }

    /// Ends the stream, a last line without a newline included.
    pub fn finish(self, emit: &mut impl FnMut(Item<'_>)) -> Report {
        let Decoder { mut dialect, mut lines, mut turn } = self;
        match dialect {
            Dialect::Text => return Report::default(),
            Dialect::Json(document) => return Report { failure: document.fault(), ..Report::default() },
            _ => {}
        }
        let sink = &mut Sink { turn: &mut turn, emit };
        lines.finish(&mut |line| dialect.read(line, sink));
        if let Dialect::Aider(aider) = dialect {
            aider.finish(sink);
        }
        if !turn.reported {
            turn.report.failure = Some(turn.unfinished(lines.skipped()));
        }
        turn.report.text.iter_mut().for_each(turn::cut);
        turn.report
    }
}

impl Dialect {
    fn read(&mut self, line: &[u8], sink: &mut Sink<'_>) {
        let line = String::from_utf8_lossy(line);
        if let Dialect::Aider(aider) = self {
            return aider.read(&line, sink);
        }
        let Some(event) = Json::object(&line) else { return };
        match self {
            Dialect::Text | Dialect::Json(_) | Dialect::Aider(_) => {}
            Dialect::Claude(claude) => claude.read(event, sink),
            Dialect::Codex(codex) => codex.read(event, sink),
            Dialect::Opencode(opencode) => opencode.read(event, sink),
            Dialect::Gemini(gemini) => gemini.read(event, sink),
            Dialect::Pi(pi) => pi.read(event, sink),
            Dialect::Copilot(copilot) => copilot.read(event, sink),
        }
    }
}

impl Document {
    fn add(&mut self, bytes: &[u8]) {
        if self.bytes.len() + bytes.len() > ANSWER_LIMIT {
            self.too_long = true;
            self.bytes = Vec::new();
        }
        if !self.too_long {
            self.bytes.extend_from_slice(bytes);
        }
    }

    fn fault(&self) -> Option<String> {
        if self.too_long {
            return Some(format!("the output is longer than {} MiB, the limit of a JSON document", ANSWER_LIMIT >> 20));
        }
        let fault = serde_json::from_slice::<serde::de::IgnoredAny>(&self.bytes).err()?;
        Some(format!("the output is not one JSON document: {fault}"))
    }
}

fn pass(bytes: &[u8], emit: &mut impl FnMut(Item<'_>)) {
    if !bytes.is_empty() {
        emit(Item::Output(bytes));
    }
}
