//! The words of the language: what a choice may be.

/// A word with what it means.
#[derive(Debug)]
pub(crate) struct Word {
    /// As it is written.
    pub word: &'static str,
    /// What it means.
    pub doc: &'static str,
}

const fn word(word: &'static str, doc: &'static str) -> Word {
    Word { word, doc }
}

pub(crate) const WHEN: &[Word] = &[
    word("success", "it succeeded"),
    word("failure", "it failed"),
    word("any", "it succeeded or failed"),
    word("always", "it ended in any way, skipped included"),
];

pub(crate) const JOIN: &[Word] = &[
    word("all", "every condition holds, else the step is skipped"),
    word("any", "all have settled and at least one condition holds"),
    word("none-failed", "all have settled, none failed and at least one succeeded"),
];

pub(crate) const ON_FAILURE: &[Word] =
    &[word("fail", "the step has failed"), word("skip", "the step counts as skipped, and its failure as handled")];

pub(crate) const ROUND_FAILURE: &[Word] =
    &[word("stop", "no further round starts"), word("continue", "the next round starts, and the last round decides")];

pub(crate) const EXHAUSTED: &[Word] =
    &[word("fail", "the pipeline has failed"), word("success", "the pipeline has succeeded")];

pub(crate) const STOP_STATUS: &[Word] =
    &[word("success", "the pipeline ends as done"), word("failure", "the pipeline ends as failed")];

pub(crate) const DELIVERY: &[Word] = &[
    word("stdin", "on standard input, which is then closed"),
    word("argument", "as the last argument"),
    word("file", "in a file, whose path is the last argument"),
];

pub(crate) const FORMAT: &[Word] = &[
    word("text", "the answer itself"),
    word("json", "the answer as one JSON document"),
    word("claude-stream-json", "events of `claude --output-format stream-json` and its kin"),
    word("codex-jsonl", "events of `codex exec --json`"),
    word("opencode-json", "events of `opencode run --format json`"),
    word("gemini-stream-json", "events of `gemini --output-format stream-json`"),
    word("pi-json", "events of `pi --mode json`"),
];

pub(crate) const PARAM_TYPES: &[Word] = &[
    word("string", "any text"),
    word("int", "a whole number of 64 bits"),
    word("float", "a finite number"),
    word("bool", "`true` or `false`"),
    word("file", "a file that exists when the run starts"),
    word("dir", "a folder that exists when the run starts"),
];
