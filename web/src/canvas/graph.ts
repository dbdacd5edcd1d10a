// The picture of a run's graph. In: the layout and the states of its boxes. Out: pixels, and which box is where.
//
// There are three levels of detail: far away, boxes are dots of colour; nearer, boxes have outlines and wires; near,
// they have text.

import { markOf, markOfSwarm } from "../states.ts";
import { type Colors, MONO } from "../theme.ts";
import type { BoxState, Connection, GraphLayout } from "../types.ts";
import { Backdrop } from "./backdrop.ts";
import type { Camera } from "./camera.ts";
import { type Area, Grid, touches } from "./grid.ts";
import { type Context, drawText, fitText, tracePath, traceShape } from "./shapes.ts";

const WIRES_FROM = 0.15;
const SHAPES_FROM = 0.3;
const TEXT_FROM = 0.5;
/** The least length in pixels of the pieces that a wire is drawn with. */
const LEAST_PIECE = 3;
/** The least size in pixels of a box that failed or waits, so that it is seen from far away. */
const LEAST_DOT = 4;
/** The least width in pixels of a frame whose title is written. */
const LEAST_TITLE = 60;
/** The least size in pixels of the title of a frame: from far away, over the boxes, and nearer, behind them. */
const FAR_TITLE = 11;
const NEAR_TITLE = 8;
/** How far the state of a narrow box reaches beyond its left edge. */
const MOST_OVERHANG = 24;
const NAME_FONT = `13px ${MONO}`;
const LINE_FONT = `11px ${MONO}`;
const TAG_FONT = `600 10px ${MONO}`;
const URGENT = new Set(["failed", "waiting", "stalled"]);
const PENDING: BoxState = { state: "pending", label: null, counts: {}, progress: null };

export class GraphPicture {
  readonly #boxes: Grid;
  readonly #wires: Grid;
  readonly #backdrop = new Backdrop();
  #states: BoxState[];
  /** The document of the states, and how many there were. */
  #given: Record<string, BoxState> | null = null;
  #version = 1;
  /** The connections to agents, by the step that has one. */
  #connections = new Map<string, Connection>();

  constructor(readonly layout: GraphLayout) {
    const { boxes, wires } = layout;
    this.#boxes = new Grid(boxes.id.length, (index) => this.areaOf(index));
    const bounds = wires.path.map(boundPath);
    this.#wires = new Grid(bounds.length, (index) => bounds[index] ?? { x: 0, y: 0, w: 0, h: 0 });
    this.#states = boxes.id.map(() => PENDING);
  }

