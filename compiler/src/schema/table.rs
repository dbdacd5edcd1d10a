//! The nodes of the top level.

use super::agents::{AGENT, PROVIDER, TIERS, TOOL_SERVER};
use super::pack::CONTEXT_PACK;
use super::pipeline::PIPELINE;
use super::swarm::SWARM;
use super::task::{RUN, TASK, TYPE_FIELD};
use super::test::TEST;
use super::words::{AGREEMENT, APPROVAL, EDITIONS, EVENTS, LIMITING, MODE, SURVIVORS, UNATTENDED};
use super::{Argument, Kind, Node, Property, Target, default_argument, optional_argument, required_argument};

pub(super) const NAME: &[Argument] = &[required_argument("NAME", Kind::Name)];
pub(super) const ANY_COUNT: Kind = Kind::Count(1, u32::MAX as u64);
pub(super) const ANY_AMOUNT: Kind = Kind::Count(1, u64::MAX);

/// The top level of a spec.
pub static SPEC: Node = Node::new("", "A workflow.").children(&[
    &WORKFLOW,
    &IMPORT,
    &PARAM,
    &SECRET,
    &TYPE,
    &PROVIDER,
    &TIERS,
    &AGENT,
    &TOOL_SERVER,
    &PROMPT,
    &CONTEXT_PACK,
    &TASK,
    &PIPELINE,
    &SWARM,
    &BUDGET,
    &POLICY,
    &HOOK,
    &TEST,
]);

/// A suppression; stands in every block.
pub static ALLOW: Node = Node::new("allow", "Suppresses a check in the node that holds it, or in the whole file.")
    .arguments(&[required_argument("CODE", Kind::Text)])
    .properties(&[Property::new("reason", Kind::Text, "Why the spec is right and the check is not.")])
    .many();

pub(super) static DESCRIPTION: Node =
    Node::new("description", "What it is for, for people.").arguments(&[required_argument("TEXT", Kind::Text)]);

static WORKFLOW: Node =
    Node::new("workflow", "The workflow as a whole; without this node it has the name of its file.")
        .arguments(NAME)
        .children(&[&DESCRIPTION, &DEFAULT, &EDITION_OF, &DOCS_ROOT, &WORKFLOW_MODE, &SURVIVE, &LOCKED]);

static DEFAULT: Node =
    Node::new("default", "The pipeline or swarm that `swarmc run` starts; the first pipeline, when left out.")
        .arguments(&[required_argument("NAME", Kind::Reference(Target::Runnable))]);
static EDITION_OF: Node = Node::new("edition", "The edition of the language that the spec is written in.")
    .arguments(&[default_argument("EDITION", Kind::Choice(EDITIONS), "2026")]);
static DOCS_ROOT: Node = Node::new("docs-root", "The folder of the documents that context packs refer to.")
    .arguments(&[required_argument("PATH", Kind::Path)]);
static SURVIVE: Node = Node::new("survive", "Which processes go on where their runner is killed, until `swarmc resume` takes them over. Each is held by a process of its own, `swarmc shim`.")
    .arguments(&[default_argument("WHAT", Kind::Choice(SURVIVORS), "agents")])
    .properties(&[Property::new("for", Kind::Duration, "How long they are kept where no runner comes back.").default("1h")]);
static WORKFLOW_MODE: Node = Node::new("mode", "What agents are there to do; an agent may set its own mode.")
    .arguments(&[default_argument("MODE", Kind::Choice(MODE), "implementation")]);
static LOCKED: Node = Node::new(
    "locked",
    "Requires fixed versions of all models and tools; the profile `audit` reports each one that can change.",
)
.arguments(&[optional_argument("ON", Kind::Bool)]);

static IMPORT: Node =
    Node::new("import", "Includes the declarations of another spec, or of the library: `\"std:types\"`.")
        .arguments(&[required_argument("FILE", Kind::Path)])
        .properties(&[Property::new(
            "as",
            Kind::Name,
            "Qualifies its names: `NAME.agent`; without it they stand as they are.",
        )])
        .many();

/// What a parameter is.
const PARAM_ABOUT: &str = "A typed input, given with `--param NAME=VALUE` or in `--params FILE`. A list, a map or a record \
                           is JSON, or `@FILE`, a file that holds it.";

const PARAM_TYPE: Property = Property::new(
    "type",
    Kind::Type,
    "`string`, `int`, `float`, `bool`, `file`, `dir`, `list<T>`, `map<T>`, `\"enum A B\"` or a declared type; with `?` it \
     may be left out.",
)
.default("string");

const PARAM_DEFAULT: Property =
    Property::new("default", Kind::Literal, "The value when none is given; JSON for lists, maps and records.");

