//! Turns of swarms and teams that programs take: they outlive the runner as the attempts of tasks do.

use std::fs;
use std::process::Stdio;

use super::{count, effects, journal, processes, run_folder, shims, wait_until};
use crate::cli::{Place, signal};

/// Two members, each of which notes its start and its end, and ends its turn when the file `go` is there.
fn pair(workflow: &str) -> Place {
    let place = Place::new(&format!(
        r##"
        workflow w {{ {workflow} }}
        provider shell {{ exec "sh" "act.sh"; prompt stdin }}
        agent coder provider=shell
        swarm pair {{
            goal "Light the lamps"
            member one agent=coder "Light the first"
            member two agent=coder "Light the second"
            limits {{ iterations 4 }}
        }}
        pipeline p {{ task light {{ swarm pair }}; result light }}
        "##
    ));
    let act = r#"cat >/dev/null; echo start >> effects
        until [ -e go ]; do sleep 0.02; done
        echo done >> effects; echo '{"action":"done","response":"lit"}'"#;
    place.write("act.sh", act);
    place
}

/// Runs until both members are at work, and kills the runner.
fn kill_at_work(place: &Place, arguments: &[&str]) {
    // Room that is not written yet reads as zeros.
    let before = journal(place).trim_end_matches('\0').len();
    let mut child = place.command(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    wait_until("both members are at work", || {
        assert_eq!(child.try_wait().expect("it can be asked"), None, "the run has ended: {}", journal(place));
        // A shim and its program, for each of them.
        journal(place).split_at(before).1.matches("process_started").count() >= 4
            && effects(place).matches("start").count() >= 2
    });
    signal(&child, "KILL");
    child.wait().expect("it ends");
}

#[track_caller]
fn assert_nothing_left(place: &Place) {
    assert_eq!(processes(place), Vec::<i32>::new());
    assert!(!run_folder(place).join("attempts").exists());
}

const RESULT: &str = "## one\nlit\n\n## two\nlit\n";

#[test]
fn members_of_a_swarm_go_on_and_are_rejoined() {
    let place = pair("");
    kill_at_work(&place, &["run", "flow.kdl"]);
    assert_eq!(shims(&place).len(), 2);
    kill_at_work(&place, &["resume", "last"]);
    kill_at_work(&place, &["resume", "last"]);
    let mut child =
        place.command(&["resume", "last"]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
    wait_until("both are rejoined once more", || {
        assert_eq!(child.try_wait().expect("it can be asked"), None, "{}", journal(&place));
        count(&place, "turn_rejoined") == 6
    });
    place.write("go", "");
    assert!(child.wait().expect("it ends").success());
    let mut printed = String::new();
    std::io::Read::read_to_string(&mut child.stdout.take().expect("it is piped"), &mut printed).expect("it is text");
    assert!(printed.contains(RESULT), "{printed}");
    let told = effects(&place);
    assert_eq!((told.matches("start").count(), told.matches("done").count()), (2, 2), "{told}");
    assert_eq!((count(&place, "turn_started"), count(&place, "turn_ended")), (2, 2), "{}", journal(&place));
    assert_nothing_left(&place);
}

#[test]
fn members_that_have_ended_meanwhile_are_read() {
    let place = pair("");
    kill_at_work(&place, &["run", "flow.kdl"]);
    place.write("go", "");
    wait_until("the shims end with their programs", || processes(&place).is_empty());
    place.swarmc(&["resume", "last"]).expect(
        0,
        &[RESULT],
        &["2 attempts of the last runner: ended meanwhile, and read"],
    );
    let told = effects(&place);
    assert_eq!((told.matches("start").count(), told.matches("done").count()), (2, 2), "{told}");
    assert_eq!((count(&place, "turn_started"), count(&place, "turn_rejoined")), (2, 2));
    assert_nothing_left(&place);
}

#[test]
fn members_that_are_not_to_survive_begin_again() {
    let place = pair("survive none");
    let mut child =
        place.command(&["run", "flow.kdl"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    wait_until("both members are at work", || effects(&place).matches("start").count() == 2);
    signal(&child, "KILL");
    child.wait().expect("it ends");
    assert_eq!(shims(&place), Vec::<i32>::new());
    place.write("go", "");
    place.swarmc(&["resume", "last"]).expect(0, &[RESULT], &[]);
    assert_eq!((effects(&place).matches("start").count(), count(&place, "turn_rejoined")), (4, 0));
    assert_nothing_left(&place);
}

#[test]
fn a_recorded_swarm_whose_runner_was_killed_is_replayed() {
    let place = pair("");
    let arguments = ["run", "flow.kdl", "--record", "tape"];
    let mut child = place.command(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    wait_until("both members are at work", || effects(&place).matches("start").count() == 2);
    signal(&child, "KILL");
    child.wait().expect("it ends");
    place.write("go", "");
    place.swarmc(&["resume", "last"]).expect(0, &[RESULT], &[]);
    assert_eq!(effects(&place).matches("start").count(), 4, "they begin again");
    fs::remove_file(place.work().join("act.sh")).expect("it can be removed");
    place.swarmc(&["run", "flow.kdl", "--replay", "tape"]).expect(0, &[RESULT], &["everything is as recorded"]);
}

/// Two programs of a team call its tools before the kill, and again while no runner is there.
const TEAM: &str = r##"
workflow w
provider shell { exec "sh" "act.sh"; prompt stdin; reads claude-stream-json }
agent coder provider=shell
swarm split {
    goal "Split it"
    coordinator lead agent=coder
    member a1 agent=coder
    member a2 agent=coder
    item api "Define it" owner=a1
    item parser "Move it" owner=a2
    limits { agents 3; iterations 9; timeout "1m" }
}
pipeline p { task team { swarm split; env SWARMC="PROGRAM" }; result team }
"##;
const TEAM_ACT: &str = r#"
P=$(cat)
call() { "$SWARMC" agent call "$@" 2>&1; }
result() { echo '{"type":"result","subtype":"success","is_error":false,"result":"'"$1"'"}'; }
case "$P" in
*"You are lead"*"2 of 2 items done"*) result '{\"action\":\"done\",\"response\":\"both stand\"}'; exit ;;
*"You are lead"*) result '{\"action\":\"idle\"}'; exit ;;
esac
case "$P" in *"You are a1"*) me=a1 other=a2 item=api ;; *) me=a2 other=a1 item=parser ;; esac
echo '{"type":"assistant","message":{"content":[{"type":"tool_use","id":"e","name":"Write","input":{"file_path":"'$me'.txt","content":"new"}}]}}'
echo '{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"e","content":"done"}]}}'
call send_message '{"to":"'$other'","message_type":"info","payload":{"message":"hello from '$me'"}}' >>$me.calls
echo start >> effects
until [ -e go ]; do sleep 0.02; done
call send_message '{"to":"'$other'","message_type":"info","payload":{"message":"bye from '$me'"}}' >>$me.calls
# A message that comes after the turn wakes its receiver for one more turn: both are there before the last call, which
# shows the other's message.
echo bye >> said
until [ "$(grep -c bye said)" -ge 2 ]; do sleep 0.02; done
echo done >> effects
call item_done '{"item":"'$item'","summary":"by '$me'"}' >>$me.calls
result "It is done."
"#;

#[test]
fn programs_of_a_team_go_on_and_its_tools_know_them() {
    let place = Place::new(&TEAM.replace("PROGRAM", env!("CARGO_BIN_EXE_swarmc")));
    place.write("act.sh", TEAM_ACT);
    let facts = |fact: &str| journal(&place).matches(&format!("\"fact\":\"{fact}\"")).count();
    kill_at_work(&place, &["run", "flow.kdl"]);
    assert_eq!((facts("touched"), count(&place, "message_sent")), (2, 2), "{}", journal(&place));
    kill_at_work(&place, &["resume", "last"]);
    // They call while no runner is there.
    place.write("go", "");
    let ended = place.swarmc(&["resume", "last"]);
    let calls = |name: &str| fs::read_to_string(place.work().join(format!("{name}.calls"))).unwrap_or_default();
    let calls = calls("a1") + &calls("a2");
    ended.expect(0, &["both stand"], &[]);
    let told = effects(&place);
    assert_eq!((told.matches("start").count(), told.matches("done").count()), (2, 2), "{told}\n{calls}");
    let from_agents = ["a1", "a2"].map(|name| journal(&place).matches(&format!("\"from\":\"{name}\"")).count());
    assert_eq!((from_agents, facts("touched")), ([2, 2], 2), "{calls}\n{}", journal(&place));
    assert_eq!(facts("item_moved"), 4, "begun and done, each once: {}", journal(&place));
    assert_nothing_left(&place);
}

/// The same over ACP, where the spec says so.
#[test]
fn members_over_acp_go_on_where_the_spec_says_so() {
    let agent = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/acp/agent.py");
    let place = Place::new(&format!(
        r##"
        workflow w
        provider client {{ acp python3 "{agent}" asks }}
        agent talker provider=client
        swarm pair {{
            goal "Say hello"
            member one agent=talker "Say it"
            limits {{ iterations 2 }}
        }}
        pipeline p {{ task greet {{ swarm pair; survive #true }}; result greet }}
        "##
    ));
    for (rejoined, arguments) in [&["run", "flow.kdl"][..], &["resume", "last"]].into_iter().enumerate() {
        let (mut child, _) = place.until(arguments, "swarmc approve");
        wait_until("it has asked", || count(&place, "approval_asked") == 1);
        wait_until("it is rejoined", || count(&place, "turn_rejoined") == rejoined);
        signal(&child, "KILL");
        child.wait().expect("it ends");
    }
    assert_eq!(shims(&place).len(), 1);
    place.swarmc(&["stop", "last"]).expect(0, &[], &[]);
    assert_eq!(processes(&place), Vec::<i32>::new());
    let heard = fs::read_to_string(place.work().join("heard")).expect("it was written");
    assert_eq!(heard.matches("session/prompt").count(), 1, "{heard}");
}
