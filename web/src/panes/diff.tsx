// The pane of diffs: what an attempt changed. In: the diffs of a step. Out: unified diffs, folded by file.

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ApiError, getJson, readFile, runPath } from "../api.ts";
import { type DiffFile, parseDiff } from "../diff.ts";
import { formatBytes, formatPlural } from "../format.ts";
import { Empty } from "../parts/load.tsx";
import { pathInRun, type RunFolders } from "../parts/text.tsx";
import type { Artifact, ArtifactText } from "../types.ts";
import { OpenDetails } from "./open_details.tsx";
import type { PaneProps } from "./table.tsx";

/** How much of a diff is read, how many lines open by themselves, and how many lines of a file are shown at once. */
const MOST_BYTES = 1 << 20;
const OPEN_LINES = 400;
const LINES = 1000;

export function DiffPane({ run, folders, details, turn }: PaneProps): JSX.Element {
  const diffs = details.diffs.filter((diff) => diff.turn === turn);
  if (diffs.length === 0) return <Empty>Attempt {turn} has left no diff.</Empty>;
  return (
    <>
      {diffs.map((diff) => (
        <Diff key={diff.ref} run={run} folders={folders} diff={diff} />
      ))}
    </>
  );
}

function Diff({ run, folders, diff }: { run: string; folders: RunFolders; diff: Artifact }): JSX.Element {
  const [files, setFiles] = useState<DiffFile[] | null>(null);
  const [error, setError] = useState<string | null>(null);
  useEffect(() => {
    const abort = new AbortController();
    readDiff(run, folders, diff, abort.signal)
      .then((text) => setFiles(parseDiff(text)))
      .catch((failure: unknown) => {
        if (!abort.signal.aborted) setError(failure instanceof ApiError ? failure.message : String(failure));
      });
    return () => abort.abort();
  }, [run, folders, diff.ref]);
  if (error) return <Empty>{error}</Empty>;
  if (!files) return <p class="empty loading">Loading…</p>;
  let open = OPEN_LINES;
  return (
    <section class="block">
      <h3>
        {formatPlural(diff.files ?? files.length, "file")} <span class="color-good">+{diff.added ?? 0}</span>{" "}
        <span class="color-bad">−{diff.removed ?? 0}</span>
      </h3>
      {diff.with.length > 0 && <p class="color-wait">In the same tree worked: {diff.with.join(", ")}</p>}
      {diff.bytes > MOST_BYTES && (
        <p class="muted">
          The first {formatBytes(MOST_BYTES)} of {formatBytes(diff.bytes)} are shown.
        </p>
      )}
      {files.map((file) => {
        open -= file.lines.length;
        return <FileDiff key={file.path} file={file} open={open >= 0} />;
      })}
    </section>
  );
}

async function readDiff(run: string, folders: RunFolders, diff: Artifact, abort: AbortSignal): Promise<string> {
  const path = pathInRun(folders, diff.path);
  if (path) return new TextDecoder().decode((await readFile(run, path, 0, MOST_BYTES, abort)).bytes);
  const url = `${runPath(run)}/artifacts/${encodeURIComponent(diff.kind)}/${encodeURIComponent(diff.id)}`;
  return (await getJson<ArtifactText>(url, abort)).text;
}

function FileDiff({ file, open }: { file: DiffFile; open: boolean }): JSX.Element {
  const [most, setMost] = useState(LINES);
  return (
    <OpenDetails
      open={open}
      summary={
        <>
          <span class="mono strong ref">{file.path}</span>
          <span class="spacer" />
          <span class="color-good">+{file.added}</span> <span class="color-bad">−{file.removed}</span>
        </>
      }
    >
      <div class="text diff" tabIndex={0} role="region" aria-label={`Diff of ${file.path}`}>
        <div>
          {file.lines.slice(0, most).map(({ kind, text }, index) => (
            <div key={index} class={`diff-${kind}`}>
              {text || " "}
            </div>
          ))}
        </div>
      </div>
      {file.lines.length > most && (
        <p class="more">
          <button type="button" onClick={() => setMost(most + LINES)}>
            More
          </button>
        </p>
      )}
    </OpenDetails>
  );
}
