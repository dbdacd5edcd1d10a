// Where the `swarmc` program is, without VS Code: by the setting, with the extension, or on PATH.

import { constants } from "node:fs";
import { access, chmod, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { delimiter, isAbsolute, join } from "node:path";

/** Where to look. */
export interface Places {
    /** The setting `swarmc.path`; empty where there is none. */
    setting: string;
    /** The folder of the extension, which may bring the program. */
    extension: string;
    /** The first folder of the workspace: a relative setting starts there. */
    workspace: string | undefined;
    /** The value of PATH. */
    path: string;
    platform: NodeJS.Platform;
}

/** The program, or what keeps it from being found: a setting that names none, or that there is none. */
export type Found = { program: string } | { wrong: string } | { wrong: undefined };

/** The program that the setting names; without a setting the one of the extension, and then the one on PATH. */
export async function searchProgram(places: Places): Promise<Found> {
    const setting = resolveSetting(places.setting.trim(), places.workspace);
    if (setting !== "") {
        return (await isProgram(setting)) ? { program: setting } : { wrong: setting };
    }
    const endings = places.platform === "win32" ? [".exe", ".cmd"] : [""];
    for (const ending of endings) {
        const bundled = join(places.extension, "bin", `swarmc${ending}`);
        if (await makeProgram(bundled)) {
            return { program: bundled };
        }
    }
    for (const folder of places.path.split(delimiter).filter((folder) => isAbsolute(folder))) {
        for (const ending of endings) {
            const path = join(folder, `swarmc${ending}`);
            if (await isProgram(path)) {
                return { program: path };
            }
        }
    }
    return { wrong: undefined };
}

/** `~` is the home folder, and a relative path starts in the first folder. */
function resolveSetting(path: string, workspace: string | undefined): string {
    if (path === "" || isAbsolute(path)) {
        return path;
    }
    if (path === "~" || path.startsWith("~/")) {
        return join(homedir(), path.slice(1));
    }
    return join(workspace ?? homedir(), path);
}

async function isProgram(path: string): Promise<boolean> {
    try {
        await access(path, constants.X_OK);
        return (await stat(path)).isFile();
    } catch {
        return false;
    }
}

/** Whether the extension brings the program; where unpacking lost its mode, that is set again. */
async function makeProgram(path: string): Promise<boolean> {
    try {
        if ((await stat(path)).isFile() && !(await isProgram(path))) {
            await chmod(path, 0o755);
        }
    } catch {
        return false;
    }
    return isProgram(path);
}

/** What to type where there is no program. */
export const INSTALL = "uv tool install swarmc";

/** What is said where there is no program. */
export function describeMissing(wrong: string | undefined): string {
    const lacks = "without it there is no completion, and there are no diagnostics, tests and runs";
    return wrong === undefined
        ? `swarmc is not installed: this extension brings no program for this machine, and PATH has none; ${lacks}. ` +
              `Type \`${INSTALL}\` or \`npm install --global swarmc\`, or say in the setting \`swarmc.path\` where it is.`
        : `swarmc is not at \`${wrong}\`, which the setting \`swarmc.path\` names: ${lacks}. Correct the setting, or ` +
              "empty it to use the program of this extension or of PATH.";
}
