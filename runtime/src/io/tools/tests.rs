//! The toolbox as agents use it: grants, secrets, results in files, and servers that misbehave.

mod real;

use std::time::Instant;

use serde_json::json;
use swarmc_plan::{Secret, Transport};

use super::*;

/// A plan, a folder and what happened.
struct ToolFixture {
    plan: Plan,
    folder: tempfile::TempDir,
    limits: Limits,
    notices: Arc<std::sync::Mutex<Vec<String>>>,
}

impl ToolFixture {
    /// With one server `s`, which misbehaves in this manner.
    fn new(manner: &str) -> ToolFixture {
        let folder = tempfile::tempdir().unwrap();
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/src/io/tools/tests/hostile.py");
        let marks = folder.path().join("marks").display().to_string();
        let argv = ["python3", script, manner, &marks].map(str::to_owned).to_vec();
        let server = |name: &str| ToolServer {
            name: name.to_owned(),
            transport: Transport::Exec(argv.clone()),
            auth: None,
            env: vec![EnvValue::Secret("TOKEN".to_owned())],
            origin: Default::default(),
        };
        let plan = Plan {
            tool_servers: vec![server("s")],
            secrets: vec![Secret { name: "token".to_owned(), env: "TOKEN".to_owned() }],
            ..Plan::default()
        };
        let limits = Limits { start: Duration::from_secs(20), call: Duration::from_secs(20) };
        ToolFixture { plan, folder, limits, notices: Arc::default() }
    }

    fn toolbox(&self) -> Toolbox {
        let path = std::env::var_os("PATH").unwrap();
        let caller = BTreeMap::from([
            ("PATH".into(), path.clone()),
            ("TOKEN".into(), "secret-value".into()),
            ("OTHER".into(), "not for you".into()),
        ]);
        let notices = Arc::clone(&self.notices);
        Toolbox::new(
            &self.plan,
            World {
                caller: &caller,
                allowed: &[("PATH".into(), path)],
                mark: ("SWARM_RUN".into(), "run-1".into()),
                workspace: self.folder.path(),
                text: &|_| Ok("text".to_owned()),
                limits: self.limits,
                notice: Box::new(move |notice| notices.lock().unwrap().push(notice)),
            },
        )
    }

    fn grant(&self, allow: &[&str]) -> Grant {
        Grant {
            agent: "takao".to_owned(),
            allow: allow.iter().map(|name| (*name).to_owned()).collect(),
            can: vec![Capability::RunCommands, Capability::WriteFiles],
            permissions: Permissions::Gated,
            folder: self.folder.path().to_owned(),
            environment: Arc::new(vec![("PATH".into(), std::env::var_os("PATH").unwrap())]),
        }
    }

    fn marks(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("marks")).unwrap_or_default()
    }

    /// Nothing that the server started is alive.
    fn is_quiet(&self) -> bool {
        let lives = |pid: &str| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
        };
        let marks = self.marks();
        let pids: Vec<&str> = marks.lines().filter_map(|mark| mark.strip_prefix("start ")).collect();
        // A killed process is gone when the system comes to it.
        let end = Instant::now() + Duration::from_secs(10);
        while pids.iter().any(|pid| lives(pid)) && Instant::now() < end {
            std::thread::yield_now();
        }
        !pids.is_empty() && !pids.into_iter().any(lives)
    }
}

/// Names of tools, sorted as they came.
fn names(tools: &[chat::Tool]) -> Vec<&str> {
    tools.iter().map(|tool| tool.name.as_str()).collect()
}

