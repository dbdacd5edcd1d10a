// Kills the process of a run while the page shows it: the page says so, and resumes the run by keyboard.
//
// In: SERVER, TOKEN, RUN, RUNNER, which is the id of that process. Out: how long the page took to say so.

import assert from "node:assert/strict";
import { ask, launch, open, RUN, says, until, wait } from "./browser.mjs";

/** What it may take until the page says that the process is gone: ten times what it should. */
const MOST_MS = 20_000;

const browser = await launch();
const { page, wrong } = await open(browser, 1600, 900);
await page.keyboard.press("Enter");
await until("the run is shown", () => says(page, "running"));
await wait(1000);
const killed = performance.now();
process.kill(Number(process.env.RUNNER), "SIGKILL");
const head = () => page.evaluate(() => document.querySelector(".run-head")?.innerText ?? "");
await until("the process is gone", async () => /its process is gone|resumable/.test(await head()));
const took = performance.now() - killed;
console.log(`the page says that the runner is gone after ${took.toFixed(0)} ms`);
assert.ok(took < MOST_MS);
await until("the run can be resumed", async () => (await head()).includes("Resume"));
await page.keyboard.press("KeyU");
await until("it asks once more", () => page.evaluate(() => document.activeElement?.closest(".confirm") !== null));
await page.keyboard.press("Enter");
await until("the run goes on", async () => (await ask(`runs/${RUN}`)).runner !== null && (await head()).includes("Stop"));
assert.deepEqual(wrong, []);
await browser.close();
