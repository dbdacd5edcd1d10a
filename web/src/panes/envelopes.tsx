// The panes of envelopes: what came in, what went out, and what each turn read. In: the envelopes of a step. Out: each
// one as it was sent.

import type { JSX } from "preact";
import { formatClock, formatValue } from "../format.ts";
import { Empty } from "../parts/load.tsx";
import type { ReceivedEnvelope } from "../types.ts";
import type { PaneProps } from "./table.tsx";

export function IncomingPane({ details: { incoming } }: PaneProps): JSX.Element {
  if (incoming.length === 0) return <Empty>No envelope has come in.</Empty>;
  return (
    <>
      {incoming.map(({ at, read_in: readIn, envelope }, index) => (
        <Envelope
          key={index}
          at={at}
          envelope={envelope}
          other="fromNodeId"
          note={readIn === null ? "not read yet" : `read in attempt ${readIn}`}
        />
      ))}
    </>
  );
}

export function OutgoingPane({ details: { outgoing } }: PaneProps): JSX.Element {
  if (outgoing.length === 0) return <Empty>The step has sent no envelope.</Empty>;
  return (
    <>
      {outgoing.map(({ at, sent_in: sentIn, envelope }, index) => (
        <Envelope
          key={index}
          at={at}
          envelope={envelope}
          other="toNodeId"
          note={sentIn === null ? "sent by the run" : `sent in attempt ${sentIn}`}
        />
      ))}
    </>
  );
}

export function InputsPane({ details: { incoming } }: PaneProps): JSX.Element {
  const turns = new Map<number, ReceivedEnvelope[]>();
  for (const received of incoming) {
    if (received.read_in === null) continue;
    turns.set(received.read_in, [...(turns.get(received.read_in) ?? []), received]);
  }
  if (turns.size === 0) return <Empty>No attempt has read an envelope.</Empty>;
  return (
    <>
      {[...turns]
        .sort(([a], [b]) => a - b)
        .map(([turn, read]) => (
          <section class="block" key={turn}>
            <h3>Attempt {turn} read</h3>
            {read.map(({ at, envelope }, index) => (
              <Envelope key={index} at={at} envelope={envelope} other="fromNodeId" note="" />
            ))}
          </section>
        ))}
    </>
  );
}

interface EnvelopeProps {
  at: number;
  envelope: unknown;
  /** The field that names the other side. */
  other: "fromNodeId" | "toNodeId";
  note: string;
}

function Envelope({ at, envelope, other, note }: EnvelopeProps): JSX.Element {
  const readField = (name: string): string => {
    const value = typeof envelope === "object" && envelope !== null ? (envelope as Record<string, unknown>)[name] : "";
    return typeof value === "string" ? value : "";
  };
  return (
    <details open class="card">
      <summary>
        <span class="mono strong">{readField("id")}</span> {readField("kind")} {other === "fromNodeId" ? "from" : "to"}{" "}
        <span class="mono">{readField(other)}</span>
        <span class="spacer" />
        <span class="muted">
          {note} {formatClock(at)}
        </span>
      </summary>
      <pre class="text" tabIndex={0} role="region" aria-label={`Envelope ${readField("id")}`}>
        {formatValue(envelope)}
      </pre>
    </details>
  );
}
