// Written by documents.mjs from view/schemas: what `swarmc … --json` prints.

/** What `swarmc ps --json` prints. */
export type Runs = {
    /** The version of this form. */
    version: 1;
    /** The runs, the newest first. */
    runs: Array<Run>;
};

/** A run at a glance. */
export type Run = {
    /** Its id. */
    run: string;
    /** The workflow; empty where its plan cannot be read. */
    workflow: string;
    /** The pipeline that runs; empty where its journal cannot be read. */
    pipeline: string;
    /** Where it stands. */
    state: RunState;
    /** When it began, in milliseconds since 1970. */
    started_ms: number;
    /** When it changed last, in milliseconds since 1970. */
    changed_ms: number;
    /** The steps that have settled in the current rounds. */
    done: number;
    /** The steps that there are, as far as is known. */
    total: number;
    /** What agents say of themselves. */
    agents: Array<AgentAtWork>;
    /** How agents stand. */
    nodes: Array<NodeConnection>;
    /** How far the plan of each swarm with a coordinator is. */
    plans: Array<PlanProgress>;
    /** The steps that have not begun. */
    waiting: WaitingSteps;
    /** The gates that wait for an answer. */
    gates: Array<string>;
    /** What agents wait for a person to agree to. */
    approvals: Array<Approval>;
    /** The process that runs it. */
    runner: RunnerState | null;
    /** How many processes of it live on though its runner was killed. */
    survivors: number;
    /** Why it cannot be read. */
    problem: string | null;
};

/** Where a run stands. */
export type RunState = "running" | "resumable" | "succeeded" | "failed" | "damaged";

/** An agent that works by files, or reports how far it is. */
export type AgentAtWork = {
    /** Its step. */
    step: string;
    /** What it says of itself. */
    status: AgentStatus;
};

/** What `status.json` says, all of it: it is written again as it was read. */
export type AgentStatus = {
    /** The agent's state. */
    state: AgentState;
    /** When it began, in its words; where it says nothing, at the end, as the run saw it. */
    started?: string | null;
    /** When it was done, in its words; where it says nothing, at the end, as the run saw it. */
    completed?: string | null;
    /** Why it failed. */
    error?: Trouble | null;
    /** How far it is. */
    progress?: Progress | null;
    /** What it counts, by name. */
    metrics?: Record<string, unknown> | null;
};

/** The state of an agent. */
export type AgentState = "pending" | "running" | "completed" | "failed";

/** Why an agent failed. */
export type Trouble = {
    /** What kind of error it is. */
    type?: string | null;
    /** What happened. */
    message: string;
    /** More about it. */
    details?: unknown;
    /** Whether another attempt could succeed. */
    recoverable?: boolean | null;
} | string;

/** How far an agent is. */
export type Progress = {
    /** What it does now. */
    current_step?: string | null;
    /** The steps that it has done. */
    steps_completed?: number | null;
    /** All of its steps. */
    total_steps?: number | null;
};

/** The connection of a step to its agent. */
export type NodeConnection = {
    /** The step. */
    step: string;
    /** Its last attempt, or the one that comes next. */
    attempt: number;
    /** Whether the agent is connected. */
    state: Link;
    /** What it is doing, where a turn goes on. */
    stream: Flow | null;
    /** The conversation that its provider keeps. */
    session: string | null;
    /** When it last did something, in milliseconds since 1970. */
    active_ms: number;
    /** What it waits for, where it is idle. */
    waits: string | null;
    /** The steps that could still write to it. */
    pending: Array<WaitedFor>;
};

/** The state of a connection. */
export type Link = "connected" | "idle" | "disconnected" | "over";

/** What an agent is doing, as far as can be seen from outside. */
export type Flow = "reading" | "writing";

/** A step that is waited for. */
export type WaitedFor = {
    /** Its name. */
    step: string;
    /** What it is doing. */
    why: string;
};

/** How far the plan of a swarm with a coordinator is. */
export type PlanProgress = {
    /** The step that runs the swarm. */
    step: string;
    /** In a few words, such as `plan v3: 2 of 5 items done`. */
    progress: string;
};

/** The steps that have not begun. */
export type WaitingSteps = {
    /** How many there are. */
    count: number;
    /** The first 100 of them. */
    steps: Array<WaitingStep>;
};

