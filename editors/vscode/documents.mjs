// Writes src/documents.ts: the types of what `swarmc … --json` prints, from the schemas in view/schemas.
//
//   node documents.mjs [FOLDER OF SCHEMAS]
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** The documents that the extension reads. */
const READ = ["ps", "inspect", "inspect-step", "test"];

const schemas = process.argv[2] ?? fileURLToPath(new URL("../../view/schemas", import.meta.url));
const target = fileURLToPath(new URL("src/documents.ts", import.meta.url));
const types = new Map();

/** Adds a type; two schemas have one only where they say the same of it. */
function add(name, schema) {
    const text = `${comment(schema, "")}export type ${name} = ${type(schema, "")};\n`;
    if (types.has(name) && types.get(name) !== text) {
        throw new Error(`two schemas disagree about ${name}`);
    }
    types.set(name, text);
}

function comment(schema, indent) {
    return schema.description === undefined ? "" : `${indent}/** ${schema.description} */\n`;
}

function type(schema, indent) {
    const parts = [];
    if (schema.$ref !== undefined) {
        parts.push(schema.$ref.split("/").pop());
    } else if (schema.const !== undefined) {
        parts.push(JSON.stringify(schema.const));
    } else if (schema.type !== undefined) {
        parts.push([schema.type].flat().map((one) => plain(one, schema, indent)).join(" | "));
    }
    const choices = schema.oneOf ?? schema.anyOf;
    if (choices !== undefined) {
        parts.push(choices.map((choice) => type(choice, indent)).join(" | "));
    }
    if (parts.length > 1) {
        return parts.map((part) => `(${part})`).join(" & ");
    }
    return parts[0] ?? "unknown";
}

function plain(one, schema, indent) {
    switch (one) {
        case "array":
            return `Array<${type(schema.items, indent)}>`;
        case "integer":
            return "number";
        case "object":
            return record(schema, indent);
        default:
            return one;
    }
}

function record(schema, indent) {
    const inner = `${indent}    `;
    const fields = Object.entries(schema.properties ?? {}).map(([name, field]) => {
        const sign = schema.required?.includes(name) ? "" : "?";
        return `${comment(field, inner)}${inner}${name}${sign}: ${type(field, inner)};\n`;
    });
    return fields.length === 0 ? "Record<string, unknown>" : `{\n${fields.join("")}${indent}}`;
}

for (const name of READ) {
    const { $defs, title, ...schema } = JSON.parse(readFileSync(`${schemas}/${name}.json`, "utf8"));
    add(title, schema);
    for (const [defined, inner] of Object.entries($defs)) {
        add(defined, inner);
    }
}
const head = "// Written by documents.mjs from view/schemas: what `swarmc … --json` prints.\n";
writeFileSync(target, [head, ...types.values()].join("\n"));
