// Runs inside of Visual Studio Code, beside the extension: types, tests, and answers as a person does, and looks at what is
// there. Each check writes a line into the file REPORT; the first that fails ends it.

const assert = require("node:assert/strict");
const { spawn } = require("node:child_process");
const { appendFileSync } = require("node:fs");
const vscode = require("vscode");

const PATIENCE_MS = 30_000;

function say(line) {
    appendFileSync(process.env.REPORT, `${line}\n`);
}

/** Waits until something is found, and says so. The editor cancels a request whose document changes: it is asked again. */
async function eventually(what, find) {
    const deadline = Date.now() + PATIENCE_MS;
    while (Date.now() < deadline) {
        let found;
        try {
            found = await find();
        } catch (error) {
            if (error.name !== "Canceled") {
                throw error;
            }
        }
        if (found !== undefined && found !== false) {
            say(`ok - ${what}`);
            return found;
        }
        await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error(`${what}: never`);
}

const place = (path) => vscode.Uri.joinPath(vscode.workspace.workspaceFolders[0].uri, path);
const execute = (...words) => vscode.commands.executeCommand(...words);

async function type(uri, offset, text) {
    const document = await vscode.workspace.openTextDocument(uri);
    const editor = await vscode.window.showTextDocument(document);
    // An edit is refused while another one is under way.
    while (!(await editor.edit((edit) => edit.insert(document.positionAt(offset), text)))) {}
    return document;
}

async function tryLanguage() {
    const prompt = place("prompts/coder.md");
    const document = await vscode.workspace.openTextDocument(prompt);
    const end = document.getText().length;
    await type(prompt, end, "\nhand it to <<output:plannr>>\n");
    const problem = await eventually("a wrong name is told while a prompt is written", () =>
        vscode.languages.getDiagnostics(prompt).find((one) => one.source === "swarmc" && one.message.includes("plannr")),
    );
    const fix = await eventually("a fix is offered", async () => {
        const fixes = await execute("vscode.executeCodeActionProvider", prompt, problem.range);
        return fixes.find((one) => one.title.includes("planner") && one.edit !== undefined);
    });
    await vscode.workspace.applyEdit(fix.edit);
    await eventually("a fix mends it", () => vscode.languages.getDiagnostics(prompt).length === 0);
    const at = document.getText().length;
    await type(prompt, at, "<<output:");
    await eventually("inside `<<output:` the steps are offered", async () => {
        const list = await execute("vscode.executeCompletionItemProvider", prompt, document.positionAt(at + 9));
        return list.items.some(({ label }) => (label.label ?? label) === "planner");
    });
    await document.save();
    await execute("workbench.action.revertAndCloseActiveEditor");
}

const textOf = ({ message }) => String(message.value ?? message);

async function tryTests() {
    const observer = vscode.tests.createTestObserver();
    // The items of an observer have no children: what came and went is counted.
    const seen = new Map();
    observer.onDidChangeTest(({ added, removed }) => {
        added.forEach((test) => seen.set(`${test.uri} ${test.id}`, test));
        removed.forEach((test) => seen.delete(`${test.uri} ${test.id}`));
    });
    const spec = place("tests/tested.kdl");
    const of = (test) => test.uri?.path === spec.path && test.range !== undefined;
    const labels = () => [...seen.values()].filter(of).map((test) => test.label).sort().join(" ");
    await eventually("the test explorer has the tests of a spec", () => labels() === "bad good");
    const document = await vscode.workspace.openTextDocument(spec);
    // As with a formatter: a save takes its time, and the editor, which saves by itself, has begun one when tests are to run.
    let saving = false;
    const slow = vscode.workspace.onWillSaveTextDocument((save) => {
        saving = true;
        save.waitUntil(new Promise((resolve) => setTimeout(resolve, 500)));
    });
    await type(spec, document.getText().length, 'test late { fake a "hi"; expect { status success } }\n');
    await eventually("a test is there as soon as it is typed", () => labels() === "bad good late");
    await eventually("the editor begins to save it", () => saving);
    await execute("testing.runAll");
    slow.dispose();
    const states = (run) => {
        const tests = run.results.flatMap((root) => root.children).flatMap((spec) => spec.children);
        return Object.fromEntries(tests.map((test) => [test.label, test.taskStates[0]]));
    };
    const { Passed, Failed } = { Passed: 3, Failed: 4 };
    const first = await eventually("all tests run", () => {
        const [run] = vscode.tests.testResults;
        const found = run && states(run);
        return found?.bad?.state >= Passed && found.good.state >= Passed && found.late.state >= Passed && found;
    });
    const said = Object.values(first).flatMap(({ messages }) => messages.map(textOf)).join("\n");
    assert.deepEqual([first.good.state, first.late.state, first.bad.state], [Passed, Passed, Failed], said);
    const [message] = first.bad.messages;
    assert.match(textOf(message), /hi/);
    const line = document.getText().split("\n").findIndex((text) => text.includes('result equals="ho"'));
    assert.deepEqual([message.location.uri.path, message.location.range.start.line], [spec.path, line]);
    say("ok - what does not hold is told where it stands");
    const before = vscode.tests.testResults.length;
    const cursor = document.positionAt(document.getText().indexOf("test good") + 6);
    (await vscode.window.showTextDocument(document)).selection = new vscode.Selection(cursor, cursor);
    await execute("testing.runAtCursor");
    const one = await eventually("one test runs alone", () => {
        const [run] = vscode.tests.testResults;
        const found = vscode.tests.testResults.length > before && states(run);
        return found && found.good?.state >= Passed && found;
    });
    assert.deepEqual(Object.entries(one).filter(([, test]) => test.state === Failed), []);
    observer.dispose();
}

async function tryRuns({ program, runs }) {
    await execute("swarmc.runs.focus");
    assert.deepEqual(await runs.getChildren(), []);
    const child = spawn(program, ["run", "gate.kdl"], { cwd: place("tests").fsPath, stdio: "ignore" });
    try {
        const show = async (parent) => (await runs.getChildren(parent)).map((entry) => runs.getTreeItem(entry));
        let told = 0;
        const listener = runs.onDidChangeTreeData(() => (told += 1));
        await eventually("the view of runs tells that a run began", () => told > 0);
        const run = await eventually("a run that waits for a person is there", async () =>
            (await runs.getChildren()).find((entry) => entry.context === "run.running.asks"),
        );
        const labels = (await show(run)).map((item) => `${item.label}: ${item.iconPath.id}`);
        assert.deepEqual(labels, ["gate go: bell-dot", "build: pass", "go: question", "send: circle-outline"]);
        say("ok - it has a question, and its steps");
        const answered = execute("swarmc.runs.approve", run);
        await eventually("the answer that is picked reaches the gate", async () => {
            await execute("workbench.action.acceptSelectedQuickOpenItem");
            const [entry] = await runs.getChildren();
            return entry.context === "run.succeeded";
        });
        await answered;
        const [ended] = await runs.getChildren();
        const steps = (await show(ended)).map((item) => `${item.label}: ${item.iconPath.id}`);
        assert.deepEqual(steps, ["build: pass", "go: pass", "send: pass"]);
        say("ok - and the run goes on to its end");
        listener.dispose();
    } finally {
        child.kill();
    }
}

exports.run = async () => {
    try {
        const extension = vscode.extensions.getExtension("swarmc.swarmc");
        const shown = await extension.activate();
        assert.equal(shown.program, vscode.Uri.joinPath(extension.extensionUri, "bin/swarmc").fsPath);
        say("ok - the extension starts the program that it brings");
        await tryLanguage();
        await tryTests();
        await tryRuns(shown);
        say("done");
    } catch (error) {
        const document = vscode.window.activeTextEditor?.document;
        const problems = document ? vscode.languages.getDiagnostics(document.uri).map((one) => one.message) : [];
        say(`not ok - ${error.stack}\n${document?.uri}: ${JSON.stringify(problems)}\n${document?.getText()}`);
    }
};
