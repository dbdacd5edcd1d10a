// Commands, which say what is wrong where they fail.

import * as vscode from "vscode";
import { ProgramMissing } from "./program";

export function registerCommand<A extends unknown[]>(name: string, run: (...args: A) => Promise<unknown>): vscode.Disposable {
    return vscode.commands.registerCommand(name, async (...args: A) => {
        try {
            await run(...args);
        } catch (error) {
            if (!(error instanceof ProgramMissing)) {
                const text = error instanceof Error ? error.message : String(error);
                void vscode.window.showErrorMessage(`swarmc: ${text}`);
            }
        }
    });
}
