//! Programs in a team with a coordinator act and read while their turns go on, by the tools of the run.

mod real;

use std::fs;

use serde_json::Value;

use crate::cli::Place;

/// Two programs take one turn each. The first waits within its turn until it hears of the second and of a further version of
/// the plan; the second writes to it and proposes a change.
const SPEC: &str = r##"
workflow w
provider plans {
    script {
        answer task=lead turn=1 #"{"action":"idle"}"#
        answer task=lead turn=2 #"{"action":"plan_decide","proposal":1,"approve":true,"because":"yes"}"#
        answer task=lead #"{"action":"done","response":"both stand"}"#
    }
}
provider shell { exec "sh" "act.sh"; prompt stdin }
agent planner provider=plans
agent coder provider=shell
swarm split {
    goal "Split it"
    coordinator lead agent=planner
    member a1 agent=coder
    member a2 agent=coder
    item api "Define it" owner=a1 { checkpoint "it compiles" }
    item parser "Move it" owner=a2
    limits { agents 3; iterations 25; timeout "1m" }
}
pipeline p { task team { swarm split; env SWARMC="PROGRAM" }; result team }
"##;

const ACT: &str = r#"
P=$(cat)
call() { "$SWARMC" agent call "$@" 2>&1; }
case "$P" in
*"You are a1"*)
    printf '%s' "$P" >a1.prompt.txt
    echo "$SWARM_AGENT of $SWARM_ID" >a1.marks.txt
    until grep -q 'takes bytes' heard.txt 2>/dev/null && grep -q 'add tests' heard.txt; do
        sleep 0.05
        call publish_data '{"topic":"waits","data":"still"}' >>heard.txt
    done
    call plan_update '{"ops":"any","why":"mine"}' >refused.txt
    call done '{"response":"x"}' >>refused.txt
    call nonsense >>refused.txt
    call integrate '{"summary":"x"}' >>refused.txt
    for read in 'plan_read {}' 'read_summary {"agent":"a2"}' 'read_transcript {"agent":"a2"}'; do
        call ${read% *} "${read#* }" >>read.txt
    done
    call item_done '{"item":"api"}' >>refused.txt
    call item_checkpoint '{"item":"api"}' >done.txt
    call item_done '{"item":"api","summary":"defined"}' >>done.txt
    echo "All of it is done." ;;
*"You are a2"*)
    case "$P" in *"- tests [running]"*)
        call item_done '{"item":"tests","summary":"tested"}'
        echo "Nothing is left."
        exit ;;
    esac
    call send_message '{"to":"a1","message_type":"info","payload":{"message":"parse() takes bytes"}}' >sent.txt
    call plan_propose '{"ops":[{"op":"add","item":"tests","text":"Test it","owner":"a2","depends_on":["api"]}],"why":"none"}' >>sent.txt
    call item_done '{"item":"parser","summary":"moved"}' >>sent.txt
    echo "Nothing is left." ;;
esac
"#;

/// The place of a run, and its journal.
fn team() -> Place {
    let place = Place::new(&SPEC.replace("PROGRAM", env!("CARGO_BIN_EXE_swarmc")));
    place.write("act.sh", ACT);
    place
}

