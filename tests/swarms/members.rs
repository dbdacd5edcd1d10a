//! Swarms whose agents are models behind HTTP, against the scripted endpoint, through the binary.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use swarmc_endpoint::{Answer, Endpoint, Request, Script, Usage};

use crate::cli::{Ended, Place};

/// A swarm of these members, whose models are the endpoint; `kind` and what stands behind it.
fn team(endpoint: &Endpoint, kind: &str, agent: &str, members: &[&str]) -> Place {
    let url = endpoint.url();
    let members: String = members.iter().map(|name| format!("    member {name} \"Light lamp {name}\"\n")).collect();
    Place::new(&format!(
        "workflow w {{ default team }}\nsecret key env=SECRET_TOKEN\n\
         provider p {{ llm {kind} base-url=\"{url}\" model=scripted; auth key; provides tools schema }}\n\
         agent a provider=p {{ {agent} }}\n\
         swarm team {{\n    goal \"Light the lamps\"\n{members}    limits {{ iterations 4; messages 2 }}\n    \
         retry {{ transient \"20ms\" max=\"50ms\" }}\n    synthesize agent=a\n}}\n"
    ))
}

pub(super) fn run(place: &Place, arguments: &[&str]) -> Ended {
    let output = place.command(arguments).env("SECRET_TOKEN", "sk-very-secret-4711").output();
    Ended::from(output.expect("swarmc starts"))
}

/// The agent that asks, and the iterations that it had before; none where a request merges results.
pub(crate) fn asks(request: &Request) -> Option<(String, u32)> {
    let prompt = request.user.last()?;
    let name = prompt.split_once("- **")?.1.split_once(" (you)**")?.0;
    let iteration = prompt.rsplit_once("## Budget: Iteration ")?.1.split(' ').next()?;
    Some((name.to_owned(), iteration.parse::<u32>().ok()? - 1))
}

/// The events of a run, with who did each.
pub(crate) fn events(ended: &Ended) -> Vec<Value> {
    let lines = ended.out.lines().map(|line| serde_json::from_str::<Value>(line).expect("each line is JSON"));
    lines.inspect(|event| assert_eq!(event["version"], 1, "{event}")).collect()
}

/// How each agent ended.
pub(crate) fn ends(events: &[Value]) -> BTreeMap<&str, &str> {
    let ended = events.iter().filter(|event| event["type"] == "agent_completed");
    ended.filter_map(|event| Some((event["agent_id"].as_str()?, event["how"].as_str()?))).collect()
}

pub(super) fn text(action: &Value) -> Answer {
    Answer::text(action.to_string())
}

/// What the two members of the first tests decide, as an action and as a call.
fn decided(request: &Request) -> (&'static str, Value) {
    match asks(request).as_ref().map(|(name, iteration)| (name.as_str(), *iteration)) {
        Some(("one", 0)) => ("file_write", json!({ "path": "one-report.md", "content": "The first lamp is lit." })),
        Some(("one", 1)) => {
            ("send_message", json!({ "to": "two", "message_type": "info", "payload": { "message": "Lit." } }))
        }
        Some(("two", 0)) => ("publish_data", json!({ "topic": "lamps", "data": "The second lamp is lit." })),
        Some(("two", 1)) => ("idle", json!({})),
        Some((name, _)) => ("done", json!({ "response": format!("lamp {name} is lit") })),
        None => ("", json!("All lamps are lit.")),
    }
}

const WRITES: &str = "tools file_read file_write; can write-files";

#[test]
fn agents_act_by_native_calls_of_every_protocol() {
    for kind in ["openai", "openai-responses", "anthropic", "gemini"] {
        let answer = |request: &Request| match decided(request) {
            ("", text) => Answer::text(text.as_str().unwrap_or_default()),
            (name, arguments) => Answer::call(name, arguments),
        };
        let endpoint = Endpoint::start(Script::new().decide(move |request| Some(answer(request))));
        let place = team(&endpoint, kind, WRITES, &["one", "two"]);
        let ended = run(&place, &["run", "flow.kdl", "--events"]).expect(0, &[], &[]);
        let events = events(&ended);
        assert_eq!(ends(&events), BTreeMap::from([("one", "done"), ("two", "done")]), "{kind}: {ended:#?}");
        assert_eq!(events.last().expect("there are some")["values"], json!(["All lamps are lit."]), "{kind}");
        let report = std::fs::read_to_string(place.work().join("one-report.md")).expect("the agent wrote it");
        assert_eq!(report, "The first lamp is lit.", "{kind}");
        let requests = endpoint.prompts();
        let acting: Vec<&Request> = requests.iter().filter(|request| asks(request).is_some()).collect();
        for tool in ["file_read", "file_write", "publish_data", "send_message", "request_help", "done"] {
            assert!(acting[0].tools.iter().any(|offered| offered == tool), "{kind}: {tool} in {:?}", acting[0].tools);
        }
        let body = acting[0].body.to_string();
        assert!(body.contains("2048") && body.contains("0.3"), "{kind}: {body}");
    }
}

