//! A task and what stands in it.

use super::table::{ANY_COUNT, BUDGET, DESCRIPTION, ENV, FILE, NAME, REF};
use super::words::{EACH_JOIN, JOIN, ON_FAILURE, WHEN};
use super::{Kind, Node, Older, Property, Target, default_argument, optional_argument, required_argument};

/// One step.
pub static TASK: Node = Node::new(
    "task",
    "A step: one turn of an agent (`prompt`), a command (`run`), a computed value (`value`), a pipeline (`call`) or a \
     swarm (`swarm`). At the top level, a task that pipelines share through `use`.",
)
.arguments(NAME)
.properties(&[
    Property::new(
        "agent",
        Kind::Reference(Target::Agent),
        "The agent that takes the prompt, or a preset: `claude-code`; the only agent, when left out.",
    ),
    Property::new("model", Kind::Scalar, "The model that the agent uses here, in the terms of its provider."),
    Property::new(
        "pool",
        Kind::Pool,
        "Names the workers that carry the step out in a run with an engine; without an engine it has no effect. The pool \
         of its agent, else of its pipeline, else `default`, when left out. Agents of a swarm that name a pool keep theirs.",
    ),
])
.children(&[
    &DESCRIPTION,
    &DEPENDS_ON,
    &STEP_JOIN,
    &STEP_WHEN,
    &STEP_ON_FAILURE,
    &TASK_PROMPT,
    &PREFIX,
    &SUFFIX,
    &CONTEXT,
    &RUN,
    &VALUE,
    &CALL,
    &TASK_SWARM,
    &OUTPUT,
    &INPUT,
    &SESSION,
    &FOR_EACH,
    &RETRY,
    &TIMEOUT,
    &GRACE,
    &SURVIVE,
    &STALL,
    &CHECK,
    &CONCURRENCY,
    &WRITES,
    &READS,
    &REUSE,
    &WORKTREE,
    &FILES,
    &ENV,
    &STDIN,
    &BUDGET,
])
.many();

pub(super) static DEPENDS_ON: Node = Node::new("depends-on", "Steps that must have settled first.")
    .arguments(&[required_argument("STEP", Kind::Reference(Target::Step))])
    .rest("STEP", Kind::Reference(Target::Step))
    .properties(&[Property::new("when", Kind::Choice(WHEN), "How they must have ended.").default("success")])
    .older(COMPOSED)
    .many();
/// As compose files write it, which the first users have come from.
pub(super) const COMPOSED: &[Older] = &[Older { name: "depends_on", since: "2026" }];
pub(super) static STEP_JOIN: Node = Node::new("join", "How several `depends-on` combine.")
    .arguments(&[default_argument("HOW", Kind::Choice(JOIN), "all")]);
pub(super) static STEP_WHEN: Node = Node::new("when", "A condition that must hold too; otherwise the step is skipped.")
    .arguments(&[required_argument("EXPRESSION", Kind::Expression)]);
pub(super) static STEP_ON_FAILURE: Node = Node::new("on-failure", "What its failure means.")
    .arguments(&[default_argument("WHAT", Kind::Choice(ON_FAILURE), "fail")])
    .properties(&[Property::new("agent", Kind::Reference(Target::Agent), "The agent that `fix` gives a turn.")]);

static TASK_PROMPT: Node = Node::new("prompt", "What the agent is asked.")
    .arguments(&[optional_argument("TEXT", Kind::Template)])
    .properties(&[
        FILE,
        REF,
        Property::new("context", Kind::Reference(Target::Pack), "A context pack, as the node `context` names it."),
    ]);
static PREFIX: Node = Node::new("prefix", "Text before the prompt, a blank line between.")
    .arguments(&[optional_argument("TEXT", Kind::Template)])
    .properties(&[FILE, REF]);
static SUFFIX: Node = Node::new("suffix", "Text after the prompt, a blank line between.")
    .arguments(&[optional_argument("TEXT", Kind::Template)])
    .properties(&[FILE, REF]);
static CONTEXT: Node = Node::new("context", "Context packs that stand before the prompt.")
    .arguments(&[required_argument("PACK", Kind::Reference(Target::Pack))])
    .rest("PACK", Kind::Reference(Target::Pack))
    .many();
pub(crate) static RUN: Node = Node::new(
    "run",
    "A command: an argument vector, or one shell line. Never a template. A program with a `/` in its name is relative to the workspace (the nearest folder with `.git`, else that of the spec), the pipeline's `working-dir`, or the task's worktree, not to the file that names it. Its output is what it prints on standard output; if it fails, also what it writes to standard error.",
)
.rest("WORD", Kind::Scalar)
.properties(&[Property::new(
    "file",
    Kind::Path,
    "The script to run, by its `#!` line or by `sh`; relative to the file that names it, wherever tasks run.",
)]);
static VALUE: Node = Node::new("value", "A computed text, or a record of fields with a text each.")
    .arguments(&[optional_argument("TEXT", Kind::Template)])
    .open_children(&RECORD_FIELD);
