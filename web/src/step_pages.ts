// The steps of a run by pages. In: a run and a filter. Out: rows by index; at most `MOST_PAGES` pages are kept, and
// only those that are shown are fetched again.

import { type Signal, signal } from "@preact/signals";
import { ApiError, getJson, runPath } from "./api.ts";
import type { Refreshable } from "./resource.ts";
import type { StepPage, StepRow } from "./types.ts";

const PAGE = 500;
const MOST_PAGES = 4;

export interface StepFilter {
  states: string[];
  search: string;
}

export class StepPages implements Refreshable {
  /** How many rows the filter lets through; null before the first answer. */
  readonly total: Signal<number | null> = signal(null);
  readonly error: Signal<string | null> = signal(null);
  /** Rises when rows have come, so that what shows them is rendered. */
  readonly version = signal(0);
  /** The pages by number, the one used last at the end. */
  readonly #pages = new Map<number, StepRow[]>();
  readonly #loading = new Set<number>();
  readonly #closed = new AbortController();
  #shown: number[] = [0];
  #again = false;

  constructor(
    readonly run: string,
    readonly filter: StepFilter,
  ) {}

  row(index: number): StepRow | null {
    return this.#pages.get(Math.floor(index / PAGE))?.[index % PAGE] ?? null;
  }

  /** The index of a step among the rows that are kept; -1 where it is none of them. */
  find(label: string): number {
    for (const [page, rows] of this.#pages) {
      const at = rows.findIndex((row) => row.label === label);
      if (at >= 0) return page * PAGE + at;
    }
    return -1;
  }

  /** The rows from `first` up to `last`, not included, are shown. */
  show(first: number, last: number): void {
    const [from, to] = [Math.floor(first / PAGE), Math.floor(Math.max(first, last - 1) / PAGE)];
    this.#shown = [];
    for (let page = from; page <= to; page += 1) this.#shown.push(page);
    for (const page of this.#shown) if (!this.#pages.has(page)) void this.#load(page);
  }

  /** Fetches what is shown again and forgets the rest. */
  refresh(): void {
    if (this.#loading.size > 0) {
      this.#again = true;
      return;
    }
    for (const page of this.#pages.keys()) if (!this.#shown.includes(page)) this.#pages.delete(page);
    for (const page of this.#shown) void this.#load(page);
  }

  close(): void {
    this.#closed.abort();
  }

  async #load(page: number): Promise<void> {
    if (this.#loading.has(page)) return;
    this.#loading.add(page);
    const query = new URLSearchParams({ cursor: String(page * PAGE), limit: String(PAGE) });
    if (this.filter.states.length > 0) query.set("state", this.filter.states.join(","));
    if (this.filter.search) query.set("q", this.filter.search);
    try {
      const answer = await getJson<StepPage>(`${runPath(this.run)}/steps?${query}`, this.#closed.signal);
      this.#keep(page, answer.steps);
      this.total.value = answer.total;
      this.error.value = null;
    } catch (error) {
      if (!this.#closed.signal.aborted) this.error.value = error instanceof ApiError ? error.message : String(error);
    } finally {
      this.#loading.delete(page);
      this.version.value += 1;
      if (this.#again && this.#loading.size === 0 && !this.#closed.signal.aborted) {
        this.#again = false;
        this.refresh();
      }
    }
  }

  #keep(page: number, rows: StepRow[]): void {
    this.#pages.delete(page);
    this.#pages.set(page, rows);
    for (const other of this.#pages.keys()) {
      if (this.#pages.size <= MOST_PAGES) return;
      if (!this.#shown.includes(other)) this.#pages.delete(other);
    }
  }
}
