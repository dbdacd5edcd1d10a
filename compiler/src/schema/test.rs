//! Tests: a pipeline with faked agents, commands and people, and what is expected of it.

use super::table::{ANY_AMOUNT, ANY_COUNT, DESCRIPTION, FILE, NAME};
use super::words::{ENDING, ITEM_STATE, STEP_END, TREE_STATE};
use super::{Argument, Kind, Node, Property, Target, optional_argument, required_argument};

/// A test.
pub(super) static TEST: Node = Node::new(
    "test",
    "A rehearsal of a pipeline by `swarmc test`: agents, commands and people are faked, nothing is started.",
)
.arguments(NAME)
.children(&[&DESCRIPTION, &TEST_PIPELINE, &TEST_PARAM, &TEST_STDIN, &FAKE, &EXPECT])
.many();

static TEST_PIPELINE: Node = Node::new("pipeline", "The pipeline; the workflow's default, when left out.")
    .arguments(&[required_argument("NAME", Kind::Reference(Target::Pipeline))]);
pub(crate) static TEST_PARAM: Node = Node::new("param", "Values of parameters; paths are relative to the spec.")
    .open_properties(Kind::Name, Kind::Literal)
    .many();

static TEST_STDIN: Node =
    Node::new("stdin", "What is piped into the run.").arguments(&[required_argument("TEXT", Kind::Text)]);

const STEP: &[Argument] = &[required_argument("STEP", Kind::Reference(Target::AnyStep))];
/// What is asked for something: a member of a swarm too.
const ASKED: &[Argument] = &[required_argument("STEP", Kind::Reference(Target::Maker))];
const ITERATION: Property = Property::new("iteration", ANY_COUNT, "The round, from 1; any, when left out.");
const ATTEMPT: Property = Property::new("attempt", ANY_COUNT, "The attempt, from 1; any, when left out.");
const TURN: Property = Property::new(
    "turn",
    ANY_COUNT,
    "The turn of the attempt: 1, or 2 and more for repairs; of a swarm's member its turn, from 1; any, when left out.",
);
const INDEX: Property =
    Property::new("index", Kind::Count(0, u32::MAX as u64), "The item of a `for-each`, from 0; any, when left out.");

static FAKE: Node = Node::new(
    "fake",
    "What a step, or a member of a swarm, answers instead of being started; the first `fake` that fits is used. Of several texts each answers \
     once, in order, and the last one from then on. Without a text it succeeds and says nothing.",
)
.arguments(ASKED)
.rest("TEXT", Kind::Text)
.properties(&[
    FILE,
    ITERATION,
    ATTEMPT,
    TURN,
    INDEX,
    Property::new(
        "exit",
        Kind::Count(0, 255),
        "The exit code; with anything but 0 the attempt fails, and the text stands on standard error too.",
    )
    .default("0"),
    Property::new("delay", Kind::Duration, "How long it takes, in simulated time; timeouts fire.")
        .default("0s"),
    Property::new("choice", Kind::Reference(Target::Option), "What a person chooses, at a gate or after `escalate`."),
    Property::new("check", ANY_COUNT, "Which `check` of the step this is, from 1; the step itself, when left out."),
    Property::new("fix", Kind::Bool, "Whether this is the turn of the agent of `on-failure fix`.").default("#false"),
    Property::new("tool", Kind::Text, "The tool whose call by a member of a swarm this answers, where it is not the turn itself."),
    Property::new("unchecked", Kind::Bool, "Whether the text may differ from the declared type, for a test of a repair.")
        .default("#false"),
])
.open_children(&FAKE_FIELD)
.many();
static FAKE_FIELD: Node = Node::new("FIELD", "A field that the gate asks for.")
    .arguments(&[required_argument("VALUE", Kind::Literal)])
    .many();

pub(crate) static EXPECT: Node = Node::new("expect", "What must hold after the run.").children(&[
    &STATUS, &STEP_ENDS, &ORDER, &PROMPT, &OUTPUT, &RESULT, &ROUNDS, &LAUNCHES, &TURNS, &TOKENS, &COST, &PLAN, &ITEM,
    &WORKTREE, &NOTICE,
]);
static STATUS: Node =
    Node::new("status", "How the run ends.").arguments(&[required_argument("STATUS", Kind::Choice(ENDING))]);
static STEP_ENDS: Node = Node::new("step", "How a step ends, in its last round, when left out.")
    .arguments(&[
        required_argument("STEP", Kind::Reference(Target::AnyStep)),
        required_argument("STATUS", Kind::Choice(STEP_END)),
    ])
    .properties(&[ITERATION, INDEX])
    .many();
