//! A pipeline, its steps other than tasks, and edges.

use super::table::{ANY_COUNT, BUDGET, DESCRIPTION, ENV, NAME, PARAM};
use super::task::{CONCURRENCY, DEPENDS_ON, LIMITS, STEP_JOIN, STEP_ON_FAILURE, STEP_WHEN, TASK, WORKTREE};
use super::words::{EDGE_KIND, EXHAUSTED, RESPONSE, ROUND_FAILURE, STOP_STATUS};
use super::{Kind, Node, Property, Target, defaulted, optional, required};

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
    ])
    .many();

const EXHAUSTED_OF: Property =
    Property::new("exhausted", Kind::Choice(EXHAUSTED), "What it means that no `until` ever held.").default("fail");

static ITERATIONS: Node =
    Node::new("iterations", "How many rounds at most.").arguments(&[defaulted("N", ANY_COUNT, "1")]).properties(&[
        Property::new("on-failure", Kind::Choice(ROUND_FAILURE), "What an unhandled failure in a round does.")
            .default("stop"),
        EXHAUSTED_OF,
    ]);
static UNTIL: Node = Node::new("until", "Ends the rounds when it holds after one; any of several does.")
    .arguments(&[required("EXPRESSION", Kind::Expression)])
    .many();
static PARALLELISM: Node = Node::new("parallelism", "How many independent instances run, as `NAME.1` to `NAME.N`; more than one only of a pipeline that no `call` names.").arguments(&[defaulted(
    "N",
    Kind::Count(1, 10_000),
    "1",
)]);
static USE: Node = Node::new("use", "Takes in shared tasks of the top level.")
    .arguments(&[required("TASK", Kind::Reference(Target::Shared))])
    .rest("TASK", Kind::Reference(Target::Shared))
    .properties(&[Property::new(
        "partial",
        Kind::Bool,
        "Whether tasks that these refer to may be left out: dependencies on them drop, their outputs are missing.",
    )
    .default("#false")])
    .many();
static RESULT: Node =
    Node::new("result", "The value: that of the first listed step that succeeded; the only last step's unless said.")
        .arguments(&[required("STEP", Kind::Reference(Target::Step))])
        .rest("STEP", Kind::Reference(Target::Step));
static FAIL_FAST: Node = Node::new("fail-fast", "Starts no further step after a failure that nothing handles.")
    .arguments(&[optional("ON", Kind::Bool)]);
static WORKING_DIR: Node = Node::new("working-dir", "Where processes run; the workspace unless said.")
    .arguments(&[required("PATH", Kind::Path)]);

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
    Node::new("message", "What the person is asked.").arguments(&[required("TEXT", Kind::Template)]);
static OPTIONS: Node = Node::new("options", "What the person can choose.")
    .arguments(&[defaulted("OPTION", Kind::Name, "approve")])
    .rest("OPTION", Kind::Name);
static ASK: Node = Node::new("ask", "A field that the person fills in besides: `output.GATE.NAME`.")
    .arguments(&[required("NAME", Kind::Text), required("TYPE", Kind::Type)])
    .rest("WORD", Kind::Text)
    .properties(LIMITS)
    .many();
static ON_TIMEOUT: Node = Node::new("on-timeout", "What holds when nobody decides: an option, or `fail`.")
    .arguments(&[required("OPTION", Kind::Reference(Target::Option))])
    .properties(&[Property::new("after", Kind::Duration, "How long it waits.").required()]);
static HEADLESS: Node = Node::new(
    "headless",
    "What holds at once where no person is: an option, or `fail`. Without it, what `on-timeout` says.",
)
.arguments(&[required("OPTION", Kind::Reference(Target::Option))]);

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
    ])
    .many();

/// The end of a pipeline.
static STOP: Node = Node::new("stop", "Ends its pipeline when it is reached.")
    .arguments(NAME)
    .properties(&[Property::new("status", Kind::Choice(STOP_STATUS), "How the pipeline ends.").default("success")])
    .children(&[&DESCRIPTION, &DEPENDS_ON, &STEP_JOIN, &STEP_WHEN, &STOP_MESSAGE])
    .many();
static STOP_MESSAGE: Node = Node::new("message", "Why it ends; the value where `result` lists the stop.")
    .arguments(&[required("TEXT", Kind::Template)]);

pub(super) static EDGES: Node =
    Node::new("edges", "Who may hand over to whom, one edge a line: `a -> b`, or `a <-> b` for both ways.")
        .open_children(&EDGE);

/// An edge; its name is the sender.
pub static EDGE: Node = Node::new("SENDER", "An edge from its sender to a receiver.")
    .arguments(&[required("ARROW", Kind::Text), required("RECEIVER", Kind::Reference(Target::Party))])
    .properties(&[
        Property::new("kind", Kind::Choice(EDGE_KIND), "What goes along it.").default("handoff"),
        Property::new("carries", Kind::Type, "The type of `payload.structured`; anything, when left out."),
        Property::new("response", Kind::Choice(RESPONSE), "Whether the receiver answers.").default("none"),
        Property::new("max", ANY_COUNT, "How many go along it at most."),
    ])
    .many();