/** A step that has not begun. */
export type WaitingStep = {
    /** The step. */
    step: string;
    /** Its instance of the pipeline, from 1. */
    instance: number;
    /** What it waits for. */
    waits: string;
    /** The steps that it waits for. */
    pending: Array<WaitedFor>;
};

/** A request of an agent that waits for an answer. */
export type Approval = ({
    /** Its number in the run. */
    id: number;
    /** The step whose agent asks. */
    step: string;
    /** The agent. */
    agent: string;
    /** When it asked, in milliseconds since 1970. */
    since_ms: number;
    /** What the run does without an answer; null where it waits for ever. */
    on_timeout: ApprovalTimeout | null;
}) & ({
    wants: "tool";
    /** Its name. */
    tool: string;
} | {
    wants: "spawn";
    /** The agent that it would play. */
    plays: string;
    /** The tools that it would have. */
    tools: Array<string>;
} | {
    wants: "node";
    /** The agent of that task. */
    plays: string;
    /** The task. */
    task: string;
} | {
    wants: "help";
} | {
    wants: "merge";
} | {
    wants: "plan";
} | {
    wants: "go_on";
    /** What its turns have in common. */
    same: Same;
    /** How many of them. */
    times: number;
});

/** What the run does without an answer. */
export type ApprovalTimeout = {
    /** What it does. */
    then: Unattended;
    /** When it does that, in milliseconds since 1970. */
    at_ms: number;
};

/** The answer to a request without a person's answer. */
export type Unattended = "deny" | "approve" | "fail";

/** What turns have in common that go in circles. */
export type Same = "output" | "diff" | "check";

/** The process that runs a run. */
export type RunnerState = {
    /** Its process id. */
    pid: number;
    /** Whether it does nothing until it gets `SIGCONT`. */
    stopped: boolean;
};

/** What `swarmc inspect RUN --json` prints. */
export type RunDetails = {
    /** Its id. */
    run: string;
    /** The workflow; empty where its plan cannot be read. */
    workflow: string;
    /** The pipeline that runs; empty where its journal cannot be read. */
    pipeline: string;
    /** Where it stands. */
    state: RunState;
    /** When it began, in milliseconds since 1970. */
    started_ms: number;
    /** When it changed last, in milliseconds since 1970. */
    changed_ms: number;
    /** The steps that have settled in the current rounds. */
    done: number;
    /** The steps that there are, as far as is known. */
    total: number;
    /** What agents say of themselves. */
    agents: Array<AgentAtWork>;
    /** How agents stand. */
    nodes: Array<NodeConnection>;
    /** How far the plan of each swarm with a coordinator is. */
    plans: Array<PlanProgress>;
    /** The steps that have not begun. */
    waiting: WaitingSteps;
    /** The gates that wait for an answer. */
    gates: Array<string>;
    /** What agents wait for a person to agree to. */
    approvals: Array<Approval>;
    /** The process that runs it. */
    runner: RunnerState | null;
    /** How many processes of it live on though its runner was killed. */
    survivors: number;
    /** Why it cannot be read. */
    problem: string | null;
    /** The version of this form. */
    version: 1;
    /** Its folder. */
    folder: string;
    /** Where its outputs are. */
    outputs: string;
    /** Its steps, in the order in which they began. */
    steps: Array<StepFiles>;
};

/** A step with the paths of its files. */
export type StepFiles = {
    /** Its name. */
    step: string;
    /** The round, from 1. */
    iteration: number;
    /** The instance of the pipeline, from 1. */
    instance: number;
    /** The loop, item or call that it is inside of. */
    within: string | null;
    /** Where it stands. */
    status: StepStatus;
    /** Why it did not succeed, in words. */
    reason: string | null;
    /** Why it was skipped, as the journal has it. */
    skip: SkipReason | null;
    /** Its last attempt; 0 where none began. */
    attempts: number;
    /** When it began, in milliseconds since 1970. */
    started_ms: number | null;
    /** When it ended, in milliseconds since 1970. */
    ended_ms: number | null;
    /** The exit code of its last attempt. */
    exit: number | null;
    /** The end of its standard error. */
    stderr: string;
    /** What its turns used. */
    usage: Usage | null;
    /** The conversation that its provider keeps. */
    session: string | null;
    /** The agent that took the last turn in place of its own. */
    fallback: string | null;
    /** The further turns in which answers were mended. */
    repairs: number;
    /** The earlier result that its last attempt took. */
    reused: Reused | null;
    /** Why no earlier result took the place of its last attempt, in a run that looks for one. */
    missed: string | null;
    /** The paths of its last attempt. */
    paths: StepPaths;
};

