// The bundle, with a stand-in for VS Code: what it registers, and what it says when there is no program.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync } from "node:fs";
import Module, { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const extension = dirname(dirname(fileURLToPath(import.meta.url)));
const manifest = JSON.parse(readFileSync(join(extension, "package.json"), "utf8"));

/** Whatever the language client's library wants to extend or call while it is loaded. */
function anything() {
    return new Proxy(class {}, {
        get: (target, key) => (key in target || typeof key === "symbol" ? target[key] : anything()),
    });
}

function editor(settings, said) {
    const registered = new Map();
    const done = { dispose() {} };
    const own = {
        commands: {
            registerCommand: (name, run) => (registered.set(name, run), done),
            executeCommand: async (...words) => said.push(words),
        },
        window: {
            activeTextEditor: undefined,
            createOutputChannel: () => ({ info() {}, error: (text) => said.push(["error", text]), dispose() {} }),
            showErrorMessage: async (...words) => (said.push(words), words[1]),
        },
        workspace: {
            workspaceFolders: undefined,
            onDidChangeConfiguration: () => done,
            getConfiguration: () => ({ get: (name, fallback) => settings[name] ?? fallback }),
        },
        tasks: { registerTaskProvider: (type) => (registered.set(`task:${type}`, true), done) },
    };
    const vscode = new Proxy(own, { get: (target, key) => target[key] ?? anything() });
    return { vscode, registered };
}

async function activate(settings) {
    const said = [];
    const { vscode, registered } = editor(settings, said);
    const load = Module._load;
    Module._load = (name, ...rest) => (name === "vscode" ? vscode : load(name, ...rest));
    try {
        const require = createRequire(import.meta.url);
        const bundle = join(extension, "dist/extension.js");
        delete require.cache[bundle];
        const { activate } = require(bundle);
        await activate({ subscriptions: [], extension: { packageJSON: manifest } });
        // What is said is not waited for.
        await new Promise((resolve) => setImmediate(resolve));
        return { said, registered };
    } finally {
        Module._load = load;
    }
}

test("every command of the manifest is there, and those of lenses", async () => {
    process.env.PATH = mkdtempSync(join(tmpdir(), "empty-"));
    const { registered } = await activate({});
    const commands = manifest.contributes.commands.map((command) => command.command);
    for (const name of [...commands, "swarmc.references"]) {
        assert(registered.has(name), name);
    }
    assert(registered.has("task:swarmc"));
});

test("without the program on PATH it says what to do, and offers it", async () => {
    const { said } = await activate({});
    const [[message, ...choices], [opened, what]] = said;
    assert.match(message, /not on PATH.*cargo install.*swarmc\.path/s);
    assert.deepEqual(choices, ["Open the setting", "Copy the install command"]);
    assert.deepEqual([opened, what], ["workbench.action.openSettings", "swarmc.path"]);
});

test("a setting that leads nowhere is named", async () => {
    const { said } = await activate({ path: "/nowhere/swarmc" });
    assert.match(said[0][0], /`\/nowhere\/swarmc`, which the setting `swarmc\.path` names/);
});

test("the problem matcher reads what `swarmc check --format short` writes", () => {
    const [matcher] = manifest.contributes.problemMatchers;
    const line = "specs/a.kdl:5:24: error[SW503]: `run` is never a template";
    const found = new RegExp(matcher.pattern.regexp).exec(line).slice(1);
    assert.deepEqual(found, ["specs/a.kdl", "5", "24", "error", "SW503", "`run` is never a template"]);
});
