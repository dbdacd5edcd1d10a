// Uses the page as a person does, by keyboard alone: looks at the views of a run, writes to an agent, answers what is asked.
//
// In: SERVER, TOKEN, RUN, BROWSER: a run that waits at a gate and for an approval. Out: nothing; it fails where something is
// wrong.

import assert from "node:assert/strict";
import { answer, launch, open, RUN, says, until, writeMessage } from "./browser.mjs";

const browser = await launch();
const { page, wrong } = await open(browser, 1600, 900);
await page.keyboard.press("Enter");
await until("the run opens", () => page.evaluate((run) => document.querySelector(".run-name")?.textContent === run, RUN));
for (const [key, view] of [["KeyT", "timeline"], ["KeyW", "swarm"], ["KeyS", "steps"], ["KeyG", "graph"]]) {
  await page.keyboard.press(key);
  await until(view, () => page.evaluate((name) => location.hash.includes(`/${name}`), view));
  await until(`${view} tells of a step`, () => says(page, view === "swarm" ? "Call it" : "build"));
}
await writeMessage(page, RUN, "build", "Mind the gap");
await answer(page, "gate human");
await answer(page, "one wants tool");
assert.deepEqual(wrong, []);
await browser.close();