#[tokio::test]
async fn a_grant_says_what_is_listed_and_what_may_be_called() {
    let evaluator = ToolFixture::new("good");
    let toolbox = evaluator.toolbox();
    let grant = evaluator.grant(&["file_*", "s.echo"]);
    let listed = toolbox.list(&grant).await.unwrap();
    assert_eq!(names(&listed), ["file_read", "file_write", "file_list", "file_search", "s.echo"]);
    assert_eq!(toolbox.call(&grant, "s.echo", &json!({"text": "hello"})).await.unwrap(), "hello");
    for tool in ["s.fail", "shell"] {
        let refused = toolbox.call(&grant, tool, &json!({"command": "true"})).await.unwrap_err();
        assert_eq!(refused, ToolFault::lasting(format!("the tool `{tool}` is not yours to use")));
    }
    let unknown = toolbox.call(&grant, "echo\u{1b}", &json!({})).await.unwrap_err();
    assert_eq!(unknown.message, "there is no tool `echo␛`; there are file_read, file_write, file_list, file_search");
    let whole = evaluator.grant(&["s"]);
    let unknown = toolbox.call(&whole, "s.nothing", &json!({})).await.unwrap_err();
    assert_eq!(unknown, ToolFault::lasting("tool server `s` has no tool `nothing`"));
    toolbox.close().await;
    assert!(evaluator.is_quiet());
    assert_eq!(evaluator.marks().matches("start").count(), 1, "one server for all calls");
}

#[tokio::test]
async fn nothing_starts_before_it_is_needed() {
    let evaluator = ToolFixture::new("good");
    let toolbox = evaluator.toolbox();
    let grant = evaluator.grant(&["file_read", "shell"]);
    assert_eq!(names(&toolbox.list(&grant).await.unwrap()), ["shell", "file_read"]);
    assert!(toolbox.call(&grant, "s.echo", &json!({})).await.is_err());
    assert_eq!(evaluator.marks(), "");
    toolbox.close().await;
}

#[tokio::test]
async fn a_server_gets_a_clean_environment_and_its_secret_comes_back_from_nowhere() {
    let evaluator = ToolFixture::new("good");
    let toolbox = evaluator.toolbox();
    let grant = evaluator.grant(&["s", "shell", "file_read"]);
    let told = toolbox.call(&grant, "s.env", &json!({})).await.unwrap();
    assert!(told.ends_with("⟦secret:TOKEN⟧") && !told.contains("OTHER") && told.contains("SWARM_RUN"), "{told}");
    let failed = toolbox.call(&grant, "s.fail", &json!({})).await.unwrap_err();
    assert_eq!(failed, ToolFault::lasting("no such thing: ⟦secret:TOKEN⟧"));
    std::fs::write(evaluator.folder.path().join("f"), "it is secret-value").unwrap();
    assert_eq!(toolbox.call(&grant, "shell", &json!({"command": "cat f"})).await.unwrap(), "it is ⟦secret:TOKEN⟧");
    assert_eq!(toolbox.call(&grant, "file_read", &json!({"path": "f"})).await.unwrap(), "it is ⟦secret:TOKEN⟧");
    // A text that is cut cuts no secret in two.
    let long = format!("{}secret-value", "x".repeat(3_995));
    std::fs::write(evaluator.folder.path().join("g"), long).unwrap();
    for (tool, arguments) in [("shell", json!({"command": "cat g"})), ("file_read", json!({"path": "g"}))] {
        let told = toolbox.call(&grant, tool, &arguments).await.unwrap();
        assert!(!told.contains("secret-v") && !told.contains("xsec"), "{told}");
    }
    let saved = std::fs::read_to_string(evaluator.folder.path().join("tool-results/takao-001-shell.txt")).unwrap();
    assert!(saved.ends_with("x⟦secret:TOKEN⟧"), "{saved}");
    toolbox.close().await;
}

#[tokio::test]
async fn a_long_result_goes_to_a_file_and_its_beginning_goes_on() {
    let evaluator = ToolFixture::new("good");
    let toolbox = evaluator.toolbox();
    let grant = evaluator.grant(&["s", "file_read"]);
    let told = toolbox.call(&grant, "s.big", &json!({"bytes": 10 * 1024 * 1024})).await.unwrap();
    let note = told.lines().next().unwrap();
    assert_eq!(
        note,
        "[10485760 characters, of which the first 4000 follow; saved to tool-results/takao-001-s.big.txt (its first 1048576 bytes); read it with file_read]"
    );
    assert!(told.len() < 4_300);
    let read = json!({"path": "tool-results/takao-001-s.big.txt"});
    let told = toolbox.call(&grant, "file_read", &read).await.unwrap();
    assert!(told.starts_with("[from line 1 of 1; go on with line=1 and offset=4000]\nxxx"), "{told:.80}");
    // More than a message may have.
    let huge = toolbox.call(&grant, "s.big", &json!({"bytes": 17 * 1024 * 1024})).await.unwrap_err();
    assert!(huge.message.contains("it sent a message of more than 16 MiB"), "{huge:?}");
    toolbox.close().await;
    assert!(evaluator.is_quiet());
}

