//! The nodes.

use super::words::{DELIVERY, EXHAUSTED, FORMAT, JOIN, ON_FAILURE, ROUND_FAILURE, STOP_STATUS, WHEN};
use super::{Kind, Node, Property, defaulted, optional, required};

const NAME: &[super::Argument] = &[required("NAME", Kind::Name)];
const ANY_COUNT: Kind = Kind::Count(1, u32::MAX as u64);

/// The top level of a spec.
pub(crate) static SPEC: Node =
    Node::new("", "A workflow.").children(&[&WORKFLOW, &PARAM, &SECRET, &PROVIDER, &AGENT, &PROMPT, &PIPELINE]);

/// A suppression; stands in every block.
pub(crate) static ALLOW: Node =
    Node::new("allow", "Suppresses a check in the node that holds it, or in the whole file.")
        .arguments(&[required("CODE", Kind::Text)])
        .properties(&[Property::new("reason", Kind::Text, "Why the spec is right and the check is not.")])
        .many();

static DESCRIPTION: Node =
    Node::new("description", "What it is for, for people.").arguments(&[required("TEXT", Kind::Text)]);

static WORKFLOW: Node =
    Node::new("workflow", "The workflow as a whole; without this node it has the name of its file.")
        .arguments(NAME)
        .children(&[&DESCRIPTION, &DEFAULT]);

static DEFAULT: Node = Node::new("default", "The pipeline that `swarmc run` starts; the first one unless said.")
    .arguments(&[required("PIPELINE", Kind::Reference)]);

static PARAM: Node = Node::new("param", "A typed input, given with `--param NAME=VALUE` or in `--params FILE`.")
    .arguments(NAME)
    .properties(&[
        Property::new(
            "type",
            Kind::Type,
            "`string`, `int`, `float`, `bool`, `file` or `dir`; with `?` it may be left out.",
        )
        .default("string"),
        Property::new("default", Kind::Literal, "The value where none is given."),
    ])
    .children(&[&DESCRIPTION])
    .many();

static SECRET: Node = Node::new(
    "secret",
    "A value that stays in the environment; it reaches processes that name it in `env`, and nothing else.",
)
.arguments(NAME)
.properties(&[Property::new("env", Kind::Variable, "The environment variable that holds it.").required()])
.many();

static ENV: Node = Node::new(
    "env",
    "Variables of the process: names are passed through (a secret's, or the caller's), `K=\"TEXT\"` is set.",
)
.rest("NAME", Kind::Variable)
.open_properties(Kind::Template)
.many();

/// How agents are reached.
pub(crate) static PROVIDER: Node =
    Node::new("provider", "How agents are reached: a command, recorded answers, or a preset of `std:providers`.")
        .arguments(NAME)
        .properties(&[Property::new("preset", Kind::Reference, "A provider of `std:providers` to start from.")])
        .children(&[
            &DESCRIPTION,
            &EXEC,
            &SCRIPT,
            &ARGS,
            &DELIVERED,
            &READS_FORMAT,
            &MODEL_FLAG,
            &SYSTEM_FLAG,
            &ENV,
            &INSTALL,
        ])
        .many();

static EXEC: Node =
    Node::new("exec", "The command that takes one turn, as an argument vector.").rest("ARG", Kind::Scalar);
static ARGS: Node = Node::new("args", "Further arguments, after those of the preset.").rest("ARG", Kind::Scalar).many();
static DELIVERED: Node = Node::new("prompt", "How the prompt reaches the command.").arguments(&[defaulted(
    "HOW",
    Kind::Choice(DELIVERY),
    "stdin",
)]);
static READS_FORMAT: Node = Node::new("reads", "What the command prints on its standard output.")
    .arguments(&[defaulted("FORMAT", Kind::Choice(FORMAT), "text")]);
static MODEL_FLAG: Node =
    Node::new("model-flag", "The flag before the agent's model.").arguments(&[required("FLAG", Kind::Text)]);
static SYSTEM_FLAG: Node = Node::new(
    "system-flag",
    "The flag before the agent's system text; without it, that text stands before the prompt.",
)
.arguments(&[required("FLAG", Kind::Text)]);
static INSTALL: Node = Node::new("install", "How to install the command, for the message when it is missing.")
    .arguments(&[required("TEXT", Kind::Text)]);

static SCRIPT: Node =
    Node::new("script", "Recorded answers instead of a command; the first that fits answers.").children(&[&ANSWER]);
