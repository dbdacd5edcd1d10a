import assert from "node:assert/strict";
import { test } from "node:test";
import { buildScale, tickTimes } from "../src/canvas/scale.ts";
import type { Bar } from "../src/types.ts";

/** Two busy seconds, an hour in which a person is waited for, and two more busy seconds. */
const BARS: Bar[] = [
  [0, 0, 1000, "succeeded", 1],
  [1, 500, 2000, "failed", 1],
  [2, 2000, 3_602_000, "waiting", 1],
  [3, 3_602_000, 3_604_000, "running", 1],
];
const END = 3_604_000;

function near(actual: number, expected: number): void {
  assert.ok(Math.abs(actual - expected) < 1e-9, `${actual} is not ${expected}`);
}

test("without folds places are proportional to time", () => {
  const scale = buildScale(BARS, 0, END, false);
  assert.equal(scale.segments.length, 1);
  near(scale.place(0), 0);
  near(scale.place(END / 4), 0.25);
  near(scale.place(END), 1);
});

test("time in which nothing works is folded", () => {
  const { segments, place } = buildScale(BARS, 0, END, true);
  assert.deepEqual(
    segments.map(({ from, to, folded }) => [from, to, folded]),
    [
      [0, 2000, false],
      [2000, 3_602_000, true],
      [3_602_000, END, false],
    ],
  );
  // The busy times share the axis but for the fold, which is 3 % of them.
  near(place(2000), 1 / 2.06);
  near(place(3_602_000), 1 - 1 / 2.06);
  near(place(END), 1);
});

test("places never go backwards and stay on the axis", () => {
  const { place } = buildScale(BARS, 0, END, true);
  let last = 0;
  for (let time = -1000; time <= END + 1000; time += 777) {
    const at = place(time);
    assert.ok(at >= last && at <= 1);
    last = at;
  }
});

test("a short idle time is not folded", () => {
  const bars: Bar[] = [
    [0, 0, 1000, "succeeded", 1],
    [1, 1010, 2000, "succeeded", 1],
  ];
  assert.equal(buildScale(bars, 0, 2000, true).segments.length, 1);
});

test("a bar without an end goes on to the end of the range", () => {
  const scale = buildScale([[0, 0, null, "running", 1]], 0, 5000, true);
  assert.deepEqual(
    scale.segments.map(({ folded }) => folded),
    [false],
  );
});

test("a timeline without bars, or of no length, has a scale", () => {
  near(buildScale([], 0, 1000, true).place(500), 0.5);
  near(buildScale([], 7, 7, true).place(7), 0);
});

test("ticks begin with the segment and go on at round times", () => {
  const segment = { from: 1300, to: 6000, at: 0, width: 1, folded: false };
  assert.deepEqual(tickTimes(segment, 1000, 5), [1300, 2000, 3000, 4000, 5000]);
  assert.deepEqual(tickTimes(segment, 1000, 0.5), [1300]);
  assert.deepEqual(tickTimes({ ...segment, folded: true }, 1000, 5), []);
});
