//! Agents that want more than they may have, and budgets across a kill.

use super::*;
use crate::swarms::members::events;

#[test]
fn nobody_gets_more_than_the_limits_say_however_much_is_asked_for() {
    let endpoint = answering(|name, asked| {
        let names = ["one", "two"];
        let to = names[asked / 5 % 2];
        match asked % 5 {
            0 => says(
                &json!({ "action": "request_help", "help_description": format!("help {name} {asked}"), "help_skills": ["file_list", "shell", "*"] }),
            ),
            1 | 2 => says(
                &json!({ "action": "send_message", "to": to, "message_type": "request", "payload": { "message": "more" } }),
            ),
            3 => calls("file_list", &json!({})),
            _ => says(&json!({ "action": "publish_data", "topic": format!("t{asked}"), "data": "more" })),
        }
    });
    let rules = "limits { agents 5; iterations 12; messages 3 }; convergence { no-progress 99 }; spawn per-agent=2";
    let members = members(["one", "two"]);
    let team = Team { kind: "openai tools=schema", agent: "tools file_list", members, rules, more: String::new() };
    let ended = run(&team.place(&endpoint)).expect(0, &["merged"], &[]);
    let events = events(&ended);
    let of = |kind: &str, field: &str| {
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for event in events.iter().filter(|event| event["type"] == kind) {
            *counts.entry(event[field].as_str().unwrap_or_default().to_owned()).or_default() += 1;
        }
        counts
    };
    let spawned = of("agent_spawned", "agent_id");
    assert!(spawned.len() == 5 && spawned.values().all(|&count| count == 1), "{spawned:?}");
    let mut by = of("agent_spawned", "by");
    by.remove("");
    assert!(by.values().sum::<u64>() == 3 && by.values().all(|&count| count <= 2), "{by:?}");
    let mut sent = of("message_sent", "from");
    assert_eq!(sent.remove("swarm-supervisor"), Some(3), "a word for each helper");
    assert!(sent.len() == 5 && sent.values().all(|&count| count <= 3), "{sent:?}");
    let turns = of("turn_started", "agent_id");
    assert!(spawned.keys().all(|name| turns[name] == 12), "{turns:?}");
    let ends: Vec<&str> = events.iter().filter_map(|event| event["how"].as_str()).collect();
    assert_eq!(ends, ["exhausted"; 5]);
    assert_eq!(endpoint.prompts().len(), 5 * 12 + 1);
    // A helper has what it was asked for, as far as who asks has it.
    for fault in events.iter().filter(|event| event["type"] == "tool_ended") {
        assert!(fault["fault"].is_null(), "{fault}");
    }
    assert!(of("refused", "agent_id").len() == 5, "everybody wanted more");
}

#[test]
fn a_turn_that_a_kill_cuts_off_reserves_once() {
    let endpoint = answering(|name, asked| if asked < 3 { Answer::hang() } else { done(name) });
    let members = members(["one"]);
    let more = "budget tokens=9000 { allow SW404 reason=\"one turn at a time\" }".to_owned();
    let team = Team { kind: "openai tools=schema", agent: "max-output 50", members, rules: "", more };
    let place = team.place(&endpoint);
    for kill in 0..3 {
        let arguments: &[&str] = if kill == 0 { &["run", "flow.kdl"] } else { &["resume", "last"] };
        let mut command = place.command(arguments);
        let mut child = command.env("SECRET_TOKEN", KEY).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let child = child.as_mut().expect("swarmc starts");
        assert!(endpoint.wait_for(kill + 1, Duration::from_secs(60)), "it asks");
        child.kill().expect("a child can be killed");
        child.wait().expect("a child can be waited for");
    }
    let ended = place.command(&["resume", "last"]).env("SECRET_TOKEN", KEY).output().expect("swarmc starts");
    Ended::from(ended).expect(0, &["one is done"], &[]);
    assert_eq!(endpoint.prompts().len(), 4);
}
