// `swarmc` in VS Code's tasks: in tasks.json, in the list of tasks, and behind the lenses.

import * as vscode from "vscode";
import type { Server } from "./server";

/** A task as tasks.json has it. */
interface Definition {
    command: string;
    spec?: string;
    arguments?: string[];
}

const TYPE = "swarmc";

export function registerTasks(server: Server): vscode.Disposable {
    return vscode.tasks.registerTaskProvider(TYPE, {
        provideTasks: () =>
            (vscode.workspace.workspaceFolders ?? []).flatMap((folder) => [
                task(server, { command: "check" }, folder, vscode.TaskGroup.Build),
                task(server, { command: "test" }, folder, vscode.TaskGroup.Test),
            ]),
        resolveTask: (found) => {
            const { command, spec, arguments: more } = found.definition;
            const folder = typeof found.scope === "object" ? found.scope : vscode.workspace.workspaceFolders?.[0];
            const resolved = task(server, { command, spec, arguments: more }, folder);
            // VS Code takes a task for resolved only when the definition is the very same.
            resolved.definition = found.definition;
            return resolved;
        },
    });
}

/** Runs a subcommand in a terminal of its own. */
export async function start(server: Server, definition: Definition, folder: string | undefined): Promise<void> {
    await server.needProgram();
    const made = task(server, definition, vscode.workspace.workspaceFolders?.[0], undefined, folder);
    await vscode.tasks.executeTask(made);
}

function task(
    server: Server,
    definition: Definition,
    folder: vscode.WorkspaceFolder | undefined,
    group?: vscode.TaskGroup,
    cwd?: string,
): vscode.Task {
    const words = [definition.command];
    if (definition.command === "check") {
        words.push("--format", "short");
    }
    words.push(...(definition.spec === undefined ? [] : [definition.spec]), ...(definition.arguments ?? []));
    // A program and its arguments, no shell: what a spec is called is nobody's command.
    const execution = new vscode.ProcessExecution(server.program ?? "swarmc", words, {
        cwd: cwd ?? folder?.uri.fsPath,
    });
    const matchers = definition.command === "check" ? ["$swarmc"] : [];
    const kind = { type: TYPE, ...definition };
    const made = new vscode.Task(kind, folder ?? vscode.TaskScope.Workspace, words.join(" "), TYPE, execution, matchers);
    made.group = group;
    return made;
}
