//! `--record` and `--replay` of swarms whose agents are models, against the scripted endpoint: a replay asks nobody,
//! and comes to the same.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{BuildHasher as _, RandomState};
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use swarmc_endpoint::{Answer, Endpoint, Request, Script, Usage};

use super::members::{asks, run, text};
use crate::approvals::{await_request, spec};
use crate::cli::{Place, signal};
use crate::record::are_alike;
use crate::specs::texts;

/// Two members that call, one that answers with JSON, a lead that splits and merges, and a tool server.
fn team(endpoint: &Endpoint) -> Place {
    let url = endpoint.url();
    let place = Place::new(&format!(
        r#"
        workflow w
        secret key env=SECRET_TOKEN
        provider p {{ llm openai base-url="{url}" model=scripted; auth key; provides tools schema; price input="$2" output="$4" }}
        provider q {{ llm anthropic tools=schema base-url="{url}" model=scripted; auth key; provides schema }}
        tool-server s {{ exec python3 "server.py" plain "marks"; env key }}
        agent caller provider=p {{ system "You light lamps in <<run:dir>>."; tools s file_write; can write-files network }}
        agent talker provider=q
        swarm team {{
            goal "Light the lamps"
            supervisor lead agent=talker
            member one agent=caller
            member two agent=talker "Light lamp two"
            member three agent=caller "Light lamp three"
            decompose
            limits {{ iterations 8 }}
            retry {{ transient "20ms" max="40ms" }}
            synthesize agent=talker
        }}
        pipeline p {{ task lamps {{ swarm team; timeout "5m" }}; result lamps }}
        "#
    ));
    let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("runtime/src/io/tools/tests/hostile.py");
    place.write("server.py", &fs::read_to_string(server).expect("there is a server"));
    place
}

/// What each of them decides, as the name of an action or tool and its parameters.
fn decided(name: &str, iteration: u32, prompt: &str) -> (&'static str, Value) {
    let message = |to: &str, text: &str| {
        ("send_message", json!({ "to": to, "message_type": "info", "payload": { "message": text } }))
    };
    match (name, iteration) {
        ("one", 0) => ("s.echo", json!({ "text": "the key is sk-very-secret-4711" })),
        ("one", 1) => ("file_write", json!({ "path": "one-report.md", "content": "Lamp one is lit." })),
        ("one", 2) => message("two", "Is yours lit?"),
        ("one", 3) => ("request_help", json!({ "help_description": "Hold the ladder", "help_skills": ["s.echo"] })),
        ("two", 0 | 1) => ("publish_data", json!({ "topic": "lamps", "data": format!("two is lit, {iteration}") })),
        ("two", 2) => ("idle", json!({})),
        ("three", 0) => ("s.fail", json!({})),
        ("three", 1) => ("publish_data", json!({ "topic": "lamps", "data": "three is lit" })),
        ("three", 2) => message("one", "Mine is lit."),
        // What they know when they are done shows who was quicker.
        (name, _) => ("done", json!({ "response": format!("{name} saw {} bytes", prompt.len() / 10 * 10) })),
    }
}

/// The lead, the members, and a service that fails now and then; everybody takes another time in each run.
fn script() -> Script {
    let asked: Mutex<BTreeMap<(String, u32), u32>> = Mutex::default();
    Script::new().decide(move |request| {
        let usage = Usage { input: 1000, output: 100, ..Usage::default() };
        let pause = Duration::from_millis(RandomState::new().hash_one(0) % 30);
        let prompt = request.user.last().map_or("", String::as_str);
        let answer = match asks(request) {
            None if request.user.iter().any(|prompt| prompt.contains("subtasks")) => {
                text(&json!({ "subtasks": [{ "name": "one", "task": "Light lamp one" }] }))
            }
            None => Answer::text("All lamps are lit."),
            Some((name, iteration)) => {
                let mut asked = asked.lock().expect("nobody panics with it");
                let times = asked.entry((name.clone(), iteration)).or_default();
                *times += 1;
                match (name.as_str(), iteration, *times) {
                    ("two", 1, 1) | ("three", 2, 1) => return Some(Answer::status(503, "unavailable")),
                    ("two", 0, 1) => return Some(Answer::text("I would look at it first.").after(pause)),
                    _ => acts(request, decided(&name, iteration, prompt)),
                }
            }
        };
        Some(answer.usage(usage).after(pause))
    })
}

