//! Agents that hand over what they should not, through every door but MCP (`mcp.rs`): floods, forgeries, and what is
//! too large or is no handoff (issue 7, what bad input gets).

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;

use serde_json::{Value, json};

use super::mcp::{McpSession, PATIENCE};
use super::{err, run, scripted, sent};

/// The door of scripts, as one that speaks it itself uses it.
pub(super) struct Socket(BufReader<UnixStream>);

impl Socket {
    pub(super) fn new(guest: &McpSession) -> Socket {
        let stream = UnixStream::connect(&guest.socket).expect("the socket is open");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time-out can be set");
        Socket(BufReader::new(stream))
    }

    /// What one line gets; nothing where the connection is closed.
    fn says(&mut self, line: &[u8]) -> Option<Value> {
        // Whoever says too much is not heard out.
        let _ = self.0.get_mut().write_all(&[line, b"\n"].concat());
        let mut answer = String::new();
        let read = self.0.read_line(&mut answer).unwrap_or(0);
        (read > 0).then(|| serde_json::from_str(&answer).expect("an answer is JSON"))
    }

    pub(super) fn asks(&mut self, token: &str, operation: &Value) -> Value {
        let line = json!({ "token": token, "operation": operation }).to_string();
        self.says(line.as_bytes()).expect("there is an answer")
    }
}

#[test]
fn nobody_forges_who_sends_or_what_is_answered() {
    let guest = McpSession::new();
    let socket = &mut Socket::new(&guest);
    let handoff = |more: Value| {
        let mut operation = json!({ "swarm": "send_handoff", "to": "second", "message": "m" });
        operation.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        operation
    };
    for (more, why) in [
        (json!({ "id": "e1" }), "unknown field `id`"),
        (json!({ "from": "second" }), "unknown field `from`"),
        (json!({ "fromNodeId": "second" }), "unknown field `fromNodeId`"),
        (json!({ "token": "0" }), "unknown field `token`"),
        (json!({ "reply_to": "e1" }), "no envelope `e1` from `second` waits for your answer"),
        (json!({ "reply_to": "e1\u{1b}[31m" }), "no envelope `e1[31m` from `second`"),
        (json!({ "to": "first" }), "you cannot send a handoff to yourself"),
        (json!({ "to": "user" }), "no edge leads from `first` to `user`"),
        (json!({ "to": "" }), "no edge leads from `first` to ``"),
        (json!({ "context_ref": "contextpack://../../x" }), "is not a context pack"),
        (json!({ "artifacts": [{ "type": "file", "ref": "../../etc/passwd" }] }), "lies outside the run"),
        (json!({ "artifacts": [{ "type": "file", "ref": "src/../../x" }] }), "lies outside the run"),
        (json!({ "artifacts": [{ "type": "file", "ref": "file:///etc/passwd" }] }), "lies outside the run"),
        (json!({ "artifacts": [{ "type": "file", "ref": "artifact://log/../../x" }] }), "lies outside the run"),
        (json!({ "artifacts": [{ "type": "", "ref": "a" }] }), "is not an artifact"),
        (json!({ "artifacts": vec![json!({ "type": "file", "ref": "a" }); 33] }), "at most 32 are allowed"),
        (json!({ "message": "x".repeat(4001) }), "at most 4000 are allowed"),
        (json!({ "structured": { "text": "x".repeat(70_000) } }), "at most 65536 are allowed"),
        (json!({ "structured": [] }), "`structured` is not a JSON object"),
        (json!({ "kind": "order" }), "unknown variant `order`"),
    ] {
        let told = socket.asks(&guest.token, &handoff(more.clone()));
        assert!(told["error"].as_str().is_some_and(|error| error.contains(why)), "{more}: {told}");
        assert!(!told.to_string().contains("\\u001b"), "{told}");
    }
    for token in ["", "0", &"0".repeat(32), &guest.token[1..], &guest.token.to_uppercase(), "../token"] {
        // Some tokens have no letter.
        if token != guest.token {
            let told = socket.asks(token, &handoff(json!({})));
            assert!(told["error"].as_str().is_some_and(|error| error.contains("is not valid")), "{told}");
        }
    }
    assert_eq!(socket.asks(&guest.token, &handoff(json!({})))["ok"]["to"], "second");
    let (project, output) = guest.release();
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert_eq!(sent(&project), ["first → second: m"]);
    // People hear of it, and not of all.
    let said = err(&output);
    assert_eq!(said.matches("`first`: a request of its agent was refused").count(), 10, "{said}");
    assert!(said.contains("`first`: further refusals of this turn are not shown"), "{said}");
}

