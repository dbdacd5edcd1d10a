// The messages of a swarm as a sequence. In: the mailboxes of its agents. Out: a row for each message, with an arrow
// from the lane of its sender to that of its receiver.

import { type Signal, signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import { getJson, stepPath } from "../api.ts";
import { formatClock, formatPlural, formatValue } from "../format.ts";
import { type Refreshable, showResource } from "../resource.ts";
import type { AgentDetails, MailboxMessage } from "../types.ts";

/** The agents whose mailboxes are read, and the messages that are shown, at most. */
const MOST_AGENTS = 40;
const MOST_MESSAGES = 500;
/** With more participants than this there are no lanes. */
const MOST_LANES = 9;
const LANE = 76;

class Mailboxes implements Refreshable {
  readonly messages: Signal<MailboxMessage[] | null> = signal(null);
  readonly #closed = new AbortController();
  #loading = false;

  constructor(
    readonly path: string,
    readonly agents: string[],
  ) {}

  refresh(): void {
    if (!this.#loading) void this.#load();
  }

  close(): void {
    this.#closed.abort();
  }

  async #load(): Promise<void> {
    this.#loading = true;
    const readAgent = (agent: string): Promise<AgentDetails> =>
      getJson<AgentDetails>(`${this.path}/agents/${encodeURIComponent(agent)}`, this.#closed.signal);
    const answers = await Promise.allSettled(this.agents.slice(0, MOST_AGENTS).map(readAgent));
    this.#loading = false;
    if (this.#closed.signal.aborted) return;
    const messages = answers.flatMap((answer) => (answer.status === "fulfilled" ? answer.value.mailbox : []));
    this.messages.value = messages.sort((a, b) => a.at - b.at);
  }
}

export function MessageSequence({
  run,
  label,
  agents,
}: {
  run: string;
  label: string;
  agents: string[];
}): JSX.Element | null {
  const names = agents.join("\n");
  const mailboxes = useMemo(() => new Mailboxes(stepPath(run, label), agents), [run, label, names]);
  useEffect(() => {
    const hide = showResource(run, mailboxes);
    mailboxes.refresh();
    return () => {
      hide();
      mailboxes.close();
    };
  }, [mailboxes]);

  const messages = mailboxes.messages.value;
  if (!messages) return null;
  const shown = messages.slice(-MOST_MESSAGES);
  const lanes = collectLanes(agents, shown);
  return (
    <section class="block">
      <h3>
        Messages <span class="muted">{formatPlural(messages.length, "message")}</span>
      </h3>
      {shown.length < messages.length && <p class="muted">The last {shown.length} are shown.</p>}
      {shown.length === 0 ? (
        <p class="muted">No agent has received a message.</p>
      ) : (
        <div class="table" tabIndex={0} role="region" aria-label="Messages">
          <table class="sequence">
            <thead>
              <tr>
                <th scope="col">At</th>
                {lanes && (
                  <th scope="col">
                    <LaneNames lanes={lanes} />
                  </th>
                )}
                <th scope="col">From, to</th>
                <th scope="col">Kind</th>
                <th scope="col">Message</th>
              </tr>
            </thead>
            <tbody>
              {shown.map((message) => (
                <tr key={`${message.to} ${message.seq}`}>
                  <td class="mono">{formatClock(message.at)}</td>
                  {lanes && (
                    <td class="lanes">
                      <Arrow lanes={lanes} message={message} />
                    </td>
                  )}
                  <td class="mono">
                    {message.from} → {message.to}
                  </td>
                  <td>
                    {message.type}
                    {!message.received && <span class="note color-wait">unread</span>}
                  </td>
                  <td class="payload">{readPayload(message.payload)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

/** The participants in the order of the agents, others last; null where there are too many for lanes. */
function collectLanes(agents: string[], messages: MailboxMessage[]): string[] | null {
  const names = new Set(messages.flatMap(({ from, to }) => [from, to]));
  const lanes = [...agents.filter((agent) => names.has(agent)), ...[...names].filter((name) => !agents.includes(name))];
  return lanes.length <= MOST_LANES ? lanes : null;
}

function LaneNames({ lanes }: { lanes: string[] }): JSX.Element {
  return (
    <span class="lane-names">
      {lanes.map((lane) => (
        <span key={lane} title={lane} style={{ width: `${LANE}px` }}>
          {lane}
        </span>
      ))}
    </span>
  );
}

function Arrow({ lanes, message }: { lanes: string[]; message: MailboxMessage }): JSX.Element {
  const place = (name: string): number => (lanes.indexOf(name) + 0.5) * LANE;
  const [from, to] = [place(message.from), place(message.to)];
  const tip = to > from ? -7 : 7;
  // The inner picture begins in the middle of the row, which may have several lines.
  return (
    <svg width={lanes.length * LANE} aria-hidden="true">
      {lanes.map((lane) => (
        <line key={lane} class="lane" x1={place(lane)} x2={place(lane)} y1="0" y2="100%" />
      ))}
      <svg y="50%">
        <circle class="arrow-tip" cx={from} cy={0} r={3} />
        <line class="arrow" x1={from} x2={to} y1={0} y2={0} />
        <path class="arrow-tip" d={`M${to} 0l${tip} -4v8Z`} />
      </svg>
    </svg>
  );
}

/** The text of a message, with the other fields behind it; the whole payload where it has none. */
function readPayload(payload: unknown): JSX.Element {
  if (typeof payload !== "object" || payload === null || !("message" in payload)) return <>{formatValue(payload)}</>;
  const others = Object.entries(payload).filter(([name]) => name !== "message");
  return (
    <>
      {formatValue(payload.message)}
      {others.map(([name, value]) => (
        <small key={name}>
          {" "}
          {name}: {typeof value === "string" ? value : JSON.stringify(value)}
        </small>
      ))}
    </>
  );
}
