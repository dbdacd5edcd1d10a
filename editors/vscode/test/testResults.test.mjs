// What the test explorer shows of what the real program prints.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { load, program } from "./modules.mjs";

const { convertPosition, describeFailure, listTests, readOutcomes, testWords } = await load("testResults");
const { runProgram } = await load("cli");

const SPEC = `pipeline p {
    task a { run "echo hi" }
    result a
}
test good { fake a "hi"; expect { status success } }
test good-too { fake a "hi"; expect { status success } }
test bad { fake a "𝄞 hi"; expect { result equals="ho" } }
`;

const folder = mkdtempSync(join(tmpdir(), "tests-"));
const spec = join(folder, "flow.kdl");
writeFileSync(spec, SPEC);
const run = (words) => runProgram(program, words, folder);

test("all tests of a spec run at once, one by its name, and snapshots on demand", () => {
    assert.deepEqual(testWords("a.kdl", ["x", "y"], true, false), ["test", "a.kdl", "--format", "json"]);
    assert.deepEqual(testWords("a.kdl", ["x"], false, false), ["test", "a.kdl", "--format", "json", "--filter", "x"]);
    assert.deepEqual(testWords("a.kdl", ["x", "y"], false, true), ["test", "a.kdl", "--format", "json", "--update"]);
});

test("each test has its outcome, with what does not hold where it stands", async () => {
    const outcomes = readOutcomes(["bad", "good"], await run(testWords(spec, ["bad", "good"], false, false)));
    assert.deepEqual(outcomes.map((outcome) => [outcome.test, outcome.case.status]), [["bad", "failed"], ["good", "passed"]]);
    const [failure] = outcomes[0].case.failures;
    assert.match(describeFailure(failure), /^.+ \(.+\)\n/);
    assert.match(describeFailure(failure), /𝄞 hi/);
    const lines = readFileSync(spec, "utf8").split("\n");
    const start = convertPosition(failure.at.start, lines[failure.at.start.line - 1]);
    const end = convertPosition(failure.at.end, lines[failure.at.end.line - 1]);
    assert.equal(start.line, 6);
    // The sign before it has two units in an editor, and one column in the report.
    assert.match(lines[6].slice(start.character, end.character), /^result equals="ho"|^"ho"$/);
});

test("one test runs alone, though another begins with its name", async () => {
    const outcomes = readOutcomes(["good"], await run(testWords(spec, ["good"], false, false)));
    assert.deepEqual(outcomes.map((outcome) => outcome.test), ["good"]);
});

test("a spec with errors, and a test that is not there, are errors with the reason", async () => {
    const broken = join(folder, "broken.kdl");
    writeFileSync(broken, "pipeline p { task a { depends-on b; run ls } }\ntest one { expect { status success } }\n");
    const [one] = readOutcomes(["one"], await run(testWords(broken, ["one"], true, false)));
    assert.match(one.error, /has errors.*error\[SW101\]: there is no step `b`/s);
    const [gone] = readOutcomes(["gone"], await run(testWords(spec, ["gone", "x"], false, false)));
    assert.match(gone.error, /no test `gone` in this spec/);
    const [none] = readOutcomes(["gone"], await run(testWords(spec, ["gone"], false, false)));
    assert.match(none.error, /no test of the spec has `gone` in its name/);
});

test("a run that is cancelled ends at once", async () => {
    const stopped = new AbortController();
    stopped.abort();
    const ended = await runProgram(program, ["lsp"], folder, stopped.signal);
    assert.equal(ended.code, null);
});

test("tests are those of the outline", () => {
    const range = { start: { line: 4, character: 0 }, end: { line: 4, character: 9 } };
    const outline = [{ name: "p", detail: "pipeline", range }, { name: "good", detail: "test", range }];
    assert.deepEqual(listTests(outline), [{ name: "good", range }]);
    assert.deepEqual(listTests(null), []);
});
