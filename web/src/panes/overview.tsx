// The pane of a step's main facts. In: its details. Out: a list of facts, the end of its standard error, and what it
// waits for.

import type { ComponentChildren, JSX } from "preact";
import { formatCost, formatDate, formatDuration, formatTokens, formatValue } from "../format.ts";
import { now } from "../live.ts";
import { FileText, pathInRun } from "../parts/text.tsx";
import { changeRun } from "../router.ts";
import type { PaneProps } from "./table.tsx";

export function OverviewPane({ run, folders, details, turn }: PaneProps): JSX.Element {
  const {
    usage,
    started_ms: began,
    ended_ms: ended,
    exit,
    stderr,
    session,
    fallback,
    repairs,
    pending,
    swarm,
  } = details;
  const attempt = details.tries.find((one) => one.attempt === turn);
  const output = attempt?.paths.output ?? null;
  const outputInRun = pathInRun(folders, output);
  return (
    <>
      <Facts
        facts={[
          ["Began", began === null ? null : formatDate(began)],
          ["Ended", ended === null ? null : formatDate(ended)],
          ["Time", began === null ? null : formatDuration((ended ?? now.value) - began)],
          ["Attempts", details.attempts > 0 ? details.attempts : null],
          ["Round", details.iteration > 1 ? details.iteration : null],
          ["Instance", details.instance > 1 ? details.instance : null],
          ["Within", details.within],
          ["Exit code", exit],
          ["Tokens", usage && `${usage.at_least ? "at least " : ""}${formatTokens(usage)}`],
          ["Cost", typeof usage?.cost === "number" ? formatCost(usage.cost) : null],
          ["Session", session && <span class="mono">{session}</span>],
          ["Fallback", fallback && <span class="mono">{fallback}</span>],
          ["Repairs", repairs > 0 ? repairs : null],
          ["Output", output && <span class="mono path">{output}</span>],
          ["Report", attempt?.report ? <pre>{formatValue(attempt.report)}</pre> : null],
        ]}
      />
      {pending.length > 0 && (
        <section class="block">
          <h3>Waits for</h3>
          <ul class="plain">
            {pending.map(({ step, why }) => (
              <li key={step}>
                <button type="button" class="link mono" onClick={() => changeRun({ step, turn: null }, false)}>
                  {step}
                </button>{" "}
                {why}
              </li>
            ))}
          </ul>
        </section>
      )}
      {swarm && (
        <p>
          <button type="button" onClick={() => changeRun({ view: "swarm" }, false)}>
            Show the swarm <kbd>w</kbd>
          </button>
        </p>
      )}
      {stderr && (
        <section class="block">
          <h3>End of standard error</h3>
          <pre class="text" tabIndex={0} role="region" aria-label="Standard error">
            {stderr}
          </pre>
        </section>
      )}
      {outputInRun && (
        <section class="block">
          <h3>Output</h3>
          <FileText run={run} path={outputInRun} label="Output" />
        </section>
      )}
    </>
  );
}

/** Facts with names; those without a value are left out. */
export function Facts({ facts }: { facts: [string, ComponentChildren][] }): JSX.Element {
  return (
    <dl class="fact-list">
      {facts
        .filter(([, value]) => value !== null && value !== undefined && value !== "")
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}
