// The mark of a state. In: a state. Out: its shape, its word and its colour.

import type { JSX } from "preact";
import { formatNumber } from "../format.ts";
import { type Mark, markOf } from "../states.ts";

export function StateMark({ state, mark = markOf(state) }: { state: string; mark?: Mark }): JSX.Element {
  return (
    <span class={`state color-${mark.color}`}>
      <StateShape mark={mark} />
      {mark.word}
    </span>
  );
}

export function StateShape({ mark }: { mark: Mark }): JSX.Element {
  return (
    <svg class={`shape color-${mark.color}`} viewBox="0 0 12 12" aria-hidden="true">
      <path fill-rule="evenodd" d={mark.path} />
    </svg>
  );
}

/** The counts of states: `3 failed  12 running`. */
export function StateCounts({ counts }: { counts: Record<string, number | undefined> }): JSX.Element {
  const present = Object.entries(counts).filter(([, count]) => count);
  return (
    <span class="counts">
      {present.map(([state, count]) => (
        <span key={state} class={`state color-${markOf(state).color}`}>
          <StateShape mark={markOf(state)} />
          {formatNumber(count ?? 0)} {markOf(state).word}
        </span>
      ))}
    </span>
  );
}
