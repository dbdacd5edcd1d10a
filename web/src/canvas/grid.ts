// A spatial index of rectangles. In: rectangles by index. Out: the indexes of those that touch an area or a point.

const CELL = 256;
/** A rectangle that covers more cells than this is kept in a list of its own. */
const MOST_CELLS = 64;

export interface Area {
  x: number;
  y: number;
  w: number;
  h: number;
}

export class Grid {
  readonly #cells = new Map<number, number[]>();
  readonly #large: number[] = [];
  /** By index, the last query that met it: a rectangle in several cells is visited once. */
  readonly #met: Uint32Array;
  #query = 0;

  constructor(
    readonly count: number,
    readonly areaOf: (index: number) => Area,
  ) {
    this.#met = new Uint32Array(count);
    for (let index = 0; index < count; index += 1) this.#insert(index);
  }

  #insert(index: number): void {
    const keys = cellsOf(this.areaOf(index), MOST_CELLS);
    if (!keys) {
      this.#large.push(index);
      return;
    }
    for (const key of keys) {
      const cell = this.#cells.get(key);
      if (cell) cell.push(index);
      else this.#cells.set(key, [index]);
    }
  }

  /** Visits each rectangle that touches the area, once. */
  visit(area: Area, use: (index: number) => void): void {
    this.#query += 1;
    const keys = cellsOf(area, this.#cells.size);
    const lists = keys ? keys.map((key) => this.#cells.get(key)) : this.#cells.values();
    for (const list of lists) if (list) this.#visitList(list, area, use);
    this.#visitList(this.#large, area, use);
  }

  #visitList(list: number[], area: Area, use: (index: number) => void): void {
    for (const index of list) {
      if (this.#met[index] === this.#query) continue;
      this.#met[index] = this.#query;
      if (touches(this.areaOf(index), area)) use(index);
    }
  }

  /** The last rectangle at a point, which is the one that is drawn uppermost; -1 where there is none. */
  hit(x: number, y: number): number {
    let found = -1;
    this.visit({ x, y, w: 0, h: 0 }, (index) => {
      found = Math.max(found, index);
    });
    return found;
  }
}

export function touches(a: Area, b: Area): boolean {
  return a.x <= b.x + b.w && b.x <= a.x + a.w && a.y <= b.y + b.h && b.y <= a.y + a.h;
}

/** The keys of the cells that an area covers; null where there are more than `most`. */
function cellsOf({ x, y, w, h }: Area, most: number): number[] | null {
  const [left, right] = [Math.floor(x / CELL), Math.floor((x + w) / CELL)];
  const [top, bottom] = [Math.floor(y / CELL), Math.floor((y + h) / CELL)];
  if ((right - left + 1) * (bottom - top + 1) > most) return null;
  const keys: number[] = [];
  for (let row = top; row <= bottom; row += 1)
    for (let column = left; column <= right; column += 1) keys.push(row * 0x100000 + column);
  return keys;
}
