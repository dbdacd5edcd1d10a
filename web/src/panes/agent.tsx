// The inspector of an agent of a swarm. In: its details. Out: its facts, its turns with what they were told, and its
// mailbox.

import type { JSX } from "preact";
import { stepPath } from "../api.ts";
import { formatClock, formatTokens, formatValue } from "../format.ts";
import { useKeys } from "../keys.ts";
import { Empty, Loaded } from "../parts/load.tsx";
import type { RunFolders } from "../parts/text.tsx";
import { useResource } from "../resource.ts";
import { changeRun } from "../router.ts";
import type { AgentDetails, AgentTurn } from "../types.ts";
import { PaneTabs } from "../views/inspector.tsx";
import { AgentState } from "../views/swarm.tsx";
import { OpenDetails } from "./open_details.tsx";
import { Facts } from "./overview.tsx";
import { PromptTexts } from "./prompt.tsx";

interface Props {
  run: string;
  label: string;
  agent: string;
  folders: RunFolders;
  pane: string | null;
}

export function AgentPane(props: Props): JSX.Element {
  const { run, label, agent } = props;
  const details = useResource<AgentDetails>(run, `${stepPath(run, label)}/agents/${encodeURIComponent(agent)}`);
  return <Loaded resource={details}>{(value) => <AgentBody {...props} details={value} />}</Loaded>;
}

function AgentBody({ run, folders, pane, details }: Props & { details: AgentDetails }): JSX.Element {
  const { turns, mailbox, usage } = details;
  const panes = [
    { id: "overview", name: "Overview", count: null },
    { id: "turns", name: "Turns", count: turns.length },
    { id: "mailbox", name: "Mailbox", count: mailbox.length },
  ];
  const at = Math.max(
    0,
    panes.findIndex(({ id }) => id === pane),
  );
  const shown = panes[at]?.id;
  const movePane = (by: number): void => {
    const to = panes[(at + by + panes.length) % panes.length];
    if (to) changeRun({ pane: to.id });
  };
  useKeys("panel", { left: () => movePane(-1), right: () => movePane(1) });
  return (
    <>
      <PaneTabs panes={panes} shown={at} />
      <div class="pane" id="pane" role="tabpanel" aria-labelledby={`tab-${shown}`} tabIndex={0}>
        {shown === "overview" && (
          <Facts
            facts={[
              ["State", <AgentState agent={{ state: details.state ?? null, how: details.how ?? null }} />],
              ["Plays", details.plays && <span class="mono">{details.plays}</span>],
              ["Asked for by", details.by && <span class="mono">{details.by}</span>],
              ["Ended", details.how?.replaceAll("_", " ")],
              ["Iterations", details.iterations],
              ["Messages", details.sent === undefined ? null : `${details.received} received, ${details.sent} sent`],
              ["Tokens", usage && formatTokens(usage)],
              ["Error", details.error && <span class="color-bad">{details.error}</span>],
              ["Task", details.task],
              ["Response", details.response],
            ]}
          />
        )}
        {shown === "turns" && <Turns run={run} folders={folders} turns={turns} />}
        {shown === "mailbox" && <Mailbox details={details} />}
      </div>
    </>
  );
}

function Turns({ run, folders, turns }: { run: string; folders: RunFolders; turns: AgentTurn[] }): JSX.Element {
  if (turns.length === 0) return <Empty>The agent has taken no turn.</Empty>;
  return (
    <>
      {turns.map((turn) => (
        <OpenDetails
          key={`${turn.iteration} ${turn.attempt} ${turn.purpose}`}
          open={false}
          summary={
            <>
              <span class="strong">
                {turn.purpose} {turn.iteration}
                {turn.attempt > 1 && `, attempt ${turn.attempt}`}
              </span>
              <span class="mono muted ref">{nameAction(turn)}</span>
              <span class="spacer" />
              {turn.model && <span class="muted">{turn.model}</span>}
            </>
          }
        >
          <h4>Answer</h4>
          <pre class="text" tabIndex={0} role="region" aria-label="Answer">
            {turn.action ? formatValue(turn.action) : (turn.answer ?? "none yet")}
          </pre>
          {turn.results.map(({ kind, text }, index) => (
            <div key={index}>
              <h4>{kind}</h4>
              <pre class="text" tabIndex={0} role="region" aria-label={kind}>
                {text}
              </pre>
            </div>
          ))}
          <h4>Prompt</h4>
          <PromptTexts run={run} folders={folders} paths={turn.paths} />
        </OpenDetails>
      ))}
    </>
  );
}

function nameAction({ action, answer }: AgentTurn): string {
  if (!action) return answer?.slice(0, 120) ?? "";
  const words = [action["operation"] ?? action["action"], action["tool"], action["item"], action["to"]];
  return words.filter((word) => typeof word === "string").join(" ");
}

function Mailbox({ details: { mailbox } }: { details: AgentDetails }): JSX.Element {
  if (mailbox.length === 0) return <Empty>The mailbox is empty.</Empty>;
  return (
    <>
      {mailbox.map(({ seq, from, type, payload, at, received }) => (
        <details key={seq} open class="card">
          <summary>
            <span class="strong">{type}</span> from <span class="mono">{from}</span>
            <span class="spacer" />
            <span class={received ? "muted" : "color-wait"}>
              {received ? "read" : "unread"} {formatClock(at)}
            </span>
          </summary>
          <pre class="text" tabIndex={0} role="region" aria-label={`Message ${seq}`}>
            {formatValue(payload)}
          </pre>
        </details>
      ))}
    </>
  );
}
