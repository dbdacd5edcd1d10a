// The commands: runs and tests in a terminal, and what the server draws or tells in an editor beside.

import { basename, dirname } from "node:path";
import * as vscode from "vscode";
import type { Location, Position } from "vscode-languageclient/node";
import { firstLine, runProgram } from "./cli";
import { registerCommand } from "./command";
import type { Server } from "./server";
import { start } from "./tasks";

/** What a lens says of the pipeline or test that it stands above; from the palette, the open file alone is known. */
interface Target {
    uri: string;
    /** The workspace's folder, and the spec's path in it. */
    workspace?: string;
    path?: string;
    name?: string;
}

export function registerCommands(server: Server): vscode.Disposable[] {
    return [
        registerCommand("swarmc.init", () => writeFirst(server)),
        registerCommand("swarmc.check", () => start(server, { command: "check" }, undefined)),
        registerCommand("swarmc.run", (target?: Target) => inTerminal(server, "run", "--pipeline", target)),
        registerCommand("swarmc.test", (target?: Target) => inTerminal(server, "test", "--filter", target)),
        registerCommand("swarmc.inspect", (last?: { run: string }) =>
            start(server, { command: "inspect", arguments: [last?.run ?? "last"] }, undefined),
        ),
        registerCommand("swarmc.plan", async (target?: Target) => {
            await showText(await server.ask("swarmc.plan", await saved(target)), "plaintext");
        }),
        registerCommand("swarmc.graph", async (target?: Target) => {
            const of = await saved(target);
            showPicture(await server.ask("swarmc.graph", of), `Graph of ${basename(of.path ?? of.uri)}`);
        }),
        registerCommand("swarmc.prompt", async (target?: Target) => {
            const { editor } = current();
            const position = editor.selection.active;
            const at = { line: position.line, character: position.character };
            const of = target ?? { uri: editor.document.uri.toString(), position: at };
            await showText(await server.ask("swarmc.prompt", of), "markdown");
        }),
        registerCommand("swarmc.explain", async (code?: string) => {
            const asked = code ?? codeAtCursor() ?? (await askForCode());
            if (asked !== undefined) {
                await showText(await server.ask("swarmc.explain", asked), "markdown");
            }
        }),
        registerCommand("swarmc.references", async (uri: string, position: Position, places: Location[]) => {
            const converter = server.converter;
            if (converter !== undefined) {
                const locations = places.map((place) => converter.asLocation(place));
                const at = converter.asPosition(position);
                await vscode.commands.executeCommand("editor.action.showReferences", vscode.Uri.parse(uri), at, locations);
            }
        }),
    ];
}

/** Writes a first workflow into a folder that a person names, and opens it. */
async function writeFirst(server: Server): Promise<void> {
    const program = await server.needProgram();
    const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
    const chosen = await vscode.window.showOpenDialog({
        canSelectFiles: false,
        canSelectFolders: true,
        defaultUri: folder,
        openLabel: "Write a workflow here",
    });
    const [into] = chosen ?? [];
    if (into === undefined) {
        return;
    }
    const ended = await runProgram(program, ["init", "."], into.fsPath);
    if (ended.code !== 0) {
        throw new Error(firstLine(ended.err));
    }
    if (vscode.workspace.getWorkspaceFolder(into) === undefined) {
        await vscode.commands.executeCommand("vscode.openFolder", into);
        return;
    }
    await vscode.window.showTextDocument(vscode.Uri.joinPath(into, "workflow.kdl"));
}

async function inTerminal(server: Server, command: string, flag: string, target?: Target): Promise<void> {
    const of = await saved(target);
    const file = vscode.Uri.parse(of.uri).fsPath;
    const named = of.name === undefined ? [] : [flag, of.name];
    await start(server, { command, spec: of.path ?? file, arguments: named }, of.workspace ?? dirname(file));
}

/** The target, or the open spec; what is on disk is what runs, so it is written first. */
async function saved(target?: Target): Promise<Target> {
    const of = target ?? { uri: current().editor.document.uri.toString() };
    await vscode.workspace.saveAll(false);
    return of;
}

function current(): { editor: vscode.TextEditor } {
    const editor = vscode.window.activeTextEditor;
    if (editor === undefined) {
        throw new Error("open a spec or a prompt first");
    }
    return { editor };
}

/** The rule of the problem under the cursor. */
function codeAtCursor(): string | undefined {
    const editor = vscode.window.activeTextEditor;
    const problems = editor ? vscode.languages.getDiagnostics(editor.document.uri) : [];
    const here = problems.find((problem) => problem.source === "swarmc" && problem.range.contains(editor!.selection.active));
    const code = here?.code;
    return typeof code === "object" ? String(code.value) : code?.toString();
}

async function askForCode(): Promise<string | undefined> {
    return vscode.window.showInputBox({
        title: "Explain a rule",
        prompt: "A code such as SW201, or a name such as output-not-upstream",
    });
}

async function showText(content: string, language: string): Promise<void> {
    const document = await vscode.workspace.openTextDocument({ content, language });
    await vscode.window.showTextDocument(document, { viewColumn: vscode.ViewColumn.Beside, preview: true });
}

/** An SVG in a tab: as an image, so that nothing in it can run or load anything. */
function showPicture(svg: string, title: string): void {
    const panel = vscode.window.createWebviewPanel("swarmc.graph", title, vscode.ViewColumn.Beside, {
        enableScripts: false,
    });
    const data = Buffer.from(svg, "utf8").toString("base64");
    panel.webview.html =
        `<!doctype html><meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; ` +
        `style-src 'unsafe-inline'"><style>img { max-width: 100%; }</style>` +
        `<img alt="" src="data:image/svg+xml;base64,${data}">`;
}
