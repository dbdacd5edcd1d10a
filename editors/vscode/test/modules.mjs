// The modules of the extension that know nothing of VS Code, for tests; and the program that they run.

import { build } from "esbuild";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

export const extension = dirname(dirname(fileURLToPath(import.meta.url)));

/** The program under test. */
export const program = process.env.SWARMC ?? "swarmc";

/** A module as Node takes it. */
export async function load(name) {
    const outfile = join(mkdtempSync(join(tmpdir(), "module-")), `${name}.mjs`);
    const entryPoints = [join(extension, "src", `${name}.ts`)];
    await build({ entryPoints, outfile, bundle: true, platform: "node", format: "esm", logLevel: "error" });
    return import(pathToFileURL(outfile));
}
