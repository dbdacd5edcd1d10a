//! A swarm. Every number here is the default of the running system.

use super::pipeline::EDGES;
use super::table::{ANY_COUNT, BUDGET, DESCRIPTION, FILE, NAME, REF};
use super::task::COMPOSED;
use super::words::{APPROVAL, NAMES, PRIORITY, PROGRESS};
use super::{Kind, Node, Property, Target, default_argument, optional_argument, required_argument};

const AGENT: Property =
    Property::new("agent", Kind::Reference(Target::Agent), "The agent that plays it; the only one, when left out.");
const TIER: Property = Property::new("tier", Kind::Reference(Target::Tier), "The tier, instead of the agent's own.");
const RETRIES: Kind = Kind::Count(0, 1000);

pub(super) static SWARM: Node =
    Node::new("swarm", "Agents that take turns, message each other and share a workspace until their work is done.")
        .arguments(NAME)
        .children(&[
            &DESCRIPTION,
            &GOAL,
            &SUPERVISOR,
            &COORDINATOR,
            &MEMBER,
            &MEMBERS,
            &DECOMPOSE,
            &LIMITS,
            &TIMEOUTS,
            &HISTORY,
            &WORKSPACE,
            &TTL,
            &CONVERGENCE,
            &SWARM_RETRY,
            &SPAWN,
            &SPAWNS,
            &CHANNEL,
            &ITEM,
            &MANAGED,
            &CONFLICTS,
            &EDGES,
            &SYNTHESIZE,
            &BUDGET,
        ])
        .many();

static GOAL: Node = Node::new("goal", "Its goal; a task that starts it may set another one.")
    .arguments(&[required_argument("TEXT", Kind::Template)]);
static SUPERVISOR: Node =
    Node::new("supervisor", "The leader: it splits the goal, answers requests for help, and sums up.")
        .arguments(NAME)
        .properties(&[AGENT]);
static COORDINATOR: Node =
    Node::new("coordinator", "The leader that also owns the plan; only it may spawn and stop members.")
        .arguments(NAME)
        .properties(&[AGENT]);
static MEMBER: Node = Node::new("member", "A member and its task; without one it waits for its first message.")
    .arguments(&[required_argument("NAME", Kind::Name), optional_argument("TASK", Kind::Template)])
    .properties(&[AGENT, FILE, REF])
    .many();
static MEMBERS: Node = Node::new("members", "Members that are named from a list.")
    .arguments(&[required_argument("N", Kind::Count(1, 1000))])
    .properties(&[AGENT, Property::new("names", Kind::Choice(NAMES), "The list of names.").default("stations")])
    .many();
static DECOMPOSE: Node = Node::new("decompose", "The leader splits the goal into the tasks of the members.")
    .properties(&[Property::new("max", Kind::Count(1, 1000), "The tasks at most.").default("10")]);

static LIMITS: Node = Node::new("limits", "What members may use up.").children(&[
    &LIMIT_AGENTS,
    &LIMIT_ITERATIONS,
    &LIMIT_TIMEOUT,
    &LIMIT_MESSAGES,
    &LIMIT_PROPOSALS,
    &LIMIT_ITEMS,
    &LIMIT_FEED,
    &LIMIT_READS,
]);
static LIMIT_AGENTS: Node =
    Node::new("agents", "How many agents there are at most: members, a coordinator, and spawned ones.")
        .arguments(&[default_argument("N", Kind::Count(1, 1000), "10")]);
static LIMIT_ITERATIONS: Node =
    Node::new("iterations", "How many turns each takes at most.").arguments(&[default_argument("N", ANY_COUNT, "25")]);
static LIMIT_TIMEOUT: Node =
    Node::new("timeout", "How long each may take.").arguments(&[default_argument("TIME", Kind::Duration, "600s")]);
static LIMIT_MESSAGES: Node =
    Node::new("messages", "How many messages each may send.").arguments(&[default_argument("N", ANY_COUNT, "20")]);

