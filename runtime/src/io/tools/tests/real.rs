//! Tool servers that others wrote, from npm: over standard input and output, and over HTTP.
//!
//! `tests/install-tools` puts them into a cache outside the checkout; these tests call it, and fail without.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::json;

use super::*;

/// The folder with the servers, installed the first time that anyone asks.
fn programs() -> PathBuf {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/install-tools");
    let output = Command::new(script).stderr(Stdio::inherit()).output().expect("tests/install-tools can be started");
    assert!(output.status.success(), "tests/install-tools failed: it says why above");
    PathBuf::from(String::from_utf8_lossy(&output.stdout).trim_end()).join("bin")
}

/// A setup whose server is the one of these words.
fn evaluator(words: &[&str]) -> ToolFixture {
    let mut evaluator = ToolFixture::new("good");
    let program = programs().join(words[0]).display().to_string();
    let argv = std::iter::once(program).chain(words[1..].iter().map(|word| (*word).to_owned())).collect();
    evaluator.plan.tool_servers[0].transport = Transport::Exec(argv);
    evaluator.limits = Limits { start: Duration::from_secs(120), call: Duration::from_secs(60) };
    evaluator
}

#[tokio::test]
async fn the_filesystem_server_lists_its_tools_and_answers() {
    let evaluator = evaluator(&["mcp-server-filesystem", "."]);
    std::fs::write(evaluator.folder.path().join("note.txt"), "the value is secret-value\n").unwrap();
    let toolbox = evaluator.toolbox();
    let grant = evaluator.grant(&["s.read_text_file", "s.list_*"]);
    let listed = toolbox.list(&grant).await.unwrap();
    let listed = names(&listed);
    assert!(listed.contains(&"s.read_text_file") && listed.contains(&"s.list_directory"), "{listed:?}");
    assert!(!listed.contains(&"s.write_file"), "{listed:?}");
    let path = evaluator.folder.path().canonicalize().unwrap().join("note.txt");
    let told = toolbox.call(&grant, "s.read_text_file", &json!({"path": path})).await.unwrap();
    assert_eq!(told.trim_end(), "the value is ⟦secret:TOKEN⟧");
    let told = toolbox.call(&grant, "s.list_directory", &json!({"path": path.parent()})).await.unwrap();
    assert!(told.contains("note.txt"), "{told}");
    // It keeps to its folder itself; what it refuses reaches the model.
    let outside = toolbox.call(&grant, "s.read_text_file", &json!({"path": "/etc/passwd"})).await.unwrap_err();
    assert!(outside.message.to_lowercase().contains("denied"), "{outside:?}");
    let wrong = toolbox.call(&grant, "s.read_text_file", &json!({})).await.unwrap_err();
    assert!(wrong.message.contains("path"), "{wrong:?}");
    let refused = toolbox.call(&grant, "s.write_file", &json!({"path": path, "content": "x"})).await.unwrap_err();
    assert_eq!(refused.message, "the tool `s.write_file` is not yours to use");
    toolbox.close().await;
    assert!(std::fs::read_to_string(path).unwrap().contains("secret-value"));
}

#[tokio::test]
async fn the_everything_server_answers_with_text_and_with_what_is_none() {
    let evaluator = evaluator(&["mcp-server-everything", "stdio"]);
    let toolbox = evaluator.toolbox();
    let grant = evaluator.grant(&["s"]);
    assert!(names(&toolbox.list(&grant).await.unwrap()).contains(&"s.echo"));
    assert_eq!(toolbox.call(&grant, "s.echo", &json!({"message": "hello"})).await.unwrap(), "Echo: hello");
    let picture = toolbox.call(&grant, "s.get-tiny-image", &json!({})).await.unwrap();
    assert!(picture.contains("[a picture, image/png, not shown]"), "{picture}");
    let environment = toolbox.call(&grant, "s.get-env", &json!({})).await.unwrap();
    assert!(environment.contains("SWARM_RUN") && !environment.contains("CARGO_MANIFEST_DIR"), "{environment}");
    toolbox.close().await;
}

/// The everything server on a port of its own; ended by its number.
struct Listening(Child, u16);

impl Listening {
    fn start() -> Listening {
        // Another process may take the port before the server does.
        (0..5).find_map(|_| Listening::try_start()).expect("a server listens")
    }

    fn try_start() -> Option<Listening> {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut child = Command::new(programs().join("mcp-server-everything"))
            .arg("streamableHttp")
            .env("PORT", port.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let mut lines = stderr.lines().map_while(Result::ok);
        let listening = Listening(child, port);
        let listens = lines.any(|line| line.contains("listening on port"));
        // It goes on writing there.
        std::thread::spawn(move || lines.for_each(drop));
        listens.then_some(listening)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[tokio::test]
async fn a_server_over_http_is_reached_by_its_address() {
    let listening = Listening::start();
    let mut evaluator = ToolFixture::new("good");
    evaluator.plan.tool_servers[0].transport = Transport::Url(format!("http://127.0.0.1:{}/mcp", listening.1));
    evaluator.plan.tool_servers[0].auth = Some("TOKEN".to_owned());
    let toolbox = evaluator.toolbox();
    let grant = evaluator.grant(&["s.echo", "s.get-sum"]);
    assert_eq!(names(&toolbox.list(&grant).await.unwrap()), ["s.echo", "s.get-sum"]);
    assert_eq!(toolbox.call(&grant, "s.echo", &json!({"message": "hello"})).await.unwrap(), "Echo: hello");
    let sum = toolbox.call(&grant, "s.get-sum", &json!({"a": 2, "b": 40})).await.unwrap();
    assert!(sum.contains("42"), "{sum}");
    drop(listening);
    let gone = toolbox.call(&grant, "s.echo", &json!({"message": "hello"})).await.unwrap_err();
    assert!(gone.message.starts_with("tool server `s` ") || gone.message.starts_with("`s.echo`"), "{gone:?}");
    toolbox.close().await;
}

#[tokio::test]
async fn an_address_without_a_server_fails_at_once() {
    let mut evaluator = ToolFixture::new("good");
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    evaluator.plan.tool_servers[0].transport = Transport::Url(format!("http://127.0.0.1:{port}/mcp"));
    let toolbox = evaluator.toolbox();
    let fault = toolbox.list(&evaluator.grant(&["s"])).await.unwrap_err();
    assert!(fault.message.starts_with("tool server `s` did not start: "), "{fault:?}");
    toolbox.close().await;
}