#[tokio::test]
async fn a_server_that_dies_is_started_once_more() {
    let evaluator = ToolFixture::new("good");
    let toolbox = evaluator.toolbox();
    let grant = evaluator.grant(&["s"]);
    let died = toolbox.call(&grant, "s.die", &json!({})).await.unwrap_err();
    assert_eq!(
        died.message,
        "tool server `s` went away during the call of `die`, which may have done its work: it ended with exit code 7; it said: out of order; the next call starts it once more"
    );
    assert!(!died.transient);
    assert_eq!(toolbox.call(&grant, "s.echo", &json!({"text": "again"})).await.unwrap(), "again");
    assert!(toolbox.call(&grant, "s.die", &json!({})).await.unwrap_err().message.ends_with("it said: out of order"));
    let over = toolbox.call(&grant, "s.echo", &json!({"text": "x"})).await.unwrap_err();
    assert!(
        over.message.starts_with("tool server `s` is not started again: it went away during the call of `die`"),
        "{over:?}"
    );
    assert_eq!(evaluator.marks().matches("start").count(), 2);
    toolbox.close().await;
    assert!(evaluator.is_quiet());
}

#[tokio::test]
async fn a_server_that_cannot_start_says_why() {
    for (manner, expected) in [
        (
            "exit",
            "tool server `s` did not start: it ended with exit code 3; it said: cannot find my files; the next call starts it once more",
        ),
        (
            "garbage",
            "tool server `s` did not start: it prints something other than messages of the protocol; it said: Lorem ipsum",
        ),
        ("endless", "tool server `s` did not start: it sent a message of more than 16 MiB"),
        ("nonsense", "tool server `s` did not start: "),
    ] {
        let evaluator = ToolFixture::new(manner);
        let toolbox = evaluator.toolbox();
        let before = Instant::now();
        let fault = toolbox.list(&evaluator.grant(&["s"])).await.unwrap_err();
        assert!(fault.message.starts_with(expected), "{manner}: {fault:?}");
        assert!(!fault.transient && before.elapsed() < Duration::from_secs(15), "{manner}: {fault:?}");
        let fault = toolbox.list(&evaluator.grant(&["s"])).await.unwrap_err();
        assert!(!fault.message.contains("once more"), "{manner}: {fault:?}");
        let fault = toolbox.list(&evaluator.grant(&["s"])).await.unwrap_err();
        assert!(fault.message.starts_with("tool server `s` is not started again: it did not start"), "{fault:?}");
        toolbox.close().await;
        assert!(evaluator.is_quiet(), "{manner}");
    }
    let mut evaluator = ToolFixture::new("x");
    evaluator.plan.tool_servers[0].transport = Transport::Exec(vec!["no-such-program".to_owned()]);
    let fault = evaluator.toolbox().list(&evaluator.grant(&["s"])).await.unwrap_err();
    assert!(fault.message.starts_with("tool server `s` did not start: `no-such-program`: not found"), "{fault:?}");
    evaluator.plan.tool_servers[0].env = vec![EnvValue::Secret("MISSING".to_owned())];
    let fault = evaluator.toolbox().list(&evaluator.grant(&["s"])).await.unwrap_err();
    assert!(fault.message.contains("the secret variable `MISSING` is not set"), "{fault:?}");
}

