//! A pipeline, its steps other than tasks, and edges.

use super::table::{ANY_COUNT, BUDGET, DESCRIPTION, ENV, NAME, PIPELINE_PARAM};
use super::task::{CONCURRENCY, DEPENDS_ON, LIMITS, STEP_JOIN, STEP_ON_FAILURE, STEP_WHEN, TASK, WORKTREE};
use super::words::{EDGE_KIND, EXHAUSTED, RESPONSE, ROUND_FAILURE, STOP_STATUS};
use super::{Kind, Node, Property, Target, default_argument, optional_argument, required_argument};

/// A graph of steps.
pub(crate) static PIPELINE: Node = Node::new("pipeline", "Steps that run in the order of their data, round by round.")
    .arguments(NAME)
    .children(&[
        &DESCRIPTION,
        &PIPELINE_PARAM,
        &ITERATIONS,
        &UNTIL,
        &PARALLELISM,
        &CONCURRENCY,
        &POOL,
        &USE,
        &RESULT,
        &FAIL_FAST,
        &WORKTREE,
        &WORKING_DIR,
        &ENV,
        &BUDGET,
        &EDGES,
        &TASK,
        &GATE,
        &LOOP,
        &STOP,
        &SEQUENCE,
    ])
    .many();

const EXHAUSTED_OF: Property =
    Property::new("exhausted", Kind::Choice(EXHAUSTED), "The result if no `until` ever holds.").default("fail");

static ITERATIONS: Node = Node::new("iterations", "How many rounds at most.")
    .arguments(&[default_argument("N", ANY_COUNT, "1")])
    .properties(&[
        Property::new("on-failure", Kind::Choice(ROUND_FAILURE), "What an unhandled failure in a round does.")
            .default("stop"),
        EXHAUSTED_OF,
    ]);
static UNTIL: Node = Node::new("until", "Ends the rounds when it holds after a round; one of several is enough.")
    .arguments(&[required_argument("EXPRESSION", Kind::Expression)])
    .many();
static PARALLELISM: Node = Node::new("parallelism", "How many independent instances run, as `NAME.1` to `NAME.N`; more than one only of a pipeline that no `call` names.").arguments(&[default_argument(
    "N",
    Kind::Count(1, 10_000),
    "1",
)]);
static POOL: Node = Node::new(
    "pool",
    "Names the workers that carry its steps out in a run with an engine; without an engine it has no effect. Tasks and \
     agents that name a pool keep theirs. A pipeline that it calls has a pool of its own, or `default`.",
)
.arguments(&[required_argument("POOL", Kind::Pool)]);
static USE: Node = Node::new("use", "Includes shared tasks of the top level.")
    .arguments(&[required_argument("TASK", Kind::Reference(Target::Shared))])
    .rest("TASK", Kind::Reference(Target::Shared))
    .properties(&[Property::new(
        "partial",
        Kind::Bool,
        "Whether tasks that these refer to may be left out: dependencies on them drop, their outputs are missing.",
    )
    .default("#false")])
    .many();
static RESULT: Node = Node::new(
    "result",
    "The value: that of the first listed step that succeeded; that of the only last step, when left out.",
)
.arguments(&[required_argument("STEP", Kind::Reference(Target::Step))])
.rest("STEP", Kind::Reference(Target::Step));
static FAIL_FAST: Node = Node::new("fail-fast", "Starts no further step after a failure that nothing handles.")
    .arguments(&[optional_argument("ON", Kind::Bool)]);
static WORKING_DIR: Node = Node::new("working-dir", "Where processes run; the workspace, when left out.")
    .arguments(&[required_argument("PATH", Kind::Path)]);

/// A decision of a person.
static GATE: Node =
    Node::new("gate", "Waits for a decision of a person; the choice is its output: `output.NAME.choice`.")
        .arguments(NAME)
        .children(&[
            &DESCRIPTION,
            &DEPENDS_ON,
            &STEP_JOIN,
            &STEP_WHEN,
            &STEP_ON_FAILURE,
            &GATE_MESSAGE,
            &OPTIONS,
            &ASK,
            &ON_TIMEOUT,
            &HEADLESS,
        ])
        .many();
