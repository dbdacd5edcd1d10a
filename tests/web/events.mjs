// Follows a run by the npm package `eventsource`, and cuts the connection every few records: each record comes once.
//
// In: SERVER, TOKEN, RUN. Out: the data of each record, a line each.

import { EventSource } from "eventsource";

const CUTS = 20;
// Bytes: less than most records have, so that cuts fall between them and inside.
const SLICE = 100;
const { SERVER, TOKEN, RUN } = process.env;

let cut = false;
let connections = 0;
// Hands a response on in slices, and fails between two of them where the connection is to be cut.
const slice = (body) => {
  const reader = body.getReader();
  let rest = new Uint8Array();
  return new ReadableStream({
    pull: async (out) => {
      if (cut) {
        cut = false;
        await reader.cancel();
        return out.error(new TypeError("cut"));
      }
      if (rest.length === 0) {
        const { done, value } = await reader.read();
        if (done) return out.close();
        rest = value;
      }
      out.enqueue(rest.subarray(0, SLICE));
      rest = rest.subarray(SLICE);
    },
    cancel: () => reader.cancel(),
  }, { highWaterMark: 0 });
};
const source = new EventSource(`${SERVER}/api/v1/runs/${RUN}/events?from=0`, {
  fetch: async (url, init) => {
    const headers = { ...init.headers, Authorization: `Bearer ${TOKEN}` };
    const { body, status, headers: received } = await fetch(url, { ...init, headers });
    connections += 1;
    return new Response(body && slice(body), { status, headers: received });
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
    cut = true;
  }
});
// The package's timer for the next connection lets Node.js end; this one does not.
setInterval(() => {}, 1000);
await ended;
source.close();
process.stdout.write(lines.map((line) => `${line}\n`).join(""));
if (connections !== CUTS + 1) throw new Error(`${connections} connections`);
process.exit(0);