#[tokio::test]
async fn a_server_that_hangs_times_out() {
    let mut evaluator = ToolFixture::new("silent");
    evaluator.limits.start = Duration::from_secs(2);
    let toolbox = evaluator.toolbox();
    let before = Instant::now();
    let fault = toolbox.list(&evaluator.grant(&["s"])).await.unwrap_err();
    assert_eq!(
        fault.message,
        "tool server `s` did not start: it timed out after 2 seconds; the next call starts it once more"
    );
    assert!(fault.transient && before.elapsed() < Duration::from_secs(10));
    // It is gone with what it had started, before any code closes the toolbox.
    assert!(evaluator.is_quiet());

    let mut evaluator = ToolFixture::new("mute");
    evaluator.limits.start = Duration::from_secs(5);
    let toolbox = evaluator.toolbox();
    let fault = toolbox.list(&evaluator.grant(&["s"])).await.unwrap_err();
    assert!(fault.transient && fault.message.contains("did not list its tools in 5 seconds"), "{fault:?}");
    toolbox.close().await;

    let mut evaluator = ToolFixture::new("good");
    evaluator.limits.call = Duration::from_secs(3);
    let toolbox = evaluator.toolbox();
    let grant = evaluator.grant(&["s"]);
    let fault = toolbox.call(&grant, "s.hang", &json!({})).await.unwrap_err();
    assert_eq!(
        fault,
        ToolFault { message: "`s.hang` timed out: no result came in 3 seconds".to_owned(), transient: true }
    );
    // It still answers others.
    assert_eq!(toolbox.call(&grant, "s.echo", &json!({"text": "here"})).await.unwrap(), "here");
    let busy = toolbox.call(&grant, "s.busy", &json!({})).await.unwrap_err();
    assert_eq!(busy.message, "`s.busy`: temporarily unavailable (error -32000)");
    assert!(busy.transient);
    assert!(evaluator.marks().contains("cancelled"), "the server was told that the call is cancelled");
    toolbox.close().await;
    assert!(evaluator.is_quiet());
}

#[tokio::test]
async fn of_too_many_tools_the_first_are_offered_and_people_are_told() {
    let evaluator = ToolFixture::new("many");
    let toolbox = evaluator.toolbox();
    let listed = toolbox.list(&evaluator.grant(&["s"])).await.unwrap();
    assert_eq!((listed.len(), listed[127].name.as_str()), (128, "s.tool_127"));
    assert_eq!(
        *evaluator.notices.lock().unwrap(),
        ["agent `takao` may use 500 tools, and is offered the first 128: name those that it needs in its `tools`"]
    );
    // An agent that names one gets it.
    assert_eq!(names(&toolbox.list(&evaluator.grant(&["s.tool_499"])).await.unwrap()), ["s.tool_499"]);
    toolbox.close().await;

    let evaluator = ToolFixture::new("pages");
    let toolbox = evaluator.toolbox();
    let before = Instant::now();
    assert_eq!(toolbox.list(&evaluator.grant(&["s"])).await.unwrap().len(), 100);
    assert!(before.elapsed() < Duration::from_secs(15));
    assert!(evaluator.notices.lock().unwrap()[0].contains("more than 1000 tools"));
    toolbox.close().await;
}

#[tokio::test]
async fn what_a_server_says_of_its_tools_is_made_harmless() {
    let evaluator = ToolFixture::new("odd");
    let toolbox = evaluator.toolbox();
    let listed = toolbox.list(&evaluator.grant(&["s"])).await.unwrap();
    assert_eq!(names(&listed), ["s.good", "s.long"]);
    assert_eq!(listed[0].description, "Good.␛[2J \\u{202e}and ⟦secret:TOKEN⟧");
    assert_eq!(listed[0].parameters["properties"]["n"], json!({"type": "integer"}));
    assert_eq!(listed[1].description.chars().count(), 1_001);
    assert!(evaluator.notices.lock().unwrap()[0].contains("5 of its tools are left out, such as `bad␊name`"));
    toolbox.close().await;
}

#[tokio::test]
async fn a_server_that_greets_or_will_not_go_is_borne_with() {
    for manner in ["greets", "stubborn"] {
        let evaluator = ToolFixture::new(manner);
        let toolbox = evaluator.toolbox();
        let grant = evaluator.grant(&["s"]);
        assert_eq!(toolbox.call(&grant, "s.echo", &json!({"text": "hi"})).await.unwrap(), "hi");
        let before = Instant::now();
        toolbox.close().await;
        assert!(evaluator.is_quiet() && before.elapsed() < Duration::from_secs(10), "{manner}");
        let over = toolbox.call(&grant, "s.echo", &json!({})).await.unwrap_err();
        assert_eq!(over.message, "tool server `s`: the run is ending");
    }
}

