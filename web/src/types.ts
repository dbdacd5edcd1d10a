// The documents of the API, as the page reads them. In: nothing. Out: types only.
//
// Fields that the page does not read are left out; the server may send more. The whole of each document is described by
// the JSON Schemas in `view/schemas`.

export type RunState = "running" | "resumable" | "succeeded" | "failed" | "damaged";

export type StepStatus =
  "succeeded" | "failed" | "skipped" | "running" | "retrying" | "idle" | "stalled" | "waiting" | "cancelled";

/** Every state that has a mark: of steps, of runs, and of boxes of the graph. */
export type State = StepStatus | RunState | "pending" | "queued" | "blocked";

export interface Health {
  version: number | string;
  read_only: boolean;
}

export interface WaitedFor {
  step: string;
  why: string;
}

export interface Connection {
  step: string;
  attempt: number;
  state: "connected" | "idle" | "disconnected" | "over";
  stream: "reading" | "writing" | null;
  session: string | null;
  active_ms: number;
  waits: string | null;
  pending: WaitedFor[];
}

export interface PendingApproval {
  id: number;
  step: string;
  agent: string;
  since_ms: number;
}

export interface Run {
  run: string;
  workflow: string;
  pipeline: string;
  state: RunState;
  started_ms: number;
  changed_ms: number;
  done: number;
  total: number;
  nodes: Connection[];
  plans: { step: string; progress: string }[];
  gates: string[];
  approvals: PendingApproval[];
  runner: { pid: number; stopped: boolean } | null;
  survivors: number;
  problem: string | null;
}

export interface QueuedRun {
  id: string;
  spec: string;
  pipeline: string | null;
  at: number;
}

export interface RunList {
  runs: Run[];
  next: string | null;
  queued: QueuedRun[];
}

export interface RunDetails extends Run {
  as_of: string;
  folder: string;
  outputs: string;
  counts: Partial<Record<StepStatus | "blocked", number>>;
  usage: { input: number; output: number; cost: number | null } | null;
  swarms: string[];
  steps: number;
}

export interface Usage {
  input: number;
  output: number;
  cost?: number | null;
  at_least?: boolean;
}

export interface StepRow {
  step: string;
  label: string;
  kind: string;
  waits: string | null;
  iteration: number;
  instance: number;
  within: string | null;
  status: StepStatus;
  reason: string | null;
  attempts: number;
  started_ms: number | null;
  ended_ms: number | null;
  exit: number | null;
  stderr: string;
  usage: Usage | null;
  session: string | null;
  fallback: string | null;
  repairs: number;
}

export interface StepPage {
  steps: StepRow[];
  total: number;
  next: number | null;
}

export interface StepPaths {
  output?: string | null;
  prompt?: string | null;
  system?: string | null;
  stdout?: string | null;
  stderr?: string | null;
  folder?: string | null;
}

export interface KeptFile {
  path: string;
  bytes: number;
  digest: string;
}

export interface AgentFiles {
  folder: string;
  inbox: KeptFile[];
  outbox: KeptFile[];
  copied?: string[];
  problems?: string[];
}

export interface Attempt {
  attempt: number;
  summarizer: string | null;
  paths: StepPaths;
  files: AgentFiles | null;
  report: unknown;
}

export interface GateField {
  name: string;
  optional: boolean;
  description: string | null;
}

export interface ReceivedEnvelope {
  at: number;
  read_in: number | null;
  envelope: unknown;
}

export interface SentEnvelope {
  at: number;
  sent_in: number | null;
  envelope: unknown;
}

export interface Artifact {
  ref: string;
  kind: string;
  id: string;
  turn: number;
  bytes: number;
  digest: string | null;
  path: string | null;
  pack: string | null;
  files: number | null;
  added: number | null;
  removed: number | null;
  with: string[];
  omitted: string[];
}

export interface ToolUse {
  turn: number;
  tool: string;
  arguments: string;
  at: number;
  ended_ms: number | null;
  ok: boolean | null;
  text: string | null;
}

export interface PromptPaths {
  prompt?: string | null;
  full?: string | null;
  system?: string | null;
  blocks?: string | null;
}

/** The blocks of a prompt with their sizes. */
export interface EffectivePrompt {
  blocks: { name: string; bytes: number; digest: string }[];
  prompt?: { bytes: number };
  sent?: { bytes: number };
  delta?: boolean;
}

export interface TurnPrompt {
  turn: number;
  fallback: number;
  repair: number;
  paths: PromptPaths;
  effective: EffectivePrompt | null;
}

export interface PlanItem {
  item: string;
  text: string;
  state: string;
  owner: string | null;
  depends_on: string[];
  checkpoints: string[];
  reached: number;
  scope: string[];
  note: string | null;
}

