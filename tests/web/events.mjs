// Follows a run by the npm package `eventsource`, and cuts the connection every few records: each record comes once.
//
// In: SERVER, TOKEN, RUN. Out: the data of each record, a line each.

import { EventSource } from "eventsource";

const CUTS = 20;
const { SERVER, TOKEN, RUN } = process.env;

let cut = () => {};
const source = new EventSource(`${SERVER}/api/v1/runs/${RUN}/events?from=0`, {
  fetch: async (url, init) => {
    const connection = new AbortController();
    cut = () => connection.abort();
    init.signal?.addEventListener("abort", cut);
    const headers = { ...init.headers, Authorization: `Bearer ${TOKEN}` };
    return fetch(url, { ...init, headers, signal: connection.signal });
  },
});
let cuts = 0;
const lines = [];
const ended = new Promise((end, fail) => {
  source.addEventListener("end", end);
  source.addEventListener("error", (error) => error.code >= 400 && fail(new Error(`status ${error.code}`)));
});
source.addEventListener("record", (event) => {
  lines.push(event.data);
  if (cuts < CUTS && lines.length % 3 === 0) {
    cuts += 1;
    cut();
  }
});
await ended;
source.close();
process.stdout.write(lines.map((line) => `${line}\n`).join(""));
if (cuts !== CUTS) throw new Error(`only ${cuts} cuts`);
process.exit(0);
