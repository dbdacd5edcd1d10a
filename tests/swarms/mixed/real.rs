//! A swarm of a real command-line agent, a real agent over the Agent Client Protocol, a model and a script.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use swarmc_endpoint::{Answer, Protocol, Request, Script};

use super::super::members::asks;
use crate::agents::{Place, programs};

const SPEC: &str = r##"
workflow w
provider cli preset=opencode
provider client preset=opencode-acp
provider model { llm openai base-url="URL/v1" model=scripted; provides tools }
provider recorded {
    script {
        answer task=sam turn=1 #"{"action":"send_message","to":"bob","message_type":"info","payload":{"message":"hello from sam"}}"#
        answer task=sam #"{"action":"done","response":"sam is done"}"#
    }
}
agent coder provider=cli model="scripted/scripted"
agent talker provider=client model="scripted/scripted"
agent thinker provider=model
agent script provider=recorded
swarm mixed {
    goal "Say hello"
    member bob agent=coder "Wait for sam"
    member ann agent=talker "Wait for bob"
    member kim agent=thinker "Wait for ann"
    member sam agent=script "Write to bob"
    // Programs are slow, and who has nothing to do looks again and again.
    limits { timeout "4m"; iterations 60 }
    convergence { no-progress 50 }
}
pipeline p { task greet { swarm mixed; timeout "8m" }; result greet }
"##;

const FIRST: &str = r#"
workflow first
provider cli preset=opencode
agent coder provider=cli model="scripted/scripted"
pipeline p { task greet agent=coder { prompt "Hello" } }
"#;

const RESULT: &str = "## bob\nbob heard sam\n\n## ann\nann heard bob\n\n## kim\nkim heard ann\n\n## sam\nsam is done\n";

/// What a member says, by what its prompt holds; none for what is no turn of a member.
fn decided(request: &Request) -> Option<Value> {
    let (name, _) = asks(request)?;
    let prompt = request.user.last()?;
    let (hears, writes) = match name.as_str() {
        "bob" => ("sam", Some("ann")),
        "ann" => ("bob", Some("kim")),
        _ => ("ann", None),
    };
    let has_heard = prompt.contains(&format!("hello from {hears}"));
    Some(match writes {
        Some(to) if has_heard && !prompt.contains("19 of 20 messages") => {
            let payload = json!({ "message": format!("hello from {name}") });
            json!({ "action": "send_message", "to": to, "message_type": "info", "payload": payload })
        }
        Some(_) if !prompt.contains("19 of 20 messages") => json!({ "action": "idle" }),
        None if !has_heard => json!({ "action": "idle" }),
        _ => json!({ "action": "done", "response": format!("{name} heard {hears}") }),
    })
}

fn events(place: &Place, what: &str) -> Vec<Value> {
    let runs = fs::read_dir(place.home().join("runs")).into_iter().flatten();
    let Some(run) = runs.filter_map(|run| Some(run.ok()?.path())).max() else { return Vec::new() };
    let bytes = fs::read(run.join("journal.jsonl")).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let records = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    records.filter(|record| record["event"] == what).collect()
}

#[test]
fn real_agents_of_every_kind_are_a_swarm_that_is_killed_resumed_recorded_and_replayed() {
    let script = Script::new().decide(|request| Some(Answer::text(decided(request)?.to_string())));
    let place = Place::new(programs(), script.otherwise(Answer::text("A title.")));
    let spec = SPEC.replace("URL", &place.endpoint.url());
    fs::write(place.work().join("w.kdl"), spec).expect("a file can be written");
    // opencode makes its database when it first starts, and two of them that start at once fail at that.
    fs::write(place.work().join("first.kdl"), FIRST).expect("a file can be written");
    assert_eq!(place.swarmc(&["run", "first.kdl"]).status.code(), Some(0), "opencode starts");
    let mut runner = place.command(&["run", "w.kdl", "--record", "tape"]).spawn().expect("swarmc starts");
    // Somewhere in the turns of real programs.
    let began = Instant::now();
    while events(&place, "message_sent").is_empty() {
        assert!(began.elapsed() < Duration::from_secs(120), "sam wrote nothing");
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(700));
    runner.kill().expect("a child can be killed");
    runner.wait().expect("a child can be waited for");
    let resumed = place.swarmc(&["resume", "last"]);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&resumed.stdout), text(&resumed.stderr));
    assert_eq!((resumed.status.code(), out.as_str()), (Some(0), RESULT), "{err}");
    let sent = events(&place, "message_sent");
    let pairs: Vec<(&str, &str)> =
        sent.iter().map(|event| (event["from"].as_str().unwrap_or("?"), event["to"].as_str().unwrap_or("?"))).collect();
    assert_eq!(pairs, [("sam", "bob"), ("bob", "ann"), ("ann", "kim")]);
    let sessions = events(&place, "turn_ended");
    let talks: Vec<&Value> = sessions.iter().filter(|event| event["session"].is_string()).collect();
    for name in ["bob", "ann"] {
        assert!(talks.iter().any(|event| event["agent"] == name), "{name} keeps a conversation: {sessions:?}");
    }
    let asked = place.endpoint.prompts().len();
    let chats = place.endpoint.prompts().iter().filter(|request| request.protocol == Some(Protocol::Chat)).count();
    assert!(chats > 0, "the endpoint was asked");
    let replayed = place.swarmc(&["run", "w.kdl", "--replay", "tape"]);
    assert_eq!(text(&replayed.stdout), RESULT, "{}", text(&replayed.stderr));
    assert_eq!(place.endpoint.prompts().len(), asked, "a replay asks no model");
}
