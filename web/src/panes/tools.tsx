// The pane of tools: which ones an attempt used. In: the uses of tools of a step. Out: each one with its arguments, its
// result and its time.

import type { JSX } from "preact";
import { formatClock, formatDuration, formatJson } from "../format.ts";
import { now } from "../live.ts";
import { Empty } from "../parts/load.tsx";
import { StateMark } from "../parts/mark.tsx";
import { PlainText } from "../parts/text.tsx";
import type { ToolUse } from "../types.ts";
import { OpenDetails } from "./open_details.tsx";
import type { PaneProps } from "./table.tsx";

export function ToolsPane({ details, turn }: PaneProps): JSX.Element {
  const tools = details.tools.filter((use) => use.turn === turn);
  const refused = details.refused.filter((refusal) => refusal.turn === turn);
  if (tools.length + refused.length === 0) return <Empty>Attempt {turn} has used no tool.</Empty>;
  return (
    <>
      {refused.length > 0 && (
        <section class="block">
          <h3>Refused</h3>
          <ul class="plain color-bad">
            {refused.map(({ why }, index) => (
              <li key={index}>{why}</li>
            ))}
          </ul>
        </section>
      )}
      {tools.map((use, index) => (
        <ToolCard key={`${turn} ${index}`} use={use} />
      ))}
    </>
  );
}

function ToolCard({ use }: { use: ToolUse }): JSX.Element {
  const { tool, at, ended_ms: ended, ok, text } = use;
  const state = ok === null ? (ended === null ? "running" : "cancelled") : ok ? "succeeded" : "failed";
  return (
    <OpenDetails
      open={ok === false}
      summary={
        <>
          <StateMark state={state} />
          <span class="mono strong">{tool}</span>
          <span class="mono muted ref">{use.arguments.slice(0, 200)}</span>
          <span class="spacer" />
          <span class="muted">
            {formatClock(at)}, {formatDuration((ended ?? now.value) - at)}
          </span>
        </>
      }
    >
      <h4>Arguments</h4>
      <PlainText text={formatJson(use.arguments)} label="Arguments" />
      {text !== null && (
        <>
          <h4>Result</h4>
          <PlainText text={text} label="Result" />
        </>
      )}
    </OpenDetails>
  );
}
