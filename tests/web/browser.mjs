// A browser that shows the page, and what a person does there by keyboard alone.
//
// In: SERVER, TOKEN, and BROWSER, which is `chromium` or `firefox`.

import assert from "node:assert/strict";
import puppeteer from "puppeteer-core";

export const { SERVER, TOKEN, RUN, BROWSER = "chromium" } = process.env;

// Nothing but this machine answers, by whatever name: Chromium finds no other name, and Firefox has a proxy that is not there.
const CHROMIUM = {
  executablePath: "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP evil.test 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"],
};
const FIREFOX = {
  browser: "firefox",
  executablePath: "/usr/bin/firefox-esr",
  extraPrefsFirefox: {
    "network.proxy.type": 1,
    "network.proxy.http": "127.0.0.1",
    "network.proxy.http_port": 9,
    "network.proxy.ssl": "127.0.0.1",
    "network.proxy.ssl_port": 9,
  },
};

export function launch() {
  // Firefox waits for no such time as Chromium to start.
  return puppeteer.launch({ ...(BROWSER === "firefox" ? FIREFOX : CHROMIUM), timeout: 120_000, protocolTimeout: 120_000 });
}

export async function ask(path) {
  const answer = await fetch(`${SERVER}/api/v1/${path}`, { headers: { Authorization: `Bearer ${TOKEN}` } });
  return answer.json();
}

export const wait = (ms) => new Promise((done) => setTimeout(done, ms));

export async function until(what, holds, patience = 60_000) {
  for (const end = Date.now() + patience; Date.now() < end; await wait(50)) {
    if (await holds()) return;
  }
  assert.fail(`it never comes to this: ${what}`);
}

export const says = (page, text) => page.evaluate((part) => document.body.innerText.includes(part), text);

/** Opens the page with its token, at a size; `wrong` collects what the page has to complain of. */
export async function open(browser, width, height, prepare = async () => {}) {
  const page = await browser.newPage();
  await page.setViewport({ width, height });
  await prepare(page);
  const wrong = [];
  page.on("pageerror", (error) => wrong.push(error.message));
  page.on("console", (message) => message.type() === "error" && wrong.push(message.text()));
  await page.goto(`${SERVER}/#t=${TOKEN}`);
  await until("the runs are listed", () => page.evaluate(() => document.querySelector("#run-0") !== null));
  assert.ok(!page.url().includes(TOKEN), "the token leaves the address");
  return { page, wrong };
}

export async function show(page, hash) {
  await page.evaluate((to) => (location.hash = to), hash);
  await wait(700);
}

/** Writes to an agent, from a view of its run. */
export async function writeMessage(page, run, to, text) {
  await page.keyboard.press("KeyM");
  await until("there is a form", () => page.evaluate(() => document.querySelector("dialog [name=to]") !== null));
  await page.keyboard.type(to);
  await page.keyboard.press("Tab");
  await page.keyboard.type(text);
  await page.keyboard.down("Control");
  await page.keyboard.press("Enter");
  await page.keyboard.up("Control");
  await until("the message is in the run", async () => JSON.stringify(await ask(`runs/${run}/steps/${to}`)).includes(text));
  await until("the form is closed", () => page.evaluate(() => document.querySelector("dialog") === null));
}

/** Gives the first answer to the question whose title has a word in it, from the list of all of them. */
export async function answer(page, word) {
  const title = () => page.evaluate(() => document.querySelector(".question.active h2")?.textContent ?? "");
  await page.keyboard.press("KeyQ");
  await until("questions are shown", async () => (await title()) !== "");
  const { length } = (await ask("waits")).waits;
  for (let at = 0; at < length && !(await title()).includes(word); at += 1) {
    await page.keyboard.press("KeyJ");
    await wait(100);
  }
  assert.ok((await title()).includes(word), `no question says ${word}`);
  await page.keyboard.press("KeyA");
  await until("it asks once more", () => page.evaluate(() => document.activeElement?.closest(".confirm") !== null));
  await page.keyboard.press("Enter");
  await until("the answer is taken", async () => (await ask("waits")).waits.length < length);
  await until("the list is shorter", () => page.evaluate((left) => document.querySelectorAll(".question").length === left, length - 1));
}
