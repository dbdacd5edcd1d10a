// The envelopes of a run on the wires of its graph. In: how many went from box to box so far. Out: the count on each
// wire; and for each one that is new a dot that runs along its wire once.

import { FONT, type Colors } from "../theme.ts";
import type { GraphLayout, SentCount } from "../types.ts";

/** How long an envelope is on its way. */
export const FLIGHT_MS = 900;
/** The dots at once: more cannot be told apart. */
const MOST_FLIGHTS = 50;
/** The scale from which counts are legible. */
const COUNT_FROM = 0.5;
const DOT = 4.5;

interface Flight {
  wire: number;
  begun: number;
  /** Along a wire that leads both ways, against its direction. */
  back: boolean;
}

export class EnvelopeTraffic {
  /** The wires that envelopes travel, by the boxes at their ends. */
  readonly #wires = new Map<string, number>();
  #given: SentCount[] | null = null;
  #counts = new Map<string, number>();
  #totals = new Map<number, number>();
  #flights: Flight[] = [];

  constructor(readonly layout: GraphLayout) {
    const { from, to, kind } = layout.wires;
    kind.forEach((name, wire) => {
      if (name === "message") this.#wires.set(nameEnds(from[wire] ?? "", to[wire] ?? ""), wire);
    });
  }

  /** Takes the counts of a moment; with `moves`, what is new since the last ones begins to run. */
  setSent(sent: SentCount[], at: number, moves: boolean): void {
    if (sent === this.#given) return;
    const isFirst = this.#given === null;
    this.#given = sent;
    this.#totals.clear();
    for (const { from, to, count } of sent) {
      const [ahead, back] = [this.#wires.get(nameEnds(from, to)), this.#wires.get(nameEnds(to, from))];
      const wire = ahead ?? back;
      if (wire === undefined) continue;
      this.#totals.set(wire, (this.#totals.get(wire) ?? 0) + count);
      const ends = nameEnds(from, to);
      const isNew = count > (this.#counts.get(ends) ?? 0);
      this.#counts.set(ends, count);
      if (isNew && !isFirst && moves && this.#flights.length < MOST_FLIGHTS) {
        this.#flights.push({ wire, begun: at, back: ahead === undefined });
      }
    }
  }

  /** Where the envelopes are that are on their way, in the picture. */
  placeFlights(at: number): [number, number][] {
    this.#flights = this.#flights.filter(({ begun }) => at < begun + FLIGHT_MS);
    return this.#flights.map(({ wire, begun, back }) => {
      const part = Math.max(0, (at - begun) / FLIGHT_MS);
      return pointAlong(this.layout.wires.path[wire] ?? [], back ? 1 - part : part);
    });
  }

  /** Where the left edge of a count is, and its middle: behind the label of the wire, or in the middle of the wire. */
  #placeCount(wire: number): [number, number] {
    const label = this.layout.wires.label_at[wire];
    if (label) return [label[0] + label[2] + 2, label[1] + label[3] / 2];
    return pointAlong(this.layout.wires.path[wire] ?? [], 0.5);
  }

  /** Draws counts and dots; whether a dot is still on its way. */
  draw(context: CanvasRenderingContext2D, at: number, colors: Colors, scale: number): boolean {
    if (scale >= COUNT_FROM) {
      context.font = `600 10px ${FONT}`;
      context.textAlign = "center";
      context.textBaseline = "middle";
      for (const [wire, total] of this.#totals) drawCount(context, this.#placeCount(wire), total, colors);
    }
    const places = this.placeFlights(at);
    context.fillStyle = colors.message;
    for (const [x, y] of places) {
      context.beginPath();
      context.arc(x, y, DOT / Math.min(1, scale), 0, 2 * Math.PI);
      context.fill();
    }
    return places.length > 0;
  }
}

function drawCount(context: CanvasRenderingContext2D, [x, y]: [number, number], total: number, colors: Colors): void {
  const width = context.measureText(String(total)).width + 10;
  context.beginPath();
  context.roundRect(x, y - 7.5, width, 15, 7.5);
  context.fillStyle = colors.page;
  context.fill();
  context.strokeStyle = colors.message;
  context.lineWidth = 1;
  context.stroke();
  context.fillStyle = colors.text;
  context.fillText(String(total), x + width / 2, y + 0.5);
}

function nameEnds(from: string, to: string): string {
  return `${from} ${to}`;
}

/** The point at a part of the length of a line in pieces, each as `[x0, y0, x1, y1, …]`. */
export function pointAlong(path: number[][], part: number): [number, number] {
  const lines: [number, number, number, number, number][] = [];
  let length = 0;
  for (const points of path) {
    for (let at = 2; at + 1 < points.length; at += 2) {
      const [x0, y0, x1, y1] = [points[at - 2] ?? 0, points[at - 1] ?? 0, points[at] ?? 0, points[at + 1] ?? 0];
      const size = Math.hypot(x1 - x0, y1 - y0);
      lines.push([x0, y0, x1, y1, size]);
      length += size;
    }
  }
  let left = length * part;
  for (const [x0, y0, x1, y1, size] of lines) {
    if (left <= size && size > 0) return [x0 + ((x1 - x0) * left) / size, y0 + ((y1 - y0) * left) / size];
    left -= size;
  }
  const last = lines.at(-1);
  return last ? [last[2], last[3]] : [path[0]?.[0] ?? 0, path[0]?.[1] ?? 0];
}
