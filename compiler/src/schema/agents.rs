//! The nodes about who does the work: providers, tiers, agents and servers of tools.

use super::table::{ANY_AMOUNT, ANY_COUNT, BUDGET, DESCRIPTION, ENV, FILE, NAME};
use super::task::FILES;
use super::words::{
    ABILITIES, CAPABILITIES, DELIVERY, FORMAT, LLM, MCP_FORM, MODE, PERMISSIONS, SCHEMA_FORM, TOOL_PROTOCOL,
};
use super::{Kind, Node, Property, Target, default_argument, optional_argument, required_argument};

/// How agents are reached.
pub(super) static PROVIDER: Node = Node::new(
    "provider",
    "How agents are reached: a command, a model, recorded answers, or a preset of `std:providers`.",
)
.arguments(NAME)
.properties(&[Property::new("preset", Kind::Reference(Target::Preset), "A provider of `std:providers` to start from.")])
.children(&[
    &DESCRIPTION,
    &EXEC,
    &ACP,
    &LLM_NODE,
    &SCRIPT,
    &AUTH,
    &RATE,
    &ARGS,
    &DELIVERED,
    &READS_FORMAT,
    &MODEL_FLAG,
    &SYSTEM_FLAG,
    &RESUME_ARGS,
    &SCHEMA_FLAG,
    &MCP_ARGS,
    &NOTICE_ARGS,
    &MCP_ENV,
    &ENV,
    &CONTEXT_WINDOW,
    &PRICE,
    &PROVIDER_CONCURRENCY,
    &PROVIDES,
    &INSTALL,
    &LOGIN,
])
.many();

static EXEC: Node = Node::new(
    "exec",
    "The command that takes one turn, as an argument vector. A program with a `/` in its name is relative to the folder in which a `run` of the task starts, not to the file that names it.",
)
.rest("ARG", Kind::Scalar);
static ACP: Node = Node::new(
    "acp",
    "The command of an agent that speaks the Agent Client Protocol on its standard input. Its program is found as that of `exec` is.",
)
.rest("ARG", Kind::Scalar);
static LLM_NODE: Node = Node::new("llm", "A model behind an HTTP interface.")
    .arguments(&[required_argument("KIND", Kind::Choice(LLM))])
    .properties(&[
        Property::new("base-url", Kind::Text, "Where it listens; the maker's own address, when left out."),
        Property::new("model", Kind::Scalar, "The model of agents that name none."),
        Property::new(
            "tools",
            Kind::Choice(TOOL_PROTOCOL),
            "How the model calls tools; `native` where it `provides tools`, else not at all, when left out.",
        ),
    ]);
static AUTH: Node = Node::new(
    "auth",
    "The key of a model: a secret, or the environment variable that holds it. It is sent in a header to the model's own host, and nowhere else; without this node none is sent.",
)
.arguments(&[required_argument("SECRET", Kind::Text)]);
static RATE: Node = Node::new("rate", "The limits of one minute, which all agents of a model share.").properties(&[
    Property::new("requests", ANY_AMOUNT, "Requests started."),
    Property::new(
        "tokens",
        ANY_AMOUNT,
        "Tokens of prompts and answers: estimated before the request, corrected after it.",
    ),
]);
static ARGS: Node = Node::new("args", "Further arguments, after those of the preset.").rest("ARG", Kind::Scalar).many();
static DELIVERED: Node = Node::new("prompt", "How the prompt reaches the command.").arguments(&[default_argument(
    "HOW",
    Kind::Choice(DELIVERY),
    "stdin",
)]);
static READS_FORMAT: Node = Node::new("reads", "What the command prints on its standard output.")
    .arguments(&[default_argument("FORMAT", Kind::Choice(FORMAT), "text")]);
static MODEL_FLAG: Node =
    Node::new("model-flag", "The flag before the agent's model.").arguments(&[required_argument("FLAG", Kind::Text)]);
