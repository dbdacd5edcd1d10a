// Where the program is looked for, and in which order.

import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join, relative } from "node:path";
import { test } from "node:test";
import { load } from "./modules.mjs";

const { describeMissing, searchProgram } = await load("search");

/** A folder with programs of these names. */
function folder(...names) {
    const root = mkdtempSync(join(tmpdir(), "search-"));
    for (const name of names) {
        mkdirSync(join(root, name, ".."), { recursive: true });
        writeFileSync(join(root, name), "#!/bin/sh\n");
        chmodSync(join(root, name), 0o755);
    }
    return root;
}

function places(more) {
    return { setting: "", extension: "/nowhere", workspace: undefined, path: "", platform: "linux", ...more };
}

test("the setting comes before the program of the extension, and that before PATH", async () => {
    const root = folder("own/swarmc", "extension/bin/swarmc", "path/swarmc");
    const all = places({ setting: join(root, "own/swarmc"), extension: join(root, "extension"), path: join(root, "path") });
    assert.deepEqual(await searchProgram(all), { program: join(root, "own/swarmc") });
    assert.deepEqual(await searchProgram({ ...all, setting: " " }), { program: join(root, "extension/bin/swarmc") });
    rmSync(join(root, "extension"), { recursive: true });
    assert.deepEqual(await searchProgram({ ...all, setting: "" }), { program: join(root, "path/swarmc") });
    rmSync(join(root, "path"), { recursive: true });
    assert.deepEqual(await searchProgram({ ...all, setting: "" }), { wrong: undefined });
});

test("a setting that leads nowhere is wrong, whatever else there is", async () => {
    const root = folder("path/swarmc");
    const found = await searchProgram(places({ setting: "/nowhere/swarmc", path: join(root, "path") }));
    assert.deepEqual(found, { wrong: "/nowhere/swarmc" });
    assert.deepEqual(await searchProgram(places({ setting: root })), { wrong: root });
});

test("a setting starts at home or in the workspace", async () => {
    const root = folder("tools/swarmc");
    const inside = places({ setting: "tools/swarmc", workspace: root });
    assert.deepEqual(await searchProgram(inside), { program: join(root, "tools/swarmc") });
    const home = `~/${relative(homedir(), join(root, "tools/swarmc"))}`;
    assert.deepEqual(await searchProgram(places({ setting: home })), { program: join(root, "tools/swarmc") });
});

test("a program of the extension that lost its mode gets it back; others do not", async () => {
    const root = folder("extension/bin/swarmc", "path/swarmc");
    chmodSync(join(root, "extension/bin/swarmc"), 0o644);
    chmodSync(join(root, "path/swarmc"), 0o644);
    const found = await searchProgram(places({ extension: join(root, "extension"), path: join(root, "path") }));
    assert.deepEqual(found, { program: join(root, "extension/bin/swarmc") });
    assert.equal(statSync(join(root, "extension/bin/swarmc")).mode & 0o777, 0o755);
    assert.deepEqual(await searchProgram(places({ path: join(root, "path") })), { wrong: undefined });
});

test("folders of PATH that are relative are passed over", async () => {
    const root = folder("bin/swarmc");
    const path = `bin:${relative(process.cwd(), join(root, "bin"))}:`;
    assert.deepEqual(await searchProgram(places({ path })), { wrong: undefined });
});

test("on Windows programs have endings", async () => {
    const root = folder("bin/swarmc.cmd");
    const found = await searchProgram(places({ path: join(root, "bin"), platform: "win32" }));
    assert.deepEqual(found, { program: join(root, "bin/swarmc.cmd") });
});

test("what is said names the place and what to type", () => {
    assert.match(describeMissing(undefined), /PATH has none.*`uv tool install swarmc`.*npm install.*`swarmc\.path`/s);
    assert.match(describeMissing("/x/swarmc"), /not at `\/x\/swarmc`, which the setting `swarmc\.path` names.*empty it/s);
});
