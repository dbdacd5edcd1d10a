// What the view of runs shows of what the real program prints, and what its commands type.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { load, program } from "./modules.mjs";

const tree = await load("runTree");
const { readDocument, runProgram } = await load("cli");

const folder = mkdtempSync(join(tmpdir(), "runs-"));
process.env.SWARM_HOME = join(folder, "home");

writeFileSync(
    join(folder, "gate.kdl"),
    `workflow ship
pipeline ship {
    task build { run "echo built; echo noise >&2" }
    gate go {
        message "Ship <<output:build>>?"
        options yes no
        ask reason string
        on-timeout no after="24h"
    }
    task send { when "output.go.choice == 'yes'"; run "echo sent" }
}
`,
);
writeFileSync(
    join(folder, "bad.kdl"),
    `workflow bad
pipeline bad {
    task broken { run "echo oops >&2; exit 4" }
    task after { depends-on broken; run "echo no" }
    task each { for-each "[1, 2]"; run "cat"; stdin "<<item>>" }
    loop polish max=2 { until "iteration > 1"; task draft { run "echo draft" } }
}
`,
);

let child;
before(() => {
    child = spawn(program, ["run", "gate.kdl"], { cwd: folder, stdio: "ignore" });
});
after(() => child.kill());

async function eventually(find) {
    for (let tries = 0; tries < 600; tries += 1) {
        const found = await find();
        if (found !== undefined) {
            return found;
        }
        await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error("it never comes");
}

const listRuns = async () => (await readDocument(program, ["ps", "--all", "--json"])).runs;
const inspect = (run) => readDocument(program, ["inspect", run, "--json"]);
const answer = async (words) => assert.equal((await runProgram(program, words, folder)).code, 0, words.join(" "));

test("a run that waits for a person has a bell, and takes the answer", async () => {
    const run = await eventually(async () => (await listRuns()).find((run) => run.gates.length > 0));
    assert(tree.isAlive([run]) && tree.countQuestions([run]) === 1);
    const entry = tree.makeRun(run, run.started_ms + 120_000);
    assert.deepEqual([entry.label, entry.icon, entry.context], ["ship", "bell-dot", "run.running.asks"]);
    assert.match(entry.description, /^waits for you · 1\/3 · 2 min ago$/);
    const children = tree.listChildren(await inspect(run.run));
    const shown = children.map(({ label, icon, context }) => [label, icon, context]);
    assert.deepEqual(shown, [
        ["gate go", "bell-dot", "question"],
        ["build", "pass", "step"],
        ["go", "question", "step"],
        ["send", "circle-outline", "waiting"],
    ]);
    assert.equal(children[3].description, "waits for other steps");
    const [asked, build] = children;
    const files = tree.listFiles(await inspect(run.run), build.id).map((file) => [file.label, file.file.split("/").pop()]);
    assert.deepEqual(files, [["output", "build.txt"], ["stdout", "build.1.out"], ["stderr", "build.1.err"]]);
    const step = await readDocument(program, ["inspect", run.run, asked.step, "--json"]);
    const question = tree.readQuestion(step, asked.asks);
    assert.deepEqual([question.message.trim(), question.choices], ["Ship built?", ["yes", "no"]]);
    assert.deepEqual(question.fields, [{ name: "reason", optional: false, description: null }]);
    await answer(tree.answerWords(run.run, asked.asks, "no", [["reason", "not today"]], ""));
    const ended = await eventually(async () => (await listRuns()).find((one) => one.run === run.run && one.state !== "running"));
    const over = tree.makeRun(ended, ended.started_ms);
    assert.deepEqual([over.icon, over.context, tree.countQuestions([ended])], ["pass", "run.succeeded", 0]);
    const later = await readDocument(program, ["inspect", run.run, "go", "--json"]);
    assert.equal(tree.readQuestion(later, asked.asks), undefined);
    const last = tree.listChildren(await inspect(run.run)).map(({ label, description }) => `${label} ${description.split(" ")[0]}`);
    assert(last.includes("send skipped"), last.join("\n"));
});

test("a run that failed says why, and is resumed with what failed", async () => {
    assert.equal((await runProgram(program, ["run", "bad.kdl"], folder)).code, 3);
    const run = (await listRuns()).find((run) => run.workflow === "bad");
    const entry = tree.makeRun(run, run.started_ms);
    assert.deepEqual([entry.icon, entry.context], ["error", "run.failed"]);
    assert.deepEqual(tree.resumeArguments(entry), [run.run, "--retry-failed"]);
    const steps = tree.listChildren(await inspect(run.run));
    const broken = steps.find((step) => step.label === "broken");
    assert.deepEqual([broken.icon, broken.description.split(" ")[0]], ["error", "failed"]);
    assert.match(broken.tooltip, /oops/);
    const ids = steps.map((step) => step.id);
    assert.equal(new Set(ids).size, ids.length, ids.join("\n"));
    // What the view calls a step, the command line takes.
    for (const step of steps.filter((step) => step.context === "step")) {
        const words = ["inspect", run.run, step.step, "--json"];
        const ended = await runProgram(program, words);
        assert.equal(ended.code, 0, `${words.join(" ")}: ${ended.err}`);
    }
});

test("requests of agents are named by what they want", () => {
    const asked = { id: 3, step: "go", agent: "takao", since_ms: 0, on_timeout: null };
    assert.equal(tree.describeRequest({ ...asked, wants: "tool", tool: "shell" }), "takao wants tool shell");
    const step = { gate: null, approvals: [{ ...asked, wants: "tool", tool: "shell", arguments: { command: "ls" }, choices: ["allow", "deny"], answer: null }] };
    const question = tree.readQuestion(step, "3");
    assert.deepEqual([question.message, question.choices, question.because], ['takao wants tool shell\n{"command":"ls"}', ["allow", "deny"], true]);
    assert.deepEqual(tree.answerWords("r", "3", "deny", [], "not that"), ["approve", "r", "3", "deny", "--because", "not that"]);
    assert.equal(tree.readQuestion(step, "4"), undefined);
});

test("a command that fails says why", async () => {
    await assert.rejects(readDocument(program, ["inspect", "nothing-such", "--json"]), /nothing-such/);
});
