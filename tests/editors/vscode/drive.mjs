// Starts the server of Visual Studio Code with the extension, and a browser on it in which trial.js runs. Prints what that
// writes: a line for each check.
//
// Run by tests/editors/vscode.rs with SERVER (its `server-main.js`), VSIX, WORKSPACE, and HOME in a folder that can go.

import { execFileSync, spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const PATIENCE_MS = 120_000;
const here = dirname(fileURLToPath(import.meta.url));
const { SERVER, VSIX, WORKSPACE, HOME } = process.env;
const report = join(HOME, "report");
const folders = ["--server-data-dir", join(HOME, "server"), "--extensions-dir", join(HOME, "extensions")];
const license = "--accept-server-license-terms";

execFileSync(process.execPath, [SERVER, ...folders, license, "--install-extension", VSIX], { stdio: "pipe" });

const children = [];

function start(program, words, more) {
    const child = spawn(program, words, { env: { ...process.env, ...more }, stdio: ["ignore", "pipe", "pipe"] });
    children.push(child);
    let said = "";
    const hear = (text) => (said += text);
    child.stdout.setEncoding("utf8").on("data", hear);
    child.stderr.setEncoding("utf8").on("data", hear);
    return () => said;
}

async function eventually(what, find) {
    const deadline = Date.now() + PATIENCE_MS;
    while (Date.now() < deadline) {
        const found = find();
        if (found) {
            return found;
        }
        await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error(`${what} never comes`);
}

let code = 1;
let [server, browser] = [() => "", () => ""];
try {
    const words = ["--host", "127.0.0.1", "--port", "0", "--without-connection-token", "--disable-workspace-trust", license];
    server = start(process.execPath, [SERVER, ...words, ...folders], { REPORT: report });
    const port = await eventually("the server's port", () => /agent listening on (\d+)/.exec(server())?.[1]);
    const remote = (path) => `vscode-remote://127.0.0.1:${port}${path}`;
    const payload = [
        ["extensionDevelopmentPath", remote(here)],
        ["extensionTestsPath", remote(join(here, "trial.js"))],
        ["enableProposedApi", "swarmc.trial"],
        ["skipWelcome", "true"],
    ];
    const query = new URLSearchParams({ folder: WORKSPACE, payload: JSON.stringify(payload) });
    const options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--window-size=1400,900"];
    const debugging = ["--remote-debugging-port=0", "--enable-logging=stderr", `--user-data-dir=${join(HOME, "browser")}`];
    browser = start("chromium", [...options, ...debugging, `http://127.0.0.1:${port}/?${query}`]);
    const finished = () => existsSync(report) && /^(done|not ok)/m.test(readFileSync(report, "utf8"));
    await eventually("the end of the trial", finished);
    code = readFileSync(report, "utf8").includes("not ok") ? 1 : 0;
} catch (error) {
    console.log(`not ok - ${error.message}\n${server().slice(-2000)}\n${browser().slice(-2000)}`);
} finally {
    if (existsSync(report)) {
        console.log(readFileSync(report, "utf8").replace(/^done\n/m, "").trimEnd());
    }
    children.forEach((child) => child.kill());
}
process.exit(code);
