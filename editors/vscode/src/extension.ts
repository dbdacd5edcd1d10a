// Starts the language server and hands VS Code what it says. All knowledge of the language is in the server.

import * as vscode from "vscode";
import { Server } from "./server";
import { registerCommands } from "./commands";
import { openDocs } from "./program";
import { RunView } from "./runView";
import { registerTasks } from "./tasks";
import { TestExplorer } from "./testExplorer";

/** What tests look at, who cannot see the window. */
interface Shown {
    program: string | undefined;
    runs: RunView;
}

export async function activate(context: vscode.ExtensionContext): Promise<Shown> {
    const server = new Server(context);
    const runs = new RunView(server);
    context.subscriptions.push(
        server,
        ...registerCommands(server),
        registerTasks(server),
        new TestExplorer(server),
        runs,
        vscode.commands.registerCommand("swarmc.install", () => openDocs(context)),
        vscode.commands.registerCommand("swarmc.restart", () => server.restart()),
        vscode.workspace.onDidChangeConfiguration(async (change) => {
            if (change.affectsConfiguration("swarmc.path") || change.affectsConfiguration("swarmc.arguments")) {
                await server.restart();
            }
        }),
    );
    await server.restart();
    return { program: server.program, runs };
}
