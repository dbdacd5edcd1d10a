// The list of runs: first those that wait for a person, then those that are queued or run, then the others, newest
// first. In: the documents of `/runs`. Out: rows.

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { getJson } from "../api.ts";
import { formatAge, formatDate, formatDuration, formatNumber, formatPlural } from "../format.ts";
import { useKeys } from "../keys.ts";
import { canAct, now, waitList } from "../live.ts";
import { Empty, Loaded } from "../parts/load.tsx";
import { StateMark } from "../parts/mark.tsx";
import { notify } from "../parts/notice.tsx";
import { type Column, moveRow, Rows } from "../parts/rows.tsx";
import { RUNS, useResource } from "../resource.ts";
import { formatRoute, navigate, runRoute } from "../router.ts";
import { markOf } from "../states.ts";
import type { QueuedRun, Run, RunList } from "../types.ts";

/** How many runs a page has, and how many the list keeps at most. */
const PAGE = 100;
const MOST = 2000;

const COLUMNS: Column[] = [
  { name: "State", class: "run-state" },
  { name: "Workflow", class: "grow" },
  { name: "Run", class: "run-id mono" },
  { name: "Steps", class: "number run-steps" },
  { name: "For you", class: "run-waits" },
  { name: "Began", class: "time" },
  { name: "Time", class: "time" },
];

type Entry = { run: Run; queued: null } | { run: null; queued: QueuedRun };

export function Runs({ search }: { search: string }): JSX.Element {
  const first = useResource<RunList>(RUNS, `/runs?limit=${PAGE}`);
  const [older, setOlder] = useState<Run[]>([]);
  const [next, setNext] = useState<string | null | undefined>(undefined);
  const list = first?.value.value ?? null;

  const entries = useMemo(() => orderEntries(list, older, search), [list, older, search, waitList.value]);
  const after = next === undefined ? (list?.next ?? null) : next;
  const readOlder = async (): Promise<void> => {
    if (!after) return;
    try {
      const page = await getJson<RunList>(`/runs?limit=${PAGE}&after=${encodeURIComponent(after)}`);
      setOlder([...older, ...page.runs].slice(0, MOST - PAGE));
      setNext(page.next);
    } catch (error) {
      notify(String(error), true);
    }
  };

  return (
    <div class="page">
      <header class="page-head">
        <h1>Runs</h1>
        <SearchField search={search} />
        <span class="spacer" />
        {canAct.value && (
          <a class="button primary" href={formatRoute({ page: "new" })}>
            New run <kbd>n</kbd>
          </a>
        )}
      </header>
      <Loaded resource={first}>
        {() =>
          entries.length === 0 ? (
            <Empty>{search ? "No run has this in its name." : "There are no runs yet."}</Empty>
          ) : (
            <RunRows entries={entries} />
          )
        }
      </Loaded>
      {after && older.length < MOST - PAGE && (
        <footer class="page-foot">
          <button type="button" onClick={() => void readOlder()}>
            Older runs
          </button>
        </footer>
      )}
    </div>
  );
}

function SearchField({ search }: { search: string }): JSX.Element {
  const field = useRef<HTMLInputElement>(null);
  useKeys("view", { filter: () => field.current?.focus() });
  return (
    <input
      ref={field}
      type="search"
      class="search"
      aria-label="Filter the runs"
      placeholder="Filter  /"
      value={search}
      onInput={(event) => navigate({ page: "runs", search: event.currentTarget.value }, true)}
    />
  );
}

function RunRows({ entries }: { entries: Entry[] }): JSX.Element {
  const [selected, setSelected] = useState(0);
  const at = Math.min(selected, entries.length - 1);
  const openRun = (index: number): void => {
    const run = entries[index]?.run;
    if (run) navigate(runRoute(run.run));
  };
  useKeys("view", {
    next: () => setSelected(moveRow(at, 1, entries.length)),
    previous: () => setSelected(moveRow(at, -1, entries.length)),
    open: () => openRun(at),
    failed: () => navigate({ page: "runs", search: "failed" }, true),
  });
  useEffect(() => setSelected(0), [entries.length === 0]);
  return (
    <Rows
      id="run"
      label="Runs"
      columns={COLUMNS}
      count={entries.length}
      rowHeight={36}
      selected={at}
      renderRow={(index) => renderEntry(entries[index])}
      onSelect={setSelected}
      onOpen={openRun}
    />
  );
}

function renderEntry(entry: Entry | undefined): ComponentChildren[] | null {
  if (!entry) return null;
  if (!entry.run) {
    const { id, spec, pipeline, at } = entry.queued;
    const name = pipeline ? `${spec} (${pipeline})` : spec;
    return [<StateMark state="queued" />, name, id, "", "", formatAge(at, now.value), ""];
  }
  const {
    run,
    workflow,
    pipeline,
    state,
    done,
    total,
    started_ms: began,
    changed_ms: changed,
    runner,
    problem,
  } = entry.run;
  const end = state === "running" ? now.value : changed;
  return [
    <RunMark run={entry.run} />,
    <>
      <a href={formatRoute(runRoute(run))} tabIndex={-1} class="name">
        {workflow || run}
      </a>
      {pipeline && pipeline !== workflow && <span class="muted"> {pipeline}</span>}
      {problem && <span class="color-bad"> {problem}</span>}
      {runner?.stopped && <span class="color-wait"> its process is suspended</span>}
    </>,
    run,
    `${formatNumber(done)}/${formatNumber(total)}`,
    <WaitNote run={entry.run} />,
    <span title={formatDate(began)}>{formatAge(began, now.value)}</span>,
    formatDuration(end - began),
  ];
}

/** A run that waits for a person is marked so. */
function RunMark({ run }: { run: Run }): JSX.Element {
  if (run.state !== "running" || countWaits(run) === 0) return <StateMark state={run.state} />;
  return <StateMark state="waiting" mark={{ ...markOf("waiting"), word: "asks you" }} />;
}

function WaitNote({ run }: { run: Run }): JSX.Element | null {
  const count = countWaits(run);
  if (count === 0) return null;
  const names = [...run.gates, ...run.approvals.map(({ step }) => step)];
  if (run.state !== "running") return <span class="muted">{names[0]}, once resumed</span>;
  return <span class="color-wait strong">{count === 1 ? names[0] : formatPlural(count, "question")}</span>;
}

function countWaits(run: Run): number {
  return run.gates.length + run.approvals.length;
}

function orderEntries(list: RunList | null, older: Run[], search: string): Entry[] {
  if (!list) return [];
  const known = new Set(list.runs.map(({ run }) => run));
  const runs = [...list.runs, ...older.filter(({ run }) => !known.has(run))];
  const entries: Entry[] = [
    ...list.queued.map((queued): Entry => ({ run: null, queued })),
    ...runs.map((run): Entry => ({ run, queued: null })),
  ];
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const named = (entry: Entry): boolean => {
    const name = entry.run
      ? `${entry.run.run} ${entry.run.workflow} ${entry.run.pipeline} ${entry.run.state}`
      : `${entry.queued.id} ${entry.queued.spec} queued`;
    return words.every((word) => name.toLowerCase().includes(word));
  };
  // The sort is stable: within a rank the newest stay first.
  return entries.filter(named).sort((a, b) => rankEntry(a) - rankEntry(b));
}

function rankEntry({ run }: Entry): number {
  if (!run) return 1;
  if (run.state !== "running") return 3;
  return countWaits(run) > 0 ? 0 : 2;
}
