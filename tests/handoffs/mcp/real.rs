//! Clients of MCP that others wrote: the MCP inspector, from npm, and the package `mcp`, from PyPI.
//!
//! `tests/install-tools` puts both into a cache outside the checkout; these tests call it, and fail without.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;

use serde_json::{Value, json};

use super::super::{err, sent};
use super::{McpSession, TOOLS, binary};

/// The folder with the clients, installed the first time that anyone asks.
fn clients() -> PathBuf {
    static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/install-tools");
        let output =
            Command::new(script).stderr(Stdio::inherit()).output().expect("tests/install-tools can be started");
        assert!(output.status.success(), "tests/install-tools failed: it says why above");
        PathBuf::from(String::from_utf8_lossy(&output.stdout).trim_end())
    });
    FOLDER.clone()
}

/// A client in the task of a guest.
fn client(guest: &McpSession, program: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(guest.project.root()).stdin(Stdio::null());
    command.env("SWARM_MCP", &guest.url).env("SWARM_TOKEN", &guest.token).env("SWARM_SOCKET", &guest.socket);
    command
}

/// What a client prints, as JSON.
fn printed(output: &Output) -> Value {
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{out}\n{}", err(output));
    // Clients that hold schemas against what they know complain there.
    assert!(!err(output).contains("unknown format"), "{}", err(output));
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
}

/// Lists the tools and calls both with the inspector.
fn inspect(target: &dyn Fn(&McpSession) -> Vec<String>) {
    let program = clients().join("bin/mcp-inspector-cli");
    let guest = McpSession::new();
    let run = |arguments: &[&str]| {
        let mut command = client(&guest, &program);
        command.arg("--cli").args(target(&guest)).args(arguments);
        printed(&command.output().expect("the inspector starts"))
    };
    let tools = run(&["--method", "tools/list"]);
    let names: Vec<&Value> = tools["tools"].as_array().expect("a list").iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, TOOLS);
    let call = ["--method", "tools/call", "--tool-name"];
    let sending = ["send_handoff", "--tool-arg", "to=second", "message=Inspected", "status={\"ok\": true}"];
    let receipt = run(&[&call[..], &sending].concat());
    assert_eq!((&receipt["isError"], &receipt["structuredContent"]["to"]), (&json!(false), &json!("second")));
    let refused = run(&[&call[..], &["send_handoff", "--tool-arg", "to=third", "message=m"]].concat());
    assert_eq!(refused["isError"], true, "{refused}");
    let inbox = run(&[&call[..], &["read_inbox"]].concat());
    assert_eq!(inbox["structuredContent"]["waiting"], json!([]));
    let (project, output) = guest.release();
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert_eq!(sent(&project), ["first → second: Inspected"]);
}

#[test]
fn the_inspector_calls_the_tools_over_http() {
    inspect(&|guest| {
        let header = format!("Authorization: Bearer {}", guest.token);
        [guest.url.as_str(), "--transport", "http", "--header", &header].map(str::to_owned).to_vec()
    });
}

#[test]
fn the_inspector_calls_the_tools_over_standard_input_and_output() {
    inspect(&|_| vec![binary().join("swarmc").to_string_lossy().into_owned(), "mcp".to_owned()]);
}

/// The same with the package `mcp`, over both in one process.
const PYTHON: &str = r#"
import anyio, json, os, sys
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

told = {}

async def use(name, streams):
    async with ClientSession(streams[0], streams[1]) as session:
        await session.initialize()
        tools = await session.list_tools()
        sent = await session.call_tool("send_handoff", {"to": "second", "message": "By " + name})
        refused = await session.call_tool("send_handoff", {"to": "third", "message": "m"})
        read = await session.call_tool("read_inbox", {})
        told[name] = {
            "tools": [tool.name for tool in tools.tools],
            "sent": sent.model_dump(mode="json", by_alias=True),
            "refused": refused.model_dump(mode="json", by_alias=True),
            "read": read.model_dump(mode="json", by_alias=True),
        }

async def main():
    headers = {"Authorization": "Bearer " + os.environ["SWARM_TOKEN"]}
    async with create_mcp_http_client(headers=headers) as client:
        async with streamable_http_client(os.environ["SWARM_MCP"], http_client=client) as streams:
            await use("http", streams)
    environment = {name: os.environ[name] for name in ("SWARM_SOCKET", "SWARM_TOKEN")}
    async with stdio_client(StdioServerParameters(command=sys.argv[1], args=["mcp"], env=environment)) as streams:
        await use("pipe", streams)
    print(json.dumps(told))

anyio.run(main)
"#;

#[test]
fn the_python_client_calls_the_tools_over_both() {
    let python = clients().join("python/bin/python");
    let guest = McpSession::new();
    let mut command = client(&guest, &python);
    let told = printed(&command.args(["-c", PYTHON]).arg(binary().join("swarmc")).output().expect("python starts"));
    for way in ["http", "pipe"] {
        let told = &told[way];
        assert_eq!(told["tools"], json!(TOOLS), "{way}");
        assert_eq!(told["sent"]["structuredContent"]["to"], "second", "{way}");
        assert_eq!(told["refused"]["isError"], true, "{way}");
        assert_eq!(told["read"]["structuredContent"]["inputs"], json!([]), "{way}");
    }
    let (project, output) = guest.release();
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert_eq!(sent(&project), ["first → second: By http", "first → second: By pipe"]);
}
