//! What envelopes refer to (seed 002, envelope): artifacts and context packs of the run, files of the workspace, and
//! the node that an answer goes to. What is not there is refused, whichever door it comes through.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use serde_json::{Value, json};

use super::hostile::Socket;
use super::mcp::McpSession;
use super::{err, records, run, scripted, sent};
use crate::seeds::ENVELOPE;
use crate::specs::Project;

#[test]
fn what_an_envelope_refers_to_is_there() {
    let guest = McpSession::new();
    let root = guest.root();
    fs::create_dir_all(root.join("src")).expect("a folder can be made");
    fs::write(root.join("src/parse.rs"), "").expect("a file can be written");
    symlink("/etc/passwd", root.join("out")).expect("a link can be made");
    symlink("src/parse.rs", root.join("in")).expect("a link can be made");
    assert!(Command::new("mkfifo").arg(root.join("pipe")).status().expect("mkfifo starts").success());
    let handoff = |more: Value| {
        let mut handoff = json!({ "to": "second", "message": "m" });
        handoff.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        handoff
    };
    let refers = |reference: &str| handoff(json!({ "artifacts": [{ "type": "file", "ref": reference }] }));
    let (socket, line) = (&mut Socket::new(&guest), &mut guest.connect());
    for (wanted, why) in [
        (refers("out"), "by its path from the top of the workspace: `out` leads out of"),
        (refers("pipe"), "`pipe` is no regular file"),
        (refers("nothing.rs"), "there is no `nothing.rs`"),
        (refers("src"), "`src` is a folder"),
        (refers("src/parse.rs\0"), "`src/parse.rs` contains control characters"),
        (refers(".git/config"), "`.git/config` belongs to Git"),
        (refers("artifact://nokind/aaaa"), "there are no artifacts of kind `nokind`"),
        (refers("artifact://log/aaaa"), "there is no reference `artifact://log/aaaa`"),
        (
            handoff(json!({ "context_ref": "contextpack://pack/nope" })),
            "there is no reference `contextpack://pack/nope`",
        ),
    ] {
        let mut operation = wanted.clone();
        operation["swarm"] = "send_handoff".into();
        let told = socket.asks(&guest.token, &operation);
        assert!(told["error"].as_str().is_some_and(|error| error.contains(why)), "{wanted}: {told}");
        let result = guest.call(line, "send_handoff", wanted.clone());
        let text = result["content"][0]["text"].as_str().expect("there is a text");
        assert!(result["isError"] == true && text.contains(why), "{wanted}: {text}");
    }
    for there in ["src/parse.rs", "./src/parse.rs", "in"] {
        let result = guest.call(line, "send_handoff", refers(there));
        assert_eq!(result["isError"], false, "{there}: {result}");
    }
    let (project, output) = guest.release();
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert_eq!(sent(&project).len(), 3);
}