static LIMIT_PROPOSALS: Node = Node::new("proposals", "How many proposals for the plan may wait for an answer.")
    .arguments(&[default_argument("N", ANY_COUNT, "10")]);
static LIMIT_ITEMS: Node = Node::new("items", "How many items the plan may have, those that are done included.")
    .arguments(&[default_argument("N", Kind::Count(1, 1024), "200")]);

static LIMIT_FEED: Node = Node::new("summary-feed", "How many entries `read_summary` shows an agent.")
    .arguments(&[default_argument("N", Kind::Count(1, 200), "20")]);
static LIMIT_READS: Node =
    Node::new("context-reads", "How often each agent may read all that another one did (`read_transcript`).")
        .arguments(&[default_argument("N", Kind::Count(0, 1000), "3")]);

static CONFLICTS: Node = Node::new("conflicts", "When agents hear that others change their files.").properties(&[
    Property::new("notices", Kind::Count(1, 1000), "How often an agent hears of it in one turn at most.").default("20"),
    Property::new("window", Kind::Duration, "How long a change counts.").default("30m"),
]);

static TIMEOUTS: Node = Node::new("timeouts", "How long a turn may take, and how often it is tried again.")
    .children(&[&TURN, &DECOMPOSE_TIME, &SYNTHESIZE_TIME]);
static TURN: Node = Node::new("turn", "A member's turn.")
    .arguments(&[default_argument("TIME", Kind::Duration, "90s")])
    .properties(&[Property::new("retries", RETRIES, "Further attempts.").default("2")]);
static DECOMPOSE_TIME: Node = Node::new("decompose", "Splitting the goal.")
    .arguments(&[default_argument("TIME", Kind::Duration, "10m")])
    .properties(&[Property::new("retries", RETRIES, "Further attempts.").default("3")]);
static SYNTHESIZE_TIME: Node = Node::new("synthesize", "Summing up.")
    .arguments(&[default_argument("TIME", Kind::Duration, "10m")])
    .properties(&[Property::new("retries", RETRIES, "Further attempts.").default("3")]);

static HISTORY: Node =
    Node::new("history", "What a member's prompt shows of its earlier turns.").children(&[&RECENT, &OLDER, &WHOLE]);
static RECENT: Node = Node::new("recent", "How many turns count as recent.")
    .arguments(&[default_argument("N", ANY_COUNT, "3")])
    .properties(&[Property::new("chars", ANY_COUNT, "The characters shown of each.").default("4000")]);
static OLDER: Node = Node::new("older", "The turns before them.").properties(&[Property::new(
    "chars",
    ANY_COUNT,
    "The characters shown of each.",
)
.default("500")]);
static WHOLE: Node = Node::new("prompt", "The whole prompt; the oldest turns go first.").properties(&[
    Property::new("chars", ANY_COUNT, "Its characters at most.").default("400000"),
    Property::new("keep", ANY_COUNT, "The turns that stay whatever its length.").default("3"),
]);

static WORKSPACE: Node = Node::new("workspace", "What a member's prompt shows of the shared workspace.")
    .children(&[&PER_TOPIC, &ENTRIES, &SNIPPET]);
static PER_TOPIC: Node =
    Node::new("per-topic", "The entries of each topic.").arguments(&[default_argument("N", ANY_COUNT, "5")]);
static ENTRIES: Node = Node::new("entries", "The entries in all.").arguments(&[default_argument("N", ANY_COUNT, "5")]);
static SNIPPET: Node =
    Node::new("snippet", "The characters of each entry.").arguments(&[default_argument("N", ANY_COUNT, "800")]);

static TTL: Node = Node::new("ttl", "How long messages and entries of the workspace live.")
    .arguments(&[default_argument("TIME", Kind::Duration, "48h")]);

static CONVERGENCE: Node =
    Node::new("convergence", "When a member without progress ends.").children(&[&NO_PROGRESS, &ERRORS]);
static NO_PROGRESS: Node = Node::new("no-progress", "Turns in a row without progress.")
    .arguments(&[default_argument("N", ANY_COUNT, "3")])
    .properties(&[Property::new("counts", Kind::Choice(PROGRESS), "What counts as progress.").default("tools")]);
