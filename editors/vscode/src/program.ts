// The `swarmc` program as VS Code's settings name it, and what a person is told when there is none.

import * as vscode from "vscode";
import { type Found, INSTALL, describeMissing, searchProgram } from "./search";

/** There is no program, which a person has been told with what to do about it. */
export class ProgramMissing extends Error {
    public constructor() {
        super("swarmc is not installed");
    }
}

export async function findProgram(context: vscode.ExtensionContext): Promise<Found> {
    const found = await searchProgram({
        setting: vscode.workspace.getConfiguration("swarmc").get<string>("path", ""),
        extension: context.extensionPath,
        workspace: vscode.workspace.workspaceFolders?.[0]?.uri.fsPath,
        path: process.env.PATH ?? "",
        platform: process.platform,
    });
    // The walkthrough ticks its first step off.
    await vscode.commands.executeCommand("setContext", "swarmc.found", "program" in found);
    return found;
}

/** Says that the program is missing, and offers what helps. */
export async function tellMissing(context: vscode.ExtensionContext, wrong: string | undefined): Promise<void> {
    const [settings, docs, copy] = ["Open the setting", "How to install", "Copy the install command"];
    const offers = wrong === undefined ? [docs, copy, settings] : [settings, docs];
    switch (await vscode.window.showErrorMessage(describeMissing(wrong), ...offers)) {
        case settings:
            await vscode.commands.executeCommand("workbench.action.openSettings", "swarmc.path");
            break;
        case docs:
            await openDocs(context);
            break;
        case copy:
            await vscode.env.clipboard.writeText(INSTALL);
            break;
    }
}

/** Opens the page that says how to install swarmc. */
export async function openDocs(context: vscode.ExtensionContext): Promise<void> {
    const repository = String(context.extension.packageJSON.repository.url).replace(/\.git$/, "");
    await vscode.env.openExternal(vscode.Uri.parse(`${repository}/blob/main/docs/install.md`));
}
