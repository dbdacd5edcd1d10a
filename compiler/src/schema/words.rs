//! The words of the language: what a choice may be.

use super::Older;

/// A word with what it means.
#[derive(Debug)]
pub struct Word {
    /// As it is written.
    pub word: &'static str,
    /// What it means.
    pub doc: &'static str,
    /// Its older spellings.
    pub older: &'static [Older],
}

const fn word(word: &'static str, doc: &'static str) -> Word {
    Word { word, doc, older: &[] }
}

pub(crate) const PROFILES: &[Word] = &[
    word("default", "what is wrong, or very probably so"),
    word("strict", "also what a careful team avoids"),
    word("audit", "also what somebody who signs a workflow off should have seen"),
];

pub(crate) const WHEN: &[Word] = &[
    word("success", "it succeeded"),
    word("failure", "it failed"),
    word("any", "it succeeded or failed"),
    word("always", "it ended in any way, skipped included"),
];

pub(crate) const SUMMARY: &[Word] = &[
    word("#true", "by a rule: its first comment, and what it declares"),
    word("#false", "none"),
    word("agent", "by the agent of `agent=`, in a turn before the one that reads the pack"),
];

pub(crate) const JOIN: &[Word] = &[
    word("all", "every condition holds, else the step is skipped"),
    word("any", "all have settled and at least one condition holds"),
    word("none-failed", "all have settled, none failed and at least one succeeded"),
];

pub(crate) const ON_FAILURE: &[Word] = &[
    word("fail", "the step has failed"),
    word("skip", "the step counts as skipped, and its failure as handled"),
    word("fix", "the agent of `agent=` gets one turn, then the step runs once more"),
    word(
        "escalate",
        "a person decides, once: `swarmc approve RUN STEP retry`, `skip` or `fail`; without anybody there, or when the time of `policy { on-timeout }` is over, it has failed",
    ),
];

pub(crate) const ROUND_FAILURE: &[Word] =
    &[word("stop", "no further round starts"), word("continue", "the next round starts, and the last round decides")];

pub(crate) const EXHAUSTED: &[Word] =
    &[word("fail", "the pipeline has failed"), word("success", "the pipeline has succeeded")];

pub(crate) const STOP_STATUS: &[Word] =
    &[word("success", "the pipeline ends as done"), word("failure", "the pipeline ends as failed")];

pub(crate) const TOOL_PROTOCOL: &[Word] = &[
    word("native", "as its own protocol has it"),
    word("schema", "in an answer that a JSON Schema holds to one step, for models that know no tools"),
];

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

/// The built-in types; `file` and `dir` are for parameters.
pub const TYPES: &[Word] = &[
    word("string", "any text"),
    word("int", "a whole number of 64 bits"),
    word("float", "a finite number"),
    word("bool", "`true` or `false`"),
    word("enum", "one of the words that follow"),
    word("list", "`list<T>`: values of one type, in order"),
    word("map", "`map<T>`: texts to values of one type"),
    word("file", "a file that exists when the run starts"),
    word("dir", "a folder that exists when the run starts"),
];

pub(crate) const EDITIONS: &[Word] = &[word("2026", "the first one")];

pub(crate) const MODE: &[Word] =
    &[word("planning", "agents plan, and change nothing"), word("implementation", "agents do the work")];

pub(crate) const LLM: &[Word] = &[
    word("openai", "chat completions, as OpenAI and most others serve them"),
    word("openai-responses", "responses, as OpenAI serves them"),
    word("anthropic", "messages, as Anthropic serves them"),
    word("gemini", "as Google serves its Gemini models"),
];

pub(crate) const ABILITIES: &[Word] = &[
    word("schema", "answers that follow a JSON Schema"),
    word("tools", "tools, and servers of tools"),
    word("resume", "going on with a conversation"),
    word("images", "pictures in prompts"),
];

pub(crate) const CAPABILITIES: &[Word] = &[
    word("write-files", "it changes files"),
    word("run-commands", "it starts processes"),
    word("network", "it sends data out"),
    word("private-data", "it reads what must not get out"),
    word("untrusted-input", "it reads what strangers wrote"),
    word("spawn", "it starts further agents"),
];

pub(crate) const PERMISSIONS: &[Word] =
    &[word("gated", "what it is not allowed is refused"), word("skip", "it is told to skip its own permission checks")];

pub(crate) const APPROVAL: &[Word] = &[
    word("auto", "nobody is asked"),
    word("human", "a person approves"),
    word("coordinator", "the coordinator of the swarm approves"),
];

pub(crate) const PROGRESS: &[Word] = &[
    word("tools", "calling tools"),
    word("findings", "calling tools and publishing"),
    word("messages", "calling tools, publishing and writing to others"),
];

pub(crate) const UNATTENDED: &[Word] =
    &[word("deny", "it is refused"), word("approve", "it is granted"), word("fail", "the run fails")];

pub(crate) const EVENTS: &[Word] = &[
    word("start", "the run starts"),
    word("complete", "the run is done"),
    word("failure", "the run has failed"),
    word("gate", "a gate waits for a person"),
    word("stop", "the run was stopped"),
];

pub(crate) const EACH_JOIN: &[Word] = &[
    word("all", "every item must succeed"),
    word("any", "at least one item must succeed"),
    word("settled", "no item must"),
];

pub(crate) const EDGE_KIND: &[Word] = &[
    word("handoff", "work is handed over"),
    word("signal", "something is made known"),
    word("spawn", "the receiver is only there when the sender asks for it"),
];

pub(crate) const RESPONSE: &[Word] = &[
    word("none", "no answer is expected"),
    word("optional", "the receiver may answer"),
    word("required", "the sender waits for an answer"),
];

pub(crate) const NAMES: &[Word] = &[word("stations", "Japanese railway stations: `takao`, `mitaka`")];

pub(crate) const PRIORITY: &[Word] =
    &[word("low", "after the others"), word("normal", "in order"), word("high", "before the others")];

pub(crate) const OVERFLOW: &[Word] = &[
    word("drop", "whole rules are left out, the last one first"),
    word("truncate", "the last rule that fits in part is cut"),
    word("error", "the turn fails"),
];

pub(crate) const SCHEMA_FORM: &[Word] =
    &[word("text", "as a text"), word("file", "as the path of a file that holds it")];

pub(crate) const MCP_FORM: &[Word] = &[
    word("text", "the text"),
    word("file", "the path of a file that holds the text; `{token}` in it stays what it is"),
];

pub(crate) const ARTIFACTS: &[Word] = &[
    word("diff", "what it changed"),
    word("log", "what it printed"),
    word("prompt", "what it was asked"),
    word("transcript", "its turns"),
    word("contextpack", "what it was given to know"),
    word("report", "what it reported"),
];

pub(crate) const ENDING: &[Word] = &[
    word("success", "done"),
    word("failure", "a failure that nothing handles, rounds that never held, or a `stop`"),
    word("over-budget", "a budget of the workflow is spent"),
];

pub(crate) const STEP_END: &[Word] = &[
    word("succeeded", "it did what it should"),
    word("failed", "every attempt failed"),
    word("skipped", "it did not run"),
];