static ANSWER: Node = Node::new("answer", "A recorded answer, for every turn that fits its properties.")
    .arguments(&[optional("TEXT", Kind::Text)])
    .properties(&[
        Property::new("file", Kind::Path, "The file that holds the text."),
        Property::new("task", Kind::Reference, "The task it answers; any, when left out."),
        Property::new("iteration", ANY_COUNT, "The round it answers, from 1; any, when left out."),
        Property::new("attempt", ANY_COUNT, "The attempt it answers, from 1; any, when left out."),
        Property::new("exit", Kind::Count(0, 255), "The exit code; anything but 0 fails the attempt.").default("0"),
        Property::new("delay", Kind::Duration, "How long the answer takes.").default("0s"),
    ])
    .many();

static AGENT: Node = Node::new("agent", "A role that a provider plays. The only agent is the default one.")
    .arguments(NAME)
    .properties(&[
        Property::new("provider", Kind::Reference, "The provider; the only one, when left out."),
        Property::new("model", Kind::Scalar, "The model, in the provider's own terms."),
    ])
    .children(&[&DESCRIPTION, &SYSTEM])
    .many();

static SYSTEM: Node = Node::new("system", "What the agent is told before each prompt.")
    .arguments(&[optional("TEXT", Kind::Template)])
    .properties(&[FILE]);

const FILE: Property = Property::new("file", Kind::Path, "The file that holds the text.");
const REF: Property = Property::new("ref", Kind::Reference, "The shared `prompt` that holds the text.");

static PROMPT: Node = Node::new("prompt", "A text that tasks share by `prompt ref=NAME`.")
    .arguments(&[required("NAME", Kind::Name), optional("TEXT", Kind::Template)])
    .properties(&[FILE])
    .many();

/// A graph of steps.
pub(crate) static PIPELINE: Node = Node::new("pipeline", "Steps that run in the order of their data, round by round.")
    .arguments(NAME)
    .children(&[
        &DESCRIPTION,
        &PARAM,
        &ITERATIONS,
        &UNTIL,
        &PARALLELISM,
        &CONCURRENCY,
        &RESULT,
        &FAIL_FAST,
        &ENV,
        &WORKING_DIR,
        &TASK,
        &STOP,
    ])
    .many();

static ITERATIONS: Node =
    Node::new("iterations", "How many rounds at most.").arguments(&[defaulted("N", ANY_COUNT, "1")]).properties(&[
        Property::new("on-failure", Kind::Choice(ROUND_FAILURE), "What an unhandled failure in a round does.")
            .default("stop"),
        Property::new("exhausted", Kind::Choice(EXHAUSTED), "What it means that no `until` ever held.").default("fail"),
    ]);
static UNTIL: Node = Node::new("until", "Ends the rounds when it holds after one; any of several does.")
    .arguments(&[required("EXPRESSION", Kind::Expression)])
    .many();
static PARALLELISM: Node = Node::new("parallelism", "How many independent instances run.").arguments(&[defaulted(
    "N",
    Kind::Count(1, 10_000),
    "1",
)]);
static CONCURRENCY: Node =
    Node::new("concurrency", "How many steps run at once; in a pipeline, the processors unless said.")
        .arguments(&[required("N", ANY_COUNT)]);
static RESULT: Node =
    Node::new("result", "The value: that of the first listed step that succeeded; the only last step's unless said.")
        .arguments(&[required("STEP", Kind::Reference)])
        .rest("STEP", Kind::Reference);
static FAIL_FAST: Node = Node::new("fail-fast", "Starts no further step after a failure that nothing handles.")
    .arguments(&[optional("ON", Kind::Bool)]);
static WORKING_DIR: Node = Node::new("working-dir", "Where processes run; the workspace unless said.")
    .arguments(&[required("PATH", Kind::Path)]);

/// One step.
pub(crate) static TASK: Node =
    Node::new("task", "A step: one turn of an agent (`prompt`), a command (`run`) or a computed text (`value`).")
        .arguments(NAME)
        .properties(&[Property::new(
            "agent",
            Kind::Reference,
            "The agent that takes the prompt; the only one, when left out.",
        )])
        .children(&[
            &DESCRIPTION,
            &DEPENDS_ON,
            &STEP_JOIN,
            &STEP_WHEN,
            &STEP_ON_FAILURE,
            &TASK_PROMPT,
            &PREFIX,
            &SUFFIX,
            &RUN,
            &VALUE,
            &OUTPUT,
            &INPUT,
            &RETRY,
            &TIMEOUT,
            &GRACE,
            &CHECK,
            &CONCURRENCY,
            &WRITES,
            &READS,
            &ENV,
            &STDIN,
        ])
        .many();

