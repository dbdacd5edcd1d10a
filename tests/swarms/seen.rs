//! What people and programs see of a swarm: lines, events, files, `inspect`; and how budgets and people end one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::cli::{Place, signal};
use crate::specs::Project;

const RESEARCH: &str = "specs/research-swarm/research-swarm.kdl";

/// A swarm of script agents: `answers` in the script, `team` in the swarm, `more` beside it.
fn flow(more: &str, answers: &str, team: &str) -> Place {
    Place::new(&format!(
        "workflow w {{ default lamps }}\n{more}\nprovider p {{ script {{\n{answers}\n}} }}\n\
         agent a provider=p\nswarm lamps {{\n    goal \"Light the lamps\"\n{team}\n}}\n"
    ))
}

fn folder(place: &Place) -> PathBuf {
    let mut runs = fs::read_dir(place.home().join("runs")).expect("there are runs").flatten();
    runs.next().expect("there is a run").path()
}

fn lines(path: &std::path::Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect()
}

#[test]
fn events_have_the_names_and_ids_of_the_seed() {
    let project = Project::new();
    let printed = project.done(&["run", RESEARCH, "--events"]);
    let events: Vec<Value> =
        printed.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect();
    assert!(events.iter().all(|event| event["version"] == 1 && event["type"].is_string()));
    let ids = |kind: &str| -> BTreeSet<&str> {
        let fit = events.iter().filter(|event| event["type"] == kind);
        fit.map(|event| event["agent_id"].as_str().unwrap_or_default()).collect()
    };
    let helper = events.iter().find(|event| event["by"] == "takao").expect("a helper was spawned");
    let helper = helper["agent_id"].as_str().expect("it has a name");
    let team = BTreeSet::from(["takao", "mitaka", "kichijoji", helper]);
    for kind in ["workflow_started", "progress", "workflow_completed"] {
        assert_eq!(ids(kind), BTreeSet::from(["swarm-supervisor"]), "{kind}");
    }
    for kind in ["agent_started", "agent_completed"] {
        assert_eq!(ids(kind), team, "{kind}");
    }
    assert_eq!(ids("workspace_updated"), BTreeSet::from(["workspace"]));
    assert_eq!(ids("message_sent"), BTreeSet::from(["kichijoji", "mitaka", "swarm-supervisor"]));
    assert_eq!(ids("message_received"), BTreeSet::from(["kichijoji", "mitaka", "takao"]));
    let phases: Vec<&str> = events.iter().filter_map(|event| event["phase"].as_str()).collect();
    assert_eq!(phases, ["spawning", "monitoring", "synthesizing"]);
    // Those of steps are there as well, in the order of the journal, and the end.
    assert_eq!(events[0]["type"], "run_started");
    let numbers: Vec<u64> = events.iter().filter_map(|event| event["seq"].as_u64()).collect();
    assert_eq!(events.last().map(|event| &event["status"]), Some(&json!("succeeded")));
    assert!(numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{numbers:?}");
    // What has no number stands in no journal.
    let others: BTreeSet<&str> = events
        .iter()
        .filter(|event| event["seq"].is_null())
        .map(|event| event["type"].as_str().unwrap_or_default())
        .collect();
    assert_eq!(others, BTreeSet::from(["connection", "result"]));
    let sent = events.iter().find(|event| event["type"] == "message_sent").expect("a message was sent");
    assert!(
        sent["message_type"].is_string()
            && sent["number"] == 1
            && sent["to"].is_string()
            && sent["step"]["name"] == "research",
        "{sent}"
    );
}

#[test]
fn a_pipe_gets_a_line_for_what_happens_and_inspect_tells_the_rest() {
    let project = Project::new();
    let output = project.swarmc(&["run", RESEARCH]);
    let told = String::from_utf8_lossy(&output.stderr);
    for part in [
        "  research: monitoring\n",
        "  research: takao started: Research US AI chip market\n",
        " was spawned to help takao: Find out which rules all three markets meet\n",
        "✓ research: mitaka done after 4 iterations, 1 message sent\n",
        "› research: kichijoji to mitaka (request): Can you check Japan's domestic chip vendors?\n",
        " publishes ",
        "4 agents, 16 turns, 2 messages",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let swarm = project.done(&["inspect", "last", "research"]);
    assert!(swarm.contains("mitaka") && swarm.contains("done after 4 iterations, 1 message sent"), "{swarm}");
    assert!(swarm.contains(", called by takao") && swarm.contains("task    Research Japan AI chip market"), "{swarm}");
    assert!(swarm.contains("research/AGENT"), "{swarm}");
    let agent = project.done(&["inspect", "last", "research", "mitaka"]);
    assert_eq!(project.done(&["inspect", "research/mitaka"]), agent, "the last run, and the agent in one word");
    assert_eq!(project.done(&["inspect", "research", "mitaka"]), agent);
    for part in [
        "mitaka (agent researcher): done",
        "iteration 1: {\"action\":\"tool_call\"",
        "iteration 4: {\"action\":\"done\"",
        "result  ",
        "prompts/research.1.mitaka.1.1.txt",
        "1 from kichijoji (request): {\"message\":\"Can you check Japan's domestic chip vendors?\"}",
    ] {
        assert!(agent.contains(part), "{part}: {agent}");
    }
    let json: Value =
        serde_json::from_str(&project.done(&["inspect", "last", "research", "takao", "--json"])).expect("JSON");
    assert_eq!((&json["version"], &json["how"], &json["iterations"]), (&json!(1), &json!("done"), &json!(4)));
    let turns = json["turns"].as_array().expect("turns");
    assert_eq!(
        turns.iter().map(|turn| turn["iteration"].as_u64()).collect::<Vec<_>>(),
        [Some(1), Some(2), Some(3), Some(4)]
    );
    assert_eq!(turns[0]["action"]["tool_params"]["path"], "specs/research-swarm/data/us.txt");
    assert!(turns[0]["results"][0]["text"].as_str().is_some_and(|text| text.contains("NVIDIA")), "{}", turns[0]);
    let prompt = turns[3]["paths"]["prompt"].as_str().expect("its prompt is kept");
    assert!(fs::read_to_string(prompt).expect("it can be read").contains("## Budget: Iteration 4 of 10"));
    assert_eq!(json["mailbox"][0]["from"], "swarm-supervisor");
    assert_eq!(json["mailbox"][0]["received"], true);
    let json: Value = serde_json::from_str(&project.done(&["inspect", "last", "research", "--json"])).expect("JSON");
    assert_eq!(json["swarm"]["agents"].as_array().map(Vec::len), Some(4));
    assert!(project.done(&["inspect", "last", "research", "swarm-supervisor"]).contains("synthesis: merged: "));
    let unknown = project.swarmc(&["inspect", "last", "research", "mitako"]);
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("did you mean `mitaka`?"), "{unknown:?}");
    assert_eq!(unknown.status.code(), Some(2));
    for words in [&["logs", "research/mitako"][..], &["inspect", "research/mitako"]] {
        let unknown = project.swarmc(words);
        assert!(String::from_utf8_lossy(&unknown.stderr).contains("did you mean `mitaka`?"), "{unknown:?}");
    }
    let unlogged = project.swarmc(&["logs", "research/mitaka"]);
    assert_eq!((unlogged.status.code(), unlogged.stdout.len()), (Some(0), 0), "{unlogged:?}");
    assert!(String::from_utf8_lossy(&unlogged.stderr).contains("swarmc inspect"), "{unlogged:?}");
    let unknown = project.swarmc(&["inspect", "last", "reserch"]);
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("did you mean `research`?"), "{unknown:?}");
}

