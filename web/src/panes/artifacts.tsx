// The panes of artifacts and of context packs. In: the artifacts of a step. Out: a list, and the text of the one that
// is open.

import type { JSX } from "preact";
import { runPath } from "../api.ts";
import { formatBytes, formatPlural } from "../format.ts";
import { Empty, Loaded } from "../parts/load.tsx";
import { FileText, pathInRun, PlainText, type RunFolders } from "../parts/text.tsx";
import { useResource } from "../resource.ts";
import type { Artifact, ArtifactText } from "../types.ts";
import { OpenDetails } from "./open_details.tsx";
import type { PaneProps } from "./table.tsx";

export function ArtifactPane({ run, folders, details, turn }: PaneProps): JSX.Element {
  const found = details.artifacts.filter((artifact) => artifact.turn === turn);
  if (found.length === 0) return <Empty>Attempt {turn} has left no artifact.</Empty>;
  return (
    <>
      {found.map((artifact) => (
        <ArtifactCard key={artifact.ref} run={run} folders={folders} artifact={artifact} open={false} />
      ))}
    </>
  );
}

export function PackPane({ run, folders, details, turn }: PaneProps): JSX.Element {
  const packs = details.artifacts.filter(({ kind }) => kind === "contextpack");
  if (packs.length === 0) return <Empty>The step has no context pack.</Empty>;
  return (
    <>
      {packs.map((pack) => (
        <ArtifactCard key={pack.ref} run={run} folders={folders} artifact={pack} open={pack.turn === turn} />
      ))}
    </>
  );
}

interface CardProps {
  run: string;
  folders: RunFolders;
  artifact: Artifact;
  open: boolean;
}

function ArtifactCard({ run, folders, artifact, open }: CardProps): JSX.Element {
  const { ref, kind, bytes, pack, turn, omitted, files, added, removed } = artifact;
  return (
    <OpenDetails
      open={open}
      summary={
        <>
          <span class="strong">{pack ? `${kind} ${pack}` : kind}</span>
          <span class="mono muted ref">{ref}</span>
          <span class="spacer" />
          {files !== null && (
            <span>
              {formatPlural(files, "file")} <span class="color-good">+{added ?? 0}</span> <span class="color-bad">−{removed ?? 0}</span>
            </span>
          )}
          <span class="muted">
            attempt {turn}, {formatBytes(bytes)}
          </span>
        </>
      }
    >
      {omitted.length > 0 && (
        <ul class="plain color-wait">
          {omitted.map((words) => (
            <li key={words}>left out: {words}</li>
          ))}
        </ul>
      )}
      <ArtifactBody run={run} folders={folders} artifact={artifact} />
    </OpenDetails>
  );
}

function ArtifactBody({ run, folders, artifact }: Omit<CardProps, "open">): JSX.Element {
  const path = pathInRun(folders, artifact.path);
  if (path) return <FileText run={run} path={path} label={artifact.ref} json={artifact.kind === "contextpack"} />;
  return <JournalText run={run} artifact={artifact} />;
}

/** The text of an artifact that has no file of its own. */
function JournalText({ run, artifact: { kind, id, ref } }: { run: string; artifact: Artifact }): JSX.Element {
  const text = useResource<ArtifactText>(
    run,
    `${runPath(run)}/artifacts/${encodeURIComponent(kind)}/${encodeURIComponent(id)}`,
  );
  return <Loaded resource={text}>{(value) => <PlainText text={value.text} label={ref} />}</Loaded>;
}
