//! The same questions, answered from `swarmc top`, from the API of the page and by `swarmc approve`: each is accepted once, and
//! who comes too late reads what was said.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;

use serde_json::{Value, json};

use super::Tmux;
use crate::cli::Place;
use crate::serve::Server;

/// Five gates, and three agents that each want to call a tool. All ask at once.
const ASKING: &str = r##"
policy { tool shell human }
provider recorded {
    script {
        answer #"{"action": "tool_call", "tool": "shell", "tool_params": {"command": "echo takao >> ran.txt"}}"# task=takao turn=1
        answer #"{"action": "tool_call", "tool": "shell", "tool_params": {"command": "echo mitaka >> ran.txt"}}"# task=mitaka turn=1
        answer #"{"action": "tool_call", "tool": "shell", "tool_params": {"command": "echo ogikubo >> ran.txt"}}"# task=ogikubo turn=1
        answer #"{"action": "done", "response": "done"}"#
    }
}
agent coder provider=recorded { tools shell; can run-commands }
swarm team {
    goal "Do it"
    member takao agent=coder "The US"
    member mitaka agent=coder "Japan"
    member ogikubo agent=coder "The EU"
}
pipeline main {
    gate first { message "The first?"; options yes no; on-timeout no after="24h" }
    task after-first { when "output.first.choice == 'yes'"; run echo }
    gate second { message "The second?"; options yes no; on-timeout no after="24h" }
    task after-second { when "output.second.choice == 'yes'"; run echo }
    gate third { message "The third?"; options yes no; on-timeout no after="24h" }
    task after-third { when "output.third.choice == 'yes'"; run echo }
    gate fourth { message "The fourth?"; options yes no; on-timeout no after="24h" }
    task after-fourth { when "output.fourth.choice == 'yes'"; run echo }
    gate fifth { message "The fifth?"; options yes no; on-timeout no after="24h" }
    task after-fifth { when "output.fifth.choice == 'yes'"; run echo }
    task go { swarm team }
    result go
}
"##;

/// Answers by the API of the page: the status, and what it says.
fn answer_by_page(server: &Server, path: &str, body: &Value) -> (u16, String) {
    let address = server.url().replace("http://", "");
    let mut stream = TcpStream::connect(&address).expect("it listens");
    let (body, token) = (body.to_string(), server.token());
    let head = format!(
        "POST /api/v1/runs/last/{path} HTTP/1.0\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).expect("it reads");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("it answers");
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    (status, text)
}

#[derive(Clone, Copy, PartialEq)]
enum Way {
    Top,
    Page,
    Approve,
}

/// What the journal says of answers: by the name of the gate or the number of the request, the choices.
fn list_answers(place: &Place) -> BTreeMap<String, Vec<String>> {
    let mut answers: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in place.swarmc(&["events", "last"]).expect(0, &[], &[]).out.lines() {
        let record: Value = serde_json::from_str(line).expect("it is JSON");
        let (name, choice) = match record["event"].as_str() {
            Some("gate_answered") => (record["step"]["name"].to_string(), record["choice"].to_string()),
            Some("approval_answered") => (record["id"].to_string(), record["choice"].to_string()),
            _ => continue,
        };
        let plain = |text: String| text.trim_matches('"').to_owned();
        answers.entry(plain(name)).or_default().push(plain(choice));
    }
    answers
}

#[test]
fn each_question_is_answered_once_whoever_is_first() {
    let place = Place::new(ASKING);
    let mut command = place.command(&["run", "flow.kdl"]);
    let mut child = command.stderr(std::process::Stdio::null()).spawn().expect("swarmc starts");
    let server = Server::start(&place, &[]);
    let tmux = Tmux::open(
        &place,
        120,
        30,
        "until swarmc approve last 3 2>&1 | grep -q allow; do sleep 0.1; done; exec swarmc top last",
    );
    tmux.wait("? keys");
    tmux.press("!");
    let questions = [
        ("first", "yes", Way::Top),
        ("second", "no", Way::Page),
        ("third", "no", Way::Approve),
        ("1", "allow", Way::Top),
        ("2", "deny", Way::Page),
        ("3", "deny", Way::Approve),
    ];
    // Those between are for the race below.
    let page_path = |word: &str| match word.parse::<u32>() {
        Ok(_) => format!("approvals/{word}"),
        Err(_) => format!("gates/{word}"),
    };
    for (word, choice, winner) in questions {
        let is_gate = word.parse::<u32>().is_err();
        // It stands on the screen.
        let title = if is_gate { format!("{word} (") } else { format!("{word} go: ") };
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while !tmux.screen().contains(&title) {
            tmux.press("Tab");
            thread::sleep(std::time::Duration::from_millis(300));
            assert!(std::time::Instant::now() < deadline, "{word} is never shown: {}", tmux.screen());
        }
        let said = format!("{choice}, by a person");
        match winner {
            Way::Top => {
                tmux.answer("1");
                tmux.wait(&format!("answered: {choice}"));
                tmux.press("!");
            }
            Way::Page => {
                let (status, text) = answer_by_page(&server, &page_path(word), &json!({ "choice": choice }));
                assert_eq!(status, 200, "{text}");
            }
            Way::Approve => _ = place.swarmc(&["approve", "last", word, choice]).expect(0, &[], &[]),
        }
        // The others are too late, and read what was said.
        if winner != Way::Top {
            let screen = tmux.wait("is answered: ");
            assert!(screen.contains(&said), "{word}: {screen}");
        }
        let other = if is_gate { "yes" } else { "allow" };
        if winner != Way::Page {
            let (status, text) = answer_by_page(&server, &page_path(word), &json!({ "choice": other }));
            assert!(status == 409 && text.contains(&format!("already answered: {said}")), "{word}: {text}");
        }
        if winner != Way::Approve {
            let late = place.swarmc(&["approve", "last", word, other]);
            late.expect(2, &[], &[&format!("already answered: {said}")]);
        }
    }
    // All three at once: one of them is accepted.
    for gate in ["fourth", "fifth"] {
        while !tmux.screen().contains(&format!("The {gate}?")) {
            tmux.press("Tab");
            thread::sleep(std::time::Duration::from_millis(300));
        }
        thread::sleep(std::time::Duration::from_millis(700));
        let accepted = thread::scope(|scope| {
            let by_page = scope.spawn(|| answer_by_page(&server, &page_path(gate), &json!({ "choice": "no" })).0);
            let by_approve = scope.spawn(|| place.swarmc(&["approve", "last", gate, "no"]).code);
            tmux.press("1");
            let screen = tmux.wait("answered: ");
            let by_top = screen.contains(" answered: yes") && !screen.contains("already");
            let by_page = by_page.join().expect("it answers");
            let by_approve = by_approve.join().expect("it ends");
            [by_top, by_page == 200, by_approve == Some(0)]
        });
        assert_eq!(accepted.iter().filter(|accepted| **accepted).count(), 1, "{gate}: {accepted:?}");
        let answers = &list_answers(&place)[gate];
        assert_eq!(*answers, [if accepted[0] { "yes" } else { "no" }], "{gate}");
        if accepted[0] {
            tmux.press("!");
        }
    }
    assert!(child.wait().expect("it ends").success());
    let answers = list_answers(&place);
    assert_eq!(answers.len(), 8, "{answers:?}");
    for (word, choice, _) in questions {
        assert_eq!(answers[word], [choice], "{word}");
    }
    let ran = std::fs::read_to_string(place.work().join("ran.txt")).expect("the tool of one agent ran");
    assert_eq!(ran.lines().count(), 1, "{ran}");
}