#[test]
fn mailboxes_and_the_workspace_are_files_as_the_seed_has_them() {
    let answers = r##"
        answer #"{"action": "send_message", "to": "two", "message_type": "offer", "payload": {"message": "I can help"}}"# task=one turn=1
        answer #"{"action": "publish_data", "topic": "../lamps", "data": "Lit."}"# task=one turn=2
        answer #"{"action": "done", "response": "one is lit"}"# task=one
        answer #"{"action": "idle"}"# task=two turn=1
        answer #"{"action": "done", "response": "two is lit"}"# task=two"##;
    let place = flow("", answers, "member one \"Light it\"\nmember two \"Wait\"");
    place.swarmc(&["run", "flow.kdl"]).expect(0, &["one is lit", "two is lit"], &[]);
    let swarm = folder(&place).join("swarms/lamps");
    let letters = lines(&swarm.join("mailboxes/two.jsonl"));
    assert_eq!(letters.len(), 1);
    let mut letter = letters[0].clone();
    assert!(letter["ts"].as_u64().is_some_and(|ts| ts > 1_700_000_000_000_000_000), "{letter}");
    letter["ts"] = json!(0);
    let payload = json!({ "message": "I can help" });
    assert_eq!(letter, json!({ "seq": 1, "from": "one", "to": "two", "type": "offer", "payload": payload, "ts": 0 }));
    let mut entries = lines(&swarm.join("workspace/%2e.%2flamps.jsonl"));
    entries[0]["ts"] = json!(0);
    let entry = json!({ "author": "one", "data": "Lit." });
    assert_eq!(entries, [json!({ "seq": 1, "topic": "../lamps", "entry": entry, "ts": 0 })]);
}