  setStates(states: Record<string, BoxState>): void {
    if (states === this.#given) return;
    this.#given = states;
    this.#version += 1;
    this.#states = this.layout.boxes.id.map((id) => states[id] ?? PENDING);
  }

  setConnections(connections: Connection[]): void {
    this.#connections = new Map(connections.map((connection) => [connection.step, connection]));
  }

  /** How the run stands with the agent of a box; null where it has none, or is over. */
  connectionOf(box: number): Connection | null {
    const { label } = this.stateOf(box);
    const connection = label === null ? undefined : this.#connections.get(label);
    return connection && connection.state !== "over" ? connection : null;
  }

  get count(): number {
    return this.layout.boxes.id.length;
  }

  stateOf(box: number): BoxState {
    return this.#states[box] ?? PENDING;
  }

  areaOf(box: number): Area {
    const { x, y, w, h } = this.layout.boxes;
    return { x: x[box] ?? 0, y: y[box] ?? 0, w: w[box] ?? 0, h: h[box] ?? 0 };
  }

  /** The area of the box or the frame of this id; null where there is none. */
  areaOfId(id: string): Area | null {
    const box = this.layout.boxes.id.indexOf(id);
    if (box >= 0) return this.areaOf(box);
    const frame = this.layout.frames.id.indexOf(id);
    return frame >= 0 ? this.#frameArea(frame) : null;
  }

  /** The step whose items are one box, or boxes in a frame, by its name, and the id of that box or frame. */
  openable(box: number): { name: string; id: string } | null {
    const { id, step, many } = this.layout.boxes;
    const own = id[box] ?? "";
    const name = step[box];
    if (many[box] && name) return { name, id: own };
    const frame = /^(.*?)\[/.exec(own)?.[1];
    const place = frame === undefined ? -1 : this.layout.frames.id.indexOf(frame);
    const title = this.layout.frames.title[place];
    return frame !== undefined && title ? { name: title, id: frame } : null;
  }

  hit(x: number, y: number): number {
    return this.#boxes.hit(x, y);
  }

  /** The boxes that an area shows. */
  visibleBoxes(area: Area): number[] {
    const found: number[] = [];
    this.#boxes.visit(area, (box) => found.push(box));
    return found;
  }

  /** The nearest box in a direction, or the same one where there is none. */
  neighbor(box: number, dx: number, dy: number): number {
    const from = centerOf(this.areaOf(box));
    let best = box;
    let least = Infinity;
    for (let other = 0; other < this.count; other += 1) {
      const to = centerOf(this.areaOf(other));
      const [along, across] = [
        (to.x - from.x) * dx + (to.y - from.y) * dy,
        (to.x - from.x) * dy + (to.y - from.y) * dx,
      ];
      if (other === box || along < 1) continue;
      const distance = along + 2.5 * Math.abs(across);
      if (distance < least) [best, least] = [other, distance];
    }
    return best;
  }

  draw(context: CanvasRenderingContext2D, camera: Camera, colors: Colors, selected: number, ratio: number): void {
    const { scale } = camera;
    const unit = ratio * scale;
    const [left, top] = [Math.round(camera.x * unit), Math.round(camera.y * unit)];
    const { width, height } = context.canvas;
    // From far away the boxes are so many that they are drawn once a state, as what lies behind them is.
    const isFar = scale < WIRES_FROM;
    const place = { left, top, width, height, unit, colors, version: isFar ? this.#version : 0 };
    const backdrop = this.#backdrop.draw(place, (part, area) => {
      part.fillStyle = colors.page;
      part.fillRect(area.x, area.y, area.w, area.h);
      const frames = this.#drawFrames(part, area, colors, scale);
      if (isFar) this.#drawDots(part, this.visibleBoxes(area), colors, scale);
      for (const frame of frames) this.#drawTitle(part, frame, colors, scale);
      if (!isFar) this.#drawWires(part, area, colors, scale);
    });
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.drawImage(backdrop, 0, 0);
    context.setTransform(unit, 0, 0, unit, -left, -top);
    if (selected >= 0) this.#drawSelection(context, selected, colors, scale);
    if (!isFar) this.#drawBoxes(context, this.visibleBoxes(camera.area()), colors, scale);
  }

  #frameArea(frame: number): Area {
    const { x, y, w, h } = this.layout.frames;
    return { x: x[frame] ?? 0, y: y[frame] ?? 0, w: w[frame] ?? 0, h: h[frame] ?? 0 };
  }

  /** Draws the frames that are seen, the outer ones first, and returns them. */
  #drawFrames(context: Context, area: Area, colors: Colors, scale: number): number[] {
    const seen = this.layout.frames.id
      .map((_, frame) => frame)
      .filter((frame) => touches(this.#frameArea(frame), area));
    context.lineWidth = 1 / Math.min(scale, 1);
    context.fillStyle = colors.surface;
    context.strokeStyle = colors.line;
    for (const frame of seen) {
      const { x, y, w, h } = this.#frameArea(frame);
      context.beginPath();
      context.roundRect(x, y, w, h, 8);
      context.fill();
      context.stroke();
    }
    return seen;
  }

  /** Writes the title of a frame; from far away it keeps a legible size, over the boxes. */
  #drawTitle(context: Context, frame: number, colors: Colors, scale: number): void {
    const { title, notes } = this.layout.frames;
    const { x, y, w } = this.#frameArea(frame);
    if (w * scale < LEAST_TITLE) return;
    context.textAlign = "left";
    context.textBaseline = "middle";
    const size = Math.max(12, (scale < WIRES_FROM ? FAR_TITLE : NEAR_TITLE) / scale);
    context.font = `600 ${size}px ${MONO}`;
    const far = scale < TEXT_FROM;
    const words = fitText(context, title[frame] ?? "", w - 20);
    if (scale < WIRES_FROM) {
      context.fillStyle = colors.page;
      context.fillRect(x, y, context.measureText(words).width + size, size * 1.5);
    }
    context.fillStyle = colors.muted;
    context.fillText(words, x + (far ? size / 2 : 10), y + Math.max(17, far ? size * 0.8 : 0));
    if (far) return;
    context.font = LINE_FONT;
    notes[frame]?.forEach((note, at) => context.fillText(note, x + 10, y + 33 + at * 15));
  }

