// A run: its facts and orders, one of its views, and the inspector beside it. In: the route of a run. Out: the page of
// the run; its event stream is open for as long as the page shows it.

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { postJson, runPath, saveFile } from "../api.ts";
import { formatCost, formatDate, formatDuration, formatNumber, formatPlural, formatTokens } from "../format.ts";
import { useKeys } from "../keys.ts";
import { canAct, followRun, now, waitList, watching } from "../live.ts";
import { Loaded } from "../parts/load.tsx";
import { StateCounts, StateMark } from "../parts/mark.tsx";
import { giveOrder, notify } from "../parts/notice.tsx";
import { ConfirmLine } from "../parts/question.tsx";
import { markStale, useResource } from "../resource.ts";
import { changeRun, formatRoute, navigate, type RunRoute, runRoute, type View, VIEWS } from "../router.ts";
import { markOf } from "../states.ts";
import type { RunDetails } from "../types.ts";
import { GraphView } from "./graph.tsx";
import { Inspector } from "./inspector.tsx";
import { MessageForm } from "./message.tsx";
import { StepsView } from "./steps.tsx";
import { SwarmView } from "./swarm.tsx";
import { TimelineView } from "./timeline.tsx";

/** Above this number of steps, a run opens with its steps, else with its graph. */
const MOST_IN_GRAPH = 300;

export function RunPage({ route }: { route: RunRoute }): JSX.Element {
  const { run } = route;
  const [gone, setGone] = useState(false);
  const details = useResource<RunDetails>(run, runPath(run));
  const follows = watching.value;
  useEffect(() => (follows ? followRun(run, setGone) : undefined), [run, follows]);
  return (
    <Loaded resource={details}>
      {(value) => <RunBody route={route} details={value} gone={gone && value.state === "running"} />}
    </Loaded>
  );
}

interface BodyProps {
  route: RunRoute;
  details: RunDetails;
  gone: boolean;
}

function RunBody({ route, details, gone }: BodyProps): JSX.Element {
  const [messageTo, setMessageTo] = useState<string | null>(null);
  const view = route.view ?? (details.steps > MOST_IN_GRAPH ? "steps" : "graph");
  const takesMessages = canAct.value && details.state === "running";
  const showView = (wanted: View): void => changeRun({ view: wanted }, false);
  useKeys("page", {
    graph: () => showView("graph"),
    steps: () => showView("steps"),
    timeline: () => showView("timeline"),
    swarm: () => showView("swarm"),
    message: () => (takesMessages ? setMessageTo(addressOf(route)) : false),
  });
  return (
    <div class="run">
      <RunHead details={details} gone={gone} />
      <nav class="tabs" aria-label="Views of the run">
        {VIEWS.map((name) => (
          <a key={name} href={formatRoute({ ...route, view: name })} aria-current={name === view ? "page" : undefined}>
            {name} <kbd>{name === "swarm" ? "w" : name[0]}</kbd>
          </a>
        ))}
        <span class="spacer" />
        <button
          type="button"
          class="quiet wide-only"
          title="The files of the run as an archive"
          onClick={() => void saveRun(route.run)}
        >
          Download
        </button>
        {takesMessages && (
          <button type="button" class="quiet" onClick={() => setMessageTo(addressOf(route))}>
            Message <kbd>m</kbd>
          </button>
        )}
      </nav>
      <div class={route.step === null ? "split" : "split inspecting"}>
        <div class="view">
          <RunView view={view} route={route} details={details} />
        </div>
        {route.step !== null && (
          <Inspector key={route.agent ?? ""} route={route} label={route.step} folders={details} />
        )}
      </div>
      {messageTo !== null && <MessageForm run={route.run} to={messageTo} onClose={() => setMessageTo(null)} />}
    </div>
  );
}

function RunView({ view, route, details }: { view: View; route: RunRoute; details: RunDetails }): JSX.Element {
  if (view === "graph") return <GraphView route={route} connections={details.nodes} />;
  if (view === "steps") return <StepsView route={route} counts={details.counts} />;
  if (view === "timeline") return <TimelineView route={route} />;
  return <SwarmView route={route} swarms={details.swarms} />;
}

/** Saves the files of a run as an archive, for a report about it. */
async function saveRun(run: string): Promise<void> {
  try {
    await saveFile(`${runPath(run)}/recording.tar`, `${run}.tar`);
  } catch (error) {
    notify(error instanceof Error ? error.message : String(error), true);
  }
}

