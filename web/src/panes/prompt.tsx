// The pane of prompts: what the agent was sent in an attempt. In: the prompts of a step. Out: the blocks with their
// sizes, and the texts as they were sent.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { formatBytes } from "../format.ts";
import { Empty } from "../parts/load.tsx";
import { FileText, pathInRun, type RunFolders } from "../parts/text.tsx";
import type { EffectivePrompt, PromptPaths, TurnPrompt } from "../types.ts";
import type { PaneProps } from "./table.tsx";

export function PromptPane({ run, folders, details, turn }: PaneProps): JSX.Element {
  const prompts = details.prompts.filter((prompt) => prompt.turn === turn);
  const attempt = details.tries.find((one) => one.attempt === turn);
  if (prompts.length > 0) {
    return (
      <>
        {prompts.map((prompt) => (
          <section class="block" key={`${prompt.fallback} ${prompt.repair}`}>
            <h3>{namePrompt(prompt)}</h3>
            {prompt.effective && <Blocks effective={prompt.effective} />}
            <PromptTexts run={run} folders={folders} paths={prompt.paths} />
          </section>
        ))}
      </>
    );
  }
  const { prompt = null, system = null } = attempt?.paths ?? {};
  if (!prompt) return <Empty>Attempt {turn} has sent no prompt.</Empty>;
  return <PromptTexts run={run} folders={folders} paths={{ prompt, system }} />;
}

function namePrompt({ turn, fallback, repair }: TurnPrompt): string {
  const parts = [`Attempt ${turn}`];
  if (fallback > 0) parts.push(`fallback ${fallback}`);
  if (repair > 0) parts.push(`repair ${repair}`);
  return parts.join(", ");
}

function Blocks({ effective }: { effective: EffectivePrompt }): JSX.Element {
  const { blocks, delta, prompt, sent } = effective;
  const most = Math.max(1, ...blocks.map(({ bytes }) => bytes));
  return (
    <>
      <p class="muted">
        {delta ? "Only what is new was sent" : "The whole prompt was sent"}
        {sent && `: ${formatBytes(sent.bytes)}`}
        {delta && prompt && ` of ${formatBytes(prompt.bytes)}`}
      </p>
      <ul class="blocks">
        {blocks.map(({ name, bytes, digest }) => (
          <li key={`${name} ${digest}`}>
            <span class="mono">{name}</span>
            <span class="size-bar">
              <span style={{ width: `${(100 * bytes) / most}%` }} />
            </span>
            <span class="number muted">{formatBytes(bytes)}</span>
          </li>
        ))}
      </ul>
    </>
  );
}

const KINDS = { prompt: "As sent", full: "Whole", system: "System", blocks: "Blocks" } as const;
type Kind = keyof typeof KINDS;

/** The texts of a prompt, one at a time. */
export function PromptTexts({
  run,
  folders,
  paths,
}: {
  run: string;
  folders: RunFolders;
  paths: PromptPaths;
}): JSX.Element {
  const kinds = (Object.keys(KINDS) as Kind[]).filter((kind) => paths[kind]);
  const [chosen, setChosen] = useState<Kind>("prompt");
  const kind = kinds.includes(chosen) ? chosen : kinds[0];
  if (!kind) return <Empty>No text was kept.</Empty>;
  const path = pathInRun(folders, paths[kind]);
  return (
    <>
      {kinds.length > 1 && (
        <div class="filters">
          {kinds.map((name) => (
            <button key={name} type="button" class="chip" aria-pressed={name === kind} onClick={() => setChosen(name)}>
              {KINDS[name]}
            </button>
          ))}
        </div>
      )}
      {path ? <FileText key={path} run={run} path={path} label={KINDS[kind]} /> : <Empty>{paths[kind]}</Empty>}
    </>
  );
}
