#!/usr/bin/env node
// Starts the program that npm installed beside this package for this machine, with the same arguments and streams.
"use strict";

const { spawn } = require("node:child_process");
const os = require("node:os");

const name = `swarmc-${process.platform}-${process.arch}`;

/** The program. SWARMC_BINARY names another one. */
function findProgram() {
  if (process.env.SWARMC_BINARY) return process.env.SWARMC_BINARY;
  try {
    return require.resolve(`${name}/bin/swarmc`);
  } catch {
    console.error(
      `swarmc: the package \`${name}\` is not installed. Install again without \`--omit=optional\`; ` +
        `or, where there is no such package, build swarmc from sources and set SWARMC_BINARY to the program`,
    );
    process.exit(2);
  }
}

// A terminal sends these to the program too, which decides what follows.
for (const signal of ["SIGINT", "SIGQUIT", "SIGHUP"]) process.on(signal, () => {});
// Before the program starts: what is handled only later ends this process alone.
process.on("SIGTERM", () => child.kill("SIGTERM"));
const child = spawn(findProgram(), process.argv.slice(2), { stdio: "inherit" });
child.on("error", (error) => {
  console.error(`swarmc: cannot start the program: ${error.message}`);
  process.exit(2);
});
child.on("exit", (code, signal) => process.exit(signal ? 128 + os.constants.signals[signal] : code));
