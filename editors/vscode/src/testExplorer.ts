// The test explorer: tests of specs as the language server sees them, run by `swarmc test`.

import { dirname, resolve } from "node:path";
import * as vscode from "vscode";
import { runProgram } from "./cli";
import type { Failure } from "./documents";
import type { Server } from "./server";
import { convertPosition, describeFailure, listTests, type Outcome, readOutcomes, testWords } from "./testResults";

const SPECS = "**/*.kdl";
const SAVE_MS = 5_000;
const IGNORED = "**/{node_modules,target,.swarm}/**";

export class TestExplorer implements vscode.Disposable {
    private readonly controller = vscode.tests.createTestController("swarmc", "swarmc");
    private readonly disposables: vscode.Disposable[] = [this.controller];

    public constructor(private readonly server: Server) {
        const { Run } = vscode.TestRunProfileKind;
        this.controller.refreshHandler = () => this.refreshAll();
        this.controller.resolveHandler = async (item) => {
            if (item === undefined) {
                await this.refreshAll();
            }
        };
        this.controller.createRunProfile("Run", Run, (request, token) => this.run(request, token, false), true);
        this.controller.createRunProfile("Run and write snapshots", Run, (request, token) => this.run(request, token, true));
        const watcher = vscode.workspace.createFileSystemWatcher(SPECS);
        const refresh = (uri: vscode.Uri): void => void this.refresh(uri);
        this.disposables.push(
            watcher,
            watcher.onDidCreate(refresh),
            watcher.onDidChange(refresh),
            watcher.onDidDelete((uri) => this.controller.items.delete(uri.toString())),
            vscode.workspace.onDidChangeTextDocument(({ document }) => this.refreshLater(document)),
            server.onStarted(() => void this.refreshAll()),
        );
    }

    public dispose(): void {
        clearTimeout(this.later);
        this.disposables.forEach((one) => void one.dispose());
    }

    private async refreshAll(): Promise<void> {
        const specs = await vscode.workspace.findFiles(SPECS, IGNORED);
        const there = new Set(specs.map((uri) => uri.toString()));
        const gone = [...this.controller.items].map(([id]) => id).filter((id) => !there.has(id));
        gone.forEach((id) => this.controller.items.delete(id));
        await Promise.all(specs.map((uri) => this.refresh(uri)));
    }

    private later: NodeJS.Timeout | undefined;

    /** Once a person pauses. */
    private refreshLater(document: vscode.TextDocument): void {
        if (document.uri.scheme === "file" && document.fileName.endsWith(".kdl")) {
            clearTimeout(this.later);
            this.later = setTimeout(() => void this.refresh(document.uri), 300);
        }
    }

    /** Shows the tests that a spec has now. */
    private async refresh(uri: vscode.Uri): Promise<void> {
        // A server that does not run has no tests; it says when it has started. A request that fails changes nothing.
        const outline = await this.server.listSymbols(uri).catch(() => undefined);
        if (outline === undefined) {
            return;
        }
        const tests = listTests(outline);
        if (tests.length === 0) {
            this.controller.items.delete(uri.toString());
            return;
        }
        const known = this.controller.items.get(uri.toString());
        const spec = known ?? this.controller.createTestItem(uri.toString(), vscode.workspace.asRelativePath(uri), uri);
        spec.children.replace(
            tests.map(({ name, range: { start, end } }) => {
                // The same item as before: a run that goes on says of that how it went.
                const item = spec.children.get(name) ?? this.controller.createTestItem(name, name, uri);
                item.range = new vscode.Range(start.line, start.character, end.line, end.character);
                return item;
            }),
        );
        this.controller.items.add(spec);
    }

    /** Runs the tests of a request, spec by spec. */
    private async run(request: vscode.TestRunRequest, token: vscode.CancellationToken, update: boolean): Promise<void> {
        const run = this.controller.createTestRun(request);
        try {
            await saveDocuments();
            for (const [spec, tests] of this.groupBySpec(request)) {
                tests.forEach((test) => (token.isCancellationRequested ? run.skipped(test) : run.started(test)));
                if (!token.isCancellationRequested) {
                    await this.runSpec(run, spec, tests, token, update);
                }
            }
        } finally {
            run.end();
        }
    }

