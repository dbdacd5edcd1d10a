// What the page knows of the server at this moment. In: the event streams. Out: signals: whether the connection is up,
// the time, the waits; and stale marks on the documents that are shown.

import { computed, effect, signal } from "@preact/signals";
import { getJson, runPath, unauthorized } from "./api.ts";
import { markAllStale, markStale, Resource, RUNS, showResource } from "./resource.ts";
import { openStream, RECONNECT_MS, type ServerEvent } from "./stream.ts";
import type { Health, Wait } from "./types.ts";

/** How long a connection may be down before the page says so. */
const PATIENCE_MS = 3000;
const TICK_MS = 1000;
/** How long a tab may be hidden before its streams are closed, and how often it then asks for waits. */
const HIDDEN_MS = 10_000;
const HIDDEN_POLL_MS = 15_000;

export const health = signal<Health | null>(null);

/** The time, once a second; it stands still while the connection is lost. */
export const now = signal(Date.now());

/** When the connection was lost, once that has been so for a while; null while it is up. */
export const lostAt = signal<number | null>(null);

/** Whether orders can be given: the server takes them, and the connection is up. */
export const canAct = computed(() => health.value?.read_only === false && lostAt.value === null);

/**
 * Whether the page follows the server. A tab that is hidden for a while does not: a browser has six connections to a
 * server for all its tabs, and each stream takes one.
 */
export const watching = signal(true);
let hideTimer: ReturnType<typeof setTimeout> | undefined;

function noteVisibility(): void {
  clearTimeout(hideTimer);
  if (!document.hidden) watching.value = true;
  else hideTimer = setTimeout(() => (watching.value = false), HIDDEN_MS);
}

const down = new Map<string, number>();

/** Notes that the stream of a topic went up or down. What changed before it was up is fetched now. */
function noteConnection(topic: string, up: boolean): void {
  if (!up) {
    if (!down.has(topic)) down.set(topic, Date.now());
    return;
  }
  down.delete(topic);
  markStale(topic);
}

function tick(): void {
  const first = down.size > 0 ? Math.min(...down.values()) : null;
  lostAt.value = first !== null && Date.now() - first >= PATIENCE_MS ? first : null;
  if (lostAt.value === null) now.value = Date.now();
}

export const waits = new Resource<{ waits: Wait[] }>("/waits");

/** The waits of all runs, the oldest first. */
export const waitList = computed(() => [...(waits.value.value?.waits ?? [])].sort((a, b) => a.since_ms - b.since_ms));

/** Follows the list of runs and the waits from now on. */
export function followServer(): void {
  setInterval(tick, TICK_MS);
  setInterval(() => {
    if (!watching.peek()) waits.refresh();
  }, HIDDEN_POLL_MS);
  document.addEventListener("visibilitychange", noteVisibility);
  showResource(RUNS, waits);
  const readHealth = async (): Promise<void> => {
    health.value = await getJson<Health>("/health");
  };
  effect(() => {
    if (unauthorized.value || !watching.value) return;
    waits.refresh();
    readHealth().catch(() => undefined);
    const close = openStream("/events", null, {
      onEvent: ({ event, data }) => {
        if (event === "changed") noteChange(data);
        else if (event === "lagged" || event === "reset") markAllStale();
      },
      onConnection: (up) => {
        noteConnection(RUNS, up);
        if (up) readHealth().catch(() => undefined);
      },
    });
    return () => {
      close();
      down.delete(RUNS);
    };
  });
  effect(() => {
    const count = waitList.value.length;
    document.title = count > 0 ? `(${count}) swarmc` : "swarmc";
  });
}

/** What is called when the stream of all runs tells of a run. */
const changeListeners = new Set<(run: string) => void>();

function noteChange(data: string): void {
  markStale(RUNS);
  const { run } = JSON.parse(data) as { run: string };
  for (const listener of changeListeners) listener(run);
}

/** Follows a run until the result is called: marks its documents stale when it changes. */
export function followRun(run: string, onRunner: (gone: boolean) => void): () => void {
  let close: (() => void) | null = null;
  const onEvent = ({ event, data }: ServerEvent): void => {
    if (event === "runner") onRunner((JSON.parse(data) as { state: string }).state === "gone");
    markStale(run);
  };
  const onConnection = (up: boolean): void => noteConnection(run, up);
  const onEnd = (): void => {
    close = null;
  };
  let again: ReturnType<typeof setTimeout> | undefined;
  // A run that is not there may be there in a moment: its first files are being copied from an engine.
  const onRefusal = (): void => {
    again = setTimeout(() => {
      markStale(run);
      openRunStream();
    }, RECONNECT_MS);
  };
  const openRunStream = (): void => {
    close ??= openStream(`${runPath(run)}/events`, null, { onEvent, onConnection, onEnd, onRefusal });
  };
  // A run that had ended goes on when a person resumes it.
  const noteRunChange = (changed: string): void => {
    if (changed !== run) return;
    markStale(run);
    openRunStream();
  };
  changeListeners.add(noteRunChange);
  openRunStream();
  return () => {
    changeListeners.delete(noteRunChange);
    clearTimeout(again);
    close?.();
    down.delete(run);
  };
}
