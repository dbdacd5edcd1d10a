// What the test explorer shows, without VS Code: the tests that the language server sees in a spec, and what
// `swarmc test --format json` says of them.

import type { DocumentSymbol, Range } from "vscode-languageclient/node";
import { parseDocument, type Ended } from "./cli";
import type { Failure, Position, TestCase, Tests } from "./documents";

/** A test in a spec. */
export interface Found {
    name: string;
    range: Range;
}

/** The tests of a spec, from its outline. */
export function listTests(outline: DocumentSymbol[] | null): Found[] {
    const tests = (outline ?? []).filter((symbol) => symbol.detail === "test");
    return tests.map((symbol) => ({ name: symbol.name, range: symbol.range }));
}

/** What to start for tests of a spec: all of them, or one. `--filter` takes others too whose names hold this one. */
export function testWords(spec: string, names: string[], all: boolean, update: boolean): string[] {
    const [only] = names;
    const filter = !all && names.length === 1 && only !== undefined ? ["--filter", only] : [];
    return ["test", spec, "--format", "json", ...filter, ...(update ? ["--update"] : [])];
}

/** What became of a test. */
export type Outcome = { test: string; case: TestCase } | { test: string; error: string };

/** What became of each test that was wanted. */
export function readOutcomes(wanted: string[], ended: Ended): Outcome[] {
    const failed = (error: string): Outcome[] => wanted.map((test) => ({ test, error }));
    if (ended.out.trim() === "") {
        return failed(ended.err.trim() || `swarmc test ended with code ${ended.code}`);
    }
    const document = parseDocument<Tests>(ended.out);
    if (document.specs_with_errors > 0) {
        return failed(`the spec has errors, so that its tests do not run:\n\n${ended.err.trim()}`);
    }
    return wanted.map((test) => {
        const found = document.tests.find((one) => one.test === test);
        return found ? { test, case: found } : { test, error: `swarmc found no test \`${test}\` in this spec: save it` };
    });
}

/** What does not hold, in lines. */
export function describeFailure(failure: Failure): string {
    const help = failure.help === null ? "" : `help: ${failure.help}`;
    return [`${failure.message} (${failure.label})`, failure.details, help].map((part) => part.trim()).filter((part) => part !== "").join("\n");
}

/** A place as editors count it: both from 0, and columns in units of UTF-16. */
export function convertPosition(position: Position, line: string): { line: number; character: number } {
    const before = [...line].slice(0, position.column - 1).join("");
    return { line: position.line - 1, character: before.length };
}