  #drawDots(context: Context, boxes: number[], colors: Colors, scale: number): void {
    const { x, y, w, h } = this.layout.boxes;
    for (const [state, group] of this.#groupBoxes(boxes)) {
      const least = URGENT.has(state) ? LEAST_DOT / scale : 1 / scale;
      context.fillStyle = state === "pending" ? colors.line : colors[markOf(state).color];
      for (const box of group) {
        context.fillRect(x[box] ?? 0, y[box] ?? 0, Math.max(w[box] ?? 0, least), Math.max(h[box] ?? 0, least));
      }
    }
  }

  /** Boxes by state, the urgent ones last, so that they are drawn over the others. */
  #groupBoxes(boxes: number[]): [string, number[]][] {
    const groups = new Map<string, number[]>();
    for (const box of boxes) {
      const { state } = this.stateOf(box);
      const group = groups.get(state);
      if (group) group.push(box);
      else groups.set(state, [box]);
    }
    return [...groups].sort(([a], [b]) => Number(URGENT.has(a)) - Number(URGENT.has(b)));
  }

  #drawWires(context: Context, area: Area, colors: Colors, scale: number): void {
    const { kind, path, label, label_at: labelAt } = this.layout.wires;
    const tips = scale >= WIRES_FROM * 2;
    const kinds = { order: colors.quiet, message: colors.message, again: colors.good };
    const groups: Record<keyof typeof kinds, number[]> = { order: [], message: [], again: [] };
    this.#wires.visit(area, (wire) => groups[kind[wire] ?? "order"].push(wire));
    context.lineWidth = Math.max(1, 0.7 / scale);
    for (const [name, wires] of Object.entries(groups) as [keyof typeof kinds, number[]][]) {
      if (wires.length === 0) continue;
      context.strokeStyle = kinds[name];
      context.setLineDash(name === "message" && tips ? [5, 3] : []);
      context.beginPath();
      for (const wire of wires) for (const part of path[wire] ?? []) tracePath(context, part, LEAST_PIECE / scale);
      context.stroke();
      if (!tips) continue;
      context.setLineDash([]);
      context.fillStyle = kinds[name];
      context.beginPath();
      for (const wire of wires) traceTip(context, path[wire]?.at(-1) ?? []);
      context.fill();
    }
    context.setLineDash([]);
    if (scale < TEXT_FROM) return;
    context.font = LINE_FONT;
    context.fillStyle = colors.muted;
    context.textAlign = "center";
    for (const wires of Object.values(groups)) {
      for (const wire of wires) {
        const [text, at] = [label[wire], labelAt[wire]];
        if (text && at) drawText(context, text.split("\n"), at[0] + at[2] / 2, at[1], at[3]);
      }
    }
  }

  #drawBoxes(context: CanvasRenderingContext2D, boxes: number[], colors: Colors, scale: number): void {
    const { shape, many } = this.layout.boxes;
    const text = scale >= TEXT_FROM;
    for (const [state, group] of this.#groupBoxes(boxes)) {
      // From far away no dashes tell what has not begun, since thousands of them take long to draw.
      const color = state === "pending" && !text ? colors.line : colors[markOf(state).color];
      context.strokeStyle = color;
      context.lineWidth = (URGENT.has(state) || state === "running" ? 2 : 1.2) / Math.min(1, scale * 1.6);
      context.setLineDash(state === "pending" && text ? [4, 3] : []);
      context.beginPath();
      for (const box of group) {
        const area = this.areaOf(box);
        if (scale < SHAPES_FROM) {
          context.rect(area.x, area.y, area.w, area.h);
          continue;
        }
        if (many[box]) traceShape(context, shape[box] ?? "", { ...area, x: area.x + 4, y: area.y + 4 });
        traceShape(context, shape[box] ?? "", area);
      }
      context.fillStyle = colors.raised;
      context.fill();
      if (!text && state !== "pending") {
        context.globalAlpha = 0.35;
        context.fillStyle = color;
        context.fill();
        context.globalAlpha = 1;
      }
      context.stroke();
    }
    context.setLineDash([]);
    if (text) for (const box of boxes) this.#drawContents(context, box, colors);
  }

  #drawContents(context: CanvasRenderingContext2D, box: number, colors: Colors): void {
    const area = this.areaOf(box);
    const [name = "", ...rest] = this.layout.boxes.lines[box] ?? [];
    const { state, counts, progress } = this.stateOf(box);
    const middle = area.x + area.w / 2;
    const top = area.y + (area.h - 20 - rest.length * 15) / 2 + 10;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.font = NAME_FONT;
    context.fillStyle = colors.text;
    context.fillText(name, middle, top);
    context.font = LINE_FONT;
    context.fillStyle = colors.muted;
    rest.forEach((line, at) => context.fillText(line, middle, top + 16 + at * 15));
    if (this.layout.boxes.many[box]) drawStrip(context, area, counts, colors);
    if (state !== "pending") drawTag(context, area, state, colors);
    const connection = this.connectionOf(box);
    // That the agent of a step that has ended is gone, its state says already.
    const isGone = connection?.state === "disconnected" && ENDED.has(state);
    if (connection && !isGone) drawConnection(context, area, connection, colors);
    if (progress) {
      context.font = LINE_FONT;
      context.textAlign = "left";
      const words = fitText(context, progress, area.w + 20);
      context.fillStyle = colors.page;
      context.fillRect(area.x + 6, area.y + area.h - 7, context.measureText(words).width + 6, 14);
      context.fillStyle = colors.muted;
      context.fillText(words, area.x + 9, area.y + area.h + 0.5);
    }
  }

  #drawSelection(context: CanvasRenderingContext2D, box: number, colors: Colors, scale: number): void {
    const { x, y, w, h } = this.areaOf(box);
    const gap = 4 / Math.min(scale, 1);
    context.lineWidth = 2.5 / Math.min(scale, 1);
    context.strokeStyle = colors.accent;
    context.beginPath();
    context.roundRect(x - gap, y - gap, w + 2 * gap, h + 2 * gap, 3 * gap);
    context.stroke();
  }
}