/// The same as a call, or as JSON where the request offers no tools.
fn acts(request: &Request, (name, arguments): (&str, Value)) -> Answer {
    match request.tools.is_empty() {
        false => Answer::call(name, arguments),
        true => {
            let mut action = arguments;
            action["action"] = json!(name);
            text(&action)
        }
    }
}

#[test]
fn a_swarm_of_models_replays_without_models_tools_and_keys() {
    for round in 0..4 {
        let endpoint = Endpoint::start(script());
        let place = team(&endpoint);
        let recorded = run(&place, &["run", "flow.kdl", "--record", "r"]).expect(0, &["All lamps are lit.\n"], &[]);
        assert!(recorded.err.contains("answers in `"), "{recorded:#?}");
        let asked = endpoint.requests().len();
        let marks = fs::read_to_string(place.work().join("marks")).expect("the server ran");
        fs::remove_file(place.work().join("server.py")).expect("it is there");
        fs::remove_file(place.work().join("one-report.md")).expect("the agent wrote it");
        for _ in 0..2 {
            let replayed = place.swarmc(&["run", "flow.kdl", "--replay", "r"]);
            replayed.expect(0, &["All lamps are lit.\n"], &["note: replayed ", ", and everything is as recorded"]);
            are_alike(&place.home());
        }
        assert_eq!(endpoint.requests().len(), asked, "{round}: nobody was asked again");
        assert_eq!(fs::read_to_string(place.work().join("marks")).expect("it is there"), marks, "nor called");
        assert!(!place.work().join("one-report.md").exists(), "nor written");
        let recording = texts(&place.work().join("r")).into_values().collect::<String>();
        assert!(!recording.contains("sk-very-secret"), "{recording}");
        assert!(recording.contains("the key is [key]"), "{recording}");
        assert!(!recording.contains(&*place.work().to_string_lossy()), "no path of this machine: {recording}");
    }
}

/// Replays the recording with its lines changed.
fn edited(place: &Place, change: impl Fn(&mut Value) -> bool) -> crate::cli::Ended {
    let path = place.work().join("r/recording.jsonl");
    let whole = fs::read_to_string(&path).expect("a recording");
    let lines = whole.lines().map(|line| serde_json::from_str::<Value>(line).expect("a line is JSON"));
    let kept = lines.filter_map(|mut line| change(&mut line).then(|| format!("{line}\n")));
    let text = kept.collect::<String>();
    assert_ne!(text.lines().collect::<Vec<_>>(), whole.lines().collect::<Vec<_>>(), "something is changed");
    fs::write(&path, text).expect("it can be written");
    let ended = place.swarmc(&["run", "flow.kdl", "--replay", "r", "-q"]);
    fs::write(&path, whole).expect("it can be written");
    ended
}

