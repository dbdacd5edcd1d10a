import assert from "node:assert/strict";
import { test } from "node:test";
import { EnvelopeTraffic, FLIGHT_MS, pointAlong } from "../src/canvas/envelopes.ts";
import type { GraphLayout } from "../src/types.ts";

/** Two boxes, a wire of order between them, and one of messages that is 100 long. */
const LAYOUT = {
  wires: {
    from: ["a", "a"],
    to: ["b", "b"],
    kind: ["order", "message"],
    label: ["", ""],
    label_at: [null, null],
    path: [[[0, 0, 0, 100]], [[10, 0, 10, 50], [10, 50, 60, 50]]],
  },
} as unknown as GraphLayout;

test("a point is found along pieces of a line", () => {
  const path = LAYOUT.wires.path[1] ?? [];
  assert.deepEqual(pointAlong(path, 0), [10, 0]);
  assert.deepEqual(pointAlong(path, 0.25), [10, 25]);
  assert.deepEqual(pointAlong(path, 0.75), [35, 50]);
  assert.deepEqual(pointAlong(path, 1), [60, 50]);
  assert.deepEqual(pointAlong([], 0.5), [0, 0]);
});

test("an envelope runs along its wire once, and back along it for an answer", () => {
  const traffic = new EnvelopeTraffic(LAYOUT);
  traffic.setSent([{ from: "a", to: "b", count: 2 }], 0, true);
  assert.deepEqual(traffic.placeFlights(0), [], "what was sent before the page was opened does not move");
  traffic.setSent([{ from: "a", to: "b", count: 3 }], 1000, true);
  assert.deepEqual(traffic.placeFlights(1000 + FLIGHT_MS / 4), [[10, 25]]);
  assert.deepEqual(traffic.placeFlights(1000 + FLIGHT_MS), []);
  traffic.setSent([{ from: "a", to: "b", count: 3 }, { from: "b", to: "a", count: 1 }], 5000, true);
  assert.deepEqual(traffic.placeFlights(5000 + FLIGHT_MS / 4), [[35, 50]]);
  traffic.setSent([{ from: "a", to: "b", count: 4 }, { from: "b", to: "a", count: 1 }], 9000, false);
  assert.deepEqual(traffic.placeFlights(9000), [], "not where a person wants nothing to move");
});
