//! What the endpoint says to one request: text, tool calls, a refusal, nonsense, or nothing at all.

use std::time::Duration;

use serde_json::Value;

/// One answer of the scripted model.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    pub(crate) delay: Duration,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) reply: Reply,
}

impl Answer {
    /// A finished turn that says `text`.
    pub fn text(text: impl Into<String>) -> Answer {
        Answer::turn(text.into(), Vec::new())
    }

    /// A turn that calls the tool `name`; more calls are added with [`Answer::and_call`].
    pub fn call(name: impl Into<String>, arguments: Value) -> Answer {
        Answer::turn(String::new(), Vec::new()).and_call(name, arguments)
    }

    /// A refusal with this HTTP status, in the error form of the protocol.
    pub fn status(code: u16, message: impl Into<String>) -> Answer {
        Answer::now(Reply::Status { code, message: message.into() })
    }

    /// These bytes as they stand, as a stream of events with status 200.
    pub fn raw(body: impl Into<String>) -> Answer {
        Answer::now(Reply::Raw { code: 200, body: body.into(), flood: false })
    }

    /// The same bytes again and again, without an end.
    pub fn flood(piece: impl Into<String>) -> Answer {
        Answer::now(Reply::Raw { code: 200, body: piece.into(), flood: true })
    }

    /// A refusal with this HTTP status, whose body is the same bytes again and again, without an end.
    pub fn refuse_for_ever(code: u16, piece: impl Into<String>) -> Answer {
        Answer::now(Reply::Raw { code, body: piece.into(), flood: true })
    }

    /// No answer, ever: the connection stays open until one side goes away.
    pub fn hang() -> Answer {
        Answer::now(Reply::Hang)
    }

    /// A body that is not what the protocol says: broken JSON, in a stream or whole.
    pub fn garbage() -> Answer {
        Answer::now(Reply::Garbage)
    }

    /// Breaks the connection off in the middle of the answer; a turn only.
    #[must_use]
    pub fn cut(self) -> Answer {
        self.ending(Ending::Cut)
    }

    /// Falls silent in the middle of the answer, the connection staying open; a turn only.
    #[must_use]
    pub fn stalled(self) -> Answer {
        self.ending(Ending::Stall)
    }

    /// Says that the answer stopped at the limit of its tokens; a turn only.
    #[must_use]
    pub fn limited(self) -> Answer {
        self.ending(Ending::Limit)
    }

    /// Sends this header with the answer.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Answer {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Calls one more tool in the same turn; a turn only.
    #[must_use]
    pub fn and_call(mut self, name: impl Into<String>, arguments: Value) -> Answer {
        if let Reply::Turn { calls, .. } = &mut self.reply {
            calls.push(Call { name: name.into(), arguments });
        }
        self
    }

    /// Reports this usage instead of a quarter of the bytes of the texts; a turn only.
    #[must_use]
    pub fn usage(mut self, reported: Usage) -> Answer {
        if let Reply::Turn { usage, .. } = &mut self.reply {
            *usage = Some(reported);
        }
        self
    }

    /// Waits before the first byte of the answer.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Answer {
        self.delay = delay;
        self
    }

    fn turn(text: String, calls: Vec<Call>) -> Answer {
        Answer::now(Reply::Turn { text, calls, usage: None, ending: Ending::Whole })
    }

    fn ending(mut self, how: Ending) -> Answer {
        if let Reply::Turn { ending, .. } = &mut self.reply {
            *ending = how;
        }
        self
    }

    fn now(reply: Reply) -> Answer {
        Answer { delay: Duration::ZERO, headers: Vec::new(), reply }
    }
}

impl From<Answer> for Vec<Answer> {
    fn from(answer: Answer) -> Vec<Answer> {
        vec![answer]
    }
}

/// A tool call: the tool's name as the client offered it, and its arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The name of the tool.
    pub name: String,
    /// Its arguments; a tool of free text gets the string itself.
    pub arguments: Value,
}

/// The tokens that an answer says it took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the prompt, the cached ones included.
    pub input: u64,
    /// Tokens of the prompt that came from the cache.
    pub cached: u64,
    /// Tokens of the prompt that were put into the cache; only Anthropic's protocol says so.
    pub written: u64,
    /// Tokens of the answer.
    pub output: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reply {
    Turn { text: String, calls: Vec<Call>, usage: Option<Usage>, ending: Ending },
    Status { code: u16, message: String },
    Raw { code: u16, body: String, flood: bool },
    Hang,
    Garbage,
}

/// How an answer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Whole,
    Limit,
    Cut,
    Stall,
}

/// A turn with everything settled that its protocol form needs.
#[derive(Debug)]
pub(crate) struct Turn {
    /// Counts the requests of this endpoint; ids are made of it.
    pub(crate) number: usize,
    pub(crate) model: String,
    pub(crate) text: String,
    pub(crate) calls: Vec<Call>,
    pub(crate) usage: Usage,
    pub(crate) ending: Ending,
}

impl Turn {
    /// Which of these words says why it ended: of itself, for the tools it calls, or at its limit.
    pub(crate) fn reason<'a>(&self, stop: &'a str, tools: &'a str, limit: &'a str) -> &'a str {
        match self.ending {
            Ending::Limit => limit,
            _ if self.calls.is_empty() => stop,
            _ => tools,
        }
    }

    /// The id of this turn's `index`-th call.
    pub(crate) fn call_id(&self, index: usize) -> String {
        format!("call_{}_{index}", self.number)
    }

    /// The text in the pieces in which it is streamed.
    pub(crate) fn pieces(&self) -> Vec<&str> {
        let mut rest = self.text.as_str();
        let mut pieces = Vec::new();
        while !rest.is_empty() {
            let end = rest.char_indices().nth(24).map_or(rest.len(), |(at, _)| at);
            let (piece, after) = rest.split_at(end);
            pieces.push(piece);
            rest = after;
        }
        pieces
    }
}