static RECORD_FIELD: Node =
    Node::new("FIELD", "A field of the record.").arguments(&[required_argument("TEXT", Kind::Template)]).many();
static CALL: Node = Node::new("call", "Another pipeline as a function; its value is the output.")
    .arguments(&[required_argument("PIPELINE", Kind::Reference(Target::Pipeline))])
    .open_properties(Kind::Name, Kind::Template);
static TASK_SWARM: Node = Node::new("swarm", "A swarm; its result is the output.")
    .arguments(&[required_argument("SWARM", Kind::Reference(Target::Swarm))])
    .properties(&[Property::new("goal", Kind::Template, "Its goal; the swarm's own, when left out.")]);

static OUTPUT: Node = Node::new(
    "output",
    "How its output is read and kept: its type (one argument, `enum` and its words, or fields in the block), and more.",
)
.arguments(&[optional_argument("TYPE", Kind::Type)])
.rest("WORD", Kind::Text)
.properties(&[
    Property::new("max", Kind::Size, "The bytes kept at most; the tail stays.").default("100KB"),
    Property::new(
        "default",
        Kind::Literal,
        "The value if the step fails or is skipped; JSON for lists, maps and records.",
    ),
    Property::new(
        "repair",
        Kind::Count(0, 10),
        "The turns of an agent to mend an answer that does not fit the type, or whose operations were refused.",
    )
    .default("1"),
])
.open_children(&TYPE_FIELD);
pub(super) static TYPE_FIELD: Node = Node::new("FIELD", "A field: its name, then its type.")
    .arguments(&[required_argument("TYPE", Kind::Type)])
    .rest("WORD", Kind::Text)
    .properties(LIMITS)
    .many();
pub(super) const LIMITS: &[Property] = &[
    Property::new("min", Kind::Number, "The least number, characters of a text, or entries of a list or map."),
    Property::new("max", Kind::Number, "The greatest number, characters of a text, or entries of a list or map."),
    Property::new("pattern", Kind::Text, "A regular expression that a text must match."),
];

static INPUT: Node =
    Node::new("input", "A name for another step's output, read as `<<input:NAME>>`, so that steps can share a prompt.")
        .arguments(NAME)
        .properties(&[
            Property::new("from", Kind::Reference(Target::Step), "The step whose output it is.").make_required()
        ])
        .many();
static SESSION: Node = Node::new(
    "session",
    "The conversation that the turn belongs to: tasks of one agent with one name go on with it; a new one, when left out.",
)
.arguments(NAME);
static FOR_EACH: Node = Node::new("for-each", "Runs the body once for each item of a list, which it reads as `item`.")
    .arguments(&[optional_argument("LIST", Kind::Expression)])
    .properties(&[
        Property::new("file", Kind::Path, "A JSON file that holds the list, which the plan then contains."),
        Property::new("parallel", ANY_COUNT, "How many items run at once; the limit of the run, when left out."),
        Property::new("join", Kind::Choice(EACH_JOIN), "How many items must succeed.").default("all"),
        Property::new("with-item", Kind::Bool, "Whether each result is a record of its `item` and its `output`.")
            .default("#false"),
    ]);
static RETRY: Node = Node::new("retry", "Further attempts after a failed one.")
    .arguments(&[required_argument("N", Kind::Count(1, 1000))])
    .properties(&[
        Property::new("backoff", Kind::Duration, "The wait before the first of them, doubled before each next one.")
            .default("1s"),
        Property::new("max", Kind::Duration, "The longest wait.").default("5m"),
        Property::new(
            "fresh",
            Kind::Bool,
            "Whether an attempt that starts again after a crash begins a new conversation, and does not go on with the one that it was in.",
        )
        .default("#false"),
    ]);
static TIMEOUT: Node = Node::new("timeout", "The time of one attempt at most; no limit, when left out.")
    .arguments(&[optional_argument("TIME", Kind::Duration)])
    .properties(&[Property::new("idle", Kind::Duration, "The time without a byte of output at most.")]);
static GRACE: Node = Node::new("grace", "How long an agent that has reported its result may take to exit.")
    .arguments(&[default_argument("TIME", Kind::Duration, "30s")]);
