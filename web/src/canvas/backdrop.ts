// A picture that is kept from frame to frame. In: where the camera is, and a function that draws a part of the picture. Out:
// a canvas. Where the camera has only moved, the canvas is moved too, and only what has come into sight is drawn.

import type { Colors } from "../theme.ts";
import type { Area } from "./grid.ts";

/** A place in the picture, in whole pixels of the screen; `unit` is how many of them a unit of the picture has. */
export interface Place {
  left: number;
  top: number;
  width: number;
  height: number;
  unit: number;
  colors: Colors;
  /** Another number stands for another picture. */
  version: number;
}

/** How far lines and tips may reach beyond what they belong to. */
const MARGIN = 32;

export class Backdrop {
  readonly #canvas = new OffscreenCanvas(1, 1);
  #at: Place | null = null;

  /** The picture at a place; `paint` draws what shows in an area of it, to which the context is clipped. */
  draw(to: Place, paint: (context: OffscreenCanvasRenderingContext2D, area: Area) => void): OffscreenCanvas {
    const context = this.#canvas.getContext("2d", { alpha: false });
    if (!context) return this.#canvas;
    const parts = listUnseen(this.#at, to);
    const [dx, dy] = [(this.#at?.left ?? 0) - to.left, (this.#at?.top ?? 0) - to.top];
    if (this.#canvas.width !== to.width || this.#canvas.height !== to.height) {
      this.#canvas.width = to.width;
      this.#canvas.height = to.height;
    }
    this.#at = to;
    context.setTransform(1, 0, 0, 1, 0, 0);
    if (dx !== 0 || dy !== 0) context.drawImage(this.#canvas, dx, dy);
    for (const { x, y, w, h } of parts) {
      context.save();
      context.beginPath();
      context.rect(x, y, w, h);
      context.clip();
      context.setTransform(to.unit, 0, 0, to.unit, -to.left, -to.top);
      const [left, top] = [x + to.left - MARGIN, y + to.top - MARGIN];
      const [across, down] = [w + 2 * MARGIN, h + 2 * MARGIN];
      paint(context, { x: left / to.unit, y: top / to.unit, w: across / to.unit, h: down / to.unit });
      context.restore();
    }
    return this.#canvas;
  }
}

/** The parts of the screen that show at one place what they do not show at the other, in pixels of the screen. */
export function listUnseen(from: Place | null, to: Place): Area[] {
  const { width, height } = to;
  const whole = { x: 0, y: 0, w: width, h: height };
  if (from?.width !== width || from.height !== height || from.unit !== to.unit) return [whole];
  if (from.colors !== to.colors || from.version !== to.version) return [whole];
  const [dx, dy] = [from.left - to.left, from.top - to.top];
  if (Math.abs(dx) >= width || Math.abs(dy) >= height) return [whole];
  const across = { x: 0, y: dy > 0 ? 0 : height + dy, w: width, h: Math.abs(dy) };
  const along = { x: dx > 0 ? 0 : width + dx, y: Math.max(0, dy), w: Math.abs(dx), h: height - Math.abs(dy) };
  return [across, along].filter(({ w, h }) => w > 0 && h > 0);
}