    /** The tests of each spec, those that a request leaves out aside. */
    private groupBySpec(request: vscode.TestRunRequest): Map<vscode.TestItem, vscode.TestItem[]> {
        const all = [...this.controller.items].map(([, item]) => item);
        const groups = new Map<vscode.TestItem, vscode.TestItem[]>();
        for (const item of request.include ?? all) {
            const spec = item.parent ?? item;
            const tests = item.parent ? [item] : [...item.children].map(([, test]) => test);
            const wanted = tests.filter((test) => !request.exclude?.some((out) => out === test || out === spec));
            const group = groups.get(spec) ?? [];
            groups.set(spec, [...group, ...wanted.filter((test) => !group.includes(test))]);
        }
        return groups;
    }

    private async runSpec(
        run: vscode.TestRun,
        spec: vscode.TestItem,
        tests: vscode.TestItem[],
        token: vscode.CancellationToken,
        update: boolean,
    ): Promise<void> {
        const names = tests.map((test) => test.label);
        const folder = dirname(spec.uri!.fsPath);
        try {
            const program = await this.server.needProgram();
            const stopped = new AbortController();
            const stop = token.onCancellationRequested(() => stopped.abort());
            const words = testWords(spec.uri!.fsPath, names, names.length === spec.children.size, update);
            const ended = await runProgram(program, words, folder, stopped.signal);
            stop.dispose();
            if (token.isCancellationRequested) {
                tests.forEach((test) => run.skipped(test));
                return;
            }
            run.appendOutput(`${ended.err.trimEnd()}\n`.replace(/\r?\n/g, "\r\n"));
            const outcomes = readOutcomes(names, ended);
            await Promise.all(tests.map((test, index) => showOutcome(run, test, outcomes[index]!, folder)));
        } catch (error) {
            tests.forEach((test) => run.errored(test, new vscode.TestMessage(String(error))));
        }
    }
}

/**
 * Saves what is edited. `saveAll` does not wait for a save that the editor has begun by itself, which would write a spec
 * while `swarmc test` reads it. A document that cannot be saved is not waited for longer than `SAVE_MS`.
 */
async function saveDocuments(): Promise<void> {
    await vscode.workspace.saveAll(false);
    const deadline = Date.now() + SAVE_MS;
    const isEdited = ({ uri, isDirty }: vscode.TextDocument): boolean => isDirty && uri.scheme === "file";
    while (vscode.workspace.textDocuments.some(isEdited) && Date.now() < deadline) {
        await new Promise((resolve) => setTimeout(resolve, 20));
    }
}

async function showOutcome(run: vscode.TestRun, test: vscode.TestItem, outcome: Outcome, folder: string): Promise<void> {
    if ("error" in outcome) {
        const message = new vscode.TestMessage(outcome.error);
        message.location = new vscode.Location(test.uri!, test.range!);
        run.errored(test, message);
    } else if (outcome.case.status === "passed") {
        run.passed(test);
    } else {
        run.failed(test, await Promise.all(outcome.case.failures.map((failure) => makeMessage(failure, folder))));
    }
}

/** A failure where the editor shows it: beside the expectation, or the fake, which does not hold. */
async function makeMessage(failure: Failure, folder: string): Promise<vscode.TestMessage> {
    const message = new vscode.TestMessage(describeFailure(failure));
    const uri = vscode.Uri.file(resolve(folder, failure.at.file));
    const document = await vscode.workspace.openTextDocument(uri);
    const [start, end] = [failure.at.start, failure.at.end].map((position) => {
        const at = convertPosition(position, document.lineAt(position.line - 1).text);
        return new vscode.Position(at.line, at.character);
    });
    message.location = new vscode.Location(uri, new vscode.Range(start!, end!));
    return message;
}
