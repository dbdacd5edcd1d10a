import assert from "node:assert/strict";
import { test } from "node:test";
import { formatRoute, parseRoute, type Route, runRoute } from "../src/router.ts";

const ROUTES: [string, Route][] = [
  ["#/", { page: "runs", search: "" }],
  ["#/?q=fix+it", { page: "runs", search: "fix it" }],
  ["#/waits", { page: "waits" }],
  ["#/new", { page: "new" }],
  ["#/run/20261127-131555-8k2m2s", runRoute("20261127-131555-8k2m2s")],
  ["#/run/R/graph", runRoute("R", { view: "graph" })],
  [
    "#/run/R/steps?state=failed,waiting&q=a%2Fb",
    runRoute("R", { view: "steps", states: ["failed", "waiting"], search: "a/b" }),
  ],
  ["#/run/R/step/items%2F3%2Fcode?turn=2&pane=diff", runRoute("R", { step: "items/3/code", turn: 2, pane: "diff" })],
  ["#/run/R/step/team/agent/a1?view=swarm", runRoute("R", { step: "team", agent: "a1", view: "swarm" })],
  ["#/run/R/step/50%25?view=steps", runRoute("R", { step: "50%", view: "steps" })],
];

for (const [hash, route] of ROUTES) {
  test(`${hash} is read and written`, () => {
    assert.deepEqual(parseRoute(hash), route);
    assert.equal(formatRoute(route), hash);
  });
}

test("an address that means nothing leads to the runs", () => {
  for (const hash of ["", "#", "#t=secret", "#/nothing", "#/run", "#/run/"]) {
    assert.equal(parseRoute(hash).page, "runs", hash);
  }
});

test("what is wrong in an address is left out", () => {
  assert.deepEqual(parseRoute("#/run/R/nothing?turn=2"), runRoute("R", { turn: 2 }));
  assert.deepEqual(parseRoute("#/run/R/step/a?turn=-1&view=x"), runRoute("R", { step: "a" }));
  assert.deepEqual(parseRoute("#/run/R/step/%E0%A4%A"), runRoute("R", { step: "%E0%A4%A" }));
});