/** Where a step stands. */
export type StepStatus = "succeeded" | "failed" | "skipped" | "running" | "retrying" | "idle" | "stalled" | "waiting" | "cancelled";

/** Why a step was skipped. */
export type SkipReason = {
    because: "need";
    /** The step needed, with how it ended. */
    step: string;
    /** `succeeded`, `failed` or `skipped`. */
    status: Status;
} | {
    because: "join";
} | {
    because: "when";
} | {
    because: "unspawned";
} | {
    because: "on_failure";
} | {
    because: "stopped";
    /** The stop. */
    by: string;
} | {
    because: "fail_fast";
} | {
    because: "over_budget";
} | {
    because: "ended";
    /** The step that failed. */
    by: string;
};

/** How a step ended. */
export type Status = "succeeded" | "failed" | "skipped";

/** Tokens of one turn, as the provider counts them. */
export type Usage = {
    /** Tokens read, cached ones included. */
    input: number;
    /** Tokens written. */
    output: number;
    /** Of the tokens read, those from the cache. */
    cache_read: number;
    /** Of the tokens read, those put into the cache. */
    cache_write: number;
    /** The price in dollars, as the provider says it, or else by its `price`; unknown is not zero. */
    cost?: number | null;
    /** Whether it is more, since the provider tells of some of its requests only. */
    at_least?: boolean;
};

/** The earlier result that an attempt took in the place of running. */
export type Reused = {
    /** The run whose attempt gave the result. */
    run: string;
    /** That attempt. */
    attempt: number;
    /** The key under which the cache holds it. */
    key: string;
    /** The tokens that it took then, and that this attempt did not take. */
    usage?: Usage | null;
};

/** The files of an attempt, those that there are. */
export type StepPaths = {
    /** What the step put out. */
    output?: string | null;
    /** What its agent was told. */
    prompt?: string | null;
    /** What its agent was told before that. */
    system?: string | null;
    /** What its process wrote to standard output. */
    stdout?: string | null;
    /** What its process wrote to standard error. */
    stderr?: string | null;
    /** The folder of an agent that works by files. */
    folder?: string | null;
};

/** What `swarmc inspect RUN STEP --json` prints. */
export type StepDetails = {
    /** Its name. */
    step: string;
    /** The round, from 1. */
    iteration: number;
    /** The instance of the pipeline, from 1. */
    instance: number;
    /** The loop, item or call that it is inside of. */
    within: string | null;
    /** Where it stands. */
    status: StepStatus;
    /** Why it did not succeed, in words. */
    reason: string | null;
    /** Why it was skipped, as the journal has it. */
    skip: SkipReason | null;
    /** Its last attempt; 0 where none began. */
    attempts: number;
    /** When it began, in milliseconds since 1970. */
    started_ms: number | null;
    /** When it ended, in milliseconds since 1970. */
    ended_ms: number | null;
    /** The exit code of its last attempt. */
    exit: number | null;
    /** The end of its standard error. */
    stderr: string;
    /** What its turns used. */
    usage: Usage | null;
    /** The conversation that its provider keeps. */
    session: string | null;
    /** The agent that took the last turn in place of its own. */
    fallback: string | null;
    /** The further turns in which answers were mended. */
    repairs: number;
    /** The earlier result that its last attempt took. */
    reused: Reused | null;
    /** Why no earlier result took the place of its last attempt, in a run that looks for one. */
    missed: string | null;
    /** The version of this form. */
    version: 1;
    /** The run. */
    run: string;
    /** Its attempts. */
    tries: Array<Try>;
    /** What its agents asked for. */
    approvals: Array<ApprovalDetails>;
    /** What a person is asked, where it is a gate without an answer. */
    gate: OpenGate | null;
    /** How it stands with its agent. */
    connection: NodeConnection | null;
    /** The envelopes that came. */
    incoming: Array<ReceivedEnvelope>;
    /** The envelopes that it sent. */
    outgoing: Array<SentEnvelope>;
    /** Of its artifacts, the diffs. */
    diffs: Array<StepArtifact>;
    /** Its artifacts. */
    artifacts: Array<StepArtifact>;
    /** The tools that its turns used. */
    tools: Array<ToolUse>;
    /** What people should know of its turns: that its agent started no tools, for example. */
    notices: Array<AttemptNotice>;
    /** What was refused. */
    refused: Array<Refusal>;
    /** What its turns were told. */
    prompts: Array<TurnPrompt>;
    /** The steps that it waits for. */
    pending: Array<WaitedFor>;
    /** What its swarm did, where it is one. */
    swarm: StepSwarm | null;
};

