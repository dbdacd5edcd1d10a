// The picture of a run's timeline. In: rows of bars and a time scale. Out: pixels, and which row is where.

import { formatDuration } from "../format.ts";
import { markOf } from "../states.ts";
import { type Colors, FONT, MONO } from "../theme.ts";
import type { Bar, BarPart, Timeline } from "../types.ts";
import { markPath } from "./graph.ts";
import { buildScale, isIdle, tickTimes, type TimeScale } from "./scale.ts";
import { fitText } from "./shapes.ts";

export const ROW_HEIGHT = 24;
export const AXIS_HEIGHT = 28;
const TICK_SPACE = 110;
const LEAST_BAR = 2;
/** The height of a part within its bar: turns lie in the upper half, tools in the lower one. */
const PART_HEIGHT = 5;
/** From this width on a part has a gap behind it. */
const GAP_FROM = 4;

export interface TimelineView {
  width: number;
  height: number;
  /** The pixels that are scrolled away above. */
  top: number;
  /** The width of the names of the rows. */
  names: number;
  /** How much of the axis is seen: 1 is all of it. */
  zoom: number;
  /** The place on the axis at the left edge. */
  offset: number;
  selected: number;
}

export class TimelinePicture {
  /** The names of the rows: steps of later rounds have their round in it. */
  readonly names: string[];
  readonly #bars: Bar[][];
  readonly #parts: BarPart[][];
  readonly #scale: TimeScale;

  constructor(
    readonly timeline: Timeline,
    readonly fold: boolean,
  ) {
    const rounds = new Map<string, number>();
    this.names = timeline.rows.map((row) => {
      const round = (rounds.get(row) ?? 0) + 1;
      rounds.set(row, round);
      return round > 1 ? `${row} round ${round}` : row;
    });
    this.#bars = timeline.rows.map(() => []);
    for (const bar of timeline.bars) this.#bars[bar[0]]?.push(bar);
    this.#parts = timeline.rows.map(() => []);
    for (const part of timeline.parts) this.#parts[part[0]]?.push(part);
    this.#scale = buildScale(timeline.bars, timeline.from, this.#end(), fold);
  }

