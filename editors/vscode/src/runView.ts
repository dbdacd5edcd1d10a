// The view of runs: a tree of them and their steps, and what a person does with them.

import * as vscode from "vscode";
import { firstLine, readDocument, runProgram } from "./cli";
import { registerCommand } from "./command";
import type { RunDetails, Runs, StepDetails } from "./documents";
import {
    answerWords,
    countQuestions,
    type Entry,
    isAlive,
    listChildren,
    listFiles,
    makeRun,
    readQuestion,
    resumeArguments,
} from "./runTree";
import type { Server } from "./server";
import { start } from "./tasks";

/** How often the runs are looked at while one goes on, and while none does. */
const [BUSY_MS, IDLE_MS] = [1000, 5000];

export class RunView implements vscode.TreeDataProvider<Entry>, vscode.Disposable {
    private readonly changed = new vscode.EventEmitter<void>();
    public readonly onDidChangeTreeData = this.changed.event;
    private readonly view: vscode.TreeView<Entry>;
    private readonly disposables: vscode.Disposable[];
    private timer: NodeJS.Timeout | undefined;
    /** What `ps` said last. */
    private seen = "";

    public constructor(private readonly server: Server) {
        this.view = vscode.window.createTreeView("swarmc.runs", { treeDataProvider: this, showCollapseAll: true });
        this.disposables = [
            this.changed,
            this.view,
            this.view.onDidChangeVisibility(() => this.look()),
            server.onStarted(() => this.refresh()),
            vscode.commands.registerCommand("swarmc.runs.refresh", () => this.refresh()),
            registerCommand("swarmc.runs.logs", (entry: Entry) => this.terminal("logs", named(entry))),
            registerCommand("swarmc.runs.inspect", (entry: Entry) => this.terminal("inspect", named(entry))),
            registerCommand("swarmc.runs.resume", (entry: Entry) => this.terminal("resume", resumeArguments(entry))),
            registerCommand("swarmc.runs.stop", (entry: Entry) => this.tell(["stop", entry.run])),
            registerCommand("swarmc.runs.approve", (entry: Entry) => this.answer(entry)),
        ];
    }

    public dispose(): void {
        clearTimeout(this.timer);
        this.disposables.forEach((one) => void one.dispose());
    }

    public getTreeItem(entry: Entry): vscode.TreeItem {
        const { Collapsed, None } = vscode.TreeItemCollapsibleState;
        const item = new vscode.TreeItem(entry.label, entry.children ? Collapsed : None);
        const color = entry.color === undefined ? undefined : new vscode.ThemeColor(entry.color);
        item.id = entry.id;
        item.description = entry.description;
        item.tooltip = entry.tooltip;
        item.contextValue = entry.context;
        item.iconPath = new vscode.ThemeIcon(entry.icon, color);
        if (entry.file !== undefined) {
            item.command = { command: "vscode.open", title: "Open", arguments: [vscode.Uri.file(entry.file)] };
        } else if (entry.asks !== undefined) {
            item.command = { command: "swarmc.runs.approve", title: "Answer", arguments: [entry] };
        }
        return item;
    }

    public async getChildren(entry?: Entry): Promise<Entry[]> {
        const { program } = this.server;
        if (program === undefined) {
            return [];
        }
        if (entry === undefined) {
            const { runs } = await readDocument<Runs>(program, ["ps", "--all", "--json"]);
            return runs.map((run) => makeRun(run, Date.now()));
        }
        const run = await readDocument<RunDetails>(program, ["inspect", entry.run, "--json"]);
        return entry.context.startsWith("run.") ? listChildren(run) : listFiles(run, entry.id);
    }

    private refresh(): void {
        this.changed.fire();
        this.look();
    }

    /** Looks at the runs that go on, and shows the tree anew when one has changed; again and again while it is seen. */
    private look(): void {
        clearTimeout(this.timer);
        const { program } = this.server;
        if (program === undefined || !this.view.visible) {
            return;
        }
        const again = (wait: number): void => {
            clearTimeout(this.timer);
            this.timer = setTimeout(() => this.look(), wait);
        };
        readDocument<Runs>(program, ["ps", "--json"]).then(
            ({ runs }) => {
                const said = JSON.stringify(runs);
                if (said !== this.seen) {
                    this.seen = said;
                    this.changed.fire();
                    const count = countQuestions(runs);
                    this.view.badge = count === 0 ? undefined : { value: count, tooltip: "Questions of runs to you" };
                }
                again(isAlive(runs) ? BUSY_MS : IDLE_MS);
            },
            () => again(IDLE_MS),
        );
    }

    private async terminal(command: string, words: string[]): Promise<void> {
        await start(this.server, { command, arguments: words }, undefined);
        this.look();
    }

    /** Runs a command that says in a line what it did. */
    private async tell(words: string[]): Promise<void> {
        const ended = await runProgram(await this.server.needProgram(), words);
        const said = firstLine(ended.err || ended.out);
        if (ended.code !== 0) {
            throw new Error(said);
        }
        vscode.window.setStatusBarMessage(`swarmc: ${said}`, 5000);
        this.refresh();
    }

    /** Asks a person what a gate or an agent asks, and passes the answer on. */
    private async answer(entry: Entry): Promise<void> {
        const program = await this.server.needProgram();
        const asked = entry.asks === undefined ? await this.chooseQuestion(program, entry) : entry;
        if (asked?.asks === undefined || asked.step === undefined) {
            return;
        }
        const step = await readDocument<StepDetails>(program, ["inspect", asked.run, asked.step, "--json"]);
        const question = readQuestion(step, asked.asks);
        if (question === undefined) {
            throw new Error(`${asked.label} has its answer already`);
        }
        const ask = { title: asked.label, placeHolder: question.message.split("\n")[0], ignoreFocusOut: true };
        const choice =
            question.choices.length === 0
                ? await vscode.window.showInputBox({ ...ask, prompt: question.message })
                : await vscode.window.showQuickPick(question.choices, ask);
        if (choice === undefined) {
            return;
        }
        const fields: [string, string][] = [];
        for (const { name, optional, description } of question.fields) {
            const prompt = `${name}${optional ? " (may be left empty)" : ""}${description ? `: ${description}` : ""}`;
            const value = await vscode.window.showInputBox({ title: asked.label, prompt, ignoreFocusOut: true });
            if (value === undefined) {
                return;
            }
            fields.push([name, value]);
        }
        const reason = { title: asked.label, prompt: "What the agent reads with it; may be left empty" };
        const because = question.because && choice !== "always" ? await vscode.window.showInputBox(reason) : "";
        if (because !== undefined) {
            await this.tell(answerWords(asked.run, asked.asks, choice, fields, because));
        }
    }

    private async chooseQuestion(program: string, entry: Entry): Promise<Entry | undefined> {
        const run = await readDocument<RunDetails>(program, ["inspect", entry.run, "--json"]);
        const questions = listChildren(run).filter((child) => child.asks !== undefined);
        if (questions.length <= 1) {
            return questions[0];
        }
        return vscode.window.showQuickPick(questions, { title: entry.label });
    }
}

/** The run and the step, as the command line takes them. */
function named(entry: Entry): string[] {
    return entry.step === undefined ? [entry.run] : [entry.run, entry.step];
}