#[test]
fn what_is_no_line_of_the_socket_is_told_so() {
    let guest = McpSession::new();
    let deep = [b"[".repeat(100_000), b"]".repeat(100_000)].concat();
    let unknown = json!({ "token": guest.token, "operation": { "swarm": "stop_run" } }).to_string();
    let more = json!({ "token": guest.token, "node": "second" }).to_string();
    let lines: [&[u8]; 8] =
        [b"", b"{", b"null", b"\xff\xfe", b"{\"token\": 1}", &deep, unknown.as_bytes(), more.as_bytes()];
    let socket = &mut Socket::new(&guest);
    for line in lines {
        let told = socket.says(line).expect("there is an answer");
        assert!(told["error"].is_string(), "{told}");
    }
    // A last line needs no end.
    let listed = json!({ "token": guest.token }).to_string();
    for (line, field) in [(listed.as_str(), "ok"), ("{", "error")] {
        let mut short = Socket::new(&guest);
        short.0.get_mut().write_all(line.as_bytes()).expect("it is taken");
        short.0.get_mut().shutdown(std::net::Shutdown::Write).expect("it is said");
        let mut told = String::new();
        short.0.read_line(&mut told).expect("there is an answer");
        let told: Value = serde_json::from_str(&told).expect("an answer is JSON");
        assert!(!told[field].is_null() && !told.to_string().contains("longer than"), "{told}");
    }
    // What is longer than any envelope is not read to its end.
    let told = Socket::new(&guest).says(&vec![b'x'; 4 << 20]);
    assert!(told.is_none_or(|told| told["error"].as_str().is_some_and(|error| error.contains("longer than"))));
    let (project, output) = guest.release();
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert_eq!(sent(&project), Vec::<String>::new());
}

#[test]
fn ten_thousand_handoffs_by_the_socket_end_in_a_full_inbox() {
    let guest = McpSession::new();
    let socket = &mut Socket::new(&guest);
    let mut taken = 0;
    for number in 0..10_000 {
        let operation =
            json!({ "swarm": "send_handoff", "to": "second", "kind": "handoff", "message": number.to_string() });
        let told = socket.asks(&guest.token, &operation);
        taken += usize::from(told["ok"].is_object());
        let refusal = told["error"].as_str().unwrap_or_default();
        assert!(told["ok"].is_object() || refusal.contains("which is the limit"), "{told}");
    }
    assert_eq!(taken, 20, "as many as the edge takes");
    let (project, output) = guest.release();
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert_eq!(sent(&project).len(), taken);
    assert!(err(&output).len() < 10_000, "{}", err(&output));
}