fn events(place: &Place) -> Vec<Value> {
    let files = crate::specs::texts(&place.home().join("runs"));
    let (_, text) = files.iter().find(|(path, _)| path.ends_with("journal.jsonl")).expect("there is a journal");
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn read(place: &Place, name: &str) -> String {
    fs::read_to_string(place.work().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// What the hook of Claude Code prints: each notice once, and nothing where there is none.
#[test]
fn a_program_reads_notices_without_an_action() {
    let place = team();
    let act = r#"until grep -q 'takes bytes' heard.txt 2>/dev/null; do
        sleep 0.05
        "$SWARMC" agent notices --hook >>heard.txt
    done
    "$SWARMC" agent notices >rest.txt
    call item_checkpoint '{"item":"api"}' >done.txt
    call item_done '{"item":"api","summary":"defined"}' >>done.txt
    until "$SWARMC" agent notices | grep 'version 2 by lead' >plan.txt; do sleep 0.05; done
    echo "All of it is done." ;;
*"You are a2"*)"#;
    let (begins, ends) =
        (ACT.find("    until").expect("it waits"), ACT.find("*\"You are a2\"*)").expect("it is there"));
    place.write("act.sh", &format!("{}{act}{}", &ACT[..begins], &ACT[ends + "*\"You are a2\"*)".len()..]));
    place.swarmc(&["run", "flow.kdl"]).expect(0, &["both stand"], &[]);
    let lines: Vec<Value> = read(&place, "heard.txt")
        .lines()
        .map(|line| serde_json::from_str(line).expect("a hook prints JSON, or nothing"))
        .collect();
    let told = |line: &Value| line["hookSpecificOutput"]["additionalContext"].as_str().unwrap_or_default().to_owned();
    assert_eq!(lines.iter().filter(|line| told(line).contains("parse() takes bytes")).count(), 1, "{lines:?}");
    assert!(lines.iter().all(|line| line["hookSpecificOutput"]["hookEventName"] == "PostToolUse"), "{lines:?}");
    assert!(!read(&place, "rest.txt").contains("takes bytes"));
}

#[test]
fn programs_hear_of_each_other_within_their_turns() {
    let place = team();
    place.swarmc(&["run", "flow.kdl"]).expect(0, &["both stand"], &[]);
    let heard = read(&place, "heard.txt");
    for part in
        ["\"notices\":\"While your turn went on, this came.", "From a2 (info)", "version 2 by lead: add tests; none"]
    {
        assert!(heard.contains(part), "no `{part}` in {heard}");
    }
    assert_eq!(heard.matches("takes bytes").count(), 1, "each message is read once: {heard}");
    let refused = read(&place, "refused.txt");
    for part in [
        "only lead may use `plan_update`",
        "`done` is no tool",
        "there is no tool `nonsense`: there are publish_data",
        "`integrate` is for managers of worktrees, and your team has none",
        "`summary` is missing",
    ] {
        assert!(refused.contains(part), "no `{part}` in {refused}");
    }
    let told = read(&place, "read.txt");
    for part in [
        "\"done\":\"plan_read\"",
        "version 2, ",
        "- api [running] (yours; checkpoint 0 of 1, next: it compiles): Define it",
        "- a2: item parser is running",
        "What a2 did, its last turn first.",
    ] {
        assert!(told.contains(part), "no `{part}` in {told}");
    }
    assert_eq!(read(&place, "done.txt").matches("{\"done\":\"item_").count(), 2);
    let marks = read(&place, "a1.marks.txt");
    assert!(marks.starts_with("a1 of ") && marks.ends_with("/team\n"), "{marks}");
    let prompt = read(&place, "a1.prompt.txt");
    assert!(prompt.contains("by `swarmc agent call ACTION 'JSON'`"), "{prompt}");
    let events = events(&place);
    let of = |agent: &str, event: &str| {
        events.iter().filter(|it| it["agent"] == agent && it["event"] == event).collect::<Vec<_>>()
    };
    // All of it happened within one turn.
    assert_eq!(of("a1", "turn_ended").len(), 1);
    assert_eq!(of("a1", "turn_ended")[0]["answer"]["acts"]["action"], "idle");
    let facts: Vec<&str> = of("a1", "team").iter().filter_map(|it| it["fact"].as_str()).collect();
    assert!(facts.contains(&"noticed") && facts.contains(&"item_checked"), "{facts:?}");
}

#[test]
fn what_happened_within_turns_is_replayed() {
    let place = team();
    place.swarmc(&["run", "flow.kdl", "--record", "tape"]).expect(0, &["both stand"], &[]);
    replay(&place, "act.sh", "both stand");
    let edited = read(&place, "flow.kdl").replace("\"Move it\"", "\"Move it away\"");
    place.write("flow.kdl", &edited);
    place.swarmc(&["run", "flow.kdl", "--replay", "tape"]).expect(3, &["Move it away"], &[]);
}

/// An agent that reads texts within its turn proposes a change, and goes on until it has heard of the next version.
const STEERED: &str = r##"
workflow w
provider plans {
    script {
        answer task=lead turn=1 #"{"action":"idle"}"#
        answer task=lead turn=2 #"{"action":"plan_decide","proposal":1,"approve":true,"because":"yes"}"#
        answer task=lead turn=3 #"{"action":"idle"}"#
        answer task=lead turn=4 #"{"action":"plan_update","ops":[{"op":"remove","item":"tests"}],"why":"later"}"#
        answer task=lead #"{"action":"done","response":"it stands"}"#
    }
}
provider client { acp python3 "agent.py" steered }
agent planner provider=plans
agent coder provider=client
swarm split {
    goal "Split it"
    coordinator lead agent=planner
    member a1 agent=coder
    item api "Define it" owner=a1
    limits { agents 2; iterations 9; timeout "1m" }
}
pipeline p { task team { swarm split }; result team }
"##;

/// A place with an agent that speaks the Agent Client Protocol.
fn client(spec: &str) -> Place {
    let place = Place::new(spec);
    let agent = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/acp/agent.py");
    place.write("agent.py", &fs::read_to_string(agent).expect("there is an agent"));
    place
}

/// Removes what a replay does not need, and replays the recording.
fn replay(place: &Place, needless: &str, result: &str) {
    fs::remove_file(place.work().join(needless)).expect("a file can be removed");
    let same = "everything is as recorded";
    place.swarmc(&["run", "flow.kdl", "--replay", "tape"]).expect(0, &[result], &[same]);
}

#[test]
fn an_agent_that_takes_texts_reads_them_while_its_turn_goes_on() {
    let place = client(STEERED);
    place.swarmc(&["run", "flow.kdl", "--record", "tape"]).expect(0, &["it stands"], &["a1 has done api: read v2"]);
    let heard = read(&place, "heard");
    assert_eq!(heard.matches("\"session/prompt\"").count(), 1, "no further prompt was needed: {heard}");
    let steered: Vec<&str> = heard.lines().filter(|line| line.contains("_session/steering")).collect();
    assert!(
        !steered.is_empty() && steered.iter().any(|line| line.contains("version 2 by lead: add tests; none")),
        "{heard}"
    );
    let events = events(&place);
    let noticed = events.iter().any(|event| event["fact"] == "noticed" && event["plan_version"] == 2);
    let turns = events.iter().filter(|event| event["event"] == "turn_started" && event["agent"] == "a1").count();
    assert!(noticed && turns == 1, "it read the version within its turn");
    replay(&place, "agent.py", "it stands");
}

/// Two agents change the same line of a file.
const EDITORS: &str = r##"
workflow w
provider plans {
    script {
        answer task=lead #"{"action":"done","response":"both agreed"}"#
    }
}
provider client { acp python3 "agent.py" editor }
agent planner provider=plans
agent coder provider=client
swarm edit {
    goal "Change it"
    coordinator lead agent=planner
    member a1 agent=coder
    member a2 agent=coder
    item a1 "Change it" owner=a1
    item a2 "Change it, too" owner=a2
    limits { agents 3; iterations 25; timeout "1m" }
}
pipeline p { task team { swarm edit }; result team }
"##;

#[test]
fn two_that_change_the_same_lines_hear_of_each_other() {
    let place = client(EDITORS);
    place.write("shared.txt", "first\nsecond\nlast\n");
    let line = "changed the same lines of shared.txt; both hear of it";
    let ran = place.swarmc(&["run", "flow.kdl", "--record", "tape"]);
    assert!(ran.out.contains("both agreed") && ran.err.contains(line), "{}\n{}", ran.out, ran.err);
    for (name, other) in [("a1", "a2"), ("a2", "a1")] {
        let told = read(&place, &format!("{name}.told"));
        for part in [format!("{other} changed shared.txt"), format!("talk to {other}"), format!("+changed by {other}")]
        {
            assert!(told.contains(&part), "no `{part}` in {told}");
        }
    }
    place.swarmc(&["inspect", "last", "team", "--swarm"]).expect(
        0,
        &["  ! a1 and a2 changed the same lines of shared.txt"],
        &[],
    );
    replay(&place, "agent.py", "both agreed");
}

#[test]
fn an_agent_whose_program_is_killed_has_crashed() {
    let place = Place::new(
        r##"
        workflow w
        provider plans {
            script {
                answer task=lead turn=1 #"{"action":"idle"}"#
                answer task=lead turn=2 #"{"action":"assign","item":"api","to":"a2"}"#
                answer task=lead turn=3 #"{"action":"idle"}"#
                answer task=lead #"{"action":"done","response":"a2 did it"}"#
            }
        }
        provider killed { exec "sh" "-c" "cat >/dev/null; kill -9 $$" }
        provider well { exec "sh" "-c" "cat >/dev/null; echo '{\"action\":\"item_done\",\"item\":\"api\",\"summary\":\"it stands\"}'" }
        agent planner provider=plans
        agent frail provider=killed
        agent coder provider=well
        swarm s {
            goal "Do it"
            coordinator lead agent=planner
            member a1 agent=frail
            member a2 agent=coder
            item api "Do it" owner=a1
            retry { transient "10ms" max="20ms" }
            limits { agents 3; iterations 9; timeout "1m" }
        }
        pipeline p { task team { swarm s }; result team }
        "##,
    );
    place.swarmc(&["run", "flow.kdl"]).expect(0, &["a2 did it"], &["a1 crashed after 1 iteration"]);
    let shown = place.swarmc(&["inspect", "last", "team", "--swarm"]).expect(0, &[], &[]).out;
    let line = |name: &str| shown.lines().find(|line| line.trim_start().starts_with(name)).unwrap_or_default();
    assert!(line("a1").contains("crashed") && line("a2").contains("completed"), "{shown}");
}
