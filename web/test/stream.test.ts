import assert from "node:assert/strict";
import { test } from "node:test";
import { EventParser, type ServerEvent } from "../src/stream.ts";

const TEXT =
  'retry: 1000\n\n: keep\n\nid: 7-aa\nevent: record\ndata: {"seq":7}\n\n' +
  "event: lagged\ndata:\n\nid: 8-bb\r\nevent: record\r\ndata: one\r\ndata:  two\r\n\r\nevent: end\ndata: {}\n\n";

const EVENTS: ServerEvent[] = [
  { id: "7-aa", event: "record", data: '{"seq":7}' },
  { id: "7-aa", event: "lagged", data: "" },
  { id: "8-bb", event: "record", data: "one\n two" },
  { id: "8-bb", event: "end", data: "{}" },
];

test("a stream is cut into events", () => {
  assert.deepEqual(new EventParser().push(TEXT), EVENTS);
});

test("the pieces of a stream may end anywhere", () => {
  for (let size = 1; size < 20; size += 1) {
    const parser = new EventParser();
    const events: ServerEvent[] = [];
    for (let at = 0; at < TEXT.length; at += size) events.push(...parser.push(TEXT.slice(at, at + size)));
    assert.deepEqual(events, EVENTS, `pieces of ${size}`);
  }
});

test("an event is given only when it is whole", () => {
  const parser = new EventParser();
  assert.deepEqual(parser.push("data: x\n"), []);
  assert.deepEqual(parser.push("\n"), [{ id: null, event: "message", data: "x" }]);
});

test("a comment and an unknown field are no event", () => {
  assert.deepEqual(new EventParser().push(": hello\n\nretry: 5\n\nfoo: bar\n\n"), []);
});
