import assert from "node:assert/strict";
import { test } from "node:test";
import { Camera } from "../src/canvas/camera.ts";
import { type Area, Grid } from "../src/canvas/grid.ts";

function makeGrid(areas: Area[]): Grid {
  return new Grid(areas.length, (index) => areas[index] ?? { x: 0, y: 0, w: 0, h: 0 });
}

function collect(grid: Grid, area: Area): number[] {
  const found: number[] = [];
  grid.visit(area, (index) => found.push(index));
  return found.sort((a, b) => a - b);
}

test("a point hits the box that it lies in", () => {
  const grid = makeGrid([
    { x: 10, y: 10, w: 100, h: 40 },
    { x: 300, y: 10, w: 100, h: 40 },
  ]);
  assert.equal(grid.hit(10, 10), 0);
  assert.equal(grid.hit(350, 49), 1);
  assert.equal(grid.hit(200, 20), -1);
  assert.equal(grid.hit(-5000, 20), -1);
});

test("of boxes that overlap the one that is drawn last is hit", () => {
  const grid = makeGrid([
    { x: 0, y: 0, w: 600, h: 600 },
    { x: 100, y: 100, w: 50, h: 50 },
  ]);
  assert.equal(grid.hit(120, 120), 1);
  assert.equal(grid.hit(400, 400), 0);
});

test("an area finds what a search through all finds, each once", () => {
  let seed = 7;
  const random = (): number => {
    seed = (seed * 48271) % 2147483647;
    return seed / 2147483647;
  };
  const areas = Array.from({ length: 500 }, () => ({
    x: random() * 8000 - 2000,
    y: random() * 8000 - 2000,
    w: random() * 400,
    // Some are so long that they are kept apart from the cells.
    h: random() < 0.02 ? 60_000 : random() * 400,
  }));
  const grid = makeGrid(areas);
  for (let query = 0; query < 50; query += 1) {
    const area = { x: random() * 8000 - 2000, y: random() * 8000 - 2000, w: random() * 3000, h: random() * 3000 };
    const expected = areas.flatMap(({ x, y, w, h }, index) =>
      x <= area.x + area.w && area.x <= x + w && y <= area.y + area.h && area.y <= y + h ? [index] : [],
    );
    assert.deepEqual(collect(grid, area), expected);
  }
});

test("a zoom keeps the point under the pointer", () => {
  const camera = Object.assign(new Camera(), { width: 800, height: 600, x: 100, y: 50 });
  const before = [camera.x + 200 / camera.scale, camera.y + 300 / camera.scale];
  camera.zoom(0.37, 200, 300);
  const after = [camera.x + 200 / camera.scale, camera.y + 300 / camera.scale];
  after.forEach((value, axis) => assert.ok(Math.abs(value - (before[axis] ?? 0)) < 1e-9));
});

test("a camera that fits a picture shows all of it, in the middle", () => {
  const camera = Object.assign(new Camera(), { width: 800, height: 600 });
  camera.fit({ width: 4000, height: 1000 });
  const { x, y, w, h } = camera.area();
  assert.ok(x <= 0 && y <= 0 && x + w >= 4000 && y + h >= 1000);
  assert.ok(Math.abs(x + w / 2 - 2000) < 1e-6 && Math.abs(y + h / 2 - 500) < 1e-6);
});

test("a camera moves no further than it must to reveal an area", () => {
  const camera = Object.assign(new Camera(), { width: 800, height: 600 });
  camera.reveal({ x: 100, y: 100, w: 100, h: 50 });
  assert.deepEqual([camera.x, camera.y], [0, 0]);
  camera.reveal({ x: 1000, y: 100, w: 100, h: 50 }, 0);
  assert.deepEqual([camera.x, camera.y], [300, 0]);
});
