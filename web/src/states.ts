// How a state looks: a word, a shape and a colour, never one of them alone. In: a state. Out: its mark, which the DOM
// and the canvas draw from the same path.

import type { State } from "./types.ts";

export interface Mark {
  word: string;
  /** The name of its colour: `--state-COLOR` of the style sheet. */
  color: "good" | "bad" | "busy" | "wait" | "warn" | "quiet";
  /** A path in a square of 12 by 12, filled by the even-odd rule. */
  path: string;
}

const DISC = "M6 .5a5.5 5.5 0 1 0 0 11a5.5 5.5 0 1 0 0-11Z";
const RING = `${DISC}M6 2a4 4 0 1 1 0 8a4 4 0 1 1 0-8Z`;
const TRIANGLE = "M6 .8 11.7 11.2H.3Z";
const SQUARE = "M1 1H11V11H1Z";

const MARKS: Record<State, Mark> = {
  succeeded: { word: "succeeded", color: "good", path: `${DISC}M3 6.2 5.2 8.4 9.2 4.3 8.3 3.4 5.2 6.6 3.9 5.3Z` },
  failed: {
    word: "failed",
    color: "bad",
    path: "M3.6.5H8.4L11.5 3.6V8.4L8.4 11.5H3.6L.5 8.4V3.6ZM3.5 4.4 5.1 6 3.5 7.6 4.4 8.5 6 6.9 7.6 8.5 8.5 7.6 6.9 6 8.5 4.4 7.6 3.5 6 5.1 4.4 3.5Z",
  },
  running: { word: "running", color: "busy", path: "M2.5.8 11 6 2.5 11.2Z" },
  waiting: {
    word: "waiting",
    color: "wait",
    path: "M6 .2 11.8 6 6 11.8.2 6ZM5.3 3.2H6.7V6.6H5.3ZM5.3 7.5H6.7V8.9H5.3Z",
  },
  retrying: {
    word: "retrying",
    color: "warn",
    path: "M6 1a5 5 0 1 0 5 5H9.4A3.4 3.4 0 1 1 6 2.6V4.6L9.6 1.9 6-.6Z",
  },
  stalled: { word: "stalled", color: "warn", path: `${TRIANGLE}M5.3 4.6H6.7V7.8H5.3ZM5.3 8.6H6.7V9.9H5.3Z` },
  idle: { word: "idle", color: "busy", path: `${RING}M5.3 3.4H6.7V5.6L8.2 7.1 7.3 8 5.3 6.2Z` },
  skipped: { word: "skipped", color: "quiet", path: "M1 3 5.5 6 1 9ZM6 3 10.5 6 6 9Z" },
  cancelled: { word: "cancelled", color: "quiet", path: `${SQUARE}M2.5 5.2H9.5V6.8H2.5Z` },
  pending: { word: "pending", color: "quiet", path: RING },
  blocked: { word: "blocked", color: "quiet", path: `${RING}M5.3 3.4H6.7V8.6H5.3Z` },
  queued: { word: "queued", color: "quiet", path: "M1 2H11V3.6H1ZM1 5.2H11V6.8H1ZM1 8.4H7V10H1Z" },
  resumable: { word: "resumable", color: "wait", path: "M2 1.5H4.8V10.5H2ZM7.2 1.5H10V10.5H7.2Z" },
  damaged: { word: "damaged", color: "bad", path: `${TRIANGLE}M5.3 4.6H6.7V7.8H5.3ZM5.3 8.6H6.7V9.9H5.3Z` },
};

/** The states of steps in the order of the filter, the most urgent first. */
export const STEP_STATES = [
  "failed",
  "waiting",
  "running",
  "retrying",
  "stalled",
  "idle",
  "cancelled",
  "skipped",
  "succeeded",
  "blocked",
] as const;

export function markOf(state: string): Mark {
  return MARKS[state as State] ?? { ...MARKS.pending, word: state };
}

/** The states of items, agents and merges of a swarm, by the state of a step that looks alike. */
const SWARM_STATES: Record<string, State> = {
  done: "succeeded",
  completed: "succeeded",
  merged: "succeeded",
  converged: "succeeded",
  released: "succeeded",
  crashed: "failed",
  unreachable: "failed",
  tool_errors: "failed",
  timed_out: "failed",
  over_budget: "failed",
  exhausted: "stalled",
  blocked: "waiting",
  ready: "idle",
  open: "running",
  committed: "running",
  stopped: "cancelled",
  aborted: "cancelled",
  unneeded: "skipped",
  spawned: "pending",
  connected: "running",
  disconnected: "cancelled",
  over: "succeeded",
};

/** The mark of a word that swarms and connections use for a state; the word itself is kept. */
export function markOfSwarm(word: string): Mark {
  return { ...markOf(SWARM_STATES[word] ?? word), word: word.replaceAll("_", " ") };
}
