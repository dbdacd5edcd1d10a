// Makes the pictures of the README from a run: the page, and the screen of `swarmc top` as Chromium sets it.
//
// In: SERVER, TOKEN, RUN, FRAME (a file with a frame of `swarmc top`), OUT (a folder). Out: `page.png` and `terminal.png`.

import { readFile } from "node:fs/promises";
import puppeteer from "puppeteer-core";

const { SERVER, TOKEN, RUN, FRAME, OUT } = process.env;
const browser = await puppeteer.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
const page = await browser.newPage();
await page.setViewport({ width: 1200, height: 700 });
await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "dark" }]);
await page.goto(`${SERVER}/#t=${TOKEN}`);
await new Promise((done) => setTimeout(done, 800));
await page.evaluate((run) => (location.hash = `#/run/${run}/graph`), RUN);
await new Promise((done) => setTimeout(done, 1500));
await page.screenshot({ path: `${OUT}/page.png` });

const terminal = await browser.newPage();
await terminal.setViewport({ width: 1000, height: 420 });
await terminal.setContent("<pre></pre>");
await terminal.evaluate((frame) => {
  const text = document.querySelector("pre");
  text.textContent = frame;
  document.body.style.cssText = "margin:0;background:#0d1117;color:#d1d7e0";
  text.style.cssText = "margin:0;padding:14px;font:13px/1.35 monospace";
}, await readFile(FRAME, "utf8"));
await terminal.screenshot({ path: `${OUT}/terminal.png` });
await browser.close();