/** An attempt. */
export type Try = {
    /** Its number, from 1. */
    attempt: number;
    /** The agent that sums up files in it; null in others. */
    summarizer: string | null;
    /** Its files. */
    paths: StepPaths;
    /** What an agent that works by files was given and left. */
    files: AgentFiles | null;
    /** What the agent reported last. */
    report: Report | null;
};

/** What an agent left in its folder. */
export type AgentFiles = {
    /** The folder, from that of the run. */
    folder: string;
    /** What its `status.json` said at the end; none where that was none. */
    status: AgentStatus | null;
    /** The files that it was given. */
    inbox: Array<KeptFile>;
    /** The files that it left in its `outbox/`. */
    outbox: Array<KeptFile>;
    /** What was copied to the workspace. */
    copied?: Array<string>;
    /** What was wrong, where something was. */
    problems?: Array<string>;
};

/** A file that was kept. */
export type KeptFile = {
    /** Its path in `inbox/` or `outbox/`. */
    path: string;
    /** Its length. */
    bytes: number;
    /** The SHA-256 of its bytes in hexadecimal. */
    digest: string;
};

/** How far an agent is, in its words. */
export type Report = {
    /** How far you are. */
    progress?: Progress | null;
    /** What people should know, in a sentence. */
    message?: string | null;
    /** What you count, by name. */
    metrics?: Record<string, unknown> | null;
};

/** A request with all that it is about, and its answer. */
export type ApprovalDetails = ({
    /** Its number in the run. */
    id: number;
    /** The step whose agent asks. */
    step: string;
    /** The agent. */
    agent: string;
    /** When it asked, in milliseconds since 1970. */
    since_ms: number;
    /** What the run does without an answer; null where it waits for ever. */
    on_timeout: ApprovalTimeout | null;
    /** The arguments of the tool. */
    arguments?: unknown;
    /** The task of the helper. */
    task?: string | null;
    /** What the task would be given. */
    payload?: unknown;
    /** What it needs help with, or how the plan is to change. */
    message?: string | null;
    /** What its turns have in common. */
    evidence?: string | null;
    /** What it can be answered with, while it waits. */
    choices: Array<Choice>;
    /** The answer; null while there is none. */
    answer: ApprovalAnswer | null;
}) & ({
    wants: "tool";
    /** Its name. */
    tool: string;
} | {
    wants: "spawn";
    /** The agent that it would play. */
    plays: string;
    /** The tools that it would have. */
    tools: Array<string>;
} | {
    wants: "node";
    /** The agent of that task. */
    plays: string;
    /** The task. */
    task: string;
} | {
    wants: "help";
} | {
    wants: "merge";
} | {
    wants: "plan";
} | {
    wants: "go_on";
    /** What its turns have in common. */
    same: Same;
    /** How many of them. */
    times: number;
});

/** What is said to a request. */
export type Choice = "allow" | "always" | "deny";

/** The answer to a request. */
export type ApprovalAnswer = {
    /** What was decided. */
    choice: Choice;
    /** Who decided. */
    by: AnsweredBy;
    /** Why. */
    because: string | null;
    /** The arguments that the tool is called with in place of the agent's. */
    arguments: unknown;
};

/** Who answered a gate, or a request for agreement. */
export type AnsweredBy = "person" | "timeout" | "headless" | "policy" | "earlier";

/** A gate that waits for an answer, as `swarmc approve` takes one. */
export type OpenGate = {
    /** What the person reads. */
    message: string;
    /** The choices, in order; none where several steps have its name. */
    options: Array<string>;
    /** The fields that the person fills in, in order. */
    asks: Array<GateField>;
};

/** A field that a person fills in. */
export type GateField = {
    /** Its name. */
    name: string;
    /** Whether it may be left out. */
    optional: boolean;
    /** What it is for. */
    description: string | null;
};

