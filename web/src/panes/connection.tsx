// The pane of the connection: how the run stands with the agent of a step. In: its connection. Out: facts.

import type { JSX } from "preact";
import { formatAge } from "../format.ts";
import { now } from "../live.ts";
import { Empty } from "../parts/load.tsx";
import { StateMark } from "../parts/mark.tsx";
import { markOfSwarm } from "../states.ts";
import { Facts } from "./overview.tsx";
import type { PaneProps } from "./table.tsx";

export function ConnectionPane({ details: { connection } }: PaneProps): JSX.Element {
  if (!connection) return <Empty>The step has no agent.</Empty>;
  const { state, stream, session, attempt, active_ms: active, waits, pending } = connection;
  return (
    <Facts
      facts={[
        ["State", <StateMark state={state} mark={markOfSwarm(state)} />],
        ["Stream", stream],
        ["Session", session && <span class="mono">{session}</span>],
        ["Attempt", attempt],
        ["Last activity", formatAge(active, now.value)],
        ["Waits for", waits],
        ["Could still write", pending.map(({ step, why }) => `${step}: ${why}`).join("; ")],
      ]}
    />
  );
}