static SYSTEM_FLAG: Node = Node::new(
    "system-flag",
    "The flag before the agent's system text; without it, that text stands before the prompt.",
)
.arguments(&[required_argument("FLAG", Kind::Text)]);
static RESUME_ARGS: Node = Node::new(
    "resume-args",
    "The arguments that make a turn go on with a conversation, behind those of `exec`; `{session}` in them is its id.",
)
.rest("ARG", Kind::Scalar);
static SCHEMA_FLAG: Node = Node::new("schema-flag", "The flag before the JSON Schema of the answer that is wanted.")
    .arguments(&[required_argument("FLAG", Kind::Text)])
    .properties(&[Property::new("as", Kind::Choice(SCHEMA_FORM), "How the schema follows it.").default("text")]);
static MCP_ARGS: Node = Node::new(
    "mcp-args",
    "Further arguments for a task that takes part in handoffs, by which the command finds the MCP server of its run; `{url}` in them is its address. The bearer token is in the variable SWARM_TOKEN: every user of the machine could read it in an argument.",
)
.rest("ARG", Kind::Scalar);
static NOTICE_ARGS: Node = Node::new(
    "notice-args",
    "Further arguments for an agent of a swarm with a coordinator, by which the command runs another one after each call of a tool, and its model reads what that prints; `{notices}` in them stands for the command line that prints what others wrote meanwhile, escaped for a string of JSON.",
)
.rest("ARG", Kind::Scalar);
static MCP_ENV: Node = Node::new(
    "mcp-env",
    "A variable for a task that takes part in handoffs, by which the command finds the MCP server of its run; `{url}` in it is its address, and `{token}` its bearer token. A JSON object is merged into the one that the variable holds already.",
)
.arguments(&[required_argument("NAME", Kind::Variable), required_argument("TEXT", Kind::Text)])
.properties(&[Property::new("as", Kind::Choice(MCP_FORM), "What the variable holds.").default("text")])
.many();
static CONTEXT_WINDOW: Node =
    Node::new("context-window", "The tokens that the model takes at most, the answer included.")
        .arguments(&[required_argument("TOKENS", ANY_AMOUNT)]);
static PRICE: Node = Node::new("price", "What a million tokens cost; what is left out is unknown, not zero.")
    .properties(&[
        Property::new("input", Kind::Money, "Of prompts."),
        Property::new("output", Kind::Money, "Of answers."),
        Property::new("cache-read", Kind::Money, "Of prompts that were read from a cache."),
        Property::new("cache-write", Kind::Money, "Of prompts that were written to a cache."),
    ]);
static PROVIDER_CONCURRENCY: Node =
    Node::new("concurrency", "How many steps that use it run at once; the limit on agents, when left out.")
        .arguments(&[required_argument("N", ANY_COUNT)]);
static PROVIDES: Node = Node::new("provides", "What it can do beyond answering; nothing, without arguments.")
    .rest("WHAT", Kind::Choice(ABILITIES));
static INSTALL: Node = Node::new("install", "How to install the command, for the message when it is missing.")
    .arguments(&[required_argument("TEXT", Kind::Text)]);
static LOGIN: Node = Node::new("login", "How to log in to the command, for the message when it refuses the login.")
    .arguments(&[required_argument("TEXT", Kind::Text)]);

static SCRIPT: Node = Node::new("script", "Recorded answers instead of a command; the first one that fits is given.")
    .children(&[&ANSWER]);
static ANSWER: Node = Node::new("answer", "A recorded answer, for every turn that fits its properties.")
    .arguments(&[optional_argument("TEXT", Kind::Text)])
    .properties(&[
        Property::new("file", Kind::Path, "The file that holds the text."),
        Property::new(
            "task",
            Kind::Reference(Target::Maker),
            "The task, or the member of a swarm, that it answers; any, when left out.",
        ),
        Property::new("iteration", ANY_COUNT, "The round it answers, from 1; any, when left out."),
        Property::new("attempt", ANY_COUNT, "The attempt it answers, from 1, not counting those that sum up files; any, when left out."),
        Property::new(
            "turn",
            ANY_COUNT,
            "The turn of the attempt it answers: 1, or 2 and more for repairs; of a swarm's member its turn, from 1; any, when \
             left out.",
        ),
        Property::new(
            "index",
            Kind::Count(0, u32::MAX as u64),
            "The item of a `for-each` it answers, from 0; any, when left out.",
        ),
        Property::new("exit", Kind::Count(0, 255), "The exit code; anything but 0 fails the attempt.").default("0"),
        Property::new("delay", Kind::Duration, "How long the answer takes.").default("0s"),
    ])
    .many();

