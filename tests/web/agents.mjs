// Looks at agents in the page while their run goes on and when it is over: their connections, tools and diffs are those
// that `swarmc inspect` tells of.
//
// In: SERVER, TOKEN, RUN, STEPS (the steps with an agent), GO (the file that lets the run end), INSPECT (a command that prints
// the document of a step, whose name it takes). Out: nothing; it fails where the two differ.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { promisify } from "node:util";
import { ask, launch, open, RUN, show, until, wait } from "./browser.mjs";

const { GO, INSPECT } = process.env;
const steps = process.env.STEPS.split(" ");

async function inspect(step) {
  const { stdout } = await promisify(execFile)("sh", ["-c", `${INSPECT} "$1"`, "inspect", step]);
  return JSON.parse(stdout);
}

const browser = await launch();
const { page, wrong } = await open(browser, 1600, 900);

/** What the list of the graph says of a step, which is also what its box shows. */
const readBox = (step) =>
  page.evaluate((name) => {
    const items = [...document.querySelectorAll("[role=treeitem]")].map((item) => item.textContent);
    return items.find((text) => text.startsWith(`${name},`) || text.startsWith(`${name}:`)) ?? "";
  }, step);

const readPane = (selector) =>
  page.evaluate((what) => [...document.querySelectorAll(`#pane ${what}`)].map((found) => found.textContent.trim()), selector);

async function showPane(step, pane, turn) {
  await show(page, `#/run/${RUN}/step/${step}?pane=${pane}${turn ? `&turn=${turn}` : ""}`);
  await until(`${pane} of ${step}`, () => page.evaluate((id) => document.querySelector(`#tab-${id}[aria-selected=true]`) !== null, pane));
}

/** Waits until the page and `inspect` say the same of a step: both change while it runs. */
async function agree(what, step, read, expect) {
  let [shown, told] = [];
  await until(`${what} of ${step}: the page and inspect agree`, async () => {
    [shown, told] = [await read(), expect(await inspect(step))];
    return shown === told;
  }).catch((error) => assert.fail(`${error.message}: ${shown} is no ${told}`));
}

async function compare(step) {
  await show(page, `#/run/${RUN}/graph`);
  const linkOf = (box) => /agent (connected|idle|disconnected)/.exec(box)?.[1] ?? "over";
  await until("the graph is listed", async () => (await readBox(step)) !== "");
  await agree("the connection", step, async () => linkOf(await readBox(step)), ({ connection }) => connection.state);
  await showPane(step, "connection");
  const fact = (at) => async () => (await readPane("dd"))[at] ?? "";
  await agree("the connection", step, fact(0), ({ connection }) => connection.state);
  const { connection, tools, diffs, tries } = await inspect(step);
  if (connection.session) assert.ok((await readPane("dd")).includes(connection.session), connection.session);
  for (const { attempt } of tries) {
    const own = (things) => things.filter(({ turn }) => turn === attempt);
    await showPane(step, "tools", attempt);
    const names = async () => `${await readPane("summary .strong")}`;
    await agree("the tools", step, names, (told) => `${own(told.tools).map(({ tool }) => tool)}`);
    await showPane(step, "diff", attempt);
    const sum = ({ files, added, removed }) => `${files} file${files === 1 ? "" : "s"} +${added} −${removed}`;
    await agree("the diffs", step, async () => `${await readPane("h3")}`, (told) => `${own(told.diffs).map(sum)}`);
  }
  return { tools: tools.length, diffs: diffs.length, state: connection.state };
}

// The agent that holds up the run is connected.
const live = [];
for (const step of steps) live.push(await compare(step));
assert.ok(live.some(({ state }) => state === "connected"), JSON.stringify(live));
assert.ok(live.some(({ state }) => state !== "connected"), JSON.stringify(live));
await writeFile(GO, "");
await until("the run is over", async () => (await ask(`runs/${RUN}`)).state === "succeeded");
await wait(1000);
const over = [];
for (const step of steps) over.push(await compare(step));
assert.ok(over.every(({ state }) => state === "over"), JSON.stringify(over));
assert.ok(over.some(({ tools }) => tools > 0) && over.some(({ diffs }) => diffs > 0), JSON.stringify(over));
assert.deepEqual(wrong, []);
await browser.close();
