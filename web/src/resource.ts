// Documents that follow the server. In: the path of a document and its topic, which is a run's id or `RUNS`. Out:
// signals with its value and its error; a document that is shown is fetched again when its topic changes.

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
  #loading: AbortController | null = null;
  #again = false;

  constructor(readonly path: string) {}

  /** Fetches the document; a call while it is being fetched leads to one further fetch. */
  refresh(): void {
    if (this.#loading) {
      this.#again = true;
      return;
    }
    void this.#load();
  }

  /** Ends a fetch that goes on; the value stays. */
  close(): void {
    this.#loading?.abort();
    this.#loading = null;
    this.#again = false;
  }

  #finishLoad(): void {
    this.#loading = null;
    if (!this.#again) return;
    this.#again = false;
    setTimeout(() => this.refresh(), REFRESH_MS);
  }

  async #load(): Promise<void> {
    const loading = new AbortController();
    this.#loading = loading;
    try {
      const response = await sendRequest(this.path, { signal: loading.signal });
      const text = await response.text();
      if (loading.signal.aborted) return;
      // The same document again renders nothing again.
      if (text !== this.#text) {
        this.value.value = JSON.parse(text) as T;
        this.#text = text;
      }
      this.error.value = null;
    } catch (error) {
      if (loading.signal.aborted) return;
      this.error.value = error instanceof ApiError ? error : new ApiError(0, String(error));
    } finally {
      if (!loading.signal.aborted) this.#finishLoad();
    }
  }
}

/** Documents that were shown last: who comes back to one sees it at once, and then as it is now. */
const recent = new Map<string, Resource<unknown>>();
const MOST_RECENT = 8;

function takeRecent<T>(path: string): Resource<T> {
  const known = recent.get(path) as Resource<T> | undefined;
  recent.delete(path);
  return known ?? new Resource<T>(path);
}

function keepRecent(resource: Resource<unknown>): void {
  recent.set(resource.path, resource);
  for (const path of recent.keys()) if (recent.size > MOST_RECENT) recent.delete(path);
}

/**
 * Shows the document at `path` for as long as the component is there; null shows none. Without a topic it is fetched once,
 * as it never changes.
 */
export function useResource<T>(topic: string | null, path: string | null): Resource<T> | null {
  const resource = useMemo(() => (path === null ? null : takeRecent<T>(path)), [path]);
  useEffect(() => {
    if (!resource) return;
    const hide = topic === null ? null : showResource(topic, resource);
    resource.refresh();
    return () => {
      hide?.();
      resource.close();
      keepRecent(resource as Resource<unknown>);
    };
  }, [topic, resource]);
  return resource;
}