#[test]
fn agents_act_in_answers_that_a_schema_holds() {
    for kind in ["openai", "openai-responses", "anthropic"] {
        let answer = |request: &Request| match decided(request) {
            ("", text) => Answer::text(text.as_str().unwrap_or_default()),
            ("file_write", arguments) => {
                text(&json!({ "action": "tool_call", "tool": "file_write", "tool_params": arguments }))
            }
            (name, mut arguments) => {
                arguments["action"] = json!(name);
                text(&arguments)
            }
        };
        let endpoint = Endpoint::start(Script::new().decide(move |request| Some(answer(request))));
        let place = team(&endpoint, &format!("{kind} tools=schema"), WRITES, &["one", "two"]);
        let ended = run(&place, &["run", "flow.kdl", "--events"]).expect(0, &[], &[]);
        assert_eq!(ends(&events(&ended)), BTreeMap::from([("one", "done"), ("two", "done")]), "{kind}: {ended:#?}");
        assert!(place.work().join("one-report.md").exists(), "{kind}");
        let requests = endpoint.prompts();
        let acting = requests.iter().find(|request| asks(request).is_some()).expect("agents asked");
        assert!(acting.tools.is_empty(), "{kind}: {:?}", acting.tools);
        assert!(acting.body.to_string().contains("publish_data"), "{kind}: its answers are held to a schema");
    }
}

/// What each of the members of a troubled swarm is answered, by the attempt: how often it has asked, from 0.
fn trouble(name: &str, asked: usize) -> Answer {
    let done = || text(&json!({ "action": "done", "response": format!("{name} is done") }));
    let write = |to: &str| {
        text(&json!({ "action": "send_message", "to": to, "message_type": "info", "payload": { "message": "hi" } }))
    };
    match (name, asked) {
        ("busy", 0) => Answer::status(429, "too many").header("retry-after", "1"),
        ("broken", 0) => text(&json!({ "action": "done", "response": "half of it" })).cut(),
        ("down", 0) => Answer::status(503, "unavailable"),
        ("barred", _) => Answer::status(401, "who are you"),
        ("prose", 0) => Answer::text("I would look at the lamp first."),
        ("stubborn", 0 | 1) => Answer::text("I would look at the lamp first."),
        ("stranger", 0) => write("nobody"),
        ("selfish", 0) => write("selfish"),
        ("endless", 0) => Answer::text("x".repeat(1 << 20)),
        _ => done(),
    }
}

#[test]
fn what_goes_wrong_with_one_agent_leaves_the_others_alone() {
    let names = ["busy", "broken", "down", "barred", "prose", "stubborn", "stranger", "selfish", "endless"];
    let asked: std::sync::Mutex<BTreeMap<String, usize>> = std::sync::Mutex::default();
    let script = Script::new().decide(move |request| {
        let Some((name, _)) = asks(request) else { return Some(Answer::text("merged")) };
        let mut asked = asked.lock().expect("nobody panics with it");
        let count = asked.entry(name.clone()).or_default();
        *count += 1;
        Some(trouble(&name, *count - 1))
    });
    let endpoint = Endpoint::start(script);
    let place = team(&endpoint, "openai tools=schema", "", &names);
    let started = Instant::now();
    let ended = run(&place, &["run", "flow.kdl", "--events"]).expect(0, &[], &[]);
    assert!(started.elapsed() >= Duration::from_secs(1), "the endpoint said when to come again");
    let events = events(&ended);
    let mut expected: BTreeMap<&str, &str> = names.iter().map(|&name| (name, "done")).collect();
    expected.insert("barred", "unreachable");
    assert_eq!(ends(&events), expected);
    let requests = endpoint.prompts();
    let prompts = |name: &str| -> Vec<&str> {
        let of = requests.iter().filter(|request| asks(request).is_some_and(|(asks, _)| asks == name));
        of.filter_map(|request| request.user.last()).map(String::as_str).collect()
    };
    // Asked once more with the same prompt; who may not ask, asks once.
    for (name, times) in [("busy", 2), ("broken", 2), ("down", 2), ("barred", 1)] {
        let prompts = prompts(name);
        assert_eq!(prompts.len(), times, "{name}: {prompts:#?}");
        assert!(prompts.iter().all(|prompt| prompt.contains("Iteration 1 of 4")), "{name}");
    }
    // What is wrong with an answer is told in one further turn of the same iteration.
    assert!(prompts("prose")[1].contains("Your last answer was not a valid action"), "{:#?}", prompts("prose"));
    assert!(prompts("prose")[1].contains("Iteration 1 of 4"));
    assert!(prompts("endless")[1].contains("it is longer than 256 KiB"), "{:#?}", prompts("endless"));
    assert_eq!(prompts("stubborn").len(), 3);
    assert!(prompts("stubborn")[2].contains("- Iteration 1: invalid answer"), "{:#?}", prompts("stubborn"));
    // What is not possible is told in the history.
    assert!(prompts("stranger")[1].contains("not sent: there is no agent `nobody` in your team"));
    assert!(prompts("selfish")[1].contains("not sent: you are the receiver yourself"));
    let refused: Vec<&str> =
        events.iter().filter(|it| it["type"] == "refused").filter_map(|it| it["agent_id"].as_str()).collect();
    assert_eq!(refused.len(), 2, "{refused:?}");
    // Whoever merges is told how each ended, and why.
    let merged = requests.iter().find(|request| asks(request).is_none()).expect("somebody merged");
    assert!(merged.user[0].contains("unreachable") && merged.user[0].contains("401"), "{}", merged.user[0]);
}

