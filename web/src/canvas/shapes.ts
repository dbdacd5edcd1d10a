// Outlines and texts on a canvas. In: a shape and its area, or a text and its place. Out: parts of the current path, or
// pixels.

import type { Area } from "./grid.ts";

export type Context = CanvasRenderingContext2D | OffscreenCanvasRenderingContext2D;

/** How far the slanted sides of boxes lean. */
const SLANT = 12;

/** Adds the outline of a box: what a step does shows in its outline, as in `swarmc graph`. */
export function traceShape(context: Context, shape: string, { x, y, w, h }: Area): void {
  if (shape === "agent") context.roundRect(x, y, w, h, 9);
  else if (shape === "value") tracePolygon(context, [x + SLANT, y, x + w, y, x + w - SLANT, y + h, x, y + h]);
  else if (shape === "gate") {
    const middle = y + h / 2;
    tracePolygon(context, [
      x,
      middle,
      x + SLANT,
      y,
      x + w - SLANT,
      y,
      x + w,
      middle,
      x + w - SLANT,
      y + h,
      x + SLANT,
      y + h,
    ]);
  } else {
    context.rect(x, y, w, h);
    if (shape === "call") context.rect(x + 3, y + 3, w - 6, h - 6);
  }
}

function tracePolygon(context: Context, points: number[]): void {
  tracePath(context, points);
  context.closePath();
}

/** Adds a line through points that are given as `[x0, y0, x1, y1, …]`; leaves out those that are nearer than `least`. */
export function tracePath(context: Context, points: number[], least = 0): void {
  let [lastX, lastY] = [points[0] ?? 0, points[1] ?? 0];
  context.moveTo(lastX, lastY);
  const end = points.length - 2;
  for (let at = 2; at <= end; at += 2) {
    const [x, y] = [points[at] ?? 0, points[at + 1] ?? 0];
    if (at < end && Math.abs(x - lastX) + Math.abs(y - lastY) < least) continue;
    context.lineTo(x, y);
    [lastX, lastY] = [x, y];
  }
}

/** Writes lines, one below the other, in the middle of a height. */
export function drawText(
  context: Context,
  lines: string[],
  x: number,
  y: number,
  height: number,
): void {
  context.textBaseline = "middle";
  const step = height / lines.length;
  lines.forEach((line, at) => context.fillText(line, x, y + step * (at + 0.5)));
}

/** The text, shortened until it is no wider than `width`. */
export function fitText(context: Context, text: string, width: number): string {
  const whole = context.measureText(text).width;
  if (whole <= width) return text;
  const length = Math.floor((text.length * width) / whole) - 1;
  return length > 0 ? `${text.slice(0, length)}…` : "";
}
