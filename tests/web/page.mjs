// Uses the page in Chromium as a person does, by keyboard alone, and looks at it with axe; then tries to use the server from
// a page of another site.
//
// In: SERVER, TOKEN, RUN: a run that waits at a gate and for an approval. Out: nothing; it fails where something is wrong.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import puppeteer from "puppeteer-core";

const { SERVER, TOKEN, RUN } = process.env;
const port = new URL(SERVER).port;
const axe = await readFile(new URL("./node_modules/axe-core/axe.min.js", import.meta.url), "utf8");

// Nothing but this machine answers, by whatever name.
const rules = "MAP evil.test 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1";
const browser = await puppeteer.launch({
  executablePath: "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", `--host-resolver-rules=${rules}`],
});
const ask = async (path) => {
  const answer = await fetch(`${SERVER}/api/v1/${path}`, { headers: { Authorization: `Bearer ${TOKEN}` } });
  return answer.json();
};
const wait = (ms) => new Promise((done) => setTimeout(done, ms));

async function until(what, holds) {
  for (const end = Date.now() + 30_000; Date.now() < end; await wait(50)) {
    if (await holds()) return;
  }
  assert.fail(`it never comes to this: ${what}`);
}

async function open(scheme, width, height) {
  const page = await browser.newPage();
  await page.setViewport({ width, height });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
  const wrong = [];
  page.on("pageerror", (error) => wrong.push(error.message));
  page.on("console", (message) => message.type() === "error" && wrong.push(message.text()));
  await page.goto(`${SERVER}/#t=${TOKEN}`);
  await until("the runs are listed", () => page.evaluate(() => document.body.innerText.includes("flow")));
  assert.ok(!page.url().includes(TOKEN), "the token leaves the address");
  return { page, wrong };
}

const show = async (page, view) => {
  await page.evaluate((hash) => (location.hash = hash), view);
  await wait(700);
};

async function answerAll(page) {
  await page.keyboard.press("KeyQ");
  for (let left = (await ask("waits")).waits.length; left > 0; left -= 1) {
    await until("the questions are shown", () => page.evaluate((n) => document.title.includes(`${n}`), left));
    await page.keyboard.press("KeyA");
    await until("it asks once more", () => page.evaluate(() => document.querySelector(".confirm") !== null));
    // A key that was on its way when the question came answers nothing.
    await wait(800);
    await page.keyboard.press("Enter");
    await until("the answer is taken", async () => (await ask("waits")).waits.length < left);
    await wait(500);
  }
}

async function writeMessage(page) {
  await show(page, `#/run/${RUN}/steps`);
  await page.keyboard.press("KeyM");
  await wait(300);
  await page.keyboard.type("build");
  await page.keyboard.press("Tab");
  await page.keyboard.type("Mind the gap");
  await page.keyboard.down("Control");
  await page.keyboard.press("Enter");
  await page.keyboard.up("Control");
  const reads = async () => JSON.stringify(await ask(`runs/${RUN}/steps/build`)).includes("Mind the gap");
  await until("the message is in the run", reads);
}

async function lookByAxe(page, name) {
  const found = await page.evaluate(async () => {
    const { violations } = await globalThis.axe.run(document, { resultTypes: ["violations"] });
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(" ")}`);
  });
  assert.deepEqual(found, [], name);
}

const first = await open("dark", 1600, 900);
for (const view of ["graph", "steps", "timeline"]) {
  await show(first.page, `#/run/${RUN}/${view}`);
  await until(view, () => first.page.evaluate(() => document.body.innerText.includes("build")));
}
await writeMessage(first.page);
await answerAll(first.page);
assert.deepEqual(first.wrong, []);
await first.page.close();

for (const scheme of ["dark", "light"]) {
  for (const [width, height] of [[1600, 900], [400, 800]]) {
    const { page } = await open(scheme, width, height);
    await page.setBypassCSP(true);
    await page.reload();
    await page.evaluate(axe);
    for (const view of ["#/", "#/waits", ...["graph", "steps", "timeline", "step/build"].map((it) => `#/run/${RUN}/${it}`)]) {
      await show(page, view);
      await lookByAxe(page, `${view} ${scheme} ${width}`);
    }
    await page.close();
  }
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