static ERRORS: Node =
    Node::new("errors", "Errors in a row that do not pass.").arguments(&[default_argument("N", ANY_COUNT, "3")]);

static SWARM_RETRY: Node = Node::new("retry", "What follows an error that passes.").children(&[&TRANSIENT]);
static TRANSIENT: Node = Node::new("transient", "The wait before the next attempt, times its number.")
    .arguments(&[default_argument("TIME", Kind::Duration, "5s")])
    .properties(&[Property::new("max", Kind::Duration, "The longest wait.").default("30s")]);

static SPAWN: Node = Node::new("spawn", "The rules for spawning further members.").properties(&[
    Property::new("approval", Kind::Choice(APPROVAL), "Who approves it; the workflow's `policy`, when left out."),
    Property::new("per-agent", Kind::Count(0, 1000), "How often each member may ask.").default("1"),
]);

static SPAWNS: Node = Node::new("spawns", "The agents that the coordinator may add to the swarm.")
    .arguments(&[required_argument("AGENT", Kind::Reference(Target::Agent))])
    .rest("AGENT", Kind::Reference(Target::Agent))
    .properties(&[Property::new("max", Kind::Count(1, 1000), "How many in all.").default("3")]);

static CHANNEL: Node = Node::new("channel", "Members that talk among themselves.")
    .arguments(NAME)
    .children(&[&CHANNEL_MEMBERS, &CHANNEL_OPEN])
    .many();
static CHANNEL_OPEN: Node = Node::new("open", "Whether other agents of the swarm may join it.")
    .arguments(&[optional_argument("ON", Kind::Bool)]);
static CHANNEL_MEMBERS: Node = Node::new("members", "Who takes part.")
    .arguments(&[required_argument("MEMBER", Kind::Reference(Target::Member))])
    .rest("MEMBER", Kind::Reference(Target::Member));

static ITEM: Node = Node::new("item", "An item of the plan.")
    .arguments(&[required_argument("NAME", Kind::Name), optional_argument("TEXT", Kind::Text)])
    .properties(&[
        Property::new("owner", Kind::Reference(Target::Member), "The member that does it; any member, when left out."),
        Property::new("priority", Kind::Choice(PRIORITY), "Its place among those that are ready.").default("normal"),
    ])
    .children(&[&DEPENDS_ON_ITEM, &CHECKPOINT, &SCOPE])
    .many();
static DEPENDS_ON_ITEM: Node = Node::new("depends-on", "Items that must be done first.")
    .arguments(&[required_argument("ITEM", Kind::Reference(Target::Item))])
    .rest("ITEM", Kind::Reference(Target::Item))
    .older(COMPOSED)
    .many();

static CHECKPOINT: Node = Node::new("checkpoint", "What is to be reached on the way; they are reached in order.")
    .arguments(&[required_argument("TEXT", Kind::Text)])
    .many();
static SCOPE: Node = Node::new("scope", "Patterns of the paths that it touches.")
    .arguments(&[required_argument("GLOB", Kind::Glob)])
    .rest("GLOB", Kind::Glob)
    .many();

static MANAGED: Node = Node::new(
    "worktree",
    "A Git worktree that members share. Its manager merges what they commit into a branch of the run.",
)
.arguments(NAME)
.properties(&[
    Property::new("manager", Kind::Reference(Target::Member), "The member, or the agent, that merges it.")
        .make_required(),
    Property::new(
        "into",
        Kind::Text,
        "The branch of the repository that is moved on to what was merged; none, when left out.",
    ),
])
.children(&[&CHANNEL_MEMBERS, &MERGE_CHECK])
.many();
static MERGE_CHECK: Node = Node::new("check", "A command that must exit with 0 before a merge is committed.")
    .rest("WORD", Kind::Scalar)
    .many();

static SYNTHESIZE: Node =
    Node::new("synthesize", "Sums up the results; without this node the leader's `done` is the result.")
        .properties(&[AGENT, TIER]);
