// Looks at every view of the page with axe, and tries to use the server from a page of another site.
//
// In: SERVER, TOKEN, RUN: a run that waits at a gate and for an approval. Out: nothing; it fails where something is wrong.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { launch, open, RUN, SERVER, show, TOKEN, wait } from "./browser.mjs";

const port = new URL(SERVER).port;
const axe = await readFile(new URL("./node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
const OF_RUN = ["graph", "steps", "timeline", "swarm", "step/build", "step/human", "step/go"];
const VIEWS = ["#/", "#/new", "#/waits", ...OF_RUN.map((view) => `#/run/${RUN}/${view}`)];
const browser = await launch();

async function lookByAxe(page, name) {
  const found = await page.evaluate(async () => {
    const { violations } = await globalThis.axe.run(document, { resultTypes: ["violations"] });
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(" ")}`);
  });
  assert.deepEqual(found, [], name);
}

for (const scheme of ["dark", "light"]) {
  for (const [width, height] of [[1600, 900], [400, 800]]) {
    const { page, wrong } = await open(browser, width, height, (page) =>
      page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]),
    );
    assert.deepEqual(wrong, []);
    await page.setBypassCSP(true);
    await page.reload();
    await page.evaluate(axe);
    for (const view of VIEWS) {
      await show(page, view);
      await lookByAxe(page, `${view} ${scheme} ${width}`);
    }
    await page.close();
  }
}

// What is drawn of the graph after moves is what is drawn of it at once: a change of the theme draws all of it.
{
  const { page } = await open(browser, 400, 800);
  await show(page, `#/run/${RUN}/graph`);
  /** Keeps what is drawn now; how many pixels differ, to be seen, from what was kept before. */
  const compare = () =>
    page.evaluate(() => {
      const canvas = document.querySelector("canvas");
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      const before = globalThis.kept ?? data;
      globalThis.kept = data;
      return data.filter((value, at) => Math.abs(value - before[at]) > 8).length;
    });
  await compare();
  await page.mouse.move(200, 500);
  await page.mouse.down();
  for (const [x, y] of [[190, 480], [120, 470], [150, 540], [170, 535], [90, 420]]) {
    await page.mouse.move(x, y);
    await wait(100);
  }
  await page.mouse.up();
  await wait(500);
  assert.ok((await compare()) > 0, "the graph was moved");
  for (let theme = 0; theme < 3; theme += 1) {
    await page.keyboard.press("KeyY");
    await wait(300);
  }
  assert.equal(await compare(), 0, "another picture after moves than at once");
  await page.close();
}

// A page of another site, and our own by a name of another one.
const site = createServer((_, answer) => answer.setHeader("content-type", "text/html").end("<!doctype html><title>x</title>"));
await new Promise((listening) => site.listen(0, "127.0.0.1", listening));
const page = await browser.newPage();
await page.goto(`http://127.0.0.1:${site.address().port}/`);
const reached = await page.evaluate(async (server, token, run) => {
  const headers = { Authorization: `Bearer ${token}` };
  const attempt = (path, init) =>
    fetch(`${server}${path}`, init).then((answer) => `${path} ${answer.status} ${answer.type}`, () => "refused");
  const all = [
    await attempt("/api/v1/runs", { headers }),
    await attempt("/api/v1/runs", {}),
    await attempt(`/api/v1/runs/${run}/stop`, { method: "POST", headers: { ...headers, "content-type": "application/json" }, body: "{}" }),
    await attempt(`/api/v1/runs/${run}/stop`, { method: "POST", headers: { "content-type": "text/plain" }, body: "{}" }),
  ];
  const frame = document.createElement("iframe");
  frame.src = server;
  document.body.append(frame);
  await new Promise((done) => frame.addEventListener("load", done));
  try {
    all.push(frame.contentDocument === null ? "refused" : "framed");
  } catch {
    all.push("refused");
  }
  return all;
}, SERVER, TOKEN, RUN);
assert.deepEqual(reached, Array(5).fill("refused"));
const rebound = await page.goto(`http://evil.test:${port}/`);
assert.equal(rebound.status(), 403);
site.close();
await browser.close();
process.exit(0);
