// The keys of the page. In: key presses. Out: calls of the handlers that the shown components have registered.
// `BINDINGS` is the one table of keys; the help is made from it.

import { useLayoutEffect, useRef } from "preact/hooks";

export interface Binding {
  action: Action;
  group: "Move" | "Views" | "Rows" | "Answer" | "Page";
  /** How the keys are shown, one text a key. */
  caps: string[];
  help: string;
  /** `event.code` of keys that lie at one place on every keyboard, such as letters. */
  codes?: string[];
  /** `event.key` of signs, which lie elsewhere on other keyboards. */
  signs?: string[];
  ctrl?: boolean;
  /** Whether it works while a text field has the focus. */
  inFields?: boolean;
}

export type Action =
  | "next"
  | "previous"
  | "left"
  | "right"
  | "open"
  | "back"
  | "graph"
  | "steps"
  | "timeline"
  | "swarm"
  | "runs"
  | "waits"
  | "new"
  | "filter"
  | "failed"
  | "follow"
  | "earlier"
  | "later"
  | "zoomIn"
  | "zoomOut"
  | "zoomReset"
  | "fold"
  | "approve"
  | "deny"
  | "message"
  | "stop"
  | "resume"
  | "palette"
  | "theme"
  | "help";

export const BINDINGS: readonly Binding[] = [
  { action: "next", group: "Move", caps: ["j", "↓"], codes: ["KeyJ", "ArrowDown"], help: "next row, or the box below" },
  {
    action: "previous",
    group: "Move",
    caps: ["k", "↑"],
    codes: ["KeyK", "ArrowUp"],
    help: "previous row, or the box above",
  },
  { action: "left", group: "Move", caps: ["h", "←"], codes: ["KeyH", "ArrowLeft"], help: "pane or box to the left" },
  { action: "right", group: "Move", caps: ["l", "→"], codes: ["KeyL", "ArrowRight"], help: "pane or box to the right" },
  { action: "open", group: "Move", caps: ["Enter"], codes: ["Enter", "NumpadEnter"], help: "open the row or the box" },
  { action: "back", group: "Move", caps: ["Esc"], codes: ["Escape"], help: "close, or go back", inFields: true },

  { action: "graph", group: "Views", caps: ["g"], codes: ["KeyG"], help: "graph of the run" },
  { action: "steps", group: "Views", caps: ["s"], codes: ["KeyS"], help: "steps of the run" },
  { action: "timeline", group: "Views", caps: ["t"], codes: ["KeyT"], help: "timeline of the run" },
  { action: "swarm", group: "Views", caps: ["w"], codes: ["KeyW"], help: "swarms of the run" },
  { action: "runs", group: "Views", caps: ["r"], codes: ["KeyR"], help: "all runs" },
  { action: "waits", group: "Views", caps: ["q"], codes: ["KeyQ"], help: "questions that wait for an answer" },
  { action: "new", group: "Views", caps: ["n"], codes: ["KeyN"], help: "start a run" },

  { action: "filter", group: "Rows", caps: ["/"], signs: ["/"], help: "filter the rows by text" },
  { action: "failed", group: "Rows", caps: ["f"], codes: ["KeyF"], help: "only what failed, or all again" },
  { action: "follow", group: "Rows", caps: ["."], signs: ["."], help: "follow the end of the log, or stop" },
  { action: "earlier", group: "Rows", caps: ["["], signs: ["["], codes: ["BracketLeft"], help: "earlier attempt" },
  { action: "later", group: "Rows", caps: ["]"], signs: ["]"], codes: ["BracketRight"], help: "later attempt" },
  { action: "zoomIn", group: "Rows", caps: ["+"], signs: ["+", "="], help: "zoom in" },
  { action: "zoomOut", group: "Rows", caps: ["-"], signs: ["-"], help: "zoom out" },
  { action: "zoomReset", group: "Rows", caps: ["0"], codes: ["Digit0", "Numpad0"], help: "show all" },
  {
    action: "fold",
    group: "Rows",
    caps: ["i"],
    codes: ["KeyI"],
    help: "fold or unfold: idle time of the timeline, items of a box of the graph",
  },

  {
    action: "approve",
    group: "Answer",
    caps: ["a"],
    codes: ["KeyA"],
    help: "approve: the first choice of the question",
  },
  { action: "deny", group: "Answer", caps: ["d"], codes: ["KeyD"], help: "deny: the last choice of the question" },
  { action: "message", group: "Answer", caps: ["m"], codes: ["KeyM"], help: "write to an agent" },
  { action: "stop", group: "Answer", caps: ["x"], codes: ["KeyX"], help: "stop the run" },
  { action: "resume", group: "Answer", caps: ["u"], codes: ["KeyU"], help: "resume the run" },

  {
    action: "palette",
    group: "Page",
    caps: ["Ctrl", "K"],
    codes: ["KeyK"],
    ctrl: true,
    inFields: true,
    help: "go to a run, step or view",
  },
  { action: "theme", group: "Page", caps: ["y"], codes: ["KeyY"], help: "light, dark, or as the system" },
  { action: "help", group: "Page", caps: ["?"], signs: ["?"], help: "this list" },
];

