// An agent for tests, made of the kits of both protocols' makers and without a model: it does what its prompt orders, one
// order a line, from the top, and passes over all other lines.
//
//     call TOOL {ARGUMENTS}      asks for leave, and calls this tool of an MCP server that its session was given
//     say WORDS                  says this in the end
//     where "WORDS" ORDER        the order counts where another line of the prompt has these words
//     unless "WORDS" ORDER       the order counts where none has
//
// What a tool refuses it says in the end too. It tells its client that it knows MCP over HTTP alone.

import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const { requestPermission, update: told } = acp.methods.client.session;

// For each session the tools of its servers, each name with the client that calls it.
const sessions = new Map();

async function connect(server) {
    const client = new Client({ name: "errands", version: "1.0.0" });
    const headers = Object.fromEntries(server.headers.map(({ name, value }) => [name, value]));
    await client.connect(new StreamableHTTPClientTransport(new URL(server.url), { requestInit: { headers } }));
    const { tools } = await client.listTools();
    return tools.map((tool) => [tool.name, client]);
}

async function open({ params }) {
    const sessionId = crypto.randomUUID();
    sessions.set(sessionId, new Map((await Promise.all(params.mcpServers.map(connect))).flat()));
    return { sessionId };
}

function orders(prompt) {
    const lines = prompt.split("\n").map((line) => line.trim());
    const isOrder = (line) => /^(where|unless|call|say) /.test(line);
    const others = lines.filter((line) => !isOrder(line));
    const holding = (line) => {
        const [, condition, words, order] = line.match(/^(where|unless) "([^"]*)" (.*)/) ?? [];
        if (!condition) return [line];
        const found = others.some((other) => other.includes(words));
        return found === (condition === "where") ? [order] : [];
    };
    return lines.filter(isOrder).flatMap(holding);
}

async function turn({ params: { sessionId, prompt }, client }) {
    const tell = (update) => client.notify(told, { sessionId, update });
    const words = [];
    for (const [index, order] of orders(prompt.map((block) => block.text).join("\n")).entries()) {
        const [, verb, rest] = order.match(/^(\w+) (.*)/);
        if (verb === "say") {
            words.push(rest);
            continue;
        }
        const [, name, json] = rest.match(/^(\w+) (.*)/);
        const ended = await call({ sessionId, client, tell }, `call_${index}`, name, JSON.parse(json));
        if (ended === "cancelled") return { stopReason: "cancelled" };
        if (ended) words.push(`${name}: ${ended}`);
    }
    await tell({ sessionUpdate: "agent_message_chunk", content: { type: "text", text: words.join("\n") || "Done." } });
    return { stopReason: "end_turn" };
}

// Calls a tool: nothing, or why it did not work.
async function call({ sessionId, client, tell }, toolCallId, name, rawInput) {
    const toolCall = { toolCallId, name, title: name, kind: "other", status: "pending", rawInput };
    await tell({ sessionUpdate: "tool_call", ...toolCall });
    const end = (status, result) => {
        const content = (result ?? []).map((block) => ({ type: "content", content: block }));
        return tell({ sessionUpdate: "tool_call_update", toolCallId, status, content });
    };
    const options = [
        { kind: "allow_once", name: "Call it", optionId: "yes" },
        { kind: "reject_once", name: "Leave it", optionId: "no" },
    ];
    const { outcome } = await client.request(requestPermission, { sessionId, toolCall, options });
    if (outcome.outcome === "cancelled") return "cancelled";
    if (outcome.optionId !== "yes") {
        await end("failed");
        return "it was not given leave";
    }
    const result = await sessions.get(sessionId).get(name).callTool({ name, arguments: rawInput });
    await end(result.isError ? "failed" : "completed", result.content);
    return result.isError ? result.content.map((block) => block.text).join(" ") : undefined;
}

acp.agent({ name: "errands" })
    .onRequest(acp.methods.agent.initialize, () => ({
        protocolVersion: acp.PROTOCOL_VERSION,
        agentCapabilities: { loadSession: false, mcpCapabilities: { http: true } },
    }))
    .onRequest(acp.methods.agent.session.new, open)
    .onRequest(acp.methods.agent.session.prompt, turn)
    .connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