/** Where a message goes: to the step or the agent in the inspector. */
function addressOf({ step, agent }: RunRoute): string {
  if (step === null) return "";
  return agent === null ? step : `${step}/${agent}`;
}

type Order = "stop" | "resume" | "retry";

const ORDERS: Record<Order, { word: string; key: string; text: string }> = {
  stop: { word: "Stop", key: "x", text: "Stop the run? It can be resumed later." },
  resume: { word: "Resume", key: "u", text: "Resume the run? Steps that have succeeded do not run again." },
  retry: { word: "Retry failed", key: "u", text: "Resume the run, and run its failed steps again?" },
};

function RunHead({ details, gone }: { details: RunDetails; gone: boolean }): JSX.Element {
  const { run, workflow, pipeline, state, done, total, usage, problem, survivors } = details;
  const [order, setOrder] = useState<Order | null>(null);
  const offered = offerOrder(details);
  const askOrder = (wanted: boolean): void | false => {
    if (!offered || !wanted || !canAct.value) return false;
    setOrder(offered);
  };
  useKeys("page", {
    stop: () => askOrder(offered === "stop"),
    resume: () => askOrder(offered !== "stop"),
  });
  useKeys("panel", { back: () => (order === null ? false : setOrder(null)) });
  const sendOrder = async (): Promise<void> => {
    if (!order) return;
    setOrder(null);
    const path = order === "stop" ? "stop" : "resume";
    await giveOrder(postJson(`${runPath(run)}/${path}`, order === "retry" ? { retry_failed: true } : {}));
    markStale(run);
  };
  return (
    <header class="run-head">
      <div class="line">
        <h1>
          {workflow}
          {pipeline !== workflow && <span class="muted"> {pipeline}</span>}
        </h1>
        <span class="mono muted run-name">{run}</span>
        <StateMark state={state} />
        {gone && <span class="color-bad strong">its process is gone</span>}
        {details.runner?.stopped && <span class="color-wait strong">its process is suspended</span>}
        {survivors > 0 && <span class="color-wait strong">{formatPlural(survivors, "process")} still runs</span>}
        <WaitLink run={run} />
        <span class="spacer" />
        {offered && order === null && canAct.value && (
          <button type="button" onClick={() => setOrder(offered)}>
            {ORDERS[offered].word} <kbd>{ORDERS[offered].key}</kbd>
          </button>
        )}
      </div>
      <div class="line facts">
        <span>
          {formatNumber(done)} of {formatPlural(total, "step")}
        </span>
        <StateCounts counts={details.counts} />
        <RunTime details={details} />
        {usage && usage.input + usage.output > 0 && <span>{formatTokens(usage)}</span>}
        {usage && usage.cost !== null && <span>{formatCost(usage.cost)}</span>}
        {details.plans.map(({ step, progress }) => (
          <span key={step}>
            {step}: {progress}
          </span>
        ))}
      </div>
      {problem && (
        <p class="color-bad" role="alert">
          {problem}
        </p>
      )}
      {order && (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            void sendOrder();
          }}
        >
          <ConfirmLine text={`${ORDERS[order].text} (${run})`} onCancel={() => setOrder(null)} />
        </form>
      )}
    </header>
  );
}

/** The time of a run is a component of its own, since it changes each second. */
function RunTime({ details: { state, started_ms: began, changed_ms: changed } }: { details: RunDetails }): JSX.Element {
  const end = state === "running" ? now.value : changed;
  return <span title={formatDate(began)}>{formatDuration(end - began)}</span>;
}

function WaitLink({ run }: { run: string }): JSX.Element | null {
  const own = waitList.value.filter((wait) => wait.run === run);
  const [wait] = own;
  if (!wait) return null;
  return (
    <button type="button" class="waits-link" onClick={() => navigate(runRoute(run, { step: wait.step }))}>
      <StateMark
        state="waiting"
        mark={{
          ...markOf("waiting"),
          word: own.length === 1 ? `${wait.step} asks you` : `${formatPlural(own.length, "question")} for you`,
        }}
      />
    </button>
  );
}

function offerOrder({ state, counts }: RunDetails): Order | null {
  if (state === "running") return "stop";
  if (state === "resumable") return "resume";
  return state === "failed" && counts.failed ? "retry" : null;
}