/// The end of a pipeline.
pub(crate) static STOP: Node = Node::new("stop", "Ends its pipeline when it is reached.")
    .arguments(NAME)
    .properties(&[Property::new("status", Kind::Choice(STOP_STATUS), "How the pipeline ends.").default("success")])
    .children(&[&DESCRIPTION, &DEPENDS_ON, &STEP_JOIN, &STEP_WHEN, &MESSAGE])
    .many();

static DEPENDS_ON: Node = Node::new("depends-on", "Steps that must have settled first.")
    .arguments(&[required("STEP", Kind::Reference)])
    .rest("STEP", Kind::Reference)
    .properties(&[Property::new("when", Kind::Choice(WHEN), "How they must have ended.").default("success")])
    .many();
static STEP_JOIN: Node =
    Node::new("join", "How several `depends-on` combine.").arguments(&[defaulted("HOW", Kind::Choice(JOIN), "all")]);
static STEP_WHEN: Node = Node::new("when", "What must be true besides; otherwise the step is skipped.")
    .arguments(&[required("EXPRESSION", Kind::Expression)]);
static STEP_ON_FAILURE: Node = Node::new("on-failure", "What its failure means.").arguments(&[defaulted(
    "WHAT",
    Kind::Choice(ON_FAILURE),
    "fail",
)]);

static TASK_PROMPT: Node = Node::new("prompt", "What the agent is asked.")
    .arguments(&[optional("TEXT", Kind::Template)])
    .properties(&[FILE, REF]);
static PREFIX: Node = Node::new("prefix", "Text before the prompt, a blank line between.")
    .arguments(&[optional("TEXT", Kind::Template)])
    .properties(&[FILE, REF]);
static SUFFIX: Node = Node::new("suffix", "Text after the prompt, a blank line between.")
    .arguments(&[optional("TEXT", Kind::Template)])
    .properties(&[FILE, REF]);
static RUN: Node = Node::new("run", "A command: an argument vector, or one shell line. Never a template.")
    .rest("WORD", Kind::Scalar)
    .properties(&[Property::new("file", Kind::Path, "The script to run, by its `#!` line or by `sh`.")]);
static VALUE: Node = Node::new("value", "A computed text, or a record of fields with a text each.")
    .arguments(&[optional("TEXT", Kind::Template)])
    .open_children();
static OUTPUT: Node = Node::new("output", "What becomes of what it prints.").properties(&[
    Property::new("max", Kind::Size, "The bytes kept at most; the tail stays.").default("100KB"),
    Property::new("default", Kind::Text, "The value when the step failed or was skipped."),
]);
static INPUT: Node =
    Node::new("input", "A name for another step's output, read as `<<input:NAME>>`, so that steps can share a prompt.")
        .arguments(NAME)
        .properties(&[Property::new("from", Kind::Reference, "The step whose output it is.").required()])
        .many();
static RETRY: Node = Node::new("retry", "Further attempts after a failed one.")
    .arguments(&[required("N", Kind::Count(1, 1000))])
    .properties(&[
        Property::new("backoff", Kind::Duration, "The wait before the first of them, doubled before each next one.")
            .default("1s"),
        Property::new("max", Kind::Duration, "The longest wait.").default("5m"),
    ]);
static TIMEOUT: Node = Node::new("timeout", "The time of one attempt at most; no limit unless said.")
    .arguments(&[optional("TIME", Kind::Duration)])
    .properties(&[Property::new("idle", Kind::Duration, "The time without a byte of output at most.")]);
static GRACE: Node = Node::new("grace", "How long an agent that has reported its result may take to exit.")
    .arguments(&[defaulted("TIME", Kind::Duration, "30s")]);
static CHECK: Node =
    Node::new("check", "A command that must exit with 0 after the body; otherwise the attempt failed.")
        .rest("WORD", Kind::Scalar)
        .many();
static WRITES: Node =
    Node::new("writes", "The files it writes, relative to the workspace.").rest("GLOB", Kind::Glob).many();
static READS: Node =
    Node::new("reads", "The files it reads, relative to the workspace.").rest("GLOB", Kind::Glob).many();
static STDIN: Node =
    Node::new("stdin", "What its process reads on standard input.").arguments(&[required("TEXT", Kind::Template)]);
static MESSAGE: Node = Node::new("message", "Why it ends; the value where `result` lists the stop.")
    .arguments(&[required("TEXT", Kind::Template)]);
