// The steps of a run as rows. In: the pages of `/steps` through the filter of the route. Out: rows that open the
// inspector.

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { formatCost, formatCount, formatDuration, formatNumber } from "../format.ts";
import { useKeys } from "../keys.ts";
import { now, waitList } from "../live.ts";
import { Empty } from "../parts/load.tsx";
import { StateMark, StateShape } from "../parts/mark.tsx";
import { type Column, moveRow, Rows } from "../parts/rows.tsx";
import { showResource } from "../resource.ts";
import { changeRun, type RunRoute } from "../router.ts";
import { markOf, STEP_STATES } from "../states.ts";
import { StepPages } from "../step_pages.ts";
import type { RunDetails, State, StepRow } from "../types.ts";

const COLUMNS: Column[] = [
  { name: "State", class: "step-state" },
  { name: "Step", class: "grow mono step-name" },
  { name: "Kind", class: "step-kind" },
  { name: "Attempt", class: "number" },
  { name: "Time", class: "time number" },
  { name: "Tokens", class: "tokens number" },
  { name: "Cost", class: "cost number" },
  { name: "Waits for", class: "step-waits" },
];

const TYPING_MS = 150;

interface Props {
  route: RunRoute;
  counts: RunDetails["counts"];
}

export function StepsView({ route, counts }: Props): JSX.Element {
  const { run, states, search } = route;
  const filter = states.join(",");
  const pages = useMemo(
    () => new StepPages(run, { states: filter ? filter.split(",") : [], search }),
    [run, filter, search],
  );
  useEffect(() => {
    const hide = showResource(run, pages);
    pages.refresh();
    return () => {
      hide();
      pages.close();
    };
  }, [pages]);

  useKeys("view", {
    failed: () => changeRun({ states: filter === "failed" ? [] : ["failed"] }),
  });
  return (
    <section class="steps" aria-label="Steps">
      <FilterBar route={route} counts={counts} />
      <StepRows route={route} pages={pages} />
    </section>
  );
}

function FilterBar({ route, counts }: Props): JSX.Element {
  const { states, search } = route;
  const [text, setText] = useState(search);
  const field = useRef<HTMLInputElement>(null);
  useKeys("view", { filter: () => field.current?.focus() });
  useEffect(() => setText(search), [search]);
  useEffect(() => {
    const timer = setTimeout(() => text !== search && changeRun({ search: text }), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text]);
  const toggleState = (state: string): void =>
    changeRun({ states: states.includes(state) ? states.filter((other) => other !== state) : [...states, state] });
  return (
    <div class="filters">
      <input
        ref={field}
        type="search"
        class="search"
        aria-label="Filter the steps"
        placeholder="Filter  /"
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      {STEP_STATES.filter((state) => counts[state] || states.includes(state)).map((state) => (
        <button
          key={state}
          type="button"
          class="chip"
          aria-pressed={states.includes(state)}
          onClick={() => toggleState(state)}
        >
          <StateShape mark={markOf(state)} />
          {state} <span class="muted">{formatNumber(counts[state] ?? 0)}</span>
        </button>
      ))}
    </div>
  );
}

function StepRows({ route, pages }: { route: RunRoute; pages: StepPages }): JSX.Element {
  const [selected, setSelected] = useState(0);
  const total = pages.total.value;
  // Reading the version renders the rows that have come.
  void pages.version.value;
  const count = total ?? 0;
  const at = Math.min(selected, count - 1);

  useEffect(() => setSelected(0), [pages]);
  // A deep link selects its step once that is among the rows.
  useEffect(() => {
    // The rounds of a loop share a label: the row that was opened stays selected.
    if (route.step === null || pages.row(at)?.label === route.step) return;
    const found = pages.find(route.step);
    if (found >= 0) setSelected(found);
  }, [route.step, pages, total]);

  const asked = new Set(waitList.value.filter(({ run }) => run === route.run).map(({ step }) => step));
  const inspectRow = (index: number): void => {
    const row = pages.row(index);
    if (row) changeRun({ step: row.label, agent: null, turn: null, view: "steps" }, route.step !== null);
  };
  const moveSelection = (by: number): void => {
    const to = moveRow(at, by, count);
    setSelected(to);
    if (route.step !== null) inspectRow(to);
  };
  useKeys("view", {
    next: () => moveSelection(1),
    previous: () => moveSelection(-1),
    open: () => inspectRow(at),
  });

  if (pages.error.value) return <Empty>{pages.error.value}</Empty>;
  if (total === null) return <p class="empty loading">Loading…</p>;
  if (total === 0) {
    const filtered = route.states.length > 0 || route.search !== "";
    return <Empty>{filtered ? "The filter lets no step through." : "No step has begun."}</Empty>;
  }
  return (
    <Rows
      id="step"
      label="Steps"
      columns={COLUMNS}
      count={count}
      rowHeight={30}
      selected={at}
      renderRow={(index) => renderStep(pages.row(index), asked)}
      onSelect={setSelected}
      onOpen={inspectRow}
      onRange={(first, last) => pages.show(first, last)}
    />
  );
}

/** The cells of a step; `asked` are the steps that ask a person something. */
function renderStep(row: StepRow | null, asked: Set<string>): ComponentChildren[] | null {
  if (!row) return null;
  const { kind, attempts, usage, waits, reason, fallback } = row;
  const cost = usage?.cost;
  return [
    <StateMark state={stateOfRow(row)} />,
    <StepName row={row} />,
    fallback ? `${kind}, by ${fallback}` : kind,
    attempts > 0 ? attempts : "",
    <StepTime row={row} />,
    usage ? `${usage.at_least ? "≥ " : ""}${formatCount(usage.input + usage.output)}` : "",
    cost === null || cost === undefined ? "" : formatCost(cost),
    asked.has(row.label) ? <span class="color-wait strong">your answer</span> : waits ?? (reason && <span class="muted">{reason}</span>) ?? "",
  ];
}

/** A step that has not begun waits for other steps: it is blocked. */
function stateOfRow({ status, started_ms: began }: Pick<StepRow, "status" | "started_ms">): State {
  return status === "waiting" && began === null ? "blocked" : status;
}

function StepName({ row: { label, iteration } }: { row: StepRow }): JSX.Element {
  return (
    <>
      {label}
      {iteration > 1 && <span class="muted"> round {iteration}</span>}
    </>
  );
}

function StepTime({ row: { started_ms: began, ended_ms: ended } }: { row: StepRow }): JSX.Element | null {
  if (began === null) return null;
  return <>{formatDuration((ended ?? now.value) - began)}</>;
}
