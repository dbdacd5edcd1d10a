// Where a canvas looks. In: drags, zooms and the size of the picture. Out: the part of the picture that is seen.

import type { Area } from "./grid.ts";

const SMALLEST = 0.001;
const LARGEST = 2.5;

export class Camera {
  /** The point of the picture at the upper left corner, and the pixels of a unit. */
  x = 0;
  y = 0;
  scale = 1;

  /** The size of the canvas in CSS pixels. */
  width = 0;
  height = 0;

  area(): Area {
    return { x: this.x, y: this.y, w: this.width / this.scale, h: this.height / this.scale };
  }

  /** Where the middle of an area of the picture is on the canvas. */
  placeOf({ x, y, w, h }: Area): { x: number; y: number } {
    return { x: (x + w / 2 - this.x) * this.scale, y: (y + h / 2 - this.y) * this.scale };
  }

  drag(dx: number, dy: number): void {
    this.x -= dx / this.scale;
    this.y -= dy / this.scale;
  }

  /** Zooms around a point of the canvas, which keeps its place. */
  zoom(factor: number, atX = this.width / 2, atY = this.height / 2): void {
    const scale = Math.min(LARGEST, Math.max(SMALLEST, this.scale * factor));
    this.x += atX / this.scale - atX / scale;
    this.y += atY / this.scale - atY / scale;
    this.scale = scale;
  }

  /** Shows the whole of a picture, no larger than it is. */
  fit(size: { width: number; height: number }, margin = 24): void {
    const scale = Math.min((this.width - margin) / size.width, (this.height - margin) / size.height, 1);
    this.scale = Math.max(SMALLEST, scale);
    this.x = (size.width - this.width / this.scale) / 2;
    this.y = (size.height - this.height / this.scale) / 2;
  }

  /** Brings an area into sight, by the shortest way. */
  reveal({ x, y, w, h }: Area, margin = 40): void {
    const [spareX, spareY] = [margin / this.scale, margin / this.scale];
    const seen = this.area();
    if (x - spareX < seen.x) this.x = x - spareX;
    else if (x + w + spareX > seen.x + seen.w) this.x = x + w + spareX - seen.w;
    if (y - spareY < seen.y) this.y = y - spareY;
    else if (y + h + spareY > seen.y + seen.h) this.y = y + h + spareY - seen.h;
  }
}