fn git(project: &Project, arguments: &[&str]) {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]);
    let output = git.args(arguments).current_dir(project.root()).output().expect("git starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn files_are_those_of_the_tree_that_their_sender_works_in() {
    let project = scripted(
        r##"
workflow trees { default main }
pipeline main {
    edges { first -> second }
    task first {
        worktree
        run "sh" "-c" #"""
            echo made >made.rs
            swarmc agent send-handoff --to second --message Made --artifact made.rs &&
            swarmc agent send-handoff --to second --message Elsewhere --artifact elsewhere.rs 2>refused; cat refused
            """#
    }
    task second { stdin "<<inbox>>"; run "cat" }
    result first
}
"##,
    );
    fs::remove_dir_all(project.root().join(".git")).expect("what marks the workspace is there");
    git(&project, &["init", "-q"]);
    git(&project, &["add", "spec.kdl"]);
    git(&project, &["commit", "-qm", "a spec"]);
    fs::write(project.root().join("elsewhere.rs"), "").expect("a file can be written");
    let output = run(&project);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert_eq!(sent(&project), ["first → second: Made"]);
    assert!(project.output("first").contains("there is no `elsewhere.rs`"), "{}", project.output("first"));
}

/// The first word of a text that begins so.
fn word<'t>(text: &'t str, beginning: &str) -> &'t str {
    let from = &text[text.find(beginning).unwrap_or_else(|| panic!("{beginning} is not in {text}"))..];
    &from[..from.find(['"', '\n']).unwrap_or(from.len())]
}

/// Seed 002, envelope: the example, sent by a command, but for its ids, those of what it refers to, and its time.
#[test]
fn the_envelope_of_the_seed_arrives_as_it_was_sent() {
    let project = scripted(
        r##"
workflow seed { default main }
context-pack made { goal "Tell"; artifacts kind=diff from=maker; artifacts kind=log from=maker }
pipeline main {
    edges { node-a <-> node-b }
    task maker { run "sh" "-c" "echo made >made.txt; echo done" }
    task node-a {
        depends-on maker
        stdin "<<context:made>>"
        run "sh" "-c" #"""
            cat >pack
            reference() { grep -o "$1[0-9a-f]*" pack | head -1; }
            swarmc agent send-handoff --to node-b --message "Short human-readable summary" \
                --structured '{"key": "value"}' --artifact "$(reference artifact://diff/)" \
                --artifact "$(reference artifact://log/)" --ok tests-pass --response optional --reply-to node-a \
                --priority normal
            """#
    }
    task node-b { stdin "<<inbox>>"; run "cat" }
    result node-b
}
"##,
    );
    let output = run(&project);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let read = project.output("node-b");
    let arrived = read.lines().find(|line| line.starts_with('{')).expect("an envelope is a line");
    let arrived: Value = serde_json::from_str(arrived).expect("an envelope is JSON");
    let [diff, log, pack] =
        ["artifact://diff/", "artifact://log/", "contextpack://pack/"].map(|beginning| word(&read, beginning));
    let expected = ENVELOPE.replace("artifact://diff/123", diff).replace("artifact://log/456", log);
    let mut expected: Value =
        serde_json::from_str(&expected.replace("contextpack://pack/789", pack)).expect("the example is JSON");
    expected["id"] = arrived["id"].clone();
    expected["createdAt"] = arrived["createdAt"].clone();
    assert_eq!(arrived, expected);
}

/// What a node is handed over that says whom it is to answer.
fn asks(edges: &str, reply_to: &str, third: &str) -> Project {
    scripted(&format!(
        r##"
workflow targets {{ default main }}
pipeline main {{
    edges {{ {edges} }}
    task asker {{
        run "sh" "-c" #"""
            swarmc agent send-handoff --to doer --message Well? {reply_to} 2>refused; true
            """#
    }}
    task doer {{ stdin "<<inbox>>"; run "sh" "-c" #"cat >asked; {third}"# }}
    task judge {{ stdin "<<inbox>>"; run "cat" }}
}}
"##
    ))
}

#[test]
fn an_answer_may_go_to_a_third_node_that_an_edge_leads_to() {
    let answer = "swarmc agent send-handoff --to judge --message Done";
    let project = asks("asker -> doer; doer -> judge", "--response required --reply-to judge", answer);
    let output = run(&project);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert_eq!(sent(&project), ["asker → doer: Well?", "doer → judge: Done"]);
    let sent = records(&project, "sent");
    assert_eq!(sent[1]["letter"]["answers"], sent[0]["letter"]["id"]);
    // It is owed like any other.
    let output = run(&asks("asker -> doer; doer -> judge", "--response required --reply-to judge", "true"));
    let said = err(&output);
    assert!(output.status.code() != Some(0) && said.contains("it never answered e"), "{said}");
    assert!(said.contains("from `asker`"), "{said}");
}

#[test]
fn whom_an_answer_cannot_reach_is_nobody_to_reply_to() {
    for (edges, reply_to, why) in [
        ("asker -> doer; asker -> judge", "judge", "`doer` cannot answer to `judge`: no edge leads there"),
        ("asker -> doer; doer -> judge", "asker", "`doer` cannot answer to `asker`: no edge leads there"),
        ("asker -> doer; doer -> judge", "doer", "`doer` cannot answer to `doer`: no edge leads there"),
        ("asker -> doer; doer -> judge", "nobody", "no envelope `nobody` from `doer` waits for your answer"),
        (
            "asker <-> doer; doer -> judge",
            "judge --response none",
            "`reply_to` names `judge` for the answer, but no answer is expected",
        ),
    ] {
        let response = if reply_to.contains(' ') { "" } else { "--response required" };
        let project = asks(edges, &format!("{response} --reply-to {reply_to}"), "true");
        let output = run(&project);
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        let refused = fs::read_to_string(project.root().join("refused")).expect("a file can be read");
        assert!(refused.contains(why), "{reply_to}: {refused}");
    }
}
