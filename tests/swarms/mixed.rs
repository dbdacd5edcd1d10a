//! Swarms whose members are of every kind: a program, an agent that speaks the Agent Client Protocol, a model and a
//! script. They write to each other, one after the other, so that each result says that a message came.

mod real;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::cli::{Place, signal};

/// Sam writes to bob, bob to ann; `bob` is what the program does with its prompt, in `$P`.
fn team(bob: &str, more: &str) -> Place {
    let place = Place::new(&format!(
        r##"
        workflow w
        provider shell {{ exec "./bob.sh"; prompt stdin {more} }}
        provider client {{ acp python3 "agent.py" member }}
        provider recorded {{
            script {{
                answer task=sam turn=1 #"{{"action":"send_message","to":"bob","message_type":"info","payload":{{"message":"hello from sam"}}}}"#
                answer task=sam #"{{"action":"done","response":"sam is done"}}"#
            }}
        }}
        agent coder provider=shell
        agent talker provider=client
        agent model provider=recorded
        swarm mixed {{
            goal "Say hello"
            member bob agent=coder "Wait for sam"
            member ann agent=talker "Wait for bob"
            member sam agent=model "Write to bob"
            limits {{ iterations 6 }}
            retry {{ transient "20ms" max="50ms" }}
        }}
        pipeline p {{ task greet {{ swarm mixed; timeout "2m"; grace "1s" }}; result greet }}
        "##
    ));
    let agent = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/acp/agent.py");
    place.write("agent.py", &fs::read_to_string(agent).expect("there is an agent"));
    place.write("bob.sh", &format!("#!/bin/sh\nP=$(cat)\n{bob}"));
    make_executable(&place.work().join("bob.sh"));
    place
}

fn make_executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a mode can be set");
}

/// What bob says, by what it has heard and said.
const BOB: &str = r#"
case "$P" in
*"19 of 20 messages"*) echo 'It is sent. {"action":"done","response":"bob heard sam"}' ;;
*"hello from sam"*) echo '{"action":"send_message","to":"ann","message_type":"info","payload":{"message":"hello from bob"}}' ;;
*) echo '{"action":"idle"}' ;;
esac
"#;

const RESULT: &str = "## bob\nbob heard sam\n\n## ann\nann heard bob\n\n## sam\nsam is done\n";

/// The events of the only run of a place.
fn events(place: &Place) -> Vec<Value> {
    let folders = fs::read_dir(place.home().join("runs")).expect("there are runs");
    let run = folders.map(|entry| entry.expect("a folder can be read").path()).find(|path| !is_hidden(path));
    let text = fs::read(run.expect("there is a run").join("journal.jsonl")).expect("there is a journal");
    let text = String::from_utf8_lossy(&text).into_owned();
    text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).collect()
}