#[test]
fn tokens_and_cost_of_agents_are_counted() {
    let usage = Usage { input: 1000, output: 100, ..Usage::default() };
    let script = Script::new().decide(move |request| {
        let done = text(&json!({ "action": "done", "response": "lit" }));
        Some(if asks(request).is_some() { done } else { Answer::text("all lit") }.usage(usage))
    });
    let endpoint = Endpoint::start(script);
    let place = team(&endpoint, "openai", "", &["one", "two"]);
    let spec = std::fs::read_to_string(place.work().join("flow.kdl")).expect("there is a spec");
    place.write("flow.kdl", &spec.replace("auth key;", "auth key; price input=\"$2\" output=\"$4\";"));
    let told = ["one done after 1 iteration, 1,100 tokens, $0.0024", "2 agents, 3 turns, 3,300 tokens, $0.0072"];
    run(&place, &["run", "flow.kdl"]).expect(0, &["all lit\n"], &told);
    let run: Value = serde_json::from_str(&place.swarmc(&["inspect", "--json"]).out).expect("inspect writes JSON");
    assert_eq!((&run["steps"][0]["usage"]["input"], &run["steps"][0]["usage"]["cost"]), (&json!(3000), &json!(0.0072)));
    let shown = place.swarmc(&["inspect", "last", "team", "one", "--json"]);
    let one: Value = serde_json::from_str(&shown.out).expect("inspect writes JSON");
    assert_eq!((&one["usage"]["output"], &one["usage"]["cost"]), (&json!(100), &json!(0.0024)), "{one}");
    assert_eq!(
        (&one["turns"][0]["cost_micro_usd"], &one["turns"][0]["model"]),
        (&json!(2400), &json!("scripted")),
        "{one}"
    );
}

#[test]
fn a_swarm_without_a_result_fails_and_says_why() {
    let endpoint = Endpoint::start(Script::new().otherwise(Answer::status(401, "who are you")));
    let place = team(&endpoint, "anthropic", "", &["one", "two"]);
    let said = ["no agent came to a result", "401", "one unreachable after 1 iteration"];
    run(&place, &["run", "flow.kdl"]).expect(3, &[], &said);
    assert_eq!(endpoint.prompts().len(), 2);
}

#[test]
fn a_key_that_is_missing_is_told_before_anything_starts() {
    let endpoint = Endpoint::start(Script::new().otherwise(Answer::text("x")));
    let place = team(&endpoint, "openai", "", &["one"]);
    let said = "the variable SECRET_TOKEN, which holds secret `key`, is empty or not set";
    place.swarmc(&["run", "flow.kdl"]).expect(2, &[], &[said]);
    assert_eq!(endpoint.requests().len(), 0);
}

#[test]
fn a_real_tool_server_serves_an_agent_of_a_swarm() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/install-tools");
    let output = Command::new(script).stderr(Stdio::inherit()).output().expect("tests/install-tools can be started");
    assert!(output.status.success(), "tests/install-tools failed: it says why above");
    let server = Path::new(String::from_utf8_lossy(&output.stdout).trim_end()).join("bin/mcp-server-everything");
    let script = Script::new().decide(|request| {
        Some(match asks(request)? {
            (_, 0) => text(&json!({
                "action": "tool_call", "tool": "everything.echo", "tool_params": { "message": "is the lamp lit?" },
            })),
            _ => text(&json!({ "action": "done", "response": "it echoes" })),
        })
    });
    let endpoint = Endpoint::start(script);
    let place = team(&endpoint, "openai tools=schema", "tools everything.echo; can network", &["one"]);
    let spec = std::fs::read_to_string(place.work().join("flow.kdl")).expect("there is a spec");
    place.write("flow.kdl", &format!("{spec}tool-server everything {{ exec \"{}\" \"stdio\" }}\n", server.display()));
    run(&place, &["run", "flow.kdl"]).expect(0, &["it echoes\n"], &["one done after 2 iterations"]);
    let requests = endpoint.prompts();
    assert_eq!(requests.len(), 2, "one result is returned as it is");
    let last = requests[1].user.last().expect("a prompt");
    assert!(last.contains("- Iteration 1: tool_call:everything.echo → <data>Echo: is the lamp lit?</data>"), "{last}");
}
