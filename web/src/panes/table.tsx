// The table of the inspector's panes. In: the details of a step and an attempt. Out: each pane with its name, the
// number of things in it, and what it shows.

import type { JSX } from "preact";
import type { RunFolders } from "../parts/text.tsx";
import type { Artifact, StepDetails } from "../types.ts";
import { ArtifactPane, PackPane } from "./artifacts.tsx";
import { ConnectionPane } from "./connection.tsx";
import { DiffPane } from "./diff.tsx";
import { FilesPane } from "./files.tsx";
import { IncomingPane, InputsPane, OutgoingPane } from "./envelopes.tsx";
import { LogPane } from "./log.tsx";
import { OverviewPane } from "./overview.tsx";
import { PromptPane } from "./prompt.tsx";
import { ToolsPane } from "./tools.tsx";

export interface PaneProps {
  run: string;
  label: string;
  folders: RunFolders;
  details: StepDetails;
  /** The attempt that is looked at. */
  turn: number;
}

export interface Pane {
  id: string;
  name: string;
  /** How many things it holds; null where that is no number. */
  count: number | null;
  render(props: PaneProps): JSX.Element;
}

export function listPanes({ details, turn }: PaneProps): Pane[] {
  const { incoming, outgoing, prompts, tools, diffs, artifacts, tries, connection } = details;
  const ofTurn = <T extends { turn: number }>(things: T[]): T[] => things.filter((thing) => thing.turn === turn);
  const isPack = ({ kind }: Artifact): boolean => kind === "contextpack";
  const attempt = tries.find((one) => one.attempt === turn);
  const logs = [attempt?.paths.stdout, attempt?.paths.stderr].filter(Boolean).length;
  return [
    { id: "overview", name: "Overview", count: null, render: OverviewPane },
    { id: "incoming", name: "Incoming", count: incoming.length, render: IncomingPane },
    { id: "outgoing", name: "Outgoing", count: outgoing.length, render: OutgoingPane },
    {
      id: "prompt",
      name: "Prompt",
      count: ofTurn(prompts).length || (attempt?.paths.prompt ? 1 : 0),
      render: PromptPane,
    },
    { id: "pack", name: "Context pack", count: artifacts.filter(isPack).length, render: PackPane },
    { id: "inputs", name: "Inputs", count: incoming.filter((one) => one.read_in !== null).length, render: InputsPane },
    { id: "tools", name: "Tools", count: ofTurn(tools).length + ofTurn(details.refused).length, render: ToolsPane },
    { id: "diff", name: "Diff", count: ofTurn(diffs).length, render: DiffPane },
    { id: "artifacts", name: "Artifacts", count: ofTurn(artifacts).length, render: ArtifactPane },
    {
      id: "files",
      name: "Files",
      count: attempt?.files ? attempt.files.inbox.length + attempt.files.outbox.length : 0,
      render: FilesPane,
    },
    { id: "log", name: "Log", count: logs, render: LogPane },
    { id: "connection", name: "Connection", count: connection ? 1 : 0, render: ConnectionPane },
  ];
}