static ORDER: Node = Node::new("order", "Steps of which each begins after the one before it has ended.")
    .arguments(STEP)
    .rest("STEP", Kind::Reference(Target::AnyStep))
    .many();

const CONTAINS: Property = Property::new("contains", Kind::Text, "A text that it contains.");
const LACKS: Property = Property::new("lacks", Kind::Text, "A text that it does not contain.");
const MATCHES: Property = Property::new("matches", Kind::Text, "A regular expression that matches somewhere in it.");
const EQUALS: Property = Property::new("equals", Kind::Literal, "The whole text, or the same value as JSON.");
const SNAPSHOT: Property = Property::new(
    "snapshot",
    Kind::Bool,
    "Whether it equals the file in `snapshots/` beside the spec; `swarmc test --update` writes that file.",
)
.default("#false");

static PROMPT: Node = Node::new(
    "prompt",
    "What a step, or a member of a swarm, receives as a request, each time that fits: the prompt of an agent, the standard input of a \
     command, the message of a gate.",
)
.arguments(ASKED)
.properties(&[ITERATION, ATTEMPT, TURN, INDEX, CONTAINS, LACKS, MATCHES, EQUALS, SNAPSHOT])
.many();
static OUTPUT: Node = Node::new("output", "The value of a step, of its last round unless said.")
    .arguments(STEP)
    .properties(&[ITERATION, INDEX, CONTAINS, LACKS, MATCHES, EQUALS, SNAPSHOT])
    .many();
static RESULT: Node =
    Node::new("result", "The value of the pipeline.").properties(&[CONTAINS, LACKS, MATCHES, EQUALS, SNAPSHOT]).many();

static ROUNDS: Node = Node::new("rounds", "How many rounds there are.")
    .arguments(&[required_argument("N", Kind::Count(0, u32::MAX as u64))])
    .properties(&[Property::new(
        "of",
        Kind::Reference(Target::AnyStep),
        "The loop; the pipeline's own rounds, when left out.",
    )])
    .many();
const OF_TEAM: Property = Property::new(
    "of",
    Kind::Reference(Target::AnyStep),
    "The step that runs the swarm; the only swarm with a coordinator, when left out.",
);
static PLAN: Node = Node::new("plan", "How the plan of a swarm with a coordinator ends.")
    .properties(&[Property::new("version", Kind::Count(0, u32::MAX as u64), "Its version.").make_required(), OF_TEAM])
    .many();
static ITEM: Node = Node::new("item", "How an item of the plan of a swarm with a coordinator ends.")
    .arguments(&[required_argument("ITEM", Kind::Name), required_argument("STATE", Kind::Choice(ITEM_STATE))])
    .properties(&[Property::new("owner", Kind::Name, "Its owner; any, when left out."), OF_TEAM])
    .many();
static WORKTREE: Node =
    Node::new("worktree", "How a worktree of a swarm with a coordinator ends. In a test no merge conflicts.")
        .arguments(&[required_argument("WORKTREE", Kind::Name), required_argument("STATE", Kind::Choice(TREE_STATE))])
        .properties(&[OF_TEAM])
        .many();
static NOTICE: Node = Node::new(
    "notice",
    "A message to an agent of a swarm with a coordinator: from another agent, to a channel or to everybody, or from swarmc itself. One \
     of them is as expected.",
)
.properties(&[
    Property::new("to", Kind::Name, "The agent that receives it.").make_required(),
    Property::new("contains", Kind::Text, "A text that it contains.").make_required(),
    OF_TEAM,
])
.many();
static LAUNCHES: Node = Node::new("launches", "How many turns of agents, commands and checks are started.")
    .arguments(&[optional_argument("N", Kind::Count(0, u64::MAX))])
    .properties(MOST);
static TURNS: Node = Node::new("turns", "How many turns agents take, repairs included.")
    .arguments(&[optional_argument("N", Kind::Count(0, u64::MAX))])
    .properties(MOST);
const MOST: &[Property] = &[Property::new("max", Kind::Count(0, u64::MAX), "At most so many, instead of exactly N.")];
static TOKENS: Node = Node::new(
    "tokens",
    "How many tokens the prompts, system texts and faked answers have, counted with the vocabulary `o200k`.",
)
.properties(&[Property::new("max", ANY_AMOUNT, "At most so many.").make_required()]);
static COST: Node = Node::new("cost", "What these tokens cost by the `price` of their providers.")
    .properties(&[Property::new("max", Kind::Money, "At most so much.").make_required()]);