#[test]
fn what_somebody_edits_counts_and_what_differs_or_is_missing_is_told() {
    let endpoint = Endpoint::start(script());
    let place = team(&endpoint);
    run(&place, &["run", "flow.kdl", "--record", "r", "-q"]).expect(0, &[], &[]);
    let asked = endpoint.requests().len();
    // What the merger says comes to the end.
    let glow = edited(&place, |line| {
        let text = line.to_string().replace("All lamps are lit.", "All lamps glow.");
        *line = serde_json::from_str(&text).expect("it is JSON");
        true
    });
    assert_eq!(glow.expect(0, &[], &[]).out, "All lamps glow.\n");
    let is_of = |line: &Value, kind: &str, turn: u32| {
        let exchange = &line["exchange"]["json"];
        exchange["kind"] == kind && exchange["member"] == "one" && exchange["turn"] == turn && exchange["try"].is_null()
    };
    let missing =
        ["error: turn 2 of `one` in `lamps` is not in the recording\n", "help: record again with `swarmc run"];
    edited(&place, |line| !is_of(line, "member", 2)).expect(3, &[], &missing);
    let missing = ["error: the call of `s.echo` in turn 1 of `one` in `lamps` is not in the recording\n"];
    edited(&place, |line| !is_of(line, "call", 1)).expect(3, &[], &missing);
    let missing = ["error: the list of the tools of `one` in `lamps` is not in the recording\n"];
    edited(&place, |line| !is_of(line, "tools", 1)).expect(3, &[], &missing);
    let unanswered = edited(&place, |line| {
        if is_of(line, "member", 3) {
            line["exchange"]["json"].as_object_mut().expect("an object").remove("answer");
        }
        true
    });
    // Where the others were done before that answer came, nothing else is different; else they are first to know less.
    let said = "turn 3 of `one` in `lamps` has no answer in the recording, but waits for one now";
    let unanswered = unanswered.expect(3, &[], &[]);
    let is_told = unanswered.err.contains(said) || unanswered.err.contains("the prompt differs from the recording");
    assert!(is_told, "{unanswered:#?}");
    let other = edited(&place, |line| {
        if is_of(line, "member", 1) {
            line["exchange"]["json"]["answer"]["calls"][0]["arguments"] = json!("{\"text\": \"no key\"}");
        }
        true
    });
    let said = ["the call of `s.echo` in turn 1 of `one` in `lamps`: its argument list differs from the recording"];
    other.expect(3, &["-{\"text\":\"the key is [key]\"}", "+{\"text\":\"no key\"}"], &said);
    // Whatever the spec says otherwise is shown, and nothing else.
    let spec = fs::read_to_string(place.work().join("flow.kdl")).expect("there is a spec");
    place.write("flow.kdl", &spec.replace("You light lamps", "You hold lamps"));
    let told = ["` in `lamps`: the system text differs from the recording\n", "help: undo the change, or record again"];
    let differs = place.swarmc(&["run", "flow.kdl", "--replay", "r", "-q"]);
    let differs = differs.expect(3, &["-You light lamps in ⟦run⟧.", "+You hold lamps in ⟦run⟧."], &told);
    let changed = differs.out.lines().filter(|line| line.starts_with(['-', '+']) && !line.starts_with("--- ")).count();
    assert_eq!(changed, 3, "{differs:#?}");
    place.write("flow.kdl", &spec.replace("Light lamp two", "Light lamp 2"));
    let told = ["error: the decomposition of `lamps`: the prompt differs from the recording\n"];
    place.swarmc(&["run", "flow.kdl", "--replay", "r", "-q"]).expect(3, &[], &told);
    assert_eq!(endpoint.requests().len(), asked, "nobody was asked again");
}

/// Two members without tools, of whom one never answers.
fn hangs(endpoint: &Endpoint, limits: &str, pipeline: &str) -> Place {
    let url = endpoint.url();
    Place::new(&format!(
        "workflow w\nprovider p {{ llm openai tools=schema base-url=\"{url}\" model=scripted }}\nagent a provider=p\n\
         swarm team {{\n    goal \"Light the lamps\"\n    member one \"Light one\"\n    member two \"Light two\"\n    {limits}\n}}\n\
         pipeline p {{\n{pipeline}\n}}\n"
    ))
}

fn silent() -> Script {
    Script::new().decide(|request| {
        let done = text(&json!({ "action": "done", "response": "lit" }));
        Some(if asks(request).is_some_and(|(name, _)| name == "one") { Answer::hang() } else { done })
    })
}