#[tokio::test]
async fn a_toolbox_that_is_not_closed_leaves_nothing_behind() {
    let evaluator = ToolFixture::new("stubborn");
    let toolbox = evaluator.toolbox();
    toolbox.call(&evaluator.grant(&["s"]), "s.echo", &json!({"text": "hi"})).await.unwrap();
    drop(toolbox);
    assert!(evaluator.is_quiet());
}

#[tokio::test]
async fn an_abandoned_call_is_ended() {
    let evaluator = ToolFixture::new("good");
    let toolbox = evaluator.toolbox();
    let grant = evaluator.grant(&["shell"]);
    let line = json!({"command": "echo start $$ >> marks; sleep 300 & echo start $! >> marks; wait"});
    let call = toolbox.call(&grant, "shell", &line);
    assert!(tokio::time::timeout(Duration::from_secs(2), call).await.is_err());
    toolbox.close().await;
    assert_eq!(evaluator.marks().lines().count(), 2);
    assert!(evaluator.is_quiet());
    let over = toolbox.call(&grant, "shell", &json!({"command": "true"})).await.unwrap_err();
    assert_eq!(over, ToolFault::lasting("the run is ending"));
}

#[test]
fn the_policy_and_the_permissions_say_who_is_asked() {
    let mut evaluator = ToolFixture::new("good");
    let policy = [
        ("shell", Approval::Human),
        ("s.die", Approval::Coordinator),
        ("s", Approval::Human),
        ("s.echo", Approval::Auto),
    ];
    evaluator.plan.policy.tools = policy.into_iter().map(|(name, approval)| (name.to_owned(), approval)).collect();
    let toolbox = evaluator.toolbox();
    let mut grant = evaluator.grant(&["*"]);
    let asked = |grant: &Grant| {
        ["shell", "file_read", "s.echo", "s.die", "s.fail", "mcp__s__fail", "nothing"]
            .map(|tool| toolbox.approval(grant, tool))
    };
    use Approval::{Auto, Coordinator, Human};
    assert_eq!(asked(&grant), [Human, Auto, Auto, Coordinator, Human, Human, Auto]);
    let gates = |grant: &Grant| ["shell", "s.fail", "s.echo"].map(|tool| toolbox.gate(grant, tool));
    assert_eq!(gates(&grant), [Human, Human, Auto]);
    assert_eq!(gates(&evaluator.grant(&["s.echo"])), [Auto; 3], "what is not allowed fails without a question");
    assert_eq!(["shell", "mcp__s__fail", "s.fail"].map(|tool| toolbox.name(tool)), ["shell", "s.fail", "s.fail"]);
    let long = ["a", "b"].map(|last| toolbox.name(&format!("s.{}{last}", "x".repeat(300))));
    assert!(long[0] != long[1] && long[0].chars().count() < 200, "{long:?}");
    grant.permissions = Permissions::Skip;
    assert_eq!(asked(&grant), [Auto; 7]);
}

#[test]
fn a_helper_gets_what_it_asks_for_and_never_more_than_who_asks_has() {
    let mut plan = ToolFixture::new("plain").plan;
    let server = plan.tool_servers[0].clone();
    plan.tool_servers.extend(["lib", "lib.web"].map(|name| ToolServer { name: name.to_owned(), ..server.clone() }));
    let check = |allowed: &[&str], skills: &[&str], expected: &[&str]| {
        let texts = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<String>>();
        let mut grant = Grant { allow: texts(allowed), ..Grant::default() };
        grant.narrow(&texts(skills), &plan);
        assert_eq!(grant.allow, texts(expected));
    };
    check(&["file_read"], &["file_read", "shell", "*", "file_*"], &["file_read"]);
    check(&["file_*"], &["file_read", "file_list", "shell"], &["file_read", "file_list"]);
    check(&["*"], &["shell", "lib.a"], &["shell", "lib.a"]);
    check(&["lib"], &["lib", "lib.a", "lib.web", "lib.web.a", "s.a"], &["lib", "lib.a"]);
    check(&[], &["file_read"], &[]);
}
