// Addresses within the page, such as `#/run/ID/step/LABEL?turn=2&pane=diff`. In: the fragment of the address. Out: a
// `Route`, and back.

import { signal } from "@preact/signals";

export const VIEWS = ["graph", "steps", "timeline", "swarm"] as const;
export type View = (typeof VIEWS)[number];

export interface RunRoute {
  page: "run";
  run: string;
  /** The view behind the inspector; null is the default view, which depends on the number of steps. */
  view: View | null;
  /** The step in the inspector. */
  step: string | null;
  /** The agent of the step in the inspector, where the step is a swarm. */
  agent: string | null;
  turn: number | null;
  pane: string | null;
  /** The states that the rows must have; empty lets all through. */
  states: string[];
  search: string;
}

export type Route = { page: "runs"; search: string } | { page: "waits" } | { page: "new" } | RunRoute;

export function parseRoute(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s, 2);
  const params = new URLSearchParams(query);
  const [head, run, kind, label, , agent] = path.split("/").map(decodeSegment);
  if (head === "waits" || head === "new") return { page: head };
  if (head !== "run" || !run) return { page: "runs", search: params.get("q") ?? "" };
  return {
    page: "run",
    run,
    view: readView(kind === "step" ? params.get("view") : kind),
    step: kind === "step" && label ? label : null,
    agent: kind === "step" && label && agent ? agent : null,
    turn: readTurn(params.get("turn")),
    pane: params.get("pane"),
    states: (params.get("state") ?? "").split(",").filter(Boolean),
    search: params.get("q") ?? "",
  };
}

export function formatRoute(route: Route): string {
  const params: [string, string | null][] = [];
  let path = route.page === "runs" ? "" : route.page;
  if (route.page === "runs") params.push(["q", route.search]);
  if (route.page === "run") {
    path = `run/${encodeURIComponent(route.run)}`;
    if (route.step !== null) {
      path += `/step/${encodeURIComponent(route.step)}`;
      if (route.agent !== null) path += `/agent/${encodeURIComponent(route.agent)}`;
      params.push(
        ["view", route.view],
        ["turn", route.turn === null ? null : String(route.turn)],
        ["pane", route.pane],
      );
    } else if (route.view) path += `/${route.view}`;
    params.push(["state", route.states.join(",")], ["q", route.search]);
  }
  const query = new URLSearchParams(params.filter((param): param is [string, string] => Boolean(param[1])));
  // A comma needs no escape in a query, and is easier to read.
  return `#/${path}${query.size > 0 ? `?${query.toString().replaceAll("%2C", ",")}` : ""}`;
}

/** The route of a run with nothing selected. */
export function runRoute(run: string, fields: Partial<RunRoute> = {}): RunRoute {
  const empty = { view: null, step: null, agent: null, turn: null, pane: null, states: [], search: "" };
  return { page: "run", run, ...empty, ...fields };
}

function decodeSegment(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

function readView(word: string | null | undefined): View | null {
  return VIEWS.find((view) => view === word) ?? null;
}

function readTurn(word: string | null): number | null {
  const turn = Number(word);
  return Number.isInteger(turn) && turn > 0 ? turn : null;
}

/** Where the page is. */
export const route = signal<Route>({ page: "runs", search: "" });

/** Goes to a route. `replace` leaves no entry in the history: for filters, panes and moves between rows. */
export function navigate(to: Route, replace = false): void {
  const hash = formatRoute(to);
  if (replace) history.replaceState(null, "", hash);
  else history.pushState(null, "", hash);
  route.value = parseRoute(hash);
}

/** Changes some fields of a run's route in place. */
export function changeRun(fields: Partial<RunRoute>, replace = true): void {
  const now = route.peek();
  if (now.page === "run") navigate({ ...now, ...fields }, replace);
}

/** Follows the address from now on. */
export function followAddress(): void {
  const readAddress = (): void => {
    route.value = parseRoute(location.hash);
  };
  window.addEventListener("popstate", readAddress);
  window.addEventListener("hashchange", readAddress);
  readAddress();
}