static GATE_MESSAGE: Node =
    Node::new("message", "What the person is asked.").arguments(&[required_argument("TEXT", Kind::Template)]);
static OPTIONS: Node = Node::new("options", "What the person can choose.")
    .arguments(&[default_argument("OPTION", Kind::Name, "approve")])
    .rest("OPTION", Kind::Name);
static ASK: Node = Node::new("ask", "A field that the person fills in besides: `output.GATE.NAME`.")
    .arguments(&[required_argument("NAME", Kind::Text), required_argument("TYPE", Kind::Type)])
    .rest("WORD", Kind::Text)
    .properties(LIMITS)
    .many();
static ON_TIMEOUT: Node =
    Node::new("on-timeout", "What is chosen when no person decides in time: an option, or `fail`.")
        .arguments(&[required_argument("OPTION", Kind::Reference(Target::Option))])
        .properties(&[Property::new("after", Kind::Duration, "How long it waits.").make_required()]);
static HEADLESS: Node = Node::new(
    "headless",
    "What is chosen at once in an unattended run: an option, or `fail`; the choice of `on-timeout`, when left out.",
)
.arguments(&[required_argument("OPTION", Kind::Reference(Target::Option))]);

/// Steps that repeat.
static LOOP: Node = Node::new("loop", "Steps that repeat until a condition holds.")
    .arguments(NAME)
    .properties(&[Property::new("max", ANY_COUNT, "How many rounds at most."), EXHAUSTED_OF])
    .children(&[
        &DESCRIPTION,
        &DEPENDS_ON,
        &STEP_JOIN,
        &STEP_WHEN,
        &STEP_ON_FAILURE,
        &UNTIL,
        &TASK,
        &GATE,
        &LOOP,
        &STOP,
        &SEQUENCE,
    ])
    .many();

/// Steps one after another.
pub static SEQUENCE: Node = Node::new(
    "sequence",
    "Steps one after another: each depends on the one before it. They are declared here, or named: `sequence { a; b }`.",
)
.children(&[&TASK, &GATE, &LOOP, &STOP])
.open_children(&SEQUENCE_STEP)
.many();

/// A step that is declared elsewhere in the block; its node is its name.
pub static SEQUENCE_STEP: Node = Node::new("STEP", "A step that stands elsewhere in the pipeline or the loop.").many();

/// The end of a pipeline.
static STOP: Node = Node::new("stop", "Ends its pipeline when it is reached.")
    .arguments(NAME)
    .properties(&[Property::new("status", Kind::Choice(STOP_STATUS), "How the pipeline ends.").default("success")])
    .children(&[&DESCRIPTION, &DEPENDS_ON, &STEP_JOIN, &STEP_WHEN, &STOP_MESSAGE])
    .many();
static STOP_MESSAGE: Node = Node::new("message", "Why it ends; the value where `result` lists the stop.")
    .arguments(&[required_argument("TEXT", Kind::Template)]);

pub(super) static EDGES: Node = Node::new(
    "edges",
    "Which step or member may send to which one, one edge a line: `a -> b`, or `a <-> b` for both ways.",
)
.open_children(&EDGE);

/// An edge; its name is the sender.
pub static EDGE: Node = Node::new("SENDER", "An edge from its sender to a receiver.")
    .arguments(&[required_argument("ARROW", Kind::Text), required_argument("RECEIVER", Kind::Reference(Target::Party))])
    .properties(&[
        Property::new("kind", Kind::Choice(EDGE_KIND), "What it carries.").default("handoff"),
        Property::new("carries", Kind::Type, "The type of `payload.structured`; anything, when left out."),
        Property::new("response", Kind::Choice(RESPONSE), "Whether the receiver answers.").default("none"),
        Property::new("max", ANY_COUNT, "How many messages it carries at most."),
    ])
    .many();