#[test]
fn what_agents_say_is_one_line_that_no_terminal_obeys() {
    let answers = r##"
        answer "I\u{1b}[2J would\r✓ fake: succeeded" task=one
        answer #"{"action": "publish_data", "topic": "a\u001b[2J\u0007\nb", "data": "x\u001b]0;title\u0007y"}"# task=two turn=1
        answer #"{"action": "request_help", "help_description": "help\u001b[31m me\n✓ lamps: succeeded \u202e", "help_skills": []}"# task=two turn=2
        answer #"{"action": "done", "response": "\u001b[2Jlit"}"#"##;
    let place =
        flow("", answers, "member one \"Light it\"\nmember two \"Light\\u{1b}[2J it\"\nlimits { iterations 4 }");
    let ended = place.swarmc(&["run", "flow.kdl"]).expect(0, &[], &["one converged after 3 iterations"]);
    assert!(!ended.err.contains('\u{1b}') && !ended.err.contains('\u{202e}'), "{ended:#?}");
    assert!(ended.err.contains(": help me ✓ lamps: succeeded \u{fffd}\n"), "{ended:#?}");
    for arguments in
        [&["inspect", "last", "lamps"][..], &["inspect", "last", "lamps", "two"], &["inspect", "last", "lamps", "one"]]
    {
        let shown = place.swarmc(arguments).expect(0, &[], &[]);
        assert!(!shown.out.contains(['\u{1b}', '\u{7}', '\u{202e}', '\r']), "{shown:#?}");
    }
}

#[test]
fn a_swarm_is_a_workflow_by_itself_and_its_plan_is_read_again() {
    let answers = r##"answer #"{"action": "done", "response": "it is lit"}"#"##;
    let place = flow("", answers, "member one \"Light it\"");
    place.swarmc(&["run", "flow.kdl"]).expect(0, &["it is lit\n"], &["✓ lamps: one done after 1 iteration"]);
    place.swarmc(&["inspect"]).expect(0, &["lamps", "succeeded", "1 agent, 1 turn"], &[]);
    place.swarmc(&["ps", "--all"]).expect(0, &["succeeded", "1/1"], &[]);
    place.swarmc(&["plan", "flow.kdl", "-o", "plan.json"]).expect(0, &[], &[]);
    place.swarmc(&["run", "plan.json", "--pipeline", "lamps"]).expect(0, &["it is lit\n"], &[]);
}

