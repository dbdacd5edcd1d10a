// Watches a run of an engine in the page until it is over: what each step does, by its row and by its box in the graph.
//
// In: SERVER, TOKEN, RUN, STEPS (its steps), GO (the file that lets the coder go on). Out: nothing; it fails where the page
// does not show what is.

import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { ask, launch, open, RUN, says, show, until } from "./browser.mjs";

const { GO } = process.env;
/** Two rounds of turns of opencode, with each of its starts, on a machine that has other work. */
const PATIENCE = 240_000;
const steps = process.env.STEPS.split(" ");

const browser = await launch();
const { page, wrong } = await open(browser, 1600, 900);

const listed = () =>
  page.evaluate(() => [...document.querySelectorAll("[role=treeitem]")].map((item) => item.textContent));
const isShown = async (step, state) => (await listed()).some((text) => text.startsWith(step) && text.includes(state));

// A run whose copy has only begun may be opened too early: a person opens it again.
await until("the coder works", async () => {
  await show(page, "#/");
  await show(page, `#/run/${RUN}/graph`);
  return isShown("coder", "running");
}, PATIENCE);
assert.ok(await isShown("planner", "succeeded"), `${await listed()}`);
await writeFile(GO, "");
await until("every step has succeeded", async () => {
  const items = await listed();
  return steps.every((step) => items.some((text) => text.startsWith(step) && text.includes("succeeded")));
}, PATIENCE);
await until("the run is over", async () => (await ask(`runs/${RUN}`)).state === "succeeded");
await show(page, `#/run/${RUN}/step/coder?pane=output`);
await until("the page shows what opencode has answered", () => says(page, "It greets."));
assert.deepEqual(wrong, []);
await browser.close();