#[test]
fn whose_time_was_over_has_no_more_of_it_in_a_replay() {
    for (limits, pipeline, code, said) in [
        ("limits { timeout \"4s\" }", "task lamps { swarm team }\nresult lamps", 0, "one timed_out"),
        ("", "task lamps { swarm team; timeout \"4s\" }\nresult lamps", 3, "4s"),
        (
            "",
            "task lamps { swarm team }\ntask wait { run \"until test -e go; do sleep 0.01; done\" }\n\
             stop bad status=failure { depends-on wait; message \"enough\" }",
            3,
            "`bad` ended it as failed: enough",
        ),
    ] {
        let endpoint = Endpoint::start(silent());
        let place = hangs(&endpoint, limits, pipeline);
        let (mut child, rest) = place.until(&["run", "flow.kdl", "--record", "r"], "two done");
        place.write("go", "");
        assert_eq!(child.wait().expect("it ends").code(), Some(code), "{pipeline}");
        let recorded = rest();
        assert!(recorded.contains("recorded "), "{recorded}");
        drop(endpoint);
        let started = Instant::now();
        let replayed =
            place.swarmc(&["run", "flow.kdl", "--replay", "r"]).expect(code, &[], &["everything is as recorded"]);
        assert!(started.elapsed() < Duration::from_secs(4), "it waits: {:?}", started.elapsed());
        assert!(recorded.replace('_', " ").contains(&said.replace('_', " ")), "{recorded}");
        assert!(replayed.err.replace('_', " ").contains(&said.replace('_', " ")), "{replayed:#?}");
        are_alike(&place.home());
    }
    // Without what ended it, it waits for ever.
    let endpoint = Endpoint::start(silent());
    let stop = "task lamps { swarm team }\ntask wait { run \"until test -e go; do sleep 0.01; done\" }\n\
                stop bad status=failure { depends-on wait }";
    let place = hangs(&endpoint, "", stop);
    let (mut child, _) = place.until(&["run", "flow.kdl", "--record", "r"], "two done");
    place.write("go", "");
    assert_eq!(child.wait().expect("it ends").code(), Some(3));
    let spec = fs::read_to_string(place.work().join("flow.kdl")).expect("there is a spec");
    place.write("flow.kdl", &spec.replace("stop bad status=failure { depends-on wait }", ""));
    let said = ["turn 1 of `one` in `lamps` has no answer in the recording, but waits for one now"];
    place.swarmc(&["run", "flow.kdl", "--replay", "r", "-q"]).expect(3, &[], &said);
}

#[test]
fn a_swarm_that_is_tried_again_and_runs_in_rounds_replays() {
    let asked = Mutex::new(0);
    let endpoint = Endpoint::start(Script::new().decide(move |request| {
        let mut asked = asked.lock().expect("nobody panics with it");
        *asked += 1;
        let (name, _) = asks(request)?;
        Some(match *asked {
            1 | 2 => Answer::status(401, "who are you"),
            number => text(&json!({ "action": "done", "response": format!("{name} is lit, the {number}th") })),
        })
    }));
    let rounds = "concurrency 8\nloop rounds max=2 exhausted=success {\n    \
                  task lamps { swarm team; retry 1 backoff=\"10ms\" }\n    task told { run cat; stdin \"<<output:lamps>>\" }\n    \
                  until \"iteration == 2\"\n}\ntask beside { run \"echo x\"; retry 1 }\nresult beside";
    let place = hangs(&endpoint, "", rounds);
    place.swarmc(&["run", "flow.kdl", "--record", "r"]).expect(0, &[], &["recorded "]);
    drop(endpoint);
    for _ in 0..2 {
        place.swarmc(&["run", "flow.kdl", "--replay", "r"]).expect(0, &[], &["everything is as recorded"]);
        are_alike(&place.home());
    }
}

#[test]
fn a_swarm_that_was_killed_and_resumed_has_one_recording() {
    for turns in [1, 3, 5, 8, 12] {
        let endpoint = Endpoint::start(script());
        let place = team(&endpoint);
        let mut command = place.command(&["run", "flow.kdl", "--record", "r"]);
        let mut child = command.env("SECRET_TOKEN", "sk-very-secret-4711").spawn().expect("swarmc starts");
        assert!(endpoint.wait_for(turns, Duration::from_secs(60)), "they ask");
        signal(&child, "KILL");
        child.wait().expect("it ends");
        assert!(!place.work().join("r").exists());
        run(&place, &["resume", "last"]).expect(0, &["All lamps are lit.\n"], &["recorded "]);
        let asked = endpoint.requests().len();
        let replayed = place.swarmc(&["run", "flow.kdl", "--replay", "r"]);
        replayed.expect(0, &["All lamps are lit.\n"], &["everything is as recorded"]);
        assert_eq!(endpoint.requests().len(), asked, "nobody was asked again");
    }
}