/** An envelope that came. */
export type ReceivedEnvelope = {
    /** When it was sent, in milliseconds since 1970. */
    at: number;
    /** The turn that read it. */
    read_in: number | null;
    /** It as it was sent. */
    envelope: unknown;
};

/** An envelope that was sent. */
export type SentEnvelope = {
    /** When it was sent, in milliseconds since 1970. */
    at: number;
    /** The turn that sent it. */
    sent_in: number | null;
    /** It as it was sent. */
    envelope: unknown;
};

/** An artifact of a step. */
export type StepArtifact = {
    /** How others refer to it. */
    ref: string;
    /** What it is. */
    kind: ArtifactKind;
    /** Its id. */
    id: string;
    /** The attempt that it is of. */
    turn: number;
    /** How long its text is. */
    bytes: number;
    /** Under which digest its text is stored; null where the journal holds it. */
    digest: string | null;
    /** The file of its text. */
    path: string | null;
    /** Of a pack, its name. */
    pack: string | null;
    /** Of a diff, the files that changed. */
    files: number | null;
    /** Of a diff, the lines that were added. */
    added: number | null;
    /** Of a diff, the lines that were removed. */
    removed: number | null;
    /** Of a diff, the other steps whose turns went on in the same tree. */
    with: Array<string>;
    /** What was left out, in words. */
    omitted: Array<string>;
};

/** What an artifact is. */
export type ArtifactKind = "diff" | "log" | "prompt" | "transcript" | "contextpack" | "report";

/** One use of a tool. */
export type ToolUse = {
    /** The attempt that used it. */
    turn: number;
    /** The tool. */
    tool: string;
    /** Its arguments, as they were written. */
    arguments: string;
    /** When it began, in milliseconds since 1970. */
    at: number;
    /** When it ended, in milliseconds since 1970. */
    ended_ms: number | null;
    /** Whether it worked. */
    ok: boolean | null;
    /** What came of it, or why it failed. */
    text: string | null;
};

/** Something that people should know of an attempt. */
export type AttemptNotice = {
    /** The attempt. */
    turn: number;
    /** When it was reported, in milliseconds since 1970. */
    at: number;
    /** What, as one line. */
    text: string;
};

/** Something that was refused. */
export type Refusal = {
    /** The attempt. */
    turn: number;
    /** What, and why. */
    why: string;
};

/** What a turn was told. */
export type TurnPrompt = {
    /** The attempt. */
    turn: number;
    /** The fallback that was asked, from 1; 0 is the task's own agent. */
    fallback: number;
    /** Which of the turns that mended an answer it was; 0 is the one before them. */
    repair: number;
    /** Its files. */
    paths: PromptPaths;
    /** The blocks of the prompt with their sizes and digests. */
    effective: unknown;
};

/** The files of what a turn was told, those that there are. */
export type PromptPaths = {
    /** What was sent. */
    prompt?: string | null;
    /** The whole of it, where only what is new was sent. */
    full?: string | null;
    /** What the agent was told before that. */
    system?: string | null;
    /** The blocks of the prompt. */
    blocks?: string | null;
};

/** What the swarm of a step did. */
export type StepSwarm = {
    /** The phase that it is in. */
    phase: Phase | null;
    /** Its plan, where it has a coordinator. */
    plan?: TeamPlanDocument | null;
    /** Its agents, in the order in which they were spawned. */
    agents: Array<SwarmAgentWithuint64>;
    /** How often a model was asked. */
    turns: number;
    /** The entries of its workspace. */
    entries: number;
    /** What its turns used. */
    usage: SwarmUsage;
};

/** A phase of a swarm. */
export type Phase = "planning" | "spawning" | "monitoring" | "synthesizing";

/** The plan of a team. */
export type TeamPlanDocument = {
    /** The agent that coordinates the others. */
    coordinator: string;
    /** The version; 0 before the coordinator has made a plan. */
    version: number;
    /** The items, in the order in which they were added. */
    items: Array<PlanItem>;
    /** The longest chain of items that are not done, the first to be done first. */
    critical_path: Array<string>;
    /** The agents that changed the same lines of a file, each pair and file once. */
    conflicts: Array<ConflictDocument>;
    /** Its worktrees, by name. */
    worktrees: Array<WorktreeDocument>;
    /** The proposals that wait for an answer, by number. */
    open_proposals: Array<number>;
};

