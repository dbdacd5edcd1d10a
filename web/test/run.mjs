// Runs the unit tests: bundles each `*.test.ts` with esbuild and gives the bundles to node's test runner.

import { spawnSync } from "node:child_process";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const TESTS = fileURLToPath(new URL("./", import.meta.url));

/** What of a browser some modules ask for as soon as they are loaded. */
const BROWSER = `
globalThis.matchMedia ??= () => ({ matches: false, addEventListener() {} });
globalThis.localStorage ??= { getItem: () => null, setItem() {} };
`;

const names = (await readdir(TESTS)).filter((name) => name.endsWith(".test.ts"));
const folder = await mkdtemp(join(tmpdir(), "swarmc-web-"));
try {
  await build({
    entryPoints: names.map((name) => join(TESTS, name)),
    outdir: folder,
    outExtension: { ".js": ".mjs" },
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20",
    sourcemap: "inline",
    banner: { js: BROWSER },
  });
  const bundles = names.map((name) => join(folder, name.replace(/\.ts$/, ".mjs")));
  const { status } = spawnSync(process.execPath, ["--enable-source-maps", "--test", ...bundles], { stdio: "inherit" });
  process.exitCode = status ?? 1;
} finally {
  await rm(folder, { recursive: true });
}
