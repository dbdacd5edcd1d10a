// Starts the language server and hands VS Code what it says. All knowledge of the language is in the server.

import * as vscode from "vscode";
import { Server } from "./server";
import { registerCommands } from "./commands";
import { registerTasks } from "./tasks";

export async function activate(context: vscode.ExtensionContext): Promise<void> {
    const server = new Server(context);
    context.subscriptions.push(
        server,
        ...registerCommands(server),
        registerTasks(server),
        vscode.commands.registerCommand("swarmc.restart", () => server.restart()),
        vscode.workspace.onDidChangeConfiguration(async (change) => {
            if (change.affectsConfiguration("swarmc.path") || change.affectsConfiguration("swarmc.arguments")) {
                await server.restart();
            }
        }),
    );
    await server.restart();
}
