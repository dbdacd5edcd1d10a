// The pane of logs. In: the logs of an attempt. Out: the end of one, which follows what is written for as long as the
// attempt goes on.

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { readFile } from "../api.ts";
import { formatBytes } from "../format.ts";
import { useKeys } from "../keys.ts";
import { Empty } from "../parts/load.tsx";
import { pathInRun } from "../parts/text.tsx";
import { MOST_LINES, TailText } from "../tail.ts";
import type { PaneProps } from "./table.tsx";

const FIRST_BYTES = 128 * 1024;
const NEXT_BYTES = 1 << 20;
const POLL_MS = 1000;

export function LogPane({ run, folders, details, turn }: PaneProps): JSX.Element {
  const [chosen, setChosen] = useState<"stdout" | "stderr">("stdout");
  const paths = details.tries.find((one) => one.attempt === turn)?.paths ?? {};
  const streams = (["stdout", "stderr"] as const).filter((name) => paths[name]);
  const stream = streams.includes(chosen) ? chosen : streams[0];
  const path = stream ? pathInRun(folders, paths[stream]) : null;
  if (!stream || !path) return <Empty>Attempt {turn} has written no log.</Empty>;
  const goesOn = details.ended_ms === null && turn === details.attempts;
  return (
    <>
      {streams.length > 1 && (
        <div class="filters">
          {streams.map((name) => (
            <button
              key={name}
              type="button"
              class="chip"
              aria-pressed={name === stream}
              onClick={() => setChosen(name)}
            >
              {name === "stdout" ? "Standard output" : "Standard error"}
            </button>
          ))}
        </div>
      )}
      <Tail key={path} run={run} path={path} goesOn={goesOn} />
    </>
  );
}

function Tail({ run, path, goesOn }: { run: string; path: string; goesOn: boolean }): JSX.Element {
  const [tail] = useState(() => new TailText());
  const [total, setTotal] = useState<number | null>(null);
  const [error, setError] = useState<string | null>(null);
  const [follow, setFollow] = useState(true);
  const box = useRef<HTMLDivElement>(null);
  // While a person reads further up, nothing is added and so nothing moves.
  const follows = useRef(follow);
  follows.current = follow;
  useKeys("panel", { follow: () => setFollow(!follow) });

  useEffect(() => {
    const abort = new AbortController();
    let read: number | null = null;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const readNext = async (): Promise<void> => {
      const [offset, limit] = read === null ? [-FIRST_BYTES, FIRST_BYTES] : [read, NEXT_BYTES];
      const part = await readFile(run, path, offset, limit, abort.signal);
      // A file that is shorter than before was written anew.
      const anew = part.total < (read ?? 0);
      if (anew) tail.clear();
      tail.add(part.bytes, read !== null || part.from === 0);
      read = anew ? null : part.from + part.bytes.length;
      setTotal(part.total);
    };
    const pollFile = async (): Promise<void> => {
      try {
        if (follows.current) await readNext();
        setError(null);
      } catch (failure) {
        if (abort.signal.aborted) return;
        setError(failure instanceof Error ? failure.message : String(failure));
      }
      if (goesOn) timer = setTimeout(() => void pollFile(), POLL_MS);
    };
    tail.clear();
    void pollFile();
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [run, path, goesOn]);

  useEffect(() => {
    if (follow) box.current?.scrollTo(0, box.current.scrollHeight);
  }, [follow, total]);

  if (error && total === null) return <Empty>{error}</Empty>;
  return (
    <div class="log">
      <div class="line facts">
        <button type="button" class="chip" aria-pressed={follow} onClick={() => setFollow(!follow)}>
          follow the end <kbd>.</kbd>
        </button>
        {total !== null && <span>{formatBytes(total)}</span>}
        <span>at most the last {MOST_LINES} lines</span>
      </div>
      <div class="text" ref={box} tabIndex={0} role="region" aria-label="Log">
        {total === 0 && <p class="muted">Nothing is written yet.</p>}
        {tail.blocks.map(({ id, text }) => (
          <pre key={id}>{text}</pre>
        ))}
      </div>
    </div>
  );
}
