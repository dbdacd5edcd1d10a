#!/usr/bin/env python3
"""An agent that speaks the Agent Client Protocol and does as its first argument says, so that a test can see what
becomes of it. What it hears is written to the file `heard`, a line a message."""

import json
import os
import subprocess
import sys
import time
import urllib.request

KIND = sys.argv[1]
heard = open("heard", "a")


def say(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def hear():
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    heard.write(line)
    heard.flush()
    return json.loads(line)


def update(update, session="s1"):
    say({"method": "session/update", "params": {"sessionId": session, "update": update}})


def text(words, session="s1"):
    update({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": words}}, session)


def answer(request, result):
    say({"id": request["id"], "result": result})


def permission(number, options=("allow_always", "reject_once", "allow_once")):
    """Asks for leave, and gives the kind of the option that was chosen."""
    say({"id": f"p{number}", "method": "session/request_permission", "params": {
        "sessionId": "s1",
        "toolCall": {"toolCallId": f"t{number}", "title": f"Write file {number}", "kind": "edit",
                     "rawInput": {"path": "notes.txt"}},
        # Neither their order nor their names say anything.
        "options": [{"optionId": f"id-{kind}", "name": "Yes", "kind": kind} for kind in options],
    }})
    while True:
        message = hear()
        if message.get("id") == f"p{number}":
            outcome = message["result"]["outcome"]
            return outcome.get("optionId", outcome["outcome"])
        if message.get("method") == "session/cancel":
            return "asked to end"


def rpc(server, method, params):
    """One request to an MCP server over HTTP."""
    headers = {header["name"]: header["value"] for header in server["headers"]}
    headers |= {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    with urllib.request.urlopen(urllib.request.Request(server["url"], body, headers)) as response:
        return json.load(response)


def start(server):
    """Starts an MCP server, and lists its tools."""
    env = {**os.environ, **{pair["name"]: pair["value"] for pair in server["env"]}}
    child = subprocess.Popen([server["command"], *server["args"]], env=env, text=True,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "agent", "version": "1"}}
    asked(child, 1, "initialize", hello)
    child.stdin.write(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}) + "\n")
    asked(child, 2, "tools/list", {})
    return child


def asked(child, number, method, params):
    """One request to an MCP server that was started."""
    child.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n")
    child.stdin.flush()
    return json.loads(child.stdout.readline())


def client(number, method, params):
    """Has the client do something; its answer."""
    say({"id": f"c{number}", "method": method, "params": {"sessionId": "s1", **params}})
    while True:
        message = hear()
        if message.get("id") == f"c{number}":
            return {key: message[key] for key in ("result", "error") if key in message}


def filled(value, terminals):
    """What a test says of a call, with the folder and the terminals in their places."""
    if isinstance(value, dict):
        return {key: filled(inner, terminals) for key, inner in value.items()}
    if not isinstance(value, str):
        return value
    if value.startswith("$T"):
        return terminals[int(value[2:]) - 1]
    return value.replace("$CWD", os.getcwd())


def calls():
    """Has the client do what the file `calls` says, and writes its answers to `answers`, a line each."""
    answers, terminals = open("answers", "w"), []
    for number, (method, params) in enumerate(json.load(open("calls"))):
        params = filled(params, terminals)
        until = params.pop("until", None)
        answer = client(number, method, params)
        while until is not None and until not in answer["result"]["output"]:
            answer = client(number, method, params)
        if method == "terminal/create" and "result" in answer:
            terminals.append(answer["result"]["terminalId"])
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


loaded = []
CAPABILITIES = {
    "loadSession": KIND not in ("forgetful", "plain"),
    "mcpCapabilities": {"http": KIND != "stdio"},
}


def initialize():
    request = hear()
    if KIND == "mute":
        time.sleep(600)
    if KIND == "exit":
        sys.exit(7)
    if KIND == "future":
        return answer(request, {"protocolVersion": 2, "agentCapabilities": {}})
    if KIND == "nonsense":
        return answer(request, {"protocolVersion": "one", "agentCapabilities": 7})
    if KIND == "garbage":
        for line in ["", "warning: old", "{", "[]", "[1,", "null", "{}", '{"jsonrpc":"2.0"}', "\x00\x01", "[" * 100_000,
                     '{"a":' * 100_000, '{"jsonrpc":"2.0","id":99,"result":{}}', '{"jsonrpc":"2.0","method":"nobody/knows"}',
                     '{"jsonrpc":"2.0","id":5,"method":"nobody/knows","params":{}}',
                     '{"jsonrpc":"2.0","id":6,"method":"fs/read_text_file","params":{"sessionId":"s1","path":"/etc/passwd"}}',
                     '{"jsonrpc":"2.0","id":7,"method":"session/request_permission","params":{"options":3}}',
                     '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"new"}}}']:
            print(line, flush=True)
        sys.stdout.buffer.write(b"\xff\xfe\xfa{\n")
        sys.stdout.flush()
    answer(request, {"protocolVersion": 1, "agentCapabilities": CAPABILITIES, "agentInfo": {"name": "test", "version": "1"},
                     "_meta": {"steering": {"supported": KIND == "steered"}}, "authMethods": [{"id": "key", "name": "Give it a key"}]})


def session():
    """Takes requests until there is a prompt; the servers it was told of, and the request."""
    servers = []
    while True:
        request = hear()
        method, params = request.get("method"), request.get("params", {})
        if method in ("session/new", "session/load"):
            servers = params["mcpServers"]
            if KIND == "configured":
                assert servers == [], servers
                servers = [json.loads(os.environ["AGENT_TOOLS"])]
                assert sys.argv[2:] == ["--tools", servers[0]["url"]], sys.argv
            if KIND == "locked":
                say({"id": request["id"], "error": {"code": -32000, "message": "Authentication required"}})
                continue
            decides = KIND in ("auto", "planless")
            modes = ("auto", "default") if KIND == "planless" else ("auto", "default", "plan")
            told = {"modes": {"currentModeId": "auto" if decides else "default", "availableModes": [
                {"id": mode, "name": mode.title()} for mode in modes]},
                "configOptions": [{"id": "model", "name": "Model", "category": "model", "type": "select",
                                   "currentValue": "small", "options": [
                                       {"value": "small", "name": "Small"}, {"value": "large", "name": "Large"}]}]}
            if KIND == "auto":
                del told["configOptions"]
            if method == "session/load" and KIND == "asks-lost":
                say({"id": request["id"], "error": {"code": -32603, "message": "no such session"}})
                continue
            if method == "session/load":
                loaded.append(params["sessionId"])
                # All that was ever said in it is told again.
                text("What I said before. ", params["sessionId"])
            else:
                told["sessionId"] = "s1"
            answer(request, told)
            if KIND in ("relay", "configured", "steered", "editor") and servers:
                rpc(servers[0], "tools/list", {})
            if KIND == "stdio" and servers:
                servers = [start(servers[0])]
        elif method in ("session/set_mode", "session/set_config_option"):
            answer(request, {"configOptions": []})
        elif method == "session/prompt":
            return servers, request


def prompt(servers, request):
    said = request["params"]["prompt"][0]["text"]

    def done(reason="end_turn"):
        answer(request, {"stopReason": reason, "usage": {"totalTokens": 30, "inputTokens": 20, "outputTokens": 10}})

    if KIND == "locked-later":
        return say({"id": request["id"], "error": {"code": -32000, "message": "Authentication required"}})
    if KIND in ("plain", "garbage", "forgetful", "load", "auto", "planless"):
        update({"sessionUpdate": "tool_call", "toolCallId": "1", "title": "Look around", "kind": "read"})
        text("Heard: ")
        text(said.strip().splitlines()[-1])
        return done()
    if KIND == "member":
        # A member of a swarm, which ends when it has heard of bob.
        heard_it = "hello from bob" in said
        text("I have looked. ")
        text(json.dumps({"action": "done", "response": "ann heard bob"} if heard_it else {"action": "idle"}))
        return done()
    if KIND == "editor":
        # Changes a line of a file, and goes on until it has heard who else did. What the first one wrote stays in it, so that
        # its place is found however late that is looked for.
        name = "a1" if "You are a1" in said else "a2"
        while name == "a2" and "changed by a1, then second" not in open("shared.txt").read():
            time.sleep(0.01)
        old = open("shared.txt").read().splitlines()[1]
        new = f"changed by {name}, then {old}"
        # At once: who looks for a change meanwhile is to find a whole file.
        open(name, "w").write(f"first\n{new}\nlast\n")
        os.replace(name, "shared.txt")
        update({"sessionUpdate": "tool_call", "toolCallId": "e", "title": "Edit", "kind": "edit", "status": "completed",
                "content": [{"type": "diff", "path": f"{os.getcwd()}/shared.txt", "oldText": old, "newText": new}]})
        while True:
            told = rpc(servers[0], "tools/call", {"name": "publish_data", "arguments": {"topic": "t", "data": "x"}})
            told = json.dumps(told)
            if "lines as you: talk to" in told:
                open(f"{name}.told", "w").write(told)
                break
            time.sleep(0.05)
        rpc(servers[0], "tools/call", {"name": "item_done", "arguments": {"item": name, "summary": "agreed"}})
        text("It is done.")
        return done()
    if KIND == "steered":
        # Goes on until it has read of version 2 of the plan.
        rpc(servers[0], "tools/call", {"name": "plan_propose", "arguments": {
            "ops": [{"op": "add", "item": "tests", "text": "Test it"}], "why": "none"}})
        text("Working. ")
        taken = []
        while not any("version 2 by lead" in one for one in taken):
            message = hear()
            if message.get("method") != "_session/steering":
                continue
            if message["params"]["_meta"]["steering"]["idleBehavior"] != "promptRequired":
                sys.exit(9)
            taken.append(message["params"]["prompt"][0]["text"])
            answer(message, {"outcome": "injected"})
        rpc(servers[0], "tools/call", {"name": "item_done", "arguments": {"item": "api", "summary": "read v2"}})
        text("It is done.")
        return done()
    if KIND in ("max_tokens", "refusal", "max_turn_requests", "cancelled", "tired"):
        return done(KIND)
    if KIND == "error":
        return say({"id": request["id"], "error": {"code": -32603, "message": "Internal error",
                                                   "data": {"details": "503 Service Unavailable"}}})
    if KIND == "twice":
        text("Once.")
        done()
        done("refusal")
        text(" Twice.")
        return done()
    if KIND == "dies":
        text("I will")
        os.kill(os.getpid(), 9)
    if KIND == "talks" and loaded:
        text(f"Heard: {said.strip()}")
        return done()
    if KIND in ("silent", "talks"):
        # With a child, to see that both go.
        subprocess.Popen(["sleep", "600"])
        open("pids", "w").write(f"{os.getpid()}\n")
        text("Working.")
        while hear().get("method") != "session/cancel":
            pass
        return done("cancelled")
    if KIND == "hesitant":
        # Does not end when it is asked to.
        text("Working.")
        while True:
            hear()
    if KIND == "deaf":
        # Neither hears nor ends.
        subprocess.Popen(["sh", "-c", "trap '' TERM; sleep 600"])
        text("Working.")
        while True:
            time.sleep(600)
    if KIND == "long":
        sys.stdout.write('{"jsonrpc":"2.0","method":"x","params":{"a":"')
        for _ in range(100):
            sys.stdout.write("x" * 1_000_000)
        print('"}}', flush=True)
        return done()
    if KIND == "stranger":
        text("of another session", "s2")
        say({"id": "p9", "method": "session/request_permission", "params": {
            "sessionId": "s2", "toolCall": {"toolCallId": "t"},
            "options": [{"optionId": "a", "name": "Yes", "kind": "allow_once"}]}})
        outcome = hear()["result"]["outcome"]
        text(f"mine: {outcome['outcome']}")
        return done()
    if KIND in ("asks", "asks-lost"):
        text(f"chosen: {permission(1)}")
        return done()
    if KIND == "asks-twice":
        text(f"chosen: {permission(1)}, {permission(2)}")
        return done()
    if KIND == "asks-once-only":
        text(f"chosen: {permission(1, ('allow_once', 'reject_once'))}")
        return done()
    if KIND == "asks-for-ever":
        number = 0
        while True:
            number += 1
            permission(number)
    if KIND == "asks-late":
        # When it is started again, it asks when it is told to.
        while os.path.exists("asked") and not os.path.exists("go"):
            time.sleep(0.05)
        open("asked", "w").close()
        text(f"chosen: {permission(1)}")
        return done()
    if KIND == "asks-at-length":
        # Does not wait for what is said to it.
        for number in range(8):
            say({"id": f"p{number}", "method": "session/request_permission", "params": {
                "sessionId": "s1", "toolCall": {"toolCallId": f"t{number}", "kind": "edit"},
                "options": [{"optionId": "x" * 300_000, "name": "Yes", "kind": "allow_once"}]}})
        return done()
    if KIND == "floods":
        # Asks and asks, and reads no answer.
        number = 0
        while True:
            number += 1
            say({"id": number, "method": "nobody/knows", "params": {"text": "x" * 1000}})
    if KIND == "client":
        calls()
        text("done")
        return done()
    if KIND == "busy":
        # Reads and reads while somebody is asked about what it writes.
        path, number, failed, written = f"{os.getcwd()}/f", 0, 0, None
        say({"id": "w", "method": "fs/write_text_file", "params": {"sessionId": "s1", "path": f"{os.getcwd()}/g", "content": "x"}})
        while written is None:
            number += 1
            say({"id": number, "method": "fs/read_text_file", "params": {"sessionId": "s1", "path": path}})
            while True:
                message = hear()
                if message["id"] == "w":
                    written = "result" in message
                elif message["id"] == number:
                    failed += "error" in message
                    break
        text(f"written: {written}, not read: {failed}")
        return done()
    if KIND == "works":
        # In steps, each with an effect of its own, a command and a file that its client has, and a short pause.
        open("starts", "a").write("start\n")
        for number in range(12):
            open("own", "a").write(f"{number}\n")
            made = client(f"m{number}", "terminal/create", {"command": f"echo {number} >> ran"})
            if "error" in made:
                open("unsure", "a").write(f"{number} {made['error']['message']}\n")
            else:
                terminal = {"terminalId": made["result"]["terminalId"]}
                client(f"e{number}", "terminal/wait_for_exit", terminal)
                client(f"r{number}", "terminal/release", terminal)
            client(f"w{number}", "fs/write_text_file", {"path": f"{os.getcwd()}/file-{number}", "content": f"{number}"})
            text(f"{number} ")
            time.sleep(0.05)
        text("over")
        return done()
    if KIND == "overwrites":
        # Writes a file again and again, and waits for no answer in between.
        for number in range(40):
            say({"id": number, "method": "fs/write_text_file",
                 "params": {"sessionId": "s1", "path": f"{os.getcwd()}/f", "content": f"{number}"}})
        answered = [hear()["id"] for _ in range(40)]
        text(f"in order: {answered == list(range(40))}")
        return done()
    if KIND in ("hurried", "hurried-at-length"):
        # Asks for much at once, and reads no answer before it has asked for all: more than may wait, or in long words.
        short, long = (200, 0) if KIND == "hurried" else (4, 50)
        for number in range(short + long):
            name = "f" if number < short else "x" * 1_000_000
            say({"id": number, "method": "fs/read_text_file", "params": {"sessionId": "s1", "path": f"{os.getcwd()}/{name}"}})
        answers = [hear() for _ in range(short + long)]
        refused = [answer["error"]["message"] for answer in answers if "error" in answer]
        text(f"{len(answers) - len(refused)} read, then: {refused[0]}")
        return done()
    if KIND in ("relay", "configured"):
        tools = rpc(servers[0], "tools/call", {"name": "send_handoff", "arguments": {
            "to": "second", "message": "From an agent"}})
        text(f"handed over: {tools['result']['isError']}")
        return done()
    if KIND == "stdio":
        told = asked(servers[0], 3, "tools/call", {"name": "send_handoff", "arguments": {
            "to": "second", "message": "Over a pipe"}})
        servers[0].stdin.close()
        servers[0].wait()
        text(f"handed over: {told['result']['isError']}")
        return done()
    raise SystemExit(f"what is {KIND}?")


initialize()
while True:
    prompt(*session())