export interface TeamPlan {
  coordinator: string;
  version: number;
  items: PlanItem[];
  critical_path: string[];
  conflicts: { agents: string[]; path: string; certain: boolean }[];
  worktrees: {
    worktree: string;
    manager: string;
    members: string[];
    into: string | null;
    merge: string | null;
    commit: string | null;
    note: string | null;
  }[];
  open_proposals: number[];
}

interface AgentFacts {
  agent: string;
  plays: string;
  by: string | null;
  how: string | null;
  state?: string | null;
  iterations: number;
  sent: number;
  received: number;
  usage: Usage;
  error: string | null;
  task: string | null;
  response: string | null;
}

export interface SwarmAgent extends AgentFacts {
  turns: number;
}

export interface Swarm {
  phase: string | null;
  plan?: TeamPlan | null;
  agents: SwarmAgent[];
  turns: number;
  entries: number;
  usage: Usage;
}

export interface AgentTurn {
  iteration: number;
  attempt: number;
  purpose: string;
  action: Record<string, unknown> | null;
  answer: string | null;
  results: { kind: string; text: string }[];
  model: string | null;
  paths: PromptPaths;
}

export interface MailboxMessage {
  seq: number;
  from: string;
  to: string;
  type: string;
  payload: unknown;
  at: number;
  received: boolean;
}

/** An agent of a swarm; an agent that was never spawned has turns and a mailbox only. */
export interface AgentDetails extends Partial<Omit<AgentFacts, "agent">> {
  agent: string;
  turns: AgentTurn[];
  mailbox: MailboxMessage[];
}

export interface StepDetails extends StepRow {
  run: string;
  tries: Attempt[];
  connection: Connection | null;
  incoming: ReceivedEnvelope[];
  outgoing: SentEnvelope[];
  diffs: Artifact[];
  artifacts: Artifact[];
  tools: ToolUse[];
  notices: { turn: number; at: number; text: string }[];
  refused: { turn: number; why: string }[];
  prompts: TurnPrompt[];
  pending: WaitedFor[];
  swarm: Swarm | null;
}

export interface ArtifactText {
  ref: string;
  bytes: number;
  text: string;
}

/** The layout of a run's graph, by columns. */
export interface GraphLayout {
  size: { width: number; height: number };
  frames: { id: string[]; title: string[]; notes: string[][]; x: number[]; y: number[]; w: number[]; h: number[] };
  boxes: {
    id: string[];
    step: string[];
    lines: string[][];
    shape: string[];
    many: boolean[];
    x: number[];
    y: number[];
    w: number[];
    h: number[];
  };
  wires: {
    from: string[];
    to: string[];
    kind: ("order" | "message" | "again")[];
    label: (string | null)[];
    label_at: ([number, number, number, number] | null)[];
    path: number[][][];
  };
}

export interface BoxState {
  state: State;
  label: string | null;
  counts: Partial<Record<State, number>>;
  progress: string | null;
}

export interface GraphStates {
  as_of: string;
  boxes: Record<string, BoxState>;
  sent: SentCount[];
}

/** How many envelopes went from one box to another. */
export interface SentCount {
  from: string;
  to: string;
  count: number;
}

/** A bar of the timeline: row, begin, end, state and attempt. */
export type Bar = [row: number, start: number, end: number | null, state: State, attempt: number];

/** A turn or a tool within a bar: row, begin, end, kind, the name of the agent or of the tool, and state. */
export type BarPart = [
  row: number,
  start: number,
  end: number | null,
  kind: "turn" | "tool",
  name: string,
  state: State,
];

export interface Timeline {
  as_of: string;
  from: number;
  to: number;
  now: number;
  rows: string[];
  bars: Bar[];
  parts: BarPart[];
  left_out: number;
}

export interface Wait {
  run: string;
  kind: "gate" | "approval";
  key: string | number;
  step: string;
  title: string;
  lines: string[];
  choices: string[];
  fields: GateField[];
  arguments: boolean;
  since_ms: number;
  expiry: string | null;
}

export interface Param {
  name: string;
  type: string | Record<string, unknown>;
  optional?: boolean;
  default?: string | null;
  description?: string | null;
}

export interface Plan {
  workflow: string;
  description?: string | null;
  default: string;
  params?: Param[];
  providers?: { name: string }[];
  pipelines: { name: string; description?: string | null; params?: Param[] }[];
  swarms?: { name: string }[];
}

export interface Diagnostic {
  code?: string;
  severity?: string;
  message: string;
  labels?: { at: { file: string; start: { line: number; column: number } } }[];
}

export interface Problem {
  title?: string;
  detail?: string;
  diagnostics?: { diagnostics?: Diagnostic[] } | Diagnostic[];
}