/** A handler may return false to let the next one try. */
export type Handlers = Partial<Record<Action, () => void | false>>;

interface Layer {
  level: number;
  handlers: { current: Handlers };
}

const LEVEL = { page: 0, view: 1, panel: 2, dialog: 3 } as const;

let layers: Layer[] = [];

/**
 * Handles keys for as long as the component is there, from the moment that it is seen. A dialog keeps all keys from what is
 * below.
 */
export function useKeys(level: keyof typeof LEVEL, handlers: Handlers): void {
  const current = useRef(handlers);
  current.current = handlers;
  useLayoutEffect(() => {
    const layer = { level: LEVEL[level], handlers: current };
    layers = [layer, ...layers].sort((a, b) => b.level - a.level);
    return () => {
      layers = layers.filter((other) => other !== layer);
    };
  }, [level]);
}

/** Handles key presses from now on. */
export function followKeys(): void {
  window.addEventListener("keydown", (event) => {
    const target = event.target instanceof HTMLElement ? event.target : null;
    const inField = target !== null && isField(target);
    const binding = findBinding(event);
    if (!binding || (inField && !binding.inFields) || isNativeKey(event, target)) return;
    // Escape leaves a field before it leaves the page; a dialog closes at once.
    if (binding.action === "back" && inField && !target.closest("dialog")) target.blur();
    else if (!runAction(binding.action)) return;
    event.preventDefault();
  });
}

/** Calls the handler of an action, from the uppermost layer down. Says whether there was one. */
export function runAction(action: Action): boolean {
  for (const layer of layers) {
    const handler = layer.handlers.current[action];
    if (handler && handler() !== false) return true;
    if (layer.level === LEVEL.dialog && action !== "palette") return false;
  }
  return false;
}

type KeyPress = Pick<KeyboardEvent, "code" | "key" | "ctrlKey" | "metaKey" | "altKey">;

/** The binding of a key press: by its sign first, since signs lie elsewhere on other keyboards. */
export function findBinding(press: KeyPress): Binding | undefined {
  const ctrl = press.ctrlKey || press.metaKey;
  const bySign = BINDINGS.find((binding) => !ctrl && binding.signs?.includes(press.key));
  if (bySign) return bySign;
  if (press.altKey) return undefined;
  return BINDINGS.find((binding) => (binding.ctrl ?? false) === ctrl && binding.codes?.includes(press.code));
}

function isField(element: HTMLElement): boolean {
  if (element instanceof HTMLInputElement) return !["checkbox", "radio", "button"].includes(element.type);
  return element instanceof HTMLTextAreaElement || element instanceof HTMLSelectElement;
}

/** Whether the element that has the focus uses the key itself. */
function isNativeKey(event: KeyboardEvent, target: HTMLElement | null): boolean {
  if (target === null) return false;
  if (event.code.startsWith("Arrow")) return target.matches("[role=region]");
  return event.code.endsWith("Enter") && target.matches("a[href], button, summary, input, [role=tab]");
}
