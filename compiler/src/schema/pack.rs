//! A context pack.

use super::table::{ANY_COUNT, DESCRIPTION, NAME};
use super::words::{self, OVERFLOW, SUMMARY};
use super::{Kind, Node, Property, Target, defaulted, required};

pub(super) static CONTEXT_PACK: Node = Node::new(
    "context-pack",
    "What a turn is given to know, put together when it starts; cut from the last rule upwards.",
)
.arguments(NAME)
.children(&[
    &DESCRIPTION,
    &PACK_BUDGET,
    &GOAL,
    &DONE,
    &DOCS,
    &PACK_FILES,
    &FACT,
    &INPUTS,
    &ARTIFACTS,
    &CONSTRAINT,
    &MERGE,
    &ON_OVERFLOW,
])
.many();

static PACK_BUDGET: Node = Node::new("budget", "Its size.").properties(&[
    Property::new("tokens", ANY_COUNT, "Tokens at most.").default("6000"),
    Property::new("min", ANY_COUNT, "Tokens to aim at; never an error.").default("2000"),
]);
static GOAL: Node = Node::new("goal", "What is to be reached.").arguments(&[required("TEXT", Kind::Template)]);
static DONE: Node = Node::new("definition-of-done", "What must hold at the end, a text each.")
    .arguments(&[required("TEXT", Kind::Template)])
    .rest("TEXT", Kind::Template)
    .many();
static DOCS: Node = Node::new("docs", "An excerpt of a document.")
    .arguments(&[required("PATH", Kind::Path)])
    .properties(&[Property::new(
        "lines",
        Kind::Lines,
        "The lines of it, as in `\"1-40\"`; all of them, when left out.",
    )])
    .many();
static PACK_FILES: Node = Node::new("files", "The files that matter.")
    .arguments(&[required("GLOB", Kind::Glob)])
    .rest("GLOB", Kind::Glob)
    .properties(&[
        Property::new("summary", Kind::Choice(SUMMARY), "Whether each comes with a summary.").default("#false"),
        Property::new(
            "agent",
            Kind::Reference(Target::Agent),
            "Who sums them up, with `summary=agent`; the sole agent, when left out.",
        ),
        Property::new("max", ANY_COUNT, "How many at most.").default("20"),
    ])
    .many();
static FACT: Node = Node::new("fact", "A fact about the repository.")
    .arguments(&[required("NAME", Kind::Name), required("VALUE", Kind::Scalar)])
    .many();
static INPUTS: Node = Node::new("inputs", "What these steps or members handed over.")
    .arguments(&[required("STEP", Kind::Reference(Target::Maker))])
    .rest("STEP", Kind::Reference(Target::Maker))
    .many();
static ARTIFACTS: Node = Node::new("artifacts", "References to what a step or member made.")
    .properties(&[
        Property::new("kind", Kind::Choice(words::ARTIFACTS), "What it made.").required(),
        Property::new("from", Kind::Reference(Target::Maker), "Who made it.").required(),
    ])
    .many();
static CONSTRAINT: Node = Node::new("constraint", "What holds for the work.")
    .arguments(&[required("NAME", Kind::Name), required("VALUE", Kind::Literal)])
    .many();
static MERGE: Node = Node::new("merge", "Takes in the rules of another pack.")
    .arguments(&[required("PACK", Kind::Reference(Target::Pack))])
    .many();
static ON_OVERFLOW: Node = Node::new("on-overflow", "What happens when it is too large.").arguments(&[defaulted(
    "WHAT",
    Kind::Choice(OVERFLOW),
    "drop",
)]);