const ENDED = new Set(["succeeded", "failed", "skipped", "cancelled"]);

/** The state of a box, over the left of its upper edge: shape and word. Arrows end in the middle of the edge. */
function drawTag(context: CanvasRenderingContext2D, { x: left, y, w }: Area, state: string, colors: Colors): void {
  const mark = markOf(state);
  context.font = TAG_FONT;
  context.textAlign = "left";
  const width = context.measureText(mark.word).width + 22;
  const x = Math.max(left - MOST_OVERHANG, Math.min(left + 8, left + w / 2 - width - 6));
  context.fillStyle = colors.page;
  context.strokeStyle = colors[mark.color];
  context.lineWidth = 1;
  context.beginPath();
  context.roundRect(x, y - 8, width, 16, 8);
  context.fill();
  context.stroke();
  context.fillStyle = colors[mark.color];
  context.fillText(mark.word, x + 17, y + 0.5);
  context.save();
  context.translate(x + 5, y - 4.5);
  context.scale(0.75, 0.75);
  context.fill(markPath(mark.path), "evenodd");
  context.restore();
}

/** The connection to an agent, on the right of the upper edge: a disc while it works, a ring while it waits, crossed where it is gone. */
function drawConnection(context: CanvasRenderingContext2D, area: Area, { state }: Connection, colors: Colors): void {
  const [x, y, radius] = [area.x + area.w - 10, area.y, 4.5];
  const color = colors[markOfSwarm(state).color];
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.fillStyle = state === "connected" ? color : colors.page;
  context.fill();
  context.strokeStyle = color;
  context.lineWidth = 1.5;
  if (state === "disconnected") {
    context.moveTo(x - radius, y + radius);
    context.lineTo(x + radius, y - radius);
  }
  context.stroke();
}

/** The states of the items of a for-each, as parts of a strip along the lower edge. */
function drawStrip(context: CanvasRenderingContext2D, area: Area, counts: BoxState["counts"], colors: Colors): void {
  const parts = Object.entries(counts);
  const total = parts.reduce((sum, [, count]) => sum + count, 0);
  if (total === 0) return;
  const width = area.w - 16;
  const gap = total <= width / 4 ? 1 : 0;
  let done = 0;
  for (const [state, count] of parts) {
    context.fillStyle = state === "pending" ? colors.line : colors[markOf(state).color];
    for (let item = 0; item < (gap ? count : 1); item += 1) {
      const size = (width * (gap ? 1 : count)) / total;
      context.fillRect(area.x + 8 + done, area.y + area.h - 9, Math.max(size - gap, 0.5), 4);
      done += size;
    }
  }
}

const paths = new Map<string, Path2D>();

export function markPath(path: string): Path2D {
  const known = paths.get(path) ?? new Path2D(path);
  paths.set(path, known);
  return known;
}

function traceTip(context: Context, part: number[]): void {
  const end = part.length - 2;
  const [x0, y0, x, y] = [part[end - 2], part[end - 1], part[end], part[end + 1]];
  if (x0 === undefined || y0 === undefined || x === undefined || y === undefined) return;
  const length = Math.hypot(x - x0, y - y0) || 1;
  const [dx, dy] = [((x - x0) / length) * 7, ((y - y0) / length) * 7];
  context.moveTo(x, y);
  context.lineTo(x - dx - dy / 2, y - dy + dx / 2);
  context.lineTo(x - dx + dy / 2, y - dy - dx / 2);
}

function boundPath(parts: number[][]): Area {
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
  for (const part of parts) {
    for (let at = 0; at + 1 < part.length; at += 2) {
      const [x = 0, y = 0] = [part[at], part[at + 1]];
      [left, right, top, bottom] = [Math.min(left, x), Math.max(right, x), Math.min(top, y), Math.max(bottom, y)];
    }
  }
  return left === Infinity ? { x: 0, y: 0, w: 0, h: 0 } : { x: left, y: top, w: right - left, h: bottom - top };
}

function centerOf({ x, y, w, h }: Area): { x: number; y: number } {
  return { x: x + w / 2, y: y + h / 2 };
}