pub(super) static TIERS: Node =
    Node::new("tiers", "Names for providers and models, used as `tier=NAME`.").open_children(&TIER);
static TIER: Node = Node::new("TIER", "A tier: the provider that serves it.")
    .arguments(&[required_argument("PROVIDER", Kind::Reference(Target::Provider))])
    .properties(&[Property::new("model", Kind::Scalar, "The model, in the provider's own terms.")])
    .many();

const TIER_OF: Property =
    Property::new("tier", Kind::Reference(Target::Tier), "The tier, instead of a provider and a model.");

pub(super) static AGENT: Node = Node::new("agent", "A role that a provider plays. The only agent is the default one.")
    .arguments(NAME)
    .properties(&[
        Property::new("provider", Kind::Reference(Target::Provider), "The provider; the only one, when left out."),
        TIER_OF,
        Property::new("model", Kind::Scalar, "The model, in the provider's own terms."),
        Property::new(
            "template",
            Kind::Reference(Target::Agent),
            "Another agent, whose declaration this one starts from.",
        ),
        Property::new(
            "pool",
            Kind::Pool,
            "Names the workers that carry its turns out in a run with an engine; without an engine it has no effect. That \
             of the pipeline, when left out. The `pool=` of a task with a `prompt` overrides it.",
        ),
    ])
    .children(&[
        &DESCRIPTION,
        &SYSTEM,
        &MODE_OF,
        &TEMPERATURE,
        &MAX_OUTPUT,
        &TOOLS,
        &CAN,
        &PERMISSIONS_OF,
        &FALLBACK,
        &BUDGET,
        &FILES,
    ])
    .many();

static SYSTEM: Node = Node::new("system", "A text that the agent reads before each prompt.")
    .arguments(&[optional_argument("TEXT", Kind::Template)])
    .properties(&[FILE]);
static MODE_OF: Node = Node::new("mode", "What it is there to do; the mode of the workflow, when left out.")
    .arguments(&[required_argument("MODE", Kind::Choice(MODE))]);
static TEMPERATURE: Node =
    Node::new("temperature", "How freely a model chooses its words; the model's own, when left out.")
        .arguments(&[required_argument("N", Kind::Ratio(0.0, 2.0))]);
static MAX_OUTPUT: Node =
    Node::new("max-output", "The tokens of one answer at most.").arguments(&[required_argument("TOKENS", ANY_AMOUNT)]);
static TOOLS: Node = Node::new(
    "tools",
    "The tools that it may use, by name or by the name of their server, a final `*` for whatever follows; without arguments: none. Without this node, those of its provider; of an `llm`, none. An agent that speaks ACP reads, writes and runs through this run where `file_read`, `file_write` or `shell` is among them.",
)
.rest("NAME", Kind::Text);
static CAN: Node = Node::new("can", "What it can do beyond answering; the checks of the data flow use it.")
    .arguments(&[required_argument("WHAT", Kind::Choice(CAPABILITIES))])
    .rest("WHAT", Kind::Choice(CAPABILITIES));
static PERMISSIONS_OF: Node =
    Node::new("permissions", "How its command asks before it acts; the command's own way, when left out.")
        .arguments(&[required_argument("HOW", Kind::Choice(PERMISSIONS))]);
static FALLBACK: Node =
    Node::new("fallback", "The agent that takes a turn when the provider does not start or refuses it.")
        .arguments(&[required_argument("AGENT", Kind::Reference(Target::Agent))]);

pub(super) static TOOL_SERVER: Node =
    Node::new("tool-server", "A server of tools that speaks MCP: a command, or an address.")
        .arguments(NAME)
        .properties(&[Property::new("url", Kind::Text, "Where it listens.")])
        .children(&[&DESCRIPTION, &SERVER_EXEC, &SERVER_AUTH, &ENV])
        .many();
static SERVER_AUTH: Node = Node::new(
    "auth",
    "The token of a server with an address: a secret, or the environment variable that holds it. It is sent in a header to that address, and nowhere else; without this node none is sent.",
)
.arguments(&[required_argument("SECRET", Kind::Text)]);
static SERVER_EXEC: Node = Node::new("exec", "The command that serves on its standard input, as an argument vector.")
    .rest("ARG", Kind::Scalar);
