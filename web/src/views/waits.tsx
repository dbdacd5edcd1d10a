// The gates and requests of all runs that wait for a person. In: the document of `/waits`. Out: questions, which are
// answered in place.

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { formatPlural } from "../format.ts";
import { useKeys } from "../keys.ts";
import { waitList, waits } from "../live.ts";
import { Empty, Loaded } from "../parts/load.tsx";
import { Question, waitId } from "../parts/question.tsx";
import { moveRow } from "../parts/rows.tsx";
import { navigate, runRoute } from "../router.ts";

export function Waits(): JSX.Element {
  const [selected, setSelected] = useState(0);
  const list = useRef<HTMLDivElement>(null);
  const found = waitList.value;
  const at = Math.min(selected, found.length - 1);
  useKeys("view", {
    next: () => setSelected(moveRow(at, 1, found.length)),
    previous: () => setSelected(moveRow(at, -1, found.length)),
    open: () => {
      const wait = found[at];
      return wait ? navigate(runRoute(wait.run, { step: wait.step })) : false;
    },
  });
  useEffect(() => list.current?.children[at]?.scrollIntoView({ block: "nearest" }), [at]);
  return (
    <div class="page">
      <header class="page-head">
        <h1>Waits</h1>
        <span class="muted">{formatPlural(found.length, "question")} for you</span>
      </header>
      <Loaded resource={waits}>
        {() =>
          found.length === 0 ? (
            <Empty>No run waits for a person.</Empty>
          ) : (
            <div class="questions" ref={list}>
              {found.map((wait, index) => (
                <div key={waitId(wait)} onFocusCapture={() => setSelected(index)}>
                  <Question wait={wait} active={index === at} namesRun />
                </div>
              ))}
            </div>
          )
        }
      </Loaded>
    </div>
  );
}
