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

const fn make_word(word: &'static str, doc: &'static str) -> Word {
    Word { word, doc, older: &[] }
}

pub(crate) const PROFILES: &[Word] = &[
    make_word("default", "what is wrong, or very probably so"),
    make_word("strict", "also what a careful team avoids"),
    make_word("audit", "also what a person who approves a workflow should have seen"),
];

pub(crate) const WHEN: &[Word] = &[
    make_word("success", "it succeeded"),
    make_word("failure", "it failed"),
    make_word("any", "it succeeded or failed"),
    make_word("always", "it ended in any way, skipped included"),
];

pub(crate) const SUMMARY: &[Word] = &[
    make_word("#true", "by a rule: its first comment, and what it declares"),
    make_word("#false", "none"),
    make_word("agent", "by the agent of `agent=`, in a turn before the one that reads the pack"),
];

pub(crate) const JOIN: &[Word] = &[
    make_word("all", "every condition holds, else the step is skipped"),
    make_word("any", "all have settled and at least one condition holds"),
    make_word("none-failed", "all have settled, none failed and at least one succeeded"),
];

pub(crate) const ON_FAILURE: &[Word] = &[
    make_word("fail", "the step has failed"),
    make_word("skip", "the step counts as skipped, and its failure as handled"),
    make_word("fix", "the agent of `agent=` gets one turn, then the step runs once more"),
    make_word(
        "escalate",
        "a person decides, once: `swarmc approve RUN STEP retry`, `skip` or `fail`; in an unattended run, or after the time of `policy { on-timeout }`, the step fails",
    ),
];

pub(crate) const ROUND_FAILURE: &[Word] = &[
    make_word("stop", "no further round starts"),
    make_word("continue", "the next round starts, and the last round decides"),
];

pub(crate) const EXHAUSTED: &[Word] =
    &[make_word("fail", "the pipeline has failed"), make_word("success", "the pipeline has succeeded")];

pub(crate) const STOP_STATUS: &[Word] =
    &[make_word("success", "the pipeline ends as done"), make_word("failure", "the pipeline ends as failed")];

pub(crate) const TOOL_PROTOCOL: &[Word] = &[
    make_word("native", "by the model's own protocol"),
    make_word("schema", "as one step in an answer that follows a JSON Schema, for models without tools"),
];

pub(crate) const DELIVERY: &[Word] = &[
    make_word("stdin", "on standard input, which is then closed"),
    make_word("argument", "as the last argument"),
    make_word("file", "in a file, whose path is the last argument"),
];

pub(crate) const FORMAT: &[Word] = &[
    make_word("text", "the answer itself"),
    make_word("json", "the answer as one JSON document"),
    make_word("claude-stream-json", "events of `claude --output-format stream-json` and its kin"),
    make_word("codex-jsonl", "events of `codex exec --json`"),
    make_word("opencode-json", "events of `opencode run --format json`"),
    make_word("gemini-stream-json", "events of `gemini --output-format stream-json`"),
    make_word("pi-json", "events of `pi --mode json`"),
    make_word("copilot-jsonl", "events of `copilot --output-format json`"),
    make_word("aider-text", "the lines of `aider --no-pretty`"),
];

/// The built-in types; `file` and `dir` are for parameters.
pub const TYPES: &[Word] = &[
    make_word("string", "any text"),
    make_word("int", "a whole number of 64 bits"),
    make_word("float", "a finite number"),
    make_word("bool", "`true` or `false`"),
    make_word("enum", "one of the words that follow"),
    make_word("list", "`list<T>`: values of one type, in order"),
    make_word("map", "`map<T>`: texts to values of one type"),
    make_word("file", "a file that exists when the run starts"),
    make_word("dir", "a folder that exists when the run starts"),
];

pub(crate) const EDITIONS: &[Word] = &[make_word("2026", "the first one")];

pub(crate) const SURVIVORS: &[Word] = &[
    make_word("none", "none: what runs ends with its runner, and starts again with the next one"),
    make_word(
        "agents",
        "those of agents that are programs (`exec`), and of commands with a `timeout` of 5 minutes or more",
    ),
    make_word("all", "those of agents that are programs, also over ACP, and of all commands"),
];

pub(crate) const MODE: &[Word] =
    &[make_word("planning", "agents plan, and change nothing"), make_word("implementation", "agents do the work")];

pub(crate) const LLM: &[Word] = &[
    make_word("openai", "chat completions, as OpenAI and most others serve them"),
    make_word("openai-responses", "responses, as OpenAI serves them"),
    make_word("anthropic", "messages, as Anthropic serves them"),
    make_word("gemini", "as Google serves its Gemini models"),
];

pub(crate) const ABILITIES: &[Word] = &[
    make_word("schema", "answers that follow a JSON Schema"),
    make_word("tools", "tools, and servers of tools"),
    make_word("resume", "going on with a conversation"),
    make_word("images", "pictures in prompts"),
];

