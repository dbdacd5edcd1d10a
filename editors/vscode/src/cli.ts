// Runs the program and reads what it prints, without VS Code.

import { spawn } from "node:child_process";

/** How the program ended, and what it printed. */
export interface Ended {
    /** Its exit code; null where a signal ended it. */
    code: number | null;
    out: string;
    err: string;
}

/** Runs the program to its end; a signal that is aborted ends it. */
export function runProgram(program: string, words: string[], cwd?: string, signal?: AbortSignal): Promise<Ended> {
    return new Promise((resolve, reject) => {
        // No shell: what a spec is called is no command.
        const child = spawn(program, words, { cwd, stdio: ["ignore", "pipe", "pipe"] });
        const ended: Ended = { code: null, out: "", err: "" };
        const stop = () => void child.kill();
        signal?.addEventListener("abort", stop, { once: true });
        child.stdout.setEncoding("utf8").on("data", (text: string) => (ended.out += text));
        child.stderr.setEncoding("utf8").on("data", (text: string) => (ended.err += text));
        child.on("error", reject);
        child.on("close", (code) => {
            signal?.removeEventListener("abort", stop);
            resolve({ ...ended, code });
        });
        if (signal?.aborted) {
            stop();
        }
    });
}

/** A document that a command prints, in the version that this extension reads. */
export async function readDocument<T extends { version: number }>(program: string, words: string[]): Promise<T> {
    const ended = await runProgram(program, words);
    if (ended.code !== 0) {
        throw new Error(firstLine(ended.err) || `\`swarmc ${words.join(" ")}\` ended with code ${ended.code}`);
    }
    return parseDocument<T>(ended.out);
}

export function parseDocument<T extends { version: number }>(text: string): T {
    const document = JSON.parse(text) as T;
    if (document.version !== 1) {
        throw new Error(`this extension reads version 1 of what swarmc prints, not ${document.version}: update it`);
    }
    return document;
}

/** What a failed command says first, without the word before it. */
export function firstLine(text: string): string {
    return (text.trim().split("\n")[0] ?? "").replace(/^error: /, "");
}