/** An item of a team's plan. */
export type PlanItem = {
    /** Its name. */
    item: string;
    /** What is to be done. */
    text: string;
    /** How far it is: `queued`, `ready`, `running`, `blocked`, `done` or `failed`. */
    state: string;
    /** The agent that does it; null while none does. */
    owner: string | null;
    /** The items that must be done first. */
    depends_on: Array<string>;
    /** What is to be reached on the way. */
    checkpoints: Array<string>;
    /** How many of them are reached. */
    reached: number;
    /** Patterns of the paths that it touches. */
    scope: Array<string>;
    /** What its owner said last of it. */
    note: string | null;
};

/** Two agents that changed the same lines of a file. */
export type ConflictDocument = {
    /** The two agents. */
    agents: Array<string>;
    /** The path of the file. */
    path: string;
    /** Whether it is known that the lines are the same. */
    certain: boolean;
};

/** A worktree of a team. */
export type WorktreeDocument = {
    /** Its name. */
    worktree: string;
    /** The agent that merges it. */
    manager: string;
    /** The agents that work in it. */
    members: Array<string>;
    /** The branch that is moved on to what was merged; null: none. */
    into: string | null;
    /** How far its last merge is; null before the first. */
    merge: MergeState | null;
    /** The commit of that. */
    commit: string | null;
    /** What came of it. */
    note: string | null;
};

/** How far the merge of a worktree is. */
export type MergeState = "open" | "committed" | "merged" | "aborted";

/** An agent of a swarm. `T` is what is said of its turns: their number, or each of them. */
export type SwarmAgentWithuint64 = {
    /** Its name. */
    agent: string;
    /** The declared agent that it plays. */
    plays: string;
    /** Who asked for it; null for those of the roster. */
    by: string | null;
    /** How it ended; null while it goes on. */
    how: End | null;
    /** Its state, where the swarm has a coordinator. */
    state?: Life | null;
    /** The iterations that it began. */
    iterations: number;
    /** The messages that it sent. */
    sent: number;
    /** The messages that it received. */
    received: number;
    /** Its turns. */
    turns: number;
    /** What its turns used. */
    usage: SwarmUsage;
    /** Why it failed. */
    error: string | null;
    /** Its task. */
    task: string | null;
    /** Its answer. */
    response: string | null;
};

/** How an agent ended. */
export type End = "done" | "converged" | "exhausted" | "tool_errors" | "unreachable" | "crashed" | "timed_out" | "over_budget" | "unneeded" | "stopped" | "released";

/** The state of an agent of a team, by the names of seed 004. */
export type Life = "spawned" | "ready" | "running" | "blocked" | "completed" | "failed" | "crashed" | "stopped";

/** What turns of a swarm used. */
export type SwarmUsage = {
    /** Tokens read. */
    input: number;
    /** Tokens written. */
    output: number;
    /** Dollars; null where they are not known. */
    cost: number | null;
};

/** What `swarmc test --format json` prints. */
export type Tests = {
    /** The version of this form. */
    version: 1;
    /** The tests, spec by spec. */
    tests: Array<TestCase>;
    /** How many passed. */
    passed: number;
    /** How many failed. */
    failed: number;
    /** The specs whose tests did not take place, as they have errors. */
    specs_with_errors: number;
};

/** A test. */
export type TestCase = {
    /** Its spec, as one would type it in the folder that swarmc ran in. */
    spec: string;
    /** Its name. */
    test: string;
    /** How it went. */
    status: TestStatus;
    /** The processes and turns that it would have started. */
    launches: number;
    /** The turns of agents among these. */
    turns: number;
    /** What does not hold. */
    failures: Array<Failure>;
};

/** How a test went. */
export type TestStatus = "passed" | "failed";

/** Something that does not hold. */
export type Failure = {
    /** What does not hold. */
    message: string;
    /** The expectation, or the fake. */
    at: Span;
    /** What that place is. */
    label: string;
    /** What was found instead, in lines; may be empty. */
    details: string;
    /** What to type. */
    help: string | null;
};

/** A range of a file. */
export type Span = {
    /** The file, as one would type it in the folder that swarmc ran in. */
    file: string;
    /** The first character. */
    start: Position;
    /** The one after the last. */
    end: Position;
};

/** A place between two characters. */
export type Position = {
    /** In bytes, from 0. */
    offset: number;
    /** From 1. */
    line: number;
    /** In characters, from 1. */
    column: number;
};
