import assert from "node:assert/strict";
import { test } from "node:test";
import { parseDiff } from "../src/diff.ts";
import { formatAge, formatBytes, formatCount, formatDuration } from "../src/format.ts";
import { findBinding } from "../src/keys.ts";
import { MOST_LINES, TailText } from "../src/tail.ts";

const encoder = new TextEncoder();

test("a diff is cut into files", () => {
  const files = parseDiff(
    "diff --git a/x.rs b/x.rs\nindex 1..2\n--- a/x.rs\n+++ b/x.rs\n@@ -1,3 +1,2 @@\n same\n-old\n+new\n--- a comment\n" +
      "diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-all\n",
  );
  assert.deepEqual(
    files.map(({ path, added, removed }) => [path, added, removed]),
    [
      ["x.rs", 1, 2],
      ["gone", 0, 1],
    ],
  );
  assert.equal(files[0]?.lines.at(-1)?.kind, "removed");
});

test("a diff without git's headings is cut into files too", () => {
  const hunk = "@@ -1 +1 @@\n-old\n+new\n\\ No newline at end of file\n";
  const files = parseDiff(`--- a/x\n+++ b/x\n${hunk}--- a/y\n+++ b/y\n${hunk}`);
  assert.deepEqual(
    files.map(({ path, added, removed }) => [path, added, removed]),
    [
      ["x", 1, 1],
      ["y", 1, 1],
    ],
  );
});

test("a tail keeps the last lines", () => {
  const tail = new TailText();
  for (let piece = 0; piece < 100; piece += 1) {
    tail.add(encoder.encode(Array.from({ length: 70 }, (_, line) => `${piece * 70 + line}\n`).join("")), true);
  }
  const lines = tail.blocks
    .map(({ text }) => text)
    .join("")
    .trimEnd()
    .split("\n");
  assert.ok(lines.length <= MOST_LINES && lines.length > MOST_LINES - 200, String(lines.length));
  assert.equal(lines.at(-1), "6999");
});

test("a tail that begins within a line leaves that out, and joins halves of characters", () => {
  const tail = new TailText();
  const bytes = encoder.encode("half\nwhole ü\n");
  tail.add(bytes.slice(0, -2), false);
  tail.add(bytes.slice(-2), true);
  assert.equal(tail.blocks.map(({ text }) => text).join(""), "whole ü\n");
});

test("numbers are short", () => {
  assert.deepEqual([0, 999, 9999, 12_345, 999_999].map(formatCount), ["0", "999", "9999", "12.3k", "1.0M"]);
  assert.deepEqual([5, 2048, 10 << 20].map(formatBytes), ["5 B", "2.0 KiB", "10 MiB"]);
  assert.deepEqual([24, 1500, 61_000, 7_260_000].map(formatDuration), ["24 ms", "1.5 s", "1m 01s", "2h 01m"]);
  assert.equal(formatAge(1000, 3400), "2 s ago");
});

test("letters are found by their place, signs by what they are", () => {
  const press = { ctrlKey: false, metaKey: false, altKey: false };
  assert.equal(findBinding({ ...press, code: "KeyJ", key: "ο" })?.action, "next");
  assert.equal(findBinding({ ...press, code: "Digit7", key: "/" })?.action, "filter");
  assert.equal(findBinding({ ...press, code: "Slash", key: "-" })?.action, "zoomOut");
  assert.equal(findBinding({ ...press, code: "KeyK", key: "k", ctrlKey: true })?.action, "palette");
  assert.equal(findBinding({ ...press, code: "KeyJ", key: "j", ctrlKey: true }), undefined);
});
