// Requests to the server. In: paths below `/api/v1`. Out: JSON documents, bytes of files, or an `ApiError`.

import { signal } from "@preact/signals";
import type { Problem } from "./types.ts";

const BASE = "/api/v1";
const TOKEN_KEY = "swarmc.token";

/** Whether the server refused the token: the page then says how to get one. */
export const unauthorized = signal(false);

/** An answer of the server that is no success, or no answer at all (`status` 0). */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly problem: Problem = {},
  ) {
    super(message);
  }
}

/** Takes the token out of an address such as `#t=TOKEN` and keeps it for this tab. Says whether there was one. */
export function takeToken(): boolean {
  const token = /^#t=([^&]+)/.exec(location.hash)?.[1];
  if (!token) return false;
  sessionStorage.setItem(TOKEN_KEY, decodeURIComponent(token));
  history.replaceState(null, "", `${location.pathname}#/`);
  unauthorized.value = false;
  return true;
}

/** Sends a request with the token; throws an `ApiError` for everything but 2xx. */
export async function sendRequest(path: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  headers.set("Authorization", `Bearer ${sessionStorage.getItem(TOKEN_KEY) ?? ""}`);
  let response: Response;
  try {
    response = await fetch(BASE + path, { ...init, headers });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError(0, "The server does not answer");
  }
  if (response.ok) return response;
  if (response.status === 401) unauthorized.value = true;
  const problem = await readProblem(response);
  throw new ApiError(response.status, problem.detail ?? problem.title ?? `HTTP status ${response.status}`, problem);
}

async function readProblem(response: Response): Promise<Problem> {
  try {
    return (await response.json()) as Problem;
  } catch {
    return {};
  }
}

export async function getJson<T>(path: string, abort?: AbortSignal): Promise<T> {
  const response = await sendRequest(path, abort ? { signal: abort } : {});
  return (await response.json()) as T;
}

export async function postJson<T>(path: string, body: unknown, headers: Record<string, string> = {}): Promise<T> {
  const response = await sendRequest(path, {
    method: "POST",
    headers: { ...headers, "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  return (await response.json()) as T;
}

/** Some bytes of a file, and where they are in it. */
export interface FilePart {
  bytes: Uint8Array;
  from: number;
  total: number;
}

/** Reads a part of a file of a run; a negative `offset` counts from its end. */
export async function readFile(
  run: string,
  path: string,
  offset: number,
  limit: number,
  abort?: AbortSignal,
): Promise<FilePart> {
  const segments = path.split("/").map(encodeURIComponent).join("/");
  const url = `${runPath(run)}/files/${segments}?offset=${offset}&limit=${limit}`;
  const response = await sendRequest(url, abort ? { signal: abort, cache: "no-store" } : { cache: "no-store" });
  const bytes = new Uint8Array(await response.arrayBuffer());
  const range = /bytes (?:(\d+)-\d+|\*)\/(\d+)/.exec(response.headers.get("Content-Range") ?? "");
  if (!range) return { bytes, from: 0, total: bytes.length };
  const total = Number(range[2]);
  // Beyond the end there are no bytes, and the range says only how long the file is.
  return { bytes, from: range[1] === undefined ? total : Number(range[1]), total };
}

/** Has the browser save what a path answers: a link could not send the token. */
export async function saveFile(path: string, name: string): Promise<void> {
  const response = await sendRequest(path, { cache: "no-store" });
  const url = URL.createObjectURL(await response.blob());
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  // The browser has begun to save when the click returns, and reads the bytes a little later.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

export function runPath(run: string): string {
  return `/runs/${encodeURIComponent(run)}`;
}

export function stepPath(run: string, label: string): string {
  return `${runPath(run)}/steps/${encodeURIComponent(label)}`;
}
