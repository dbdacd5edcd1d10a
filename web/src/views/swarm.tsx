// The swarms of a run: what is planned, who works on it, and who writes to whom. In: the details of a step that is a
// swarm, and the mailboxes of its agents. Out: tables, and the messages as a sequence.

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { stepPath } from "../api.ts";
import { formatCost, formatPlural, formatTokens } from "../format.ts";
import { type Handlers, useKeys } from "../keys.ts";
import { Empty, Loaded } from "../parts/load.tsx";
import { StateMark } from "../parts/mark.tsx";
import { moveRow } from "../parts/rows.tsx";
import { useResource } from "../resource.ts";
import { changeRun, formatRoute, type RunRoute } from "../router.ts";
import { markOfSwarm } from "../states.ts";
import type { StepDetails, Swarm, SwarmAgent, TeamPlan } from "../types.ts";
import { MessageSequence } from "./messages.tsx";

export function SwarmView({ route, swarms }: { route: RunRoute; swarms: string[] }): JSX.Element {
  const wanted = route.step !== null && swarms.includes(route.step) ? route.step : null;
  const [chosen, setChosen] = useState(wanted ?? swarms[0] ?? null);
  useEffect(() => {
    if (wanted !== null) setChosen(wanted);
  }, [wanted]);
  const shown = chosen !== null && swarms.includes(chosen) ? chosen : (swarms[0] ?? null);
  const details = useResource<StepDetails>(route.run, shown === null ? null : stepPath(route.run, shown));
  if (shown === null) return <Empty>No step of this run is a swarm.</Empty>;
  return (
    <section class="swarm" aria-label="Swarms">
      {swarms.length > 1 && (
        <div class="filters">
          {swarms.map((label) => (
            <button
              key={label}
              type="button"
              class="chip mono"
              aria-pressed={label === shown}
              onClick={() => setChosen(label)}
            >
              {label}
            </button>
          ))}
        </div>
      )}
      <div class="scroll" tabIndex={0} role="group" aria-label={`Swarm ${shown}`}>
        <Loaded resource={details}>
          {({ swarm, label }) =>
            swarm ? <SwarmBody route={route} label={label} swarm={swarm} /> : <Empty>The swarm has not begun.</Empty>
          }
        </Loaded>
      </div>
    </section>
  );
}

function SwarmBody({ route, label, swarm }: { route: RunRoute; label: string; swarm: Swarm }): JSX.Element {
  const { plan, agents, phase, turns, entries, usage } = swarm;
  return (
    <>
      <div class="facts line">
        <h2 class="mono">{label}</h2>
        {phase && <span>{phase}</span>}
        <span>{formatPlural(agents.length, "agent")}</span>
        <span>{formatPlural(turns, "turn")}</span>
        {entries > 0 && <span>{formatPlural(entries, "note")} in its workspace</span>}
        {usage.input > 0 && <span>{formatTokens(usage)}</span>}
        {typeof usage.cost === "number" && <span>{formatCost(usage.cost)}</span>}
      </div>
      {plan && <PlanTable plan={plan} />}
      <AgentTable route={route} label={label} agents={agents} plan={plan ?? null} />
      {plan && <Conflicts plan={plan} />}
      {plan && <Worktrees plan={plan} />}
      <MessageSequence run={route.run} label={label} agents={agents.map(({ agent }) => agent)} />
    </>
  );
}

function PlanTable({ plan }: { plan: TeamPlan }): JSX.Element {
  const { version, items, critical_path: critical, open_proposals: proposals, coordinator } = plan;
  return (
    <section class="block">
      <h3>
        Plan, version {version} <span class="muted">coordinated by {coordinator}</span>
      </h3>
      {critical.length > 0 && (
        <p>
          Critical path: <span class="mono">{critical.join(" → ")}</span>
        </p>
      )}
      {proposals.length > 0 && <p class="color-wait">Proposals that wait for an answer: {proposals.join(", ")}</p>}
      <Table names={["State", "Item", "What", "Owner", "Checkpoints", "After"]} label="Items of the plan">
        {items.map((item) => (
          <tr key={item.item} class={critical.includes(item.item) ? "critical" : ""}>
            <td>
              <StateMark state={item.state} mark={markOfSwarm(item.state)} />
            </td>
            <td class="mono">{item.item}</td>
            <td class="what">
              {item.text}
              {item.note && <span class="note muted">{item.note}</span>}
              {item.scope.length > 0 && <span class="note mono muted">{item.scope.join(" ")}</span>}
            </td>
            <td class="mono">{item.owner ?? <span class="muted">none</span>}</td>
            <td class="number">{item.checkpoints.length > 0 && `${item.reached}/${item.checkpoints.length}`}</td>
            <td class="mono">{item.depends_on.join(", ")}</td>
          </tr>
        ))}
      </Table>
    </section>
  );
}

