// The pane of files: what an agent that works by files was given and left. In: the files of an attempt. Out: lists; a
// file of the run's folder opens in place.

import type { JSX } from "preact";
import { formatBytes, formatPlural } from "../format.ts";
import { Empty } from "../parts/load.tsx";
import { FileText } from "../parts/text.tsx";
import type { KeptFile } from "../types.ts";
import { OpenDetails } from "./open_details.tsx";
import type { PaneProps } from "./table.tsx";

export function FilesPane({ run, details, turn }: PaneProps): JSX.Element {
  const files = details.tries.find((one) => one.attempt === turn)?.files;
  if (!files) return <Empty>The agent does not work by files.</Empty>;
  const { folder, inbox, outbox, copied = [], problems = [] } = files;
  return (
    <>
      {problems.length > 0 && (
        <ul class="plain color-bad">
          {problems.map((problem) => (
            <li key={problem}>{problem}</li>
          ))}
        </ul>
      )}
      <FileList run={run} title="Inbox" folder={`${folder}/inbox`} files={inbox} />
      <FileList run={run} title="Outbox" folder={`${folder}/outbox`} files={outbox} />
      {copied.length > 0 && (
        <section class="block">
          <h3>Copied to the workspace</h3>
          <ul class="plain mono">
            {copied.map((path) => (
              <li key={path}>{path}</li>
            ))}
          </ul>
        </section>
      )}
    </>
  );
}

interface ListProps {
  run: string;
  title: string;
  folder: string;
  files: KeptFile[];
}

function FileList({ run, title, folder, files }: ListProps): JSX.Element {
  return (
    <section class="block">
      <h3>
        {title} <span class="muted">{formatPlural(files.length, "file")}</span>
      </h3>
      {files.map(({ path, bytes, digest }) => (
        <OpenDetails
          key={path}
          open={false}
          summary={
            <>
              <span class="mono strong ref">{path}</span>
              <span class="spacer" />
              <span class="muted" title={digest}>
                {formatBytes(bytes)}
              </span>
            </>
          }
        >
          <FileText run={run} path={`${folder}/${path}`} label={path} />
        </OpenDetails>
      ))}
    </section>
  );
}