static PARAM: Node = Node::new("param", PARAM_ABOUT)
    .arguments(NAME)
    .properties(&[
        PARAM_TYPE,
        PARAM_DEFAULT,
        Property::new(
            "env",
            Kind::Variable,
            "The environment variable that holds the value when none is given; in the spec itself, not in what it imports. \
             What must stay secret is a `secret`.",
        ),
    ])
    .children(&[&DESCRIPTION])
    .many();

pub(super) static PIPELINE_PARAM: Node = Node::new("param", PARAM_ABOUT)
    .arguments(NAME)
    .properties(&[PARAM_TYPE, PARAM_DEFAULT])
    .children(&[&DESCRIPTION])
    .many();

static SECRET: Node = Node::new(
    "secret",
    "A value that stays in the environment; it reaches processes that name it in `env`, and nothing else.",
)
.arguments(NAME)
.properties(&[Property::new("env", Kind::Variable, "The environment variable that holds it.").make_required()])
.many();

static TYPE: Node = Node::new(
    "type",
    "A type: fields in its block, or `enum` and its words. A `//` comment above it, or above a field, describes it.",
)
.arguments(&[required_argument("NAME", Kind::TypeName), optional_argument("TYPE", Kind::Type)])
.rest("WORD", Kind::Text)
.open_children(&TYPE_FIELD)
.many();

pub(super) static ENV: Node = Node::new(
    "env",
    "Variables of the process: names are passed through (a secret's, or the caller's), `K=\"TEXT\"` is set.",
)
.rest("NAME", Kind::Variable)
.open_properties(Kind::Variable, Kind::Template)
.many();

pub(super) const FILE: Property = Property::new("file", Kind::Path, "The file that holds the text.");
pub(super) const REF: Property =
    Property::new("ref", Kind::Reference(Target::Prompt), "The shared `prompt` that holds the text.");

static PROMPT: Node = Node::new("prompt", "A text that tasks share by `prompt ref=NAME`.")
    .arguments(&[required_argument("NAME", Kind::Name), optional_argument("TEXT", Kind::Template)])
    .properties(&[FILE])
    .many();

/// What may be spent.
pub(crate) static BUDGET: Node = Node::new("budget", "What may be spent: `budget cost=\"$5\" at-most`.")
    .arguments(&[optional_argument("HOW", Kind::Choice(LIMITING))])
    .properties(&[
        Property::new("tokens", ANY_AMOUNT, "Tokens, in and out."),
        Property::new("cost", Kind::Money, "Money."),
        Property::new("time", Kind::Duration, "Time."),
        Property::new("calls", ANY_COUNT, "Turns of agents."),
        Property::new("warn", Kind::Count(1, 100), "The share in per cent from which on a warning is given.")
            .default("80"),
    ]);

static POLICY: Node = Node::new("policy", "Who approves what agents ask for.").children(&[
    &POLICY_SPAWN,
    &POLICY_TOOL,
    &PLAN_UPDATE,
    &INTEGRATE,
    &UNATTENDED_POLICY,
    &REQUEST_TIMEOUT,
]);
static POLICY_SPAWN: Node = Node::new("spawn", "Starting further agents; the `spawn` of a swarm overrides this.")
    .arguments(&[default_argument("WHO", Kind::Choice(APPROVAL), "auto")]);
static POLICY_TOOL: Node = Node::new("tool", "Using a tool; `read_transcript`, in a team, too.")
    .arguments(&[required_argument("NAME", Kind::Text), required_argument("WHO", Kind::Choice(APPROVAL))])
    .many();
static PLAN_UPDATE: Node = Node::new("plan-update", "Changing the plan of a swarm.").arguments(&[default_argument(
    "WHO",
    Kind::Choice(APPROVAL),
    "coordinator",
)]);
static INTEGRATE: Node = Node::new("integrate", "Moving the branch that the `into=` of a worktree names.")
    .arguments(&[default_argument("WHO", Kind::Choice(AGREEMENT), "human")]);
static UNATTENDED_POLICY: Node = Node::new("unattended", "The answer to a request to a person in an unattended run.")
    .arguments(&[default_argument("WHAT", Kind::Choice(UNATTENDED), "deny")]);
static REQUEST_TIMEOUT: Node = Node::new("on-timeout", "The answer to a request that no person answers in time, and to a proposal that the coordinator of a team does not decide in time.")
    .arguments(&[required_argument("WHAT", Kind::Choice(UNATTENDED))])
    .properties(&[Property::new("after", Kind::Duration, "How long a request waits.").make_required()]);

static HOOK: Node = Node::new("hook", "A command that runs after an event, in the workspace and in parallel to the steps; the run does not wait for it and ignores its result. It gets `SWARM_EVENT`, `SWARM_RUN`, `SWARM_RUN_DIR` and `SWARM_WORKFLOW`; at the end `SWARM_STATUS` (`succeeded`, `failed`, `over_budget`), at a gate `SWARM_GATE`.")
    .arguments(&[required_argument("EVENT", Kind::Choice(EVENTS))])
    .children(&[&DESCRIPTION, &RUN])
    .many();