static SURVIVE: Node = Node::new(
    "survive",
    "Whether its processes go on where the runner is killed; as `survive` of the workflow says, when left out.",
)
.arguments(&[optional_argument("ON", Kind::Bool)]);
static STALL: Node = Node::new(
    "stall",
    "After how many turns in a row with the same output, messages and changes, or attempts that fail the same check, the \
     runner asks a person whether it goes on (`swarmc approve`); 0 is never. Counted where edges lead to a task with a \
     `prompt`, or where the task sets it.",
)
.arguments(&[default_argument("N", Kind::Count(0, 1000), "3")]);
static CHECK: Node =
    Node::new("check", "A command that must exit with 0 after the body; otherwise the attempt failed.")
        .rest("WORD", Kind::Scalar)
        .many();
pub(super) static CONCURRENCY: Node =
    Node::new("concurrency", "How many steps run at once. Without it, a pipeline runs as many commands as there are processors, and 16 agents beside them.")
        .arguments(&[required_argument("N", ANY_COUNT)]);
static WRITES: Node =
    Node::new("writes", "The files it writes, relative to the workspace.").rest("GLOB", Kind::Glob).many();
static READS: Node =
    Node::new("reads", "The files it reads, relative to the workspace.").rest("GLOB", Kind::Glob).many();
static REUSE: Node = Node::new(
    "reuse",
    "Whether `run --reuse` may take its result from an earlier run with the same inputs: `#false` never, `#true` also \
     where it may read files that `reads` does not name. Without it, a command or a program needs `reads`.",
)
.arguments(&[required_argument("YES", Kind::Bool)]);
pub(super) static WORKTREE: Node =
    Node::new("worktree", "A Git worktree of its own to work in, for each instance, call and item; tasks that name one share it. It begins at the last commit, on a branch `swarm/RUN/…`, and is kept after the run when there is work in it: commits, or files that are changed or new. What Git ignores is not looked at, and goes with a tree that has nothing else.")
        .arguments(&[optional_argument("NAME", Kind::Name)]);
static STDIN: Node = Node::new("stdin", "What its process reads on standard input.")
    .arguments(&[required_argument("TEXT", Kind::Template)]);

pub(super) static FILES: Node = Node::new(
    "files",
    "The file protocol: the agent gets a folder with `inbox/`, `outbox/`, `workspace/` and `status.json`.",
)
.properties(&[Property::new(
    "copy-max",
    Kind::Size,
    "The bytes of an input that are copied at most; the agent receives only the path of a larger one.",
)
.default("1MB")])
.children(&[&SKILL, &FILE_INPUT, &FILE_OUTPUT, &REQUIREMENT, &CRITERION, &FILE_CONSTRAINT, &WAIT_FOR]);
static SKILL: Node =
    Node::new("skill", "The file that becomes its `SKILL.md`.").arguments(&[required_argument("PATH", Kind::Path)]);
static FILE_INPUT: Node = Node::new("input", "A file or folder for the inbox.")
    .arguments(&[required_argument("PATH", Kind::Glob), optional_argument("TEXT", Kind::Text)])
    .properties(&[
        Property::new(
            "from",
            Kind::Reference(Target::Step),
            "The task whose outbox holds it. Without `from`, the workspace holds it.",
        ),
        Property::new("copy-to", Kind::Glob, "The folder of the inbox for it; the inbox itself, when left out."),
        Property::new("reference", Kind::Bool, "Whether only its path is given, as for large files.").default("#false"),
        Property::new(
            "required",
            Kind::Bool,
            "Whether it must exist. With `#false`, the agent reads that the file is missing.",
        )
        .default("#true"),
    ])
    .many();
static FILE_OUTPUT: Node =
    Node::new("output", "A file, or a folder with a `/` at its end, that the outbox holds at the end.")
        .arguments(&[required_argument("PATH", Kind::Glob), optional_argument("TEXT", Kind::Text)])
        .properties(&[
            Property::new("required", Kind::Bool, "Whether the task fails without it.").default("#true"),
            Property::new("type", Kind::Type, "The type of a JSON file."),
            Property::new("copy-to", Kind::Glob, "Where in the workspace it is copied to at the end."),
        ])
        .many();
static REQUIREMENT: Node = Node::new("requirement", "A requirement, for its instructions.")
    .arguments(&[required_argument("TEXT", Kind::Template)])
    .many();
static CRITERION: Node = Node::new("criterion", "A success criterion, for its instructions.")
    .arguments(&[required_argument("TEXT", Kind::Template)])
    .many();
static FILE_CONSTRAINT: Node = Node::new("constraint", "A constraint, for its instructions.")
    .arguments(&[required_argument("TEXT", Kind::Template)])
    .many();
static WAIT_FOR: Node =
    Node::new("wait-for", "Tasks that must have succeeded first, whether or not their files are copied.")
        .arguments(&[required_argument("TASK", Kind::Reference(Target::Step))])
        .rest("TASK", Kind::Reference(Target::Step))
        .many();
