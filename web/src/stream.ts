// Server-sent events over `fetch`, which can send the token and `EventSource` cannot. In: a path. Out: events in order,
// through reconnects, and whether the connection is up.

import { ApiError, sendRequest } from "./api.ts";

export interface ServerEvent {
  id: string | null;
  event: string;
  data: string;
}

/** Cuts the text of an event stream into events; pieces may end anywhere. */
export class EventParser {
  #rest = "";
  #id: string | null = null;
  #event = "";
  #data: string[] = [];

  push(piece: string): ServerEvent[] {
    const text = this.#rest + piece;
    const events: ServerEvent[] = [];
    let start = 0;
    for (;;) {
      let end = start;
      while (end < text.length && text[end] !== "\n" && text[end] !== "\r") end += 1;
      // A CR at the end may be the first half of a CRLF.
      if (end === text.length || (text[end] === "\r" && end + 1 === text.length)) break;
      const event = this.#readLine(text.slice(start, end));
      if (event) events.push(event);
      start = end + (text[end] === "\r" && text[end + 1] === "\n" ? 2 : 1);
    }
    this.#rest = text.slice(start);
    return events;
  }

  #readLine(line: string): ServerEvent | null {
    if (line === "") return this.#finishEvent();
    const colon = line.indexOf(":");
    if (colon === 0) return null;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + (line[colon + 1] === " " ? 2 : 1));
    if (field === "data") this.#data.push(value);
    else if (field === "event") this.#event = value;
    else if (field === "id") this.#id = value;
    return null;
  }

  #finishEvent(): ServerEvent | null {
    const [event, data] = [this.#event, this.#data];
    this.#event = "";
    this.#data = [];
    if (data.length === 0 && event === "") return null;
    return { id: this.#id, event: event || "message", data: data.join("\n") };
  }
}

export interface StreamHandlers {
  onEvent(event: ServerEvent): void;
  /** The connection went up or down. */
  onConnection(up: boolean): void;
  /** The server has ended the stream for good. */
  onEnd?(): void;
  /** It has ended the stream because it refuses it. */
  onRefusal?(): void;
}

export const RECONNECT_MS = 1000;
/** The server sends a comment every 15 s: a stream that is silent for longer is dead. */
const SILENCE_MS = 40_000;

/** Follows a stream until the result is called, the server ends it, or it says that there is nothing more. */
export function openStream(path: string, from: string | null, handlers: StreamHandlers): () => void {
  const stopped = new AbortController();
  void followStream(path, from, handlers, stopped.signal).then(() => {
    if (!stopped.signal.aborted) handlers.onEnd?.();
  });
  return () => stopped.abort();
}

async function followStream(
  path: string,
  from: string | null,
  handlers: StreamHandlers,
  stopped: AbortSignal,
): Promise<void> {
  let last = from;
  while (!stopped.aborted) {
    const attempt = new AbortController();
    const cancel = (): void => attempt.abort();
    stopped.addEventListener("abort", cancel);
    try {
      const response = await sendRequest(path, {
        headers: last ? { "Last-Event-ID": last } : {},
        signal: attempt.signal,
        cache: "no-store",
      });
      if (response.status === 204 || !response.body) return;
      handlers.onConnection(true);
      for await (const event of readEvents(response.body, attempt)) {
        if (stopped.aborted) return;
        last = event.id ?? last;
        handlers.onEvent(event);
        if (event.event === "end") return;
      }
    } catch (error) {
      // A refusal does not pass by itself; everything else may.
      if (error instanceof ApiError && error.status >= 400 && error.status < 500) {
        if (!stopped.aborted) handlers.onRefusal?.();
        return;
      }
    } finally {
      stopped.removeEventListener("abort", cancel);
      attempt.abort();
    }
    if (stopped.aborted) return;
    handlers.onConnection(false);
    await new Promise((resolve) => setTimeout(resolve, RECONNECT_MS));
  }
}

async function* readEvents(body: ReadableStream<Uint8Array>, attempt: AbortController): AsyncGenerator<ServerEvent> {
  const parser = new EventParser();
  const decoder = new TextDecoder();
  const reader = body.getReader();
  for (;;) {
    const watchdog = setTimeout(() => attempt.abort(), SILENCE_MS);
    const { done, value } = await reader.read().finally(() => clearTimeout(watchdog));
    if (done) return;
    yield* parser.push(decoder.decode(value, { stream: true }));
  }
}