pub(crate) const CAPABILITIES: &[Word] = &[
    make_word("write-files", "it changes files"),
    make_word("run-commands", "it starts processes"),
    make_word("network", "it sends data out"),
    make_word("private-data", "it reads private data"),
    make_word("untrusted-input", "it reads text of strangers"),
    make_word("spawn", "it starts further agents"),
];

pub(crate) const PERMISSIONS: &[Word] = &[
    make_word("gated", "everything that is not allowed is refused"),
    make_word("skip", "its flags skip its own permission checks"),
];

pub(crate) const APPROVAL: &[Word] = &[
    make_word("auto", "granted without a question"),
    make_word("human", "a person approves"),
    make_word("coordinator", "the coordinator of the swarm approves"),
];

pub(crate) const AGREEMENT: &[Word] =
    &[make_word("auto", "granted without a question"), make_word("human", "a person approves")];

pub(crate) const PROGRESS: &[Word] = &[
    make_word("tools", "calling tools"),
    make_word("findings", "calling tools and publishing"),
    make_word("messages", "calling tools, publishing and writing to others"),
];

pub(crate) const UNATTENDED: &[Word] =
    &[make_word("deny", "it is refused"), make_word("approve", "it is granted"), make_word("fail", "the run fails")];

pub(crate) const EVENTS: &[Word] = &[
    make_word("start", "the run starts"),
    make_word("complete", "the run is done"),
    make_word("failure", "the run has failed"),
    make_word("gate", "a gate waits for a person"),
    make_word("stop", "the run was stopped"),
];

pub(crate) const EACH_JOIN: &[Word] = &[
    make_word("all", "every item must succeed"),
    make_word("any", "at least one item must succeed"),
    make_word("settled", "no item has to succeed"),
];

pub(crate) const EDGE_KIND: &[Word] = &[
    make_word("handoff", "work is handed over"),
    make_word("signal", "a notice that gives the receiver no turn"),
    make_word("spawn", "the receiver starts only when the sender asks for it"),
];

pub(crate) const RESPONSE: &[Word] = &[
    make_word("none", "no answer is expected"),
    make_word("optional", "the receiver may answer"),
    make_word("required", "the sender waits for an answer"),
];

pub(crate) const NAMES: &[Word] = &[make_word("stations", "Japanese railway stations: `takao`, `mitaka`")];

pub(crate) const PRIORITY: &[Word] =
    &[make_word("low", "after the others"), make_word("normal", "in order"), make_word("high", "before the others")];

pub(crate) const OVERFLOW: &[Word] = &[
    make_word("drop", "whole rules are left out, the last one first"),
    make_word("truncate", "the last rule that fits in part is cut"),
    make_word("error", "the turn fails"),
];

pub(crate) const SCHEMA_FORM: &[Word] =
    &[make_word("text", "as a text"), make_word("file", "as the path of a file that holds it")];

pub(crate) const MCP_FORM: &[Word] = &[
    make_word("text", "the text"),
    make_word("file", "the path of a file that holds the text; `{token}` in it stays what it is"),
];

pub(crate) const ARTIFACTS: &[Word] = &[
    make_word("diff", "what it changed"),
    make_word("log", "what it printed"),
    make_word("prompt", "what it was asked"),
    make_word("transcript", "its turns"),
    make_word("contextpack", "the context that it received"),
    make_word("report", "what it reported"),
];

/// How a budget limits.
pub(crate) const LIMITING: &[Word] = &[
    make_word(
        "proven",
        "what can be used at worst must fit, and a launch that could go beyond it is refused; the default",
    ),
    make_word("at-most", "nothing is proven; once it is used up nothing starts any more, and what runs ends by itself"),
];

pub(crate) const ENDING: &[Word] = &[
    make_word("success", "done"),
    make_word("failure", "a failure that nothing handles, rounds that never held, or a `stop`"),
    make_word("over-budget", "a budget of the workflow is spent"),
];

/// What became of a worktree of a team.
pub(crate) const TREE_STATE: &[Word] = &[
    make_word("unmerged", "nothing of it was merged, or its manager has dropped the merge"),
    make_word("merging", "a merge of it is open: files conflict, or a check failed"),
    make_word("merged", "its last merge is committed"),
];

/// The states of an item of a team's plan, in the words of `swarmc inspect`.
pub(crate) const ITEM_STATE: &[Word] = &[
    make_word("queued", "it waits for other items"),
    make_word("ready", "it could begin"),
    make_word("running", "its owner works on it"),
    make_word("blocked", "its owner cannot go on"),
    make_word("done", "it is done"),
    make_word("failed", "its owner gave it up"),
];

pub(crate) const STEP_END: &[Word] = &[
    make_word("succeeded", "it did what it should"),
    make_word("failed", "every attempt failed"),
    make_word("skipped", "it did not run"),
];
