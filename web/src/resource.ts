// Documents that follow the server. In: the path of a document and its topic, which is a run's id or `RUNS`. Out: signals
// with its value and its error; a document that is shown is fetched again when its topic changes.

import { type Signal, signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { ApiError, sendRequest } from "./api.ts";

/** The topic of everything that is about all runs. */
export const RUNS = "";

/** The shortest time between two fetches of what is shown. */
const REFRESH_MS = 300;

/** Something shown that can be fetched again. */
export interface Refreshable {
  refresh(): void;
}

const shown = new Map<string, Set<Refreshable>>();
const lastRefresh = new Map<string, number>();
const due = new Set<string>();

/** Registers what is shown under a topic until the result is called. */
export function showResource(topic: string, resource: Refreshable): () => void {
  const resources = shown.get(topic) ?? new Set();
  shown.set(topic, resources);
  resources.add(resource);
  return () => {
    resources.delete(resource);
    if (resources.size === 0) {
      shown.delete(topic);
      lastRefresh.delete(topic);
    }
  };
}

/** Fetches what is shown of a topic again, soon: once for all calls within `REFRESH_MS`. */
export function markStale(topic: string): void {
  if (due.has(topic)) return;
  due.add(topic);
  const wait = (lastRefresh.get(topic) ?? 0) + REFRESH_MS - Date.now();
  setTimeout(() => refreshTopic(topic), Math.max(wait, 20));
}

/** Fetches all that is shown again, after a lost connection for example. */
export function markAllStale(): void {
  for (const topic of shown.keys()) markStale(topic);
}

function refreshTopic(topic: string): void {
  due.delete(topic);
  const resources = shown.get(topic);
  if (!resources) return;
  lastRefresh.set(topic, Date.now());
  for (const resource of resources) resource.refresh();
}

/** A document that is fetched, kept, and fetched again. */
export class Resource<T> implements Refreshable {
  readonly value: Signal<T | null> = signal(null);
  readonly error: Signal<ApiError | null> = signal(null);
  #text = "";
  #loading = false;
  #again = false;
  readonly #closed = new AbortController();

  constructor(readonly path: string) {}

  /** Fetches the document; a call while it is being fetched leads to one further fetch. */
  refresh(): void {
    if (this.#loading) {
      this.#again = true;
      return;
    }
    void this.#load();
  }

  close(): void {
    this.#closed.abort();
  }

  async #load(): Promise<void> {
    this.#loading = true;
    try {
      const response = await sendRequest(this.path, { signal: this.#closed.signal });
      const text = await response.text();
      if (this.#closed.signal.aborted) return;
      // The same document again renders nothing again.
      if (text !== this.#text) {
        this.value.value = JSON.parse(text) as T;
        this.#text = text;
      }
      this.error.value = null;
    } catch (error) {
      if (this.#closed.signal.aborted) return;
      this.error.value = error instanceof ApiError ? error : new ApiError(0, String(error));
    } finally {
      this.#loading = false;
      if (this.#again && !this.#closed.signal.aborted) {
        this.#again = false;
        setTimeout(() => this.refresh(), REFRESH_MS);
      }
    }
  }
}

/** Shows the document at `path` for as long as the component is there; null shows none. */
export function useResource<T>(topic: string, path: string | null): Resource<T> | null {
  const resource = useMemo(() => (path === null ? null : new Resource<T>(path)), [path]);
  useEffect(() => {
    if (!resource) return;
    const hide = showResource(topic, resource);
    resource.refresh();
    return () => {
      hide();
      resource.close();
    };
  }, [topic, resource]);
  return resource;
}