/// A task asks its model more than once where that calls tools; its turn is one answer of the recording.
#[test]
fn a_task_whose_model_calls_tools_replays_without_them() {
    for protocol in ["provides tools", "tools=schema"] {
        let (tools, provides) = if protocol == "tools=schema" { (protocol, "") } else { ("", protocol) };
        let script = Script::new().decide(|request| {
            let answer = |step: Value| Answer::text(json!({ "step": step }).to_string());
            let first = request.results.is_empty() && request.user.len() < 2;
            let arguments = json!({ "text": "the key is sk-very-secret-4711" });
            Some(match (request.tools.is_empty(), first) {
                (false, true) => Answer::call("s.echo", arguments),
                (true, true) => answer(json!({ "tool": "s.echo", "arguments": arguments })),
                (false, false) => Answer::text("It echoes."),
                (true, false) => answer(json!({ "answer": "It echoes." })),
            })
        });
        let endpoint = Endpoint::start(script);
        let url = endpoint.url();
        let place = Place::new(&format!(
            "workflow w\nsecret key env=SECRET_TOKEN\n\
             provider p {{ llm openai {tools} base-url=\"{url}\" model=scripted; auth key; {provides} }}\n\
             tool-server s {{ exec python3 \"server.py\" plain \"marks\" }}\n\
             agent a provider=p {{ tools s.echo; can network }}\n\
             pipeline q {{ task t {{ prompt \"Call it.\" }}; result t }}\n"
        ));
        let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("runtime/src/io/tools/tests/hostile.py");
        place.write("server.py", &fs::read_to_string(server).expect("there is a server"));
        run(&place, &["run", "flow.kdl", "--record", "r"]).expect(0, &["It echoes.\n"], &["recorded 1 answer"]);
        assert_eq!(endpoint.prompts().len(), 2, "{protocol}");
        let marks = fs::read_to_string(place.work().join("marks")).expect("the server ran");
        assert!(marks.contains("call echo"), "{protocol}: {marks}");
        drop(endpoint);
        let replayed = place.swarmc(&["run", "flow.kdl", "--replay", "r"]);
        replayed.expect(0, &["It echoes.\n"], &["everything is as recorded"]);
        assert_eq!(fs::read_to_string(place.work().join("marks")).expect("it is there"), marks, "{protocol}");
        let recording = texts(&place.work().join("r")).into_values().collect::<String>();
        assert!(!recording.contains("sk-very-secret"), "{recording}");
    }
}

#[test]
fn what_a_person_agreed_to_is_agreed_to_in_a_replay() {
    for (policy, headless) in
        [("", false), ("unattended approve", true), ("unattended deny", true), ("unattended fail", true)]
    {
        let place = Place::new(&spec(policy));
        let code = if policy == "unattended fail" { 3 } else { 0 };
        if headless {
            place.swarmc(&["run", "flow.kdl", "--record", "r", "--headless"]).expect(code, &[], &["recorded "]);
        } else {
            let (mut child, rest) = place.until(&["run", "flow.kdl", "--record", "r"], "mitaka done");
            await_request(&place, 1);
            let other = r#"{"command": "echo other >> ran.txt"}"#;
            place.swarmc(&["approve", "last", "1", "allow", "--arguments", other]).expect(0, &[], &[]);
            await_request(&place, 2);
            place.swarmc(&["approve", "last", "2", "deny", "--because", "not now"]).expect(0, &[], &[]);
            assert!(child.wait().expect("it ends").success(), "{}", rest());
        }
        let _ = fs::remove_file(place.work().join("ran.txt"));
        for more in [&[][..], &["--headless"]] {
            let arguments = [&["run", "flow.kdl", "--replay", "r"][..], more].concat();
            place.swarmc(&arguments).expect(code, &[], &["everything is as recorded"]);
            are_alike(&place.home());
        }
        assert!(!place.work().join("ran.txt").exists(), "{policy}: nothing is called");
        if !headless {
            let missing = edited(&place, |line| !line["event"].to_string().contains("approval") || line["id"] == 1);
            missing.expect(3, &[], &[]);
            let unanswered = edited(&place, |line| line["event"] != "approval_answered");
            let said = ["request 1 of `takao` in `go` waits for an answer, but the recording has none"];
            unanswered.expect(3, &[], &said);
        }
    }
}