#[test]
fn the_budget_of_the_workflow_ends_the_run() {
    let answers = r##"answer #"{"action": "publish_data", "topic": "t", "data": "x"}"#"##;
    let team = "member one \"Light it\"\nmember two \"Light it\"\nconvergence { no-progress 20 }";
    let place = flow("budget tokens=20000 { allow SW404 reason=\"to see it end\" }", answers, team);
    let ended = place.swarmc(&["run", "flow.kdl"]).expect(5, &[], &["over budget", "20000 tokens"]);
    assert!(ended.err.contains("2 agents, ") && !ended.err.contains("`stop`"), "{ended:#?}");
}

#[test]
fn the_budget_of_an_agent_ends_that_agent() {
    let answers = r##"
        answer #"{"action": "publish_data", "topic": "t", "data": "x"}"# task=greedy
        answer #"{"action": "done", "response": "it is lit"}"#"##;
    let team = "member greedy agent=b \"Light it\"\nmember other agent=a \"Light it\"\nconvergence { no-progress 20 }";
    let place = flow("agent b provider=p { budget calls=2 }", answers, team);
    let ended = place.swarmc(&["run", "flow.kdl", "--events"]).expect(0, &[], &[]);
    let events: Vec<Value> = ended.out.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let ends = events.iter().filter(|event| event["type"] == "agent_completed");
    let ends: BTreeMap<&str, &str> =
        ends.filter_map(|event| Some((event["agent_id"].as_str()?, event["how"].as_str()?))).collect();
    assert_eq!(ends, BTreeMap::from([("greedy", "over_budget"), ("other", "done")]));
}

#[test]
fn a_swarm_that_a_person_stops_goes_on_where_it_was() {
    let answers = r##"
        answer #"{"action": "send_message", "to": "two", "message_type": "info", "payload": {"message": "first"}}"# task=one turn=1
        answer #"{"action": "publish_data", "topic": "lamps", "data": "Lit."}"# task=one turn=2
        answer #"{"action": "done", "response": "one is lit"}"# task=one turn=3 delay="1s"
        answer #"{"action": "idle"}"# task=two turn=1
        answer #"{"action": "idle"}"# task=two turn=2
        answer #"{"action": "done", "response": "two is lit"}"# task=two delay="1s""##;
    let place = flow("", answers, "member one \"Light it\"\nmember two \"Wait\"\nconvergence { no-progress 9 }");
    let swarm = || folder(&place).join("swarms/lamps");
    let mut command = place.command(&["run", "flow.kdl", "--events"]);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("swarmc starts");
    let events = BufReader::new(child.stdout.take().expect("stdout is piped"));
    let mut events = events.lines().map_while(Result::ok);
    assert!(events.any(|event| event.contains("\"workspace_updated\"")), "it is published");
    signal(&child, "INT");
    let last = events.last().expect("a run says how it ended");
    assert!(last.contains("\"status\":\"stopped\""), "{last}");
    assert_eq!(child.wait().expect("it ends").code(), Some(4));
    let before = (lines(&swarm().join("mailboxes/two.jsonl")), lines(&swarm().join("workspace/lamps.jsonl")));
    fs::remove_dir_all(swarm()).expect("the files are for people, and can go");
    place.swarmc(&["resume", "--events"]).expect(0, &["\"agent_completed\"", "one is lit", "two is lit"], &[]);
    let after = (lines(&swarm().join("mailboxes/two.jsonl")), lines(&swarm().join("workspace/lamps.jsonl")));
    assert_eq!(before, after, "made anew from the journal");
    let one: Value =
        serde_json::from_str(&place.swarmc(&["inspect", "last", "lamps", "one", "--json"]).out).expect("JSON");
    let iterations: Vec<Option<u64>> =
        one["turns"].as_array().into_iter().flatten().map(|turn| turn["iteration"].as_u64()).collect();
    assert_eq!(iterations, [Some(1), Some(2), Some(3)], "what was answered is not asked again");
}
