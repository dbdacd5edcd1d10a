// Builds the page: reads `src`, writes `../serve/page/{index.html,app.js,app.css}` and their gzip twins.
//
// The files have fixed names and the same bytes on every machine. Each one is written beside its place and renamed at the
// end, so that a reader never sees half of one.

import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const SOURCES = fileURLToPath(new URL("./src/", import.meta.url));
const PAGE = fileURLToPath(new URL("../serve/page/", import.meta.url));
const SCRIPT_LIMIT = 80 * 1024;
const TOTAL_LIMIT = 100 * 1024;

const { outputFiles } = await build({
  entryPoints: { app: `${SOURCES}main.tsx` },
  outdir: PAGE,
  bundle: true,
  minify: true,
  write: false,
  format: "esm",
  target: "es2022",
  charset: "utf8",
  legalComments: "none",
});

const files = new Map([["index.html", await readFile(`${SOURCES}index.html`)]]);
for (const { path, contents } of outputFiles) files.set(path.slice(PAGE.length), Buffer.from(contents));

const sizes = new Map();
for (const [name, bytes] of [...files]) {
  const packed = gzipSync(bytes, { level: 9 });
  packed[9] = 255; // the byte that names the system, so that every machine writes the same file
  sizes.set(name, packed.length);
  files.set(`${name}.gz`, packed);
}

const total = [...sizes.values()].reduce((sum, size) => sum + size, 0);
for (const [name, size] of sizes) console.log(`${name.padEnd(12)} ${(size / 1024).toFixed(1)} KiB gzipped`);
if (sizes.get("app.js") > SCRIPT_LIMIT || total > TOTAL_LIMIT) {
  console.error(`the page is too large: ${total} bytes gzipped, at most ${TOTAL_LIMIT}`);
  process.exit(1);
}

await mkdir(PAGE, { recursive: true });
for (const [name, bytes] of files) await writeFile(`${PAGE}${name}.new`, bytes);
for (const name of files.keys()) await rename(`${PAGE}${name}.new`, `${PAGE}${name}`);
