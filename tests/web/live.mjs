// Opens a run of ten thousand steps that goes on, pans its graph, and steers it, all of it by keyboard but the panning.
//
// In: SERVER, TOKEN, RUN, BROWSER, which is also in the names of its gate and of its agent that asks for a tool.
// Out: how long frames took while the graph was panned.

import assert from "node:assert/strict";
import { answer, ask, BROWSER, launch, open, RUN, says, until, wait, writeMessage } from "./browser.mjs";

const FRAMES = 200;
const STEP = 1.25;
/** What a frame may take: ten times what it should. */
const MOST_MS = 330;

/** Drags the graph to and fro until so many frames have passed, and gives their times in order. */
async function pan(page) {
  await page.mouse.move(800, 500);
  await page.mouse.down();
  await page.evaluate(() => {
    globalThis.times = [];
    let last = 0;
    const note = (now) => {
      if (last > 0) globalThis.times.push(now - last);
      last = now;
      globalThis.noting = requestAnimationFrame(note);
    };
    globalThis.noting = requestAnimationFrame(note);
  });
  let x = 800;
  for (let move = 0, passed = 0; passed < FRAMES; move += 1) {
    x += move % 100 < 50 ? 9 : -9;
    await page.mouse.move(x, 500 - (move % 50));
    if (move % 10 === 0) passed = await page.evaluate(() => globalThis.times.length);
  }
  await page.mouse.move(x - 300, 300);
  await page.mouse.up();
  const times = await page.evaluate(() => {
    cancelAnimationFrame(globalThis.noting);
    return globalThis.times;
  });
  return times.slice(0, FRAMES).sort((a, b) => a - b);
}

const listed = (page) => page.evaluate(() => document.querySelector("[role=tree]")?.textContent ?? "");

const browser = await launch();
const { page, wrong } = await open(browser, 1600, 900);
const began = Date.now();
await page.keyboard.press("Enter");
await until("so large a run opens with its steps", () => says(page, "Waits for"));
console.log(`${BROWSER}: the steps after ${Date.now() - began} ms`);
await page.keyboard.press("KeyG");
await until("the graph is drawn", async () => (await listed(page)) !== "");

const { size } = await ask(`runs/${RUN}/graph`);
const { width, height } = await page.evaluate(() => {
  const { clientWidth, clientHeight } = document.querySelector("canvas");
  return { width: clientWidth, height: clientHeight };
});
const whole = Math.min(width / size.width, height / size.height);
const before = await ask(`runs/${RUN}`);
assert.equal(before.state, "running");
for (const scale of [whole, 0.2, 1]) {
  await page.keyboard.press("Digit0");
  for (let zoom = whole; zoom < scale; zoom *= STEP) await page.keyboard.press("Equal");
  await wait(500);
  const seen = await listed(page);
  const times = await pan(page);
  await wait(500);
  const [p50, p95] = [times[FRAMES / 2], times[FRAMES * 0.95]];
  console.log(`${BROWSER}: a frame at ${(100 * scale).toFixed(1)} %: p50 ${p50.toFixed(1)} ms, p95 ${p95.toFixed(1)} ms`);
  assert.ok(p95 < MOST_MS, `a frame took ${p95} ms`);
  if (scale === 1) assert.notEqual(await listed(page), seen, "the graph was moved");
}
const after = await ask(`runs/${RUN}`);
assert.equal(after.state, "running");
console.log(`${BROWSER}: meanwhile ${after.done - before.done} steps ended, ${after.done} of ${after.total}`);

await writeMessage(page, RUN, "build", `A word from ${BROWSER}`);
await answer(page, `gate ${BROWSER}`);
await answer(page, `${BROWSER} wants tool`);
assert.deepEqual(wrong, []);
await browser.close();
