// The bundle, with a stand-in for VS Code: what it registers, and what it says when there is no program.

import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync } from "node:fs";
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

/** What can be listened to, and never happens. */
const done = { dispose() {} };
const never = () => done;

function editor(settings, said, choice) {
    const registered = new Map();
    const controller = {
        items: new Map(),
        createRunProfile: (name) => (registered.set(`profile:${name}`, true), done),
        dispose() {},
    };
    const own = {
        EventEmitter: class {
            event = never;
            fire() {}
            dispose() {}
        },
        TestRunProfileKind: { Run: 1 },
        Uri: { parse: (text) => text },
        env: {
            clipboard: { writeText: async (text) => said.push(["copied", text]) },
            openExternal: async (uri) => said.push(["opened", uri]),
        },
        commands: {
            registerCommand: (name, run) => (registered.set(name, run), done),
            executeCommand: async (...words) => said.push(words),
        },
        tests: { createTestController: (id) => (registered.set(`tests:${id}`, true), controller) },
        window: {
            activeTextEditor: undefined,
            createOutputChannel: () => ({ info() {}, error: (text) => said.push(["error", text]), dispose() {} }),
            createTreeView: (id) => (registered.set(`view:${id}`, true), { onDidChangeVisibility: never, dispose() {} }),
            showErrorMessage: async (...words) => (said.push(words), choice),
        },
        workspace: {
            workspaceFolders: undefined,
            onDidChangeConfiguration: never,
            onDidChangeTextDocument: never,
            createFileSystemWatcher: () => ({ onDidCreate: never, onDidChange: never, onDidDelete: never, dispose() {} }),
            getConfiguration: () => ({ get: (name, fallback) => settings[name] ?? fallback }),
        },
        tasks: { registerTaskProvider: (type) => (registered.set(`task:${type}`, true), done) },
    };
    const vscode = new Proxy(own, { get: (target, key) => target[key] ?? anything() });
    return { vscode, registered };
}

async function activate(settings, choice) {
    const said = [];
    const { vscode, registered } = editor(settings, said, choice);
    const load = Module._load;
    Module._load = (name, ...rest) => (name === "vscode" ? vscode : load(name, ...rest));
    try {
        const require = createRequire(import.meta.url);
        const bundle = join(extension, "dist/extension.js");
        delete require.cache[bundle];
        const { activate } = require(bundle);
        await activate({ subscriptions: [], extension: { packageJSON: manifest }, extensionPath: "/nowhere" });
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
    for (const name of ["task:swarmc", "tests:swarmc", "view:swarmc.runs", "profile:Run"]) {
        assert(registered.has(name), name);
    }
});

test("what the manifest shows and calls is there", () => {
    const { contributes } = manifest;
    const commands = new Set(contributes.commands.map((command) => command.command));
    const views = Object.values(contributes.views).flat().map((view) => view.id);
    const own = [...commands, ...views.map((view) => `${view}.focus`)];
    const texts = JSON.stringify([contributes.walkthroughs, contributes.viewsWelcome]);
    const called = [...texts.matchAll(/\(command:(swarmc[\w.]*)/g)].map(([, name]) => name);
    assert(called.length >= 6, called);
    assert.deepEqual(called.filter((name) => !own.includes(name)), []);
    const listed = Object.values(contributes.menus).flat().map((item) => item.command);
    assert.deepEqual(listed.filter((name) => !commands.has(name)), []);
    const [{ steps }] = contributes.walkthroughs;
    assert.deepEqual(steps.map((step) => step.id), ["program", "init", "check", "test", "run"]);
    for (const file of [...steps.map((step) => step.media.markdown), manifest.icon]) {
        assert(existsSync(join(extension, file)), file);
    }
});

test("the icon is as large as the marketplace wants it", () => {
    const png = readFileSync(join(extension, manifest.icon));
    assert.equal(png.toString("latin1", 1, 4), "PNG");
    assert(png.readUInt32BE(16) >= 128 && png.readUInt32BE(16) === png.readUInt32BE(20));
});

test("without a program it says what to do, and offers it", async () => {
    const { said } = await activate({}, "Open the setting");
    const [found, [message, ...choices], opened] = said;
    assert.deepEqual(found, ["setContext", "swarmc.found", false]);
    assert.match(message, /PATH has none.*uv tool install.*swarmc\.path/s);
    assert.deepEqual(choices, ["How to install", "Copy the install command", "Open the setting"]);
    assert.deepEqual(opened, ["workbench.action.openSettings", "swarmc.path"]);
    const copied = await activate({}, "Copy the install command");
    assert.deepEqual(copied.said[2], ["copied", "uv tool install swarmc"]);
    const docs = await activate({}, "How to install");
    assert.deepEqual(docs.said[2], ["opened", "https://github.com/OWNER/swarmc/blob/main/docs/install.md"]);
});

test("a setting that leads nowhere is named", async () => {
    const { said } = await activate({ path: "/nowhere/swarmc" });
    assert.match(said[1][0], /`\/nowhere\/swarmc`, which the setting `swarmc\.path` names/);
});

test("the problem matcher reads what `swarmc check --format short` writes", () => {
    const [matcher] = manifest.contributes.problemMatchers;
    const line = "specs/a.kdl:5:24: error[SW503]: `run` is never a template";
    const found = new RegExp(matcher.pattern.regexp).exec(line).slice(1);
    assert.deepEqual(found, ["specs/a.kdl", "5", "24", "error", "SW503", "`run` is never a template"]);
});
