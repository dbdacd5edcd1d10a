// The inspector of a step: everything that the run knows of it, in panes. In: the details of the step and the attempt
// of the route. Out: a panel beside the view, or over it on a narrow screen.

import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { stepPath } from "../api.ts";
import { formatClock } from "../format.ts";
import { useKeys } from "../keys.ts";
import { waitList, watching } from "../live.ts";
import { AgentPane } from "../panes/agent.tsx";
import { listPanes, type Pane, type PaneProps } from "../panes/table.tsx";
import { Loaded } from "../parts/load.tsx";
import { StateMark } from "../parts/mark.tsx";
import { Question, waitId } from "../parts/question.tsx";
import type { RunFolders } from "../parts/text.tsx";
import { useResource } from "../resource.ts";
import { changeRun, type RunRoute } from "../router.ts";
import type { StepDetails } from "../types.ts";

/** How often a step is asked for while it runs. */
const POLL_MS = 2000;

interface Props {
  route: RunRoute;
  label: string;
  folders: RunFolders;
}

export function Inspector({ route, label, folders }: Props): JSX.Element {
  const panel = useRef<HTMLElement>(null);
  const details = useResource<StepDetails>(route.run, route.agent === null ? stepPath(route.run, label) : null);
  const closeInspector = (): void => changeRun({ step: null, agent: null, turn: null, pane: null }, false);
  useKeys("view", {
    back: route.agent === null ? closeInspector : () => changeRun({ agent: null, turn: null, pane: null }, false),
  });
  useEffect(() => panel.current?.scrollTo(0, 0), [label, route.pane]);
  // No event tells of the tools and the activity of a turn that goes on.
  const goesOn = details?.value.value?.status === "running" && watching.value;
  useEffect(() => {
    if (!goesOn || !details) return;
    const timer = setInterval(() => details.refresh(), POLL_MS);
    return () => clearInterval(timer);
  }, [goesOn, details]);
  return (
    <aside ref={panel} class="inspector" aria-label={`Inspector of ${label}`}>
      <header class="inspector-head">
        <h2 class="mono">
          {route.agent === null ? (
            label
          ) : (
            <>
              <button
                type="button"
                class="link"
                onClick={() => changeRun({ agent: null, turn: null, pane: null }, false)}
              >
                {label}
              </button>{" "}
              / {route.agent}
            </>
          )}
        </h2>
        <span class="spacer" />
        <button type="button" class="quiet" onClick={closeInspector}>
          Close <kbd>Esc</kbd>
        </button>
      </header>
      {route.agent === null ? (
        <Loaded resource={details}>
          {(value) => <Details route={route} label={label} folders={folders} details={value} />}
        </Loaded>
      ) : (
        <AgentPane run={route.run} label={label} agent={route.agent} folders={folders} pane={route.pane} />
      )}
    </aside>
  );
}

function Details({ route, label, folders, details }: Props & { details: StepDetails }): JSX.Element {
  const attempts = details.tries.map(({ attempt }) => attempt);
  const last = attempts.at(-1) ?? 1;
  const turn = route.turn !== null && attempts.includes(route.turn) ? route.turn : last;
  const props: PaneProps = { run: route.run, label, folders, details, turn };
  const panes = listPanes(props);
  const at = Math.max(
    0,
    panes.findIndex(({ id }) => id === route.pane),
  );
  const pane = panes[at];

  const moveTurn = (by: number): void => {
    const to = attempts[attempts.indexOf(turn) + by];
    if (to !== undefined) changeRun({ turn: to === last ? null : to });
  };
  const movePane = (by: number): void => {
    const to = panes[(at + by + panes.length) % panes.length];
    if (to) changeRun({ pane: to.id });
  };
  useKeys("panel", {
    left: () => movePane(-1),
    right: () => movePane(1),
    earlier: () => moveTurn(-1),
    later: () => moveTurn(1),
  });

  const questions = waitList.value.filter((wait) => wait.run === route.run && wait.step === label);
  return (
    <>
      <div class="line facts">
        <StateMark state={details.status} />
        {details.reason && <span class={details.status === "failed" ? "color-bad" : "muted"}>{details.reason}</span>}
        <span class="spacer" />
        {attempts.length > 1 && (
          <span class="turns">
            <button
              type="button"
              aria-label="Earlier attempt"
              disabled={turn === attempts[0]}
              onClick={() => moveTurn(-1)}
            >
              <kbd>[</kbd>
            </button>
            attempt {turn} of {last}
            <button type="button" aria-label="Later attempt" disabled={turn === last} onClick={() => moveTurn(1)}>
              <kbd>]</kbd>
            </button>
          </span>
        )}
      </div>
      {details.notices
        .filter((notice) => notice.turn === turn)
        .map(({ at, text }, index) => (
          <p key={index} class="told color-wait">
            <span class="muted">{formatClock(at)}</span> {text}
          </p>
        ))}
      {questions.map((wait, index) => (
        <Question key={waitId(wait)} wait={wait} active={index === 0} />
      ))}
      <PaneTabs panes={panes} shown={at} />
      <div class="pane" id="pane" role="tabpanel" aria-labelledby={`tab-${pane?.id}`} tabIndex={0}>
        {pane?.render(props)}
      </div>
    </>
  );
}

export function PaneTabs({
  panes,
  shown,
}: {
  panes: Pick<Pane, "id" | "name" | "count">[];
  shown: number;
}): JSX.Element {
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => list.current?.children[shown]?.scrollIntoView({ block: "nearest", inline: "nearest" }), [shown]);
  return (
    <div class="pane-tabs" role="tablist" aria-label="Panes" ref={list}>
      {panes.map(({ id, name, count }, index) => (
        <button
          key={id}
          id={`tab-${id}`}
          type="button"
          role="tab"
          aria-selected={index === shown}
          aria-controls={index === shown ? "pane" : undefined}
          tabIndex={index === shown ? 0 : -1}
          class={count === 0 ? "none" : ""}
          onClick={() => changeRun({ pane: id })}
        >
          {name}
          {count !== null && count > 0 && <span class="count">{count}</span>}
        </button>
      ))}
    </div>
  );
}