interface AgentTableProps {
  route: RunRoute;
  label: string;
  agents: SwarmAgent[];
  plan: TeamPlan | null;
}

function AgentTable({ route, label, agents, plan }: AgentTableProps): JSX.Element {
  const [chosen, setChosen] = useState(0);
  const inspected = route.step === label ? agents.findIndex(({ agent }) => agent === route.agent) : -1;
  const selected = inspected >= 0 ? inspected : Math.min(chosen, agents.length - 1);
  const openAgent = (index: number): void | false => {
    const agent = agents[index];
    if (!agent) return false;
    changeRun({ step: label, agent: agent.agent, turn: null, pane: null, view: "swarm" }, route.step !== null);
  };
  const moveSelection = (by: number): void => {
    const to = moveRow(selected, by, agents.length);
    setChosen(to);
    if (route.agent !== null) openAgent(to);
  };
  const handlers: Handlers = {
    next: () => moveSelection(1),
    previous: () => moveSelection(-1),
    open: () => openAgent(selected),
  };
  useKeys("view", handlers);
  return (
    <section class="block">
      <h3>Agents</h3>
      <Table names={["State", "Agent", "Task", "Plays", "Works on", "Turns", "Mailbox"]} label="Agents">
        {agents.map((agent, index) => (
          <tr key={agent.agent} class={index === selected ? "selected" : ""}>
            <td>
              <AgentState agent={agent} />
            </td>
            <td class="mono">
              <a
                href={formatRoute({ ...route, step: label, agent: agent.agent, view: "swarm", turn: null, pane: null })}
              >
                {agent.agent}
              </a>
            </td>
            <td class="what">
              {agent.error ? <span class="color-bad">{agent.error}</span> : agent.task}
              {agent.response && <span class="note muted">{agent.response}</span>}
            </td>
            <td class="mono">{agent.plays}</td>
            <td class="mono">{itemsOf(plan, agent.agent)}</td>
            <td class="number">{agent.turns}</td>
            <td class="number">
              {agent.received} in, {agent.sent} out
            </td>
          </tr>
        ))}
      </Table>
    </section>
  );
}

export function AgentState({ agent }: { agent: Pick<SwarmAgent, "state" | "how"> }): JSX.Element {
  const word = agent.state ?? agent.how ?? "running";
  return <StateMark state={word} mark={markOfSwarm(word)} />;
}

function itemsOf(plan: TeamPlan | null, agent: string): string {
  const items = plan?.items.filter(({ owner, state }) => owner === agent && !["done", "failed"].includes(state)) ?? [];
  return items.map(({ item }) => item).join(", ");
}

function Conflicts({ plan: { conflicts } }: { plan: TeamPlan }): JSX.Element | null {
  if (conflicts.length === 0) return null;
  return (
    <section class="block">
      <h3>Conflicts</h3>
      <Table names={["File", "Agents", "Lines"]} label="Conflicts">
        {conflicts.map(({ path, agents, certain }) => (
          <tr key={`${path} ${agents.join()}`}>
            <td class="mono">{path}</td>
            <td class="mono">{agents.join(", ")}</td>
            <td>{certain ? "the same lines" : "perhaps the same lines"}</td>
          </tr>
        ))}
      </Table>
    </section>
  );
}

function Worktrees({ plan: { worktrees } }: { plan: TeamPlan }): JSX.Element | null {
  if (worktrees.length === 0) return null;
  return (
    <section class="block">
      <h3>Worktrees</h3>
      <Table names={["Merge", "Worktree", "Members", "Merged by", "Into", "Note"]} label="Worktrees">
        {worktrees.map(({ worktree, members, manager, into, merge, commit, note }) => (
          <tr key={worktree}>
            <td>
              {merge ? <StateMark state={merge} mark={markOfSwarm(merge)} /> : <span class="muted">none yet</span>}
            </td>
            <td class="mono">{worktree}</td>
            <td class="mono">{members.join(", ")}</td>
            <td class="mono">{manager}</td>
            <td class="mono">{into}</td>
            <td>
              {note} {commit && <span class="mono muted">{commit.slice(0, 12)}</span>}
            </td>
          </tr>
        ))}
      </Table>
    </section>
  );
}

function Table({
  names,
  label,
  children,
}: {
  names: string[];
  label: string;
  children: ComponentChildren;
}): JSX.Element {
  return (
    <div class="table" tabIndex={0} role="region" aria-label={label}>
      <table>
        <thead>
          <tr>
            {names.map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}
