// Goes to a run, a step or a view by typing a part of its name. In: the list of runs, and the steps of the run that is
// shown. Out: a dialog.

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { getJson, runPath } from "../api.ts";
import { Dialog } from "../parts/dialog.tsx";
import { StateMark } from "../parts/mark.tsx";
import { navigate, type Route, route, runRoute, VIEWS } from "../router.ts";
import type { RunList, StepPage } from "../types.ts";

interface Target {
  id: string;
  kind: string;
  name: string;
  state?: string;
  to: Route;
}

const MOST = 30;
const TYPING_MS = 120;

export function Palette({ onClose }: { onClose(): void }): JSX.Element {
  const [text, setText] = useState("");
  const [selected, setSelected] = useState(0);
  const found = useTargets(text);
  const list = useRef<HTMLUListElement>(null);
  const at = Math.min(selected, found.length - 1);

  const openTarget = (target: Target | undefined): void => {
    if (!target) return;
    onClose();
    navigate(target.to);
  };
  const handleKey = (event: KeyboardEvent): void => {
    const by = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (by !== 0) setSelected((at + by + found.length) % Math.max(1, found.length));
    else if (event.key === "Enter") openTarget(found[at]);
    else return;
    event.preventDefault();
  };
  useEffect(() => list.current?.children[at]?.scrollIntoView({ block: "nearest" }), [at]);

  return (
    <Dialog title="Go to" class="palette" onClose={onClose}>
      <input
        type="text"
        role="combobox"
        aria-label="A run, a step or a view"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={found[at] ? `palette-${at}` : undefined}
        placeholder="A run, a step or a view"
        autocomplete="off"
        spellcheck={false}
        autofocus
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setSelected(0);
        }}
        onKeyDown={handleKey}
      />
      <ul id="palette-list" ref={list} role="listbox" aria-label="Found">
        {found.map((target, index) => (
          <li
            key={target.id}
            id={`palette-${index}`}
            role="option"
            aria-selected={index === at}
            onClick={() => openTarget(target)}
          >
            <span class="kind">{target.kind}</span>
            <span class="mono name">{target.name}</span>
            {target.state && <StateMark state={target.state} />}
          </li>
        ))}
      </ul>
      {found.length === 0 && <p class="empty">Nothing has this in its name.</p>}
    </Dialog>
  );
}

/** The targets with a text in their names, views first. */
function useTargets(text: string): Target[] {
  const now = route.value;
  const run = now.page === "run" ? now.run : null;
  const [runs, setRuns] = useState<Target[]>([]);
  const [steps, setSteps] = useState<Target[]>([]);

  useEffect(() => {
    const abort = new AbortController();
    getJson<RunList>("/runs?limit=100", abort.signal)
      .then((answer) => setRuns(answer.runs.map(runTarget)))
      .catch(() => undefined);
    return () => abort.abort();
  }, []);

  useEffect(() => {
    if (!run) return;
    const abort = new AbortController();
    const timer = setTimeout(() => {
      getJson<StepPage>(`${runPath(run)}/steps?limit=${MOST}&q=${encodeURIComponent(text)}`, abort.signal)
        .then((answer) => setSteps(answer.steps.map((step) => stepTarget(run, step))))
        .catch(() => undefined);
    }, TYPING_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [run, text]);

  const wanted = text.toLowerCase().split(/\s+/);
  const matches = ({ kind, name }: Target): boolean => {
    const words = `${kind} ${name}`.toLowerCase();
    return wanted.every((word) => words.includes(word));
  };
  return [...[...viewTargets(run), ...runs].filter(matches), ...(run ? steps : [])].slice(0, 2 * MOST);
}

function viewTargets(run: string | null): Target[] {
  const pages: Target[] = [
    { id: "page/runs", kind: "page", name: "runs", to: { page: "runs", search: "" } },
    { id: "page/waits", kind: "page", name: "waits", to: { page: "waits" } },
    { id: "page/new", kind: "page", name: "new run", to: { page: "new" } },
  ];
  const views = run
    ? VIEWS.map((view): Target => ({ id: view, kind: "view", name: view, to: runRoute(run, { view }) }))
    : [];
  return [...views, ...pages];
}

function runTarget({ run, workflow, state }: RunList["runs"][number]): Target {
  return { id: `run/${run}`, kind: "run", name: `${workflow} ${run}`, state, to: runRoute(run) };
}

function stepTarget(run: string, { label, status }: StepPage["steps"][number]): Target {
  return { id: `step/${label}`, kind: "step", name: label, state: status, to: runRoute(run, { step: label }) };
}