  #end(): number {
    const open = this.timeline.bars.some((bar) => bar[2] === null);
    return open ? Math.max(this.timeline.to, this.timeline.now) : this.timeline.to;
  }

  barsOf(row: number): readonly Bar[] {
    return this.#bars[row] ?? [];
  }

  partsOf(row: number): readonly BarPart[] {
    return this.#parts[row] ?? [];
  }

  /** The turn or the tool of a row that is at a place on the screen, the innermost one. */
  partAt(row: number, x: number, view: TimelineView): BarPart | null {
    const end = this.#end();
    const holds = (part: BarPart): boolean => {
      const [from, to] = this.#spanOf(view, part, end);
      return from <= x && x <= Math.max(to, from + LEAST_BAR);
    };
    const found = this.partsOf(row).filter(holds);
    return found.find((part) => part[3] === "tool") ?? found[0] ?? null;
  }

  /** Where a bar or a part begins and ends on the screen. */
  #spanOf(view: TimelineView, [, start, stop]: Bar | BarPart, end: number): [number, number] {
    return [this.#x(view, this.#scale.place(start)), this.#x(view, this.#scale.place(stop ?? end))];
  }

  draw(context: CanvasRenderingContext2D, view: TimelineView, colors: Colors, ratio: number): void {
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = colors.page;
    context.fillRect(0, 0, view.width, view.height);
    context.textBaseline = "middle";
    context.save();
    context.beginPath();
    context.rect(view.names, 0, view.width - view.names, view.height);
    context.clip();
    this.#drawAxis(context, view, colors);
    this.#drawRows(context, view, colors, ratio);
    context.restore();
    this.#drawNames(context, view, colors);
  }

  #x(view: TimelineView, place: number): number {
    return view.names + (place - view.offset) * view.zoom * (view.width - view.names);
  }

  #drawAxis(context: CanvasRenderingContext2D, view: TimelineView, colors: Colors): void {
    context.font = `11px ${FONT}`;
    context.textAlign = "left";
    context.strokeStyle = colors.line;
    context.lineWidth = 1;
    const middle = AXIS_HEIGHT / 2;
    for (const segment of this.#scale.segments) {
      const x = this.#x(view, segment.at);
      const width = this.#x(view, segment.at + segment.width) - x;
      if (segment.folded) {
        context.fillStyle = colors.surface;
        context.fillRect(x, 0, width, view.height);
        context.fillStyle = colors.muted;
        const words = formatDuration(segment.to - segment.from);
        if (context.measureText(words).width + 4 < width) context.fillText(words, x + 2, middle);
        continue;
      }
      context.fillStyle = colors.muted;
      context.beginPath();
      let free = x;
      for (const time of tickTimes(segment, this.timeline.from, width / TICK_SPACE)) {
        const at = Math.round(this.#x(view, this.#scale.place(time))) + 0.5;
        context.moveTo(at, AXIS_HEIGHT - 6);
        context.lineTo(at, view.height);
        const words = time === this.timeline.from ? "0" : `+${formatDuration(time - this.timeline.from)}`;
        const end = at + 4 + context.measureText(words).width;
        if (at < free || end > x + width) continue;
        context.fillText(words, at + 4, middle);
        free = end + 8;
      }
      context.stroke();
    }
  }

  /** The rows that are seen: the first and the one after the last. */
  visibleRows({ top, height }: Pick<TimelineView, "top" | "height">): [number, number] {
    const first = Math.max(0, Math.floor(top / ROW_HEIGHT));
    return [first, Math.min(this.timeline.rows.length, Math.ceil((top + height - AXIS_HEIGHT) / ROW_HEIGHT))];
  }

  #drawRows(context: CanvasRenderingContext2D, view: TimelineView, colors: Colors, ratio: number): void {
    const [first, last] = this.visibleRows(view);
    const end = this.#end();
    context.save();
    context.beginPath();
    context.rect(view.names, AXIS_HEIGHT, view.width - view.names, view.height - AXIS_HEIGHT);
    context.clip();
    context.font = `600 11px ${FONT}`;
    for (let row = first; row < last; row += 1) {
      const y = AXIS_HEIGHT + row * ROW_HEIGHT - view.top;
      for (const bar of this.barsOf(row)) {
        const x = this.#x(view, this.#scale.place(bar[1]));
        const width = Math.max(LEAST_BAR, this.#x(view, this.#scale.place(bar[2] ?? end)) - x);
        if (x + width < view.names || x > view.width) continue;
        this.#drawBar(context, bar, { x, y: y + 4, width, left: view.names }, colors, ratio);
      }
      for (const part of this.partsOf(row)) this.#drawPart(context, part, y + 4, view, colors);
    }
    context.restore();
  }

  #drawBar(
    context: CanvasRenderingContext2D,
    [, , , state, attempt]: Bar,
    { x, y, width, left }: { x: number; y: number; width: number; left: number },
    colors: Colors,
    ratio: number,
  ): void {
    const mark = markOf(state);
    const color = colors[mark.color];
    const height = ROW_HEIGHT - 8;
    context.beginPath();
    context.roundRect(x, y, width, height, Math.min(3, width / 2));
    context.fillStyle = colors.raised;
    context.fill();
    context.fillStyle = isIdle(state) ? hatch(context, color, ratio) : color;
    context.globalAlpha = isIdle(state) ? 0.7 : 0.28;
    context.fill();
    context.globalAlpha = 1;
    context.strokeStyle = color;
    context.lineWidth = 1;
    context.stroke();
    const start = Math.max(x, left);
    const room = x + width - start;
    if (room < 18) return;
    context.fillStyle = color;
    context.save();
    context.translate(start + 4, y + 3.5);
    context.scale(0.75, 0.75);
    context.fill(markPath(mark.path), "evenodd");
    context.restore();
    if (room < 50 || isIdle(state)) return;
    context.fillStyle = colors.text;
    const words = attempt > 1 ? `${mark.word}, attempt ${attempt}` : mark.word;
    context.fillText(fitText(context, words, room - 24), start + 18, y + height / 2 + 0.5);
  }

  /** A turn is a strip along the upper edge of its bar, a tool one along the lower edge. */
  #drawPart(context: CanvasRenderingContext2D, part: BarPart, y: number, view: TimelineView, colors: Colors): void {
    const [from, to] = this.#spanOf(view, part, this.#end());
    if (to < view.names || from > view.width) return;
    const width = Math.max(LEAST_BAR, to - from);
    const height = ROW_HEIGHT - 8;
    context.fillStyle = colors[markOf(part[5]).color];
    context.fillRect(
      from,
      part[3] === "turn" ? y : y + height - PART_HEIGHT,
      width > GAP_FROM ? width - 1 : width,
      part[3] === "turn" ? PART_HEIGHT - 2 : PART_HEIGHT,
    );
  }

  #drawNames(context: CanvasRenderingContext2D, view: TimelineView, colors: Colors): void {
    const [first, last] = this.visibleRows(view);
    context.save();
    context.beginPath();
    context.rect(0, AXIS_HEIGHT, view.width, view.height - AXIS_HEIGHT);
    context.clip();
    context.textAlign = "left";
    context.font = `12px ${MONO}`;
    for (let row = first; row < last; row += 1) {
      const y = AXIS_HEIGHT + row * ROW_HEIGHT - view.top;
      if (row === view.selected) {
        context.strokeStyle = colors.accent;
        context.lineWidth = 2;
        context.strokeRect(1, y + 1, view.width - 2, ROW_HEIGHT - 2);
      }
      context.fillStyle = colors.text;
      context.fillText(fitText(context, this.names[row] ?? "", view.names - 16), 10, y + ROW_HEIGHT / 2);
    }
    context.restore();
    context.strokeStyle = colors.line;
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(0, AXIS_HEIGHT + 0.5);
    context.lineTo(view.width, AXIS_HEIGHT + 0.5);
    context.moveTo(view.names + 0.5, 0);
    context.lineTo(view.names + 0.5, view.height);
    context.stroke();
  }
}

const hatches = new Map<string, CanvasPattern>();

/** A pattern of slanted lines, for time in which nothing works. */
function hatch(context: CanvasRenderingContext2D, color: string, ratio: number): CanvasPattern | string {
  const key = `${color} ${ratio}`;
  const known = hatches.get(key);
  if (known) return known;
  const tile = new OffscreenCanvas(6, 6);
  const lines = tile.getContext("2d");
  if (!lines) return color;
  lines.strokeStyle = color;
  lines.lineWidth = 1.4;
  lines.beginPath();
  for (const shift of [-6, 0, 6]) {
    lines.moveTo(shift, 6);
    lines.lineTo(shift + 6, 0);
  }
  lines.stroke();
  const pattern = context.createPattern(tile, "repeat");
  if (pattern) hatches.set(key, pattern);
  return pattern ?? color;
}
