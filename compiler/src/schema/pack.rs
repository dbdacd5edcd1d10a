//! A context pack.

use super::table::{ANY_COUNT, DESCRIPTION, NAME};
use super::words::{self, OVERFLOW, SUMMARY};
use super::{Kind, Node, Property, Target, default_argument, required_argument};

pub(super) static CONTEXT_PACK: Node = Node::new(
    "context-pack",
    "Context for a turn, built when the turn starts. A pack over its budget drops its last rules first.",
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
static GOAL: Node = Node::new("goal", "The goal of the work.").arguments(&[required_argument("TEXT", Kind::Template)]);
static DONE: Node = Node::new("definition-of-done", "Conditions that must hold at the end, one text each.")
    .arguments(&[required_argument("TEXT", Kind::Template)])
    .rest("TEXT", Kind::Template)
    .many();
static DOCS: Node = Node::new("docs", "An excerpt of a document.")
    .arguments(&[required_argument("PATH", Kind::Path)])
    .properties(&[Property::new(
        "lines",
        Kind::Lines,
        "The lines of it, as in `\"1-40\"`; all of them, when left out.",
    )])
    .many();
static PACK_FILES: Node = Node::new("files", "The files that matter.")
    .arguments(&[required_argument("GLOB", Kind::Glob)])
    .rest("GLOB", Kind::Glob)
    .properties(&[
        Property::new("summary", Kind::Choice(SUMMARY), "Whether each comes with a summary.").default("#false"),
        Property::new(
            "agent",
            Kind::Reference(Target::Agent),
            "The agent that sums them up, with `summary=agent`; the only agent, when left out.",
        ),
        Property::new("max", ANY_COUNT, "How many at most.").default("20"),
    ])
    .many();
static FACT: Node = Node::new("fact", "A fact about the repository.")
    .arguments(&[required_argument("NAME", Kind::Name), required_argument("VALUE", Kind::Scalar)])
    .many();
static INPUTS: Node = Node::new("inputs", "What these steps or members have sent.")
    .arguments(&[required_argument("STEP", Kind::Reference(Target::Maker))])
    .rest("STEP", Kind::Reference(Target::Maker))
    .many();
static ARTIFACTS: Node = Node::new("artifacts", "References to what a step or member made.")
    .properties(&[
        Property::new("kind", Kind::Choice(words::ARTIFACTS), "The kind of artifact.").make_required(),
        Property::new("from", Kind::Reference(Target::Maker), "The step or member that made it.").make_required(),
    ])
    .many();
static CONSTRAINT: Node = Node::new("constraint", "A constraint on the work.")
    .arguments(&[required_argument("NAME", Kind::Name), required_argument("VALUE", Kind::Literal)])
    .many();
static MERGE: Node = Node::new("merge", "Includes the rules of another pack.")
    .arguments(&[required_argument("PACK", Kind::Reference(Target::Pack))])
    .many();
static ON_OVERFLOW: Node = Node::new("on-overflow", "What happens when it is too large.")
    .arguments(&[default_argument("WHAT", Kind::Choice(OVERFLOW), "drop")]);