/// A task whose agent answers with what `script` prints, and one that reads what came of it.
fn answering(script: &str, max: u32) -> crate::specs::Project {
    scripted(&format!(
        r###"
workflow lines {{ default main }}
provider shell {{ exec "sh" "-c" ##"""
    cat >/dev/null
    {script}
    """##
}}
agent talker provider=shell
pipeline main {{
    edges {{ first -> second max={max} }}
    task first agent=talker {{ prompt "Talk."; output max="4MB" }}
    task second {{ stdin "<<inbox>>"; run "cat" }}
    result first
}}
"###
    ))
}

#[test]
fn ten_thousand_lines_of_an_answer_are_as_many_as_an_inbox_takes() {
    let line = r#"{"swarm": "send_handoff", "to": "second", "message": "number &"}"#;
    let project = answering(&format!("seq 1 10000 | sed 's/.*/{line}/'; echo Sent."), 5000);
    let output = run(&project);
    let said = err(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert_eq!(sent(&project).len(), 1000);
    assert!(said.contains("9000 more lines are operations, but one answer may have at most 1000"), "{said}");
    assert_eq!(project.output("first").trim(), "Sent.");
}

#[test]
fn lines_that_are_no_handoffs_are_told_to_people() {
    let project = answering(
        r#"
    echo '{"swarm": "send_handoff", "to": "second"}'
    echo '{"swarm": "send_handoff", "to": "second", "message": "m", "from": "second"}'
    echo '{"swarm": "send_handoff", "to": "nobody", "message": "m"}'
    echo '{"swarm": "send_handoff", "to": "first", "message": "m"}'
    echo '{"swarm": "stop_run"}'
    printf '{"swarm": "send_handoff", "to": "second", "message": "m", "structured": {"text": "%s"}}\n' $(head -c 70000 /dev/zero | tr '\0' x)
    echo '{"swarm": "send_handoff", "to": "second", "message": "cut'
    echo 'Said.'"#,
        20,
    );
    let output = run(&project);
    let said = err(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert_eq!(sent(&project), Vec::<String>::new());
    for why in [
        "missing field `message`",
        "unknown field `from`",
        "no edge leads from `first` to `nobody`",
        "you cannot send a handoff to yourself",
        "unknown variant `stop_run`",
        "at most 65536 are allowed",
    ] {
        assert!(said.contains("`first`: a request of its agent was refused: ") && said.contains(why), "{why}: {said}");
    }
    // What is no operation is what the agent said.
    let answer = project.output("first");
    let kept: Vec<&str> = answer.trim().lines().collect();
    let [.., stop, cut, said] = kept.as_slice() else { panic!("{answer}") };
    assert_eq!((*stop, *said), ("{\"swarm\": \"stop_run\"}", "Said."));
    assert_eq!(*cut, "{\"swarm\": \"send_handoff\", \"to\": \"second\", \"message\": \"cut");
    assert_eq!(kept.len(), 5, "what was read as an operation is not in it: {answer}");
}

#[test]
fn an_agent_that_repeats_its_prompt_hands_nothing_over() {
    let project = scripted(
        r###"
workflow echo { default main }
provider parrot { exec "sh" "-c" "cat; echo; echo '{\"swarm\": \"send_handoff\", \"to\": \"second\", \"message\": \"Mine\"}'" }
agent parrot provider=parrot
pipeline main {
    edges { first -> second; plain -> second }
    task first agent=parrot {
        prompt #"""
            Say it like this:
              {"swarm": "send_handoff", "to": "second", "message": "Yours"}
            """#
    }
    task plain agent=parrot { prompt "Say it." }
    task second { stdin "<<inbox>>"; run "cat" }
    result first
}
"###,
    );
    let output = run(&project);
    let said = err(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let mut sent = sent(&project);
    sent.sort();
    assert_eq!(sent, ["first → second: Mine", "plain → second: Mine"]);
    // What a prompt of ours says of handing over is no line that asks for it.
    let taught = project.output("plain");
    assert!(taught.contains(r#"{"swarm": "send_handoff", "to": "second", "message": …}"#), "{taught}");
    let refusals: Vec<&str> = said.lines().filter(|line| line.contains("was refused")).collect();
    let [refusal] = refusals.as_slice() else { panic!("{said}") };
    assert!(
        refusal.contains("`first`: ") && refusal.contains("copied from its prompt are not operations"),
        "{refusal}"
    );
    let kept = project.output("first");
    assert!(kept.contains(r#""message": "Yours"}"#) && !kept.contains("Mine"), "{kept}");
}

#[test]
fn ten_thousand_messages_are_as_many_as_a_turn_may_leave() {
    let project = scripted(
        r###"
workflow messages { default main }
pipeline main {
    edges { first -> second max=5000 }
    task first {
        run "sh" "-c" ##"""
            cd "$SWARM_WORKSPACE"
            for number in $(seq 1 10000); do
                echo '{"to": "second", "type": "data_ready"}' >messages/first_to_second_$number.json
            done
            echo Done. >outbox/summary.md
            echo '{"state": "completed"}' >status.json
            """##
        files
    }
    task second { stdin "<<inbox>>"; run "true" }
}
"###,
    );
    let output = run(&project);
    let said = err(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("there are more than 1000 messages: those with the highest numbers are ignored"), "{said}");
    assert_eq!(sent(&project).len(), 1000);
}

#[test]
fn whoever_mends_a_task_has_no_token_of_it_and_does_not_speak_for_it() {
    let project = scripted(
        r###"
workflow mends { default main }
provider coder {
    exec "sh" "-c" ##"""
        cat >/dev/null; test -e ok || exit 1
        echo '{"swarm": "send_handoff", "to": "reader", "message": "Mended"}'
        """##
}
provider mender {
    exec "sh" "-c" ##"""
        cat >/dev/null; env >mender.env; touch ok
        echo '{"swarm": "send_handoff", "to": "reader", "message": "In its name"}'
        """##
}
agent coder provider=coder
agent mender provider=mender
pipeline main {
    edges { work -> reader }
    task work agent=coder { on-failure fix agent=mender; prompt "Work." }
    task reader { stdin "<<inbox>>"; run "cat" }
    result reader
}
"###,
    );
    let output = run(&project);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert_eq!(sent(&project), ["work → reader: Mended"]);
    let told = std::fs::read_to_string(project.root().join("mender.env")).expect("it was asked");
    for name in ["SWARM_TOKEN", "SWARM_SOCKET", "SWARM_MCP"] {
        assert!(told.contains("SWARM_ATTEMPT=") && !told.contains(name), "{name}: {told}");
    }
}
