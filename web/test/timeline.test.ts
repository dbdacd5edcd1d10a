import assert from "node:assert/strict";
import { test } from "node:test";
import { TimelinePicture } from "../src/canvas/timeline.ts";
import type { Timeline } from "../src/types.ts";

/** Ten seconds of two steps; in the first one a turn with a tool in it, and a tool that goes on. */
const TIMELINE: Timeline = {
  as_of: "9-00000000",
  from: 0,
  to: 10_000,
  now: 10_000,
  rows: ["draft", "review"],
  bars: [
    [0, 0, null, "running", 1],
    [1, 4000, 10_000, "succeeded", 1],
  ],
  parts: [
    [0, 1000, 6000, "turn", "coder", "succeeded"],
    [0, 2000, 3000, "tool", "Bash", "failed"],
    [0, 8000, null, "tool", "Edit", "running"],
  ],
  left_out: 0,
};

test("the innermost turn or tool is found where it is drawn", () => {
  const picture = new TimelinePicture(TIMELINE, false);
  // A pixel is 10 ms, behind 100 pixels of names.
  const view = { width: 1100, height: 300, top: 0, names: 100, zoom: 1, offset: 0, selected: 0 };
  const nameAt = (row: number, ms: number): string | undefined => picture.partAt(row, 100 + ms / 10, view)?.[4];
  assert.equal(nameAt(0, 500), undefined);
  assert.equal(nameAt(0, 1500), "coder");
  assert.equal(nameAt(0, 2500), "Bash");
  assert.equal(nameAt(0, 5000), "coder");
  assert.equal(nameAt(0, 9500), "Edit");
  assert.equal(nameAt(1, 5000), undefined);
  assert.equal(picture.partsOf(1).length, 0);
});
