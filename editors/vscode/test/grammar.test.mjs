// The grammars against annotated texts, with the tokenizer that VS Code has, and on every spec and prompt of the
// repository.
//
// Beneath a line of a case stand `#| ^^^ scope scope` lines: the text above the carets has these scopes, and not those
// after a `-`. A file ending in `.md` is tokenized as Markdown, with the grammar that VS Code ships.

import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, extname, join, relative } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import oniguruma from "vscode-oniguruma";
import textmate from "vscode-textmate";

const here = dirname(fileURLToPath(import.meta.url));
const extension = dirname(here);
const require = createRequire(import.meta.url);

const manifest = JSON.parse(readFileSync(join(extension, "package.json"), "utf8"));
const ours = new Map(manifest.contributes.grammars.map((grammar) => [grammar.scopeName, grammar]));

await oniguruma.loadWASM(readFileSync(require.resolve("vscode-oniguruma/release/onig.wasm")));
const registry = new textmate.Registry({
    onigLib: Promise.resolve({
        createOnigScanner: (patterns) => new oniguruma.OnigScanner(patterns),
        createOnigString: (text) => new oniguruma.OnigString(text),
    }),
    async loadGrammar(scope) {
        const own = ours.get(scope);
        const path = own ? join(extension, own.path) : theirs(scope);
        return path ? textmate.parseRawGrammar(readFileSync(path, "utf8"), path) : null;
    },
    // As VS Code does it: what the manifest says is injected where.
    getInjections: (scope) =>
        [...ours.values()].filter((grammar) => grammar.injectTo?.includes(scope)).map((grammar) => grammar.scopeName),
});

/** The grammar that VS Code ships for Markdown; of what it embeds, only shell scripts are looked at here. */
function theirs(scope) {
    const names = { "text.html.markdown": "markdown", "source.shell": "shellscript" };
    return names[scope] && require.resolve(`tm-grammars/grammars/${names[scope]}.json`);
}

const byEnding = { ".kdl": "source.kdl", ".md": "text.html.markdown" };

/** The tokens of each line: where they begin and end, and their scopes. */
async function tokenize(path, lines) {
    const grammar = await registry.loadGrammar(byEnding[extname(path)]);
    let state = textmate.INITIAL;
    return lines.map((line) => {
        const result = grammar.tokenizeLine(line, state);
        state = result.ruleStack;
        return result.tokens;
    });
}

/** A case without its annotations, and those, each with the line it is about. */
function read(path) {
    const lines = [];
    const expected = [];
    readFileSync(path, "utf8").split("\n").forEach((line, index) => {
        const note = /^#\|( *)(\^+) (.+)$/.exec(line);
        if (note) {
            const start = 2 + note[1].length;
            expected.push({
                at: index + 1,
                line: lines.length - 1,
                start,
                end: start + note[2].length,
                scopes: note[3].split(" "),
            });
        } else {
            assert(!line.startsWith("#|"), `${path}:${index + 1}: an annotation without carets`);
            lines.push(line);
        }
    });
    return { lines, expected };
}

for (const name of readdirSync(join(here, "cases")).sort()) {
    test(`scopes of ${name}`, async () => {
        const path = join(here, "cases", name);
        const { lines, expected } = read(path);
        assert(expected.length > 0, "a case says what is expected");
        const tokens = await tokenize(path, lines);
        const wrong = [];
        for (const { at, line, start, end, scopes } of expected) {
            const covered = tokens[line].filter((token) => token.startIndex < end && token.endIndex > start);
            assert(covered.length > 0, `${name}:${at}: the line above is shorter`);
            for (const token of covered) {
                const text = lines[line].slice(token.startIndex, token.endIndex);
                const found = token.scopes.join(" ");
                for (const scope of scopes) {
                    const wanted = scope.replace(/^-/, "");
                    const has = token.scopes.some((each) => each === wanted || each.startsWith(`${wanted}.`));
                    if (has === scope.startsWith("-")) {
                        wrong.push(`${name}:${at}: \`${text}\` has ${found}, not ${scope}`);
                    }
                }
            }
        }
        assert.equal(wrong.join("\n"), "");
    });
}

/** All files beneath a folder that a grammar is for. */
function texts(folder) {
    return readdirSync(folder, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile() && byEnding[extname(entry.name)])
        .map((entry) => join(entry.parentPath ?? entry.path, entry.name));
}

const specs = process.env.SWARMC_SPECS ?? join(extension, "../../specs");
assert(existsSync(specs), `${specs} is not there: SWARMC_SPECS names the specs to tokenize`);

test("every spec and prompt of the repository", async () => {
    const paths = texts(specs);
    assert(paths.length > 20, `${paths.length} texts beneath ${specs}`);
    let directives = 0;
    for (const path of paths) {
        const lines = readFileSync(path, "utf8").split("\n");
        const tokens = await tokenize(path, lines);
        let depth = 0;
        lines.forEach((line, index) => {
            const where = `${relative(specs, path)}:${index + 1}`;
            const comment = tokens[index].some((token) => token.scopes.some((scope) => scope.startsWith("comment.")));
            const invalid = tokens[index].filter((token) => token.scopes.some((scope) => scope.startsWith("invalid.")));
            assert.equal(invalid.length, 0, `${where}: \`${line}\` has something invalid`);
            for (const match of line.matchAll(/(?<!\\)<<[a-z]+[:.|>]/g)) {
                const token = tokens[index].find((token) => token.startIndex === match.index);
                const begins = token?.scopes.includes("punctuation.definition.directive.begin.swarmc");
                assert(begins || comment, `${where}: the directive at column ${match.index + 1} is not seen`);
                directives += 1;
            }
            for (const token of tokens[index]) {
                depth += token.scopes.includes("punctuation.section.block.begin.kdl") ? 1 : 0;
                depth -= token.scopes.includes("punctuation.section.block.end.kdl") ? 1 : 0;
            }
        });
        assert.equal(depth, 0, `${relative(specs, path)}: every block that is opened is closed`);
    }
    assert(directives > 20, `${directives} directives were seen`);
});
