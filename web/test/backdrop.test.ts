import assert from "node:assert/strict";
import { test } from "node:test";
import { listUnseen, type Place } from "../src/canvas/backdrop.ts";

const colors = {} as Place["colors"];
const from: Place = { left: 100, top: 50, width: 12, height: 9, unit: 1, colors, version: 1 };

test("after a move each pixel was there or is drawn once", () => {
  for (let dx = -14; dx <= 14; dx += 1) {
    for (let dy = -11; dy <= 11; dy += 1) {
      const to = { ...from, left: from.left + dx, top: from.top + dy };
      const parts = listUnseen(from, to);
      for (let x = 0; x < to.width; x += 1) {
        for (let y = 0; y < to.height; y += 1) {
          const wasSeen = x + dx >= 0 && x + dx < from.width && y + dy >= 0 && y + dy < from.height;
          const drawn = parts.filter((part) => x >= part.x && x < part.x + part.w && y >= part.y && y < part.y + part.h);
          assert.equal(drawn.length, wasSeen ? 0 : 1, `${dx} ${dy}: ${x} ${y}`);
        }
      }
    }
  }
});

test("all is drawn at first, and after a change of the size, the zoom, the theme or the picture", () => {
  const all = [{ x: 0, y: 0, w: 12, h: 9 }];
  assert.deepEqual(listUnseen(null, from), all);
  assert.deepEqual(listUnseen(from, from), []);
  for (const change of [{ width: 13 }, { height: 8 }, { unit: 2 }, { version: 2 }, { colors: {} as Place["colors"] }]) {
    const to = { ...from, ...change };
    assert.deepEqual(listUnseen(from, to), [{ x: 0, y: 0, w: to.width, h: to.height }]);
  }
});
