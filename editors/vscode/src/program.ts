// Where the `swarmc` program is, and what a person is told when it is nowhere.

import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { delimiter, isAbsolute, join } from "node:path";
import * as vscode from "vscode";

/** Typed in a checkout of swarmc. */
const INSTALL = "cargo install --locked --path .";

/** The program that the setting names, or the one on PATH; undefined when there is none. */
export async function findProgram(): Promise<string | undefined> {
    const setting = configured();
    if (setting) {
        return (await isProgram(setting)) ? setting : undefined;
    }
    const endings = process.platform === "win32" ? [".exe", ".cmd"] : [""];
    for (const folder of (process.env.PATH ?? "").split(delimiter).filter((folder) => isAbsolute(folder))) {
        for (const ending of endings) {
            const path = join(folder, `swarmc${ending}`);
            if (await isProgram(path)) {
                return path;
            }
        }
    }
    return undefined;
}

/** Says that the program is missing, and what to do; true when something was done about it. */
export async function tellMissing(): Promise<void> {
    const setting = configured();
    const message = setting
        ? `swarmc is not at \`${setting}\`, which the setting \`swarmc.path\` names: without it there is no ` +
          "completion and there are no diagnostics. Correct the setting, or empty it to use the one on PATH."
        : "swarmc is not on PATH: without it there is no completion and there are no diagnostics. Install it (`cargo install " +
          "--locked --path .` in its checkout), or say in the setting `swarmc.path` where it is.";
    const settings = "Open the setting";
    const install = "Copy the install command";
    const choice = await vscode.window.showErrorMessage(message, settings, ...(setting ? [] : [install]));
    if (choice === settings) {
        await vscode.commands.executeCommand("workbench.action.openSettings", "swarmc.path");
    } else if (choice === install) {
        await vscode.env.clipboard.writeText(INSTALL);
    }
}

/** What the setting says: `~` is the home folder, and a relative path starts in the first folder. */
function configured(): string {
    const path = vscode.workspace.getConfiguration("swarmc").get<string>("path", "").trim();
    if (path === "" || isAbsolute(path)) {
        return path;
    }
    if (path === "~" || path.startsWith("~/")) {
        return join(homedir(), path.slice(1));
    }
    return join(vscode.workspace.workspaceFolders?.[0]?.uri.fsPath ?? homedir(), path);
}

async function isProgram(path: string): Promise<boolean> {
    try {
        await access(path, constants.X_OK);
        return (await stat(path)).isFile();
    } catch {
        return false;
    }
}