/// Whether a process runs; one that has ended may wait for its new parent.
fn is_alive(pid: &str) -> bool {
    let stat = fs::read_to_string(Path::new("/proc").join(pid).join("stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

/// Whether a run has a name.
fn has_run(place: &Place) -> bool {
    let folders = fs::read_dir(place.home().join("runs")).into_iter().flatten();
    folders.filter_map(|entry| Some(entry.ok()?.path())).any(|path| !is_hidden(&path))
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'))
}

#[test]
fn members_of_every_kind_write_to_each_other_and_are_replayed() {
    let place = team(BOB, "; price input=\"$1\" output=\"$2\"");
    place.swarmc(&["run", "flow.kdl", "--record", "tape"]).expect(
        0,
        &[RESULT],
        &["✓ greet: bob done", "1 message sent"],
    );
    let events = events(&place);
    let sent: Vec<(&str, &str)> = events
        .iter()
        .filter(|event| event["event"] == "message_sent")
        .map(|event| (event["from"].as_str().unwrap_or("?"), event["to"].as_str().unwrap_or("?")))
        .collect();
    assert_eq!(sent, [("sam", "bob"), ("bob", "ann")]);
    let session = events.iter().find(|event| event["event"] == "turn_ended" && event["agent"] == "ann");
    assert_eq!(session.expect("ann took a turn")["session"], "s1", "the next turn goes on with it");
    // What it asked and was answered lies beside the prompts and logs of the run.
    let prompt = "You are a program with tools of your own.";
    let run = place.home().join("runs");
    let files = crate::specs::texts(&run);
    let told = |end: &str| files.iter().find(|(path, _)| path.ends_with(end)).map(|(_, text)| text.as_str());
    assert!(told("prompts/greet.1.bob.1.1.txt").is_some_and(|text| text.contains(prompt)));
    assert!(files.iter().any(|(path, _)| path.contains("logs/greet.1.bob.") && path.ends_with(".out")), "{files:?}");
    // Programs have logs; the last turn of bob came with the word of sam.
    let of_bob = place.swarmc(&["logs", "greet/bob"]).expect(0, &["It is sent. {\"action\":\"done\""], &[]).out;
    assert!(of_bob.starts_with("{\"action\":") && !of_bob.contains('│'), "{of_bob}");
    place.swarmc(&["logs", "greet"]).expect(0, &["greet/bob │ It is sent."], &[]);
    // No program is there in a replay.
    fs::remove_file(place.work().join("bob.sh")).expect("a file can be removed");
    fs::remove_file(place.work().join("agent.py")).expect("a file can be removed");
    place.swarmc(&["run", "flow.kdl", "--replay", "tape"]).expect(0, &[RESULT], &["everything is as recorded"]);
}

#[test]
fn the_tier_of_the_synthesis_sums_up() {
    let place = Place::new(
        r##"
        workflow w
        tiers { large strong model=big }
        provider plain { script { answer #"{"action":"done","response":"counted"}"# } }
        provider strong { exec "sh" "-c" "cat >prompt.txt; echo summed up by $0 $2"; model-flag "--model" }
        agent a provider=plain { system "You count." }
        swarm s {
            goal "Count"
            member one agent=a "Count"
            member two agent=a "Count again"
            synthesize agent=a tier=large
        }
        pipeline p { task team { swarm s }; result team }
        "##,
    );
    let ran = place.swarmc(&["run", "flow.kdl", "-q"]).expect(0, &[], &[]);
    assert_eq!(ran.out.trim_end(), "summed up by --model");
    let prompt = fs::read_to_string(place.work().join("prompt.txt")).expect("it had a prompt");
    assert!(prompt.contains("counted") && prompt.contains("You count."), "{prompt}");
    place.swarmc(&["plan", "flow.kdl"]).expect(0, &["summed up by agent a-large"], &[]);
}

/// The metadata of the only swarm that ran.
fn metadata(place: &Place) -> Value {
    let files = crate::specs::texts(&place.home().join("runs"));
    let (_, text) = files.iter().find(|(path, _)| path.ends_with("swarm.json")).expect("the swarm left its metadata");
    serde_json::from_str(text).expect("it is JSON")
}

#[test]
fn results_that_nothing_merges_are_said_to_stand_one_after_another() {
    let place = Place::new(
        r##"
        workflow w
        provider plain { exec "sh" "-c" "cat >/dev/null; echo '{\"action\":\"done\",\"response\":\"counted\"}'"; model-flag "--model" }
        agent a provider=plain model=small { system "You count." }
        swarm s { goal "Count"; member one agent=a "Count"; member two agent=a "Count again" }
        pipeline p { task team { swarm s }; result team }
        "##,
    );
    let note = "note: `team`: nothing merges the results of its 2 agents";
    let ran = place.swarmc(&["run", "flow.kdl"]).expect(0, &["## one\ncounted\n\n## two\ncounted"], &[note]);
    assert!(ran.err.contains("`synthesize agent=NAME` in the swarm merges them"), "{}", ran.err);
    let metadata = metadata(&place);
    assert_eq!(metadata["results"], "joined");
    let agent = &metadata["agents"][0];
    assert_eq!((&agent["models"], &agent["summary"]), (&serde_json::json!(["small"]), &"counted".into()));
}

#[test]
fn help_skills_are_tools_of_the_asker_or_it_is_asked_again() {
    let place = Place::new(
        r##"
        workflow w
        provider recorded {
            script {
                answer task=one turn=1 #"{"action":"request_help","help_description":"Read it","help_skills":["read_file"]}"#
                answer #"{"action":"done","response":"ok"}"#
            }
        }
        agent a provider=recorded { tools file_read }
        swarm s { goal "Count"; member one agent=a "Count"; spawn per-agent=1 }
        pipeline p { task team { swarm s }; result team }
        "##,
    );
    place.swarmc(&["run", "flow.kdl"]).expect(0, &["ok"], &[]);
    let invalid = events(&place).into_iter().find_map(|event| event["answer"]["invalid"].as_str().map(str::to_owned));
    assert_eq!(invalid.as_deref(), Some("`help_skills` has `read_file`, which is none of your tools: `file_read`"));
    assert!(events(&place).iter().all(|event| event["event"] != "help_requested"));
}

#[test]
fn a_supervisor_is_found_by_its_own_name() {
    let place = Place::new(
        r##"
        workflow w
        provider recorded {
            script {
                answer task=chief turn=1 #"[{"task":"one"},{"task":"two"}]"#
                answer #"{"action":"done","response":"ok"}"#
            }
        }
        agent a provider=recorded
        swarm s { goal "Count"; supervisor chief agent=a; decompose max=2; member one agent=a; member two agent=a }
        pipeline p { task team { swarm s }; result team }
        "##,
    );
    place.swarmc(&["run", "flow.kdl"]).expect(0, &[], &[]);
    for words in [&["inspect", "team/chief"][..], &["inspect", "last", "team", "chief"]] {
        place.swarmc(words).expect(0, &["decomposition: split into one; two"], &[]);
    }
    place.swarmc(&["logs", "team/chief"]).expect(0, &[], &["no program takes its turns"]);
}

#[test]
fn a_turn_that_fails_is_tried_again_and_an_agent_that_cannot_be_reached_ends() {
    let flaky = "if [ ! -e once ]; then touch once; echo '503 Service Unavailable' >&2; exit 1; fi";
    team(&format!("{flaky}\n{BOB}"), "").swarmc(&["run", "flow.kdl"]).expect(0, &[RESULT], &[]);
    let broken = team("echo 'my key is missing' >&2; exit 3", "");
    let ended = broken.swarmc(&["run", "flow.kdl"]).expect(0, &["sam is done"], &["bob unreachable"]);
    assert!(ended.err.contains("my key is missing"), "{ended:#?}");
    let missing = team(BOB, "");
    fs::remove_file(missing.work().join("bob.sh")).expect("a file can be removed");
    missing.swarmc(&["run", "flow.kdl"]).expect(0, &["sam is done"], &["bob unreachable"]);
}

#[test]
fn no_more_programs_of_a_provider_run_at_once_than_it_allows() {
    let place = Place::new(
        "workflow w\nprovider shell { exec \"./one.sh\"; prompt stdin; concurrency 1 }\nagent a provider=shell\n\
         swarm crowd {\n goal \"Count\"\n member a agent=a \"1\"\n member b agent=a \"2\"\n member c agent=a \"3\"\n member d agent=a \"4\"\n }\npipeline p { task t { swarm crowd } }\n",
    );
    place.write(
        "one.sh",
        "#!/bin/sh\ncat >/dev/null\nmkdir lock || { echo crowded; exit 1; }\nsleep 0.1\nrmdir lock\n\
         echo '{\"action\":\"done\",\"response\":\"alone\"}'\n",
    );
    make_executable(&place.work().join("one.sh"));
    let ended = place.swarmc(&["run", "flow.kdl"]).expect(0, &[], &[]);
    assert_eq!(ended.err.matches(" done after 1 iteration").count(), 4, "{ended:#?}");
}

#[test]
fn a_member_that_takes_too_long_is_ended_with_its_processes() {
    let place = Place::new(
        "workflow w\nprovider shell { exec \"./slow.sh\"; prompt stdin }\nagent a provider=shell\n\
         swarm slow { goal \"Sleep\"; member bob agent=a \"Sleep\"; limits { timeout \"1s\" } }\n\
         pipeline p { task t { swarm slow; grace \"1s\" } }\n",
    );
    place.write("slow.sh", "#!/bin/sh\necho $$ >pid\nexec sleep 600\n");
    make_executable(&place.work().join("slow.sh"));
    place.swarmc(&["run", "flow.kdl"]).expect(3, &[], &["bob timed out"]);
    let pid = fs::read_to_string(place.work().join("pid")).expect("it began");
    assert!(!is_alive(pid.trim()), "its process lives on");
}

#[test]
fn a_killed_run_takes_the_turns_of_programs_again_that_are_not_to_survive() {
    let slow = format!("echo $$ >>pids\nif [ ! -e go ]; then exec sleep 600; fi\n{BOB}");
    let place = team(&slow, "");
    let spec = fs::read_to_string(place.work().join("flow.kdl")).expect("there is a spec");
    place.write("flow.kdl", &spec.replace("swarm mixed; timeout", "swarm mixed; survive #false; timeout"));
    let mut runner = place.command(&["run", "flow.kdl"]).spawn().expect("swarmc starts");
    let began = Instant::now();
    while !place.work().join("pids").exists() {
        assert!(began.elapsed() < Duration::from_secs(60), "bob took no turn");
        std::thread::sleep(Duration::from_millis(20));
    }
    // Long enough for the record of its process.
    std::thread::sleep(Duration::from_millis(500));
    signal(&runner, "KILL");
    runner.wait().expect("a child can be waited for");
    place.write("go", "");
    place.swarmc(&["resume", "last"]).expect(0, &[RESULT], &[]);
    let pids = fs::read_to_string(place.work().join("pids")).expect("it began");
    assert!(!is_alive(pids.lines().next().expect("there is one")), "the process of the killed runner lives on");
    let sent = events(&place).iter().filter(|event| event["event"] == "message_sent").count();
    assert_eq!(sent, 2, "no message is doubled");
}

/// At random moments, as often as swarms of models are.
#[test]
fn a_swarm_of_programs_that_is_killed_loses_and_doubles_nothing() {
    let mut interrupted = 0;
    for round in 0_u64..60 {
        let place = team(BOB, "");
        let mut runner = place.command(&["run", "flow.kdl"]).spawn().expect("swarmc starts");
        std::thread::sleep(Duration::from_millis(20 + round * 13 % 240));
        let _ = runner.kill();
        runner.wait().expect("a child can be waited for");
        if !has_run(&place) {
            continue;
        }
        let finished = events(&place).iter().any(|event| event["event"] == "swarm_finished");
        interrupted += u32::from(!finished);
        let ended = place.swarmc(&["resume", "last"]);
        assert!(ended.code == Some(0) || finished, "{ended:#?}");
        let sent = events(&place).iter().filter(|event| event["event"] == "message_sent").count();
        assert_eq!(sent, 2, "round {round}: {ended:#?}");
        if interrupted >= 12 {
            return;
        }
    }
    panic!("only {interrupted} kills hit a run in progress");
}
